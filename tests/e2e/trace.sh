#!/usr/bin/env bash
# The seven moments of a message, as mrcctl trace shows them and mrc-perf gap counts them: all there, in order up to the
# error of the clocks, and traced only as long as somebody asks.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

# trace ARGUMENTS...: a's channel
trace() { lab_mrcctl a trace "$@"; }
is_traced() { e2e_is a channels "any(.[]; .trace_every == $1)"; }
is_not_traced() { e2e_is a channels 'length > 0 and all(.[]; .trace_every == 0)'; }
holds() { # FILE CLAIM FILTER
	jq -e "$3" "$1" >/dev/null || lab_fail "not so: $2: $(jq -c 'if type == "object" then del(.messages, .traceEvents, .series) else . end' "$1")"
}

e2e_hosts 4
e2e_stream_start --level committed # a verdict on each message
channel=$(e2e_get a channels '.[] | select(.peer == "b" and .opener) | .id')
is_not_traced || lab_fail "a channel is traced, and nobody asked for that"

# ---- every moment of every message ----

all=$LAB_DIR/all.json
trace "b/$channel" --every 1 --count 50 --seconds 30 --json >"$all"
is_not_traced || lab_fail "still traced: $(e2e_get a channels '[.[].trace_every]')"
holds "$all" "50 messages of the channel" \
	".messages | length == 50"
holds "$all" "the answer names its channel" ".peer == \"b\" and .service == \"perf\" and .channel == $channel and .every == 1"
holds "$all" "each has all moments, and ended well" '
	["submitted_ns", "fetched_ns", "first_sent_ns", "last_sent_ns", "local_ns", "placed_ns", "visible_ns", "verdict_ns"] as $keys
	| all(.messages[]; . as $m | .outcome == "OK" and .level == "committed" and .bytes > 0 and .fragments > 0
		and all($keys[]; $m[.] | type == "number"))'
holds "$all" "moments of one host are in order" 'all(.messages[];
	.submitted_ns <= .fetched_ns and .fetched_ns <= .first_sent_ns and .first_sent_ns <= .last_sent_ns
	and .last_sent_ns <= .local_ns and .placed_ns <= .visible_ns and .visible_ns <= .verdict_ns)'
holds "$all" "moments of two hosts are in order, up to the error" 'all(.messages[]; .error_ns > 0 and .error_ns < 1e9
	and .placed_ns >= .last_sent_ns - .error_ns)'
# The hosts are one machine and have one clock.
holds "$all" "the offset of the clocks is right to its error" '.clock | .error_ns > 0
	and ([.offset_ns, -.offset_ns] | max) <= .error_ns'
holds "$all" "no message twice, and in order" '[.messages[].seq] | . == (sort | unique)'
holds "$all" "percentiles of all messages" '.percentiles | length == 11 and all(.[]; .count == 50
	and .p50_ns <= .p90_ns and .p90_ns <= .p99_ns and .p99_ns <= .p999_ns and .p999_ns <= .max_ns)'
holds "$all" "the whole is longer than its parts" '[.percentiles[] | {key: (.from + " " + .to), value: .p50_ns}] | from_entries
	| .["submitted committed"] >= .["first_sent last_sent"] and .["submitted committed"] > 0'

# ---- one in so many, for people ----

shown=$LAB_DIR/shown
trace "$channel" --every 5 --count 8 --seconds 30 >"$shown"
is_not_traced || lab_fail "still traced after one in five"
for want in "channel $channel to b/perf: 8 messages, 1 in 5" "NUMBER" "L local completion" "submitted         committed" \
	"clock of b: offset"; do
	grep -qF "$want" "$shown" || lab_fail "mrcctl trace does not show '$want': $(cat "$shown")"
done
[ "$(grep -cE '^ *[0-9]+ +[0-9.]+ [KM]?i?B  [rwstpvL ]+' "$shown")" = 8 ] || lab_fail "not 8 bars: $(cat "$shown")"

# ---- for a viewer ----

perfetto=$LAB_DIR/perfetto.json
trace "b/$channel" --every 1 --count 30 --seconds 30 --perfetto "$perfetto" >/dev/null
holds "$perfetto" "it is a trace" '.displayTimeUnit == "ns" and (.traceEvents | type == "array")'
holds "$perfetto" "every event has what its kind wants" 'all(.traceEvents[]; (.name | type == "string") and (.pid | type == "number")
	and (.tid | type == "number") and if .ph == "M" then .args.name != "" elif .ph == "X" then .ts >= 0 and .dur >= 0
	elif .ph == "i" then .ts >= 0 and .s == "t" else false end)'
