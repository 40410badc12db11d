/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_space: who may write whose landing memory directly, by which path, and until when. */
#include "engine_lab.h"

enum { RKEY = 0xabcd, BASE = 1 << 30 };

struct fixture {
	struct lab_host h;
	struct mrc_channel *ch;
};

static void fixture_init(struct fixture *f)
{
	lab_solo_up(&f->h, 2, true);
	f->ch = mrc_conn_channel(f->h.conn, lab_solo_channel(&f->h, false));
}

static void ring_state(struct lab_host *h, uint64_t ring_limit)
{
	assert_int_equal(lab_feed_state(h, 0, 0,
					&(struct lab_state){.ring_limit = ring_limit,
							    .msg_limit = LAB_WINDOW}),
			 0);
}

/* Send a message of `len` and give the post of its first fragment. */
static const struct mrc_act_post *sent(struct fixture *f, uint64_t len)
{
	uint32_t from = f->h.log_count;

	assert_int_equal(lab_send(&f->h, f->ch->id, len, MRC_LVL_COMMITTED, 1), 0);
	lab_pump(&f->h);
	lab_ack_all(&f->h);
	assert_non_null(lab_posted(&f->h, MRC_WIRE_FRAG, from, 0));
	return lab_posted(&f->h, MRC_WIRE_FRAG, from, 0);
}

static bool is_direct(const struct mrc_act_post *post)
{
	return post->hdr.flags & MRC_WIRE_F_DIRECT;
}

/* Both paths have this key. */
static void keys(struct lab_host *h, uint32_t space, bool is_valid, uint32_t rkey, uint64_t base)
{
	for (uint8_t i = 0; i < 2; i++)
		assert_int_equal(lab_feed_key(h, i, space, is_valid, rkey + i, base), 0);
}

/* ---- theirs ---- */

static void without_a_key_nothing_is_written_directly(void **state)
{
	const struct mrc_act_post *post;
	struct fixture f;

	fixture_init(&f);
	post = sent(&f, 1000);
	assert_false(is_direct(post));
	assert_int_equal(post->rkey, 0);
	assert_int_equal(post->hdr.writer_epoch, 0);
	lab_host_fini(&f.h);
}

static void with_a_key_eager_messages_go_to_their_place_in_the_ring(void **state)
{
	const uint64_t lens[] = {30000, 30000, 30000, 0, 7};
	const uint64_t places[] = {0, 30000, 0 /* the end is skipped */, 30000, 30000};
	struct fixture f;

	fixture_init(&f);
	keys(&f.h, LAB_SPACE, true, RKEY, BASE);
	for (size_t i = 0; i < MRC_ARRAY_LEN(lens); i++) {
		const struct mrc_act_post *post;

		if (i == 2) /* the first two are read */
			ring_state(&f.h, LAB_RING_BYTES + 60000);
		post = sent(&f, lens[i]);
		assert_int_equal(is_direct(post), lens[i] > 0); /* nothing needs no writing */
		if (!lens[i])
			continue;
		assert_int_equal(post->rkey, RKEY + post->index);
		assert_int_equal(post->remote_addr, BASE + LAB_RING_ADDR + places[i]);
		assert_int_equal(post->hdr.writer_path, post->index);
		assert_int_equal(post->hdr.writer_epoch, LAB_PATH_EPOCH);
		assert_int_equal(post->hdr.body_len, lens[i]);
	}
	lab_host_fini(&f.h);
}

static void with_a_key_granted_messages_go_to_their_buffer(void **state)
{
	const uint64_t len = 200000, buffer = 0x5000000;
	struct mrc_wire_hdr cts = {.type = MRC_WIRE_CTS, .msg_len = len, .addr = buffer};
	struct fixture f;
	uint64_t bytes = 0;
	uint32_t from;

	fixture_init(&f);
	keys(&f.h, LAB_SPACE, true, RKEY, BASE);
	assert_int_equal(lab_send(&f.h, f.ch->id, len, MRC_LVL_COMMITTED, 1), 0);
	lab_pump(&f.h);
	from = f.h.log_count;
	assert_int_equal(lab_feed(&f.h, 0, cts, NULL), 0);
	lab_pump(&f.h);
	for (uint32_t i = 0; lab_posted(&f.h, MRC_WIRE_FRAG, from, i); i++) {
		const struct mrc_act_post *post = lab_posted(&f.h, MRC_WIRE_FRAG, from, i);

		assert_true(is_direct(post));
		assert_int_equal(post->rkey, RKEY + post->index);
		assert_int_equal(post->remote_addr, BASE + buffer + post->hdr.offset);
		assert_int_equal(post->hdr.offset, bytes);
		bytes += post->hdr.body_len;
	}
	assert_true(bytes > 100000); /* several of them */
	lab_host_fini(&f.h);
}

