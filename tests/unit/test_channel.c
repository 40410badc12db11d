/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_channel, mrc_msg_out, mrc_msg_in: numbers, ring placement, verdicts, settling. */
#include "engine_lab.h"

enum { WINDOW = 8, RING = 1024, NODES = 32, EAGER_MAX = 512 };

struct fixture {
	struct mrc_channel ch;
	struct mrc_msg_out out[WINDOW];
	struct mrc_msg_in in[WINDOW];
	struct mrc_range_node nodes[NODES];
	struct mrc_range_pool pool;
};

static void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->ch.state = MRC_CH_OPEN;
	f->ch.has_client = f->ch.is_established = true;
	f->ch.ready_head = f->ch.ready_tail = MRC_SLOT_NONE;
	f->ch.out = f->out;
	f->ch.in = f->in;
	f->ch.out_window = f->ch.in_window = f->ch.peer_window = WINDOW;
	f->ch.ring_bytes = f->ch.peer_ring_bytes = f->ch.ring_limit = RING;
	f->ch.ring_limit_told = RING;
	f->ch.msg_bytes_max = f->ch.peer_msg_bytes_max = 1 << 20;
	f->ch.msg_limit = f->ch.msg_limit_told = WINDOW;
	mrc_range_pool_init(&f->pool, f->nodes, NODES);
	for (int i = 0; i < WINDOW; i++) {
		mrc_range_set_init(&f->in[i].here);
		mrc_range_set_init(&f->in[i].wanted);
	}
}

/* ---- bits and slots ---- */

static void bits_are_found_going_round(void **state)
{
	const uint32_t counts[] = {1, 8, 64, 128, MRC_WINDOW_MAX};
	struct mrc_rng rng = {.state = 0x5eed5};

	for (size_t c = 0; c < MRC_ARRAY_LEN(counts); c++) {
		uint32_t count = counts[c];

		for (uint32_t round = 0; round < 500; round++) {
			struct mrc_bits bits = {0};
			bool model[MRC_WINDOW_MAX] = {0};
			uint32_t from = (uint32_t)(mrc_rng_next(&rng) % count);
			uint32_t want = MRC_SLOT_NONE;

			for (uint64_t n = mrc_rng_next(&rng) % 4; n; n--) {
				uint32_t i = (uint32_t)(mrc_rng_next(&rng) % count);

				model[i] = true;
				mrc_bits_set(&bits, i);
			}
			for (uint32_t i = 0; i < count && want == MRC_SLOT_NONE; i++) {
				if (model[(from + i) % count])
					want = (from + i) % count;
			}
			assert_int_equal(mrc_bits_first(&bits, from, count), want);
		}
	}
}

static void a_slot_names_one_number_of_the_window(void **state)
{
	struct fixture f;

	fixture_init(&f);
	for (uint64_t base = 0; base < 3 * WINDOW; base++) {
		f.ch.settled = f.ch.peer_settled = base;
		f.ch.send_next = base + WINDOW;
		for (uint64_t n = base; n < base + WINDOW; n++) {
			uint32_t slot = (uint32_t)(n % WINDOW);

			assert_int_equal(mrc_channel_out_number(&f.ch, slot), n);
			assert_int_equal(mrc_channel_in_number(&f.ch, slot), n);
			assert_ptr_equal(mrc_channel_out(&f.ch, n), &f.out[slot]);
			assert_ptr_equal(mrc_channel_in(&f.ch, n), &f.in[slot]);
		}
		assert_null(mrc_channel_out(&f.ch, base + WINDOW));
		assert_null(mrc_channel_in(&f.ch, base + WINDOW));
		assert_null(mrc_channel_in(&f.ch, UINT64_MAX));
		if (base) {
			assert_null(mrc_channel_out(&f.ch, base - 1));
			assert_null(mrc_channel_in(&f.ch, base - 1));
		}
	}
}

/* ---- sending ---- */

static int send_len(struct fixture *f, uint64_t len, enum mrc_lvl level)
{
	struct mrc_ev_msg ev = {.len = len, .level = level, .cookie = len};
	uint64_t number;
	int r = mrc_channel_send(&f->ch, &ev, &number);

	mrc_channel_admit(&f->ch, EAGER_MAX);
	return r;
}

static void sends_are_refused_when_no_slot_is_free_and_when_too_large(void **state)
{
	struct fixture f;

	fixture_init(&f);
	for (int i = 0; i < WINDOW; i++)
		assert_int_equal(send_len(&f, 1, MRC_LVL_PLACED), 0);
	assert_int_equal(send_len(&f, 1, MRC_LVL_PLACED), -ENOSPC);
	assert_int_equal(f.ch.send_next, WINDOW);
	fixture_init(&f);
	assert_int_equal(send_len(&f, f.ch.peer_msg_bytes_max, MRC_LVL_PLACED), 0);
	assert_int_equal(send_len(&f, f.ch.peer_msg_bytes_max + 1, MRC_LVL_PLACED), -EMSGSIZE);
	assert_int_equal(f.ch.send_next, 1);
}

