#!/usr/bin/env bash
# The Debian packages: made by cpack, without a complaint of lintian's, with every file that `cmake --install` makes,
# hardened, and the library with the symbols it is said to have; and in a root of their own, without systemd: installed,
# run, upgraded, removed, purged. Under a real systemd: vm.systemd.
#
# usage: packages.sh BUILD      Exit: 0 good, 1 not, 77 a tool is missing or the build is sanitized.
set -euo pipefail

build=$(cd "${1:?usage: packages.sh BUILD}" && pwd)
say() { printf '%s\n' "$*" >&2; }
fail() {
	say "FAILED: $*"
	exit 1
}
skip() {
	say "skipped: $*"
	exit 77
}
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

for tool in dpkg-deb dpkg-gensymbols dpkg-shlibdeps lintian deb-systemd-helper objdump readelf systemd-sysusers systemd-tmpfiles cpack; do
	command -v "$tool" >/dev/null || skip "there is no $tool"
done
[ "$(id -u)" = 0 ] || skip "dpkg installs as root only"
[ -z "$(cached MRC_SANITIZE)" ] || skip "packages are made of a build without sanitizers"
work=$(mktemp -d)
trap 'kill ${daemon:-} 2>/dev/null || :; wait; rm -rf "$work"' EXIT

# ---- made ----

# Units and pkg-config name the place that was configured; where that is another, a second build is made beside it.
usr=$build
if [ "$(cached CMAKE_INSTALL_PREFIX)" != /usr ]; then
	usr=$build/packages
	{
		cmake -S "$(cached CMAKE_HOME_DIRECTORY)" -B "$usr" -G "$(cached CMAKE_GENERATOR)" -DCMAKE_C_COMPILER="$(cached CMAKE_C_COMPILER)" \
			-DCMAKE_C_COMPILER_LAUNCHER="$(cached CMAKE_C_COMPILER_LAUNCHER)" -DCMAKE_INSTALL_PREFIX=/usr -DMRC_TESTS=OFF
		cmake --build "$usr"
	} >"$work/log" 2>&1 || {
		tail -n 20 "$work/log" >&2
		fail "building for /usr"
	}
fi
(cd "$usr" && umask 027 && cpack -G DEB -B "$work/cpack") >"$work/log" 2>&1 || {
	tail -n 20 "$work/log" >&2
	fail "cpack"
}
version=$(cached CMAKE_PROJECT_VERSION)-1
arch=$(dpkg --print-architecture)
debs=()
for name in mrcd libmrc0 libmrc-dev mrc-tools; do
	deb=$work/cpack/${name}_${version}_$arch.deb
	[ -s "$deb" ] || fail "there is no ${deb##*/}"
	debs+=("$deb")
