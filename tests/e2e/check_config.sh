#!/usr/bin/env bash
# mrcd --check says yes to a good file, and names file, line and key of what is wrong in a bad one.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

lab_up 2 2
lab_conf_write a
good=$LAB_DIR/host/a/mrcd.yaml
"$MRCD" --config "$good" --check 2>"$LAB_DIR/log/check.err" || lab_fail "a good file is refused"

bad() { # NAME KEY SED-EXPRESSION
	local file=$LAB_DIR/$1.yaml
	sed "$3" "$good" >"$file"
	! cmp -s "$good" "$file" || lab_fail "$1: the expression changes nothing"
	if "$MRCD" --config "$file" --check 2>"$LAB_DIR/log/$1.err"; then lab_fail "$1: taken"; fi
	grep -qE "$file:[0-9]+.*$2" "$LAB_DIR/log/$1.err" ||
		lab_fail "$1: file, line and '$2' are not named: $(cat "$LAB_DIR/log/$1.err")"
}
bad unknown-key colour '1i colour: blue'
bad not-a-port listen-port 's/^listen-port: .*/listen-port: 70000/'
bad port-is-text listen-port 's/^listen-port: .*/listen-port: ssh/'
bad unknown-rail r7 's/rail: r1,/rail: r7,/'
bad rail-twice r0 's/name: r1,/name: r0,/'
bad bad-address address 's/address: 10.11.0.1/address: 10.11.0.300/'
bad bad-type type 's/type: tcp, interface: r1/type: pigeon, interface: r1/'
bad device-of-tcp device 's/type: tcp, interface: r1/type: tcp, device: rxe0, interface: r1/'
bad retry-for-ever 'retry-count.*for ever' 's/type: tcp, interface: r1/type: auto, retry-count: 7, interface: r1/'
bad no-unit suspect-floor '$a timers: {suspect-floor: 5}'
bad out-of-range suspect-floor '$a timers: {suspect-floor: 5h}'
bad bad-name name 's/  - name: b/  - name: "b b"/'
chmod 644 "$LAB_DIR/host/a/key"
if "$MRCD" --config "$good" --check 2>"$LAB_DIR/log/key.err"; then lab_fail "a key that everybody may read was taken"; fi
grep -q 'key' "$LAB_DIR/log/key.err" || lab_fail "the key file is not named"
if "$MRCD" --config "$LAB_DIR/none.yaml" --check 2>/dev/null; then lab_fail "a file that is not there was taken"; fi
echo "ok"
