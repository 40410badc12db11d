/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_ctl: frames that begin and end things are taken once and in order. The peer is played here. */
#include "engine_lab.h"

enum { PEERS = 1 }; /* parity of numbers of channels the peer opens: we are the initiator */

static int feed_open(struct lab_host *h, uint64_t number, uint32_t wire_id, const char *service)
{
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_OPEN, .msg = number, .channel = wire_id};

	hdr.body_len = lab_half(body, LAB_RING_BYTES, LAB_MSG_MAX, LAB_WINDOW, service);
	return lab_feed(h, 0, hdr, body);
}

/* The ACK that says: all control frames before `taken`, and `acked` frames of path 0. */
static int feed_ack(struct lab_host *h, uint64_t taken, uint64_t acked)
{
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_ACK};
	struct mrc_cursor c = {.at = body, .end = body + sizeof(body), .ok = true};

	mrc_put_u64(&c, taken);
	mrc_put_u8(&c, 1);
	mrc_put_u16(&c, 0);
	mrc_put_u32(&c, h->conn->paths[0].epoch);
	mrc_put_u64(&c, acked);
	hdr.body_len = (uint32_t)(c.at - body);
	return lab_feed(h, 0, hdr, body);
}

static void an_open_reaches_the_client_with_all_it_says(void **state)
{
	struct lab_host h;
	const struct mrc_action *act;
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_OPEN,
				   .channel = PEERS,
				   .flags = MRC_WIRE_F_UNORDERED};

	lab_solo_up(&h, 1, false);
	hdr.body_len = lab_half(body, 4096, 8192, 4, "the-service");
	assert_int_equal(lab_feed(&h, 0, hdr, body), 0);
	lab_pump(&h);
	act = lab_find(&h, MRC_ACT_CH_INCOMING, 0, 0);
	assert_non_null(act);
	assert_string_equal(act->channel.service, "the-service");
	assert_true(act->channel.is_unordered);
	assert_true(act->channel.id != 0);
	act = lab_find(&h, MRC_ACT_CH_UP, 0, 0);
	assert_non_null(act);
	assert_int_equal(act->channel.msg_bytes_max, 8192);
	lab_host_fini(&h);
}

static void out_of_turn_is_dropped_and_taken_when_its_turn_comes(void **state)
{
	struct lab_host h;

	lab_solo_up(&h, 1, false);
	assert_int_equal(feed_open(&h, 1, PEERS + 2, "second"), 0);
	lab_pump(&h);
	assert_null(lab_find(&h, MRC_ACT_CH_INCOMING, 0, 0));
	assert_int_equal(h.conn->ctl_taken, 0);
	assert_int_equal(feed_open(&h, 0, PEERS, "first"), 0);
	assert_int_equal(feed_open(&h, 0, PEERS, "first"), 0); /* twice: taken once */
	assert_int_equal(feed_open(&h, 1, PEERS + 2, "second"), 0);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_CH_INCOMING, 0), 2);
	assert_string_equal(lab_find(&h, MRC_ACT_CH_INCOMING, 0, 0)->channel.service, "first");
	assert_string_equal(lab_find(&h, MRC_ACT_CH_INCOMING, 0, 1)->channel.service, "second");
	assert_int_equal(h.conn->ctl_taken, 2);
	lab_host_fini(&h);
}

