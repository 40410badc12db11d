# shellcheck shell=bash
#
# lab.sh - hosts in network namespaces, joined by rails; to be sourced
#
#	. tests/lab/lab.sh
#	lab_up 2 4 1gbit              # hosts a and b, rails r0 to r3 of 1 Gb/s
#	lab_mrcd a; lab_mrcd b        # a daemon on each, configured for all rails
#	lab_cut 1 b                   # pull the cable of rail 1 at b; a sees its carrier go
#	lab_heal 1
#
# Two hosts are joined by one veth pair per rail. With three and more, each
# rail is a bridge in a namespace of its own, like a switch. The two ends of a
# pair get different interface indexes: with equal ones the kernel reports
# further losses of carrier up to a second late.
#
# Names carry a random id, so copies of a lab run side by side. Everything is
# undone when the shell ends, however it ends; what a killed shell (SIGKILL)
# left is swept by the next lab_up. Only processes started here are ended.
#
# With LAB_WIRE=relay the two hosts' rails are TUN devices joined by a process
# each (relay.c), which can delay, lose and double packets: lab_relay.
#
# With LAB_PLACE=guest hosts a and b are what tests/vm/rails.sh makes in a
# virtual machine, and their rails may be verbs rails (LAB_RAIL_TYPE).
#
# Files: $LAB_DIR/{log,host}/..., removed at the end, or kept and named when
# the script failed. Ownership: the shell that called lab_up owns the lab.

# shellcheck disable=SC2030,SC2031 # the sweep works on another lab in a subshell, on purpose
LAB_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
: "${MRC_BUILD:=$LAB_TOP/build}"
: "${MRCD:=$MRC_BUILD/daemon/mrcd}"
: "${MRCCTL:=$MRC_BUILD/tools/mrcctl}"
: "${MRC_PERF:=$MRC_BUILD/tools/mrc-perf}"
: "${LAB_RELAY:=$MRC_BUILD/tests/lab/relay}"
: "${LAB_KEEPER:=$MRC_BUILD/tests/lab/keeper}"
: "${LAB_SLOWNESS:=1}" # how many times longer to wait: sanitizers and valgrind are slow
: "${LAB_POLL:=0.02}" # seconds between two looks at a condition: looking costs processes
: "${LAB_MTU:=1500}"
: "${LAB_WIRE:=veth}"       # or relay, between two hosts: see lab_relay
: "${LAB_PLACE:=netns}"   # or guest, or devices (tests/vm/devices.sh)
: "${LAB_RAIL_TYPE:=tcp}" # as the configuration names it; several words: one for each rail
: "${LAB_RAIL_MORE:=}"    # more keys of each rail, as `, retry-count: 3`
: "${LAB_USER=root}"       # who a daemon is; "": the configuration says nothing (daemons that do not know it)
: "${LAB_KEY_GROUP:=}"    # may read the keys: of daemons that are not root
: "${LAB_KEPT:=}"         # not empty: daemons run under a keeper (keeper.c), and lab_restart works
: "${LAB_YAML:=}"         # the rest of the configuration where a test says nothing about it

LAB_DIR=
LAB_ID=
LAB_HOSTS=()
LAB_RAILS=0
LAB_RATE=

lab_say() { printf '%s\n' "$*" >&2; }

# Not a failure of what is tested: exit 77 is "skipped" to ctest.
lab_skip() {
	lab_say "skipped: $*"
	exit 77
}

lab_fail() {
	lab_say "FAILED: $*"
	exit 1
}

lab_now_ms() { printf '%s' "$((${EPOCHREALTIME/[.,]/} / 1000))"; }

# ---- up and down ----

lab_namespace() { printf 'mrc-%s-%s' "$LAB_ID" "$1"; }

