#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every test that SECURITY.md names is one that ctest knows, and every threat there names one.
#
# usage: tests/unit/security_names.sh SOURCE_DIR BUILD_DIR
set -eu

text=$1/SECURITY.md
known=$(ctest --test-dir "$2" -N | sed -n 's/^ *Test *#[0-9]*: //p')
missing=
count=0
# shellcheck disable=SC2016 # the backquotes are Markdown's
for name in $(grep -oE '`[a-z][a-z0-9]*\.[a-z0-9_]+`' "$text" | tr -d '`' | grep -vE '\.(sock|md|yaml|conf)$' | sort -u); do
	count=$((count + 1))
	case $name in
	fuzz.*) test=$name.corpus ;;
	*) test=$name ;;
	esac
	printf '%s\n' "$known" | grep -qxF "$test" || missing="$missing $name"
done
[ -z "$missing" ] || { echo "SECURITY.md names tests that are not there:$missing" >&2; exit 1; }
[ "$count" -gt 20 ] || { echo "SECURITY.md names only $count tests" >&2; exit 1; }

# The rows of "Threat by threat": what is shown by nothing is only said.
threats=$(awk '/^## / { is_in = $0 == "## Threat by threat" } is_in && /^\| / && !/shown by \|$/' "$text")
# shellcheck disable=SC2016
bare=$(printf '%s\n' "$threats" | grep -vE '\| *(`[a-z][a-z0-9]*\.[a-z0-9_]+`(, )?)+ *\|$' || :)
[ -z "$bare" ] || { echo "SECURITY.md shows by no test:" >&2; printf '%s\n' "$bare" >&2; exit 1; }
echo "ok: $count tests are named, and there; $(printf '%s\n' "$threats" | wc -l) threats, each with one"
