/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_gap_report - how early the local completion came: table, JSON, picture
 *
 * Units:   ns; negative where the message was further before the local completion.
 * Threads: one.  I/O: the given FILE; perf_gap_draw() runs gnuplot.
 */
#ifndef MRC_PERF_GAP_REPORT_H
#define MRC_PERF_GAP_REPORT_H

#include <stdio.h>

#include "mrc_trace.h"

void perf_gap_report(FILE *out, const struct mrc_trace *trace, bool has_colour);

/* A new reference; NULL without memory. */
json_t *perf_gap_json(const struct mrc_trace *trace);

/*
 * What gnuplot is to be told, to draw into `file` (.png or .svg; no line ends).
 * -ENODATA: no message was anywhere later than its local completion.
 */
int perf_gap_script(const struct mrc_trace *trace, const char *file, FILE *out);

/*
 * Before a run: can there be a picture in the end? 0, or a negative errno with
 * the reason in error_out (PERF_ERROR_BYTES).
 */
int perf_gap_draw_check(const char *file, char *error_out);
/* Draw. The same answers. */
int perf_gap_draw(const struct mrc_trace *trace, const char *file, char *error_out);

#endif
