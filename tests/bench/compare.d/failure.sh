# shellcheck shell=bash
#
# family_failure - for how long a stream stands still when a rail fails, and how soon a healed rail is used again
#
# One long stream goes through all drills; what it felt of each is read from its
# JSON afterwards (failure.jq), beside what it felt of spans as long in which
# nothing was done to it. MPTCP may not come back at all: it gets a stream for
# each drill, and fewer drills. Then a picture of throughput through one failure.

# shellcheck source-path=SCRIPTDIR source=../bench.sh
: "${BENCH_FLOOR:=$MRC_BUILD/tests/bench/floor}"

failure_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
failure_rails=4
failure_size=64KiB     # so that a healthy stream completes one every 0.14 ms
failure_least_us=500   # shorter gaps are not noted
failure_tail_us=100000 # so long after a fault its gap may begin; MPTCP: to the end of its stream
failure_tick_ms=20

family_failure() {
	failure_drills=${BENCH_DRILLS:-$([ -n "$BENCH_QUICK" ] && echo 10 || echo 50)}
	failure_peer_drills=$((failure_drills < 50 ? 1 : failure_drills / 5))
	failure_peer_ms=$([ -n "$BENCH_QUICK" ] && echo 3000 || echo 4500)
	bench_lab "$failure_rails" 1gbit
	failure_mptcp_why=$(failure_mptcp_prepare)
	local kind
	for kind in carrier silence; do failure_stalls "$kind"; done
	failure_backs
	failure_picture
	lab_down
}

failure_now_us() { printf '%s' "${EPOCHREALTIME/[.,]/}"; }

failure_inflict() { # KIND RAIL
	if [ "$1" = carrier ]; then
		lab_cut "$2" b
		return
	fi
	# both directions at once: nft takes 10 ms and more for each
	lab_silence "$2" in a &
	lab_silence "$2" out a
	wait "$!"
}

failure_undo() { # KIND RAIL
	if [ "$1" = carrier ]; then lab_heal "$2"; else lab_unsilence "$2"; fi
}

# As lab_wait_for, but what does not come is an answer: 1
failure_wait() { # SECONDS COMMAND...
	local end=$(($(lab_now_ms) + $1 * 1000))
	shift
	until "$@"; do
		[ "$(lab_now_ms)" -lt "$end" ] || return 1
		sleep 0.05
	done
}

# ---- mrcd ----

failure_stream_start() {
	lab_perf_spawn stream a stream b --size "$failure_size" --in-flight 16 --duration 0 --interval "${failure_tick_ms}ms" \
		--stalls "${failure_least_us}us" --control none --json
	failure_full=0 # any rate will do
	failure_wait 10 failure_has_rate || :
	failure_full=$(failure_rate)
}

# Gb/s of the last half second, from the progress lines
failure_rate() {
	{ tail -n 2000 "$LAB_DIR/log/stream.err" 2>/dev/null || :; } | awk -v lines=$((500 / failure_tick_ms)) '
		$2 == "s" && $1 ~ /^[0-9.]+$/ { rate[++n] = $3 }
		END {
			for (i = n - lines + 1; i <= n; i++) if (i > 0) sum += rate[i]
			printf "%.4f", n < 2 * lines ? 0 : sum / lines
		}'
}
failure_has_rate() { awk -v now="$(failure_rate)" -v full="$failure_full" 'BEGIN { exit !(now > 0 && now >= 0.95 * full) }'; }
failure_is_whole() { bench_paths_good && failure_has_rate; }

# One drill: a fault, at least 0.2 s, its end, and on until the stream is as fast as at first. One line of JSON.
failure_drill() { # KIND RAIL
	local fault done_us heal
	fault=$(failure_now_us)
	failure_inflict "$1" "$2"
	done_us=$(failure_now_us)
	# nobody is asked anything while the gap is measured
	sleep 0.2
	heal=$(failure_now_us)
	failure_undo "$1" "$2"
	failure_wait 4 failure_is_whole || bench_say "  drill on rail $2: not as before within 4 s"
	sleep 0.1 # so that the half second that was good enough lies in the drill
	printf '{"fault_us": %s, "done_us": %s, "heal_us": %s, "until_us": %s}\n' "$fault" "$done_us" "$heal" "$(failure_now_us)"
}

