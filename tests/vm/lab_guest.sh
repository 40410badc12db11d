# shellcheck shell=bash
#
# lab_guest.sh - the hosts of tests/lab/lab.sh in the virtual machine of tests/vm/run; lab.sh sources it
#
# Hosts a and b are hosts 0 and 1 of rails.sh, in one network namespace, so that soft-RoCE can carry their rails.
# What tests/e2e asks of its lab means the same here. The rails are made once, for all tests of a guest, and every
# lab_up finds them healed. LAB_GUEST_DEVICE: rxe, siw or none.
# shellcheck source-path=SCRIPTDIR source=rails.sh
. "$LAB_TOP/tests/vm/rails.sh"

: "${LAB_GUEST_DEVICE:=none}"
LAB_GUEST_RAILS=4

lab_needs() {
	[ -d /job ] || lab_skip "hosts of this kind are made in the virtual machine of tests/vm/run"
	rails_kind=$LAB_GUEST_DEVICE
	if [ -d /sys/class/net/h0r0 ]; then
		rails_count=$LAB_GUEST_RAILS
		rails_heal_all
	else
		rails_make "$LAB_GUEST_RAILS" "$LAB_GUEST_DEVICE"
	fi
}

lab_guest_number() { case $1 in a) printf 0 ;; b) printf 1 ;; *) return 1 ;; esac }

lab_host_make() { lab_guest_number "$1" >/dev/null || lab_skip "two hosts are all there is in a guest"; }
lab_host_pids() { :; }
lab_host_remove() { :; }
lab_ip() { ip "${@:2}"; }
lab_tc() { tc "${@:2}"; }
lab_interface() { rails_interface "$(lab_guest_number "$1")" "$2"; }
lab_rail_make() { # RAIL
	local host burst
	[ -n "$LAB_RATE" ] || return 0
	burst=$(lab_burst "$LAB_RATE")
	for host in "${!LAB_HOSTS[@]}"; do
		echo "qdisc replace dev h${host}r$1 root tbf rate $LAB_RATE burst $burst limit $((burst * 4))"
	done | tc -batch -
}

lab_exec() { "${@:2}"; }
lab_become() { exec "${@:2}"; }

# The other end sees nothing of a pulled cable, as it is with a switch in between.
lab_cut() {
	local host=${2:-${LAB_HOSTS[-1]}}
	if [ "$host" = both ]; then rails_cut_both "$1"; else rails_cut "$1" "$(lab_guest_number "$host")"; fi
}
lab_heal() { rails_plug_both "$1"; }

# What this kind of lab has besides: netem to what HOST (default: both) sends over RAIL
lab_netem() { # RAIL HOST|both WHAT...
	local host
	for host in "${LAB_HOSTS[@]}"; do
		case $2 in both | "$host") rails_netem "$1" "$(lab_guest_number "$host")" "${@:3}" ;; esac
	done
}
lab_netem_off() { # RAIL
	rails_netem_off "$1" 0
	rails_netem_off "$1" 1
}
