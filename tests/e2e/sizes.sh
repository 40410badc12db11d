#!/usr/bin/env bash
# Messages of every size: none, one byte, around the eager limit, large, and the largest there is.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

landing_mib=144 # a message may take half of it
E2E_YAML="clients: {landing-arena: ${landing_mib}MiB, send-arena: 224MiB}
limits: {eager-max: 32KiB}"
e2e_hosts 4
e2e_serve b
try() { # SIZE COUNT
	lab_perf_spawn "size-$1" a stream b --size "$1" --count "$2" --in-flight 2 --verify --json --quiet
	lab_status "size-$1" 60
	[ "$LAB_STATUS" = 0 ] || lab_fail "messages of $1 bytes: status $LAB_STATUS: $(e2e_summary "size-$1")"
	e2e_verdict "size-$1" ".outcomes == {OK: $2}" "each of $2 messages of $1 bytes is OK"
	e2e_intact "size-$1"
}
for size in 0 1 2 63 64 65 4095 4096 32767 32768 32769 65536 131071 131073 1048576; do try "$size" 40; done
try $((64 << 20)) 1
lab_perf_spawn too-big a bw b --size $(((landing_mib << 20) + 1)) --count 1 --in-flight 1 --json --quiet
lab_status too-big 20
[ "$LAB_STATUS" != 0 ] || lab_fail "a message larger than the landing arena was taken"
try 4096 10
e2e_end
