#!/usr/bin/env bash
# How far a message got when its deadline passed, and what became of it afterwards: with a receiver that is stopped
# before it sees it, one that dies before it commits, and one that says no in the end.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

late_ms=$((1500 * LAB_SLOWNESS)) # for what is to be known by then
run=0
receiver() { # a receiver that has a channel of a sender with this deadline in ms
	run=$((run + 1))
	mkfifo "$LAB_DIR/words$run"
	exec {words}<>"$LAB_DIR/words$run"
	# shellcheck disable=SC2016 # what it says is for the inner shell
	lab_spawn "receive$run" b env MRC_SOCKET="$LAB_DIR/host/b/mrcd.sock" \
		bash -c 'exec "$1" receive late <"$2"' - "$E2E_BIN/late" "$LAB_DIR/words$run"
	lab_wait_for "the receiver" 10 said "receive$run" listening
	lab_spawn "send$run" a env MRC_SOCKET="$LAB_DIR/host/a/mrcd.sock" "$E2E_BIN/late" send b/late "$1"
	tell accept
}
said() { grep -qxF -- "$2" "$LAB_DIR/log/$1.out"; }
tell() {
	echo "$1" >&"$words"
	lab_wait_for "the receiver: $1" 20 said "receive$run" "${1%% *}"
}
answered() { lab_wait_for "the sender to hear: $1" 20 said "send$run" "$1"; }
ended() { # STATUS...
	answered "$1"
	lab_status "send$run" 10
	[ "$LAB_STATUS" = 0 ] || lab_fail "the sender ended with status $LAB_STATUS"
}
undecided() { lab_alive "send$run" || lab_fail "what became of it was told before it was so"; }
over() {
	lab_kill "receive$run" TERM
	lab_wait_for "the receiver's service to be free" 10 e2e_is b clients 'length == 0'
}

e2e_hosts 2

# Stopped between placed and visible.
receiver "$late_ms"
kill -STOP "$(lab_pid "receive$run")"
answered "answered: TIMED_OUT, placed, code 0"
undecided
kill -CONT "$(lab_pid "receive$run")"
tell take
undecided
tell commit
ended "ended: OK, committed, code 0"
over

# Dead between visible and committed: with a deadline that has passed, and without one.
receiver "$late_ms"
tell take
answered "answered: TIMED_OUT, visible, code 0"
undecided
lab_kill "receive$run" KILL
ended "ended: PEER_DIED, visible, code 0"
receiver 0
tell take
lab_kill "receive$run" KILL
ended "answered: PEER_DIED, visible, code 0"

# It says no when nobody waits any more.
receiver "$late_ms"
tell take
answered "answered: TIMED_OUT, visible, code 0"
tell "reject 7"
ended "ended: REJECTED, visible, code 7: too late"
over

e2e_end
