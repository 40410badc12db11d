/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_stall.h"

#include <string.h>

void perf_stall_init(struct perf_stall *stall)
{
	memset(stall, 0, sizeof(*stall));
}

void perf_stall_look(struct perf_stall *stall, uint64_t now_ns)
{
	uint64_t gap_ns;

	if (!stall->is_started || stall->is_paused || now_ns <= stall->gap_start_ns)
		return;
	gap_ns = now_ns - stall->gap_start_ns;
	if (gap_ns > stall->max_ns) {
		stall->max_ns = gap_ns;
		stall->max_start_ns = stall->gap_start_ns;
	}
	if (gap_ns > stall->interval_max_ns)
		stall->interval_max_ns = gap_ns;
}

void perf_stall_completed(struct perf_stall *stall, uint64_t now_ns)
{
	perf_stall_look(stall, now_ns);
	stall->is_started = true;
	stall->gap_start_ns = now_ns;
}

void perf_stall_pause(struct perf_stall *stall, uint64_t now_ns)
{
	perf_stall_look(stall, now_ns);
	stall->is_paused = true;
}

void perf_stall_resume(struct perf_stall *stall, uint64_t now_ns)
{
	if (!stall->is_paused)
		return;
	stall->is_paused = false;
	stall->gap_start_ns = now_ns;
}

uint64_t perf_stall_interval(struct perf_stall *stall, uint64_t now_ns)
{
	uint64_t max_ns;

	perf_stall_look(stall, now_ns);
	max_ns = stall->interval_max_ns;
	stall->interval_max_ns = 0;
	return max_ns;
}
