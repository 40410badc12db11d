/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_drain_options - what "mrcctl drain --host" is asked to do
 *
 * Threads: any.  I/O, time: none.
 */
#ifndef MRCCTL_DRAIN_OPTIONS_H
#define MRCCTL_DRAIN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define MRCCTL_DRAIN_FOR_EVER    UINT64_MAX
#define MRCCTL_DRAIN_WAIT_NS_MAX (7 * 24 * 3600 * 1000000000ULL)

struct mrcctl_drain_options {
	uint64_t wait_ns; /* until nothing is left, at most; MRCCTL_DRAIN_FOR_EVER */
	bool is_json;
};

/* "0s", "500ms", "60s", "10min", "2h"; -EINVAL when it is none of these or above a week. */
int mrcctl_drain_wait_take(const char *text, uint64_t *wait_ns_out);

#endif
