/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_conn_info: what operators are shown of channels, and the words for a path's state and reason. */
#include "engine_lab.h"

static void every_state_and_reason_has_a_word_of_its_own(void **state)
{
	for (int i = 0; i < MRC_PATH_STATE_COUNT; i++) {
		assert_string_not_equal(mrc_path_state_name((enum mrc_path_state)i), "?");
		for (int n = 0; n < i; n++)
			assert_string_not_equal(mrc_path_state_name((enum mrc_path_state)i),
						mrc_path_state_name((enum mrc_path_state)n));
	}
	for (int i = 0; i < MRC_REASON_COUNT; i++) {
		assert_string_not_equal(mrc_path_reason_name((enum mrc_path_reason)i), "?");
		for (int n = 0; n < i; n++)
			assert_string_not_equal(mrc_path_reason_name((enum mrc_path_reason)i),
						mrc_path_reason_name((enum mrc_path_reason)n));
	}
	assert_string_equal(mrc_path_state_name(MRC_PATH_STATE_COUNT), "?");
	assert_string_equal(mrc_path_reason_name(MRC_REASON_COUNT), "?");
}

static void a_walk_meets_every_channel_once(void **state)
{
	struct mrc_channel_info info;
	uint32_t ids[4], iter = 0;
	struct lab_host h;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
	assert_false(mrc_conn_channel_info(h.conn, &iter, &info));
	for (int i = 0; i < 4; i++)
		assert_int_equal(lab_open_at(&h, "svc", i == 2, &ids[i]), 0);
	assert_int_equal(lab_channel(&h, MRC_EV_CH_ABORT, ids[1]), 0); /* a hole in the middle */
	lab_pump(&h);
	iter = 0;
	for (int i = 0; i < 4; i++) {
		if (i == 1)
			continue;
		assert_true(mrc_conn_channel_info(h.conn, &iter, &info));
		assert_int_equal(info.id, ids[i]);
		assert_int_equal(info.cookie, 100);
		assert_string_equal(info.state, "opening");
		assert_string_equal(info.service, "svc");
		assert_int_equal(info.is_unordered, i == 2);
		assert_true(info.is_opener);
	}
	assert_false(mrc_conn_channel_info(h.conn, &iter, &info));
	lab_host_fini(&h);
}

static void info_of(const struct lab_host *h, struct mrc_channel_info *info_out)
{
	uint32_t iter = 0;

	assert_true(mrc_conn_channel_info(h->conn, &iter, info_out));
	assert_false(mrc_conn_channel_info(h->conn, &iter, &(struct mrc_channel_info){0}));
}

static void every_round_trip_of_a_path_is_kept_by_length(void **state)
{
	const struct mrc_histogram *rtts;
	struct mrc_path_info info;
	struct lab_pair p;
	uint32_t ids[2];
	uint64_t before;

	lab_pair_up(&p, 1, NULL);
	lab_pair_channel(&p, false, ids);
	rtts = mrc_conn_path_rtts(p.hosts[0].conn, 0);
	before = rtts->count;
	assert_int_equal(lab_send(&p.hosts[0], ids[0], 100, MRC_LVL_COMMITTED, 0), 0);
	lab_pair_run(&p, 5 * MRC_MS);
	mrc_conn_path_info(p.hosts[0].conn, 0, &info);
	assert_true(rtts->count > before);
	assert_true(rtts->max_ns >= info.rtt_ns_min);
	assert_in_range(info.rtt_ns, info.rtt_ns_min, rtts->max_ns);
	/* They outlive the path's epoch, whose estimates do not. */
	before = rtts->count;
	lab_carrier(&p.hosts[0], 0, false);
	lab_pair_run(&p, 5 * MRC_MS);
	assert_true(rtts->count >= before);
	lab_pair_fini(&p);
}

static void numbers_shown_are_those_of_both_directions(void **state)
{
	struct mrc_channel_info info;
	struct lab_pair p;
	uint32_t ids[2];

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	p.hosts[1].releases = false;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(lab_send(&p.hosts[0], ids[0], 100, MRC_LVL_COMMITTED, i), 0);
	info_of(&p.hosts[0], &info);
	assert_int_equal(info.sent, 3);
	lab_pair_run(&p, 5 * MRC_MS);
	assert_int_equal(lab_msg(&p.hosts[1], MRC_EV_RELEASE, ids[1], 0, 0), 0);
	lab_pair_run(&p, 5 * MRC_MS);
	info_of(&p.hosts[0], &info);
	assert_string_equal(info.state, "open");
	assert_int_equal(info.sent_settled, 1);
	assert_int_equal(info.bytes_sent, 300);
	assert_int_equal(info.sends_queued, 0);
	assert_int_equal(info.delivered, 0);
	info_of(&p.hosts[1], &info);
	assert_false(info.is_opener);
	assert_int_equal(info.sent, 0);
	assert_int_equal(info.delivered, 3);
	assert_int_equal(info.released, 1);
	assert_int_equal(info.bytes_delivered, 300);
	/* Both close: one waits until all is settled. */
	assert_int_equal(lab_channel(&p.hosts[0], MRC_EV_CH_CLOSE, ids[0]), 0);
	info_of(&p.hosts[0], &info);
	assert_string_equal(info.state, "closing");
	for (uint64_t i = 1; i < 3; i++)
		assert_int_equal(lab_msg(&p.hosts[1], MRC_EV_RELEASE, ids[1], i, 0), 0);
	lab_pair_run(&p, 50 * MRC_MS);
	assert_int_equal(lab_info(&p.hosts[0]).channel_count, 0);
	lab_pair_fini(&p);
}

static void what_waits_for_credit_is_shown_as_queued(void **state)
{
	struct mrc_channel_info info;
	struct lab_host h;
	uint32_t id;

	lab_solo_up(&h, 1, false);
	id = lab_solo_channel(&h, false);
	for (uint32_t i = 0; i < 4; i++) /* the ring takes two of these */
		assert_int_equal(lab_send(&h, id, 30000, MRC_LVL_COMMITTED, i), 0);
	lab_pump(&h);
	info_of(&h, &info);
	assert_int_equal(info.sent, 4);
	assert_int_equal(info.sends_queued, 2);
	lab_host_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_state_and_reason_has_a_word_of_its_own),
		cmocka_unit_test(a_walk_meets_every_channel_once),
		cmocka_unit_test(every_round_trip_of_a_path_is_kept_by_length),
		cmocka_unit_test(numbers_shown_are_those_of_both_directions),
		cmocka_unit_test(what_waits_for_credit_is_shown_as_queued),
	};

	return cmocka_run_group_tests_name("conn_info", tests, NULL, NULL);
}
