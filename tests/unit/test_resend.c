/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring of what is to be sent again: fragments taken off dead paths, and
 * ranges that the peer asked for. Entries and fragments in flight together never
 * exceed it, nothing in it is forgotten, and it never stands still.
 */
#include "engine_lab.h"

enum { FRAG = 4096 };

static uint64_t entries(const struct mrc_conn *conn)
{
	return conn->resend_tail - conn->resend_head;
}

/* What the ring owes when all paths die now. One piece more is out only alone, and goes back to the head. */
static void bounds_hold(const struct mrc_conn *conn)
{
	uint64_t out = 0;

	for (uint8_t i = 0; i < conn->path_count; i++) {
		const struct mrc_path *path = &conn->paths[i];

		for (uint64_t at = path->acked; at < path->posted; at++) {
			const struct mrc_record *record =
				&path->records[at & (path->record_count - 1)];

			out += record->kind == MRC_REC_FRAG && !record->is_moved;
		}
	}
	assert_int_equal(conn->frags_out, out);
	assert_true(entries(conn) <= conn->resend_count);
	if (entries(conn) + out > conn->resend_count)
		assert_int_equal(out, 1);
	assert_true(entries(conn) + out <= conn->resend_count + 1);
}

static int feed_want(struct lab_host *h, uint8_t path, uint64_t number, uint64_t start,
		     uint64_t end)
{
	return lab_feed(h, path,
			(struct mrc_wire_hdr){.type = MRC_WIRE_WANT,
					      .msg = number,
					      .offset = start,
					      .msg_len = end},
			NULL);
}

/* An engine with one path and one message of LAB_MSG_MAX, all of it sent and taken in. */
struct fixture {
	struct lab_host h;
	struct mrc_conn *conn;
	struct mrc_channel *ch;
};

static void fixture_init(struct fixture *f)
{
	const struct mrc_limits limits = {.channels_max = 2,
					  .frames_in_flight_max = 64,
					  .frag_bytes_max = FRAG,
					  .path_window_bytes_min = 1 << 20};

	lab_host_init(&f->h, "a", "b", LAB_BOOT_A, 1, &limits);
	f->conn = f->h.conn;
	lab_path_good(&f->h, 0, false);
	f->ch = mrc_conn_channel(f->conn, lab_solo_channel(&f->h, false));
	assert_int_equal(lab_send(&f->h, f->ch->id, LAB_MSG_MAX, MRC_LVL_COMMITTED, 1), 0);
	lab_pump(&f->h);
	assert_int_equal(
		lab_feed(&f->h, 0,
			 (struct mrc_wire_hdr){.type = MRC_WIRE_CTS, .msg_len = LAB_MSG_MAX}, NULL),
		0);
	while (f->ch->out[0].next_offset < LAB_MSG_MAX) {
		lab_pump(&f->h);
		lab_ack_all(&f->h);
		f->h.log_count = 0;
	}
	assert_int_equal(f->conn->frags_out, 0);
}

static void path_dies(struct fixture *f)
{
	assert_int_equal(lab_path(&f->h, MRC_EV_PATH_DOWN, 0, MRC_REASON_ERROR), 0);
	bounds_hold(f->conn);
	assert_int_equal(f->conn->frags_out, 0);
}

/* All entries are taken; the head is a range of `head` bytes, and its path is not yet up again. */
static void fill(struct fixture *f, uint64_t head)
{
	uint64_t wants = f->conn->resend_count / 2;

	assert_int_equal(feed_want(&f->h, 0, 0, 0, LAB_MSG_MAX), 0);
	for (uint64_t i = 1; i < wants; i++)
		assert_int_equal(feed_want(&f->h, 0, 0, FRAG * i, FRAG * i + FRAG), 0);
	for (uint32_t i = 0; i < 20 && entries(f->conn) < f->conn->resend_count; i++) {
		lab_pump(&f->h);
		bounds_hold(f->conn);
		path_dies(f);
		if (entries(f->conn) < f->conn->resend_count)
			lab_path_good(&f->h, 0, false);
	}
	assert_int_equal(entries(f->conn), f->conn->resend_count);
	/* What is left of the range is long; the test wants it short. */
	f->conn->resends[f->conn->resend_head & (f->conn->resend_count - 1)].len = head;
}

