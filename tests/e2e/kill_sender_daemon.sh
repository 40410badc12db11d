#!/usr/bin/env bash
# The sender's daemon is killed: programs are told that outcomes are unknown, and go on when it is back.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 4
e2e_stream_start
for _ in 1 2; do
	lab_kill mrcd-a KILL
	lab_wait_for "host b to notice" 5 e2e_is b peers '.[0].paths_good == 0'
	lab_mrcd a
	e2e_paths a 4
	e2e_goes_on "after its daemon was started again"
done
e2e_stream_stop stream
e2e_intact stream
e2e_verdict stream '(.outcomes | keys) - ["OK", "DETACHED", "UNKNOWN", "PEER_DIED"] == []' "only the killed daemon's outcomes are unknown"
e2e_verdict stream '(.outcomes.DETACHED // 0) + (.outcomes.UNKNOWN // 0) > 0' "the unknown is reported as unknown"
e2e_end
