#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The installed units are right and well confined, as systemd-analyze judges them.
#
# usage: tests/e2e/systemd_verify.sh BUILD_DIR
# Exit: 0 good, 1 not, 77 when systemd-analyze is not here.
set -eu

build=${1:?usage: systemd_verify.sh BUILD_DIR}
command -v systemd-analyze >/dev/null || { echo "skipped: wants systemd-analyze (package systemd)"; exit 77; }

root=$(mktemp -d "${TMPDIR:-/tmp}/mrcd-units.XXXXXX")
trap 'rm -rf "$root"' EXIT
trap 'exit 1' HUP INT TERM

fail() {
	echo "FAIL: $*" >&2
	exit 1
}

prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")
[ -n "$prefix" ] || fail "$build is no build directory"
DESTDIR=$root cmake --install "$build" >"$root/install.log" 2>&1 ||
	{ cat "$root/install.log" >&2; fail "cmake --install $build"; }

units=$root$prefix/lib/systemd/system
for file in sbin/mrcd lib/systemd/system/mrcd.service lib/systemd/system/mrcd.socket \
	lib/sysusers.d/mrcd.conf lib/tmpfiles.d/mrcd.conf; do
	[ -e "$root$prefix/$file" ] || fail "not installed: $prefix/$file (is all of $build built?)"
done
conf=$(sed -n 's/^ExecStart=.*--config //p' "$units/mrcd.service")
[ -f "$root$conf" ] || fail "mrcd.service starts with $conf, which is not installed"

# Confined as it is, the daemon can still open RDMA devices and lock memory for them.
for line in LimitMEMLOCK=infinity 'DeviceAllow=char-infiniband_verbs rw' 'DeviceAllow=/dev/infiniband/rdma_cm rw'; do
	grep -qxF "$line" "$units/mrcd.service" || fail "mrcd.service has no $line: no RDMA device would work"
done
! grep -qE '^PrivateDevices=(yes|true|1|on)' "$units/mrcd.service" || fail "PrivateDevices= hides /dev/infiniband"
echo "ok: mrcd.service lets RDMA devices work"
# Without a store a restart ends every attachment, and five starts in ten seconds would end the store.
for line in FileDescriptorStoreMax=64 StartLimitIntervalSec=0; do
	grep -qxF "$line" "$units/mrcd.service" || fail "mrcd.service has no $line: a restart would lose programs"
done

# What the units refer to and another package brings: systemd's own targets, and kill.
mkdir -p "$root/usr/bin" "$root/usr/sbin" "$root/usr/lib" "$root/etc"
ln -s usr/lib "$root/lib"
ln -s usr/bin "$root/bin"
ln -s usr/sbin "$root/sbin"
cp "$(command -v kill)" "$root/usr/bin/kill" 2>/dev/null || cp /bin/kill "$root/usr/bin/kill"
for unit in /lib/systemd/system/*.target /lib/systemd/system/*.slice; do
	[ -e "$unit" ] && cp "$unit" "$units/" 2>/dev/null || :
done

# It answers 0 for an unknown key, and only complains: so nothing may be said, either.
status=0
said=$(systemd-analyze verify --root="$root" --man=no mrcd.service mrcd.socket 2>&1) || status=$?
[ "$status" -eq 0 ] || fail "systemd-analyze verify: exit $status: $said"
[ -z "$said" ] || fail "systemd-analyze verify says: $said"
echo "ok: systemd-analyze verify exits 0 and says nothing"

# The exposure, from 0 (none) to 10; the threshold counts tenths.
status=0
said=$(systemd-analyze security --offline=true --threshold=20 --root="$root" mrcd.service 2>&1) || status=$?
level=$(printf '%s\n' "$said" | grep -i 'overall exposure level' || :)
[ "$status" -eq 0 ] || { printf '%s\n' "$said" >&2; fail "more exposed than 2.0: ${level:-no answer}"; }
[ -n "$level" ] || fail "systemd-analyze security gave no level: $said"
echo "ok: $level"

# The user and the directory that the units count on.
said=$(systemd-sysusers --root="$root" mrcd.conf 2>&1) || fail "systemd-sysusers: $said"
grep -q '^mrcd:' "$root/etc/passwd" || fail "systemd-sysusers made no user mrcd: $said"
said=$(systemd-tmpfiles --root="$root" --create mrcd.conf 2>&1) || fail "systemd-tmpfiles: $said"
[ -d "$root/run/mrcd" ] || fail "systemd-tmpfiles made no /run/mrcd: $said"
echo "ok: sysusers and tmpfiles make the user and the directory"
