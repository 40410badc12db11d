#!/usr/bin/env bash
# Rails of type auto take the device where there is one at both ends; rails of both kinds carry one stream.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

case_needs_devices
export LAB_RAIL_TYPE='auto verbs tcp tcp'
e2e_hosts 4
case_links a verbs 2
case_links a tcp 2
e2e_stream_start
for rail in 0 2; do
	case_stands "without rail $rail" lab_cut "$rail" b
	lab_heal "$rail"
	e2e_paths a 4
	e2e_share "$rail"
done
case_links a verbs 2
e2e_stream_end
lab_kill serve TERM

# b has no device any more: auto makes do with tcp, verbs says why not
lab_mrcd_stop b
LAB_RAIL_TYPE=tcp lab_mrcd b
case_links a tcp 3 30
e2e_is a paths '.[] | select(.rail == "r1") | (.state | ascii_downcase) != "good"' || lab_fail "a rail of type verbs works without a device at the other end"
grep -h 'r1' "$LAB_DIR/log/mrcd-a.err" "$LAB_DIR/log/mrcd-b.err" | grep -i -m 1 'verbs\|device\|RDMA' || lab_fail "no log says why rail 1 is not in service"
e2e_stream_start
e2e_stream_end
e2e_end
