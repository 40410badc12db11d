/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_top_log - the last things that happened, as lines for people
 *
 * They are read off two snapshots: rails that lost their carrier, paths that
 * changed their state, peers that fell silent, a daemon that was started again. A
 * path that failed and came back in between shows by its counts.
 *
 * Bounds:    so many lines; the oldest makes room.
 * Units:     times of the wall clock, in seconds; of the later snapshot.
 * Ownership: texts are copied.  Threads: one.  I/O, time: none.
 */
#ifndef MRCCTL_TOP_LOG_H
#define MRCCTL_TOP_LOG_H

#include <stddef.h>
#include <time.h>

#include "mrcctl_snapshot.h"
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

/* What is different. Nothing when there is no snapshot before. */
void mrcctl_top_log_compare(struct mrcctl_top_log *log, const struct mrcctl_snapshot *before,
			    const struct mrcctl_snapshot *after, time_t at);

/* Lines that are kept, and the one that is `age` lines old: 0 is the newest. */
size_t mrcctl_top_log_kept(const struct mrcctl_top_log *log);
const struct mrcctl_top_log_line *mrcctl_top_log_line(const struct mrcctl_top_log *log, size_t age);

#endif
