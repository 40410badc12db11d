/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_conn_recv: a peer that breaks the rules is refused, and nothing else changes. */
#include "engine_lab.h"

/* What a refused frame may not touch. */
struct before {
	struct mrc_channel ch;
	struct mrc_msg_out out[LAB_WINDOW];
	struct mrc_msg_in in[LAB_WINDOW];
	struct mrc_conn_info info;
	uint64_t ctl_taken, ctl_acked, acked[MRC_PATHS_MAX];
	uint32_t ranges_free;
};

/*
 * An engine in the middle of things, its peer played by the test. We have sent
 * 0 (10 bytes, placed), 1 (100000 bytes, asking for a buffer), 2 (10 bytes);
 * the peer has sent 0 (10 bytes, delivered, held), 1 (100000 bytes, granted at
 * `addr`), of 2 half.
 */
struct fixture {
	struct lab_host h;
	uint32_t id;
	uint32_t wire;
	uint64_t addr;
	struct mrc_channel *ch;
	struct before before;
};

static int frag(struct fixture *f, uint64_t number, uint64_t msg_len, uint64_t offset, uint32_t len,
		uint64_t addr, uint16_t flags)
{
	return lab_feed(&f->h, 0,
			(struct mrc_wire_hdr){.type = MRC_WIRE_FRAG,
					      .flags = flags,
					      .channel = f->wire,
					      .msg = number,
					      .msg_len = msg_len,
					      .offset = offset,
					      .body_len = len,
					      .addr = addr},
			NULL);
}

static void fixture_init(struct fixture *f)
{
	const struct lab_state placed = {.delivered = 1,
					 .ring_limit = LAB_RING_BYTES,
					 .msg_limit = LAB_WINDOW};

	lab_solo_up(&f->h, 2, false);
	f->h.releases = false;
	f->id = lab_solo_channel(&f->h, false);
	f->ch = mrc_conn_channel(f->h.conn, f->id);
	f->wire = f->ch->wire_id;
	assert_int_equal(lab_send(&f->h, f->id, 10, MRC_LVL_PLACED, 0), 0);
	assert_int_equal(lab_send(&f->h, f->id, 100000, MRC_LVL_COMMITTED, 1), 0);
	assert_int_equal(lab_send(&f->h, f->id, 10, MRC_LVL_COMMITTED, 2), 0);
	lab_pump(&f->h);
	lab_ack_all(&f->h);
	assert_int_equal(lab_feed_state(&f->h, 0, f->wire, &placed), 0);
	assert_int_equal(frag(f, 0, 10, 0, 10, 0, MRC_WIRE_F_EAGER), 0);
	f->addr = f->h.landing_next;
	assert_int_equal(lab_feed(&f->h, 0,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_RTS,
							.channel = f->wire,
							.msg = 1,
							.msg_len = 100000},
				  NULL),
			 0);
	assert_int_equal(frag(f, 2, 10, 0, 5, 10, MRC_WIRE_F_EAGER), 0);
	lab_pump(&f->h);
	assert_int_equal(lab_count(&f->h, MRC_ACT_DELIVER, 0), 1);
	assert_true(f->ch->in[1].is_granted);
	lab_ack_all(&f->h);
	lab_pump(&f->h);
}

static void look(struct fixture *f, struct before *b)
{
	memset(b, 0, sizeof(*b));
	b->ch = *f->ch;
	/* Lists are the conn's own order of work. */
	memset(&b->ch.next_in_bucket, 0,
	       offsetof(struct mrc_channel, do_incoming) -
		       offsetof(struct mrc_channel, next_in_bucket));
	memcpy(b->out, f->ch->out, sizeof(b->out));
	memcpy(b->in, f->ch->in, sizeof(b->in));
	mrc_conn_info(f->h.conn, &b->info);
	b->info.protocol_errors = 0;
	b->ctl_taken = f->h.conn->ctl_taken;
	b->ctl_acked = f->h.conn->ctl_acked;
	b->ranges_free = f->h.conn->ranges.free_count;
	for (uint8_t i = 0; i < f->h.conn->path_count; i++)
		b->acked[i] = f->h.conn->paths[i].acked;
}

/* All is as it was, but for how many paths are in service. */
static void unchanged(struct fixture *f, const char *name)
{
	struct before after;

	look(f, &after);
	after.info.paths_good = f->before.info.paths_good;
	/* look() clears all of it first, so bytes between the fields are alike. */
	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
	if (memcmp(&after, &f->before, sizeof(after)) != 0)
		fail_msg("%s: not taken, but something changed", name);
}

/* Refused, counted, and all is as it was. */
static void refused(struct fixture *f, const char *name, int r)
{
	if (r != -EPROTO)
		fail_msg("%s: answer %d", name, r);
	unchanged(f, name);
	if (lab_info(&f->h).protocol_errors != 1)
		fail_msg("%s: not counted", name);
}

