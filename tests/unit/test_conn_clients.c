/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients ask of a conn out of turn or at the same moment as others, and what becomes of it. */
#include "engine_lab.h"

/* ---- what clients and embedders ask for out of turn ---- */

static int open_of_weight(struct lab_host *h, uint32_t flow, uint32_t weight, uint32_t *id_out)
{
	struct mrc_event_in ev = {
		.kind = MRC_EV_CH_OPEN,
		.channel = {.flow = flow,
			    .weight = weight,
			    .ring_bytes = LAB_RING_BYTES,
			    .msg_bytes_max = LAB_MSG_MAX,
			    .window = LAB_WINDOW,
			    .service = "svc",
			    .id_out = id_out},
	};

	return lab_handle(h, &ev);
}

static int open_of(struct lab_host *h, uint32_t flow, uint32_t *id_out)
{
	return open_of_weight(h, flow, 0, id_out);
}

static void the_free_slot_among_those_in_use_is_found(void **state)
{
	struct lab_host h;
	uint32_t ids[8], again;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
	for (int i = 0; i < 8; i++)
		assert_int_equal(lab_open_at(&h, "svc", false, &ids[i]), 0);
	assert_int_equal(lab_channel(&h, MRC_EV_CH_ABORT, ids[5]), 0);
	lab_pump(&h);
	assert_int_equal(lab_open_at(&h, "svc", false, &again), 0);
	assert_null(mrc_conn_channel(h.conn, ids[5]));
	assert_non_null(mrc_conn_channel(h.conn, again));
	for (int i = 0; i < 8; i++)
		assert_int_not_equal(again, ids[i]);
	lab_host_fini(&h);
}

static void a_client_is_known_while_it_has_a_channel(void **state)
{
	struct mrc_event_in key = {.kind = MRC_EV_KEY, .key = {.is_valid = true, .rkey = 1}};
	struct lab_host h;
	uint32_t ids[4];

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(open_of(&h, 1 + i % 3, &ids[i]), 0); /* the first has two */
	for (uint32_t flow = 1; flow <= 3; flow++) {
		key.key.flow = flow;
		assert_int_equal(lab_handle(&h, &key), 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(lab_channel(&h, MRC_EV_CH_ABORT, ids[i]), 0);
	lab_pump(&h);
	for (uint32_t flow = 1; flow <= 3; flow++) {
		key.key.flow = flow;
		assert_int_equal(lab_handle(&h, &key), flow == 2 ? -ENOENT : 0);
	}
	lab_host_fini(&h);
}

static void an_incoming_channel_is_answered_once_and_nothing_else_is_done_with_it(void **state)
{
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
	struct lab_host h;
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_OPEN, .channel = 1};
	uint32_t id;

	lab_solo_up(&h, 1, false);
	h.accepts = false;
	hdr.body_len = lab_half(body, LAB_RING_BYTES, LAB_MSG_MAX, LAB_WINDOW, "svc");
	assert_int_equal(lab_feed(&h, 0, hdr, body), 0);
	lab_pump(&h);
	id = lab_find(&h, MRC_ACT_CH_INCOMING, 0, 0)->channel.id;
	assert_int_equal(lab_send(&h, id, 1, MRC_LVL_PLACED, 1), -ENOENT);
	assert_int_equal(lab_channel(&h, MRC_EV_CH_CLOSE, id), -ENOENT);
	assert_int_equal(lab_channel(&h, MRC_EV_CH_ABORT, id), -ENOENT);
	assert_int_equal(lab_msg(&h, MRC_EV_VISIBLE, id, 0, 0), -EINVAL);
	/* The peer's word about a message of it is taken, and does nothing. */
	assert_int_equal(lab_feed_void(&h, 1, 0), 0);
	h.window = 3;
	assert_int_equal(lab_accept(&h, id), -EINVAL);
	h.window = LAB_WINDOW;
	assert_int_equal(lab_accept(&h, id), 0);
	assert_int_equal(lab_accept(&h, id), -ENOENT);
	assert_int_equal(lab_channel(&h, MRC_EV_CH_REFUSE, id), -ENOENT);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_CH_UP, 0), 1);
	assert_null(lab_find(&h, MRC_ACT_GAP, 0, 0));
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_ACCEPT, 0), 1);
	assert_null(lab_posted(&h, MRC_WIRE_REFUSE, 0, 0));
	lab_host_fini(&h);
}

