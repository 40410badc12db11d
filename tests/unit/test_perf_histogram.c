/* SPDX-License-Identifier: BSD-2-Clause */
/* How near the quantiles of the histogram are to those of the sorted data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mrc_perf_histogram.h"
#include "mrc_perf_pattern.h"

#define VALUES_MAX 20000
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))

static struct perf_histogram histogram;
static uint64_t values[VALUES_MAX];

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Shapes of data: the n-th value of each. */
static uint64_t value_small(uint64_t n)
{
	return perf_mix64(n) % 256;
}

static uint64_t value_latency(uint64_t n)
{
	uint64_t random = perf_mix64(n);

	return 20000 + random % 5000 + (random % 97 == 0 ? (random >> 32) % 50000000 : 0);
}

static uint64_t value_wide(uint64_t n)
{
	uint64_t random = perf_mix64(n);

	return random >> (perf_mix64(~n) % 64);
}

static uint64_t value_same(uint64_t n)
{
	return 123456789;
}

static uint64_t value_largest(uint64_t n)
{
	return UINT64_MAX - n;
}

static void histogram_is_within_one_percent_of_sorted_data(void **state)
{
	static uint64_t (*const shapes[])(uint64_t n) = {value_small, value_latency, value_wide,
							 value_same, value_largest};
	static const size_t counts[] = {1, 2, 10, 999, 1000, VALUES_MAX};
	static const uint32_t quantiles[] = {0, 1, 500000, 900000, 990000, 999000, 999999, 1000000};

	for (size_t s = 0; s < COUNT(shapes); s++)
		for (size_t c = 0; c < COUNT(counts); c++) {
			perf_histogram_init(&histogram);
			for (size_t i = 0; i < counts[c]; i++) {
				values[i] = shapes[s](i);
				perf_histogram_record(&histogram, values[i]);
			}
			qsort(values, counts[c], sizeof(values[0]), compare);
			for (size_t q = 0; q < COUNT(quantiles); q++) {
				size_t rank = (counts[c] * quantiles[q] + 999999) / 1000000;
				uint64_t want = values[rank ? rank - 1 : 0];
				uint64_t got = perf_histogram_quantile(&histogram, quantiles[q]);
				uint64_t error = got > want ? got - want : want - got;

				if (error > want / 100)
					fail_msg("shape %zu, %zu values, %u ppm: %llu for %llu", s,
						 counts[c], quantiles[q], (unsigned long long)got,
						 (unsigned long long)want);
			}
			assert_int_equal(histogram.count, counts[c]);
			assert_true(histogram.min == values[0]);
			assert_true(histogram.max == values[counts[c] - 1]);
		}
}

static void histogram_is_exact_for_small_values(void **state)
{
	perf_histogram_init(&histogram);
	for (uint64_t i = 1; i <= 200; i++)
		perf_histogram_record(&histogram, i);
	assert_int_equal(perf_histogram_quantile(&histogram, 500000), 100);
	assert_int_equal(perf_histogram_quantile(&histogram, 990000), 198);
	assert_int_equal(perf_histogram_mean(&histogram), 100);
}

static void histogram_of_nothing_is_zero(void **state)
{
	perf_histogram_init(&histogram);
	assert_int_equal(perf_histogram_quantile(&histogram, 500000), 0);
	assert_int_equal(perf_histogram_quantile(&histogram, 1000000), 0);
	assert_int_equal(perf_histogram_mean(&histogram), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(histogram_is_within_one_percent_of_sorted_data),
		cmocka_unit_test(histogram_is_exact_for_small_values),
		cmocka_unit_test(histogram_of_nothing_is_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
