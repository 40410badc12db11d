/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_conn: channels and messages between two engines, from open to close, over resets. */
#include "engine_lab.h"

enum { A, B };

/* ---- life ---- */

static void wrong_configurations_are_refused(void **state)
{
	const struct {
		const char *name;
		struct mrc_conn_config config;
	} rows[] = {
		{"no paths", {.host = "a", .peer = "b", .boot_id = 1, .path_count = 0}},
		{"too many paths",
		 {.host = "a", .peer = "b", .boot_id = 1, .path_count = MRC_PATHS_MAX + 1}},
		{"no boot id", {.host = "a", .peer = "b", .path_count = 1}},
		{"no host", {.host = "", .peer = "b", .boot_id = 1, .path_count = 1}},
		{"peer's name too long",
		 {.host = "a",
		  .peer = "0123456789012345678901234567890123456789012345678901234567890123",
		  .boot_id = 1,
		  .path_count = 1}},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab_alloc memory = {0};
		struct mrc_conn_config config = rows[i].config;
		struct mrc_conn *conn = NULL;

		config.alloc = (struct mrc_alloc){lab_alloc_take, lab_alloc_give, &memory};
		if (mrc_conn_new(&config, &conn) != -EINVAL || conn || memory.live)
			fail_msg("%s", rows[i].name);
	}
}

/* The n-th allocation fails, for each n until a run ends untouched. */
static void want_of_memory_fails_a_conn_and_leaks_nothing(void **state)
{
	uint64_t n;

	for (n = 1; n < 100; n++) {
		struct lab_alloc memory = {.fail_at = n};
		struct mrc_conn_config config = {
			.host = "a",
			.peer = "b",
			.boot_id = 1,
			.path_count = 2,
			.limits = {.channels_max = 2, .frames_in_flight_max = 64},
			.alloc = {lab_alloc_take, lab_alloc_give, &memory},
		};
		struct mrc_conn *conn;
		int r = mrc_conn_new(&config, &conn);

		if (r == 0)
			mrc_conn_free(conn);
		else
			assert_int_equal(r, -ENOMEM);
		assert_int_equal(memory.live, 0);
		if (r == 0)
			break;
	}
	assert_in_range(n, 5, 99);
	mrc_conn_free(NULL);
}

static void want_of_memory_fails_an_open_and_changes_nothing(void **state)
{
	struct lab_host h;
	uint32_t id;
	int r;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
	for (int n = 1; n < 20; n++) {
		h.memory.fail_at = h.memory.taken + (uint64_t)n;
		r = lab_open_at(&h, "svc", false, &id);
		if (r == 0) {
			assert_true(h.memory.taken < h.memory.fail_at); /* none was refused */
			break;
		}
		assert_int_equal(r, -ENOMEM);
		assert_int_equal(lab_info(&h).channel_count, 0);
	}
	assert_int_equal(r, 0);
	lab_host_fini(&h);
}

static void opens_out_of_range_are_refused(void **state)
{
	const struct {
		const char *name;
		uint32_t window;
		uint64_t ring_bytes;
		const char *service;
		int want;
	} rows[] = {
		{"fine", 16, 4096, "svc", 0},
		{"window of one", 1, 4096, "svc", 0},
		{"no window", 0, 4096, "svc", -EINVAL},
		{"no power of two", 12, 4096, "svc", -EINVAL},
		{"window too large", 2 * MRC_WINDOW_MAX, 4096, "svc", -EINVAL},
		{"no ring", 16, 0, "svc", -EINVAL},
		{"no service", 16, 4096, "", -EINVAL},
		{"service too long", 16, 4096,
		 "0123456789012345678901234567890123456789012345678901234567890123", -EINVAL},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab_host h;
		uint32_t id;
		int r;

		lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
		h.window = rows[i].window;
		h.ring_bytes = rows[i].ring_bytes;
		r = lab_open_at(&h, rows[i].service, false, &id);
		if (r != rows[i].want)
			fail_msg("%s: answer %d, want %d", rows[i].name, r, rows[i].want);
		assert_int_equal(lab_info(&h).channel_count, r == 0);
		lab_host_fini(&h);
	}
}

static void channels_have_a_bound(void **state)
{
	struct lab_host h;
	uint32_t id;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
	for (int i = 0; i < 8; i++)
		assert_int_equal(lab_open_at(&h, "svc", false, &id), 0);
	assert_int_equal(lab_open_at(&h, "svc", false, &id), -ENOSPC);
	lab_host_fini(&h);
}

