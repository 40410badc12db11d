#!/usr/bin/env bash
# What the units promise, asked of a real systemd; runs in the virtual machine of tests/vm/systemd.sh only.
# Host a is the guest with the installed service, host b a network namespace in it.
#
# usage: systemd_inside.sh DIRECTORY-OF-PACKAGES
set -euo pipefail

packages=${1:?usage: systemd_inside.sh DIRECTORY-OF-PACKAGES}
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
journal_has() { journalctl -u mrcd.service -o cat --no-pager | grep -q -- "$1"; }
status_has() { get mrcd.service StatusText | grep -q -- "$1"; }
of_process() { awk -v key="$2:" '$1 == key { print $2 }' "/proc/$1/status"; } # PID KEY

# ---- installed as the README says ----

rm -rf /etc/mrcd
rm -f /usr/sbin/policy-rc.d # of containers: nothing is started in them
export DEBIAN_FRONTEND=noninteractive
(cd "$packages" && dpkg -i mrcd_*.deb libmrc0_*.deb mrc-tools_*.deb) >"$work/install" 2>&1 || fail "dpkg -i: $(cat "$work/install")"
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
systemd-run -q --unit=mrcd-b -p Type=notify -p NetworkNamespacePath=/run/netns/b -p User=mrcd -p RuntimeDirectory=mrcd-b \
	-p AmbientCapabilities=CAP_NET_RAW mrcd --config /etc/mrcd/b.yaml
systemd-run -q --unit=serve-b mrc-perf serve --socket /run/mrcd-b/mrcd.sock --quiet
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
ok "reload: what is right is taken, what is wrong is refused, the process stays"

# ---- restart: programs stay attached ----

delivered() { mrcctl peers --json | jq '[.[].messages_delivered + .[].messages_sent] | add'; }
goes_on() { [ "$(delivered)" -gt $(($1 + 10)) ]; }
boot_id=$(mrcctl status --json | jq -r .boot_id)
# not by a function, whose shell would get the signal
setpriv --reuid trainer --regid trainer --init-groups mrc-perf stream b --size 64KiB --in-flight 4 --pace 20Mb/s --duration 0 --verify --connect-timeout 60s --drain-timeout 60s --json --quiet \
	>"$work/long" 2>"$work/long.err" &
long=$!
wait_for "the long stream to be under way" 30 goes_on "$(delivered)"
for round in 1 2 3; do
	before=$(pid)
	count=$(delivered)
	systemctl restart mrcd.service
	[ "$(pid)" != "$before" ] || fail "restart $round: the same process"
	wait_for "the stream to go on after restart $round" 30 goes_on "$count"
done
[ "$(mrcctl status --json | jq -r .boot_id)" = "$boot_id" ] || fail "the daemon has forgotten its state"
journal_has 'going on where the daemon before stopped' || fail "the journal does not say that it went on"
is mrcd.service NFileDescriptorStore 0 || fail "the store still has $(get mrcd.service NFileDescriptorStore) descriptors"
kill -TERM "$long"
wait "$long" || fail "the stream through three restarts: $(cat "$work/long" "$work/long.err")"
jq -e '(.outcomes | keys) == ["OK"] and .verify.lost == 0 and .verify.duplicated == 0 and .verify.corrupted == 0 and .verify.checked >= .messages' \
	"$work/long" >/dev/null || fail "not all of the stream arrived: $(jq -c '{messages, verify, outcomes}' "$work/long")"
! grep -q 'attaching again' "$work/long.err" || fail "the program noticed: $(cat "$work/long.err")"
main=$(pid)
ok "three times systemctl restart under a stream of $(jq .messages "$work/long") messages: each once, intact, and the program stayed attached"

# ---- watchdog ----

fed=$(get mrcd.service WatchdogTimestampMonotonic)
fed_again() { [ "$(get mrcd.service WatchdogTimestampMonotonic)" != "$fed" ]; }
wait_for "the watchdog to be fed" 20 fed_again
ok "the watchdog is fed"
kill -STOP "$main"
restarted() { [ "$(pid)" != "$main" ] && [ "$(pid)" != 0 ] && systemctl -q is-active mrcd.service; }
wait_for "a daemon that hangs to be started again" 60 restarted
is mrcd.service NRestarts 1 || fail "restarts: $(get mrcd.service NRestarts)"
journal_has 'Watchdog timeout' || fail "the journal does not name the watchdog"
stream
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
# a priority of their own, and no mark of it in the text
jq -s -e 'map(select(.SYSLOG_IDENTIFIER == "mrcd")) | (map(.PRIORITY) | unique | length > 1) and all(.MESSAGE | test("^<[0-9]>|\\u001b") | not)' \
	"$work/journal" >/dev/null || fail "priorities are missing, or within the text"
complaints=$(journalctl -o cat --no-pager | grep -E '/mrcd\.(service|socket|conf):[0-9]+:' || :)
[ -z "$complaints" ] || fail "systemd does not understand: $complaints"
ok "the journal has the daemon's lines with their priorities; of the last start:"
journalctl -u mrcd.service -o short --no-pager -n 14

# ---- an upgrade, and the end ----

systemctl start mrcd.service
main=$(pid)
(cd "$packages" && dpkg -i --force-confold mrcd_*.deb) >"$work/upgrade" 2>&1 || fail "an upgrade: $(cat "$work/upgrade")"
wait_for "the upgraded daemon" 20 systemctl -q is-active mrcd.service
[ "$(pid)" != "$main" ] || fail "an upgrade left the old daemon running"
grep -q 'rail: r0' /etc/mrcd/mrcd.yaml || fail "an upgrade took the configuration away"
ok "an upgrade starts the new daemon and keeps the configuration"
main=$(pid)
dpkg -r mrcd >"$work/remove" 2>&1 || fail "dpkg -r: $(cat "$work/remove")"
[ ! -e "/proc/$main" ] || fail "removed, and the daemon still runs"
! systemctl -q is-active mrcd.socket || fail "removed, and the socket still listens"
dpkg -P mrcd mrc-tools libmrc0 >"$work/purge" 2>&1 || fail "dpkg -P: $(cat "$work/purge")"
# What others made stays: the key, host b's configuration.
left=$(find /etc/mrcd /run/mrcd /etc/systemd/system /var/lib/systemd /usr/lib/systemd/system -iname '*mrcd*' ! -path '/etc/mrcd' 2>/dev/null || :)
[ -z "$left" ] || fail "purged, and still there: $left"
[ -z "$(find /usr/bin /usr/sbin /usr/lib/sysusers.d /usr/lib/tmpfiles.d -name 'mrc*')" ] || fail "programs are left"
ok "removed and purged: the daemon ended, nothing of the packages is left"
