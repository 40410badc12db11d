/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares of receive entries and what each of them takes (DESIGN 7.14), and small
 * things about how a path comes and goes that the embedder relies on.
 */
#include "engine_lab.h"

enum { A, B };

static int feed_path_open(struct lab_host *h, uint32_t share)
{
	return lab_feed(h, 0,
			(struct mrc_wire_hdr){.type = MRC_WIRE_PATH_OPEN,
					      .arg = 1 | (uint64_t)share << 32},
			NULL);
}

/* An engine whose rail has `share` receive entries for its one path. */
static void shared_up(struct lab_host *h, uint32_t share)
{
	lab_host_init(h, "a", "b", LAB_BOOT_A, 1, NULL);
	h->share = share;
	lab_path_good(h, 0, true);
}

/* Whatever was due has been said, on both sides. */
static void quiet(struct lab_host *h)
{
	lab_ack_all(h);
	h->now_ns += MRC_S;
	lab_timer(h);
	lab_pump(h);
}

/* How many small messages go out without an acknowledgement. */
static uint32_t frags_out(struct lab_host *h, uint32_t id)
{
	lab_ack_all(h);
	for (uint32_t i = 0; i < LAB_WINDOW; i++)
		lab_send(h, id, 10, MRC_LVL_COMMITTED, i);
	lab_pump(h);
	return lab_posted_count(h, MRC_WIRE_FRAG, 0);
}

static void a_share_is_eight_until_path_open_says_more(void **state)
{
	const struct {
		uint32_t said; /* 0: not heard */
		uint32_t want; /* data in flight: the last quarter and one are for others */
	} rows[] = {{0, 5}, {8, 5}, {12, 8}, {16, 11}};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab_host h;
		uint32_t id;

		shared_up(&h, 32);
		/* What we give is said at once. */
		assert_int_equal(lab_posted(&h, MRC_WIRE_PATH_OPEN, 0, 0)->hdr.arg,
				 1 | 32ULL << 32);
		id = lab_solo_channel(&h, false);
		if (rows[i].said)
			assert_int_equal(feed_path_open(&h, rows[i].said), 0);
		assert_int_equal(frags_out(&h, id), rows[i].want);
		lab_host_fini(&h);
	}
}

/* A byte stream has no such bound: its records are all there is. */
static void without_shares_only_the_records_bound_it(void **state)
{
	struct lab_host h;

	shared_up(&h, 0);
	assert_int_equal(lab_posted(&h, MRC_WIRE_PATH_OPEN, 0, 0)->hdr.arg >> 32, 0);
	assert_int_equal(feed_path_open(&h, 0), 0);
	assert_int_equal(frags_out(&h, lab_solo_channel(&h, false)), LAB_WINDOW);
	lab_host_fini(&h);
}

static void shares_out_of_range_are_refused(void **state)
{
	const struct {
		const char *name;
		uint32_t given, heard;
		int want;
	} rows[] = {
		{"both", 32, 8, 0},
		{"as large as can be", 32, UINT32_MAX, 0},
		{"neither", 0, 0, 0},
		{"below eight", 32, 7, -EPROTO},
		{"below eight where we have none", 0, 7, -EPROTO},
		{"only ours", 32, 0, -EPROTO},
		{"only theirs", 0, 8, -EPROTO},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab_host h;
		int r;

		shared_up(&h, rows[i].given);
		r = feed_path_open(&h, rows[i].heard);
		if (r != rows[i].want)
			fail_msg("%s: answer %d", rows[i].name, r);
		lab_host_fini(&h);
	}
}

static void our_own_share_is_not_below_eight(void **state)
{
	for (uint32_t share = 1; share <= MRC_SHARE_MIN; share++) {
		struct lab_host h;

		lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
		h.share = share;
		assert_int_equal(lab_path_up(&h, 0, LAB_EPOCH, 1, LAB_BOOT_B, true),
				 share < MRC_SHARE_MIN ? -EINVAL : 0);
		assert_int_equal(h.conn->paths[0].is_connected, share == MRC_SHARE_MIN);
		lab_host_fini(&h);
	}
}

