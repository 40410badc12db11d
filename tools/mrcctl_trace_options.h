/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_trace_options - what `mrcctl trace` is asked to do
 *
 * Ownership: strings are argv's.  Threads: any.  I/O, time: none.
 */
#ifndef MRCCTL_TRACE_OPTIONS_H
#define MRCCTL_TRACE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mrc_trace.h"

#define MRCCTL_TRACE_ERROR_BYTES 192U
#define MRCCTL_TRACE_COUNT_MAX   100000U

struct mrcctl_trace_options {
	char peer[MRC_TRACE_NAME_BYTES]; /* empty: whichever has the channel */
	uint64_t channel;
	uint64_t every, count, seconds;
	bool is_count_given;
	const char *perfetto; /* file, "-" for stdout; NULL: none */
};

enum mrcctl_trace_option { MRCCTL_TRACE_EVERY, MRCCTL_TRACE_COUNT, MRCCTL_TRACE_SECONDS };

/* What holds where nothing is said. */
void mrcctl_trace_options_init(struct mrcctl_trace_options *options);

/*
 * [PEER/]CHANNEL; the value of --every, --count or --seconds. 0, or -EINVAL with
 * a text in error_out (MRCCTL_TRACE_ERROR_BYTES) that says what is allowed.
 */
int mrcctl_trace_target_take(struct mrcctl_trace_options *options, const char *text,
			     char *error_out);
int mrcctl_trace_option_take(struct mrcctl_trace_options *options, enum mrcctl_trace_option option,
			     const char *text, char *error_out);

#endif
