/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What landed and was lost is asked for again (WANT): these bytes and no others,
 * only when nothing can be writing them, and never more than can be remembered.
 */
#include "engine_lab.h"

enum { MSG_BYTES = 1 << 20, HOLD = 55 };

/* An engine with one channel; the peer's message 0 (MSG_BYTES) has its buffer. */
struct fixture {
	struct lab_host h;
	struct mrc_channel *ch;
	uint64_t addr;
};

static void fixture_up(struct fixture *f)
{
	f->ch = mrc_conn_channel(f->h.conn, lab_solo_channel(&f->h, false));
	f->addr = f->h.landing_next;
	assert_int_equal(lab_feed(&f->h, 0,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_RTS, .msg_len = MSG_BYTES},
				  NULL),
			 0);
	lab_pump(&f->h);
	assert_true(f->ch->in[0].is_granted);
	lab_ack_all(&f->h);
	lab_pump(&f->h);
}

static void fixture_init(struct fixture *f, const struct mrc_limits *limits)
{
	lab_host_init(&f->h, "a", "b", LAB_BOOT_A, 2, limits);
	for (uint8_t i = 0; i < 2; i++)
		lab_path_good(&f->h, i, false);
	fixture_up(f);
}

static struct mrc_wire_hdr part(const struct fixture *f, uint64_t start, uint64_t end)
{
	return (struct mrc_wire_hdr){.msg_len = MSG_BYTES,
				     .offset = start,
				     .body_len = (uint32_t)(end - start),
				     .addr = f->addr};
}

static int lose(struct fixture *f, uint8_t path, uint64_t start, uint64_t end, bool is_bad)
{
	return lab_feed_frag(&f->h, path, part(f, start, end),
			     (struct lab_came){.is_bad = is_bad, .is_lost = !is_bad});
}

/* The nth WANT since `from` asks for [start, end). */
static void want_is(const struct fixture *f, uint32_t from, uint32_t nth, uint64_t start,
		    uint64_t end)
{
	const struct mrc_act_post *want = lab_posted(&f->h, MRC_WIRE_WANT, from, nth);

	assert_non_null(want);
	assert_int_equal(want->hdr.msg, 0);
	assert_int_equal(want->hdr.offset, start);
	assert_int_equal(want->hdr.msg_len, end);
}

/* ---- asking ---- */

static void two_lost_ranges_are_asked_for_by_two_wants(void **state)
{
	struct fixture f;
	uint32_t from;

	fixture_init(&f, NULL);
	from = f.h.log_count;
	assert_int_equal(lose(&f, 0, 500, 600, true), 0);
	assert_int_equal(lose(&f, 0, 100, 200, true), 0);
	lab_pump(&f.h);
	assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_WANT, from), 2);
	want_is(&f, from, 0, 100, 200);
	want_is(&f, from, 1, 500, 600);
	/* All the rest and these: it is whole. */
	assert_int_equal(lab_feed_frag(&f.h, 0, part(&f, 0, 100), (struct lab_came){0}), 0);
	assert_int_equal(lab_feed_frag(&f.h, 1, part(&f, 200, 500), (struct lab_came){0}), 0);
	assert_int_equal(lab_feed_frag(&f.h, 1, part(&f, 600, MSG_BYTES), (struct lab_came){0}), 0);
	lab_pump(&f.h);
	assert_null(lab_find(&f.h, MRC_ACT_DELIVER, from, 0));
	assert_int_equal(lab_feed_frag(&f.h, 0, part(&f, 500, 600), (struct lab_came){0}), 0);
	assert_int_equal(lab_feed_frag(&f.h, 1, part(&f, 100, 200), (struct lab_came){0}), 0);
	lab_pump(&f.h);
	assert_int_equal(lab_count(&f.h, MRC_ACT_DELIVER, from), 1);
	assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_WANT, from), 2);
	assert_int_equal(lab_info(&f.h).duplicates, 0);
	lab_host_fini(&f.h);
}

/* Only what is missing of it: the rest is here, and was checked. */
static void what_is_here_is_not_asked_for(void **state)
{
	struct fixture f;
	uint32_t from;

	fixture_init(&f, NULL);
	from = f.h.log_count;
	assert_int_equal(lab_feed_frag(&f.h, 0, part(&f, 0, 100), (struct lab_came){0}), 0);
	assert_int_equal(lose(&f, 0, 20, 100, true), 0); /* a copy nobody needs */
	assert_int_equal(lose(&f, 0, 50, 150, true), 0);
	lab_pump(&f.h);
	assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_WANT, from), 1);
	want_is(&f, from, 0, 100, 150);
	assert_int_equal(lab_path_info(&f.h, 0).body_errors, 1);
	lab_host_fini(&f.h);
}

