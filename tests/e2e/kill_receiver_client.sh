#!/usr/bin/env bash
# A receiving program is killed in mid-stream: the sender learns within a second that its peer died.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 4
e2e_serve b
fds=
for _ in 1 2 3; do
	lab_perf_spawn bw a bw b --size 1MiB --duration 0 --json --quiet
	e2e_goes_on "a receiver that will be killed"
	lab_kill serve KILL
	lab_status bw 5
	e2e_verdict bw '.outcomes.PEER_DIED > 0' "the sender is told that the peer died"
	e2e_verdict bw '(.outcomes | keys) - ["OK", "PEER_DIED", "CLOSED"] == []' "and nothing else"
	lab_wait_for "the daemon to forget the receiver" 1 e2e_clients_are b 0
	lab_wait_for "the daemon to forget the sender" 1 e2e_clients_are a 0
	lab_wait_for "no channel to be left" 1 e2e_is a channels 'length == 0'
	: "${fds:=$(e2e_fds b)}"
	lab_wait_for "as many descriptors as before" 5 e2e_fds_are b "$fds"
	e2e_serve b
done
lab_kill serve TERM
e2e_stream_start
e2e_stream_end
e2e_end