static void events_for_nobody_are_refused(void **state)
{
	struct lab_host h;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
	assert_int_equal(lab_channel(&h, MRC_EV_CH_CLOSE, 77), -ENOENT);
	assert_int_equal(lab_send(&h, 77, 1, MRC_LVL_PLACED, 0), -ENOENT);
	assert_int_equal(lab_msg(&h, MRC_EV_RELEASE, 0, 0, 0), -ENOENT);
	assert_int_equal(lab_carrier(&h, 1, true), -EINVAL);
	lab_host_fini(&h);
}

/* ---- messages ---- */

static void messages_of_all_sizes_arrive_once_and_in_order(void **state)
{
	const uint64_t lens[] = {0, 1, 4096, 32768, 32769, 0, 1000000, 3, 131072, 131073, 0};
	struct lab_pair p;
	uint32_t ids[2];

	for (uint8_t paths = 1; paths <= 3; paths++) {
		lab_pair_up(&p, paths, NULL);
		lab_pair_channel(&p, false, ids);
		for (int dir = 0; dir < 2; dir++) {
			struct lab_host *from = &p.hosts[dir], *to = &p.hosts[!dir];

			for (uint32_t i = 0; i < MRC_ARRAY_LEN(lens); i++)
				assert_int_equal(lab_send(from, ids[dir], lens[i],
							  MRC_LVL_COMMITTED, i),
						 0);
			lab_pair_run(&p, 50 * MRC_MS);
			assert_int_equal(lab_count(to, MRC_ACT_DELIVER, 0), MRC_ARRAY_LEN(lens));
			for (uint32_t i = 0; i < MRC_ARRAY_LEN(lens); i++) {
				const struct mrc_action *d = lab_find(to, MRC_ACT_DELIVER, 0, i);

				assert_int_equal(d->msg.number, i);
				assert_int_equal(d->msg.len, lens[i]);
				lab_done_is(from, i, MRC_OUT_OK);
			}
			assert_int_equal(lab_info(to).duplicates, 0);
		}
		lab_pair_fini(&p);
	}
}

static void a_channel_goes_on_for_many_windows(void **state)
{
	struct lab_pair p;
	uint32_t ids[2];
	uint32_t sent = 0;

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	while (sent < 40 * LAB_WINDOW) {
		while (lab_send(&p.hosts[A], ids[A], 5000 + 400 * (sent % 90), MRC_LVL_COMMITTED,
				sent) == 0)
			sent++;
		lab_pair_run(&p, MRC_MS);
	}
	lab_pair_run(&p, 10 * MRC_MS);
	assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_DELIVER, 0), sent);
	assert_int_equal(lab_count(&p.hosts[A], MRC_ACT_DONE, 0), sent);
	lab_pair_fini(&p);
}

static void a_refused_send_is_told_when_there_is_room(void **state)
{
	struct lab_pair p;
	uint32_t ids[2], from;

	lab_pair_up(&p, 1, NULL);
	lab_pair_channel(&p, false, ids);
	p.hosts[B].releases = false;
	for (uint32_t i = 0; i < LAB_WINDOW; i++)
		assert_int_equal(lab_send(&p.hosts[A], ids[A], 1, MRC_LVL_PLACED, i), 0);
	assert_int_equal(lab_send(&p.hosts[A], ids[A], 1, MRC_LVL_PLACED, 99), -ENOSPC);
	from = p.hosts[A].log_count;
	lab_pair_run(&p, 10 * MRC_MS);
	assert_null(lab_find(&p.hosts[A], MRC_ACT_CH_ROOM, from, 0)); /* nothing is final yet */
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_RELEASE, ids[B], 0, 0), 0);
	lab_pair_run(&p, 10 * MRC_MS);
	assert_int_equal(lab_count(&p.hosts[A], MRC_ACT_CH_ROOM, from), 1);
	assert_int_equal(lab_send(&p.hosts[A], ids[A], 1, MRC_LVL_PLACED, 99), 0);
	lab_pair_fini(&p);
}

static void credit_holds_the_sender_and_makes_no_path_bad(void **state)
{
	struct lab_pair p;
	uint32_t ids[2];

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	p.hosts[B].releases = false;
	/* The ring takes two of these. */
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(lab_send(&p.hosts[A], ids[A], 30000, MRC_LVL_PLACED, i), 0);
	lab_pair_run(&p, 3 * MRC_S);
	assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_DELIVER, 0), 2);
	for (uint8_t i = 0; i < 2; i++) {
		assert_int_equal(lab_path_info(&p.hosts[A], i).state, MRC_PATH_GOOD);
		assert_int_equal(lab_path_info(&p.hosts[A], i).bad_count, 0);
	}
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_RELEASE, ids[B], 0, 0), 0);
	lab_pair_run(&p, MRC_MS);
	assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_DELIVER, 0), 3);
	lab_pair_fini(&p);
}