static void a_want_lost_with_its_path_is_asked_again_with_its_blame(void **state)
{
	for (int is_bad = 0; is_bad < 2; is_bad++) {
		struct fixture f;
		uint32_t from;
		uint8_t path;

		fixture_init(&f, NULL);
		from = f.h.log_count;
		assert_int_equal(lose(&f, 0, 100, 200, is_bad), 0);
		lab_pump(&f.h);
		want_is(&f, from, 0, 100, 200);
		assert_int_equal(lab_posted(&f.h, MRC_WIRE_WANT, from, 0)->hdr.arg, is_bad);
		path = lab_posted(&f.h, MRC_WIRE_WANT, from, 0)->index;
		from = f.h.log_count;
		lab_path(&f.h, MRC_EV_PATH_DOWN, path, MRC_REASON_ERROR);
		lab_pump(&f.h);
		assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_WANT, from), 1);
		want_is(&f, from, 0, 100, 200);
		assert_int_equal(lab_posted(&f.h, MRC_WIRE_WANT, from, 0)->hdr.arg, is_bad);
		assert_int_not_equal(lab_posted(&f.h, MRC_WIRE_WANT, from, 0)->index, path);
		/* Acknowledged, it is not asked a third time. */
		lab_ack_all(&f.h);
		from = f.h.log_count;
		lab_path(&f.h, MRC_EV_PATH_DOWN, !path, MRC_REASON_ERROR);
		lab_path_good(&f.h, path, false);
		assert_null(lab_posted(&f.h, MRC_WIRE_WANT, from, 0));
		lab_host_fini(&f.h);
	}
}

/* ---- answering ---- */

/* Our message 0, all of it written directly by path 0 and taken in there; message 1 is half sent. */
static void sent_directly(struct fixture *f)
{
	lab_solo_up(&f->h, 2, true);
	f->ch = mrc_conn_channel(f->h.conn, lab_solo_channel(&f->h, false));
	for (uint8_t i = 0; i < 2; i++)
		assert_int_equal(lab_feed_key(&f->h, i, LAB_SPACE, true, 9, 0), 0);
	assert_int_equal(lab_send(&f->h, f->ch->id, 1000, MRC_LVL_COMMITTED, 0), 0);
	lab_pump(&f->h);
	assert_int_equal(lab_posted_count(&f->h, MRC_WIRE_FRAG, 0), 1);
	assert_int_equal(lab_posted(&f->h, MRC_WIRE_FRAG, 0, 0)->hdr.flags & MRC_WIRE_F_DIRECT,
			 MRC_WIRE_F_DIRECT);
}

static int feed_want(struct lab_host *h, uint8_t path, uint64_t start, uint64_t end)
{
	return lab_feed(h, path,
			(struct mrc_wire_hdr){.type = MRC_WIRE_WANT,
					      .offset = start,
					      .msg_len = end},
			NULL);
}

static void two_wants_are_answered_with_just_these_bytes_and_no_writer(void **state)
{
	const uint64_t wants[][2] = {{500, 600}, {100, 200}};
	struct fixture f;
	uint32_t from;

	sent_directly(&f);
	lab_ack_all(&f.h);
	from = f.h.log_count;
	for (int i = 0; i < 2; i++)
		assert_int_equal(feed_want(&f.h, (uint8_t)i, wants[i][0], wants[i][1]), 0);
	lab_pump(&f.h);
	assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_FRAG, from), 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct mrc_wire_hdr *hdr = &lab_posted(&f.h, MRC_WIRE_FRAG, from, i)->hdr;

		assert_int_equal(hdr->offset, wants[i][0]);
		assert_int_equal(hdr->offset + hdr->body_len, wants[i][1]);
		/* A SEND, though its path has a key; and the first copy had landed. */
		assert_int_equal(hdr->flags, MRC_WIRE_F_EAGER);
		assert_int_equal(hdr->writer_epoch, 0);
	}
	lab_host_fini(&f.h);
}

/* A path that dies with a direct write on it: whoever copies must know who may be writing still. */
static void what_was_not_taken_in_is_sent_as_a_copy_that_names_its_writer(void **state)
{
	const struct mrc_act_post *copy;
	struct fixture f;
	uint32_t from;
	uint8_t writer;

	sent_directly(&f);
	writer = lab_posted(&f.h, MRC_WIRE_FRAG, 0, 0)->index;
	from = f.h.log_count;
	assert_int_equal(lab_feed(&f.h, !writer,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_PATH_FENCE,
							.msg = writer,
							.arg = f.h.conn->paths[writer].epoch},
				  NULL),
			 0);
	lab_pump(&f.h);
	copy = lab_posted(&f.h, MRC_WIRE_FRAG, from, 0);
	assert_non_null(copy);
	assert_int_equal(copy->index, !writer);
	assert_int_equal(copy->hdr.flags, MRC_WIRE_F_EAGER | MRC_WIRE_F_COPY);
	assert_int_equal(copy->hdr.writer_path, writer);
	assert_int_equal(copy->hdr.writer_epoch, LAB_PATH_EPOCH);
	assert_int_equal(copy->hdr.body_len, 1000);
	lab_host_fini(&f.h);
}

/* ---- bounds ---- */