static void eager_messages_never_cross_the_end_of_the_ring(void **state)
{
	struct mrc_rng rng = {.state = 0x5eed6};
	struct fixture f;
	uint64_t end = 0, skips = 0;

	fixture_init(&f);
	f.ch.ring_limit = UINT64_MAX / 2;
	f.ch.msg_limit = UINT64_MAX;
	for (uint64_t n = 0; n < 5000; n++) {
		uint64_t len = mrc_rng_next(&rng) % (RING / 2 + 1);
		struct mrc_msg_out *msg;

		assert_int_equal(send_len(&f, len, MRC_LVL_COMMITTED), 0);
		msg = mrc_channel_out(&f.ch, n);
		assert_true(msg->is_eager && msg->is_admitted);
		assert_true(msg->landing >= end);
		assert_true(msg->landing % RING + len <= RING);
		if (msg->landing != end) {
			/* A skip goes to the next beginning, and only when it must. */
			assert_int_equal(msg->landing % RING, 0);
			assert_true(end % RING + len > RING);
			skips++;
		}
		end = msg->landing + len;
		assert_int_equal(f.ch.ring_next, end);
		/* Let it go, so that its slot serves again. */
		mrc_channel_ready_pop(&f.ch);
		msg->is_final = msg->is_answered = true;
		assert_true(mrc_channel_settle(&f.ch));
	}
	assert_true(skips > 100);
}

/* Lengths of three sends one after another; how many are admitted, and the ring's next position. */
static void admission_stops_at_the_credit(void **state)
{
	const struct {
		const char *name;
		uint64_t lens[3], ring_limit, msg_limit, peer_window;
		uint64_t admitted, ring_next;
		uint32_t rts;
	} rows[] = {
		{"all", {100, 200, 300}, RING, 8, 8, 3, 600, 0},
		{"ring exactly full", {500, 500, 24}, RING, 8, 8, 3, 1024, 0},
		{"ring one byte short", {500, 500, 24}, RING - 1, 8, 8, 2, 1000, 0},
		{"the skip counts", {400, 400, 300}, RING + 299, 8, 8, 2, 800, 0},
		{"and fits with it", {400, 400, 300}, RING + 300, 8, 8, 3, 1324, 0},
		{"message credit", {1, 1, 1}, RING, 2, 8, 2, 2, 0},
		{"none at all", {1, 1, 1}, RING, 0, 8, 0, 0, 0},
		{"peer's window", {1, 1, 1}, RING, 8, 1, 1, 1, 0},
		{"empty ones cost a number", {0, 0, 0}, 0, 2, 8, 2, 0, 0},
		{"larger ones ask, and take no ring",
		 {EAGER_MAX + 1, EAGER_MAX, 1},
		 RING,
		 8,
		 8,
		 3,
		 EAGER_MAX + 1,
		 1},
		{"nothing overtakes one without ring space",
		 {400, 400, 600},
		 RING,
		 8,
		 8,
		 3,
		 800,
		 1},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;
		uint32_t rts = 0;

		fixture_init(&f);
		f.ch.ring_limit = rows[i].ring_limit;
		f.ch.msg_limit = rows[i].msg_limit;
		f.ch.peer_window = (uint32_t)rows[i].peer_window;
		for (int m = 0; m < 3; m++)
			assert_int_equal(send_len(&f, rows[i].lens[m], MRC_LVL_PLACED), 0);
		for (uint32_t s = 0; s < WINDOW; s++)
			rts += mrc_bits_has(&f.ch.rts_bits, s);
		if (f.ch.admit_next != rows[i].admitted || f.ch.ring_next != rows[i].ring_next ||
		    rts != rows[i].rts)
			fail_msg("%s: admitted %llu, ring %llu, asked %u", rows[i].name,
				 (unsigned long long)f.ch.admit_next,
				 (unsigned long long)f.ch.ring_next, rts);
	}
}

static void one_too_large_for_the_peer_is_given_up_and_uses_its_number(void **state)
{
	struct fixture f;

	fixture_init(&f);
	f.ch.is_established = false; /* the peer's limit is not known yet */
	assert_int_equal(send_len(&f, 2 << 20, MRC_LVL_PLACED), 0);
	assert_int_equal(send_len(&f, 5, MRC_LVL_PLACED), 0);
	assert_int_equal(f.ch.admit_next, 0);
	f.ch.is_established = true;
	mrc_channel_admit(&f.ch, EAGER_MAX);
	assert_int_equal(f.ch.admit_next, 2);
	assert_true(f.out[0].is_void_asked);
	assert_int_equal(f.ch.void_count, 1);
	assert_true(f.out[1].is_granted);
	/* The receiver lets it be void: the client hears why, not just "closed". */
	assert_true(mrc_channel_out_level(&f.ch, 0, MRC_LVL_NONE, MRC_OUT_CLOSED, 0, true));
	assert_int_equal(f.out[0].outcome, MRC_OUT_TOO_BIG);
}

