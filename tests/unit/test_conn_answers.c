/* SPDX-License-Identifier: BSD-2-Clause */
/* What the peer's answers prove of a path, where words go when none comes, and what a stale one may not do. */
#include "engine_lab.h"

static int feed_probe_ack(struct lab_host *h, uint8_t path)
{
	return lab_feed(h, path,
			(struct mrc_wire_hdr){.type = MRC_WIRE_PROBE_ACK,
					      .msg = h->conn->paths[path].probe_id},
			NULL);
}

static uint32_t frags_on(const struct lab_host *h, uint32_t from, uint8_t path)
{
	const struct mrc_act_post *post;
	uint32_t count = 0;

	for (uint32_t i = 0; (post = lab_posted(h, MRC_WIRE_FRAG, from, i)); i++)
		count += post->index == path;
	return count;
}

/* The path is in order, and the ACKs may all be going by a dead one. */
static void an_answered_probe_acknowledges_what_was_before_it(void **state)
{
	struct mrc_path *path;
	struct lab_host h;
	uint64_t before;
	uint32_t id;

	lab_solo_up(&h, 1, false);
	path = &h.conn->paths[0];
	id = lab_solo_channel(&h, false);
	lab_ack_all(&h);
	assert_int_equal(lab_send(&h, id, 3000, MRC_LVL_COMMITTED, 1), 0);
	lab_pump(&h);
	path->do_probe = true;
	lab_pump(&h);
	before = path->posted;
	assert_int_equal(lab_send(&h, id, 500, MRC_LVL_COMMITTED, 2), 0);
	lab_pump(&h);
	assert_int_equal(path->bytes_in_flight, 3500);
	h.now_ns += LAB_DELAY_NS;
	/* The answer to another probe proves nothing. */
	path->probe_id++;
	assert_int_equal(feed_probe_ack(&h, 0), 0);
	path->probe_id--;
	path->probe_ns = h.now_ns;
	assert_int_equal(feed_probe_ack(&h, 0), 0);
	assert_int_equal(path->acked, before);
	assert_int_equal(path->bytes_in_flight, 500);
	lab_host_fini(&h);
}

/* Two paths, and a message under way on the first of them. Gives that path. */
static struct mrc_path *under_way(struct lab_host *h)
{
	uint32_t id;

	lab_solo_up(h, 2, false);
	id = lab_solo_channel(h, false);
	lab_ack_all(h);
	assert_int_equal(lab_send(h, id, 3000, MRC_LVL_COMMITTED, 1), 0);
	lab_pump(h);
	return &h->conn->paths[0];
}

/* And so may convict the sibling that is late. */
static void an_answered_probe_is_evidence_against_a_late_sibling(void **state)
{
	struct lab_host h;

	under_way(&h);
	assert_true(h.conn->paths[0].oldest_sent_ns != MRC_NEVER);
	/* From now on only probes of path 1 are answered, and only its clock goes on. */
	for (int i = 0; i < 100 && h.conn->paths[0].suspicions == 0; i++) {
		h.now_ns += 100 * MRC_US;
		h.conn->paths[1].do_probe = true;
		lab_pump(&h);
		assert_int_equal(feed_probe_ack(&h, 1), 0);
	}
	assert_int_equal(h.conn->paths[0].suspicions, 1);
	assert_int_equal(h.conn->paths[0].state, MRC_PATH_ASSUMED_BAD);
	lab_pump(&h);
	assert_true(frags_on(&h, 0, 1) > 0);
	lab_host_fini(&h);
}

/*
 * We stood still after a sibling had answered: the late path's own answer may be
 * among what came meanwhile, unread. One word more is waited for from now on;
 * but a host that is late every time finds its dead paths all the same.
 */
static void standing_still_does_not_count_as_waiting(void **state)
{
	for (int is_answered = 0; is_answered < 2; is_answered++) {
		struct mrc_path *path;
		struct lab_host h;

		path = under_way(&h);
		while (path->evidence_ns == MRC_NEVER) {
			h.now_ns += 100 * MRC_US;
			h.conn->paths[1].do_probe = true;
			lab_pump(&h);
			assert_int_equal(feed_probe_ack(&h, 1), 0);
		}
		h.now_ns += MRC_S;
		lab_timer(&h);
		assert_int_equal(path->suspicions, 0);
		if (is_answered) {
			lab_ack_all(&h);
			h.now_ns += MRC_S;
			lab_timer(&h);
			assert_int_equal(path->suspicions, 0);
		} else {
			h.now_ns += MRC_S;
			lab_timer(&h);
			assert_int_equal(path->suspicions, 1);
		}
		lab_host_fini(&h);
	}
}