/* A share larger than before the path died is that epoch's, not this one's. */
static void a_share_is_heard_anew_in_each_epoch(void **state)
{
	struct lab_host h;

	shared_up(&h, 32);
	assert_int_equal(feed_path_open(&h, 16), 0);
	lab_path(&h, MRC_EV_PATH_DOWN, 0, MRC_REASON_ERROR);
	lab_pump(&h);
	lab_path_good(&h, 0, true);
	assert_int_equal(frags_out(&h, lab_solo_channel(&h, false)), 5);
	lab_host_fini(&h);
}

/* Frames the other end has not yet told us that it took in; it has no entries for more than its share. */
static uint64_t unheard(const struct lab_host *h, uint64_t *most)
{
	const struct mrc_path *path = &h->conn->paths[0];
	uint64_t count = path->posted - path->acked;

	*most = MRC_MAX(*most, count);
	return count;
}

/*
 * Both ends fill all they may, at one moment, with words that need an answer:
 * one place is left at each, and an ACK with news goes through it.
 */
static void two_full_ends_free_each_other(void **state)
{
	for (int is_direct = 0; is_direct < 2; is_direct++) {
		struct lab_pair p;
		uint64_t most = 0;
		uint32_t ids[2];

		lab_pair_init(&p, 1, NULL);
		p.hosts[A].share = p.hosts[B].share = MRC_SHARE_MIN;
		p.is_direct = is_direct;
		lab_timer(&p.hosts[A]);
		lab_pair_run(&p, 20 * MRC_MS);
		lab_pair_channel(&p, false, ids);
		lab_pair_run(&p, 5 * MRC_MS);
		/* Each asks for buffers, more than it may say at once. */
		for (int h = 0; h < 2; h++) {
			for (uint32_t i = 0; i < LAB_WINDOW; i++)
				assert_int_equal(lab_send(&p.hosts[h], ids[h], 100000,
							  MRC_LVL_COMMITTED, i),
						 0);
		}
		lab_pair_pump(&p);
		for (int h = 0; h < 2; h++)
			assert_int_equal(unheard(&p.hosts[h], &most), MRC_SHARE_MIN - 1);
		for (uint32_t step = 0; step < 20000; step++) {
			lab_pair_run(&p, MRC_US);
			for (int h = 0; h < 2; h++)
				unheard(&p.hosts[h], &most);
		}
		assert_int_equal(most, MRC_SHARE_MIN); /* the last place was needed, and no more */
		lab_pair_run(&p, MRC_S);
		for (int h = 0; h < 2; h++) {
			for (uint32_t i = 0; i < LAB_WINDOW; i++)
				lab_done_is(&p.hosts[h], i, MRC_OUT_OK);
			assert_int_equal(lab_path_info(&p.hosts[h], 0).bad_count, 0);
		}
		lab_pair_fini(&p);
	}
}

/* It can have heard of no more than we told; what it sends beyond its share finds no entry at a queue pair. */
static void more_than_a_share_is_refused_until_an_ack_gives_it_anew(void **state)
{
	const struct mrc_wire_hdr probe = {.type = MRC_WIRE_PROBE, .msg = 1};
	const uint32_t shares[] = {MRC_SHARE_MIN, 32, 0};

	for (size_t i = 0; i < MRC_ARRAY_LEN(shares); i++) {
		const struct mrc_path *path;
		struct lab_host h;

		shared_up(&h, shares[i]);
		path = &h.conn->paths[0];
		for (uint32_t n = 0; n < 1000 && path->taken - path->taken_said < shares[i]; n++)
			assert_int_equal(lab_feed(&h, 0, probe, NULL), 0);
		assert_int_equal(lab_feed(&h, 0, probe, NULL), shares[i] ? -EPROTO : 0);
		if (shares[i])
			assert_string_equal(mrc_conn_breach(h.conn),
					    "beyond the share of receive entries");
		h.now_ns += MRC_MS;
		lab_timer(&h);
		lab_pump(&h);
		assert_int_equal(lab_feed(&h, 0, probe, NULL), 0);
		lab_host_fini(&h);
	}
}

