# shellcheck shell=bash
#
# e2e.sh - what the end-to-end tests share; to be sourced first
#
# A test sets up hosts, starts a verified stream, does something to the rails
# or processes, and asks for conditions. Nothing is judged by a bare sleep;
# what a test sleeps is how long a fault lasts.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lab/lab.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lab/lab.sh"

: "${E2E_RATE:=200mbit}" # of each rail: four of them leave two processors time to breathe
: "${E2E_BIN:=$MRC_BUILD/tests/e2e}"
: "${E2E_IN_FLIGHT:=16}"
: "${E2E_SIZE:=1MiB}" # of a stream's messages
: "${E2E_PACE:=}"     # of a stream, where rails at their limit would leave no processor to anybody

# Sanitizers: stop at the first report, with a status that nothing else uses.
export ASAN_OPTIONS=${ASAN_OPTIONS:-exitcode=99:detect_leaks=1}
# Where a daemon's memory is compared, what was freed must not wait (up to 256 MiB of it) to be found in use.
[ -z "${E2E_COUNTS_MEMORY:-}" ] || ASAN_OPTIONS+=:quarantine_size_mb=1
export TSAN_OPTIONS=${TSAN_OPTIONS:-exitcode=99:halt_on_error=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

# ---- setting up and ending ----

# e2e_hosts [RAILS]: two hosts with a daemon each, all paths in service
e2e_hosts() {
	e2e_rails=${1:-4}
	lab_up 2 "$e2e_rails" "$E2E_RATE"
	lab_mrcd a "${E2E_YAML:-}"
	lab_mrcd b "${E2E_YAML:-}"
	e2e_paths a "$e2e_rails"
	e2e_paths b "$e2e_rails"
}

# The daemons still live, go when asked, and no sanitizer has anything to say.
e2e_end() {
	local host
	for host in "${LAB_HOSTS[@]}"; do
		lab_alive "mrcd-$host" || lab_fail "mrcd on $host died"
		lab_mrcd_stop "$host"
	done
	e2e_no_reports
	echo "ok"
}

e2e_no_reports() {
	local found
	found=$(grep -lE 'ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|runtime error:' "$LAB_DIR"/log/* || :)
	[ -z "$found" ] || lab_fail "a sanitizer reports: $found"
}

# ---- asking a daemon ----

# e2e_is HOST COMMAND FILTER: does the jq filter hold for what mrcctl COMMAND answers?
e2e_is() { lab_mrcctl "$1" "$2" --json | jq -e "$3" >/dev/null; }
e2e_get() { lab_mrcctl "$1" "$2" --json | jq -r "$3"; }

# e2e_paths HOST COUNT [SECONDS]: wait until that many paths are in service, no more and no fewer
e2e_paths() {
	lab_wait_for "$2 paths in service at $1" "${3:-15}" \
		e2e_is "$1" paths "[.[] | select(.state | ascii_downcase == \"good\")] | length == $2"
}

# ---- a stream from a to b that checks every message ----

e2e_serve() { # HOST [NAME [ARGUMENTS...]]
	local host=$1 name=${2:-serve}
	shift
	[ $# = 0 ] || shift
	lab_perf_spawn "$name" "$host" serve --quiet "$@"
	lab_wait_for "the service on $host" 10 e2e_is "$host" clients "[.[] | select(.pid == $LAB_PID) | .listeners] | add > 0"
}

# e2e_stream_start [ARGUMENTS...]: until e2e_stream_end
e2e_stream_start() {
	e2e_serve b
	lab_perf_spawn stream a stream b --size "$E2E_SIZE" --verify --duration 0 --in-flight "$E2E_IN_FLIGHT" \
		${E2E_PACE:+--pace "$E2E_PACE"} --interval 100ms --json --quiet "$@"
	e2e_goes_on "a stream that has just begun"
}

# e2e_goes_on WHAT [MESSAGES]: further messages arrive at b
e2e_goes_on() {
	local before
	before=$(e2e_delivered)
	lab_wait_for "${2:-20} messages more: $1" 20 e2e_delivered_from $((before + ${2:-20}))
}
e2e_delivered() { e2e_get b peers '[.[].messages_delivered] | add // 0'; }
e2e_delivered_from() { [ "$(e2e_delivered)" -ge "$1" ]; }

# e2e_share RAIL: wait until the rail carries at least half of what the others carry on average
e2e_share() { lab_wait_for "rail $1 to carry its share again" 20 e2e_has_share "$1"; }
e2e_has_share() {
	local before
	before=$(lab_mrcctl a rails --json)
	sleep 0.3 # the window in which is counted
	lab_mrcctl a rails --json | jq -e --argjson before "$before" --arg rail "r$1" '
		(($before | map({(.name): .bytes_sent}) | add) as $b | map({(.name): (.bytes_sent - $b[.name])}) | add)
		| .[$rail] as $mine | del(.[$rail]) | ([.[]] | add / length) as $others
		| $mine > 0 and $mine >= $others / 2'
}

# The stream has seen every message once, in order and intact, and every outcome was OK.
e2e_stream_end() {
	e2e_stream_stop "${1:-stream}"
	[ "$LAB_STATUS" = 0 ] || lab_fail "the stream ended with status $LAB_STATUS: $(e2e_summary "${1:-stream}")"
	e2e_verdict "${1:-stream}" '([.outcomes | to_entries[] | select(.key != "OK") | .value] | add // 0 == 0)
		and .verify.lost == 0 and .verify.checked >= .messages' \
		"all outcomes are OK, nothing is lost, and every message was checked"
	e2e_intact "${1:-stream}"
}

# What holds even when programs and daemons die.
e2e_intact() {
	e2e_verdict "$1" '.messages > 0 and .verify.duplicated == 0 and .verify.reordered == 0 and .verify.corrupted == 0' \
		"messages were delivered, none twice, all in order and intact"
}

e2e_stream_stop() { # NAME -> LAB_STATUS
	kill -TERM "$(lab_pid "$1")"
	lab_status "$1" 30
}

e2e_result() { printf '%s' "$LAB_DIR/log/$1.out"; }
e2e_summary() { jq -c '{messages, verify, outcomes, stall_ns_max}' "$(e2e_result "$1")" 2>/dev/null || echo "(no result)"; }
e2e_verdict() { # NAME FILTER CLAIM
	jq -e "$2" "$(e2e_result "$1")" >/dev/null || lab_fail "not so: $3: $(e2e_summary "$1")"
}

# ---- what a process holds ----

e2e_fds() { find "/proc/$(lab_pid "mrcd-$1")/fd" -mindepth 1 2>/dev/null | wc -l; }
e2e_fds_are() { [ "$(e2e_fds "$1")" = "$2" ]; }
e2e_rss_kb() { awk '$1 == "VmRSS:" { print $2 }' "/proc/$(lab_pid "mrcd-$1")/status"; }
e2e_rss_below() { [ "$(e2e_rss_kb "$1")" -le "$2" ]; }
e2e_clients_are() { e2e_is "$1" clients "length == $2"; }