static void wants_on_their_way_have_a_bound_and_go_on(void **state)
{
	const struct mrc_limits limits = {.channels_max = 2, .ranges_max = 16};
	struct fixture f;
	uint32_t bound, from;

	fixture_init(&f, &limits);
	bound = f.h.conn->limits.ranges_max / 4;
	from = f.h.log_count;
	for (uint32_t i = 0; i < bound + 2; i++)
		assert_int_equal(lose(&f, 0, 20 * i, 20 * i + 10, true), 0);
	lab_pump(&f.h);
	assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_WANT, from), bound);
	assert_int_equal(f.h.conn->wants_out, bound);
	/* Only their acknowledgement makes room, nothing else. */
	f.h.now_ns += MRC_MS / 2;
	lab_timer(&f.h);
	lab_pump(&f.h);
	assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_WANT, from), bound);
	lab_ack_all(&f.h);
	lab_pump(&f.h);
	assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_WANT, from), bound + 2);
	for (uint32_t i = 0; i < bound + 2; i++)
		want_is(&f, from, i, 20 * i, 20 * i + 10);
	lab_ack_all(&f.h);
	assert_int_equal(f.h.conn->wants_out, 0);
	lab_host_fini(&f.h);
}

/* Those that were out come back from a dead path, however full it is: nodes are kept for them. */
static void wants_of_a_dead_path_find_room_to_be_remembered(void **state)
{
	const struct mrc_limits limits = {.channels_max = 2, .ranges_max = 16};
	struct fixture f;
	uint32_t bound, from, lost = 0;
	uint8_t path;

	fixture_init(&f, &limits);
	bound = f.h.conn->limits.ranges_max / 4;
	from = f.h.log_count;
	for (; lost < bound; lost++)
		assert_int_equal(lose(&f, 0, 20 * lost, 20 * lost + 10, true), 0);
	lab_pump(&f.h);
	assert_int_equal(f.h.conn->wants_out, bound);
	path = lab_posted(&f.h, MRC_WIRE_WANT, from, 0)->index;
	for (; lost < 1000 && f.h.conn->ranges.free_count > bound; lost++)
		assert_int_equal(lose(&f, !path, 20 * lost, 20 * lost + 10, true), 0);
	from = f.h.log_count;
	lab_path(&f.h, MRC_EV_PATH_DOWN, path, MRC_REASON_ERROR);
	for (int i = 0; i < 1000 && lab_posted_count(&f.h, MRC_WIRE_WANT, from) < lost; i++) {
		lab_pump(&f.h);
		lab_ack_all(&f.h);
	}
	assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_WANT, from), lost);
	for (uint32_t i = 0; i < bound; i++)
		want_is(&f, from, i, 20 * i, 20 * i + 10);
	lab_host_fini(&f.h);
}

/* This path's frame was not taken in: it is fenced, and the count that is told leaves the frame out. */
static void not_taken_in(struct lab_host *h, uint8_t path, uint64_t taken, uint32_t from)
{
	const struct mrc_act_post *fenced;

	lab_pump(h);
	assert_non_null(lab_find(h, MRC_ACT_FENCE, from, 0));
	assert_int_equal(lab_find(h, MRC_ACT_FENCE, from, 0)->path.index, path);
	assert_int_equal(h->conn->paths[path].taken, taken);
	assert_int_equal(lab_info(h).protocol_errors, 0); /* nobody did wrong */
	assert_int_equal(lab_feed(h, !path,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_PATH_FENCE,
							.msg = path,
							.arg = h->conn->paths[path].epoch},
				  NULL),
			 0);
	lab_pump(h);
	fenced = lab_posted(h, MRC_WIRE_PATH_FENCED, from, 0);
	assert_non_null(fenced);
	assert_int_equal(fenced->hdr.msg, path);
	assert_int_equal(fenced->hdr.offset, taken);
}

static void a_frame_that_cannot_be_remembered_is_not_taken_in(void **state)
{
	const struct mrc_limits limits = {.channels_max = 2, .ranges_max = 16};
	struct fixture f;
	uint64_t taken;
	uint32_t from, i;

	fixture_init(&f, &limits);
	from = f.h.log_count;
	for (i = 0; i < 1000 && f.h.conn->ranges.free_count > f.h.conn->limits.ranges_max / 4; i++)
		assert_int_equal(lose(&f, 0, 20 * i, 20 * i + 10, true), 0);
	taken = f.h.conn->paths[0].taken;
	assert_int_equal(lose(&f, 0, 20 * i, 20 * i + 10, true), 0);
	not_taken_in(&f.h, 0, taken, from);
	/* What was asked for before is asked for; this one comes again as a matter of course. */
	for (uint32_t n = 0; lab_posted(&f.h, MRC_WIRE_WANT, from, n); n++)
		assert_true(lab_posted(&f.h, MRC_WIRE_WANT, from, n)->hdr.offset < 20 * i);
	lab_host_fini(&f.h);
}

static void a_want_beyond_half_of_the_resends_is_not_taken_in(void **state)
{
	const struct mrc_limits limits = {.channels_max = 2, .frames_in_flight_max = 64};
	struct lab_host h;
	struct mrc_channel *ch;
	uint64_t taken;
	uint32_t from;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 2, &limits);
	for (uint8_t i = 0; i < 2; i++)
		lab_path_good(&h, i, false);
	ch = mrc_conn_channel(h.conn, lab_solo_channel(&h, false));
	assert_int_equal(lab_send(&h, ch->id, 1000, MRC_LVL_COMMITTED, 0), 0);
	lab_pump(&h);
	lab_ack_all(&h);
	from = h.log_count;
	for (uint32_t i = 0; i < h.conn->resend_count / 2; i++)
		assert_int_equal(feed_want(&h, 0, i % 1000, i % 1000 + 1), 0);
	taken = h.conn->paths[0].taken;
	assert_int_equal(feed_want(&h, 0, 0, 1), 0);
	assert_int_equal(h.conn->resend_tail - h.conn->resend_head, h.conn->resend_count / 2);
	not_taken_in(&h, 0, taken, from);
	/* The first of them are answered, as far as the path that is left takes them. */
	assert_non_null(lab_posted(&h, MRC_WIRE_FRAG, from, 0));
	lab_host_fini(&h);
}