/* The answer to a probe says it as well, and may go without an ACK: then all of a share may come. */
static void a_whole_share_may_come_after_an_answered_probe(void **state)
{
	const uint32_t shares[] = {MRC_SHARE_MIN, 16, 64, 256};

	for (size_t i = 0; i < MRC_ARRAY_LEN(shares); i++) {
		const struct mrc_path *path;
		struct lab_host h;
		uint32_t from;

		shared_up(&h, shares[i]);
		path = &h.conn->paths[0];
		quiet(&h);
		/* Some frames and a probe, fewer than have an ACK go at once. */
		for (uint32_t n = 0; n < MRC_MIN(shares[i] / 2, 16) - 2; n++)
			assert_int_equal(lab_feed(&h, 0,
						  (struct mrc_wire_hdr){.type = MRC_WIRE_NOP},
						  NULL),
					 0);
		assert_int_equal(lab_feed(&h, 0,
					  (struct mrc_wire_hdr){.type = MRC_WIRE_PROBE, .msg = 7},
					  NULL),
				 0);
		from = h.log_count;
		lab_pump(&h);
		assert_non_null(lab_posted(&h, MRC_WIRE_PROBE_ACK, from, 0));
		assert_null(lab_posted(&h, MRC_WIRE_ACK, from, 0));
		assert_true(path->taken > path->taken_told);
		for (uint32_t n = 0; n <= shares[i]; n++)
			assert_int_equal(lab_feed(&h, 0,
						  (struct mrc_wire_hdr){.type = MRC_WIRE_NOP},
						  NULL),
					 n < shares[i] ? 0 : -EPROTO);
		lab_host_fini(&h);
	}
}

/* An acknowledgement is a frame like others: on a queue pair it does not go along with each of them. */
static void an_ack_goes_along_when_it_is_free_or_half_due(void **state)
{
	const struct {
		const char *name;
		uint32_t share;
		uint64_t wait_ns;
		bool want;
	} rows[] = {
		{"a stream, at once", 0, 0, true},
		{"a queue pair, at once", 64, 0, false},
		{"a queue pair, before half of it", 64, 40 * MRC_US, false},
		{"a queue pair, after half of it", 64, 60 * MRC_US, true},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab_host h;
		uint32_t id, from;

		shared_up(&h, rows[i].share);
		id = lab_solo_channel(&h, false);
		quiet(&h);
		lab_ack_all(&h);
		assert_int_equal(lab_feed(&h, 0, (struct mrc_wire_hdr){.type = MRC_WIRE_PROBE_ACK},
					  NULL),
				 0);
		from = h.log_count;
		h.now_ns += rows[i].wait_ns;
		assert_int_equal(lab_send(&h, id, 10, MRC_LVL_COMMITTED, 1), 0);
		lab_pump(&h);
		assert_non_null(lab_posted(&h, MRC_WIRE_FRAG, from, 0));
		if ((lab_posted(&h, MRC_WIRE_ACK, from, 0) != NULL) != rows[i].want)
			fail_msg("%s: an ACK %s along", rows[i].name,
				 rows[i].want ? "does not go" : "goes");
		lab_host_fini(&h);
	}
}

/* And when half of a share is used it is due at once, before the peer has to stop. */
static void an_ack_is_due_when_half_a_share_is_used(void **state)
{
	const uint32_t shares[] = {MRC_SHARE_MIN, 16, 24};

	for (size_t i = 0; i < MRC_ARRAY_LEN(shares); i++) {
		const struct mrc_path *path;
		struct lab_host h;
		uint32_t from;

		shared_up(&h, shares[i]);
		path = &h.conn->paths[0];
		quiet(&h);
		lab_ack_all(&h);
		from = h.log_count;
		while (path->taken - path->taken_told < shares[i] / 2) {
			assert_null(lab_posted(&h, MRC_WIRE_ACK, from, 0));
			assert_int_equal(lab_feed(&h, 0,
						  (struct mrc_wire_hdr){.type = MRC_WIRE_PROBE_ACK},
						  NULL),
					 0);
			if (path->taken - path->taken_told < shares[i] / 2)
				lab_pump(&h);
		}
		lab_pump(&h);
		assert_non_null(lab_posted(&h, MRC_WIRE_ACK, from, 0));
		lab_host_fini(&h);
	}
}

/* ---- what an entry takes ---- */

enum { MSG_BYTES = 30000, NOT_SAID = 1 };

static int feed_entries(struct lab_host *h, uint8_t path, uint32_t share, uint64_t bytes)
{
	return lab_feed(h, path,
			(struct mrc_wire_hdr){.type = MRC_WIRE_PATH_OPEN,
					      .addr = bytes,
					      .arg = 1 | (uint64_t)share << 32},
			NULL);
}