static void what_no_event_can_say_is_refused(void **state)
{
	struct mrc_event_in ev = {.kind = (enum mrc_event_kind)(MRC_EV_TIMER + 1)};
	uint64_t number = 99;
	struct lab_host h;
	uint32_t id, other;

	lab_solo_up(&h, 1, false);
	id = lab_solo_channel(&h, false);
	assert_int_equal(lab_handle(&h, &ev), -EINVAL);
	ev = (struct mrc_event_in){.kind = MRC_EV_ARRIVED, .arrived = {.index = 1}};
	assert_int_equal(lab_handle(&h, &ev), -EINVAL);
	assert_int_equal(lab_send(&h, id, 1, MRC_LVL_NONE, 1), -EINVAL);
	assert_int_equal(lab_send(&h, id, 1, (enum mrc_lvl)(MRC_LVL_COMMITTED + 1), 1), -EINVAL);
	/* None of these used a number up. */
	ev = (struct mrc_event_in){
		.kind = MRC_EV_SEND,
		.msg = {.channel = id, .level = MRC_LVL_PLACED, .len = 1, .number_out = &number}};
	assert_int_equal(lab_handle(&h, &ev), 0);
	assert_int_equal(number, 0);
	/* Channel numbers are not used twice in a conn epoch: when they are used up, that is it. */
	h.conn->wire_next = UINT32_MAX / 2;
	assert_int_equal(lab_open_at(&h, "svc", false, &other), -ENOSPC);
	lab_host_fini(&h);
}

static void a_word_about_a_message_that_is_settled_comes_too_late(void **state)
{
	const enum mrc_event_kind kinds[] = {MRC_EV_VISIBLE, MRC_EV_COMMIT, MRC_EV_REJECT,
					     MRC_EV_RELEASE};
	struct lab_host h;
	uint32_t id;

	lab_solo_up(&h, 1, false);
	id = lab_solo_channel(&h, false);
	assert_int_equal(lab_feed(&h, 0,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_FRAG,
							.flags = MRC_WIRE_F_EAGER,
							.msg_len = 10,
							.body_len = 10},
				  NULL),
			 0);
	lab_pump(&h);
	assert_int_equal(lab_feed_state(&h, 0, 0,
					&(struct lab_state){.settled = 1,
							    .ring_limit = LAB_RING_BYTES,
							    .msg_limit = LAB_WINDOW}),
			 0);
	lab_pump(&h);
	for (size_t i = 0; i < MRC_ARRAY_LEN(kinds); i++) {
		assert_int_equal(lab_msg(&h, kinds[i], id, 0, 0), -EALREADY);
		assert_int_equal(lab_msg(&h, kinds[i], id, LAB_WINDOW + 1, 0), -EINVAL);
	}
	lab_host_fini(&h);
}

/* ---- a conn epoch that ends another ---- */

/* What ended in the first is told once, and its memory waits for its own writers only. */
static void a_second_new_epoch_changes_nothing_about_what_ended_in_the_first(void **state)
{
	struct lab_host h;
	uint32_t id;

	lab_solo_up(&h, 2, true);
	h.releases = false;
	id = lab_solo_channel(&h, false);
	assert_int_equal(lab_feed_frag(&h, 0,
				       (struct mrc_wire_hdr){.flags = MRC_WIRE_F_EAGER,
							     .msg_len = 10,
							     .body_len = 10},
				       (struct lab_came){0}),
			 0);
	lab_pump(&h);
	for (uint32_t n = 1; n <= 2; n++) {
		/* By one path, then by the other; the second time the first is not fenced yet. */
		h.fences = n == 1;
		assert_int_equal(lab_path_up(&h, (uint8_t)(n - 1), LAB_EPOCH + n,
					     LAB_PATH_EPOCH + n, LAB_BOOT_B + n, true),
				 0);
		lab_pump(&h);
		assert_int_equal(lab_count(&h, MRC_ACT_CONN_RESET, 0), n);
		assert_int_equal(lab_count(&h, MRC_ACT_CH_DOWN, 0), 1);
		assert_null(lab_find(&h, MRC_ACT_CH_FREE, 0, 0)); /* its client still reads */
	}
	assert_int_equal(lab_msg(&h, MRC_EV_RELEASE, id, 0, 0), 0);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_CH_FREE, 0), 1);
	lab_host_fini(&h);
}

/* ---- turns ---- */

