/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_doctor - the command: gather, judge, show
 *
 * Threads: one.  I/O: the control socket, small files, probes on the rails, stdout and stderr.
 */
#ifndef MRCCTL_DOCTOR_H
#define MRCCTL_DOCTOR_H

#include <stdbool.h>

#define MRCCTL_DOCTOR_SECONDS     2
#define MRCCTL_DOCTOR_SECONDS_MAX 3600

struct mrcctl_doctor_options {
	unsigned seconds; /* between two readings of counters; 0: read them once */
	bool is_verbose;
	bool is_json;
};

/* Whole seconds up to MRCCTL_DOCTOR_SECONDS_MAX. False: it is not that. */
bool mrcctl_doctor_seconds_take(const char *text, unsigned *seconds_out);

/* Answers the exit status: 0 healthy, 1 something was found or the daemon says no, 3 not reached. */
int mrcctl_doctor(const char *socket, const struct mrcctl_doctor_options *options);

#endif
