/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message that is given up (VOID): nothing of it is posted any more, and its
 * memory is free at the receiver when all that was posted has landed or cannot.
 */
#include "engine_lab.h"

enum { LEN = 50000 };

/* What the peer says it had posted: `more` frames than were taken in here, on a path and epoch. */
struct posted {
	uint16_t path_id;
	uint32_t epoch;
	uint64_t more;
};

/* A VOID by path 0, which is one frame of that path itself. */
static int feed_void(struct lab_host *h, struct mrc_wire_hdr hdr, const struct posted *posted,
		     uint8_t count)
{
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_cursor c = {.at = body, .end = body + sizeof(body), .ok = true};

	mrc_put_u8(&c, count);
	for (uint8_t i = 0; i < count; i++) {
		const struct mrc_path *path = mrc_conn_path_by_id(h->conn, posted[i].path_id);

		mrc_put_u16(&c, posted[i].path_id);
		mrc_put_u32(&c, posted[i].epoch);
		mrc_put_u64(&c, (path ? path->taken : 0) + posted[i].more);
	}
	hdr.type = MRC_WIRE_VOID;
	hdr.msg = h->conn->ctl_taken;
	hdr.body_len = (uint32_t)(c.at - body);
	return lab_feed(h, 0, hdr, body);
}

/* Two direct paths and a channel on which the peer's message 0 (LEN) has its buffer. */
static struct mrc_channel *granted(struct lab_host *h, bool is_direct)
{
	struct mrc_channel *ch;

	lab_solo_up(h, 2, is_direct);
	ch = mrc_conn_channel(h->conn, lab_solo_channel(h, false));
	assert_int_equal(lab_feed(h, 0, (struct mrc_wire_hdr){.type = MRC_WIRE_RTS, .msg_len = LEN},
				  NULL),
			 0);
	lab_pump(h);
	assert_true(ch->in[0].is_granted);
	lab_ack_all(h);
	lab_pump(h);
	return ch;
}

static int feed_nop(struct lab_host *h, uint8_t path)
{
	return lab_feed(h, path, (struct mrc_wire_hdr){.type = MRC_WIRE_NOP}, NULL);
}

/* ---- the sender ---- */

static uint64_t count_of(struct lab_host *h, const struct mrc_act_post *post, uint8_t index)
{
	struct mrc_cursor c = {.at = (uint8_t *)(uintptr_t)post->body,
			       .end = (uint8_t *)(uintptr_t)post->body + post->body_len,
			       .ok = true};
	struct mrc_drain drain;

	assert_int_equal(mrc_drain_take(h->conn, &c, &drain), 0);
	for (uint8_t i = 0; i < drain.count; i++) {
		if (drain.paths[i].index == index)
			return drain.paths[i].posted;
	}
	return MRC_NEVER;
}

static void nothing_is_posted_after_the_void_and_it_says_what_was(void **state)
{
	const struct mrc_act_post *post;
	struct lab_host h;
	struct mrc_channel *ch;
	uint32_t from, gone;

	lab_solo_up(&h, 2, true);
	ch = mrc_conn_channel(h.conn, lab_solo_channel(&h, false));
	for (uint8_t i = 0; i < 2; i++)
		assert_int_equal(lab_feed_key(&h, i, LAB_SPACE, true, 9, 0), 0);
	assert_int_equal(lab_send(&h, ch->id, 8 << 20, MRC_LVL_COMMITTED, 1), 0);
	lab_pump(&h);
	assert_int_equal(
		lab_feed(&h, 0,
			 (struct mrc_wire_hdr){.type = MRC_WIRE_CTS, .msg_len = 8 << 20, .addr = 0},
			 NULL),
		0);
	lab_pump(&h);
	assert_true(ch->out[0].next_offset > 0);
	assert_true(ch->out[0].next_offset < 8 << 20);

	from = h.log_count;
	assert_int_equal(lab_cancel(&h, ch->id, 0, MRC_OUT_TIMED_OUT), 0);
	lab_pump(&h);
	post = lab_posted(&h, MRC_WIRE_VOID, from, 0);
	assert_non_null(post);
	assert_int_equal(post->hdr.offset, 0);
	/* As many as were given to the rails by then, this one included. */
	for (uint8_t i = 0; i < 2; i++) {
		uint64_t posted = 0;

		for (uint32_t n = 0; &h.log[n].post != post; n++)
			posted += h.log[n].kind == MRC_ACT_POST && h.log[n].post.index == i;
		assert_int_equal(count_of(&h, post, i), posted + (post->index == i));
	}
	/* The windows are open, bytes are wanted, a path dies: nothing of it goes out. */
	assert_int_equal(lab_feed(&h, 0, (struct mrc_wire_hdr){.type = MRC_WIRE_WANT, .msg_len = 9},
				  NULL),
			 0);
	gone = post->index;
	lab_path(&h, MRC_EV_PATH_DOWN, (uint8_t)gone, MRC_REASON_ERROR);
	lab_pump(&h);
	lab_ack_all(&h);
	lab_pump(&h);
	assert_null(lab_posted(&h, MRC_WIRE_FRAG, from, 0));
	/* The VOID itself is made anew; what it counts now is not less. */
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_VOID, from), 2);
	post = lab_posted(&h, MRC_WIRE_VOID, from, 1);
	for (uint16_t i = 0; i < 2; i++)
		assert_true(count_of(&h, post, i) >=
			    count_of(&h, lab_posted(&h, MRC_WIRE_VOID, from, 0), i));
	lab_host_fini(&h);
}