static struct mrc_resend *head_of(const struct mrc_conn *conn)
{
	return &conn->resends[conn->resend_head & (conn->resend_count - 1)];
}

/* Fragments of the log that are out, the first one's offset told. */
static uint32_t frags(const struct lab_host *h, uint64_t *offset)
{
	const struct mrc_act_post *post = lab_posted(h, MRC_WIRE_FRAG, 0, 0);

	*offset = post ? post->hdr.offset : 0;
	return lab_posted_count(h, MRC_WIRE_FRAG, 0);
}

/* Each of the others may come back from a dead path, and there is no entry for one more. */
static void with_all_entries_taken_one_piece_of_the_head_goes_at_a_time(void **state)
{
	struct mrc_resend before;
	struct fixture f;
	uint64_t offset;

	fixture_init(&f);
	fill(&f, 3 * FRAG);
	before = *head_of(f.conn);
	f.h.log_count = 0;
	lab_path_good(&f.h, 0, false); /* it acknowledges the first piece */
	bounds_hold(f.conn);
	assert_int_equal(frags(&f.h, &offset), 1);
	assert_int_equal(offset, before.offset);
	f.h.log_count = 0;
	lab_pump(&f.h);
	bounds_hold(f.conn);
	/* And the second. It ends no entry; the last one does, and then others go too. */
	assert_int_equal(frags(&f.h, &offset), 1);
	assert_int_equal(offset, before.offset + FRAG);
	assert_int_equal(head_of(f.conn)->len, FRAG);
	lab_pump(&f.h);
	assert_int_equal(frags(&f.h, &offset), 1);
	lab_ack_all(&f.h);
	f.h.log_count = 0;
	lab_pump(&f.h);
	bounds_hold(f.conn);
	assert_true(frags(&f.h, &offset) > 1);
	assert_int_equal(offset, before.offset + (uint64_t)2 * FRAG);
	lab_host_fini(&f.h);
}

static void a_piece_of_the_head_that_finds_no_entry_goes_back_to_it(void **state)
{
	struct mrc_resend before;
	struct fixture f;
	uint64_t offset;

	fixture_init(&f);
	fill(&f, 10 * FRAG);
	for (uint32_t i = 0; i < 3; i++) {
		lab_path_good(&f.h, 0, false);
		before = *head_of(f.conn);
		f.h.log_count = 0;
		lab_pump(&f.h);
		assert_int_equal(frags(&f.h, &offset), 1);
		assert_int_equal(offset, before.offset);
		assert_int_equal(head_of(f.conn)->offset, before.offset + FRAG);
		assert_int_equal(head_of(f.conn)->len, before.len - FRAG);
		assert_int_equal(f.conn->frags_out, 1);
		path_dies(&f);
		assert_int_equal(entries(f.conn), f.conn->resend_count);
		assert_int_equal(head_of(f.conn)->offset, before.offset);
		assert_int_equal(head_of(f.conn)->len, before.len);
	}
	lab_host_fini(&f.h);
}

/* The head is gone meanwhile, and what was cut off it is not needed either. */
static void a_piece_whose_message_was_placed_does_not_come_back(void **state)
{
	struct fixture f;

	fixture_init(&f);
	fill(&f, 10 * FRAG);
	lab_path_good(&f.h, 0, false);
	lab_pump(&f.h);
	assert_int_equal(f.conn->frags_out, 1);
	assert_int_equal(lab_feed(&f.h, 0,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_LEVEL,
							.arg = MRC_LVL_PLACED},
				  NULL),
			 0);
	path_dies(&f);
	lab_path_good(&f.h, 0, false);
	lab_pump(&f.h);
	assert_int_equal(entries(f.conn), 0);
	assert_int_equal(f.conn->frags_out, 0);
	lab_host_fini(&f.h);
}