/*
 * The fragments posted since `from` are all of an eager message, in order and
 * none longer than `most`; all but the last are that long. How many there are.
 */
static uint32_t fragments_are(struct lab_host *h, uint32_t from, uint32_t most)
{
	const struct mrc_act_post *post;
	uint64_t offset = 0;
	uint32_t count = 0;

	/* A share takes few of them at once. */
	for (uint32_t turn = 0; turn < 100; turn++) {
		lab_pump(h);
		lab_ack_all(h);
		h->now_ns += MRC_MS;
		lab_timer(h);
	}
	for (; (post = lab_posted(h, MRC_WIRE_FRAG, from, count)); count++) {
		assert_int_equal(post->hdr.offset, offset);
		assert_int_equal(post->hdr.body_len, MRC_MIN(most, MSG_BYTES - offset));
		offset += post->hdr.body_len;
	}
	assert_int_equal(offset, MSG_BYTES);
	return count;
}

static void a_body_is_no_longer_than_the_peers_entries_take(void **state)
{
	const struct {
		uint32_t share;
		uint64_t said;
		uint32_t want;
	} rows[] = {
		{8, NOT_SAID, 1024}, /* what every queue pair takes */
		{8, 1024, 1024},
		{8, 4100, 4100},
		{8, MSG_BYTES, MSG_BYTES},
		{8, MSG_BYTES - 1, MSG_BYTES - 1},
		{8, 1ULL << 32, MSG_BYTES},
		{8, UINT64_MAX, MSG_BYTES},
		{8, 0, MSG_BYTES}, /* no such bound */
		{0, NOT_SAID, MSG_BYTES},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab_host h;
		uint32_t id, from;

		shared_up(&h, rows[i].share);
		id = lab_solo_channel(&h, false);
		if (rows[i].said != NOT_SAID)
			assert_int_equal(feed_entries(&h, 0, rows[i].share, rows[i].said), 0);
		from = h.log_count;
		assert_int_equal(lab_send(&h, id, MSG_BYTES, MRC_LVL_COMMITTED, 1), 0);
		assert_int_equal(fragments_are(&h, from, rows[i].want),
				 (MSG_BYTES + rows[i].want - 1) / rows[i].want);
		lab_host_fini(&h);
	}
}

/* Heard in the epoch before, it says nothing of the queue pair that is there now. */
static void what_entries_take_is_heard_anew_in_each_epoch(void **state)
{
	struct lab_host h;
	uint32_t id, from;

	shared_up(&h, 32);
	assert_int_equal(feed_entries(&h, 0, 8, 8192), 0);
	lab_path(&h, MRC_EV_PATH_DOWN, 0, MRC_REASON_ERROR);
	lab_pump(&h);
	lab_path_good(&h, 0, true);
	id = lab_solo_channel(&h, false);
	from = h.log_count;
	assert_int_equal(lab_send(&h, id, MSG_BYTES, MRC_LVL_COMMITTED, 1), 0);
	fragments_are(&h, from, 1024);
	lab_host_fini(&h);
}

/* It takes no room in an entry. What could go as a frame does so, if direct writes are not worth it. */
static void a_direct_write_is_not_bounded_by_the_entries(void **state)
{
	const struct {
		uint64_t direct_bytes_min;
		bool is_key;
		uint32_t len; /* of the message */
		uint32_t want;
		bool is_direct;
	} rows[] = {
		{0, true, MSG_BYTES, MSG_BYTES, true},
		{0, false, MSG_BYTES, 2048, false},
		{65536, true, MSG_BYTES, MSG_BYTES, true}, /* better than many frames */
		{65536, true, 2049, 2049, true},
		{65536, true, 2048, 2048, false},
		{0, true, 2048, 2048, true},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		const struct mrc_limits limits = {.channels_max = 2,
						  .direct_bytes_min = rows[i].direct_bytes_min};
		const struct mrc_act_post *post;
		struct lab_host h;
		uint32_t id;

		lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, &limits);
		h.share = 32;
		lab_path_good(&h, 0, true);
		assert_int_equal(feed_entries(&h, 0, 8, 2048), 0);
		id = lab_solo_channel(&h, false);
		if (rows[i].is_key)
			assert_int_equal(lab_feed_key(&h, 0, LAB_SPACE, true, 9, 0), 0);
		assert_int_equal(lab_send(&h, id, rows[i].len, MRC_LVL_COMMITTED, 1), 0);
		lab_pump(&h);
		post = lab_posted(&h, MRC_WIRE_FRAG, 0, 0);
		assert_non_null(post);
		assert_int_equal(post->hdr.body_len, rows[i].want);
		assert_int_equal(!!(post->hdr.flags & MRC_WIRE_F_DIRECT), rows[i].is_direct);
		lab_host_fini(&h);
	}
}

