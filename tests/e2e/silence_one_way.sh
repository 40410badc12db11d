#!/usr/bin/env bash
# A rail that carries packets one way only is no rail: seen from the sender, then from the receiver.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 4
e2e_stream_start
for way in in out; do
	lab_silence 2 "$way" a
	e2e_paths a 3
	e2e_goes_on "with rail 2 silent $way"
	lab_unsilence 2
	e2e_paths a 4
	e2e_share 2
done
e2e_stream_end
e2e_end
