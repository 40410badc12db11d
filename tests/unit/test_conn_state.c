/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_conn_state: what is taken over is what was left. */
#include "conn_state_lab.h"

static void a_conn_goes_on_where_it_stopped(void **state)
{
	/* Which ends, and how often. */
	static const uint32_t who[] = {1, 2, 3, 1, 2, 3};

	for (uint32_t k = 0; k < 2 * MRC_ARRAY_LEN(who); k++) {
		struct scene s;

		scene_begin(&s, k & 1);
		for (uint32_t times = 0; times < 1 + k / 6; times++) {
			for (uint32_t h = 0; h < 2; h++) {
				if (!(who[k / 2] >> h & 1))
					continue;
				leave(&s.p.hosts[h]);
				/* The other end finds out by its sockets. */
				quiesce(&s.p.hosts[!h]);
				take_over(&s.p.hosts[h]);
			}
			lab_pair_run(&s.p, 50 * MRC_US);
		}
		scene_finish(&s);
		scene_end(&s);
	}
}

static void what_is_taken_over_is_what_was_left(void **state)
{
	static uint8_t again[IMAGE_MAX];

	for (uint32_t k = 0; k < 4; k++) {
		struct mrc_path_info path[2];
		struct mrc_conn_info info[2];
		struct lab_host *h;
		struct scene s;
		size_t len;

		scene_begin(&s, k & 1);
		h = &s.p.hosts[k / 2];
		h->lands = true; /* a buffer that is still wanted is wanted anew */
		while (k / 2 == 1 && h->conn->all.next &&
		       mrc_conn_channel(h->conn, s.ids[1])->is_asking)
			lab_msg(h, MRC_EV_LANDING, s.ids[1],
				mrc_conn_channel(h->conn, s.ids[1])->asking, h->landing_next++);
		leave(h);
		info[0] = lab_info(h);
		path[0] = lab_path_info(h, 1);
		take_over(h);
		/* take_over() has given keys, which do not travel. */
		assert_int_equal(mrc_conn_export(h->conn, lab_crc32c, again, sizeof(again), &len),
				 0);
		assert_int_equal(len, image_len);
		assert_memory_equal(again, image, len);
		info[1] = lab_info(h);
		path[1] = lab_path_info(h, 1);
#define SAME(what, field) assert_true((what)[0].field == (what)[1].field)
		SAME(info, epoch);
		SAME(info, peer_boot_id);
		SAME(info, channel_count);
		SAME(info, messages_sent);
		SAME(info, messages_delivered);
		SAME(info, messages_failed);
		SAME(path, state);
		SAME(path, reason);
		SAME(path, epoch);
		SAME(path, is_carrier_up);
		SAME(path, frames_sent);
		SAME(path, bytes_received);
		SAME(path, frames_resent);
		SAME(path, good_count);
		SAME(path, bad_count);
#undef SAME
		scene_end(&s);
	}
}

static void only_a_quiet_conn_is_left(void **state)
{
	struct mrc_action act;
	struct lab_host *b;
	struct scene s;
	size_t len;

	scene_begin(&s, false);
	b = &s.p.hosts[1];
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, image, sizeof(image), &len), -EBUSY);
	quiesce(b);
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, NULL, 0, &len), -ENOBUFS);
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, image, len - 1, &image_len),
			 -ENOBUFS);
	assert_int_equal(image_len, len);
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, image, len, &image_len), 0);
	/* An action that nobody has taken. */
	lab_channel(b, MRC_EV_CH_CLOSE, s.ids[1]);
	lab_msg(b, MRC_EV_RELEASE, s.ids[1], 3, 0);
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, image, len, &image_len), -EBUSY);
	while (mrc_conn_next_action(b->conn, &act, b->now_ns))
		;
	b->conn->do_reset = true;
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, image, sizeof(image), &len), -EBUSY);
	scene_end(&s);
}

/*
 * A fragment was heard of when its rail asked where it goes, and then the path died: 9 asks for
 * its landing buffer, now that 8 is known to need none, and an export has to wait for that.
 */
static void what_a_place_tells_is_acted_on(void **state)
{
	struct mrc_place place;
	struct lab_host *b;
	struct scene s;
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_FRAG,
				   .flags = MRC_WIRE_F_EAGER,
				   .msg = 8,
				   .msg_len = 10,
				   .body_len = 10};
	struct mrc_wire_hdr rts = {.type = MRC_WIRE_RTS, .msg = 9, .msg_len = 50000};
	struct mrc_channel *ch;
	uint32_t from;

	scene_begin(&s, false);
	b = &s.p.hosts[1];
	b->lands = true;
	quiesce(&s.p.hosts[0]);
	quiesce(b);
	s.p.is_silent[0][0] = false;
	lab_carrier(&s.p.hosts[0], 1, true);
	for (uint64_t n = 0; n < 8; n++) /* 7 was asked for while nobody answered */
		lab_msg(b, MRC_EV_LANDING, s.ids[1], n, b->landing_next + (n << 20));
	lab_pair_run(&s.p, 3 * MRC_S);
	b->pair = NULL;
	ch = mrc_conn_channel(b->conn, s.ids[1]);
	assert_int_equal(ch->deliver_next, 8);
	rts.channel = hdr.channel = ch->wire_id;
	hdr.addr = mrc_channel_in(ch, 5)->addr + 20000;
	hdr.conn_epoch = b->conn->epoch;
	assert_int_equal(lab_feed(b, 0, rts, NULL), 0);
	lab_pump(b);
	from = b->log_count;
	assert_int_equal(mrc_conn_place(b->conn, &hdr, 0, &place), 10);
	leave(b);
	assert_non_null(lab_find(b, MRC_ACT_LANDING_WANT, from, 0));
	b->pair = &s.p;
	scene_end(&s);
}

