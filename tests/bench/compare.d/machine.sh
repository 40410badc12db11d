# shellcheck shell=bash
#
# machine - rails without a limit: what the processors and memory are good for

family_machine() {
	bench_lab 4
	peers_ready
	machine_large
	machine_small
	machine_encrypted
}

machine_large() {
	local round
	bench_row machine-1m "rails without a limit, messages of 1 MiB, checksums on" Gb/s
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		peer_measure iperf3 machine-1m "TCP, 1 stream" "$round" peer_tcp 0 "$BENCH_SECONDS"
		bench_sample machine-1m mrcd "$round" "$(mrc_bw 1048576 "$BENCH_SECONDS")"
		peer_measure iperf3 machine-1m "TCP, 4 streams" "$round" peer_tcp_all "$BENCH_SECONDS"
		peer_measure ucx machine-1m UCX "$round" peer_ucx_bw 1048576 "$BENCH_SECONDS"
		peer_measure mptcp machine-1m MPTCP "$round" peer_mptcp "$BENCH_SECONDS"
		machine_drain drain 2
		bench_sample machine-1m "mrcd, 2 rails" "$round" "$(mrc_bw 1048576 "$BENCH_SECONDS")"
		machine_drain undrain 4
	done
	bench_ratio machine-1m mrcd "TCP, 1 stream" ge 1.3
	bench_ratio machine-1m mrcd "TCP, 4 streams" ge 0.90
	bench_ratio machine-1m mrcd UCX ge 1.3
	bench_ratio machine-1m mrcd MPTCP -
	bench_ratio machine-1m "mrcd, 2 rails" mrcd -
}

machine_drain() { # drain|undrain GOOD-PATHS-THEN
	lab_mrcctl a "$1" r2 >/dev/null
	lab_mrcctl a "$1" r3 >/dev/null
	bench_paths_are "$2"
}

machine_small() {
	local round ucx=UCX rails=4 outstanding=32
	bench_row machine-64b "messages of 64 bytes, rails without a limit" "thousand/s"
	if [ -z "${PEER_WHY[ucx]}" ]; then
		read -r rails outstanding < <(machine_ucx_best) || :
		ucx="UCX ($rails rail$([ "$rails" = 1 ] || echo s), $outstanding under way)"
	fi
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		bench_sample machine-64b mrcd "$round" "$(mrc_messages 64 "$BENCH_SECONDS")"
		peer_measure ucx machine-64b "$ucx" "$round" peer_ucx_messages "$rails" "$outstanding" 64 "$BENCH_SECONDS"
	done
	bench_ratio machine-64b mrcd "$ucx" ge 6
}

# The setting that suits UCX best here, of those that change what it does with small messages.
machine_ucx_best() {
	local rails outstanding rate best=0 best_rails=4 best_outstanding=32
	for rails in 4 1; do
		for outstanding in 32 256 1024; do
			rate=$(peer_ucx_soon $rails $outstanding 64) || :
			bench_say "$(printf '  tried    UCX, %d rails, %4d under way %24.4g' $rails $outstanding \
				"$(peer_calc "${rate:-0} / 1000")")"
			if [ "$(peer_calc "${rate:-0} > $best")" = true ]; then
				best=$rate best_rails=$rails best_outstanding=$outstanding
			fi
		done
	done
	printf '%d %d\n' "$best_rails" "$best_outstanding"
}

# The same daemons, started anew for each figure, in turn: encryption is agreed on when a path opens.
machine_encrypted() {
	local round encryption
	bench_row machine-encrypted "rails without a limit, messages of 1 MiB, records of AES-256-GCM" Gb/s
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		for encryption in off required; do
			lab_kill serve TERM
			lab_mrcd_stop a
			lab_mrcd_stop b
			LAB_YAML="encryption: $encryption" bench_daemons 4
			bench_sample machine-encrypted "mrcd, encryption $encryption" "$round" \
				"$(mrc_bw 1048576 "$BENCH_SECONDS")"
		done
	done
	bench_ratio machine-encrypted "mrcd, encryption required" "mrcd, encryption off" -
}
