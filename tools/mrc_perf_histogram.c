/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_histogram.h"

#include <string.h>

#define SUB_COUNT (1U << PERF_HISTOGRAM_SUB_BITS)

static uint32_t histogram_index(uint64_t value)
{
	uint32_t shift;

	if (value < 2 * SUB_COUNT)
		return (uint32_t)value;
	shift = 63U - (uint32_t)__builtin_clzll(value) - PERF_HISTOGRAM_SUB_BITS;
	/* value >> shift has its top bit set: it lies in [SUB_COUNT, 2 * SUB_COUNT). */
	return (shift << PERF_HISTOGRAM_SUB_BITS) + (uint32_t)(value >> shift);
}

/* The middle of a bucket. */
static uint64_t histogram_value(uint32_t index)
{
	uint32_t shift;
	uint64_t low;

	if (index < 2 * SUB_COUNT)
		return index;
	shift = (index >> PERF_HISTOGRAM_SUB_BITS) - 1;
	low = (uint64_t)(index - (shift << PERF_HISTOGRAM_SUB_BITS)) << shift;
	return low + ((1ULL << shift) >> 1);
}

void perf_histogram_init(struct perf_histogram *histogram)
{
	memset(histogram, 0, sizeof(*histogram));
	histogram->min = UINT64_MAX;
}

void perf_histogram_record(struct perf_histogram *histogram, uint64_t value)
{
	histogram->buckets[histogram_index(value)]++;
	histogram->count++;
	histogram->sum += (double)value;
	if (value < histogram->min)
		histogram->min = value;
	if (value > histogram->max)
		histogram->max = value;
}

uint64_t perf_histogram_quantile(const struct perf_histogram *histogram, uint32_t ppm)
{
	uint64_t rank, seen = 0, value;
	uint32_t i;

	/* Rounded up: the p99 of ten records is the tenth. Of none it is max, which is 0 then. */
	rank = (uint64_t)(((unsigned __int128)histogram->count * ppm + 999999) / 1000000);
	if (rank >= histogram->count)
		return histogram->max;
	if (rank == 0)
		rank = 1;
	for (i = 0; i < PERF_HISTOGRAM_BUCKETS; i++) {
		seen += histogram->buckets[i];
		if (seen >= rank)
			break;
	}
	value = histogram_value(i);
	if (value < histogram->min)
		return histogram->min;
	return value > histogram->max ? histogram->max : value;
}

uint64_t perf_histogram_mean(const struct perf_histogram *histogram)
{
	return histogram->count ? (uint64_t)(histogram->sum / (double)histogram->count) : 0;
}
