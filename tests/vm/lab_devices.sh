# shellcheck shell=bash
#
# lab_devices.sh - the hosts of tests/lab/lab.sh as two daemons beside each other on this machine; lab.sh sources it
#
# Each rail is one of this machine's RDMA devices at both its ends: the device carries what one daemon sends to the
# other within itself. Nothing of the machine is changed, so there are no faults but processes that die.
# LAB_DEVICES: "DEVICE=ADDRESS ...", as devices.sh finds them; rails take them in turn.

read -r -a lab_devices <<<"${LAB_DEVICES:-}"

lab_needs() {
	command -v jq >/dev/null || lab_skip "not installed: jq (tests/lab/deps installs it)"
	[ ${#lab_devices[@]} -gt 0 ] || lab_skip "this machine has no RDMA device with an address"
}
lab_device() { printf '%s' "${lab_devices[$1 % ${#lab_devices[@]}]}"; } # RAIL
lab_address() {                                                         # HOST RAIL
	local device
	device=$(lab_device "$2")
	printf '%s' "${device#*=}"
}
# Both daemons, and rails that share a device, have one address: ports tell them apart.
lab_port() { # HOST RAIL
	local index
	for index in "${!LAB_HOSTS[@]}"; do
		if [ "${LAB_HOSTS[index]}" = "$1" ]; then printf '%d' $((17471 + 100 * index + $2)); fi
	done
}

lab_host_make() { :; }
lab_host_pids() { :; }
lab_host_remove() { :; }
lab_rail_make() { :; }
lab_exec() { "${@:2}"; }
lab_become() { exec "${@:2}"; }
for verb in ip tc cut heal deafen unsilence slow; do
	eval "lab_$verb() { lab_skip 'no fault is made on the devices of this machine'; }"
done

lab_conf() { # HOST [YAML]
	local host=$1 extra=${2:-$LAB_YAML} rail peer device
	cat <<-YAML
		host: $host
		runtime-dir: $LAB_DIR/host/$host
		key-file: $LAB_DIR/host/$host/key
		${LAB_USER:+user: $LAB_USER}
		rails:
	YAML
	for ((rail = 0; rail < LAB_RAILS; rail++)); do
		device=$(lab_device "$rail")
		printf '  - {name: r%d, type: verbs, device: %s, address: %s, port: %s}\n' \
			"$rail" "${device%=*}" "${device#*=}" "$(lab_port "$host" "$rail")"
	done
	echo 'peers:'
	for peer in "${LAB_HOSTS[@]}"; do
		[ "$peer" != "$host" ] || continue
		printf '  - name: %s\n    paths:\n' "$peer"
		for ((rail = 0; rail < LAB_RAILS; rail++)); do
			printf '      - {rail: r%d, address: %s, port: %s}\n' \
				"$rail" "$(lab_address "$peer" "$rail")" "$(lab_port "$peer" "$rail")"
		done
	done
	[ -z "$extra" ] || printf '%s\n' "$extra"
}
