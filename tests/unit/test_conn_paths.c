/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc_conn_paths: paths come up, are judged, given up, fenced, and come back. */
#include "engine_lab.h"

enum { A, B };

/* Some traffic, so that paths have a round trip and something to judge them by. */
static uint64_t traffic(struct lab_pair *p, const uint32_t ids[2], uint32_t messages)
{
	static uint64_t cookie = 1000;

	for (uint32_t i = 0; i < messages; i++) {
		assert_int_equal(lab_send(&p->hosts[A], ids[A], 20000, MRC_LVL_COMMITTED, ++cookie),
				 0);
		lab_pair_run(p, MRC_MS);
	}
	return cookie;
}

static void a_path_is_good_when_enough_probes_are_answered(void **state)
{
	const struct mrc_limits limits = {.channels_max = 1, .probe_count = 3};
	struct lab_host h;
	uint32_t answered = 0;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, &limits);
	assert_int_equal(lab_path_up(&h, 0, 1, 1, LAB_BOOT_B, false), 0);
	while (h.conn->paths[0].state != MRC_PATH_GOOD) {
		const struct mrc_act_post *probe;

		assert_int_equal(h.conn->paths[0].state, MRC_PATH_PROBING);
		lab_pump(&h);
		probe = lab_posted(&h, MRC_WIRE_PROBE, 0, answered);
		assert_non_null(probe);
		assert_null(lab_posted(&h, MRC_WIRE_PROBE, 0, answered + 1));
		/* The last is as long as a frame gets. */
		assert_int_equal(probe->pad_len > 0, answered == 2);
		/* An answer to another probe says nothing. */
		assert_int_equal(lab_feed(&h, 0,
					  (struct mrc_wire_hdr){.type = MRC_WIRE_PROBE_ACK,
								.msg = probe->hdr.msg + 1},
					  NULL),
				 0);
		assert_int_equal(lab_feed(&h, 0,
					  (struct mrc_wire_hdr){.type = MRC_WIRE_PROBE_ACK,
								.msg = probe->hdr.msg},
					  NULL),
				 0);
		answered++;
	}
	assert_int_equal(answered, 3);
	lab_host_fini(&h);
}

static void the_first_frame_of_a_path_epoch_is_path_open(void **state)
{
	struct lab_host h;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
	assert_int_equal(lab_path_up(&h, 0, 1, 1, LAB_BOOT_B, false), 0);
	lab_pump(&h);
	assert_int_equal(lab_find(&h, MRC_ACT_POST, 0, 0)->post.hdr.type, MRC_WIRE_PATH_OPEN);
	lab_host_fini(&h);
}

static void unanswered_probes_end_the_attempt(void **state)
{
	struct lab_host h;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
	assert_int_equal(lab_path_up(&h, 0, 1, 1, LAB_BOOT_B, false), 0);
	lab_pump(&h);
	for (int i = 0; i < 50 && !lab_find(&h, MRC_ACT_FENCE, 0, 0); i++) {
		assert_true(mrc_conn_deadline_ns(h.conn) != MRC_NEVER);
		h.now_ns = MRC_MAX(h.now_ns, mrc_conn_deadline_ns(h.conn));
		lab_timer(&h);
		lab_pump(&h);
	}
	assert_non_null(lab_find(&h, MRC_ACT_FENCE, 0, 0));
	assert_int_equal(lab_path_info(&h, 0).reason, MRC_REASON_PROBE);
	assert_true(h.now_ns < 3 * MRC_S);
	lab_host_fini(&h);
}

static void only_one_host_connects_and_backs_off_without_end(void **state)
{
	struct lab_pair p;
	uint32_t before;

	lab_pair_init(&p, 1, NULL);
	p.is_cut[0] = true;
	lab_timer(&p.hosts[A]);
	lab_pair_run(&p, MRC_S);
	assert_in_range(lab_count(&p.hosts[A], MRC_ACT_CONNECT, 0), 5, 30);
	before = p.hosts[A].log_count;
	lab_pair_run(&p, 100 * MRC_S);
	/* About one a second, with jitter. */
	assert_in_range(lab_count(&p.hosts[A], MRC_ACT_CONNECT, before), 90, 220);
	assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_CONNECT, 0), 0);
	lab_pair_fini(&p);
}

/* Fail the next attempt at once, for this reason. */
static void attempt_fails(struct lab_host *h, enum mrc_path_reason reason)
{
	uint32_t from = h->log_count;

	h->now_ns = MRC_MAX(h->now_ns, mrc_conn_deadline_ns(h->conn));
	lab_timer(h);
	lab_pump(h);
	assert_int_equal(lab_count(h, MRC_ACT_CONNECT, from), 1);
	assert_int_equal(lab_path(h, MRC_EV_PATH_FAILED, 0, reason), 0);
	lab_pump(h);
}

/* Nothing was tried: with a cable pulled for long, the first attempt after it is not a long way off. */
static void attempts_without_a_carrier_do_not_grow_the_backoff(void **state)
{
	const enum mrc_path_reason reasons[] = {MRC_REASON_CONNECT, MRC_REASON_CARRIER,
						MRC_REASON_CONNECT, MRC_REASON_CARRIER};
	struct mrc_path *path;
	struct lab_host h;
	uint64_t want_ns;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
	path = &h.conn->paths[0];
	want_ns = h.conn->limits.backoff_min_ns;
	for (size_t i = 0; i < MRC_ARRAY_LEN(reasons); i++) {
		for (uint32_t n = 0; n < 3; n++) {
			attempt_fails(&h, reasons[i]);
			if (reasons[i] == MRC_REASON_CONNECT)
				want_ns *= 2;
			assert_int_equal(path->backoff_ns, want_ns);
			/* It goes on without being told that the carrier is back. */
			assert_in_range(path->connect_ns - h.now_ns, 1, want_ns + want_ns / 2);
		}
	}
	/* What it was out of service for, if it ever was in it, is not the carrier's being away now. */
	assert_int_equal(path->reason, MRC_REASON_CONNECT);
	lab_host_fini(&h);
}

