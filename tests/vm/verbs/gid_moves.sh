#!/usr/bin/env bash
# An address goes and comes back, and its GID is another entry of the table then.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

case_needs rxe "GIDs made of addresses are RoCE's"
e2e_hosts 4
case_whole
e2e_stream_start
for host in a b; do
	number=$(lab_guest_number "$host")
	index() { e2e_get "$host" rails '.[] | select(.name == "r1") | .verbs.gid_index'; }
	before=$(index)
	case_stands "with an address of $host gone" rails_address_del 1 "$number"
	case_mended 1 rails_address_move 1 "$number"
	after=$(index)
	[ "$before" != "$after" ] || lab_fail "the index of the GID at $host is still $before: nothing was tested"
	echo "the GID of $host moved from index $before to $after"
done
e2e_stream_end
e2e_end
