# shellcheck shell=bash
#
# bench.sh - samples, medians, ratios and reports; to be sourced, sources lab.sh
#
#	. "$(dirname "$0")/bench.sh"
#	bench_begin compare "$@"                       # options; output to $BENCH_OUT/compare.{json,md}
#	bench_row rails-1m "four rails, 1 MiB" Gb/s    # one line of the report
#	bench_sample rails-1m mrcd "$round" 3.81       # one measured figure of one round
#	bench_ratio rails-1m mrcd "TCP alone" ge 0.985 # what the report sets against what, and the aim
#	bench_end                                      # the report; status 1 when an aim is missed
#
# Who is compared is measured in turn (A B A B), so that a busy machine slows
# both: a ratio is the median of the ratios of each round. Figures are in the
# row's unit. A peer that cannot run here is a row that says so: bench_absent.

# shellcheck source-path=SCRIPTDIR source=../lab/lab.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lab/lab.sh"

BENCH_HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BENCH_NAME=
BENCH_OUT=
BENCH_ROUNDS=
BENCH_SECONDS=
BENCH_QUICK=
BENCH_QUICK_ROUNDS=3 # a benchmark of many rows sets less before bench_begin
BENCH_QUICK_SECONDS=2
BENCH_ONLY=
BENCH_FAMILIES=()

bench_usage() {
	cat <<-TEXT
		usage: tests/bench/$BENCH_NAME [OPTION...]${BENCH_FAMILIES:+ [FAMILY...]}
		${BENCH_FAMILIES:+Families: ${BENCH_FAMILIES[*]}; all of them when none is named.
		}
		  --quick       fewer and shorter rounds
		  --rounds N    how often each figure is measured (5; quick: $BENCH_QUICK_ROUNDS)
		  --seconds N   how long each measurement takes (4; quick: $BENCH_QUICK_SECONDS)
		  --out DIR     where the report goes (out/bench)
		  --help        this text

		Exit: 0 every aim reached; 1 one was missed; 2 usage; 77 this machine cannot show it.
	TEXT
}

bench_refuse() {
	printf 'tests/bench/%s: %s\n' "$BENCH_NAME" "$*" >&2
	exit 2
}

bench_number() { # OPTION VALUE
	case ${2:-} in '' | *[!0-9]* | 0*) bench_refuse "$1 takes a number from 1, not '${2:-}'" ;; esac
	[ "$2" -le 10000 ] || bench_refuse "$1 takes a number up to 10000, not '$2'"
	printf '%s' "$2"
}

# bench_begin NAME ARGUMENTS...: set BENCH_FAMILIES before it where the benchmark has families
bench_begin() {
	local family known
	BENCH_NAME=$1
	shift
	while [ $# -gt 0 ]; do
		case $1 in
		--quick) BENCH_QUICK=1 ;;
		--rounds) BENCH_ROUNDS=$(bench_number "$1" "${2:-}") && shift || exit 2 ;;
		--seconds) BENCH_SECONDS=$(bench_number "$1" "${2:-}") && shift || exit 2 ;;
		--out)
			[ -n "${2:-}" ] || bench_refuse "--out takes a directory"
			BENCH_OUT=$2
			shift
			;;
		--help)
			bench_usage
			exit 0
			;;
		-*) bench_refuse "unknown option '$1'; --help names them" ;;
		*)
			known=
			for family in "${BENCH_FAMILIES[@]}"; do [ "$family" = "$1" ] && known=1; done
			[ -n "$known" ] || bench_refuse "no family '$1'; there are: ${BENCH_FAMILIES[*]:-none}"
			BENCH_ONLY="$BENCH_ONLY $1"
			;;
		esac
		shift
	done
	: "${BENCH_ROUNDS:=$([ -n "$BENCH_QUICK" ] && echo "$BENCH_QUICK_ROUNDS" || echo 5)}"
	: "${BENCH_SECONDS:=$([ -n "$BENCH_QUICK" ] && echo "$BENCH_QUICK_SECONDS" || echo 4)}"
	: "${BENCH_OUT:=$LAB_TOP/out/bench}"
	mkdir -p "$BENCH_OUT"
	BENCH_OUT=$(cd "$BENCH_OUT" && pwd)
	BENCH_LINES=$BENCH_OUT/$BENCH_NAME.lines
	: >"$BENCH_LINES"
}