static void fields_out_of_range_are_refused(void **state)
{
	const uint16_t eager = MRC_WIRE_F_EAGER;
	const struct {
		const char *name;
		struct mrc_wire_hdr hdr;
		bool is_at_addr; /* addr counts from the granted buffer */
	} rows[] = {
#define ROW(what, ...) {what, {__VA_ARGS__}, false}
		ROW("HELLO on a path", .type = MRC_WIRE_HELLO),
		ROW("AUTH on a path", .type = MRC_WIRE_AUTH),
		ROW("READY on a path", .type = MRC_WIRE_READY),
		/* FRAG */
		ROW("FRAG: number beyond the window", .type = MRC_WIRE_FRAG, .flags = eager,
		    .msg = LAB_WINDOW, .msg_len = 5, .body_len = 5, .addr = 100),
		ROW("FRAG: number far beyond", .type = MRC_WIRE_FRAG, .flags = eager,
		    .msg = UINT64_MAX, .msg_len = 5, .body_len = 5, .addr = 100),
		ROW("FRAG: over what the client reads", .type = MRC_WIRE_FRAG, .flags = eager,
		    .msg = 3, .msg_len = 5, .body_len = 5, .addr = 5),
		ROW("FRAG: across the ring's end", .type = MRC_WIRE_FRAG, .flags = eager, .msg = 3,
		    .msg_len = 5, .body_len = 5, .addr = LAB_RING_BYTES - 4),
		ROW("FRAG: beyond the ring credit", .type = MRC_WIRE_FRAG, .flags = eager, .msg = 3,
		    .msg_len = 5, .body_len = 5, .addr = LAB_RING_BYTES),
		ROW("FRAG: more than half the ring", .type = MRC_WIRE_FRAG, .flags = eager,
		    .msg = 3, .msg_len = LAB_RING_BYTES / 2 + 1, .body_len = 5, .addr = 100),
		ROW("FRAG: more than the arena takes", .type = MRC_WIRE_FRAG, .flags = eager,
		    .msg = 3, .msg_len = LAB_MSG_MAX + 1, .body_len = 5, .addr = 100),
		ROW("FRAG: another length than before", .type = MRC_WIRE_FRAG, .flags = eager,
		    .msg = 2, .msg_len = 11, .offset = 5, .body_len = 6, .addr = 10),
		ROW("FRAG: another position than before", .type = MRC_WIRE_FRAG, .flags = eager,
		    .msg = 2, .msg_len = 10, .offset = 5, .body_len = 5, .addr = 11),
		ROW("FRAG: eager before, granted now", .type = MRC_WIRE_FRAG, .msg = 2,
		    .msg_len = 10, .offset = 5, .body_len = 5, .addr = 10),
		{"FRAG: granted before, eager now",
		 {.type = MRC_WIRE_FRAG,
		  .flags = eager,
		  .msg = 1,
		  .msg_len = 100000,
		  .body_len = 5},
		 true},
		{"FRAG: beside the granted buffer",
		 {.type = MRC_WIRE_FRAG, .msg = 1, .msg_len = 100000, .body_len = 5, .addr = 1},
		 true},
		ROW("FRAG: without a checksum, where there is one", .type = MRC_WIRE_FRAG,
		    .flags = eager | MRC_WIRE_F_UNCHECKED, .msg = 2, .msg_len = 10, .offset = 5,
		    .body_len = 5, .addr = 10),
		ROW("FRAG: settled beyond the window", .type = MRC_WIRE_FRAG, .flags = eager,
		    .msg = 2, .msg_len = 10, .offset = 5, .body_len = 5, .addr = 10,
		    .arg = LAB_WINDOW + 1),
		ROW("FRAG: settled what is not final", .type = MRC_WIRE_FRAG, .flags = eager,
		    .msg = 2, .msg_len = 10, .offset = 5, .body_len = 5, .addr = 10, .arg = 1),
		/* RTS */
		ROW("RTS: beyond the window", .type = MRC_WIRE_RTS, .msg = LAB_WINDOW,
		    .msg_len = 100000),
		ROW("RTS: empty", .type = MRC_WIRE_RTS, .msg = 3),
		ROW("RTS: more than the arena takes", .type = MRC_WIRE_RTS, .msg = 3,
		    .msg_len = LAB_MSG_MAX + 1),
		ROW("RTS: another length than before", .type = MRC_WIRE_RTS, .msg = 1,
		    .msg_len = 100001),
		ROW("RTS: for an eager message", .type = MRC_WIRE_RTS, .msg = 2, .msg_len = 10),
		ROW("RTS: settled what is not final", .type = MRC_WIRE_RTS, .msg = 3,
		    .msg_len = 100000, .arg = 1),
		/* CTS */
		ROW("CTS: of a message never sent", .type = MRC_WIRE_CTS, .msg = 3),
		ROW("CTS: far beyond", .type = MRC_WIRE_CTS, .msg = UINT64_MAX),
		ROW("CTS: of an eager message", .type = MRC_WIRE_CTS, .msg = 2),
		/* WANT */
		ROW("WANT: of a message never sent", .type = MRC_WIRE_WANT, .msg = 3, .msg_len = 5),
		ROW("WANT: empty range", .type = MRC_WIRE_WANT, .msg = 2, .offset = 3,
		    .msg_len = 3),
		ROW("WANT: backward", .type = MRC_WIRE_WANT, .msg = 2, .offset = 5, .msg_len = 3),
		ROW("WANT: beyond the end", .type = MRC_WIRE_WANT, .msg = 2, .msg_len = 11),
		ROW("WANT: bytes never sent", .type = MRC_WIRE_WANT, .msg = 1, .msg_len = 5),
		/* LEVEL */
		ROW("LEVEL: of a message never sent", .type = MRC_WIRE_LEVEL, .msg = 3,
		    .arg = MRC_LVL_PLACED),
		ROW("LEVEL: far beyond", .type = MRC_WIRE_LEVEL, .msg = UINT64_MAX,
		    .arg = MRC_LVL_PLACED),
		ROW("LEVEL: level 4", .type = MRC_WIRE_LEVEL, .msg = 2, .arg = 4),
		ROW("LEVEL: level 255", .type = MRC_WIRE_LEVEL, .msg = 2, .arg = 255),
		ROW("LEVEL: outcome above 0", .type = MRC_WIRE_LEVEL, .msg = 2,
		    .arg = MRC_LVL_PLACED | 1U << 8 | 1U << 16),
		ROW("LEVEL: outcome below the last", .type = MRC_WIRE_LEVEL, .msg = 2,
		    .arg = MRC_LVL_PLACED | 1U << 8 | 0xf0U << 16),
		ROW("LEVEL: placed, though never sent", .type = MRC_WIRE_LEVEL, .msg = 1,
		    .arg = MRC_LVL_PLACED),
#undef ROW
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;
		struct mrc_wire_hdr hdr = rows[i].hdr;

		fixture_init(&f);
		hdr.channel = f.wire;
		if (rows[i].is_at_addr)
			hdr.addr += f.addr;
		look(&f, &f.before);
		refused(&f, rows[i].name, lab_feed(&f.h, 0, hdr, NULL));
		lab_host_fini(&f.h);
	}
}

