/* SPDX-License-Identifier: BSD-2-Clause */
/* test_conn_host - that a host is being drained, told to the peer's engine */
#include "engine_lab.h"

#define A 0
#define B 1

static void drain(struct lab_host *h, bool is_draining)
{
	struct mrc_event_in ev = {.kind = MRC_EV_HOST_DRAIN, .host = {.is_draining = is_draining}};

	assert_int_equal(lab_handle(h, &ev), 0);
}

static void pair_up(struct lab_pair *p, uint32_t features)
{
	lab_pair_init(p, 2, NULL);
	p->hosts[A].features = p->hosts[B].features = features;
	lab_timer(&p->hosts[A]);
	lab_pair_run(p, 20 * MRC_MS);
}

/* What this host was told of its peer, so often, and last. */
static void heard_is(const struct lab_host *h, uint32_t count, bool is_draining)
{
	const struct mrc_action *last = lab_find(h, MRC_ACT_PEER_DRAIN, 0, count - 1);

	assert_int_equal(lab_count(h, MRC_ACT_PEER_DRAIN, 0), count);
	assert_non_null(last);
	assert_int_equal(last->host.is_draining, is_draining);
	assert_int_equal(lab_info(h).is_peer_draining, is_draining);
}

static void the_peer_hears_that_a_drain_begins_and_ends(void **state)
{
	struct lab_pair p;

	pair_up(&p, MRC_FEATURE_HOST_DRAIN);
	drain(&p.hosts[A], true);
	lab_pair_run(&p, MRC_MS);
	heard_is(&p.hosts[B], 1, true);
	drain(&p.hosts[A], true); /* said twice is said once */
	lab_pair_run(&p, 5 * MRC_S);
	heard_is(&p.hosts[B], 1, true);
	assert_int_equal(lab_count(&p.hosts[A], MRC_ACT_PEER_DRAIN, 0), 0);
	drain(&p.hosts[A], false);
	lab_pair_run(&p, MRC_MS);
	heard_is(&p.hosts[B], 2, false);
	lab_pair_fini(&p);
}

static void who_has_not_agreed_on_it_is_not_told(void **state)
{
	const struct mrc_act_post *probe;
	struct lab_pair p;
	uint32_t from;

	pair_up(&p, MRC_FEATURE_ABOUT);
	from = p.hosts[A].log_count;
	drain(&p.hosts[A], true);
	lab_pair_run(&p, 5 * MRC_S);
	assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_PEER_DRAIN, 0), 0);
	for (uint32_t n = 0; (probe = lab_posted(&p.hosts[A], MRC_WIRE_PROBE, from, n)); n++)
		assert_int_equal(probe->hdr.addr & MRC_WIRE_HOST_DRAINING, 0);
	lab_pair_fini(&p);
}

/* The same conn goes on after its daemon was upgraded, with the versions it has heard. */
static void who_comes_to_know_it_is_told(void **state)
{
	struct lab_pair p;

	pair_up(&p, MRC_FEATURE_ABOUT);
	drain(&p.hosts[A], true);
	lab_pair_run(&p, 100 * MRC_MS);
	assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_PEER_DRAIN, 0), 0);
	for (uint8_t i = 0; i < 2; i++)
		p.is_silent[i][A] = p.is_silent[i][B] = true;
	lab_pair_run(&p, MRC_S);
	memset(p.is_silent, 0, sizeof(p.is_silent));
	p.hosts[A].features = p.hosts[B].features = MRC_FEATURE_HOST_DRAIN;
	lab_pair_run(&p, 5 * MRC_S);
	heard_is(&p.hosts[B], 1, true);
	lab_pair_fini(&p);
}

/* Whatever was on its way: the next path epoch begins with a probe that says it. */
static void it_is_told_after_all_paths_were_lost(void **state)
{
	struct lab_pair p;

	pair_up(&p, MRC_FEATURE_HOST_DRAIN);
	for (uint8_t i = 0; i < 2; i++) {
		lab_carrier(&p.hosts[A], i, false);
		p.is_cut[i] = true;
	}
	drain(&p.hosts[A], true);
	lab_pair_run(&p, 100 * MRC_MS);
	assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_PEER_DRAIN, 0), 0);
	p.is_cut[1] = false;
	lab_carrier(&p.hosts[A], 1, true);
	lab_pair_run(&p, 5 * MRC_S);
	heard_is(&p.hosts[B], 1, true);
	lab_pair_fini(&p);
}

static int say(struct lab_host *h, uint32_t version, uint64_t status)
{
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_PROBE, .offset = version, .addr = status};

	return lab_feed(h, 0, hdr, NULL);
}

