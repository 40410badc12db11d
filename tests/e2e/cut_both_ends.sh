#!/usr/bin/env bash
# Rails that go down at both ends at once come back like any other.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 4
e2e_stream_start
lab_cut 1 both
lab_cut 2 both
e2e_paths a 2
e2e_goes_on "with two rails down at both ends"
lab_heal 1
lab_heal 2
e2e_paths a 4
e2e_share 1
e2e_share 2
e2e_stream_end
e2e_end
