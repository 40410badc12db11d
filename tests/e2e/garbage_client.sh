#!/usr/bin/env bash
# A program that writes garbage into its rings, stops reading, or keeps all its landing space harms only itself.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

rogue=$E2E_BIN/rogue
E2E_YAML='clients: {landing-arena: 16MiB, send-arena: 16MiB}'
e2e_hosts 4
e2e_stream_start --in-flight 4
fds_a=$(e2e_fds a)
sock_a=$LAB_DIR/host/a/mrcd.sock sock_b=$LAB_DIR/host/b/mrcd.sock

# A far side for the rogues that send, so that what they break is a channel that works.
lab_spawn sink b "$rogue" "$sock_b" hold sink
lab_wait_for "the sink" 10 e2e_is b clients '[.[] | select(.name == "rogue") | .listeners] | add > 0'
for mode in attach requests entries tails; do
	lab_spawn "$mode" a "$rogue" "$sock_a" "$mode" b/sink
	lab_status "$mode" 60
	[ "$LAB_STATUS" = 0 ] || lab_fail "rogue $mode ended with status $LAB_STATUS"
	e2e_goes_on "after rogue $mode"
done
lab_kill sink KILL

# Buffers changed while they are sent, or taken away: to a far side that takes everything.
for mode in scribble punch; do
	lab_spawn "sink-$mode" b "$rogue" "$sock_b" hold "$mode"
	lab_wait_for "a sink for $mode" 10 e2e_is b clients '[.[] | select(.name == "rogue") | .listeners] | add > 0'
	lab_spawn "$mode" a "$rogue" "$sock_a" "$mode" "b/$mode"
	e2e_goes_on "beside rogue $mode" 100
	e2e_paths a 4
	lab_kill "$mode" KILL
	lab_kill "sink-$mode" KILL
done

# The far side stops reading, or holds all its memory: its sender waits, nobody else does.
for mode in deaf hold; do
	lab_spawn "$mode" b "$rogue" "$sock_b" "$mode" "$mode"
	lab_wait_for "the $mode service" 10 e2e_is b clients '[.[] | select(.name == "rogue") | .listeners] | add > 0'
	lab_spawn flood a "$rogue" "$sock_a" flood "b/$mode"
	lab_wait_for "the $mode service to take the channel" 10 grep -q accepted "$LAB_DIR/log/$mode.out"
	e2e_goes_on "beside a receiver that is $mode" 100
	lab_alive "mrcd-b" || lab_fail "the daemon died of a receiver that is $mode"
	lab_kill "$mode" KILL
	lab_wait_for "the sender to be told" 5 lab_ended flood
done

lab_wait_for "the daemon to have forgotten all rogues" 5 e2e_clients_are a 1
lab_wait_for "as many descriptors as before" 5 e2e_fds_are a "$fds_a"
e2e_goes_on "when all rogues have gone"
e2e_stream_end
e2e_end