static void carrier_loss_moves_fragments_to_the_sibling(void **state)
{
	struct lab_pair p;
	uint32_t ids[2];

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	traffic(&p, ids, 3);
	p.is_silent[0][A] = true; /* what goes there from now on is lost */
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(lab_send(&p.hosts[A], ids[A], 300000, MRC_LVL_COMMITTED, i), 0);
	lab_pair_run(&p, 100 * MRC_US);
	assert_true(lab_path_info(&p.hosts[A], 0).frames_in_flight > 0);
	lab_carrier(&p.hosts[A], 0, false);
	lab_pair_run(&p, 5 * MRC_MS);
	assert_true(lab_path_info(&p.hosts[A], 0).frames_resent > 0);
	for (uint32_t i = 0; i < 8; i++)
		lab_done_is(&p.hosts[A], i, MRC_OUT_OK);
	lab_pair_fini(&p);
}

static void moved_fragments_are_counted_for_the_log(void **state)
{
	struct lab_host h;
	const struct mrc_action *act;
	uint32_t id, frags[2] = {0}, from;

	lab_solo_up(&h, 2, false);
	id = lab_solo_channel(&h, false);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(lab_send(&h, id, 16000, MRC_LVL_PLACED, i), 0);
	lab_pump(&h);
	for (uint32_t i = 0; lab_posted(&h, MRC_WIRE_FRAG, 0, i); i++)
		frags[lab_posted(&h, MRC_WIRE_FRAG, 0, i)->index]++;
	assert_int_equal(frags[0] + frags[1], 4);
	assert_true(frags[0] > 0);
	from = h.log_count;
	h.fences = false; /* a rail that takes its time */
	h.now_ns += 300 * MRC_US;
	lab_carrier(&h, 0, false);
	lab_pump(&h);
	act = lab_find(&h, MRC_ACT_PATH_STATE, from, 0);
	assert_non_null(act);
	assert_int_equal(act->path.state, MRC_PATH_ASSUMED_BAD);
	assert_int_equal(act->path.state_old, MRC_PATH_GOOD);
	assert_int_equal(act->path.reason, MRC_REASON_CARRIER);
	assert_int_equal(act->path.moved_count, frags[0]);
	assert_int_equal(act->path.late_ns, 300 * MRC_US);
	assert_int_equal(lab_posted_count(&h, MRC_WIRE_FRAG, from), frags[0]);
	for (uint32_t i = 0; i < frags[0]; i++)
		assert_int_equal(lab_posted(&h, MRC_WIRE_FRAG, from, i)->index, 1);
	lab_host_fini(&h);
}

static void the_send_is_not_answered_while_the_rail_may_read(void **state)
{
	struct lab_host h;
	const struct lab_state placed = {.delivered = 1,
					 .ring_limit = LAB_RING_BYTES,
					 .msg_limit = LAB_WINDOW};
	uint32_t id, from;
	int outcome;

	lab_solo_up(&h, 1, false);
	id = lab_solo_channel(&h, false);
	h.finishes = false;
	assert_int_equal(lab_send(&h, id, 100, MRC_LVL_PLACED, 1), 0);
	lab_pump(&h);
	assert_int_equal(lab_feed_state(&h, 0, mrc_conn_channel(h.conn, id)->wire_id, &placed), 0);
	lab_pump(&h);
	assert_false(lab_done(&h, 1, &outcome));
	/* The path dies: its end is not yet fenced, so it may still read. */
	from = h.log_count;
	h.fences = false;
	lab_carrier(&h, 0, false);
	lab_pump(&h);
	assert_non_null(lab_find(&h, MRC_ACT_FENCE, from, 0));
	assert_false(lab_done(&h, 1, &outcome));
	lab_path(&h, MRC_EV_FENCED, 0, MRC_REASON_NONE);
	lab_pump(&h);
	lab_done_is(&h, 1, MRC_OUT_OK);
	lab_host_fini(&h);
}

static void a_single_silent_path_is_not_suspected(void **state)
{
	const struct mrc_limits limits = {.channels_max = 2, .peer_silent_ns = 500 * MRC_MS};
	struct lab_pair p;
	uint32_t ids[2], from;

	lab_pair_up(&p, 1, &limits);
	lab_pair_channel(&p, false, ids);
	traffic(&p, ids, 5);
	p.is_silent[0][A] = p.is_silent[0][B] = true;
	assert_int_equal(lab_send(&p.hosts[A], ids[A], 10, MRC_LVL_PLACED, 1), 0);
	lab_pair_run(&p, 400 * MRC_MS);
	assert_int_equal(lab_path_info(&p.hosts[A], 0).state, MRC_PATH_GOOD);
	assert_int_equal(lab_path_info(&p.hosts[A], 0).suspicions, 0);
	assert_true(lab_info(&p.hosts[A]).is_peer_silent);
	/* After the long limit it is given up all the same, and looked for anew. */
	from = p.hosts[A].log_count;
	lab_pair_run(&p, 200 * MRC_MS);
	assert_int_not_equal(lab_path_info(&p.hosts[A], 0).state, MRC_PATH_GOOD);
	assert_int_equal(lab_find(&p.hosts[A], MRC_ACT_PATH_STATE, from, 0)->path.reason,
			 MRC_REASON_SILENT);
	p.is_silent[0][A] = p.is_silent[0][B] = false;
	lab_pair_run(&p, 5 * MRC_S);
	lab_done_is(&p.hosts[A], 1, MRC_OUT_OK);
	assert_int_equal(lab_info(&p.hosts[A]).resets, 0);
	lab_pair_fini(&p);
}

