# shellcheck shell=bash
#
# family_latency - an 8-byte ping-pong against the bare chain of four processes, and against peers; its tail on a bad rail
#
# Every figure is of the round trip: what a peer calls latency and is half of
# one is doubled. mrc-perf lat is as committed: level PLACED, one message at a
# time, the trip ends with the echo.

# shellcheck source-path=SCRIPTDIR source=../bench.sh
: "${BENCH_FLOOR:=$MRC_BUILD/tests/bench/floor}"

latency_rails=4
latency_spin_us=50        # mrc-perf --spin; the daemon's own is its default
latency_daemon_spin_us=100 # that default: timers: spin in mrcd.conf(5)

family_latency() {
	latency_ms=$((BENCH_SECONDS * 250)) # of each measurement; there are many
	bench_lab "$latency_rails"
	lab_perf_spawn serve-spin b serve --quiet --service spin --spin "${latency_spin_us}us"
	lab_wait_for "the service that yields" 10 latency_both_listen
	local pinning
	for pinning in none pair cross; do
		latency_chain block "$pinning"
		latency_chain spin "$pinning"
	done
	latency_pin none || :
	latency_peers
	latency_tail
	lab_down
}

latency_both_listen() { lab_mrcctl b clients --json | jq -e '[.[].listeners] | add >= 2' >/dev/null; }

# ---- mrcd and the bare chain, waiting and pinned alike ----

latency_chain() { # block|spin PINNING
	local row=latency-$1-$2 round spin_us=0 waits
	local -A pinnings=([none]="not pinned" [pair]="client and daemon on one core" [cross]="every hop to the other core")
	[ "$1" = block ] || spin_us=$latency_spin_us
	waits=$([ "$1" = block ] && echo "clients block" || echo "clients yield for $latency_spin_us us")
	bench_row "$row" "8-byte ping-pong, $waits, ${pinnings[$2]}: round trip p50 ($latency_ms ms each)" us
	if [ "$2" != none ] && [ "$(nproc)" -lt 2 ]; then
		bench_absent "$row" mrcd "it takes two cores"
		return
	fi
	if ! latency_pin "$2"; then
		bench_absent "$row" mrcd "the daemons cannot be pinned here"
		return
	fi
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		bench_sample "$row" mrcd "$round" "$(latency_mrcd "$1" "$2" .p50)"
		[ -x "$BENCH_FLOOR" ] || continue
		bench_sample "$row" "bare chain" "$round" "$(latency_floor "$spin_us" "$2")"
	done
	if [ -x "$BENCH_FLOOR" ]; then
		bench_ratio "$row" mrcd "bare chain" le 1.15
	else
		bench_absent "$row" "bare chain" "there is no floor in $MRC_BUILD/tests/bench"
	fi
}

# Daemons and servers, which stay; the client that asks is pinned as it starts, to the first core.
latency_pin() { # PINNING
	local all
	all=0-$(($(nproc) - 1))
	case $1 in
	none) latency_pin_all "$all" "$all" "$all" ;;
	pair) latency_pin_all 0 1 1 ;;
	cross) latency_pin_all 1 0 1 ;;
	esac
}

latency_pin_all() { # MRCD_A MRCD_B SERVERS
	taskset -acp "$1" "$(lab_pid mrcd-a)" >/dev/null &&
		taskset -acp "$2" "$(lab_pid mrcd-b)" >/dev/null &&
		taskset -acp "$3" "$(lab_pid serve)" >/dev/null &&
		taskset -acp "$3" "$(lab_pid serve-spin)" >/dev/null
}

# us of the round trip, or nothing
latency_mrcd() { # block|spin PINNING FIELD
	local json service=b
	local -a spin=()
	if [ "$1" = spin ]; then
		service=b/spin
		spin=(--spin "${latency_spin_us}us")
	fi
	json=$(LAB_PERF_WRAP=$([ "$2" = none ] || echo "taskset -c 0") \
		lab_perf a lat "$service" --duration "${latency_ms}ms" "${spin[@]}" --json --quiet 2>/dev/null) || :
	jq ".latency_ns$3 / 1e3" <<<"$json" 2>/dev/null || :
}

