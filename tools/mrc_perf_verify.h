/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_verify - exactly once, in order, intact: the counts of one channel
 *
 * Numbers run from 0 without holes. Of the last 65536 below the highest seen a
 * bitmap says which have come; so a late one is told from a second copy. What
 * is older than that counts as a duplicate.
 *
 * skipped counts numbers below number_next that have not come (yet). unplaced
 * counts messages too damaged to say which they are: each of them is one of
 * the skipped or of the tail, and is corrupted, not lost.
 *
 * Threads: one caller at a time.  I/O, time: none.
 */
#ifndef MRC_PERF_VERIFY_H
#define MRC_PERF_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#define PERF_VERIFY_WINDOW 65536U

struct perf_verify {
	bool is_unordered;    /* late is not wrong */
	uint64_t number_next; /* highest number seen, plus 1 */
	uint64_t checked;     /* messages looked at */
	uint64_t skipped;
	uint64_t unplaced;
	uint64_t duplicated;
	uint64_t reordered;
	uint64_t corrupted;
	uint64_t seen[PERF_VERIFY_WINDOW / 64];
};

enum perf_verdict {
	PERF_VERDICT_NEXT,      /* the one expected */
	PERF_VERDICT_AHEAD,     /* some before it are missing so far */
	PERF_VERDICT_LATE,      /* one that was missing */
	PERF_VERDICT_DUPLICATE, /* has come before */
};

/* What one channel, or a whole run, came to. */
struct perf_counts {
	uint64_t checked;
	uint64_t unchecked; /* sent, but nobody is left to tell how they arrived */
	uint64_t lost;
	uint64_t duplicated;
	uint64_t reordered;
	uint64_t corrupted;
};

void perf_verify_init(struct perf_verify *verify, bool is_unordered);

/* Count a message whose number is known. */
enum perf_verdict perf_verify_number(struct perf_verify *verify, uint64_t number, bool is_intact);

/* Count a message that does not say which it is: by size, or by damage. */
enum perf_verdict perf_verify_unnumbered(struct perf_verify *verify, bool is_by_size,
					 bool is_intact);

/*
 * How many are lost, when the sender holds `expected` to have arrived
 * (`sent` of which were sent; `unsure` of those have an outcome that allows both).
 * On an ordered channel expected is the highest number answered OK, plus 1: all
 * before it must have come. On an unordered one it is all that were sent.
 */
uint64_t perf_verify_lost(uint64_t number_next, uint64_t skipped, uint64_t unplaced,
			  uint64_t expected, uint64_t unsure);

void perf_counts_add(struct perf_counts *sum, const struct perf_counts *part);
bool perf_counts_are_clean(const struct perf_counts *counts);

#endif