static void when_all_are_silent_none_is_suspected(void **state)
{
	struct lab_pair p;
	uint32_t ids[2];

	lab_pair_up(&p, 3, NULL);
	lab_pair_channel(&p, false, ids);
	traffic(&p, ids, 5);
	for (uint8_t i = 0; i < 3; i++)
		p.is_silent[i][A] = p.is_silent[i][B] = true;
	assert_int_equal(lab_send(&p.hosts[A], ids[A], 1000000, MRC_LVL_PLACED, 1), 0);
	lab_pair_run(&p, 500 * MRC_MS);
	for (uint8_t i = 0; i < 3; i++)
		assert_int_equal(lab_path_info(&p.hosts[A], i).suspicions, 0);
	lab_pair_fini(&p);
}

static void a_silent_path_among_siblings_is_suspected_in_milliseconds(void **state)
{
	for (int dir = 0; dir < 3; dir++) { /* a to b, b to a, both */
		struct lab_pair p;
		uint32_t ids[2];
		uint64_t cookie;

		lab_pair_up(&p, 2, NULL);
		lab_pair_channel(&p, false, ids);
		traffic(&p, ids, 5);
		p.is_silent[0][A] = dir != 1;
		p.is_silent[0][B] = dir != 0;
		cookie = traffic(&p, ids, 10);
		lab_pair_run(&p, 10 * MRC_MS);
		assert_true(lab_path_info(&p.hosts[A], 0).suspicions +
				    lab_path_info(&p.hosts[B], 0).suspicions >
			    0);
		/* Who speaks into the silence notices; the other is told of it later. */
		assert_int_not_equal(lab_path_info(&p.hosts[dir == 1], 0).state, MRC_PATH_GOOD);
		assert_int_equal(lab_path_info(&p.hosts[A], 1).suspicions, 0);
		assert_int_equal(lab_path_info(&p.hosts[A], 1).state, MRC_PATH_GOOD);
		lab_done_is(&p.hosts[A], cookie, MRC_OUT_OK);
		/* It comes back by itself and carries again. */
		p.is_silent[0][A] = p.is_silent[0][B] = false;
		lab_pair_run(&p, 3 * MRC_S);
		assert_int_equal(lab_path_info(&p.hosts[A], 0).state, MRC_PATH_GOOD);
		assert_int_equal(lab_path_info(&p.hosts[B], 0).state, MRC_PATH_GOOD);
		lab_pair_fini(&p);
	}
}

static void suspicion_asks_for_the_carrier_and_strips_the_rail(void **state)
{
	struct lab_pair p;
	uint32_t ids[2], from;

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	traffic(&p, ids, 5);
	p.is_silent[0][A] = p.is_silent[0][B] = true;
	from = p.hosts[A].log_count;
	traffic(&p, ids, 10);
	assert_non_null(lab_find(&p.hosts[A], MRC_ACT_CARRIER_ASK, from, 0));
	assert_non_null(lab_find(&p.hosts[A], MRC_ACT_STRIP, from, 0));
	assert_int_equal(lab_find(&p.hosts[A], MRC_ACT_STRIP, from, 0)->path.index, 0);
	/* No fence yet: it may come back by itself. */
	assert_null(lab_find(&p.hosts[A], MRC_ACT_FENCE, from, 0));
	lab_pair_fini(&p);
}

static void a_false_suspicion_doubles_the_floor_and_costs_no_reconnect(void **state)
{
	struct lab_pair p;
	struct mrc_path *path;
	uint32_t ids[2], epoch, from;

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	traffic(&p, ids, 5);
	path = &p.hosts[A].conn->paths[0];
	epoch = path->epoch;
	from = p.hosts[A].log_count;
	/* Not lost, only late: as TCP is after a loss. */
	p.delay_ns[0] = 4 * MRC_MS;
	for (int i = 0; i < 40 && path->suspicions == 0; i++)
		traffic(&p, ids, 1);
	assert_int_equal(path->suspicions, 1);
	assert_int_equal(path->state, MRC_PATH_ASSUMED_BAD);
	p.delay_ns[0] = LAB_DELAY_NS;
	lab_pair_run(&p, 50 * MRC_MS);
	assert_int_equal(path->suspicions_false, 1);
	assert_int_equal(path->state, MRC_PATH_GOOD);
	assert_int_equal(path->epoch, epoch);
	assert_null(lab_find(&p.hosts[A], MRC_ACT_FENCE, from, 0));
	assert_int_equal(path->floor_ns, 2 * MRC_MS);
	/* For a while only. */
	lab_pair_run(&p, 6 * MRC_S);
	traffic(&p, ids, 5);
	assert_int_equal(path->floor_ns, MRC_MS);
	lab_pair_fini(&p);
}

/* Its frames do arrive at last, as TCP says them again when the rail is mended: it was silent all the same. */
static void a_path_that_fails_again_and_again_is_found_as_soon_as_at_first(void **state)
{
	struct lab_pair p;
	struct mrc_path *path;
	uint32_t ids[2];

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	traffic(&p, ids, 5);
	path = &p.hosts[A].conn->paths[0];
	for (uint32_t failure = 1; failure <= 5; failure++) {
		p.delay_ns[0] = 100 * MRC_MS;
		for (int i = 0; i < 40 && path->suspicions < failure; i++)
			traffic(&p, ids, 1);
		assert_int_equal(path->suspicions, failure);
		p.delay_ns[0] = LAB_DELAY_NS;
		lab_pair_run(&p, 400 * MRC_MS);
		assert_int_equal(path->state, MRC_PATH_GOOD);
		assert_int_equal(path->suspicions_false, 0);
		assert_false(path->is_on_trial);
		assert_int_equal(path->floor_ns, MRC_MS);
	}
	lab_pair_fini(&p);
}