/* As the peer would make it: `count` frames of path 0 were taken in, none of the others' is named. */
static int feed_probe_ack_of(struct lab_host *h, uint8_t path, uint64_t count)
{
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_cursor c = {.at = body, .end = body + sizeof(body), .ok = true};
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_PROBE_ACK,
				   .msg = h->conn->paths[path].probe_id};

	mrc_put_u64(&c, h->conn->ctl_sent);
	mrc_put_u8(&c, 1);
	mrc_put_u16(&c, h->conn->paths[0].path_id);
	mrc_put_u32(&c, h->conn->paths[0].epoch);
	mrc_put_u64(&c, count);
	hdr.body_len = (uint32_t)(c.at - body);
	return lab_feed(h, path, hdr, body);
}

/* Their acknowledgement may be under way by a slower path than the answer to the probe. */
static void what_an_answered_probe_says_was_taken_in_is_not_late(void **state)
{
	for (int is_missing = 0; is_missing < 2; is_missing++) {
		struct mrc_path *path;
		struct lab_host h;

		path = under_way(&h);
		assert_int_equal(frags_on(&h, 0, 0), 1);
		h.conn->ctl_acked = h.conn->ctl_sent;
		/* Long enough for two suspicions: the evidence, and a quarter of the timeout more. */
		for (int i = 0; i < 100; i++) {
			h.now_ns += 100 * MRC_US;
			h.conn->paths[1].do_probe = true;
			lab_pump(&h);
			assert_int_equal(feed_probe_ack_of(&h, 1, path->posted - is_missing), 0);
			/* It settles what was in flight at once, before it speaks against anyone. */
			if (!is_missing) {
				assert_int_equal(path->acked, path->posted);
				assert_int_equal(path->bytes_in_flight, 0);
			}
		}
		assert_int_equal(path->suspicions, is_missing);
		assert_int_equal(path->state, is_missing ? MRC_PATH_ASSUMED_BAD : MRC_PATH_GOOD);
		assert_int_equal(h.conn->paths[1].state, MRC_PATH_GOOD);
		lab_host_fini(&h);
	}
}

static void an_answer_to_a_probe_says_what_was_taken_in_on_all_paths(void **state)
{
	struct lab_host h;
	const struct mrc_act_post *post;
	struct mrc_act_post copy;
	struct mrc_cursor c;
	uint32_t from, count = 0;

	lab_solo_up(&h, 3, false);
	lab_solo_channel(&h, false);
	for (uint32_t n = 0; n < 5; n++)
		assert_int_equal(lab_feed(&h, 2, (struct mrc_wire_hdr){.type = MRC_WIRE_NOP}, NULL),
				 0);
	lab_path(&h, MRC_EV_PATH_DOWN, 1, MRC_REASON_ERROR); /* that is not here */
	lab_pump(&h);
	from = h.log_count;
	assert_int_equal(
		lab_feed(&h, 0, (struct mrc_wire_hdr){.type = MRC_WIRE_PROBE, .msg = 77, .arg = 88},
			 NULL),
		0);
	lab_pump(&h);
	post = lab_posted(&h, MRC_WIRE_PROBE_ACK, from, 0);
	assert_non_null(post);
	assert_int_equal(post->index, 0);
	assert_int_equal(post->hdr.msg, 77);
	assert_int_equal(post->hdr.arg, 88);
	assert_int_equal(post->hdr.body_len, post->body_len);
	copy = *post;
	c = (struct mrc_cursor){.at = copy.body, .end = copy.body + copy.body_len, .ok = true};
	assert_int_equal(mrc_get_u64(&c), h.conn->ctl_taken);
	assert_int_equal(mrc_get_u8(&c), 2);
	for (uint8_t i = 0; i < 3; i += 2, count++) {
		assert_int_equal(mrc_get_u16(&c), i);
		assert_int_equal(mrc_get_u32(&c), LAB_PATH_EPOCH);
		assert_int_equal(mrc_get_u64(&c), h.conn->paths[i].taken);
		assert_true(h.conn->paths[i].taken > 0);
	}
	assert_true(c.ok);
	assert_ptr_equal(c.at, c.end);
	assert_int_equal(count, 2);
	lab_host_fini(&h);
}