/* It was written directly, in one piece, and its copies are frames. */
static void what_is_sent_again_is_cut_to_what_entries_take(void **state)
{
	struct lab_host h;
	uint32_t id, from, count;
	uint8_t writer;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 2, NULL);
	h.share = 32;
	for (uint8_t i = 0; i < 2; i++) {
		lab_path_good(&h, i, true);
		assert_int_equal(feed_entries(&h, i, 16, 4096), 0);
	}
	id = lab_solo_channel(&h, false);
	for (uint8_t i = 0; i < 2; i++)
		assert_int_equal(lab_feed_key(&h, i, LAB_SPACE, true, 9, 0), 0);
	assert_int_equal(lab_send(&h, id, MSG_BYTES, MRC_LVL_COMMITTED, 1), 0);
	lab_pump(&h);
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_FRAG, 0), 1);
	writer = lab_posted(&h, MRC_WIRE_FRAG, 0, 0)->index;
	from = h.log_count;
	lab_path(&h, MRC_EV_PATH_DOWN, writer, MRC_REASON_ERROR);
	count = fragments_are(&h, from, 4096);
	assert_int_equal(count, 8);
	for (uint32_t i = 0; i < count; i++) {
		const struct mrc_wire_hdr *hdr = &lab_posted(&h, MRC_WIRE_FRAG, from, i)->hdr;

		assert_int_equal(hdr->flags, MRC_WIRE_F_EAGER | MRC_WIRE_F_COPY);
		assert_int_equal(hdr->writer_path, writer);
		assert_int_equal(hdr->writer_epoch, LAB_PATH_EPOCH);
	}
	assert_int_equal(h.conn->frags_out, 0);
	lab_host_fini(&h);
}

/* The long probe shows that frames get through, and may not itself be too long for an entry. */
static void a_probes_padding_fits_the_peers_entries(void **state)
{
	const struct {
		uint32_t share;
		uint64_t said;
		uint32_t want;
	} rows[] = {
		{8, NOT_SAID, 1024},
		{8, 1024, 1024},
		{8, 5000, 5000},
		{8, 0, 128 * 1024},
		{8, UINT64_MAX, 128 * 1024},
		{0, NOT_SAID, 128 * 1024},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab_host h;
		uint32_t pad = 0;

		lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
		h.share = rows[i].share;
		assert_int_equal(lab_path_up(&h, 0, LAB_EPOCH, LAB_PATH_EPOCH, LAB_BOOT_B, true),
				 0);
		lab_pump(&h);
		if (rows[i].said != NOT_SAID)
			assert_int_equal(feed_entries(&h, 0, rows[i].share, rows[i].said), 0);
		for (uint32_t n = 0; n < h.conn->limits.probe_count; n++) {
			const struct mrc_act_post *probe = lab_posted(&h, MRC_WIRE_PROBE, 0, n);

			assert_non_null(probe);
			assert_int_equal(probe->hdr.body_len, probe->pad_len);
			pad += probe->pad_len;
			assert_int_equal(lab_feed(&h, 0,
						  (struct mrc_wire_hdr){.type = MRC_WIRE_PROBE_ACK,
									.msg = probe->hdr.msg},
						  NULL),
					 0);
			lab_pump(&h);
		}
		assert_int_equal(pad, rows[i].want);
		assert_int_equal(h.conn->paths[0].state, MRC_PATH_GOOD);
		lab_host_fini(&h);
	}
}

