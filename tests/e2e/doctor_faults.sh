#!/usr/bin/env bash
# mrcctl doctor: what doctor.sh does not provoke and a lab can. First what befalls a host that runs, all of it at once,
# and mended again; then what is wrong from the start with a host's configuration and with its peer.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
# shellcheck source-path=SCRIPTDIR source=doctor_says.sh
. "$(dirname "$0")/doctor_says.sh"

LAB_USER=root # may be looked at, and is loaded with more than its own libraries
lab_up 2 4    # nothing is sent here, and rails without `speed:` are compared by that of their interfaces
stuck=$LAB_DIR/stuck
LAB_WRAP="env STUCK=$stuck LD_PRELOAD=$E2E_BIN/libstuck.so" lab_mrcd a
lab_wait_for "a to miss b" 10 e2e_is a paths 'all(.[]; .reason == "connect")'
doctor a 1 --json --seconds 0
finds peer-down '^peer b$' '^none of its 4 paths is in service, for [0-9.]+ m?s; the last reason is connect$'
finds_not path-down
lab_mrcd b
told() { # MTUs by rail: each end has told about itself on each path
	lab_wait_for "a and b to know of each other" 15 both_know "$1"
}
both_know() {
	local host
	for host in a b; do e2e_is "$host" paths "[.[] | select(.state == \"GOOD\") | .about.mtu] == $1" || return 1; done
}
well() {
	doctor a 0 --seconds 0
	[ "$(wc -l <"$doctor_report")" = 1 ] || lab_fail "more than a line about a healthy host"
	grep -q '^healthy: [0-9]* checks of 4 rails and 1 peer' "$doctor_report" || lab_fail "no word of health"
}
told '[1500, 1500, 1500, 1500]'
well

# ---- what befalls a host that runs ----

# Rail 0: shorter packets at both ends, and a driver that no longer answers. Rails 1 and 3: cabled to one switch, as that
# says itself. Rail 2: no cable. Host b: about to be serviced.
touch "$stuck.hang"
for host in a b; do lab_ip "$host" link set r0 mtu 1400; done
lab_wait_for "the driver to be asked" 10 test -e "$stuck.hung"
lab_cut 2
lab_spawn lldp b "$E2E_BIN/lldp" 02:00:5e:00:53:01 spine-1 r1 r3
lab_mrcctl b drain --host >/dev/null
e2e_paths a 3
lab_wait_for "a to know that b is drained" 10 e2e_is a peers '.[0].draining'
doctor b 1 --json --seconds 0
finds host-drained '^mrcd$' '^draining for '
silent() { e2e_is a rails 'any(.[]; .name == "r0" and .driver_silent_ns >= 5000000000)'; }
lab_wait_for "the driver to be silent for long" 15 silent
doctor a 1 --json --seconds 1
finds driver-silent '^rail r0 \(r0\)$' 'owed the daemon an answer for [0-9.]+ s'
finds rail-mtu '^all rails$' 'r0 1400, r1 1500'
finds rail-carrier '^rail r2 \(r2\)$' '^no carrier$'
finds_not path-down # which is said with its carrier
finds one-network '^rails r1 and r3$' 'the switch 02:00:5e:00:53:01 spine-1 \(LLDP\)'
finds peer-drained '^peer b$' .
rm "$stuck.hang"
lab_kill lldp TERM
lab_mrcctl b undrain --host >/dev/null
for host in a b; do lab_ip "$host" link set r0 mtu 1500; done
lab_heal 2
e2e_paths a 4
told '[1500, 1500, 1500, 1500]'
lab_wait_for "a to know that b is not drained" 10 e2e_is a peers '.[0].draining | not'
well

# A drill is no fault, at neither end, and is named.
lab_spawn drill a "$MRCCTL" --runtime-dir "$LAB_DIR/host/a" drill r3 --down 60s --yes --stream none
in_drill() { e2e_is "$1" rails ".[] | select(.name == \"r3\") | .drill == \"$2\""; }
lab_wait_for "the drill to begin" 10 in_drill a down
e2e_paths a 3
doctor a 0 --json --seconds 0
finds rail-drill '^rail r3 \(r3\)$' '^in a drill: down$'
doctor b 0 --json --seconds 0
finds rail-drill '^rail r3 \(r3\)$' "^in a drill of a peer's$"
kill -INT "$(lab_pid drill)"
lab_status drill 15
e2e_paths a 4

