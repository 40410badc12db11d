#!/usr/bin/env bash
# Rails over the RDMA devices of this machine and its running kernel, hardware or soft: two daemons beside each other,
# each rail a device at both its ends. What a user with hardware runs to check his own: `tests/run verbs`.
#	tests/vm/devices.sh [CASE...]        MRC_DEVICES="mlx5_0=10.0.0.1 mlx5_1=10.1.0.1": only those
# Exit: 0 good, 1 not, 77 when there is no such device.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)

skip() {
	echo "skipped: $*" >&2
	exit 77
}

# "DEVICE=ADDRESS" of each port that is active and whose interface has an address
devices_find() {
	local device interface address
	rdma -j link show 2>/dev/null | jq -r '.[] | select(.state == "ACTIVE" and .netdev) | "\(.ifname) \(.netdev)"' |
		while read -r device interface; do
			address=$(ip -j -4 address show dev "$interface" | jq -r 'first(.[].addr_info[].local) // empty')
			[ -z "$address" ] || printf '%s=%s\n' "$device" "$address"
		done
}

command -v rdma >/dev/null || skip "not installed: rdma (package iproute2)"
[ -d /sys/class/infiniband ] || skip "the running kernel has no RDMA devices (no /sys/class/infiniband)"
devices=${MRC_DEVICES:-$(devices_find | tr '\n' ' ')}
[ -n "${devices// /}" ] || skip "the running kernel has no RDMA device whose port is active and whose interface has an IPv4 address"
echo "devices: $devices"

cases=("$@")
[ $# -gt 0 ] || cases=(bw_stream sizes kill_receiver_daemon kill_sender_daemon kill_sender_client kill_receiver_client)
export LAB_PLACE=devices LAB_DEVICES=$devices LAB_GUEST_DEVICE=rxe MRC_BUILD=${MRC_BUILD:-$top/build}
export LAB_YAML=${LAB_YAML:-"clients: {landing-arena: 16MiB, send-arena: 16MiB}"} LAB_SLOWNESS=${LAB_SLOWNESS:-2}
exec "$here/verbs_inside.sh" "${cases[@]}"