/* What the receiver needs besides: how far its window goes, and which piece of its ring is used up. */
static void a_void_says_what_is_settled_and_its_place_in_the_ring(void **state)
{
	const struct lab_state committed = {.delivered = 1,
					    .visible = 1,
					    .final = 1,
					    .ring_limit = LAB_RING_BYTES,
					    .msg_limit = LAB_WINDOW};
	const struct mrc_act_post *post;
	struct lab_host h;
	uint32_t id;

	lab_solo_up(&h, 1, false);
	id = lab_solo_channel(&h, false);
	assert_int_equal(lab_send(&h, id, 70, MRC_LVL_COMMITTED, 0), 0);
	lab_pump(&h);
	assert_int_equal(lab_feed_state(&h, 0, 0, &committed), 0);
	lab_pump(&h);
	lab_done_is(&h, 0, MRC_OUT_OK);
	assert_int_equal(lab_send(&h, id, 30, MRC_LVL_COMMITTED, 1), 0);
	assert_int_equal(lab_send(&h, id, LEN, MRC_LVL_COMMITTED, 2), 0);
	for (uint64_t i = 1; i < 3; i++)
		assert_int_equal(lab_cancel(&h, id, i, MRC_OUT_TIMED_OUT), 0);
	lab_pump(&h);
	for (uint32_t i = 0; i < 2; i++) {
		post = lab_posted(&h, MRC_WIRE_VOID, 0, i);
		assert_non_null(post);
		assert_int_equal(post->hdr.offset, 1 + i);
		assert_int_equal(post->hdr.arg, 1);
		/* The second one would have had a buffer of its own. */
		assert_int_equal(post->hdr.msg_len, i ? 0 : 30);
		assert_int_equal(post->hdr.addr, i ? 0 : 70);
	}
	lab_host_fini(&h);
}

/* ---- the receiver's memory ---- */

static void a_landing_buffer_is_freed_when_every_path_has_passed_or_is_fenced(void **state)
{
	enum { PASS, FENCE };
	const struct {
		const char *name;
		int how[2]; /* path 0, path 1 */
	} rows[] = {
		{"both pass", {PASS, PASS}},
		{"one passes, one is fenced", {PASS, FENCE}},
		{"one is fenced, one passes", {FENCE, PASS}},
		{"both are fenced", {FENCE, FENCE}},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		const struct posted posted[] = {{0, LAB_PATH_EPOCH, 1 + 2}, {1, LAB_PATH_EPOCH, 2}};
		struct lab_host h;
		uint32_t from;

		granted(&h, true);
		from = h.log_count;
		assert_int_equal(feed_void(&h, (struct mrc_wire_hdr){0}, posted, 2), 0);
		lab_pump(&h);
		/* Its client and its sender are told at once. */
		assert_int_equal(lab_count(&h, MRC_ACT_GAP, from), 1);
		assert_int_equal(lab_posted_count(&h, MRC_WIRE_LEVEL, from), 1);
		for (uint8_t path = 0; path < 2; path++) {
			for (int step = 0; step < 2; step++) {
				if (lab_find(&h, MRC_ACT_LANDING_FREE, from, 0))
					fail_msg("%s: freed too early", rows[i].name);
				if (rows[i].how[path] == PASS)
					assert_int_equal(feed_nop(&h, path), 0);
				else if (step == 0)
					lab_path(&h, MRC_EV_PATH_DOWN, path, MRC_REASON_ERROR);
				lab_pump(&h);
				if (rows[i].how[path] == FENCE)
					break;
			}
		}
		if (lab_count(&h, MRC_ACT_LANDING_FREE, from) != 1)
			fail_msg("%s: not freed", rows[i].name);
		assert_int_equal(lab_count(&h, MRC_ACT_GAP, from), 1);
		assert_null(lab_find(&h, MRC_ACT_DELIVER, from, 0));
		lab_host_fini(&h);
	}
}