/* A stream's queue is stripped: the answer in it has become a NOP, and the path may be acquitted. */
static void an_answer_that_was_stripped_is_given_again(void **state)
{
	for (int is_closed = 0; is_closed < 2; is_closed++) {
		struct lab_host h;
		struct mrc_path *path;
		uint32_t from;

		lab_solo_up(&h, 2, false);
		path = &h.conn->paths[0];
		assert_int_equal(lab_feed(&h, 0,
					  (struct mrc_wire_hdr){.type = MRC_WIRE_PROBE, .msg = 9},
					  NULL),
				 0);
		lab_pump(&h);
		mrc_conn_path_leave(h.conn, path, MRC_REASON_SILENT, is_closed);
		from = h.log_count;
		lab_pump(&h);
		assert_null(lab_posted(&h, MRC_WIRE_PROBE_ACK, from, 0));
		if (!is_closed) {
			lab_ack_all(&h); /* by the other path: it was false */
			assert_int_equal(path->state, MRC_PATH_PROBING);
			lab_pump(&h);
			assert_non_null(lab_posted(&h, MRC_WIRE_PROBE_ACK, from, 0));
			assert_int_equal(lab_posted(&h, MRC_WIRE_PROBE_ACK, from, 0)->hdr.msg, 9);
		}
		assert_false(path->do_probe_ack);
		lab_host_fini(&h);
	}
}

static void a_suspected_path_that_stays_silent_is_given_up(void **state)
{
	struct lab_pair p;
	uint32_t ids[2], from;
	int teller;

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	traffic(&p, ids, 5);
	p.is_silent[0][A] = p.is_silent[0][B] = true;
	from = p.hosts[A].log_count;
	traffic(&p, ids, 10);
	lab_pair_run(&p, MRC_S);
	assert_non_null(lab_find(&p.hosts[A], MRC_ACT_FENCE, from, 0));
	/* Whoever is first tells the other by the sibling, and that answers what it had taken in. */
	teller = lab_posted(&p.hosts[A], MRC_WIRE_PATH_FENCE, 0, 0) ? A : B;
	assert_non_null(lab_posted(&p.hosts[teller], MRC_WIRE_PATH_FENCE, 0, 0));
	assert_non_null(lab_posted(&p.hosts[!teller], MRC_WIRE_PATH_FENCED, 0, 0));
	assert_false(p.hosts[B].conn->paths[0].is_connected);
	lab_pair_fini(&p);
}

static void a_fence_is_answered_when_it_is_done_and_with_the_count(void **state)
{
	struct lab_host h;
	const struct mrc_act_post *post;
	uint32_t from;

	lab_solo_up(&h, 2, false);
	h.fences = false;
	from = h.log_count;
	assert_int_equal(lab_feed(&h, 1,
				  (struct mrc_wire_hdr){.type = MRC_WIRE_PATH_FENCE,
							.msg = 0,
							.arg = h.conn->paths[0].epoch},
				  NULL),
			 0);
	lab_pump(&h);
	assert_non_null(lab_find(&h, MRC_ACT_FENCE, from, 0));
	assert_null(lab_posted(&h, MRC_WIRE_PATH_FENCED, from, 0));
	lab_path(&h, MRC_EV_FENCED, 0, MRC_REASON_NONE);
	lab_pump(&h);
	post = lab_posted(&h, MRC_WIRE_PATH_FENCED, from, 0);
	assert_non_null(post);
	assert_int_equal(post->index, 1);
	assert_int_equal(post->hdr.msg, 0);
	assert_int_equal(post->hdr.arg, h.conn->paths[0].epoch);
	assert_int_equal(post->hdr.offset, h.conn->paths[0].taken);
	assert_true(post->hdr.offset > 0);
	lab_host_fini(&h);
}

/* ---- PORT_STATUS ---- */

static int feed_ports(struct lab_host *h, uint8_t path, uint32_t version, uint64_t down)
{
	return lab_feed(h, path,
			(struct mrc_wire_hdr){.type = MRC_WIRE_PROBE,
					      .msg = 1000 + version,
					      .offset = version,
					      .addr = down},
			NULL);
}

static void the_peers_port_status_takes_a_path_out(void **state)
{
	struct lab_host h;

	lab_solo_up(&h, 2, false);
	assert_int_equal(feed_ports(&h, 1, 5, 1U << 0), 0);
	assert_int_equal(h.conn->paths[0].reason, MRC_REASON_PEER_PORT);
	assert_int_not_equal(h.conn->paths[0].state, MRC_PATH_GOOD);
	assert_int_equal(h.conn->paths[1].state, MRC_PATH_GOOD);
	lab_host_fini(&h);
}

static void an_older_port_status_is_ignored(void **state)
{
	struct lab_host h;

	lab_solo_up(&h, 2, false);
	assert_int_equal(feed_ports(&h, 1, 5, 0), 0);
	assert_int_equal(feed_ports(&h, 1, 5, 1U << 0), 0);
	assert_int_equal(feed_ports(&h, 1, 4, 1U << 0), 0);
	assert_int_equal(h.conn->paths[0].state, MRC_PATH_GOOD);
	assert_int_equal(feed_ports(&h, 1, 6, 1U << 0), 0);
	assert_int_not_equal(h.conn->paths[0].state, MRC_PATH_GOOD);
	lab_host_fini(&h);
}

