#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# pkgconfig.sh BUILD: a program outside the tree builds against the installed libmrc.
#
# Installs the build tree below a temporary directory, looks that the library's
# files are where they belong, and builds programs with pkg-config (shared and
# static) and with the CMake package; the examples of mrc(7) as well. Then the
# same once more for the library alone with the prefix /usr, where Debian wants
# the libraries in a directory of the architecture.
#
# Exit: 0 all well, 1 not, 77 nothing to try (a sanitized build, a tool missing).
set -eu

[ $# -ge 1 ] || { echo "usage: $0 BUILD" >&2; exit 2; }
build=$(cd "$1" && pwd)

cached() { # what the build tree was configured with
	sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"
}

fail() {
	echo "pkgconfig: $*" >&2
	exit 1
}

skip() {
	echo "pkgconfig: skipped: $*" >&2
	exit 77
}

for tool in cmake pkg-config mandoc; do
	command -v $tool >/dev/null || skip "there is no $tool"
done
[ -z "$(cached MRC_SANITIZE)" ] || skip "programs elsewhere do not link to a sanitized library"

source=$(cached CMAKE_HOME_DIRECTORY)
cc=$(cached CMAKE_C_COMPILER)
generator=$(cached CMAKE_GENERATOR)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/program.c" <<'END'
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <mrc/client.h>

int main(void)
{
	struct mrc_attach_options options = {.socket_path = "/nonexistent/mrcd.sock"};
	struct mrc_client *client;
	int r = mrc_attach(&options, &client);

	puts(mrc_last_error(NULL));
	return r == -ENOENT && strstr(mrc_last_error(NULL), "/nonexistent/mrcd.sock") ? 0 : 1;
}
END

# check_files ROOT PREFIX LIBDIR
check_files() {
	lib=$1$3
	for file in "$lib/libmrc.so.0" "$lib/libmrc.a" "$lib/pkgconfig/mrc.pc" \
		"$lib/cmake/mrc/mrcConfig.cmake" "$lib/cmake/mrc/mrcConfigVersion.cmake" \
		"$lib/cmake/mrc/mrcTargets.cmake" "$1$2/include/mrc/client.h" \
		"$1$2/include/mrc/ring_abi.h" "$1$2/share/man/man7/mrc.7" \
		"$1$2/share/man/man7/mrc_levels.7" "$1$2/share/man/man3/mrc_send.3"; do
		[ -s "$file" ] || fail "${file#"$1"} was not installed"
	done
	[ "$(readlink "$lib/libmrc.so")" = libmrc.so.0 ] || fail "libmrc.so is no link to libmrc.so.0"
	objdump -p "$lib/libmrc.so" | grep -q 'SONAME *libmrc\.so\.0$' || fail "wrong soname"
	objdump -p "$lib/libmrc.so" | grep NEEDED | grep -v 'libc\.so\|ld-linux' &&
		fail "libmrc needs more than the C library"
	for page in "$1$2"/share/man/man3/mrc_*.3; do
		read -r first rest <"$page"
		[ "$first" != .so ] || [ -s "$1$2/share/man/$rest" ] || fail "$page leads nowhere"
	done
	# Every call has a page by its name.
	for name in $(sed -n 's/^[[:space:]]*\(mrc_[a-z_]*\);.*/\1/p' "$source/lib/libmrc.map"); do
		[ -s "$1$2/share/man/man3/$name.3" ] || fail "$name has no manual page"
	done
	mandoc -Tlint -W warning "$1$2"/share/man/man7/mrc*.7 "$1$2/share/man/man3/mrc_send.3" ||
		fail "manual pages have faults"
}

# try_pkgconfig ROOT PREFIX LIBDIR
try_pkgconfig() (
	# The files are not where mrc.pc says, but below ROOT; and /usr is not to be left out then.
	export PKG_CONFIG_SYSROOT_DIR="$1" PKG_CONFIG_LIBDIR="$1$3/pkgconfig" PKG_CONFIG_PATH=
	export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1

	[ "$(pkg-config --modversion mrc)" = "$(cached CMAKE_PROJECT_VERSION)" ] ||
		fail "pkg-config names another version"
	# shellcheck disable=SC2046 # flags are words
	"$cc" -Wall -Werror -o "$dir/shared" "$dir/program.c" $(pkg-config --cflags --libs mrc)
	objdump -p "$dir/shared" | grep -q 'NEEDED *libmrc\.so\.0' || fail "not linked to libmrc.so.0"
	LD_LIBRARY_PATH="$1$3" "$dir/shared" >/dev/null || fail "the shared program does not run"
	# shellcheck disable=SC2046
	"$cc" -static -Wall -Werror -o "$dir/static" "$dir/program.c" \
		$(pkg-config --static --cflags --libs mrc)
	"$dir/static" >/dev/null || fail "the static program does not run"

	# Programs in mrc(7) begin with an #include and end with the display.
	awk -v dir="$dir" '
		/^\.Bd/ { inside = 1; file = ""; next }
		/^\.Ed/ { inside = 0 }
		inside && file == "" && /^#include/ { file = dir "/example" ++count ".c" }
		inside && file != "" { gsub(/\\e/, "\\"); print >file }' "$1$2/share/man/man7/mrc.7"
	for example in "$dir/example1.c" "$dir/example2.c"; do
		[ -s "$example" ] || fail "mrc(7) has no two examples"
		# shellcheck disable=SC2046
		"$cc" -Wall -Wextra -Werror -o "$dir/example" "$example" \
			$(pkg-config --cflags --libs mrc)
	done
)

# try_cmake ROOT PREFIX
try_cmake() {
	mkdir -p "$dir/cmake"
	cat >"$dir/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES C)
find_package(mrc 0.1 REQUIRED)
foreach(target mrc mrc_static)
	add_executable(with_${target} ../program.c)
	target_link_libraries(with_${target} PRIVATE mrc::${target})
endforeach()
END
	rm -rf "$dir/cmake/build"
	cmake -S "$dir/cmake" -B "$dir/cmake/build" -G "$generator" -DCMAKE_C_COMPILER="$cc" \
		-DCMAKE_PREFIX_PATH="$1$2" >"$dir/log" 2>&1 || { cat "$dir/log"; fail "find_package"; }
	grep -q "^mrc_DIR:PATH=$1" "$dir/cmake/build/CMakeCache.txt" || fail "found another libmrc"
	cmake --build "$dir/cmake/build" >"$dir/log" 2>&1 || { cat "$dir/log"; fail "CMake package"; }
	"$dir/cmake/build/with_mrc" >/dev/null || fail "the program with mrc::mrc does not run"
	"$dir/cmake/build/with_mrc_static" >/dev/null || fail "the one with mrc::mrc_static does not"
	objdump -p "$dir/cmake/build/with_mrc_static" | grep -q libmrc &&
		fail "mrc::mrc_static links the shared library"
	return 0
}

try() {
	check_files "$@"
	try_pkgconfig "$@"
	try_cmake "$1" "$2"
	echo "pkgconfig: prefix $2, libraries in $3: good"
}

prefix=$(cached CMAKE_INSTALL_PREFIX)
libdir=$(cached CMAKE_INSTALL_LIBDIR)
case $libdir in
/*) ;;
*) libdir=$prefix/$libdir ;;
esac
DESTDIR="$dir/tree" cmake --install "$build" >"$dir/log" 2>&1 || { cat "$dir/log"; fail "install"; }
try "$dir/tree" "$prefix" "$libdir"

triplet=$("$cc" -print-multiarch 2>/dev/null || true)
if [ -f /etc/debian_version ] && [ -n "$triplet" ] && [ "$prefix" != /usr ]; then
	cmake -S "$source" -B "$dir/usr-build" -G "$generator" -DCMAKE_C_COMPILER="$cc" \
		-DCMAKE_C_COMPILER_LAUNCHER="$(cached CMAKE_C_COMPILER_LAUNCHER)" \
		-DCMAKE_INSTALL_PREFIX=/usr -DMRC_TESTS=OFF >"$dir/log" 2>&1 ||
		{ cat "$dir/log"; fail "configuring for /usr"; }
	cmake --build "$dir/usr-build" --target mrc mrc_static >"$dir/log" 2>&1 ||
		{ cat "$dir/log"; fail "building for /usr"; }
	for component in runtime development; do
		DESTDIR="$dir/usr" cmake --install "$dir/usr-build" --component $component \
			>"$dir/log" 2>&1 || { cat "$dir/log"; fail "installing to /usr"; }
	done
	try "$dir/usr" /usr "/usr/lib/$triplet"
fi
