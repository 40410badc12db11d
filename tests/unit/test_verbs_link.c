/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs_lab.h"

static int set_up(void **state)
{
	lab_new();
	lab_open();
	lab_until(lab_has_devices());
	return 0;
}

static int tear_down(void **state)
{
	lab_free();
	return 0;
}

static void two_hosts_with_devices_get_a_queue_pair(void **state)
{
	lab_up(0);
	assert_true(lab->a->paths[0].is_direct);
	assert_true(lab->b->paths[0].is_direct);
	assert_int_equal(verbs_fake_counts().qps, 2);
	assert_int_equal(lab_link(lab->a, 0)->peer_number, lab_link(lab->b, 0)->number);
	assert_int_equal(lab_link(lab->b, 0)->peer_number, lab_link(lab->a, 0)->number);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(two_hosts_with_devices_get_a_queue_pair, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