/* DESIGN 7.16: it is a hint; what is answered is up, whatever was said. */
static void an_answered_probe_outweighs_port_status(void **state)
{
	struct lab_host h;

	lab_solo_up(&h, 2, false);
	assert_int_equal(feed_ports(&h, 1, 5, 1U << 0), 0);
	lab_pump(&h);
	assert_int_equal(h.conn->paths[0].state, MRC_PATH_CONNECTING);
	/* Attempts go on, and with answers it serves although the status still says down. */
	lab_path_good(&h, 0, false);
	assert_int_equal(feed_ports(&h, 1, 5, 1U << 0), 0);
	assert_int_equal(h.conn->paths[0].state, MRC_PATH_GOOD);
	lab_host_fini(&h);
}

static void our_ports_are_told_with_a_version_that_grows(void **state)
{
	struct lab_host h;
	const struct mrc_act_post *probe;
	uint32_t from;
	uint64_t version;

	lab_solo_up(&h, 2, false);
	version = h.conn->port_version;
	from = h.log_count;
	lab_carrier(&h, 0, false);
	lab_pump(&h);
	probe = lab_posted(&h, MRC_WIRE_PROBE, from, 0);
	assert_non_null(probe); /* at once, by what is left */
	assert_int_equal(probe->index, 1);
	assert_int_equal(probe->hdr.addr, 1U << 0);
	assert_true(probe->hdr.offset > version);
	version = probe->hdr.offset;
	from = h.log_count;
	lab_carrier(&h, 0, false); /* no news */
	lab_pump(&h);
	assert_null(lab_posted(&h, MRC_WIRE_PROBE, from, 0));
	lab_carrier(&h, 0, true);
	lab_pump(&h);
	probe = lab_posted(&h, MRC_WIRE_PROBE, from, 0);
	assert_non_null(probe);
	assert_int_equal(probe->hdr.addr, 0);
	assert_true(probe->hdr.offset > version);
	lab_host_fini(&h);
}

/* ---- the operator ---- */

static void a_denied_path_carries_nothing_until_allowed(void **state)
{
	struct lab_pair p;
	uint32_t ids[2], from;
	uint64_t cookie;

	lab_pair_up(&p, 2, NULL);
	lab_pair_channel(&p, false, ids);
	assert_int_equal(lab_path(&p.hosts[A], MRC_EV_DENY, 0, MRC_REASON_NONE), 0);
	lab_pair_run(&p, 10 * MRC_MS);
	assert_int_equal(lab_path_info(&p.hosts[A], 0).state, MRC_PATH_DENIED);
	assert_false(lab_path_info(&p.hosts[A], 0).is_connected);
	from = p.hosts[A].log_count;
	cookie = traffic(&p, ids, 5);
	lab_pair_run(&p, 5 * MRC_S);
	lab_done_is(&p.hosts[A], cookie, MRC_OUT_OK);
	assert_null(lab_find(&p.hosts[A], MRC_ACT_CONNECT, from, 0));
	for (uint32_t i = 0; lab_find(&p.hosts[A], MRC_ACT_POST, from, i); i++)
		assert_int_equal(lab_find(&p.hosts[A], MRC_ACT_POST, from, i)->post.index, 1);
	/* Carrier events change nothing about what the operator said. */
	lab_carrier(&p.hosts[A], 0, false);
	lab_carrier(&p.hosts[A], 0, true);
	lab_pair_run(&p, MRC_S);
	assert_int_equal(lab_path_info(&p.hosts[A], 0).state, MRC_PATH_DENIED);
	assert_int_equal(lab_path(&p.hosts[A], MRC_EV_ALLOW, 0, MRC_REASON_NONE), 0);
	lab_pair_run(&p, MRC_S);
	assert_int_equal(lab_path_info(&p.hosts[A], 0).state, MRC_PATH_GOOD);
	lab_pair_fini(&p);
}

static void denied_and_allowed_at_once_comes_back(void **state)
{
	struct lab_pair p;

	lab_pair_up(&p, 2, NULL);
	for (int i = 0; i < 3; i++) {
		lab_path(&p.hosts[A], MRC_EV_DENY, 0, MRC_REASON_NONE);
		lab_path(&p.hosts[A], MRC_EV_ALLOW, 0, MRC_REASON_NONE);
	}
	lab_pair_run(&p, 2 * MRC_S);
	assert_int_equal(lab_path_info(&p.hosts[A], 0).state, MRC_PATH_GOOD);
	lab_pair_fini(&p);
}

static void a_path_that_comes_up_denied_is_closed(void **state)
{
	struct lab_host h;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 1, NULL);
	lab_path(&h, MRC_EV_DENY, 0, MRC_REASON_NONE);
	assert_int_equal(lab_path_up(&h, 0, 1, 1, LAB_BOOT_B, false), 0);
	lab_pump(&h);
	assert_non_null(lab_find(&h, MRC_ACT_FENCE, 0, 0));
	assert_int_equal(lab_path_info(&h, 0).state, MRC_PATH_DENIED);
	assert_null(lab_find(&h, MRC_ACT_POST, 0, 0));
	lab_host_fini(&h);
}

/* ---- epochs ---- */