/* One path has a key, the other has not: each carries what it can. */
static void a_key_is_for_the_path_it_came_by(void **state)
{
	struct fixture f;
	uint32_t direct[2] = {0}, all[2] = {0};

	fixture_init(&f);
	assert_int_equal(lab_feed_key(&f.h, 1, LAB_SPACE, true, RKEY, BASE), 0);
	/* Slow enough that both are needed. */
	for (int i = 0; i < 2; i++) {
		f.h.conn->paths[i].rate_least = 0;
		f.h.conn->paths[i].rate_assumed = MRC_RATE_UNKNOWN;
	}
	for (uint32_t i = 0; i < 12; i++)
		assert_int_equal(lab_send(&f.h, f.ch->id, 5000, MRC_LVL_COMMITTED, i), 0);
	lab_pump(&f.h);
	for (uint32_t i = 0; lab_posted(&f.h, MRC_WIRE_FRAG, 0, i); i++) {
		const struct mrc_act_post *post = lab_posted(&f.h, MRC_WIRE_FRAG, 0, i);

		all[post->index]++;
		direct[post->index] += is_direct(post);
	}
	assert_true(all[0] > 0 && all[1] > 0);
	assert_int_equal(direct[0], 0);
	assert_int_equal(direct[1], all[1]);
	lab_host_fini(&f.h);
}

static void a_key_holds_in_its_path_epoch_only(void **state)
{
	struct fixture f;

	fixture_init(&f);
	lab_path(&f.h, MRC_EV_PATH_DOWN, 1, MRC_REASON_ERROR);
	lab_pump(&f.h);
	assert_int_equal(lab_feed_key(&f.h, 0, LAB_SPACE, true, RKEY, BASE), 0);
	assert_true(is_direct(sent(&f, 100)));
	lab_path(&f.h, MRC_EV_PATH_DOWN, 0, MRC_REASON_ERROR);
	lab_pump(&f.h);
	lab_path_good(&f.h, 0, true);
	assert_false(is_direct(sent(&f, 100)));
	assert_int_equal(lab_feed_key(&f.h, 0, LAB_SPACE, true, RKEY + 5, BASE + 4096), 0);
	assert_int_equal(sent(&f, 100)->rkey, RKEY + 5);
	lab_host_fini(&f.h);
}

static void a_withdrawn_key_writes_nothing_more(void **state)
{
	struct fixture f;

	fixture_init(&f);
	keys(&f.h, LAB_SPACE, true, RKEY, BASE);
	assert_true(is_direct(sent(&f, 100)));
	keys(&f.h, LAB_SPACE, false, RKEY, BASE);
	assert_false(is_direct(sent(&f, 100)));
	/* A key to other memory changes nothing about this. */
	keys(&f.h, LAB_SPACE + 1, true, RKEY, BASE);
	assert_false(is_direct(sent(&f, 100)));
	lab_host_fini(&f.h);
}

static int feed_open(struct lab_host *h, uint32_t wire_id, uint32_t space)
{
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_OPEN,
				   .channel = wire_id,
				   .msg = h->conn->ctl_taken};
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];

	hdr.body_len = lab_half_in(body, LAB_RING_BYTES, LAB_MSG_MAX, LAB_WINDOW, space,
				   LAB_RING_ADDR, "svc");
	return lab_feed(h, 0, hdr, body);
}

/* KEYS are no control frames: they may overtake what brings the channel. */
static void a_key_may_come_before_open_and_accept(void **state)
{
	struct fixture f;
	uint32_t id;

	lab_solo_up(&f.h, 2, true);
	keys(&f.h, LAB_SPACE, true, RKEY, BASE);
	f.ch = mrc_conn_channel(f.h.conn, lab_solo_channel(&f.h, false));
	assert_true(is_direct(sent(&f, 100)));
	keys(&f.h, LAB_SPACE + 1, true, RKEY + 10, BASE);
	assert_int_equal(feed_open(&f.h, 1, LAB_SPACE + 1), 0);
	lab_pump(&f.h);
	id = lab_find(&f.h, MRC_ACT_CH_INCOMING, 0, 0)->channel.id;
	f.ch = mrc_conn_channel(f.h.conn, id);
	assert_in_range(sent(&f, 100)->rkey, RKEY + 10, RKEY + 11);
	lab_host_fini(&f.h);
}

