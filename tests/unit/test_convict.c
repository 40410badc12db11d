/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who damages data: a mismatch over memory that a client can write is a reason to
 * look, not a proof (DESIGN 7.12). What the peer's daemon sends of its own proves.
 */
#include "engine_lab.h"

enum { MSG_BYTES = 1 << 20, PIECE = 1024 };

/* An engine with one channel; the peer's message 0 (MSG_BYTES) has its buffer. */
struct fixture {
	struct lab_host h;
	uint64_t addr;
	uint64_t offset; /* of the next piece */
};

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){0};
	lab_solo_up(&f->h, 2, false);
	lab_solo_channel(&f->h, false);
	f->addr = f->h.landing_next;
	assert_int_equal(lab_feed(&f->h, 0,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_RTS, .msg_len = MSG_BYTES},
				  NULL),
			 0);
	lab_pump(&f->h);
	lab_ack_all(&f->h);
	lab_pump(&f->h);
}

static void piece_comes_damaged(struct fixture *f)
{
	const struct mrc_wire_hdr hdr = {.msg_len = MSG_BYTES,
					 .offset = f->offset,
					 .body_len = PIECE,
					 .addr = f->addr};

	f->offset += PIECE;
	assert_int_equal(lab_feed_frag(&f->h, 0, hdr, (struct lab_came){.is_bad = true}), 0);
}

static int answer(struct lab_host *h)
{
	return lab_feed(h, 0,
			(struct mrc_wire_hdr){.type = MRC_WIRE_PROBE_ACK,
					      .msg = h->conn->paths[0].probe_id},
			NULL);
}

/* A proof that came so. */
static int proof(struct lab_host *h, bool is_good)
{
	const struct mrc_wire_hdr hdr = {.type = MRC_WIRE_PROBE,
					 .flags = MRC_WIRE_F_PROOF,
					 .body_len = 4096,
					 .conn_epoch = h->conn->epoch,
					 .path_epoch = h->conn->paths[0].epoch};
	struct mrc_event_in ev = {
		.kind = MRC_EV_ARRIVED,
		.arrived = {.is_body_good = is_good, .path_epoch = hdr.path_epoch, .hdr = &hdr},
	};

	return lab_handle(h, &ev);
}

/* Answer what path 0 asks until it asks no more: how often it asked for a proof. */
static uint32_t proofs_asked(struct lab_host *h, uint32_t from)
{
	uint32_t asked = 0;

	for (uint32_t nth = 0;; nth++) {
		const struct mrc_act_post *probe;

		lab_pump(h);
		probe = lab_posted(h, MRC_WIRE_PROBE, from, nth);
		if (!probe)
			return asked;
		assert_true(nth < 100);
		if (probe->index == 0 && probe->hdr.flags == MRC_WIRE_F_PROVE) {
			asked++;
			assert_int_equal(proof(h, true), 0);
		}
		if (probe->index == 0)
			assert_int_equal(answer(h), 0);
	}
}

/* ---- asking ---- */

static void damage_asks_for_some_proofs_and_costs_no_path(void **state)
{
	struct fixture f;
	uint32_t from;

	fixture_init(&f);
	for (uint32_t round = 1; round <= 20; round++) {
		from = f.h.log_count;
		for (uint32_t i = 0; i < 3; i++) {
			piece_comes_damaged(&f);
			lab_pump(&f.h);
			assert_null(lab_posted(&f.h, MRC_WIRE_PROBE, from, 1)); /* one at a time */
		}
		assert_int_equal(proofs_asked(&f.h, from), 4); /* for all that came meanwhile */
		assert_int_equal(lab_path_info(&f.h, 0).body_errors, 3 * round);
		lab_ack_all(&f.h);
	}
	/* A client that changes what it sends can do this, and no path is given up for it. */
	assert_int_equal(f.h.conn->paths[0].state, MRC_PATH_GOOD);
	assert_int_equal(lab_path_info(&f.h, 0).bad_count, 0);
	assert_int_equal(lab_path_info(&f.h, 1).body_errors, 0);
	lab_host_fini(&f.h);
}