static void ready_slots_are_a_queue(void **state)
{
	struct fixture f;

	fixture_init(&f);
	mrc_channel_ready_push(&f.ch, 3);
	mrc_channel_ready_push(&f.ch, 1);
	mrc_channel_ready_push(&f.ch, 3); /* is in it already */
	mrc_channel_ready_push(&f.ch, 2);
	assert_int_equal(mrc_channel_ready_pop(&f.ch), 3);
	assert_int_equal(mrc_channel_ready_pop(&f.ch), 1);
	mrc_channel_ready_push(&f.ch, 3);
	assert_int_equal(mrc_channel_ready_pop(&f.ch), 2);
	assert_int_equal(mrc_channel_ready_pop(&f.ch), 3);
	assert_int_equal(f.ch.ready_head, MRC_SLOT_NONE);
	assert_int_equal(f.ch.ready_tail, MRC_SLOT_NONE);
}

/* `count` messages of 8 bytes, sent whole. */
static void sent(struct fixture *f, uint64_t count, enum mrc_lvl level)
{
	for (uint64_t n = 0; n < count; n++) {
		assert_int_equal(send_len(f, 8, level), 0);
		mrc_channel_ready_pop(&f->ch);
		mrc_channel_out(&f->ch, n)->next_offset = 8;
	}
}

static void an_answer_waits_for_its_level_and_for_the_rail(void **state)
{
	struct fixture f;

	fixture_init(&f);
	sent(&f, 2, MRC_LVL_VISIBLE);
	f.out[0].frames_out = 1;
	assert_true(mrc_channel_out_counts(&f.ch, 2, 0, 0));
	assert_int_equal(f.ch.done_count, 0);
	assert_true(mrc_channel_out_counts(&f.ch, 2, 2, 0));
	assert_int_equal(f.ch.done_count, 2);
	/* Message 0's memory may still be read: 1 is answered first. */
	assert_int_equal(mrc_channel_done_slot(&f.ch), 1);
	f.out[0].frames_out = 0;
	assert_int_equal(mrc_channel_done_slot(&f.ch), 0);
	f.out[0].frames_out = f.out[1].frames_out = 1;
	assert_int_equal(mrc_channel_done_slot(&f.ch), MRC_SLOT_NONE);
}

static void what_the_peer_cannot_know_is_refused(void **state)
{
	struct fixture f;

	fixture_init(&f);
	sent(&f, 2, MRC_LVL_COMMITTED);
	assert_false(mrc_channel_out_counts(&f.ch, 3, 0, 0));
	assert_false(mrc_channel_out_counts(&f.ch, 0, 3, 0));
	assert_false(mrc_channel_out_counts(&f.ch, 0, 0, 3));
	assert_false(mrc_channel_out_level(&f.ch, 2, MRC_LVL_PLACED, 0, 0, false));
	assert_false(mrc_channel_out_level(&f.ch, UINT64_MAX, MRC_LVL_PLACED, 0, 0, false));
	/* Placed, though its last bytes were never sent. */
	f.out[1].next_offset = 7;
	assert_false(mrc_channel_out_level(&f.ch, 1, MRC_LVL_PLACED, 0, 0, false));
	assert_false(mrc_channel_out_counts(&f.ch, 2, 0, 0));
	assert_int_equal(f.out[1].level, MRC_LVL_NONE);
	/* An empty message has one frame that must have been sent. */
	fixture_init(&f);
	assert_int_equal(send_len(&f, 0, MRC_LVL_PLACED), 0);
	assert_false(mrc_channel_out_counts(&f.ch, 1, 0, 0));
	f.out[0].is_empty_sent = true;
	assert_true(mrc_channel_out_counts(&f.ch, 1, 0, 0));
}

static void the_first_final_verdict_stands(void **state)
{
	struct fixture f;

	fixture_init(&f);
	sent(&f, 2, MRC_LVL_COMMITTED);
	assert_true(mrc_channel_out_level(&f.ch, 0, MRC_LVL_VISIBLE, MRC_OUT_REJECTED, 77, true));
	assert_true(mrc_channel_out_level(&f.ch, 0, MRC_LVL_COMMITTED, MRC_OUT_OK, 0, true));
	assert_int_equal(f.out[0].outcome, MRC_OUT_REJECTED);
	assert_int_equal(f.out[0].code, 77);
	assert_int_equal(f.out[0].level, MRC_LVL_VISIBLE);
	/* The count passes it, and commits the next. */
	assert_true(mrc_channel_out_counts(&f.ch, 2, 2, 2));
	assert_int_equal(f.out[0].outcome, MRC_OUT_REJECTED);
	assert_int_equal(f.out[1].level, MRC_LVL_COMMITTED);
	assert_true(f.out[1].is_final);
}

static void counts_never_go_back(void **state)
{
	struct fixture f;

	fixture_init(&f);
	sent(&f, 3, MRC_LVL_COMMITTED);
	assert_true(mrc_channel_out_counts(&f.ch, 3, 2, 1));
	assert_true(mrc_channel_out_counts(&f.ch, 1, 1, 0)); /* a late one */
	assert_int_equal(f.ch.delivered_known, 3);
	assert_int_equal(f.ch.visible_known, 2);
	assert_int_equal(f.ch.final_known, 1);
	assert_int_equal(f.out[2].level, MRC_LVL_PLACED);
}

