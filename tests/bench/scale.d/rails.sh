# shellcheck shell=bash disable=SC2034,SC2154,SC2317 # one program with ../scale
# 1 to 8 rails without a limit between two daemons: more rails are more sockets for the same work. On a machine whose
# processors are the limit they cannot add throughput; what is to be seen is what they cost.

scale_rails() {
	local round count who points last
	read -ra points <<<"$(scale_points "1 4" "1 2 4 8")"
	bench_row rails-bandwidth "1 MiB messages" Gb/s
	bench_row rails-bandwidth-cpu "the same, both daemons' processor time" s/GiB
	bench_row rails-rate "64 B messages" "1000/s"
	bench_row rails-rate-cpu "the same, both daemons' processor time" us/message
	bench_row rails-latency "8 B ping-pong, p50" us
	bench_row rails-rest "both daemons at rest" "% of a core"
	scale_lab "${points[-1]}"
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		for count in "${points[@]}"; do
			who=$(scale_who "$count" rail)
			# the cables stay, the configuration knows so many of them
			LAB_RAILS=$count
			scale_daemons "$count"
			bench_sample rails-rest "$who" "$round" "$(scale_idle mrcd-a mrcd-b)"
			scale_crowd "mrcd-a mrcd-b" 1 1 bw b || :
			scale_crowd_bandwidth rails-bandwidth "$who" "$round" 1048576
			scale_crowd_end 1
			scale_crowd "mrcd-a mrcd-b" 1 1 rate b || :
			scale_crowd_rate rails-rate "$who" "$round"
			scale_crowd_end 1
			scale_timed lat b
			bench_sample rails-latency "$who" "$round" "$(scale_figure '.latency_ns.p50 / 1e3')"
			scale_daemons_end
		done
	done
	last=$(scale_who "${points[-1]}" rail)
	for count in "${points[@]:1}"; do
		bench_ratio rails-bandwidth "$(scale_who "$count" rail)" "1 rail" -
	done
	bench_ratio rails-bandwidth-cpu "$last" "1 rail" le 1.1
	bench_ratio rails-rate "$last" "1 rail" ge 0.9
	bench_ratio rails-rate-cpu "$last" "1 rail" le 1.1
	bench_ratio rails-latency "$last" "1 rail" le 1.1
}