# What a stream's JSON says of the events: an array, or nothing
failure_felt() { # RESULT EVENTS
	jq -c --slurpfile events "$2" --argjson tail_us "$failure_tail_us" --argjson least_us "$failure_least_us" \
		-f "$failure_here/failure.jq" "$1" 2>/dev/null || :
}

failure_stalls() { # carrier|silence
	local kind=$1 row=failure-$1 drill felt what median=2 max=20
	what="cable pulled"
	[ "$kind" = carrier ] || what="rail silenced" median=5 max=30
	bench_row "$row" "stream of $failure_size messages on four rails of 1 Gb/s, a $what: longest gap ($failure_drills drills, one for each figure)" ms
	: >"$LAB_DIR/events"
	failure_stream_start
	for ((drill = 0; drill < failure_drills; drill++)); do
		lab_alive stream || break
		failure_drill "$kind" $((drill % failure_rails)) >>"$LAB_DIR/events"
	done
	if lab_alive stream; then lab_kill stream TERM; fi
	felt=$(failure_felt "$LAB_DIR/log/stream.out" "$LAB_DIR/events")
	printf '%s\n' "${felt:-[]}" >"$LAB_DIR/felt-$kind"
	jq -e '.outcomes | keys == ["OK"]' "$LAB_DIR/log/stream.out" >/dev/null 2>&1 ||
		bench_say "  not every message was answered with OK: $(jq -c .outcomes "$LAB_DIR/log/stream.out" 2>/dev/null)"
	failure_samples "$row" mrcd "$kind" stall_ms
	failure_samples "$row" "mrcd, no fault" "$kind" quiet_ms
	failure_mptcp_stalls "$row" "$kind"
	bench_aim "$row" mrcd median le "$median"
	bench_aim "$row" mrcd max le "$max"
}

failure_samples() { # ROW WHO KIND FIELD
	local drill=0 value
	while read -r value; do
		bench_sample "$1" "$2" $((++drill)) "$value"
	done < <(jq ".[].$4" "$LAB_DIR/felt-$3")
	[ "$drill" -gt 0 ] || bench_absent "$1" "$2" "the stream gave no result"
}

failure_backs() {
	local row=failure-back kind what
	bench_row "$row" "from a healed rail to >= 0.95 of the healthy rate, over the next half second" s
	for kind in carrier silence; do
		what="mrcd, cable back"
		[ "$kind" = carrier ] || what="mrcd, heard again"
		failure_samples "$row" "$what" "$kind" back_s
		bench_aim "$row" "$what" max le 2
	done
}

# ---- MPTCP ----

# Endpoints on all rails; says why it cannot be, or nothing.
failure_mptcp_prepare() {
	local rail host
	if [ ! -x "$BENCH_FLOOR" ]; then
		echo "there is no floor in $MRC_BUILD/tests/bench"
		return
	fi
	for host in a b; do
		lab_ip "$host" mptcp limits set subflow 8 add_addr_accepted 8 2>/dev/null || {
			echo "this kernel has no MPTCP, or ip(8) does not know it"
			return
		}
	done
	# The first path is the connection itself; b tells its other addresses, and each is reached by its own rail.
	for ((rail = 1; rail < failure_rails; rail++)); do
		lab_ip b mptcp endpoint add "$(lab_address b "$rail")" signal 2>/dev/null || {
			echo "its endpoints cannot be set"
			return
		}
	done
}

