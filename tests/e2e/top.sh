#!/usr/bin/env bash
# mrcctl top on a real terminal (tmux): a rail that is cut shows as a state and as an event, a cable that flaps between
# two looks shows as both its events, keys and sizes are taken, a daemon that goes away and comes back is told, and
# whatever ends top, the terminal is left as it was found.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
# shellcheck source-path=SCRIPTDIR source=terminal.sh
. "$(dirname "$0")/terminal.sh"
e2e_hosts 2
terminal_open 80 24
wait_for() { # WHAT PATTERN
	lab_wait_for "$1" 20 shows "$2" || :
}
alternate() { [ "$(terminal display-message -p -t main '#{alternate_on}#{cursor_flag}')" = "$1" ]; }
in_order() { # after top: the shell's screen, a cursor, and a terminal that echoes
	lab_wait_for "the shell after $1, with status $2" 20 ended "$2"
	alternate 01 || lab_fail "$1 leaves the alternate screen or no cursor behind"
	type_ 'stty -a | tr " " "\n" | grep -xE "icanon|echo|iexten" | wc -l' Enter
	lab_wait_for "a terminal in order after $1" 10 shows '^3$'
	type_ clear Enter
	lab_wait_for "a clear screen" 10 shows_not '^3$'
}
top() { # ARGUMENTS
	type_ "$MRCCTL --runtime-dir $LAB_DIR/host/a top $*" Enter
	wait_for "the page of top" '^RAIL '
	alternate 10 || lab_fail "top does not draw on the alternate screen, or shows the cursor"
}

# ---- what is shown ----

e2e_stream_start
top --interval 200ms
wait_for "rail 1 to carry something" '^r1 +up +[1-9][0-9.]* Mb/s'
for want in '^ a: 2 of 2 rails up, 1 of 1 peer connected, 1 client, 1 channel +[0-9:]{8}$' '^PEER ' '^b +connected ' '^CHANNEL ' '^b/[0-9]+ +perf ' \
	'^TIME +EVENT' '^ q quit  s sort: rate  p pause  h help .*every 200 ms *$'; do
	shows "$want" || lab_fail "the page has no '$want': $(page)"
done
[ "$(page | wc -l)" = 24 ] || lab_fail "the page has $(page | wc -l) lines"

lab_cut 1
wait_for "rail 1 to be without carrier" '^r1 +no carrier '
wait_for "the event" '^[0-9:]{8}  rail r1: carrier lost'
wait_for "the path's event" '^[0-9:]{8}  rail r1 to b: [A-Z_]+, was GOOD'
wait_for "rail 0 alone to count" '^ a: 1 of 2 rails up'
page >"$LAB_DIR/log/page"
lab_heal 1
wait_for "rail 1 to be up again" '^r1 +up '
wait_for "the event of its return" '^[0-9:]{8}  rail r1 to b: GOOD, was'

# ---- a cable that flaps while top does not look: all is as before when it looks again ----

has_event() { lab_mrcctl a events | grep -q "$1"; }
type_ p
wait_for "the pause" 'PAUSED *$'
lab_cut 0
lab_wait_for "the daemon to have seen the loss" 20 has_event 'rail r0: carrier lost'
lab_heal 0
lab_wait_for "the daemon to have the path back" 20 has_event 'rail r0 to b: GOOD, was PROBING, after'
if shows 'rail r0: carrier'; then lab_fail "top looks while it is paused: $(page)"; fi
type_ p
wait_for "the loss" '^[0-9:]{8}  rail r0: carrier lost'
wait_for "and the return" '^[0-9:]{8}  rail r0: carrier is back'
wait_for "the path's going" '^[0-9:]{8}  rail r0 to b: [A-Z_]+, was GOOD'
wait_for "and coming" '^[0-9:]{8}  rail r0 to b: GOOD, was'

# ---- keys and sizes ----

type_ s
wait_for "another order" 'sort: messages'
type_ Up
type_ h
wait_for "the help" '^ MOVED +fragments taken off'
type_ x
wait_for "the page after the help" '^RAIL '
type_ p
wait_for "the pause" 'PAUSED *$'
type_ p
wait_for "the end of the pause" 'every 200 ms *$'
terminal resize-window -t main -x 132 -y 40
wait_for "a page as wide as the terminal" '^RAIL .* INTERFACE'
lab_wait_for "its last line at the bottom" 10 eval 'page | sed -n 40p | grep -q "^ q quit"'
terminal resize-window -t main -x 40 -y 10
lab_wait_for "a small page" 10 eval 'page | sed -n 10p | grep -q "^ q quit"'
terminal resize-window -t main -x 80 -y 24
wait_for "the usual size" '^TIME +EVENT'

# ---- stopped and continued, as by ^Z and fg ----

type_ C-z
wait_for "top to be stopped" 'Stopped'
alternate 01 || lab_fail "stopped, top leaves the alternate screen or no cursor"
type_ fg Enter
wait_for "top to be back" '^RAIL '
alternate 10 || lab_fail "continued, top is not on the alternate screen"

# ---- a rail that loses packets ----

lab_exec b nft -f - <<-NFT
	table netdev lossy {
		chain incoming {
			type filter hook ingress device "$(lab_interface b 1)" priority 0;
			numgen random mod 50 0 drop
		}
	}
NFT
wait_for "rail 1 to show its loss" '^r1 .* (us|ms|-) +(<\.01|0\.[0-9]+|[1-9][0-9.]*)% +[0-9 ]+ +[0-9]+ +[01]/1 *$'
lab_exec b nft delete table netdev lossy

# ---- the daemon goes away and comes back ----

lab_mrcd_stop a
wait_for "the daemon to be missed" '^ No answer since [0-9:]{8}: .*trying again'
lab_mrcd a
wait_for "the daemon to be back" '^[0-9:]{8}  mrcd answers again'
wait_for "its first event" '^[0-9:]{8}  mrcd: started'
shows_not 'No answer since' || lab_fail "the daemon is back, and still missed"

# ---- every end leaves the terminal as it was ----

type_ q
in_order "the key q" 0
for signal in INT TERM HUP ABRT; do
	top
	pkill_of_pane=$(pgrep -P "$(terminal display-message -p -t main '#{pane_pid}')" mrcctl)
	kill "-$signal" "$pkill_of_pane"
	case $signal in ABRT) in_order "a crash" 134 ;; *) in_order "SIG$signal" 0 ;; esac
done

# ---- without a terminal ----

if lab_mrcctl a top >"$LAB_DIR/log/none" 2>&1; then lab_fail "top draws on what is no terminal"; fi
grep -q -- '--once' "$LAB_DIR/log/none" || lab_fail "top without a terminal says: $(cat "$LAB_DIR/log/none")"
lab_mrcctl a top --once --interval 200ms >"$LAB_DIR/log/once"
if grep -q $'\033' "$LAB_DIR/log/once"; then lab_fail "a page for a file has escapes"; fi
grep -qE '^r0 +up +.*b/s' "$LAB_DIR/log/once" || lab_fail "the page is: $(cat "$LAB_DIR/log/once")"
lab_mrcctl a top --once --json | jq -e '.status.host == "a" and (.rails | length == 2) and (.paths | length == 2)
	and (.peers[0].name == "b") and (.channels | type == "array")' >/dev/null || lab_fail "no snapshot as JSON"
[ "$(lab_mrcctl a top --json --interval 100ms | head -n 3 | jq -s 'length')" = 3 ] || lab_fail "no three snapshots in three lines"

e2e_stream_stop stream
e2e_intact stream
e2e_end