static void levels_are_answered_when_reached_and_not_before(void **state)
{
	const struct {
		enum mrc_lvl level;
		int after; /* which event brings the answer: 0 delivery, 1 VISIBLE, 2 COMMIT */
	} rows[] = {{MRC_LVL_PLACED, 0}, {MRC_LVL_VISIBLE, 1}, {MRC_LVL_COMMITTED, 2}};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab_pair p;
		uint32_t ids[2];
		int outcome;

		lab_pair_up(&p, 2, NULL);
		lab_pair_channel(&p, false, ids);
		p.hosts[B].releases = false;
		assert_int_equal(lab_send(&p.hosts[A], ids[A], 100, rows[i].level, 5), 0);
		for (int step = 0; step < 3; step++) {
			if (step == 1)
				assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_VISIBLE, ids[B], 0, 0),
						 0);
			if (step == 2)
				assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_COMMIT, ids[B], 0, 0),
						 0);
			lab_pair_run(&p, 5 * MRC_MS);
			assert_int_equal(lab_done(&p.hosts[A], 5, &outcome), step >= rows[i].after);
		}
		lab_done_is(&p.hosts[A], 5, MRC_OUT_OK);
		lab_pair_fini(&p);
	}
}

static void verdicts_are_given_once_and_about_what_was_delivered(void **state)
{
	struct lab_pair p;
	uint32_t ids[2];

	lab_pair_up(&p, 1, NULL);
	lab_pair_channel(&p, false, ids);
	p.hosts[B].releases = false;
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_COMMIT, ids[B], 0, 0), -EINVAL);
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_COMMIT_ASK, ids[B], 0, 0), -EINVAL);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(lab_send(&p.hosts[A], ids[A], 10, MRC_LVL_COMMITTED, i), 0);
	lab_pair_run(&p, MRC_MS);
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_COMMIT_ASK, ids[B], 0, 0), 0);
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_REJECT, ids[B], 0, 1234), 0);
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_COMMIT_ASK, ids[B], 0, 0), -EALREADY);
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_COMMIT, ids[B], 0, 0), -EALREADY);
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_REJECT, ids[B], 0, 1), -EALREADY);
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_COMMIT, ids[B], 1, 0), 0);
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_RELEASE, ids[B], 0, 0), 0);
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_RELEASE, ids[B], 0, 0), -EALREADY);
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_COMMIT, ids[B], 2, 0), -EINVAL);
	lab_pair_run(&p, 5 * MRC_MS);
	lab_done_is(&p.hosts[A], 0, MRC_OUT_REJECTED);
	lab_done_is(&p.hosts[A], 1, MRC_OUT_OK);
	assert_int_equal(lab_find(&p.hosts[A], MRC_ACT_DONE, 0, 0)->msg.code, 1234);
	lab_pair_fini(&p);
}

/* Several messages at once, of which one was given back before. */
static void one_event_takes_or_gives_back_several(void **state)
{
	struct mrc_event_in ev = {.kind = MRC_EV_VISIBLE, .msg = {.number = 1, .more = 2}};
	struct lab_pair p;
	uint32_t ids[2];
	int outcome;

	lab_pair_up(&p, 1, NULL);
	lab_pair_channel(&p, false, ids);
	p.hosts[B].releases = false;
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(lab_send(&p.hosts[A], ids[A], 10,
					  i < 4 ? MRC_LVL_VISIBLE : MRC_LVL_COMMITTED, i),
				 0);
	lab_pair_run(&p, 5 * MRC_MS);
	ev.msg.channel = ids[B];
	assert_int_equal(lab_handle(&p.hosts[B], &ev), 0);
	lab_pair_run(&p, 5 * MRC_MS);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(lab_done(&p.hosts[A], i, &outcome), i >= 1 && i <= 3);

	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_RELEASE, ids[B], 2, 0), 0);
	ev.kind = MRC_EV_RELEASE;
	ev.msg.number = 0;
	ev.msg.more = 4;
	assert_int_equal(lab_handle(&p.hosts[B], &ev), 0);
	assert_int_equal(lab_handle(&p.hosts[B], &ev), -EALREADY);
	lab_pair_run(&p, 5 * MRC_MS);
	for (uint32_t i = 0; i < 5; i++)
		lab_done_is(&p.hosts[A], i, MRC_OUT_OK);
	/* Beyond what was delivered there is nothing. */
	ev.kind = MRC_EV_VISIBLE;
	assert_int_equal(lab_handle(&p.hosts[B], &ev), -EALREADY);
	ev.msg.more = 5;
	assert_int_equal(lab_handle(&p.hosts[B], &ev), -EINVAL);
	lab_pair_fini(&p);
}

