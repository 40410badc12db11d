/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_doctor_show - what was found, for people and for programs
 *
 * Threads: one.  I/O: only to `out`.
 */
#ifndef MRCCTL_DOCTOR_SHOW_H
#define MRCCTL_DOCTOR_SHOW_H

#include <jansson.h>
#include <stdio.h>

#include "mrcctl_doctor_checks.h"

/* The gravest first; one line at the end, or alone. `is_verbose`: also what was not checked, and why. */
void doctor_show(const struct doctor_facts *facts, const struct doctor_report *report,
		 bool is_verbose, bool has_colour, FILE *out);
/* The same; a new reference, or NULL: no memory. */
json_t *doctor_json(const struct doctor_facts *facts, const struct doctor_report *report);

/* Nothing was found that counts: notes do not. */
bool doctor_is_healthy(const struct doctor_report *report);

#endif
