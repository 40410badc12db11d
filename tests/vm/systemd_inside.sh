#!/usr/bin/env bash
# What the units promise, asked of a real systemd; runs in the virtual machine of tests/vm/systemd.sh only.
# Host a is the guest with the installed service, host b a network namespace in it.
#
# usage: systemd_inside.sh PACKAGES NEXT      directories; NEXT: the same of a higher version
set -euo pipefail

packages=${1:?usage: systemd_inside.sh PACKAGES NEXT}
next=${2:?usage: systemd_inside.sh PACKAGES NEXT}
[ -d /job ] || {
	echo "this installs to /usr: only tests/vm/systemd.sh runs it, in a virtual machine" >&2
	exit 2
}
work=/run/mrc-test
mkdir -p "$work"

fail() {
	echo "FAILED: $*" >&2
	systemctl --no-pager --full status mrcd.service mrcd.socket >&2 || :
	journalctl --no-pager -n 40 -o short-precise >&2 || :
	exit 1
}
ok() { printf 'ok: %5s s  %s\n' "$(cut -d . -f 1 /proc/uptime)" "$*"; }
# Three times the patience: this processor may be an emulated one on a busy machine.
wait_for() { # DESCRIPTION SECONDS COMMAND...
	local what=$1 end=$((SECONDS + $2 * 3))
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || fail "waited in vain for $what"
		sleep 0.1
	done
}

is() { [ "$(systemctl show --value -p "$2" "$1")" = "$3" ]; } # UNIT PROPERTY VALUE
get() { systemctl show --value -p "$2" "$1"; }
pid() { get mrcd.service MainPID; }
# no pipe: who finds early would break it
journal_has() { grep -q -- "$1" < <(journalctl -u mrcd.service -o cat --no-pager "${@:2}"); } # TEXT OPTION...
status_has() { get mrcd.service StatusText | grep -q -- "$1"; }
of_process() { awk -v key="$2:" '$1 == key { print $2 }' "/proc/$1/status"; } # PID KEY

# ---- installed as the README says ----

rm -rf /etc/mrcd
rm -f /usr/sbin/policy-rc.d # of containers: nothing is started in them
rm -f /var/lib/man-db/auto-update # all manual pages are read for an index at each dpkg -i: minutes in here
export DEBIAN_FRONTEND=noninteractive
install_from() { # DIRECTORY
	(cd "$1" && dpkg -i --force-confold mrcd_*.deb libmrc0_*.deb mrc-tools_*.deb) >"$work/install" 2>&1 || fail "dpkg -i: $(cat "$work/install")"
}
version_of() { dpkg-query -W -f '${Version}' "$1"; }
install_from "$packages"
version=$(version_of mrcd)
systemctl -q is-enabled mrcd.service mrcd.socket || fail "installed, and not enabled"
wait_for "the installed daemon to be active" 20 systemctl -q is-active mrcd.service
mrcctl status | grep -q '0/0' || fail "as it is installed the daemon has other than no rails: $(mrcctl status)"
ok "installed, enabled, and started with the configuration of the package"
systemctl stop mrcd.service mrcd.socket
eval "$(grep '^head -c 32 /dev/urandom' README.md)"
useradd --no-create-home --groups mrcd trainer
useradd --no-create-home stranger
ok "the account: $(id mrcd)"

ip netns add b
ip link add r0 index 1001 type veth peer name r0 index 2001 netns b
ip address add 10.0.0.1/24 dev r0
ip link set r0 up
ip -n b address add 10.0.0.2/24 dev r0
ip -n b link set r0 up
ip -n b link set lo up

configure() { # HOST PEER ADDRESS PEER-ADDRESS
	cat <<-YAML
		host: $1
		rails:
		  - {name: r0, interface: r0, address: $3}
		peers:
		  - name: $2
		    paths:
		      - {rail: r0, address: $4}
	YAML
}
configure a b 10.0.0.1 10.0.0.2 >/etc/mrcd/mrcd.yaml
mrcd --check

