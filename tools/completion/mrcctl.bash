# bash completion for mrcctl(1)                                            -*- shell-script -*-
# SPDX-License-Identifier: BSD-2-Clause
#
# mrcctl itself says what may come: its own tables, and the daemon's rails and channels.

_mrcctl() {
	local line
	COMPREPLY=()
	while IFS= read -r line; do
		case $line in
		:file)
			compopt -o filenames
			mapfile -t COMPREPLY < <(compgen -f -- "${2#=}")
			;;
		:directory)
			compopt -o filenames
			mapfile -t COMPREPLY < <(compgen -d -- "${2#=}")
			;;
		*) COMPREPLY+=("${line%%$'\t'*}") ;;
		esac
	done < <("$1" --complete "$COMP_CWORD" "${COMP_WORDS[@]}" 2>/dev/null)
} &&
	complete -F _mrcctl mrcctl