static void a_checksum_where_there_is_none_is_refused(void **state)
{
	struct fixture f = {0};

	lab_solo_up(&f.h, 2, false);
	f.h.is_unchecked = true;
	f.id = lab_solo_channel(&f.h, false);
	f.ch = mrc_conn_channel(f.h.conn, f.id);
	f.wire = f.ch->wire_id;
	assert_int_equal(frag(&f, 0, 10, 0, 10, 0, MRC_WIRE_F_EAGER), -EPROTO);
	assert_int_equal(lab_info(&f.h).protocol_errors, 1);
	assert_int_equal(frag(&f, 0, 10, 0, 10, 0, MRC_WIRE_F_EAGER | MRC_WIRE_F_UNCHECKED), 0);
	lab_pump(&f.h);
	assert_int_equal(lab_count(&f.h, MRC_ACT_DELIVER, 0), 1);
	lab_host_fini(&f.h);
}

static void counts_and_credit_out_of_range_are_refused(void **state)
{
	const uint64_t ring = LAB_RING_BYTES, window = LAB_WINDOW;
	const struct {
		const char *name;
		struct lab_state s;
		int want;
	} rows[] = {
		{"as it was", {1, 0, 0, 0, ring, window}, 0},
		{"nothing at all", {0}, 0},
		{"delivered what was never sent", {4, 0, 0, 0, ring, window}, -EPROTO},
		{"delivered what was only asked for", {2, 0, 0, 0, ring, window}, -EPROTO},
		{"visible what was never sent", {0, 4, 0, 0, ring, window}, -EPROTO},
		{"final what was never sent", {0, 0, 4, 0, ring, window}, -EPROTO},
		{"delivered, far beyond", {UINT64_MAX, 0, 0, 0, ring, window}, -EPROTO},
		{"settled what is not final", {1, 0, 0, 1, ring, window}, -EPROTO},
		{"settled, far beyond", {1, 0, 0, UINT64_MAX, ring, window}, -EPROTO},
		{"a whole ring of credit", {1, 0, 0, 0, ring + 20, window}, 0},
		{"more than a ring", {1, 0, 0, 0, ring + 21, window}, -EPROTO},
		{"a whole window of credit", {1, 0, 0, 0, ring, window + 3}, 0},
		{"more than a window", {1, 0, 0, 0, ring, window + 4}, -EPROTO},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;
		int r;

		fixture_init(&f);
		look(&f, &f.before);
		r = lab_feed_state(&f.h, 0, f.wire, &rows[i].s);
		if (rows[i].want)
			refused(&f, rows[i].name, r);
		else if (r)
			fail_msg("%s: answer %d", rows[i].name, r);
		lab_host_fini(&f.h);
	}
}

static void bodies_too_short_are_refused(void **state)
{
	const struct {
		enum mrc_wire_type type;
		uint32_t len;
	} rows[] = {
		{MRC_WIRE_STATE, 47}, {MRC_WIRE_STATE, 0},   {MRC_WIRE_ACK, 8},
		{MRC_WIRE_ACK, 0},    {MRC_WIRE_DRAINED, 0},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		uint8_t body[64] = {0};
		struct fixture f;

		fixture_init(&f);
		look(&f, &f.before);
		refused(&f, mrc_wire_type_name((uint8_t)rows[i].type),
			lab_feed(&f.h, 0,
				 (struct mrc_wire_hdr){.type = (uint8_t)rows[i].type,
						       .channel = f.wire,
						       .body_len = rows[i].len},
				 body));
		lab_host_fini(&f.h);
	}
}