/* The LEVEL is lost with its path; the count must not commit what was rejected. */
static void a_rejection_survives_the_path_it_went_by(void **state)
{
	struct lab_pair p;
	uint32_t ids[2];

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	p.hosts[B].releases = false;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(lab_send(&p.hosts[A], ids[A], 10, MRC_LVL_COMMITTED, i), 0);
	lab_pair_run(&p, MRC_MS);
	p.is_silent[0][B] = true;
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_REJECT, ids[B], 0, 7), 0);
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_COMMIT, ids[B], 1, 0), 0);
	lab_pair_run(&p, 100 * MRC_MS);
	lab_done_is(&p.hosts[A], 0, MRC_OUT_REJECTED);
	lab_done_is(&p.hosts[A], 1, MRC_OUT_OK);
	lab_pair_fini(&p);
}

/* Both ends know it, all of its fragments say it, and no other may come. */
static void a_channel_says_that_it_has_no_checksums(void **state)
{
	for (int is_unchecked = 0; is_unchecked < 2; is_unchecked++) {
		struct mrc_channel_info info;
		uint32_t frags = 0, iter = 0, ids[2];
		struct lab_pair p;

		lab_pair_up(&p, 2, NULL);
		p.hosts[A].is_unchecked = is_unchecked;
		lab_pair_channel(&p, false, ids);
		assert_int_equal(
			lab_find(&p.hosts[B], MRC_ACT_CH_INCOMING, 0, 0)->channel.is_unchecked,
			is_unchecked);
		assert_int_equal(lab_send(&p.hosts[A], ids[A], 100000, MRC_LVL_COMMITTED, 0), 0);
		assert_int_equal(lab_send(&p.hosts[B], ids[B], 0, MRC_LVL_COMMITTED, 0), 0);
		lab_pair_run(&p, 20 * MRC_MS);
		lab_done_is(&p.hosts[A], 0, MRC_OUT_OK);
		lab_done_is(&p.hosts[B], 0, MRC_OUT_OK);
		for (int side = 0; side < 2; side++) {
			const struct lab_host *h = &p.hosts[side];

			for (uint32_t i = 0; i < h->log_count; i++) {
				const struct mrc_wire_hdr *hdr = &h->log[i].post.hdr;

				if (h->log[i].kind != MRC_ACT_POST || hdr->type != MRC_WIRE_FRAG)
					continue;
				frags++;
				assert_int_equal(!(hdr->flags & MRC_WIRE_F_UNCHECKED),
						 !is_unchecked);
			}
		}
		assert_true(frags > 2);
		assert_true(mrc_conn_channel_info(p.hosts[B].conn, &iter, &info));
		assert_int_equal(info.is_unchecked, is_unchecked);
		lab_pair_fini(&p);
	}
}

static void an_unordered_channel_delivers_what_is_whole(void **state)
{
	for (int is_unordered = 0; is_unordered < 2; is_unordered++) {
		struct lab_pair p;
		uint32_t ids[2];

		lab_pair_up(&p, 2, NULL);
		lab_pair_channel(&p, is_unordered, ids);
		p.hosts[B].lands = false; /* the first has to wait for a buffer */
		assert_int_equal(lab_send(&p.hosts[A], ids[A], 100000, MRC_LVL_COMMITTED, 0), 0);
		assert_int_equal(lab_send(&p.hosts[A], ids[A], 10, MRC_LVL_COMMITTED, 1), 0);
		lab_pair_run(&p, 5 * MRC_MS);
		assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_DELIVER, 0), is_unordered);
		if (is_unordered)
			assert_int_equal(lab_find(&p.hosts[B], MRC_ACT_DELIVER, 0, 0)->msg.number,
					 1);
		assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_LANDING, ids[B], 0, 4096), 0);
		lab_pair_run(&p, 20 * MRC_MS);
		assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_DELIVER, 0), 2);
		lab_done_is(&p.hosts[A], 0, MRC_OUT_OK);
		lab_done_is(&p.hosts[A], 1, MRC_OUT_OK);
		lab_pair_fini(&p);
	}
}

