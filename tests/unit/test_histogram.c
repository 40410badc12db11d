/* SPDX-License-Identifier: BSD-2-Clause */
/* Spans of time by size: no span is lost, and none lands in another's bucket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mrc_histogram.h"

/* Found the slow way. */
static uint32_t bucket_wanted(uint64_t ns)
{
	uint32_t index = 0;

	while (index < MRC_HISTOGRAM_BOUNDS && ns > mrc_histogram_bound_ns(index))
		index++;
	return index;
}

static void takes_each_span_into_its_own_bucket(uint64_t ns)
{
	struct mrc_histogram histogram = {0};
	uint32_t want = bucket_wanted(ns);

	mrc_histogram_record(&histogram, ns);
	assert_int_equal(histogram.buckets[want], 1);
	assert_int_equal(histogram.count, 1);
	assert_int_equal(histogram.sum_ns, ns);
	assert_int_equal(histogram.max_ns, ns);
}

static void bounds_are_round_and_a_span_at_one_belongs_to_it(void **state)
{
	static const uint64_t mantissas[] = {10, 15, 20, 30, 50, 70};
	uint64_t unit = 100;

	for (uint32_t i = 0; i < MRC_HISTOGRAM_BOUNDS; i++) {
		uint64_t bound_ns = mrc_histogram_bound_ns(i);

		assert_int_equal(bound_ns, mantissas[i % 6] * unit);
		assert_int_equal(bucket_wanted(bound_ns), i);
		takes_each_span_into_its_own_bucket(bound_ns - 1);
		takes_each_span_into_its_own_bucket(bound_ns);
		takes_each_span_into_its_own_bucket(bound_ns + 1);
		if (i % 6 == 5)
			unit *= 10;
	}
}

static void every_power_of_two_and_its_neighbours_find_their_bucket(void **state)
{
	takes_each_span_into_its_own_bucket(0);
	for (uint32_t bit = 0; bit < 64; bit++) {
		takes_each_span_into_its_own_bucket((1ULL << bit) - 1);
		takes_each_span_into_its_own_bucket(1ULL << bit);
		takes_each_span_into_its_own_bucket((1ULL << bit) + 1);
	}
	takes_each_span_into_its_own_bucket(UINT64_MAX);
}

static void quantile_of_none_is_0_and_the_last_is_exact(void **state)
{
	struct mrc_histogram histogram = {0};

	assert_int_equal(mrc_histogram_quantile_ns(&histogram, 500000), 0);
	assert_int_equal(mrc_histogram_quantile_ns(&histogram, 1000000), 0);
	mrc_histogram_record(&histogram, 123457);
	assert_int_equal(mrc_histogram_quantile_ns(&histogram, 0), 123457);
	assert_int_equal(mrc_histogram_quantile_ns(&histogram, 1000000), 123457);
	mrc_histogram_record(&histogram, 400 * MRC_S);
	assert_int_equal(mrc_histogram_quantile_ns(&histogram, 1000000), 400 * MRC_S);
	/* In the last bucket, which has no bound of its own. */
	mrc_histogram_record(&histogram, 300 * MRC_S);
	assert_in_range(mrc_histogram_quantile_ns(&histogram, 600000), 70 * MRC_S, 400 * MRC_S);
}

static void quantile_is_within_its_bucket(void **state)
{
	struct mrc_histogram histogram = {0};

	/* 1 us to 10 ms, evenly: the q-th of them is known. */
	for (uint64_t i = 1; i <= 10000; i++)
		mrc_histogram_record(&histogram, i * MRC_US);
	for (uint32_t ppm = 1000; ppm < 1000000; ppm += 1000) {
		uint64_t exact_ns = (uint64_t)ppm / 100 * MRC_US;
		uint64_t told_ns = mrc_histogram_quantile_ns(&histogram, ppm);
		uint32_t bucket = bucket_wanted(exact_ns);

		assert_int_equal(bucket_wanted(told_ns), bucket);
		/* Evenly spread, so the guess inside the bucket is right but for a span or so. */
		assert_in_range(told_ns, exact_ns - exact_ns / 20 - MRC_US,
				exact_ns + exact_ns / 20 + MRC_US);
	}
}

static void sum_of_two_is_as_if_one_had_seen_all(void **state)
{
	struct mrc_histogram a = {0}, b = {0}, all = {0};

	for (uint64_t i = 1; i < 1000; i++) {
		uint64_t ns = i * i * i;

		mrc_histogram_record(i % 3 == 0 ? &a : &b, ns);
		mrc_histogram_record(&all, ns);
	}
	mrc_histogram_add(&a, &b);
	assert_memory_equal(&a, &all, sizeof(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_are_round_and_a_span_at_one_belongs_to_it),
		cmocka_unit_test(every_power_of_two_and_its_neighbours_find_their_bucket),
		cmocka_unit_test(quantile_of_none_is_0_and_the_last_is_exact),
		cmocka_unit_test(quantile_is_within_its_bucket),
		cmocka_unit_test(sum_of_two_is_as_if_one_had_seen_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
