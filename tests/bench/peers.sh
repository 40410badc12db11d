# shellcheck shell=bash
#
# peers.sh - how mrcd and each of its peers is run; to be sourced after bench.sh
#
#	peers_find                  # which programs are there; the reasons of those that are not in PEER_WHY
#	bench_lab 4 1gbit; peers_ready
#	peer_tcp 2 4                # Gb/s of one TCP stream on rail 2, over 4 seconds
#	peer_measure iperf3 rails-1m "TCP on rail 2" "$round" peer_tcp 2 4
#
# Each peer_... and mrc_... function runs from host a to host b and prints one
# number, or nothing where there was none: the program failed, hung or is not
# there. They are called in $( ), with `|| :` behind an assignment: what the lab
# waited for in vain then ends that measurement and not the script. Rates are
# Gb/s of payload as the receiver counts it. Seconds are whole, and those that
# are measured: each program runs a second longer, and its first second does not
# count.
#
# tests/bench/README.md has the command lines, and why these.

declare -A PEER_WHY=() # by peer: why it cannot be measured; empty when it can

peers_find() {
	PEER_WHY[iperf3]=$(peer_lacks iperf3 iperf3)
	PEER_WHY[mptcp]=${PEER_WHY[iperf3]:-$(peer_lacks mptcpize mptcpize)}
	if [ -z "${PEER_WHY[mptcp]}" ] && [ "$(cat /proc/sys/net/mptcp/enabled 2>/dev/null)" != 1 ]; then
		PEER_WHY[mptcp]="this kernel has no MPTCP"
	fi
	PEER_WHY[ucx]=$(peer_lacks ucx_perftest ucx-utils)
	PEER_WHY[sockperf]=$(peer_lacks sockperf sockperf)
	PEER_WHY[fabric]=$(peer_lacks fi_pingpong libfabric-bin)
	PEER_WHY[gnuplot]=$(peer_lacks gnuplot gnuplot-nox)
	PEER_WHY[mrcd]=
}

peer_lacks() { # PROGRAM PACKAGE
	command -v "$1" >/dev/null || printf 'no %s here (Debian package %s)' "$1" "$2"
}

# peer_measure PEER ROW WHO ROUND COMMAND...: a sample of the row; a peer that is not here is said once
peer_measure() {
	local why=${PEER_WHY[$1]} row=$2 who=$3 round=$4
	shift 4
	if [ -z "$why" ]; then
		bench_sample "$row" "$who" "$round" "$("$@")"
	elif [ "$round" = 1 ]; then
		bench_absent "$row" "$who" "$why"
	fi
}

# What jq makes of an expression; nothing when a number in it is missing.
peer_calc() { jq -n "$1" 2>/dev/null || :; }

# The lab's part: MPTCP learns the addresses of b's other rails from b, and its routes do the rest.
peers_ready() {
	local rail host
	[ -z "${PEER_WHY[mptcp]}" ] || return 0
	for ((rail = 1; rail < LAB_RAILS; rail++)); do
		lab_ip b mptcp endpoint add "$(lab_address b "$rail")" dev "$(lab_interface b "$rail")" signal ||
			PEER_WHY[mptcp]="the kernel took no MPTCP endpoint"
	done
	for host in a b; do lab_ip "$host" mptcp limits set subflows 8 add_addr_accepted 8 || :; done
}

# ---- servers for one measurement ----

# A port that no earlier measurement has in TIME_WAIT.
peer_port() { printf '%d' $((10000 + (RANDOM * 32768 + RANDOM) % 20000)); }
peer_listens() { [ -n "$(lab_exec b ss -Hltn "sport = :$1")" ]; }

# peer_serve NAME PORT COMMAND...: on b, until it listens
peer_serve() {
	local name=$1 port=$2
	shift 2
	lab_spawn "$name" b "$@"
	lab_wait_for "$name to listen" 5 peer_listens "$port"
}

# It serves one client and ends by itself; when that failed it is ended.
peer_unserve() { # NAME
	local pid end
	pid=$(lab_pid "$1") || return 0
	end=$(($(lab_now_ms) + 1000))
	while lab_pid_started "$pid" >/dev/null && [ "$(lab_now_ms)" -lt "$end" ]; do sleep 0.02; done
	lab_pid_started "$pid" >/dev/null || return 0
	lab_kill "$1" KILL
}

# ---- mrcd ----

# Messages under way: enough to fill every rail, few enough that the memory they land in is soon all touched.
peer_in_flight() { # SIZE-BYTES
	if [ "$1" -gt 1048576 ]; then
		printf '%d' $((67108864 / $1))
	elif [ "$1" -ge 1048576 ]; then
		printf 16
	elif [ "$1" -ge 16384 ]; then
		printf 64
	else
		printf 256
	fi
}

