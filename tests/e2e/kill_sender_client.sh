#!/usr/bin/env bash
# A sending program is killed in mid-stream: the other side learns it, and nothing of it stays behind.
E2E_COUNTS_MEMORY=1
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 4
cycle() {
	lab_perf_spawn stream a stream b --size 1MiB --verify --duration 0 --json --quiet
	e2e_goes_on "a sender that will be killed"
	lab_kill stream KILL
	lab_wait_for "the daemon to forget the sender" 1 e2e_clients_are a 0
	lab_wait_for "the receiver's channel to end" 1 e2e_is b channels 'length == 0'
	lab_wait_for "no landing memory to be held" 1 e2e_is b clients '[.[].landing_used_bytes] | add == 0'
}
e2e_serve b
cycle
fds_a=$(e2e_fds a) fds_b=$(e2e_fds b) rss_a=$(e2e_rss_kb a) rss_b=$(e2e_rss_kb b)
for _ in 1 2 3 4; do cycle; done
lab_wait_for "as many descriptors at a as before" 5 e2e_fds_are a "$fds_a"
lab_wait_for "as many descriptors at b as before" 5 e2e_fds_are b "$fds_b"
if [ "${E2E_SANITIZED:-}" = thread ]; then
	lab_say "memory is not compared: what is resident is ThreadSanitizer's shadow for the most part"
else
	lab_wait_for "no more memory at a than before" 5 e2e_rss_below a $((rss_a + 8192))
	lab_wait_for "no more memory at b than before" 5 e2e_rss_below b $((rss_b + 8192))
fi
lab_kill serve TERM
e2e_stream_start
e2e_stream_end
e2e_end