# pid -> the time it was started, which tells it from a later process of the same number
lab_pid_started() {
	local stat
	# without a process of its own: it is asked often, and where the processor is emulated that costs
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
	stat=${stat##*) }
	# shellcheck disable=SC2086 # split on purpose
	set -- $stat
	# a zombie has ended
	[ "$1" != Z ] || return 1
	printf '%s' "${20}"
}

lab_needs() {
	local tool missing=()
	[ "$(id -u)" = 0 ] || lab_skip "the lab makes network namespaces, which takes root"
	for tool in ip tc nft jq; do
		command -v "$tool" >/dev/null || missing+=("$tool")
	done
	[ ${#missing[@]} = 0 ] || lab_skip "not installed: ${missing[*]} (tests/lab/deps installs them)"
	ip netns add "mrc-probe-$BASHPID" 2>/dev/null || lab_skip "this kernel or container lets nobody make network namespaces"
	ip netns del "mrc-probe-$BASHPID"
}

# Undo what labs left whose shell was killed before it could.
lab_sweep() {
	local dir pid started
	for dir in "${TMPDIR:-/tmp}"/mrc-lab.*/; do
		read -r pid started 2>/dev/null <"$dir/owner" || continue
		[ "$(lab_pid_started "$pid")" = "$started" ] && continue
		(
			# Whoever locks it has it to itself: labs that begin at the same time all sweep. A lock ends with who has it,
			# so what a killed sweep left is swept by the next.
			exec 9<"$dir" && flock -n 9 && [ -f "$dir/owner" ] || exit 0
			LAB_DIR=${dir%/}
			if [ -f "$LAB_DIR/state" ]; then # it was not killed in the middle of removing itself
				# shellcheck source=/dev/null
				. "$LAB_DIR/state"
				lab_undo
			fi
			rm -rf "$LAB_DIR"
		) 2>/dev/null
	done
}

lab_letter() {
	local letters=abcdefghijklmnopqrstuvw
	printf '%s' "${letters:$1:1}"
}

lab_save() {
	{
		declare -p LAB_ID LAB_RAILS LAB_RATE LAB_MTU LAB_WIRE
		declare -p LAB_HOSTS
	} >"$LAB_DIR/state"
}

# lab_up HOSTS RAILS [RATE]: RATE as tc writes it (1gbit); none: as fast as the machine
lab_up() {
	local host_count=$1 rail host index=0 owner
	LAB_RAILS=$2
	LAB_RATE=${3:-}
	lab_needs
	[ "$LAB_WIRE" = veth ] || lab_relay_check "$host_count"
	lab_sweep
	LAB_DIR=$(mktemp -d "${TMPDIR:-/tmp}/mrc-lab.XXXXXX")
	LAB_ID=${LAB_DIR##*.}
	if [ -z "${LAB_DETACHED:-}" ]; then # at once: what has no owner is swept by nobody
		owner=$BASHPID           # not inside $( ), which is a process of its own
		printf '%s %s\n' "$owner" "$(lab_pid_started "$owner")" >"$LAB_DIR/owner"
	fi
	mkdir "$LAB_DIR/log" "$LAB_DIR/host"
	: >"$LAB_DIR/pids"
	LAB_HOSTS=()
	for ((index = 0; index < host_count; index++)); do
		LAB_HOSTS+=("$(lab_letter "$index")")
	done
	lab_save
	if [ -z "${LAB_DETACHED:-}" ]; then
		trap lab_on_exit EXIT
		trap 'exit 129' HUP
		trap 'exit 130' INT
		trap 'exit 143' TERM
	fi

	for host in "${LAB_HOSTS[@]}"; do
		lab_host_make "$host"
		mkdir -p "$LAB_DIR/host/$host"
	done
	[ "$host_count" -le 2 ] || ip netns add "$(lab_namespace switch)"
	for ((rail = 0; rail < LAB_RAILS; rail++)); do
		lab_rail_make "$rail"
	done
}

lab_host_make() {
	ip netns add "$(lab_namespace "$1")"
	lab_ip "$1" link set lo up
	# what a user's Debian has
	lab_allow_cubic
	lab_sysctl "$1" net.ipv4.tcp_congestion_control cubic
	# answer for an address only on its own rail, as separate switches would have it
	lab_sysctl "$1" net.ipv4.conf.all.arp_ignore 1
	lab_sysctl "$1" net.ipv4.conf.all.arp_announce 2
	lab_sysctl "$1" net.ipv4.conf.all.rp_filter 0
}

# `ip` and `tc` as of a host, and what it calls its interface at a rail
lab_ip() { ip -n "$(lab_namespace "$1")" "${@:2}"; }
lab_tc() { tc -n "$(lab_namespace "$1")" "${@:2}"; }
lab_interface() { printf 'r%s' "$2"; } # HOST RAIL

lab_sysctl() {
	ip netns exec "$(lab_namespace "$1")" sysctl -q -w "$2=$3" 2>/dev/null ||
		lab_say "note: $2=$3 cannot be set here"
}

# A namespace may only choose what the machine allows; where cubic is not the default it may not be in that list.
lab_allow_cubic() {
	local file=/proc/sys/net/ipv4/tcp_allowed_congestion_control allowed
	allowed=$(cat "$file")
	case " $allowed " in *" cubic "*) return ;; esac
	printf "%s cubic\n" "$allowed" >"$file" 2>/dev/null || :
}

lab_address() { # HOST RAIL
	local index
	for index in "${!LAB_HOSTS[@]}"; do
		if [ "${LAB_HOSTS[index]}" = "$1" ]; then printf '10.%d.0.%d' $((10 + $2)) $((index + 1)); fi
	done
}

lab_rail_make() {
	local rail=$1 host index=0 switch
	if [ "$LAB_WIRE" = relay ]; then
		lab_relay_make "$rail"
	elif [ ${#LAB_HOSTS[@]} = 2 ]; then
		ip -n "$(lab_namespace a)" link add "r$rail" index $((1001 + rail)) mtu "$LAB_MTU" type veth \
			peer name "r$rail" index $((2001 + rail)) mtu "$LAB_MTU" netns "$(lab_namespace b)"
	elif [ ${#LAB_HOSTS[@]} -gt 2 ]; then
		switch=$(lab_namespace switch)
		ip -n "$switch" link add "r$rail" index $((100 + rail)) type bridge
		ip -n "$switch" link set "r$rail" up
		for host in "${LAB_HOSTS[@]}"; do
			index=$((index + 1000))
			ip -n "$(lab_namespace "$host")" link add "r$rail" index $((index + 1 + rail)) mtu "$LAB_MTU" \
				type veth peer name "r$rail$host" index $((index + 501 + rail)) mtu "$LAB_MTU" netns "$switch"
			ip -n "$switch" link set "r$rail$host" master "r$rail" up
			[ -z "$LAB_RATE" ] || lab_shape switch "r$rail$host" "$LAB_RATE"
		done
	else
		ip -n "$(lab_namespace a)" link add "r$rail" index $((1001 + rail)) mtu "$LAB_MTU" type veth \
			peer name "x$rail" index $((2001 + rail))
		ip -n "$(lab_namespace a)" link set "x$rail" up
	fi
	for host in "${LAB_HOSTS[@]}"; do
		lab_ip "$host" address add "$(lab_address "$host" "$rail")/24" dev "r$rail"
		lab_ip "$host" link set "r$rail" up
		[ -z "$LAB_RATE" ] || lab_shape "$host" "r$rail" "$LAB_RATE"
	done
}

# The burst holds one large offloaded packet with room to spare, and 2 ms at the rate, so that
# a late timer costs nothing; the queue is about what a switch port has.
lab_shape() { # HOST INTERFACE RATE
	local burst
	burst=$(lab_burst "$3")
	lab_tc "$1" qdisc replace dev "$2" root tbf rate "$3" burst "$burst" limit $((burst * 4))
}

lab_burst() { # RATE -> bytes
	local bits
	bits=$(lab_rate_bits "$1")
	printf '%d' $((bits / 8 / 500 > 131072 ? bits / 8 / 500 : 131072))
}

lab_rate_bits() {
	case $1 in
	*[!0-9]*mbit) ;;
	*mbit)
		printf '%s000000' "${1%mbit}"
		return
		;;
	esac
	case $1 in
	*gbit) awk -v r="${1%gbit}" 'BEGIN { printf "%.0f", r * 1e9 }' ;;
	*mbit) awk -v r="${1%mbit}" 'BEGIN { printf "%.0f", r * 1e6 }' ;;
	*kbit) awk -v r="${1%kbit}" 'BEGIN { printf "%.0f", r * 1e3 }' ;;
	*) lab_fail "a rate is written 1gbit, 200mbit or 64kbit, not '$1'" ;;
	esac
}

# Ends what was started and removes what was made; safe to call twice and on half a lab.
lab_undo() {
	local pid started host left
	local -a pids=()
	while read -r pid started _; do
		[ "$(lab_pid_started "$pid")" = "$started" ] && pids+=("$pid")
	done <"$LAB_DIR/pids"
	# and whatever those have started: only ours can be in our namespaces
	for host in "${LAB_HOSTS[@]}"; do
		while read -r pid; do pids+=("$pid"); done < <(lab_host_pids "$host")
	done
	if [ ${#pids[@]} -gt 0 ]; then
		kill -TERM "${pids[@]}" 2>/dev/null || :
		for ((left = 50; left > 0; left--)); do
			lab_any_alive "${pids[@]}" || break
			sleep 0.1
		done
		[ "$left" -gt 0 ] || kill -KILL "${pids[@]}" 2>/dev/null || :
	fi
	for host in "${LAB_HOSTS[@]}" switch; do
		lab_host_remove "$host"
	done
	: >"$LAB_DIR/pids"
}

lab_host_pids() { ip netns pids "$(lab_namespace "$1")" 2>/dev/null; }
lab_host_remove() {
	[ ! -e "/run/netns/$(lab_namespace "$1")" ] || ip netns del "$(lab_namespace "$1")" || :
}

lab_any_alive() {
	local pid
	for pid in "$@"; do
		lab_pid_started "$pid" >/dev/null && return 0
	done
	return 1
}

lab_down() {
	[ -n "$LAB_DIR" ] && [ -d "$LAB_DIR" ] || return 0
	lab_undo
	rm -rf "$LAB_DIR"
	LAB_DIR=
}

lab_on_exit() {
	local status=$? file
	trap '' INT TERM HUP
	trap - EXIT
	set +e
	[ -n "$LAB_DIR" ] && [ -d "$LAB_DIR" ] || exit "$status"
	if [ -z "${LAB_KEEP:-}" ] && { [ "$status" = 0 ] || [ "$status" = 77 ]; }; then
		lab_down
		exit "$status"
	fi
	lab_undo
	rm -f "$LAB_DIR/owner" "$LAB_DIR/state" "$LAB_DIR"/host/*/key
	for file in "$LAB_DIR"/log/*; do
		[ -s "$file" ] || continue
		lab_say "--- the end of ${file##*/}"
		tail -n "${LAB_TAIL:-15}" "$file" | cut -c 1-300 >&2
	done
	lab_say "--- all logs: $LAB_DIR/log"
	exit "$status"
}

# ---- processes ----

# In the foreground, on a host.
lab_exec() { ip netns exec "$(lab_namespace "$1")" "${@:2}"; }
# The same instead of this shell.
lab_become() { exec ip netns exec "$(lab_namespace "$1")" "${@:2}"; }

# lab_spawn NAME HOST COMMAND...: in the background; output to $LAB_DIR/log/NAME.{out,err}. The pid is in LAB_PID.
lab_spawn() {
	local name=$1 host=$2
	shift 2
	lab_become "$host" "$@" \
		>"$LAB_DIR/log/$name.out" 2>>"$LAB_DIR/log/$name.err" </dev/null &
	LAB_PID=$!
	lab_remember "$LAB_PID" "$name"
}

lab_remember() { # PID NAME
	printf '%s %s %s\n' "$1" "$(lab_pid_started "$1" || echo gone)" "$2" >>"$LAB_DIR/pids"
}

lab_pid() { # NAME -> the last pid of that name
	local pid name found=
	while read -r pid _ name; do
		if [ "$name" = "$1" ]; then found=$pid; fi
	done <"$LAB_DIR/pids"
	[ -n "$found" ] && printf '%s\n' "$found"
}

lab_alive() { lab_pid_started "$(lab_pid "$1")" >/dev/null; }
lab_ended() { ! lab_alive "$1"; }

# lab_kill NAME [SIGNAL]: signals one process of ours and waits until it has ended (not for STOP and CONT)
lab_kill() {
	local pid signal=${2:-KILL}
	pid=$(lab_pid "$1")
	# The shell says of each job that a signal has ended it; here that is no news.
	if [ "$signal" = KILL ]; then
		{
			kill -KILL "$pid" || :
			wait "$pid" || :
		} 2>/dev/null
		return
	fi
	kill "-$signal" "$pid" 2>/dev/null || :
	case $signal in STOP | CONT) return ;; esac
	lab_wait_for "$1 to end after SIG$signal" 20 lab_ended "$1"
	lab_reap "$pid"
}

# The exit status of a process that has ended, in LAB_STATUS; without the shell's own word on how it ended.
lab_reap() {
	LAB_STATUS=0
	{ wait "$1" || LAB_STATUS=$?; } 2>/dev/null
}

# lab_status NAME SECONDS: waits for the end of a spawned process and answers its exit status in LAB_STATUS
lab_status() {
	lab_wait_for "$1 to end by itself" "$2" lab_ended "$1"
	lab_reap "$(lab_pid "$1")"
}

# lab_wait_for DESCRIPTION SECONDS COMMAND...: asks until the command succeeds; failure ends the script
lab_wait_for() {
	local what=$1 end
	end=$(($(lab_now_ms) + $2 * 1000 * LAB_SLOWNESS))
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ "$(lab_now_ms)" -lt "$end" ] || lab_fail "waited in vain for $what"
		sleep "$LAB_POLL"
	done
}

