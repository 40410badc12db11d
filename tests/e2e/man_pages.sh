#!/usr/bin/env bash
# The manual pages as they are installed: mandoc finds nothing wrong in any, each program has one, pages that are
# referred to are there, and mrcctl(1) and mrc-perf(1) tell of every command and option that the programs' own help has.
#
# usage: man_pages.sh BUILD      Exit: 0 good, 1 not, 77 a tool is missing.
set -euo pipefail

build=$(cd "${1:?usage: man_pages.sh BUILD}" && pwd)
command -v mandoc >/dev/null || {
	echo "skipped: there is no mandoc" >&2
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
wrong() {
	echo "FAILED: $*" >&2
	failures=$((failures + 1))
}

DESTDIR=$work cmake --install "$build" >"$work/log" 2>&1 || {
	tail -n 20 "$work/log" >&2
	exit 1
}
man=$(find "$work" -path '*/share/man' -type d)
mapfile -t pages < <(grep -L '^\.so ' "$man"/man*/*)
[ ${#pages[@]} -ge 14 ] || wrong "there are ${#pages[@]} pages only"

# All of its complaints but two: long lines hurt nobody, and whether other packages' pages are here is chance.
for page in "${pages[@]}"; do
	mandoc -Tlint -W style "$page" 2>/dev/null | grep -vE 'STYLE: (input text line longer|referenced manual not found)' >"$work/complaints" || continue
	wrong "${page##*/}: $(cat "$work/complaints")"
done
while read -r name section; do
	[ -e "$man/man$section/$name.$section" ] || wrong "a page refers to $name($section), which is not there"
done < <(sed -n 's/^\.Xr \(mrc[a-z_.-]*\) \([0-9]\).*/\1 \2/p' "${pages[@]}" | sort -u)
while read -r program; do
	compgen -G "$man/man[18]/$program.[18]" >/dev/null || wrong "$program has no page"
done < <(find "$work" \( -path '*/bin/*' -o -path '*/sbin/*' \) -type f -printf '%f\n')

# tells PAGE SED-EXPRESSION MACRO WHAT...
tells() {
	local page=$1 macro=$2 name
	shift 2
	for name in "$@"; do
		grep -qE "^\.It (.* )?$macro $name( |\$)" "$page" || wrong "${page##*/} has no item for $name"
	done
}
mapfile -t commands < <("$build/tools/mrcctl" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p')
mapfile -t options < <("$build/tools/mrcctl" --help | sed -n '/^Options:/,/^$/s/^ .*--\([a-z-]*\).*/-\1/p')
[ ${#commands[@]} -ge 10 ] && [ ${#options[@]} -ge 10 ] || wrong "the help of mrcctl has ${#commands[@]} commands, ${#options[@]} options"
tells "$man/man1/mrcctl.1" Cm "${commands[@]}"
tells "$man/man1/mrcctl.1" Fl "${options[@]}"
mapfile -t options < <("$build/tools/mrc-perf" --help | sed -n 's/^ .*--\([a-z-]*\) .*/-\1/p')
[ ${#options[@]} -ge 10 ] || wrong "the help of mrc-perf has ${#options[@]} options"
tells "$man/man1/mrc-perf.1" Fl "${options[@]}"

[ "$failures" = 0 ] || exit 1
echo "ok: ${#pages[@]} pages, ${#commands[@]} commands"
