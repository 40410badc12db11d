/* SPDX-License-Identifier: BSD-2-Clause */
/* What each end of a path tells about itself: the codec, and when an engine says it. */
#include "engine_lab.h"

static struct mrc_about sample(const char *rail, uint32_t mtu)
{
	struct mrc_about about;

	memset(&about, 0, sizeof(about)); /* compared as bytes */
	about.mtu = mtu;
	about.speed_bits_per_s = 200000000000;
	about.wall_ns = -7;
	memcpy(about.mac, "\x02\x00\x00\x00\x00\x0a", sizeof(about.mac));
	about.kind = MRC_ABOUT_ROCE;
	snprintf(about.rail, sizeof(about.rail), "%s", rail);
	strcpy(about.version, "0.1.0");
	memset(about.kernel, 'k', MRC_ABOUT_TEXT_MAX);
	strcpy(about.driver, "mlx5_core");
	return about;
}

/* Encodes into memory of just that size, so that a sanitizer sees any step beyond. */
static uint8_t *encoded(const struct mrc_about *about, size_t *len_out)
{
	uint8_t room[MRC_ABOUT_BYTES_MAX], *bytes;
	struct mrc_cursor c = {.at = room, .end = room + sizeof(room), .ok = true};

	mrc_about_put(about, &c);
	assert_true(c.ok);
	*len_out = (size_t)(c.at - room);
	bytes = malloc(*len_out);
	assert_non_null(bytes);
	memcpy(bytes, room, *len_out);
	return bytes;
}

static int taken(uint8_t *bytes, size_t len, struct mrc_about *about_out)
{
	struct mrc_cursor c = {.at = bytes, .end = bytes + len, .ok = true};

	return mrc_about_take(&c, about_out);
}

static void what_is_put_is_taken(void **state)
{
	struct mrc_about about = sample("r0", 4200), got;
	size_t len;
	uint8_t *bytes = encoded(&about, &len);

	assert_int_equal(taken(bytes, len, &got), 0);
	assert_memory_equal(&got, &about, sizeof(got));
	free(bytes);
}

static void the_longest_fits_into_a_control_frame(void **state)
{
	struct mrc_about about;
	size_t len;
	uint8_t *bytes;

	memset(&about, 'x', sizeof(about)); /* no text has an end */
	about.kind = MRC_ABOUT_IWARP;
	bytes = encoded(&about, &len);
	assert_int_equal(len, MRC_ABOUT_BYTES_MAX);
	assert_true(len <= MRC_WIRE_CTL_BYTES_MAX);
	assert_int_equal(taken(bytes, len, &about), 0);
	free(bytes);
}

static void texts_are_printable_on_both_sides(void **state)
{
	struct mrc_about about = sample("r\033[0m\xff", 1);
	struct mrc_about got;
	size_t len;
	uint8_t *bytes = encoded(&about, &len);

	assert_int_equal(taken(bytes, len, &got), 0);
	assert_string_equal(got.rail, "r?[0m?");
	bytes[MRC_ABOUT_FIXED + 1] = 0x1b; /* who says so all the same is refused */
	assert_int_equal(taken(bytes, len, &got), -EPROTO);
	bytes[MRC_ABOUT_FIXED + 1] = 0x7f;
	assert_int_equal(taken(bytes, len, &got), -EPROTO);
	free(bytes);
}

static void what_is_out_of_range_is_refused(void **state)
{
	struct mrc_about about = sample("r0", 1), got;
	uint8_t longer[MRC_ABOUT_BYTES_MAX + 1] = {0};
	size_t len;
	uint8_t *bytes = encoded(&about, &len);

	for (size_t n = 0; n < len; n++)
		assert_int_equal(taken(bytes, n, &got), -EPROTO);
	memcpy(longer, bytes, len);
	assert_int_equal(taken(longer, len + 1, &got), -EPROTO);
	bytes[26] = MRC_ABOUT_KIND_COUNT;
	assert_int_equal(taken(bytes, len, &got), -EPROTO);
	bytes[26] = MRC_ABOUT_TCP;
	bytes[27] = 1;
	assert_int_equal(taken(bytes, len, &got), -EPROTO);
	bytes[27] = 0;
	assert_int_equal(taken(bytes, len, &got), 0);
	bytes[MRC_ABOUT_FIXED] = MRC_ABOUT_TEXT_MAX + 1;
	assert_int_equal(taken(bytes, len, &got), -EPROTO);
	free(bytes);
}