mrc_bw() { # SIZE-BYTES SECONDS [ARGUMENT...]
	local size=$1 seconds=$2
	shift 2
	mrc_run bw "$seconds" --size "$size" --in-flight "$(peer_in_flight "$size")" "$@" | mrc_rate "$seconds" '.bytes * 8'
}

mrc_messages() { # SIZE-BYTES SECONDS [ARGUMENT...]: messages per second, in thousands
	local size=$1 seconds=$2
	shift 2
	mrc_run rate "$seconds" --size "$size" "$@" | mrc_rate "$seconds" '.messages * 1e6'
}

mrc_run() { # MODE SECONDS ARGUMENT...
	local mode=$1 seconds=$2
	shift 2
	lab_perf a "$mode" b --duration "$((seconds + 1))s" --interval 100ms --json --quiet "$@" 2>>"$LAB_DIR/log/perf.err" || :
}

# From the second second on, and not what is answered after the end.
mrc_rate() { # SECONDS COUNT-OF-AN-INTERVAL, per nanosecond
	jq "[.series[] | select(.t_ns > 1e9 and .t_ns <= ($1 + 1) * 1e9 + 1e8)] | select(length > 1)
		| (.[1:] | map($2) | add) / (.[-1].t_ns - .[0].t_ns)" 2>/dev/null || :
}

# A rail gets slow while mrcd sends: what arrives from one second after the change on, over SECONDS.
mrc_slowed() { # RAIL RATE SECONDS
	local changed ended
	rm -f "$LAB_DIR/log/slowed.err" # lab_spawn adds to it, and its lines are counted
	lab_perf_spawn slowed a bw b --size 1MiB --duration 0 --interval 20ms --json
	lab_wait_for "a second and a half of mrc-perf" 10 mrc_intervals_are 75
	lab_slow "$1" "$2"
	# its progress lines tell its clock; one that is late leaves mrcd less time, not more
	changed=$(mrc_intervals)
	sleep $(($3 + 1)) # what is measured
	ended=$(mrc_intervals)
	lab_kill slowed TERM
	jq "[.series[] | select(.t_ns >= $changed * 2e7 + 1e9 and .t_ns <= $ended * 2e7)] | select(length > 1)
		| (.[1:] | map(.bytes) | add) * 8 / (.[-1].t_ns - .[0].t_ns)" "$LAB_DIR/log/slowed.out" 2>/dev/null || :
}
mrc_intervals() { grep -cE '^ *[0-9]' "$LAB_DIR/log/slowed.err" || :; }
mrc_intervals_are() { [ "$(mrc_intervals)" -ge "$1" ]; }

# ---- TCP and MPTCP, by iperf3 ----

# One stream on one rail.
peer_tcp() { # RAIL SECONDS [OPTION...]
	peer_iperf "$1" "$2" iperf3 "${@:3}"
}

# One stream on each rail, all at the same time, each with processes of its own: the sum.
peer_tcp_all() { # SECONDS [OPTION...]
	peer_iperf "$(seq -s ' ' 0 $((LAB_RAILS - 1)))" "$1" iperf3 "${@:2}"
}

# One stream over all rails.
peer_mptcp() { # SECONDS [OPTION...]
	peer_iperf 0 "$1" mptcpize run iperf3 "${@:2}"
}

