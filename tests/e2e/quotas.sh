#!/usr/bin/env bash
# Two users of one host: ann is in the group that may use the service perf, bob may not. What either may not do or have is
# refused, in words that name the limit; messages beyond a quota wait; weights divide what the paths carry. A reload and a
# restart that take ann's right away end what she had by it, and bob's stream goes on through all of it, every message checked.
LAB_KEPT=1
LAB_POLL=0.1 # nothing here is quick
E2E_RATE=${E2E_RATE_QUOTAS:-100mbit} # the paths are to be what is short, not the processor
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
command -v setpriv >/dev/null || lab_skip "not installed: setpriv (util-linux)"

ann=7001 bob=7002 group=7100
as() { # ann|bob -> user: what makes a command theirs
	case $1 in
	ann) user=(setpriv --reuid "$ann" --regid "$ann" --groups "$group") ;;
	bob) user=(setpriv --reuid "$bob" --regid "$bob" --clear-groups) ;;
	esac
}

rules() { # GROUP QUOTA...: who may use perf, and the entries of quotas
	printf 'services: [{name: perf, groups: [%s]}, {name: open}]\nquotas:\n' "$1"
	printf '  - {%s}\n' "${@:2}"
}
conf() { lab_conf a "$(rules "$@")" >"$LAB_DIR/host/a/mrcd.yaml"; }
reload() {
	conf "$@"
	lab_mrcctl a reload >/dev/null || lab_fail "the reload was refused"
}
perf() { # ann|bob ARGUMENTS...: in the foreground, at a
	local user
	as "$1"
	lab_exec a "${user[@]}" "$perf" "${@:2}" --socket "$LAB_DIR/host/a/mrcd.sock"
}
refused() { # TEXT ann|bob ARGUMENTS...
	local status=0
	perf "${@:2}" >"$LAB_DIR/log/refused.out" 2>&1 || status=$?
	[ "$status" = 3 ] || lab_fail "status $status, and not refused: ${*:2}: $(cat "$LAB_DIR/log/refused.out")"
	grep -qF -- "$1" "$LAB_DIR/log/refused.out" || lab_fail "\"$1\" is not said: $(cat "$LAB_DIR/log/refused.out")"
}
stream() { # NAME ann|bob TARGET ARGUMENTS...
	local user
	as "$2"
	lab_spawn "$1" a "${user[@]}" "$perf" stream "$3" --verify --duration 0 --json --quiet \
		--socket "$LAB_DIR/host/a/mrcd.sock" "${@:4}"
	lab_wait_for "the stream $1" 30 sent_from "$LAB_PID" 5
}
client() { e2e_get a clients ".[] | select(.pid == $1) | $2"; } # PID FILTER
client_is() { e2e_is a clients ".[] | select(.pid == $1) | $2"; }
sent() { client "$1" .completions; }
sent_from() { client_is "$1" ".completions >= $2"; }
goes_on() { # NAME: further messages of it are answered
	lab_wait_for "the stream $1 to go on" 30 sent_from "$(lab_pid "$1")" $(($(sent "$(lab_pid "$1")") + 5))
}
ends_alone() { # of ann, whose right was taken away; bob's goes on
	lab_status ann 30
	[ "$LAB_STATUS" != 0 ] || lab_fail "ann's stream has ended, and says that all is well"
	grep -q 'the channel ended' "$LAB_DIR/log/ann.err" || lab_fail "ann is not told: $(cat "$LAB_DIR/log/ann.err")"
	e2e_intact ann
	goes_on bob
	refused "b/perf: this user may not use that service" ann bw b
}

MiB=$((1 << 20))
tight="groups: [$group], clients-max: 2, channels-max: 2, sends-max: 6, send-arena: 2MiB, landing-arena: 4MiB,
    in-flight-max: 256KiB"
lab_up 2 2 "$E2E_RATE"
# Other users are to reach the socket and the program, wherever the build is.
chmod 755 "$LAB_DIR" "$LAB_DIR/host" "$LAB_DIR/host/a"
mkdir "$LAB_DIR/bin"
cp -L "$MRC_PERF" "$MRC_BUILD/lib/libmrc.so.0" "$LAB_DIR/bin"
perf=$LAB_DIR/bin/mrc-perf
export LD_LIBRARY_PATH=$LAB_DIR/bin
as bob
"${user[@]}" "$perf" --version >/dev/null 2>&1 || lab_skip "another user cannot run programs below ${LAB_DIR%/*}"
lab_mrcd a "$(rules $group "$tight" "users: [$bob]")"
lab_mrcd b
e2e_paths a 2
e2e_serve b
e2e_serve b serve-open --service open

