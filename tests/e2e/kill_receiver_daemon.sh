#!/usr/bin/env bash
# The receiver's daemon is killed: outcomes not known are reported so; it is found again by itself.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 4
e2e_stream_start
fds=
for _ in 1 2; do
	lab_kill mrcd-b KILL
	lab_wait_for "host a to notice" 5 e2e_is a peers '.[0].paths_good == 0'
	lab_mrcd b
	e2e_paths a 4
	e2e_goes_on "after the other daemon was started again"
	: "${fds:=$(e2e_fds a)}"
done
lab_wait_for "as many descriptors at a as before" 5 e2e_fds_are a "$fds"
e2e_stream_stop stream
e2e_intact stream
e2e_verdict stream '.outcomes.UNKNOWN > 0' "what was under way is reported as unknown"
e2e_end
