#!/usr/bin/env bash
# All rails damage what they carry for a while, in both directions: slow, but nothing wrong is delivered and nothing is
# lost, and when it ends all paths return and the stream flows as before.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
# shellcheck source-path=SCRIPTDIR source=corrupt_shared.sh
. "$(dirname "$0")/corrupt_shared.sh"

corrupt_hosts 2
e2e_stream_start
for one_in in 1000 20; do
	for rail in 0 1; do
		lab_corrupt "$rail" frames "1/$one_in"
		lab_corrupt "$rail" frames "1/$one_in" 0 a
	done
	for rail in 0 1; do
		made=$(lab_corrupt_count "$rail" flips)
		lab_wait_for "20 bits to be damaged on rail $rail" 30 corrupt_made "$rail" $((made + 20))
	done
	# Little of it is no bar to progress.
	[ "$one_in" = 20 ] || e2e_goes_on "with all rails damaging one segment in $one_in"
	for rail in 0 1; do
		lab_corrupt_end "$rail"
		lab_corrupt_end "$rail" a
	done
	e2e_is b paths 'all(.[]; .body_errors + .header_errors > 0)' || lab_fail "not both rails are named"
	e2e_paths a 2 20
	e2e_paths b 2
	e2e_goes_on "when the damage had ended"
done
for rail in 0 1; do e2e_share "$rail"; done
e2e_stream_end
e2e_end