static void what_was_taken_in_but_not_taken_is_sent_again(void **state)
{
	struct lab_host h;
	uint32_t id, from;

	lab_solo_up(&h, 1, false);
	assert_int_equal(lab_open_at(&h, "one", false, &id), 0);
	assert_int_equal(lab_open_at(&h, "two", false, &id), 0);
	lab_pump(&h);
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_OPEN, 0), 2);
	assert_int_equal(lab_posted(&h, MRC_WIRE_OPEN, 0, 0)->hdr.msg, 0);
	assert_int_equal(lab_posted(&h, MRC_WIRE_OPEN, 0, 1)->hdr.msg, 1);
	from = h.log_count;
	/* Both frames came in, only the first was taken: the second was dropped for some reason. */
	assert_int_equal(feed_ack(&h, 1, h.conn->paths[0].posted), 0);
	lab_pump(&h);
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_OPEN, from), 1);
	assert_int_equal(lab_posted(&h, MRC_WIRE_OPEN, from, 0)->hdr.msg, 1);
	from = h.log_count;
	assert_int_equal(feed_ack(&h, 2, h.conn->paths[0].posted), 0);
	lab_pump(&h);
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_OPEN, from), 0);
	lab_host_fini(&h);
}

static void all_unheard_goes_again_in_order_when_its_path_dies(void **state)
{
	struct lab_host h;
	uint32_t id, from;

	lab_solo_up(&h, 2, false);
	for (int i = 0; i < 3; i++)
		assert_int_equal(lab_open_at(&h, "svc", false, &id), 0);
	lab_pump(&h);
	from = h.log_count;
	assert_int_equal(lab_path(&h, MRC_EV_PATH_DOWN, lab_posted(&h, MRC_WIRE_OPEN, 0, 0)->index,
				  MRC_REASON_ERROR),
			 0);
	lab_pump(&h);
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_OPEN, from), 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct mrc_act_post *post = lab_posted(&h, MRC_WIRE_OPEN, from, i);

		assert_int_equal(post->hdr.msg, i);
		assert_int_not_equal(post->index, lab_posted(&h, MRC_WIRE_OPEN, 0, 0)->index);
	}
	lab_host_fini(&h);
}

static void an_open_there_is_no_room_for_is_refused(void **state)
{
	const struct mrc_limits limits = {.channels_max = 2, .frames_in_flight_max = 64};
	const struct mrc_act_post *post;
	struct lab_host h;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, &limits);
	lab_path_good(&h, 0, false);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(feed_open(&h, i, PEERS + 2 * i, "svc"), 0);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_CH_INCOMING, 0), 2);
	post = lab_posted(&h, MRC_WIRE_REFUSE, 0, 0);
	assert_non_null(post);
	assert_int_equal(post->hdr.channel, PEERS + 4);
	assert_int_equal((int32_t)(uint32_t)post->hdr.arg, MRC_OUT_NO_RESOURCES);
	assert_int_equal(h.conn->ctl_taken, 3);
	/* And what comes for it afterwards is nobody's. */
	assert_int_equal(lab_feed(&h, 0,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_RTS,
							.channel = PEERS + 4,
							.msg_len = 5},
				  NULL),
			 0);
	lab_host_fini(&h);
}

/* A peer that opens and never acknowledges our refusals is not answered without end. */
static void opens_wait_while_too_much_of_ours_is_unheard(void **state)
{
	const struct mrc_limits limits = {.channels_max = 1, .frames_in_flight_max = 1024};
	struct lab_host h;
	uint64_t taken;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, &limits);
	lab_path_good(&h, 0, false);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(feed_open(&h, h.conn->ctl_taken, PEERS + 2 * i, "svc"), 0);
	taken = h.conn->ctl_taken;
	assert_true(taken < 10);
	lab_pump(&h);
	/* Once it has heard them there is room again. */
	assert_int_equal(feed_ack(&h, h.conn->ctl_next, h.conn->paths[0].posted), 0);
	assert_int_equal(feed_open(&h, taken, PEERS + 400, "svc"), 0);
	assert_int_equal(h.conn->ctl_taken, taken + 1);
	lab_host_fini(&h);
}

