#!/usr/bin/env bash
# The guest's side of tests/vm/verbs.sh: runs cases one after the other, each on rails that are whole. And the half of
# tests/vm/devices.sh that is the same.
#
# usage: verbs_inside.sh CASE...      Exit: 0 all good or skipped, 1 not.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ -d /job ] || [ "${LAB_PLACE:-}" = devices ] || {
	echo "this changes the rules of routing: only tests/vm/verbs.sh runs it, in a virtual machine" >&2
	exit 2
}
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
# Daemons pin what their clients register, and soft-iWARP asks for the limit even of root.
ulimit -l unlimited 2>/dev/null || echo "the limit of locked memory is $(ulimit -l) KiB"

# Each start of a program asks the machine outside for a dozen of files, some 50 ms. A change, even to what it was,
# copies a file into the guest's own layer.
if [ -d /job ] && [ -n "${VERBS_NEAR:-}" ]; then
	mapfile -t near <<<"$VERBS_NEAR"
	chmod u+w "${near[@]}" || :
fi

count=0 failed=0
says() { sed 's/^/#	/' "$1"; }
# The kernel's own troubles are worse than a failed case.
kernel_trouble() {
	[ "$LAB_PLACE" = guest ] || return 0
	dmesg | grep -E 'BUG:|WARNING:|Oops|Call Trace|general protection|blocked for more than' | head -n 5
}
# What processes that have ended still hold is lost until the devices are made anew.
left_behind() {
	[ "$LAB_PLACE" = guest ] && [ "$LAB_GUEST_DEVICE" != none ] || return 0
	local kind
	for kind in qp mr cm_id cq pd srq; do
		rdma -j resource show "$kind" 2>/dev/null |
			jq -r --arg kind "$kind" 'map(select(.pid != null)) | select(length > 0) | "\(length) \($kind) of processes \(map(.pid) | unique)"'
	done
}

# All logs of a failed case, for tests/vm/run, which takes them out of the guest when $MRC_VM_KEEP is set.
keep() { # CASE
	[ -d /job ] || return 0
	mkdir -p /job/kept
	cp -r "$TMPDIR"/mrc-lab.*/log "/job/kept/$1" || :
}

printf '1..%d\n' $#
for case; do
	count=$((count + 1))
	script=$here/verbs/$case.sh
	[ -f "$script" ] || script=$here/../e2e/$case.sh
	began=${EPOCHREALTIME/[.,]/}
	status=0
	timeout -k 10 "${VERBS_CASE_SECONDS:-600}" "$script" >"$TMPDIR/out" 2>"$TMPDIR/err" || status=$?
	took=$(((${EPOCHREALTIME/[.,]/} - began) / 100000))
	took=$((took / 10)).$((took % 10))
	left=$(left_behind)
	trouble=$(kernel_trouble)
	if [ "$status" = 0 ] && [ -n "$left" ]; then
		echo "the kernel still holds $left" >>"$TMPDIR/err"
		status=1
	fi
	if [ -n "$trouble" ]; then
		printf 'the kernel complains:\n%s\n' "$trouble" >>"$TMPDIR/err"
		dmesg -c | tail -n 40 >>"$TMPDIR/err"
		status=1
	fi
	case $status in
	0) printf 'ok %d - %s (%s s)\n' "$count" "$case" "$took" ;;
	77) printf 'ok %d - %s # SKIP %s\n' "$count" "$case" "$(tail -n 1 "$TMPDIR/err")" ;;
	*)
		printf 'not ok %d - %s (%s s, status %s)\n' "$count" "$case" "$took" "$status"
		failed=$((failed + 1))
		;;
	esac
	grep -v '^ok$' "$TMPDIR/out" | sed 's/^/#	/'
	case $status in
	0 | 77) ;;
	*)
		says "$TMPDIR/err"
		keep "$case"
		[ "$LAB_PLACE" != guest ] || "$here/lab_anew.sh"
		;;
	esac
	rm -rf "$TMPDIR"/mrc-lab.*
done
printf '# %d of %d good\n' $((count - failed)) "$count"
[ "$failed" = 0 ]