/* Message 1 sent while the ring is filled with message 0, and message 0 is placed: the piece is the ring's only debt. */
static void entries_that_are_over_make_room_for_the_others(void **state)
{
	const uint64_t len = (uint64_t)8 * FRAG;
	struct fixture f;
	uint64_t offset;

	fixture_init(&f);
	fill(&f, 10 * FRAG);
	lab_path_good(&f.h, 0, false);
	assert_int_equal(lab_send(&f.h, f.ch->id, len, MRC_LVL_COMMITTED, 2), 0);
	f.h.log_count = 0;
	lab_pump(&f.h);
	assert_int_equal(frags(&f.h, &offset), 1); /* nothing new while one waits there */
	assert_int_equal(lab_feed(&f.h, 0,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_LEVEL,
							.arg = MRC_LVL_PLACED},
				  NULL),
			 0);
	f.h.log_count = 0;
	lab_pump(&f.h);
	bounds_hold(f.conn);
	assert_int_equal(entries(f.conn), 0);
	assert_int_equal(frags(&f.h, &offset), len / FRAG);
	lab_host_fini(&f.h);
}

/* Each way a fragment can stop being in flight. */
static void fragments_in_flight_are_counted_until_they_are_heard_of(void **state)
{
	enum { ACKED, LOST, SUSPECTED, RESET, ABORTED, CANCELLED, LATE, WAYS };
	const uint64_t len = 1000;

	for (int way = 0; way < WAYS; way++) {
		struct lab_host h;
		uint32_t id;

		lab_solo_up(&h, 2, false);
		id = lab_solo_channel(&h, false);
		lab_ack_all(&h);
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(lab_send(&h, id, len, MRC_LVL_COMMITTED, i), 0);
		lab_pump(&h);
		assert_int_equal(h.conn->frags_out, 4);
		bounds_hold(h.conn);
		switch (way) {
		case LOST:
			lab_path(&h, MRC_EV_PATH_DOWN, 0, MRC_REASON_ERROR);
			lab_path(&h, MRC_EV_PATH_DOWN, 1, MRC_REASON_ERROR);
			break;
		case SUSPECTED:
			mrc_conn_path_leave(h.conn, &h.conn->paths[0], MRC_REASON_SILENT, false);
			mrc_conn_path_leave(h.conn, &h.conn->paths[1], MRC_REASON_SILENT, false);
			break;
		case RESET:
			assert_int_equal(lab_path_up(&h, 0, LAB_EPOCH + 1, 2 * LAB_PATH_EPOCH,
						     LAB_BOOT_B + 1, false),
					 0);
			break;
		case ABORTED: /* its channel is forgotten, its frames are not */
			assert_int_equal(lab_channel(&h, MRC_EV_CH_ABORT, id), 0);
			lab_pump(&h);
			assert_int_equal(h.conn->frags_out, 4);
			lab_ack_all(&h);
			break;
		case CANCELLED:
			for (uint32_t i = 0; i < 4; i++)
				assert_int_equal(lab_cancel(&h, id, i, MRC_OUT_TIMED_OUT), 0);
			lab_pump(&h);
			assert_int_equal(h.conn->frags_out, 4);
			lab_ack_all(&h);
			break;
		case LATE: /* acknowledged after it was moved: not counted twice */
			mrc_conn_path_leave(h.conn, &h.conn->paths[0], MRC_REASON_SILENT, false);
			mrc_conn_path_leave(h.conn, &h.conn->paths[1], MRC_REASON_SILENT, false);
			lab_ack_all(&h);
			break;
		default:
			lab_ack_all(&h);
		}
		assert_int_equal(h.conn->frags_out, 0);
		bounds_hold(h.conn);
		lab_host_fini(&h);
	}
}

/* ---- at random ---- */

