#!/usr/bin/env bash
# Rails whose cable is a process (LAB_WIRE=relay): they delay, lose and double as they are told, an end that is set down
# takes the other's carrier, and a checked stream goes over rails that do all of it at once.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

all_rails() {
	local rail
	for ((rail = 0; rail < e2e_rails; rail++)); do lab_relay "$rail" "$@" >/dev/null; done
}
# relay_is RAIL FILTER: do its counters say so?
relay_is() { lab_relay "$1" counters | jq -e "$2" >/dev/null; }

LAB_WIRE=relay
e2e_hosts 4
e2e_serve b serve-lat --service lat

all_rails delay 2ms
shortest=$(lab_perf a lat b/lat --count 50 --json --quiet 2>/dev/null | jq .latency_ns.min)
[ "$shortest" -ge 4000000 ] || lab_fail "a round trip took $shortest ns over rails that delay by 2 ms each way"
all_rails way ab delay 0
shortest=$(lab_perf a lat b/lat --count 50 --json --quiet 2>/dev/null | jq .latency_ns.min)
[ "$shortest" -ge 2000000 ] || lab_fail "a round trip took $shortest ns over rails that delay by 2 ms one way"
all_rails clear

for command in 'delay 5' 'loss 101%' 'burst 0' 'queue 0' 'reorder maybe' 'way up' 'nonsense' 'delay'; do
	# shellcheck disable=SC2086 # words on purpose
	answer=$(lab_relay 0 $command) && lab_fail "the relay took '$command'"
	jq -e '.error | length > 0' <<<"$answer" >/dev/null || lab_fail "the relay answered '$command' with $answer"
done

e2e_stream_start
all_rails delay 200us jitter 300us loss 0.5% burst 4 duplicate 1% reorder on
e2e_goes_on "over rails that delay, lose, double and disorder" 100
for ((rail = 0; rail < e2e_rails; rail++)); do
	lab_wait_for "rail $rail to lose and double something" 20 relay_is "$rail" \
		'.ab.lost + .ba.lost > 0 and .ab.bursts + .ba.bursts > 0 and .ab.duplicated + .ba.duplicated > 0'
done
all_rails clear
e2e_paths a 4
lab_cut 2 b
e2e_paths a 3
lab_ip a -json link show r2 | jq -e '.[0].flags | index("NO-CARRIER")' >/dev/null || lab_fail "r2 has carrier at a"
lab_heal 2
e2e_paths a 4
e2e_share 2
e2e_stream_end
e2e_end
