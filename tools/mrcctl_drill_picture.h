/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_drill_picture - a drill as an SVG: what each rail carried over time, one on top of the other
 *
 * The times of faults are shaded, and what was found out then is written above.
 * Drawn by hand, so that a host needs no other program for it.
 *
 * Threads: one.  I/O: the given FILE.
 */
#ifndef MRCCTL_DRILL_PICTURE_H
#define MRCCTL_DRILL_PICTURE_H

#include <stdio.h>

#include "mrcctl_drill_record.h"

/* -ENODATA: there are fewer than two samples. */
int mrcctl_drill_picture(const struct mrcctl_drill_record *record,
			 const struct mrcctl_drill_result *results, size_t result_count, FILE *out);

#endif
