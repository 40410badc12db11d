#!/usr/bin/env bash
# A driver that does not answer holds up nothing: not what goes over rails, nor who asks the daemon, nor rails that go and
# come. And a link that a drill cannot take up again is not waited for for ever.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

command -v curl >/dev/null || lab_skip "not installed: curl"
LAB_USER=root # with what links take
lab_up 2 3 "$E2E_RATE"
stuck=$LAB_DIR/stuck
# Rails by their interface alone: what address they have and how fast they are has to be found out.
eval "$(declare -f lab_conf | sed '1s/lab_conf/lab_conf_whole/')"
lab_conf() { lab_conf_whole "$@" | sed -E '/interface:/s/, (address|speed): [^,}]+//g'; }
LAB_WRAP="env STUCK=$stuck LD_PRELOAD=$E2E_BIN/libstuck.so" lab_mrcd a
lab_mrcd b
e2e_paths a 3
e2e_paths b 3
e2e_stream_start

mtu_at_b() { e2e_is b paths "[.[] | select(.rail == \"r0\") | .about.mtu] == [$1]"; }

# ---- a driver that hangs ----

lab_wait_for "b to hear of r0" 10 mtu_at_b 1500
touch "$stuck.hang"
lab_ip a link set r0 mtu 1600
lab_wait_for "the driver to be asked" 10 test -e "$stuck.hung"
e2e_goes_on "while a driver hangs"
for what in status rails paths peers; do
	lab_mrcctl a "$what" >/dev/null || lab_fail "mrcctl $what while a driver hangs"
done
lab_exec a curl -sf --max-time 20 http://127.0.0.1:9471/metrics >"$LAB_DIR/log/metrics" || lab_fail "no metrics while a driver hangs"
lab_cut 1
e2e_paths a 2
lab_heal 1
e2e_paths a 3
e2e_goes_on "after a rail went and came while a driver hangs"
mtu_at_b 1500 || lab_fail "b was told what nobody could know"
rm "$stuck.hang"
lab_wait_for "b to hear of the new MTU" 10 mtu_at_b 1600
e2e_stream_end

# ---- a link that does not come up ----

link_is() { [ "$(lab_ip a -j link show r1 | jq -r '.[0].flags | if index("UP") then "up" else "down" end')" = "$1" ]; }
owed() { [ -e "$LAB_DIR/host/a/drill.link" ]; }
says() { grep -q "$1" "$LAB_DIR/log/drill.err"; }
lab_spawn drill a "$MRCCTL" --runtime-dir "$LAB_DIR/host/a" drill r1 --down 60s --link --yes --stream none
lab_wait_for "the link to go down" 10 link_is down
touch "$stuck.down"
kill -INT "$(lab_pid drill)"
lab_wait_for "the daemon to fail" 10 grep -q 'cannot be taken up again: Operation not permitted' "$LAB_DIR/log/mrcd-a.err"
lab_alive drill || lab_fail "one interrupt is to end the fault, not the drill: $(cat "$LAB_DIR/log/drill.err")"
kill -INT "$(lab_pid drill)"
lab_status drill 10
[ "$LAB_STATUS" = 1 ] || lab_fail "the drill ended with status $LAB_STATUS"
says 'r1 is not up again: Operation not permitted.*By hand: ip link set r1 up' || lab_fail "it does not say what is left: $(cat "$LAB_DIR/log/drill.err")"
if link_is up || ! owed; then lab_fail "nobody owes anything any more"; fi
if lab_mrcctl a drill r2 --down 1s --yes 2>"$LAB_DIR/log/drill.err"; then lab_fail "another drill was begun"; fi
says 'r1, which an earlier drill took down' || lab_fail "it does not say why not: $(cat "$LAB_DIR/log/drill.err")"
rm "$stuck.down"
lab_wait_for "the daemon to take it up" 10 link_is up
e2e_paths a 3
if owed; then lab_fail "the note of a link that is up is still there"; fi

e2e_end