static void acks_out_of_range_are_refused(void **state)
{
	const struct {
		const char *name;
		uint64_t ctl_more;    /* than were sent */
		uint8_t count;        /* of entries said */
		uint8_t entries;      /* that are there */
		uint64_t frames_more; /* than were posted */
		uint16_t path_id;
		uint32_t epoch_more;
		int want;
	} rows[] = {
		{"all there is", 0, 1, 1, 0, 0, 0, 0},
		{"a control frame too many", 1, 1, 1, 0, 0, 0, -EPROTO},
		{"a frame too many", 0, 1, 1, 1, 0, 0, -EPROTO},
		{"all the frames in the world", 0, 1, 1, UINT64_MAX / 2, 0, 0, -EPROTO},
		{"more paths than can be", 0, MRC_PATHS_MAX + 1, MRC_PATHS_MAX + 1, 0, 0, 0,
		 -EPROTO},
		{"an entry is missing", 0, 2, 1, 0, 0, 0, -EPROTO},
		{"a path we do not have: none of ours", 0, 1, 1, 5, 9, 0, 0},
		{"a path number out of range", 0, 1, 1, 5, 60000, 0, 0},
		{"another epoch: over", 0, 1, 1, 5, 0, 1, 0},
	};

	for (size_t n = 0; n < 2 * MRC_ARRAY_LEN(rows); n++) {
		/* An answered probe says the same as an ACK. */
		struct mrc_wire_hdr hdr = {.type = n % 2 ? MRC_WIRE_PROBE_ACK : MRC_WIRE_ACK};
		uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
		const size_t i = n / 2;
		struct mrc_cursor c = {.at = body, .end = body + sizeof(body), .ok = true};
		struct fixture f;
		int r;

		fixture_init(&f);
		mrc_put_u64(&c, f.h.conn->ctl_next + rows[i].ctl_more);
		mrc_put_u8(&c, rows[i].count);
		for (uint8_t e = 0; e < rows[i].entries; e++) {
			mrc_put_u16(&c, rows[i].path_id);
			mrc_put_u32(&c, f.h.conn->paths[0].epoch + rows[i].epoch_more);
			mrc_put_u64(&c, f.h.conn->paths[0].posted + rows[i].frames_more);
		}
		hdr.body_len = (uint32_t)(c.at - body);
		r = lab_feed(&f.h, 0, hdr, body);
		if (r != rows[i].want)
			fail_msg("%s: answer %d to %s, want %d", rows[i].name, r,
				 mrc_wire_type_name(hdr.type), rows[i].want);
		assert_true(f.h.conn->ctl_acked <= f.h.conn->ctl_next);
		for (uint8_t path = 0; path < 2; path++)
			assert_true(f.h.conn->paths[path].acked <= f.h.conn->paths[path].posted);
		lab_host_fini(&f.h);
	}
}

static void drained_of_more_paths_than_can_be_is_refused(void **state)
{
	for (uint8_t count = MRC_PATHS_MAX; count <= MRC_PATHS_MAX + 1; count++) {
		struct mrc_wire_hdr hdr = {.type = MRC_WIRE_DRAINED, .body_len = 1 + 14U * count};
		uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
		struct fixture f;
		int r;

		memset(body, 0xff, sizeof(body));
		body[0] = count;
		fixture_init(&f);
		hdr.channel = f.wire;
		look(&f, &f.before);
		r = lab_feed(&f.h, 0, hdr, body);
		if (count > MRC_PATHS_MAX)
			refused(&f, "17 paths", r);
		else
			assert_int_equal(r, 0);
		lab_host_fini(&f.h);
	}
}

/* An ACK's body always says something. */
static void only_an_answered_probe_may_have_no_counts(void **state)
{
	for (uint32_t len = 0; len < 9 + 14; len++) { /* the counts of one path are that long */
		for (int is_probe_ack = 0; is_probe_ack < 2; is_probe_ack++) {
			const uint8_t body[9 + 14] = {[8] = 1};
			struct mrc_wire_hdr hdr = {.type = is_probe_ack ? MRC_WIRE_PROBE_ACK
									: MRC_WIRE_ACK,
						   .body_len = len};
			struct fixture f;
			uint64_t asked_ns;
			int r;

			fixture_init(&f);
			f.h.conn->paths[0].do_probe = true;
			lab_pump(&f.h);
			asked_ns = f.h.conn->paths[0].probe_ns;
			assert_true(asked_ns != MRC_NEVER);
			hdr.msg = f.h.conn->paths[0].probe_id;
			look(&f, &f.before);
			r = lab_feed(&f.h, 0, hdr, body);
			if (is_probe_ack && len == 0) {
				assert_int_equal(r, 0);
				assert_int_equal(f.h.conn->paths[0].probe_ns, MRC_NEVER);
			} else {
				refused(&f, mrc_wire_type_name(hdr.type), r);
				assert_int_equal(f.h.conn->paths[0].probe_ns, asked_ns);
			}
			lab_host_fini(&f.h);
		}
	}
}

