/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_note.h"

#include <string.h>

#define TIME_MAX (1ULL << 61) /* ns: 73 years since the machine was started */

void mrc_notes_init(struct mrc_notes *notes, struct mrc_note *memory)
{
	notes->notes = memory;
	notes->free = 1;
	notes->used = 0;
	for (uint8_t i = 0; i < MRC_NOTES; i++)
		memory[i].next = i + 1 < MRC_NOTES ? i + 2 : 0;
}

uint8_t mrc_notes_take(struct mrc_notes *notes)
{
	uint8_t note = notes->free;

	if (!note)
		return 0;
	notes->free = notes->notes[note - 1].next;
	notes->used++;
	memset(&notes->notes[note - 1], 0, sizeof(notes->notes[0]));
	return note;
}

void mrc_notes_give(struct mrc_notes *notes, uint8_t note)
{
	if (!note)
		return;
	notes->notes[note - 1].next = notes->free;
	notes->free = note;
	notes->used--;
}

bool mrc_notes_may_trace(const struct mrc_notes *notes)
{
	return notes->used < MRC_NOTES_TRACED;
}

struct mrc_note *mrc_notes_at(const struct mrc_notes *notes, uint8_t note)
{
	return note ? &notes->notes[note - 1] : NULL;
}

/* How far the two clocks can have parted since. */
static uint64_t drift_ns(uint64_t age_ns)
{
	return age_ns / 1000000 * MRC_CLOCK_DRIFT_PPM +
	       age_ns % 1000000 * MRC_CLOCK_DRIFT_PPM / 1000000;
}

/* Before the last probe it is as uncertain as after it. */
static uint64_t age_ns(const struct mrc_clock *clock, uint64_t at_ns)
{
	return at_ns > clock->at_ns ? at_ns - clock->at_ns : clock->at_ns - at_ns;
}

/*
 * The probe came no earlier than it was sent, and its answer was heard no earlier than
 * it was given: that is a bound from either side, and each side's best one counts.
 */
void mrc_clock_sample(struct mrc_clock *clock, uint64_t sent, uint64_t came, uint64_t answered,
		      uint64_t heard)
{
	struct mrc_clock seen = {.is_known = true, .at_ns = heard};
	int64_t drift;

	/* The peer's times are its word: whatever they are, nothing overflows. */
	if (came == 0 || answered < came || heard < sent || answered - came > heard - sent ||
	    answered > TIME_MAX || heard > TIME_MAX)
		return;
	seen.least_ns = (int64_t)answered - (int64_t)heard;
	seen.most_ns = (int64_t)came - (int64_t)sent;
	if (clock->is_known) {
		drift = (int64_t)MRC_MIN(drift_ns(age_ns(clock, heard)), TIME_MAX);
		seen.least_ns = MRC_MAX(seen.least_ns, clock->least_ns - drift);
		seen.most_ns = MRC_MIN(seen.most_ns, clock->most_ns + drift);
	}
	if (seen.least_ns > seen.most_ns) { /* it was set, or drifts more: the newest word counts */
		seen.least_ns = (int64_t)answered - (int64_t)heard;
		seen.most_ns = (int64_t)came - (int64_t)sent;
	}
	*clock = seen;
}

int64_t mrc_clock_offset_ns(const struct mrc_clock *clock)
{
	return clock->least_ns + (clock->most_ns - clock->least_ns) / 2;
}

uint64_t mrc_clock_error_ns(const struct mrc_clock *clock, uint64_t at_ns)
{
	return (uint64_t)(clock->most_ns - clock->least_ns) / 2 + 1 +
	       drift_ns(age_ns(clock, at_ns));
}

uint64_t mrc_clock_here(const struct mrc_clock *clock, uint64_t there_ns)
{
	int64_t here_ns;

	if (!there_ns || !clock->is_known)
		return 0;
	here_ns = (int64_t)MRC_MIN(there_ns, TIME_MAX) - mrc_clock_offset_ns(clock);
	return here_ns > 0 ? (uint64_t)here_ns : 1; /* before our clock began */
}
