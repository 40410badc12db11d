#!/usr/bin/env bash
# Bits turn over on one rail of three: the host that hears it shows that rail as degraded, with the numbers, and no other;
# when it ends the rail is good again. Each change is logged once.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
# shellcheck source-path=SCRIPTDIR source=../lab/corrupt.sh
. "$LAB_TOP/tests/lab/corrupt.sh"

# health_is HOST RAIL STATE: what mrcctl rails says
health_is() { e2e_is "$1" rails ".[] | select(.name == \"$2\") | .health.state == \"$3\""; }
health_others() { # HOST RAIL: all others are good
	e2e_is "$1" rails "all(.[] | select(.name != \"$2\"); .health.state == \"good\")" ||
		lab_fail "at $1 another rail than $2 is not good: $(lab_mrcctl "$1" rails)"
}
health_logged() { # HOST TEXT COUNT
	[ "$(grep -c "$2" "$LAB_DIR/log/mrcd-$1.err")" = "$3" ] ||
		lab_fail "the log of $1 does not have \"$2\" $3 times: $(grep health "$LAB_DIR/log/mrcd-$1.err")"
}

E2E_SIZE=256KiB
lab_up 2 3 "${E2E_RATE:-50mbit}"
lab_corrupt_watch 1
lab_mrcd a
lab_mrcd b
e2e_paths a 3
e2e_paths b 3
e2e_stream_start
health_others b none
health_others a none

lab_corrupt 1 payload 1/20
lab_wait_for "rail r1 to be degraded at b" 20 health_is b r1 degraded
health_others b r1
health_others a none
e2e_is b rails '.[] | select(.name == "r1") | .health | .score <= 65 and .cause == "damage" and .damage_ppm > 1000' ||
	lab_fail "the numbers do not say why: $(e2e_get b rails '.[].health | tojson')"
e2e_is b paths '.[] | select(.rail == "r1") | .degraded' || lab_fail "its path is not shown as degraded"
lab_mrcctl b rails | grep -q 'r1 .*degraded for .* frames come damaged' || lab_fail "$(lab_mrcctl b rails)"
lab_mrcctl b status | grep -q '3 of 3 rails up (1 degraded)' || lab_fail "$(lab_mrcctl b status)"
e2e_goes_on "over a degraded rail"

lab_corrupt_end 1
lab_wait_for "rail r1 to be good again" 60 health_is b r1 good
health_others b r1
health_logged b 'warning: rail r1 .*: degraded, was good; health .* frames come damaged' 1
health_logged b 'rail r1 .*: good again, was degraded' 1
health_logged a 'health' 0
lab_mrcctl b events | grep -q 'rail r1: degraded, health .* frames come damaged' || lab_fail "$(lab_mrcctl b events)"
lab_mrcctl b events | grep -q 'rail r1: good again' || lab_fail "$(lab_mrcctl b events)"
e2e_stream_end
e2e_end