/*
 * One WANT of a long range makes many fragments, and each may come back from a
 * path that dies while the range is still there: the ring ran over.
 */
static void a_long_want_hit_by_one_path_after_the_other_stays_bounded(void **state)
{
	const struct mrc_limits limits = {.channels_max = 2,
					  .frames_in_flight_max = 64,
					  .frag_bytes_max = 4096};
	const uint64_t len = LAB_MSG_MAX;
	struct lab_host h;
	struct mrc_channel *ch;
	uint64_t bytes = 0;
	uint32_t from;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, &limits);
	lab_path_good(&h, 0, false);
	ch = mrc_conn_channel(h.conn, lab_solo_channel(&h, false));
	assert_int_equal(lab_send(&h, ch->id, len, MRC_LVL_COMMITTED, 0), 0);
	lab_pump(&h);
	assert_int_equal(lab_feed(&h, 0,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_CTS, .msg_len = len},
				  NULL),
			 0);
	while (ch->out[0].next_offset < len) {
		lab_pump(&h);
		lab_ack_all(&h);
		h.log_count = 0;
	}
	assert_int_equal(feed_want(&h, 0, 0, len), 0);
	for (uint32_t i = 0; i < 20; i++) {
		lab_pump(&h);
		h.log_count = 0;
		assert_int_equal(lab_path(&h, MRC_EV_PATH_DOWN, 0, MRC_REASON_ERROR), 0);
		assert_true(h.conn->resend_tail - h.conn->resend_head <= h.conn->resend_count);
		lab_path_good(&h, 0, false);
	}
	/* And nothing of it is lost: taken in as it comes, all is sent. */
	from = h.log_count;
	while (h.conn->resend_head < h.conn->resend_tail) {
		lab_pump(&h);
		lab_ack_all(&h);
		for (uint32_t i = 0; lab_posted(&h, MRC_WIRE_FRAG, from, i); i++)
			bytes += lab_posted(&h, MRC_WIRE_FRAG, from, i)->hdr.body_len;
		h.log_count = from = 0;
	}
	assert_true(bytes > len / 2);
	lab_host_fini(&h);
}

/* ---- copies whose writer may be writing still ---- */

static void a_lost_copy_is_asked_for_only_when_its_writer_is_fenced(void **state)
{
	const struct {
		const char *name;
		bool is_stream; /* the path it comes by; the writer's is direct */
		struct lab_came came;
		uint64_t blame; /* 1 + id of the path it comes by */
	} rows[] = {
		{"damaged, in daemon memory", false, {.is_bad = true, .hold = HOLD}, 2},
		{"damaged, without hold", false, {.is_bad = true, .is_lost = true}, 2},
		{"no daemon memory left", false, {.is_lost = true}, 0},
		{"damaged, on a byte stream", true, {.is_bad = true, .is_lost = true}, 2},
		{"read into scratch, on a byte stream", true, {.is_lost = true}, 0},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrc_wire_hdr copy;
		struct mrc_place place;
		struct fixture f;
		uint32_t from;

		lab_host_init(&f.h, "a", "b", LAB_BOOT_A, 2, NULL);
		lab_path_good(&f.h, 0, true);
		lab_path_good(&f.h, 1, !rows[i].is_stream);
		fixture_up(&f);
		f.h.fences = false;
		from = f.h.log_count;
		copy = part(&f, 300, 400);
		copy.flags = MRC_WIRE_F_COPY;
		copy.writer_path = 0;
		copy.writer_epoch = LAB_PATH_EPOCH;
		copy.conn_epoch = LAB_EPOCH;
		if (rows[i].is_stream) {
			assert_int_equal(mrc_conn_place(f.h.conn, &copy, 0, &place), 100);
			assert_true(place.is_scratch);
		}
		assert_int_equal(lab_feed_frag(&f.h, 1, copy, rows[i].came), 0);
		lab_pump(&f.h);
		if (lab_posted(&f.h, MRC_WIRE_WANT, from, 0))
			fail_msg("%s: asked for before the fence", rows[i].name);
		assert_int_equal(lab_count(&f.h, MRC_ACT_HOLD_FREE, from),
				 rows[i].came.hold ? 1 : 0);
		assert_non_null(lab_find(&f.h, MRC_ACT_FENCE, from, 0));
		assert_int_equal(lab_find(&f.h, MRC_ACT_FENCE, from, 0)->path.index, 0);
		lab_path(&f.h, MRC_EV_FENCED, 0, MRC_REASON_NONE);
		lab_pump(&f.h);
		if (lab_posted_count(&f.h, MRC_WIRE_WANT, from) != 1)
			fail_msg("%s: not asked for after the fence", rows[i].name);
		want_is(&f, from, 0, 300, 400);
		assert_int_equal(lab_posted(&f.h, MRC_WIRE_WANT, from, 0)->hdr.arg, rows[i].blame);
		assert_int_equal(lab_path_info(&f.h, 1).body_errors, rows[i].blame != 0);
		assert_null(lab_find(&f.h, MRC_ACT_COPY, from, 0));
		/* Now it has a place. */
		assert_int_equal(mrc_conn_place(f.h.conn, &copy, 0, &place), 100);
		assert_false(place.is_scratch);
		assert_int_equal(place.addr, f.addr + 300);
		assert_int_equal(f.h.conn->holds_lost, 0);
		lab_host_fini(&f.h);
	}
}