static void what_cannot_be_writing_is_not_waited_for(void **state)
{
	const struct {
		const char *name;
		bool is_direct;
		struct posted posted;
	} rows[] = {
		{"an epoch that never came up here", true, {1, LAB_PATH_EPOCH + 1, 100}},
		{"an epoch before this one", true, {1, LAB_PATH_EPOCH - 1, 100}},
		{"a path that never came up here", true, {5, LAB_PATH_EPOCH, 100}},
		{"no path writes directly", false, {1, LAB_PATH_EPOCH, 100}},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab_host h;
		uint32_t from;

		granted(&h, rows[i].is_direct);
		from = h.log_count;
		assert_int_equal(feed_void(&h, (struct mrc_wire_hdr){0}, &rows[i].posted, 1), 0);
		lab_pump(&h);
		assert_int_equal(lab_count(&h, MRC_ACT_GAP, from), 1);
		if (lab_count(&h, MRC_ACT_LANDING_FREE, from) != 1)
			fail_msg("%s: waited for", rows[i].name);
		lab_host_fini(&h);
	}
}

/* The newest STATE since `from`; all of them say the same or more. */
static struct lab_state state_told(const struct lab_host *h, uint32_t from)
{
	struct lab_state s = {0};

	for (uint32_t i = 0; lab_posted(h, MRC_WIRE_STATE, from, i); i++)
		memcpy(&s, lab_posted(h, MRC_WIRE_STATE, from, i)->body, sizeof(s));
	return s;
}

static void settle_time(struct lab_host *h)
{
	lab_pump(h);
	lab_ack_all(h);
	h->now_ns += MRC_MS / 2;
	lab_timer(h);
	lab_pump(h);
}

static void the_ring_and_the_credit_wait_as_well_and_are_told_when_it_is_over(void **state)
{
	const struct posted posted = {1, LAB_PATH_EPOCH, 1};
	const uint64_t len = 1000;
	struct lab_host h;
	struct mrc_channel *ch;
	uint32_t from;

	lab_solo_up(&h, 2, true);
	ch = mrc_conn_channel(h.conn, lab_solo_channel(&h, false));
	from = h.log_count;
	assert_int_equal(feed_void(&h, (struct mrc_wire_hdr){.msg_len = len}, &posted, 1), 0);
	/* The one behind it is there, read and released. */
	assert_int_equal(lab_feed_frag(&h, 0,
				       (struct mrc_wire_hdr){.flags = MRC_WIRE_F_EAGER,
							     .msg = 1,
							     .msg_len = 10,
							     .body_len = 10,
							     .addr = len},
				       (struct lab_came){0}),
			 0);
	settle_time(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_GAP, from), 1);
	assert_int_equal(lab_count(&h, MRC_ACT_DELIVER, from), 1);
	settle_time(&h);
	assert_int_equal(ch->release_next, 0);
	for (uint32_t i = 0; lab_posted(&h, MRC_WIRE_STATE, from, i); i++) {
		struct lab_state s;

		memcpy(&s, lab_posted(&h, MRC_WIRE_STATE, from, i)->body, sizeof(s));
		assert_int_equal(s.ring_limit, LAB_RING_BYTES);
		assert_int_equal(s.msg_limit, LAB_WINDOW);
	}
	/* The last frame that could write there was taken in: told without being asked, both messages. */
	from = h.log_count;
	assert_int_equal(feed_nop(&h, 1), 0);
	lab_pump(&h);
	assert_int_equal(state_told(&h, from).ring_limit, LAB_RING_BYTES + len + 10);
	assert_int_equal(state_told(&h, from).msg_limit, LAB_WINDOW + 2);
	lab_host_fini(&h);
}

