#!/usr/bin/env bash
# mrcctl drill beside a stream that is checked from outside: its figures are those that mrc-perf saw, and the rail comes
# back however the drill ends.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
# shellcheck source-path=SCRIPTDIR source=doctor_says.sh
. "$(dirname "$0")/doctor_says.sh"

command -v setpriv >/dev/null || lab_skip "not installed: setpriv (util-linux)"
LAB_USER=root # with what links take, also where there is a user mrcd
lab_up 2 3 "$E2E_RATE"
lab_mrcd a
LAB_WRAP="setpriv --bounding-set=-net_admin" lab_mrcd b
e2e_paths a 3
e2e_paths b 3

drill() { # NAME HOST ARGUMENTS...: its JSON is $LAB_DIR/log/NAME.json; its exit status in drill_status
	drill_json=$LAB_DIR/log/$1.json
	drill_status=0
	lab_mrcctl "$2" drill "${@:3}" --yes --json >"$drill_json" 2>"$LAB_DIR/log/$1.err" </dev/null || drill_status=$?
}
is() { jq -e "$1" "$drill_json" >/dev/null || lab_fail "not so: $2: $(jq -c 'del(.series)' "$drill_json" 2>/dev/null)"; }
is_refused() { # NAME TEXT
	[ "$drill_status" = 1 ] || lab_fail "$1 ended with status $drill_status"
	grep -q "$2" "$LAB_DIR/log/$1.err" || lab_fail "$1 does not say '$2': $(cat "$LAB_DIR/log/$1.err")"
}
# The daemon of a breaks and mends; the interface is what the kernel says.
has_carrier() { e2e_is a rails ".[] | select(.name == \"r$1\") | .carrier"; }
has_none() { ! has_carrier "$1"; }
link_is() { [ "$(lab_ip a -j link show "$(lab_interface a "$1")" | jq -r '.[0].flags | if index("UP") then "up" else "down" end')" = "$2" ]; }

# ---- measured from the stream that runs anyway ----

e2e_stream_start --stalls 100us
drill down a r1 --down 1s
is '.drills[0] | .measured and .messages_failed == 0 and .duration_ns >= 1e9 and .paths[0].reason == "carrier"
	and .paths[0].back_ns != null and .during.rail_bytes_per_s < .before.rail_bytes_per_s / 50' \
	"the rail went by its carrier, carried nothing, and came back"
drill silence a r2 --silence 1s
is '.drills[0].paths[0] | (.reason == "silent" or .reason == "peer-fence") and .back_ns != null' "silence was found out by time"
drill slow a r0 --slow 10x,1s
is '.drills[0] | .limit_bytes_per_s > 0 and .during.rail_bytes_per_s < .limit_bytes_per_s * 2' "the slow rail was slow"
e2e_stream_end

# It was wanted: at neither end is it held against the rails, and the peer knew before anything happened. (On a machine
# that is busy a rail may have been silent for a while without any drill: that is counted.)
for host in a b; do
	lab_mrcctl "$host" events --json >"$LAB_DIR/log/events-$host"
	lab_mrcctl "$host" rails --json >"$LAB_DIR/log/rails-$host"
	jq -nce --slurpfile events "$LAB_DIR/log/events-$host" --slurpfile rails "$LAB_DIR/log/rails-$host" '
		[$events[] | select(.kind | startswith("drill-")) | "\(.kind) \(.rail)"] as $drills
		| [("r1", "r2", "r0") as $name
			| [$events[] | select(.rail == $name)]
			| (map(select(.kind == "drill-begin"))[0].seq) as $from
			| (map(select(.kind == "drill-end"))[0].seq) as $to
			| [.[] | select(.state_old == "GOOD" and .state != "DENIED")] as $left
			| ($rails[0][] | select(.name == $name)) as $rail
			| {
				name: $name,
				left: ($left | length),
				outside: ([$left[] | select(.seq < $from or .seq > $to)] | length),
				flaps: $rail.flaps, carrier_losses: $rail.carrier_losses,
				health: $rail.health.state, health_flaps: $rail.health.flaps
			}] as $of
		| {$drills, $of}
		| ., ($drills == [("r1", "r2", "r0") | "drill-begin \(.)", "drill-end \(.)"]
			and ($of | all(.flaps <= .outside and .carrier_losses == 0 and .health_flaps <= .outside
				and (.outside > 0 or .health == "good"))))' >"$LAB_DIR/log/drilled-$host" ||
		lab_fail "a drill counts as a fault at $host, or is not told there: $(cat "$LAB_DIR/log/drilled-$host")"
	head -n 1 "$LAB_DIR/log/drilled-$host"
	doctor "$host" 0 --seconds 0
done

