#!/usr/bin/env bash
# An interface is set down by its operator, at the sender and at the receiver, and up again.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

e2e_hosts 4
case_whole
e2e_stream_start
for host in a b; do
	number=$(lab_guest_number "$host")
	case_stands "with the interface of $host down" rails_admin_down 1 "$number"
	case_mended 1 rails_admin_up 1 "$number"
done
e2e_stream_end
e2e_end
