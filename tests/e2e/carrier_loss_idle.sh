#!/usr/bin/env bash
# A cable is pulled between two idle hosts: nothing is sent into it, neither by who sees it first nor by who is told, so
# that no question for the neighbour's address is open when it is back. The kernel repeats one after a second only, and
# a new connection waits behind it.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 2
for _ in {1..12}; do
	lab_cut 1 b
	e2e_paths a 1
	asked=$(lab_ip a neigh show dev r1 nud incomplete nud failed nud probe)
	[ -z "$asked" ] || lab_fail "a asks in a pulled cable: $asked"
	lab_heal 1
	e2e_paths a 2
done
e2e_end