/* Its bytes came by another copy meanwhile: there is nothing left to ask for. */
static void a_lost_copy_is_not_asked_for_when_the_bytes_came_meanwhile(void **state)
{
	struct mrc_wire_hdr copy;
	struct fixture f;
	uint32_t from;

	lab_solo_up(&f.h, 2, true);
	fixture_up(&f);
	f.h.fences = false;
	from = f.h.log_count;
	copy = part(&f, 300, 400);
	copy.flags = MRC_WIRE_F_COPY;
	copy.writer_epoch = LAB_PATH_EPOCH;
	assert_int_equal(lab_feed_frag(&f.h, 1, copy, (struct lab_came){.hold = HOLD}), 0);
	assert_int_equal(lab_feed_frag(&f.h, 1, copy, (struct lab_came){.is_bad = true}), 0);
	lab_path(&f.h, MRC_EV_FENCED, 0, MRC_REASON_NONE);
	lab_pump(&f.h);
	assert_int_equal(lab_count(&f.h, MRC_ACT_COPY, from), 1);
	assert_null(lab_posted(&f.h, MRC_WIRE_WANT, from, 0));
	assert_int_equal(f.ch->in[0].here.bytes, 100);
	lab_host_fini(&f.h);
}

/* MRC_HOLDS_LOST_MAX ranges; those that touch are one, and the next one is not taken in. */
static void lost_copies_that_wait_have_a_bound(void **state)
{
	const struct mrc_limits limits = {.channels_max = 2, .holds_max = 4};
	struct mrc_wire_hdr copy;
	struct fixture f;
	uint64_t taken;
	uint32_t from;

	lab_host_init(&f.h, "a", "b", LAB_BOOT_A, 3, &limits);
	for (uint8_t i = 0; i < 3; i++)
		lab_path_good(&f.h, i, true);
	fixture_up(&f);
	f.h.fences = false;
	from = f.h.log_count;
	for (uint32_t i = 0; i <= MRC_HOLDS_LOST_MAX; i++) {
		for (uint32_t half = 0; half < 2; half++) {
			taken = f.h.conn->paths[1].taken;
			copy = part(&f, 12 * i + 5 * half, 12 * i + 5 * half + 5);
			copy.flags = MRC_WIRE_F_COPY;
			copy.writer_epoch = LAB_PATH_EPOCH;
			assert_int_equal(lab_feed_frag(&f.h, 1, copy,
						       (struct lab_came){.is_lost = true}),
					 0);
			assert_int_equal(f.h.conn->paths[1].taken - taken, i < MRC_HOLDS_LOST_MAX);
		}
	}
	lab_pump(&f.h);
	assert_int_equal(lab_count(&f.h, MRC_ACT_FENCE, from), 2); /* the writer, and this one */
	assert_null(lab_posted(&f.h, MRC_WIRE_WANT, from, 0));
	lab_path(&f.h, MRC_EV_FENCED, 0, MRC_REASON_NONE);
	lab_pump(&f.h);
	assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_WANT, from), MRC_HOLDS_LOST_MAX);
	lab_host_fini(&f.h);
}

static void a_copy_of_a_writer_that_never_was_is_refused(void **state)
{
	const struct {
		const char *name;
		uint16_t path;
		uint32_t epoch;
		bool is_stream;
	} rows[] = {
		{"a later epoch", 0, LAB_PATH_EPOCH + 1, false},
		{"a later epoch, by a byte stream", 0, LAB_PATH_EPOCH + 1, true},
		{"no such path", 2, LAB_PATH_EPOCH, false},
		{"no such path, by a byte stream", 2, LAB_PATH_EPOCH, true},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrc_wire_hdr copy;
		struct fixture f;
		uint32_t from;
		int r;

		lab_solo_up(&f.h, 2, !rows[i].is_stream);
		fixture_up(&f);
		from = f.h.log_count;
		copy = part(&f, 300, 400);
		copy.flags = MRC_WIRE_F_COPY;
		copy.writer_path = rows[i].path;
		copy.writer_epoch = rows[i].epoch;
		r = lab_feed_frag(&f.h, 1, copy,
				  (struct lab_came){.hold = rows[i].is_stream ? 0 : HOLD});
		if (r != -EPROTO)
			fail_msg("%s: answer %d", rows[i].name, r);
		assert_int_equal(f.ch->in[0].here.bytes, 0);
		lab_pump(&f.h);
		assert_int_equal(lab_count(&f.h, MRC_ACT_HOLD_FREE, from),
				 rows[i].is_stream ? 0 : 1);
		lab_host_fini(&f.h);
	}
}

