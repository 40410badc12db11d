#!/usr/bin/env bash
# Two hundred failures in a row of four rails, pulled and silenced: nothing lost, and how long each was felt.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

# Small messages, and a pace that leaves the processors time: a stall cannot be told from a message that takes as long.
: "${CASE_FAILURES:=200}" "${CASE_RAILS:=4}" "${CASE_SIZE:=4KiB}"
case ${LAB_GUEST_CLOCK:-machine} in
instructions) : "${CASE_PACE:=8Mb/s}" ;;
*) : "${CASE_PACE:=2Mb/s}" ;;
esac
e2e_hosts "$CASE_RAILS"
case_whole
e2e_serve b
lab_perf_spawn stream a stream b --size "$CASE_SIZE" --verify --duration 0 --in-flight "$E2E_IN_FLIGHT" \
	--pace "$CASE_PACE" --interval 100ms --stalls 1ms --json --quiet
e2e_goes_on "a stream that has just begun"

# the rail that failed before is back, or with four rails one may still be out
has_enough() { e2e_is a paths "[.[] | select((.state | ascii_downcase) == \"good\")] | length >= (if $CASE_RAILS > 2 then $CASE_RAILS - 1 else $CASE_RAILS end)"; }

# One ip and one tc for all failures: to start a program is more work for the emulated processors than anything that
# is measured here. What is shown at the end tells that all before it is done.
mkfifo "$LAB_DIR/answers"
exec {answers}<>"$LAB_DIR/answers"
exec {ip_in}> >(exec ip -force -oneline -batch - >&"$answers" 2>&1)
exec {tc_in}> >(exec tc -force -batch - >&"$answers" 2>&1)
declare -A port netem
for ((rail = 0; rail < CASE_RAILS; rail++)); do
	for host in 0 1; do
		port[$host$rail]=$(rails_port $host $rail) netem[$host$rail]=$(rails_netem_at $host $rail)
	done
done
made() { # INPUT LINES LAST: whose answer begins with LAST once the lines before it are done
	local line
	printf '%s\n' "$2" >&"$1"
	read -r -t 30 -u "$answers" line || lab_fail "no answer to: $2"
	case $line in "$3"*) ;; *) lab_fail "$2: $line" ;; esac
}
ip_now() { made "$ip_in" "$1"$'\nlink show dev lo' "1: lo"; }
tc_now() { made "$tc_in" "$1"$'\nqdisc show dev lo' "qdisc noqueue"; }
fail() { # RAIL KIND
	local nothing_comes="root netem limit 20000 loss 100%"
	case $2 in
	0) ip_now "link set ${port[0$1]} down" ;;
	1) ip_now "link set ${port[1$1]} down" ;;
	2) ip_now "link set ${port[0$1]} down"$'\n'"link set ${port[1$1]} down" ;;
	3) tc_now "qdisc replace dev ${netem[0$1]} $nothing_comes"$'\n'"qdisc replace dev ${netem[1$1]} $nothing_comes" ;;
	4) tc_now "qdisc replace dev ${netem[0$1]} $nothing_comes" ;;
	5) ip_now "link set ${port[0$1]} up" ;; # which it is: nothing fails
	esac
}
mend() { # RAIL KIND
	case $2 in
	3) tc_now "qdisc del dev ${netem[0$1]} root"$'\n'"qdisc del dev ${netem[1$1]} root" ;;
	4) tc_now "qdisc del dev ${netem[0$1]} root" ;;
	*) ip_now "link set ${port[0$1]} up"$'\n'"link set ${port[1$1]} up" ;;
	esac
}
# timed RAIL KIND: the time of day, in us, before and after
timed() {
	local before=${EPOCHREALTIME/[.,]/}
	fail "$@"
	printf '%s\n' "{\"from\": $before, \"to\": ${EPOCHREALTIME/[.,]/}, \"rail\": $1, \"kind\": $2}" >>"$LAB_DIR/failures"
	sleep 0.2
}
: >"$LAB_DIR/failures"
for ((n = 0; n < CASE_FAILURES; n++)); do
	rail=$((n % CASE_RAILS))
	lab_wait_for "rails in service before the next failure" 30 has_enough
	sleep 0.2
	timed $rail 5 # to compare with
	timed $rail $((n % 5))
	mend $rail $((n % 5))
done
case_whole 60
e2e_goes_on "with nothing failing"
e2e_stream_end

# What was felt of a failure is the longest gap that overlaps the time from just before it was made to 100 ms after.
figures() { # FILTER
	jq -r --slurpfile list "$LAB_DIR/failures" --argjson rails "$CASE_RAILS" '
		.stalls as $stalls
		| def felt: . as $it | [$stalls[] | select(.unix_us <= $it.to + 100000 and .unix_us + .span_ns / 1000 >= $it.from) | .span_ns] | max // 0;
		def at($part): .[length * $part | floor] // 0;
		def ms: . / 100000 | round / 10;
		([$list[] | . + {felt: felt}]) as $all
		| def felts($kinds): [$all[] | select(.kind as $kind | $kinds | index($kind)) | .felt] | sort;
		def line($name; $s): "\($name): \($s | length) times, stall median \($s | at(0.5) | ms) ms, 9 of 10 below \($s | at(0.9) | ms) ms, longest \($s[-1] // 0 | ms) ms";
		'"$1" "$(e2e_result stream)"
}
figures '"\($rails) rails; a failure is made in \([$list[] | .to - .from] | sort | at(0.5) * 1000 | ms) ms, and felt until 100 ms after that", line("no failure"; felts([5])), line("pulled"; felts([0, 1, 2])), line("silenced"; felts([3, 4])),
	line("all failures"; felts([0, 1, 2, 3, 4])),
	"messages \(.messages), lost \(.verify.lost), duplicated \(.verify.duplicated), reordered \(.verify.reordered), corrupted \(.verify.corrupted)"'
each='$all[] | select(.kind != 5) | "\(["a pulled", "b pulled", "both pulled", "both silenced", "a silenced"][.kind]) r\(.rail): felt for \(.felt | ms) ms"'
[ -z "${CASE_EACH:-}" ] || figures "$each"
if [ "$LAB_GUEST_DEVICE" = rxe ]; then
	# That a queue pair gave up by itself, a daemon writes into its log. Were it what ends a stall, it would be as long.
	fired=$(cat "$LAB_DIR"/log/mrcd-[ab].err | grep -c 'transport retry counter exceeded' || :)
	echo "the timers of a queue pair (ack-timeout 14, retry-count 6) would have ended after 420 to 483 ms; they did $fired times"
fi
# By its own clock the emulator is to show what the daemons need. By that of a machine which has no time to spare, it
# is slow without a failure too, and as much of it in windows of the same length with the same commands in them.
half='felts([0, 1, 2, 3, 4]) | at(0.5)'
if [ "${LAB_GUEST_CLOCK:-machine}" = instructions ]; then
	[ "$(figures "($half) < 20000000")" = true ] || {
		figures "$each" >&2
		lab_fail "half of all failures stall the stream for 20 ms or more"
	}
	[ "${fired:-0}" = 0 ] || lab_fail "queue pairs found by their own timers that a path had failed"
else
	[ "$(figures "($half) < ([20000000, 2 * (felts([5]) | at(0.5))] | max)")" = true ] ||
		lab_fail "half of all failures stall the stream for 20 ms or more, and for twice as long as it stalls without"
fi
e2e_end