static void events_of_an_epoch_that_is_over_are_dropped(void **state)
{
	struct lab_host h;
	struct mrc_event_in ev = {.path = {.index = 0, .reason = MRC_REASON_ERROR, .count = 1}};
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_PROBE};
	const enum mrc_event_kind kinds[] = {MRC_EV_PATH_DOWN, MRC_EV_FENCED, MRC_EV_SENT};
	uint32_t old;
	uint64_t taken;

	lab_solo_up(&h, 1, false);
	old = h.conn->paths[0].epoch;
	lab_path(&h, MRC_EV_PATH_DOWN, 0, MRC_REASON_ERROR);
	lab_path_good(&h, 0, false);
	assert_true(h.conn->paths[0].epoch > old);
	for (size_t i = 0; i < MRC_ARRAY_LEN(kinds); i++) {
		ev.kind = kinds[i];
		ev.path.path_epoch = old;
		assert_int_equal(lab_handle(&h, &ev), 0);
		assert_int_equal(h.conn->paths[0].state, MRC_PATH_GOOD);
	}
	/* A frame that was received before the fence and is only now told of. */
	taken = h.conn->paths[0].taken;
	hdr.conn_epoch = h.conn->epoch;
	hdr.path_epoch = old;
	assert_int_equal(lab_arrive(&h, 0, old, &hdr, NULL), 0);
	assert_int_equal(h.conn->paths[0].taken, taken);
	/* One that claims another epoch than its path's is a breach. */
	assert_int_equal(lab_arrive(&h, 0, h.conn->paths[0].epoch, &hdr, NULL), -EPROTO);
	lab_host_fini(&h);
}

/* DESIGN 7.4: a new conn epoch fences every older path epoch at this end. */
static void a_new_conn_epoch_gives_the_old_paths_up(void **state)
{
	struct lab_host h;
	const struct mrc_action *act;
	uint32_t from;

	lab_solo_up(&h, 2, false);
	from = h.log_count;
	assert_int_equal(lab_path_up(&h, 0, LAB_EPOCH + 1, LAB_PATH_EPOCH + 1, 0xb2, false), 0);
	lab_pump(&h);
	act = lab_find(&h, MRC_ACT_FENCE, from, 0);
	assert_non_null(act);
	assert_int_equal(act->path.index, 1);
	assert_int_equal(act->path.path_epoch, LAB_PATH_EPOCH);
	assert_false(lab_path_info(&h, 1).is_connected);
	assert_int_equal(lab_path_info(&h, 1).reason, MRC_REASON_NEW_CONN);
	assert_int_equal(lab_count(&h, MRC_ACT_CONN_RESET, from), 1);
	/* What is said from now on is of the new epoch. */
	for (uint32_t i = 0; lab_find(&h, MRC_ACT_POST, from, i); i++)
		assert_int_equal(lab_find(&h, MRC_ACT_POST, from, i)->post.hdr.conn_epoch,
				 LAB_EPOCH + 1);
	lab_host_fini(&h);
}

static void an_older_path_or_conn_epoch_cannot_begin(void **state)
{
	struct lab_host h;
	const uint32_t epoch = LAB_PATH_EPOCH;

	lab_solo_up(&h, 1, false);
	assert_int_equal(h.conn->paths[0].epoch, epoch);
	assert_int_equal(lab_path_up(&h, 0, LAB_EPOCH, epoch, LAB_BOOT_B, false), -EINVAL);
	assert_int_equal(lab_path_up(&h, 0, LAB_EPOCH, epoch - 1, LAB_BOOT_B, false), -EINVAL);
	assert_int_equal(h.conn->paths[0].state, MRC_PATH_GOOD);
	assert_int_equal(lab_path_up(&h, 0, LAB_EPOCH - 1, epoch + 1, LAB_BOOT_B, false), -EINVAL);
	assert_int_equal(h.conn->epoch, LAB_EPOCH);
	lab_host_fini(&h);
}

static void joining_is_refused_when_things_have_moved_on(void **state)
{
	const struct {
		const char *name;
		struct mrc_auth auth;
		uint64_t boot_id;
		int want;
	} rows[] = {
		{"this conn, a new path epoch",
		 {LAB_EPOCH, LAB_PATH_EPOCH + 1, LAB_EPOCH, LAB_EPOCH, 1, 0},
		 LAB_BOOT_B,
		 0},
		{"this path epoch again",
		 {LAB_EPOCH, LAB_PATH_EPOCH, LAB_EPOCH, LAB_EPOCH, 1, 0},
		 LAB_BOOT_B,
		 -ESTALE},
		{"this conn, another run of the peer",
		 {LAB_EPOCH, LAB_PATH_EPOCH + 1, LAB_EPOCH, LAB_EPOCH, 1, 0},
		 99,
		 -ESTALE},
		{"a new conn", {LAB_EPOCH + 1, LAB_PATH_EPOCH + 1, LAB_EPOCH, 0, 1, 0}, 99, 0},
		{"a new conn, by a HELLO from before this one",
		 {LAB_EPOCH + 1, LAB_PATH_EPOCH + 1, LAB_EPOCH - 1, LAB_EPOCH, 1, 0},
		 LAB_BOOT_B,
		 -ESTALE},
		{"an older conn",
		 {LAB_EPOCH - 1, LAB_PATH_EPOCH + 1, LAB_EPOCH, LAB_EPOCH, 1, 0},
		 LAB_BOOT_B,
		 -ESTALE},
	};
	struct lab_host h;

	lab_solo_up(&h, 1, false);
	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		int r = mrc_conn_join(h.conn, 0, &rows[i].auth, rows[i].boot_id);

		if (r != rows[i].want)
			fail_msg("%s: answer %d, want %d", rows[i].name, r, rows[i].want);
	}
	lab_host_fini(&h);
}

static void what_a_host_says_of_itself_is_what_it_holds(void **state)
{
	struct mrc_hello hello;
	struct lab_host h;

	lab_solo_up(&h, 2, false);
	mrc_conn_hello(h.conn, 1, &hello);
	assert_string_equal(hello.host, "a");
	assert_string_equal(hello.to_host, "b");
	assert_true(hello.boot_id == LAB_BOOT_A && hello.peer_boot_id == LAB_BOOT_B);
	assert_int_equal(hello.conn_epoch, LAB_EPOCH);
	assert_int_equal(hello.conn_epoch_last, LAB_EPOCH);
	assert_int_equal(hello.path_epoch_last, LAB_PATH_EPOCH);
	assert_int_equal(hello.path_id, 1);
	assert_int_equal(hello.version_min, MRC_HELLO_VERSION_MIN);
	assert_int_equal(hello.version_max, MRC_HELLO_VERSION_MAX);
	lab_host_fini(&h);
}