static void opens_out_of_range_are_refused_and_change_nothing(void **state)
{
	const struct {
		const char *name;
		uint32_t wire_id;
		uint64_t ring_bytes;
		uint32_t window;
		const char *service;
		uint32_t body_len; /* 0: all of it */
		int want;
	} rows[] = {
		{"as it should be", PEERS, 4096, 4, "svc", 0, 0},
		{"a number of our parity", PEERS + 1, 4096, 4, "svc", 0, -EPROTO},
		{"no ring", PEERS, 0, 4, "svc", 0, -EPROTO},
		{"an absurd ring", PEERS, UINT64_MAX, 4, "svc", 0, -EPROTO},
		{"no window", PEERS, 4096, 0, "svc", 0, -EPROTO},
		{"window too large", PEERS, 4096, MRC_WINDOW_MAX + 1, "svc", 0, -EPROTO},
		{"no service", PEERS, 4096, 4, "", 0, -EPROTO},
		{"body ends in the service", PEERS, 4096, 4, "svc", 95, -EPROTO},
		{"body ends in the ring's address", PEERS, 4096, 4, "svc", 31, -EPROTO},
		{"body ends in the space", PEERS, 4096, 4, "svc", 23, -EPROTO},
		{"body ends in the window", PEERS, 4096, 4, "svc", 19, -EPROTO},
		{"no body", PEERS, 4096, 4, "svc", UINT32_MAX, -EPROTO},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrc_wire_hdr hdr = {.type = MRC_WIRE_OPEN, .channel = rows[i].wire_id};
		uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
		struct lab_host h;
		int r;

		lab_solo_up(&h, 1, false);
		hdr.body_len =
			lab_half(body, rows[i].ring_bytes, 4096, rows[i].window, rows[i].service);
		if (rows[i].body_len)
			hdr.body_len = rows[i].body_len == UINT32_MAX ? 0 : rows[i].body_len;
		r = lab_feed(&h, 0, hdr, body);
		if (r != rows[i].want)
			fail_msg("%s: answer %d, want %d", rows[i].name, r, rows[i].want);
		if (r) {
			assert_int_equal(lab_info(&h).channel_count, 0);
			assert_int_equal(h.conn->ctl_taken, 0);
			lab_pump(&h);
			assert_null(lab_find(&h, MRC_ACT_CH_INCOMING, 0, 0));
		}
		lab_host_fini(&h);
	}
}

static void a_service_name_without_an_end_is_refused(void **state)
{
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_OPEN, .channel = PEERS};
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
	struct lab_host h;

	lab_solo_up(&h, 1, false);
	hdr.body_len = lab_half(body, 4096, 4096, 4, "svc");
	memset(body + 32, 'x', MRC_NAME_MAX + 1);
	assert_int_equal(lab_feed(&h, 0, hdr, body), -EPROTO);
	lab_host_fini(&h);
}

static void a_number_in_use_cannot_be_opened_again(void **state)
{
	struct lab_host h;

	lab_solo_up(&h, 1, false);
	assert_int_equal(feed_open(&h, 0, PEERS, "svc"), 0);
	assert_int_equal(feed_open(&h, 1, PEERS, "svc"), -EPROTO);
	assert_int_equal(lab_info(&h).channel_count, 1);
	lab_host_fini(&h);
}