enum {
	PATHS = 3,
	LEN_MAX = 64000,
	GRAIN = 64, /* bytes: all lengths, offsets and bounds are so many, so that no cell is cut */
	CELLS = LEN_MAX / GRAIN,
	OUT_MAX = 512,
	SOLO_RUNS = 250,
	SOLO_STEPS = 150,
};

/* One message of ours: when each of its cells was needed last; 0: not any more. */
struct need {
	bool is_live;
	uint64_t number;
	uint64_t len;
	uint64_t since[CELLS];
};

/* One frame of ours that is on its way. */
struct on_way {
	bool is_frag;
	uint64_t msg, offset, len, at;
};

/*
 * One engine whose peer takes in, loses and asks for what it likes, and keeps
 * account of all the bytes that are still owed to it.
 */
struct solo {
	struct lab_host h;
	struct mrc_channel *ch;
	struct mrc_rng rng;
	uint64_t at; /* counts what happens */
	struct need needs[LAB_WINDOW];
	uint64_t sent;
	struct on_way way[PATHS][OUT_MAX]; /* at the frame's number */
	uint64_t posted[PATHS], acked[PATHS];
	uint32_t entry_bytes[PATHS]; /* that the peer said */
	uint64_t bytes_again, times_full;
};

static uint64_t below(struct solo *s, uint64_t n)
{
	return n ? mrc_rng_next(&s->rng) % n : 0;
}

static void solo_need(struct solo *s, uint64_t msg, uint64_t start, uint64_t end)
{
	struct need *need = &s->needs[msg & (LAB_WINDOW - 1)];

	for (uint64_t cell = start / GRAIN;
	     need->is_live && need->number == msg && cell < end / GRAIN; cell++)
		need->since[cell] = s->at;
}

/* All that was under way there is lost. */
static void solo_lose(struct solo *s, uint8_t path)
{
	s->at++;
	for (; s->acked[path] < s->posted[path]; s->acked[path]++) {
		const struct on_way *way = &s->way[path][s->acked[path] % OUT_MAX];

		if (way->is_frag)
			solo_need(s, way->msg, way->offset, way->offset + way->len);
	}
}

/* Take the actions, and into account. */
static void solo_pump(struct solo *s)
{
	struct lab_host *h = &s->h;

	h->log_count = 0;
	lab_pump(h);
	for (uint32_t i = 0; i < h->log_count; i++) {
		const struct mrc_action *act = &h->log[i];
		const struct mrc_act_post *post = &act->post;
		struct on_way *way;

		s->at++;
		if (act->kind == MRC_ACT_FENCE)
			solo_lose(s, act->path.index);
		if (act->kind != MRC_ACT_POST)
			continue;
		way = &s->way[post->index][s->posted[post->index]++ % OUT_MAX];
		*way = (struct on_way){.is_frag = post->hdr.type == MRC_WIRE_FRAG,
				       .msg = post->hdr.msg,
				       .offset = post->hdr.offset,
				       .len = post->hdr.body_len,
				       .at = s->at};
		if (post->hdr.type == MRC_WIRE_FRAG && !(post->hdr.flags & MRC_WIRE_F_DIRECT))
			assert_true(post->hdr.body_len <= s->entry_bytes[post->index]);
		if (post->hdr.type == MRC_WIRE_PROBE)
			assert_true(post->pad_len <= s->entry_bytes[post->index]);
		s->bytes_again += post->hdr.flags & MRC_WIRE_F_COPY ? post->hdr.body_len : 0;
	}
	s->times_full += entries(h->conn) + h->conn->frags_out >= h->conn->resend_count;
	bounds_hold(h->conn);
	for (uint8_t i = 0; i < s->h.conn->path_count; i++) {
		const struct mrc_path *path = &h->conn->paths[i];

		assert_true(path->share == 0 || path->posted - path->acked <= path->share);
	}
}

static bool is_up(const struct solo *s, uint8_t path)
{
	return s->h.conn->paths[path].is_connected && !s->h.conn->paths[path].do_fence;
}

