/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_conn_state: bounds that are lower now take nothing from what is there, and hold for what is new. */
#include "conn_state_lab.h"

/* So many more of each than the limits of `tight()` allow. */
#define RESENDS 300U
#define RANGES  1500U
#define ENTRIES 40U

static struct mrc_conn_config tight(struct lab_host *h)
{
	struct mrc_conn_config config = config_of(h);

	config.limits = (struct mrc_limits){.channels_max = 1,
					    .frames_in_flight_max = 64,
					    .holds_max = 1,
					    .ranges_max = 16};
	return config;
}

static void take_over_tight(struct lab_host *h)
{
	struct mrc_conn_config config = tight(h);
	struct mrc_conn *conn;
	const char *why;
	int r = take(h, &config, &conn, &why);

	if (r)
		fail_msg("import answered %d: %s", r, why);
	assert_true(conn->slot_hint < conn->slot_count); /* where the next one is looked for */
	mrc_conn_free(h->conn);
	h->conn = conn;
}

/* Each allocation fails in turn, one for what is more than the limits allow among them. */
static void starve_tight(struct lab_host *h)
{
	struct mrc_conn_config config = tight(h);

	assert_true(starve(h, &config) > 12);
}

/* Two are open where one is allowed: both go on, and another one has to wait until both have ended. */
static void channels_that_are_open_stay(void **state)
{
	struct lab_host *hosts;
	struct scene s;
	uint32_t id;

	scene_begin(&s, false);
	hosts = s.p.hosts;
	leave(&hosts[0]);
	quiesce(&hosts[1]);
	take_over_tight(&hosts[0]);
	assert_int_equal(lab_info(&hosts[0]).channel_count, 2);
	assert_int_equal(lab_open_at(&hosts[0], "more", true, &id), -ENOSPC);
	scene_finish(&s);
	assert_int_equal(lab_open_at(&hosts[0], "more", true, &id), -ENOSPC);
	/* And what is there goes on once more. */
	leave(&hosts[0]);
	quiesce(&hosts[1]);
	take_over_tight(&hosts[0]);
	assert_int_equal(lab_info(&hosts[0]).channel_count, 2);
	while (lab_info(&hosts[0]).channel_count > 0) {
		struct mrc_list *first = hosts[0].conn->all.next;

		id = mrc_list_entry(first, struct mrc_channel, in_all)->id;
		assert_int_equal(lab_open_at(&hosts[0], "more", true, &id), -ENOSPC);
		id = mrc_list_entry(first, struct mrc_channel, in_all)->id;
		assert_int_equal(lab_channel(&hosts[0], MRC_EV_CH_ABORT, id), 0);
		lab_pair_run(&s.p, 3 * MRC_S);
	}
	assert_int_equal(lab_open_at(&hosts[0], "more", true, &id), 0);
	scene_end(&s);
}

/* The peer's are counted as well: one that is too many is refused, and nothing else happens. */
static void the_peer_opens_no_more_than_are_allowed(void **state)
{
	struct lab_host *hosts;
	struct scene s;
	uint32_t id;
	int outcome = 1;

	scene_begin(&s, false);
	hosts = s.p.hosts;
	leave(&hosts[1]);
	quiesce(&hosts[0]);
	take_over_tight(&hosts[1]);
	hosts[1].accepts = true;
	hosts[1].lands = true;
	assert_int_equal(lab_open_at(&hosts[0], "more", true, &id), 0);
	lab_pair_run(&s.p, 50 * MRC_MS);
	for (uint32_t i = 0; i < hosts[0].log_count; i++) {
		if (hosts[0].log[i].kind == MRC_ACT_CH_DOWN && hosts[0].log[i].channel.id == id)
			outcome = hosts[0].log[i].channel.outcome;
	}
	assert_int_equal(outcome, MRC_OUT_NO_RESOURCES);
	scene_finish(&s);
	scene_end(&s);
}

/* One channel is left, in a slot beyond those that there are now: ids say which slot it is. */
static void one_that_is_left_keeps_its_id(void **state)
{
	struct lab_host *a;
	struct scene s;
	uint32_t id = 0;

	scene_begin(&s, false);
	a = &s.p.hosts[0];
	for (struct mrc_list *at = a->conn->all.next; at != &a->conn->all; at = at->next)
		id = MRC_MAX(id, mrc_list_entry(at, struct mrc_channel, in_all)->id);
	assert_true((id & ((1U << MRC_HANDLE_SLOT_BITS) - 1)) > 0);
	assert_int_equal(lab_channel(a, MRC_EV_CH_ABORT, s.ids[0]), 0);
	s.p.is_silent[0][0] = false;
	lab_pair_run(&s.p, 3 * MRC_S);
	leave(a);
	take_over_tight(a);
	assert_non_null(mrc_conn_channel(a->conn, id));
	scene_end(&s);
}