static void keys_and_halves_out_of_range_are_refused(void **state)
{
	const struct {
		const char *name;
		uint64_t space, arg;
		int want;
	} rows[] = {
		{"fine", 1, 1ULL << 32 | 7, 0},
		{"the last space", UINT32_MAX, 1ULL << 32 | UINT32_MAX, 0},
		{"space 0", 0, 1ULL << 32 | 7, -EPROTO},
		{"space too large", 1ULL << 32, 1ULL << 32 | 7, -EPROTO},
		{"a bit above valid", 1, 1ULL << 33, -EPROTO},
		{"all bits", 1, UINT64_MAX, -EPROTO},
	};
	const struct {
		const char *name;
		uint32_t space;
		uint64_t ring_addr;
		int want;
	} halves[] = {
		{"fine", 1, UINT64_MAX / 4, 0},
		{"space 0", 0, 0, -EPROTO},
		{"an absurd place of the ring", 1, UINT64_MAX / 4 + 1, -EPROTO},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		for (int direct = 0; direct < 2; direct++) {
			struct lab_host h;
			int r;

			lab_solo_up(&h, 1, direct);
			r = lab_feed(&h, 0,
				     (struct mrc_wire_hdr){.type = MRC_WIRE_KEYS,
							   .msg = rows[i].space,
							   .arg = rows[i].arg},
				     NULL);
			if (r != rows[i].want)
				fail_msg("%s: answer %d", rows[i].name, r);
			/* A path that cannot write directly has no use for it. */
			assert_int_equal(h.conn->space_count, direct && r == 0);
			lab_host_fini(&h);
		}
	}
	for (size_t i = 0; i < MRC_ARRAY_LEN(halves); i++) {
		struct mrc_wire_hdr hdr = {.type = MRC_WIRE_OPEN, .channel = 1};
		uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
		struct lab_host h;
		int r;

		lab_solo_up(&h, 1, true);
		hdr.body_len = lab_half_in(body, 4096, 4096, 4, halves[i].space,
					   halves[i].ring_addr, "svc");
		r = lab_feed(&h, 0, hdr, body);
		if (r != halves[i].want)
			fail_msg("half, %s: answer %d", halves[i].name, r);
		assert_int_equal(h.conn->space_count, r == 0);
		lab_host_fini(&h);
	}
}

static void spaces_have_a_bound_and_the_oldest_unused_goes(void **state)
{
	const struct mrc_limits limits = {.channels_max = 4, .frames_in_flight_max = 256};
	const struct {
		uint32_t space;
		bool is_known;
	} rows[] = {{1, false}, {4, true}, {5, true}, {2, false}};
	struct fixture f;
	int64_t live;

	lab_host_init(&f.h, "a", "b", LAB_BOOT_A, 2, &limits);
	for (uint8_t i = 0; i < 2; i++)
		lab_path_good(&f.h, i, true);
	for (uint32_t space = 1; space <= 5; space++) {
		keys(&f.h, space, true, RKEY, BASE);
		assert_int_equal(f.h.conn->space_count, MRC_MIN(space, 4));
	}
	/* 2 to 5 are left. 1 takes 2's place, without a key; 2 then takes 3's. */
	for (uint32_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		assert_int_equal(feed_open(&f.h, 2 * i + 1, rows[i].space), 0);
		lab_pump(&f.h);
		f.ch = mrc_conn_channel(f.h.conn,
					lab_find(&f.h, MRC_ACT_CH_INCOMING, 0, i)->channel.id);
		if (is_direct(sent(&f, 100)) != rows[i].is_known)
			fail_msg("space %u", rows[i].space);
		assert_int_equal(f.h.conn->space_count, 4);
	}
	/* A channel leads to each: there is no room for a stranger, and nobody is hurt. */
	live = f.h.memory.live;
	keys(&f.h, 9, true, RKEY, BASE);
	assert_int_equal(f.h.memory.live, live);
	assert_true(f.ch->peer_space != NULL);
	keys(&f.h, 2, true, RKEY, BASE);
	assert_true(is_direct(sent(&f, 100)));
	lab_host_fini(&f.h);
}

