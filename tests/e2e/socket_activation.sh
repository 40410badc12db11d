#!/usr/bin/env bash
# systemd holds the socket: the first program starts the daemon, and is served.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

command -v systemd-socket-activate >/dev/null || lab_skip "systemd-socket-activate is not installed"
lab_up 2 2 "$E2E_RATE"
lab_mrcd b
lab_conf_write a
lab_spawn mrcd-a a systemd-socket-activate --seqpacket --fdname=mrcd -l "$LAB_DIR/host/a/mrcd.sock" \
	"$MRCD" --config "$LAB_DIR/host/a/mrcd.yaml"
lab_wait_for "the socket" 5 test -S "$LAB_DIR/host/a/mrcd.sock"
[ ! -e "$LAB_DIR/host/a/control.sock" ] || lab_fail "the daemon started before anybody asked"
e2e_serve b
lab_perf_spawn stream a stream b --size 64KiB --verify --count 50 --connect-timeout 30s --json --quiet
lab_status stream 40
[ "$LAB_STATUS" = 0 ] || lab_fail "the stream ended with status $LAB_STATUS"
e2e_verdict stream '.outcomes == {OK: 50}' "all 50 messages are OK"
e2e_intact stream
e2e_end
