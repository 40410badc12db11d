#!/usr/bin/env bash
# Daemons are started again under their programs, one, the other, both at once, while a rail is cut, and while one is
# drained and another is drilled: streams both ways and within a host, large messages half way, a message that is held, a
# listener and a channel that rest. Programs see a pause and nothing else, and afterwards a daemon holds what it held
# before.
LAB_KEPT=1
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"
# shellcheck source-path=SCRIPTDIR source=doctor_says.sh
. "$(dirname "$0")/doctor_says.sh"

said() { grep -qxF -- "$2" "$LAB_DIR/log/$1.out"; }
boot_id() { e2e_get "$1" status .boot_id; }
kept_fds() { find "/proc/$(lab_kept_pid "$1")/fd" -mindepth 1 | wc -l; }
kept_fds_most() { [ "$(kept_fds "$1")" -le "$2" ]; } # who asked a daemon something may be there still
anon_kb() { awk '$1 == "RssAnon:" { print $2 }' "/proc/$(lab_kept_pid "$1")/status"; }

large=32MiB
[ "$LAB_PLACE" = netns ] || large=4MiB # programs have less memory in there
e2e_hosts 4
e2e_serve b
e2e_serve a serve-a --service back
streams=(bulk large back small here)
start() { # NAME HOST TARGET ARGUMENTS...
	lab_perf_spawn "$1" "$2" stream "$3" --verify --duration 0 --json --quiet --interval 100ms "${@:4}"
}
start bulk a b --size 1MiB --in-flight 8
start large a b --size "$large" --in-flight 2
start back b a/back --size 200KiB --channels 3 --in-flight 4 --pace 50Mb/s
start small a b --size 64 --channels 4 --pace 1Mb/s
start here a a/back --size 4KiB --pace 10Mb/s
# Taken by its program, and neither committed nor released before all is over; its listener waits for more.
mkfifo "$LAB_DIR/words"
exec {words}<>"$LAB_DIR/words"
# shellcheck disable=SC2016 # what it says is for the inner shell
lab_spawn receive b env MRC_SOCKET="$LAB_DIR/host/b/mrcd.sock" \
	bash -c 'exec "$1" receive late <"$2"' - "$E2E_BIN/late" "$LAB_DIR/words"
lab_wait_for "the receiver" 10 said receive listening
lab_spawn send a env MRC_SOCKET="$LAB_DIR/host/a/mrcd.sock" "$E2E_BIN/late" send b/late 0
for word in accept take; do
	echo "$word" >&"$words"
	lab_wait_for "the receiver: $word" 20 said receive "$word"
done
e2e_goes_on "streams that have just begun"

before=$(boot_id a)
fds=$(kept_fds a)
for round in a b "a b" a b "a b"; do
	# shellcheck disable=SC2086 # words on purpose
	lab_restart $round
	e2e_goes_on "after a restart of $round" 30
done
lab_cut 2 b
lab_restart a
lab_heal 2
sent=$(e2e_get a rails '[.[].bytes_sent] | add')
lab_restart a
lab_restart b
e2e_goes_on "after restarts around a cut" 30
e2e_paths a 4
# What an operator has drained stays so. A drill ends with the daemon that held it, and its rail is as it was; and one
# restart may follow on the heels of another.
rail_is() { e2e_is a rails ".[] | select(.name == \"$1\") | $2"; }
lab_spawn drill a "$MRCCTL" --runtime-dir "$LAB_DIR/host/a" drill r3 --silence 60s --yes --stream none
e2e_paths a 3
lab_mrcctl a drain r1
e2e_paths a 2
ready=$(lab_kept_count a ready)
kill -HUP "$(lab_pid mrcd-a)"
lab_wait_for "the next daemon to be started" 20 lab_kept_above a start "$ready"
kill -HUP "$(lab_pid mrcd-a)"
lab_wait_for "the one after it to be ready" 20 lab_kept_above a start $((ready + 1))
e2e_goes_on "after two restarts during a drill" 30
lab_status drill 20
[ "$LAB_STATUS" != 0 ] || lab_fail "a drill whose daemon has ended says that it went well"
e2e_paths a 3
rail_is r1 .drained || lab_fail "a drained rail is in service after a restart"
lab_mrcctl a undrain r1
e2e_paths a 4
[ "$(boot_id a)" = "$before" ] || lab_fail "host a has forgotten its state: boot id $(boot_id a), before $before"
e2e_is a rails "all(.[]; .bytes_sent > 0) and ([.[].bytes_sent] | add) >= $sent and $sent > 1e6" ||
	lab_fail "counters began anew: $sent before the last restart of a, then $(e2e_get a rails '[.[].bytes_sent]')"
