/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_report - what a run came to, for people and for programs
 *
 * Units: ns, bytes.  Threads: one caller at a time.  I/O: the given FILE.
 */
#ifndef MRC_PERF_REPORT_H
#define MRC_PERF_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include <mrc/client.h>

#include "mrc_perf_histogram.h"
#include "mrc_perf_options.h"
#include "mrc_perf_series.h"
#include "mrc_perf_stall.h"
#include "mrc_perf_verify.h"

/* -status is the index; the last one is for sends that nobody ever answered. */
#define PERF_OUTCOME_UNANSWERED 17U
#define PERF_OUTCOME_COUNT      18U

struct perf_result {
	const struct perf_options *options;
	uint32_t in_flight;   /* as it was, if the arena did not take all */
	uint64_t duration_ns; /* first send to last completion */
	uint64_t messages;    /* completed at the level (lat: round trips) */
	uint64_t bytes;
	struct perf_histogram latency; /* send to completion (lat: to the echo) */
	uint64_t stall_ns_max;
	uint64_t stall_at_ns; /* when it began, since the run did */
	uint64_t outcomes[PERF_OUTCOME_COUNT];
	struct perf_counts counts;
	uint64_t arrival_gap_ns_max; /* at the far side */
	uint64_t reconnects;
	struct perf_series series;
	const struct perf_stall *stall; /* borrowed: its notes; NULL: none */
	uint64_t start_ns;              /* of the run, on the clock of the notes */
	uint64_t start_wall_ns;         /* the same by the clock on the wall */
};

const char *perf_outcome_name(uint32_t outcome);
uint32_t perf_outcome_of_status(int status);

/* Nothing damaged, all answered OK, and there was something at all. */
bool perf_result_is_clean(const struct perf_result *result);
/* Sends whose outcome is not known: they may have arrived or not. */
uint64_t perf_result_unknown(const struct perf_result *result);

/* A new reference; NULL without memory. */
json_t *perf_result_json(const struct perf_result *result);

/* A progress line for the point, with column heads before the first and every twentieth. */
void perf_report_point(FILE *out, const struct perf_result *result, uint32_t point_index);
/* MRC_EVENT_DRAIN: a line. */
void perf_report_drain(FILE *out, const struct mrc_event *event);
/* A line for a gap that is noted. */
void perf_report_stall(FILE *out, const struct perf_stall_note *note);
void perf_report_result(FILE *out, const struct perf_result *result);

/* Spans and sizes as people read them; into text (PERF_TEXT_BYTES), which is returned. */
#define PERF_TEXT_BYTES 32U
const char *perf_text_span(char *text, uint64_t ns);
/* The time of day, as the user's time zone has it, to the microsecond. */
const char *perf_text_wall(char *text, uint64_t wall_ns);
const char *perf_text_size(char *text, uint64_t bytes);

#endif
