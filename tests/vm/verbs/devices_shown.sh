#!/usr/bin/env bash
# What mrcctl shows of devices and queue pairs is what they are.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

case_needs_devices
e2e_hosts 2
case_links a verbs 2
case_links b verbs 2
for host in a b; do
	number=$(lab_guest_number "$host")
	for rail in 0 1; do
		e2e_is "$host" rails ".[] | select(.name == \"r$rail\") | .verbs
			| .device == \"$(rails_device "$number" "$rail")\" and .device_port == 1 and .active_mtu == 4096
			and .speed_bits_per_s > 0 and (.port_state | test(\"ACTIVE\"; \"i\"))" ||
			lab_fail "rail $rail of $host is shown as $(e2e_get "$host" rails ".[$rail] | tojson")"
	done
done
if [ "$LAB_GUEST_DEVICE" = rxe ]; then
	e2e_is a rails '.[0].verbs | (.gid | endswith("10.10.0.1")) and .gid_index > 0' || lab_fail "the GID is not that of the address"
fi
# the two ends of one queue pair name each other
e2e_get a paths '.[] | "\(.index) \(.verbs.qp_number) \(.verbs.peer_qp_number)"' | sort >"$LAB_DIR/a"
e2e_get b paths '.[] | "\(.index) \(.verbs.peer_qp_number) \(.verbs.qp_number)"' | sort >"$LAB_DIR/b"
if [ "$LAB_GUEST_DEVICE" = rxe ]; then
	diff "$LAB_DIR/a" "$LAB_DIR/b" >&2 || lab_fail "the ends of a queue pair do not name each other"
fi
e2e_is a paths 'all(.[]; .verbs.qp_number > 0 and (.verbs.qp_state | ascii_downcase) == "rts")' || lab_fail "queue pairs: $(e2e_get a paths 'map(.verbs) | tojson')"
lab_mrcctl a rails
lab_mrcctl a paths
e2e_end
