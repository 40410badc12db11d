/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_stall.h"

/*
 * `longest` is the answer to "the longest since" for every time at once: a new
 * gap makes all shorter ones before it pointless. So few are left (of n gaps
 * in any order some ln n), and taking one costs no more than two steps on
 * average. Should it be full, the newest place takes the end of the new gap and
 * keeps its own length: too long is told rather than too short.
 */
void mrcd_stall_record(struct mrcd_stall_meter *meter, uint64_t gap_ns, uint64_t now_ns)
{
	uint32_t count = meter->longest_count;

	mrc_histogram_record(&meter->gaps, gap_ns);
	while (count > 0 && meter->longest[count - 1].gap_ns <= gap_ns)
		count--;
	if (count == MRCD_STALL_LONGEST_MAX) {
		meter->longest[count - 1].end_ns = now_ns;
		return;
	}
	meter->longest[count] = (struct mrcd_stall_gap){.end_ns = now_ns, .gap_ns = gap_ns};
	meter->longest_count = count + 1;
}

uint64_t mrcd_stall_longest_ns(const struct mrcd_stall_meter *meter, uint64_t since_ns)
{
	for (uint32_t i = 0; i < meter->longest_count; i++) {
		if (meter->longest[i].end_ns >= since_ns)
			return meter->longest[i].gap_ns;
	}
	return 0;
}