holds "$perfetto" "30 messages at both hosts, and 30 local completions" '.traceEvents
	| ([.[] | select(.ph == "X" and (.name | startswith("message ")))] | group_by(.pid) | map(length)) == [30, 30]
	and ([.[] | select(.name == "local completion")] | length) == 30'
holds "$perfetto" "messages of one lane are one after the other" '[.traceEvents[] | select(.ph == "X" and (.name | startswith("message ")))]
	| group_by([.pid, .tid]) | all(.[]; sort_by(.ts) as $l | all(range(1; $l | length);
		$l[.].ts + 0.001 >= $l[. - 1].ts + $l[. - 1].dur))'

# ---- whoever asks is asked for: who ends, however, leaves no tracing behind ----

lab_spawn viewer a "$MRCCTL" --runtime-dir "$LAB_DIR/host/a" trace "b/$channel" --every 7 --seconds 600 --count 100000 --json
lab_wait_for "the channel to be traced" 10 is_traced 7
lab_kill viewer TERM
[ "$LAB_STATUS" = 0 ] || lab_fail "mrcctl trace ended with status $LAB_STATUS at SIGTERM"
is_not_traced || lab_fail "traced on after SIGTERM"
holds "$LAB_DIR/log/viewer.out" "what was gathered until SIGTERM is shown" '.every == 7'
lab_spawn killed a "$MRCCTL" --runtime-dir "$LAB_DIR/host/a" trace "b/$channel" --every 7 --seconds 600 --count 100000
lab_wait_for "the channel to be traced again" 10 is_traced 7
lab_kill killed KILL
lab_wait_for "the daemon to end by itself what nobody asks for" 15 is_not_traced

if trace b/999999 2>"$LAB_DIR/log/no_channel"; then lab_fail "a channel that is not there was traced"; fi
if trace "nobody/$channel" 2>/dev/null; then lab_fail "a channel of no peer was traced"; fi

# ---- a channel may end while it is watched: what was gathered is shown at once ----

lab_spawn watcher a "$MRCCTL" --runtime-dir "$LAB_DIR/host/a" trace "b/$channel" --every 1 --seconds 600 --count 100000 --json
watcher=$LAB_PID
lab_wait_for "the channel to be traced once more" 10 is_traced 1
e2e_stream_end
lab_wait_for "mrcctl trace to end with its channel" 30 lab_ended watcher
wait "$watcher" || lab_fail "mrcctl trace ended with status $? at the end of its channel: $(cat "$LAB_DIR/log/watcher.err")"
holds "$LAB_DIR/log/watcher.out" "what was gathered until the channel ended is shown" '.every == 1 and (.messages | length > 0)'

# ---- how early the local completion comes ----

lab_perf a gap b --size 256KiB --count 300 --json --quiet >"$LAB_DIR/gap.json" 2>"$LAB_DIR/log/gap" ||
	lab_fail "mrc-perf gap ended with status $?: $(cat "$LAB_DIR/log/gap")"
holds "$LAB_DIR/gap.json" "messages are whole and traced" '.mode == "gap" and .level == "committed" and .verify.checked == 300
	and .verify.corrupted == 0 and (.gap | .committed.count > 0 and .committed.count + .missed + .untraced == 300)'
holds "$LAB_DIR/gap.json" "a message is placed, then visible, then committed" '.gap | .clock != null
	and .placed.p50_ns <= .visible.p50_ns and .visible.p50_ns <= .committed.p50_ns and .placed.local_first >= 0'
for want in 'RDMA would have said "done"' "LOCAL FIRST" "placed " "visible " "committed " "clock of b: offset"; do
	grep -qF "$want" "$LAB_DIR/log/gap" || lab_fail "mrc-perf gap does not say '$want': $(cat "$LAB_DIR/log/gap")"
done
lab_say "$(jq -r '.gap | "local completion came first: placed \(.placed.local_first * 100) %, by \(.placed.p50_ns / 1000) us in half of them"' "$LAB_DIR/gap.json")"
if command -v gnuplot >/dev/null; then
	lab_perf a gap b --size 64KiB --count 50 --every 2 --quiet --picture "$LAB_DIR/gap.svg" >"$LAB_DIR/log/gap_picture" 2>&1 ||
		lab_fail "mrc-perf gap --picture ended with status $?: $(cat "$LAB_DIR/log/gap_picture")"
	grep -q '<svg' "$LAB_DIR/gap.svg" || lab_fail "no picture"
fi
e2e_end
