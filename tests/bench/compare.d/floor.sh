# shellcheck shell=bash
#
# family_floor - what this machine does at best, without a daemon; nothing here has an aim
#
# TCP alone is in the other families, beside what it is compared with.

# shellcheck source-path=SCRIPTDIR source=../bench.sh
: "${BENCH_FLOOR:=$MRC_BUILD/tests/bench/floor}"

# floor_figure ROW WHO ROUND JSON FILTER: what the filter finds; a JSON that is not there is no figure
floor_figure() { bench_sample "$1" "$2" "$3" "$(jq "$5" <<<"$4" 2>/dev/null || :)"; }

family_floor() {
	if [ ! -x "$BENCH_FLOOR" ]; then
		bench_row floor "the floor of this machine" us
		bench_absent floor floor "there is no $BENCH_FLOOR: build the tests"
		return
	fi
	floor_handovers
	floor_chains
	floor_bytes memcpy "bytes copied, by working set (source and destination)"
	floor_bytes crc "CRC32C by ISA-L, by working set"
}

floor_handovers() {
	local round json kind
	local -A kinds=([one_core]="same core" [busy_core]="another core, busy" [asleep_200us]="another core, idle for 0.2 ms"
		[asleep_5ms]="another core, idle for 5 ms")
	bench_row floor-handover "one eventfd hand-over, one way, p50" us
	local -a jsons=()
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		jsons+=("$("$BENCH_FLOOR" handover --count $((BENCH_SECONDS * 250)) || :)")
		for kind in one_core busy_core asleep_200us asleep_5ms; do
			floor_figure floor-handover "${kinds[$kind]}" "$round" "${jsons[-1]}" ".${kind}_ns.p50 / 1e3"
		done
	done
	bench_row floor-handover-p99 "the same, p99" us
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		for kind in one_core busy_core asleep_200us asleep_5ms; do
			floor_figure floor-handover-p99 "${kinds[$kind]}" "$round" "${jsons[round - 1]}" ".${kind}_ns.p99 / 1e3"
		done
	done
}

floor_chains() {
	local round pinning
	lab_down
	lab_up 2 1
	bench_row floor-chain "bare chain client, daemon, TCP, daemon, client and back, nobody yields: round trip p50" us
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		for pinning in none pair cross; do
			floor_figure floor-chain "pinning $pinning" "$round" "$(floor_chain "$pinning" 0 0)" '.latency_ns.p50 / 1e3'
		done
	done
	bench_row floor-chain-yield "the same, all yield for 100 us before they sleep: round trip p50" us
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		for pinning in none pair cross; do
			floor_figure floor-chain-yield "pinning $pinning" "$round" "$(floor_chain "$pinning" 100 100)" \
				'.latency_ns.p50 / 1e3'
		done
	done
	lab_down
}

# One chain between hosts a and b over rail 0, for a quarter of the time that other measurements take: JSON, or nothing
floor_chain() { # PINNING CLIENT_SPIN_US DAEMON_SPIN_US
	"$BENCH_FLOOR" chain --from "$(lab_namespace a)" --to "$(lab_namespace b)" --address "$(lab_address b 0)" \
		--pinning "$1" --client-spin "$2" --daemon-spin "$3" --duration $((BENCH_SECONDS * 250)) || :
}

floor_bytes() { # memcpy|crc TITLE
	local round json set processors
	bench_row "floor-$1" "$2" GB/s
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		json=$("$BENCH_FLOOR" "$1" --duration $((BENCH_SECONDS * 25)) || :)
		for processors in 1 2; do
			for set in 64KiB 1MiB 64MiB; do
				floor_figure "floor-$1" "$set, $processors $([ "$processors" = 1 ] && echo core || echo cores)" "$round" "$json" \
					".figures[] | select(.working_set == \"$set\" and .processors == $processors) | .bytes_per_s / 1e9"
			done
		done
	done
}
