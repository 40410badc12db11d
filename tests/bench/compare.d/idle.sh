# shellcheck shell=bash
#
# idle - two daemons that are connected and have nothing to do

family_idle() {
	local host channels=16 window=$((BENCH_ROUNDS * BENCH_SECONDS))
	local -A ticks wakes
	[ "$window" -ge 5 ] || window=5
	bench_lab 4
	bench_row idle "two daemons, 4 rails, $channels open channels, nothing sent, over $window s" "% of a core"
	bench_row idle-wakes "how often each of them woke up" "/s"
	# a message that its pace keeps for hours
	lab_perf_spawn idle a stream b --channels "$channels" --size 1MiB --pace 1kb/s --duration 0 --interval 3600s
	lab_wait_for "$channels channels" 10 idle_channels_are "$channels"
	sleep 1 # what opening them has left to do
	for host in a b; do ticks[$host]=$(idle_ticks "$host") wakes[$host]=$(idle_wakes "$host"); done
	sleep "$window" # in which is counted
	for host in a b; do
		bench_sample idle "mrcd on $host" 1 "$(peer_calc \
			"($(idle_ticks "$host") - ${ticks[$host]}) / $(getconf CLK_TCK) / $window * 100")"
		bench_sample idle-wakes "mrcd on $host" 1 "$(peer_calc "($(idle_wakes "$host") - ${wakes[$host]}) / $window")"
		bench_aim idle "mrcd on $host" max le 1
	done
	lab_kill idle KILL
}

idle_channels_are() {
	lab_mrcctl a channels --json | jq -e "map(select(.state == \"open\")) | length == $1 and all(.sent == .settled)" >/dev/null
}

idle_ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$(lab_pid "mrcd-$1")/stat"; }
# of all its threads
idle_wakes() { cat /proc/"$(lab_pid "mrcd-$1")"/task/*/status | awk '/^voluntary_ctxt_switches/ { sum += $2 } END { print sum }'; }
