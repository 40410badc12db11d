#!/usr/bin/env bash
# A rail whose cable is out when the daemons start is no reason to wait, and is used when it comes.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

lab_up 2 4 "$E2E_RATE"
lab_cut 2 b
lab_mrcd a
lab_mrcd b
e2e_paths a 3
e2e_stream_start
lab_heal 2
e2e_paths a 4
e2e_share 2
e2e_stream_end
e2e_end
