#!/usr/bin/env bash
# The ways of mrcctl drill that a person goes: asked on a terminal, over all rails in turn, with a stream of its own to
# a host that serves it, watching a cable that is pulled by hand, and killed in the middle.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
# shellcheck source-path=SCRIPTDIR source=terminal.sh
. "$(dirname "$0")/terminal.sh"

LAB_POLL=0.05 # most of it is waiting
# Hosts a and b, and at b's place a host c that only rail 0 leads to.
lab_up 2 3 "$E2E_RATE"
mkdir "$LAB_DIR/host/c"
cat >"$LAB_DIR/host/c/mrcd.yaml" <<-YAML
	host: c
	runtime-dir: $LAB_DIR/host/c
	key-file: $LAB_DIR/host/a/key
	user: root
	listen-port: 7472
	rails:
	  - {name: r0, interface: $(lab_interface b 0), address: $(lab_address b 0)}
	peers:
	  - name: a
	    paths:
	      - {rail: r0, address: $(lab_address a 0)}
YAML
LAB_PEERS="  - {name: c, paths: [{rail: r0, address: $(lab_address b 0), port: 7472}]}" lab_mrcd a
lab_mrcd b
lab_spawn mrcd-c b "$MRCD" --config "$LAB_DIR/host/c/mrcd.yaml"
e2e_paths a 4
lab_spawn serve b "$MRCCTL" --runtime-dir "$LAB_DIR/host/b" drill --serve
lab_wait_for "the service on b" 10 e2e_is b clients '[.[].listeners] | add > 0'

log=$LAB_DIR/log
is() { jq -e "$2" "$log/$1" >/dev/null || lab_fail "not so: $3: $(jq -c 'del(.series)' "$log/$1")"; }
has() { grep -qE -- "$2" "$log/$1"; }
says() { has "$@" || lab_fail "it does not say '$2': $(cat "$log/$1")"; }
spawn_drill() { lab_spawn "$1" a "$MRCCTL" --runtime-dir "$LAB_DIR/host/a" drill "${@:2}"; }
has_carrier() { e2e_is a rails ".[] | select(.name == \"r$1\") | .carrier"; }
has_none() { ! has_carrier "$1"; }
is_picture() { # NAME TEXT: of three rails, and with that text
	{ head -c 5 "$log/$1" | grep -qx '<svg ' && tail -n 1 "$log/$1" | grep -qx '</svg>'; } || lab_fail "$1 is no SVG"
	[ "$(grep -c '^<path fill="#' "$log/$1")" = 3 ] || lab_fail "$1 does not draw three rails"
	if grep -qE 'nan|inf' "$log/$1"; then lab_fail "$1 has what is no number"; fi
	says "$1" "$2"
}
# What may be wrong on a machine that is busy: a rate or a time can be anything there.
only_rates='[.drills[].problems[] | select(test("of the rate|of what they did|stood still") | not)] == []'

# ---- asked on a terminal, over all rails ----

terminal_open 132 50
echo "an older one" >"$log/all.svg"
ask() { type_ "$MRCCTL --runtime-dir $LAB_DIR/host/a drill --all-in-turn --down 200ms --picture $log/all.svg" Enter; }
ask
lab_wait_for "the question" 10 shows '^Go on\? \[y/N\]'
shows '^Each rail of this host, one after the other, will be as if it had no carrier for 200 ms' || lab_fail "it does not say what is to be done: $(page)"
type_ n Enter
lab_wait_for "the end after a no" 10 ended 1
shows '^mrcctl: nothing was done$' || lab_fail "a no is taken for: $(page)"
if has mrcd-a.err 'drill begins'; then lab_fail "after a no a rail is drilled"; fi
grep -qx "an older one" "$log/all.svg" || lab_fail "after a no the picture is another one"

type_ clear Enter
lab_wait_for "a clear screen" 10 shows_not 'nothing was done'
ask
lab_wait_for "the question" 10 shows '^Go on\? \[y/N\]'
type_ y Enter
lab_wait_for "the end of the drills" 60 ended 1
page >"$log/all"
for rail in 1 2; do
	says all "^rail r$rail: down for [0-9.]+ (ms|s)\$"
	says all "^rail r$rail( +[0-9.]+ [MGk]?b/s){3}\$"
	says all "^r$rail +[0-9.]+ (us|ms|s) +carrier +([0-9.]+ (us|ms|s)|at once) "
done
says all '^all rails( +[0-9.]+ [MGk]?b/s){3}$'
says all '^longest stall( +[0-9.]+ (ns|us|ms|s)){3}$'
says all '^path to b: found out after [0-9.]+ (us|ms|s) \(carrier\), [0-9]+ fragments? moved, back ([0-9.]+ (us|ms|s) after|at) the end$'
says all '^full rate (again after|not seen again).*, the rail at its share (after|not)'
says all '^[0-9]+ fragments? sent again by another path$'
says all '^test stream to b: [1-9][0-9]* messages, lost 0, duplicated 0, reordered 0, corrupted 0$'
# Rail 0 has the last path to c: it is spared, which is said, and the others are drilled all the same.
says all '^mrcctl: rail r0 has the last good path to c, '
says all '^FAIL 1 of 3 rails not drilled'
if has mrcd-a.err 'rail r0: drill begins'; then lab_fail "the last good path is taken"; fi
is_picture all.svg '>r1 down, carrier after '

# ---- watching somebody pull a cable ----

e2e_paths a 4
spawn_drill watch --watch --json --picture "$log/watch.svg"
lab_wait_for "the watch to begin" 20 has watch.err '^watching: '
lab_cut 1
lab_wait_for "it to see the cable go" 20 has watch.err '^rail r1 to b left service '
lab_heal 1
lab_status watch 60
r1='.drills[] | select(.rail == "r1")' # on a machine that is busy another may have been silent for a while, too
is watch.out "$r1"' | .fault == "watched" and .measured and .messages_failed == 0' "rail 1 was watched, measured, and no message failed"
is watch.out "$r1"'.paths | length == 1 and (.[0] | .peer == "b" and (.reason | test("carrier|peer-port|silent"))
	and .detected_ns == null and .quiet_ns >= 0 and .times_left >= 1 and .back_ns != null)' "why the path left, and that it is back"
