#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every test that SECURITY.md names is there.
#
# usage: tests/unit/security_names.sh SOURCE_DIR
set -eu

top=$1
missing=
count=0
# shellcheck disable=SC2016 # the backquotes are Markdown's
for name in $(grep -oE '`(unit|e2e|fuzz|vm)\.[a-z0-9_]+`' "$top/SECURITY.md" | tr -d '`' | sort -u); do
	count=$((count + 1))
	case $name in
	unit.*) file=tests/unit/test_${name#unit.}.c ;;
	e2e.*) file=tests/e2e/${name#e2e.}.sh ;;
	fuzz.*) file=tests/fuzz/fuzz_${name#fuzz.}.c ;;
	vm.*) file=tests/vm/${name#vm.}.sh ;;
	esac
	[ -e "$top/$file" ] || missing="$missing $name"
done
[ -z "$missing" ] || { echo "SECURITY.md names tests that are not there:$missing" >&2; exit 1; }
[ "$count" -gt 20 ] || { echo "SECURITY.md names only $count tests" >&2; exit 1; }
echo "ok: $count tests are named, and there"