static void a_path_without_a_version_in_common_is_not_joined(void **state)
{
	const struct mrc_auth auth = {.conn_epoch = LAB_EPOCH, .path_epoch = LAB_PATH_EPOCH + 1};
	struct lab_host h;

	lab_solo_up(&h, 2, false);
	assert_int_equal(mrc_conn_join(h.conn, 0, &auth, LAB_BOOT_B), -EPROTONOSUPPORT);
	lab_host_fini(&h);
}

static void a_feature_is_there_when_every_path_has_it(void **state)
{
	struct mrc_event_in ev = {.kind = MRC_EV_PATH_UP,
				  .path = {.path_epoch = LAB_PATH_EPOCH,
					   .conn_epoch = LAB_EPOCH,
					   .peer_boot_id = LAB_BOOT_B,
					   .version = 2,
					   .features = 5}};
	struct mrc_path_info info;
	struct lab_host h;

	lab_host_init(&h, "a", "b", LAB_BOOT_A, 3, NULL);
	assert_false(mrc_conn_has_feature(h.conn, 1)); /* no path is connected */
	assert_int_equal(lab_handle(&h, &ev), 0);
	assert_true(mrc_conn_has_feature(h.conn, 1));
	assert_true(mrc_conn_has_feature(h.conn, 5));
	assert_false(mrc_conn_has_feature(h.conn, 2));
	assert_false(mrc_conn_has_feature(h.conn, 3));
	ev.path.index = 1;
	ev.path.path_id = 1;
	ev.path.features = 0; /* the peer came back as an old program */
	ev.path.version = 0;
	assert_int_equal(lab_handle(&h, &ev), 0);
	assert_false(mrc_conn_has_feature(h.conn, 1));
	mrc_conn_path_info(h.conn, 0, &info);
	assert_int_equal(info.version, 2);
	assert_int_equal(info.features, 5);
	mrc_conn_path_info(h.conn, 1, &info);
	assert_int_equal(info.version, 1);
	mrc_conn_path_info(h.conn, 2, &info);
	assert_int_equal(info.version, 0);
	assert_int_equal(lab_path(&h, MRC_EV_PATH_DOWN, 1, MRC_REASON_CLOSED), 0);
	assert_true(mrc_conn_has_feature(h.conn, 1));
	lab_host_fini(&h);
}

/* ---- time ---- */

/* Whatever state a conn is in: after a TIMER with nothing to do the next one lies ahead. */
static void no_deadline_stays_in_the_past(void **state)
{
	struct mrc_rng rng = {.state = 0x5eed7};

	for (uint32_t round = 0; round < 60; round++) {
		struct lab_pair p;
		uint32_t ids[2];

		lab_pair_up(&p, 1 + round % 3, NULL);
		lab_pair_channel(&p, round % 2, ids);
		for (uint32_t step = 0; step < 30; step++) {
			uint8_t path = (uint8_t)(mrc_rng_next(&rng) % p.path_count);
			uint8_t host = mrc_rng_next(&rng) % 2;

			switch (mrc_rng_next(&rng) % 8) {
			case 0:
				p.is_silent[path][host] = !p.is_silent[path][host];
				break;
			case 1:
				lab_carrier(&p.hosts[host], path, mrc_rng_next(&rng) % 2);
				break;
			case 2:
				lab_path(&p.hosts[host],
					 mrc_rng_next(&rng) % 2 ? MRC_EV_DENY : MRC_EV_ALLOW, path,
					 MRC_REASON_NONE);
				break;
			case 3:
				p.hosts[host].fences = !p.hosts[host].fences;
				break;
			case 4:
				p.hosts[host].finishes = !p.hosts[host].finishes;
				break;
			default:
				lab_send(&p.hosts[host], ids[host], mrc_rng_next(&rng) % 200000,
					 MRC_LVL_COMMITTED, step);
				break;
			}
			/* lab_pair_run() looks at every deadline it meets. */
			lab_pair_run(&p, mrc_rng_next(&rng) % (100 * MRC_MS));
		}
		lab_pair_fini(&p);
	}
}

static void an_idle_conn_is_quiet(void **state)
{
	struct lab_pair p;
	uint32_t before;

	lab_pair_up(&p, 4, NULL);
	lab_pair_run(&p, 3 * MRC_S);
	before = p.hosts[A].log_count;
	lab_pair_run(&p, 10 * MRC_S);
	/* Four paths, a probe each way every 200 ms, with its answer and an ACK or two. */
	assert_in_range(p.hosts[A].log_count - before, 4 * 50, 4 * 50 * 5);
	lab_pair_fini(&p);
}

static void two_engines_given_the_same_do_the_same(void **state)
{
	struct lab_pair p[2];
	uint32_t ids[2];

	for (int i = 0; i < 2; i++) {
		lab_pair_up(&p[i], 2, NULL);
		lab_pair_channel(&p[i], false, ids);
		p[i].is_silent[1][A] = true;
		for (uint32_t n = 0; n < 10; n++) {
			lab_send(&p[i].hosts[A], ids[A], 30000 * n, MRC_LVL_COMMITTED, n);
			lab_pair_run(&p[i], MRC_MS);
		}
		lab_pair_run(&p[i], MRC_S);
	}
	assert_int_equal(p[0].hosts[A].log_count, p[1].hosts[A].log_count);
	for (uint32_t i = 0; i < p[0].hosts[A].log_count; i++) {
		const struct mrc_action *a = &p[0].hosts[A].log[i], *b = &p[1].hosts[A].log[i];

		assert_int_equal(a->kind, b->kind);
		if (a->kind == MRC_ACT_POST)
			assert_memory_equal(&a->post, &b->post,
					    offsetof(struct mrc_act_post, body));
	}
	for (int i = 0; i < 2; i++)
		lab_pair_fini(&p[i]);
}

