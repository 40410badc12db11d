#!/usr/bin/env bash
# The MTU of a rail shrinks at one end, at both, and grows again.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

e2e_hosts 4
case_whole
e2e_stream_start
mtu() { # MTU HOST...
	local host
	for host in "${@:2}"; do rails_mtu 1 "$host" "$1"; done
}
is_active() { e2e_is a rails ".[] | select(.name == \"r1\") | .verbs.active_mtu == $1"; }
mtu 1500 1
e2e_goes_on "with an MTU smaller at the receiver than at the sender" 40
mtu 1500 0
e2e_goes_on "with a small MTU at both ends" 40
case_whole
if [ "$LAB_GUEST_DEVICE" = rxe ]; then
	lab_wait_for "the smaller MTU to be shown" 15 is_active 1024
	# Each is shown, though no event of the device tells of it and no path minds: theirs stay at 1024.
	for round in 1 2 3 4 5; do
		for bytes in 2300:2048 1500:1024; do
			mtu "${bytes%:*}" 0
			lab_wait_for "change $round of the MTU, to ${bytes#*:}, to be shown" 5 is_active "${bytes#*:}"
		done
	done
fi
e2e_share 1
mtu 4200 0 1
case_whole
e2e_share 1
e2e_stream_end
e2e_end