# ---- faults ----

# lab_cut RAIL [HOST]: the end at HOST goes down (default: the last host), the others lose their carrier
lab_cut() {
	local host=${2:-${LAB_HOSTS[-1]}}
	if [ "$host" = both ]; then
		for host in "${LAB_HOSTS[@]}"; do lab_cut "$1" "$host"; done
		return
	fi
	# Also in a host's own hands: what goes down is the far end of its cable.
	lab_ip "$host" link set "r$1" down
}

lab_heal() {
	local host
	for host in "${LAB_HOSTS[@]}"; do
		lab_ip "$host" link set "r$1" up
	done
}

# lab_silence RAIL [in|out|both] [HOST]: packets vanish without any event. Directions as HOST (default: a) sees
# them: `in`, it hears nothing; `out`, nobody hears it; ARP is lost as well.
lab_silence() {
	local rail=$1 way=${2:-both} host=${3:-a} other
	if [ "$way" != out ]; then lab_deafen "$host" "$rail"; fi
	if [ "$way" != in ]; then
		for other in "${LAB_HOSTS[@]}"; do
			[ "$other" = "$host" ] || lab_deafen "$other" "$rail"
		done
	fi
}

lab_deafen() { # HOST RAIL
	lab_exec "$1" nft -f - <<-NFT
		table netdev silence_$1$2 {
			chain incoming {
				type filter hook ingress device "$(lab_interface "$1" "$2")" priority 0; policy drop;
			}
		}
	NFT
}

