#!/usr/bin/env bash
# A daemon is killed again and again: its peer puts away every queue pair it had with it.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

case_needs_devices
e2e_hosts 4
case_whole
again() {
	lab_kill mrcd-b KILL
	lab_wait_for "host a to notice" 10 e2e_is a peers '.[0].paths_good == 0'
	lab_mrcd b
	case_whole 60
}
again
case_held a
held=$case_held_now
for _ in 1 2 3 4; do again; done
case_held_as a "$held" "after five deaths of its peer"
echo "mrcd on a holds $held"
e2e_stream_start
e2e_stream_end
e2e_end
