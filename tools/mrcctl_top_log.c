/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_top_log.h"

#include <stdarg.h>
#include <stdio.h>

#include "mrcctl_field.h"

#define MRCCTL_S_NS UINT64_C(1000000000)

void mrcctl_top_log_add(struct mrcctl_top_log *log, time_t at, enum mrcctl_mood mood,
			const char *format, ...)
{
	struct mrcctl_top_log_line *line = &log->lines[log->count++ & (MRCCTL_TOP_LOG_LINES - 1)];
	va_list args;

	line->at = at;
	line->mood = mood;
	va_start(args, format);
	vsnprintf(line->text, sizeof(line->text), format, args);
	va_end(args);
}

size_t mrcctl_top_log_kept(const struct mrcctl_top_log *log)
{
	return log->count < MRCCTL_TOP_LOG_LINES ? log->count : MRCCTL_TOP_LOG_LINES;
}

const struct mrcctl_top_log_line *mrcctl_top_log_line(const struct mrcctl_top_log *log, size_t age)
{
	return &log->lines[(log->count - 1 - age) & (MRCCTL_TOP_LOG_LINES - 1)];
}

void mrcctl_top_log_take(struct mrcctl_top_log *log, const struct mrcctl_events_news *news)
{
	char text[MRCCTL_EVENTS_MISSED_BYTES];
	const json_t *event;
	size_t i;

	json_array_foreach(news->events, i, event)
	{
		time_t at = (time_t)(mrcctl_number(event, "wall_ns") / MRCCTL_S_NS);

		/* What is lost is said where it would stand. */
		if (i == 0 && news->missed > 0)
			mrcctl_top_log_add(log, at, MRCCTL_FAINT, "%s",
					   mrcctl_events_missed_text(news->missed, text));
		mrcctl_top_log_add(log, at, mrcctl_events_mood(event), "%s",
				   mrcctl_text(event, "text"));
	}
}