# peer_iperf RAILS SECONDS COMMAND...: to the address of each of these rails at once, the sum. COMMAND is iperf3, or
# mptcpize run iperf3, with more options of the client behind it; the server is run by the same.
peer_iperf() {
	local rails rail seconds=$2 port wrap=() pids=()
	read -ra rails <<<"$1"
	shift 2
	while [ "$1" != iperf3 ]; do wrap+=("$1") && shift; done
	shift
	port=$(peer_port)
	# all servers before the first client: those who are measured together begin together
	for rail in "${rails[@]}"; do
		peer_serve "iperf-$rail" $((port + rail)) "${wrap[@]}" iperf3 -s -1 -p $((port + rail))
	done
	for rail in "${rails[@]}"; do
		lab_exec a timeout $((seconds + 15)) "${wrap[@]}" iperf3 -c "$(lab_address b "$rail")" -p $((port + rail)) \
			-O 1 -t "$seconds" -J "$@" >"$LAB_DIR/iperf.$rail" &
		pids+=($!)
	done
	wait "${pids[@]}" || :
	jq '.end.sum_received.bits_per_second / 1e9' "${rails[@]/#/$LAB_DIR/iperf.}" 2>/dev/null | peer_sum ${#rails[@]} - || :
	for rail in "${rails[@]}"; do peer_unserve "iperf-$rail"; done
}

# The sum of so many numbers; nothing when one is missing.
peer_sum() { # COUNT FILE...
	cat "${@:2}" | jq -s "select(length == $1 and all(type == \"number\")) | add" 2>/dev/null || :
}

# The same as mrc_slowed. iperf3 has its clock for itself: it is taken to start when its process does, which leaves MPTCP
# some milliseconds more.
peer_mptcp_slowed() { # RAIL RATE SECONDS
	local total=$(($3 + 4)) port started changed
	port=$(peer_port)
	peer_serve slowed-mptcp "$port" mptcpize run iperf3 -s -1 -J -i 0.1 -p "$port"
	lab_spawn slowed-client a timeout $((total + 15)) mptcpize run iperf3 -c "$(lab_address b 0)" -p "$port" -t "$total" -i 0.1 -J
	started=$(lab_now_ms)
	sleep 1.5 # how long all rails are fast
	lab_slow "$1" "$2"
	changed=$(($(lab_now_ms) - started))
	lab_status slowed-client $((total + 20))
	peer_unserve slowed-mptcp
	jq "[.intervals[].sum | select(.start >= $changed / 1e3 + 1 and .end <= $total)] | select(length > 1)
		| (map(.bytes) | add) * 8e-9 / (.[-1].end - .[0].start)" "$LAB_DIR/log/slowed-mptcp.out" 2>/dev/null || :
}

# ---- UCX ----

# peer_ucx RAILS OUTSTANDING SIZE-BYTES SECONDS: messages per second of tag_bw. It is told how many messages to send, not
# for how long: what it reached before in this lab tells that. Its progress lines, one a second, tell the first second
# apart from the rest; -w cannot, it is cut down to a tenth of the messages.
peer_ucx() {
	local known=$LAB_DIR/ucx.$1.$2.$3 count
	[ -s "$known" ] || peer_ucx_soon "$1" "$2" "$3" >/dev/null
	count=$(peer_ucx_count "$known" "$4 + 1.3")
	[ -n "$count" ] || return 0
	peer_ucx_run "$1" "$2" "$3" "$count" "$4" >"$known.now"
	[ -s "$known.now" ] || return 0
	cp "$known.now" "$known"
	cat "$known"
}

# The same from half a second, with what UCX begins with.
peer_ucx_soon() { # RAILS OUTSTANDING SIZE-BYTES
	local known=$LAB_DIR/ucx.$1.$2.$3 count=1000
	[ "$3" -le 65536 ] || count=$((1 + 67108864 / $3))
	# so few are soon sent, and tell how many take that long
	peer_ucx_run "$1" "$2" "$3" "$count" 5 >"$known"
	count=$(peer_ucx_count "$known" 0.5)
	[ -z "$count" ] || peer_ucx_run "$1" "$2" "$3" "$count" 5 >"$known"
	cat "$known"
}

peer_ucx_count() { # FILE SECONDS
	[ ! -s "$1" ] || peer_calc "[($(cat "$1")) * ($2) | floor, 4] | max"
}

peer_ucx_run() { # RAILS OUTSTANDING SIZE COUNT SECONDS
	local port rail devices=r0
	port=$(peer_port)
	for ((rail = 1; rail < $1; rail++)); do devices=$devices,$(lab_interface a "$rail"); done
	local setting=(env UCX_TLS=tcp "UCX_NET_DEVICES=$devices" "UCX_MAX_RNDV_RAILS=$1" "UCX_MAX_EAGER_RAILS=$1")
	peer_serve ucx "$port" "${setting[@]}" ucx_perftest -p "$port"
	lab_exec a timeout $(($5 * 4 + 20)) "${setting[@]}" ucx_perftest "$(lab_address b 0)" -p "$port" -t tag_bw \
		-s "$3" -n "$4" -w 100 -O "$2" -v 2>>"$LAB_DIR/log/ucx.err" | awk -F, '
		/^ *(\[thread 0\] *)?[0-9]+,[0-9.]+,/ {
			sub(/^ *(\[thread 0\])? */, "")
			messages[++lines] = $1
			seconds[lines] = $1 * $4 / 1e6
		}
		END {
			first = lines > 2 || seconds[lines] > 1.5 && lines > 1 ? 1 : 0
			if (lines && seconds[lines] > seconds[first])
				print (messages[lines] - messages[first]) / (seconds[lines] - seconds[first])
		}' || :
	peer_unserve ucx
}

# At least what ucx_perftest has by itself (32).
peer_ucx_outstanding() { # SIZE
	local count
	count=$(peer_in_flight "$1")
	printf '%d' $((count > 32 ? count : 32))
}

peer_ucx_bw() { # SIZE SECONDS
	local rate
	rate=$(peer_ucx "$LAB_RAILS" "$(peer_ucx_outstanding "$1")" "$1" "$2") || :
	[ -z "$rate" ] || peer_calc "$rate * $1 * 8e-9"
}

peer_ucx_messages() { # RAILS OUTSTANDING SIZE SECONDS: messages per second, in thousands
	local rate
	rate=$(peer_ucx "$@") || :
	[ -z "$rate" ] || peer_calc "$rate / 1000"
}
