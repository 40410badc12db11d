/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_histogram - spans of time by size, in fixed memory
 *
 * The bounds are round decimal numbers, six to a decade, so that a bucket says
 * the same to people, to Prometheus (whose buckets hold what is at or below
 * their bound) and to us. A quantile is at most two thirds of a bucket off,
 * mostly far less.
 *
 * Units:     nanoseconds.
 * Ownership: embedded, some 430 bytes; all zero is an empty one.
 * Threads:   one caller at a time.  I/O, time: none.
 */
#ifndef MRC_HISTOGRAM_H
#define MRC_HISTOGRAM_H

#include "mrc_base.h"

#define MRC_HISTOGRAM_BOUNDS \
	48 /* 1 us, 1.5, 2, 3, 5, 7, 10 us ... 70 s; beyond it is one more bucket */

struct mrc_histogram {
	uint64_t count;
	uint64_t sum_ns;
	uint64_t max_ns;
	uint64_t buckets[MRC_HISTOGRAM_BOUNDS + 1]; /* each by itself, not those below it */
};

void mrc_histogram_record(struct mrc_histogram *histogram, uint64_t ns);
/* The largest span that belongs into bucket `index`, below MRC_HISTOGRAM_BOUNDS. */
uint64_t mrc_histogram_bound_ns(uint32_t index);
/* What `ppm` millionths of all spans do not exceed (990000: p99); 0 of none, exact for 1000000. */
uint64_t mrc_histogram_quantile_ns(const struct mrc_histogram *histogram, uint32_t ppm);
/* Add what another one holds. */
void mrc_histogram_add(struct mrc_histogram *histogram, const struct mrc_histogram *other);

#endif