lab_unsilence() {
	local host
	for host in "${LAB_HOSTS[@]}"; do
		lab_exec "$host" nft delete table netdev "silence_$host$1" 2>/dev/null || :
	done
}

# lab_slow RAIL RATE: from now on, in both directions; without RATE, as it was at the start
lab_slow() {
	local host
	for host in "${LAB_HOSTS[@]}"; do
		if [ -n "${2:-$LAB_RATE}" ]; then
			lab_shape "$host" "$(lab_interface "$host" "$1")" "${2:-$LAB_RATE}"
		else
			lab_tc "$host" qdisc del dev "$(lab_interface "$host" "$1")" root
		fi
	done
}

# ---- rails whose cable is a process (LAB_WIRE=relay) ----

lab_relay_check() { # HOSTS
	case $LAB_WIRE in relay) ;; *) lab_fail "LAB_WIRE is veth or relay, not '$LAB_WIRE'" ;; esac
	[ "$1" = 2 ] || lab_fail "LAB_WIRE=relay joins two hosts, not $1"
	[ -x "$LAB_RELAY" ] || lab_skip "there is no relay at $LAB_RELAY: build the tests, or set MRC_BUILD"
	[ -c /dev/net/tun ] || lab_skip "there is no /dev/net/tun, which rails through a relay need"
}

