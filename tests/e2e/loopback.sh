#!/usr/bin/env bash
# Both programs on one host: the same channels, with rails or without.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 2
e2e_serve a
lab_perf_spawn stream a stream a --size 1MiB --verify --count 200 --json --quiet
lab_status stream 30
e2e_verdict stream '.messages == 200 and .outcomes == {OK: 200}' "all 200 messages are OK"
e2e_intact stream
lab_cut 0 both
lab_cut 1 both
lab_perf_spawn alone a stream a --size 64KiB --verify --count 500 --json --quiet
lab_status alone 30
e2e_verdict alone '.messages == 500 and .outcomes == {OK: 500}' "all 500 messages are OK without a rail"
e2e_intact alone
e2e_end