/* Two channels lead to one space; it is unused only when both are gone. */
static void a_space_is_kept_while_a_channel_leads_there(void **state)
{
	struct fixture f;
	struct mrc_space *space;

	fixture_init(&f);
	space = f.ch->peer_space;
	assert_non_null(space);
	assert_int_equal(feed_open(&f.h, 1, LAB_SPACE), 0);
	lab_pump(&f.h);
	assert_int_equal(space->channel_count, 2);
	assert_int_equal(f.h.conn->space_count, 1);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(mrc_list_is_empty(&f.h.conn->unused_spaces));
		mrc_conn_channel_free(f.h.conn, mrc_list_entry(f.h.conn->all.next,
							       struct mrc_channel, in_all));
	}
	assert_false(mrc_list_is_empty(&f.h.conn->unused_spaces));
	lab_host_fini(&f.h);
}

/* The same numbers name other memory in a new conn epoch. */
static void a_new_conn_epoch_forgets_all_spaces(void **state)
{
	struct fixture f;
	uint32_t id, from;

	fixture_init(&f);
	keys(&f.h, LAB_SPACE, true, RKEY, BASE);
	assert_int_equal(lab_open_at(&f.h, "svc", false, &id), 0);
	lab_pump(&f.h);
	assert_int_equal(f.h.conn->space_count, 1);
	/* One stays open for its answer, the other ends. */
	assert_int_equal(lab_path_up(&f.h, 0, LAB_EPOCH + 1, 100, 0xb2, true), 0);
	lab_pump(&f.h);
	assert_int_equal(f.h.conn->space_count, 0);
	f.ch = mrc_conn_channel(f.h.conn, id);
	assert_non_null(f.ch);
	assert_int_equal(f.ch->state, MRC_CH_OPENING);

	/* KEYS of the new epoch for what is still opening: they hold, the old ones do not. */
	from = f.h.log_count;
	for (int with_key = 0; with_key < 2; with_key++) {
		struct mrc_wire_hdr accept = {.type = MRC_WIRE_ACCEPT};
		uint8_t body[MRC_WIRE_CTL_BYTES_MAX];

		assert_int_equal(f.ch->state, with_key ? MRC_CH_OPEN : MRC_CH_OPENING);
		if (with_key) {
			assert_int_equal(lab_feed_key(&f.h, 0, LAB_SPACE, true, RKEY + 9, BASE + 1),
					 0);
		} else {
			for (int i = 0; i < 8 && f.h.conn->paths[0].state != MRC_PATH_GOOD; i++) {
				lab_pump(&f.h);
				assert_int_equal(
					lab_feed(&f.h, 0,
						 (struct mrc_wire_hdr){
							 .type = MRC_WIRE_PROBE_ACK,
							 .msg = f.h.conn->paths[0].probe_id},
						 NULL),
					0);
			}
			lab_pump(&f.h);
			assert_non_null(lab_posted(&f.h, MRC_WIRE_OPEN, from, 0));
			accept.channel = f.ch->wire_id;
			accept.body_len =
				lab_half(body, LAB_RING_BYTES, LAB_MSG_MAX, LAB_WINDOW, NULL);
			assert_int_equal(lab_feed(&f.h, 0, accept, body), 0);
			lab_pump(&f.h);
		}
		assert_int_equal(is_direct(sent(&f, 100)), with_key);
	}
	lab_host_fini(&f.h);
}

/* ---- ours ---- */

