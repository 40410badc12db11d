/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a close reading of the engine found and was mended since: each of these
 * failed before. The rest of the conn's tests is beside this file by noun.
 */
#include "engine_lab.h"

enum { A, B };

static int feed_frag(struct lab_host *h, uint64_t number, uint64_t addr, uint32_t offset,
		     uint32_t len)
{
	return lab_feed(h, 0,
			(struct mrc_wire_hdr){.type = MRC_WIRE_FRAG,
					      .flags = MRC_WIRE_F_EAGER,
					      .msg = number,
					      .msg_len = 10,
					      .offset = offset,
					      .body_len = len,
					      .addr = addr},
			NULL);
}

static int feed_void(struct lab_host *h, uint64_t number)
{
	return lab_feed_void(h, 0, number);
}

/* ---- a void message, and counts that overtake its LEVEL ---- */

/* deliver_next and visible_next were told past a void message before its LEVEL was acknowledged. */
static void counts_told_do_not_overtake_the_level_of_a_void_message(void **state)
{
	const struct mrc_act_post *post;
	struct lab_host h;
	uint64_t delivered;

	lab_solo_up(&h, 1, false);
	lab_solo_channel(&h, false);
	assert_int_equal(feed_void(&h, 0), 0);
	lab_pump(&h);
	h.now_ns += MRC_MS;
	lab_timer(&h);
	lab_pump(&h);
	assert_non_null(lab_posted(&h, MRC_WIRE_LEVEL, 0, 0));
	for (uint32_t i = 0; (post = lab_posted(&h, MRC_WIRE_STATE, 0, i)); i++) {
		memcpy(&delivered, post->body, sizeof(delivered));
		assert_int_equal(delivered, 0);
	}
	lab_host_fini(&h);
}

/* What follows from it: two honest engines, and one path is closed for a breach again and again. */
static void losing_the_level_of_a_void_message_breaks_no_path(void **state)
{
	struct lab_pair p;
	uint32_t id;

	lab_pair_up(&p, 2, NULL);
	p.hosts[B].accepts = false;
	p.hosts[B].msg_bytes_max = 1000;
	assert_int_equal(lab_open_at(&p.hosts[A], "svc", false, &id), 0);
	assert_int_equal(lab_send(&p.hosts[A], id, 2000, MRC_LVL_PLACED, 1), 0);
	assert_int_equal(lab_send(&p.hosts[A], id, 20, MRC_LVL_PLACED, 2), 0);
	lab_pair_run(&p, MRC_MS);
	assert_int_equal(lab_accept(&p.hosts[B],
				    lab_find(&p.hosts[B], MRC_ACT_CH_INCOMING, 0, 0)->channel.id),
			 0);
	while (!lab_posted(&p.hosts[B], MRC_WIRE_LEVEL, 0, 0))
		lab_pair_run(&p, MRC_US);
	/* The LEVEL is on its way, and its path falls silent. */
	p.is_silent[lab_posted(&p.hosts[B], MRC_WIRE_LEVEL, 0, 0)->index][B] = true;
	p.is_unsure = true;
	lab_pair_run(&p, 3 * MRC_S);
	assert_int_equal(p.refused, 0);
	lab_done_is(&p.hosts[A], 1, MRC_OUT_TOO_BIG);
	lab_done_is(&p.hosts[A], 2, MRC_OUT_OK);
	lab_pair_fini(&p);
}

/* ---- others ---- */

/* A landing buffer for a message that became void left is_asking set: nobody was asked again. */
static void a_void_message_does_not_stop_the_asking(void **state)
{
	struct lab_host h;
	uint32_t id;

	lab_solo_up(&h, 1, false);
	h.lands = false;
	id = lab_solo_channel(&h, false);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(lab_feed(&h, 0,
					  (struct mrc_wire_hdr){.type = MRC_WIRE_RTS,
								.msg = i,
								.msg_len = 50000},
					  NULL),
				 0);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_LANDING_WANT, 0), 1);
	assert_int_equal(feed_void(&h, 0), 0);
	lab_pump(&h);
	lab_msg(&h, MRC_EV_LANDING, id, 0, 4096);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_LANDING_WANT, 0), 2);
	lab_host_fini(&h);
}