static void landing_buffers_are_asked_for_one_by_one_and_in_order(void **state)
{
	struct lab_pair p;
	uint32_t ids[2];

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	p.hosts[B].lands = false;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(lab_send(&p.hosts[A], ids[A], 50000, MRC_LVL_PLACED, i), 0);
	for (uint32_t i = 0; i < 3; i++) {
		lab_pair_run(&p, 5 * MRC_MS);
		assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_LANDING_WANT, 0), i + 1);
		assert_int_equal(lab_find(&p.hosts[B], MRC_ACT_LANDING_WANT, 0, i)->msg.number, i);
		assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_LANDING, ids[B], i, 65536 * i), 0);
		assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_LANDING, ids[B], i, 0), -ENOENT);
	}
	lab_pair_run(&p, 5 * MRC_MS);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(lab_find(&p.hosts[B], MRC_ACT_DELIVER, 0, i)->msg.addr, 65536 * i);
	/* Released as they were delivered: each buffer comes back once. */
	assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_LANDING_FREE, 0), 3);
	lab_pair_fini(&p);
}

static void the_data_path_takes_no_memory(void **state)
{
	struct lab_pair p;
	uint32_t ids[2];
	uint64_t taken[2];
	uint32_t sent = 0;

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	for (int h = 0; h < 2; h++)
		taken[h] = p.hosts[h].memory.taken;
	while (sent < 8 * LAB_WINDOW) {
		while (lab_send(&p.hosts[A], ids[A], sent % 3 ? 9000 : 70000, MRC_LVL_VISIBLE,
				sent) == 0)
			sent++;
		lab_pair_run(&p, MRC_MS);
		if (sent == 4 * LAB_WINDOW) /* trouble takes none either */
			p.is_silent[0][A] = p.is_silent[0][B] = true;
	}
	p.is_silent[0][A] = p.is_silent[0][B] = false;
	lab_pair_run(&p, MRC_S);
	assert_int_equal(lab_count(&p.hosts[A], MRC_ACT_DONE, 0), sent);
	assert_true(lab_path_info(&p.hosts[A], 0).good_count > 1);
	for (int h = 0; h < 2; h++)
		assert_int_equal(p.hosts[h].memory.taken, taken[h]);
	lab_pair_fini(&p);
}

/* ---- beginnings and ends ---- */

static void a_refusal_reaches_the_opener_with_its_code(void **state)
{
	struct mrc_event_in ev = {
		.kind = MRC_EV_CH_REFUSE,
		.channel = {.outcome = MRC_OUT_NO_SERVICE, .code = 31},
	};
	const struct mrc_action *down;
	struct lab_pair p;
	uint32_t id;

	lab_pair_up(&p, 2, NULL);
	p.hosts[B].accepts = false;
	assert_int_equal(lab_open_at(&p.hosts[A], "svc", false, &id), 0);
	assert_int_equal(lab_send(&p.hosts[A], id, 10, MRC_LVL_PLACED, 1), 0);
	lab_pair_run(&p, MRC_MS);
	ev.channel.id = lab_find(&p.hosts[B], MRC_ACT_CH_INCOMING, 0, 0)->channel.id;
	assert_int_equal(lab_handle(&p.hosts[B], &ev), 0);
	assert_int_equal(lab_handle(&p.hosts[B], &ev), -ENOENT);
	lab_pair_run(&p, 5 * MRC_MS);
	down = lab_find(&p.hosts[A], MRC_ACT_CH_DOWN, 0, 0);
	assert_non_null(down);
	assert_int_equal(down->channel.outcome, MRC_OUT_NO_SERVICE);
	assert_int_equal(down->channel.code, 31);
	lab_done_is(&p.hosts[A], 1, MRC_OUT_NO_SERVICE);
	for (int h = 0; h < 2; h++)
		assert_int_equal(lab_info(&p.hosts[h]).channel_count, 0);
	lab_pair_fini(&p);
}

static void a_close_lets_all_be_settled_first(void **state)
{
	struct lab_pair p;
	uint32_t ids[2];

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	p.hosts[B].releases = false;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(lab_send(&p.hosts[A], ids[A], i * 40000, MRC_LVL_COMMITTED, i), 0);
	assert_int_equal(lab_channel(&p.hosts[A], MRC_EV_CH_CLOSE, ids[A]), 0);
	assert_int_equal(lab_send(&p.hosts[A], ids[A], 1, MRC_LVL_PLACED, 9), -ENOENT);
	lab_pair_run(&p, 50 * MRC_MS);
	for (int h = 0; h < 2; h++)
		assert_null(lab_find(&p.hosts[h], MRC_ACT_CH_DOWN, 0, 0));
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_RELEASE, ids[B], i, 0), 0);
	lab_pair_run(&p, 50 * MRC_MS);
	for (int h = 0; h < 2; h++) {
		const struct mrc_action *down = lab_find(&p.hosts[h], MRC_ACT_CH_DOWN, 0, 0);

		assert_non_null(down);
		assert_int_equal(down->channel.outcome, MRC_OUT_OK);
		assert_int_equal(lab_count(&p.hosts[h], MRC_ACT_CH_FREE, 0), 1);
		assert_int_equal(lab_info(&p.hosts[h]).channel_count, 0);
	}
	for (uint32_t i = 0; i < 3; i++)
		lab_done_is(&p.hosts[A], i, MRC_OUT_OK);
	lab_pair_fini(&p);
}