/* The number-th channel that this side opens, of this client; the peer accepts it. */
static void accepted_of_weight(struct lab_host *h, uint32_t flow, uint32_t weight, uint32_t number,
			       uint32_t *id_out, uint32_t *wire_id_out)
{
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_ACCEPT, .msg = number};
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];

	assert_int_equal(open_of_weight(h, flow, weight, id_out), 0);
	lab_pump(h);
	*wire_id_out = hdr.channel = mrc_conn_channel(h->conn, *id_out)->wire_id;
	hdr.body_len = lab_half(body, LAB_RING_BYTES, LAB_MSG_MAX, LAB_WINDOW, NULL);
	assert_int_equal(lab_feed(h, 0, hdr, body), 0);
}

static void accepted_of(struct lab_host *h, uint32_t flow, uint32_t number, uint32_t *id_out,
			uint32_t *wire_id_out)
{
	accepted_of_weight(h, flow, 0, number, id_out, wire_id_out);
}

/* DESIGN 8: turns go by client, then by channel, so nobody gains by opening more of them. */
static void clients_take_turns_however_many_channels_they_have(void **state)
{
	struct lab_host h;
	uint32_t ids[4] = {0}, wire_ids[4], greedy = 0;

	lab_solo_up(&h, 1, false);
	for (uint32_t i = 0; i < 4; i++) /* the first client has three */
		accepted_of(&h, i < 3 ? 1 : 2, i, &ids[i], &wire_ids[i]);
	lab_pump(&h);
	lab_ack_all(&h);
	for (uint32_t i = 0; i < 4; i++) {
		for (uint32_t n = 0; n < 3; n++)
			assert_int_equal(lab_send(&h, ids[i], 1000, MRC_LVL_PLACED, n), 0);
	}
	lab_pump(&h);
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_FRAG, 0), 12);
	for (uint32_t i = 0; i < 6; i++)
		greedy += lab_posted(&h, MRC_WIRE_FRAG, 0, i)->hdr.channel != wire_ids[3];
	assert_int_equal(greedy, 3);
	lab_host_fini(&h);
}

/* Turns are of bytes: small messages wait for one large one, not for one each. Of clients, and of channels. */
static void small_messages_do_not_wait_for_a_large_one_each(void **state)
{
	for (uint32_t flow = 1; flow <= 2; flow++) {
		struct lab_host h;
		uint32_t ids[2] = {0}, wire_ids[2], large = 0;

		lab_solo_up(&h, 1, false);
		for (uint32_t i = 0; i < 2; i++)
			accepted_of(&h, i == 0 ? 1 : flow, i, &ids[i], &wire_ids[i]);
		lab_pump(&h);
		lab_ack_all(&h);
		for (uint32_t n = 0; n < 4; n++)
			assert_int_equal(lab_send(&h, ids[0], 8000, MRC_LVL_PLACED, n), 0);
		for (uint32_t n = 0; n < 12; n++)
			assert_int_equal(lab_send(&h, ids[1], 64, MRC_LVL_PLACED, n), 0);
		lab_pump(&h);
		assert_int_equal(lab_posted_count(&h, MRC_WIRE_FRAG, 0), 16);
		for (uint32_t i = 0; i < 13; i++)
			large += lab_posted(&h, MRC_WIRE_FRAG, 0, i)->hdr.channel == wire_ids[0];
		assert_int_equal(large, 1);
		lab_host_fini(&h);
	}
}

/* Who has three times the weight has three times the turns, in bytes, whatever each sends at once. */
static void clients_take_turns_by_their_weight(void **state)
{
	static const struct {
		uint32_t weights[2], lens[2];
	} rows[] = {
		{{300, 100}, {1000, 1000}}, {{3, 1}, {1000, 1000}},    {{300, 0}, {1000, 1000}},
		{{300, 100}, {3000, 500}},  {{300, 100}, {500, 3000}},
	};

	for (size_t row = 0; row < MRC_ARRAY_LEN(rows); row++) {
		uint32_t ids[2] = {0}, wire_ids[2], bytes[2] = {0};
		struct lab_host h;

		lab_solo_up(&h, 1, false);
		for (uint32_t i = 0; i < 2; i++)
			accepted_of_weight(&h, 1 + i, rows[row].weights[i], i, &ids[i],
					   &wire_ids[i]);
		lab_pump(&h);
		lab_ack_all(&h);
		for (uint32_t i = 0; i < 2; i++)
			for (uint32_t n = 0; n < LAB_WINDOW; n++)
				assert_int_equal(lab_send(&h, ids[i], rows[row].lens[i],
							  MRC_LVL_PLACED, n),
						 0);
		lab_pump(&h);
		/* Until one of the two has nothing left. */
		for (uint32_t i = 0;; i++) {
			const struct mrc_act_post *post = lab_posted(&h, MRC_WIRE_FRAG, 0, i);
			uint32_t who;

			assert_non_null(post);
			who = post->hdr.channel == wire_ids[1];
			bytes[who] += post->hdr.body_len + MRC_WIRE_HDR_BYTES;
			if (post->hdr.msg == LAB_WINDOW - 1)
				break;
		}
		/* Three to one, but for the last fragment of each. */
		assert_true(bytes[0] + 3500 >= 3 * bytes[1]);
		assert_true(bytes[0] <= 3 * (bytes[1] + 3500));
		assert_true(bytes[1] > 0);
		lab_host_fini(&h);
	}
}