static void settling_needs_a_final_level_an_answer_and_an_idle_rail(void **state)
{
	const struct {
		const char *name;
		bool is_final, is_answered, is_ready;
		uint32_t frames_out;
		enum mrc_channel_state state;
		bool want;
	} rows[] = {
		{"all there", true, true, false, 0, MRC_CH_OPEN, true},
		{"closing", true, true, false, 0, MRC_CH_CLOSING, true},
		{"not final", false, true, false, 0, MRC_CH_OPEN, false},
		{"not answered", true, false, false, 0, MRC_CH_OPEN, false},
		{"in the ready list", true, true, true, 0, MRC_CH_OPEN, false},
		{"still read", true, true, false, 1, MRC_CH_OPEN, false},
		{"ended", true, true, false, 0, MRC_CH_ENDED, false},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;

		fixture_init(&f);
		sent(&f, 1, MRC_LVL_PLACED);
		f.out[0].is_final = rows[i].is_final;
		f.out[0].is_answered = rows[i].is_answered;
		f.out[0].is_ready = rows[i].is_ready;
		f.out[0].frames_out = rows[i].frames_out;
		f.ch.state = rows[i].state;
		if (mrc_channel_can_settle(&f.ch) != rows[i].want ||
		    mrc_channel_settle(&f.ch) != rows[i].want)
			fail_msg("%s", rows[i].name);
		assert_int_equal(f.ch.settled, rows[i].want);
	}
}

static void a_failed_channel_fails_only_what_was_not_reached(void **state)
{
	struct fixture f;

	fixture_init(&f);
	assert_int_equal(send_len(&f, 8, MRC_LVL_PLACED), 0);
	assert_int_equal(send_len(&f, 8, MRC_LVL_COMMITTED), 0);
	assert_int_equal(send_len(&f, EAGER_MAX + 1, MRC_LVL_PLACED), 0);
	f.out[0].level = f.out[1].level = MRC_LVL_PLACED;
	mrc_channel_out_fail_all(&f.ch, MRC_OUT_UNKNOWN, 3);
	assert_int_equal(f.out[0].outcome, MRC_OUT_OK);
	assert_int_equal(f.out[1].outcome, MRC_OUT_UNKNOWN);
	assert_int_equal(f.out[2].outcome, MRC_OUT_UNKNOWN);
	assert_int_equal(f.ch.done_count, 3);
	assert_int_equal(f.ch.ready_head, MRC_SLOT_NONE);
	assert_false(mrc_bits_has(&f.ch.rts_bits, 2));
}

/* ---- receiving ---- */

static void learning_refuses_what_cannot_be(void **state)
{
	const uint64_t max = 1 << 20;
	const struct {
		const char *name;
		uint64_t number, len;
		bool is_eager;
		uint64_t position;
		int want;
	} rows[] = {
		{"eager", 0, 8, true, 0, 0},
		{"eager, at the end of the ring", 0, 8, true, RING - 8, 0},
		{"eager, across the end", 0, 8, true, RING - 7, -EPROTO},
		{"eager, half the ring", 0, RING / 2, true, 0, 0},
		{"eager, more than half", 0, RING / 2 + 1, true, 0, -EPROTO},
		{"eager, beyond the credit", 0, 8, true, RING, -EPROTO},
		{"eager, far beyond", 0, 8, true, UINT64_MAX - 4, -EPROTO},
		{"empty, anywhere", 0, 0, true, UINT64_MAX, 0},
		{"empty, not eager", 0, 0, false, 0, -EPROTO},
		{"last of the window", WINDOW - 1, 8, true, 0, 0},
		{"beyond the window", WINDOW, 8, true, 0, -EPROTO},
		{"far beyond", UINT64_MAX, 8, true, 0, -EPROTO},
		{"as large as the arena takes", 0, max, false, 0, 0},
		{"larger", 0, max + 1, false, 0, -EPROTO},
		{"absurd", 0, UINT64_MAX, false, 0, -EPROTO},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;
		int r;

		fixture_init(&f);
		r = mrc_channel_in_learn(&f.ch, rows[i].number, rows[i].len, rows[i].is_eager,
					 rows[i].position);
		if (r != rows[i].want)
			fail_msg("%s: answer %d, want %d", rows[i].name, r, rows[i].want);
	}
}

/* Message `number` of 8 bytes comes whole and is delivered, as mrc_conn_act.c does it. */
static void delivered(struct fixture *f, uint64_t number, uint64_t position)
{
	struct mrc_msg_in *msg;
	uint64_t next;

	assert_int_equal(mrc_channel_in_learn(&f->ch, number, 8, true, position), 0);
	assert_int_equal(mrc_channel_in_here(&f->ch, &f->pool, number, 0, 8), 8);
	assert_true(mrc_channel_in_next(&f->ch, &next));
	msg = mrc_channel_in(&f->ch, next);
	mrc_bits_clear(&f->ch.deliver_bits, (uint32_t)(next % WINDOW));
	msg->is_delivered = true;
	f->ch.held_count++;
	while (f->ch.deliver_next < f->ch.peer_settled + WINDOW &&
	       f->in[f->ch.deliver_next % WINDOW].is_delivered)
		f->ch.deliver_next++;
	mrc_channel_in_reached(&f->ch, next, MRC_LVL_PLACED);
}