/* It was opened anew although data had come, with the old numbers in its receiving half. */
static void a_channel_that_took_data_before_its_accept_ends_with_the_epoch(void **state)
{
	struct lab_host h;
	uint32_t id, from;

	lab_solo_up(&h, 1, false);
	assert_int_equal(lab_open_at(&h, "svc", false, &id), 0);
	lab_pump(&h);
	assert_int_equal(feed_frag(&h, 0, 0, 0, 10), 0);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_DELIVER, 0), 1);
	from = h.log_count;
	assert_int_equal(lab_path_up(&h, 0, LAB_EPOCH + 1, LAB_PATH_EPOCH + 1, 0xb2, false), 0);
	lab_pump(&h);
	if (!lab_find(&h, MRC_ACT_CH_DOWN, from, 0))
		assert_int_equal(mrc_conn_channel(h.conn, id)->deliver_next, 0);
	lab_host_fini(&h);
}

/* Only what was delivered when a message was first heard of was looked at. */
static void two_messages_never_share_memory_one_of_which_is_delivered(void **state)
{
	struct mrc_wire_hdr rest = {.type = MRC_WIRE_FRAG,
				    .flags = MRC_WIRE_F_EAGER,
				    .conn_epoch = LAB_EPOCH,
				    .path_epoch = LAB_PATH_EPOCH,
				    .msg = 1,
				    .msg_len = 10,
				    .offset = 5,
				    .body_len = 5};
	struct mrc_place place;
	struct lab_host h;

	lab_solo_up(&h, 1, false);
	h.releases = false;
	lab_solo_channel(&h, false);
	if (feed_frag(&h, 1, 0, 0, 5) == 0 && feed_frag(&h, 0, 0, 0, 10) == 0) {
		lab_pump(&h);
		assert_int_equal(lab_count(&h, MRC_ACT_DELIVER, 0), 1);
		/* The client reads these bytes now. */
		mrc_conn_place(h.conn, &rest, 0, &place);
		assert_true(place.is_scratch);
	}
	lab_host_fini(&h);
}

/* The address of the last released was taken, also when it lay before the one before. */
static void the_free_part_of_the_ring_never_goes_back(void **state)
{
	struct lab_host h;
	uint32_t id;
	uint64_t head;

	lab_solo_up(&h, 1, false);
	h.releases = false;
	id = lab_solo_channel(&h, false);
	if (feed_frag(&h, 1, 0, 0, 10) == 0 && feed_frag(&h, 0, 100, 0, 10) == 0) {
		lab_pump(&h);
		lab_msg(&h, MRC_EV_RELEASE, id, 0, 0);
		head = mrc_conn_channel(h.conn, id)->ring_head;
		lab_msg(&h, MRC_EV_RELEASE, id, 1, 0);
		assert_true(mrc_conn_channel(h.conn, id)->ring_head >= head);
	}
	lab_host_fini(&h);
}

/* Dropped frames keep their hold; only frames that are taken in give it back. */
static void a_hold_comes_back_also_from_a_frame_that_is_dropped(void **state)
{
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_FRAG,
				   .flags = MRC_WIRE_F_EAGER | MRC_WIRE_F_COPY,
				   .conn_epoch = LAB_EPOCH,
				   .path_epoch = LAB_PATH_EPOCH - 1,
				   .msg_len = 10,
				   .body_len = 10};
	struct mrc_event_in ev = {
		.kind = MRC_EV_ARRIVED,
		.arrived = {.path_epoch = LAB_PATH_EPOCH - 1,
			    .is_body_good = true,
			    .hold = 55,
			    .hdr = &hdr},
	};
	struct lab_host h;

	lab_solo_up(&h, 1, true);
	lab_solo_channel(&h, false);
	assert_int_equal(lab_handle(&h, &ev), 0);
	lab_pump(&h);
	assert_non_null(lab_find(&h, MRC_ACT_HOLD_FREE, 0, 0));
	lab_host_fini(&h);
}

