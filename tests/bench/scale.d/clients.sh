# shellcheck shell=bash disable=SC2016,SC2034,SC2154,SC2317 # one program with ../scale; $a and $b are jq's
# 1 to 64 programs of one daemon, one channel each: together on rails without a limit, then on four rails of 250 Mb/s,
# where they want more than there is: who gets how much, and what a program of small messages suffers beside bulk.

scale_clients() {
	local round count points
	read -ra points <<<"$(scale_points "1 16" "1 4 16 64")"
	bench_row clients-rate "64 B messages of all programs together, 256 of each under way" "1000/s"
	bench_row clients-rate-cpu "the same, both daemons' processor time" us/message
	bench_row clients-bandwidth "1 MiB messages of all programs together, 2 of each under way" Gb/s
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

# So many programs at once; they do not begin together: what is counted is what the daemon has answered on each channel
# in the same time, when all of them run. In $LAB_DIR/before and after, one line for each channel.
scale_clients_run() { # NAMES COUNT MODE ARGUMENTS...: whether there is something to count
	local names=$1 count=$2 number
	shift 2
	for ((number = 1; number <= count; number++)); do
		lab_perf_spawn "client-$number" a "$@" --duration 0 --interval 3600s --control none --connect-timeout 60s --quiet
	done
	scale_clients_count "$names" "$count"
}
scale_clients_count() { # "NAME..." CHANNELS
	local names before
	read -ra names <<<"$1"
	if ! scale_wait 60 scale_channels_are "$2"; then
		bench_say "  $2 channels did not open: $(cat "$LAB_DIR"/log/client-*.err | tail -n 1)"
		SCALE_CPU_NS=''
		return 1
	fi
	scale_clients_settle
	before=$(scale_cpu_ns "${names[@]}")
	scale_progress >"$LAB_DIR/before" || :
	sleep "$BENCH_SECONDS"
	scale_progress >"$LAB_DIR/after" || :
	SCALE_CPU_NS=$(scale_calc '$b - $a' "$before" "$(scale_cpu_ns "${names[@]}")")
}
# The first touch of a page costs a virtual machine up to 50 us, and many programs have many: that is not what they cost
# later on. So wait until the daemons' memory has nearly stopped to grow.
scale_clients_settle() {
	local left before after
	before=0
	for ((left = 12; left > 0; left--)); do
		sleep 1
		after=$(scale_calc '$a + $b' "$(scale_pss mrcd-a)" "$(scale_pss mrcd-b)")
		[ -n "$after" ] || return 0
		[ "$((after - before))" -ge $((1 << 20)) ] || return 0
		before=$after
	done
}
scale_clients_end() { # COUNT
	local number
	# all first: one after the other they would be waited for, and the rest get more
	for ((number = 1; number <= $1; number++)); do kill -TERM "$(lab_pid "client-$number")" 2>/dev/null || :; done
	for ((number = 1; number <= $1; number++)); do lab_kill "client-$number" TERM; done
	scale_wait 10 scale_channels_are 0 || :
}

# Of each channel how many messages a second; channels that were not there all the time do not count.
scale_clients_rates() { # FILTER of the array of rates, in the order of their channels
	jq -n --rawfile before "$LAB_DIR/before" --rawfile after "$LAB_DIR/after" "
		def lines: split(\"\n\") | map(select(. != \"\") | split(\" \") | {id: .[1], ms: (.[0] | tonumber), n: (.[2] | tonumber)});
		(\$before | lines | INDEX(.id)) as \$old
		| [\$after | lines[] | select(\$old[.id]) | (.n - \$old[.id].n) * 1e3 / (.ms - \$old[.id].ms)]
		| select(length > 0) | $1 | numbers" 2>/dev/null || :
}

scale_clients_together() { # ROUND COUNT
	local round=$1 count=$2 who bare
	who=$(scale_who "$count" program)
	scale_lab 2
	scale_daemons 2
	bare=$(scale_pss mrcd-a)
	rm -f "$LAB_DIR/before" "$LAB_DIR/after"
	scale_clients_run "mrcd-a mrcd-b" "$count" rate b || :
	bench_sample clients-rate "$who" "$round" "$(scale_clients_rates 'add / 1e3')"
	bench_sample clients-rate-cpu "$who" "$round" \
		"$(scale_calc '$a / 1e3 / $b' "$SCALE_CPU_NS" "$(scale_clients_rates "add * $BENCH_SECONDS")")"
	# each goes round its rings, and touches all of them in time
	bench_sample clients-memory-each "$who, sending" "$round" \
		"$(scale_calc '($a - $b) / $c / 1024' "$(scale_pss mrcd-a)" "$bare" "$count")"
	scale_clients_end "$count"
	rm -f "$LAB_DIR/before" "$LAB_DIR/after"
	scale_clients_run "mrcd-a mrcd-b" "$count" bw b --in-flight 2 || :
	bench_sample clients-bandwidth "$who" "$round" "$(scale_clients_rates 'add * 1048576 * 8e-9')"
	scale_clients_end "$count"
}

scale_clients_shaped() { # ROUND COUNT...
	local round=$1 count who index
	shift
	scale_lab 4 250mbit
	scale_daemons 4
	for count in "$@"; do
		who=$(scale_who "$count" program)
		rm -f "$LAB_DIR/before" "$LAB_DIR/after"
		scale_clients_run "mrcd-a mrcd-b" "$count" bw b --size 128KiB --in-flight 4 || :
		bench_sample clients-fair "$who" "$round" \
			"$(scale_clients_rates "select(length == $count) | pow(add; 2) / (length * (map(. * .) | add))")"
		scale_clients_end "$count"
	done

	# The greedy one comes last: its channels have the highest numbers.
	rm -f "$LAB_DIR/before" "$LAB_DIR/after"
	if scale_clients_greedy; then scale_clients_count "mrcd-a mrcd-b" 23 || :; fi
	bench_sample clients-fair-greedy "16 channels" "$round" \
		"$(scale_clients_rates 'select(length == 23) | (.[7:] | add) / ((.[:7] | add) / 7)')"
	scale_clients_end 8

	for count in 0 1 8; do
		who="beside $count"
		[ "$count" != 0 ] || who=alone
		for ((index = 1; index <= count; index++)); do
			lab_perf_spawn "client-$index" a bw b --duration 0 --interval 3600s --control none --quiet
		done
		scale_wait 30 scale_channels_are "$count" || bench_say "  not all bulk programs connected"
		[ "$count" = 0 ] || sleep 1
		scale_timed "mrcd-a mrcd-b" lat b
		bench_sample clients-beside-latency "$who" "$round" "$(scale_figure '.latency_ns.p99 / 1e3')"
		# 64 B * 8 * 1,000
		scale_timed "mrcd-a mrcd-b" rate b --pace 512kb/s
		bench_sample clients-beside-paced "$who" "$round" "$(scale_figure '.latency_ns.p99 / 1e3')"
		bench_sample clients-beside-median "$who" "$round" "$(scale_figure '.latency_ns.p50 / 1e3')"
		scale_clients_end "$count"
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
