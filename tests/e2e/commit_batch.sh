#!/usr/bin/env bash
# Messages of several senders are committed together or not at all: the example programs of mrc_recv(3).
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

workers=(1 2 3)
e2e_hosts 2
lab_spawn server b env MRC_SOCKET="$LAB_DIR/host/b/mrcd.sock" "$MRC_BUILD/lib/mrc_step_server" 3
lab_wait_for "the service on b" 10 e2e_is b clients '[.[].listeners] | add > 0'
declare -A feed
worker() { # NUMBER
	mkfifo "$LAB_DIR/worker$1"
	exec {fd}<>"$LAB_DIR/worker$1"
	feed[$1]=$fd
	# shellcheck disable=SC2016 # what it says is for the inner shell
	lab_spawn "worker$1" a env MRC_SOCKET="$LAB_DIR/host/a/mrcd.sock" \
		bash -c 'exec "$1" b/step <"$2"' - "$MRC_BUILD/lib/mrc_step_worker" "$LAB_DIR/worker$1"
}
for n in "${workers[@]}"; do worker "$n"; done
shard() { # WORKER VALUES
	echo "$2" >&"${feed[$1]}"
}
answer_is() { [ "$(sed -n "$(($2 + 1))p" "$LAB_DIR/log/worker$1.out")" = "$3" ]; }
answers_are() { # STEP TEXT WORKER...
	local step=$1 text=$2 n
	shift 2
	for n in "$@"; do lab_wait_for "worker $n to hear of step $step: $text" 10 answer_is "$n" "$step" "$text"; done
}
has_arrived() { e2e_is b channels "([.[].delivered] | add) == $1"; }

lab_wait_for "three workers" 10 e2e_is b channels '[.[] | select(.state == "up" or .state == "open")] | length == 3'
shard 1 "1 2 3"
shard 2 "4 5 6"
lab_wait_for "two shards to arrive" 10 has_arrived 2
e2e_is a clients '[.[].sends_outstanding] | add == 2' || lab_fail "a shard was answered before its step was whole"
shard 3 "7 8 9"
answers_are 0 "committed" 1 2 3
# One is spoilt: none is committed.
shard 1 "1 2 3"
shard 2 "4 nan 6"
shard 3 "7 8 9"
answers_are 1 "rejected: code 1: a shard of this step is no good" 1 2 3
# A member's sender has gone when the others are in.
shard 1 "1 2 3"
lab_wait_for "the shard of the one that goes" 10 has_arrived 7
lab_kill worker1 KILL
lab_wait_for "its channel to end" 10 e2e_is b channels '[.[] | select(.state == "ended")] | length == 1'
shard 2 "4 5 6"
shard 3 "7 8 9"
answers_are 2 "rejected: the step could not be taken whole" 2 3
lab_status server 10
diff - "$LAB_DIR/log/server.out" <<-'END' || lab_fail "the server says something else"
	step 0: taken, sum 45
	step 1: turned down, a shard is spoilt
	step 2: turned down, a worker has gone
END
# One goes before it has sent anything: those that are in are rejected.
workers=(4 5)
lab_spawn second b env MRC_SOCKET="$LAB_DIR/host/b/mrcd.sock" "$MRC_BUILD/lib/mrc_step_server" 2
lab_wait_for "the service on b again" 10 e2e_is b clients '[.[].listeners] | add > 0'
for n in "${workers[@]}"; do
	worker "$n"
	lab_wait_for "worker $n" 10 e2e_is b channels "[.[] | select(.state == \"open\")] | length == $((n - 3))"
done
lab_kill worker4 KILL
shard 5 "1 2 3"
answers_are 0 "rejected: code 2: a shard of this step is no good" 5
lab_status second 10
e2e_end
