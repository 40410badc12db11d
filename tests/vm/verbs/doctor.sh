#!/usr/bin/env bash
# mrcctl doctor over queue pairs: one line where all is well; and what is then done to devices, ports, limits and versions
# it finds and names.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"
# shellcheck source-path=SCRIPTDIR source=../../e2e/doctor_says.sh
. "$(dirname "$0")/../../e2e/doctor_says.sh"

case_needs_devices
is_roce() { [ "$LAB_GUEST_DEVICE" = rxe ]; }
# Nothing of the peer is left unchecked when each end has told about itself on each path.
told() { # MTU
	lab_wait_for "b to have told a about itself" 15 \
		e2e_is a paths "all(.[]; .about.mtu == $1 and .about.rail == .rail and .about.rdma_core != \"\" and .about.kernel != \"\")"
}
unchecked_beyond() { # JSON ARRAY OF IDS
	jq -c --argjson known "$1" '[.not_checked[] | select(.id as $id | $known | index($id) | not)] | map("\(.id) \(.subject): \(.seen // .why)")' "$doctor_report"
}
finds_soon() { # WHAT ID SUBJECT SEEN [SECONDS between two readings]
	lab_wait_for "doctor to find $1" 20 doctor_finds_now "${5:-0}" "${@:2:3}"
}
doctor_finds_now() {
	doctor_report=$LAB_DIR/log/doctor
	(doctor a 1 --json --seconds "$1") && doctor_found "${@:2}"
}
# Whatever its status: what befell paths, also because the guest is slow, is held against them for a while (path-degraded).
doctor_now() {
	doctor_report=$LAB_DIR/log/doctor
	lab_exec a "$MRCCTL" --runtime-dir "$LAB_DIR/host/a" doctor --json --seconds 0 >"$doctor_report" || :
}
is_mended() { doctor_now && jq -e '.findings | map(select(.id != "path-degraded")) == []' "$doctor_report"; }

# ---- well ----

e2e_hosts 4
case_whole
told 4200
doctor a 0
[ "$(wc -l <"$doctor_report")" = 1 ] || lab_fail "more than a line about a healthy host: $(cat "$doctor_report")"
grep -q '^healthy: [0-9]* checks of 4 rails and 1 peer' "$doctor_report" || lab_fail "no word of health: $(cat "$doctor_report")"
doctor b 0 --json --seconds 1
jq -e '.healthy and .findings == []' "$doctor_report" >/dev/null || lab_fail "b is not healthy in JSON"
# A soft device is in no slot, hangs on no node, and tells nothing of flow control or marks.
left=$(unchecked_beyond '["rail-numa", "one-network", "roce-lossless", "roce-dscp"]')
[ "$left" = '[]' ] || lab_fail "more is left unchecked than soft devices explain: $left"
echo "well: $(lab_exec a "$MRCCTL" --runtime-dir "$LAB_DIR/host/a" doctor --seconds 0)"

# ---- interfaces, ports and GIDs ----

rails_mtu 0 1 1500
if is_roce; then rails_cut 1 0; else rails_admin_down 1 0; fi # soft-iWARP's port minds no cable
finds_soon "the smaller MTU" mtu-peer '^rail r0 to b$' '4200 here, 1500 at the peer.s rail r0'
finds mtu-path '^rail r0 to b$' 'none of 4200 bytes'
finds_soon "the port that is down" rdma-port "^rail r1 \\(h0r1\\)$" "^$(rails_device 0 1)/1 is 1: DOWN"
finds rail-carrier '^rail r1 ' 'no carrier'
rails_mtu 0 0 1500
lab_wait_for "the smaller MTU to be shown" 15 e2e_is a rails '.[] | select(.name == "r0") | .verbs.active_mtu == 1024'
doctor a 1 --json --seconds 0
finds rail-mtu '^all rails$' 'r0 1500, r1 4200'
echo "found: MTUs that differ, between hosts and between rails; a port that is not ACTIVE"
if is_roce; then
	# The rail's address on a VLAN above its interface: the GID is that VLAN's.
	modprobe 8021q
	ip link add link h0r3 name h0r3v mtu 4200 type vlan id 7
	ip link set h0r3v up
	rails_address_del 3 0
	ip address add "$(rails_address 0 3)/24" dev h0r3v
	finds_soon "the GID of another interface" rdma-gid '^rail r3 \(h0r3\)$' 'GID .*10\.13\.0\.1 at index [0-9]+ belongs to h0r3v'
	finds address '^rail r3 ' '10\.13\.0\.1 is not one of its addresses'
	echo "found: $(jq -r '.findings[] | select(.id == "rdma-gid") | .seen' "$doctor_report")"
	ip link del h0r3v
	rails_address_add 3 0
fi
rails_heal_all
case_whole 60
told 4200
lab_wait_for "doctor to be content with rails that are whole again" 60 is_mended
echo "mended: $(jq -c '{errors, warnings}' "$doctor_report")"

# ---- a device that is not there ----