static void every_kind_has_a_name_of_its_own(void **state)
{
	for (int i = 0; i < MRC_ABOUT_KIND_COUNT; i++) {
		assert_string_not_equal(mrc_about_kind_name((uint8_t)i), "?");
		for (int n = 0; n < i; n++)
			assert_string_not_equal(mrc_about_kind_name((uint8_t)i),
						mrc_about_kind_name((uint8_t)n));
	}
	assert_string_equal(mrc_about_kind_name(MRC_ABOUT_KIND_COUNT), "?");
}

/* ---- engines ---- */

static int tell(struct lab_host *h, uint8_t index, const char *rail, uint32_t mtu)
{
	struct mrc_about about = sample(rail, mtu);
	struct mrc_event_in ev = {.kind = MRC_EV_ABOUT, .about = {.index = index, .about = &about}};

	return lab_handle(h, &ev);
}

/* Two hosts with two paths; `features` of b, a has them all. Both have told of both paths. */
static void pair_up(struct lab_pair *p, uint32_t features)
{
	lab_pair_init(p, 2, NULL);
	p->hosts[0].features = p->hosts[1].features = features;
	for (uint8_t i = 0; i < 2; i++) {
		assert_int_equal(tell(&p->hosts[0], i, i == 0 ? "a0" : "a1", 1500), 0);
		assert_int_equal(tell(&p->hosts[1], i, i == 0 ? "b0" : "b1", 9000), 0);
	}
	lab_timer(&p->hosts[0]);
	lab_pair_run(p, 20 * MRC_MS);
}

static uint32_t said(const struct lab_host *h)
{
	return lab_posted_count(h, MRC_WIRE_ABOUT, 0);
}

static void each_end_hears_once_of_each_path_what_the_other_is(void **state)
{
	struct lab_pair p;

	pair_up(&p, MRC_FEATURE_ABOUT);
	for (uint8_t i = 0; i < 2; i++) {
		const struct mrc_about *there = mrc_conn_path_about(p.hosts[0].conn, i);
		const struct mrc_about *here = mrc_conn_path_about(p.hosts[1].conn, i);

		assert_non_null(there);
		assert_non_null(here);
		assert_string_equal(there->rail, i == 0 ? "b0" : "b1");
		assert_int_equal(there->mtu, 9000);
		assert_string_equal(here->rail, i == 0 ? "a0" : "a1");
	}
	assert_int_equal(said(&p.hosts[0]), 2);
	assert_int_equal(said(&p.hosts[1]), 2);
	lab_pair_run(&p, 5 * MRC_S);
	assert_int_equal(said(&p.hosts[0]), 2);
	lab_pair_fini(&p);
}

static void who_has_not_agreed_on_it_is_not_told(void **state)
{
	struct lab_pair p;

	pair_up(&p, 0);
	assert_int_equal(tell(&p.hosts[0], 0, "other", 1), 0);
	lab_pair_run(&p, 100 * MRC_MS);
	assert_int_equal(said(&p.hosts[0]), 0);
	assert_null(mrc_conn_path_about(p.hosts[1].conn, 0));
	lab_pair_fini(&p);
}

static void a_change_is_told_and_no_change_is_not(void **state)
{
	struct lab_pair p;

	pair_up(&p, MRC_FEATURE_ABOUT);
	assert_int_equal(tell(&p.hosts[0], 1, "a1", 1500), 0);
	lab_pair_run(&p, 10 * MRC_MS);
	assert_int_equal(said(&p.hosts[0]), 2);
	assert_int_equal(tell(&p.hosts[0], 1, "a1", 1400), 0);
	lab_pair_run(&p, 10 * MRC_MS);
	assert_int_equal(said(&p.hosts[0]), 3);
	assert_int_equal(mrc_conn_path_about(p.hosts[1].conn, 1)->mtu, 1400);
	assert_int_equal(mrc_conn_path_about(p.hosts[1].conn, 0)->mtu, 1500);
	assert_int_equal(tell(&p.hosts[0], 2, "none", 1), -EINVAL);
	lab_pair_fini(&p);
}