static void our_key_is_told_on_its_path_and_again_on_each_epoch(void **state)
{
	const struct mrc_act_post *post;
	struct fixture f;
	uint32_t from;

	fixture_init(&f);
	from = f.h.log_count;
	assert_int_equal(lab_key(&f.h, 1, true, RKEY, BASE), 0);
	lab_pump(&f.h);
	assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_KEYS, from), 1);
	post = lab_posted(&f.h, MRC_WIRE_KEYS, from, 0);
	assert_int_equal(post->index, 1);
	assert_int_equal(post->hdr.msg, f.ch->flow->space);
	assert_int_equal(post->hdr.addr, BASE);
	assert_int_equal(post->hdr.arg, RKEY | 1ULL << 32);
	/* Said again, it is no news. */
	from = f.h.log_count;
	assert_int_equal(lab_key(&f.h, 1, true, RKEY, BASE), 0);
	lab_pump(&f.h);
	assert_null(lab_posted(&f.h, MRC_WIRE_KEYS, from, 0));
	/* A new epoch of the path: said before anything else that needs it. */
	lab_path(&f.h, MRC_EV_PATH_DOWN, 1, MRC_REASON_ERROR);
	lab_pump(&f.h);
	from = f.h.log_count;
	lab_path_good(&f.h, 1, true);
	assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_KEYS, from), 1);
	assert_int_equal(lab_posted(&f.h, MRC_WIRE_KEYS, from, 0)->hdr.arg, RKEY | 1ULL << 32);
	/* Withdrawn. */
	from = f.h.log_count;
	assert_int_equal(lab_key(&f.h, 1, false, RKEY, BASE), 0);
	lab_pump(&f.h);
	assert_int_equal(lab_posted(&f.h, MRC_WIRE_KEYS, from, 0)->hdr.arg, RKEY);
	lab_host_fini(&f.h);
}

/*
 * While no path could write directly, the memory of a channel that ends is free
 * at once. A path that comes up then carries no key before the peer has heard of
 * that end: it would write where somebody else's memory is.
 */
static void keys_wait_until_the_peer_knows_whose_memory_is_free(void **state)
{
	for (int is_heard = 0; is_heard < 2; is_heard++) {
		uint32_t ids[2], from;
		struct lab_host h;

		lab_host_init(&h, "a", "b", LAB_BOOT_A, 2, NULL);
		lab_path_good(&h, 0, false);
		for (int i = 0; i < 2; i++) {
			ids[i] = lab_solo_channel(&h, false);
			lab_ack_all(&h);
		}
		assert_int_equal(lab_channel(&h, MRC_EV_CH_ABORT, ids[0]), 0);
		from = h.log_count;
		lab_pump(&h);
		assert_non_null(lab_find(&h, MRC_ACT_CH_FREE, from, 0));
		if (is_heard)
			lab_ack_all(&h);
		assert_int_equal(lab_path_up(&h, 1, LAB_EPOCH, 1, LAB_BOOT_B, true), 0);
		assert_int_equal(lab_key(&h, 1, true, RKEY, BASE), 0);
		lab_pump(&h);
		assert_non_null(lab_posted(&h, MRC_WIRE_PATH_OPEN, from, 0));
		assert_int_equal(lab_posted(&h, MRC_WIRE_KEYS, from, 0) != NULL, is_heard);
		lab_ack_all(&h);
		lab_pump(&h);
		assert_non_null(lab_posted(&h, MRC_WIRE_KEYS, from, 0));
		lab_host_fini(&h);
	}
}

static void a_key_for_nobody_or_no_path_is_refused(void **state)
{
	struct mrc_event_in ev = {.kind = MRC_EV_KEY, .key = {.flow = 77, .is_valid = true}};
	struct fixture f;

	fixture_init(&f);
	assert_int_equal(lab_handle(&f.h, &ev), -ENOENT);
	assert_int_equal(lab_key(&f.h, 2, true, RKEY, BASE), -EINVAL);
	assert_int_equal(lab_key(&f.h, 255, true, RKEY, BASE), -EINVAL);
	lab_host_fini(&f.h);
}

/* A byte stream has no use for it: it is kept, and told when the path can write directly. */
static void a_path_that_cannot_write_directly_is_told_nothing(void **state)
{
	struct fixture f;

	lab_solo_up(&f.h, 1, false);
	f.ch = mrc_conn_channel(f.h.conn, lab_solo_channel(&f.h, false));
	assert_int_equal(lab_key(&f.h, 0, true, RKEY, BASE), 0);
	lab_pump(&f.h);
	assert_null(lab_posted(&f.h, MRC_WIRE_KEYS, 0, 0));
	lab_path(&f.h, MRC_EV_PATH_DOWN, 0, MRC_REASON_ERROR);
	lab_pump(&f.h);
	lab_path_good(&f.h, 0, true);
	assert_int_equal(lab_posted_count(&f.h, MRC_WIRE_KEYS, 0), 1);
	lab_host_fini(&f.h);
}