latency_floor() { # CLIENT_SPIN_US PINNING
	local json
	json=$("$BENCH_FLOOR" chain --from "$(lab_namespace a)" --to "$(lab_namespace b)" --address "$(lab_address b 0)" \
		--pinning "$2" --client-spin "$1" --daemon-spin "$latency_daemon_spin_us" --duration "$latency_ms") || :
	jq '.latency_ns.p50 / 1e3' <<<"$json" 2>/dev/null || :
}

# ---- peers ----

# None of them is compared with an aim: sockperf is TCP without a daemon, and the two others spin on a core of their own
# at either end, which two cores are not enough for.
latency_peers() {
	local row=latency-peers round peer
	local -A call=([sockperf]=sockperf [fi_pingpong]=fi_pingpong [ucx]=ucx_perftest)
	local -A name=([sockperf]="TCP, sockperf 14 B" [fi_pingpong]="libfabric tcp msg, mean" [ucx]="UCX tag_lat, tcp")
	bench_row "$row" "8-byte ping-pong beside peers, not pinned: round trip p50 where nothing else is said" us
	for peer in sockperf fi_pingpong ucx; do
		if ! command -v "${call[$peer]}" >/dev/null; then
			bench_absent "$row" "${name[$peer]}" "${call[$peer]} is not installed"
			unset "call[$peer]"
		fi
	done
	if [ -n "${call[sockperf]:-}" ] && ! latency_serve sockperf 11111 sockperf server --tcp -i 0.0.0.0 -p 11111; then
		bench_absent "$row" "${name[sockperf]}" "its server did not start"
		unset "call[sockperf]"
	fi
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		bench_sample "$row" "mrcd" "$round" "$(latency_mrcd block none .p50)"
		bench_sample "$row" "mrcd, clients yield" "$round" "$(latency_mrcd spin none .p50)"
		for peer in sockperf fi_pingpong ucx; do
			[ -z "${call[$peer]:-}" ] || bench_sample "$row" "${name[$peer]}" "$round" "$("latency_$peer")"
		done
	done
	for peer in sockperf fi_pingpong ucx; do
		[ -z "${call[$peer]:-}" ] || bench_ratio "$row" mrcd "${name[$peer]}" -
	done
}

latency_listens() { lab_exec "$1" ss -Hltn "sport = :$2" | grep -q .; } # HOST PORT

# Its smallest message is 14 bytes. Seconds are whole ones, and the first and last parts of them are not counted.
latency_sockperf() { # [PERCENTILE [RAIL]]
	{ timeout 20 ip netns exec "$(lab_namespace a)" sockperf ping-pong --tcp -i "$(lab_address b "${2:-0}")" -p 11111 \
		-m 14 -t 1 --full-rtt 2>/dev/null || :; } |
		awk -v want="${1:-50.000}" '$3 == "percentile" && $4 == want { print $6 }'
}

# The servers of these two serve once. Where the cores are taken a turn costs milliseconds instead of microseconds, and they
# have no limit of time: then there is no figure.
latency_fi_pingpong() {
	local count=$((BENCH_SECONDS * 500))
	latency_serve fi_pingpong 47592 fi_pingpong -p tcp -e msg -I "$count" -S 8 || return 0
	{ timeout $((BENCH_SECONDS + 5)) ip netns exec "$(lab_namespace a)" fi_pingpong -p tcp -e msg -I "$count" -S 8 \
		"$(lab_address b 0)" 2>/dev/null || :; } | awk '$1 == 8 { print 2 * $7 }'
	latency_unserve fi_pingpong
}