/* ---- names ---- */

/* The initiator numbers paths, and may have been started anew with its rails in another order. */
static void a_path_that_takes_anothers_number_takes_its_place(void **state)
{
	struct mrc_event_in up = {
		.kind = MRC_EV_PATH_UP,
		.path = {.index = 1,
			 .path_id = 0,
			 .conn_epoch = LAB_EPOCH,
			 .path_epoch = LAB_PATH_EPOCH + 1,
			 .peer_boot_id = LAB_BOOT_B},
	};
	struct lab_host h;
	uint32_t from;

	lab_solo_up(&h, 3, false);
	from = h.log_count;
	assert_int_equal(lab_handle(&h, &up), -EBUSY);
	lab_pump(&h);
	/* The other is closed, without a word to the peer: its number means another path now. */
	assert_int_equal(lab_find(&h, MRC_ACT_FENCE, from, 0)->path.index, 0);
	assert_int_equal(lab_handle(&h, &up), 0);
	assert_ptr_equal(mrc_conn_path_by_id(h.conn, 0), &h.conn->paths[1]);
	assert_null(mrc_conn_path_by_id(h.conn, 1));
	lab_pump(&h);
	assert_int_equal(h.conn->paths[0].reason, MRC_REASON_CLOSED);
	assert_null(lab_posted(&h, MRC_WIRE_PATH_FENCE, from, 0));
	assert_int_equal(h.conn->paths[2].state, MRC_PATH_GOOD);
	lab_host_fini(&h);
}

static void why_a_path_went_down_is_counted(void **state)
{
	const struct {
		enum mrc_path_reason reason;
		uint64_t header_errors, protocol_errors;
	} rows[] = {
		{MRC_REASON_ERROR, 0, 0},
		{MRC_REASON_CORRUPT, 1, 0},
		{MRC_REASON_PROTOCOL, 0, 1},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab_host h;

		lab_solo_up(&h, 1, false);
		lab_path(&h, MRC_EV_PATH_DOWN, 0, rows[i].reason);
		assert_int_equal(lab_path_info(&h, 0).header_errors, rows[i].header_errors);
		assert_int_equal(lab_info(&h).protocol_errors, rows[i].protocol_errors);
		assert_int_equal(lab_path_info(&h, 0).reason, rows[i].reason);
		lab_host_fini(&h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_good_when_enough_probes_are_answered),
		cmocka_unit_test(the_first_frame_of_a_path_epoch_is_path_open),
		cmocka_unit_test(unanswered_probes_end_the_attempt),
		cmocka_unit_test(only_one_host_connects_and_backs_off_without_end),
		cmocka_unit_test(attempts_without_a_carrier_do_not_grow_the_backoff),
		cmocka_unit_test(carrier_loss_moves_fragments_to_the_sibling),
		cmocka_unit_test(moved_fragments_are_counted_for_the_log),
		cmocka_unit_test(the_send_is_not_answered_while_the_rail_may_read),
		cmocka_unit_test(a_single_silent_path_is_not_suspected),
		cmocka_unit_test(when_all_are_silent_none_is_suspected),
		cmocka_unit_test(a_silent_path_among_siblings_is_suspected_in_milliseconds),
		cmocka_unit_test(suspicion_asks_for_the_carrier_and_strips_the_rail),
		cmocka_unit_test(a_false_suspicion_doubles_the_floor_and_costs_no_reconnect),
		cmocka_unit_test(a_path_that_fails_again_and_again_is_found_as_soon_as_at_first),
		cmocka_unit_test(an_answer_that_was_stripped_is_given_again),
		cmocka_unit_test(a_suspected_path_that_stays_silent_is_given_up),
		cmocka_unit_test(a_fence_is_answered_when_it_is_done_and_with_the_count),
		cmocka_unit_test(the_peers_port_status_takes_a_path_out),
		cmocka_unit_test(an_older_port_status_is_ignored),
		cmocka_unit_test(an_answered_probe_outweighs_port_status),
		cmocka_unit_test(our_ports_are_told_with_a_version_that_grows),
		cmocka_unit_test(a_denied_path_carries_nothing_until_allowed),
		cmocka_unit_test(denied_and_allowed_at_once_comes_back),
		cmocka_unit_test(a_path_that_comes_up_denied_is_closed),
		cmocka_unit_test(events_of_an_epoch_that_is_over_are_dropped),
		cmocka_unit_test(a_new_conn_epoch_gives_the_old_paths_up),
		cmocka_unit_test(an_older_path_or_conn_epoch_cannot_begin),
		cmocka_unit_test(joining_is_refused_when_things_have_moved_on),
		cmocka_unit_test(what_a_host_says_of_itself_is_what_it_holds),
		cmocka_unit_test(a_path_without_a_version_in_common_is_not_joined),
		cmocka_unit_test(a_feature_is_there_when_every_path_has_it),
		cmocka_unit_test(no_deadline_stays_in_the_past),
		cmocka_unit_test(an_idle_conn_is_quiet),
		cmocka_unit_test(two_engines_given_the_same_do_the_same),
		cmocka_unit_test(a_path_that_takes_anothers_number_takes_its_place),
		cmocka_unit_test(why_a_path_went_down_is_counted),
	};

	return cmocka_run_group_tests_name("conn_paths", tests, NULL, NULL);
}