/* A path opened anew by the peer has its older link fenced unasked. */
static void fenced_without_being_asked_moves_what_was_under_way(void **state)
{
	for (int is_direct = 0; is_direct < 2; is_direct++) {
		struct lab_host h;
		uint32_t id, from, frags;

		lab_solo_up(&h, 2, is_direct);
		id = lab_solo_channel(&h, false);
		lab_ack_all(&h);
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(lab_send(&h, id, 1000, MRC_LVL_COMMITTED, i), 0);
		lab_pump(&h);
		frags = frags_on(&h, 0, 0);
		assert_true(frags > 0);
		from = h.log_count;
		lab_path(&h, MRC_EV_FENCED, 0, MRC_REASON_NONE);
		lab_pump(&h);
		assert_int_equal(frags_on(&h, from, 1), frags);
		assert_null(lab_find(&h, MRC_ACT_FENCE, from, 0));
		assert_int_equal(h.conn->paths[0].state, MRC_PATH_CONNECTING);
		assert_int_equal(h.conn->paths[0].reason, MRC_REASON_CLOSED);
		lab_host_fini(&h);
	}
}

/* All owe an answer for long: then a word goes where the peer was heard last, not where it was asked last. */
static void when_all_paths_owe_an_ack_goes_where_something_is_heard(void **state)
{
	for (uint8_t heard = 0; heard < 3; heard++) {
		struct lab_host h;
		uint32_t from;

		lab_solo_up(&h, 3, false);
		lab_solo_channel(&h, false);
		lab_ack_all(&h);
		for (uint8_t i = 0; i < 3; i++) {
			/* The one that will be heard was asked first. */
			h.conn->paths[(heard + i) % 3].do_probe = true;
			lab_pump(&h);
			h.now_ns += LAB_DELAY_NS;
		}
		h.now_ns += 5 * MRC_MS;
		lab_timer(&h);
		lab_pump(&h);
		from = h.log_count;
		assert_int_equal(lab_feed(&h, heard,
					  (struct mrc_wire_hdr){.type = MRC_WIRE_FRAG,
								.flags = MRC_WIRE_F_EAGER,
								.msg_len = 10,
								.body_len = 10},
					  NULL),
				 0);
		h.now_ns += MRC_MS;
		lab_timer(&h);
		lab_pump(&h);
		assert_non_null(lab_posted(&h, MRC_WIRE_ACK, from, 0));
		assert_int_equal(lab_posted(&h, MRC_WIRE_ACK, from, 0)->index, heard);
		assert_int_equal(lab_info(&h).paths_good, 3);
		lab_host_fini(&h);
	}
}

/* What PATH_FENCED counts is final: if it was all, the path was suspected wrongly. */
static void path_fenced_that_disproves_a_suspicion_doubles_the_floor(void **state)
{
	const struct {
		const char *name;
		enum { BY_TIME, BY_CARRIER } why;
		int64_t more; /* than was posted */
		uint32_t epoch_off;
		bool is_false;
	} rows[] = {
		{"all had arrived", BY_TIME, 0, 0, true},
		{"one was missing", BY_TIME, -1, 0, false},
		{"it was not suspected", BY_CARRIER, 0, 0, false},
		{"another epoch's", BY_TIME, 0, 1, false},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct mrc_path *path;
		struct lab_host h;

		path = under_way(&h);
		if (rows[i].why == BY_CARRIER)
			lab_carrier(&h, 0, false);
		/* Only path 1 answers: path 0 is suspected, and given up when it stays silent. */
		for (int n = 0; n < 20 && path->is_connected; n++) {
			h.now_ns += n ? 100 * MRC_MS : MRC_MS;
			h.conn->paths[1].do_probe = true;
			lab_timer(&h);
			lab_pump(&h);
			assert_int_equal(feed_probe_ack(&h, 1), 0);
			lab_pump(&h);
		}
		assert_false(path->is_connected);
		assert_int_equal(path->suspicions, rows[i].why == BY_TIME);
		assert_int_equal(lab_posted(&h, MRC_WIRE_PATH_FENCE, 0, 0)->index, 1);
		for (int again = 0; again < 2; again++) /* said twice it counts once */
			assert_int_equal(lab_feed(&h, 1,
						  (struct mrc_wire_hdr){
							  .type = MRC_WIRE_PATH_FENCED,
							  .msg = path->path_id,
							  .arg = path->epoch - rows[i].epoch_off,
							  .offset = path->posted +
								    (uint64_t)rows[i].more},
						  NULL),
					 0);
		if (path->suspicions_false != rows[i].is_false)
			fail_msg("%s: %llu false suspicions", rows[i].name,
				 (unsigned long long)path->suspicions_false);
		assert_int_equal(path->floor_ns, rows[i].is_false ? 2 * MRC_MS : MRC_MS);
		lab_host_fini(&h);
	}
}

