/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_rtt: delay, its timeout, and the delivery rate. */
#include "engine_lab.h"

static void without_a_sample_the_timeout_is_the_ceiling(void **state)
{
	struct mrc_rtt rtt;

	mrc_rtt_init(&rtt);
	assert_int_equal(mrc_rtt_timeout_ns(&rtt, MRC_MS, 200 * MRC_MS), 200 * MRC_MS);
}

static void timeout_is_mean_and_four_deviations_within_bounds(void **state)
{
	const struct {
		const char *name;
		uint64_t sample_ns, floor_ns, ceiling_ns, want_ns;
	} rows[] = {
		/* A first sample s gives s + 4 * s / 2. */
		{"first sample", 10 * MRC_MS, MRC_MS, 200 * MRC_MS, 30 * MRC_MS},
		{"floor", 10 * MRC_US, MRC_MS, 200 * MRC_MS, MRC_MS},
		{"ceiling", 100 * MRC_MS, MRC_MS, 200 * MRC_MS, 200 * MRC_MS},
		{"a floor above the ceiling wins", 10 * MRC_US, 300 * MRC_MS, 200 * MRC_MS,
		 300 * MRC_MS},
		{"a sample of nothing", 0, MRC_MS, 200 * MRC_MS, MRC_MS},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrc_rtt rtt;
		uint64_t got_ns;

		mrc_rtt_init(&rtt);
		mrc_rtt_sample(&rtt, rows[i].sample_ns, 0, MRC_S);
		got_ns = mrc_rtt_timeout_ns(&rtt, rows[i].floor_ns, rows[i].ceiling_ns);
		if (got_ns != rows[i].want_ns)
			fail_msg("%s: %llu ns, want %llu", rows[i].name, (unsigned long long)got_ns,
				 (unsigned long long)rows[i].want_ns);
	}
}

static void a_steady_delay_brings_the_timeout_down_to_it(void **state)
{
	struct mrc_rtt rtt;

	mrc_rtt_init(&rtt);
	for (int i = 0; i < 200; i++)
		mrc_rtt_sample(&rtt, 10 * MRC_MS, 0, MRC_S + (uint64_t)i * MRC_MS);
	assert_int_equal(rtt.smoothed_ns, 10 * MRC_MS);
	assert_in_range(mrc_rtt_timeout_ns(&rtt, MRC_MS, 200 * MRC_MS), 10 * MRC_MS,
			10 * MRC_MS + 100);
}

static void the_least_delay_is_forgotten_after_two_windows(void **state)
{
	struct mrc_rtt rtt;
	uint64_t now_ns = MRC_S;

	mrc_rtt_init(&rtt);
	mrc_rtt_sample(&rtt, MRC_MS, 0, now_ns);
	mrc_rtt_sample(&rtt, 5 * MRC_MS, 0, now_ns += MRC_MS);
	assert_int_equal(rtt.min_ns, MRC_MS);
	/* One window on it is still believed: it is of the last one. */
	mrc_rtt_sample(&rtt, 5 * MRC_MS, 0, now_ns += MRC_RTT_MIN_WINDOW_NS);
	assert_int_equal(rtt.min_ns, MRC_MS);
	mrc_rtt_sample(&rtt, 5 * MRC_MS, 0, now_ns + MRC_RTT_MIN_WINDOW_NS);
	assert_int_equal(rtt.min_ns, 5 * MRC_MS);
}

/* It is taken off what its bytes took: so which frame's delay the least is must be known. */
static void the_least_delay_is_known_with_its_bytes(void **state)
{
	struct mrc_rtt rtt;
	uint64_t now_ns = MRC_S;

	mrc_rtt_init(&rtt);
	mrc_rtt_sample(&rtt, 2 * MRC_MS, 4096, now_ns);
	assert_int_equal(rtt.min_bytes, 4096);
	mrc_rtt_sample(&rtt, MRC_MS, 100, now_ns += MRC_MS);
	mrc_rtt_sample(&rtt, 5 * MRC_MS, 8192, now_ns += MRC_MS);
	assert_int_equal(rtt.min_bytes, 100);
	mrc_rtt_sample(&rtt, 6 * MRC_MS, 300, now_ns += MRC_RTT_MIN_WINDOW_NS);
	assert_int_equal(rtt.min_bytes, 100);
	mrc_rtt_sample(&rtt, 7 * MRC_MS, 200, now_ns + MRC_RTT_MIN_WINDOW_NS);
	assert_int_equal(rtt.min_bytes, 300);
}

/* Deliver `rate` bytes per second for a span, a sample a millisecond. */
static void deliver(struct mrc_rate *rate, uint64_t bytes_per_ms, uint64_t ms, bool is_app_limited,
		    uint64_t *now_ns)
{
	for (uint64_t i = 0; i < ms; i++) {
		uint64_t then = rate->delivered_bytes, then_ns = *now_ns;

		*now_ns += MRC_MS;
		mrc_rate_sample(rate, bytes_per_ms, then, then_ns, is_app_limited, *now_ns);
	}
}

static void rate_is_bytes_over_time(void **state)
{
	struct mrc_rate rate;
	uint64_t now_ns = MRC_S;

	mrc_rate_init(&rate);
	deliver(&rate, 100000, 3, false, &now_ns);
	assert_int_equal(rate.best, 100000000);
	assert_int_equal(rate.delivered_bytes, 300000);
	assert_true(rate.delivered_ns == now_ns);
}