/* No client can write where they are: it is the path that damages (DESIGN 7.12), and it knows what went by it. */
static void a_damaged_control_frame_ends_its_path_and_says_nothing(void **state)
{
	const uint8_t types[] = {MRC_WIRE_ACK,   MRC_WIRE_STATE,     MRC_WIRE_DRAINED,
				 MRC_WIRE_OPEN,  MRC_WIRE_ACCEPT,    MRC_WIRE_VOID,
				 MRC_WIRE_PROBE, MRC_WIRE_PROBE_ACK, MRC_WIRE_FRAG};

	for (size_t i = 0; i < MRC_ARRAY_LEN(types); i++) {
		bool is_frag = types[i] == MRC_WIRE_FRAG;
		const uint8_t body[64] = {0};
		struct mrc_wire_hdr hdr = {.type = types[i], .body_len = sizeof(body)};
		struct mrc_event_in ev = {.kind = MRC_EV_ARRIVED,
					  .arrived = {.is_placed = true,
						      .hdr = &hdr,
						      .body = body}};
		const struct mrc_act_post *fenced;
		struct mrc_path *path;
		struct fixture f;
		uint64_t taken;
		uint32_t from;

		fixture_init(&f);
		path = &f.h.conn->paths[0];
		hdr.conn_epoch = f.h.conn->epoch;
		hdr.path_epoch = ev.arrived.path_epoch = path->epoch;
		hdr.channel = f.wire;
		if (is_frag) {
			hdr.msg = 1;
			hdr.msg_len = 100000;
			hdr.addr = f.addr;
			hdr.offset = 90000;
		}
		taken = path->taken;
		from = f.h.log_count;
		look(&f, &f.before);
		assert_int_equal(lab_handle(&f.h, &ev), 0);
		assert_int_equal(path->taken, taken + is_frag);
		assert_int_equal(lab_path_info(&f.h, 0).header_errors, !is_frag);
		assert_int_equal(lab_path_info(&f.h, 0).body_errors, is_frag);
		assert_int_equal(lab_info(&f.h).protocol_errors, 0);
		if (is_frag) { /* that is asked for again, and nothing is the path's fault */
			assert_int_equal(path->state, MRC_PATH_GOOD);
			lab_host_fini(&f.h);
			continue;
		}
		unchanged(&f, mrc_wire_type_name(types[i]));
		assert_int_equal(lab_path_info(&f.h, 0).state, MRC_PATH_ASSUMED_BAD);
		assert_int_equal(lab_path_info(&f.h, 0).reason, MRC_REASON_CORRUPT);
		lab_pump(&f.h);
		assert_non_null(lab_find(&f.h, MRC_ACT_FENCE, from, 0));
		assert_int_equal(lab_find(&f.h, MRC_ACT_FENCE, from, 0)->path.index, 0);
		assert_null(lab_posted(&f.h, MRC_WIRE_PROBE_ACK, from, 0));
		/* The peer is told to say it again: it was not taken in. */
		assert_non_null(lab_posted(&f.h, MRC_WIRE_PATH_FENCE, from, 0));
		assert_int_equal(lab_feed(&f.h, 1,
					  (struct mrc_wire_hdr){.type = MRC_WIRE_PATH_FENCE,
								.msg = path->path_id,
								.arg = path->epoch},
					  NULL),
				 0);
		lab_pump(&f.h);
		fenced = lab_posted(&f.h, MRC_WIRE_PATH_FENCED, from, 0);
		assert_non_null(fenced);
		assert_int_equal(fenced->hdr.offset, taken);
		lab_host_fini(&f.h);
	}
}

static void a_frame_of_another_epoch_than_its_paths_is_refused(void **state)
{
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_NOP};
	struct fixture f;
	uint64_t taken;

	fixture_init(&f);
	taken = f.h.conn->paths[0].taken;
	hdr.conn_epoch = LAB_EPOCH + 1;
	hdr.path_epoch = LAB_PATH_EPOCH;
	assert_int_equal(lab_arrive(&f.h, 0, LAB_PATH_EPOCH, &hdr, NULL), -EPROTO);
	hdr.conn_epoch = LAB_EPOCH;
	hdr.path_epoch = LAB_PATH_EPOCH + 1;
	assert_int_equal(lab_arrive(&f.h, 0, LAB_PATH_EPOCH, &hdr, NULL), -EPROTO);
	assert_int_equal(f.h.conn->paths[0].taken, taken);
	lab_host_fini(&f.h);
}

static void a_fragment_before_its_buffer_was_granted_is_refused(void **state)
{
	struct fixture f;

	fixture_init(&f);
	f.h.lands = false;
	assert_int_equal(lab_feed(&f.h, 0,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_RTS,
							.channel = f.wire,
							.msg = 3,
							.msg_len = 50000},
				  NULL),
			 0);
	lab_pump(&f.h);
	assert_int_equal(frag(&f, 3, 50000, 0, 100, 0, 0), -EPROTO);
	lab_host_fini(&f.h);
}

static void words_about_channels_that_are_gone_do_nothing(void **state)
{
	const enum mrc_wire_type types[] = {MRC_WIRE_FRAG,   MRC_WIRE_RTS,   MRC_WIRE_CTS,
					    MRC_WIRE_WANT,   MRC_WIRE_LEVEL, MRC_WIRE_STATE,
					    MRC_WIRE_DRAINED};
	struct fixture f;

	fixture_init(&f);
	for (size_t i = 0; i < MRC_ARRAY_LEN(types); i++) {
		assert_int_equal(lab_feed(&f.h, 0,
					  (struct mrc_wire_hdr){.type = (uint8_t)types[i],
								.channel = 4712,
								.msg = 5,
								.addr = 3},
					  NULL),
				 0);
	}
	assert_int_equal(lab_info(&f.h).protocol_errors, 0);
	lab_host_fini(&f.h);
}

static void a_second_rts_gets_the_same_cts(void **state)
{
	struct fixture f;
	const struct mrc_act_post *cts;

	fixture_init(&f);
	cts = lab_posted(&f.h, MRC_WIRE_CTS, 0, 0);
	assert_non_null(cts);
	assert_int_equal(cts->hdr.addr, f.addr);
	assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_CTS, 0), 1);
	assert_int_equal(lab_feed(&f.h, 1,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_RTS,
							.channel = f.wire,
							.msg = 1,
							.msg_len = 100000},
				  NULL),
			 0);
	lab_pump(&f.h);
	assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_CTS, 0), 2);
	assert_int_equal(lab_posted(&f.h, MRC_WIRE_CTS, 0, 1)->hdr.addr, f.addr);
	assert_int_equal(lab_count(&f.h, MRC_ACT_LANDING_WANT, 0), 1);
	lab_host_fini(&f.h);
}

