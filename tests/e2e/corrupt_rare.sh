#!/usr/bin/env bash
# One segment in a thousand damaged, on one rail of four: all of it is repaired, and the counters name the rail.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
# shellcheck source-path=SCRIPTDIR source=corrupt_shared.sh
. "$(dirname "$0")/corrupt_shared.sh"

errors() { corrupt_errors b 1 'body_errors + .header_errors'; }
more_errors() { [ "$(errors)" -ge "$1" ]; }

corrupt_hosts 4
e2e_stream_start

# In clients' data: found to the last fragment, and the path need not leave for it.
lab_corrupt 1 payload 1/1000
lab_wait_for "20 bits to be damaged" 30 corrupt_made 1 $((corrupt_base + 20))
lab_corrupt_end 1
lab_wait_for "all damaged fragments to be found" 10 corrupt_all_found 1
corrupt_names 1 b
corrupt_logged 1
lab_say "$(($(lab_corrupt_count 1 flips) - corrupt_base)) bits in $(lab_corrupt_count 1 frags_hit) fragments damaged, $(corrupt_errors b 1 body_errors) fragments found damaged"

# In whatever comes by: headers and probes as well.
before=$(errors)
lab_corrupt 1 frames 1/1000
lab_wait_for "more to be damaged and found" 30 more_errors $((before + 5))
e2e_goes_on "with a rail that damages one segment in a thousand"
lab_corrupt_end 1
corrupt_names 1 b
e2e_paths a 4
e2e_paths b 4
e2e_share 1
e2e_stream_end
e2e_end