/* Nor does anybody save up turns: who was still does not shut out who was not. */
static void who_was_idle_has_saved_up_nothing(void **state)
{
	struct lab_host h;
	uint32_t ids[2] = {0}, wire_ids[2], late = 0, from;

	lab_solo_up(&h, 1, false);
	for (uint32_t i = 0; i < 2; i++)
		accepted_of(&h, 1 + i, i, &ids[i], &wire_ids[i]);
	lab_pump(&h);
	lab_ack_all(&h);
	for (uint32_t n = 0; n < 8; n++)
		assert_int_equal(lab_send(&h, ids[0], 4000, MRC_LVL_PLACED, n), 0);
	lab_pump(&h);
	lab_ack_all(&h);
	from = h.log_count;
	for (uint32_t i = 0; i < 2; i++) {
		for (uint32_t n = 0; n < 4; n++)
			assert_int_equal(lab_send(&h, ids[i], 1000, MRC_LVL_PLACED, 10 + n), 0);
	}
	lab_pump(&h);
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_FRAG, from), 8);
	for (uint32_t i = 0; i < 4; i++)
		late += lab_posted(&h, MRC_WIRE_FRAG, from, i)->hdr.channel == wire_ids[1];
	/* The first began where the last of the 4000 left it, which is one of them ahead at most. */
	assert_in_range(late, 2, 4);
	assert_int_equal(lab_posted(&h, MRC_WIRE_FRAG, from, 7)->hdr.channel, wire_ids[0]);
	lab_host_fini(&h);
}

/* ---- ends that cross ---- */

static int feed_reset(struct lab_host *h, uint64_t number)
{
	const struct lab_state s = {.ring_limit = LAB_RING_BYTES, .msg_limit = LAB_WINDOW};
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_RESET, .msg = number};
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];

	hdr.body_len = lab_state_body(body, &s);
	body[hdr.body_len++] = 0; /* nothing was posted on any path */
	return lab_feed(h, 0, hdr, body);
}

/* The peer's word was taken and not yet told: whom should it be told now? */
static void a_client_that_dies_is_not_told_what_it_did_not_hear(void **state)
{
	struct lab_host h;
	uint32_t id, from;
	int outcome;

	lab_solo_up(&h, 1, false);
	id = lab_solo_channel(&h, false);
	assert_int_equal(lab_send(&h, id, 10, MRC_LVL_COMMITTED, 1), 0);
	lab_pump(&h);
	lab_ack_all(&h);
	from = h.log_count;
	assert_int_equal(feed_reset(&h, h.conn->ctl_taken), 0);
	assert_int_equal(lab_channel(&h, MRC_EV_CH_ABORT, id), 0);
	lab_pump(&h);
	lab_ack_all(&h);
	lab_pump(&h);
	assert_null(lab_find(&h, MRC_ACT_CH_DOWN, from, 0));
	assert_false(lab_done(&h, 1, &outcome));
	assert_int_equal(lab_count(&h, MRC_ACT_CH_FREE, from), 1);
	assert_int_equal(lab_info(&h).channel_count, 0);
	lab_host_fini(&h);
}

/* Its end was said by both at once: the first that is heard here stands. */
static void the_first_end_of_a_channel_stands(void **state)
{
	struct lab_host h;
	uint32_t id;

	lab_solo_up(&h, 1, true);
	id = lab_solo_channel(&h, false);
	assert_int_equal(lab_channel(&h, MRC_EV_CH_ABORT, id), 0);
	lab_pump(&h);
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_RESET, 0), 1);
	/* What the peer had posted is not known: its memory waits. */
	assert_null(lab_find(&h, MRC_ACT_CH_FREE, 0, 0));
	assert_int_equal(feed_reset(&h, h.conn->ctl_taken), 0);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_CH_FREE, 0), 1);
	assert_null(lab_find(&h, MRC_ACT_CH_DOWN, 0, 0));
	lab_host_fini(&h);
}