/* ---- more gaps than can be remembered ---- */

static struct mrc_wire_hdr piece(const struct fixture *f, uint32_t i)
{
	return part(f, 40 * (uint64_t)i, 40 * (uint64_t)i + 10);
}

/* Pieces with gaps between, until no node is left for another: how many. */
static uint32_t fill_here(struct fixture *f, uint8_t path)
{
	uint32_t i = 0;

	while (f->h.conn->ranges.free_count > MRC_RANGES_KEPT_HERE(f->h.conn))
		assert_int_equal(lab_feed_frag(&f->h, path, piece(f, i++), (struct lab_came){0}),
				 0);
	return i;
}

/* The fixture over paths that write directly. */
static void direct_init(struct fixture *f)
{
	const struct mrc_limits limits = {.channels_max = 2,
					  .frames_in_flight_max = 64,
					  .ranges_max = 16};

	lab_host_init(&f->h, "a", "b", LAB_BOOT_A, 2, &limits);
	for (uint8_t i = 0; i < 2; i++)
		lab_path_good(&f->h, i, true);
	fixture_up(f);
}

static void a_piece_there_is_no_node_for_is_asked_for_again(void **state)
{
	for (uint64_t hold = 0; hold <= HOLD; hold += HOLD) { /* in its place, in daemon memory */
		struct fixture f;
		uint32_t n, from;

		direct_init(&f);
		n = fill_here(&f, 0);
		from = f.h.log_count;
		assert_int_equal(lab_feed_frag(&f.h, 0, piece(&f, n),
					       (struct lab_came){.hold = hold}),
				 0);
		lab_pump(&f.h);
		assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_WANT, from), 1);
		want_is(&f, from, 0, 40 * (uint64_t)n, 40 * (uint64_t)n + 10);
		assert_int_equal(lab_posted(&f.h, MRC_WIRE_WANT, from, 0)->hdr.arg, 0);
		assert_int_equal(lab_count(&f.h, MRC_ACT_HOLD_FREE, from), hold != 0);
		assert_null(lab_find(&f.h, MRC_ACT_COPY, from, 0));
		/* A gap is filled: there is room, and the piece that comes again stays. */
		assert_int_equal(lab_feed_frag(&f.h, 0, part(&f, 0, 50), (struct lab_came){0}), 0);
		assert_int_equal(lab_feed_frag(&f.h, 0, piece(&f, n), (struct lab_came){0}), 0);
		lab_pump(&f.h);
		assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_WANT, from), 1);
		lab_host_fini(&f.h);
	}
}

/* Not even that it is wanted can be remembered: it waits in daemon memory, and is not forgotten. */
static void a_held_piece_waits_for_a_node(void **state)
{
	for (int is_lost = 0; is_lost < 2;
	     is_lost++) { /* it is held, or was a copy that got lost */
		struct mrc_wire_hdr late;
		struct fixture f;
		uint32_t n, from, wanted = 0;
		bool asked[100] = {0};

		direct_init(&f);
		f.h.fences = false;
		n = fill_here(&f, 1);
		from = f.h.log_count;
		late = piece(&f, n);
		late.flags = MRC_WIRE_F_COPY;
		late.writer_epoch = LAB_PATH_EPOCH;
		assert_int_equal(lab_feed_frag(&f.h, 1, late,
					       (struct lab_came){.is_lost = is_lost,
								 .hold = is_lost ? 0 : HOLD}),
				 0);
		lab_pump(&f.h);
		for (uint32_t i = n + 1;
		     f.h.conn->ranges.free_count > MRC_RANGES_KEPT_WANTED(f.h.conn); i++, wanted++)
			assert_int_equal(lab_feed_frag(&f.h, 1, piece(&f, i),
						       (struct lab_came){.is_lost = true}),
					 0);
		lab_path(&f.h, MRC_EV_FENCED, 0, MRC_REASON_NONE);
		for (int i = 0; i < 100; i++) {
			lab_pump(&f.h);
			lab_ack_all(&f.h);
		}
		/* All are asked for, each once: the nodes of those that were told served it. */
		assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_WANT, from), wanted + 1);
		for (uint32_t i = 0; i < wanted + 1; i++) {
			uint64_t offset = lab_posted(&f.h, MRC_WIRE_WANT, from, i)->hdr.offset;

			assert_int_equal(offset % 40, 0);
			assert_in_range(offset / 40, n, n + wanted);
			assert_false(asked[offset / 40]);
			asked[offset / 40] = true;
		}
		assert_int_equal(lab_count(&f.h, MRC_ACT_HOLD_FREE, from), !is_lost);
		assert_null(lab_find(&f.h, MRC_ACT_COPY, from, 0));
		assert_int_equal(f.h.conn->holds_used, 0);
		assert_int_equal(f.h.conn->holds_lost, 0);
		lab_host_fini(&f.h);
	}
}

/* ---- what is here already ---- */

