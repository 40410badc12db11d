#!/usr/bin/env bash
# Wrong key, HTTP, half-open connections, every field out of range: refused, counted, logged a few times, no harm.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

lab_up 2 4 "$E2E_RATE"
evil_key=$LAB_DIR/evil.key
(umask 077 && echo 'the key of a host that proves it and misbehaves' >"$evil_key" && echo 'another key altogether' >"$LAB_DIR/wrong.key")
evil=10.10.0.9
lab_ip b address add "$evil/24" dev "$(lab_interface b 0)"
LAB_PEERS="  - name: 0evil
    key-file: $evil_key
    paths:
      - {rail: r0, address: $evil}"
lab_mrcd a
lab_mrcd b
e2e_peer_b_paths() { e2e_is a paths '[.[] | select(.peer == "b" and (.state | ascii_downcase) == "good")] | length == 4'; }
lab_wait_for "all paths to b" 15 e2e_peer_b_paths
e2e_serve b
lab_perf_spawn stream a stream b --size 1MiB --verify --duration 0 --json --quiet
delivered() { [ "$(e2e_get b peers '.[] | select(.name == "a") | .messages_delivered')" -ge "$1" ]; }
goes_on() {
	local before
	before=$(e2e_get b peers '.[] | select(.name == "a") | .messages_delivered')
	lab_wait_for "the stream to go on beside $1" 20 delivered $((before + 20))
}
goes_on "nobody"
strangers() { e2e_get a status .strangers; }
counted() { [ "$(strangers)" -gt "$1" ]; }
address=$(lab_address a 0)

before=$(strangers)
lab_exec b curl -s -m 5 "http://$address:7471/" >/dev/null || :
lab_wait_for "a web browser to be counted" 5 counted "$before"

before=$(strangers)
for _ in 1 2 3 4 5; do lab_spawn half b ncat "$address" 7471 --recv-only; done
lab_wait_for "half-open connections to be counted" 10 counted $((before + 4))
lab_wait_for "half-open connections to be closed" 10 lab_ended half

before=$(strangers)
lab_spawn hello b "$E2E_BIN/stranger" "$evil" "$address" 7471 hello "$evil_key"
lab_status hello 120
[ "$LAB_STATUS" = 0 ] || lab_fail "a handshake out of range was not refused"
lab_wait_for "each of them to be counted" 5 counted $((before + 300))
goes_on "handshakes out of range"

before=$(strangers)
lab_spawn wrong-key b "$E2E_BIN/stranger" "$evil" "$address" 7471 frames "$LAB_DIR/wrong.key"
lab_status wrong-key 30
[ "$LAB_STATUS" != 0 ] || lab_fail "a wrong key was taken"
lab_wait_for "a wrong key to be counted" 5 counted "$before"

lab_spawn frames b "$E2E_BIN/stranger" "$evil" "$address" 7471 frames "$evil_key"
lab_status frames 300
[ "$LAB_STATUS" = 0 ] || lab_fail "the daemon did not live through frames out of range"
goes_on "frames out of range"
e2e_is a peers '.[] | select(.name == "0evil") | .protocol_errors > 0' || lab_fail "broken frames are not counted"
cat "$LAB_DIR/log/frames.out"

# One line of each kind, not one for each connection.
lines=$(grep -c refused "$LAB_DIR/log/mrcd-a.err" || :)
[ "$lines" -ge 3 ] || lab_fail "strangers are not logged"
[ "$lines" -le 30 ] || lab_fail "$lines lines are logged for strangers"
lab_wait_for "all paths to b still there" 15 e2e_peer_b_paths
e2e_stream_end
e2e_end
