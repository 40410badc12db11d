#!/usr/bin/env bash
# The soft devices of a guest's rails, made anew: what a failed case did to a connection manager is not the next one's.
# shellcheck source-path=SCRIPTDIR source=rails.sh
. "$(dirname "$0")/rails.sh"
[ -d /job ] && [ -d /sys/class/net/h0r0 ] || exit 0
rails_kind=${LAB_GUEST_DEVICE:-none}
[ "$rails_kind" != none ] || exit 0
rails_count=4
for ((rail = 0; rail < rails_count; rail++)); do
	for host in 0 1; do
		# whatever kind a case has put there; a device that somebody holds would be waited for, for ever
		device=$(rdma -j link show | jq -r --arg interface "$(rails_interface "$host" "$rail")" \
			'first(.[] | select(.netdev == $interface) | .ifname) // empty')
		[ -z "$device" ] || timeout -k 1 10 rdma link del "$device" || continue
		rails_device_add "$host" "$rail"
	done
done
chmod 0666 /dev/infiniband/*