static void both_may_close_at_once(void **state)
{
	struct lab_pair p;
	uint32_t ids[2];

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	for (int h = 0; h < 2; h++) {
		assert_int_equal(lab_send(&p.hosts[h], ids[h], 100, MRC_LVL_COMMITTED, 1), 0);
		assert_int_equal(lab_channel(&p.hosts[h], MRC_EV_CH_CLOSE, ids[h]), 0);
	}
	lab_pair_run(&p, 50 * MRC_MS);
	for (int h = 0; h < 2; h++) {
		lab_done_is(&p.hosts[h], 1, MRC_OUT_OK);
		assert_int_equal(lab_count(&p.hosts[h], MRC_ACT_CH_DOWN, 0), 1);
		assert_int_equal(lab_count(&p.hosts[h], MRC_ACT_CH_FREE, 0), 1);
		assert_int_equal(lab_info(&p.hosts[h]).channel_count, 0);
	}
	lab_pair_fini(&p);
}

static void a_dead_client_is_told_to_the_other(void **state)
{
	for (int dead = 0; dead < 2; dead++) {
		struct lab_pair p;
		const struct mrc_action *down;
		uint32_t ids[2];

		lab_pair_up(&p, 2, NULL);
		lab_pair_channel(&p, false, ids);
		p.hosts[A].releases = p.hosts[B].releases = false;
		for (int h = 0; h < 2; h++) {
			assert_int_equal(lab_send(&p.hosts[h], ids[h], 100000, MRC_LVL_COMMITTED,
						  1),
					 0);
			lab_pair_run(&p, 100 * MRC_US);
		}
		assert_int_equal(lab_channel(&p.hosts[dead], MRC_EV_CH_ABORT, ids[dead]), 0);
		lab_pair_run(&p, 20 * MRC_MS);
		down = lab_find(&p.hosts[!dead], MRC_ACT_CH_DOWN, 0, 0);
		assert_non_null(down);
		assert_int_equal(down->channel.outcome, MRC_OUT_PEER_DIED);
		lab_done_is(&p.hosts[!dead], 1, MRC_OUT_PEER_DIED);
		/* Nobody is left to be told. */
		assert_null(lab_find(&p.hosts[dead], MRC_ACT_CH_DOWN, 0, 0));
		assert_int_equal(lab_count(&p.hosts[dead], MRC_ACT_CH_FREE, 0), 1);
		assert_int_equal(lab_info(&p.hosts[dead]).channel_count, 0);
		/* The survivor may still read what it holds; then its side is freed too. */
		if (lab_count(&p.hosts[!dead], MRC_ACT_DELIVER, 0)) {
			assert_null(lab_find(&p.hosts[!dead], MRC_ACT_CH_FREE, 0, 0));
			assert_int_equal(lab_msg(&p.hosts[!dead], MRC_EV_RELEASE, ids[!dead], 0, 0),
					 0);
		}
		lab_pair_run(&p, 20 * MRC_MS);
		assert_int_equal(lab_count(&p.hosts[!dead], MRC_ACT_CH_FREE, 0), 1);
		assert_int_equal(lab_info(&p.hosts[!dead]).channel_count, 0);
		lab_pair_fini(&p);
	}
}

/* DESIGN 6: a commit before exit counts. */
static void a_commit_before_the_end_counts(void **state)
{
	struct lab_pair p;
	uint32_t ids[2];

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	p.hosts[B].releases = false;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(lab_send(&p.hosts[A], ids[A], 10, MRC_LVL_COMMITTED, i), 0);
	lab_pair_run(&p, MRC_MS);
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_COMMIT, ids[B], 0, 0), 0);
	assert_int_equal(lab_msg(&p.hosts[B], MRC_EV_REJECT, ids[B], 1, 5), 0);
	assert_int_equal(lab_channel(&p.hosts[B], MRC_EV_CH_ABORT, ids[B]), 0);
	lab_pair_run(&p, 20 * MRC_MS);
	lab_done_is(&p.hosts[A], 0, MRC_OUT_OK);
	lab_done_is(&p.hosts[A], 1, MRC_OUT_REJECTED);
	lab_done_is(&p.hosts[A], 2, MRC_OUT_PEER_DIED);
	lab_pair_fini(&p);
}