/* With the beginning of the ring free again, credit alone would allow it. */
static void nothing_received_crosses_the_end_of_the_ring(void **state)
{
	struct fixture f;

	fixture_init(&f);
	delivered(&f, 0, 0);
	assert_int_equal(mrc_channel_in_release(&f.ch, &f.pool, 0), 0);
	assert_int_equal(mrc_channel_in_learn(&f.ch, 1, 8, true, RING - 7), -EPROTO);
	assert_int_equal(mrc_channel_in_learn(&f.ch, 1, 8, true, RING), 0);
}

/* Else a message could be written over one of an earlier number that the client reads by then. */
static void positions_grow_with_the_numbers(void **state)
{
	for (int is_unordered = 0; is_unordered < 2; is_unordered++) {
		struct fixture f;

		fixture_init(&f);
		f.ch.is_unordered = is_unordered;
		assert_int_equal(mrc_channel_in_learn(&f.ch, 2, 8, true, 100), 0);
		assert_int_equal(mrc_channel_in_learn(&f.ch, 1, 8, true, 93), -EPROTO);
		assert_int_equal(mrc_channel_in_learn(&f.ch, 1, 8, true, 92), 0);
		assert_int_equal(mrc_channel_in_learn(&f.ch, 4, 8, true, 107), -EPROTO);
		assert_int_equal(mrc_channel_in_learn(&f.ch, 4, 8, true, 108), 0);
		/* Empty and granted ones have no position. */
		assert_int_equal(mrc_channel_in_learn(&f.ch, 3, 0, true, 5), 0);
		assert_int_equal(mrc_channel_in_learn(&f.ch, 5, 8, true, 107), -EPROTO);
	}
}

static void what_was_learnt_does_not_change(void **state)
{
	struct fixture f;

	fixture_init(&f);
	assert_int_equal(mrc_channel_in_learn(&f.ch, 0, 8, true, 16), 0);
	assert_int_equal(mrc_channel_in_learn(&f.ch, 0, 8, true, 16), 0);
	assert_int_equal(mrc_channel_in_learn(&f.ch, 0, 9, true, 16), -EPROTO);
	assert_int_equal(mrc_channel_in_learn(&f.ch, 0, 8, false, 16), -EPROTO);
	assert_int_equal(mrc_channel_in_learn(&f.ch, 0, 8, true, 17), -EPROTO);
	assert_int_equal(f.in[0].addr, 16);
	assert_int_equal(f.in[0].len, 8);
}

static void nothing_may_lie_over_what_a_client_reads(void **state)
{
	for (int is_unordered = 0; is_unordered < 2; is_unordered++) {
		const struct {
			const char *name;
			uint64_t position;
			int want;
		} rows[] = {
			{"the same place", 0, -EPROTO},
			{"its last byte", 7, -EPROTO},
			{"behind it", 8, 0},
			{"the place again, a round later", RING, -EPROTO},
			{"overlapping it from before, a round later", RING - 4, -EPROTO},
		};

		for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
			struct fixture f;
			int r;

			fixture_init(&f);
			f.ch.is_unordered = is_unordered;
			delivered(&f, 0, 0);
			r = mrc_channel_in_learn(&f.ch, 1, 8, true, rows[i].position);
			if (r != rows[i].want)
				fail_msg("%s, %sordered: answer %d, want %d", rows[i].name,
					 is_unordered ? "un" : "", r, rows[i].want);
		}
	}
}

static void released_places_serve_again_in_order(void **state)
{
	struct fixture f;

	fixture_init(&f);
	delivered(&f, 0, 0);
	delivered(&f, 1, 8);
	/* 1 first: the free part grows only over the oldest. */
	assert_int_equal(mrc_channel_in_release(&f.ch, &f.pool, 1), 0);
	assert_int_equal(f.ch.ring_head, 0);
	assert_int_equal(f.ch.release_next, 0);
	assert_int_equal(mrc_channel_in_release(&f.ch, &f.pool, 0), 0);
	assert_int_equal(f.ch.ring_head, 16);
	assert_int_equal(f.ch.release_next, 2);
	assert_int_equal(mrc_channel_in_learn(&f.ch, 2, 8, true, RING + 8), 0);
	assert_int_equal(mrc_channel_in_learn(&f.ch, 3, 8, true, RING + 16), -EPROTO);
}