/* The sender has settled it, and yet the slot is not another message's while something may land. */
static void its_slot_is_not_used_again_before_it_is_over(void **state)
{
	const struct posted posted = {1, LAB_PATH_EPOCH, 1};
	struct lab_host h;
	struct mrc_channel *ch = granted(&h, true);

	assert_int_equal(feed_void(&h, (struct mrc_wire_hdr){0}, &posted, 1), 0);
	settle_time(&h);
	assert_int_equal(lab_feed_state(&h, 0, 0,
					&(struct lab_state){.settled = 1,
							    .ring_limit = LAB_RING_BYTES,
							    .msg_limit = LAB_WINDOW}),
			 0);
	lab_pump(&h);
	assert_int_equal(ch->peer_settled_stated, 1);
	assert_int_equal(ch->peer_settled, 0);
	assert_int_equal(feed_nop(&h, 1), 0);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_LANDING_FREE, 0), 1);
	/* The next one that needs it has it. */
	assert_int_equal(lab_feed(&h, 0,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_RTS,
							.msg = LAB_WINDOW,
							.msg_len = LEN,
							.arg = 1},
				  NULL),
			 0);
	assert_int_equal(ch->peer_settled, 1);
	lab_host_fini(&h);
}

/* Several at once: the last VOID's counts hold for all before it. */
static void the_counts_of_the_last_void_hold_for_all(void **state)
{
	struct posted posted = {1, LAB_PATH_EPOCH, 1};
	struct lab_host h;
	struct mrc_channel *ch = granted(&h, true);

	assert_int_equal(feed_void(&h, (struct mrc_wire_hdr){0}, &posted, 1), 0);
	posted.more = 2;
	assert_int_equal(feed_void(&h, (struct mrc_wire_hdr){.offset = 1}, &posted, 1), 0);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_GAP, 0), 2);
	assert_int_equal(ch->void_draining, 2);
	assert_int_equal(feed_nop(&h, 1), 0);
	lab_pump(&h);
	assert_null(lab_find(&h, MRC_ACT_LANDING_FREE, 0, 0));
	assert_int_equal(feed_nop(&h, 1), 0);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_LANDING_FREE, 0), 1);
	assert_int_equal(ch->void_draining, 0);
	lab_host_fini(&h);
}

/* ---- what it overtakes ---- */

static void frames_overtaken_by_their_void_are_ignored(void **state)
{
	const struct mrc_wire_hdr frag = {.type = MRC_WIRE_FRAG,
					  .flags = MRC_WIRE_F_EAGER,
					  .msg_len = 100,
					  .body_len = 50};
	struct mrc_wire_hdr at_place = frag;
	struct mrc_wire_hdr next = frag;
	struct mrc_place place;
	struct lab_host h;
	struct mrc_channel *ch;

	lab_solo_up(&h, 2, false);
	ch = mrc_conn_channel(h.conn, lab_solo_channel(&h, false));
	/* Nothing of either was heard of before, and nothing is said of a place. */
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(feed_void(&h, (struct mrc_wire_hdr){.offset = i}, NULL, 0), 0);
	next.msg = 2;
	next.addr = 100;
	next.body_len = 100;
	assert_int_equal(lab_feed_frag(&h, 0, next, (struct lab_came){0}), 0);
	settle_time(&h);
	/* The ring has moved on: the place of the first may be another message's. */
	assert_int_equal(lab_count(&h, MRC_ACT_DELIVER, 0), 1);
	assert_int_equal(ch->ring_head, 200);
	assert_int_equal(lab_feed_frag(&h, 1, frag, (struct lab_came){0}), 0);
	assert_int_equal(lab_feed_frag(&h, 1, frag, (struct lab_came){.is_bad = true}), 0);
	at_place.conn_epoch = LAB_EPOCH;
	mrc_conn_place(h.conn, &at_place, 0, &place);
	assert_true(place.is_scratch);
	/* Nor is a landing buffer asked for, for one that wanted to ask. */
	assert_int_equal(
		lab_feed(&h, 1,
			 (struct mrc_wire_hdr){.type = MRC_WIRE_RTS, .msg = 1, .msg_len = LEN},
			 NULL),
		0);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_DELIVER, 0), 1);
	assert_null(lab_find(&h, MRC_ACT_LANDING_WANT, 0, 0));
	assert_null(lab_posted(&h, MRC_WIRE_WANT, 0, 0));
	assert_int_equal(lab_count(&h, MRC_ACT_GAP, 0), 2);
	assert_int_equal(lab_info(&h).protocol_errors, 0);
	lab_host_fini(&h);
}