/* ---- what is asked for again, and what waits ---- */

/*
 * Copies that wait in daemon memory for room to be remembered do not travel: their bytes are
 * asked for again, however many they are, and there is room for as many new ones.
 */
static void what_was_held_is_asked_for_again(void **state)
{
	struct mrc_conn_config config;
	struct part p = {0};
	struct mrc_conn *conn;
	struct lab_host *b;
	struct scene s;
	const char *why;
	uint32_t from;

	scene_begin(&s, false);
	b = &s.p.hosts[1];
	quiesce(b);
	p.conn = b->conn;
	p.ch = mrc_conn_channel(b->conn, s.ids[1]);
	quiesce(&s.p.hosts[0]);
	for (uint32_t i = 0; i < MRC_HOLDS_LOST_MAX + 20; i++)
		lost_add(&p, 600000);
	assert_int_equal(mrc_conn_export(b->conn, lab_crc32c, image, sizeof(image), &image_len), 0);
	config = config_of(b);
	assert_true(starve(b, &config) > 12);
	assert_int_equal(take(b, &config, &conn, &why), 0);
	assert_int_equal(conn->holds_lost, MRC_HOLDS_LOST_MAX + 20);
	assert_int_equal(conn->hold_count, conn->limits.holds_max + MRC_HOLDS_LOST_MAX + 20);
	mrc_conn_free(b->conn);
	b->conn = conn;
	from = b->log_count;
	b->lands = true;
	lab_pair_run(&s.p, 100 * MRC_MS);
	assert_true(lab_posted_count(b, MRC_WIRE_WANT, from) > 0);
	assert_int_equal(b->conn->holds_used, 0);
	assert_null(lab_find(b, MRC_ACT_HOLD_FREE, from, 0)); /* no buffer is known any more */
	/* A count that promises more than there is. */
	image[image_len - 29 * (MRC_HOLDS_LOST_MAX + 20) - 1] = 0x7f;
	reseal();
	config = config_of(b);
	assert_int_equal(take(b, &config, &conn, &why), -EPROTO);
	scene_finish(&s);
	scene_end(&s);
}

/* An ended channel's memory is freed when its peer has stopped: until then no slot of it is another's. */
static void what_waits_to_be_drained_waits_on(void **state)
{
	struct mrc_channel *ch;
	struct mrc_msg_in *msg;
	struct lab_host *b;
	struct scene s;

	scene_begin(&s, true);
	b = &s.p.hosts[1];
	assert_int_equal(lab_channel(b, MRC_EV_CH_ABORT, s.ids[1]), 0);
	quiesce(b);
	ch = mrc_conn_channel(b->conn, s.ids[1]);
	msg = mrc_channel_in(ch, 4);
	assert_true(msg->is_granted && !msg->is_landing_freed);
	msg->is_void = msg->is_final = msg->is_draining = true;
	msg->outcome = MRC_OUT_CLOSED;
	leave(b);
	take_over(b);
	ch = mrc_conn_channel(b->conn, s.ids[1]);
	assert_true(mrc_channel_in(ch, 4)->is_draining);
	assert_int_equal(ch->void_draining, 1);
	scene_end(&s);
}

/* Of a conn epoch that is over: the client holds messages still, and the peer knows nothing of it. */
static void a_channel_of_an_epoch_that_is_over_is_kept(void **state)
{
	struct mrc_channel *ch;
	struct lab_host *b;
	struct scene s;

	scene_begin(&s, false);
	b = &s.p.hosts[1];
	b->pair = NULL;
	quiesce(b);
	assert_int_equal(lab_path_up(b, 0, b->conn->epoch + 1, b->conn->paths[0].epoch_last + 1,
				     LAB_BOOT_A + 1, false),
			 0);
	lab_pump(b);
	assert_true(mrc_conn_channel(b->conn, s.ids[1])->is_detached);
	leave(b);
	take_over(b);
	ch = mrc_conn_channel(b->conn, s.ids[1]);
	assert_true(ch->is_detached && ch->held_count > 0);
	assert_null(mrc_conn_channel_by_wire(b->conn, ch->wire_id));
	for (uint64_t n = 0; n < 4; n++)
		lab_msg(b, MRC_EV_RELEASE, s.ids[1], n, 0);
	lab_pump(b);
	assert_null(mrc_conn_channel(b->conn, s.ids[1]));
	b->pair = &s.p;
	scene_end(&s);
}

