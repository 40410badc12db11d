/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_stall - the longest time in which nothing completed though something should have
 *
 * A gap runs from one completion to the next. What does not count: the time
 * before the first completion, and time in which nothing was asked for
 * (perf_stall_pause, a paced sender between two messages). A gap that has not
 * ended yet counts up to the moment one looks.
 *
 * Gaps that are long enough are noted one by one as they end, so that they can
 * be laid beside what else happened at that time of day. The notes are bounded:
 * when they are full, the shortest one goes.
 *
 * Units:     ns on the caller's clock; wall_ns since 1970.
 * Threads:   one caller at a time.  I/O, time: none.
 */
#ifndef MRC_PERF_STALL_H
#define MRC_PERF_STALL_H

#include <stdbool.h>
#include <stdint.h>

#define PERF_STALL_NOTES_MAX 4096U

struct perf_stall_note {
	uint64_t start_ns;
	uint64_t span_ns;
	uint64_t wall_ns; /* when it began, by the clock on the wall; the caller's to fill in */
};

struct perf_stall {
	uint64_t gap_start_ns;
	uint64_t max_ns;
	uint64_t max_start_ns;    /* when the longest gap began */
	uint64_t interval_max_ns; /* of the gaps that ended or ran since the last interval */
	bool is_started;          /* something has completed */
	bool is_paused;
	uint64_t note_min_ns; /* 0: none are noted */
	uint32_t note_count;
	uint64_t notes_dropped;
	struct perf_stall_note notes[PERF_STALL_NOTES_MAX]; /* in the order of time */
};

/* Note the gaps of at least note_min_ns; 0: none. */
void perf_stall_init(struct perf_stall *stall, uint64_t note_min_ns);

/* Something completed. Answers the note of the gap that ends here; NULL if it is not worth one. */
struct perf_stall_note *perf_stall_completed(struct perf_stall *stall, uint64_t now_ns);

/*
 * Nothing is outstanding or wanted from now on; the next send resumes. Both may be repeated.
 * Answers as perf_stall_completed().
 */
struct perf_stall_note *perf_stall_pause(struct perf_stall *stall, uint64_t now_ns);
void perf_stall_resume(struct perf_stall *stall, uint64_t now_ns);

/* Count the running gap up to now, without ending it. */
void perf_stall_look(struct perf_stall *stall, uint64_t now_ns);

/* The longest gap seen in the interval that ends now; the next one begins. */
uint64_t perf_stall_interval(struct perf_stall *stall, uint64_t now_ns);

#endif