# ---- starting ----

echo 'rials: []' >>/etc/mrcd/mrcd.yaml
if systemctl start mrcd.service 2>/dev/null; then fail "the start of a daemon with a wrong configuration succeeds"; fi
wait_for "the service to stay failed with a wrong configuration" 10 is mrcd.service ActiveState failed
is mrcd.service NRestarts 0 || fail "a wrong configuration was tried $(get mrcd.service NRestarts) times more"
wait_for "the mistake to be in the journal" 10 journal_has 'mrcd.yaml:8:.*rials'
ok "with a wrong configuration the start fails, once, and the journal says where"
configure a b 10.0.0.1 10.0.0.2 >/etc/mrcd/mrcd.yaml

# A daemon that takes its time: until it says that it is ready, the unit is not active.
mkdir -p /run/systemd/system/mrcd.service.d
cat >/run/systemd/system/mrcd.service.d/slow.conf <<'UNIT'
[Service]
ExecStart=
SyslogIdentifier=slow
ExecStart=/bin/sh -c 'until [ -e /etc/mrcd/go ]; do sleep 0.1; done; exec /usr/sbin/mrcd --config /etc/mrcd/mrcd.yaml'
UNIT
systemctl daemon-reload
systemctl start --no-block mrcd.service
wait_for "the slow daemon to be there" 20 is mrcd.service SubState start
! systemctl -q is-active mrcd.service || fail "active before the daemon was"
touch /etc/mrcd/go
wait_for "the unit to become active" 20 systemctl -q is-active mrcd.service
mrcctl status >"$work/status" || fail "active, and does not answer"
systemctl stop mrcd.service mrcd.socket
rm -r /run/systemd/system/mrcd.service.d /etc/mrcd/go
systemctl daemon-reload
ok "active only when the daemon says that it is ready; then it answers"

eval "$(grep '^systemctl restart' README.md | sed 's/ *#.*//')"
systemctl -q is-active mrcd.service mrcd.socket || fail "enabled and started, and not active"
systemctl -q is-enabled mrcd.service mrcd.socket || fail "not enabled"
ok "started as the README says"

# ---- confined ----

main=$(pid)
[ "$(stat -c %U:%G "/proc/$main")" = mrcd:mrcd ] || fail "it runs as $(stat -c %U:%G "/proc/$main")"
[ "$(of_process "$main" NoNewPrivs)" = 1 ] || fail "it could gain privileges"
[ "$(of_process "$main" Seccomp)" = 2 ] || fail "no filter of system calls"
# CAP_NET_RAW is bit 13, CAP_IPC_LOCK bit 14
for set in CapEff CapPrm CapBnd; do
	[ "$(of_process "$main" $set)" = 0000000000006000 ] || fail "$set is $(of_process "$main" $set)"
done
inside() { nsenter --target "$main" --mount "$@"; }
for dir in /usr /etc /var; do
	if inside touch "$dir/mrc-test" 2>/dev/null; then fail "$dir can be written"; fi
done
inside touch /run/mrcd/mrc-test || fail "/run/mrcd cannot be written"
rm /run/mrcd/mrc-test
touch /home/mrc-test
if inside ls /home/mrc-test 2>/dev/null; then fail "/home can be seen"; fi
ok "runs as mrcd, with two capabilities and a filter of system calls; /usr, /etc and /var read-only, /home unseen"
ok "systemd-analyze security: $(systemd-analyze security --no-pager mrcd.service | sed -n 's/.*Overall exposure level for mrcd.service: \([0-9.]* [A-Z]*\).*/\1/p')"

# ---- serving ----

