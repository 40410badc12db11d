/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_client: channels, and what is left when a client dies. */
#include "client_side_lab.h"

/* ---- opening ---- */

static void connect_opens_a_channel_with_its_memory(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in open = {0};
	struct prog prog;

	prog_attach(lab, &prog, "x");
	prog_request(&prog, MRC_ABI_REQ_CONNECT, "b/perf", MRC_ABI_CHANNEL_UNORDERED, 5);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_OPEN, &open), 1);
	assert_string_equal(peer_b.service, "perf");
	assert_true(open.channel.is_unordered);
	assert_false(open.channel.is_unchecked);
	assert_int_equal(open.channel.window, 8);
	assert_int_equal(open.channel.msg_bytes_max, 4U << 20);
	assert_int_equal(open.channel.ring_bytes, 1U << 20);
	assert_int_equal(peer_b.pump_count, 1);
	prog_expect_nothing(&prog); /* the peer may not be up yet: it waits */
	prog_request(&prog, MRC_ABI_REQ_CONNECT, "b/perf", MRC_ABI_CHANNEL_UNCHECKED, 6);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_OPEN, &open), 2);
	assert_false(open.channel.is_unordered);
	assert_true(open.channel.is_unchecked);
	prog_leave(&prog);
}

static void connect_that_fails_is_answered_once(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end = {.peer = &peer_b};
	struct mrc_event_in open = {0};
	struct mrc_action down;
	struct mrc_cqe cqe;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	prog_request(&prog, MRC_ABI_REQ_CONNECT, "b/perf", 0, 5);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_OPEN, &open), 1);
	end.engine_id = peer_b.id_next;
	end.cookie = open.channel.cookie;
	down = act_channel(MRC_ACT_CH_DOWN, &end);
	down.channel.outcome = MRC_OUT_REFUSED;
	down.channel.code = 31;
	lab_perform(lab, &peer_b, down);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end));
	cqe = prog_expect(&prog, MRC_CQE_CONNECTED);
	assert_int_equal(cqe.status, MRC_STATUS_REFUSED);
	assert_int_equal(cqe.code, 31);
	assert_int_equal(cqe.user_data, 5);
	prog_expect_nothing(&prog);
	prog_is_served(lab, &prog);
	assert_int_equal(lab_number(lab, "x", "landing_used_bytes"), 0);
	assert_int_equal(lab_number(lab, "x", "channels"), 0);
	prog_leave(&prog);
}

static void channel_limit_and_the_engines_limit_are_told(void **state)
{
	struct lab *lab = *state;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	peer_b.answer_of[MRC_EV_CH_OPEN] = -ENOSPC;
	prog_request(&prog, MRC_ABI_REQ_CONNECT, "b/x", 0, 0);
	lab_turn(lab);
	assert_int_equal(prog_expect(&prog, MRC_CQE_CONNECTED).status, MRC_STATUS_NO_RESOURCES);
	assert_int_equal(lab_number(lab, "x", "landing_used_bytes"), 0);
	peer_b.answer_of[MRC_EV_CH_OPEN] = 0;
	for (int i = 0; i < 16; i++)
		prog_open(lab, &prog, "b");
	prog_request(&prog, MRC_ABI_REQ_CONNECT, "b/x", 0, 0);
	lab_turn(lab);
	assert_int_equal(prog_expect(&prog, MRC_CQE_CONNECTED).status, MRC_STATUS_NO_RESOURCES);
	prog_leave(&prog);
}

/* All channels of a client find room for a ring, and rings never take a large message's room. */
static void rings_shrink_so_that_every_channel_has_one(void **state)
{
	struct lab *lab = *state;
	uint64_t used = 0;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	for (int i = 0; i < 16; i++) {
		struct pipe_end end = prog_open(lab, &prog, "b");

		assert_int_equal(end.ring_bytes & (end.ring_bytes - 1), 0);
		assert_in_range(end.ring_bytes, 64U << 10, 1U << 20);
		used += end.ring_bytes;
	}
	assert_int_equal(lab_number(lab, "x", "landing_used_bytes"), used);
	assert_in_range(used, 3U << 20, 4U << 20);
	prog_leave(&prog);
}