/* Bytes that are here were checked, and a client may not see others in their place. */
static void only_what_is_missing_of_a_copy_is_copied(void **state)
{
	const struct mrc_action *act;
	struct fixture f;
	uint32_t from;

	direct_init(&f);
	from = f.h.log_count;
	assert_int_equal(lab_feed_frag(&f.h, 0, part(&f, 100, 110), (struct lab_came){0}), 0);
	assert_int_equal(lab_feed_frag(&f.h, 0, part(&f, 90, 120), (struct lab_came){.hold = HOLD}),
			 0);
	lab_pump(&f.h);
	assert_int_equal(lab_count(&f.h, MRC_ACT_COPY, from), 2);
	for (uint32_t i = 0; i < 2; i++) {
		act = lab_find(&f.h, MRC_ACT_COPY, from, i);
		assert_int_equal(act->msg.hold, HOLD);
		assert_int_equal(act->msg.hold_offset, i ? 20 : 0);
		assert_int_equal(act->msg.addr, f.addr + (i ? 110 : 90));
		assert_int_equal(act->msg.len, 10);
	}
	act = lab_find(&f.h, MRC_ACT_HOLD_FREE, from, 0);
	assert_non_null(act);
	assert_true(act > lab_find(&f.h, MRC_ACT_COPY, from, 1));
	assert_int_equal(lab_count(&f.h, MRC_ACT_HOLD_FREE, from), 1);
	lab_host_fini(&f.h);
}

static void a_piece_that_comes_twice_counts_once(void **state)
{
	struct fixture f;

	direct_init(&f);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(lab_feed_frag(&f.h, 0, part(&f, 0, 10), (struct lab_came){0}), 0);
		assert_int_equal(lab_info(&f.h).duplicates, i);
		assert_int_equal(f.ch->in[0].here.bytes, 10);
	}
	lab_host_fini(&f.h);
}

/* ---- epochs ---- */

static void daemon_memory_comes_back_from_a_frame_of_another_epoch(void **state)
{
	struct mrc_place place;
	struct fixture f;
	struct mrc_wire_hdr hdr;
	struct mrc_event_in ev = {
		.kind = MRC_EV_ARRIVED,
		.arrived = {.is_body_good = true,
			    .path_epoch = LAB_PATH_EPOCH,
			    .hdr = &hdr,
			    .hold = HOLD},
	};

	direct_init(&f);
	hdr = part(&f, 0, 10);
	hdr.type = MRC_WIRE_FRAG;
	hdr.conn_epoch = LAB_EPOCH - 1;
	hdr.path_epoch = LAB_PATH_EPOCH;
	/* It has no place either: channel numbers begin anew with a conn epoch. */
	assert_int_equal(mrc_conn_place(f.h.conn, &hdr, 0, &place), 10);
	assert_true(place.is_scratch);
	assert_false(mrc_conn_place_whole(f.h.conn, &hdr, &place));
	assert_int_equal(lab_handle(&f.h, &ev), -EPROTO);
	lab_pump(&f.h);
	assert_int_equal(lab_count(&f.h, MRC_ACT_HOLD_FREE, 0), 1);
	assert_int_equal(lab_find(&f.h, MRC_ACT_HOLD_FREE, 0, 0)->msg.hold, HOLD);
	/* Of this epoch it has one. */
	hdr.conn_epoch = LAB_EPOCH;
	assert_true(mrc_conn_place_whole(f.h.conn, &hdr, &place));
	assert_int_equal(place.addr, f.addr);
	lab_host_fini(&f.h);
}

static void a_new_conn_epoch_gives_daemon_memory_back(void **state)
{
	struct mrc_wire_hdr copy;
	struct fixture f;
	uint32_t from;

	direct_init(&f);
	f.h.fences = false;
	copy = part(&f, 0, 10);
	copy.flags = MRC_WIRE_F_COPY;
	copy.writer_epoch = LAB_PATH_EPOCH;
	assert_int_equal(lab_feed_frag(&f.h, 1, copy, (struct lab_came){.hold = HOLD}), 0);
	lab_pump(&f.h);
	from = f.h.log_count;
	assert_null(lab_find(&f.h, MRC_ACT_HOLD_FREE, 0, 0)); /* it waits for its writer's fence */
	assert_int_equal(lab_path_up(&f.h, 1, LAB_EPOCH + 1, LAB_PATH_EPOCH + 1, LAB_BOOT_B + 1,
				     true),
			 0);
	lab_pump(&f.h);
	assert_int_equal(lab_count(&f.h, MRC_ACT_HOLD_FREE, from), 1);
	assert_null(lab_find(&f.h, MRC_ACT_COPY, from, 0));
	lab_host_fini(&f.h);
}

