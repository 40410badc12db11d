# shellcheck shell=bash
#
# rails.sh - two hosts joined by rails, in one network namespace; to be sourced, as root of a machine of one's own
#
#	. tests/vm/rails.sh
#	rails_make 4 rxe              # rails 0 to 3, each with a soft-RoCE device at either end
#	rails_cut 1 0                 # host 0's cable of rail 1 is out; host 1 notices nothing
#	rails_heal_all
#
# Soft-RoCE sends and receives in the first network namespace only, so both hosts live there. Host H (0 or 1) has at
# rail R the interface hHrR, the address 10.(10+R).0.(H+1), the device rxeHR or siwHR, and its IPv4 address in a GID
# (soft-RoCE: index 1). Each interface is cabled to a port sHrR of a bridge swR, so that one cable can be pulled
# without the other end's noticing; with RAILS_DIRECT=1 to the other interface instead. Policy routing sends what one
# host sends to the other over the rail instead of over lo: the kernel knows both addresses as its own.
#
# A cable is pulled at the bridge. An interface that is set down (rails_admin_down) loses its route and neighbour,
# and a CM message sent meanwhile ends soft-RoCE's connection manager for good, until the device is made again.

: "${RAILS_DIRECT:=}"
: "${RAILS_MTU:=4200}" # room for an RDMA MTU of 4096

rails_count=0
rails_kind=none

rails_interface() { printf 'h%dr%d' "$1" "$2"; }                  # HOST RAIL
rails_device() { printf '%s%d%d' "$rails_kind" "$1" "$2"; }       # HOST RAIL
rails_address() { printf '10.%d.0.%d' $((10 + $2)) $(($1 + 1)); } # HOST RAIL
rails_mac() { printf '02:00:00:00:%02x:%02x' "$1" "$2"; }         # HOST RAIL
rails_table() { printf '%d' $((100 + $2 * 2 + $1)); }             # HOST RAIL
# What carries the cable at a host's far end.
rails_port() { # HOST RAIL
	if [ -n "$RAILS_DIRECT" ]; then rails_interface $((1 - $1)) "$2"; else printf 's%dr%d' "$1" "$2"; fi
}

# rails_make COUNT [none|rxe|siw]
rails_make() {
	local host rail file peer
	rails_count=$1
	rails_kind=${2:-none}
	modprobe -a veth bridge sch_netem sch_tbf
	for file in /proc/sys/net/ipv4/conf/{all,default}; do
		echo 0 >"$file/rp_filter"
		echo 1 >"$file/accept_local"
		echo 1 >"$file/arp_ignore"
		echo 2 >"$file/arp_announce"
	done
	for file in /proc/sys/net/ipv6/conf/{all,default}; do echo 1 >"$file/disable_ipv6"; done
	{
		echo "link set lo up"
		echo "rule add pref 32765 lookup local"
		echo "rule del pref 0"
		for ((rail = 0; rail < rails_count; rail++)); do
			if [ -n "$RAILS_DIRECT" ]; then
				echo "link add h0r$rail index $((1001 + rail)) mtu $RAILS_MTU address $(rails_mac 0 "$rail") type veth" \
					"peer name h1r$rail index $((2001 + rail)) mtu $RAILS_MTU address $(rails_mac 1 "$rail")"
			else
				echo "link add sw$rail type bridge"
				echo "link set sw$rail mtu $RAILS_MTU up"
				for host in 0 1; do
					echo "link add h${host}r$rail index $(((host + 1) * 1000 + 1 + rail)) mtu $RAILS_MTU" \
						"address $(rails_mac "$host" "$rail") type veth" \
						"peer name s${host}r$rail index $(((host + 1) * 1000 + 501 + rail)) mtu $RAILS_MTU"
					echo "link set s${host}r$rail master sw$rail up"
				done
			fi
			for host in 0 1; do
				peer=$(rails_address $((1 - host)) "$rail")
				echo "rule add pref $((900 + $(rails_table "$host" "$rail"))) iif lo to $peer lookup $(rails_table "$host" "$rail")"
				echo "address add $(rails_address "$host" "$rail")/24 dev h${host}r$rail"
				rails_up_lines "$host" "$rail"
			done
		done
	} | ip -batch -
	rails_unsilence_all
	[ "$rails_kind" = none ] || rails_devices_make
}

# A chain on lo that lets everything pass is always there. With the first chain of its kind, and with the last, the
# kernel rewrites the code that every packet runs through (static keys); the emulator has been seen to run the old
# code for ever after that, which is int3: both processors hang.
rails_unsilence_all() {
	nft -f - <<-NFT
		flush ruleset
		table netdev always {
			chain incoming {
				type filter hook ingress device "lo" priority 0; policy accept;
			}
		}
	NFT
}

# What an interface that was down has lost. The neighbour is permanent: the kernel would ask for it only when the
# first queue pair needs it, and that takes a second.
rails_up_lines() { # HOST RAIL
	local peer
	peer=$(rails_address $((1 - $1)) "$2")
	echo "link set h$1r$2 up"
	echo "route replace $peer dev h$1r$2 src $(rails_address "$1" "$2") table $(rails_table "$1" "$2")"
	echo "neighbour replace $peer lladdr $(rails_mac $((1 - $1)) "$2") dev h$1r$2 nud permanent"
}

