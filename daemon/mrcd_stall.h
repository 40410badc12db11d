/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_stall - how long clients go without an answer while they wait for one
 *
 * A gap is the time between two answers to the sends of one channel, or from
 * a send, when nothing was outstanding before it, to its answer. It is what a
 * program sees of a failure: a stream that is answered every 50 us and then
 * stands still for 8 ms has a gap of 8 ms. Gaps of all channels to a peer are
 * counted together, by size, and the longest of any time until now is known.
 *
 * Units:     nanoseconds of the worker's clock.
 * Ownership: embedded; nothing allocates.
 * Threads:   the worker's loop.  I/O, time: none.
 */
#ifndef MRCD_STALL_H
#define MRCD_STALL_H

#include "mrc_histogram.h"

#define MRCD_STALL_LONGEST_MAX 32U

/* One channel's watch. All zero: nothing is outstanding. */
struct mrcd_stall_watch {
	uint64_t since_ns;    /* the last answer, or the first send after a pause */
	uint32_t outstanding; /* sends not answered */
};

/* A gap than which none that ended later was longer. */
struct mrcd_stall_gap {
	uint64_t end_ns;
	uint64_t gap_ns;
};

/* All gaps of one peer. All zero: none yet. */
struct mrcd_stall_meter {
	struct mrc_histogram gaps;
	struct mrcd_stall_gap longest[MRCD_STALL_LONGEST_MAX]; /* oldest, and so longest, first */
	uint32_t longest_count;
};

/* Take a gap that ended now. Answers that came in one turn have none between them. */
void mrcd_stall_record(struct mrcd_stall_meter *meter, uint64_t gap_ns, uint64_t now_ns);

/*
 * The longest gap that ended at since_ns or later; 0: there was none. Of very many
 * in a row, each shorter than the last, the shortest may be told as the one before it.
 */
uint64_t mrcd_stall_longest_ns(const struct mrcd_stall_meter *meter, uint64_t since_ns);

/* A message is under way. */
static inline void mrcd_stall_begin(struct mrcd_stall_watch *watch, uint64_t now_ns)
{
	if (watch->outstanding++ == 0)
		watch->since_ns = now_ns;
}

/* One of them was answered. What began before the watch did counts for nothing. */
static inline void mrcd_stall_answer(struct mrcd_stall_watch *watch, struct mrcd_stall_meter *meter,
				     uint64_t now_ns)
{
	uint64_t gap_ns = now_ns - watch->since_ns;

	if (watch->outstanding == 0)
		return;
	watch->outstanding--;
	watch->since_ns = now_ns;
	if (gap_ns > 0)
		mrcd_stall_record(meter, gap_ns, now_ns);
}

#endif
