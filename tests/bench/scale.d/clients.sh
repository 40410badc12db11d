# shellcheck shell=bash disable=SC2016,SC2034,SC2154,SC2317 # one program with ../scale; $a and $b are jq's
# 1 to 64 programs of one daemon, one channel each: together on rails without a limit, then on four rails of 250 Mb/s,
# where they want more than there is: who gets how much, and what a program of small messages suffers beside bulk.

scale_clients() {
	local round count points
	read -ra points <<<"$(scale_points "1 16" "1 4 16 64")"
	bench_row clients-rate "64 B messages of all programs together, 256 of each under way" "1000/s"
	bench_row clients-rate-cpu "the same, both daemons' processor time" us/message
	bench_row clients-bandwidth "1 MiB messages of all programs together, 2 of each under way" Gb/s
	bench_row clients-bandwidth-cpu "the same, both daemons' processor time" s/GiB
	bench_row clients-rest "both daemons at rest with attached programs" "% of a core"
	bench_row clients-rest-each "what a program at rest adds to that" "% of a core"
	bench_row clients-memory "Pss of the daemon with programs at rest, one channel each" MiB
	bench_row clients-memory-each "memory of a program" KiB
	bench_row clients-fair "four rails of 250 Mb/s, equal demand (128 KiB messages, 4 under way): Jain's index of the programs' rates" ""
	bench_row clients-fair-greedy "the same, one program with 16 channels among programs with one: its rate over the mean of theirs" ""
	bench_row clients-beside-latency "four rails of 250 Mb/s, 8 B ping-pong beside programs that send 1 MiB messages, 16 under way: p99" us
	bench_row clients-beside-paced "the same, 64 B messages at 1,000 a second until placed: p99" us
	bench_row clients-beside-median "the same, p50" us

	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		scale_clients_rest "$round" "${points[@]}"
		for count in "${points[@]}"; do
			scale_clients_together "$round" "$count"
		done
		scale_clients_shaped "$round" "${points[@]:1}"
	done

	for count in "${points[@]:1}"; do
		bench_ratio clients-rate "$(scale_who "$count" program)" "1 program" -
		bench_ratio clients-bandwidth "$(scale_who "$count" program)" "1 program" -
		bench_aim clients-fair "$(scale_who "$count" program)" median ge 0.95
	done
	bench_ratio clients-rate-cpu "$(scale_who "${points[-1]}" program)" "1 program" le 1.1
	bench_aim clients-rest-each "$(scale_who "${points[-1]}" program)" median le 0.001
	bench_aim clients-fair-greedy "16 channels" median le 1.25
	for count in 1 8; do
		bench_ratio clients-beside-latency "beside $count" alone -
		bench_ratio clients-beside-paced "beside $count" alone -
		bench_ratio clients-beside-median "beside $count" alone -
	done
}

scale_clients_rest() { # ROUND COUNT...
	local round=$1 count who number first='' first_pss first_rest pss rest added
	shift
	for count in "$@"; do
		who=$(scale_who "$count" program)
		scale_lab 2
		scale_daemons 2
		for ((number = 1; number <= count; number++)); do scale_hold "holder-$number" 1; done
		rest='' pss=''
		if scale_wait 30 scale_channels_are "$count"; then
			rest=$(scale_idle mrcd-a mrcd-b)
			pss=$(scale_pss mrcd-a)
		else
			bench_say "  $who did not connect: $(cat "$LAB_DIR"/log/holder-*.err | tail -n 1)"
		fi
		bench_sample clients-rest "$who" "$round" "$rest"
		bench_sample clients-memory "$who" "$round" "$(scale_calc '$a / 1048576' "$pss")"
		if [ -z "$first" ]; then
			first=$count first_pss=$pss first_rest=$rest
			continue
		fi
		added=$((count - first))
		bench_sample clients-rest-each "$who" "$round" "$(scale_calc '($a - $b) / $c' "$rest" "$first_rest" "$added")"
		bench_sample clients-memory-each "$who, at rest" "$round" "$(scale_calc '($a - $b) / $c / 1024' "$pss" "$first_pss" "$added")"
	done
}

scale_clients_together() { # ROUND COUNT
	local round=$1 count=$2 who bare
	who=$(scale_who "$count" program)
	scale_lab 2
	scale_daemons 2
	bare=$(scale_pss mrcd-a)
	scale_crowd "mrcd-a mrcd-b" "$count" 1 rate b || :
	scale_crowd_rate clients-rate "$who" "$round"
	# each goes round its rings, and touches all of them in time
	bench_sample clients-memory-each "$who, sending" "$round" \
		"$(scale_calc '($a - $b) / $c / 1024' "$(scale_pss mrcd-a)" "$bare" "$count")"
	scale_crowd_end "$count"
	scale_crowd "mrcd-a mrcd-b" "$count" 1 bw b --in-flight 2 || :
	scale_crowd_bandwidth clients-bandwidth "$who" "$round" 1048576
	scale_crowd_end "$count"
}

scale_clients_shaped() { # ROUND COUNT...
	local round=$1 count who index
	shift
	scale_lab 4 250mbit
	scale_daemons 4
	for count in "$@"; do
		who=$(scale_who "$count" program)
		scale_crowd "mrcd-a mrcd-b" "$count" 1 bw b --size 128KiB --in-flight 4 || :
		bench_sample clients-fair "$who" "$round" \
			"$(scale_crowd_figure "select(length == $count) | map(.rate) | pow(add; 2) / (length * (map(. * .) | add))")"
		scale_crowd_end "$count"
	done

	# The greedy one comes last: its channels have the highest numbers.
	if scale_clients_greedy; then scale_crowd_count "mrcd-a mrcd-b" 23 bw || :; fi
	bench_sample clients-fair-greedy "16 channels" "$round" \
		"$(scale_crowd_figure 'select(length == 23) | map(.rate) | (.[7:] | add) / ((.[:7] | add) / 7)')"
	scale_crowd_end 8

	for count in 0 1 8; do
		who="beside $count"
		[ "$count" != 0 ] || who=alone
		for ((index = 1; index <= count; index++)); do
			lab_perf_spawn "client-$index" a bw b --duration 0 --interval 3600s --control none --quiet
		done
		scale_wait 30 scale_channels_are "$count" || bench_say "  not all bulk programs connected"
		[ "$count" = 0 ] || sleep 1
		scale_timed lat b
		bench_sample clients-beside-latency "$who" "$round" "$(scale_figure '.latency_ns.p99 / 1e3')"
		# 64 B * 8 * 1,000
		scale_timed rate b --pace 512kb/s
		bench_sample clients-beside-paced "$who" "$round" "$(scale_figure '.latency_ns.p99 / 1e3')"
		bench_sample clients-beside-median "$who" "$round" "$(scale_figure '.latency_ns.p50 / 1e3')"
		scale_crowd_end "$count"
	done
}

scale_clients_greedy() {
	local number
	for ((number = 1; number <= 7; number++)); do
		lab_perf_spawn "client-$number" a bw b --size 128KiB --in-flight 4 --duration 0 --interval 3600s --control none --quiet
	done
	scale_wait 30 scale_channels_are 7 || return 1
	lab_perf_spawn client-8 a bw b --size 128KiB --in-flight 4 --channels 16 --duration 0 --interval 3600s --control none --quiet
}
