#!/usr/bin/env bash
# Who listens on a rail that is encrypted hears nothing he could know, who turns bits over gains nothing, a daemon that
# is started again has other keys, and who wants it in the open is not let in.
LAB_KEPT=1
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
# shellcheck source-path=SCRIPTDIR source=../lab/corrupt.sh
. "$LAB_TOP/tests/lab/corrupt.sh"

lab_corrupt_needs

command -v tcpdump >/dev/null || lab_skip "not installed: tcpdump (tests/lab/deps installs it)"

sealed_is_hit() { [ "$(lab_corrupt_count 0 flips)" -gt 5 ]; }
encrypted() { e2e_is a paths "[.[] | select(.state == \"GOOD\") | .encrypted] == [$1]"; }
# listen NAME: to rail 0 at b from now on, until it has heard 300 packets
listen() {
	lab_spawn "$1" b tcpdump -Z root -i r0 -s 0 -U -c 300 -w "$LAB_DIR/$1.pcap" tcp
	lab_wait_for "somebody to listen" 10 grep -q 'listening on' "$LAB_DIR/log/$1.err"
}
# How often he finds what every frame begins with, and what every message of the stream has in it. (In 20 MB of anything
# four bytes come by chance, seldom.)
heard() { grep -oa "$2" "$LAB_DIR/$1.pcap" | wc -l; }
frame=MRCF message=MRCM

# In the open he hears it all: so he can hear.
E2E_SIZE=32KiB
E2E_YAML='' e2e_hosts 2
listen open
e2e_stream_start
lab_status open 20
for what in "$frame" "$message"; do
	[ "$(heard open "$what")" -gt 20 ] || lab_fail "who listens to a rail in the open hears $what only $(heard open "$what") times"
done
e2e_stream_end
lab_kill serve TERM
for host in a b; do lab_mrcd_stop "$host"; done

lab_mrcd a 'encryption: required'
lab_mrcd b $'encryption: required\nlog: {level: debug}' # which tells why a link ends
e2e_paths a 2
encrypted "true, true" || lab_fail "the paths are not encrypted: $(e2e_get a paths '[.[] | .encrypted]')"
listen sealed
e2e_stream_start
lab_status sealed 20
# The handshake is in the open; the stream after it is not. It began before he listened.
for what in "$frame" "$message"; do
	[ "$(heard sealed "$what")" -lt 4 ] || lab_fail "who listens to an encrypted rail hears $what $(heard sealed "$what") times"
done

# Who goes on with the state of the daemon before has shaken hands anew, and is heard no better.
epochs() { e2e_get a paths '[.[].epoch] | add'; }
before=$(epochs)
lab_restart a
e2e_paths a 2
[ "$(epochs)" -gt "$before" ] || lab_fail "paths have gone on with the keys of the daemon before"
encrypted "true, true" || lab_fail "the paths are not encrypted after a restart"
e2e_goes_on "after a restart with encrypted paths"
listen again
lab_status again 20
for what in "$frame" "$message"; do
	[ "$(heard again "$what")" -lt 4 ] || lab_fail "who listens after a restart hears $what $(heard again "$what") times"
done

# Bits turned over anywhere in the stream: the path goes, the stream goes on by the other, nothing is taken.
is_refused() { grep -q 'link of epoch .* is down: a record is not as the peer sealed it' "$LAB_DIR/log/mrcd-b.err"; }
! is_refused || lab_fail "a record is refused that nobody has touched"
lab_corrupt 0 any 1/20
lab_wait_for "some bits to be turned over" 20 sealed_is_hit
lab_wait_for "the path to leave because of it" 10 is_refused
e2e_goes_on "with bits turned over on an encrypted rail"
lab_corrupt_end 0
e2e_paths a 2
e2e_stream_end
# (Payload may be damaged for another reason: what was half sent when a path was given up is cut short.)
! grep -E 'is down: (header|checksum|tail|frame|handshake frame|direct)' "$LAB_DIR/log/mrcd-b.err" >&2 ||
	lab_fail "a frame was looked for in a record that was changed"
lab_kill serve TERM
lab_mrcd_stop a

# A peer that has it off, and one that only prefers it.
lab_mrcd a 'encryption: off'
lab_wait_for "b to refuse a" 15 grep -q 'encryption' "$LAB_DIR/log/mrcd-b.err"
e2e_is a peers '.[0].paths_good == 0' || lab_fail "a peer without encryption was let in"
lab_mrcd_stop a
lab_mrcd a 'encryption: preferred'
e2e_paths a 2
encrypted "true, true" || lab_fail "preferred and required are not encrypted"
e2e_end