static void answers_to_what_was_never_asked_are_refused(void **state)
{
	const struct {
		const char *name;
		enum mrc_wire_type type;
		bool is_ours; /* the channel: opened by us and accepted; else opened by the peer */
		int want;
	} rows[] = {
		{"ACCEPT of the peer's own channel", MRC_WIRE_ACCEPT, false, -EPROTO},
		{"REFUSE of the peer's own channel", MRC_WIRE_REFUSE, false, -EPROTO},
		{"REFUSE after ACCEPT", MRC_WIRE_REFUSE, true, -EPROTO},
		{"CLOSE without a body", MRC_WIRE_CLOSE, true, -EPROTO},
		{"RESET without a body", MRC_WIRE_RESET, true, -EPROTO},
		{"ACCEPT without a body", MRC_WIRE_ACCEPT, true, -EPROTO},
		{"VOID of a number outside the window", MRC_WIRE_VOID, true, -EPROTO},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrc_wire_hdr hdr = {.type = (uint8_t)rows[i].type, .offset = 1000};
		struct lab_host h;
		int r;

		lab_solo_up(&h, 1, false);
		if (rows[i].is_ours)
			hdr.channel =
				mrc_conn_channel(h.conn, lab_solo_channel(&h, false))->wire_id;
		else
			assert_int_equal(feed_open(&h, 0, hdr.channel = PEERS, "svc"), 0);
		lab_pump(&h);
		hdr.msg = h.conn->ctl_taken;
		hdr.body_len = rows[i].type == MRC_WIRE_VOID;
		r = lab_feed(&h, 0, hdr, &(uint8_t){0});
		if (r != rows[i].want)
			fail_msg("%s: answer %d, want %d", rows[i].name, r, rows[i].want);
		assert_int_equal(lab_info(&h).protocol_errors, r != 0);
		lab_pump(&h);
		assert_null(lab_find(&h, MRC_ACT_CH_DOWN, 0, 0));
		lab_host_fini(&h);
	}
}

static void a_word_about_a_forgotten_channel_is_taken_and_does_nothing(void **state)
{
	const enum mrc_wire_type types[] = {MRC_WIRE_ACCEPT, MRC_WIRE_REFUSE, MRC_WIRE_CLOSE,
					    MRC_WIRE_RESET, MRC_WIRE_VOID};
	struct lab_host h;

	lab_solo_up(&h, 1, false);
	for (uint32_t i = 0; i < MRC_ARRAY_LEN(types); i++) {
		struct mrc_wire_hdr hdr = {.type = (uint8_t)types[i], .msg = i, .channel = 4711};

		assert_int_equal(lab_feed(&h, 0, hdr, NULL), 0);
		assert_int_equal(h.conn->ctl_taken, i + 1);
	}
	lab_host_fini(&h);
}

static void an_ack_of_control_frames_never_made_is_refused(void **state)
{
	struct lab_host h;
	uint32_t id;

	lab_solo_up(&h, 1, false);
	assert_int_equal(lab_open_at(&h, "svc", false, &id), 0);
	lab_pump(&h);
	assert_int_equal(feed_ack(&h, 2, 0), -EPROTO);
	assert_int_equal(h.conn->ctl_acked, 0);
	assert_int_equal(feed_ack(&h, 1, 0), 0);
	assert_int_equal(feed_ack(&h, 0, 0), 0); /* a late one */
	assert_int_equal(h.conn->ctl_acked, 1);
	lab_host_fini(&h);
}

static void strange_outcomes_become_invalid(void **state)
{
	const struct {
		uint32_t arg;
		int want;
	} rows[] = {
		{(uint32_t)MRC_OUT_NO_SERVICE, MRC_OUT_NO_SERVICE},
		{(uint32_t)(MRC_OUT_DRAINING + 1), MRC_OUT_DRAINING + 1},
		{(uint32_t)MRC_OUT_DRAINING,
		 MRC_OUT_INVALID}, /* of a path that did not agree on it */
		{(uint32_t)(MRC_OUT_LAST - 1), MRC_OUT_INVALID},
		{1, MRC_OUT_INVALID},
		{INT32_MAX, MRC_OUT_INVALID},
		{0, MRC_OUT_REFUSED}, /* a refusal is never a success */
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		const struct mrc_action *down;
		struct lab_host h;
		uint32_t id;

		lab_solo_up(&h, 1, false);
		assert_int_equal(lab_open_at(&h, "svc", false, &id), 0);
		lab_pump(&h);
		assert_int_equal(lab_feed(&h, 0,
					  (struct mrc_wire_hdr){.type = MRC_WIRE_REFUSE,
								.arg = rows[i].arg | 99ULL << 32},
					  NULL),
				 0);
		lab_pump(&h);
		down = lab_find(&h, MRC_ACT_CH_DOWN, 0, 0);
		assert_non_null(down);
		assert_int_equal(down->channel.outcome, rows[i].want);
		assert_int_equal(down->channel.code, 99);
		lab_host_fini(&h);
	}
}

