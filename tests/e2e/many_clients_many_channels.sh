#!/usr/bin/env bash
# Several services, programs and channels at once, both ways, with a rail that fails under all of them.
# shellcheck source-path=SCRIPTDIR source=e2e.sh
. "$(dirname "$0")/e2e.sh"

e2e_hosts 4
for service in red green blue; do
	e2e_serve b "serve-b-$service" --service "$service"
	e2e_serve a "serve-a-$service" --service "$service"
done
# a sanitized build has slow rails and is slow itself: it gets more patience
count=60
patience=(--connect-timeout $((5 * LAB_SLOWNESS))s --drain-timeout $((10 * LAB_SLOWNESS))s)
for service in red green blue; do
	for size in 4KiB 256KiB; do
		lab_perf_spawn "ab-$service-$size" a stream b --service "$service" --channels 8 --size $size --verify --count $((count * 8)) "${patience[@]}" --json --quiet
		lab_perf_spawn "ba-$service-$size" b stream a --service "$service" --channels 8 --size $size --verify --count $((count * 8)) "${patience[@]}" --json --quiet
	done
done
lab_cut 3 b
for service in red green blue; do
	for size in 4KiB 256KiB; do
		for way in ab ba; do
			lab_status "$way-$service-$size" 60
			[ "$LAB_STATUS" = 0 ] || lab_fail "$way-$service-$size ended with status $LAB_STATUS: $(e2e_summary "$way-$service-$size")"
			e2e_verdict "$way-$service-$size" ".outcomes == {OK: $((count * 8))}" "every message is OK"
			e2e_intact "$way-$service-$size"
		done
	done
done
lab_heal 3
e2e_paths a 4
lab_wait_for "no channel to be left at a" 5 e2e_is a channels 'length == 0'
lab_wait_for "no channel to be left at b" 5 e2e_is b channels 'length == 0'
e2e_end
