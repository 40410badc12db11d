/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mrc_look.h"

#define US   1000ULL
#define MS   (1000 * US)
#define SPAN (100 * US)

/* Looks until it is enough; answers for how long. */
static uint64_t look_in_vain(struct mrc_look *look, uint64_t *now_ns)
{
	uint64_t begin_ns = *now_ns;
	bool do_yield;

	while (mrc_look_on(look, *now_ns, &do_yield))
		*now_ns += US;
	return *now_ns - begin_ns;
}

/* Work each `period_ns` for `span_ns`; answers how long was looked. */
static uint64_t play(struct mrc_look *look, uint64_t *now_ns, uint64_t period_ns, uint64_t span_ns)
{
	uint64_t looked_ns = 0;
	bool do_yield;

	for (uint64_t end_ns = *now_ns + span_ns; *now_ns < end_ns;) {
		uint64_t next_ns = *now_ns + period_ns;

		mrc_look_work(look, *now_ns);
		while (look->is_looking && *now_ns < next_ns) {
			*now_ns += look->span_ns / 20;
			looked_ns += look->span_ns / 20;
			mrc_look_on(look, *now_ns, &do_yield);
		}
		*now_ns = next_ns;
	}
	return looked_ns;
}

static void looks_on_after_work_and_then_sleeps(void **state)
{
	struct mrc_look look;
	uint64_t now_ns = 1000 * MS;

	mrc_look_init(&look, SPAN, now_ns);
	assert_true(mrc_look_work(&look, now_ns));
	assert_false(mrc_look_work(&look, now_ns)); /* it does already */
	assert_int_equal(look_in_vain(&look, &now_ns), SPAN);
	assert_false(look.is_looking);
}

static void the_processor_is_given_away_only_when_there_was_nothing(void **state)
{
	struct mrc_look look;
	bool do_yield;

	mrc_look_init(&look, SPAN, MS);
	mrc_look_work(&look, MS);
	assert_true(mrc_look_on(&look, MS, &do_yield));
	assert_false(do_yield);
	assert_true(mrc_look_on(&look, MS + 1, &do_yield));
	assert_true(do_yield);
	mrc_look_work(&look, MS + 2);
	assert_true(mrc_look_on(&look, MS + 3, &do_yield));
	assert_false(do_yield);
	/* Who sleeps gives it away anyway. */
	assert_false(mrc_look_on(&look, MS + 2 + SPAN, &do_yield));
	assert_false(do_yield);
}

static void what_is_found_in_time_is_looked_for_for_ever(void **state)
{
	struct mrc_look look;
	uint64_t now_ns = 0;

	mrc_look_init(&look, SPAN, now_ns);
	play(&look, &now_ns, SPAN / 2, 10 * MS);
	assert_int_equal(play(&look, &now_ns, SPAN / 2, 100 * MS), 100 * MS);
}

static void what_comes_too_late_is_looked_for_less_and_less(void **state)
{
	struct mrc_look look;
	uint64_t now_ns = 0;

	mrc_look_init(&look, SPAN, now_ns);
	play(&look, &now_ns, 5 * SPAN, 1000 * MS);
	/* Four looks of three spans each quarter of a second: half a percent. */
	assert_in_range(play(&look, &now_ns, 5 * SPAN, 1000 * MS), 4 * SPAN, 8 * MS);
}

static void what_comes_seldom_is_not_even_tried(void **state)
{
	struct mrc_look look;
	uint64_t now_ns = 0;

	mrc_look_init(&look, SPAN, now_ns);
	play(&look, &now_ns, 5 * MS, 200 * MS);
	assert_int_equal(play(&look, &now_ns, 5 * MS, 1000 * MS), 0);
}

/* Of four that all sleep each is answered after two spans and a half; once one of them looks, it is sooner. */
static void a_trial_finds_what_a_look_would_not(void **state)
{
	struct mrc_look look;
	uint64_t now_ns = 0;

	mrc_look_init(&look, SPAN, now_ns);
	play(&look, &now_ns, 4 * SPAN, 1000 * MS);
	assert_int_equal(look.credit, 0);
	play(&look, &now_ns, 5 * SPAN / 2, 300 * MS);
	assert_true(look.credit > 0);
	play(&look, &now_ns, SPAN / 2, 10 * MS);
	assert_int_equal(play(&look, &now_ns, SPAN / 2, 100 * MS), 100 * MS);
}

static void looking_in_vain_costs_a_percent_at_most_however_long_a_look_is(void **state)
{
	static const uint64_t spans_ns[] = {10 * US, SPAN, MS, 10 * MS};
	static const uint64_t periods[] = {4, 7, 9, 50, 199, 201, 210, 500}; /* in spans */

	for (size_t i = 0; i < sizeof(spans_ns) / sizeof(spans_ns[0]); i++) {
		for (size_t k = 0; k < sizeof(periods) / sizeof(periods[0]); k++) {
			struct mrc_look look;
			uint64_t now_ns = 0, span_ns = spans_ns[i], run_ns = 20000 * span_ns,
				 looked_ns;

			mrc_look_init(&look, span_ns, now_ns);
			play(&look, &now_ns, periods[k] * span_ns, run_ns);
			looked_ns = play(&look, &now_ns, periods[k] * span_ns, run_ns);
			if (looked_ns > run_ns / 100)
				fail_msg("span %llu ns, work each %llu spans: %llu of %llu ns",
					 (unsigned long long)span_ns,
					 (unsigned long long)periods[k],
					 (unsigned long long)looked_ns, (unsigned long long)run_ns);
		}
	}
}

static void after_a_rest_it_is_taken_for_granted(void **state)
{
	struct mrc_look look;
	uint64_t now_ns = 0;

	mrc_look_init(&look, SPAN, now_ns);
	play(&look, &now_ns, 5 * MS, 1000 * MS);
	assert_int_equal(look.credit, 0);
	now_ns += 200 * SPAN;
	assert_true(mrc_look_work(&look, now_ns));
	assert_int_equal(look_in_vain(&look, &now_ns), SPAN);
}

static void without_a_span_it_never_looks(void **state)
{
	struct mrc_look look;
	uint64_t now_ns = 0;

	mrc_look_init(&look, 0, now_ns);
	assert_int_equal(play(&look, &now_ns, 10 * US, 10 * MS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_on_after_work_and_then_sleeps),
		cmocka_unit_test(the_processor_is_given_away_only_when_there_was_nothing),
		cmocka_unit_test(what_is_found_in_time_is_looked_for_for_ever),
		cmocka_unit_test(what_comes_too_late_is_looked_for_less_and_less),
		cmocka_unit_test(what_comes_seldom_is_not_even_tried),
		cmocka_unit_test(a_trial_finds_what_a_look_would_not),
		cmocka_unit_test(looking_in_vain_costs_a_percent_at_most_however_long_a_look_is),
		cmocka_unit_test(after_a_rest_it_is_taken_for_granted),
		cmocka_unit_test(without_a_span_it_never_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
