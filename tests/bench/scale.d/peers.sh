# shellcheck shell=bash disable=SC2016,SC2034,SC2154,SC2317 # one program with ../scale; $a and $b are jq's
# 1 to 64 peers of one daemon, by two rails, of which one is busy. Their daemons all live in the namespace of host b,
# each with an address of its own on both rails: the first is b itself, the others are p2, p3 and so on. On two
# processors their rest takes part of what the busy ones have, as it would not on hosts of their own: so throughput is
# shown, and what is judged is what the hub itself takes.

scale_peers() {
	local round count points last
	read -ra points <<<"$(scale_points "1 8" "1 2 4 8 16 32 64")"
	bench_row peers-rate "64 B messages to one peer while the others are connected and idle" "1000/s"
	bench_row peers-rate-cpu "the same, the hub's processor time" us/message
	bench_row peers-bandwidth "1 MiB messages to one peer while the others are connected and idle" Gb/s
	bench_row peers-bandwidth-cpu "the same, the hub's processor time" s/GiB
	bench_row peers-latency "8 B ping-pong with one peer while the others are connected and idle, p50" us
	bench_row peers-rest "the hub at rest" "% of a core"
	bench_row peers-rest-each "what an idle peer of two paths adds to that" "% of a core"
	bench_row peers-memory "Pss of the hub at rest" MiB
	bench_row peers-memory-each "memory of a peer of two paths" KiB
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		scale_peers_first_pss='' scale_peers_first_rest=''
		for count in "${points[@]}"; do
			scale_peers_point "$round" "$count"
		done
	done
	last=$(scale_who "${points[-1]}" peer)
	bench_ratio peers-rate "$last" "1 peer" -
	bench_ratio peers-bandwidth "$last" "1 peer" -
	bench_ratio peers-latency "$last" "1 peer" -
	bench_ratio peers-rate-cpu "$last" "1 peer" le 1.1
	bench_ratio peers-bandwidth-cpu "$last" "1 peer" le 1.1
	bench_aim peers-rest-each "$last" median le 0.1
}

scale_peers_point() { # ROUND COUNT
	local round=$1 count=$2 who pss rest row added=$(($2 - 1))
	who=$(scale_who "$count" peer)
	scale_lab 2
	if ! scale_peers_up "$count"; then
		bench_say "  not all of $count peers connected"
		for row in rest memory rate rate-cpu bandwidth bandwidth-cpu latency; do bench_sample "peers-$row" "$who" "$round" ''; done
		return
	fi
	rest=$(scale_idle mrcd-a)
	pss=$(scale_pss mrcd-a)
	bench_sample peers-rest "$who" "$round" "$rest"
	bench_sample peers-memory "$who" "$round" "$(scale_calc '$a / 1048576' "$pss")"
	lab_perf_spawn serve b serve --quiet
	scale_wait 10 bench_listens || :
	scale_crowd mrcd-a 1 1 rate b || :
	scale_crowd_rate peers-rate "$who" "$round"
	scale_crowd_end 1
	scale_crowd mrcd-a 1 1 bw b || :
	scale_crowd_bandwidth peers-bandwidth "$who" "$round" 1048576
	scale_crowd_end 1
	scale_timed lat b
	bench_sample peers-latency "$who" "$round" "$(scale_figure '.latency_ns.p50 / 1e3')"
	if [ "$count" = 1 ]; then
		scale_peers_first_pss=$pss scale_peers_first_rest=$rest
		return
	fi
	bench_sample peers-rest-each "$who" "$round" "$(scale_calc '($a - $b) / $c' "$rest" "$scale_peers_first_rest" "$added")"
	bench_sample peers-memory-each "$who" "$round" "$(scale_calc '($a - $b) / $c / 1024' "$pss" "$scale_peers_first_pss" "$added")"
}

scale_peers_up() { # COUNT -> whether all are connected
	local number
	local LAB_PEERS=''
	for ((number = 2; number <= $1; number++)); do
		LAB_PEERS+="${LAB_PEERS:+$'\n'}  - {name: p$number, paths: $(scale_peers_paths 100 "$number")}"
	done
	lab_mrcd a
	LAB_PEERS=''
	lab_mrcd b
	for ((number = 2; number <= $1; number++)); do scale_peers_start "$number"; done
	scale_peers_wanted=$((2 * $1))
	scale_wait 60 scale_peers_connected
}
scale_peers_connected() { [ "$(lab_mrcctl a peers --json | jq '[.[].paths_good] | add')" = "$scale_peers_wanted" ]; }

# Both ways to a host, given by the last part of its addresses.
scale_peers_paths() { # BASE NUMBER
	printf '[{rail: r0, address: 10.10.0.%d}, {rail: r1, address: 10.11.0.%d}]' $(($1 + $2)) $(($1 + $2))
}

scale_peers_start() { # NUMBER: one more daemon in b's namespace, which knows a alone
	local name=p$1 dir=$LAB_DIR/host/p$1 rail rails=''
	mkdir -p "$dir"
	cp -p "$LAB_DIR/host/b/key" "$dir/key"
	for rail in 0 1; do
		lab_ip b address add "10.$((10 + rail)).0.$((100 + $1))/24" dev "r$rail"
		rails+="${rails:+, }{name: r$rail, type: tcp, interface: r$rail, address: 10.$((10 + rail)).0.$((100 + $1))}"
	done
	cat >"$dir/mrcd.yaml" <<-YAML
		host: $name
		runtime-dir: $dir
		user: root
		key-file: $dir/key
		listen-port: 7471
		rails: [$rails]
		peers: [{name: a, paths: $(scale_peers_paths 0 1)}]
	YAML
	lab_spawn "mrcd-$name" b "$MRCD" --config "$dir/mrcd.yaml"
}