/* It was closed before the peer had answered; the refusal that was under way is no news. */
static void a_refusal_of_what_was_closed_is_no_news(void **state)
{
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_REFUSE,
				   .arg = (uint32_t)MRC_OUT_NOT_ALLOWED | 77ULL << 32};
	const struct mrc_action *down;
	struct lab_host h;
	uint32_t id;

	lab_solo_up(&h, 1, false);
	assert_int_equal(lab_open_at(&h, "svc", false, &id), 0);
	lab_pump(&h);
	hdr.channel = mrc_conn_channel(h.conn, id)->wire_id;
	assert_int_equal(lab_channel(&h, MRC_EV_CH_CLOSE, id), 0);
	assert_int_equal(lab_feed(&h, 0, hdr, NULL), 0);
	lab_pump(&h);
	down = lab_find(&h, MRC_ACT_CH_DOWN, 0, 0);
	assert_non_null(down);
	assert_int_equal(down->channel.outcome, MRC_OUT_OK);
	assert_int_equal(down->channel.code, 0);
	assert_int_equal(lab_count(&h, MRC_ACT_CH_DOWN, 0), 1);
	lab_host_fini(&h);
}

/* ---- where there is no room ---- */

/* Control frames keep their order and leave the last place of a share to acknowledgements. */
static void what_creates_waits_for_room_on_its_path(void **state)
{
	struct lab_host h;
	uint32_t ids[8];

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
	h.share = MRC_SHARE_MIN;
	lab_path_good(&h, 0, true);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(lab_open_at(&h, "svc", false, &ids[i]), 0);
	lab_pump(&h);
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_OPEN, 0), MRC_SHARE_MIN - 1);
	lab_ack_all(&h);
	lab_pump(&h);
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_OPEN, 0), 8);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(lab_posted(&h, MRC_WIRE_OPEN, 0, i)->hdr.msg, i);
	lab_host_fini(&h);
}

/* A path that never came up has no count to be passed. */
static void an_end_counts_the_paths_that_ever_were(void **state)
{
	const struct mrc_act_post *post;
	struct lab_host h;
	uint32_t id;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 2, NULL);
	lab_path_good(&h, 1, true);
	for (uint8_t other = 0; other < 2; other++) {
		uint32_t from = h.log_count;

		if (other)
			lab_path_good(&h, 0, true);
		assert_int_equal(lab_open_at(&h, "svc", false, &id), 0);
		assert_int_equal(lab_channel(&h, MRC_EV_CH_ABORT, id), 0);
		lab_pump(&h);
		post = lab_posted(&h, MRC_WIRE_RESET, from, 0);
		assert_non_null(post);
		/* Six counts of the channel, then how many paths, and of each its id, epoch and count. */
		assert_int_equal(post->body_len, 6 * 8 + 1 + (1 + other) * (2 + 4 + 8));
		assert_int_equal(post->body[6 * 8], 1 + other);
		lab_ack_all(&h);
	}
	lab_host_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_free_slot_among_those_in_use_is_found),
		cmocka_unit_test(a_client_is_known_while_it_has_a_channel),
		cmocka_unit_test(
			an_incoming_channel_is_answered_once_and_nothing_else_is_done_with_it),
		cmocka_unit_test(what_no_event_can_say_is_refused),
		cmocka_unit_test(a_word_about_a_message_that_is_settled_comes_too_late),
		cmocka_unit_test(a_second_new_epoch_changes_nothing_about_what_ended_in_the_first),
		cmocka_unit_test(clients_take_turns_however_many_channels_they_have),
		cmocka_unit_test(small_messages_do_not_wait_for_a_large_one_each),
		cmocka_unit_test(clients_take_turns_by_their_weight),
		cmocka_unit_test(who_was_idle_has_saved_up_nothing),
		cmocka_unit_test(a_client_that_dies_is_not_told_what_it_did_not_hear),
		cmocka_unit_test(the_first_end_of_a_channel_stands),
		cmocka_unit_test(a_refusal_of_what_was_closed_is_no_news),
		cmocka_unit_test(what_creates_waits_for_room_on_its_path),
		cmocka_unit_test(an_end_counts_the_paths_that_ever_were),
	};

	return cmocka_run_group_tests_name("conn_clients", tests, NULL, NULL);
}