static void an_earlier_word_does_not_undo_a_later_one(void **state)
{
	struct lab_host h;

	lab_solo_up(&h, 1, false);
	h.conn->paths[0].features = MRC_FEATURE_HOST_DRAIN;
	assert_int_equal(say(&h, 7, MRC_WIRE_HOST_DRAINING), 0);
	lab_pump(&h);
	heard_is(&h, 1, true);
	assert_int_equal(say(&h, 6, 0), 0);
	assert_int_equal(say(&h, 7, 0), 0);
	lab_pump(&h);
	heard_is(&h, 1, true);
	/* A path that went down does not end the drain. */
	assert_int_equal(say(&h, 8, MRC_WIRE_HOST_DRAINING | 2), 0);
	lab_pump(&h);
	heard_is(&h, 1, true);
	assert_int_equal(say(&h, 9, 2), 0);
	lab_pump(&h);
	heard_is(&h, 2, false);
	lab_host_fini(&h);
}

static void there_and_back_before_anybody_looked_is_no_news(void **state)
{
	struct lab_host h;

	lab_solo_up(&h, 1, false);
	h.conn->paths[0].features = MRC_FEATURE_HOST_DRAIN;
	assert_int_equal(say(&h, 7, MRC_WIRE_HOST_DRAINING), 0);
	assert_int_equal(say(&h, 8, 0), 0);
	lab_pump(&h);
	assert_int_equal(lab_count(&h, MRC_ACT_PEER_DRAIN, 0), 0);
	lab_host_fini(&h);
}

static void another_run_of_the_peer_is_not_drained_before_it_says_so(void **state)
{
	struct lab_pair p;

	pair_up(&p, MRC_FEATURE_HOST_DRAIN);
	drain(&p.hosts[A], true);
	lab_pair_run(&p, MRC_MS);
	heard_is(&p.hosts[B], 1, true);
	mrc_conn_reset(p.hosts[B].conn, 99, LAB_BOOT_A + 1);
	lab_pump(&p.hosts[B]);
	heard_is(&p.hosts[B], 2, false);
	lab_pair_fini(&p);
}

/* ---- drills ---- */

static void drill(struct lab_host *h, uint8_t index, bool is_on)
{
	struct mrc_event_in ev = {.kind = MRC_EV_DRILL, .path = {.index = index, .is_up = is_on}};

	assert_int_equal(lab_handle(h, &ev), 0);
}

/* What this host was told of drills of its peer, so often, and last. */
static void drilled_is(const struct lab_host *h, uint32_t count, uint32_t paths)
{
	const struct mrc_action *last = lab_find(h, MRC_ACT_PEER_DRILL, 0, count - 1);

	assert_int_equal(lab_count(h, MRC_ACT_PEER_DRILL, 0), count);
	assert_non_null(last);
	assert_int_equal(last->host.paths_drilled, paths);
}

static void the_peer_hears_which_paths_are_drilled(void **state)
{
	struct lab_pair p;

	pair_up(&p, MRC_FEATURE_DRILL);
	assert_true(lab_info(&p.hosts[A]).is_status_told);
	drill(&p.hosts[A], 1, true);
	assert_false(lab_info(&p.hosts[A]).is_status_told);
	lab_pair_run(&p, MRC_MS);
	assert_true(lab_info(&p.hosts[A]).is_status_told);
	drilled_is(&p.hosts[B], 1, 2);
	drill(&p.hosts[A], 1, true); /* said twice is said once */
	/* It is told over what is left, and the path is still the one. */
	p.is_silent[1][A] = p.is_silent[1][B] = true;
	lab_pair_run(&p, 5 * MRC_S);
	drilled_is(&p.hosts[B], 1, 2);
	assert_int_equal(lab_path_info(&p.hosts[B], 1).state, MRC_PATH_CONNECTING);
	assert_int_equal(lab_count(&p.hosts[A], MRC_ACT_PEER_DRILL, 0), 0);
	drill(&p.hosts[A], 1, false);
	lab_pair_run(&p, MRC_MS);
	drilled_is(&p.hosts[B], 2, 0);
	drill(&p.hosts[B], 0, true);
	lab_pair_run(&p, MRC_MS);
	drilled_is(&p.hosts[A], 1, 1);
	lab_pair_fini(&p);
}

static void who_does_not_know_drills_is_told_of_none(void **state)
{
	const struct mrc_act_post *probe;
	struct lab_pair p;
	uint32_t from;

	pair_up(&p, MRC_FEATURE_HOST_DRAIN);
	from = p.hosts[A].log_count;
	drill(&p.hosts[A], 1, true);
	drain(&p.hosts[A], true);
	lab_pair_run(&p, MRC_S);
	assert_int_equal(lab_count(&p.hosts[B], MRC_ACT_PEER_DRILL, 0), 0);
	for (uint32_t n = 0; (probe = lab_posted(&p.hosts[A], MRC_WIRE_PROBE, from, n)); n++)
		assert_int_equal(probe->hdr.addr & ~MRC_WIRE_HOST_DRAINING, 0);
	/* It may know one of them, and not the other. */
	heard_is(&p.hosts[B], 1, true);
	lab_pair_fini(&p);
}

