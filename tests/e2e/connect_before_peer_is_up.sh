#!/usr/bin/env bash
# A program may connect before there is a peer: it is answered when the peer comes.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

lab_up 2 2 "$E2E_RATE"
lab_mrcd a
lab_perf_spawn stream a stream b --size 64KiB --verify --count 100 --connect-timeout 120s --json --quiet
lab_wait_for "the program to wait for its channel" 10 e2e_is a clients 'length == 1'
# The daemon at b comes up unreachable, so that its service is there before it is asked for.
lab_cut 0 both
lab_cut 1 both
lab_mrcd b
e2e_serve b
lab_alive stream || lab_fail "the program did not wait"
lab_heal 0
lab_heal 1
lab_status stream 30
[ "$LAB_STATUS" = 0 ] || lab_fail "the stream ended with status $LAB_STATUS"
e2e_verdict stream '.outcomes == {OK: 100}' "all 100 messages are OK"
e2e_intact stream
e2e_end
