#!/usr/bin/env bash
# Metrics over HTTP while data flows: as Prometheus wants them, right, and nobody's stream feels who asks for them.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
command -v promtool >/dev/null || lab_skip "promtool is not installed (Debian package prometheus)"
command -v curl >/dev/null || lab_skip "curl is not installed"

get() { lab_exec "$1" curl -sSf --max-time 20 "http://127.0.0.1:9471$2"; }
# value HOST SERIES: as /metrics has it now
value() { get "$1" /metrics | awk -v series="$2" '$1 == series { print $2 }'; }
is_over() { [ "$(value "$1" "$2" | awk -v bound="$3" '{ print ($1 > bound) }')" = 1 ]; }

e2e_hosts 4
e2e_stream_start
lab_wait_for "bytes of rail 1" 10 is_over a 'mrcd_rail_sent_bytes_total{rail="r1"}' 1000000
get a /metrics >"$LAB_DIR/metrics"
promtool check metrics <"$LAB_DIR/metrics" || lab_fail "promtool finds fault with the metrics"
# A bucket has what is in those below it, and the last of them has all. Buckets come in order.
awk '
	/_bucket[{]/ {
		series = $1; sub(/,le="[^"]*"/, "", series)
		if ($2 + 0 < last[series]) { print "less than the one below: " $0; is_bad = 1 }
		last[series] = $2 + 0
		count += $2 > 0
	}
	/_count[{]/ { series = $1; sub(/_count/, "_bucket", series); if ($2 + 0 != last[series]) { print "not all: " $0; is_bad = 1 } }
	END { exit is_bad || count < 10 }' "$LAB_DIR/metrics" >&2 || lab_fail "a histogram is none"

# alerts and dashboard: the rules do what they say, and neither asks for a metric that does not exist
conf=$LAB_TOP/conf
promtool check rules "$conf/prometheus/mrcd.rules.yaml" || lab_fail "promtool finds fault with the rules"
promtool test rules "$conf/prometheus/mrcd.rules.test.yaml" || lab_fail "the rules do not do what they should"
grep -oE 'mrcd_[a-z_]+|process_[a-z_]+' "$conf/prometheus/mrcd.rules.yaml" "$conf/grafana/mrcd.json" -h | sort -u |
	while read -r metric; do
		grep -qE "^${metric}[ {]" "$LAB_DIR/metrics" || lab_fail "there is no metric $metric, which rules or dashboard ask for"
	done
jq '{groups: [{name: "dashboard", rules: [[.panels[].targets[].expr] | to_entries[] | {record: "panel:\(.key)",
	expr: (.value | gsub("[$]__rate_interval"; "5m") | gsub("[$]instance"; ".*"))}]}]}' "$conf/grafana/mrcd.json" >"$LAB_DIR/panels.yaml"
promtool check rules "$LAB_DIR/panels.yaml" || lab_fail "promtool finds fault with the dashboard's queries"
jq -e '[.panels[].targets[].expr] | length > 15 and all(test("instance"))' "$conf/grafana/mrcd.json" >/dev/null ||
	lab_fail "the dashboard has panels without a query"

# Prometheus asks for a label that a metric does not have without a word, and draws one line of nothing.
jq -r '.panels[].targets[] | [.expr, .legendFormat // ""] | @tsv' "$conf/grafana/mrcd.json" | awk -F'\t' '
	function words(text, pattern, tail, found) { # those before the tail, as the keys of found[]
		while (match(text, pattern)) {
			found[substr(text, RSTART, RLENGTH - tail)]
			text = substr(text, RSTART + RLENGTH)
		}
	}
	NR == FNR { # "name{label=..." of what the daemon tells
		name = $0; sub(/[{ ].*/, "", name)
		delete has; words($0, "[a-z_]+=\"", 2, has)
		for (label in has) of[name, label]
		next
	}
	{
		delete asked; delete metrics
		words($1, "[a-z_]+=~?\"", 2, asked); words($2, "[a-z_]+}", 1, asked)
		for (text = $1; match(text, /by \([^)]*\)/);) {
			list = substr(text, RSTART + 3, RLENGTH - 3)
			text = substr(text, RSTART + RLENGTH)
			words(list, "[a-z_]+[,)]", 1, asked)
		}
		words($1 " ", "(mrcd|process)_[a-z_]+.", 1, metrics)
		for (label in asked) {
			sub(/=$/, "", label)
			is_there = label == "instance" || label == "job"
			for (metric in metrics) is_there = is_there || (metric, label) in of
			if (!is_there) { print "no label " label ": " $1 " | " $2; is_bad = 1 }
		}
	}
	END { exit is_bad }' "$LAB_DIR/metrics" - >&2 || lab_fail "the dashboard asks for labels that do not exist"

# what is told is what happened
[ "$(value a 'mrcd_path_state{peer="b",rail="r2",path="2",state="GOOD"}')" = 1 ] || lab_fail "path 2 is not told as good"
[ "$(value b mrcd_peers_connected)" = 1 ] || lab_fail "the peer is not told as connected"
lab_wait_for "traced stages" 10 is_over a 'mrcd_stage_seconds_count{stage="transit"}' 10
lab_wait_for "round trips" 10 is_over a 'mrcd_rail_rtt_seconds_count{rail="r3"}' 10
is_over a 'mrcd_peer_stall_seconds_count{peer="b"}' 10 || lab_fail "no gaps between answers are counted"
lab_cut 1 b
e2e_paths a 3
[ "$(value a 'mrcd_rail_carrier{rail="r1"}')" = 0 ] || lab_fail "the lost carrier is not told"
[ "$(value a 'mrcd_rail_flaps_total{rail="r1"}')" = 1 ] || lab_fail "the flap is not told"
lab_wait_for "what the card counts" 10 is_over a 'mrcd_rail_card_errors_total{rail="r1",error="carrier_changes"}' \
	"$(awk '/^mrcd_rail_card_errors_total\{rail="r1",error="carrier_changes"}/ { print $2 }' "$LAB_DIR/metrics")"
lab_mrcctl a events --json >"$LAB_DIR/events"
jq -se 'map(select(.rail == "r1" and (.kind == "carrier-lost" or .state == "ASSUMED_BAD"))) | length == 2' "$LAB_DIR/events" >/dev/null ||
	lab_fail "the events do not have the cut: $(cat "$LAB_DIR/events")"
lab_heal 1
e2e_paths a 4

# many who ask at once, and some who only connect
asks=()
for _ in 1 2 3 4 5 6 7 8; do
	for path in /metrics /status.json; do
		get a "$path" >/dev/null &
		asks+=($!)
	done
done
for ask in "${asks[@]}"; do wait "$ask" || lab_fail "a question was not answered"; done
e2e_goes_on "while it is asked"
e2e_stream_end
e2e_end
