#!/usr/bin/env bash
# Daemons that have nothing to do use next to no processor time.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 4
ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$(lab_pid "mrcd-$1")/stat"; }
hertz=$(getconf CLK_TCK)
declare -A before=([a]=$(ticks a) [b]=$(ticks b))
sleep 5 # the window in which is counted
for host in a b; do
	used=$(($(ticks "$host") - before[$host]))
	echo "mrcd on $host: $((used * 1000 / hertz)) ms of 5000"
	[ $((used * 100)) -le $((hertz * 5 * 5 * LAB_SLOWNESS)) ] || lab_fail "an idle daemon uses more than 5 in 100"
done
e2e_end