lab_relay_make() { # RAIL
	local rail=$1 control=$LAB_DIR/host/relay-$1
	mkfifo "$control"
	"$LAB_RELAY" --end "$(lab_namespace a):r$rail:$((1001 + rail))" --end "$(lab_namespace b):r$rail:$((2001 + rail))" \
		--mtu "$LAB_MTU" ${LAB_RELAY_SPEED:+--speed "$LAB_RELAY_SPEED"} --seed "$((rail + 1))" --control "$control" \
		>"$LAB_DIR/log/relay-$rail.out" 2>"$LAB_DIR/log/relay-$rail.err" </dev/null &
	lab_remember "$!" "relay-$rail"
	lab_wait_for "the relay of rail $rail" 5 lab_relay_answered "$rail" 0
}

# LAB_RELAY_SPEED: in Mb/s, what the rails to be made say of their speed.
# lab_relay RAIL COMMAND...: tells a rail's relay, and prints its answer (JSON). As `delay 1ms loss 1% burst 8`,
# `way ab delay 5ms`, `clear`, `counters`: see relay.c.
lab_relay() {
	local rail=$1 lines
	shift
	lab_alive "relay-$rail" || lab_fail "rail $rail has no relay, or no longer"
	lines=$(wc -l <"$LAB_DIR/log/relay-$rail.out")
	printf '%s\n' "$*" >"$LAB_DIR/host/relay-$rail"
	lab_wait_for "the relay of rail $rail to answer" 5 lab_relay_answered "$rail" "$lines"
	tail -n 1 "$LAB_DIR/log/relay-$rail.out"
	! tail -n 1 "$LAB_DIR/log/relay-$rail.out" | grep -q '^{"error"' || return 1
}

