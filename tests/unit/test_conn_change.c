/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_conn_change: paths are added and taken away while messages travel, and timers are others. */
#include "engine_lab.h"

enum { A, B };

/* With memory for more paths than they have. */
static void host_grow(struct lab_host *h, const char *host, const char *peer, uint64_t boot_id,
		      uint8_t path_count)
{
	struct mrc_conn_config config = {
		.host = host,
		.peer = peer,
		.boot_id = boot_id,
		.seed = 7,
		.path_count = path_count,
		.paths_max = LAB_PATHS_MAX,
		.limits = {.channels_max = 8, .frames_in_flight_max = 256},
		.alloc = {lab_alloc_take, lab_alloc_give, &h->memory},
	};

	mrc_conn_free(h->conn);
	assert_int_equal(mrc_conn_new(&config, &h->conn), 0);
}

static void pair_up(struct lab_pair *p, uint8_t path_count)
{
	lab_pair_init(p, path_count, NULL);
	host_grow(&p->hosts[A], "a", "b", LAB_BOOT_A, path_count);
	host_grow(&p->hosts[B], "b", "a", LAB_BOOT_B, path_count);
	p->path_count = LAB_PATHS_MAX;
	for (uint8_t i = 0; i < LAB_PATHS_MAX; i++)
		p->delay_ns[i] = LAB_DELAY_NS;
	lab_timer(&p->hosts[A]);
	lab_pair_run(p, 20 * MRC_MS);
	for (int h = 0; h < 2; h++)
		assert_int_equal(lab_info(&p->hosts[h]).paths_good, path_count);
}

static void add(struct lab_pair *p, uint8_t index)
{
	for (int h = B; h >= A; h--)
		assert_int_equal(mrc_conn_path_add(p->hosts[h].conn, index, p->now_ns), 0);
	lab_pair_run(p, 50 * MRC_MS);
}

/* At one host; the other sees the transport go. */
static void take_away(struct lab_pair *p, int h, uint8_t index)
{
	assert_int_equal(mrc_conn_path_remove(p->hosts[h].conn, index), -EBUSY);
	assert_int_equal(lab_path(&p->hosts[h], MRC_EV_DENY, index, MRC_REASON_NONE), 0);
	lab_pair_pump(p);
	/* An attempt may be under way; whoever takes the path away ends it. */
	assert_int_equal(lab_path(&p->hosts[h], MRC_EV_PATH_FAILED, index, MRC_REASON_CONNECT), 0);
	assert_int_equal(mrc_conn_path_remove(p->hosts[h].conn, index), 0);
}

static void send_all(struct lab_pair *p, uint32_t id, uint32_t count)
{
	static uint64_t cookie = 1000;

	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(lab_send(&p->hosts[A], id, 200000, MRC_LVL_COMMITTED, ++cookie),
				 0);
		lab_pair_run(p, 200 * MRC_US);
	}
	lab_pair_run(p, 50 * MRC_MS);
	for (uint32_t i = 0; i < count; i++)
		lab_done_is(&p->hosts[A], cookie - i, MRC_OUT_OK);
}

static void a_path_more_carries_its_share_and_disturbs_nobody(void **state)
{
	struct mrc_path_info before;
	uint32_t ids[2];
	struct lab_pair p;

	pair_up(&p, 2);
	lab_pair_channel(&p, false, ids);
	send_all(&p, ids[A], 4);
	before = lab_path_info(&p.hosts[A], 0);
	add(&p, 2);
	assert_int_equal(lab_info(&p.hosts[A]).paths_listed, 3);
	assert_int_equal(lab_info(&p.hosts[A]).paths_good, 3);
	send_all(&p, ids[A], 20);
	assert_true(lab_path_info(&p.hosts[A], 2).bytes_sent > 0);
	assert_int_equal(lab_path_info(&p.hosts[A], 0).epoch, before.epoch);
	assert_int_equal(lab_path_info(&p.hosts[A], 0).bad_count, 0);
	assert_true(lab_path_info(&p.hosts[A], 0).frames_sent >= before.frames_sent);
	lab_pair_fini(&p);
}