static void what_entries_take_out_of_range_is_refused(void **state)
{
	const struct {
		const char *name;
		uint32_t given, share;
		uint64_t bytes;
		int want;
	} rows[] = {
		{"the least", 32, 8, 1024, 0},
		{"one less", 32, 8, 1023, -EPROTO},
		{"one", 32, 8, 1, -EPROTO},
		{"no such bound", 32, 8, 0, 0},
		{"as much as can be said", 32, 8, UINT64_MAX, 0},
		{"a byte stream has no entries", 0, 0, 4096, -EPROTO},
		{"it says nothing", 0, 0, 0, 0},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab_host h;
		uint32_t before;
		int r;

		shared_up(&h, rows[i].given);
		before = h.conn->paths[0].body_bytes_max;
		r = feed_entries(&h, 0, rows[i].share, rows[i].bytes);
		if (r != rows[i].want)
			fail_msg("%s: answer %d", rows[i].name, r);
		if (r)
			assert_int_equal(h.conn->paths[0].body_bytes_max, before);
		lab_host_fini(&h);
	}
}

static void what_our_own_entries_take_is_said_and_not_below_1024(void **state)
{
	const struct {
		uint32_t bytes;
		int want;
	} rows[] = {{0, 0}, {1, -EINVAL}, {1023, -EINVAL}, {1024, 0}, {UINT32_MAX, 0}};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab_host h;

		lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
		h.share = 16;
		h.entry_bytes = rows[i].bytes;
		assert_int_equal(lab_path_up(&h, 0, LAB_EPOCH, 1, LAB_BOOT_B, true), rows[i].want);
		assert_int_equal(h.conn->paths[0].is_connected, rows[i].want == 0);
		lab_pump(&h);
		if (rows[i].want == 0)
			assert_int_equal(lab_posted(&h, MRC_WIRE_PATH_OPEN, 0, 0)->hdr.addr,
					 rows[i].bytes);
		lab_host_fini(&h);
	}
}

/* ---- what the embedder sees of a path ---- */

/* Also when its rail answers at once: what it was given up for is told before. */
static void bad_is_told_before_the_fence_is_asked_for(void **state)
{
	for (int is_direct = 0; is_direct < 2; is_direct++) {
		const struct mrc_action *bad, *fence, *back;
		struct lab_host h;
		uint32_t from;

		lab_solo_up(&h, 2, is_direct);
		from = h.log_count;
		lab_carrier(&h, 0, false);
		lab_pump(&h);
		bad = lab_find(&h, MRC_ACT_PATH_STATE, from, 0);
		back = lab_find(&h, MRC_ACT_PATH_STATE, from, 1);
		fence = lab_find(&h, MRC_ACT_FENCE, from, 0);
		assert_non_null(bad);
		assert_non_null(fence);
		assert_non_null(back);
		assert_int_equal(bad->path.state, MRC_PATH_ASSUMED_BAD);
		assert_int_equal(bad->path.reason, MRC_REASON_CARRIER);
		assert_int_equal(back->path.state, MRC_PATH_CONNECTING);
		assert_int_equal(back->path.state_old, MRC_PATH_ASSUMED_BAD);
		assert_true(bad < fence && fence < back);
		lab_host_fini(&h);
	}
}

/* A second attempt would meet the first one's handshake. */
static void allowing_during_an_attempt_starts_no_second_one(void **state)
{
	struct lab_host h;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
	lab_timer(&h);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_CONNECT, 0), 1);
	lab_path(&h, MRC_EV_DENY, 0, MRC_REASON_NONE);
	lab_pump(&h);
	lab_path(&h, MRC_EV_ALLOW, 0, MRC_REASON_NONE);
	for (int i = 0; i < 100; i++) {
		h.now_ns += 100 * MRC_MS;
		lab_timer(&h);
		lab_pump(&h);
	}
	assert_int_equal(lab_count(&h, MRC_ACT_CONNECT, 0), 1);
	/* When that has ended, there is one. */
	lab_path(&h, MRC_EV_PATH_FAILED, 0, MRC_REASON_CONNECT);
	for (int i = 0; i < 100; i++) {
		h.now_ns += 100 * MRC_MS;
		lab_timer(&h);
		lab_pump(&h);
	}
	assert_int_equal(lab_count(&h, MRC_ACT_CONNECT, 0), 2);
	lab_host_fini(&h);
}

