#!/usr/bin/env bash
# Rails over real queue pairs: two daemons in a virtual machine whose kernel has soft-RoCE (or soft-iWARP), booted
# once for all the cases that are named. The end-to-end tests of tests/e2e run there as they are; those of
# tests/vm/verbs besides.
#	tests/vm/verbs.sh [--device rxe|siw|none] [--clock instructions] [CASE|SET...]    the set `all` if none is named
#	tests/vm/verbs.sh --list [SET]                             their names; sets: all, smoke, stalls, sanitized, tcp
# With --device none rails are of type tcp: what fails there too is no fault of verbs.
# With --clock instructions time in the guest is the work of its processor (tests/vm/run -i): what takes long in there
# is slow by itself, however busy this machine is.
# Binaries are those of $MRC_BUILD (build). Prints `ok N - NAME` or `not ok N - NAME` for each, figures below it.
# Exit: 0 good, 1 not, 77 when no virtual machine can be made here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$(cd "${MRC_BUILD:-$top/build}" && pwd)

# What the first issue of all asks of daemons, over rails of this kind. Not here: what has no rails in it, and
# `strangers`, which needs a third address on a rail.
e2e=(loopback bw_stream sizes many_clients_many_channels connect_before_peer_is_up down_at_start drain carrier_loss
	silence silence_one_way cut_both_ends flap all_down second_failure_hits_resend kill_sender_client
	kill_receiver_client kill_sender_daemon kill_receiver_daemon restart idle_cpu)
verbs=(devices_shown cables admin_down loss_and_delay neighbour_unknown gid_moves mtu_changes killed_and_counted
	clients_come_and_go qp_error damage auto_and_mixed work_requests ghosts flaps_100 failures_two_rails failures_200)

cases_of() { # SET
	case $1 in
	all) printf '%s\n' "${e2e[@]}" "${verbs[@]}" ;;
	tcp) printf '%s\n' "${e2e[@]}" loss_and_delay failures_200 ;;
	smoke) printf '%s\n' bw_stream sizes carrier_loss silence kill_receiver_daemon kill_sender_client devices_shown ;;
	stalls) printf '%s\n' failures_two_rails failures_200 ;;
	sanitized) printf '%s\n' cables silence_one_way kill_receiver_daemon kill_sender_client qp_error ghosts ;;
	*) return 1 ;;
	esac
}

device=rxe clock=machine cases=()
while [ $# -gt 0 ]; do
	case $1 in
	--device)
		device=${2:?}
		shift
		;;
	--clock)
		clock=${2:?}
		shift
		;;
	--list)
		cases_of "${2:-all}"
		exit 0
		;;
	-*)
		sed -n '5,10s/^# \?//p' "$0" >&2
		exit 2
		;;
	*)
		if cases_of "$1" >/dev/null; then
			mapfile -t -O ${#cases[@]} cases < <(cases_of "$1")
		else
			cases+=("$1")
		fi
		;;
	esac
	shift
done
[ ${#cases[@]} -gt 0 ] || mapfile -t cases < <(cases_of all)
for case in "${cases[@]}"; do
	[ -f "$here/verbs/$case.sh" ] || [ -f "$here/../e2e/$case.sh" ] || {
		echo "there is no case $case: tests/vm/verbs.sh --list" >&2
		exit 2
	}
done

"$here/make"
if [ "$device" = siw ]; then "$here/make" --siw; fi
# Emulated processors carry some 10 MB/s over soft-RoCE in all, and everything waits for everything else when they do:
# streams are paced below that, messages small, memories of clients, which are pinned, as well; and patience.
export MRC_BUILD=$build LAB_PLACE=guest LAB_GUEST_DEVICE=$device LAB_GUEST_CLOCK=$clock
export LAB_SLOWNESS=${LAB_SLOWNESS:-4} E2E_RATE=${E2E_RATE:-100mbit} E2E_SIZE=${E2E_SIZE:-128KiB} E2E_PACE=${E2E_PACE:-24Mb/s}
export LAB_YAML=${LAB_YAML:-"clients: {landing-arena: 16MiB, send-arena: 16MiB}"}
export LAB_RAIL_TYPE=verbs LAB_POLL=${LAB_POLL:-0.1}
[ "$device" != none ] || LAB_RAIL_TYPE=tcp
# What is run again and again, and what that loads: the guest takes it into its memory (verbs_inside.sh).
mapfile -t near < <(type -P bash jq ip tc rdma nft sleep grep awk sed tail wc dirname mkdir rm cat sort mktemp)
near+=("$build/daemon/mrcd" "$build/tools/mrcctl" "$build/tools/mrc-perf")
mapfile -t -O ${#near[@]} near < <(ldd "${near[@]}" 2>/dev/null | sed -nE 's,.*[[:space:]](/[^ ]+) \(0x.*,\1,p' | sort -u)
VERBS_NEAR=$(readlink -f "${near[@]}" | sort -u)
export VERBS_NEAR
cd "$top"
count=()
[ "$clock" != instructions ] || count=(-i)
exec "$here/run" "${count[@]}" -m 3G -t "${VERBS_SECONDS:-3000}" "$here/verbs_inside.sh" "${cases[@]}"