lab_mrcd_stop a
# rail 2 is of type verbs, rail 3 of type auto
timeout 20 rdma link del "$(rails_device 0 2)" || lab_fail "a device that nobody uses does not go"
timeout 20 rdma link del "$(rails_device 0 3)" || lab_fail "a device that nobody uses does not go"
LAB_RAIL_TYPE='verbs verbs verbs auto' lab_mrcd a
case_links a verbs 2 60
# b's end of rail 3 is of type verbs and does without a path; auto would do with tcp where both ends let it.
doctor a 1 --json --seconds 0
finds rdma-missing '^rail r2 ' 'no RDMA device has this address'
finds path-down '^rail r2 to b$' .
lab_mrcd_stop b
LAB_RAIL_TYPE='verbs verbs verbs auto' lab_mrcd b
case_links a verbs 2 60
case_links a tcp 1 60
doctor a 1 --json --seconds 0
finds rail-type '^rail r3 to b$' 'its link is tcp, that of rail r[01] to the same peer is verbs; no device here: .*no RDMA device'
rails_device_add 0 2
rails_device_add 0 3
chmod 0666 /dev/infiniband/*
case_links a verbs 3 60
echo "found: a rail of type verbs without a device, one of type auto that makes do with tcp; both devices taken when they came"

# ---- a limit of locked memory ----

# Receive entries and buffers of a rail take some 20 MiB, a program's arenas 32 MiB on each rail.
for limit in 8 150; do
	lab_mrcd_stop a
	LAB_WRAP="prlimit --memlock=$((limit << 20)) setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock" lab_mrcd a
	if [ "$limit" = 150 ]; then case_links a verbs 4 60; fi
	finds_soon "a limit of $limit MiB" memlock '^mrcd$' "its limit is $limit MiB, .* want [0-9.]+ MiB"
	finds_not rdma-missing
	echo "found: $(jq -r '.findings[] | select(.id == "memlock") | .seen' "$doctor_report")"
done
# As it says: a program that attaches gets no memory on the last rails, and what it wants is what is locked.
e2e_serve a serve-limit --service limit
lab_wait_for "the log to say what was not locked" 20 grep -q 'arena wants .* locked, .* and the limit is 153600 KiB' "$LAB_DIR/log/mrcd-a.err"
lab_kill serve-limit TERM
need=$(jq -r '.findings[] | select(.id == "memlock") | .seen' "$doctor_report" | sed -n 's/.* want \([0-9]*\)\(\.[0-9]*\)\? MiB$/\1/p')
lab_mrcd_stop a
lab_mrcd a
case_links a verbs 4 60
e2e_serve a serve-all --service all
pinned() { awk '$1 == "VmPin:" { print int($2 / 1024) }' "/proc/$(lab_pid mrcd-a)/status"; }
pinned_about() { [ "$(pinned)" -ge $((need - 4)) ] && [ "$(pinned)" -le $((need + 4)) ]; }
lab_wait_for "a daemon with a program to lock what doctor says ($need MiB)" 20 pinned_about
echo "with one program the daemon has locked $(pinned) MiB; doctor says $need"
lab_kill serve-all TERM

# ---- other versions at the peer ----

told 4200
doctor_now
finds_not version-kernel
finds_not version-rdma-core
lab_mrcd_stop b
mkdir "$LAB_DIR/other"
library=$(ldd "$MRCD" | awk '$1 == "libibverbs.so.1" { print $3 }')
cp "$library" "$LAB_DIR/other/libibverbs.so.1.14.99.0"
ln -s libibverbs.so.1.14.99.0 "$LAB_DIR/other/libibverbs.so.1"
LAB_WRAP="env LD_LIBRARY_PATH=$LAB_DIR/other setarch --uname-2.6" lab_mrcd b
case_whole 60
told 4200
doctor_now
finds version-kernel '^peer b$' "^2\\.6\\..* there, $(uname -r) here$"
finds version-rdma-core '^peer b$' '^99\.0 there, [0-9.]+ here$'
echo "found, as notes: $(jq -r '[.findings[] | select(.id | startswith("version")) | .seen] | join("; ")' "$doctor_report")"
lab_mrcd_stop b
lab_mrcd b
case_whole 60

# ---- marks, and counters that rise ----

if is_roce; then
	modprobe configfs
	modprobe rdma_cm
	mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
	mark=/sys/kernel/config/rdma_cm/$(rails_device 0 0)
	mkdir "$mark"
	doctor a 1 --json --seconds 0
	finds roce-dscp '^rail r0 ' 'type of service 0$'
	echo 106 >"$mark/ports/1/default_roce_tos"
	doctor_now
	finds_not roce-dscp
	jq -e '.not_checked | any(.id == "roce-dscp" and (.subject | startswith("rail r0 "))) | not' "$doctor_report" >/dev/null || lab_fail "a mark that is set is not read"
	rmdir "$mark"
	echo "found: RoCE that is not marked, until it is"
fi
if is_roce; then # iWARP leaves losses to TCP, whose counters are no device's
	e2e_stream_start
	lab_netem 1 both loss 2% # of more, soft-RoCE of this kernel counts its references wrong
	# Some packets that are sent again are no finding; an emulated processor takes its time to lose more.
	finds_soon "counters of a device rise" errors-rising '^rail r1 \(h0r1\)$' . 15
	echo "found: $(jq -r '[.findings[] | select(.id == "errors-rising") | "\(.subject): \(.seen)"] | join("; ")' "$doctor_report")"
	lab_netem_off 1
	case_whole 60
	e2e_stream_end
fi
e2e_end