static void slots_are_taken_one_after_the_other_and_not_twice(void **state)
{
	struct lab_host h;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
	assert_int_equal(mrc_conn_path_add(h.conn, 1, h.now_ns), -EINVAL); /* no memory for it */
	host_grow(&h, "a", "b", LAB_BOOT_A, 1);
	assert_int_equal(mrc_conn_path_add(h.conn, 0, h.now_ns), -EEXIST);
	assert_int_equal(mrc_conn_path_add(h.conn, 2, h.now_ns), -EINVAL);
	assert_int_equal(mrc_conn_path_add(h.conn, LAB_PATHS_MAX, h.now_ns), -EINVAL);
	assert_int_equal(mrc_conn_path_add(h.conn, 1, h.now_ns), 0);
	assert_int_equal(mrc_conn_path_remove(h.conn, 2), -EINVAL);
	lab_host_fini(&h);
}

static void a_path_is_taken_away_under_messages_and_they_all_arrive_once(void **state)
{
	static uint64_t cookie = 5000;
	uint32_t ids[2], from;
	struct lab_pair p;

	pair_up(&p, 3);
	lab_pair_channel(&p, false, ids);
	from = p.hosts[B].log_count;
	for (int i = 0; i < 8; i++)
		assert_int_equal(lab_send(&p.hosts[A], ids[A], 500000, MRC_LVL_COMMITTED, ++cookie),
				 0);
	lab_pair_run(&p, 45 * MRC_US);
	assert_true(lab_path_info(&p.hosts[A], 1).frames_in_flight > 0);
	take_away(&p, A, 1);
	assert_true(lab_path_info(&p.hosts[A], 1).is_absent);
	assert_int_equal(lab_info(&p.hosts[A]).paths_listed, 2);
	lab_pair_run(&p, 100 * MRC_MS);
	for (int i = 0; i < 8; i++)
		lab_done_is(&p.hosts[A], cookie - (uint64_t)i, MRC_OUT_OK);
	assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_DELIVER, from), 8);
	/* Nobody tries to bring it back. */
	from = p.hosts[A].log_count;
	lab_pair_run(&p, 3 * MRC_S);
	assert_int_equal(lab_count(&p.hosts[A], MRC_ACT_CONNECT, from), 0);
	lab_pair_fini(&p);
}

static void who_has_the_slot_next_counts_epochs_on_and_all_else_from_nothing(void **state)
{
	uint32_t ids[2], epoch;
	struct lab_pair p;

	pair_up(&p, 2);
	lab_pair_channel(&p, false, ids);
	send_all(&p, ids[A], 4);
	epoch = lab_path_info(&p.hosts[A], 1).epoch;
	take_away(&p, A, 1);
	take_away(&p, B, 1);
	lab_pair_run(&p, 5 * MRC_MS); /* what they told each other has come */
	add(&p, 1);
	assert_int_equal(lab_info(&p.hosts[A]).paths_listed, 2);
	assert_int_equal(lab_path_info(&p.hosts[A], 1).epoch, epoch + 1);
	assert_int_equal(lab_path_info(&p.hosts[A], 1).state, MRC_PATH_GOOD);
	assert_int_equal(lab_path_info(&p.hosts[A], 1).good_count, 1);
	assert_int_equal(lab_path_info(&p.hosts[A], 1).bytes_sent, 0);
	assert_int_equal(lab_path_info(&p.hosts[A], 1).reason, MRC_REASON_NONE);
	send_all(&p, ids[A], 8);
	assert_true(lab_path_info(&p.hosts[A], 1).bytes_sent > 0);
	lab_pair_fini(&p);
}

/* A path's key to landing memory is of a device that the next path there may not have. */
static void the_next_path_in_a_slot_has_no_key_of_the_one_before(void **state)
{
	uint32_t ids[2];
	struct lab_pair p;

	pair_up(&p, 2);
	lab_pair_channel(&p, false, ids);
	assert_int_equal(lab_key(&p.hosts[B], 1, true, 77, 0), 0);
	lab_pair_run(&p, MRC_MS);
	assert_true(p.hosts[B].conn->flows->keys[1].is_given);
	take_away(&p, B, 1);
	assert_false(p.hosts[B].conn->flows->keys[1].is_given);
	lab_pair_fini(&p);
}

