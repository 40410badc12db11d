#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# headers_alone.sh SOURCE_DIR CC [CXX]: each header can be included first and
# alone; the public ones in C++ too. CFLAGS says where others' headers are.
set -eu

source=$1 cc=$2 cxx=${3:-}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0 seen=0

check() { # LANGUAGE COMPILER HEADER FLAG...
	language=$1 compiler=$2 header=$3
	shift 3
	printf '#include "%s"\n#include "%s"\n' "$header" "$header" >"$dir/alone.$language"
	# CFLAGS is a list of flags.
	# shellcheck disable=SC2086
	if ! "$compiler" "$@" ${CFLAGS:-} -fsyntax-only -Wall -Wextra -Werror -Wundef -D_GNU_SOURCE \
		-DMRC_VERSION='"0"' -DMRC_DEBUG=0 -I"$source/proto" -I"$source/lib/include" -I"$source/daemon" -I"$source/lib" \
		"$dir/alone.$language" 2>"$dir/errors"; then
		echo "$header does not compile alone ($language):"
		head -n 5 "$dir/errors"
		failed=1
	fi
	seen=$((seen + 1))
}

for header in "$source"/proto/*.h "$source"/daemon/*.h; do
	check c "$cc" "$header" -std=gnu11
done
for header in "$source"/lib/include/mrc/*.h; do
	check c "$cc" "$header" -std=gnu11
	[ -z "$cxx" ] || check cc "$cxx" "$header" -std=c++11
done
[ "$seen" -gt 20 ] || { echo "only $seen headers were found"; exit 1; }
echo "$seen inclusions"
exit $failed
