#!/usr/bin/env bash
# Two daemons that root started and that are nobody by now change their key under an encrypted stream, which does not
# feel it.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

# Who has given root up can read the configuration, the keys by its group, and make sockets.
LAB_USER=nobody
LAB_KEY_GROUP=$(id -g nobody)
give() { # HOST
	chmod 711 "$LAB_DIR" "$LAB_DIR/host"
	chown nobody "$LAB_DIR/host/$1"
}
key() { # HOST FILE TEXT
	local file=$LAB_DIR/host/$1/$2
	(umask 077 && printf '%s\n' "$3" >"$file")
	chgrp "$LAB_KEY_GROUP" "$file"
	chmod 640 "$file"
}
# keys HOST FILES: what the configuration lists, and a reload
keys() {
	sed -i "s|^key-file:.*|key-file: $2|" "$LAB_DIR/host/$1/mrcd.yaml"
	lab_mrcctl "$1" reload >"$LAB_DIR/log/reload-$1.out" || lab_fail "the reload on $1 was refused"
	grep -qE 'changed +peer . \(key-file\)' "$LAB_DIR/log/reload-$1.out" ||
		lab_fail "the reload on $1 took no keys: $(cat "$LAB_DIR/log/reload-$1.out")"
}
# live HOST USE COUNT: so many paths live by the key of that use
live() { e2e_is "$1" keys "[.[] | select(.use == \"$2\") | .paths] == [$3]"; }
is_nobody() { # HOST: no root, two capabilities, no way to more
	awk -v uid="$(id -u nobody)" '
		$1 == "Uid:" && $2 == uid && $3 == uid && $4 == uid { seen++ }
		$1 == "CapEff:" && $2 == "0000000000006000" { seen++ }
		$1 == "CapPrm:" && $2 == "0000000000006000" { seen++ }
		$1 == "NoNewPrivs:" && $2 == 1 { seen++ }
		END { exit seen != 4 }' "/proc/$(lab_pid "mrcd-$1")/status"
}

lab_up 2 2 "$E2E_RATE"
for host in a b; do
	give "$host"
	lab_mrcd "$host" 'encryption: required'
	key "$host" new "another key of lab $LAB_ID"
done
e2e_paths a 2
for host in a b; do is_nobody "$host" || lab_fail "mrcd on $host has more than it should: $(cat "/proc/$(lab_pid "mrcd-$host")/status")"; done
e2e_stream_start

for host in a b; do keys "$host" "[key, new]"; done
for host in b a; do keys "$host" "[new, key]"; done
live a accepted 2 || lab_fail "a path was touched by a reload: $(e2e_get a keys .)"
e2e_goes_on "after the keys were exchanged"
for rail in 0 1; do
	lab_mrcctl a drain "r$rail"
	lab_mrcctl a undrain "r$rail"
	e2e_paths a 2
done
for host in a b; do
	lab_wait_for "all paths at $host to live by the new key" 10 live "$host" "proved first" 2
	live "$host" accepted 0 || lab_fail "the old key is still in use at $host: $(e2e_get "$host" keys .)"
	e2e_is "$host" paths '[.[].encrypted] == [true, true]' || lab_fail "not all paths at $host are encrypted by the new key"
done
e2e_goes_on "by the new key"
! lab_mrcctl a keys | grep -qF "the key of lab" || lab_fail "a key is shown"
for host in a b; do keys "$host" new; done
# The old key opens nothing any more.
lab_mrcctl a drain r1
sed -i "s|^key-file:.*|key-file: key|" "$LAB_DIR/host/a/mrcd.yaml"
kill -HUP "$(lab_pid mrcd-a)"
lab_wait_for "a to have the old key alone" 10 live a "proved first" 0
live a removed 1 || lab_fail "the path that lives by a removed key is not shown: $(e2e_get a keys .)"
lab_mrcctl a undrain r1
lab_wait_for "b's key to be refused at a" 10 grep -q 'has another key than ours' "$LAB_DIR/log/mrcd-a.err"
e2e_is a paths '[.[] | select(.state == "GOOD") | .rail] == ["r0"]' || lab_fail "a path came up with the old key"
# What is wrong changes nothing.
sed -i "s|^key-file:.*|key-file: gone|" "$LAB_DIR/host/a/mrcd.yaml"
if lab_mrcctl a reload 2>"$LAB_DIR/log/gone.err"; then lab_fail "a key file that is not there was taken"; fi
grep -q "gone.*cannot be opened" "$LAB_DIR/log/gone.err" || lab_fail "the file is not named: $(cat "$LAB_DIR/log/gone.err")"
keys a new
e2e_paths a 2
e2e_stream_end
e2e_end
