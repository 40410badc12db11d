/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mrcd_wait.h"

#define LOOK_NS (160 * MRC_US)

/* Looks until it is enough; answers for how long. */
static uint64_t look(struct mrcd_wait *wait, uint64_t *now_ns)
{
	uint64_t begin_ns = *now_ns;
	bool do_yield;

	while (mrcd_wait_look(wait, *now_ns, &do_yield))
		*now_ns += MRC_US;
	return *now_ns - begin_ns;
}

static void looks_on_after_work_and_then_sleeps(void **state)
{
	struct mrcd_wait wait;
	uint64_t now_ns = MRC_S;

	mrcd_wait_init(&wait, LOOK_NS, now_ns);
	assert_true(mrcd_wait_work(&wait, now_ns));
	assert_false(mrcd_wait_work(&wait, now_ns)); /* it does already */
	assert_int_equal(look(&wait, &now_ns), LOOK_NS);
	assert_false(wait.is_looking);
}

static void the_processor_is_given_away_only_when_there_was_nothing(void **state)
{
	struct mrcd_wait wait;
	bool do_yield;

	mrcd_wait_init(&wait, LOOK_NS, MRC_S);
	mrcd_wait_work(&wait, MRC_S);
	assert_true(mrcd_wait_look(&wait, MRC_S, &do_yield));
	assert_false(do_yield);
	assert_true(mrcd_wait_look(&wait, MRC_S + 1, &do_yield));
	assert_true(do_yield);
	mrcd_wait_work(&wait, MRC_S + 2);
	assert_true(mrcd_wait_look(&wait, MRC_S + 3, &do_yield));
	assert_false(do_yield);
	/* Who sleeps gives it away anyway. */
	assert_false(mrcd_wait_look(&wait, MRC_S + LOOK_NS + 2, &do_yield));
	assert_false(do_yield);
}

static void work_that_comes_seldom_is_not_looked_for(void **state)
{
	struct mrcd_wait wait;
	uint64_t now_ns = MRC_S, looked_ns = 0;

	mrcd_wait_init(&wait, LOOK_NS, now_ns);
	for (int i = 0; i < 10; i++) {
		if (mrcd_wait_work(&wait, now_ns))
			looked_ns = look(&wait, &now_ns);
		else
			looked_ns = 0;
		now_ns += 5 * MRC_MS;
	}
	assert_int_equal(looked_ns, 0);
}

static void work_that_comes_soon_is_looked_for_again(void **state)
{
	struct mrcd_wait wait;
	uint64_t now_ns = MRC_S;

	mrcd_wait_init(&wait, LOOK_NS, now_ns);
	wait.look_ns = 0;
	/* Each time it just missed it. */
	for (int i = 0; i < 8; i++) {
		if (mrcd_wait_work(&wait, now_ns))
			look(&wait, &now_ns);
		now_ns += LOOK_NS / 2;
	}
	assert_int_equal(wait.look_ns, LOOK_NS);
	/* And now that it catches it, it stays. */
	mrcd_wait_work(&wait, now_ns);
	for (int i = 0; i < 8; i++) {
		bool do_yield;

		now_ns += LOOK_NS / 2;
		assert_true(mrcd_wait_look(&wait, now_ns, &do_yield));
		mrcd_wait_work(&wait, now_ns);
	}
	assert_int_equal(wait.look_ns, LOOK_NS);
}

static void without_time_to_look_it_never_does(void **state)
{
	struct mrcd_wait wait;

	mrcd_wait_init(&wait, 0, MRC_S);
	for (uint64_t i = 1; i < 10; i++)
		assert_false(mrcd_wait_work(&wait, MRC_S + i));
	assert_int_equal(wait.look_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_on_after_work_and_then_sleeps),
		cmocka_unit_test(the_processor_is_given_away_only_when_there_was_nothing),
		cmocka_unit_test(work_that_comes_seldom_is_not_looked_for),
		cmocka_unit_test(work_that_comes_soon_is_looked_for_again),
		cmocka_unit_test(without_time_to_look_it_never_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
