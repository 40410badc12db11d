/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_trace_show - traced messages for people, and as JSON for scripts
 *
 * A bar is one message from its first known moment to its last; all bars of a
 * picture have one scale, so that lengths can be compared. Each column shows
 * the stage that its middle falls into; a stage shorter than a column may not
 * show. Letters and not colours, so that a pipe loses nothing.
 *
 * Threads: one.  I/O: prints to `out`.
 */
#ifndef MRCCTL_TRACE_SHOW_H
#define MRCCTL_TRACE_SHOW_H

#include <stdio.h>

#include "mrc_trace.h"

#define MRCCTL_TRACE_WIDTH   80U /* where there is no terminal */
#define MRCCTL_TRACE_BARS    24U
#define MRCCTL_TRACE_BAR_MIN 16U
#define MRCCTL_TRACE_BAR_MAX 400U

/* The percentiles that are shown, in this order. */
struct mrcctl_trace_row {
	enum mrc_trace_moment from, to;
};
#define MRCCTL_TRACE_ROW_COUNT 11U
extern const struct mrcctl_trace_row mrcctl_trace_rows[MRCCTL_TRACE_ROW_COUNT];

/*
 * One bar: bar_out gets width characters at most and a 0 (room for width + 1);
 * `scale_ns`, more than 0, is what width columns stand for. Without trailing blanks.
 */
void mrcctl_trace_bar(const struct mrc_trace_message *message, int64_t scale_ns, size_t width,
		      char *bar_out);

/* The last bars_max messages as bars, on lines of at most `width` columns, and the legend. */
void mrcctl_trace_show_bars(const struct mrc_trace *trace, size_t bars_max, size_t width, FILE *out,
			    bool has_colour);
/* The percentiles, and the notes. */
void mrcctl_trace_show_table(const struct mrc_trace *trace, FILE *out, bool has_colour);

/* What the clocks are worth, what a mark * means if there was one (is_unsure), what is not in the numbers. */
void mrcctl_trace_show_notes(const struct mrc_trace *trace, bool is_unsure, FILE *out);

/* A new reference; NULL without memory. */
json_t *mrcctl_trace_json(const struct mrc_trace *trace);

#endif
