#!/usr/bin/env bash
# mrcctl doctor: one line on hosts that are well; and what is then done to their rails it finds and names.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

# shellcheck source-path=SCRIPTDIR source=doctor_says.sh
. "$(dirname "$0")/doctor_says.sh"

e2e_hosts 4
# Each end has told about itself on each path: nothing of the peer is left unchecked.
lab_wait_for "b to have told a about itself" 10 e2e_is a paths 'all(.[]; .about.mtu == 1500 and .about.rail == .rail)'
doctor a 0
[ "$(wc -l <"$doctor_report")" = 1 ] || lab_fail "more than a line about a healthy host"
grep -q '^healthy: [0-9]* checks of 4 rails and 1 peer' "$doctor_report" || lab_fail "no word of health"
doctor b 0 --json --seconds 1
jq -e '.healthy and .findings == [] and .seconds >= 1' "$doctor_report" >/dev/null || lab_fail "b is not healthy in JSON"
jq -e '.not_checked | map(.id) - ["rail-numa", "one-network"] == []' "$doctor_report" >/dev/null || lab_fail "more is left unchecked than this machine explains"

# Another network namespace has other interfaces and routes: nothing would be true.
if lab_mrcctl a doctor >"$doctor_report" 2>&1; then lab_fail "doctor judged a host from elsewhere"; fi
grep -q 'another network namespace' "$doctor_report" || lab_fail "doctor does not say that it is elsewhere"

# Rail 0: its route leads by rail 1, and what comes in is dropped. Rail 1: the other end takes shorter packets, and
# answers for all of its host's addresses. Rails 2 and 3: exchanged at b.
lab_sysctl a net.ipv4.conf.r0.rp_filter 1 # first: what is connected is looked at again when a route changes
lab_ip a route add "$(lab_address b 0)/32" dev r1
lab_ip b link set r1 mtu 1400
lab_sysctl b net.ipv4.conf.all.arp_ignore 0
for rail in 2 3; do lab_ip b address flush dev "r$rail"; done
lab_ip b address add "$(lab_address b 2)/24" dev r3
lab_ip b address add "$(lab_address b 3)/24" dev r2
lab_ip a neighbour flush all
doctor a 1 --json --seconds 0
finds route '^rail r0 to b$' 'is reached by r1, not by r0'
finds rp-filter '^rail r0 to b$' 'that arrive on r0 are dropped'
finds mtu-path '^rail r1 to b$' 'none of 1500 bytes'
finds mtu-peer '^rail r1 to b$' '1500 here, 1400 at the peer.s rail r1'
finds arp-flux '^peer b$' "one interface there answers for .* and for .* more cases"
jq -e '.not_checked | any(.id == "errors-rising")' "$doctor_report" >/dev/null || lab_fail "what was read once only is not named as such"
# Where nobody answers for others it is seen that the cables are exchanged. What is connected stays so.
lab_ip b link set r1 mtu 1500
lab_sysctl b net.ipv4.conf.all.arp_ignore 1
e2e_paths a 3
doctor a 1 --json --seconds 0
finds path-down '^rail r0 to b$' '.'
finds crosswise '^rail r2 to b$' "$(lab_address b 2) does not answer on this rail, and $(lab_address b 3), which is to be reached by rail r3"
doctor b 1 --json --seconds 0
finds address '^rail r2 ' 'is not one of its addresses'

# Both cables in one switch, at b.
lab_ip b link add sw type bridge
lab_ip b link set sw up
for rail in 2 3; do
	lab_ip b link set "r$rail" down
	lab_ip b address flush dev "r$rail"
	lab_ip b link set "r$rail" name "x$rail" master sw up
	lab_ip b link add "r$rail" type veth peer name "p$rail"
	lab_ip b link set "p$rail" master sw up
	lab_ip b address add "$(lab_address b $rail)/24" dev "r$rail"
	lab_ip b link set "r$rail" up
done
lab_ip a neighbour flush all
e2e_paths a 3
doctor a 1 --json --seconds 0
finds one-network '^rails r2 and r3$' 'the same interface of b'

# What is drained is meant, and counts for nothing.
lab_mrcctl a drain r3 >/dev/null
doctor a 1
grep -q '^note rail r3 (r3): a rail is drained \[rail-drained\]$' "$doctor_report" || lab_fail "a drained rail is not noted"
e2e_end