static void a_path_that_comes_back_into_a_drill_is_told_of_it(void **state)
{
	struct lab_pair p;

	pair_up(&p, MRC_FEATURE_ABOUT);
	drill(&p.hosts[A], 1, true);
	lab_pair_run(&p, 100 * MRC_MS);
	for (uint8_t i = 0; i < 2; i++)
		p.is_silent[i][A] = p.is_silent[i][B] = true;
	lab_pair_run(&p, MRC_S);
	memset(p.is_silent, 0, sizeof(p.is_silent));
	p.hosts[A].features = p.hosts[B].features = MRC_FEATURE_DRILL;
	lab_pair_run(&p, 5 * MRC_S);
	drilled_is(&p.hosts[B], 1, 2);
	lab_pair_fini(&p);
}

static void another_run_of_the_peer_drills_nothing_before_it_says_so(void **state)
{
	struct lab_pair p;

	pair_up(&p, MRC_FEATURE_DRILL);
	drill(&p.hosts[A], 0, true);
	lab_pair_run(&p, MRC_MS);
	drilled_is(&p.hosts[B], 1, 1);
	mrc_conn_reset(p.hosts[B].conn, 99, LAB_BOOT_A + 1);
	lab_pump(&p.hosts[B]);
	drilled_is(&p.hosts[B], 2, 0);
	assert_false(lab_info(&p.hosts[B]).is_status_told);
	lab_pair_fini(&p);
}

static void a_word_of_drills_is_of_known_paths_and_undone_by_a_later_one(void **state)
{
	struct lab_host h;

	lab_solo_up(&h, 1, false);
	h.conn->paths[0].features = MRC_FEATURE_DRILL;
	/* Paths that do not exist, and one that does. */
	assert_int_equal(say(&h, 7, 0xffffULL << MRC_WIRE_DRILLED_SHIFT), 0);
	lab_pump(&h);
	drilled_is(&h, 1, 1);
	assert_int_equal(say(&h, 6, 0), 0);
	lab_pump(&h);
	drilled_is(&h, 1, 1);
	/* There and back before anybody looked. */
	assert_int_equal(say(&h, 8, 0), 0);
	assert_int_equal(say(&h, 9, 1ULL << MRC_WIRE_DRILLED_SHIFT), 0);
	lab_pump(&h);
	drilled_is(&h, 1, 1);
	assert_int_equal(lab_path_info(&h, 0).state, MRC_PATH_GOOD);
	/* By a path that knows nothing of drills the bits mean nothing. */
	h.conn->paths[0].features = MRC_FEATURE_HOST_DRAIN;
	assert_int_equal(say(&h, 10, 0xffffULL << MRC_WIRE_DRILLED_SHIFT), 0);
	lab_pump(&h);
	drilled_is(&h, 2, 0);
	assert_int_equal(lab_handle(&h, &(struct mrc_event_in){.kind = MRC_EV_DRILL,
							       .path = {.index = 1}}),
			 -EINVAL);
	lab_host_fini(&h);
}

static void a_path_without_a_number_is_in_nobody_s_drill(void **state)
{
	struct lab_host h;

	lab_solo_up(&h, 2, false);
	h.conn->paths[0].features = MRC_FEATURE_DRILL;
	h.conn->paths[1].is_known = false;
	assert_int_equal(say(&h, 7, 3ULL << MRC_WIRE_DRILLED_SHIFT), 0);
	lab_pump(&h);
	drilled_is(&h, 1, 1);
	lab_host_fini(&h);
}

static void the_next_path_in_a_place_is_in_no_drill(void **state)
{
	const struct mrc_event_in deny = {.kind = MRC_EV_DENY, .path = {.index = 1}};
	struct lab_host h;

	lab_solo_up(&h, 2, false);
	h.conn->paths[0].features = MRC_FEATURE_DRILL;
	drill(&h, 1, true);
	assert_int_equal(say(&h, 7, 2ULL << MRC_WIRE_DRILLED_SHIFT), 0);
	lab_pump(&h);
	drilled_is(&h, 1, 2);
	assert_int_equal(lab_handle(&h, &deny), 0);
	h.conn->paths[1].is_connected = h.conn->paths[1].is_connecting = false;
	assert_int_equal(mrc_conn_path_remove(h.conn, 1), 0);
	assert_int_equal(mrc_conn_path_add(h.conn, 1, h.now_ns), 0);
	lab_pump(&h);
	drilled_is(&h, 2, 0);
	assert_int_equal(h.conn->drilled, 0);
	lab_host_fini(&h);
}