lab_relay_answered() { [ "$(wc -l <"$LAB_DIR/log/relay-$1.out")" -gt "$2" ]; } # RAIL LINES

# lab_rate RAIL: what the rail is limited to now, or nothing
lab_rate() {
	lab_tc a qdisc show dev "$(lab_interface a "$1")" | awk '$2 == "tbf" { for (i = 1; i < NF; i++) if ($i == "rate") print $(i + 1) }'
}

# ---- the daemon ----

# lab_conf HOST [YAML]: the configuration of one host: every rail, every other host, one path for each pair of
# rails of the same number. YAML is added at its end.
lab_conf() {
	local host=$1 extra=${2:-$LAB_YAML} rail peer
	local -a types
	read -r -a types <<<"$LAB_RAIL_TYPE"
	cat <<-YAML
		host: $host
		runtime-dir: $LAB_DIR/host/$host
		key-file: $LAB_DIR/host/$host/key
		${LAB_USER:+user: $LAB_USER}
		listen-port: 7471
		rails:
	YAML
	for ((rail = 0; rail < LAB_RAILS; rail++)); do
		printf '  - {name: r%d, type: %s, interface: %s, address: %s%s%s}\n' "$rail" "${types[rail % ${#types[@]}]}" \
			"$(lab_interface "$host" "$rail")" "$(lab_address "$host" "$rail")" \
			"${LAB_RATE:+, speed: $(lab_speed "$LAB_RATE")}" "$LAB_RAIL_MORE"
	done
	if [ ${#LAB_HOSTS[@]} -gt 1 ] || [ -n "${LAB_PEERS:-}" ]; then echo 'peers:'; fi
	for peer in "${LAB_HOSTS[@]}"; do
		[ "$peer" != "$host" ] || continue
		printf '  - name: %s\n    paths:\n' "$peer"
		for ((rail = 0; rail < LAB_RAILS; rail++)); do
			printf '      - {rail: r%d, address: %s}\n' "$rail" "$(lab_address "$peer" "$rail")"
		done
	done
	# more peers of this test, already indented
	[ -z "${LAB_PEERS:-}" ] || printf '%s\n' "$LAB_PEERS"
	[ -z "$extra" ] || printf '%s\n' "$extra"
}

lab_speed() { # 1gbit -> 1Gb/s
	case $1 in
	*gbit) printf '%sGb/s' "${1%gbit}" ;;
	*mbit) printf '%sMb/s' "${1%mbit}" ;;
	*kbit) printf '%sKb/s' "${1%kbit}" ;;
	esac
}