rails_devices_make() {
	local host rail
	case $rails_kind in
	rxe) modprobe -a crc32_generic ib_uverbs rdma_ucm rdma_rxe ;;
	siw) modprobe -a crc32c_generic libcrc32c ib_uverbs rdma_ucm siw ;;
	esac
	for ((rail = 0; rail < rails_count; rail++)); do
		for host in 0 1; do rails_device_add "$host" "$rail"; done
	done
	for host in /dev/infiniband/*; do chmod 0666 "$host"; done
}

rails_device_add() { rdma link add "$(rails_device "$1" "$2")" type "$rails_kind" netdev "h$1r$2"; } # HOST RAIL
rails_device_del() { rdma link del "$(rails_device "$1" "$2")"; }

# ---- what can befall a rail; HOST is whose end ----

rails_cut() { ip link set "$(rails_port "$2" "$1")" down; } # RAIL HOST: that host's cable is pulled
rails_plug() { ip link set "$(rails_port "$2" "$1")" up; }  # RAIL HOST
rails_both() { printf "link set %s $2\n" "$(rails_port 0 "$1")" "$(rails_port 1 "$1")" | ip -batch -; }
rails_cut_both() { rails_both "$1" down; }                   # RAIL
rails_plug_both() { rails_both "$1" up; }                    # RAIL
rails_admin_down() { ip link set "h$2r$1" down; }           # RAIL HOST
rails_admin_up() { rails_up_lines "$2" "$1" | ip -batch -; } # RAIL HOST

# rails_netem RAIL HOST WHAT...: to what that host sends: `delay 5ms`, `delay 5ms 4ms`, `loss 1%`,
# `delay 2ms reorder 25%`; `loss 100%` is silence one way. The switch does it, so that the host's own interface may
# be shaped.
rails_netem() {
	# the limit: what is held back must fit
	tc qdisc replace dev "$(rails_netem_at "$2" "$1")" root netem limit 20000 "${@:3}"
}
rails_netem_off() { tc qdisc del dev "$(rails_netem_at "$2" "$1")" root 2>/dev/null || :; } # RAIL HOST
rails_netem_at() { # HOST RAIL
	if [ -n "$RAILS_DIRECT" ]; then rails_interface "$1" "$2"; else rails_port $((1 - $1)) "$2"; fi
}

# The address goes and comes again; the GID made of it may get another index.
rails_address_del() { ip address del "$(rails_address "$2" "$1")/24" dev "h$2r$1"; } # RAIL HOST
rails_address_add() {                                                                # RAIL HOST
	ip address add "$(rails_address "$2" "$1")/24" dev "h$2r$1"
	rails_up_lines "$2" "$1" | ip -batch - # the route went with its source address
}
# Another address first, so that the old one's GID comes back behind it.
rails_address_move() { # RAIL HOST
	local other=10.$((110 + $1)).0.$(($2 + 1))/24
	rails_address_del "$1" "$2" 2>/dev/null || :
	ip address add "$other" dev "h$2r$1"
	rails_address_add "$1" "$2"
	ip address del "$other" dev "h$2r$1"
}
rails_mtu() { # RAIL HOST MTU
	ip link set "h$2r$1" mtu "$3"
}

# Everything as rails_make left it. What to say is the same each time, and saying it anew would cost 60 processes.
rails_heal_all() {
	local host rail lines=/run/rails-whole
	tc qdisc show | awk '$2 == "netem" || $2 == "tbf" { print "qdisc del dev", $5, "root" }' | tc -batch -
	rails_unsilence_all
	[ -s $lines ] || for ((rail = 0; rail < rails_count; rail++)); do
		for host in 0 1; do
			echo "link set $(rails_port "$host" "$rail") up"
			echo "link set h${host}r$rail mtu $RAILS_MTU"
			echo "address replace $(rails_address "$host" "$rail")/24 dev h${host}r$rail"
			rails_up_lines "$host" "$rail"
		done
	done >$lines
	ip -batch $lines
}

# ---- counting ----

# What the kernel holds for one process, on one line, to be compared later. It names the thread that asked for a
# thing, and none when it was the kernel.
rails_holdings() { # PID
	local kind fds=("/proc/$1/fd"/*) tasks=("/proc/$1/task"/*)
	if [ "$rails_kind" != none ]; then
		for kind in qp mr cm_id cq pd srq; do
			printf '"%s"' "$kind"
			rdma -j resource show "$kind"
		done | jq -s -j --arg tasks "${tasks[*]##*/}" '($tasks | split(" ") | map(tonumber)) as $tasks
			| range(0; length; 2) as $i | "\(.[$i])=\([.[$i + 1][] | select(.pid as $pid | $tasks | index($pid))] | length) "'
	fi
	printf 'fd=%d\n' "${#fds[@]}"
}
