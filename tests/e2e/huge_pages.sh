#!/usr/bin/env bash
# Arenas of huge pages: when there are too few a program gets ordinary ones and the log says what to do; when there are
# enough it gets them, from attach to a verified stream. The second part only in the virtual machine of tests/vm, whose
# kernel may be asked for pages; there they also stay a program's when its daemon is started again.
LAB_KEPT=1
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

pool=/sys/kernel/mm/hugepages/hugepages-2048kB
[ -d $pool ] || lab_skip "this kernel has no huge pages of 2 MiB"
[ "$(cat $pool/free_hugepages $pool/nr_overcommit_hugepages | sort -n | tail -n 1)" = 0 ] ||
	lab_skip "huge pages of this machine are free, and not ours to use up"
E2E_YAML='clients: {landing-arena: 15MiB, send-arena: 16MiB, huge-pages: 2MiB}'
e2e_hosts 2

# pages_are HOST BYTES: each program there has arenas of such pages
pages_are() { e2e_is "$1" clients "[.[] | .send_page_bytes, .landing_page_bytes] | length > 0 and all(. == $2)"; }
stream() { # NAME
	lab_perf_spawn "$1" a stream b --size 300KiB --verify --count 100 --in-flight 4 --json --quiet
	lab_status "$1" 60
	e2e_verdict "$1" '.messages == 100 and .outcomes == {OK: 100}' "all messages are OK"
	e2e_intact "$1"
}

e2e_serve b
pages_are b 4096 || lab_fail "there are no huge pages, and yet: $(e2e_get b clients tojson)"
grep -q 'client .* gets ordinary pages. 16 huge pages of 2048 KiB are needed and 0 are free: set vm.nr_hugepages to at least 16' \
	"$LAB_DIR/log/mrcd-b.err" || lab_fail "the log of b does not say what is needed"
stream ordinary

pages_are_free() { [ "$(cat $pool/free_hugepages)" = "$1" ] && [ "$(cat $pool/resv_hugepages)" = 0 ]; }
if [ "$LAB_PLACE" = guest ]; then
	lab_kill serve TERM
	lab_wait_for "the program to go" 10 e2e_clients_are b 0
	echo 40 >/proc/sys/vm/nr_hugepages
	[ "$(cat $pool/free_hugepages)" -ge 32 ] || lab_skip "this kernel cannot set 32 huge pages aside"
	e2e_serve b again
	pages_are b 2097152 || lab_fail "40 huge pages are there, and yet: $(e2e_get b clients tojson)"
	e2e_is b clients '.[0].landing_arena_bytes == 16777216' || lab_fail "15 MiB were not rounded up to 8 pages"
	stream huge
	[ "$(cat $pool/free_hugepages)" -lt 40 ] || lab_fail "nothing was written to a huge page"
	lab_restart b
	e2e_paths a 2
	pages_are b 2097152 || lab_fail "after a restart there are others: $(e2e_get b clients tojson)"
	stream after
	! grep -q 'attaching again' "$LAB_DIR"/log/again.* || lab_fail "the program at b has noticed the restart"
	lab_kill again TERM
	lab_wait_for "the program to go" 10 e2e_clients_are b 0
	lab_wait_for "its huge pages to come back" 10 pages_are_free 40
	echo 0 >/proc/sys/vm/nr_hugepages
fi
e2e_end
