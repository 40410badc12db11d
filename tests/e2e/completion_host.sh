# shellcheck shell=bash
#
# completion_host.sh - where a shell completes: an mrcctl in $PATH, and a daemon with three rails; sourced after e2e.sh
#
# $work is removed at the end. MRC_CONTROL names the daemon's socket, also while none runs.

work=$(mktemp -d)
trap 'kill "${daemon:-}" 2>/dev/null || :; wait; rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/run" "$work/dir with spaces"
ln -s "$MRCCTL" "$work/bin/mrcctl"
PATH=$work/bin:$PATH
cd "$work" || exit # what an option with a file makes, it makes here
export MRC_CONTROL=$work/run/control.sock

completion_daemon_start() {
	cat >"$work/mrcd.yaml" <<-YAML
		host: a
		runtime-dir: $work/run
		user: root
		rails:
		  - {name: left, address: 127.0.0.1, port: 7481}
		  - {name: right, address: 127.0.0.1, port: 7482}
		  - {name: rear, address: 127.0.0.1, port: 7483}
		key-file: $work/key
		peers:
		  - name: brother
		    paths:
		      - {rail: left, address: 127.0.0.9}
	YAML
	(umask 077 && echo "a key that is used once" >"$work/key")
	"$MRCD" --config "$work/mrcd.yaml" 2>"$work/log" &
	daemon=$!
	lab_wait_for "the daemon" 10 mrcctl status
}

completion_daemon_stop() {
	kill "$daemon"
	wait "$daemon" || lab_fail "the daemon ended with status $?"
	daemon=
}

# The commands and the options that the usage has, sorted, on one line
completion_usage() { mrcctl --help | sed -n "$1" | sort | paste -sd ' '; }
completion_commands() { completion_usage '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p'; }
completion_options() { completion_usage '/^Options:/,/^$/s/^ .* \(--[a-z-]*\).*/\1/p'; }