/* ---- VOID ---- */

/* A rendezvous message of the peer, asked for and granted. */
static uint32_t rendezvous(struct lab_host *h, uint64_t number)
{
	uint32_t id = lab_solo_channel(h, false);
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_RTS,
				   .channel = mrc_conn_channel(h->conn, id)->wire_id,
				   .msg = number,
				   .msg_len = 100000};

	assert_int_equal(lab_feed(h, 0, hdr, NULL), 0);
	lab_pump(h);
	return id;
}

static int feed_void(struct lab_host *h, uint32_t id, uint64_t number)
{
	return lab_feed_void(h, mrc_conn_channel(h->conn, id)->wire_id, number);
}

static int feed_frag(struct lab_host *h, uint32_t id, uint64_t number, uint64_t addr,
		     uint16_t flags, uint32_t len)
{
	return lab_feed(h, 0,
			(struct mrc_wire_hdr){.type = MRC_WIRE_FRAG,
					      .flags = flags,
					      .channel = mrc_conn_channel(h->conn, id)->wire_id,
					      .msg = number,
					      .msg_len = len,
					      .body_len = len,
					      .addr = addr},
			NULL);
}

static void void_skips_what_was_not_delivered(void **state)
{
	struct lab_host h;
	const struct mrc_act_post *level;
	uint32_t id;

	lab_solo_up(&h, 1, false);
	id = rendezvous(&h, 0);
	assert_int_equal(feed_void(&h, id, 0), 0);
	lab_pump(&h);
	assert_non_null(lab_find(&h, MRC_ACT_GAP, 0, 0));
	assert_null(lab_find(&h, MRC_ACT_DELIVER, 0, 0));
	assert_non_null(lab_find(&h, MRC_ACT_LANDING_FREE, 0, 0));
	level = lab_posted(&h, MRC_WIRE_LEVEL, 0, 0);
	assert_non_null(level);
	assert_int_equal(level->hdr.arg & 0xff, MRC_LVL_NONE);
	assert_int_equal(level->hdr.arg >> 8 & 1, 1);
	assert_int_equal((int8_t)(uint8_t)(level->hdr.arg >> 16), MRC_OUT_CLOSED);
	/* Its bytes, still on their way, are not needed. */
	assert_int_equal(feed_frag(&h, id, 0, h.landing_next - 100000, 0, 100000), 0);
	lab_pump(&h);
	assert_null(lab_find(&h, MRC_ACT_DELIVER, 0, 0));
	/* The next one is not held up. */
	assert_int_equal(feed_frag(&h, id, 1, 0, MRC_WIRE_F_EAGER, 10), 0);
	lab_pump(&h);
	assert_non_null(lab_find(&h, MRC_ACT_DELIVER, 0, 0));
	lab_host_fini(&h);
}

static void void_changes_nothing_about_what_was_delivered(void **state)
{
	struct lab_host h;
	uint32_t id;

	lab_solo_up(&h, 1, false);
	h.releases = false;
	id = lab_solo_channel(&h, false);
	assert_int_equal(feed_frag(&h, id, 0, 0, MRC_WIRE_F_EAGER, 10), 0);
	lab_pump(&h);
	assert_non_null(lab_find(&h, MRC_ACT_DELIVER, 0, 0));
	assert_int_equal(feed_void(&h, id, 0), 0);
	lab_pump(&h);
	assert_null(lab_find(&h, MRC_ACT_GAP, 0, 0));
	assert_int_equal(lab_msg(&h, MRC_EV_COMMIT, id, 0, 0), 0);
	assert_int_equal(mrc_channel_in(mrc_conn_channel(h.conn, id), 0)->level, MRC_LVL_COMMITTED);
	lab_host_fini(&h);
}

