#!/usr/bin/env bash
# All rails down for 5 s: the stream waits and goes on, nothing is given up. By carrier, then by silence.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 4
e2e_stream_start
for fault in 'lab_cut lab_heal' 'lab_silence lab_unsilence'; do
	read -r break mend <<<"$fault"
	for rail in 0 1 2 3; do "$break" "$rail"; done
	sleep 5
	lab_alive stream || lab_fail "the stream ended while all rails were down"
	for rail in 0 1 2 3; do "$mend" "$rail"; done
	e2e_goes_on "after $break of all rails"
	e2e_paths a 4
done
e2e_stream_end
e2e_end
