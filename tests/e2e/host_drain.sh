#!/usr/bin/env bash
# An operator drains a whole host: what is open goes on and ends, new channels are refused at both ends and in both
# directions, the command says who is left, the drain outlives a restart of the daemon, and can be taken back.
LAB_KEPT=1
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 2
said() { grep -qxF -- "mrc-perf: $2" "$LAB_DIR/log/$1.out" "$LAB_DIR/log/$1.err"; }
# HOST TARGET: a connect is refused, and the program is told why
refused() {
	local out
	if out=$(lab_perf "$1" bw "$2" --duration 100ms 2>&1); then lab_fail "$1 connects to $2"; fi
	[[ $out == *"the host is being drained"* ]] || lab_fail "$1 is refused at $2 by these words: $out"
}
drain() { # STATUS ARGUMENTS...: of b; what it says is in $drained
	local status=0
	drained=$(lab_mrcctl b drain --host "${@:2}" 2>"$LAB_DIR/drain.err") || status=$?
	[ "$status" = "$1" ] || lab_fail "drain --host ${*:2} ends with $status, not $1: $drained $(cat "$LAB_DIR/drain.err")"
}

e2e_serve a serve-a --service back
e2e_stream_start
server=$(lab_pid serve)

# Time over: it goes on, and the one that holds it up is named.
drain 4 --wait 1s
grep -qE "^[^ ]+ +$server +perf +a +open" <<<"$drained" || lab_fail "process $server is not named: $drained"
e2e_is b status '.draining and (.summary | startswith("draining"))' || lab_fail "status does not show the drain"
# Whatever comes after it: jq judges by the last.
lab_mrcctl b events --json | jq -se 'any(.[]; .kind == "host-drain")' >/dev/null || lab_fail "no event at b"
lab_wait_for "a to know" 10 e2e_is a peers '.[0].draining'
lab_wait_for "the program at a to know" 10 said stream "the peer's host is being drained"
refused a b/perf
refused b a/back
refused b b/perf
e2e_goes_on "while b is drained"

lab_restart b
lab_wait_for "b to be back" 10 e2e_is b status .draining
e2e_paths a 2
e2e_goes_on "after a restart of the drained daemon"
refused a b/perf

# The stream ends, each message once, and with it the waiting.
drain_spawn() { lab_spawn waiting b "$MRCCTL" --runtime-dir "$LAB_DIR/host/b" --json drain --host; }
drain_spawn
e2e_stream_end
lab_status waiting 20
[ "$LAB_STATUS" = 0 ] || lab_fail "drain ended with $LAB_STATUS though all had ended"
jq -e '.drained and .channels == 0 and .messages == 0 and .programs > 0 and .left == []' "$LAB_DIR/log/waiting.out" >/dev/null ||
	lab_fail "drained, but: $(cat "$LAB_DIR/log/waiting.out")"
drain 0 --wait 0s

# Interrupted, with a channel open from before: the drain stays.
lab_mrcctl b undrain --host
lab_wait_for "a to know" 10 e2e_is a peers '.[0].draining | not'
lab_perf_spawn again a stream b --size 64KiB --verify --duration 0 --json --quiet --pace 10Mb/s
e2e_goes_on "after the drain was taken back"
drain_spawn
lab_wait_for "the drain" 10 e2e_is b status .draining
kill -INT "$(lab_pid waiting)"
lab_status waiting 10
[ "$LAB_STATUS" = 4 ] || lab_fail "interrupted, drain ended with $LAB_STATUS"
e2e_is b status .draining || lab_fail "an interrupted drain has ended"
lab_mrcctl b undrain --host
e2e_stream_end again
e2e_end