static void what_is_to_be_sent_again_is_kept(void **state)
{
	struct mrc_conn *conn;
	struct lab_host *a;
	struct scene s;

	scene_begin(&s, false);
	a = &s.p.hosts[0];
	leave(a);
	conn = a->conn;
	while (conn->resend_tail < conn->resend_head + RESENDS)
		conn->resends[conn->resend_tail++ & (conn->resend_count - 1)] =
			conn->resends[conn->resend_head];
	assert_int_equal(mrc_conn_export(conn, lab_crc32c, image, sizeof(image), &image_len), 0);
	starve_tight(a);
	take_over_tight(a);
	quiesce(&s.p.hosts[1]);
	assert_int_equal(a->conn->resend_tail - a->conn->resend_head, RESENDS);
	scene_finish(&s);
	scene_end(&s);
}

static void control_frames_that_are_not_heard_are_kept(void **state)
{
	struct lab_host *a;
	struct scene s;
	uint64_t used;

	scene_begin(&s, false);
	a = &s.p.hosts[0];
	leave(a);
	for (uint32_t i = 0; i < ENTRIES; i++)
		ctl_add(a->conn, MRC_WIRE_VOID, s.ids[0]);
	used = a->conn->ctl_next - a->conn->ctl_acked;
	assert_int_equal(mrc_conn_export(a->conn, lab_crc32c, image, sizeof(image), &image_len), 0);
	a->conn->ctl_next -= ENTRIES;
	starve_tight(a);
	take_over_tight(a);
	assert_int_equal(a->conn->ctl_next - a->conn->ctl_acked, used);
	/* Beside them there is room for the end of each channel, and for what others begin with. */
	assert_true(a->conn->ctl_count / 2 >= used);
	scene_end(&s);
}

static void gaps_are_remembered(void **state)
{
	struct mrc_range_set *wanted;
	struct mrc_channel *ch;
	struct lab_host *b;
	struct scene s;
	uint64_t bytes;

	scene_begin(&s, false);
	b = &s.p.hosts[1];
	quiesce(b);
	ch = mrc_conn_channel(b->conn, s.ids[1]);
	wanted = &mrc_channel_in(ch, 4)->wanted;
	for (uint64_t at = 0; at < RANGES; at++)
		mrc_range_set_add_keeping(&b->conn->ranges, wanted, 3 * at, 3 * at + 1, 0);
	bytes = wanted->bytes;
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, image, sizeof(image), &image_len), 0);
	starve_tight(b);
	take_over_tight(b);
	quiesce(&s.p.hosts[0]);
	ch = mrc_conn_channel(b->conn, s.ids[1]);
	assert_int_equal(mrc_channel_in(ch, 4)->wanted.bytes, bytes);
	scene_finish(&s);
	scene_end(&s);
}

/* Where the body of a section begins. */
static size_t section_at(uint16_t tag)
{
	for (size_t at = MRC_STATE_HEADER_BYTES; at < image_len;) {
		uint64_t len;

		memcpy(&len, image + at + 4, sizeof(len));
		at += 12;
		if (image[at - 12] == tag)
			return at;
		at += len;
	}
	fail_msg("there is no section %u", tag);
	return 0;
}

/* What is no bound of ours promises more than the image holds, or than there can be. */
static void a_count_that_cannot_be_is_refused(void **state)
{
	static const struct {
		const char *name;
		uint16_t tag;
		bool is_ctl; /* a number of 8 bytes, found by itself and the one behind it */
		uint32_t value;
		const char *want;
	} cases[] = {
		{"slots", 3, false, (1U << MRC_HANDLE_SLOT_BITS) + 1,
		 "more channels than there can be"},
		{"control frames", 1, true, 1U << 24, "more control frames than there can be"},
		{"resends", 6, false, 1U << 24, "it ends too soon"},
	};
	struct mrc_conn_config config;
	struct lab_host *a;
	struct scene s;
	uint64_t pair[2];

	scene_begin(&s, false);
	a = &s.p.hosts[0];
	leave(a);
	config = tight(a);
	pair[0] = a->conn->ctl_next;
	pair[1] = a->conn->ctl_acked;
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		size_t at = section_at(cases[i].tag);
		struct mrc_conn *conn;
		const char *why;
		uint32_t was;

		while (cases[i].is_ctl && memcmp(image + at, pair, sizeof(pair)) != 0)
			at++;
		memcpy(&was, image + at, sizeof(was));
		memcpy(image + at, &cases[i].value, sizeof(was));
		reseal();
		assert_int_equal(take(a, &config, &conn, &why), -EPROTO);
		if (strcmp(why, cases[i].want) != 0)
			fail_msg("%s: '%s'", cases[i].name, why);
		memcpy(image + at, &was, sizeof(was));
	}
	reseal();
	take_over_tight(a);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(channels_that_are_open_stay),
		cmocka_unit_test(the_peer_opens_no_more_than_are_allowed),
		cmocka_unit_test(one_that_is_left_keeps_its_id),
		cmocka_unit_test(what_is_to_be_sent_again_is_kept),
		cmocka_unit_test(control_frames_that_are_not_heard_are_kept),
		cmocka_unit_test(gaps_are_remembered),
		cmocka_unit_test(a_count_that_cannot_be_is_refused),
	};

	return cmocka_run_group_tests_name("conn_state_limits", tests, NULL, NULL);
}