configure b a 10.0.0.2 10.0.0.1 >/etc/mrcd/b.yaml
echo 'runtime-dir: /run/mrcd-b' >>/etc/mrcd/b.yaml
b_start() { # PROPERTY...
	local properties=() property
	for property; do properties+=(-p "$property"); done
	systemd-run -q --unit=mrcd-b -p Type=notify -p User=mrcd -p RuntimeDirectory=mrcd-b "${properties[@]}" mrcd --config /etc/mrcd/b.yaml
	systemd-run -q --unit=serve-b mrc-perf serve --socket /run/mrcd-b/mrcd.sock --quiet
}
b_start NetworkNamespacePath=/run/netns/b AmbientCapabilities=CAP_NET_RAW
wait_for "the status text" 20 status_has '^1 of 1 rail up, 1 of 1 peer connected'
ok "status text: $(get mrcd.service StatusText)"

as() { setpriv --reuid "$1" --regid "$1" --init-groups "${@:2}"; } # USER COMMAND...
stream() { # as a user of the group
	as trainer mrc-perf stream b --size 64KiB --count 20 --verify --connect-timeout 60s --json --quiet >"$work/stream" 2>"$work/stream.err" ||
		fail "the stream: $(cat "$work/stream" "$work/stream.err")"
	jq -e '.messages == 20 and .verify.checked == 20 and .outcomes == {OK: 20}' "$work/stream" >/dev/null ||
		fail "not all of the stream arrived: $(jq -c '{messages, verify, outcomes}' "$work/stream")"
}
stream
ok "20 messages of 64 KiB from a to b, each checked, sent by a user of the group mrcd"
if as stranger mrc-perf lat b --count 1 >"$work/stranger" 2>&1; then fail "a user who is not in the group may attach"; fi
grep -q -i 'permission' "$work/stranger" || fail "a stranger is told: $(cat "$work/stranger")"
ok "another user is told: $(head -n 1 "$work/stranger")"

if mrcctl doctor >"$work/doctor" 2>&1; then :; else fail "doctor ends with $?: $(cat "$work/doctor")"; fi
[ "$(wc -l <"$work/doctor")" = 1 ] || fail "doctor has more to say than a line: $(cat "$work/doctor")"
ok "mrcctl doctor: $(cat "$work/doctor")"

# ---- reload ----

echo 'log: {level: debug}' >>/etc/mrcd/mrcd.yaml
systemctl reload mrcd.service
wait_for "the reload to be in the journal" 20 journal_has 'the log level is in force'
is mrcd.service ActiveState active || fail "not active after a reload"
[ "$(pid)" = "$main" ] || fail "a reload started another process"
echo 'rials: []' >>/etc/mrcd/mrcd.yaml
systemctl reload mrcd.service
wait_for "the refused reload to be in the journal" 20 journal_has 'has errors, nothing was changed'
[ "$(pid)" = "$main" ] || fail "a wrong configuration at reload ended the daemon"
configure a b 10.0.0.1 10.0.0.2 >/etc/mrcd/mrcd.yaml
peers_are() { [ "$(mrcctl peers --json | jq -c 'map(.name) | sort')" = "$1" ]; }
echo '  - {name: c, paths: [{rail: r0, address: 10.0.0.3}]}' >>/etc/mrcd/mrcd.yaml
systemctl reload mrcd.service
wait_for "a peer that came by a reload" 20 peers_are '["b","c"]'
configure a b 10.0.0.1 10.0.0.2 >/etc/mrcd/mrcd.yaml
systemctl reload mrcd.service
wait_for "that peer to be gone by another" 20 peers_are '["b"]'
[ "$(pid)" = "$main" ] || fail "a reload with another peer started another process"
ok "reload: what is right is taken, a peer comes and goes, what is wrong is refused, the process stays"

# ---- restart and upgrade: programs stay attached ----