/* Whole, and waiting for its turn: that counts as delivered, for it will be. */
static void void_changes_nothing_about_what_is_whole(void **state)
{
	struct lab_host h;
	uint32_t id;

	lab_solo_up(&h, 1, false);
	id = lab_solo_channel(&h, false);
	assert_int_equal(feed_frag(&h, id, 1, 10, MRC_WIRE_F_EAGER, 10), 0);
	assert_int_equal(feed_void(&h, id, 1), 0);
	assert_int_equal(feed_frag(&h, id, 0, 0, MRC_WIRE_F_EAGER, 10), 0);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_DELIVER, 0), 2);
	assert_null(lab_find(&h, MRC_ACT_GAP, 0, 0));
	lab_host_fini(&h);
}

static void void_before_the_first_word_of_a_message_skips_it(void **state)
{
	struct lab_host h;
	uint32_t id;

	lab_solo_up(&h, 1, false);
	id = lab_solo_channel(&h, false);
	assert_int_equal(feed_void(&h, id, 0), 0);
	assert_int_equal(feed_void(&h, id, 0), 0); /* asked again: decided */
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_GAP, 0), 1);
	lab_host_fini(&h);
}

/* A CLOSE names the last message: it says that all before it were delivered here (DESIGN 7.7). */
static void a_close_that_names_what_was_not_delivered_is_refused(void **state)
{
	for (uint64_t number = 0; number < 2; number++) {
		const struct lab_state s = {.ring_limit = LAB_RING_BYTES, .msg_limit = LAB_WINDOW};
		struct mrc_wire_hdr hdr = {.type = MRC_WIRE_CLOSE, .offset = number};
		uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
		struct lab_host h;

		lab_solo_up(&h, 1, false);
		lab_solo_channel(&h, false);
		hdr.msg = h.conn->ctl_taken;
		hdr.body_len = lab_state_body(body, &s);
		body[hdr.body_len++] = 0; /* nothing was posted on any path */
		assert_int_equal(lab_feed(&h, 0, hdr, body), number ? -EPROTO : 0);
		lab_pump(&h);
		assert_int_equal(lab_count(&h, MRC_ACT_CH_DOWN, 0), !number);
		lab_host_fini(&h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_open_reaches_the_client_with_all_it_says),
		cmocka_unit_test(out_of_turn_is_dropped_and_taken_when_its_turn_comes),
		cmocka_unit_test(what_was_taken_in_but_not_taken_is_sent_again),
		cmocka_unit_test(all_unheard_goes_again_in_order_when_its_path_dies),
		cmocka_unit_test(an_open_there_is_no_room_for_is_refused),
		cmocka_unit_test(opens_wait_while_too_much_of_ours_is_unheard),
		cmocka_unit_test(opens_out_of_range_are_refused_and_change_nothing),
		cmocka_unit_test(a_service_name_without_an_end_is_refused),
		cmocka_unit_test(a_number_in_use_cannot_be_opened_again),
		cmocka_unit_test(answers_to_what_was_never_asked_are_refused),
		cmocka_unit_test(a_word_about_a_forgotten_channel_is_taken_and_does_nothing),
		cmocka_unit_test(an_ack_of_control_frames_never_made_is_refused),
		cmocka_unit_test(strange_outcomes_become_invalid),
		cmocka_unit_test(void_skips_what_was_not_delivered),
		cmocka_unit_test(void_changes_nothing_about_what_was_delivered),
		cmocka_unit_test(void_changes_nothing_about_what_is_whole),
		cmocka_unit_test(void_before_the_first_word_of_a_message_skips_it),
		cmocka_unit_test(a_close_that_names_what_was_not_delivered_is_refused),
	};

	return cmocka_run_group_tests_name("ctl", tests, NULL, NULL);
}