# ---- who may do what ----
refused "cannot offer perf: this user may not use that service" bob serve
refused "b/perf: this user may not use that service" bob bw b
refused "b/perf: this user may not use that service" bob bw b --channels 3
perf bob bw b/open --count 2 --quiet >/dev/null 2>&1 || lab_fail "bob may not use what is for everybody"

# ---- what ann may have ----
refused "this program may have 2 channels: channels-max of its quota" ann bw b --channels 3 --size 4KiB
refused "a landing arena of $((8 * MiB)) bytes was asked for, at most $((4 * MiB)) (landing-arena)" ann bw b --landing 8MiB
! perf ann bw b --size 4MiB >"$LAB_DIR/log/size.out" 2>&1 || lab_fail "4MiB were sent from an arena of 2MiB"
grep -q "no room for one message per channel: .*at most $((2 * MiB)) (send-arena)" "$LAB_DIR/log/size.out" ||
	lab_fail "the send arena is not named: $(cat "$LAB_DIR/log/size.out")"
stream ann ann b --size 64KiB --in-flight 16
stream second ann b --size 8 --pace 10kb/s --channels 2
refused "2 clients of user $ann are attached, no more are allowed (clients-max)" ann bw b
lab_kill second TERM
pid=$(lab_pid ann)
lab_wait_for "messages of ann to wait" 20 client_is "$pid" '.quota.waits > 0'
lab_wait_for "6 messages of ann" 20 client_is "$pid" '.sends_outstanding == 6'
lab_wait_for "256 KiB of ann" 20 client_is "$pid" '.in_flight_bytes == 262144'
for ((look = 0; look < 15; look++)); do
	client_is "$pid" '.sends_outstanding <= 6 and .in_flight_bytes <= 262144' ||
		lab_fail "more than 6 messages or 256 KiB are under way: $(client "$pid" .)"
done
e2e_stream_end ann

# ---- weights: of ten parts bob has nine ----
# So much of each that it waits for its turn in the engine, and does not fit into the paths' windows whole.
much=(--size 256KiB --in-flight 32)
loose="groups: [$group], weight: 100"
reload $group "$loose" "users: [$bob], weight: 900"
stream ann ann b "${much[@]}"
stream bob bob b/open "${much[@]}"
ann_pid=$(lab_pid ann) bob_pid=$(lab_pid bob)
ann_sent=$(sent "$ann_pid") bob_sent=$(sent "$bob_pid")
lab_wait_for "100 messages of bob" 60 sent_from "$bob_pid" $((bob_sent + 100))
ann_sent=$(($(sent "$ann_pid") - ann_sent)) bob_sent=$(($(sent "$bob_pid") - bob_sent))
[ "$ann_sent" -gt 0 ] || lab_fail "ann has sent nothing beside bob's $bob_sent"
[ $((bob_sent * 2)) -gt $((ann_sent * 3)) ] || lab_fail "of weights 900 and 100 came $bob_sent and $ann_sent messages"

e2e_stream_end bob
e2e_stream_end ann

# ---- the same after a restart, and then ann may not any more: by a reload, by a restart ----
few=(--size 64KiB --in-flight 4)
stream ann ann b --once "${few[@]}"
stream bob bob b/open "${few[@]}"
bob_pid=$(lab_pid bob)
lab_restart a
goes_on ann
goes_on bob
client_is "$bob_pid" '.quota.weight == 900' || lab_fail "bob's quota is $(client "$bob_pid" .quota) after a restart"
refused "b/perf: this user may not use that service" bob bw b
reload $((group + 1)) "$loose" "users: [$bob], weight: 900"
ends_alone
reload $group "$loose" "users: [$bob], weight: 900"
stream ann ann b --once "${few[@]}"
conf $((group + 1)) "$loose" "users: [$bob], weight: 900"
lab_restart a
ends_alone
! grep -q 'attaching again\|connecting again' "$LAB_DIR/log/bob.err" || lab_fail "bob has noticed: $(cat "$LAB_DIR/log/bob.err")"
e2e_stream_end bob
e2e_end
