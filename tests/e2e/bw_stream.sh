#!/usr/bin/env bash
# Four rails carry one stream, all of them their share, and every message arrives once, in order, intact.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 4
e2e_stream_start
e2e_goes_on "with nothing in its way" 200
for rail in 0 1 2 3; do e2e_share "$rail"; done
e2e_stream_end
e2e_end