/* Stripped fragments counted as delivered when their NOPs were acknowledged, all at once. */
static void what_went_by_as_a_nop_gives_no_rate(void **state)
{
	struct mrc_path *path;
	struct lab_host h;
	uint32_t id;

	lab_solo_up(&h, 1, false);
	path = &h.conn->paths[0];
	id = lab_solo_channel(&h, false);
	path->rate_least = 0;
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(lab_send(&h, id, 8000, MRC_LVL_COMMITTED, i), 0);
	lab_pump(&h);
	assert_true(path->bytes_in_flight > 0);
	mrc_conn_path_leave(h.conn, path, MRC_REASON_SILENT, false);
	lab_pump(&h);
	h.now_ns += 100 * MRC_US;
	lab_ack_all(&h);
	assert_int_equal(path->state, MRC_PATH_PROBING); /* back by itself */
	assert_int_equal(path->rate.best, 0);
	assert_int_equal(path->rate_least, 0);
	lab_host_fini(&h);
}

/* What its own end said of the conn counts, also for the host that does not begin. */
static void a_host_that_answers_joins_by_what_itself_had_said(void **state)
{
	const struct {
		const char *name;
		uint32_t conn_epoch, held_by_initiator, held_by_responder;
		int want;
	} rows[] = {
		{"the other had forgotten it", LAB_EPOCH + 1, 0, LAB_EPOCH, 0},
		{"ours is from before this one", LAB_EPOCH + 1, LAB_EPOCH, 0, -ESTALE},
		{"this one goes on", LAB_EPOCH, LAB_EPOCH, LAB_EPOCH, 0},
		{"this one goes on, and we did not know", LAB_EPOCH, LAB_EPOCH, 0, 0},
		{"it is too old", LAB_EPOCH - 1, 0, LAB_EPOCH, -ESTALE},
	};
	struct lab_host h;

	lab_host_init(&h, "b", "a", LAB_BOOT_B, 1, NULL);
	assert_int_equal(lab_path_up(&h, 0, LAB_EPOCH, LAB_PATH_EPOCH, LAB_BOOT_A, false), 0);
	assert_false(mrc_conn_is_initiator(h.conn));
	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		const struct mrc_auth auth = {
			.conn_epoch = rows[i].conn_epoch,
			.path_epoch = LAB_PATH_EPOCH + 1,
			.held_by_initiator = rows[i].held_by_initiator,
			.held_by_responder = rows[i].held_by_responder,
			.version = 1,
		};
		int r = mrc_conn_join(h.conn, 0, &auth, LAB_BOOT_A);

		if (r != rows[i].want)
			fail_msg("%s: answer %d", rows[i].name, r);
	}
	lab_host_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answered_probe_acknowledges_what_was_before_it),
		cmocka_unit_test(an_answered_probe_is_evidence_against_a_late_sibling),
		cmocka_unit_test(standing_still_does_not_count_as_waiting),
		cmocka_unit_test(what_an_answered_probe_says_was_taken_in_is_not_late),
		cmocka_unit_test(an_answer_to_a_probe_says_what_was_taken_in_on_all_paths),
		cmocka_unit_test(fenced_without_being_asked_moves_what_was_under_way),
		cmocka_unit_test(when_all_paths_owe_an_ack_goes_where_something_is_heard),
		cmocka_unit_test(path_fenced_that_disproves_a_suspicion_doubles_the_floor),
		cmocka_unit_test(a_host_that_answers_joins_by_what_itself_had_said),
		cmocka_unit_test(what_went_by_as_a_nop_gives_no_rate),
	};

	return cmocka_run_group_tests_name("conn_answers", tests, NULL, NULL);
}