static void that_the_peer_is_drained_is_kept(void **state)
{
	struct lab_host *b;
	struct scene s;

	scene_begin(&s, false);
	b = &s.p.hosts[1];
	assert_false(lab_info(b).is_peer_draining);
	b->conn->is_peer_draining = true;
	leave(b);
	take_over(b);
	assert_true(lab_info(b).is_peer_draining);
	scene_end(&s);
}

/* Its drill ended with the run before, which has told the peer of it. */
static void a_drill_is_not_kept_and_the_peer_is_told(void **state)
{
	const struct mrc_event_in drill = {.kind = MRC_EV_DRILL,
					   .path = {.index = 1, .is_up = true}};
	struct lab_host *a, *b;
	struct scene s;

	scene_begin(&s, false);
	a = &s.p.hosts[0];
	b = &s.p.hosts[1];
	for (uint8_t i = 0; i < 2; i++)
		a->conn->paths[i].features = b->conn->paths[i].features = MRC_FEATURE_DRILL;
	a->features = b->features = MRC_FEATURE_DRILL;
	assert_int_equal(lab_handle(b, &drill), 0);
	lab_pair_run(&s.p, MRC_MS);
	assert_int_equal(lab_count(a, MRC_ACT_PEER_DRILL, 0), 1);
	leave(b);
	take_over(b);
	lab_pair_run(&s.p, 5 * MRC_S);
	assert_int_equal(lab_count(a, MRC_ACT_PEER_DRILL, 0), 2);
	assert_int_equal(lab_find(a, MRC_ACT_PEER_DRILL, 0, 1)->host.paths_drilled, 0);
	assert_int_equal(b->conn->drilled, 0);
	scene_end(&s);
}

/* ---- versions ---- */

#define GOLDEN MRC_SOURCE_DIR "/tests/fuzz/corpus/state/version-"

static uint8_t golden[IMAGE_MAX];
static size_t golden_len;

static void golden_read(const char *version)
{
	char name[sizeof(GOLDEN) + 8];
	FILE *file;

	snprintf(name, sizeof(name), GOLDEN "%s", version);
	file = fopen(name, "rb");
	assert_non_null(file);
	golden_len = fread(golden, 1, sizeof(golden), file);
	fclose(file);
}

/* An image of this version is read, and written again is the golden one of ours. */
static void golden_is_read(const char *version)
{
	struct mrc_conn_config config;
	struct mrc_conn *conn;
	struct lab_host *b;
	struct scene s;
	const char *why;

	scene_begin(&s, false);
	b = &s.p.hosts[1];
	quiesce(b);
	golden_read(version);
	memcpy(image, golden, golden_len);
	image_len = golden_len;
	config = config_of(b);
	if (take(b, &config, &conn, &why))
		fail_msg("version %s: %s", version, why);
	mrc_conn_free(b->conn);
	b->conn = conn;
	leave(b);
	golden_read("2");
	assert_int_equal(image_len, golden_len);
	assert_memory_equal(image + MRC_STATE_HEADER_BYTES, golden + MRC_STATE_HEADER_BYTES,
			    image_len - MRC_STATE_HEADER_BYTES);
	scene_finish(&s);
	scene_end(&s);
}

/*
 * Images as they were when they were made: whoever changes the form without a new number finds
 * out here. `test_conn_state FILE` writes one.
 */
static void version_2_is_read_as_it_was(void **state)
{
	golden_is_read("2");
}

static void version_1_is_read(void **state)
{
	golden_is_read("1");
}

static int golden_write(const char *name)
{
	FILE *file = fopen(name, "wb");
	struct scene s;

	if (!file)
		return 1;
	scene_begin(&s, false);
	leave(&s.p.hosts[1]);
	fwrite(image, 1, image_len, file);
	scene_end(&s);
	return fclose(file) != 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_conn_goes_on_where_it_stopped),
		cmocka_unit_test(what_is_taken_over_is_what_was_left),
		cmocka_unit_test(only_a_quiet_conn_is_left),
		cmocka_unit_test(what_a_place_tells_is_acted_on),
		cmocka_unit_test(what_was_held_is_asked_for_again),
		cmocka_unit_test(what_waits_to_be_drained_waits_on),
		cmocka_unit_test(a_channel_of_an_epoch_that_is_over_is_kept),
		cmocka_unit_test(that_the_peer_is_drained_is_kept),
		cmocka_unit_test(a_drill_is_not_kept_and_the_peer_is_told),
		cmocka_unit_test(version_2_is_read_as_it_was),
		cmocka_unit_test(version_1_is_read),
	};

	if (argc > 1)
		return golden_write(argv[1]);
	return cmocka_run_group_tests_name("conn_state", tests, NULL, NULL);
}