static void a_client_may_open_before_its_peer_is_up(void **state)
{
	struct lab_pair p;
	uint32_t id;

	lab_pair_init(&p, 2, NULL);
	p.is_cut[0] = p.is_cut[1] = true;
	lab_timer(&p.hosts[A]);
	assert_int_equal(lab_open_at(&p.hosts[A], "svc", false, &id), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(lab_send(&p.hosts[A], id, 50000 * i, MRC_LVL_COMMITTED, i), 0);
	lab_pair_run(&p, 10 * MRC_S);
	assert_null(lab_find(&p.hosts[A], MRC_ACT_DONE, 0, 0));
	/* It never gave up, and did not try without pause either. */
	assert_in_range(lab_count(&p.hosts[A], MRC_ACT_CONNECT, 0), 20, 100);
	p.is_cut[0] = p.is_cut[1] = false;
	lab_pair_run(&p, 2 * MRC_S);
	for (uint32_t i = 0; i < 3; i++)
		lab_done_is(&p.hosts[A], i, MRC_OUT_OK);
	assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_DELIVER, 0), 3);
	lab_pair_fini(&p);
}

static void a_channel_closed_before_the_peer_is_up_is_gone_at_once(void **state)
{
	struct lab_host h;
	uint32_t id;

	for (int kind = 0; kind < 2; kind++) {
		lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
		assert_int_equal(lab_open_at(&h, "svc", false, &id), 0);
		assert_int_equal(lab_send(&h, id, 10, MRC_LVL_PLACED, 1), 0);
		assert_int_equal(lab_channel(&h, kind ? MRC_EV_CH_ABORT : MRC_EV_CH_CLOSE, id), 0);
		lab_pump(&h);
		if (!kind)
			lab_done_is(&h, 1, MRC_OUT_CLOSED);
		assert_int_equal(lab_count(&h, MRC_ACT_CH_FREE, 0), 1);
		assert_int_equal(lab_info(&h).channel_count, 0);
		lab_host_fini(&h);
	}
}

/* ---- conn epochs ---- */

/* Host b's daemon is killed and another begins, with nothing known. */
static void restart(struct lab_pair *p)
{
	for (uint8_t i = 0; i < p->path_count; i++)
		lab_wire_drop(p, i);
	lab_host_fini(&p->hosts[B]);
	lab_host_init(&p->hosts[B], "b", "a", 0xb2, p->path_count, NULL);
	p->hosts[B].index = B;
	p->hosts[B].pair = p;
	p->hosts[B].now_ns = p->now_ns;
	for (uint8_t i = 0; i < p->path_count; i++)
		lab_path(&p->hosts[A], MRC_EV_PATH_DOWN, i, MRC_REASON_ERROR);
}

static void a_restarted_peer_ends_sends_as_unknown_and_channels(void **state)
{
	const struct mrc_action *down;
	struct lab_pair p;
	uint32_t ids[2], again;

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	p.hosts[B].releases = false;
	assert_int_equal(lab_send(&p.hosts[A], ids[A], 10, MRC_LVL_PLACED, 0), 0);
	assert_int_equal(lab_send(&p.hosts[A], ids[A], 10, MRC_LVL_COMMITTED, 1), 0);
	p.hosts[B].lands = false; /* so that the large one stays under way */
	assert_int_equal(lab_send(&p.hosts[A], ids[A], 1000000, MRC_LVL_PLACED, 2), 0);
	lab_pair_run(&p, MRC_MS);
	restart(&p);
	lab_pair_run(&p, 2 * MRC_S);
	assert_int_equal(lab_count(&p.hosts[A], MRC_ACT_CONN_RESET, 0), 1);
	assert_int_equal(lab_info(&p.hosts[A]).resets, 1);
	assert_int_equal(lab_info(&p.hosts[A]).epoch, 2);
	assert_int_equal(lab_info(&p.hosts[B]).epoch, 2);
	lab_done_is(&p.hosts[A], 0, MRC_OUT_OK); /* placed before */
	lab_done_is(&p.hosts[A], 1, MRC_OUT_UNKNOWN);
	lab_done_is(&p.hosts[A], 2, MRC_OUT_UNKNOWN);
	down = lab_find(&p.hosts[A], MRC_ACT_CH_DOWN, 0, 0);
	assert_non_null(down);
	assert_int_equal(down->channel.outcome, MRC_OUT_UNKNOWN);
	assert_int_equal(lab_info(&p.hosts[A]).channel_count, 0);
	/* No silent resend: the new daemon hears nothing of it. */
	assert_null(lab_find(&p.hosts[B], MRC_ACT_DELIVER, 0, 0));
	/* And a new channel works. */
	assert_int_equal(lab_open_at(&p.hosts[A], "svc", false, &again), 0);
	assert_int_equal(lab_send(&p.hosts[A], again, 10, MRC_LVL_PLACED, 7), 0);
	lab_pair_run(&p, 5 * MRC_MS);
	lab_done_is(&p.hosts[A], 7, MRC_OUT_OK);
	lab_pair_fini(&p);
}