static int up_as(struct lab_host *h, uint8_t index, uint16_t path_id, uint32_t path_epoch)
{
	struct mrc_event_in ev = {
		.kind = MRC_EV_PATH_UP,
		.path = {.index = index,
			 .path_id = path_id,
			 .conn_epoch = LAB_EPOCH,
			 .path_epoch = path_epoch,
			 .peer_boot_id = LAB_BOOT_A,
			 .version = 2},
	};

	return lab_handle(h, &ev);
}

/* The peer has taken a path away and given its number to another one, which comes up elsewhere here. */
static void a_number_is_another_paths_when_the_old_one_is_fenced(void **state)
{
	struct lab_host h;

	lab_host_init(&h, "b", "a", LAB_BOOT_B, 3, NULL);
	h.fences = false;
	assert_int_equal(up_as(&h, 0, 0, 4), 0);
	assert_int_equal(up_as(&h, 1, 1, 4), 0);
	lab_pump(&h);
	/* An epoch that the number has had cannot be new. */
	assert_int_equal(up_as(&h, 2, 1, 4), -EINVAL);
	/* And the two HELLOs shall not agree on it again. */
	assert_int_equal(h.conn->paths[2].epoch_last, 4);
	assert_int_equal(up_as(&h, 2, 1, 5), -EBUSY);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_FENCE, 0), 1);
	assert_int_equal(lab_find(&h, MRC_ACT_FENCE, 0, 0)->path.index, 1);
	assert_int_equal(up_as(&h, 2, 1, 5), -EBUSY); /* it is not confirmed */
	assert_int_equal(lab_path(&h, MRC_EV_FENCED, 1, MRC_REASON_NONE), 0);
	assert_int_equal(up_as(&h, 2, 1, 5), 0);
	assert_int_equal(h.conn->paths[2].path_id, 1);
	assert_false(h.conn->paths[1].is_known);
	/* What the old one wrote is over, what the new one writes is not. */
	assert_true(h.conn->paths[2].fenced_epoch >= 4);
	assert_true(h.conn->paths[2].fenced_epoch < 5);
	assert_int_equal(lab_path_info(&h, 0).state, MRC_PATH_PROBING);
	lab_host_fini(&h);
}

static void other_timers_are_kept_from_then_on(void **state)
{
	struct mrc_limits limits = {.probe_interval_ns = 7 * MRC_MS,
				    .suspect_floor_ns = 3 * MRC_MS,
				    .backoff_min_ns = 40 * MRC_MS,
				    .backoff_max_ns = 80 * MRC_MS};
	struct lab_pair p;
	uint32_t ids[2], from;

	pair_up(&p, 2);
	lab_pair_channel(&p, false, ids);
	mrc_limits_complete(&limits);
	for (int h = 0; h < 2; h++)
		mrc_conn_set_timers(p.hosts[h].conn, &limits);
	assert_int_equal(p.hosts[A].conn->limits.probe_interval_ns, 7 * MRC_MS);
	assert_int_equal(p.hosts[A].conn->limits.frames_in_flight_max, 256); /* no timer */
	assert_int_equal(p.hosts[A].conn->paths[0].floor_ns, 3 * MRC_MS);
	assert_int_equal(p.hosts[A].conn->paths[0].backoff_ns, 40 * MRC_MS);
	send_all(&p, ids[A], 1);
	from = p.hosts[A].log_count;
	lab_pair_run(&p, 700 * MRC_MS);
	/* Each answer puts the next probe off; with the timer before there were half as many. */
	assert_in_range(lab_posted_count(&p.hosts[A], MRC_WIRE_PROBE, from), 60, 210);
	lab_pair_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_more_carries_its_share_and_disturbs_nobody),
		cmocka_unit_test(slots_are_taken_one_after_the_other_and_not_twice),
		cmocka_unit_test(a_path_is_taken_away_under_messages_and_they_all_arrive_once),
		cmocka_unit_test(who_has_the_slot_next_counts_epochs_on_and_all_else_from_nothing),
		cmocka_unit_test(the_next_path_in_a_slot_has_no_key_of_the_one_before),
		cmocka_unit_test(a_number_is_another_paths_when_the_old_one_is_fenced),
		cmocka_unit_test(other_timers_are_kept_from_then_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
