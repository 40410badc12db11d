#!/usr/bin/env bash
# Daemons and programs under valgrind: no error, no leak.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

command -v valgrind >/dev/null || lab_skip "valgrind is not installed"
[ -z "${E2E_SANITIZED:-}" ] || lab_skip "valgrind and sanitizers do not go together; the plain build runs this"
LAB_SLOWNESS=10
wrap="valgrind --quiet --suppressions=$LAB_TOP/tests/e2e/valgrind.supp --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect,possible \
	--errors-for-leak-kinds=definite,indirect,possible --child-silent-after-fork=yes"
LAB_WRAP=$wrap LAB_PERF_WRAP=$wrap
E2E_RATE=20mbit
e2e_hosts 2
e2e_serve b
lab_perf_spawn stream a stream b --size 256KiB --verify --count 40 --in-flight 4 --connect-timeout 60s --drain-timeout 60s --json --quiet
lab_cut 1 b
lab_status stream 20
[ "$LAB_STATUS" = 0 ] || lab_fail "the stream ended with status $LAB_STATUS"
e2e_intact stream
lab_heal 1
e2e_paths a 2
kill -TERM "$(lab_pid serve)"
lab_status serve 5
[ "$LAB_STATUS" != 99 ] || lab_fail "valgrind has something to say of mrc-perf serve"
e2e_end
