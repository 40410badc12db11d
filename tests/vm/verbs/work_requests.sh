#!/usr/bin/env bash
# What one message costs in work requests, doorbells, completions and bytes, beside what it must.
# shellcheck source-path=SCRIPTDIR source=cases.sh
. "$(dirname "$0")/cases.sh"

case_needs_devices
e2e_hosts 2
case_links a verbs 2
e2e_serve b
count=64
counters() { # HOST -> one object of the sums over its rails
	e2e_get "$1" rails '[.[].verbs | with_entries(select(.value | type == "number"))] | (map(keys) | add | unique) as $keys
		| . as $all | [$keys[] as $key | {($key): ([$all[][$key] // 0] | add)}] | add | tojson'
}
warm() {
	lab_perf_spawn warm a bw b --size 1MiB --count 8 --in-flight 2 --json --quiet
	lab_status warm 30
}
warm # so that memory is registered and keys are known
printf '%8s  %s\n' size 'a: work requests (writes, sends, inline), doorbells, completions, WR bytes, copied; b: work requests; per message'
for size in 8 4096 65536 1048576; do
	began=$(date +%s%N) before_a=$(counters a) before_b=$(counters b)
	lab_perf_spawn "cost-$size" a bw b --size $size --count $count --in-flight 4 --json --quiet
	lab_status "cost-$size" 60
	[ "$LAB_STATUS" = 0 ] || lab_fail "messages of $size bytes: status $LAB_STATUS: $(e2e_summary "cost-$size")"
	after_a=$(counters a) after_b=$(counters b) ended=$(date +%s%N)
	jq -n -r --argjson a0 "$before_a" --argjson a1 "$after_a" --argjson b0 "$before_b" --argjson b1 "$after_b" --argjson n "$count" --arg size "$size" '
		def per($key): ($a1[$key] - $a0[$key]) / $n * 100 | round / 100;
		def peer($key): ($b1[$key] - $b0[$key]) / $n * 100 | round / 100;
		"\($size): \(per("work_requests")) (\(per("writes")), \(per("sends")), \(per("inline_sends"))), \(per("doorbells")), \(per("completions")), \(per("work_request_bytes")), \(per("payload_copied")); b: \(peer("work_requests"))"'
	# A write is a fragment. What is sent besides, both ways, credit with it, is at most a header and an answer for
	# each; and, however slow the guest, what idle paths say: either end of each of the two a probe and an answer
	# every 20 ms.
	[ $size -lt 1048576 ] || jq -n -e --argjson idle "$(((ended - began) / 20000000 * 8))" --argjson a0 "$before_a" --argjson a1 "$after_a" --argjson b0 "$before_b" --argjson b1 "$after_b" '
		($a1.writes - $a0.writes) as $fragments
		| $fragments > 0 and ($a1.sends - $a0.sends) + ($b1.work_requests - $b0.work_requests) <= 2 * $fragments + $idle' >/dev/null ||
		lab_fail "at $size bytes more is sent than a header and an answer for each fragment"
	# What goes within a SEND (limits.eager-max) is copied out of the receive entry, and so are the few bytes by which
	# mrc-perf agrees on a run; of what is written not one message is.
	[ $size -le 32768 ] || jq -n -e --argjson a0 "$before_a" --argjson a1 "$after_a" --argjson b0 "$before_b" --argjson b1 "$after_b" --argjson size "$size" '
		[$a1.payload_copied - $a0.payload_copied, $b1.payload_copied - $b0.payload_copied] | all(. < $size)' >/dev/null ||
		lab_fail "at $size bytes a processor copied payload"
done
echo "ideal: 8: one send there, one back, and the bytes copied out of it; larger: one write and one send for each fragment, one answer for it, nothing copied"
e2e_end
