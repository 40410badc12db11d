#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# proto_symbols.sh LIBRARY: the engine takes from outside nothing but mem*() and
# abort(). What the compiler puts in by itself (wide arithmetic, checks of copies, the stack's
# guard, a sanitizer's calls) is no choice of ours and passes.
set -eu

library=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

nm "$library" | awk 'NF == 3 && $2 ~ /^[A-TV-Z]$/ { print $3 }' | sort -u >"$dir/own"
nm -u "$library" | awk '$1 == "U" { print $2 }' | sort -u >"$dir/wanted"
comm -13 "$dir/own" "$dir/wanted" >"$dir/outside"

echo "libmrc_proto takes from outside:"
sed 's/^/  /' "$dir/outside"

[ -s "$dir/own" ] || { echo "no symbols were understood"; exit 1; }
grep -q '^abort$' "$dir/outside" || { echo "abort is not among them: was nm understood?"; exit 1; }
if grep -Evx 'memcpy|memset|memmove|memcmp|__mem(cpy|set|move)_chk|abort|_GLOBAL_OFFSET_TABLE_|__(u?div|u?mod)ti3|__udivmodti4|__stack_chk_fail|__(asan|ubsan|tsan|lsan|sanitizer)_.*' \
	"$dir/outside"; then
	echo "the above may not be used in proto/"
	exit 1
fi
