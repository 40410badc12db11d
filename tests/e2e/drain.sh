#!/usr/bin/env bash
# An operator takes a rail out of service and puts it back; the stream does not feel it.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 4
e2e_stream_start
sent() { e2e_get a rails '.[] | select(.name == "r1") | .bytes_sent'; }
is_still() {
	local before
	before=$(sent)
	sleep 0.3 # the window in which is counted
	[ "$(sent)" = "$before" ]
}
lab_mrcctl a drain r1
lab_wait_for "rail 1 to carry nothing" 10 is_still
e2e_is a rails '.[] | select(.name == "r1") | .drained' || lab_fail "rail 1 is not shown as drained"
e2e_goes_on "with rail 1 drained"
is_still || lab_fail "a drained rail carries data"
lab_mrcctl a undrain r1
e2e_paths a 4
e2e_share 1
if lab_mrcctl a drain r9 2>/dev/null; then lab_fail "a rail that is not there was drained"; fi
e2e_stream_end
e2e_end