boot_id() { mrcctl status --json | jq -r .boot_id; }
declare -A streams
# stream_start NAME USER PEER ARGUMENTS...: a stream that ends when it is told to. No function in a function: its shell
# would get the signal.
stream_start() {
	setpriv --reuid "$2" --regid "$2" --init-groups mrc-perf stream "$3" --size 64KiB --in-flight 4 --duration 0 --verify \
		--connect-timeout 60s --drain-timeout 60s --json --quiet "${@:4}" >"$work/$1" 2>"$work/$1.err" &
	streams[$1]=$!
}
# Both ways: host a, whose daemon is started again, sends to b by `there`, and receives from it by `back`.
streams_start() { # ARGUMENTS...
	stream_start there trainer b "$@"
	stream_start back root a --socket /run/mrcd-b/mrcd.sock "$@"
	streams_go_on "after their beginning"
}
counts() { mrcctl peers --json | jq -r '"\([.[].messages_sent] | add) \([.[].messages_delivered] | add)"'; }
are_beyond() { # SENT DELIVERED
	local sent delivered
	read -r sent delivered < <(counts) && [ "$sent" -gt "$1" ] && [ "$delivered" -gt "$2" ]
}
streams_go_on() { # WHEN
	local sent delivered
	read -r sent delivered < <(counts)
	wait_for "both streams to go on $1" 60 are_beyond $((sent + 10)) $((delivered + 10))
}
streams_stop() {
	local name status
	for name in there back; do
		kill -TERM "${streams[$name]}"
		status=0
		wait "${streams[$name]}" || status=$?
		[ "$status" = 0 ] || [ "${1:-}" = whatever ] || fail "the stream $name ended with status $status: $(cat "$work/$name" "$work/$name.err")"
	done
}
# stream_is NAME FILTER CLAIM
stream_is() {
	jq -e "$2" "$work/$1" >/dev/null || fail "not so of the stream $1: $3: $(jq -c '{messages, verify, outcomes}' "$work/$1") $(cat "$work/$1.err")"
}
intact='.messages > 0 and .verify.duplicated == 0 and .verify.reordered == 0 and .verify.corrupted == 0'
streams_intact() {
	local name
	for name in there back; do
		stream_is "$name" "$intact and .verify.lost == 0 and .verify.checked >= .messages and (.outcomes | keys) == [\"OK\"]" \
			"each message once, in order, intact, and answered with OK"
		! grep -q 'attaching again' "$work/$name.err" || fail "the program of the stream $name noticed: $(cat "$work/$name.err")"
	done
}
# A program of host a that offers a service, from here to the stop of the service.
serve_start() {
	setpriv --reuid trainer --regid trainer --init-groups mrc-perf serve --quiet >"$work/serve" 2>&1 &
	serve=$!
}
serve_start
serve_is_told() { [ "$(grep -c 'attaching again' "$work/serve")" -gt "$1" ]; }

went_on() { journalctl -u mrcd.service -o cat --no-pager | grep -c 'going on where the daemon before stopped' || :; }
went_on_again() { [ "$(went_on)" -gt "$1" ]; }
# state_is_kept WHAT COMMAND...: which starts the daemon again: another process, the same run of state, and it says so
state_is_kept() {
	local before boot went
	before=$(pid) boot=$(boot_id) went=$(went_on)
	"${@:2}" || fail "$1: $2 ends with status $?"
	wait_for "the daemon, $1" 20 systemctl -q is-active mrcd.service
	[ "$(pid)" != "$before" ] || fail "$1: the same process"
	[ "$(boot_id)" = "$boot" ] || fail "$1: the daemon has forgotten its state: $(journalctl -u mrcd.service -o cat --no-pager -n 20)"
	wait_for "the journal to say that it went on, $1 (so far $went times)" 10 went_on_again "$went"
	is mrcd.service NFileDescriptorStore 0 || fail "$1: the store still has $(get mrcd.service NFileDescriptorStore) descriptors"
	streams_go_on "$1"
}

boot=$(boot_id)
streams_start --pace 10Mb/s
for round in 1 2 3; do state_is_kept "after restart $round" systemctl restart mrcd.service; done
ok "three times systemctl restart under a stream each way: the daemon goes on with the state it had ($(went_on) times so far)"
state_is_kept "after the same package again" install_from "$packages"
[ "$(version_of mrcd)" = "$version" ] || fail "the same package made version $(version_of mrcd) of $version"
state_is_kept "after the upgrade" install_from "$next"
for name in mrcd libmrc0 mrc-tools; do
	dpkg --compare-versions "$(version_of $name)" gt "$version" || fail "upgraded, and $name is of version $(version_of $name)"
