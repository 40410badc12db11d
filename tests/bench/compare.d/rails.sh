# shellcheck shell=bash
#
# rails - limited rails: what part of them arrives? Even ones, uneven ones, one
# dead, one that gets slow; and the picture of throughput over message size
#
# The sum of the rails is what one TCP stream reaches on each of them, alone.

family_rails() {
	rails_even
	rails_sizes # in the same lab
	rails_uneven
}

# TCP on one rail needs no long time: its rate is the rail's.
rails_tcp_seconds() { printf '%d' $(((BENCH_SECONDS + 1) / 2)); }

# One stream on each rail, one after the other: leaves their rates in rails_tcp, and their sum in rails_sum.
rails_tcp_each() {
	local rail
	rails_tcp=() rails_sum=
	[ -z "${PEER_WHY[iperf3]}" ] || return 0
	for ((rail = 0; rail < LAB_RAILS; rail++)); do
		rails_tcp[rail]=$(peer_tcp "$rail" "$(rails_tcp_seconds)") || :
	done
	rails_sum=$(printf '%s\n' "${rails_tcp[@]}" | peer_sum "$LAB_RAILS" -) || :
}

# ---- four rails of 1 Gb/s ----

rails_even() {
	local round size row
	bench_lab 4 1gbit
	peers_ready
	bench_row rails-1m "four rails of 1 Gb/s, messages of 1 MiB" Gb/s
	bench_row rails-32k "four rails of 1 Gb/s, messages of 32 KiB" Gb/s
	bench_row rails-dead "one of four rails dead, messages of 1 MiB" Gb/s
	bench_row rails-slow "a rail gets ten times slower; from 1 s after that on" Gb/s
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		rails_tcp_each
		for row in rails-1m rails-32k; do
			peer_measure iperf3 "$row" "sum of TCP alone" "$round" printf '%s' "$rails_sum"
		done
		rails_healthy=$(mrc_bw 1048576 "$BENCH_SECONDS") || :
		bench_sample rails-1m mrcd "$round" "$rails_healthy"
		peer_measure iperf3 rails-1m "TCP on all at once" "$round" peer_tcp_all "$BENCH_SECONDS"
		rails_mptcp=
		[ -n "${PEER_WHY[mptcp]}" ] || rails_mptcp=$(peer_mptcp "$BENCH_SECONDS") || :
		peer_measure mptcp rails-1m MPTCP "$round" printf '%s' "$rails_mptcp"
		peer_measure ucx rails-1m UCX "$round" peer_ucx_bw 1048576 "$BENCH_SECONDS"
		size=32768
		bench_sample rails-32k mrcd "$round" "$(mrc_bw $size "$BENCH_SECONDS")"
		peer_measure mptcp rails-32k MPTCP "$round" peer_mptcp "$BENCH_SECONDS" -l $size
		peer_measure ucx rails-32k UCX "$round" peer_ucx_bw $size "$BENCH_SECONDS"
		rails_dead "$round"
		rails_slow "$round"
	done
	bench_ratio rails-1m mrcd "sum of TCP alone" ge 0.985
	rails_shown rails-1m "sum of TCP alone" "TCP on all at once" MPTCP UCX
	bench_ratio rails-32k mrcd "sum of TCP alone" ge 0.96
	rails_shown rails-32k "sum of TCP alone" MPTCP UCX
	bench_ratio rails-dead mrcd "mrcd, all four" ge 0.98 1.33333333
	bench_ratio rails-dead MPTCP "MPTCP, all four" - null 1.33333333
	bench_ratio rails-slow mrcd "what the rails offer" ge 0.95
	bench_ratio rails-slow MPTCP "what the rails offer" -
}

rails_shown() { # ROW OTHER WHO...
	local who
	for who in "${@:3}"; do bench_ratio "$1" "$who" "$2" -; done
}

rails_dead() { # ROUND
	lab_cut 3
	bench_paths_are 3
	bench_sample rails-dead mrcd "$1" "$(mrc_bw 1048576 "$BENCH_SECONDS")"
	peer_measure mptcp rails-dead MPTCP "$1" peer_mptcp "$BENCH_SECONDS"
	lab_heal 3
	bench_paths_are 4
	bench_sample rails-dead "mrcd, all four" "$1" "$rails_healthy"
	peer_measure mptcp rails-dead "MPTCP, all four" "$1" printf '%s' "${rails_mptcp:-}"
}

# What the rails offer: TCP alone on the three that stay as they are, of this round, and on the slow one.
rails_slow() { # ROUND
	local rate=100mbit
	bench_sample rails-slow mrcd "$1" "$(mrc_slowed 0 $rate "$BENCH_SECONDS")"
	if [ -z "${PEER_WHY[iperf3]}" ]; then
		lab_slow 0 $rate
		rails_tcp[0]=$(peer_tcp 0 "$(rails_tcp_seconds)") || :
		rails_sum=$(printf '%s\n' "${rails_tcp[@]}" | peer_sum "$LAB_RAILS" -) || :
	fi
	lab_slow 0
	peer_measure iperf3 rails-slow "what the rails offer" "$1" printf '%s' "$rails_sum"
	peer_measure mptcp rails-slow MPTCP "$1" peer_mptcp_slowed 0 $rate "$BENCH_SECONDS"
	lab_slow 0
	bench_paths_are 4
}

# ---- rails of 2000, 1000, 500 and 250 Mb/s ----

