/* SPDX-License-Identifier: BSD-2-Clause */
/* How long clients stand still: the gap is theirs, and the longest since any moment is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mrcd_stall.h"

static void gap_runs_between_answers_while_sends_are_outstanding(void **state)
{
	struct mrcd_stall_meter meter = {0};
	struct mrcd_stall_watch watch = {0};

	mrcd_stall_begin(&watch, 1000 * MRC_US);
	mrcd_stall_begin(&watch, 1100 * MRC_US); /* does not begin it anew */
	mrcd_stall_answer(&watch, &meter, 1300 * MRC_US);
	assert_int_equal(meter.gaps.count, 1);
	assert_int_equal(meter.gaps.max_ns, 300 * MRC_US);
	mrcd_stall_answer(&watch, &meter, 1350 * MRC_US);
	assert_int_equal(meter.gaps.sum_ns, 350 * MRC_US);
	/* A pause of the program is none of ours. */
	mrcd_stall_begin(&watch, 900 * MRC_S);
	mrcd_stall_answer(&watch, &meter, 900 * MRC_S + 10 * MRC_US);
	assert_int_equal(meter.gaps.count, 3);
	assert_int_equal(meter.gaps.max_ns, 300 * MRC_US);
}

static void answers_of_one_turn_have_no_gap(void **state)
{
	struct mrcd_stall_meter meter = {0};
	struct mrcd_stall_watch watch = {0};

	for (int i = 0; i < 10; i++)
		mrcd_stall_begin(&watch, 5);
	for (int i = 0; i < 10; i++)
		mrcd_stall_answer(&watch, &meter, 25);
	assert_int_equal(meter.gaps.count, 1);
	assert_int_equal(watch.outstanding, 0);
}

static void answer_to_what_began_before_the_watch_counts_for_nothing(void **state)
{
	struct mrcd_stall_meter meter = {0};
	struct mrcd_stall_watch watch = {0};

	mrcd_stall_answer(&watch, &meter, 77 * MRC_S);
	assert_int_equal(meter.gaps.count, 0);
	assert_int_equal(watch.outstanding, 0);
}

static void longest_since_any_moment_is_exact(void **state)
{
	enum { GAPS = 3000 };
	static uint64_t gaps[GAPS], ends[GAPS];
	struct mrcd_stall_meter meter = {0};
	struct mrc_rng rng = {.state = 42};
	uint64_t now_ns = 0;

	for (int i = 0; i < GAPS; i++) {
		uint64_t draw = mrc_rng_next(&rng);

		gaps[i] = 1 + draw % (draw % 7 == 0 ? 1000000 : 1000);
		now_ns += gaps[i];
		ends[i] = now_ns;
		mrcd_stall_record(&meter, gaps[i], now_ns);
		for (int k = 0; k < 5; k++) {
			int from = (int)(mrc_rng_next(&rng) % (uint64_t)(i + 1));
			uint64_t want = 0;

			for (int at = from; at <= i; at++)
				want = MRC_MAX(want, gaps[at]);
			assert_int_equal(mrcd_stall_longest_ns(&meter, ends[from]), want);
		}
	}
	assert_true(meter.longest_count < MRCD_STALL_LONGEST_MAX); /* or it was not exact by luck */
	assert_int_equal(mrcd_stall_longest_ns(&meter, 0), meter.gaps.max_ns);
	assert_int_equal(mrcd_stall_longest_ns(&meter, now_ns + 1), 0);
}

static void full_meter_tells_too_long_rather_than_too_short(void **state)
{
	struct mrcd_stall_meter meter = {0};
	uint64_t now_ns = 0, gap_ns = 1000;

	for (int i = 0; i < 100; i++) {
		gap_ns--; /* each is shorter: none makes another pointless */
		now_ns += gap_ns;
		mrcd_stall_record(&meter, gap_ns, now_ns);
		assert_true(mrcd_stall_longest_ns(&meter, now_ns) >= gap_ns);
		assert_true(mrcd_stall_longest_ns(&meter, now_ns) < 1000);
	}
	mrcd_stall_record(&meter, 5000, now_ns + 5000);
	assert_int_equal(meter.longest_count, 1);
	assert_int_equal(mrcd_stall_longest_ns(&meter, 0), 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gap_runs_between_answers_while_sends_are_outstanding),
		cmocka_unit_test(answers_of_one_turn_have_no_gap),
		cmocka_unit_test(answer_to_what_began_before_the_watch_counts_for_nothing),
		cmocka_unit_test(longest_since_any_moment_is_exact),
		cmocka_unit_test(full_meter_tells_too_long_rather_than_too_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