/* "Final, outcome OK, level none" gave DONE with OK though nothing was reached. */
static void a_final_level_without_a_reason_is_no_success(void **state)
{
	struct lab_host h;
	int outcome = 1, r;

	lab_solo_up(&h, 1, false);
	assert_int_equal(lab_send(&h, lab_solo_channel(&h, false), 10, MRC_LVL_COMMITTED, 1), 0);
	lab_pump(&h);
	r = lab_feed(&h, 0, (struct mrc_wire_hdr){.type = MRC_WIRE_LEVEL, .arg = 1U << 8}, NULL);
	lab_pump(&h);
	assert_int_equal(r, -EPROTO);
	assert_false(lab_done(&h, 1, &outcome));
	lab_host_fini(&h);
}

/* It was asked again every half timeout: thousands of times a second while a peer is silent. */
static void a_silent_peer_is_not_asked_about_without_pause(void **state)
{
	struct lab_pair p;
	uint32_t ids[2], from;

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	lab_send(&p.hosts[A], ids[A], 1000, MRC_LVL_PLACED, 1);
	lab_pair_run(&p, 5 * MRC_MS);
	for (int i = 0; i < 2; i++)
		p.is_silent[i][A] = p.is_silent[i][B] = true;
	lab_send(&p.hosts[A], ids[A], 1000, MRC_LVL_PLACED, 2);
	from = p.hosts[A].log_count;
	lab_pair_run(&p, MRC_S);
	assert_in_range(lab_count(&p.hosts[A], MRC_ACT_CARRIER_ASK, from), 1, 200);
	lab_pair_fini(&p);
}

/* It was counted with the frame, and once more by the PATH_DOWN that follows. */
static void a_breach_is_counted_once(void **state)
{
	struct lab_host h;

	lab_solo_up(&h, 1, false);
	lab_feed(&h, 0, (struct mrc_wire_hdr){.type = MRC_WIRE_HELLO}, NULL);
	lab_path(&h, MRC_EV_PATH_DOWN, 0, MRC_REASON_PROTOCOL);
	assert_int_equal(lab_info(&h).protocol_errors, 1);
	lab_host_fini(&h);
}

/* What comes before the field that is wrong was applied. */
static void a_refused_state_answers_nobody(void **state)
{
	const struct lab_state half = {.delivered = 1,
				       .settled = 5,
				       .ring_limit = LAB_RING_BYTES,
				       .msg_limit = LAB_WINDOW};
	struct lab_host h;
	int outcome;

	lab_solo_up(&h, 1, false);
	assert_int_equal(lab_send(&h, lab_solo_channel(&h, false), 10, MRC_LVL_PLACED, 1), 0);
	lab_pump(&h);
	assert_int_equal(lab_feed_state(&h, 0, 0, &half), -EPROTO);
	lab_pump(&h);
	assert_false(lab_done(&h, 1, &outcome));
	lab_host_fini(&h);
}

/* It was counted before it was judged, so the right one was "seen before" when it came. */
static void a_refused_control_frame_is_not_taken(void **state)
{
	struct lab_host h;
	uint64_t taken;

	lab_solo_up(&h, 1, false);
	lab_solo_channel(&h, false);
	taken = h.conn->ctl_taken;
	assert_int_equal(lab_feed(&h, 0,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_CLOSE, .msg = taken},
				  NULL),
			 -EPROTO);
	assert_int_equal(h.conn->ctl_taken, taken);
	lab_host_fini(&h);
}