is watch.out "$r1"' | (.fragments_resent > 0 or .paths[0].fragments_moved == 0) and .duration_ns > 0 and .before.bytes_per_s > 1e6
	and .before.stall_ns_max != null and .during.stall_ns_max != null and .after.stall_ns_max != null' "its figures"
is watch.out '.stream | .peer == "b" and .messages > 0 and .lost == 0 and .duplicated == 0 and .reordered == 0 and .corrupted == 0' "its stream lost nothing"
is watch.out "$only_rates and (.passed == ([.drills[].problems[]] == [])) and .rails_left == 0" "nothing is wrong"
is_picture watch.svg '>r1 went, [a-z-]+ after '
spawn_drill idle --watch --stream none --picture "$log/idle.svg"
lab_wait_for "the watch to begin" 20 has idle.err '^watching: '
lab_kill idle INT
[ "$LAB_STATUS" = 1 ] || lab_fail "a watch without an event ends with status $LAB_STATUS"
says idle.err 'interrupted; no rail went meanwhile'
[ ! -e "$log/idle.svg" ] || lab_fail "a watch without an event leaves a picture"

# ---- killed in the middle ----

e2e_paths a 4
spawn_drill killed --all-in-turn --down 60s --yes
lab_wait_for "a rail to go" 20 has_none 1
e2e_clients_are a 1 || lab_fail "its stream does not run: $(lab_mrcctl a clients)"
lab_kill killed
lab_wait_for "the rail to come back by the lease" 20 has_carrier 1
lab_wait_for "its stream to end" 20 e2e_clients_are a 0
e2e_paths a 4

lab_kill serve TERM
[ "$LAB_STATUS" = 0 ] || lab_fail "the service ends with status $LAB_STATUS"
says serve.out '^served [1-9][0-9]* channels: .* missing 0, duplicated 0, reordered 0, corrupted 0'
lab_kill mrcd-c TERM
e2e_end
