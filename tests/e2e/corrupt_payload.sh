#!/usr/bin/env bash
# Payload damaged on one rail of two and of four, in one segment of ten and in every one: each damaged fragment is
# found and sent again, the rail is named, and programs see nothing of it.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
# shellcheck source-path=SCRIPTDIR source=corrupt_shared.sh
. "$(dirname "$0")/corrupt_shared.sh"

for rails in 2 4; do
	corrupt_hosts "$rails"
	e2e_stream_start
	lab_corrupt 1 payload 1/10
	lab_wait_for "200 bits to be damaged" 20 corrupt_made 1 $((corrupt_base + 200))
	e2e_goes_on "with one segment of ten damaged"
	lab_corrupt 1 payload 1/1
	lab_wait_for "2000 bits more to be damaged" 20 corrupt_made 1 $(($(lab_corrupt_count 1 flips) + 2000))
	e2e_goes_on "with all segments damaged"
	lab_corrupt_end 1
	lab_wait_for "all damaged fragments to be found" 10 corrupt_all_found 1
	corrupt_names 1 b
	corrupt_logged 1
	e2e_is b paths 'all(.[]; .header_errors == 0)' || lab_fail "whole headers are taken for damaged"
	lab_say "$rails rails: $(($(lab_corrupt_count 1 flips) - corrupt_base)) bits in $(lab_corrupt_count 1 frags_hit)" \
		"fragments damaged, $(corrupt_errors b 1 body_errors) fragments found damaged"
	e2e_paths b "$rails"
	e2e_share 1
	e2e_stream_end
	e2e_end
	lab_down
done