# MPTCP for so long: floor's JSON in $LAB_DIR/log/mptcp.out
failure_mptcp_start() { # MS INTERVAL_MS
	failure_kill_if_alive mptcp
	: >"$LAB_DIR/log/mptcp.err"
	"$BENCH_FLOOR" stream --mptcp --from "$(lab_namespace a)" --to "$(lab_namespace b)" --address "$(lab_address b 0)" \
		--duration "$1" --interval "$2" --gaps "$failure_least_us" \
		>"$LAB_DIR/log/mptcp.out" 2>"$LAB_DIR/log/mptcp.err" </dev/null &
	lab_remember "$!" mptcp
	failure_wait 10 grep -q flows "$LAB_DIR/log/mptcp.err"
}

failure_kill_if_alive() { [ -z "$(lab_pid "$1" || :)" ] || ! lab_alive "$1" || lab_kill "$1"; }
failure_mptcp_ended() { lab_ended mptcp; }

failure_mptcp_stalls() { # ROW KIND
	local row=$1 kind=$2 drill fault done_us rail value
	if [ -n "$failure_mptcp_why" ]; then
		bench_absent "$row" MPTCP "$failure_mptcp_why"
		return
	fi
	for ((drill = 1; drill <= failure_peer_drills; drill++)); do
		rail=$((drill % failure_rails))
		value=
		if failure_mptcp_start "$failure_peer_ms" "$failure_tick_ms"; then
			sleep 1 # until it is at its rate, on all rails
			fault=$(failure_now_us)
			failure_inflict "$kind" "$rail"
			done_us=$(failure_now_us)
			failure_wait 10 failure_mptcp_ended || :
			printf '{"fault_us": %s, "done_us": %s, "heal_us": null, "until_us": %s}\n' "$fault" "$done_us" \
				"$(failure_now_us)" >"$LAB_DIR/events-mptcp"
			failure_undo "$kind" "$rail"
			value=$(failure_felt "$LAB_DIR/log/mptcp.out" "$LAB_DIR/events-mptcp" | jq '.[0].stall_ms')
		fi
		bench_sample "$row" "MPTCP" "$drill" "$value"
	done
}

# ---- the picture ----