static void channel_ids_are_never_used_twice(void **state)
{
	struct lab *lab = *state;
	uint32_t ids[50];
	struct prog prog;

	prog_attach(lab, &prog, "x");
	for (int i = 0; i < 50; i++) {
		struct pipe_end end = prog_open(lab, &prog, "b");

		ids[i] = end.id;
		for (int k = 0; k < i; k++)
			assert_int_not_equal(ids[k], ids[i]);
		lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_DOWN, &end));
		lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end));
		assert_int_equal(prog_expect(&prog, MRC_CQE_CLOSED).channel, end.id);
		prog_is_served(lab, &prog);
	}
	assert_int_equal(lab_number(lab, "x", "landing_used_bytes"), 0);
	prog_leave(&prog);
}

/* A peer that opens and aborts channels cannot fill the ring of a client that does not read. */
static void channel_counts_until_its_end_was_read(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end[16];
	struct prog prog;

	prog_attach(lab, &prog, "x");
	for (int i = 0; i < 16; i++)
		end[i] = prog_open(lab, &prog, "b");
	for (int i = 0; i < 16; i++) {
		lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_DOWN, &end[i]));
		lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end[i]));
	}
	assert_int_equal(lab_number(lab, "x", "channels"), 16);
	for (int i = 0; i < 16; i++)
		assert_int_equal(prog_expect(&prog, MRC_CQE_CLOSED).channel, end[i].id);
	prog_is_served(lab, &prog);
	assert_int_equal(lab_number(lab, "x", "channels"), 0);
	prog_leave(&prog);
}

/* ---- incoming ---- */

static uint32_t prog_listen(struct lab *lab, struct prog *prog, const char *name)
{
	struct mrc_cqe cqe;

	prog_request(prog, MRC_ABI_REQ_LISTEN, name, 0, 1);
	lab_turn(lab);
	cqe = prog_expect(prog, MRC_CQE_LISTENING);
	assert_int_equal(cqe.status, MRC_STATUS_OK);
	return cqe.channel;
}

static void lab_incoming(struct lab *lab, uint32_t engine_id, const char *service)
{
	struct mrc_action act = {.kind = MRC_ACT_CH_INCOMING};

	act.channel.id = engine_id;
	snprintf(act.channel.service, sizeof(act.channel.service), "%s", service);
	lab_perform(lab, &peer_b, act);
}

static void incoming_for_nobody_is_refused(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev = {0};

	lab_incoming(lab, 9, "nothing");
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_REFUSE, &ev), 1);
	assert_int_equal(ev.channel.id, 9);
	assert_int_equal(ev.channel.outcome, MRC_OUT_NO_SERVICE);
}

static void incoming_is_announced_and_accepted(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end = {.peer = &peer_b, .engine_id = 77};
	struct mrc_event_in ev = {0};
	struct mrc_action up;
	struct mrc_cqe cqe;
	struct prog prog;
	uint32_t listener;

	prog_attach(lab, &prog, "x");
	listener = prog_listen(lab, &prog, "s");
	lab_incoming(lab, 77, "s");
	cqe = prog_expect(&prog, MRC_CQE_INCOMING);
	assert_int_equal(cqe.number, listener);
	end.id = cqe.channel;
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_ACCEPT, .channel = end.id});
	prog_send(&prog, &end, 8); /* at once: goes when the channel is up */
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_ACCEPT, &ev), 1);
	assert_int_equal(ev.channel.id, 77);
	assert_int_equal(ev.channel.window, 8);
	assert_true(ev.channel.ring_bytes > 0);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 0);
	end.cookie = ev.channel.cookie;
	up = act_channel(MRC_ACT_CH_UP, &end);
	up.channel.msg_bytes_max = 99;
	lab_perform(lab, &peer_b, up);
	cqe = prog_expect(&prog, MRC_CQE_CONNECTED);
	assert_int_equal(cqe.user_data, 0);
	assert_int_equal(cqe.channel, end.id);
	assert_int_equal(cqe.len_bytes, 99);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, &ev), 1);
	assert_int_equal(ev.msg.channel, 77);
	prog_leave(&prog);
}

