/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_histogram.h"

#define DECADE(unit) (unit), (unit)*3 / 2, (unit)*2, (unit)*3, (unit)*5, (unit)*7

static const uint64_t bounds_ns[MRC_HISTOGRAM_BOUNDS] = {
	DECADE(MRC_US),      DECADE(10 * MRC_US),  DECADE(100 * MRC_US), DECADE(MRC_MS),
	DECADE(10 * MRC_MS), DECADE(100 * MRC_MS), DECADE(MRC_S),        DECADE(10 * MRC_S),
};

/* By the highest bit of a span: the first bound that is no less than that bit alone. */
static const uint8_t first_of[64] = {
	0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  1,  3,  4,  6,  8,  10, 11, 13, 15, 17, 19, 21,
	22, 24, 26, 28, 29, 31, 33, 35, 37, 39, 40, 42, 44, 46, 47, 48, 48, 48, 48, 48, 48, 48,
	48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48,
};

/* At most two bounds lie between a power of two and the next. */
static uint32_t bucket_of(uint64_t ns)
{
	uint32_t index = first_of[63 - __builtin_clzll(ns | 1)];

	while (index < MRC_HISTOGRAM_BOUNDS && ns > bounds_ns[index])
		index++;
	return index;
}

void mrc_histogram_record(struct mrc_histogram *histogram, uint64_t ns)
{
	histogram->buckets[bucket_of(ns)]++;
	histogram->count++;
	histogram->sum_ns += ns;
	histogram->max_ns = MRC_MAX(histogram->max_ns, ns);
}

uint64_t mrc_histogram_bound_ns(uint32_t index)
{
	MRC_ASSERT(index < MRC_HISTOGRAM_BOUNDS);
	return bounds_ns[index];
}

/* As if the spans of a bucket lay evenly in it. */
uint64_t mrc_histogram_quantile_ns(const struct mrc_histogram *histogram, uint32_t ppm)
{
	uint64_t seen = 0, rank, low_ns, high_ns;
	uint32_t index = 0;

	/* Rounded up: the p99 of ten spans is the tenth. */
	rank = (uint64_t)(((unsigned __int128)histogram->count * ppm + 999999) / 1000000);
	if (rank >= histogram->count)
		return histogram->max_ns;
	rank = MRC_MAX(rank, 1);
	while (seen + histogram->buckets[index] < rank)
		seen += histogram->buckets[index++];
	low_ns = index == 0 ? 0 : bounds_ns[index - 1];
	high_ns = index < MRC_HISTOGRAM_BOUNDS ? MRC_MIN(bounds_ns[index], histogram->max_ns)
					       : histogram->max_ns;
	return low_ns + (uint64_t)((unsigned __int128)(high_ns - low_ns) * (rank - seen) /
				   histogram->buckets[index]);
}

void mrc_histogram_add(struct mrc_histogram *histogram, const struct mrc_histogram *other)
{
	histogram->count += other->count;
	histogram->sum_ns += other->sum_ns;
	histogram->max_ns = MRC_MAX(histogram->max_ns, other->max_ns);
	for (uint32_t i = 0; i <= MRC_HISTOGRAM_BOUNDS; i++)
		histogram->buckets[i] += other->buckets[i];
}