bench_wants() { # FAMILY
	[ -z "$BENCH_ONLY" ] || case " $BENCH_ONLY " in *" $1 "*) ;; *) return 1 ;; esac
}

bench_line() { jq -cn "$@" >>"$BENCH_LINES"; }

bench_row() { # ROW TITLE UNIT
	bench_say "$2"
	bench_line --arg row "$1" --arg title "$2" --arg unit "$3" '{kind: "row", row: $row, title: $title, unit: $unit}'
}

# A figure that could not be got (nothing printed, or null) is no sample, and is said.
bench_sample() { # ROW WHO ROUND VALUE
	if ! jq -en "${4:-null} | numbers" >/dev/null 2>&1; then
		bench_say "$(printf '  round %s  %-13s %-28s %12s' "$3" "$1" "$2" "no figure")"
		bench_line --arg row "$1" --arg who "$2" --argjson round "$3" '{kind: "lost", row: $row, who: $who, round: $round}'
		return
	fi
	bench_say "$(printf '  round %s  %-22s %-28s %12.4g' "$3" "$1" "$2" "$4")"
	bench_line --arg row "$1" --arg who "$2" --argjson round "$3" --argjson value "$4" \
		'{kind: "sample", row: $row, who: $who, round: $round, value: $value}'
}

# WHO over OTHER, times FACTOR, is wanted to be at least (ge) or at most (le) AIM; `-`: only shown.
bench_ratio() { # ROW WHO OTHER ge|le|- [AIM] [FACTOR]
	bench_line --arg row "$1" --arg who "$2" --arg other "$3" --arg sense "$4" --argjson aim "${5:-null}" \
		--argjson factor "${6:-1}" '{kind: "ratio"} + $ARGS.named'
}

# The median (median) or the largest (max) figure of WHO itself is wanted to be at least or at most AIM.
bench_aim() { # ROW WHO median|max ge|le AIM
	bench_line --arg row "$1" --arg who "$2" --arg of "$3" --arg sense "$4" --argjson aim "$5" '{kind: "aim"} + $ARGS.named'
}

bench_absent() { # ROW WHO WHY
	bench_say "$(printf '  %-22s %-28s not measured: %s' "$1" "$2" "$3")"
	bench_line --arg row "$1" --arg who "$2" --arg why "$3" '{kind: "absent"} + $ARGS.named'
}

bench_say() { printf '%s\n' "$*" >&2; }

bench_machine() {
	jq -n --arg kernel "$(uname -r)" --arg processors "$(nproc)" \
		--arg model "$(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo)" \
		--arg date "$(date -u +%Y-%m-%d)" --arg commit "$(git -C "$LAB_TOP" rev-parse --short HEAD 2>/dev/null)" \
		--argjson rounds "$BENCH_ROUNDS" --argjson seconds "$BENCH_SECONDS" '$ARGS.named'
}

bench_end() {
	bench_machine | jq -s --slurpfile lines "$BENCH_LINES" -f "$BENCH_HERE/report.jq" >"$BENCH_OUT/$BENCH_NAME.json"
	jq -r '.markdown' "$BENCH_OUT/$BENCH_NAME.json" >"$BENCH_OUT/$BENCH_NAME.md"
	rm -f "$BENCH_LINES"
	cat "$BENCH_OUT/$BENCH_NAME.md"
	bench_say "written: $BENCH_OUT/$BENCH_NAME.md and .json"
	jq -e '.missed == 0' "$BENCH_OUT/$BENCH_NAME.json" >/dev/null
}

# ---- the lab as most measurements want it ----

# bench_lab RAILS [RATE]: two hosts, both daemons, every path good, a service that answers
bench_lab() {
	lab_down
	lab_up 2 "$1" "${2:-}"
	bench_daemons "$1"
}

# The same from the daemons on, where a lab was made otherwise.
bench_daemons() { # RAILS
	lab_mrcd a
	lab_mrcd b
	bench_paths_are "$1"
	lab_perf_spawn serve b serve --quiet
	lab_wait_for "the service" 10 bench_listens
}

bench_paths_are() { # COUNT: waits until that many are good, after a failure or a drain
	bench_paths=$1
	lab_wait_for "$1 good paths" 20 bench_paths_good
}
bench_paths_good() { [ "$(lab_mrcctl a peers --json | jq '.[0].paths_good')" = "$bench_paths" ]; }
bench_listens() { lab_mrcctl b clients --json | jq -e '[.[].listeners] | add > 0' >/dev/null; }
