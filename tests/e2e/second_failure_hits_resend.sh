#!/usr/bin/env bash
# A second rail fails while what the first one lost is being sent again.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 4
e2e_stream_start
for gap in 0 0.001 0.002 0.005 0.01 0.02 0.05; do
	for second in lab_cut lab_silence; do
		lab_cut 1 b
		sleep "$gap"
		"$second" 2
		sleep "$gap"
		lab_silence 3 out
		e2e_goes_on "after failures $gap s apart ($second)" 3
		lab_heal 1
		lab_heal 2
		lab_unsilence 2
		lab_unsilence 3
		e2e_paths a 4
	done
done
e2e_stream_end
e2e_end
