/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_drill_report - what came of drills, for people and for programs
 *
 * Threads: one.  I/O: the given FILE.
 */
#ifndef MRCCTL_DRILL_REPORT_H
#define MRCCTL_DRILL_REPORT_H

#include <stdio.h>

#include "mrcctl_drill_record.h"

struct mrcctl_drill_report {
	const struct mrcctl_drill_result *results;
	size_t result_count;
	size_t rails_left;  /* of all in turn, those that were not drilled */
	const char *stream; /* the peer of the test stream; NULL: none */
	const struct mrcctl_drill_verdict *verdict; /* of that stream; NULL: there is none */
};

/* Nothing went wrong, and something was drilled, and all of it. */
bool mrcctl_drill_report_is_passed(const struct mrcctl_drill_report *report);

/* One drill in full; several, each in full and then a table. The last line is the verdict. */
void mrcctl_drill_report_text(const struct mrcctl_drill_report *report, FILE *out, bool has_colour);
/* A new reference; NULL without memory. `record`: its samples become the series. */
json_t *mrcctl_drill_report_json(const struct mrcctl_drill_report *report,
				 const struct mrcctl_drill_record *record);

#endif
