# shellcheck shell=bash
#
# corrupt.sh - damage traffic on a rail of the lab in flight; to be sourced after lab.sh
#
#	lab_corrupt_watch 1             # before the daemons: follow the streams from their beginning
#	lab_corrupt 1 payload 1/10      # from now on one segment in ten of what host b hears on rail 1 has a wrong bit
#	lab_corrupt_count 1 flips       # so many bits were turned over
#	lab_corrupt_end 1               # no more damage; the counts stay
#
# The damage is done by a BPF program (corrupt.bpf.c) where the hearer's end
# takes packets in. The TCP checksum is not computed on a veth, so TCP notices
# nothing and hands it up. What TCP sends again is left alone, so each flip
# that is counted arrives.
#
# Kinds, several with commas between:
#	payload    bodies of FRAG, that is clients' data
#	probe      bodies of PROBE; `control`: bodies of all other frames
#	header     headers, behind the magic or in it; 1/N is of headers, not of segments
#	frames     the four above: all that travels once the handshake is over
#	handshake  headers and bodies of HELLO, AUTH and READY
#	any        any byte of any TCP stream, the daemon's or not
# Counts: segments, frames, flips, frags_hit, headers_hit, flips_failed,
# streams_lost (see struct corrupt_counts).

lab_corrupt_needs() {
	local tool missing=()
	[ "$LAB_PLACE" = netns ] || lab_skip "traffic is damaged in network namespaces of this machine only"
	for tool in clang bpftool; do
		command -v "$tool" >/dev/null || missing+=("$tool")
	done
	[ -e /usr/include/bpf/bpf_helpers.h ] || missing+=(libbpf-dev)
	[ ${#missing[@]} = 0 ] || lab_skip "not installed: ${missing[*]} (tests/lab/deps installs them)"
}

# lab_corrupt_watch RAIL [HOST]: HOST (default: the last) hears through the program from now on; no damage yet
lab_corrupt_watch() {
	local rail=$1 host=${2:-${LAB_HOSTS[-1]}} object=$LAB_DIR/corrupt.o interface prog id
	[ ! -e "$LAB_DIR/corrupt-$host-$rail" ] || return 0
	lab_corrupt_needs
	[ -e "$object" ] || clang -O2 -g -Wall -Werror -target bpf -I"/usr/include/$(uname -m)-linux-gnu" \
		-c "$LAB_TOP/tests/lab/corrupt.bpf.c" -o "$object" || lab_fail "corrupt.bpf.c does not compile"
	interface=$(lab_interface "$host" "$rail")
	lab_tc "$host" qdisc replace dev "$interface" clsact
	lab_tc "$host" filter add dev "$interface" ingress bpf direct-action object-file "$object" section tc/corrupt ||
		lab_fail "this kernel does not take the program that does the damage"
	prog=$(lab_tc "$host" -j filter show dev "$interface" ingress | jq '.[].options.prog.id // empty')
	for id in $(bpftool -j prog show id "$prog" | jq '.map_ids[]'); do
		printf '%s %s\n' "$(bpftool -j map show id "$id" | jq -r .name)" "$id"
	done >"$LAB_DIR/corrupt-$host-$rail"
	grep -q corrupt_counts "$LAB_DIR/corrupt-$host-$rail" || lab_fail "the program's counts are not to be found"
}

# lab_corrupt RAIL KINDS 1/N [MOST [HOST]]: with MOST, until so many more bits were turned over
lab_corrupt() {
	local rail=$1 kinds=$2 one_in=${3#1/} most=${4:-0} host=${5:-${LAB_HOSTS[-1]}} kind bits=0
	for kind in ${kinds//,/ }; do
		case $kind in
		payload) bits=$((bits | 0x01)) ;;
		probe) bits=$((bits | 0x02)) ;;
		control) bits=$((bits | 0x04)) ;;
		header) bits=$((bits | 0x08)) ;;
		frames) bits=$((bits | 0x0f)) ;;
		handshake) bits=$((bits | 0x10)) ;;
		any) bits=$((bits | 0x20)) ;;
		*) lab_fail "there is no damage of the kind '$kind'" ;;
		esac
	done
	lab_corrupt_watch "$rail" "$host"
	[ "$most" = 0 ] || most=$(($(lab_corrupt_count "$rail" flips "$host") + most))
	lab_corrupt_order "$rail" "$host" "$bits" "$one_in" "$most"
}

# lab_corrupt_end RAIL [HOST]
lab_corrupt_end() {
	local host=${2:-${LAB_HOSTS[-1]}}
	[ ! -e "$LAB_DIR/corrupt-$host-$1" ] || lab_corrupt_order "$1" "$host" 0 1 0
}

lab_corrupt_order() { # RAIL HOST BITS ONE_IN FLIPS_UNTIL, as struct corrupt_order
	local i value=()
	# each with its least significant byte first
	for ((i = 0; i < 4; i++)); do value+=($(($3 >> 8 * i & 0xff))); done
	for ((i = 0; i < 4; i++)); do value+=($(($4 >> 8 * i & 0xff))); done
	for ((i = 0; i < 8; i++)); do value+=($(($5 >> 8 * i & 0xff))); done
	bpftool map update id "$(lab_corrupt_map corrupt_order "$1" "$2")" key 0 0 0 0 value "${value[@]}" ||
		lab_fail "the program that does the damage takes no order"
}

lab_corrupt_map() { # NAME RAIL HOST -> its id
	local name id
	while read -r name id; do
		if [ "$name" = "$1" ]; then printf '%s' "$id"; fi
	done <"$LAB_DIR/corrupt-$3-$2"
}

# lab_corrupt_count RAIL WHAT [HOST]: what was done so far
lab_corrupt_count() {
	bpftool -j map lookup id "$(lab_corrupt_map corrupt_counts "$1" "${3:-${LAB_HOSTS[-1]}}")" key 0 0 0 0 |
		jq ".formatted.value.$2"
}
