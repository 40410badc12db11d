/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_top_log - the last things that happened, as lines for people
 *
 * They are the daemon's own, from its ring: nothing that came and went between two
 * looks is left out, and what the ring no longer has is counted. What only we know
 * is added to them, as that the daemon does not answer.
 *
 * Bounds:    so many lines; the oldest makes room.
 * Units:     times of the wall clock, in seconds.
 * Ownership: texts are copied.  Threads: one.  I/O, time: none.
 */
#ifndef MRCCTL_TOP_LOG_H
#define MRCCTL_TOP_LOG_H

#include <stddef.h>
#include <time.h>

#include "mrcctl_events.h"
#include "mrcctl_table.h"

#define MRCCTL_TOP_LOG_LINES 256U /* power of two */
#define MRCCTL_TOP_LOG_BYTES 200U

struct mrcctl_top_log_line {
	time_t at;
	enum mrcctl_mood mood;
	char text[MRCCTL_TOP_LOG_BYTES]; /* as it came: not yet fit for a terminal */
};

struct mrcctl_top_log {
	struct mrcctl_top_log_line lines[MRCCTL_TOP_LOG_LINES];
	size_t count; /* ever */
};

void mrcctl_top_log_add(struct mrcctl_top_log *log, time_t at, enum mrcctl_mood mood,
			const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Take in what one answer of the daemon brings. */
void mrcctl_top_log_take(struct mrcctl_top_log *log, const struct mrcctl_events_news *news);

/* Lines that are kept, and the one that is `age` lines old: 0 is the newest. */
size_t mrcctl_top_log_kept(const struct mrcctl_top_log *log);
const struct mrcctl_top_log_line *mrcctl_top_log_line(const struct mrcctl_top_log *log, size_t age);

#endif