rails_uneven() {
	local round rail rates=(2000 1000 500 250)
	lab_down
	lab_up 2 ${#rates[@]}
	for rail in "${!rates[@]}"; do lab_slow "$rail" "${rates[rail]}mbit"; done
	bench_daemons ${#rates[@]}
	peers_ready
	bench_row rails-uneven "rails of ${rates[*]} Mb/s, messages of 1 MiB" Gb/s
	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		rails_tcp_each
		peer_measure iperf3 rails-uneven "sum of TCP alone" "$round" printf '%s' "$rails_sum"
		bench_sample rails-uneven mrcd "$round" "$(mrc_bw 1048576 "$BENCH_SECONDS")"
		lab_mrcctl a drain r3 >/dev/null
		bench_paths_are 3
		bench_sample rails-uneven "mrcd, slowest drained" "$round" "$(mrc_bw 1048576 "$BENCH_SECONDS")"
		lab_mrcctl a undrain r3 >/dev/null
		bench_paths_are 4
		peer_measure mptcp rails-uneven MPTCP "$round" peer_mptcp "$BENCH_SECONDS"
		peer_measure ucx rails-uneven UCX "$round" peer_ucx_bw 1048576 "$BENCH_SECONDS"
	done
	bench_ratio rails-uneven mrcd "sum of TCP alone" ge 0.96
	bench_ratio rails-uneven mrcd "mrcd, slowest drained" ge 1
	rails_shown rails-uneven "sum of TCP alone" MPTCP UCX
}

# ---- throughput over message size ----

# One measurement each, for a picture and not for the report: size.tsv, size.svg and size.png.
rails_sizes() {
	local size sizes=(64 256 1024 4096 16384 65536 262144 1048576 4194304 16777216) seconds=2 table=$BENCH_OUT/size.tsv
	if [ -n "$BENCH_QUICK" ]; then
		sizes=(64 8192 1048576)
		seconds=1
	fi
	bench_say "throughput over message size, Gb/s"
	bench_say "$(printf '  %9s %9s %9s %9s %9s' bytes mrcd UCX MPTCP TCP)"
	printf '# bytes\tmrcd\tUCX\tMPTCP\tTCP on all at once; Gb/s, four rails of 1 Gb/s\n' >"$table"
	for size in "${sizes[@]}"; do
		{
			printf '%d' "$size"
			rails_point mrcd mrc_bw "$size" "$seconds"
			rails_point ucx peer_ucx_bw "$size" "$seconds"
			# iperf3 writes at most 1 MiB at a time
			if [ "$size" -gt 1048576 ]; then
				printf '\t-\t-'
			else
				rails_point mptcp peer_mptcp "$seconds" -l "$size"
				rails_point iperf3 peer_tcp_all "$seconds" -l "$size"
			fi
			printf '\n'
		} >>"$table"
		bench_say "$(tail -n 1 "$table" | awk '{ printf "  %9d %9.6s %9.6s %9.6s %9.6s", $1, $2, $3, $4, $5 }')"
	done
	rails_draw "pngcairo size 1100,560 enhanced font 'sans,12' background rgb 'white'" size.png
	rails_draw "svg size 1100,560 enhanced font 'sans,12' background rgb 'white'" size.svg
}

rails_point() { # PEER COMMAND...
	local value=
	[ -n "${PEER_WHY[$1]}" ] || value=$("${@:2}") || :
	printf '\t%s' "${value:--}"
}

rails_draw() { # TERMINAL FILE
	if [ -n "${PEER_WHY[gnuplot]}" ]; then
		bench_say "  no $2: ${PEER_WHY[gnuplot]}"
		return
	fi
	LC_ALL=C.UTF-8 gnuplot <<-PLOT || bench_say "  gnuplot could not draw $2"
		set terminal $1
		set output '$BENCH_OUT/$2'
		set encoding utf8
		set datafile missing '-'
		set title 'Throughput over message size, four rails of 1 Gb/s' font ',15' offset 0,0.3
		set border 3 lw 1 lc rgb '#666666'
		set tics nomirror out textcolor rgb '#333333'
		set grid ytics lc rgb '#dddddd' lw 1
		set logscale x 4
		set xrange [48:22000000]
		set xtics ('64 B' 64, '256 B' 256, '1 KiB' 1024, '4 KiB' 4096, '16 KiB' 16384, '64 KiB' 65536, \
			'256 KiB' 262144, '1 MiB' 1048576, '4 MiB' 4194304, '16 MiB' 16777216)
		set yrange [0:4.2]
		set ytics 1
		set xlabel 'size of a message (TCP, MPTCP: of a write)'
		set ylabel 'Gb/s of payload'
		set key outside right center reverse Left samplen 2 spacing 1.3
		set style line 1 lw 2.5 pt 7 ps 1.1 lc rgb '#0072b2'
		set style line 2 lw 2 pt 5 ps 1 lc rgb '#d55e00'
		set style line 3 lw 2 pt 9 ps 1.1 lc rgb '#009e73'
		set style line 4 lw 1.5 pt 6 ps 1 lc rgb '#888888' dt 2
		table = '$BENCH_OUT/size.tsv'
		plot table using 1:2 with linespoints ls 1 title 'mrcd', \
			table using 1:3 with linespoints ls 2 title 'UCX', \
			table using 1:4 with linespoints ls 3 title 'MPTCP', \
			table using 1:5 with linespoints ls 4 title 'TCP, one stream a rail'
	PLOT
}