static void a_fall_is_believed_after_a_window_or_two(void **state)
{
	struct mrc_rate rate;
	uint64_t now_ns = MRC_S;
	const uint64_t window_ms = MRC_RATE_WINDOW_NS / MRC_MS;

	mrc_rate_init(&rate);
	deliver(&rate, 100000, 5, false, &now_ns);
	deliver(&rate, 10000, window_ms / 2, false, &now_ns);
	assert_int_equal(rate.best, 100000000); /* a dip is not a fall */
	deliver(&rate, 10000, 2 * window_ms, false, &now_ns);
	assert_int_equal(rate.best, 10000000);
}

static void an_app_limited_sample_can_only_raise(void **state)
{
	struct mrc_rate rate;
	uint64_t now_ns = MRC_S;

	mrc_rate_init(&rate);
	deliver(&rate, 100000, 5, false, &now_ns);
	deliver(&rate, 10, 1000, true, &now_ns);
	assert_int_equal(rate.best, 100000000);
	deliver(&rate, 200000, 1, true, &now_ns);
	assert_int_equal(rate.best, 200000000);
}

static void spans_too_short_to_divide_by_are_no_samples(void **state)
{
	struct mrc_rate rate;

	mrc_rate_init(&rate);
	mrc_rate_sample(&rate, 1000000, 0, MRC_S, false, MRC_S);
	mrc_rate_sample(&rate, 1000000, 0, MRC_S, false, MRC_S + 9 * MRC_US);
	assert_int_equal(rate.best, 0);
	assert_int_equal(rate.delivered_bytes, 2000000); /* counted all the same */
}

static void large_numbers_do_not_overflow(void **state)
{
	struct mrc_rate rate;

	mrc_rate_init(&rate);
	/* 400 GB in 8 s: 64 bits of bytes times ns would not hold it. */
	mrc_rate_sample(&rate, 400000000000ULL, 0, MRC_S, false, 9 * MRC_S);
	assert_true(rate.best == 50000000000ULL);
}

static void a_product_of_more_than_64_bits_is_divided_all_the_same(void **state)
{
	assert_true(mrc_mul_div(6, 7, 4) == 10);
	assert_true(mrc_mul_div(1ULL << 40, 3ULL << 30, 1ULL << 40) == 3ULL << 30);
	assert_true(mrc_mul_div(UINT64_MAX, UINT64_MAX, UINT64_MAX) == UINT64_MAX);
}

static void a_queue_costs_what_it_cost_lately(void **state)
{
	struct mrc_queue queue;

	mrc_queue_init(&queue);
	assert_int_equal(mrc_queue_ns(&queue, 1000000), 0);
	/* 128 KiB took a millisecond, 64 KiB the half of it. */
	mrc_queue_sample(&queue, 128 * 1024, MRC_MS, MRC_S);
	mrc_queue_sample(&queue, 64 * 1024, MRC_MS / 2, MRC_S);
	assert_int_equal(mrc_queue_ns(&queue, 256 * 1024), 2 * MRC_MS);
	/* Fewer bytes than make a queue say nothing, however long they took. */
	mrc_queue_sample(&queue, MRC_QUEUE_BYTES_MIN - 1, MRC_S, MRC_S);
	assert_int_equal(mrc_queue_ns(&queue, 256 * 1024), 2 * MRC_MS);
	/* It gets ten times slower, which soon is all that counts. */
	for (int i = 0; i < 40; i++)
		mrc_queue_sample(&queue, 128 * 1024, 10 * MRC_MS, MRC_S);
	assert_in_range(mrc_queue_ns(&queue, 128 * 1024), 9900 * MRC_US, 10 * MRC_MS);
	assert_int_equal(queue.at_ns, MRC_S);
}

static void a_queue_of_any_length_and_delay_does_not_overflow(void **state)
{
	struct mrc_queue queue;

	mrc_queue_init(&queue);
	for (int i = 0; i < 1000; i++)
		mrc_queue_sample(&queue, UINT64_MAX, UINT64_MAX, MRC_S);
	assert_in_range(mrc_queue_ns(&queue, 256 * 1024 * 1024), 9 * MRC_S, 11 * MRC_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_sample_the_timeout_is_the_ceiling),
		cmocka_unit_test(timeout_is_mean_and_four_deviations_within_bounds),
		cmocka_unit_test(a_steady_delay_brings_the_timeout_down_to_it),
		cmocka_unit_test(the_least_delay_is_forgotten_after_two_windows),
		cmocka_unit_test(the_least_delay_is_known_with_its_bytes),
		cmocka_unit_test(rate_is_bytes_over_time),
		cmocka_unit_test(a_fall_is_believed_after_a_window_or_two),
		cmocka_unit_test(an_app_limited_sample_can_only_raise),
		cmocka_unit_test(spans_too_short_to_divide_by_are_no_samples),
		cmocka_unit_test(large_numbers_do_not_overflow),
		cmocka_unit_test(a_product_of_more_than_64_bits_is_divided_all_the_same),
		cmocka_unit_test(a_queue_costs_what_it_cost_lately),
		cmocka_unit_test(a_queue_of_any_length_and_delay_does_not_overflow),
	};

	return cmocka_run_group_tests_name("rtt", tests, NULL, NULL);
}