static void what_was_still_opening_opens_anew(void **state)
{
	struct lab_pair p;
	uint32_t id;

	lab_pair_up(&p, 2, NULL);
	p.hosts[B].accepts = false;
	assert_int_equal(lab_open_at(&p.hosts[A], "svc", false, &id), 0);
	assert_int_equal(lab_send(&p.hosts[A], id, 10, MRC_LVL_COMMITTED, 3), 0);
	lab_pair_run(&p, MRC_MS);
	assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_CH_INCOMING, 0), 1);
	restart(&p);
	lab_pair_run(&p, 2 * MRC_S);
	assert_null(lab_find(&p.hosts[A], MRC_ACT_CH_DOWN, 0, 0));
	lab_done_is(&p.hosts[A], 3, MRC_OUT_OK);
	assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_DELIVER, 0), 1);
	lab_pair_fini(&p);
}

static void loss_of_all_paths_for_any_time_ends_nothing(void **state)
{
	struct lab_pair p;
	uint32_t ids[2];

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	for (uint8_t i = 0; i < 2; i++) {
		p.is_cut[i] = true;
		for (int h = 0; h < 2; h++)
			lab_carrier(&p.hosts[h], i, false);
	}
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(lab_send(&p.hosts[A], ids[A], 60000 * i, MRC_LVL_COMMITTED, i), 0);
	lab_pair_run(&p, 3600 * MRC_S);
	assert_null(lab_find(&p.hosts[A], MRC_ACT_DONE, 0, 0));
	for (uint8_t i = 0; i < 2; i++) {
		p.is_cut[i] = false;
		for (int h = 0; h < 2; h++)
			lab_carrier(&p.hosts[h], i, true);
	}
	lab_pair_run(&p, 500 * MRC_MS);
	for (uint32_t i = 0; i < 3; i++)
		lab_done_is(&p.hosts[A], i, MRC_OUT_OK);
	assert_int_equal(lab_info(&p.hosts[A]).resets, 0);
	assert_int_equal(lab_info(&p.hosts[A]).epoch, 1);
	/* Connecting is a's part, also after it was up once. */
	assert_null(lab_find(&p.hosts[B], MRC_ACT_CONNECT, 0, 0));
	lab_pair_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_configurations_are_refused),
		cmocka_unit_test(want_of_memory_fails_a_conn_and_leaks_nothing),
		cmocka_unit_test(want_of_memory_fails_an_open_and_changes_nothing),
		cmocka_unit_test(opens_out_of_range_are_refused),
		cmocka_unit_test(channels_have_a_bound),
		cmocka_unit_test(events_for_nobody_are_refused),
		cmocka_unit_test(messages_of_all_sizes_arrive_once_and_in_order),
		cmocka_unit_test(a_channel_goes_on_for_many_windows),
		cmocka_unit_test(a_refused_send_is_told_when_there_is_room),
		cmocka_unit_test(credit_holds_the_sender_and_makes_no_path_bad),
		cmocka_unit_test(levels_are_answered_when_reached_and_not_before),
		cmocka_unit_test(verdicts_are_given_once_and_about_what_was_delivered),
		cmocka_unit_test(one_event_takes_or_gives_back_several),
		cmocka_unit_test(a_rejection_survives_the_path_it_went_by),
		cmocka_unit_test(a_channel_says_that_it_has_no_checksums),
		cmocka_unit_test(an_unordered_channel_delivers_what_is_whole),
		cmocka_unit_test(landing_buffers_are_asked_for_one_by_one_and_in_order),
		cmocka_unit_test(the_data_path_takes_no_memory),
		cmocka_unit_test(a_refusal_reaches_the_opener_with_its_code),
		cmocka_unit_test(a_close_lets_all_be_settled_first),
		cmocka_unit_test(both_may_close_at_once),
		cmocka_unit_test(a_dead_client_is_told_to_the_other),
		cmocka_unit_test(a_commit_before_the_end_counts),
		cmocka_unit_test(a_client_may_open_before_its_peer_is_up),
		cmocka_unit_test(a_channel_closed_before_the_peer_is_up_is_gone_at_once),
		cmocka_unit_test(a_restarted_peer_ends_sends_as_unknown_and_channels),
		cmocka_unit_test(what_was_still_opening_opens_anew),
		cmocka_unit_test(loss_of_all_paths_for_any_time_ends_nothing),
	};

	return cmocka_run_group_tests_name("conn", tests, NULL, NULL);
}
