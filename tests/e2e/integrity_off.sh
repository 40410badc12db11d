#!/usr/bin/env bash
# Integrity off: what a rail damages is delivered on such a channel and nobody is blamed for it, `mrcctl channels` shows
# it; a channel beside it that has its checksums is not harmed. And it costs nothing else: a cut cable is survived.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
# shellcheck source-path=SCRIPTDIR source=corrupt_shared.sh
. "$(dirname "$0")/corrupt_shared.sh"

blind() { # NAME ARGUMENTS...: a verified stream without the daemons' checksums
	local name=$1
	shift
	lab_perf_spawn "$name" a stream b --size 256KiB --verify --duration 0 --integrity off --json --quiet "$@"
	lab_wait_for "a channel without checksums at b" 10 e2e_is b channels 'any(.[]; .integrity == "off")'
}
shown() { lab_mrcctl "$1" channels | grep -cE ' +open +'"$2"' '; }

corrupt_hosts 2
e2e_stream_start
e2e_is b channels 'all(.[]; .integrity == "on")' || lab_fail "checksums are off, and nobody asked for that"

# Nothing is damaged, and a cable is cut: all is well without checksums too.
blind blind
e2e_goes_on "with and without checksums"
for host in a b; do
	[ "$(shown "$host" off)" = 1 ] || lab_fail "mrcctl channels at $host: $(lab_mrcctl "$host" channels)"
	[ "$(shown "$host" on)" -ge 1 ] || lab_fail "mrcctl channels at $host: $(lab_mrcctl "$host" channels)"
done
lab_cut 1
e2e_paths a 1
e2e_goes_on "by one rail"
lab_heal 1
e2e_paths a 2
e2e_goes_on "by both again"
e2e_stream_end blind

# Rail 1 damages payload: only who has no checksums gets to see it.
blind damaged
lab_corrupt 1 payload 1/10
lab_wait_for "200 bits to be damaged" 20 corrupt_made 1 $((corrupt_base + 200))
e2e_goes_on "with one segment of ten damaged"
lab_corrupt_end 1
e2e_stream_stop damaged
e2e_verdict damaged '.verify.corrupted > 0 and .verify.lost == 0 and .verify.duplicated == 0 and .verify.reordered == 0' \
	"without checksums damage is delivered, and nothing is lost, doubled or out of order"
[ "$(lab_corrupt_count 1 frags_hit)" -gt "$(corrupt_errors b 1 body_errors)" ] ||
	lab_fail "fragments without a checksum were found to be damaged"
lab_say "without checksums: $(jq '.verify.corrupted' "$(e2e_result damaged)") messages delivered with damage"
e2e_paths b 2
e2e_stream_end
e2e_end
