#!/usr/bin/env bash
# What zsh completes for mrcctl, in a zsh whose tab key is pressed: commands, options, and the names of the daemon's rails.
# The words themselves are mrcctl's, which the test of bash looks at one by one (completion.sh).
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
command -v zsh >/dev/null || lab_skip "wants zsh"
# shellcheck source-path=SCRIPTDIR source=completion_host.sh
. "$(dirname "$0")/completion_host.sh"

# completes: reads lines and what zsh makes of them, with => between; a line may end with a blank, and the last one is completed
completes() {
	local table got
	table=$(cat)
	got=$(sed 's/ =>.*//' <<<"$table" | timeout $((60 * LAB_SLOWNESS)) zsh -f "$LAB_TOP/tests/e2e/zsh_complete.zsh" "$LAB_TOP/tools/completion" "$work") ||
		lab_fail "zsh does not answer: $got"
	diff <(sed 's/.* =>[ ]*//' <<<"$table") <(printf '%s\n' "$got") >&2 || lab_fail "wanted is what < shows; of: $table"
}

completes <<-TABLE
	mrcctl  => $(completion_commands)
	mrcctl -- => $(completion_options)
	mrcctl undr => undrain
	mrcctl status  =>
	mrcctl drill --st => --stream
	mrcctl --force drain --f => --force
	mrcctl drain  =>
	mrcctl --runtime-dir $work/r => $work/run/
	mrcctl --runtime-dir=$work/r => --runtime-dir=$work/run/
TABLE
completion_daemon_start
completes <<-TABLE
	mrcctl drain  => left rear right
	mrcctl drain r => rear right
	mrcctl --force drill le => left
	mrcctl drain left  =>
	mrcctl trace  =>
	mrcctl drill --stream  => brother
	mrcctl drill --stream=b => --stream=brother
TABLE
MRC_CONTROL=/nonexistent completes <<-TABLE
	mrcctl --runtime-dir $work/run undrain l => left
	mrcctl --socket=$work/run/control.sock undrain l => left
TABLE
completion_daemon_stop
echo "ok"