# A cable is pulled and put back; both on the same rails, one after the other.
failure_picture() {
	local row=failure-picture who cut_ms=3000 back_ms=6000 all_ms=10000
	if [ -n "$BENCH_QUICK" ]; then cut_ms=1000 back_ms=2500 all_ms=4000; fi
	bench_row "$row" "four rails of 1 Gb/s, one cable away for $((back_ms - cut_ms)) ms: mean rate from then to the end / before" "share"
	local -a drawn=()
	for who in mrcd MPTCP; do
		if [ "$who" = MPTCP ] && [ -n "$failure_mptcp_why" ]; then
			bench_absent "$row" MPTCP "$failure_mptcp_why"
			continue
		fi
		if failure_pull "$who" "$cut_ms" "$back_ms" "$all_ms" && [ -s "$LAB_DIR/curve-$who" ]; then
			drawn+=("$who")
			bench_sample "$row" "$who" 1 "$(failure_share "$who" "$cut_ms" "$all_ms")"
		else
			bench_absent "$row" "$who" "the stream gave no result"
		fi
	done
	if ! command -v gnuplot >/dev/null; then
		bench_absent "$row" "the picture" "gnuplot is not installed"
	elif [ ${#drawn[@]} -gt 0 ]; then
		failure_draw svg "svg size 1000,420 enhanced font 'sans,12' background rgb 'white'" "${drawn[@]}"
		failure_draw png "pngcairo size 1000,420 enhanced font 'sans,12' background rgb 'white'" "${drawn[@]}"
		bench_say "written: $BENCH_OUT/failure.svg and .png"
	fi
}

# Seconds and Gb/s into $LAB_DIR/curve-WHO, so shifted that the cable is pulled at its time; a second more than is drawn
failure_pull() { # WHO CUT_MS BACK_MS ALL_MS
	local result=$LAB_DIR/log/mptcp.out start cut name=mptcp
	if [ "$1" = MPTCP ]; then
		failure_mptcp_start $(($4 + 1000)) 100 || return 1
	else
		name=drawn
		result=$LAB_DIR/log/drawn.out
		failure_wait 15 bench_paths_good || return 1
		lab_perf_spawn drawn a stream b --size "$failure_size" --in-flight 16 --duration "$(($4 + 1000))ms" --interval 100ms \
			--control none --json
		failure_wait 10 grep -q ' s ' "$LAB_DIR/log/drawn.err" || return 1
	fi
	start=$(lab_now_ms)
	failure_sleep_until $((start + $2))
	cut=$(failure_now_us)
	lab_cut 1 b
	failure_sleep_until $((start + $3))
	lab_heal 1
	failure_wait $(($4 / 1000 + 16)) lab_ended "$name" || return 1
	jq -r --argjson cut "$cut" --argjson at "$2" '.start_unix_us as $start | .series[] | select(.span_ns > 0)
		| ((.t_ns - .span_ns) / 1e9, .t_ns / 1e9) as $t | [$t + ($start - $cut) / 1e6 + $at / 1e3, .bytes * 8 / .span_ns] | @tsv' \
		"$result" >"$LAB_DIR/curve-$1" 2>/dev/null
}

failure_sleep_until() { # MS
	local left=$(($1 - $(lab_now_ms)))
	[ "$left" -le 0 ] || sleep "$(printf '%d.%03d' $((left / 1000)) $((left % 1000)))"
}

# From the fault to the end: the mean rate over that of the second before
failure_share() { # WHO CUT_MS ALL_MS
	awk -v cut="$(($2 - 100))" -v all="$(($3 - 200))" '{ ms = $1 * 1000 }
		ms >= cut - 1000 && ms <= cut { before += $2; befores++ }
		ms > cut && ms <= all { after += $2; afters++ }
		END { if (befores && afters && before > 0) printf "%.4f", after / afters / (before / befores); else print "null" }' \
		"$LAB_DIR/curve-$1"
}

# The times are those of failure_picture, which calls this.
failure_draw() { # SUFFIX TERMINAL WHO...
	local suffix=$1 terminal=$2 who separator='plot' cut back
	shift 2
	cut=$(awk "BEGIN { print $cut_ms / 1000 }")
	back=$(awk "BEGIN { print $back_ms / 1000 }")
	{
		echo "set terminal $terminal; set output '$BENCH_OUT/failure.$suffix'; set encoding utf8"
		echo "set border 3 lw 1 lc rgb '#666666'; set tics nomirror out textcolor rgb '#333333'"
		echo "set grid ytics lc rgb '#dddddd' lw 1; set title 'Four rails of 1 Gb/s, one cable pulled and put back' font ',15'"
		echo "set xlabel 'seconds'; set ylabel 'Gb/s'; set yrange [0:4.8]; set xrange [0:$(awk "BEGIN { print $all_ms / 1000 }")]"
		echo "set xtics 1; set ytics 1; set key outside right center Left reverse invert samplen 2"
		echo "set arrow from $cut,0 to $cut,4.4 nohead dt 2 lw 1.4 lc rgb '#222222'"
		echo "set arrow from $back,0 to $back,4.4 nohead dt 2 lw 1.4 lc rgb '#222222'"
		echo "set label 'pulled' at $cut,4.5 center textcolor rgb '#222222'; set label 'put back' at $back,4.5 center textcolor rgb '#222222'"
		for who in "$@"; do
			printf "%s '%s' using 1:2 with lines lw 2.2 lc rgb '%s' title '%s'" "$separator" "$LAB_DIR/curve-$who" \
				"$([ "$who" = mrcd ] && echo '#0072b2' || echo '#d55e00')" "$who"
			separator=,
		done
		echo
	} | LC_ALL=C.UTF-8 gnuplot || bench_say "  gnuplot drew no failure.$suffix"
}