static void a_second_cts_must_say_the_same(void **state)
{
	struct mrc_wire_hdr cts = {.type = MRC_WIRE_CTS, .msg = 1, .addr = 777};
	struct fixture f;

	fixture_init(&f);
	cts.channel = f.wire;
	assert_int_equal(lab_feed(&f.h, 0, cts, NULL), 0);
	assert_int_equal(lab_feed(&f.h, 1, cts, NULL), 0);
	lab_pump(&f.h);
	cts.addr++;
	assert_int_equal(lab_feed(&f.h, 0, cts, NULL), -EPROTO);
	assert_int_equal(f.ch->out[1].landing, 777);
	lab_host_fini(&f.h);
}

static void copies_of_what_is_here_are_thrown_away(void **state)
{
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_FRAG,
				   .flags = MRC_WIRE_F_EAGER,
				   .conn_epoch = LAB_EPOCH,
				   .msg = 2,
				   .msg_len = 10,
				   .body_len = 10,
				   .addr = 10};
	struct mrc_place place;
	struct fixture f;

	fixture_init(&f);
	hdr.channel = f.wire;
	/* Its first half is here and was checked: only the rest has a place. */
	assert_int_equal(mrc_conn_place(f.h.conn, &hdr, 0, &place), 5);
	assert_true(place.is_scratch);
	assert_int_equal(mrc_conn_place(f.h.conn, &hdr, 5, &place), 5);
	assert_false(place.is_scratch);
	assert_true(place.is_eager);
	assert_int_equal(place.addr, 15);
	/* And nothing of one that the client has. */
	hdr.msg = 0;
	hdr.addr = 0;
	assert_int_equal(mrc_conn_place(f.h.conn, &hdr, 0, &place), 10);
	assert_true(place.is_scratch);
	assert_false(mrc_conn_place_whole(f.h.conn, &hdr, &place));
	assert_int_equal(frag(&f, 0, 10, 0, 10, 0, MRC_WIRE_F_EAGER), 0);
	assert_int_equal(lab_info(&f.h).duplicates, 1);
	lab_pump(&f.h);
	assert_int_equal(lab_count(&f.h, MRC_ACT_DELIVER, 0), 1);
	lab_host_fini(&f.h);
}

static void a_damaged_body_is_asked_for_again(void **state)
{
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_FRAG,
				   .flags = MRC_WIRE_F_EAGER,
				   .conn_epoch = LAB_EPOCH,
				   .path_epoch = LAB_PATH_EPOCH,
				   .msg = 2,
				   .msg_len = 10,
				   .offset = 5,
				   .body_len = 5,
				   .addr = 10};
	struct mrc_event_in ev = {
		.kind = MRC_EV_ARRIVED,
		.arrived = {.path_epoch = LAB_PATH_EPOCH, .is_placed = true, .hdr = &hdr},
	};
	const struct mrc_act_post *want;
	struct fixture f;

	fixture_init(&f);
	hdr.channel = f.wire;
	assert_int_equal(lab_handle(&f.h, &ev), 0);
	lab_pump(&f.h);
	want = lab_posted(&f.h, MRC_WIRE_WANT, 0, 0);
	assert_non_null(want);
	assert_int_equal(want->hdr.msg, 2);
	assert_int_equal(want->hdr.offset, 5);
	assert_int_equal(want->hdr.msg_len, 10);
	assert_int_equal(lab_path_info(&f.h, 0).body_errors, 1);
	assert_int_equal(lab_path_info(&f.h, 0).state, MRC_PATH_GOOD); /* nobody is blamed yet */
	lab_host_fini(&f.h);
}

static void what_is_wanted_again_is_sent_again(void **state)
{
	const struct mrc_act_post *again;
	struct fixture f;
	uint32_t from;

	fixture_init(&f);
	from = f.h.log_count;
	assert_int_equal(lab_feed(&f.h, 1,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_WANT,
							.channel = f.wire,
							.msg = 2,
							.offset = 3,
							.msg_len = 8},
				  NULL),
			 0);
	lab_pump(&f.h);
	again = lab_posted(&f.h, MRC_WIRE_FRAG, from, 0);
	assert_non_null(again);
	assert_int_equal(again->hdr.msg, 2);
	assert_int_equal(again->hdr.offset, 3);
	assert_int_equal(again->hdr.body_len, 5);
	assert_int_equal(again->hdr.msg_len, 10);
	assert_null(lab_posted(&f.h, MRC_WIRE_FRAG, from, 1));
	lab_host_fini(&f.h);
}

/* As often as it takes until it is given up, blaming so many paths in turn. */
static void want_again_and_again(struct fixture *f, uint32_t paths)
{
	for (uint32_t i = 0; i <= MRC_WANTS_MAX + 4 * f->ch->out[2].frag_count; i++) {
		assert_null(lab_posted(&f->h, MRC_WIRE_VOID, 0, 0));
		assert_int_equal(lab_feed(&f->h, 0,
					  (struct mrc_wire_hdr){.type = MRC_WIRE_WANT,
								.channel = f->wire,
								.msg = 2,
								.msg_len = 10,
								.arg = 1 + i % paths},
					  NULL),
				 0);
		lab_pump(&f->h);
		lab_ack_all(&f->h);
	}
}

