#!/usr/bin/env bash
# mrcctl doctor where one rail's queue pairs are of iWARP and the others' of RoCE.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"
# shellcheck source-path=SCRIPTDIR source=../../e2e/doctor_says.sh
. "$(dirname "$0")/../../e2e/doctor_says.sh"

case_needs rxe "the other rails' devices are soft-RoCE's"
modprobe -a crc32c_generic libcrc32c siw || lab_skip "there is no soft-iWARP: tests/vm/make --siw makes it"
lab_up 2 4 "$E2E_RATE"
for host in 0 1; do
	timeout 20 rdma link del "$(rails_device $host 3)" || lab_fail "a device that nobody uses does not go"
	rdma link add "siw${host}3" type siw netdev "$(rails_interface $host 3)"
done
chmod 0666 /dev/infiniband/*
lab_mrcd a
lab_mrcd b
case_whole 60
lab_wait_for "b to have told a about itself" 15 e2e_is a paths 'all(.[]; .about.mtu == 4200 and .about.rail == .rail)'
doctor a 1 --json --seconds 0
finds rail-type '^rails r0 and r3$' '^RoCE and iWARP$'
jq -e '[.findings[] | select(.id != "rail-type" and .id != "path-degraded")] == []' "$doctor_report" >/dev/null || lab_fail "doctor finds more: $(jq -c .findings "$doctor_report")"
echo "found: $(jq -r '[.findings[] | "\(.subject): \(.seen)"] | join("; ")' "$doctor_report")"
e2e_stream_start
e2e_share 3
e2e_stream_end
e2e_end
# for the next case in this guest
"$(dirname "$0")/../lab_anew.sh"
