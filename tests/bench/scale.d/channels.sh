# shellcheck shell=bash disable=SC2016,SC2034,SC2154,SC2317 # one program with ../scale; $a and $b are jq's
# 1 to 1,000 channels over one connection of two rails: all of them busy, and one of them busy among many that are idle.
#
# What so many channels take in the configuration: clients.channels-max and limits.channels-max (256 and 1024 by
# default); a smaller clients.landing-ring, since the rings of all channels of a program share half of its landing arena
# (128 MiB; 64 KiB is the least there may be); and a send arena for one message of each channel.

SCALE_CHANNELS_YAML='clients: {channels-max: 1024, landing-ring: 64KiB, send-arena: 512MiB}
limits: {channels-max: 4096}'

scale_channels() {
	local round count idle=1000 points rests
	read -ra points <<<"$(scale_points "1 100" "1 10 100 1000")"
	read -ra rests <<<"$(scale_points "1 1000" "1 10 100 1000")"
	bench_row channels-rate "64 B messages, all channels busy, as many under way in all" "1000/s"
	bench_row channels-rate-cpu "the same, both daemons' processor time" "us/message"
	bench_row channels-bandwidth "64 KiB messages, all channels busy, 8 MiB under way in all (1,000 channels: 64 MiB)" Gb/s
	bench_row channels-bandwidth-cpu "the same, both daemons' processor time" s/GiB
	bench_row channels-idle-rate "64 B messages on one channel while others are open and idle" "1000/s"
	bench_row channels-idle-rate-cpu "the same, both daemons' processor time" "us/message"
	bench_row channels-idle-latency "8 B ping-pong on one channel while others are open and idle, p50" us
	bench_row channels-rest "both daemons at rest with open channels" "% of a core"
	bench_row channels-rest-each "what an idle channel adds to that" "% of a core"
	bench_row channels-memory "Pss of the connecting daemon with one program and open channels" MiB
	bench_row channels-memory-each "memory of an open channel that carried one message" KiB

	for ((round = 1; round <= BENCH_ROUNDS; round++)); do
		for count in "${points[@]}"; do
			scale_channels_busy "$round" "$count"
		done
		scale_channels_among "$round" "$idle"
		scale_channels_rest "$round" "${rests[@]}"
	done

	for count in "${points[@]:1}"; do
		bench_ratio channels-rate "$(scale_who "$count" channel)" "1 channel" -
		bench_ratio channels-bandwidth "$(scale_who "$count" channel)" "1 channel" -
	done
	bench_ratio channels-rate-cpu "$(scale_who "${points[-1]}" channel)" "1 channel" -
	bench_ratio channels-bandwidth-cpu "$(scale_who "${points[-1]}" channel)" "1 channel" -
	bench_ratio channels-idle-rate "$idle idle" "0 idle" ge 0.95
	bench_ratio channels-idle-rate-cpu "$idle idle" "0 idle" le 1.05
	bench_ratio channels-idle-latency "$idle idle" "0 idle" le 1.1
	bench_aim channels-rest-each "$(scale_who "${rests[-1]}" channel)" median le 0.0005
}

# As much under way in all, so that what differs is the number of channels alone: 128 messages are what one channel takes.
scale_channels_busy() { # ROUND COUNT
	local round=$1 count=$2 who each
	who=$(scale_who "$count" channel)
	each=$((count < 128 ? 128 / count : 1))
	scale_lab 2
	scale_daemons 2 "$SCALE_CHANNELS_YAML"
	scale_crowd "mrcd-a mrcd-b" 1 "$count" rate b --in-flight "$each" || :
	scale_crowd_rate channels-rate "$who" "$round"
	scale_crowd_end 1
	scale_crowd "mrcd-a mrcd-b" 1 "$count" bw b --size 64KiB --in-flight "$each" || :
	scale_crowd_bandwidth channels-bandwidth "$who" "$round" 65536
	scale_crowd_end 1
}

# In turn on the same daemons: the others come and go.
scale_channels_among() { # ROUND IDLE
	local round=$1 idle=$2 count who
	scale_lab 2
	scale_daemons 2 "$SCALE_CHANNELS_YAML"
	for count in 0 "$idle"; do
		who="$count idle"
		[ "$count" = 0 ] || scale_hold holder "$count"
		scale_wait 30 scale_channels_are "$count" ||
			bench_say "  $count channels did not open: $(tail -n 1 "$LAB_DIR/log/holder.err")"
		SCALE_OTHERS=$count
		scale_crowd "mrcd-a mrcd-b" 1 1 rate b || :
		scale_crowd_rate channels-idle-rate "$who" "$round"
		scale_crowd_end 1
		SCALE_OTHERS=0
		scale_timed lat b
		bench_sample channels-idle-latency "$who" "$round" "$(scale_figure '.latency_ns.p50 / 1e3')"
	done
}

# Memory is of daemons that did nothing before: what was freed would hide what is taken.
scale_channels_rest() { # ROUND COUNT...
	local round=$1 count who first='' pss pss_b first_pss first_pss_b rest first_rest added
	shift
	for count in "$@"; do
		who=$(scale_who "$count" channel)
		scale_lab 2
		scale_daemons 2 "$SCALE_CHANNELS_YAML"
		scale_hold holder "$count"
		rest='' pss='' pss_b=''
		if scale_wait 30 scale_channels_are "$count"; then
			rest=$(scale_idle mrcd-a mrcd-b)
			pss=$(scale_pss mrcd-a)
			pss_b=$(scale_pss mrcd-b)
		else
			bench_say "  $who did not open: $(tail -n 1 "$LAB_DIR/log/holder.err")"
		fi
		bench_sample channels-rest "$who" "$round" "$rest"
		bench_sample channels-memory "$who" "$round" "$(scale_calc '$a / 1048576' "$pss")"
		if [ -z "$first" ]; then
			first=$count first_pss=$pss first_pss_b=$pss_b first_rest=$rest
			continue
		fi
		added=$((count - first))
		bench_sample channels-rest-each "$who" "$round" "$(scale_calc '($a - $b) / $c' "$rest" "$first_rest" "$added")"
		bench_sample channels-memory-each "$who, connecting" "$round" "$(scale_calc '($a - $b) / $c / 1024' "$pss" "$first_pss" "$added")"
		bench_sample channels-memory-each "$who, accepting" "$round" "$(scale_calc '($a - $b) / $c / 1024' "$pss_b" "$first_pss_b" "$added")"
	done
}
