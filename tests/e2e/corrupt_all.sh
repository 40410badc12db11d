#!/usr/bin/env bash
# All rails damage what they carry for a while: slow, but nothing wrong is delivered and nothing is lost, and when it
# ends all paths are in service and the stream flows as before.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
# shellcheck source-path=SCRIPTDIR source=corrupt_shared.sh
. "$(dirname "$0")/corrupt_shared.sh"

begin() { # KINDS 1/N: and wait until some was damaged on each
	local rail
	local -a made=()
	for rail in 0 1; do
		lab_corrupt_watch "$rail"
		made[rail]=$(lab_corrupt_count "$rail" flips)
		lab_corrupt "$rail" "$1" "$2"
	done
	for rail in 0 1; do
		lab_wait_for "20 bits to be damaged on rail $rail" 30 corrupt_made "$rail" $((made[rail] + 20))
	done
}
named() { e2e_is b paths "all(.[]; .$1 > 0)"; }
end() { for rail in 0 1; do lab_corrupt_end "$rail"; done; }

corrupt_hosts 2
e2e_stream_start

# Clients' data: no bar to progress.
begin payload 1/100
e2e_goes_on "with all rails damaging one segment in a hundred"
lab_wait_for "both rails to be named for payload" 10 named body_errors
e2e_is b paths 'all(.[]; .header_errors == 0)' || lab_fail "whole headers are taken for damaged"
end

# Whatever comes by: maybe nothing gets through, but nothing is given up either.
begin frames 1/20
lab_wait_for "both rails to be named for what is the daemons' own" 10 named header_errors
end
e2e_paths a 2 20
e2e_paths b 2
e2e_goes_on "when the damage had ended"
for rail in 0 1; do e2e_share "$rail"; done
e2e_stream_end
e2e_is a paths 'all(.[]; .body_errors + .header_errors == 0)' || lab_fail "a, to whom nothing came damaged, has errors"
e2e_end