static void skips_at_the_end_of_the_ring_are_freed_with_what_follows(void **state)
{
	struct fixture f;

	fixture_init(&f);
	delivered(&f, 0, RING - 10);
	assert_int_equal(mrc_channel_in_release(&f.ch, &f.pool, 0), 0);
	assert_int_equal(f.ch.ring_head, RING - 2);
	delivered(&f, 1, RING); /* two bytes skipped */
	assert_int_equal(mrc_channel_in_release(&f.ch, &f.pool, 1), 0);
	assert_int_equal(f.ch.ring_head, RING + 8);
}

static void release_counts_once(void **state)
{
	struct fixture f;

	fixture_init(&f);
	assert_int_equal(mrc_channel_in_release(&f.ch, &f.pool, 0), -EINVAL); /* not there yet */
	delivered(&f, 0, 0);
	assert_int_equal(mrc_channel_in_release(&f.ch, &f.pool, 0), 0);
	assert_int_equal(f.ch.held_count, 0);
	assert_int_equal(mrc_channel_in_release(&f.ch, &f.pool, 0), -EALREADY);
	assert_int_equal(f.ch.held_count, 0);
	assert_int_equal(f.ch.released_count, 1);
	/* Also when its slot was freed long ago. */
	assert_true(mrc_channel_in_settled(&f.ch, &f.pool, 1));
	assert_int_equal(mrc_channel_in_release(&f.ch, &f.pool, 0), -EALREADY);
	assert_int_equal(mrc_channel_in_release(&f.ch, &f.pool, WINDOW + 1), -EINVAL);
	assert_int_equal(mrc_channel_in_release(&f.ch, &f.pool, UINT64_MAX), -EINVAL);
}

static void a_release_commits(void **state)
{
	struct fixture f;

	fixture_init(&f);
	delivered(&f, 0, 0);
	assert_int_equal(mrc_channel_in_release(&f.ch, &f.pool, 0), 0);
	assert_int_equal(f.in[0].level, MRC_LVL_COMMITTED);
	assert_int_equal(f.ch.visible_next, 1);
	assert_int_equal(f.ch.final_next, 1);
	/* The count says it all: no LEVEL is needed. */
	assert_false(mrc_bits_has(&f.ch.level_bits, 0));
}

static void the_count_does_not_overtake_a_rejection(void **state)
{
	struct fixture f;

	fixture_init(&f);
	delivered(&f, 0, 0);
	delivered(&f, 1, 8);
	mrc_channel_in_final(&f.ch, 0, MRC_OUT_REJECTED, 42);
	mrc_channel_in_final(&f.ch, 1, MRC_OUT_OK, 0);
	assert_int_equal(f.ch.final_next, 0);
	assert_true(mrc_bits_has(&f.ch.level_bits, 0));
	/* An acknowledgement of an older LEVEL says nothing of this one. */
	mrc_channel_in_level_acked(&f.ch, 0);
	assert_int_equal(f.ch.final_next, 0);
	mrc_bits_clear(&f.ch.level_bits, 0); /* sent, and now acknowledged */
	mrc_channel_in_level_acked(&f.ch, 0);
	assert_int_equal(f.ch.final_next, 2);
}

static void levels_are_told_out_of_turn_only_to_who_waits(void **state)
{
	const struct {
		const char *name;
		bool wants_visible;
		uint64_t number; /* of two delivered */
		bool want;
	} rows[] = {
		{"first: the count says it", true, 0, false},
		{"second, waited for", true, 1, true},
		{"second, nobody waits", false, 1, false},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;

		fixture_init(&f);
		delivered(&f, 0, 0);
		delivered(&f, 1, 8);
		f.in[0].wants_visible = f.in[1].wants_visible = rows[i].wants_visible;
		mrc_channel_in_reached(&f.ch, rows[i].number, MRC_LVL_VISIBLE);
		if (mrc_bits_has(&f.ch.level_bits, (uint32_t)rows[i].number) != rows[i].want)
			fail_msg("%s", rows[i].name);
	}
}

static void the_sender_can_settle_only_what_was_made_final(void **state)
{
	struct fixture f;

	fixture_init(&f);
	delivered(&f, 0, 0);
	assert_false(mrc_channel_in_settled(&f.ch, &f.pool, 1));
	assert_false(mrc_channel_in_settled(&f.ch, &f.pool, WINDOW + 1));
	assert_false(mrc_channel_in_settled(&f.ch, &f.pool, UINT64_MAX));
	assert_int_equal(f.ch.peer_settled, 0);
	assert_int_equal(f.ch.peer_settled_stated, 0);
	mrc_channel_in_final(&f.ch, 0, MRC_OUT_OK, 0);
	assert_true(mrc_channel_in_settled(&f.ch, &f.pool, 1));
	assert_true(mrc_channel_in_settled(&f.ch, &f.pool, 0)); /* a late word */
}