static void incoming_is_refused_with_the_programs_code(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev = {0};
	struct prog prog;
	uint32_t id;

	prog_attach(lab, &prog, "x");
	prog_listen(lab, &prog, "s");
	lab_incoming(lab, 77, "s");
	id = prog_expect(&prog, MRC_CQE_INCOMING).channel;
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_REFUSE, .channel = id, .code = 3});
	/* Its number is known, so this is no garbage. */
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_ACCEPT, .channel = id});
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_REFUSE, &ev), 1);
	assert_int_equal(ev.channel.outcome, MRC_OUT_REFUSED);
	assert_int_equal(ev.channel.code, 3);
	prog_expect_nothing(&prog);
	assert_int_equal(lab_number(lab, "x", "channels"), 0);
	assert_false(prog_is_ended(&prog));
	prog_leave(&prog);
}

static void incoming_that_ends_before_its_accept_is_closed(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end = {.engine_id = 77}; /* the engine has no cookie of it */
	struct mrc_action down = act_channel(MRC_ACT_CH_DOWN, &end);
	struct mrc_cqe cqe;
	pid_t pid;
	struct prog prog;
	uint32_t id;

	prog_attach(lab, &prog, "x");
	prog_listen(lab, &prog, "s");
	lab_incoming(lab, 77, "s");
	id = prog_expect(&prog, MRC_CQE_INCOMING).channel;
	down.channel.outcome = MRC_OUT_PEER_DIED;
	lab_perform(lab, &peer_c, down); /* another peer's 77 */
	prog_expect_nothing(&prog);
	lab_perform(lab, &peer_b, down);
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_ACCEPT, .channel = id});
	lab_turn(lab);
	/* What it has not read it holds the peer for. */
	assert_string_equal(mrcd_client_side_holder(lab->worker.clients, &peer_b, &pid), "x");
	assert_int_equal(pid, getpid());
	assert_null(mrcd_client_side_holder(lab->worker.clients, &peer_c, &pid));
	cqe = prog_expect(&prog, MRC_CQE_CLOSED);
	assert_int_equal(cqe.channel, id);
	assert_int_equal(cqe.status, MRC_STATUS_PEER_DIED);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_ACCEPT, NULL), 0);
	prog_is_served(lab, &prog);
	assert_int_equal(lab_number(lab, "x", "channels"), 0);
	assert_null(mrcd_client_side_holder(lab->worker.clients, &peer_b, &pid));
	prog_leave(&prog);
}

static void incoming_beyond_the_clients_channels_is_refused(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev = {0};
	struct prog prog;

	prog_attach(lab, &prog, "x");
	prog_listen(lab, &prog, "s");
	for (uint32_t i = 0; i < 20; i++)
		lab_incoming(lab, 100 + i, "s");
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_REFUSE, &ev), 4);
	assert_int_equal(ev.channel.outcome, MRC_OUT_NO_RESOURCES);
	assert_false(prog_is_ended(&prog));
	prog_leave(&prog);
}

static void backlog_of_a_listener_has_a_limit(void **state)
{
	struct mrc_cqe cqe = {0};
	struct prog prog;
	struct lab *lab;

	lab_teardown(state);
	lab = calloc(1, sizeof(*lab));
	*state = lab;
	lab_begin(lab);
	lab->conf.clients.channels_max = 200;
	lab->conf.clients.landing_arena_bytes = 64U << 20;
	lab_start(lab);
	prog_attach(lab, &prog, "x");
	prog_listen(lab, &prog, "s");
	for (uint32_t i = 0; i < 70; i++)
		lab_incoming(lab, 1000 + i, "s");
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_REFUSE, NULL), 6);
	/* Each answer makes room for one. */
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t id = prog_expect(&prog, MRC_CQE_INCOMING).channel;

		prog_submit(&prog, (struct mrc_sqe){.op = i % 2 ? MRC_SQE_ACCEPT : MRC_SQE_REFUSE,
						    .channel = id});
		lab_turn(lab);
	}
	assert_false(prog_peek(&prog, &cqe));
	peer_b.event_count = 0;
	for (uint32_t i = 0; i < 65; i++)
		lab_incoming(lab, 2000 + i, "s");
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_REFUSE, NULL), 1);
	prog_leave(&prog);
}