/* It feeds without waiting for acknowledgements; that a peer keeps to its share is test_share's. */
static void solo_share_renew(struct solo *s, uint8_t path)
{
	s->h.conn->paths[path].taken_told = s->h.conn->paths[path].taken;
	s->h.conn->paths[path].taken_said = s->h.conn->paths[path].taken;
}

/* The peer takes in `count` frames more, and says so on the same path. */
static void solo_ack(struct solo *s, uint8_t path, uint64_t count)
{
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_cursor c = {.at = body, .end = body + sizeof(body), .ok = true};
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_ACK};

	solo_share_renew(s, path);
	count = MRC_MIN(count, s->posted[path] - s->acked[path]);
	for (; count; count--, s->acked[path]++) {
		const struct on_way *way = &s->way[path][s->acked[path] % OUT_MAX];
		struct need *need = &s->needs[way->msg & (LAB_WINDOW - 1)];

		if (!way->is_frag || !need->is_live || need->number != way->msg)
			continue;
		for (uint64_t cell = way->offset / GRAIN; cell < (way->offset + way->len) / GRAIN;
		     cell++) {
			if (need->since[cell] <= way->at)
				need->since[cell] = 0;
		}
	}
	mrc_put_u64(&c, s->h.conn->ctl_sent);
	mrc_put_u8(&c, 1);
	mrc_put_u16(&c, path);
	mrc_put_u32(&c, s->h.conn->paths[path].epoch);
	mrc_put_u64(&c, s->acked[path]);
	hdr.body_len = (uint32_t)(c.at - body);
	assert_int_equal(lab_feed(&s->h, path, hdr, body), 0);
}

static void solo_path_up(struct solo *s, uint8_t path)
{
	struct lab_host *h = &s->h;
	uint32_t entry = below(s, 2) ? 1024 : (uint32_t)(1 + below(s, 4)) * 4096;

	if (h->conn->paths[path].is_connected)
		return;
	s->posted[path] = s->acked[path] = 0;
	s->entry_bytes[path] = h->share ? 1024 : UINT32_MAX;
	assert_int_equal(lab_path_up(h, path, LAB_EPOCH, h->conn->paths[path].epoch + 1, LAB_BOOT_B,
				     h->share != 0),
			 0);
	solo_pump(s);
	if (h->share && below(s, 4)) { /* else the least holds, until it comes */
		assert_int_equal(lab_feed(h, path,
					  (struct mrc_wire_hdr){.type = MRC_WIRE_PATH_OPEN,
								.addr = entry,
								.arg = 1 | (8 + below(s, 40))
										   << 32},
					  NULL),
				 0);
		s->entry_bytes[path] = entry;
	}
	if (h->share && below(s, 2))
		assert_int_equal(lab_feed_key(h, path, LAB_SPACE, true, 9, 0), 0);
	for (uint32_t i = 0; i < 3; i++) {
		solo_pump(s);
		solo_ack(s, path, UINT64_MAX);
		assert_int_equal(
			lab_feed(h, path,
				 (struct mrc_wire_hdr){.type = MRC_WIRE_PROBE_ACK,
						       .msg = h->conn->paths[path].probe_id},
				 NULL),
			0);
	}
	assert_int_equal(h->conn->paths[path].state, MRC_PATH_GOOD);
}

static void solo_send(struct solo *s)
{
	uint64_t len = GRAIN * (1 + below(s, below(s, 3) ? 40 : CELLS));
	struct need *need;

	if (s->ch->send_next - s->ch->settled >= LAB_WINDOW ||
	    lab_send(&s->h, s->ch->id, len, MRC_LVL_COMMITTED, s->sent))
		return;
	need = &s->needs[s->sent & (LAB_WINDOW - 1)];
	*need = (struct need){.is_live = true, .number = s->sent, .len = len};
	solo_need(s, s->sent, 0, len);
	s->sent++;
}