lab_conf_write() { # HOST [YAML]
	local dir=$LAB_DIR/host/$1
	(umask 077 && printf '%s\n' "${LAB_KEY:-the key of lab $LAB_ID}" >"$dir/key")
	[ -z "$LAB_KEY_GROUP" ] || { chgrp "$LAB_KEY_GROUP" "$dir/key" && chmod 640 "$dir/key"; }
	lab_conf "$1" "${2:-}" >"$dir/mrcd.yaml"
}

# lab_mrcd HOST [YAML]: starts the daemon of a host and waits until it answers. LAB_WRAP is put before it (valgrind).
lab_mrcd() {
	local host=$1
	[ -x "$MRCD" ] || lab_fail "no daemon at $MRCD: build it, or set MRC_BUILD"
	lab_conf_write "$@"
	# shellcheck disable=SC2086 # words on purpose
	lab_spawn "mrcd-$host" "$host" ${LAB_KEPT:+"$LAB_KEEPER" "$LAB_DIR/host/$host/kept"} \
		${LAB_WRAP:-} "$MRCD" --config "$LAB_DIR/host/$host/mrcd.yaml"
	lab_wait_for "mrcd on $host to answer" 10 lab_mrcd_answers_or_ended "$host"
	lab_alive "mrcd-$host" || lab_fail "mrcd on $host ended at its start"
}

# lab_restart HOST...: as `systemctl restart`, of a daemon started with LAB_KEPT; of several hosts at once
lab_restart() {
	local host starts=()
	for host in "$@"; do
		starts+=("$(lab_kept_count "$host" ready)")
		kill -HUP "$(lab_pid "mrcd-$host")"
	done
	for host in "$@"; do
		lab_wait_for "mrcd on $host to be ready again" 20 lab_kept_above "$host" ready "${starts[0]}"
		starts=("${starts[@]:1}")
	done
}

# How often its keeper said so: start, ready, stored, removed, ended
lab_kept_count() { grep -c " $2 " "$LAB_DIR/log/mrcd-$1.out" || :; }
lab_kept_above() { [ "$(lab_kept_count "$1" "$2")" -gt "$3" ]; }
# The daemon behind its keeper
lab_kept_pid() { cat "$LAB_DIR/host/$1/kept.pid"; }

lab_mrcd_answers_or_ended() { lab_ended "mrcd-$1" || lab_mrcctl "$1" status --json; }

# Ends a daemon as an operator would; it must go without complaint.
lab_mrcd_stop() {
	lab_kill "mrcd-$1" TERM
	[ "$LAB_STATUS" = 0 ] || lab_fail "mrcd on $1 ended with status $LAB_STATUS when asked to end"
}

lab_mrcctl() { # HOST ARGUMENTS...
	local host=$1
	shift
	"$MRCCTL" --runtime-dir "$LAB_DIR/host/$host" "$@"
}

# mrc-perf on a host: in the foreground, or spawned under a name
lab_perf() { # HOST MODE ARGUMENTS...
	local host=$1
	shift
	# shellcheck disable=SC2086 # words on purpose
	lab_exec "$host" ${LAB_PERF_WRAP:-} "$MRC_PERF" "$@" --socket "$LAB_DIR/host/$host/mrcd.sock"
}

lab_perf_spawn() { # NAME HOST MODE ARGUMENTS...
	local name=$1 host=$2
	shift 2
	# shellcheck disable=SC2086 # words on purpose
	lab_spawn "$name" "$host" ${LAB_PERF_WRAP:-} "$MRC_PERF" "$@" --socket "$LAB_DIR/host/$host/mrcd.sock"
}

case $LAB_PLACE in
guest)
	# shellcheck source-path=SCRIPTDIR source=../vm/lab_guest.sh
	. "$LAB_TOP/tests/vm/lab_guest.sh"
	;;
devices)
	# shellcheck source-path=SCRIPTDIR source=../vm/lab_devices.sh
	. "$LAB_TOP/tests/vm/lab_devices.sh"
	;;
esac
