/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_stall.h"

#include <string.h>

void perf_stall_init(struct perf_stall *stall, uint64_t note_min_ns)
{
	memset(stall, 0, sizeof(*stall));
	stall->note_min_ns = note_min_ns;
}

/* Where the next note goes. The shortest makes room, which may be the new one itself: then NULL. */
static struct perf_stall_note *note_room(struct perf_stall *stall, uint64_t span_ns)
{
	uint32_t shortest = 0;

	if (stall->note_count < PERF_STALL_NOTES_MAX)
		return &stall->notes[stall->note_count++];
	stall->notes_dropped++;
	for (uint32_t i = 1; i < stall->note_count; i++)
		if (stall->notes[i].span_ns < stall->notes[shortest].span_ns)
			shortest = i;
	if (span_ns <= stall->notes[shortest].span_ns)
		return NULL;
	memmove(&stall->notes[shortest], &stall->notes[shortest + 1],
		(stall->note_count - shortest - 1) * sizeof(stall->notes[0]));
	return &stall->notes[stall->note_count - 1];
}

/* The running gap, if there is one, ends now. */
static struct perf_stall_note *gap_end(struct perf_stall *stall, uint64_t now_ns)
{
	struct perf_stall_note *note;

	perf_stall_look(stall, now_ns);
	if (!stall->is_started || stall->is_paused || stall->note_min_ns == 0 ||
	    now_ns < stall->gap_start_ns + stall->note_min_ns)
		return NULL;
	note = note_room(stall, now_ns - stall->gap_start_ns);
	if (note)
		*note = (struct perf_stall_note){.start_ns = stall->gap_start_ns,
						 .span_ns = now_ns - stall->gap_start_ns};
	return note;
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

struct perf_stall_note *perf_stall_completed(struct perf_stall *stall, uint64_t now_ns)
{
	struct perf_stall_note *note = gap_end(stall, now_ns);

	stall->is_started = true;
	stall->gap_start_ns = now_ns;
	return note;
}

struct perf_stall_note *perf_stall_pause(struct perf_stall *stall, uint64_t now_ns)
{
	struct perf_stall_note *note = gap_end(stall, now_ns);

	stall->is_paused = true;
	return note;
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