static void a_damaged_proof_convicts(void **state)
{
	struct fixture f;

	fixture_init(&f);
	piece_comes_damaged(&f);
	lab_pump(&f.h);
	assert_int_equal(proof(&f.h, false), 0);
	assert_int_equal(f.h.conn->paths[0].state, MRC_PATH_ASSUMED_BAD);
	assert_int_equal(lab_path_info(&f.h, 0).reason, MRC_REASON_CORRUPT);
	assert_int_equal(f.h.conn->paths[1].state, MRC_PATH_GOOD);
	lab_host_fini(&f.h);
}

/* All it carries is checked anyway; with it nothing would be left. */
static void the_last_path_is_not_asked_and_comes_back_as_others_do(void **state)
{
	struct fixture f;
	struct lab_host *h = &f.h;
	uint32_t from;

	fixture_init(&f);
	lab_path(h, MRC_EV_PATH_DOWN, 1, MRC_REASON_ERROR);
	lab_pump(h);
	from = h->log_count;
	piece_comes_damaged(&f);
	assert_int_equal(proofs_asked(h, from), 0);
	assert_int_equal(lab_path_info(h, 0).body_errors, 1);
	lab_path(h, MRC_EV_PATH_DOWN, 0, MRC_REASON_CORRUPT); /* a header */
	from = h->log_count;
	assert_int_equal(lab_path_up(h, 0, LAB_EPOCH, h->conn->paths[0].epoch + 1, LAB_BOOT_B,
				     false),
			 0);
	assert_int_equal(proofs_asked(h, from), 0);
	assert_int_equal(h->conn->paths[0].state, MRC_PATH_GOOD);
	lab_host_fini(h);
}

static void the_last_path_to_go_is_tried_again_soon(void **state)
{
	struct lab_host h;

	lab_solo_up(&h, 2, false);
	h.conn->paths[0].backoff_ns = h.conn->paths[1].backoff_ns = h.conn->limits.backoff_max_ns;
	lab_path(&h, MRC_EV_PATH_DOWN, 0, MRC_REASON_CORRUPT);
	assert_true(h.conn->paths[0].connect_ns - h.now_ns > h.conn->limits.backoff_min_ns);
	lab_path(&h, MRC_EV_PATH_DOWN, 1, MRC_REASON_CORRUPT);
	assert_true(h.conn->paths[1].connect_ns - h.now_ns <= h.conn->limits.backoff_min_ns);
	lab_host_fini(&h);
}

/* ---- answering ---- */

static void a_proof_goes_before_the_answer_and_is_as_long_as_a_frame_gets(void **state)
{
	struct lab_host h;
	const struct mrc_act_post *post;
	uint32_t from;

	lab_solo_up(&h, 1, false);
	from = h.log_count;
	assert_int_equal(lab_feed(&h, 0,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_PROBE,
							.msg = 77,
							.flags = MRC_WIRE_F_PROVE},
				  NULL),
			 0);
	lab_pump(&h);
	post = &lab_find(&h, MRC_ACT_POST, from, 0)->post;
	assert_int_equal(post->hdr.type, MRC_WIRE_PROBE);
	assert_int_equal(post->hdr.flags, MRC_WIRE_F_PROOF);
	assert_int_equal(post->hdr.body_len, h.conn->limits.frag_bytes_max);
	assert_int_equal(post->pad_len, post->hdr.body_len);
	post = &lab_find(&h, MRC_ACT_POST, from, 1)->post;
	assert_int_equal(post->hdr.type, MRC_WIRE_PROBE_ACK);
	assert_int_equal(post->hdr.msg, 77);
	/* Padding is nobody's payload. */
	assert_int_equal(lab_path_info(&h, 0).bytes_sent, 0);
	lab_host_fini(&h);
}

static void a_proof_is_not_answered_and_moves_no_ports(void **state)
{
	struct lab_host h;
	uint32_t from;

	lab_solo_up(&h, 1, false);
	from = h.log_count;
	assert_int_equal(proof(&h, true), 0);
	lab_pump(&h);
	assert_null(lab_posted(&h, MRC_WIRE_PROBE_ACK, from, 0));
	assert_null(lab_posted(&h, MRC_WIRE_PROBE, from, 0));
	lab_host_fini(&h);
}