/* Each client's memory is a space of its own, and a number is not used twice. */
static void each_client_has_a_space_and_numbers_do_not_come_again(void **state)
{
	struct lab_host h;
	uint32_t seen = 0;

	lab_solo_up(&h, 1, true);
	for (uint32_t flow = 1; flow <= 3; flow++) {
		for (int again = 0; again < 2; again++) {
			uint32_t id = 0;
			struct mrc_event_in ev = {
				.kind = MRC_EV_CH_OPEN,
				.channel = {.flow = flow,
					    .ring_bytes = 4096,
					    .msg_bytes_max = 4096,
					    .window = 4,
					    .service = "svc",
					    .id_out = &id},
			};
			uint32_t from = h.log_count;
			const struct mrc_act_post *post;
			uint32_t space;

			assert_int_equal(lab_handle(&h, &ev), 0);
			lab_pump(&h);
			post = lab_posted(&h, MRC_WIRE_OPEN, from, 0);
			if (!post) {
				fail_msg("client %u: no OPEN", flow);
				return;
			}
			memcpy(&space, &post->body[20], sizeof(space));
			assert_true(space > seen);
			seen = space;
			/* Its client goes, with its only channel. */
			mrc_conn_channel_free(h.conn, mrc_conn_channel(h.conn, id));
			h.conn->ctl_acked = h.conn->ctl_sent;
		}
	}
	lab_host_fini(&h);
}

/* Numbers that share a bucket: the oldest goes, those beside it stay. */
static void a_space_is_forgotten_from_among_others(void **state)
{
	struct fixture f;
	uint32_t step, count;

	fixture_init(&f);
	step = f.h.conn->bucket_count;
	count = f.h.conn->limits.channels_max - f.h.conn->space_count;
	for (uint32_t i = 1; i <= count + 2; i++)
		assert_int_equal(lab_feed_key(&f.h, 0, (uint64_t)step * i, true, 7, 0), 0);
	assert_int_equal(f.h.conn->space_count, f.h.conn->limits.channels_max);
	for (uint32_t i = 1; i <= count + 2; i++) {
		const struct mrc_space *space = f.h.conn->space_buckets[0];

		while (space && space->id != step * i)
			space = space->next;
		assert_int_equal(space != NULL, i > 2);
	}
	lab_host_fini(&f.h);
}

/* Without memory for it a key is not known, and nothing is written directly: no more than that. */
static void a_key_there_is_no_memory_for_is_as_if_not_told(void **state)
{
	struct fixture f;
	uint32_t before;

	fixture_init(&f);
	before = f.h.conn->space_count;
	f.h.memory.fail_at = f.h.memory.taken + 1;
	assert_int_equal(lab_feed_key(&f.h, 0, LAB_SPACE + 1, true, 7, 0), 0);
	assert_int_equal(f.h.conn->space_count, before);
	assert_int_equal(lab_feed_key(&f.h, 0, LAB_SPACE + 1, true, 7, 0), 0);
	assert_int_equal(f.h.conn->space_count, before + 1);
	lab_host_fini(&f.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_key_nothing_is_written_directly),
		cmocka_unit_test(with_a_key_eager_messages_go_to_their_place_in_the_ring),
		cmocka_unit_test(with_a_key_granted_messages_go_to_their_buffer),
		cmocka_unit_test(a_key_is_for_the_path_it_came_by),
		cmocka_unit_test(a_key_holds_in_its_path_epoch_only),
		cmocka_unit_test(a_withdrawn_key_writes_nothing_more),
		cmocka_unit_test(a_key_may_come_before_open_and_accept),
		cmocka_unit_test(keys_and_halves_out_of_range_are_refused),
		cmocka_unit_test(spaces_have_a_bound_and_the_oldest_unused_goes),
		cmocka_unit_test(a_space_is_kept_while_a_channel_leads_there),
		cmocka_unit_test(a_new_conn_epoch_forgets_all_spaces),
		cmocka_unit_test(our_key_is_told_on_its_path_and_again_on_each_epoch),
		cmocka_unit_test(keys_wait_until_the_peer_knows_whose_memory_is_free),
		cmocka_unit_test(a_key_for_nobody_or_no_path_is_refused),
		cmocka_unit_test(a_path_that_cannot_write_directly_is_told_nothing),
		cmocka_unit_test(each_client_has_a_space_and_numbers_do_not_come_again),
		cmocka_unit_test(a_space_is_forgotten_from_among_others),
		cmocka_unit_test(a_key_there_is_no_memory_for_is_as_if_not_told),
	};

	return cmocka_run_group_tests_name("space", tests, NULL, NULL);
}
