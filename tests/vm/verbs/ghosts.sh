#!/usr/bin/env bash
# Packets that a rail holds back for 300 ms come when their message has long been delivered by another.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

# What is given back is poisoned, and looked at before it is used again: a late write kills the daemon that had it.
export MRCD_POISON=${MRCD_POISON:-abort,hold}
e2e_hosts 4
case_whole
e2e_stream_start
for round in 1 2 3 4 5 6; do
	rail=$((round % 4))
	# What is on its way when the delay begins comes in time; what is sent from now on comes late.
	lab_netem "$rail" both delay 300ms
	lab_wait_for "the late rail to be found bad" 15 e2e_is a paths "[.[] | select(.rail == \"r$rail\") | .state | ascii_downcase != \"good\"] | all"
	e2e_goes_on "while packets of rail $rail are held back" 10
	lab_netem_off "$rail"
	case_whole
done
e2e_stream_end
e2e_end
