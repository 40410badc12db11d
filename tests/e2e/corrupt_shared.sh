# shellcheck shell=bash
#
# corrupt_shared.sh - what the tests of damage in flight share; to be sourced after e2e.sh
#
# How numbers are matched: the damager counts fragments with a wrong bit
# (frags_hit), the daemon fragments whose checksum was wrong and that it still
# needed (body_errors), so these are equal but for fragments it did not need.
# Of those it counts all (`duplicates`), damaged or not.
# shellcheck disable=SC2034 # corrupt_base is for the tests
# shellcheck source-path=SCRIPTDIR source=../lab/corrupt.sh
. "$LAB_TOP/tests/lab/corrupt.sh"

# corrupt_hosts RAILS: as e2e_hosts, and the premise shown on rail 1, whose streams b follows from their beginning
corrupt_hosts() {
	lab_up 2 "$1" "$E2E_RATE"
	corrupt_unseen 1
	corrupt_base=$(lab_corrupt_count 1 flips)
	lab_mrcd a "${E2E_YAML:-}"
	lab_mrcd b "${E2E_YAML:-}"
	e2e_paths a "$1"
	e2e_paths b "$1"
}

# The premise: a plain TCP stream over the rail delivers the damage, and neither it nor its reader is told.
corrupt_unseen() { # RAIL
	local sent=$LAB_DIR/plain.sent got=$LAB_DIR/plain.got flips wrong
	command -v ncat >/dev/null || lab_skip "not installed: ncat (tests/lab/deps installs it)"
	head -c 2097152 /dev/urandom >"$sent"
	lab_spawn plain b ncat --recv-only -l "$(lab_address b "$1")" 9000
	lab_wait_for "a plain TCP server to listen" 10 corrupt_listens b 9000
	lab_corrupt "$1" any 1/10
	lab_exec a ncat --send-only "$(lab_address b "$1")" 9000 <"$sent"
	lab_status plain 20
	lab_corrupt_end "$1"
	cp "$LAB_DIR/log/plain.out" "$got"
	: >"$LAB_DIR/log/plain.out" # no text
	flips=$(lab_corrupt_count "$1" flips)
	wrong=$({ cmp -l "$sent" "$got" || :; } | wc -l)
	[ "$flips" -gt 0 ] || lab_fail "nothing was damaged"
	[ "$(corrupt_checksum_errors b)" = 0 ] || lab_fail "the premise is gone: this kernel's TCP noticed the damage"
	if [ "$wrong" != "$flips" ] || [ "$(stat -c %s "$got")" != 2097152 ]; then
		lab_fail "the premise is gone: $flips bytes were damaged under a plain TCP stream, $wrong came out wrong"
	fi
	lab_say "plain TCP: $flips bytes of 2 MiB damaged in flight, $wrong delivered, no error"
	rm -f "$sent" "$got"
}
corrupt_listens() { [ -n "$(lab_exec "$1" ss -Hltn "sport = :$2")" ]; }
corrupt_checksum_errors() {
	lab_exec "$1" awk '$1 == "Tcp:" { if (!n) n = split($0, name); else for (i = 1; i <= n; i++) if (name[i] == "InCsumErrors") print $i }' /proc/net/snmp
}

# corrupt_made RAIL COUNT: so many bits were damaged on that rail
corrupt_made() { [ "$(lab_corrupt_count "$1" flips)" -ge "$2" ]; }

corrupt_errors() { # HOST RAIL COUNTER: one of that path's, or several (`a + .b`)
	e2e_get "$1" paths ".[] | select(.rail == \"r$2\") | .$3"
}

# Every damaged fragment was found, and nothing else: on that rail, at its hearer.
corrupt_all_found() { # RAIL
	local hit found spare
	hit=$(lab_corrupt_count "$1" frags_hit)
	found=$(corrupt_errors b "$1" body_errors)
	spare=$(e2e_get b peers '.[0].duplicates')
	[ "$found" -le "$hit" ] && [ $((found + spare)) -ge "$hit" ]
}

# corrupt_names RAIL HOST: that rail has errors at that host, no other rail has, and the other host has none. A frame
# that was half written when its path was suspected is finished with zeros, and so comes damaged: one for each suspicion.
corrupt_names() {
	local other=a
	[ "$2" = b ] || other=b
	e2e_is "$2" paths "any(.[]; .rail == \"r$1\" and .body_errors + .header_errors > 0)" ||
		lab_fail "rail $1 has no errors at $2: $(corrupt_told "$2")"
	[ -z "$(corrupt_blamed "$2" "$1")" ] ||
		lab_fail "rail $1 damages, and at $2 others have errors: $(corrupt_told "$2")"
	[ -z "$(corrupt_blamed "$other" none)" ] ||
		lab_fail "$other, to whom nothing came damaged, has errors: $(corrupt_told "$other")"
}
corrupt_told() { e2e_get "$1" paths '[.[] | {rail, body_errors, header_errors}] | tojson'; }

# corrupt_blamed HOST RAIL: the rails but that one that have more errors there than suspicions can explain
corrupt_blamed() {
	local from=a cut
	[ "$1" = b ] || from=b
	cut=$(e2e_get "$from" paths '[.[] | {(.rail): .suspicions}] | add | tojson')
	e2e_get "$1" paths "($cut) as \$cut | .[] | select(.rail != \"r$2\") |
		select(.header_errors > 0 or .body_errors > \$cut[.rail]) | .rail"
}

# corrupt_logged RAIL: the log of b names that rail and its peer for damaged payload
corrupt_logged() {
	grep -qE "warning: rail r$1 to a: [0-9]+ fragments? came damaged" "$LAB_DIR/log/mrcd-b.err" ||
		lab_fail "damage on rail r$1, and the log of b does not say so"
}