done
field() { dpkg-deb -f "$work/cpack/$1_${version}_$arch.deb" "$2"; }
[[ $(field mrcd Depends) == *libc6\ \(*libevent-core*libyaml* ]] || fail "mrcd depends on: $(field mrcd Depends)"
[[ $(field mrc-tools Depends) == *"libmrc0 (= $version)"*libjansson* ]] || fail "mrc-tools depends on: $(field mrc-tools Depends)"
[ "$(field libmrc-dev Depends)" = "libmrc0 (= $version)" ] || fail "libmrc-dev depends on: $(field libmrc-dev Depends)"
# Texts that the compiler cuts up are no words.
lintian --allow-root --pedantic --display-info --suppress-tags spelling-error-in-binary --fail-on error,warning,info,pedantic \
	"${debs[@]}" >&2 || fail "lintian complains"
say "ok: four packages, lintian says nothing"

# Nothing that is installed from the tree is in no package, or in two; compressed pages count as themselves.
DESTDIR=$work/tree cmake --install "$usr" >"$work/log" 2>&1 || fail "cmake --install"
(cd "$work/tree" && find . ! -type d) | sed 's/^\.//' | sort >"$work/installed"
for deb in "${debs[@]}"; do dpkg-deb --fsys-tarfile "$deb" | tar -t; done | grep -v '/$' | sed -e 's/^\.//' -e '\|/man/|s/\.gz$//' |
	grep -vE '^/usr/share/(doc/[^/]*/(copyright|changelog.*)|lintian/.*)$' | sort >"$work/packaged"
diff "$work/installed" "$work/packaged" >&2 || fail "other files are packaged (>) than installed (<)"
say "ok: $(wc -l <"$work/packaged") files, each in one package"

# ---- installed, in a root of its own ----

root=$work/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/etc" "$root/run"
: >"$root/var/lib/dpkg/status"
: >"$root/var/lib/dpkg/available"
# What they depend on is on this machine and not in that root; their scripts run out here, and keep to the root.
packages() { dpkg --root="$root" --log=/dev/null --force-depends --force-script-chrootless "$@" >"$work/log" 2>&1 || {
	cat "$work/log" >&2
	fail "dpkg $1"
}; }
status_of() { dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Status}' "$1" 2>/dev/null || :; }
files() { (cd "$root" && find . ! -path './var/lib/dpkg/*' ! -path ./var/lib/dpkg ! -path ./etc/passwd- ! -path ./etc/group- ! -path './etc/*shadow*' ! -path ./etc/.pwd.lock | sort); }
packages -i "${debs[@]}"
[ "$(status_of mrcd)" = "install ok installed" ] || fail "mrcd is: $(status_of mrcd)"
grep -q '^mrcd:' "$root/etc/passwd" || fail "there is no user mrcd"
[ -d "$root/run/mrcd" ] || fail "there is no /run/mrcd"
for link in multi-user.target.wants/mrcd.service sockets.target.wants/mrcd.socket; do
	[ -L "$root/etc/systemd/system/$link" ] || fail "not enabled: $link"
done
[ "$(dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Conffiles}' mrcd | awk 'NF { print $1 }')" = /etc/mrcd/mrcd.yaml ] ||
	fail "other files of configuration than mrcd.yaml"
find "$root" -path "$root/var" -prune -o ! -type l \( ! -user root -o -perm /022 \) ! -path "$root/run/mrcd" -print | grep . >&2 &&
	fail "these are not root's alone to write"
say "ok: installed: user, directory, units enabled"

# ---- hardened, and with the symbols that are promised ----

# Of one program or library, as hardening-check looks at it; what stays invisible in there is looked for below.
is_hardened() { # FILE
	local file=$root$1 head dynamic symbols
	head=$(readelf -hlW "$file")
	dynamic=$(readelf -dW "$file")
	symbols=$(readelf --dyn-syms -W "$file")
	[[ $1 == *.so.* || $head == *"DYN (Position-Independent Executable"* ]] || fail "$1 is at a fixed place: $head"
	[[ $head == *GNU_RELRO* ]] || fail "$1 can write to its relocations"
	[[ $dynamic == *BIND_NOW* ]] || fail "$1 binds late, and leaves its table of functions writable"
	grep -qE 'GNU_STACK.* RW +0x' <<<"$head" || fail "$1 can execute its stack"
	[[ $symbols == *" __stack_chk_fail"* ]] || fail "$1 does not guard its stack"
	grep -qE ' __[a-z]+_chk(@|$)' <<<"$symbols" || fail "$1 copies unchecked"
	[ "$arch" != amd64 ] || [ "$(objdump -d "$file" | grep -c endbr64)" -gt 30 ] || fail "$1 lets itself be jumped into anywhere"
}
programs=(/usr/sbin/mrcd /usr/bin/mrcctl /usr/bin/mrc-perf)
library=$(cd "$root" && echo usr/lib/*/libmrc.so.0.*)
for file in "${programs[@]}" "/$library"; do is_hardened "$file"; done
if grep -q 'MRC_HAS_fstack_clash_protection:INTERNAL=1' "$usr/CMakeCache.txt"; then
	unguarded=$(jq -r '.[] | select(.file | test("/(proto|lib|daemon|tools)/[a-z0-9_]*\\.c$")) |
		select(.command | contains("-fstack-clash-protection") | not) | .file' "$usr/compile_commands.json")
	[ -z "$unguarded" ] || fail "these can step over the guard of the stack: $unguarded"
fi
say "ok: programs and library are hardened"
if [ "$(cached CMAKE_BUILD_TYPE)" = RelWithDebInfo ]; then
	id=$(readelf -n "$root/usr/sbin/mrcd" | sed -n 's/.*Build ID: //p')
	dpkg-deb --fsys-tarfile "$work/cpack/mrcd-dbgsym_${version}_$arch.ddeb" | tar -t | grep -q "/.build-id/${id:0:2}/${id:2}.debug$" ||
		fail "mrcd-dbgsym is not of the mrcd that was packaged"
	say "ok: and what a debugger wants of them is beside them"
fi

symbols=$work/symbols
dpkg-deb --ctrl-tarfile "$work/cpack/libmrc0_${version}_$arch.deb" | tar -xO ./symbols >"$symbols"
# Nothing is lost, and nothing new is forgotten; and what there is is ours.
(cd "$work" && mkdir -p debian && printf 'Source: mrcd\n\nPackage: libmrc0\nArchitecture: any\n' >debian/control &&
	dpkg-gensymbols -plibmrc0 -v"${version%-*}" "-I$symbols" "-e$root/$library" -c4 -O/dev/null) >"$work/log" 2>&1 ||
	fail "the library has other symbols than its package says: $(cat "$work/log")"
alien=$(readelf --dyn-syms -W "$root/$library" | awk '$5 ~ /GLOBAL|WEAK/ && $7 != "UND" && NF > 7 { print $8 }' | grep -vE '^(mrc_[a-z_]+@@MRC_0|MRC_0)$' || :)
[ -z "$alien" ] || fail "the library exports what is not its own: $alien"
say "ok: the library exports the $(grep -c '^ mrc_' "$symbols") calls that its package names"

# ---- run ----

LD_LIBRARY_PATH=$root/usr/lib/$(gcc -print-multiarch)
export LD_LIBRARY_PATH
mkdir "$work/run-a"
cat >"$work/mrcd.yaml" <<-YAML
	host: a
	runtime-dir: $work/run-a
	user: root
YAML
"$root/usr/sbin/mrcd" --config "$root/etc/mrcd/mrcd.yaml" --check >/dev/null || fail "the configuration of the package is wrong"
"$root/usr/sbin/mrcd" --config "$work/mrcd.yaml" 2>"$work/mrcd.log" &
daemon=$!
for ((i = 0; i < 500; i++)); do
	MRC_CONTROL=$work/run-a/control.sock "$root/usr/bin/mrcctl" status >"$work/status" 2>/dev/null && break
	sleep 0.02
done
grep -q "^version *$(cached CMAKE_PROJECT_VERSION)" "$work/status" || fail "the installed daemon says: $(cat "$work/status" "$work/mrcd.log")"
"$root/usr/bin/mrc-perf" serve --quiet --socket "$work/run-a/mrcd.sock" >/dev/null 2>&1 &
serve=$!
"$root/usr/bin/mrc-perf" stream localhost --count 100 --verify --json --quiet --connect-timeout 20s --socket "$work/run-a/mrcd.sock" >"$work/stream" 2>"$work/stream.err" ||
	fail "the installed programs exchange nothing: $(cat "$work/stream" "$work/stream.err")"
kill "$serve" "$daemon"
wait "$serve" || fail "mrc-perf serve ended with status $?"
wait "$daemon" || fail "the daemon ended with status $?"
daemon=
unset LD_LIBRARY_PATH
say "ok: the installed daemon and tools run"

# ---- upgraded: what was edited and disabled stays so ----

echo '# edited' >>"$root/etc/mrcd/mrcd.yaml"
systemctl --root="$root" disable mrcd.service >/dev/null 2>&1
packages --force-confold -i "${debs[@]}"
[ "$(tail -n 1 "$root/etc/mrcd/mrcd.yaml")" = '# edited' ] || fail "an upgrade takes an edited configuration away"
[ ! -L "$root/etc/systemd/system/multi-user.target.wants/mrcd.service" ] || fail "an upgrade enables what was disabled"
say "ok: an upgrade leaves what was edited and disabled"

# ---- removed, and purged ----

packages -r mrcd libmrc-dev mrc-tools libmrc0
left=$(cd "$root" && find . -path "./usr/*" ! -type d)
[ -z "$left" ] || fail "removed, and still there: $left"
[ -f "$root/etc/mrcd/mrcd.yaml" ] || fail "the configuration went before it was purged"
packages -P mrcd libmrc-dev mrc-tools libmrc0
# The user stays (conf/debian/postrm), and directories that other packages have as well.
left=$(files | grep -i mrc || :)
[ -z "$left" ] || fail "purged, and still there: $left"
left=$(cd "$root" && find . ! -type d ! -path './var/lib/dpkg/*' ! -path './etc/passwd*' ! -path './etc/group*' ! -path './etc/*shadow*' ! -path ./etc/.pwd.lock)
[ -z "$left" ] || fail "purged, and still there: $left"
say "ok: removed and purged, nothing is left but the user"