/* Invariant 8: copy after copy is wrong, so the sender is changing the bytes. */
static void a_message_wanted_without_end_is_given_up(void **state)
{
	struct fixture f;

	fixture_init(&f);
	/* Damage counts; that the receiver had no room to remember a gap does not. */
	for (uint32_t i = 0; i <= 2 * MRC_WANTS_MAX; i++) {
		assert_int_equal(lab_feed(&f.h, 0,
					  (struct mrc_wire_hdr){.type = MRC_WIRE_WANT,
								.channel = f.wire,
								.msg = 2,
								.msg_len = 10},
					  NULL),
				 0);
		lab_pump(&f.h);
		lab_ack_all(&f.h);
	}
	want_again_and_again(&f, 2);
	assert_int_equal(lab_posted(&f.h, MRC_WIRE_VOID, 0, 0)->hdr.offset, 2);
	assert_int_equal(lab_feed(&f.h, 0,
				  (struct mrc_wire_hdr){
					  .type = MRC_WIRE_LEVEL,
					  .channel = f.wire,
					  .msg = 2,
					  .arg = 1U << 8 | (uint64_t)(uint8_t)MRC_OUT_CLOSED << 16},
				  NULL),
			 0);
	lab_pump(&f.h);
	lab_done_is(&f.h, 2, MRC_OUT_BUFFER_CHANGED);
	lab_host_fini(&f.h);
}

/* Of the only path it cannot be told whose fault it is, also where others were taken away. */
static void one_path_that_is_left_is_not_blamed_for_ever(void **state)
{
	struct fixture f;

	fixture_init(&f);
	assert_int_equal(lab_path(&f.h, MRC_EV_DENY, 1, MRC_REASON_NONE), 0);
	lab_pump(&f.h);
	assert_int_equal(lab_path(&f.h, MRC_EV_PATH_FAILED, 1, MRC_REASON_CONNECT), 0);
	assert_int_equal(mrc_conn_path_remove(f.h.conn, 1), 0);
	want_again_and_again(&f, 1);
	assert_int_equal(lab_posted(&f.h, MRC_WIRE_VOID, 0, 0)->hdr.offset, 2);
	lab_host_fini(&f.h);
}

/* ---- direct placement ---- */

static void a_direct_fragment_must_be_vouched_for_by_its_own_path(void **state)
{
	const struct {
		const char *name;
		bool is_direct; /* the path */
		uint16_t writer_path;
		uint32_t writer_epoch;
		int want;
	} rows[] = {
		{"its own", true, 1, LAB_PATH_EPOCH, 0},
		{"another path", true, 0, LAB_PATH_EPOCH, -EPROTO},
		{"an older epoch", true, 1, LAB_PATH_EPOCH - 1, -EPROTO},
		{"a later epoch", true, 1, LAB_PATH_EPOCH + 1, -EPROTO},
		{"a path that cannot", false, 1, LAB_PATH_EPOCH, -EPROTO},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrc_wire_hdr hdr = {.type = MRC_WIRE_FRAG,
					   .flags = MRC_WIRE_F_EAGER | MRC_WIRE_F_DIRECT,
					   .writer_path = rows[i].writer_path,
					   .writer_epoch = rows[i].writer_epoch,
					   .msg_len = 10,
					   .body_len = 10};
		struct lab_host h;
		uint32_t id;
		int r;

		lab_solo_up(&h, 2, rows[i].is_direct);
		id = lab_solo_channel(&h, false);
		hdr.channel = mrc_conn_channel(h.conn, id)->wire_id;
		r = lab_feed(&h, 1, hdr, NULL);
		if (r != rows[i].want)
			fail_msg("%s: answer %d, want %d", rows[i].name, r, rows[i].want);
		lab_pump(&h);
		assert_int_equal(lab_count(&h, MRC_ACT_DELIVER, 0), r == 0);
		lab_host_fini(&h);
	}
}

/* DESIGN 7.3: a copy names the writer; our end of it is fenced before the copy is made. */
static void a_copy_waits_until_its_writer_is_fenced(void **state)
{
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_FRAG,
				   .flags = MRC_WIRE_F_EAGER | MRC_WIRE_F_COPY,
				   .conn_epoch = LAB_EPOCH,
				   .path_epoch = LAB_PATH_EPOCH,
				   .writer_path = 0,
				   .writer_epoch = LAB_PATH_EPOCH,
				   .msg_len = 10,
				   .body_len = 10};
	struct mrc_event_in ev = {
		.kind = MRC_EV_ARRIVED,
		.arrived = {.index = 1,
			    .path_epoch = LAB_PATH_EPOCH,
			    .is_body_good = true,
			    .hold = 55,
			    .hdr = &hdr},
	};
	const struct mrc_action *copy;
	struct lab_host h;
	uint32_t id, from;

	lab_solo_up(&h, 2, true);
	id = lab_solo_channel(&h, false);
	hdr.channel = mrc_conn_channel(h.conn, id)->wire_id;
	h.fences = false;
	from = h.log_count;
	assert_int_equal(lab_handle(&h, &ev), 0);
	lab_pump(&h);
	assert_int_equal(lab_find(&h, MRC_ACT_FENCE, from, 0)->path.index, 0);
	assert_null(lab_find(&h, MRC_ACT_COPY, from, 0));
	assert_null(lab_find(&h, MRC_ACT_DELIVER, from, 0));
	lab_path(&h, MRC_EV_FENCED, 0, MRC_REASON_NONE);
	lab_pump(&h);
	copy = lab_find(&h, MRC_ACT_COPY, from, 0);
	assert_non_null(copy);
	assert_int_equal(copy->msg.hold, 55);
	assert_int_equal(copy->msg.len, 10);
	assert_int_equal(lab_find(&h, MRC_ACT_HOLD_FREE, from, 0)->msg.hold, 55);
	assert_int_equal(lab_count(&h, MRC_ACT_DELIVER, from), 1);
	lab_host_fini(&h);
}