/* A word about the message, by any path that is up. */
static void solo_word(struct solo *s, uint8_t path)
{
	uint64_t number = s->ch->settled + below(s, LAB_WINDOW);
	struct mrc_msg_out *msg = mrc_channel_out(s->ch, number);
	struct need *need = &s->needs[number & (LAB_WINDOW - 1)];
	struct mrc_wire_hdr hdr = {.msg = number};
	uint64_t cells, start, count;

	solo_share_renew(s, path);
	if (!msg || !need->is_live || !msg->is_admitted)
		return;
	if (!msg->is_eager && !msg->is_granted) {
		hdr.type = MRC_WIRE_CTS;
		hdr.msg_len = msg->len;
		assert_int_equal(lab_feed(&s->h, path, hdr, NULL), 0);
		return;
	}
	cells = msg->next_offset / GRAIN;
	if (cells && below(s, 20)) {
		start = below(s, cells);
		count = below(s, 3) ? cells - start : 1 + below(s, cells - start);
		if (entries(s->h.conn) >= s->h.conn->resend_count / 2) {
			/* Not taken in: this path is given up, and what was on it with it. */
			assert_int_equal(feed_want(&s->h, path, number, start * GRAIN,
						   (start + count) * GRAIN),
					 0);
			assert_false(is_up(s, path));
			return;
		}
		s->at++;
		solo_need(s, number, start * GRAIN, (start + count) * GRAIN);
		assert_int_equal(feed_want(&s->h, path, number, start * GRAIN,
					   (start + count) * GRAIN),
				 0);
	} else if (msg->next_offset == msg->len && below(s, 10) == 0) {
		hdr.type = MRC_WIRE_LEVEL;
		hdr.arg = MRC_LVL_COMMITTED | 1 << 8;
		need->is_live = false;
		assert_int_equal(lab_feed(&s->h, path, hdr, NULL), 0);
	}
}

/* All the room there can be, so that only paths and the ring are in the way. */
static void solo_credit(struct solo *s, uint8_t path)
{
	const struct lab_state credit = {.ring_limit = s->ch->ring_next + LAB_RING_BYTES,
					 .msg_limit = s->ch->send_next + LAB_WINDOW};

	assert_int_equal(lab_feed_state(&s->h, path, s->ch->wire_id, &credit), 0);
}

static void solo_step(struct solo *s)
{
	uint8_t path = (uint8_t)below(s, s->h.conn->path_count);
	uint32_t words = below(s, 8) ? 1 : 100; /* more than the ring takes at once, now and then */

	switch (below(s, 12)) {
	case 0:
		/* One, or as many as are after it. */
		do {
			if (!s->h.conn->paths[path].is_connected)
				continue;
			assert_int_equal(lab_path(&s->h, MRC_EV_PATH_DOWN, path, MRC_REASON_ERROR),
					 0);
			solo_lose(s, path);
			bounds_hold(s->h.conn);
		} while (below(s, 2) && ++path < s->h.conn->path_count);
		break;
	case 1:
	case 2:
		solo_path_up(s, path);
		break;
	case 3:
	case 4:
		if (is_up(s, path))
			solo_ack(s, path, 1 + below(s, 20));
		break;
	case 5:
	case 6:
		solo_send(s);
		break;
	case 7:
		if (is_up(s, path))
			solo_credit(s, path);
		break;
	default:
		while (words-- && s->h.conn->paths[path].state == MRC_PATH_GOOD && is_up(s, path))
			solo_word(s, path);
	}
	s->h.now_ns += MRC_US;
	if (below(s, 3))
		solo_pump(s);
}