/* ---- words ---- */

/* B turns a channel of a's away because it is drained: what a's program is told. */
static int refused_as(uint32_t features)
{
	struct mrc_event_in refuse = {.kind = MRC_EV_CH_REFUSE,
				      .channel = {.outcome = MRC_OUT_DRAINING}};
	const struct mrc_action *act;
	struct lab_pair p;
	uint32_t id;
	int outcome;

	pair_up(&p, features);
	p.hosts[B].accepts = false;
	assert_int_equal(lab_open_at(&p.hosts[A], "svc", false, &id), 0);
	lab_pair_run(&p, MRC_MS);
	act = lab_find(&p.hosts[B], MRC_ACT_CH_INCOMING, 0, 0);
	assert_non_null(act);
	refuse.channel.id = act->channel.id;
	assert_int_equal(lab_handle(&p.hosts[B], &refuse), 0);
	lab_pair_run(&p, MRC_MS);
	act = lab_find(&p.hosts[A], MRC_ACT_CH_DOWN, 0, 0);
	assert_non_null(act);
	outcome = act->channel.outcome;
	lab_pair_fini(&p);
	return outcome;
}

static void a_refusal_says_why_in_words_that_the_peer_knows(void **state)
{
	assert_int_equal(refused_as(MRC_FEATURE_HOST_DRAIN), MRC_OUT_DRAINING);
	assert_int_equal(refused_as(0), MRC_OUT_NO_RESOURCES);
}

/* What a's program is told when its peer says that for a reason, in this frame. */
static int heard_as(uint8_t type, uint32_t features)
{
	const struct lab_state s = {.ring_limit = LAB_RING_BYTES, .msg_limit = LAB_WINDOW};
	struct mrc_wire_hdr hdr = {.type = type, .arg = (uint32_t)MRC_OUT_DRAINING};
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
	const struct mrc_action *down;
	struct lab_host h;
	uint32_t id;
	int outcome;

	lab_solo_up(&h, 1, false);
	h.conn->paths[0].features = features;
	assert_int_equal(lab_open_at(&h, "svc", false, &id), 0);
	lab_pump(&h);
	hdr.channel = mrc_conn_channel(h.conn, id)->wire_id;
	hdr.msg = h.conn->ctl_taken;
	if (type == MRC_WIRE_RESET) {
		hdr.body_len = lab_state_body(body, &s);
		body[hdr.body_len++] = 0; /* nothing was posted on any path */
	}
	assert_int_equal(lab_feed(&h, 0, hdr, body), 0);
	lab_pump(&h);
	down = lab_find(&h, MRC_ACT_CH_DOWN, 0, 0);
	assert_non_null(down);
	outcome = down->channel.outcome;
	lab_host_fini(&h);
	return outcome;
}

static void a_drain_is_a_reason_where_it_was_agreed_on(void **state)
{
	assert_int_equal(heard_as(MRC_WIRE_REFUSE, MRC_FEATURE_HOST_DRAIN), MRC_OUT_DRAINING);
	assert_int_equal(heard_as(MRC_WIRE_REFUSE, 0), MRC_OUT_INVALID);
	assert_int_equal(heard_as(MRC_WIRE_RESET, MRC_FEATURE_HOST_DRAIN), MRC_OUT_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_peer_hears_that_a_drain_begins_and_ends),
		cmocka_unit_test(who_has_not_agreed_on_it_is_not_told),
		cmocka_unit_test(who_comes_to_know_it_is_told),
		cmocka_unit_test(it_is_told_after_all_paths_were_lost),
		cmocka_unit_test(an_earlier_word_does_not_undo_a_later_one),
		cmocka_unit_test(there_and_back_before_anybody_looked_is_no_news),
		cmocka_unit_test(another_run_of_the_peer_is_not_drained_before_it_says_so),
		cmocka_unit_test(the_peer_hears_which_paths_are_drilled),
		cmocka_unit_test(who_does_not_know_drills_is_told_of_none),
		cmocka_unit_test(a_path_that_comes_back_into_a_drill_is_told_of_it),
		cmocka_unit_test(another_run_of_the_peer_drills_nothing_before_it_says_so),
		cmocka_unit_test(a_word_of_drills_is_of_known_paths_and_undone_by_a_later_one),
		cmocka_unit_test(a_path_without_a_number_is_in_nobody_s_drill),
		cmocka_unit_test(the_next_path_in_a_place_is_in_no_drill),
		cmocka_unit_test(a_refusal_says_why_in_words_that_the_peer_knows),
		cmocka_unit_test(a_drain_is_a_reason_where_it_was_agreed_on),
	};

	return cmocka_run_group_tests_name("conn_host", tests, NULL, NULL);
}
