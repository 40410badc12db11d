#!/usr/bin/env bash
# A host's own cable is pulled, its peer's, both: the other three rails carry the stream, and the rail comes back.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

e2e_hosts 4
case_whole
e2e_stream_start
for end in a b both; do
	case_stands "with the cable of $end pulled" lab_cut 1 "$end"
	case_mended 1 lab_heal 1
done
e2e_stream_end
e2e_end
