#!/usr/bin/env bash
# A cable is pulled and put back 100 times in a row: all queue pairs are back, and nothing has grown.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

e2e_hosts 4
case_whole
e2e_stream_start
flap() {
	lab_cut 1 "$2"
	sleep "0.0$(($1 % 5))"
	lab_heal 1
	sleep "0.$(($1 * 7 % 10))"
}
for ((flap = 0; flap < 10; flap++)); do flap "$flap" a; done
case_whole 60
case_held a
held_a=$case_held_now
case_held b
held_b=$case_held_now
for ((flap = 0; flap < 90; flap++)); do
	if ((flap % 2)); then flap "$flap" a; else flap "$flap" b; fi
done
e2e_goes_on "after the flapping"
case_whole 60
e2e_share 1
case_held_as a "$held_a" "after 100 flaps"
case_held_as b "$held_b" "after 100 flaps"
echo "after 100 flaps as after 10: a holds $held_a; b holds $held_b"
e2e_get a rails '.[] | select(.name == "r1") | "rail 1: \(.carrier_losses) losses of carrier, \(.verbs.fences // 0) fences, \(.verbs.flushes // 0) flushes"'
e2e_stream_end
e2e_end
