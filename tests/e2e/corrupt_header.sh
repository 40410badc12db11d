#!/usr/bin/env bash
# Headers damaged on one rail of two, and what else only daemons write: the path leaves with reason `corrupting`, stays away
# as long as it lasts, and is in service again when it ends. Nothing is lost meanwhile.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
# shellcheck source-path=SCRIPTDIR source=corrupt_shared.sh
. "$(dirname "$0")/corrupt_shared.sh"

left() { # HOST ERRORS: rail 1 had more header errors than so many, and left for it
	e2e_is "$1" paths ".[] | select(.rail == \"r1\") | .header_errors > $2 and .reason == \"corrupting\""
}
tried() { [ "$(corrupt_errors b 1 header_errors)" -ge "$1" ]; }

corrupt_hosts 2
e2e_stream_start

# Headers, bodies of control frames; of what b hears, and of what a hears.
for host in b a; do
	for kind in header control; do
		before=$(corrupt_errors "$host" 1 header_errors)
		lab_corrupt 1 "$kind" 1/1 0 "$host"
		lab_wait_for "the path to leave $host for damage of the kind $kind" 15 left "$host" "$before"
		[ "$kind" = control ] || e2e_paths "$host" 1
		lab_corrupt_end 1 "$host"
		found=$(corrupt_errors "$host" 1 header_errors)
		# what follows a damaged header is not looked at
		[ "$found" -le "$(lab_corrupt_count 1 flips "$host")" ] ||
			lab_fail "$found headers and bodies are called damaged at $host, more than were"
		e2e_paths "$host" 2
	done
	grep -q 'warning: rail r1 to .*: corrupting, ' "$LAB_DIR/log/mrcd-$host.err" || lab_fail "the log of $host does not name the rail"
	[ "$host" = a ] || corrupt_names 1 b
done
for host in b a; do
	[ -z "$(corrupt_blamed "$host" 1)" ] || lab_fail "rail 1 is not the one with errors at $host: $(corrupt_told "$host")"
	e2e_paths "$host" 2
done

# Payload is a client's: b asks for padding, which no client has touched, and that convicts the path.
before=$(corrupt_errors b 1 header_errors)
lab_corrupt 1 payload,probe 1/1
lab_wait_for "the path to leave b for damaged padding" 15 left b "$before"
e2e_paths b 1
e2e_goes_on "with a rail that damages payload and padding"
lab_corrupt_end 1
e2e_paths b 2

# It goes on: the path tries again and again, is never in service, and the stream does not care.
lab_corrupt 1 header 1/1
e2e_paths a 1
lab_wait_for "further attempts to meet the damage" 20 tried $(($(corrupt_errors b 1 header_errors) + 3))
e2e_goes_on "with a rail that damages all headers"
e2e_is b paths '.[] | select(.rail == "r1") | .state != "GOOD" and .reason == "corrupting"' || lab_fail "the path is in service with all headers damaged"

# The handshake too: the path does not open.
made=$(lab_corrupt_count 1 flips)
lab_corrupt 1 handshake 1/1
lab_wait_for "further handshakes to meet the damage" 20 corrupt_made 1 $((made + 2))
e2e_goes_on "with a rail that damages handshakes"
e2e_is b paths '.[] | select(.rail == "r1") | .state != "GOOD"' || lab_fail "the path is in service with all handshakes damaged"
lab_corrupt_end 1
e2e_paths a 2
e2e_paths b 2
e2e_share 1
e2e_stream_end
e2e_end
