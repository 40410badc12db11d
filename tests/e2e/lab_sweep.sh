#!/usr/bin/env bash
# What a killed lab left is swept by the next one, once, also when several begin at the same time, and also when it was
# killed in the middle of removing itself.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

lab_needs
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/mrc-sweep.XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

# A lab whose shell is no more: this pid was started at another time.
dead_lab() { # ID
	mkdir -p "$TMPDIR/mrc-lab.$1/log"
	printf '%s %s\n' "$$" 1 >"$TMPDIR/mrc-lab.$1/owner"
	: >"$TMPDIR/mrc-lab.$1/pids"
}
left() { find "$TMPDIR" -maxdepth 1 -name 'mrc-lab.*'; }
begin() { (
	set -e
	lab_up 1 1
	lab_down
); }

for ((turn = 0; turn < 5; turn++)); do
	dead_lab half
	dead_lab "whole$turn"
	LAB_ID=whole$turn LAB_DIR=$TMPDIR/mrc-lab.whole$turn LAB_HOSTS=(a)
	ip netns add "$(lab_namespace a)"
	lab_save
	LAB_DIR=''
	pids=()
	for ((i = 0; i < 3; i++)); do
		begin 2>"$TMPDIR/says.$i" &
		pids+=($!)
	done
	for i in "${!pids[@]}"; do
		wait "${pids[i]}" || lab_fail "lab $i of turn $turn did not come up: $(cat "$TMPDIR/says.$i")"
	done
	[ -z "$(left)" ] || lab_fail "not swept: $(left)"
	[ ! -e "/run/netns/$(LAB_ID=whole$turn lab_namespace a)" ] || lab_fail "the dead lab's host is still there"
done

# What one is sweeping is left to it, under whatever name, until it is done or dead.
for name in taken taken.swept; do
	dead_lab "$name"
	exec {lock}<"$TMPDIR/mrc-lab.$name"
	flock -n "$lock"
	begin
	[ -f "$TMPDIR/mrc-lab.$name/owner" ] || lab_fail "mrc-lab.$name was taken from who was sweeping it"
	exec {lock}<&-
	begin
	[ -z "$(left)" ] || lab_fail "not swept when its sweeper was gone: $(left)"
done
echo ok
