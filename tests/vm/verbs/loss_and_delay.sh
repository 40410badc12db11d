#!/usr/bin/env bash
# Delay, jitter, reordering and 1% of loss on a rail: slow it may be; nothing is lost, and it recovers.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

e2e_hosts 4
case_whole
e2e_stream_start
for what in 'delay 5ms' 'delay 5ms 4ms' 'delay 2ms reorder 25% 50%' 'loss 1%'; do
	# shellcheck disable=SC2086 # words on purpose
	lab_netem 1 both $what
	e2e_goes_on "with $what on a rail" 60
	printf '%s: ' "$what"
	e2e_get a paths '.[] | select(.rail == "r1") | "\(.state), \(.suspicions) suspicions so far"'
	case_mended 1 lab_netem_off 1
done
e2e_stream_end
e2e_end