# A cable that comes and goes while its counters are read twice.
carrier_is() { e2e_is a rails ".[] | select(.name == \"r2\") | .carrier == $1"; }
lab_spawn doctor a "$MRCCTL" --runtime-dir "$LAB_DIR/host/a" doctor --json --seconds $((2 * LAB_SLOWNESS))
until lab_ended doctor; do
	lab_cut 2
	lab_wait_for "a to miss rail 2" 10 carrier_is false
	lab_heal 2
	lab_wait_for "a to see rail 2" 10 carrier_is true
done
doctor_report=$LAB_DIR/log/doctor.out
finds errors-rising '^rail r2 \(r2\)$' '^in [0-9]+ s: carrier losses by [0-9]+$'
# One that left service again and again. What goes and comes between two looks at its health is one departure, or none.
is_degraded() { e2e_is a paths '.[] | select(.rail == "r2") | .health.state != "good"'; } # or failing
for _ in 1 2 3 4 5 6; do
	e2e_paths a 4
	sleep 0.6 # two such looks
	if is_degraded; then break; fi
	lab_cut 2
	e2e_paths a 3
	lab_heal 2
done
lab_wait_for "what left again and again to be degraded" 15 is_degraded
doctor a 1 --json --seconds 0
finds path-degraded '^rail r2 to b$' 'left service [0-9]+ times'

# ---- what is wrong from the start ----

# Rails 0 and 1 are one port. Rail 2 is to be faster than it is, and rail 3 is slower than it. The metrics are everybody's,
# and there are no huge pages.
for host in a b; do
	lab_mrcd_stop "$host"
	[ "$host" = b ] || lab_ip a link del r1
	lab_ip "$host" link add link r0 name r1 type macvlan mode bridge
	lab_ip "$host" address add "$(lab_address "$host" 1)/24" dev r1
	lab_ip "$host" link set r1 up
done
if [ -c /dev/net/tun ]; then
	lab_ip a link del r3
	LAB_RELAY_SPEED=25 lab_relay_make 3
	for host in a b; do
		lab_ip "$host" address add "$(lab_address "$host" 3)/24" dev r3
		lab_ip "$host" link set r3 up
	done
fi
eval "$(declare -f lab_conf | sed '1s/lab_conf/lab_conf_whole/')"
lab_conf() { lab_conf_whole "$@" | sed -E '/name: r2,/s/}$/, speed: 100Gb\/s}/'; }
lab_mrcd a "metrics: {address: $(lab_address a 0), public: true}
clients: {landing-arena: 15MiB, send-arena: 16MiB, huge-pages: 2MiB}"
MRCD=$E2E_BIN/mrcd-next LAB_WRAP="env LD_PRELOAD=$E2E_BIN/libaskew.so" lab_mrcd b
e2e_paths a 4
told '[1500, 1500, 1500, 1500]'
drifts() { (doctor a 1 --json --seconds 1) && doctor_found clock-drift . .; }
doctor_report=$LAB_DIR/log/doctor
lab_wait_for "both clocks to be compared twice" 20 drifts
finds clock-drift '^peer b$' 'move apart by at least [0-9]+ us in a second'
finds clock-apart '^peer b$' 'its time of day is 1h 00m ahead of ours'
finds shared-device '^rails r0 and r1$' 'both go by the interface r0'
if [ -c /dev/net/tun ]; then
	finds rail-speed '^all rails$' '^r0 10\.?0* Gb/s.*r3 25\.?0* Mb/s$'
else
	echo "there is no /dev/net/tun: no rail is slower than its siblings"
fi
finds rail-slow '^rail r2 \(r2\)$' 'runs at 10\.?0* Gb/s; the configuration says 100 Gb/s'
finds port-open '^mrcd$' "listens on $(lab_address a 0) port 9471"
finds version-mrcd '^peer b$' "^99\\.0\\.0 there, "
finds version-firmware '^rail r2 to b$' ' here, 9\.9\.9 there, of cards with the driver veth'
finds version-kernel '^peer b$' "^7\\.99\\.0-elsewhere there, $(uname -r) here$"
pool=/sys/kernel/mm/hugepages/hugepages-2048kB
if [ "$(cat $pool/free_hugepages 2>/dev/null || echo 0)" -lt 16 ]; then
	finds huge-pages '^mrcd$' .
else
	echo "this machine has huge pages to spare: there are not too few"
fi
e2e_end
