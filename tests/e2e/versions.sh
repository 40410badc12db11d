#!/usr/bin/env bash
# One version back and one on: a peer whose daemon speaks wire version 1, through messages both ways and a cut cable;
# programs and daemons of the next ABI with those of this one; and a daemon that is upgraded and downgraded under its
# programs. Those that have nothing in common: unit.client_side, unit.lib_client, unit.handshake, unit.image.
LAB_KEPT=1
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

lab_up 2 2 "$E2E_RATE"
# Each host's daemon is what its link points to when it is started, or started again.
is_now() { ln -sfn "$1" "$LAB_DIR/mrcd-$2"; }
daemon() { MRCD=$LAB_DIR/mrcd-$1 lab_mrcd "$1"; }
today=$MRCD next=$E2E_BIN/mrcd-next
perf() { MRC_PERF=$1 lab_perf "${@:2}"; }
wire_is() { e2e_is "$1" paths "all(.[]; .wire_version == $2)"; }
abi_is() { e2e_is "$1" clients "[.[] | .abi_version] == [$2]"; }

# ---- the peer speaks wire version 1 ----

is_now "$today" a
is_now "$E2E_BIN/mrcd-v1" b
daemon a
daemon b
e2e_paths a 2
wire_is a 1 || lab_fail "the wire version with an old peer is: $(e2e_get a paths '[.[].wire_version]')"
e2e_serve a serve-a --service back
e2e_stream_start
lab_perf_spawn back b stream a/back --size 64KiB --verify --duration 0 --pace 20Mb/s --interval 100ms --json --quiet
lab_cut 1 b
e2e_paths a 1
e2e_goes_on "with a cable out"
lab_heal 1
e2e_paths a 2
lab_restart a b
e2e_paths a 2
e2e_goes_on "after a restart of both"
e2e_stream_end
e2e_stream_end back
lab_kill serve-a TERM
lab_kill serve TERM

# ---- the peer is upgraded, and then this host: programs stay ----

e2e_stream_start
is_now "$today" b
lab_restart b
lab_wait_for "the newest version both know" 20 wire_is a 2
e2e_goes_on "with a peer of today"
is_now "$next" a
lab_restart a
e2e_paths a 2
if grep -q 'starting with nothing' "$LAB_DIR/log/mrcd-a.err"; then lab_fail "the next version does not take over from this one"; fi
e2e_goes_on "with the next version, and a peer of today"
wire_is a 2 || lab_fail "the wire version with a newer daemon is: $(e2e_get a paths '[.[].wire_version]')"
abi_is a 2 || lab_fail "the program's ABI is: $(e2e_get a clients '[.[].abi_version]')"
e2e_stream_end

# ---- programs of this ABI and of the next, at daemons of both ----

transfers() { # PROGRAM HOST TARGET
	perf "$1" "$2" stream "$3" --count 50 --size 100KiB --verify --json --quiet --connect-timeout 20s >"$LAB_DIR/log/transfer" ||
		lab_fail "$1 at $2: $(cat "$LAB_DIR/log/transfer")"
}
transfers "$MRC_PERF" a b                # this program, next daemon
transfers "$E2E_BIN/mrc-perf-next" a b   # next program, next daemon
MRC_PERF=$E2E_BIN/mrc-perf-next e2e_serve a serve-next --service next
lab_wait_for "two of the next ABI to speak it" 10 abi_is a 3
MRC_PERF=$E2E_BIN/mrc-perf-next e2e_serve b serve-low --service low # next program, this daemon
e2e_is b clients 'all(.[]; .abi_version == 2)' || lab_fail "a daemon of ABI 2 speaks: $(e2e_get b clients '[.[].abi_version]')"
transfers "$E2E_BIN/mrc-perf-next" b a/next
transfers "$MRC_PERF" a b/low
lab_kill serve-low TERM

# ---- the downgrade: what the newer one left is not half understood, and programs are told ----

is_now "$today" a
lab_restart a
grep -q 'starting with nothing: the state is of version 3, this daemon reads 1 to 2' "$LAB_DIR/log/mrcd-a.err" ||
	lab_fail "the log does not say why nothing was taken"
lab_wait_for "the program to have attached again" 20 abi_is a 2 # by the version both have now
e2e_paths a 2
transfers "$MRC_PERF" b a/next
lab_kill serve-next TERM

lab_kill serve TERM
e2e_end
