#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# test_lib_symbols.sh LIBRARY MAP HEADER: what libmrc.so exports, what the map
# lists and what the public header declares are the same functions.
set -eu

library=$1 map=$2 header=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
	sort >"$dir/exported"
sed -n 's/^[[:space:]]*\(mrc_[a-z_]*\);.*/\1/p' "$map" | sort >"$dir/mapped"
# Declarations begin at the margin; comments and continued lines do not.
sed -n 's/^[a-z][a-z0-9_ *]*[ *]\(mrc_[a-z_]*\)(.*/\1/p' "$header" | sort >"$dir/declared"

status=0
diff -u "$dir/mapped" "$dir/exported" || { echo "the library does not export what $map lists"; status=1; }
diff -u "$dir/mapped" "$dir/declared" || { echo "$header does not declare what $map lists"; status=1; }
[ "$(wc -l <"$dir/mapped")" -gt 30 ] || { echo "the map was not understood"; status=1; }
exit $status
