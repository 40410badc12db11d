#!/usr/bin/env bash
# What bash completes for mrcctl: every command and option it has, nothing it has not, and the names of the daemon's
# rails and channels.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
# shellcheck source-path=SCRIPTDIR source=completion_host.sh
. "$(dirname "$0")/completion_host.sh"

# completes LINE WANT...: in a bash as users have it, what the last word of the line may become; _ ends a line that
# ends with a blank. In another process, since a completion may change what shell it is in.
completed() {
	bash --norc --noprofile -c '
		. "$1" || exit
		read -ra COMP_WORDS <<<"${2//=/ = }"
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		[ "${COMP_WORDS[COMP_CWORD]}" != _ ] || COMP_WORDS[COMP_CWORD]=
		COMP_LINE=$2 COMP_POINT=${#2}
		compopt() { :; }
		_mrcctl mrcctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
		[ ${#COMPREPLY[@]} = 0 ] || printf "%s\n" "${COMPREPLY[@]}"' bash "$LAB_TOP/tools/completion/mrcctl.bash" "$1" | sort | paste -sd ' '
}
completes() { # LINE WANT
	local got
	got=$(completed "$1")
	[ "$got" = "$2" ] || lab_fail "'$1' becomes '$got', not '$2'"
}

# ---- the same commands and options that the usage has ----

completes "mrcctl _" "$(completion_commands)"
completes "mrcctl --" "$(completion_options)"
[ "$(completed "mrcctl --" | wc -w)" -ge 10 ] || lab_fail "few options: $(completed "mrcctl --")"

# An option that is offered for a command is taken by it; one that is not, is refused: so says the parser, once it
# has as many arguments as it wants.
refused() { # COMMAND OPTION
	local words value
	case $(mrcctl --help | sed -n "s/^ .* $2 \([A-Z][^ ]*\) .*/\1/p") in
	'') value= ;;
	TIME) value=1s ;;
	Nx*) value=10x ;;
	RATE) value=1Mb/s ;;
	FILE) value=1.svg ;;
	*) value=1 ;;
	esac
	for words in "" 1 "1 1"; do
		# shellcheck disable=SC2086 # words on purpose
		[[ $(mrcctl "$1" "$2" $value $words 2>&1 </dev/null) != "mrcctl: $2 goes with "* ]] || return 0
	done
	return 1
}
for command in $(completed "mrcctl _"); do
	offered=" $(completed "mrcctl $command --") "
	for option in $(completed "mrcctl --"); do
		case $option in --help | --version | --socket | --runtime-dir) continue ;; esac
		if refused "$command" "$option"; then
			[[ $offered != *" $option "* ]] || lab_fail "$command does not take $option, which is offered"
		else
			[[ $offered == *" $option "* ]] || lab_fail "$command takes $option, which is not offered"
		fi
	done
done

# ---- words within a line ----

completes "mrcctl dr" "$(printf '%s\n' drain drill | paste -sd ' ')"
completes "mrcctl nothing-of-that-kind" ""
completes "mrcctl status _" ""
completes "mrcctl drain --f" "--force"
completes "mrcctl --force drain --f" "--force"
completes "mrcctl trace --every _" ""
completes "mrcctl --runtime-dir $work/r" "$work/run"
completes "mrcctl --runtime-dir=$work/r" "$work/run"
touch "$work/run/a file"
completes "mrcctl --socket $work/run/a" "$work/run/a file"

# ---- what the daemon knows ----

completes "mrcctl drain _" "" # there is none, and no error is shown
completion_daemon_start
completes "mrcctl drain _" "left rear right"
completes "mrcctl drain r" "rear right"
completes "mrcctl --force drain re" "rear"
completes "mrcctl drain left _" ""
completes "mrcctl drain --host _" ""
completes "mrcctl drain --host --w" "--wait"
completes "mrcctl drill l" "left"
completes "mrcctl fault qp-error l" "left"
completes "mrcctl drill --stream _" "brother"
completes "mrcctl trace _" "" # no channel is open
MRC_CONTROL=/nonexistent completes "mrcctl --runtime-dir $work/run undrain l" "left"
MRC_CONTROL=/nonexistent completes "mrcctl --socket=$work/run/control.sock undrain l" "left"
completion_daemon_stop
echo "ok"
