#!/usr/bin/env bash
# Cables pulled on one, two, then three of four rails: the stream goes on, the rails come back by themselves.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 4
e2e_stream_start
for rails in '1' '1 2' '1 2 3'; do
	for rail in $rails; do lab_cut "$rail" b; done
	e2e_paths a $((4 - $(wc -w <<<"$rails")))
	e2e_goes_on "without rails $rails"
	for rail in $rails; do lab_heal "$rail"; done
	e2e_paths a 4
	for rail in $rails; do e2e_share "$rail"; done
done
e2e_stream_end
e2e_end
