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
mkdir -p "$build"
{
	cmake -S "$top" -B "$build" -G Ninja "${launcher[@]}" -DCMAKE_INSTALL_PREFIX=/usr -DMRC_TESTS=OFF
	cmake --build "$build"
	(cd "$build" && cpack -G DEB -B packages)
} >"$build/log" 2>&1 || {
	tail -n 30 "$build/log" >&2
	exit 1
}
cd "$top"
"$here/run" -s -t 800 "$here/systemd_inside.sh" "$build/packages"