/* ---- coming back ---- */

static void a_convict_proves_itself_both_ways_before_it_carries_data(void **state)
{
	struct fixture f;
	struct lab_host *h = &f.h;
	uint32_t from;
	uint32_t asked = 0;

	fixture_init(&f);
	piece_comes_damaged(&f);
	lab_pump(h);
	assert_int_equal(proof(h, false), 0);
	lab_pump(h);
	lab_path(h, MRC_EV_FENCED, 0, 0);
	from = h->log_count;
	assert_int_equal(lab_path_up(h, 0, LAB_EPOCH, h->conn->paths[0].epoch + 1, LAB_BOOT_B,
				     false),
			 0);
	while (h->conn->paths[0].state == MRC_PATH_PROBING) {
		const struct mrc_act_post *probe;

		lab_pump(h);
		probe = lab_posted(h, MRC_WIRE_PROBE, from, asked);
		assert_non_null(probe);
		assert_int_equal(probe->hdr.flags, MRC_WIRE_F_PROVE);
		assert_int_equal(probe->pad_len, h->conn->limits.frag_bytes_max);
		asked++;
		assert_int_equal(proof(h, true), 0);
		assert_int_equal(answer(h), 0);
	}
	assert_int_equal(h->conn->paths[0].state, MRC_PATH_GOOD);
	assert_int_equal(asked, 8);
	/* It is as good as any then: the next time it comes back as others do. */
	from = h->log_count;
	lab_path(h, MRC_EV_PATH_DOWN, 0, MRC_REASON_ERROR);
	assert_int_equal(lab_path_up(h, 0, LAB_EPOCH, h->conn->paths[0].epoch + 1, LAB_BOOT_B,
				     false),
			 0);
	assert_int_equal(proofs_asked(h, from), 0);
	assert_int_equal(h->conn->paths[0].state, MRC_PATH_GOOD);
	lab_host_fini(h);
}

static void a_convict_that_damages_its_proof_stays_out(void **state)
{
	struct fixture f;
	struct lab_host *h = &f.h;

	fixture_init(&f);
	piece_comes_damaged(&f);
	lab_pump(h);
	assert_int_equal(proof(h, false), 0);
	for (uint32_t attempt = 0; attempt < 3; attempt++) {
		lab_pump(h);
		lab_path(h, MRC_EV_FENCED, 0, 0);
		assert_int_equal(lab_path_up(h, 0, LAB_EPOCH, h->conn->paths[0].epoch + 1,
					     LAB_BOOT_B, false),
				 0);
		for (uint32_t good = 0; good < 7; good++) {
			lab_pump(h);
			assert_int_equal(proof(h, true), 0);
			assert_int_equal(answer(h), 0);
			assert_int_equal(h->conn->paths[0].state, MRC_PATH_PROBING);
		}
		assert_int_equal(proof(h, false), 0);
		assert_int_equal(h->conn->paths[0].state, MRC_PATH_ASSUMED_BAD);
	}
	assert_int_equal(lab_path_info(h, 0).good_count, 1);
	lab_host_fini(h);
}

/* What has ended in between is forgotten: it was of another epoch. */
static void a_proof_that_was_asked_for_before_a_failure_is_not_sent_after_it(void **state)
{
	struct lab_host h;
	uint32_t from;

	lab_solo_up(&h, 1, false);
	assert_int_equal(lab_feed(&h, 0,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_PROBE,
							.flags = MRC_WIRE_F_PROVE},
				  NULL),
			 0);
	lab_path(&h, MRC_EV_PATH_DOWN, 0, MRC_REASON_ERROR);
	from = h.log_count;
	assert_int_equal(lab_path_up(&h, 0, LAB_EPOCH, h.conn->paths[0].epoch + 1, LAB_BOOT_B,
				     false),
			 0);
	lab_pump(&h);
	assert_int_equal(lab_posted(&h, MRC_WIRE_PROBE, from, 0)->hdr.flags, 0);
	assert_null(lab_posted(&h, MRC_WIRE_PROBE, from, 1));
	lab_host_fini(&h);
}