# A file with errors ends nobody: what was in force stays, says so, and is mended under the streams.
file=$LAB_DIR/host/a/mrcd.yaml
cp "$file" "$LAB_DIR/mrcd.yaml"
is_former() { e2e_is a status .configuration_former; }
for round in first second; do
	echo 'nonsense: 1' >>"$file"
	lab_restart a
	e2e_goes_on "after the $round restart with a file that has errors" 30
	is_former || lab_fail "status does not say that the configuration is the one from before"
done
lab_mrcctl a status | grep -q 'the file has errors; mend it, then mrcctl reload' || lab_fail "status tells people nothing of it"
doctor a 1 --json --seconds 0
finds configuration '^mrcd$' 'from before its last restart'
! lab_mrcctl a reload 2>/dev/null || lab_fail "a file with errors was loaded"
cp "$LAB_DIR/mrcd.yaml" "$file"
lab_mrcctl a reload
! is_former || lab_fail "the file is right, and still not what is in force"
lab_restart a
! is_former || lab_fail "the copy was taken, though the file is right"
e2e_goes_on "after a restart with the file mended" 30
[ "$(boot_id a)" = "$before" ] || lab_fail "host a has forgotten its state with its configuration"
lab_wait_for "no more descriptors at a than before" 5 kept_fds_most a "$fds"
lab_alive send || lab_fail "the sender of the held message was answered: $(cat "$LAB_DIR/log/send.out")"
echo commit >&"$words"
lab_wait_for "the held message to be committed" 10 said send "answered: OK, committed, code 0"
lab_status send 10

for name in "${streams[@]}"; do e2e_stream_end "$name"; done
lab_kill receive TERM
lab_wait_for "no channel to be left at a" 10 e2e_is a channels 'length == 0'
# What a restart keeps it does not keep twice.
kb=$(anon_kb a)
for _ in 1 2 3; do lab_restart a; done
e2e_paths a 4
[ "$(anon_kb a)" -lt $((kb + 4096)) ] || lab_fail "three restarts made $kb KiB into $(anon_kb a)"

# One that is killed leaves nothing, and what does not fit is not taken: programs are told, and it is another run.
told() { grep -q 'attaching again' "$LAB_DIR/log/$1.err" "$LAB_DIR/log/$1.out"; }
another_run() { [ "$(boot_id "$1")" != "$2" ]; }
! told serve || lab_fail "a program at b has noticed a restart"
! told serve-a || lab_fail "a program at a has noticed a restart"
before=$(boot_id b)
kill -USR1 "$(lab_pid mrcd-b)"
lab_wait_for "another run at b" 10 another_run b "$before"
lab_wait_for "the service at b to be told" 10 told serve
before=$(boot_id a)
sed -i 's/^host: a$/host: other/' "$LAB_DIR/host/a/mrcd.yaml"
lab_restart a
another_run a "$before" || lab_fail "a host of another name has gone on"
grep -q 'starting with nothing: the state is of host a, and this is other' "$LAB_DIR/log/mrcd-a.err" ||
	lab_fail "the log does not say why nothing was taken"
lab_wait_for "the service at a to be told" 10 told serve-a

# With nobody to lose the errors are told by the exit status.
lab_kill serve TERM
lab_wait_for "no program to be left at b" 10 e2e_is b clients 'length == 0'
echo 'nonsense: 1' >>"$LAB_DIR/host/b/mrcd.yaml"
kill -HUP "$(lab_pid mrcd-b)"
lab_status mrcd-b 20
[ "$LAB_STATUS" = 78 ] || lab_fail "a daemon with nobody attached goes on with a file that has errors: status $LAB_STATUS"
lab_mrcd_stop a
e2e_no_reports
echo "ok"