# What mrc-perf saw from outside, of each of the three. Its rate counts messages of 1 MiB as they complete, 100 ms at a
# time, and the drill's what the rails carry: at the two ends of a second that is up to a fifth, and what waits while
# clients stand still completes later, maybe after the end: as much as was carried in that time. A time without an answer that the daemon saw is at least half of
# a gap in the program: what the program missed of it, it was late for what came before, and that is a gap as well. The
# other way round the program may have been late by itself; how late it is while all is well is known from the same run.
agree() { # NAME
	jq -e --slurpfile drill "$LAB_DIR/log/$1.json" '
		$drill[0].drills[0] as $d
		| def at($unix_us): ($unix_us - .start_unix_us) * 1000;
		at($d.began_unix_us) as $from | ($from + $d.duration_ns) as $to
		| def rate($from; $to): [.series[] | select(.t_ns - .span_ns >= $from and .t_ns <= $to)]
			| (map(.bytes) | add) * 1e9 / (map(.span_ns) | add);
		def longest($from; $to): [.stalls[] | select(.t_ns < $to and .t_ns + .span_ns > $from) | .span_ns] | max // 0;
		($d.began_ns - ($drill[0].series[0] | .t_ns - .span_ns)) as $before_ns
		| {
			before: [rate($from - $before_ns; $from), $d.before.bytes_per_s],
			during: [rate($from; $to), $d.during.bytes_per_s],
			stall: [longest($from; $to), $d.during.stall_ns_max],
			noise: longest($from - $before_ns; $from),
			failed: [([.outcomes | to_entries[] | select(.key != "OK") | .value] | add // 0), $d.messages_failed]
		}
		| ., ([
			(([.before, 0], [.during, .stall[1] / $d.duration_ns]) as [$rates, $late]
				| ($rates | max - min) < ($rates | max) * (1 / 4 + $late)),
			(.stall as [$perf, $daemon] | $daemon <= 2 * $perf and $perf <= 2 * $daemon + 4 * .noise),
			.failed[0] == .failed[1]
		] | all)' "$(e2e_result stream)" >"$LAB_DIR/log/agree.$1" ||
		lab_fail "mrc-perf and the drill do not agree on $1: $(cat "$LAB_DIR/log/agree.$1")"
	jq -c 'objects' "$LAB_DIR/log/agree.$1"
}
agree down
agree silence
agree slow

# ---- however it ends ----

spawn_drill() { lab_spawn "$1" a "$MRCCTL" --runtime-dir "$LAB_DIR/host/a" drill r1 --down 60s --yes --stream none "${@:2}"; }
spawn_drill killed
lab_wait_for "the drill to begin" 10 has_none 1
e2e_is a rails '.[] | select(.name == "r1") | .drill == "down"' || lab_fail "a does not say that the rail is in a drill"
e2e_is b rails '[.[] | .drill] == [null, "peer", null]' || lab_fail "b does not say that the rail is in a drill of a's"
lab_mrcctl b paths | grep -q ', drill' || lab_fail "mrcctl paths at b does not show the drill"
lab_kill killed
lab_wait_for "rail 1 to come back by the lease" 20 has_carrier 1
e2e_paths a 3
lab_wait_for "b to hear that the drill is over" 10 e2e_is b rails 'all(.[]; .drill == null)'

# ---- the last good path ----

lab_cut 1
lab_cut 2
e2e_paths a 1
drill last a r0 --down 1s
is_refused last "has the last good path to b"
drill unwell a r1 --down 1s --link
is_refused unwell "say force"
lab_heal 1
lab_heal 2
e2e_paths a 3
if "$MRCCTL" --runtime-dir "$LAB_DIR/host/a" drill r0 --down 1s </dev/null 2>"$LAB_DIR/log/asked.err"; then lab_fail "a drill without --yes and without a terminal was done"; fi
grep -q 'say --yes' "$LAB_DIR/log/asked.err" || lab_fail "it does not say --yes: $(cat "$LAB_DIR/log/asked.err")"

# ---- links ----

drill unable b r1 --down 500ms --link --stream none
is_refused unable "no CAP_NET_ADMIN"
spawn_drill link --link
lab_wait_for "the link to go down" 10 link_is 1 down
lab_kill link INT
lab_wait_for "the link to come up after an interrupt" 5 link_is 1 up
e2e_paths a 3
spawn_drill crash --link
lab_wait_for "the link to go down" 10 link_is 1 down
lab_kill mrcd-a KILL
link_is 1 down || lab_fail "the link is up with nobody to take it up"
lab_mrcd a
lab_wait_for "the daemon that follows to take the link up" 5 link_is 1 up
[ ! -e "$LAB_DIR/host/a/drill.link" ] || lab_fail "the note of the link that was down is still there"
e2e_paths a 3
e2e_paths b 3
spawn_drill term --link
lab_wait_for "the link to go down" 10 link_is 1 down
lab_mrcd_stop a
link_is 1 up || lab_fail "a daemon that ends leaves a link down"
lab_mrcd_stop b
e2e_no_reports
echo "ok"