/* ---- what one path damaged goes by another ---- */

/* The peer says that all of message 0 (1000 bytes) came damaged by path `blame - 1`; 0: had no room. */
static int want(struct lab_host *h, uint64_t blame)
{
	return lab_feed(h, h->conn->path_count == 1 ? 0 : 1,
			(struct mrc_wire_hdr){.type = MRC_WIRE_WANT, .msg_len = 1000, .arg = blame},
			NULL);
}

static void sent(struct lab_host *h, uint8_t path_count)
{
	lab_solo_up(h, path_count, false);
	assert_int_equal(lab_send(h, lab_solo_channel(h, false), 1000, MRC_LVL_COMMITTED, 0), 0);
	lab_pump(h);
	lab_ack_all(h);
}

static void what_a_path_damaged_is_sent_again_by_another(void **state)
{
	struct lab_host h;
	uint32_t from;

	sent(&h, 3);
	for (uint32_t i = 0; i < 15; i++) {
		uint64_t blamed = i % 3;

		from = h.log_count;
		assert_int_equal(want(&h, blamed + 1), 0);
		lab_pump(&h);
		assert_int_equal(lab_posted_count(&h, MRC_WIRE_FRAG, from), 1);
		assert_int_not_equal(lab_posted(&h, MRC_WIRE_FRAG, from, 0)->index, blamed);
		lab_ack_all(&h);
	}
	/* Unless it is the only one. */
	lab_path(&h, MRC_EV_PATH_DOWN, 0, MRC_REASON_ERROR);
	lab_path(&h, MRC_EV_PATH_DOWN, 2, MRC_REASON_ERROR);
	lab_pump(&h);
	from = h.log_count;
	assert_int_equal(want(&h, 2), 0);
	lab_pump(&h);
	assert_int_equal(lab_posted(&h, MRC_WIRE_FRAG, from, 0)->index, 1);
	assert_int_equal(want(&h, MRC_PATHS_MAX + 1), -EPROTO);
	lab_host_fini(&h);
}

static void a_client_is_blamed_for_damage_by_turns_and_never_for_one_paths(void **state)
{
	const struct {
		const char *name;
		uint8_t path_count;
		uint64_t blames[2]; /* by turns */
		bool is_clients;
	} rows[] = {
		{"one path of two, always", 2, {1, 1}, false},
		{"two of two, by turns", 2, {1, 2}, true},
		{"no room, always", 2, {0, 0}, false},
		{"one path, and no room by turns", 2, {2, 0}, false},
		{"there is only one", 1, {1, 1}, true},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab_host h;
		bool is_given_up = false;

		sent(&h, rows[i].path_count);
		for (uint32_t n = 0; n < 500 && !is_given_up; n++) {
			assert_int_equal(want(&h, rows[i].blames[n % 2]), 0);
			lab_pump(&h);
			lab_ack_all(&h);
			is_given_up = lab_posted(&h, MRC_WIRE_VOID, 0, 0) != NULL;
		}
		if (is_given_up != rows[i].is_clients)
			fail_msg("%s: the message is %s", rows[i].name,
				 is_given_up ? "given up" : "sent for ever");
		lab_host_fini(&h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damage_asks_for_some_proofs_and_costs_no_path),
		cmocka_unit_test(a_damaged_proof_convicts),
		cmocka_unit_test(the_last_path_is_not_asked_and_comes_back_as_others_do),
		cmocka_unit_test(the_last_path_to_go_is_tried_again_soon),
		cmocka_unit_test(a_proof_goes_before_the_answer_and_is_as_long_as_a_frame_gets),
		cmocka_unit_test(a_proof_is_not_answered_and_moves_no_ports),
		cmocka_unit_test(a_convict_proves_itself_both_ways_before_it_carries_data),
		cmocka_unit_test(a_convict_that_damages_its_proof_stays_out),
		cmocka_unit_test(a_proof_that_was_asked_for_before_a_failure_is_not_sent_after_it),
		cmocka_unit_test(what_a_path_damaged_is_sent_again_by_another),
		cmocka_unit_test(a_client_is_blamed_for_damage_by_turns_and_never_for_one_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