/* It carries what its sender has settled, so it may name a number that this lets into the window. */
static void a_void_moves_the_window_it_needs(void **state)
{
	struct lab_host h;
	struct mrc_channel *ch;

	lab_solo_up(&h, 1, false);
	ch = mrc_conn_channel(h.conn, lab_solo_channel(&h, false));
	assert_int_equal(lab_feed_frag(&h, 0,
				       (struct mrc_wire_hdr){.flags = MRC_WIRE_F_EAGER,
							     .msg_len = 10,
							     .body_len = 10},
				       (struct lab_came){0}),
			 0);
	settle_time(&h);
	assert_int_equal(ch->peer_settled, 0);
	assert_int_equal(feed_void(&h, (struct mrc_wire_hdr){.offset = LAB_WINDOW, .arg = 1}, NULL,
				   0),
			 0);
	assert_int_equal(ch->peer_settled, 1);
	assert_true(mrc_channel_in(ch, LAB_WINDOW)->is_void);
	/* But it cannot have settled what has no verdict. */
	assert_int_equal(feed_void(&h, (struct mrc_wire_hdr){.offset = 3, .arg = 2}, NULL, 0),
			 -EPROTO);
	lab_host_fini(&h);
}

/* Those that are whole and wait behind it are delivered, and their credit is told, by the VOID alone. */
static void what_stands_behind_a_void_message_goes_on_by_itself(void **state)
{
	for (int is_unordered = 0; is_unordered < 2; is_unordered++) {
		struct lab_host h;
		uint32_t from;

		lab_solo_up(&h, 1, false);
		lab_solo_channel(&h, is_unordered);
		for (uint64_t i = 1; i < 3; i++)
			assert_int_equal(
				lab_feed_frag(&h, 0,
					      (struct mrc_wire_hdr){.flags = MRC_WIRE_F_EAGER,
								    .msg = i,
								    .msg_len = 10,
								    .body_len = 10,
								    .addr = 10 * i},
					      (struct lab_came){0}),
				0);
		settle_time(&h);
		assert_int_equal(lab_count(&h, MRC_ACT_DELIVER, 0), is_unordered ? 2 : 0);
		from = h.log_count;
		assert_int_equal(feed_void(&h, (struct mrc_wire_hdr){.msg_len = 10}, NULL, 0), 0);
		settle_time(&h);
		settle_time(&h);
		assert_int_equal(lab_find(&h, MRC_ACT_GAP, from, 0)->msg.number, 0);
		/* On an unordered channel they went before; their credit waited all the same. */
		assert_int_equal(lab_count(&h, MRC_ACT_DELIVER, from), is_unordered ? 0 : 2);
		assert_int_equal(state_told(&h, from).ring_limit, LAB_RING_BYTES + 30);
		assert_int_equal(state_told(&h, from).msg_limit, LAB_WINDOW + 3);
		assert_int_equal(state_told(&h, from).final, 3);
		lab_host_fini(&h);
	}
}

/* ---- its place in the ring ---- */

/* No fragment of it ever came: its piece of the ring is used up by the VOID alone. */
static void a_void_alone_frees_the_place_in_the_ring_it_names(void **state)
{
	struct lab_host h;
	struct lab_state told;

	lab_solo_up(&h, 1, false);
	lab_solo_channel(&h, false);
	assert_int_equal(feed_void(&h, (struct mrc_wire_hdr){.msg_len = 1000}, NULL, 0), 0);
	/* Places only grow: what lies between is used up with it. */
	assert_int_equal(feed_void(&h,
				   (struct mrc_wire_hdr){.offset = 1, .msg_len = 30, .addr = 5000},
				   NULL, 0),
			 0);
	settle_time(&h);
	settle_time(&h);
	told = state_told(&h, 0);
	assert_int_equal(told.ring_limit, LAB_RING_BYTES + 5030);
	assert_int_equal(told.msg_limit, LAB_WINDOW + 2);
	lab_host_fini(&h);
}

static void a_place_that_cannot_be_is_refused(void **state)
{
	const struct {
		const char *name;
		uint64_t len, addr;
		int want;
	} rows[] = {
		{"what its fragment said", 100, 40, 0},
		{"another place", 100, 50, -EPROTO},
		{"another length", 99, 40, -EPROTO},
		{"none, as before its place was known", 0, 0, 0},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab_host h;
		int r;

		lab_solo_up(&h, 1, false);
		lab_solo_channel(&h, false);
		assert_int_equal(lab_feed_frag(&h, 0,
					       (struct mrc_wire_hdr){.flags = MRC_WIRE_F_EAGER,
								     .msg_len = 100,
								     .body_len = 10,
								     .addr = 40},
					       (struct lab_came){0}),
				 0);
		r = feed_void(&h,
			      (struct mrc_wire_hdr){.msg_len = rows[i].len, .addr = rows[i].addr},
			      NULL, 0);
		if (r != rows[i].want)
			fail_msg("%s: answer %d", rows[i].name, r);
		lab_host_fini(&h);
	}
}