latency_ucx() {
	local -a settings=("UCX_TLS=tcp" "UCX_NET_DEVICES=r0,r1,r2,r3")
	latency_serve ucx 13337 env "${settings[@]}" ucx_perftest -p 13337 || return 0
	{ timeout $((BENCH_SECONDS + 5)) ip netns exec "$(lab_namespace a)" env "${settings[@]}" ucx_perftest \
		"$(lab_address b 0)" -p 13337 -t tag_lat -s 8 -n $((BENCH_SECONDS * 1000)) -w 500 -f -v 2>/dev/null || :; } |
		awk -F, '$1 ~ /^ *[0-9]+$/ { print 2 * $2 }'
	latency_unserve ucx
}

# A server on b, until it listens; 1: it does not
latency_serve() { # NAME PORT COMMAND...
	local server=$1 port=$2 left
	shift 2
	lab_spawn "$server" b "$@"
	for ((left = 100; left > 0; left--)); do
		if latency_listens b "$port"; then return 0; fi
		sleep 0.02
	done
	latency_unserve "$server"
	return 1
}

latency_unserve() { ! lab_alive "$1" || lab_kill "$1"; }

# ---- the tail ----

# All rails through relays; then the one that carried the most is made slow and lossy. The daemons get a second to see it.
latency_tail() {
	local row=latency-tail round rail before lost
	bench_row "$row" "8-byte ping-pong, four rails through relays, one slow by 1 ms and losing 1% in bursts of 8: p99.9" us
	if [ ! -x "$LAB_RELAY" ] || [ ! -c /dev/net/tun ]; then
		bench_absent "$row" mrcd "there is no relay in $MRC_BUILD/tests/lab, or no /dev/net/tun"
		return
	fi
	LAB_WIRE=relay bench_lab "$latency_rails"
	latency_ms=$((BENCH_SECONDS * 500)) # a thousandth of them has to be many
	local has_tcp=
	if command -v sockperf >/dev/null && latency_serve sockperf 11111 sockperf server --tcp -i 0.0.0.0 -p 11111; then
		has_tcp=1
	else
		bench_absent "$row" "TCP on the bad one" "sockperf is not installed, or did not start"
	fi
	lost=()
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		before=$(latency_relays)
		bench_sample "$row" "mrcd, all healthy" "$round" "$(latency_mrcd block none .p999)"
		rail=$(latency_relays | jq --argjson before "$before" 'to_entries | max_by(.value.ab.passed - $before[.key].ab.passed) | .key')
		lab_relay "$rail" delay 1ms loss 1% burst 8 >/dev/null
		sleep 1
		before=$(latency_relays)
		bench_sample "$row" "mrcd, one bad" "$round" "$(latency_mrcd block none .p999)"
		if [ -n "$has_tcp" ]; then
			bench_sample "$row" "TCP on the bad one" "$round" "$(latency_sockperf 99.900 "$rail")"
		fi
		lost+=("$(latency_relays | jq -c --argjson before "$before" --argjson rail "$rail" '
			def total(f): .[$rail] | (.ab | f) + (.ba | f);
			{lost: (total(.lost) - ($before | total(.lost))), bursts: (total(.bursts) - ($before | total(.bursts)))}')")
		lab_relay "$rail" clear >/dev/null
		lab_wait_for "all paths" 15 bench_paths_good
		sleep 1
	done
	bench_ratio "$row" "mrcd, one bad" "mrcd, all healthy" le 3
	# without a burst of loss the row above would show nothing
	bench_row "$row-loss" "what that rail lost meanwhile, of all that was sent on it" packets
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		bench_sample "$row-loss" lost "$round" "$(jq .lost <<<"${lost[round - 1]}")"
		bench_sample "$row-loss" "in bursts" "$round" "$(jq .bursts <<<"${lost[round - 1]}")"
	done
}

# The counters of all relays, as one array
latency_relays() {
	local rail
	for ((rail = 0; rail < latency_rails; rail++)); do lab_relay "$rail" counters; done | jq -s .
}