/* What a path had not acknowledged may have gone by as a NOP: it is told again, on the path and on its next epoch. */
static void what_may_be_lost_is_told_again(void **state)
{
	struct lab_pair p;

	pair_up(&p, MRC_FEATURE_ABOUT);
	p.is_silent[1][0] = p.is_silent[1][1] = true;
	assert_int_equal(tell(&p.hosts[0], 1, "a1", 1300), 0);
	lab_pair_run(&p, 100 * MRC_MS); /* suspected, and not yet given up */
	assert_int_equal(mrc_conn_path_about(p.hosts[1].conn, 1)->mtu, 1500);
	p.is_silent[1][0] = p.is_silent[1][1] = false;
	lab_pair_run(&p, 5 * MRC_S);
	assert_int_equal(lab_path_info(&p.hosts[0], 1).state, MRC_PATH_GOOD);
	assert_int_equal(mrc_conn_path_about(p.hosts[1].conn, 1)->mtu, 1300);
	lab_pair_fini(&p);
}

static void a_suspicion_that_was_false_loses_nothing(void **state)
{
	struct lab_host h;

	lab_solo_up(&h, 2, false);
	h.conn->paths[0].features = MRC_FEATURE_ABOUT;
	assert_int_equal(tell(&h, 0, "a0", 1500), 0);
	lab_pump(&h);
	assert_int_equal(said(&h), 1);
	mrc_conn_path_leave(h.conn, &h.conn->paths[0], MRC_REASON_SILENT, false);
	assert_true(h.conn->paths[0].do_about);
	lab_host_fini(&h);
}

static void a_new_run_of_the_peer_begins_with_nothing_known(void **state)
{
	struct lab_pair p;

	pair_up(&p, MRC_FEATURE_ABOUT);
	mrc_conn_reset(p.hosts[0].conn, 99, LAB_BOOT_B + 1);
	assert_null(mrc_conn_path_about(p.hosts[0].conn, 0));
	lab_pair_fini(&p);
}

static void a_peer_that_breaks_the_rules_is_refused(void **state)
{
	struct mrc_about about = sample("b0", 1500);
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_ABOUT};
	struct lab_host h;
	size_t len;
	uint8_t *bytes = encoded(&about, &len);

	lab_solo_up(&h, 1, false);
	hdr.body_len = (uint32_t)len;
	assert_int_equal(lab_feed(&h, 0, hdr, bytes), -EPROTO); /* it was not agreed on */
	h.conn->paths[0].features = MRC_FEATURE_ABOUT;
	assert_int_equal(lab_feed(&h, 0, hdr, bytes), 0);
	assert_non_null(mrc_conn_path_about(h.conn, 0));
	hdr.body_len = 0;
	assert_int_equal(lab_feed(&h, 0, hdr, NULL), -EPROTO);
	hdr.body_len = (uint32_t)len - 1;
	assert_int_equal(lab_feed(&h, 0, hdr, bytes), -EPROTO);
	assert_string_equal(mrc_conn_path_about(h.conn, 0)->rail, "b0"); /* what was known stays */
	free(bytes);
	lab_host_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_is_taken),
		cmocka_unit_test(the_longest_fits_into_a_control_frame),
		cmocka_unit_test(texts_are_printable_on_both_sides),
		cmocka_unit_test(what_is_out_of_range_is_refused),
		cmocka_unit_test(every_kind_has_a_name_of_its_own),
		cmocka_unit_test(each_end_hears_once_of_each_path_what_the_other_is),
		cmocka_unit_test(who_has_not_agreed_on_it_is_not_told),
		cmocka_unit_test(a_change_is_told_and_no_change_is_not),
		cmocka_unit_test(what_may_be_lost_is_told_again),
		cmocka_unit_test(a_suspicion_that_was_false_loses_nothing),
		cmocka_unit_test(a_new_run_of_the_peer_begins_with_nothing_known),
		cmocka_unit_test(a_peer_that_breaks_the_rules_is_refused),
	};

	return cmocka_run_group_tests_name("about", tests, NULL, NULL);
}
