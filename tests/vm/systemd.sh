#!/usr/bin/env bash
# The packages and their units under a real systemd: tests/vm/systemd_inside.sh in a virtual machine, after an
# installation as the README describes it.
#
# usage: tests/vm/systemd.sh BUILD_DIR      Exit: 0 good, 1 not, 77 when no virtual machine can be made here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$(cd "${1:?usage: systemd.sh BUILD_DIR}" && pwd)/vm

"$here/make"
# Units name the place that was configured, and the README says /usr.
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache); fi
# The same with the next number is what hosts are upgraded to: the tree as it is, but for one line.
version=$(sed -n 's/^project(mrcd VERSION \([0-9.]*\) .*/\1/p' "$top/CMakeLists.txt")
next=${version%.*}.$((${version##*.} + 1))
rm -rf "$build/next"
mkdir -p "$build/next"
for file in "$top"/*; do
	case ${file##*/} in build* | tests) ;; *) ln -s "$file" "$build/next/" ;; esac
done
rm "$build/next/CMakeLists.txt"
sed "s/^project(mrcd VERSION $version /project(mrcd VERSION $next /" "$top/CMakeLists.txt" >"$build/next/CMakeLists.txt"
packages() { # SOURCE BUILD
	cmake -S "$1" -B "$2" -G Ninja "${launcher[@]}" -DCMAKE_INSTALL_PREFIX=/usr -DMRC_TESTS=OFF &&
		cmake --build "$2" && rm -rf "$2/packages" && (cd "$2" && cpack -G DEB -B packages)
}
{ packages "$top" "$build" && packages "$build/next" "$build/next-build"; } >"$build/log" 2>&1 || {
	tail -n 30 "$build/log" >&2
	exit 1
}
cd "$top"
"$here/run" -s -t 2400 "$here/systemd_inside.sh" "$build/packages" "$build/next-build/packages"
