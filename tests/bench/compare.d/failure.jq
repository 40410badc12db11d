# What a stream (mrc-perf's or floor's JSON) felt of each drill: one object a drill, in order.
# $events: [{fault_us, done_us, heal_us, until_us}], microseconds since 1970; heal_us null where nothing was healed.
# $tail_us: how long after a fault's command a gap may begin that is the fault's; $least_us: shorter gaps are not noted.
.start_unix_us as $start
| .stalls as $stalls
| [.series[] | select(.span_ns > 0) | {begin: ($start + (.t_ns - .span_ns) / 1000), end: ($start + .t_ns / 1000), bytes}] as $points
# Longest gap that overlaps the span, in ms; none is noted: shorter than $least_us.
| def gap($from; $to): [$stalls[] | select(.unix_us < $to and .unix_us + .span_ns / 1000 > $from) | .span_ns / 1000]
	| (max // $least_us) / 1000;
# bytes/us over the span, of points that lie in it
def rate($points; $from; $to): [$points[] | select(.begin >= $from and .end <= $to)]
	| if length == 0 then null else (map(.bytes) | add) / (.[-1].end - .[0].begin) end;
def median: sort | if length == 0 then null else .[length / 2 | floor] end;
([$events[] | rate($points; .fault_us - 500000; .fault_us) | select(. != null)] | median) as $healthy
| [$events[] | . as $event
	# what is never healed may wait for timers before it stands still
	| (if .heal_us == null then .until_us else .done_us + $tail_us end) as $fault_end
	| [$points[] | select(.begin >= $event.fault_us - 600000 and .end <= $event.until_us)] as $near
	| {
		stall_ms: gap(.fault_us; $fault_end),
		# as long, without a fault
		quiet_ms: gap(2 * .fault_us - $fault_end; .fault_us),
	} + (if .heal_us == null or $healthy == null then {back_s: null} else {
		# The first moment from which half a second carries what healthy rails carry. None in all the time that a
		# drill waits: then it is that time at least.
		back_s: ([$near[] | .begin | select(. >= $event.heal_us and . + 500000 <= $event.until_us)]
			| map(select(rate($near; .; . + 520000) >= 0.95 * $healthy)) | first // null
			| if . != null then (. - $event.heal_us) / 1e6
			  elif $event.until_us - $event.heal_us > 4000000 then ($event.until_us - $event.heal_us) / 1e6
			  else null end),
	} end)]
