#!/usr/bin/env bash
# What no ICRC sees: bits flipped after the device's checks, by a fault in the receiving daemon. All of it is found and
# sent again by another rail, the rail is named, goes when the damage is the path's beyond doubt, and comes back after it.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

case_needs_devices
export MRCD_FAULT=on
e2e_hosts 2
case_whole
e2e_stream_start
of_rail() { # RAIL COUNTER: one that b keeps of its path over that rail
	e2e_get b paths "[.[] | select(.rail == \"r$1\") | .$2] | add"
}
counts() { [ "$(of_rail 1 "$1")" -ge "$2" ]; }
damage() { # WHAT: the bits flipped so far
	lab_mrcctl b fault "damage-$1" r1 --json | jq .broken
}
damage payload >/dev/null
lab_wait_for "damaged fragments to be found" 60 counts body_errors 3
e2e_goes_on "with payload damaged on r1"
flips=$(damage none)
[ "$(of_rail 1 body_errors)" -le "$flips" ] || lab_fail "more fragments are called damaged than were"
case_whole 60
[ "$(of_rail 0 'body_errors + .header_errors')" = 0 ] || lab_fail "r0 is blamed for the damage on r1"
lab_say "payload: $flips bits flipped, $(of_rail 1 body_errors) fragments found damaged, r1 out $(of_rail 1 bad_count) times"
before=$(of_rail 1 header_errors)
damage headers >/dev/null
lab_wait_for "a damaged header to be found" 60 counts header_errors $((before + 1))
e2e_goes_on "with headers damaged on r1"
flips=$(($(damage none) - flips))
case_whole 60
[ "$(of_rail 0 'body_errors + .header_errors')" = 0 ] || lab_fail "r0 is blamed for the damage on r1"
lab_say "headers: $flips bits flipped, $(($(of_rail 1 header_errors) - before)) found, r1 is back"
e2e_share 1
e2e_stream_end
e2e_end