done
[ "$(mrcctl status --json | jq -r .version)-1" = "$(version_of mrcd)" ] || fail "the daemon that runs is of version $(mrcctl status --json | jq -r .version)"
grep -q 'rail: r0' /etc/mrcd/mrcd.yaml || fail "an upgrade took the configuration away"
systemctl -q is-enabled mrcd.service mrcd.socket || fail "an upgrade disabled the units"
streams_stop
streams_intact
kill -0 "$serve" 2>/dev/null || fail "the program that receives has ended: $(cat "$work/serve")"
! serve_is_told 0 || fail "the program that receives noticed: $(cat "$work/serve")"
ok "the same package again, and version $(version_of mrcd) over $version, under the same streams ($(jq .messages "$work/there") messages there, $(jq .messages "$work/back") back): each once, in order, intact, and no program noticed"

# Host b still runs the version before.
if mrcctl doctor >"$work/doctor" 2>&1; then fail "doctor finds nothing where versions differ: $(cat "$work/doctor")"; fi
grep -q '\[version-mrcd\]' "$work/doctor" || fail "doctor does not name the version: $(cat "$work/doctor")"
ok "mrcctl doctor: $(sed -n 's/^ *seen *//p' "$work/doctor" | head -n 1)"

# ---- killed ----

restarted() { [ "$(pid)" != "$main" ] && [ "$(pid)" != 0 ] && systemctl -q is-active mrcd.service; }
main=$(pid)
count=$(get mrcd.service NRestarts)
streams_start
kill -KILL "$main"
wait_for "a daemon that was killed to be started again" 20 restarted
is mrcd.service NRestarts $((count + 1)) || fail "restarts: $(get mrcd.service NRestarts), before $count"
wait_for "the journal to say how it ended" 10 journal_has 'code=killed, status=9/KILL'
[ "$(boot_id)" != "$boot" ] || fail "killed, and it claims to go on where it stopped"
wait_for "the program that receives to be told" 20 serve_is_told 0
streams_go_on "after the daemon was killed"
streams_stop whatever
stream_is there "$intact and (.outcomes.OK > 0) and ((.outcomes.DETACHED // 0) + (.outcomes.UNKNOWN // 0) > 0)
	and ((.outcomes | keys) - [\"OK\", \"DETACHED\", \"UNKNOWN\", \"PEER_DIED\"] == [])" "what was under way is unknown, and nothing else fails"
stream_is back "$intact and (.outcomes.OK > 0) and ((.outcomes | keys) - [\"OK\", \"UNKNOWN\", \"PEER_DIED\"] == [])" \
	"what was under way to a dead daemon is unknown, and nothing else fails"
grep -q 'attaching again' "$work/there.err" || fail "the program that sends was not told: $(cat "$work/there.err")"
ok "kill -9: started again; programs are told ($(head -n 1 "$work/there.err")), attach again, and go on: outcomes $(jq -c .outcomes "$work/there") there, $(jq -c .outcomes "$work/back") back"
# More often than systemd would by itself (5 starts in 10 s).
for round in 1 2 3 4 5 6 7; do
	main=$(pid)
	kill -KILL "$main"
	wait_for "a daemon that was killed $round times more to be started again" 20 restarted
done
is mrcd.service NRestarts $((count + 8)) || fail "restarts: $(get mrcd.service NRestarts), before $count"
stream
ok "killed seven times in a row: started again each time, and the next stream goes through"

# ---- watchdog ----

main=$(pid)
count=$(get mrcd.service NRestarts)
fed=$(get mrcd.service WatchdogTimestampMonotonic)
fed_again() { [ "$(get mrcd.service WatchdogTimestampMonotonic)" != "$fed" ]; }
wait_for "the watchdog to be fed" 20 fed_again
ok "the watchdog is fed"
kill -STOP "$main"
wait_for "a daemon that hangs to be started again" 60 restarted
is mrcd.service NRestarts $((count + 1)) || fail "restarts: $(get mrcd.service NRestarts), before $count"
journal_has 'Watchdog timeout' || fail "the journal does not name the watchdog"
stream
serve_stop() {
	kill -0 "$serve" 2>/dev/null || fail "the program that receives has ended: $(cat "$work/serve")"
	kill -TERM "$serve"
	wait "$serve" || fail "the program that receives ended with status $?: $(cat "$work/serve")"
}
serve_stop
ok "a daemon that hangs is killed and started again, and the next stream goes through"

# ---- stopping ----

main=$(pid)
systemctl stop mrcd.service mrcd.socket
is mrcd.service Result success || fail "stopped with the result $(get mrcd.service Result)"
[ ! -e "/proc/$main" ] || fail "the process is still there"
# The lock stays: a file that may be locked by the next one cannot be removed without a race.
# So does what mrcctl connects to: a daemon cannot know that it is not to be started again.
left=$(find /run/mrcd -mindepth 1 ! -name mrcd.lock ! -name control.sock)
[ -z "$left" ] || fail "left behind: $left"
[ -z "$(ss -H -l -t -n 'sport = 7471')" ] || fail "something still listens on port 7471"
is mrcd.service NFileDescriptorStore 0 || fail "a stop left $(get mrcd.service NFileDescriptorStore) descriptors in the store"
ok "stopped: no process, no port, no socket, nothing in the store"

# ---- started by the first program ----

systemctl start mrcd.socket
! systemctl -q is-active mrcd.service || fail "the socket alone started the daemon"
[ "$(stat -c %U:%G:%a /run/mrcd/mrcd.sock)" = mrcd:mrcd:660 ] || fail "the socket is $(stat -c %U:%G:%a /run/mrcd/mrcd.sock)"
stream
systemctl -q is-active mrcd.service || fail "a program was served, and the unit is not active"
systemctl stop mrcd.service 2>/dev/null # it warns of the socket, rightly
systemctl -q is-active mrcd.socket || fail "stopping the service closed the socket"
stream
ok "mrcd.socket starts the daemon for the first program, and again after a stop"

# ---- the journal ----

systemctl stop mrcd.service mrcd.socket
journalctl --sync
journalctl -u mrcd.service -o json --no-pager >"$work/journal"
jq -s -e 'map(select(.SYSLOG_IDENTIFIER == "mrcd")) | length > 10 and all(.MESSAGE | type == "string")' \
	"$work/journal" >/dev/null || fail "lines of the daemon are missing or not text"
# whose they are
jq -s -e --arg uid "$(id -u mrcd)" 'map(select(.SYSLOG_IDENTIFIER == "mrcd"))
	| all(._SYSTEMD_UNIT == "mrcd.service" and ._UID == $uid and (._PID | test("^[0-9]+$")))' \
	"$work/journal" >/dev/null || fail "lines of the daemon are not known as its: $(jq -c 'select(.SYSLOG_IDENTIFIER == "mrcd") | [._SYSTEMD_UNIT, ._UID, ._PID]' "$work/journal" | sort | uniq -c)"
journal_has 'mrcd.yaml:8:.*rials' -p err || fail "a wrong configuration is no error to the journal"
! journal_has 'host a, 1 rail' -p err || fail "a start is an error to the journal"
journal_has 'host a, 1 rail' -p notice || fail "a start is no notice to the journal"
# a priority of their own, and no mark of it in the text
jq -s -e 'map(select(.SYSLOG_IDENTIFIER == "mrcd")) | (map(.PRIORITY) | unique | length > 1) and all(.MESSAGE | test("^<[0-9]>|\\u001b") | not)' \
	"$work/journal" >/dev/null || fail "priorities are missing, or within the text"
complaints=$(journalctl -o cat --no-pager | grep -E '/mrcd\.(service|socket|conf):[0-9]+:' || :)
[ -z "$complaints" ] || fail "systemd does not understand: $complaints"
ok "the journal has the daemon's lines with their priorities, unit, user and process; of the last start:"
journalctl -u mrcd.service -o short --no-pager -n 14

# ---- rails over queue pairs, confined as the unit confines them ----

systemctl stop serve-b.service mrcd-b.service
ip link del r0
# shellcheck source-path=SCRIPTDIR source=rails.sh
. tests/vm/rails.sh
rails_make 2 rxe
configure_verbs() { # HOST PEER NUMBER
	local rail
	printf 'host: %s\nclients: {landing-arena: 16MiB, send-arena: 16MiB}\nrails:\n' "$1"
	for rail in 0 1; do
		echo "  - {name: r$rail, type: verbs, interface: $(rails_interface "$3" $rail), address: $(rails_address "$3" $rail)}"
	done
	printf 'peers:\n  - name: %s\n    paths:\n' "$2"
	for rail in 0 1; do echo "      - {rail: r$rail, address: $(rails_address $((1 - $3)) $rail)}"; done
}
configure_verbs a b 0 >/etc/mrcd/mrcd.yaml
configure_verbs b a 1 >/etc/mrcd/b.yaml
echo 'runtime-dir: /run/mrcd-b' >>/etc/mrcd/b.yaml
systemctl start mrcd.service
b_start 'AmbientCapabilities=CAP_NET_RAW CAP_IPC_LOCK' LimitMEMLOCK=infinity
are_verbs() { mrcctl paths --json | jq -e 'length == 2 and all(.[]; (.state | ascii_downcase) == "good" and .link == "verbs")'; }
wait_for "two paths over queue pairs" 60 are_verbs
serve_start
streams_start --pace 4Mb/s
for round in 1 2; do state_is_kept "over queue pairs, after restart $round" systemctl restart mrcd.service; done
wait_for "two paths over queue pairs again" 60 are_verbs
streams_stop
streams_intact
serve_stop
if mrcctl doctor >"$work/doctor" 2>&1; then :; else fail "doctor ends with $?: $(cat "$work/doctor")"; fi
[ "$(wc -l <"$work/doctor")" = 1 ] || fail "doctor has more to say than a line: $(cat "$work/doctor")"
ok "over soft-RoCE, as the unit confines the daemon: two restarts under a stream each way ($(jq .messages "$work/there") messages there, $(jq .messages "$work/back") back), each once, in order, intact; doctor: $(cat "$work/doctor")"
systemctl stop mrcd-b.service

# ---- the end ----

main=$(pid)
dpkg -r mrcd >"$work/remove" 2>&1 || fail "dpkg -r: $(cat "$work/remove")"
[ ! -e "/proc/$main" ] || fail "removed, and the daemon still runs"
! systemctl -q is-active mrcd.socket || fail "removed, and the socket still listens"
dpkg -P mrcd mrc-tools libmrc0 >"$work/purge" 2>&1 || fail "dpkg -P: $(cat "$work/purge")"
# What others made stays: the key, host b's configuration.
left=$(find /etc/mrcd /run/mrcd /etc/systemd/system /var/lib/systemd /usr/lib/systemd/system -iname '*mrcd*' ! -path '/etc/mrcd' 2>/dev/null || :)
[ -z "$left" ] || fail "purged, and still there: $left"
[ -z "$(find /usr/bin /usr/sbin /usr/lib/sysusers.d /usr/lib/tmpfiles.d -name 'mrc*')" ] || fail "programs are left"
[ -z "$(systemctl list-unit-files --no-legend 'mrcd*')" ] || fail "systemd still knows $(systemctl list-unit-files --no-legend 'mrcd*')"
if dpkg-query -W -f '${db:Status-Status}\n' mrcd libmrc0 mrc-tools 2>/dev/null | grep -v not-installed; then fail "dpkg still knows them"; fi
ok "removed and purged: the daemon ended, nothing of the packages is left"