/* Whatever comes in whatever order: an answer, never a crash, and the engine still works. */
static void random_frames_never_break_the_engine(void **state)
{
	struct mrc_rng rng = {.state = 0x5eed8};
	uint32_t accepted = 0, rejected = 0;

	for (uint32_t round = 0; round < 400; round++) {
		struct fixture f;

		fixture_init(&f);
		for (uint32_t step = 0; step < 60; step++) {
			uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
			struct mrc_wire_hdr hdr = {
				.type = (uint8_t)(3 + mrc_rng_next(&rng) % 21),
				.flags = (uint16_t)(mrc_rng_next(&rng) & 0x5f),
				.channel = mrc_rng_next(&rng) % 4
						   ? 0
						   : (uint32_t)(mrc_rng_next(&rng) % 4),
				.writer_path = (uint16_t)(mrc_rng_next(&rng) % 3),
				.writer_epoch = (uint32_t)(mrc_rng_next(&rng) % 5),
				.body_len = (uint32_t)(mrc_rng_next(&rng) % 140),
				.msg = mrc_rng_next(&rng) % 6,
				.offset = mrc_rng_next(&rng) % 12,
				.msg_len = mrc_rng_next(&rng) % 140,
				.addr = mrc_rng_next(&rng) % 50,
				.arg = mrc_rng_next(&rng) % 4,
			};
			uint8_t bytes[MRC_WIRE_HDR_BYTES];
			struct mrc_wire_hdr decoded;

			/* Fragments are what most depends on; and few random ones are in range. */
			if (mrc_rng_next(&rng) % 3 == 0)
				hdr.type = MRC_WIRE_FRAG;
			if (hdr.type != MRC_WIRE_FRAG)
				hdr.flags = 0;
			else
				hdr.body_len %= 12;
			if (mrc_rng_next(&rng) % 4 == 0)
				hdr.addr += f.addr;
			if (mrc_rng_next(&rng) % 8 == 0)
				hdr.arg = mrc_rng_next(&rng);
			for (uint32_t i = 0; i < sizeof(body); i++)
				body[i] = mrc_rng_next(&rng) % 3
						  ? 0
						  : (uint8_t)(mrc_rng_next(&rng) % 7);
			/* Only what decoding lets pass comes this far. */
			mrc_wire_encode(&hdr, lab_crc32c, bytes);
			if (mrc_wire_decode(bytes, lab_crc32c, &decoded))
				continue;
			if (lab_feed(&f.h, mrc_rng_next(&rng) % 2, hdr, body) == 0)
				accepted++;
			else
				rejected++;
			if (mrc_rng_next(&rng) % 4 == 0)
				lab_pump(&f.h);
			f.h.now_ns += mrc_rng_next(&rng) % MRC_MS;
			if (mrc_rng_next(&rng) % 4 == 0)
				lab_timer(&f.h);
		}
		lab_pump(&f.h);
		lab_host_fini(&f.h);
	}
	assert_true(accepted > 1000);
	assert_true(rejected > 1000);
}

/* What is said before the ACCEPT counts after it: no more than the state of a conn may have (conn_state). */
static void limits_said_too_early_are_bounded_too(void **state)
{
	const struct lab_state beyond = {.ring_limit = UINT64_MAX, .msg_limit = LAB_WINDOW};
	struct lab_host h;
	uint32_t id;

	(void)state;
	lab_solo_up(&h, 2, false);
	assert_int_equal(lab_open_at(&h, "svc", false, &id), 0);
	lab_pump(&h);
	assert_int_equal(lab_feed_state(&h, 0, mrc_conn_channel(h.conn, id)->wire_id, &beyond),
			 -EPROTO);
	lab_host_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_out_of_range_are_refused),
		cmocka_unit_test(a_checksum_where_there_is_none_is_refused),
		cmocka_unit_test(counts_and_credit_out_of_range_are_refused),
		cmocka_unit_test(limits_said_too_early_are_bounded_too),
		cmocka_unit_test(bodies_too_short_are_refused),
		cmocka_unit_test(acks_out_of_range_are_refused),
		cmocka_unit_test(drained_of_more_paths_than_can_be_is_refused),
		cmocka_unit_test(only_an_answered_probe_may_have_no_counts),
		cmocka_unit_test(a_damaged_control_frame_ends_its_path_and_says_nothing),
		cmocka_unit_test(a_frame_of_another_epoch_than_its_paths_is_refused),
		cmocka_unit_test(a_fragment_before_its_buffer_was_granted_is_refused),
		cmocka_unit_test(words_about_channels_that_are_gone_do_nothing),
		cmocka_unit_test(a_second_rts_gets_the_same_cts),
		cmocka_unit_test(a_second_cts_must_say_the_same),
		cmocka_unit_test(copies_of_what_is_here_are_thrown_away),
		cmocka_unit_test(a_damaged_body_is_asked_for_again),
		cmocka_unit_test(what_is_wanted_again_is_sent_again),
		cmocka_unit_test(a_message_wanted_without_end_is_given_up),
		cmocka_unit_test(one_path_that_is_left_is_not_blamed_for_ever),
		cmocka_unit_test(a_direct_fragment_must_be_vouched_for_by_its_own_path),
		cmocka_unit_test(a_copy_waits_until_its_writer_is_fenced),
		cmocka_unit_test(random_frames_never_break_the_engine),
	};

	return cmocka_run_group_tests_name("conn_breach", tests, NULL, NULL);
}