/* PATH_FAILED overwrote the reason of the last time it left service. */
static void a_failed_attempt_does_not_hide_why_the_path_went(void **state)
{
	struct lab_host h;

	lab_solo_up(&h, 1, false);
	lab_carrier(&h, 0, false);
	lab_pump(&h);
	h.now_ns += MRC_S;
	lab_timer(&h);
	lab_pump(&h);
	lab_path(&h, MRC_EV_PATH_FAILED, 0, MRC_REASON_CONNECT);
	assert_int_equal(lab_path_info(&h, 0).reason, MRC_REASON_CARRIER);
	lab_host_fini(&h);
}

/* OPEN and RESET in one turn gave CH_DOWN of a channel that was never announced. */
static void only_what_was_announced_goes_down(void **state)
{
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_OPEN, .channel = 1};
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX] = {0};
	struct lab_host h;

	lab_solo_up(&h, 1, false);
	h.accepts = false;
	hdr.body_len = lab_half(body, 4096, 4096, 4, "svc");
	assert_int_equal(lab_feed(&h, 0, hdr, body), 0);
	memset(body, 0, sizeof(body));
	hdr = (struct mrc_wire_hdr){.type = MRC_WIRE_RESET, .channel = 1, .msg = 1, .body_len = 49};
	assert_int_equal(lab_feed(&h, 0, hdr, body), 0);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_CH_INCOMING, 0), lab_count(&h, MRC_ACT_CH_DOWN, 0));
	lab_host_fini(&h);
}

/*
 * The acknowledgement of an earlier LEVEL was taken for that of the verdict: the
 * final count passed a rejected message whose rejection was still on its way, and
 * its sender was told that it was committed.
 */
static void an_earlier_level_that_was_heard_is_not_the_verdict(void **state)
{
	struct mrc_wire_hdr ack = {.type = MRC_WIRE_ACK};
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_cursor c = {.at = body, .end = body + sizeof(body), .ok = true};
	const struct mrc_channel *ch;
	struct lab_host h;
	uint64_t first;
	uint32_t id;

	lab_solo_up(&h, 1, false);
	h.releases = false;
	id = lab_solo_channel(&h, false);
	ch = mrc_conn_channel(h.conn, id);
	for (uint32_t n = 0; n < 2; n++)
		assert_int_equal(lab_feed(&h, 0,
					  (struct mrc_wire_hdr){.type = MRC_WIRE_FRAG,
								.flags = MRC_WIRE_F_EAGER |
									 MRC_WIRE_F_VISIBLE,
								.msg = n,
								.msg_len = 10,
								.body_len = 10,
								.addr = 10 * n},
					  NULL),
				 0);
	lab_pump(&h);
	assert_int_equal(lab_msg(&h, MRC_EV_VISIBLE, id, 1, 0), 0);
	lab_pump(&h);
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_LEVEL, 0), 1);
	first = h.conn->paths[0].posted;
	assert_int_equal(lab_msg(&h, MRC_EV_REJECT, id, 1, 7), 0);
	lab_pump(&h);
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_LEVEL, 0), 2);
	mrc_put_u64(&c, h.conn->ctl_acked);
	mrc_put_u8(&c, 1);
	mrc_put_u16(&c, h.conn->paths[0].path_id);
	mrc_put_u32(&c, h.conn->paths[0].epoch);
	mrc_put_u64(&c, first);
	ack.body_len = (uint32_t)(c.at - body);
	assert_int_equal(lab_feed(&h, 0, ack, body), 0);
	assert_int_equal(lab_msg(&h, MRC_EV_COMMIT, id, 0, 0), 0);
	lab_pump(&h);
	assert_int_equal(ch->final_next, 1);
	lab_ack_all(&h);
	assert_int_equal(ch->final_next, 2);
	lab_host_fini(&h);
}

/*
 * What a suspected byte-stream path had not begun becomes NOPs. Their positions
 * are acknowledged when it comes back, and a rejection among them counted as heard.
 */
