# shellcheck shell=bash
#
# cases.sh - what the cases of tests/vm/verbs.sh share; to be sourced first
# shellcheck source-path=SCRIPTDIR source=../../e2e/e2e.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../e2e/e2e.sh"
[ "$LAB_PLACE" = guest ] || lab_skip "only tests/vm/verbs.sh runs this"

case_has_devices() { [ "$LAB_GUEST_DEVICE" != none ]; }
case_needs_devices() { case_has_devices || lab_skip "this is about RDMA devices"; }
case_needs() { # DEVICE WHY
	[ "$LAB_GUEST_DEVICE" = "$1" ] || lab_skip "$2"
}

# case_links HOST KIND COUNT [SECONDS]: so many paths in service have links of that kind
case_links() {
	lab_wait_for "$3 links of kind $2 at $1" "${4:-15}" \
		e2e_is "$1" paths "[.[] | select((.state | ascii_downcase) == \"good\" and .link == \"$2\")] | length == $3"
}

# case_whole [SECONDS]: all rails are in service at both ends, by queue pairs where there are devices
case_whole() {
	local kind=tcp
	if case_has_devices; then kind=verbs; fi
	case_links a $kind "$LAB_RAILS" "${1:-30}"
	case_links b $kind "$LAB_RAILS" "${1:-30}"
}

# What the kernel holds for a host's daemon: "qp=4 mr=13 ... fd=61"
case_holdings() { rails_holdings "$(lab_pid "mrcd-$1")"; }
# case_held HOST -> case_held_now: what it holds when nothing is being made or put away: a queue pair for each rail
# whatever befalls the rails of a slow machine meanwhile
case_held() {
	lab_wait_for "mrcd on $1 to hold what its rails need" 30 case_is_calm "$1"
}
case_is_calm() {
	local before
	before=$(rails_holdings "$(lab_pid "mrcd-$1")")
	sleep 0.5 # the time in which it may change
	case_held_now=$(rails_holdings "$(lab_pid "mrcd-$1")")
	[ "$case_held_now" = "$before" ] || return 1
	! case_has_devices || [[ $case_held_now == "qp=$LAB_RAILS "* ]]
}
# case_held_as HOST HOLDINGS WHEN: what is put away later has its time
case_held_as() {
	local end
	end=$(($(lab_now_ms) + 20000 * LAB_SLOWNESS))
	until [ "$(case_holdings "$1")" = "$2" ]; do
		[ "$(lab_now_ms)" -lt "$end" ] || lab_fail "$3: mrcd on $1 holds $(case_holdings "$1") and not $2"
		sleep 0.5
	done
}

# case_stands BREAK...: with a fault, which BREAK makes, the stream goes on over three rails
case_stands() { # NAME BREAK...
	"${@:2}"
	e2e_paths a 3
	e2e_goes_on "$1"
}
# and is whole again, with its share on RAIL, after MEND
case_mended() { # RAIL MEND...
	"${@:2}"
	case_whole
	e2e_share "$1"
}