static void a_slot_is_kept_while_its_memory_is(void **state)
{
	struct fixture f;

	fixture_init(&f);
	delivered(&f, 0, 0);
	mrc_channel_in_final(&f.ch, 0, MRC_OUT_OK, 0); /* committed, not released */
	assert_true(mrc_channel_in_settled(&f.ch, &f.pool, 1));
	assert_int_equal(f.ch.peer_settled, 0);
	assert_non_null(mrc_channel_in(&f.ch, 0));
	assert_int_equal(mrc_channel_in_release(&f.ch, &f.pool, 0), 0);
	assert_int_equal(f.ch.peer_settled, 1);
	assert_null(mrc_channel_in(&f.ch, 0));
	assert_non_null(mrc_channel_in(&f.ch, WINDOW)); /* its slot serves another */
	assert_false(f.in[0].is_known);
}

static void a_message_is_whole_when_all_its_bytes_are(void **state)
{
	struct fixture f;
	uint64_t next;

	fixture_init(&f);
	assert_int_equal(mrc_channel_in_learn(&f.ch, 0, 100, true, 0), 0);
	assert_int_equal(mrc_channel_in_here(&f.ch, &f.pool, 0, 60, 40), 40);
	assert_int_equal(mrc_channel_in_here(&f.ch, &f.pool, 0, 0, 30), 30);
	assert_int_equal(mrc_channel_in_here(&f.ch, &f.pool, 0, 0, 30), 0); /* again */
	assert_false(f.in[0].is_whole);
	assert_false(mrc_channel_in_next(&f.ch, &next));
	assert_int_equal(mrc_channel_in_want(&f.ch, &f.pool, 0, 40, 45, 0), 0);
	assert_int_equal(mrc_channel_in_want(&f.ch, &f.pool, 0, 30, 33, 0), 0);
	assert_int_equal(mrc_channel_in_want(&f.ch, &f.pool, 0, 31, 32, 0), 0);
	assert_int_equal(f.in[0].wanted.bytes, 8); /* and nothing of what lies between */
	assert_true(mrc_bits_has(&f.ch.want_bits, 0));
	assert_int_equal(mrc_channel_in_here(&f.ch, &f.pool, 0, 20, 50), 30);
	assert_true(f.in[0].is_whole);
	assert_false(mrc_bits_has(&f.ch.want_bits, 0)); /* no longer */
	assert_int_equal(f.pool.free_count, NODES);
	assert_true(mrc_channel_in_next(&f.ch, &next));
	assert_int_equal(next, 0);
}

static void an_ordered_channel_waits_and_an_unordered_one_does_not(void **state)
{
	for (int is_unordered = 0; is_unordered < 2; is_unordered++) {
		struct fixture f;
		uint64_t next = 99;

		fixture_init(&f);
		f.ch.is_unordered = is_unordered;
		assert_int_equal(mrc_channel_in_learn(&f.ch, 1, 8, true, 8), 0);
		assert_int_equal(mrc_channel_in_here(&f.ch, &f.pool, 1, 0, 8), 8);
		assert_int_equal(mrc_channel_in_next(&f.ch, &next), is_unordered);
		if (is_unordered)
			assert_int_equal(next, 1);
		assert_int_equal(mrc_channel_in_learn(&f.ch, 0, 8, true, 0), 0);
		assert_int_equal(mrc_channel_in_here(&f.ch, &f.pool, 0, 0, 8), 8);
		assert_true(mrc_channel_in_next(&f.ch, &next));
		assert_int_equal(next, 0);
	}
}

static void buffers_are_asked_for_in_message_order(void **state)
{
	for (int is_unordered = 0; is_unordered < 2; is_unordered++) {
		struct fixture f;
		uint64_t number = 99;

		fixture_init(&f);
		f.ch.is_unordered = is_unordered;
		assert_int_equal(mrc_channel_in_learn(&f.ch, 1, 4096, false, 0), 0);
		assert_int_equal(mrc_channel_in_ask(&f.ch, &number), is_unordered);
		if (is_unordered) {
			assert_int_equal(number, 1);
			continue;
		}
		/* 0 is eager, as it turns out: 1 is next. */
		assert_int_equal(mrc_channel_in_learn(&f.ch, 0, 8, true, 0), 0);
		assert_true(mrc_channel_in_ask(&f.ch, &number));
		assert_int_equal(number, 1);
		f.ch.is_asking = true; /* one question at a time */
		assert_false(mrc_channel_in_ask(&f.ch, &number));
	}
}

/* ---- words that cross ---- */

static void a_verdict_on_what_was_not_admitted_is_refused(void **state)
{
	struct fixture f;

	fixture_init(&f);
	f.ch.msg_limit = 0; /* no credit yet */
	assert_int_equal(send_len(&f, 10, MRC_LVL_PLACED), 0);
	assert_false(f.out[0].is_admitted);
	assert_false(mrc_channel_out_level(&f.ch, 0, MRC_LVL_NONE, MRC_OUT_REJECTED, 0, true));
	assert_false(f.out[0].is_final);
}

static void there_is_no_answer_to_give_when_nothing_was_reached(void **state)
{
	struct fixture f;

	fixture_init(&f);
	sent(&f, 2, MRC_LVL_PLACED);
	assert_int_equal(mrc_channel_done_slot(&f.ch), MRC_SLOT_NONE);
}

