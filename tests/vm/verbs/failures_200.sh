#!/usr/bin/env bash
# Two hundred failures in a row of four rails, pulled and silenced: nothing lost, and how long each was felt.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

: "${CASE_FAILURES:=200}" "${CASE_RAILS:=4}" "${CASE_SIZE:=32KiB}" "${CASE_PACE:=12Mb/s}"
e2e_hosts "$CASE_RAILS"
case_whole
e2e_serve b
# A stall cannot be told from a message that takes as long: they are small.
lab_perf_spawn stream a stream b --size "$CASE_SIZE" --verify --duration 0 --in-flight "$E2E_IN_FLIGHT" \
	${E2E_PACE:+--pace "$CASE_PACE"} --interval 100ms --json
e2e_goes_on "a stream that has just begun"
# Progress lines tell in which interval of the stream's own clock a failure was.
intervals() { grep -cE '^ *[0-9]' "$LAB_DIR/log/stream.err" || :; }
# the rail that failed before is back, or with four rails one may still be out
has_enough() { e2e_is a paths "[.[] | select((.state | ascii_downcase) == \"good\")] | length >= (if $CASE_RAILS > 2 then $CASE_RAILS - 1 else $CASE_RAILS end)"; }
: >"$LAB_DIR/failures"
for ((n = 0; n < CASE_FAILURES; n++)); do
	rail=$((n % CASE_RAILS))
	lab_wait_for "rails in service before the next failure" 30 has_enough
	began=$(intervals)
	case $((n % 5)) in
	0) lab_cut $rail a ;;
	1) lab_cut $rail b ;;
	2) lab_cut $rail both ;;
	3) lab_netem $rail both loss 100% ;;
	4) lab_netem $rail a loss 100% ;;
	esac
	sleep 0.2
	echo "$began $(($(intervals) + 1)) $((n % 5))" >>"$LAB_DIR/failures"
	case $((n % 5)) in [34]) lab_netem_off $rail ;; *) lab_heal $rail ;; esac
done
case_whole 60
e2e_goes_on "with nothing failing" 400 # to compare with
e2e_stream_end
figures() { # FILTER
	jq -r --rawfile failures "$LAB_DIR/failures" --argjson rails "$CASE_RAILS" '
		.series as $series
		| [$failures | split("\n")[] | select(. != "") | split(" ") | map(tonumber)] as $list
		| def stalls($kinds): [$list[] | . as [$from, $to, $kind] | select($kinds | index($kind)) | [$series[$from:$to][].stall_ns_max] | max // 0] | sort;
		def at($part): .[length * $part | floor] // 0;
		def ms: . / 100000 | round / 10;
		def line($name; $s): "\($name): \($s | length) times, stall median \($s | at(0.5) | ms) ms, 9 of 10 below \($s | at(0.9) | ms) ms, longest \($s[-1] // 0 | ms) ms";
		stalls([0, 1, 2, 3, 4]) as $all
		# what the stream feels in as long a time when nothing has failed: the machine is an emulated one
		| ([$list[] | .[1] - .[0]] | sort | at(0.5)) as $span
		| ([$list[][0]] | max // 0) as $last
		| ([$series[$last + 20:][].stall_ns_max] + [$series[0:($list[0][0])][].stall_ns_max]) as $all_quiet
		| ([range(0; $all_quiet | length; [$span, 1] | max) as $i | $all_quiet[$i:$i + $span] | max // 0] | sort) as $quiet
		| '"$1" "$(e2e_result stream)"
}
figures '"\($rails) rails", line("no failure, in \($span * 100) ms"; $quiet), line("pulled"; stalls([0, 1, 2])), line("silenced"; stalls([3, 4])), line("all"; $all),
	"messages \(.messages), lost \(.verify.lost), duplicated \(.verify.duplicated), reordered \(.verify.reordered), corrupted \(.verify.corrupted)"'
echo "the timers of a queue pair (ack-timeout 14, retry-count 6) would have ended after 420 to 483 ms"
# A processor that has no time to spare is slow without a failure too.
[ "$(figures '($all | at(0.5)) <= ([20000000, 2 * ($quiet | at(0.5))] | max)')" = true ] ||
	lab_fail "half of all failures stall the stream for more than 20 ms, and for twice as long as it stalls without"
e2e_end
