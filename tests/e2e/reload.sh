#!/usr/bin/env bash
# Rails, paths, a peer, quotas and timers are others by `mrcctl reload`, under streams both ways: what is not concerned
# does not feel it, nothing is lost or comes twice, and what is wrong changes nothing. A restart goes on from there.
LAB_KEPT=1
# On a busy machine a path may be late; here a path that leaves service shall be the reload's doing.
LAB_YAML="timers: {suspect-floor: 150ms}"
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

# conf HOST WITHOUT SED-SCRIPT [YAML]: the file of a host without these rails ("23"), changed and with more at its end
conf() {
	lab_conf "$1" "${4:-}" | sed -E "/(name|rail): r[${2:-x}],/d; ${3:-}" >"$LAB_DIR/host/$1/mrcd.yaml"
}
reload() { # HOST
	lab_mrcctl "$1" reload >"$LAB_DIR/log/reload-$1.out" || lab_fail "the reload on $1 was refused"
}
refused() { # HOST TEXT
	! lab_mrcctl "$1" reload >/dev/null 2>"$LAB_DIR/log/refused.err" || lab_fail "taken, and not refused: $2"
	grep -qF -- "$2" "$LAB_DIR/log/refused.err" || lab_fail "\"$2\" is not said: $(cat "$LAB_DIR/log/refused.err")"
}
says() { grep -qE -- "$2" "$LAB_DIR/log/reload-$1.out" || lab_fail "\"$2\" is not said: $(cat "$LAB_DIR/log/reload-$1.out")"; }
# What r0 and r1 are, which no reload concerns: a path that were closed would begin another epoch
same() { e2e_get "$1" paths '[.[] | select(.rail == "r0" or .rail == "r1") | {rail, epoch, good_count, bad_count}]'; }
rails_are() { e2e_is "$1" rails "[.[].name] | sort == $2" || lab_fail "the rails of $1 are $(e2e_get "$1" rails '[.[].name]')"; }

e2e_hosts 4
e2e_serve a serve-a --service back
lab_perf_spawn back b stream a/back --verify --duration 0 --json --quiet --size 64KiB --in-flight 4 --pace 50Mb/s
e2e_stream_start
before=$(same a)$(same b)
sent=$(e2e_get a paths '[.[] | select(.rail == "r0") | .frames_sent] | add')

# ---- nothing at all on error, and nothing in a trial ----
conf a "" 's/host: a/host: a\ncolour: blue/'
refused a "unknown key"
conf a 3 "s/interface: $(lab_interface a 2),/interface: none9,/; s/name: r2,/name: r9,/; s/rail: r2,/rail: r9,/"
refused a "there is no network interface none9; allowed: one that ip link shows"
conf a 3 "" "metrics: {port: 7471, address: $(lab_address a 0), public: true}"
refused a "metrics: cannot answer at $(lab_address a 0)"
rails_are a '["r0","r1","r2","r3"]'
conf a 3
lab_mrcctl a reload --check >"$LAB_DIR/log/reload-a.out"
says a 'right; nothing was changed, a reload would do this:'
says a '^  removed +rail r3$'
rails_are a '["r0","r1","r2","r3"]'
[ "$(same a)$(same b)" = "$before" ] || lab_fail "what was refused was felt: $(same a)"

# ---- rails go and come, at one end and then at the other ----
for host in a b; do
	conf "$host" 3
	reload "$host"
	says "$host" '^  removed +rail r3$'
	says "$host" '^  unchanged +3 rails, 0 peers$'
done
rails_are a '["r0","r1","r2"]'
e2e_goes_on "with a rail less"
for host in b a; do
	conf "$host" ""
	reload "$host"
	says "$host" '^  added +rail r3$'
done
e2e_paths a 4
e2e_share 3

# ---- a rail listens at another port; the peer's path to it is another one ----
conf b "" '/name: r2,/s/}/, port: 7472}/'
reload b
says b '^  opened anew +rail r2 \(port\)$'
conf a "" '/rail: r2,/s/}/, port: 7472}/'
reload a
says a '^  added +path b over r2 to .*:7472$'
e2e_paths a 4

# ---- in place: a rail drained, quotas of who is attached, timers, a peer ----
conf a "" '/rail: r2,/s/}/, port: 7472}/; /name: r3,/s/}/, drained: true}/' \
	"quotas: [{users: [root], rate: 150Mb/s}]
timers: {suspect-floor: 150ms, probe-interval: 30ms}
limits: {frag-max: 64KiB}
peers: [{name: c, paths: [{rail: r0, address: 10.10.0.77}]}]"
# one list of peers
sed -i -e '/^peers: \[/d' -e 's/^peers:$/peers:\n  - {name: c, paths: [{rail: r0, address: 10.10.0.77}]}/' \
	"$LAB_DIR/host/a/mrcd.yaml"
reload a
says a '^  changed +rail r3 \(drained\)$'
says a '^  changed +quotas$'
says a '^  changed +key timers.probe-interval \(30ms, was 20ms\)$'
says a '^  waits for a restart +key limits.frag-max \(64KiB, was 128KiB\)'
e2e_is a rails '.[] | select(.name == "r3") | .drained' || lab_fail "r3 is not drained"
e2e_is a clients 'all(.[]; .quota.rate_bits_per_s == 150000000)' || lab_fail "the quota is not in force: $(e2e_get a clients .)"
e2e_is a peers 'map(.name) | sort == ["b","c"]' || lab_fail "c is no peer: $(e2e_get a peers .)"
e2e_goes_on "with a quota"
conf a "" '/rail: r2,/s/}/, port: 7472}/'
kill -HUP "$(lab_kept_pid a)" # the same for a service manager
lab_wait_for "c to have gone" 10 e2e_is a peers 'map(.name) == ["b"]'
e2e_paths a 4
lab_mrcctl a events | grep -q 'peer c: removed' || lab_fail "the events do not tell: $(lab_mrcctl a events | tail -5)"

[ "$(same a)$(same b)" = "$before" ] || lab_fail "rails that no reload concerned felt one: $before, then $(same a)$(same b)"
e2e_is a paths ".[] | select(.rail == \"r0\") | .frames_sent > $sent" || lab_fail "counters of r0 began anew"

# ---- the first rail goes, and a restart goes on with the places that are left ----
boot_id=$(e2e_get a status .boot_id)
for host in a b; do
	conf "$host" 0 "$([ "$host" = a ] && echo '/rail: r2,/s/}/, port: 7472}/' || echo '/name: r2,/s/}/, port: 7472}/')"
	reload "$host"
done
e2e_paths a 3
lab_restart a
lab_restart b
e2e_paths a 3
e2e_goes_on "after a restart without the first rail"
[ "$(e2e_get a status .boot_id)" = "$boot_id" ] || lab_fail "the restart began anew: $(tail -3 "$LAB_DIR/log/mrcd-a.err")"
# The file is read when a daemon starts: what was changed meanwhile is no obstacle.
conf a "" '/rail: r2,/s/}/, port: 7472}/'
conf b "" '/name: r2,/s/}/, port: 7472}/'
lab_restart a b
e2e_paths a 4
[ "$(e2e_get a status .boot_id)" = "$boot_id" ] || lab_fail "a rail more made the restart begin anew"

e2e_stream_end
e2e_stream_end back
e2e_end
