#!/usr/bin/env bash
# A rail that flaps every 200 ms for 20 s does no harm, and is a rail again afterwards.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 4
e2e_stream_start
end=$(($(lab_now_ms) + 20000))
while [ "$(lab_now_ms)" -lt "$end" ]; do
	lab_cut 1 b
	sleep 0.1
	lab_heal 1
	sleep 0.1
done
e2e_goes_on "after the flapping"
e2e_paths a 4
e2e_share 1
e2e_stream_end
e2e_end