static void the_first_reason_to_give_a_message_up_stands(void **state)
{
	struct fixture f;

	fixture_init(&f);
	sent(&f, 2, MRC_LVL_COMMITTED);
	mrc_channel_out_void(&f.ch, 0, MRC_OUT_TIMED_OUT);
	mrc_channel_out_void(&f.ch, 0, MRC_OUT_BUFFER_CHANGED);
	assert_int_equal(f.out[0].outcome_void, MRC_OUT_TIMED_OUT);
	assert_int_equal(f.ch.void_count, 1);
	/* And of one that has its verdict nothing is asked. */
	assert_true(mrc_channel_out_level(&f.ch, 1, MRC_LVL_COMMITTED, MRC_OUT_OK, 0, true));
	mrc_channel_out_void(&f.ch, 1, MRC_OUT_TIMED_OUT);
	assert_false(f.out[1].is_void_asked);
	assert_int_equal(f.ch.void_count, 1);
}

/* It was given up, and before that could be said the peer had committed it. */
static void a_void_that_its_verdict_overtook_is_not_said(void **state)
{
	struct fixture f;

	fixture_init(&f);
	sent(&f, 1, MRC_LVL_COMMITTED);
	mrc_channel_out_void(&f.ch, 0, MRC_OUT_TIMED_OUT);
	assert_int_equal(f.ch.void_count, 1);
	assert_true(mrc_channel_out_counts(&f.ch, 1, 1, 1));
	assert_int_equal(f.out[0].outcome, MRC_OUT_OK);
	f.out[0].is_answered = true;
	f.out[0].is_ready = false;
	assert_true(mrc_channel_settle(&f.ch));
	assert_int_equal(f.ch.void_count, 0);
	assert_false(mrc_bits_has(&f.ch.void_bits, 0));
}

static void a_verdict_stands_when_its_channel_fails(void **state)
{
	struct fixture f;

	fixture_init(&f);
	sent(&f, 2, MRC_LVL_COMMITTED);
	assert_true(mrc_channel_out_level(&f.ch, 0, MRC_LVL_VISIBLE, MRC_OUT_REJECTED, 77, true));
	mrc_channel_out_fail_all(&f.ch, MRC_OUT_PEER_DIED, 5);
	assert_int_equal(f.out[0].outcome, MRC_OUT_REJECTED);
	assert_int_equal(f.out[0].code, 77);
	assert_int_equal(f.out[1].outcome, MRC_OUT_PEER_DIED);
	assert_int_equal(f.out[1].code, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits_are_found_going_round),
		cmocka_unit_test(a_slot_names_one_number_of_the_window),
		cmocka_unit_test(sends_are_refused_when_no_slot_is_free_and_when_too_large),
		cmocka_unit_test(eager_messages_never_cross_the_end_of_the_ring),
		cmocka_unit_test(admission_stops_at_the_credit),
		cmocka_unit_test(one_too_large_for_the_peer_is_given_up_and_uses_its_number),
		cmocka_unit_test(ready_slots_are_a_queue),
		cmocka_unit_test(an_answer_waits_for_its_level_and_for_the_rail),
		cmocka_unit_test(what_the_peer_cannot_know_is_refused),
		cmocka_unit_test(the_first_final_verdict_stands),
		cmocka_unit_test(counts_never_go_back),
		cmocka_unit_test(settling_needs_a_final_level_an_answer_and_an_idle_rail),
		cmocka_unit_test(a_failed_channel_fails_only_what_was_not_reached),
		cmocka_unit_test(learning_refuses_what_cannot_be),
		cmocka_unit_test(nothing_received_crosses_the_end_of_the_ring),
		cmocka_unit_test(positions_grow_with_the_numbers),
		cmocka_unit_test(what_was_learnt_does_not_change),
		cmocka_unit_test(nothing_may_lie_over_what_a_client_reads),
		cmocka_unit_test(released_places_serve_again_in_order),
		cmocka_unit_test(skips_at_the_end_of_the_ring_are_freed_with_what_follows),
		cmocka_unit_test(release_counts_once),
		cmocka_unit_test(a_release_commits),
		cmocka_unit_test(the_count_does_not_overtake_a_rejection),
		cmocka_unit_test(levels_are_told_out_of_turn_only_to_who_waits),
		cmocka_unit_test(the_sender_can_settle_only_what_was_made_final),
		cmocka_unit_test(a_slot_is_kept_while_its_memory_is),
		cmocka_unit_test(a_message_is_whole_when_all_its_bytes_are),
		cmocka_unit_test(an_ordered_channel_waits_and_an_unordered_one_does_not),
		cmocka_unit_test(buffers_are_asked_for_in_message_order),
		cmocka_unit_test(a_verdict_on_what_was_not_admitted_is_refused),
		cmocka_unit_test(there_is_no_answer_to_give_when_nothing_was_reached),
		cmocka_unit_test(the_first_reason_to_give_a_message_up_stands),
		cmocka_unit_test(a_void_that_its_verdict_overtook_is_not_said),
		cmocka_unit_test(a_verdict_stands_when_its_channel_fails),
	};

	return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