static void unlisten_turns_away_who_waits(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev = {0};
	struct prog prog;
	uint32_t listener, id;

	prog_attach(lab, &prog, "x");
	listener = prog_listen(lab, &prog, "s");
	lab_incoming(lab, 77, "s");
	id = prog_expect(&prog, MRC_CQE_INCOMING).channel;
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_UNLISTEN, .channel = listener});
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_REFUSE, &ev), 1);
	assert_int_equal(ev.channel.outcome, MRC_OUT_NO_SERVICE);
	assert_int_equal(prog_expect(&prog, MRC_CQE_CLOSED).channel, id);
	lab_incoming(lab, 78, "s");
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_REFUSE, NULL), 2);
	prog_leave(&prog);
}

/* ---- death ---- */

static void commit_before_exit_counts(void **state)
{
	struct lab *lab = *state;
	struct mrc_sqe *sq;
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	lab_deliver_eager(lab, &end, 0, 0, 10);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	sq = (struct mrc_sqe *)(void *)(prog.rings + prog.shm->sq_offset);
	sq[0] = (struct mrc_sqe){.op = MRC_SQE_RELEASE, .channel = end.id};
	prog.shm->sq_tail = 1; /* and killed before it could ring */
	prog_leave(&prog);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_VISIBLE, NULL), 1);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_RELEASE, NULL), 1);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_ABORT, NULL), 1);
	assert_int_equal(peer_b.events[peer_b.event_count - 1].kind, MRC_EV_CH_ABORT);
}

static void dead_clients_memory_is_freed_by_draining(void **state)
{
	struct lab *lab = *state;
	struct mrc_place place = {0};
	struct mrc_event_in send_ev = {0};
	struct mrc_action act;
	struct pipe_end b, c;
	struct prog prog;
	uint64_t addr;

	prog_attach(lab, &prog, "x");
	b = prog_open(lab, &prog, "b");
	c = prog_open(lab, &prog, "c");
	prog_send(&prog, &b, 1);
	peer_c.credit = 0;
	prog_send(&prog, &c, 2);
	lab_turn(lab);
	peer_saw(&peer_b, MRC_EV_SEND, &send_ev);
	addr = lab_deliver_large(lab, &b, 0, 4096);
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_WANT, &b, 1, 0, 4096));
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_WANT, &b, 2, 0, 4U << 20));
	place.channel_cookie = b.cookie;
	place.addr = addr;
	assert_non_null(mrcd_landing_memory(&lab->worker, &place, 4096));
	assert_non_null(mrcd_send_memory(&lab->worker, b.cookie, 64, 100));

	prog_leave(&prog);
	lab_turn(lab);
	assert_null(mrcd_landing_memory(&lab->worker, &place, 4096));
	assert_null(mrcd_send_memory(&lab->worker, b.cookie, 64, 100));
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_ABORT, NULL), 1);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_CH_ABORT, NULL), 1);
	assert_int_equal(mrcd_client_side_count(lab->worker.clients), 0);
	assert_int_equal(lab_number(lab, "x", "channels"), 2);

	/* The engine winds up, and nothing it says finds anybody. */
	act = act_msg(MRC_ACT_DONE, &b, 0, 0, 0);
	act.msg.cookie = send_ev.msg.cookie;
	lab_perform(lab, &peer_b, act);
	lab_deliver_eager(lab, &b, 3, 0, 10);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_DOWN, &b));
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_FREE, &b, 0, addr, 4096));
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &b));
	lab_turn(lab);
	assert_int_equal(lab_number(lab, "x", "channels"), 1);
	lab_perform(lab, &peer_c, act_channel(MRC_ACT_CH_FREE, &c));
	lab_turn(lab);
	assert_int_equal(lab_number(lab, "x", "channels"), -1); /* gone */

	/* Its slot serves another, whom the old cookies do not name. */
	prog_attach(lab, &prog, "y");
	prog_open(lab, &prog, "b");
	assert_null(mrcd_landing_memory(&lab->worker, &place, 4096));
	assert_null(mrcd_send_memory(&lab->worker, b.cookie, 64, 100));
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &b));
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_DOWN, &b));
	prog_is_served(lab, &prog);
	prog_leave(&prog);
}

