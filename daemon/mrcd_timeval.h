/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_timeval - a span as libevent wants it
 *
 * Rounded up to a microsecond: a timer that comes early would have to be set
 * again. Any thread; no state.
 */
#ifndef MRCD_TIMEVAL_H
#define MRCD_TIMEVAL_H

#include <stdint.h>
#include <sys/time.h>

#include "mrc_base.h"

static inline struct timeval mrcd_timeval_of(uint64_t span_ns)
{
	const uint64_t span_us = span_ns / MRC_US + (span_ns % MRC_US != 0);

	return (struct timeval){
		.tv_sec = (time_t)(span_us / (MRC_S / MRC_US)),
		.tv_usec = (suseconds_t)(span_us % (MRC_S / MRC_US)),
	};
}

#endif