static void what_became_a_nop_was_not_heard(void **state)
{
	struct mrc_wire_hdr ack = {.type = MRC_WIRE_ACK};
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_cursor c = {.at = body, .end = body + sizeof(body), .ok = true};
	struct lab_host h;
	const struct mrc_path *path;
	uint32_t id;

	lab_solo_up(&h, 2, false);
	h.releases = false;
	id = lab_solo_channel(&h, false);
	assert_int_equal(feed_frag(&h, 0, 0, 0, 10), 0);
	lab_pump(&h);
	assert_int_equal(lab_msg(&h, MRC_EV_REJECT, id, 0, 7), 0);
	lab_pump(&h);
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_LEVEL, 0), 1);
	path = &h.conn->paths[lab_posted(&h, MRC_WIRE_LEVEL, 0, 0)->index];
	mrc_conn_path_leave(h.conn, &h.conn->paths[path->index], MRC_REASON_SILENT, false);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_STRIP, 0), 1);
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_LEVEL, 0), 2); /* on the other */
	mrc_put_u64(&c, h.conn->ctl_acked);
	mrc_put_u8(&c, 1);
	mrc_put_u16(&c, path->path_id);
	mrc_put_u32(&c, path->epoch);
	mrc_put_u64(&c, path->posted);
	ack.body_len = (uint32_t)(c.at - body);
	assert_int_equal(lab_feed(&h, path->index, ack, body), 0);
	assert_int_equal(mrc_conn_channel(h.conn, id)->final_next, 0);
	lab_ack_all(&h);
	assert_int_equal(mrc_conn_channel(h.conn, id)->final_next, 1);
	lab_host_fini(&h);
}

/*
 * The carrier's return was missed, and the path came up all the same. While the
 * peer heard that its port was down, it gave the path up at the first probe, again
 * and again.
 */
static void a_path_that_came_up_is_not_told_to_be_down(void **state)
{
	const struct mrc_act_post *probe;
	struct lab_host h;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 2, NULL);
	lab_path_good(&h, 0, false);
	lab_carrier(&h, 1, false);
	lab_pump(&h);
	assert_int_equal(h.conn->ports_down, 1U << 1);
	assert_int_equal(lab_path_up(&h, 1, LAB_EPOCH, LAB_PATH_EPOCH, LAB_BOOT_B, false), 0);
	lab_pump(&h);
	probe = lab_posted(&h, MRC_WIRE_PROBE, 1, 0);
	assert_non_null(probe);
	assert_int_equal(probe->hdr.addr, 0);
	lab_host_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_that_came_up_is_not_told_to_be_down),
		cmocka_unit_test(counts_told_do_not_overtake_the_level_of_a_void_message),
		cmocka_unit_test(losing_the_level_of_a_void_message_breaks_no_path),
		cmocka_unit_test(a_void_message_does_not_stop_the_asking),
		cmocka_unit_test(a_channel_that_took_data_before_its_accept_ends_with_the_epoch),
		cmocka_unit_test(two_messages_never_share_memory_one_of_which_is_delivered),
		cmocka_unit_test(the_free_part_of_the_ring_never_goes_back),
		cmocka_unit_test(a_hold_comes_back_also_from_a_frame_that_is_dropped),
		cmocka_unit_test(a_final_level_without_a_reason_is_no_success),
		cmocka_unit_test(a_silent_peer_is_not_asked_about_without_pause),
		cmocka_unit_test(a_breach_is_counted_once),
		cmocka_unit_test(a_refused_state_answers_nobody),
		cmocka_unit_test(a_refused_control_frame_is_not_taken),
		cmocka_unit_test(a_failed_attempt_does_not_hide_why_the_path_went),
		cmocka_unit_test(only_what_was_announced_goes_down),
		cmocka_unit_test(an_earlier_level_that_was_heard_is_not_the_verdict),
		cmocka_unit_test(what_became_a_nop_was_not_heard),
	};

	return cmocka_run_group_tests_name("conn_mended", tests, NULL, NULL);
}
