/* SPDX-License-Identifier: BSD-2-Clause */
/* How much of a client's may be under way, and how fast: sums alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mrcd_quota.h"

#define GBIT 1000000000ULL

static void without_bounds_everything_goes(void **state)
{
	struct mrcd_quota quota = {0};
	uint64_t when;

	for (int i = 0; i < 1000; i++) {
		assert_true(mrcd_quota_admits(&quota, 1ULL << 40, 5, &when));
		mrcd_quota_take(&quota, 1ULL << 40, 5);
	}
}

static void what_is_under_way_has_a_bound(void **state)
{
	struct mrcd_quota quota = {.max = {.in_flight_bytes_max = 1000}};
	uint64_t when;

	/* One that is larger than the bound goes alone. */
	assert_true(mrcd_quota_admits(&quota, 5000, 0, &when));
	mrcd_quota_take(&quota, 5000, 0);
	assert_false(mrcd_quota_admits(&quota, 0, 0, &when));
	assert_true(when == MRC_NEVER);
	mrcd_quota_give(&quota, 5000);
	mrcd_quota_take(&quota, 600, 0);
	assert_true(mrcd_quota_admits(&quota, 400, 0, &when));
	assert_false(mrcd_quota_admits(&quota, 401, 0, &when));
	assert_false(mrcd_quota_admits(&quota, UINT64_MAX, 0, &when));
	mrcd_quota_take(&quota, 400, 0);
	assert_false(mrcd_quota_admits(&quota, 1, 0, &when));
	mrcd_quota_give(&quota, 600);
	assert_true(mrcd_quota_admits(&quota, 600, 0, &when));
}

/* Sends as soon as it may; answers how long `count` messages of this length take. */
static uint64_t span_of(struct mrcd_quota *quota, uint64_t now, uint64_t count, uint64_t len)
{
	uint64_t begin = now, when;

	for (uint64_t i = 0; i < count; i++) {
		while (!mrcd_quota_admits(quota, len, now, &when)) {
			assert_true(when > now && when != MRC_NEVER);
			now = when;
		}
		mrcd_quota_take(quota, len, now);
		mrcd_quota_give(quota, len);
	}
	return now - begin;
}

static void the_rate_is_kept_on_average(void **state)
{
	static const struct {
		uint64_t rate, len, count;
	} rows[] = {
		{GBIT, 1000, 100000},
		{GBIT, 1 << 20, 1000},
		{GBIT, 0, 1000000},
		{1000000, 100000, 100},
		{100 * 1000 * GBIT, 64, 4000000},
		{3 * GBIT, 999, 100001},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrcd_quota quota = {.max = {.rate_bits_per_s = rows[i].rate}};
		uint64_t bits = (rows[i].len + MRCD_QUOTA_OVERHEAD_BYTES) * 8 * rows[i].count;
		uint64_t want = (uint64_t)((double)bits / (double)rows[i].rate * 1e9);
		uint64_t got = span_of(&quota, 7 * MRC_S, rows[i].count, rows[i].len);

		/* Less what may go at once at the beginning, and one message of a nanosecond's fraction each. */
		if (got > want ||
		    got + MRCD_QUOTA_BURST_NS + rows[i].count + want / rows[i].count < want)
			fail_msg("row %zu: %llu ns, wanted %llu", i, (unsigned long long)got,
				 (unsigned long long)want);
	}
}

static void who_was_still_may_not_make_up_for_it(void **state)
{
	struct mrcd_quota quota = {.max = {.rate_bits_per_s = GBIT}};
	uint64_t at_once = 0, when;

	assert_true(span_of(&quota, MRC_S, 10, 1 << 20) > 0);
	/* An hour later: 10 ms at 1 Gb/s are 1.25 MB, and the message that crosses that. */
	while (mrcd_quota_admits(&quota, 1000, 3600 * MRC_S, &when)) {
		mrcd_quota_take(&quota, 1000, 3600 * MRC_S);
		at_once += 1080;
	}
	assert_in_range(at_once, 1250000, 1250000 + 1080);
}

/* No number of a message's length runs over. */
static void the_largest_message_at_the_lowest_rate(void **state)
{
	struct mrcd_quota quota = {.max = {.rate_bits_per_s = 1000000}};
	uint64_t when;

	mrcd_quota_take(&quota, 1ULL << 40, 0);
	assert_false(mrcd_quota_admits(&quota, 0, 0, &when));
	assert_true(when / MRC_S == ((1ULL << 40) + 80) * 8 / 1000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_bounds_everything_goes),
		cmocka_unit_test(what_is_under_way_has_a_bound),
		cmocka_unit_test(the_rate_is_kept_on_average),
		cmocka_unit_test(who_was_still_may_not_make_up_for_it),
		cmocka_unit_test(the_largest_message_at_the_lowest_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