/* Its client has to hear of the gap under this number, before the slot is another's. */
static void a_slot_is_kept_until_its_gap_was_taken(void **state)
{
	const struct lab_state settled = {.settled = 1,
					  .ring_limit = LAB_RING_BYTES,
					  .msg_limit = LAB_WINDOW};
	struct lab_host h;
	struct mrc_channel *ch;

	lab_solo_up(&h, 1, false);
	ch = mrc_conn_channel(h.conn, lab_solo_channel(&h, false));
	assert_int_equal(feed_void(&h, (struct mrc_wire_hdr){0}, NULL, 0), 0);
	assert_int_equal(lab_feed_state(&h, 0, 0, &settled), 0);
	assert_int_equal(ch->peer_settled_stated, 1);
	assert_int_equal(ch->peer_settled, 0);
	lab_pump(&h);
	assert_int_equal(lab_find(&h, MRC_ACT_GAP, 0, 0)->msg.number, 0);
	assert_int_equal(lab_feed_state(&h, 0, 0, &settled), 0);
	assert_int_equal(ch->peer_settled, 1);
	lab_host_fini(&h);
}

/*
 * An ended channel's memory was freed though the old epoch's queue pair was not
 * fenced: the path was looked for by its number, and that was another's by then.
 */
static void what_waits_for_a_path_is_not_misled_by_its_number(void **state)
{
	struct mrc_event_in up = {
		.kind = MRC_EV_PATH_UP,
		.path = {.index = 1,
			 .path_id = 0,
			 .is_direct_capable = true,
			 .conn_epoch = LAB_EPOCH + 1,
			 .path_epoch = 2 * LAB_PATH_EPOCH,
			 .peer_boot_id = LAB_BOOT_B + 1},
	};
	struct lab_host h;
	uint32_t from;

	granted(&h, true);
	h.fences = false;
	from = h.log_count;
	assert_int_equal(lab_path(&h, MRC_EV_PATH_DOWN, 1, MRC_REASON_ERROR), 0);
	assert_int_equal(lab_handle(&h, &up), 0);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_CH_DOWN, from), 1);
	assert_true(h.conn->paths[0].is_connected); /* asked to be fenced, and not yet */
	assert_int_equal(lab_count(&h, MRC_ACT_LANDING_FREE, from), 0);
	assert_int_equal(lab_count(&h, MRC_ACT_CH_FREE, from), 0);
	assert_int_equal(lab_path(&h, MRC_EV_FENCED, 0, MRC_REASON_NONE), 0);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_LANDING_FREE, from), 1);
	assert_int_equal(lab_count(&h, MRC_ACT_CH_FREE, from), 1);
	lab_host_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_posted_after_the_void_and_it_says_what_was),
		cmocka_unit_test(a_void_says_what_is_settled_and_its_place_in_the_ring),
		cmocka_unit_test(a_landing_buffer_is_freed_when_every_path_has_passed_or_is_fenced),
		cmocka_unit_test(what_cannot_be_writing_is_not_waited_for),
		cmocka_unit_test(the_ring_and_the_credit_wait_as_well_and_are_told_when_it_is_over),
		cmocka_unit_test(its_slot_is_not_used_again_before_it_is_over),
		cmocka_unit_test(the_counts_of_the_last_void_hold_for_all),
		cmocka_unit_test(frames_overtaken_by_their_void_are_ignored),
		cmocka_unit_test(a_void_moves_the_window_it_needs),
		cmocka_unit_test(what_stands_behind_a_void_message_goes_on_by_itself),
		cmocka_unit_test(a_void_alone_frees_the_place_in_the_ring_it_names),
		cmocka_unit_test(a_place_that_cannot_be_is_refused),
		cmocka_unit_test(a_slot_is_kept_until_its_gap_was_taken),
		cmocka_unit_test(what_waits_for_a_path_is_not_misled_by_its_number),
	};

	return cmocka_run_group_tests_name("void", tests, NULL, NULL);
}
