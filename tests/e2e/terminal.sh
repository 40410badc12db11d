# shellcheck shell=bash
#
# terminal.sh - a program on a real terminal (tmux); to be sourced after e2e.sh, by tests that have set up their lab
#
# The terminal has a shell whose prompt says how the last program ended.
# shellcheck disable=SC2154 # LAB_DIR is lab.sh's

command -v tmux >/dev/null || lab_skip "wants tmux"
export LC_ALL=C.UTF-8
terminal() { tmux -S "$LAB_DIR/terminal" -f /dev/null "$@"; }

# terminal_open COLUMNS ROWS: after lab_up; the lab's end is its end
terminal_open() {
	terminal new-session -d -s main -x "$1" -y "$2" -e PS1='ended $?> ' -e TERM=screen bash --norc --noprofile
	lab_remember "$(terminal display-message -p '#{pid}')" terminal
}

type_() { terminal send-keys -t main "$@"; }
page() { terminal capture-pane -p -t main; }
shows() { page | grep -qE -- "$1"; }
shows_not() { ! shows "$1"; }
ended() { shows "^ended $1> *\$"; }
