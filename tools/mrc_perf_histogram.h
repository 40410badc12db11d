/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_histogram - spans of time by size, in fixed memory
 *
 * Log-linear buckets: each power of two is cut in 128, so that a quantile is
 * at most 1/256 (0.4 %) beside the value it stands for. Small values are exact.
 *
 * Units:     any; mrc-perf records nanoseconds.
 * Ownership: embedded, about 59 KiB; nothing allocates.
 * Threads:   one caller at a time.  I/O, time: none.
 */
#ifndef MRC_PERF_HISTOGRAM_H
#define MRC_PERF_HISTOGRAM_H

#include <stdint.h>

#define PERF_HISTOGRAM_SUB_BITS 7
#define PERF_HISTOGRAM_BUCKETS  ((65 - PERF_HISTOGRAM_SUB_BITS) << PERF_HISTOGRAM_SUB_BITS)

struct perf_histogram {
	uint64_t count;
	uint64_t min; /* UINT64_MAX while empty */
	uint64_t max;
	double sum;
	uint64_t buckets[PERF_HISTOGRAM_BUCKETS];
};

void perf_histogram_init(struct perf_histogram *histogram);
void perf_histogram_record(struct perf_histogram *histogram, uint64_t value);

/*
 * The value that `ppm` millionths of all records do not exceed (990000: p99).
 * 0 when nothing was recorded; exact for 1000000.
 */
uint64_t perf_histogram_quantile(const struct perf_histogram *histogram, uint32_t ppm);
uint64_t perf_histogram_mean(const struct perf_histogram *histogram);

#endif
