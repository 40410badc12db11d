#!/usr/bin/env bash
# Queue pairs go to ERR without anybody's being told, at the sender, at the receiver, at both: the others carry the stream.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

case_needs_devices
export MRCD_FAULT=on
e2e_hosts 4
case_whole
e2e_stream_start
failures() { # HOST RAIL: so often a path over it has failed
	lab_mrcctl "$1" paths --json | jq "[.[] | select(.rail == \"r$2\") | .bad_count] | add"
}
has_failed() { [ "$(failures "$1" 1)" -gt "$2" ]; }
drill() { # HOST...
	local host before
	before=$(failures a 1)
	for host; do
		lab_mrcctl "$host" fault qp-error r1
		e2e_is "$host" rails '.[] | select(.name == "r1")' || lab_fail "$host does not answer after the fault"
	done
	lab_wait_for "a to find the path of r1 broken" 15 has_failed a "$before"
	case_whole 60
	e2e_goes_on "after the queue pairs of r1 at $* went to ERR"
}
drill a
drill b
drill a b
case_held a
held=$case_held_now
for _ in 1 2 3 4 5; do drill a; done
case_held_as a "$held" "after five more"
e2e_share 1
e2e_stream_end
e2e_end