static void death_in_every_state_of_a_channel_frees_all(void **state)
{
	static const char *const states[] = {"connecting", "incoming", "accepting", "up",
					     "closing",    "down",     "held"};
	struct lab *lab = *state;

	for (size_t i = 0; i < MRC_ARRAY_LEN(states); i++) {
		const char *name = states[i];
		bool is_incoming = strcmp(name, "incoming") == 0 || strcmp(name, "accepting") == 0;
		struct pipe_end end = {.peer = &peer_b, .engine_id = 77};
		struct mrc_event_in ev = {0};
		struct prog prog;

		prog_attach(lab, &prog, "x");
		if (strcmp(name, "connecting") == 0) {
			prog_request(&prog, MRC_ABI_REQ_CONNECT, "b/x", 0, 0);
			lab_turn(lab);
			assert_true(peer_saw(&peer_b, MRC_EV_CH_OPEN, &ev) > 0);
			end.cookie = ev.channel.cookie;
		} else if (is_incoming) {
			prog_listen(lab, &prog, "s");
			lab_incoming(lab, 77, "s");
			end.id = prog_expect(&prog, MRC_CQE_INCOMING).channel;
			if (strcmp(name, "accepting") == 0) {
				prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_ACCEPT,
								    .channel = end.id});
				lab_turn(lab);
				assert_true(peer_saw(&peer_b, MRC_EV_CH_ACCEPT, &ev) > 0);
				end.cookie = ev.channel.cookie;
			}
		} else {
			end = prog_open(lab, &prog, "b");
		}
		if (strcmp(name, "closing") == 0)
			prog_submit(&prog,
				    (struct mrc_sqe){.op = MRC_SQE_CLOSE, .channel = end.id});
		if (strcmp(name, "held") == 0)
			lab_deliver_large(lab, &end, 0, 4096);
		if (strcmp(name, "down") == 0 || strcmp(name, "held") == 0)
			lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_DOWN, &end));
		if (strcmp(name, "held") == 0)
			lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end));
		lab_turn(lab);
		prog_leave(&prog);
		lab_turn(lab);
		if (end.cookie != 0)
			lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end));
		lab_turn(lab);
		if (lab_number(lab, "x", "channels") != -1)
			fail_msg("a client that died %s is still there", name);
	}
}

static void channel_is_described_for_people(void **state)
{
	struct lab *lab = *state;
	json_t *object = json_object();
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "trainer");
	end = prog_open(lab, &prog, "b");
	mrcd_client_side_describe(lab->worker.clients, end.cookie, object);
	assert_string_equal(json_string_value(json_object_get(object, "client")), "trainer");
	assert_string_equal(json_string_value(json_object_get(object, "service")), "x");
	assert_int_equal(json_integer_value(json_object_get(object, "pid")), getpid());
	json_object_clear(object);
	mrcd_client_side_describe(lab->worker.clients, end.cookie + 1, object);
	assert_int_equal(json_object_size(object), 0);
	json_decref(object);
	prog_leave(&prog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		lab_test(connect_opens_a_channel_with_its_memory),
		lab_test(connect_that_fails_is_answered_once),
		lab_test(channel_limit_and_the_engines_limit_are_told),
		lab_test(rings_shrink_so_that_every_channel_has_one),
		lab_test(channel_ids_are_never_used_twice),
		lab_test(channel_counts_until_its_end_was_read),
		lab_test(incoming_for_nobody_is_refused),
		lab_test(incoming_is_announced_and_accepted),
		lab_test(incoming_is_refused_with_the_programs_code),
		lab_test(incoming_that_ends_before_its_accept_is_closed),
		lab_test(incoming_beyond_the_clients_channels_is_refused),
		lab_test(backlog_of_a_listener_has_a_limit),
		lab_test(unlisten_turns_away_who_waits),
		lab_test(commit_before_exit_counts),
		lab_test(dead_clients_memory_is_freed_by_draining),
		lab_test(death_in_every_state_of_a_channel_frees_all),
		lab_test(channel_is_described_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