/* With all paths up and every frame taken in, all that is owed comes. */
static void solo_settle(struct solo *s)
{
	uint32_t turns;

	for (uint8_t i = 0; i < s->h.conn->path_count; i++)
		solo_pump(s);
	for (uint8_t i = 0; i < s->h.conn->path_count; i++)
		solo_path_up(s, i);
	for (turns = 0; turns < 3000; turns++) {
		solo_credit(s, 0);
		solo_pump(s);
		for (uint8_t i = 0; i < s->h.conn->path_count; i++)
			solo_ack(s, i, UINT64_MAX);
		for (uint64_t n = s->ch->settled; n < s->ch->send_next; n++) {
			const struct mrc_msg_out *msg = mrc_channel_out(s->ch, n);

			if (msg->is_admitted && !msg->is_eager && !msg->is_granted)
				assert_int_equal(
					lab_feed(&s->h, 0,
						 (struct mrc_wire_hdr){.type = MRC_WIRE_CTS,
								       .msg = n,
								       .msg_len = msg->len},
						 NULL),
					0);
		}
		if (entries(s->h.conn) == 0 && s->h.conn->frags_out == 0 &&
		    mrc_list_is_empty(&s->h.conn->turns))
			break;
	}
	assert_in_range(turns, 0, 2999);
}

static void solo_run(uint64_t seed, bool has_entries, uint64_t *bytes_again, uint64_t *times_full)
{
	const struct mrc_limits limits = {.channels_max = 2,
					  .frames_in_flight_max = 64,
					  .frag_bytes_max = 1024U << seed % 5,
					  .path_window_bytes_min = 1 << 20};
	static struct solo solo;
	struct solo *s = &solo;

	memset(s, 0, sizeof(*s));
	s->rng.state = seed;
	lab_host_init(&s->h, "a", "b", LAB_BOOT_A, (uint8_t)(1 + below(s, PATHS)), &limits);
	s->h.share = has_entries ? 64 : 0;
	for (uint8_t i = 0; i < s->h.conn->path_count; i++)
		solo_path_up(s, i);
	s->h.log_count = 0;
	s->ch = mrc_conn_channel(s->h.conn, lab_solo_channel(&s->h, true));
	for (uint8_t i = 0; i < s->h.conn->path_count; i++)
		s->posted[i] = s->acked[i] = s->h.conn->paths[i].posted;
	for (uint32_t step = 0; step < SOLO_STEPS; step++)
		solo_step(s);
	solo_settle(s);
	for (uint64_t n = s->ch->settled; n < s->ch->send_next; n++) {
		const struct need *need = &s->needs[n & (LAB_WINDOW - 1)];

		if (!need->is_live || !mrc_channel_out(s->ch, n)->is_admitted)
			continue;
		for (uint64_t cell = 0; cell * GRAIN < need->len; cell++) {
			if (need->since[cell])
				fail_msg("seed %#llx: byte %llu of message %llu is owed still",
					 (unsigned long long)seed, (unsigned long long)cell * GRAIN,
					 (unsigned long long)n);
		}
	}
	*bytes_again += s->bytes_again;
	*times_full += s->times_full;
	lab_host_fini(&s->h);
}

static void whatever_the_peer_loses_and_wants_is_sent_within_bounds(void **state)
{
	for (int has_entries = 0; has_entries < 2; has_entries++) {
		uint64_t bytes_again = 0, times_full = 0;

		for (uint64_t run = 0; run < SOLO_RUNS; run++)
			solo_run(0x5eed0000 + run, has_entries, &bytes_again, &times_full);
		/* Direct writes came back from dead paths, often. */
		assert_true(!has_entries || bytes_again > (uint64_t)1000 * SOLO_RUNS);
		assert_true(times_full > SOLO_RUNS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_all_entries_taken_one_piece_of_the_head_goes_at_a_time),
		cmocka_unit_test(a_piece_of_the_head_that_finds_no_entry_goes_back_to_it),
		cmocka_unit_test(a_piece_whose_message_was_placed_does_not_come_back),
		cmocka_unit_test(entries_that_are_over_make_room_for_the_others),
		cmocka_unit_test(fragments_in_flight_are_counted_until_they_are_heard_of),
		cmocka_unit_test(whatever_the_peer_loses_and_wants_is_sent_within_bounds),
	};

	return cmocka_run_group_tests_name("resend", tests, NULL, NULL);
}