/* 0 is nobody's id, also when the generation of slot 0 has come round. */
static void a_channels_id_is_never_0(void **state)
{
	const uint32_t last = (1U << (32 - MRC_HANDLE_SLOT_BITS)) - 1;
	struct lab_host h;
	uint32_t ids[3];

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
	h.conn->slot_generations[0] = last - 1;
	for (uint32_t i = 0; i < 3; i++) {
		h.conn->slot_hint = 0;
		assert_int_equal(lab_open_at(&h, "svc", false, &ids[i]), 0);
		assert_int_not_equal(ids[i], 0);
		assert_non_null(mrc_conn_channel(h.conn, ids[i]));
		assert_ptr_equal(h.conn->slots[0], mrc_conn_channel(h.conn, ids[i]));
		/* Those before it are not found by their ids any more. */
		for (uint32_t other = 0; other < i; other++)
			assert_null(mrc_conn_channel(h.conn, ids[other]));
		assert_int_equal(lab_channel(&h, MRC_EV_CH_ABORT, ids[i]), 0);
		lab_pump(&h);
	}
	lab_host_fini(&h);
}

/* The quickest path's entries are for its data too: words go elsewhere while another has room. */
static void control_frames_spare_a_path_whose_share_is_half_used(void **state)
{
	const struct {
		const char *name;
		uint32_t used[2]; /* of a share of 16 */
		uint8_t want;
	} rows[] = {
		{"half of it", {8, 0}, 0},
		{"more than half", {9, 0}, 1},
		{"more than half of both", {9, 9}, 0},
		{"the slower one's is not looked at", {0, 9}, 0},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab_host h;
		uint32_t id;

		lab_host_init(&h, "a", "b", LAB_BOOT_A, 2, NULL);
		h.share = 16;
		for (uint8_t path = 0; path < 2; path++) {
			lab_path_good(&h, path, true);
			assert_int_equal(lab_feed(&h, path,
						  (struct mrc_wire_hdr){.type = MRC_WIRE_PATH_OPEN,
									.arg = 1 | 16ULL << 32},
						  NULL),
					 0);
		}
		id = lab_solo_channel(&h, false);
		lab_ack_all(&h);
		h.conn->paths[1].rtt.smoothed_ns = h.conn->paths[0].rtt.smoothed_ns + 1;
		for (uint8_t path = 0; path < 2; path++) {
			for (uint32_t n = 0; n < rows[i].used[path]; n++)
				mrc_path_push(&h.conn->paths[path], false, 0, h.now_ns);
		}
		assert_int_equal(lab_send(&h, id, 100000, MRC_LVL_COMMITTED, 1), 0);
		lab_pump(&h);
		if (lab_posted(&h, MRC_WIRE_RTS, 0, 0)->index != rows[i].want)
			fail_msg("%s: RTS went by path %d", rows[i].name, !rows[i].want);
		lab_host_fini(&h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_share_is_eight_until_path_open_says_more),
		cmocka_unit_test(without_shares_only_the_records_bound_it),
		cmocka_unit_test(shares_out_of_range_are_refused),
		cmocka_unit_test(our_own_share_is_not_below_eight),
		cmocka_unit_test(a_share_is_heard_anew_in_each_epoch),
		cmocka_unit_test(two_full_ends_free_each_other),
		cmocka_unit_test(more_than_a_share_is_refused_until_an_ack_gives_it_anew),
		cmocka_unit_test(a_whole_share_may_come_after_an_answered_probe),
		cmocka_unit_test(an_ack_goes_along_when_it_is_free_or_half_due),
		cmocka_unit_test(an_ack_is_due_when_half_a_share_is_used),
		cmocka_unit_test(a_body_is_no_longer_than_the_peers_entries_take),
		cmocka_unit_test(what_entries_take_is_heard_anew_in_each_epoch),
		cmocka_unit_test(a_direct_write_is_not_bounded_by_the_entries),
		cmocka_unit_test(what_is_sent_again_is_cut_to_what_entries_take),
		cmocka_unit_test(a_probes_padding_fits_the_peers_entries),
		cmocka_unit_test(what_entries_take_out_of_range_is_refused),
		cmocka_unit_test(what_our_own_entries_take_is_said_and_not_below_1024),
		cmocka_unit_test(bad_is_told_before_the_fence_is_asked_for),
		cmocka_unit_test(allowing_during_an_attempt_starts_no_second_one),
		cmocka_unit_test(a_channels_id_is_never_0),
		cmocka_unit_test(control_frames_spare_a_path_whose_share_is_half_used),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
