#!/usr/bin/env bash
# No neighbour is known, as after a boot: resolving takes a second, and holds up nothing else.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

forget() { # RAIL
	ip neighbour del "$(rails_address 1 "$1")" dev "h0r$1" || :
	ip neighbour del "$(rails_address 0 "$1")" dev "h1r$1" || :
}
lab_up 2 4 "$E2E_RATE"
for rail in 0 1 2 3; do forget "$rail"; done
lab_mrcd a
lab_mrcd b
case_whole 60
e2e_stream_start
lab_cut 1 a
e2e_paths a 3
forget 1
lab_heal 1
e2e_goes_on "while a neighbour is asked for"
case_whole 60
e2e_share 1
e2e_stream_end
e2e_end
