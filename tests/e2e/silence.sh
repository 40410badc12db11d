#!/usr/bin/env bash
# Silence, without any event, on one, two, then three of four rails: the same as a pulled cable.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 4
e2e_stream_start
for rails in '1' '1 2' '1 2 3'; do
	for rail in $rails; do lab_silence "$rail"; done
	e2e_paths a $((4 - $(wc -w <<<"$rails")))
	e2e_goes_on "with rails $rails silent"
	for rail in $rails; do lab_unsilence "$rail"; done
	e2e_paths a 4
	for rail in $rails; do e2e_share "$rail"; done
done
e2e_stream_end
e2e_end
