#!/usr/bin/env bash
# Programs that end leave no memory registered.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

case_needs_devices
e2e_hosts 4
case_whole
once() {
	e2e_stream_start
	e2e_stream_end
	lab_kill serve TERM
	lab_wait_for "no program to be left at b" 5 e2e_clients_are b 0
}
once
case_held a
held_a=$case_held_now
case_held b
held_b=$case_held_now
for _ in 1 2 3; do once; done
case_held_as a "$held_a" "after four programs"
case_held_as b "$held_b" "after four programs"
# and with programs that are killed while the rails are busy
e2e_serve b
lab_perf_spawn stream a stream b --size "$E2E_SIZE" --verify --duration 0 --json --quiet
e2e_goes_on "a sender that will be killed"
lab_kill stream KILL
lab_kill serve KILL
lab_wait_for "no program to be left at a" 5 e2e_clients_are a 0
lab_wait_for "no program to be left at b" 5 e2e_clients_are b 0
case_held_as a "$held_a" "after a program was killed"
case_held_as b "$held_b" "after a program was killed"
echo "idle, mrcd on a holds $held_a"
e2e_end