/* Those that could have been copied at once, and those that waited: each is given back once and none is copied. */
static void a_new_conn_epoch_between_a_fence_and_the_copy_counts_each_hold_once(void **state)
{
	struct mrc_conn *conn;
	struct mrc_wire_hdr copy;
	struct fixture f;
	uint32_t from;

	direct_init(&f);
	conn = f.h.conn;
	f.h.fences = false;
	copy = part(&f, 40, 50);
	copy.flags = MRC_WIRE_F_COPY;
	copy.writer_epoch = LAB_PATH_EPOCH;
	/* Two that have no writer, one that has, one that was lost and has. */
	assert_int_equal(lab_feed_frag(&f.h, 1, part(&f, 0, 10), (struct lab_came){.hold = 1}), 0);
	assert_int_equal(lab_feed_frag(&f.h, 1, part(&f, 20, 30), (struct lab_came){.hold = 2}), 0);
	assert_int_equal(lab_feed_frag(&f.h, 1, copy, (struct lab_came){.hold = 3}), 0);
	copy.offset = 60;
	assert_int_equal(lab_feed_frag(&f.h, 1, copy, (struct lab_came){.is_lost = true}), 0);
	assert_int_equal(conn->holds_ready, 2);
	from = f.h.log_count;
	assert_int_equal(lab_path_up(&f.h, 1, LAB_EPOCH + 1, LAB_PATH_EPOCH + 1, LAB_BOOT_B + 1,
				     true),
			 0);
	assert_int_equal(conn->holds_ready, 4);
	lab_pump(&f.h);
	assert_int_equal(lab_count(&f.h, MRC_ACT_HOLD_FREE, from), 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(lab_find(&f.h, MRC_ACT_HOLD_FREE, from, i)->msg.hold, i + 1);
	assert_null(lab_find(&f.h, MRC_ACT_COPY, from, 0));
	assert_int_equal(conn->holds_ready, 0);
	assert_int_equal(conn->holds_used, 0);
	assert_int_equal(conn->holds_lost, 0);
	lab_host_fini(&f.h);
}

/* Nor is it kept when the frame itself is refused. */
static void daemon_memory_comes_back_from_a_frame_that_is_refused(void **state)
{
	struct mrc_wire_hdr bad;
	struct fixture f;

	direct_init(&f);
	bad = part(&f, 0, 10);
	bad.addr++;
	assert_int_equal(lab_feed_frag(&f.h, 0, bad, (struct lab_came){.hold = HOLD}), -EPROTO);
	lab_pump(&f.h);
	assert_int_equal(lab_count(&f.h, MRC_ACT_HOLD_FREE, 0), 1);
	assert_int_equal(lab_find(&f.h, MRC_ACT_HOLD_FREE, 0, 0)->msg.hold, HOLD);
	assert_int_equal(f.h.conn->holds_used, 0);
	lab_host_fini(&f.h);
}

static void an_rts_of_what_was_settled_does_nothing(void **state)
{
	struct fixture f;
	uint32_t from;

	direct_init(&f);
	assert_int_equal(lab_feed_frag(&f.h, 0, part(&f, 0, MSG_BYTES), (struct lab_came){0}), 0);
	lab_pump(&f.h);
	assert_int_equal(lab_feed_state(&f.h, 0, 0,
					&(struct lab_state){.settled = 1,
							    .ring_limit = LAB_RING_BYTES,
							    .msg_limit = LAB_WINDOW}),
			 0);
	lab_pump(&f.h);
	from = f.h.log_count;
	assert_int_equal(lab_feed(&f.h, 1,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_RTS, .msg_len = MSG_BYTES},
				  NULL),
			 0);
	lab_pump(&f.h);
	assert_null(lab_posted(&f.h, MRC_WIRE_CTS, from, 0));
	assert_null(lab_find(&f.h, MRC_ACT_LANDING_WANT, from, 0));
	lab_host_fini(&f.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_lost_ranges_are_asked_for_by_two_wants),
		cmocka_unit_test(what_is_here_is_not_asked_for),
		cmocka_unit_test(a_want_lost_with_its_path_is_asked_again_with_its_blame),
		cmocka_unit_test(two_wants_are_answered_with_just_these_bytes_and_no_writer),
		cmocka_unit_test(what_was_not_taken_in_is_sent_as_a_copy_that_names_its_writer),
		cmocka_unit_test(wants_on_their_way_have_a_bound_and_go_on),
		cmocka_unit_test(wants_of_a_dead_path_find_room_to_be_remembered),
		cmocka_unit_test(a_frame_that_cannot_be_remembered_is_not_taken_in),
		cmocka_unit_test(a_want_beyond_half_of_the_resends_is_not_taken_in),
		cmocka_unit_test(a_long_want_hit_by_one_path_after_the_other_stays_bounded),
		cmocka_unit_test(a_lost_copy_is_asked_for_only_when_its_writer_is_fenced),
		cmocka_unit_test(a_lost_copy_is_not_asked_for_when_the_bytes_came_meanwhile),
		cmocka_unit_test(lost_copies_that_wait_have_a_bound),
		cmocka_unit_test(a_copy_of_a_writer_that_never_was_is_refused),
		cmocka_unit_test(a_piece_there_is_no_node_for_is_asked_for_again),
		cmocka_unit_test(a_held_piece_waits_for_a_node),
		cmocka_unit_test(only_what_is_missing_of_a_copy_is_copied),
		cmocka_unit_test(a_piece_that_comes_twice_counts_once),
		cmocka_unit_test(daemon_memory_comes_back_from_a_frame_of_another_epoch),
		cmocka_unit_test(a_new_conn_epoch_gives_daemon_memory_back),
		cmocka_unit_test(
			a_new_conn_epoch_between_a_fence_and_the_copy_counts_each_hold_once),
		cmocka_unit_test(daemon_memory_comes_back_from_a_frame_that_is_refused),
		cmocka_unit_test(an_rts_of_what_was_settled_does_nothing),
	};

	return cmocka_run_group_tests_name("want", tests, NULL, NULL);
}
