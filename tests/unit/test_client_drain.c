/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_client_drain: what a drain of this host, or of a peer's, means to programs. */
#include "client_side_lab.h"

#include "mrcd_drain.h"

static void host_drain(struct lab *lab, bool is_on)
{
	lab->worker.drain_since_ns = is_on ? mrcd_worker_now(&lab->worker) : 0;
	mrcd_client_side_drain(lab->worker.clients);
	lab_turn(lab);
}

static void peer_drain(struct lab *lab, struct mrcd_peer *peer, bool is_on)
{
	peer->is_draining = is_on;
	mrcd_client_side_peer_drain(lab->worker.clients, peer);
	mrcd_client_side_flush(lab->worker.clients);
}

/* The program is told, and the daemon hears that it has read it. */
static void told(struct lab *lab, struct prog *prog, uint32_t channel, int status)
{
	struct mrc_cqe cqe = prog_expect(prog, MRC_CQE_DRAIN);

	assert_int_equal(cqe.channel, channel);
	assert_int_equal(cqe.status, status);
	assert_true(cqe.flags & MRC_CQE_FLAG_TELL_VISIBLE);
	prog_bell(prog);
	lab_turn(lab);
}

static void answered(struct lab *lab, struct prog *prog, uint32_t op, const char *target, int want)
{
	struct mrc_cqe cqe;

	prog_request(prog, op, target, 0, 5);
	lab_turn(lab);
	cqe = prog_expect(prog, op == MRC_ABI_REQ_LISTEN ? MRC_CQE_LISTENING : MRC_CQE_CONNECTED);
	if (cqe.status != want)
		fail_msg("%s: status %d, want %d", target, cqe.status, want);
}

static void incoming(struct lab *lab, uint32_t id, const char *service)
{
	struct mrc_action act = {.kind = MRC_ACT_CH_INCOMING};

	act.channel.id = id;
	snprintf(act.channel.service, sizeof(act.channel.service), "%s", service);
	lab_perform(lab, &peer_c, act);
}

/* How often c's channels were turned away, and why the last one was. */
static void refused_is(uint32_t count, int outcome)
{
	struct mrc_event_in ev = {0};

	assert_int_equal(peer_saw(&peer_c, MRC_EV_CH_REFUSE, &ev), count);
	assert_int_equal(ev.channel.outcome, outcome);
}

static void a_drained_host_takes_nothing_new_and_what_is_open_goes_on(void **state)
{
	struct lab *lab = *state;
	uint64_t messages, bytes;
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	answered(lab, &prog, MRC_ABI_REQ_LISTEN, "tea", MRC_STATUS_OK);
	host_drain(lab, true);
	told(lab, &prog, 0, MRC_STATUS_DRAINING);
	answered(lab, &prog, MRC_ABI_REQ_LISTEN, "milk", MRC_STATUS_DRAINING);
	answered(lab, &prog, MRC_ABI_REQ_CONNECT, "b/x", MRC_STATUS_DRAINING);
	answered(lab, &prog, MRC_ABI_REQ_CONNECT, "a/tea",
		 MRC_STATUS_DRAINING); /* within the host */
	/* What is wrong otherwise is said as ever. */
	answered(lab, &prog, MRC_ABI_REQ_CONNECT, "z/x", MRC_STATUS_NO_PEER);
	answered(lab, &prog, MRC_ABI_REQ_LISTEN, "a/b", MRC_STATUS_INVALID);
	incoming(lab, 70, "tea");
	refused_is(1, MRC_OUT_DRAINING);
	incoming(lab, 71, "sugar");
	refused_is(2, MRC_OUT_DRAINING);
	prog_expect_nothing(&prog);
	prog_send(&prog, &end, 9);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 1);
	mrcd_client_side_in_flight(lab->worker.clients, &messages, &bytes);
	assert_int_equal(messages, 1);
	assert_int_equal(bytes, 100);
	lab_deliver_eager(lab, &end, 0, 0, 10);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	host_drain(lab, false);
	told(lab, &prog, 0, MRC_STATUS_OK);
	answered(lab, &prog, MRC_ABI_REQ_LISTEN, "milk", MRC_STATUS_OK);
	prog_open(lab, &prog, "b");
	incoming(lab, 72, "tea");
	prog_expect(&prog, MRC_CQE_INCOMING);
	incoming(lab, 73, "sugar");
	refused_is(3, MRC_OUT_NO_SERVICE);
	prog_leave(&prog);
}

static void what_is_not_open_yet_is_refused_when_it_begins(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end = {.peer = &peer_b};
	struct mrc_event_in ev = {0};
	struct prog prog;
	struct mrc_cqe cqe = {0};
	uint32_t id;

	prog_attach(lab, &prog, "x");
	answered(lab, &prog, MRC_ABI_REQ_LISTEN, "tea", MRC_STATUS_OK);
	incoming(lab, 70, "tea");
	id = prog_expect(&prog, MRC_CQE_INCOMING).channel;
	prog_request(&prog, MRC_ABI_REQ_CONNECT, "b/x", 0, 77);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_OPEN, &ev), 1);
	end.engine_id = peer_b.id_next;
	end.cookie = ev.channel.cookie;
	/* Its answer is on its way when the drain begins. */
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_ACCEPT, .channel = id});
	lab->worker.drain_since_ns = mrcd_worker_now(&lab->worker);
	mrcd_client_side_drain(lab->worker.clients);
	lab_turn(lab);
	refused_is(1, MRC_OUT_DRAINING);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_CH_ACCEPT, NULL), 0);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_CLOSE, &ev), 1);
	assert_int_equal(ev.channel.id, end.engine_id);
	for (int i = 0; i < 2; i++) {
		assert_true(prog_take(&prog, &cqe));
		assert_int_equal(cqe.status, MRC_STATUS_DRAINING);
		if (cqe.type == MRC_CQE_CLOSED)
			assert_int_equal(cqe.channel, id);
		else
			assert_int_equal(cqe.user_data, 77);
	}
	told(lab, &prog, 0, MRC_STATUS_DRAINING);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_DOWN, &end));
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end));
	prog_expect_nothing(&prog); /* it was answered once */
	assert_int_equal(lab_number(lab, "x", "channels"), 0);
	assert_int_equal(lab_number(lab, "x", "landing_used_bytes"), 0);
	assert_false(prog_is_ended(&prog));
	prog_leave(&prog);
}

static void a_peers_drain_is_told_on_each_open_channel_to_it(void **state)
{
	struct lab *lab = *state;
	struct pipe_end to_b, to_c, later = {.peer = &peer_b};
	struct mrc_event_in ev = {0};
	struct prog prog;

	prog_attach(lab, &prog, "x");
	to_b = prog_open(lab, &prog, "b");
	to_c = prog_open(lab, &prog, "c");
	prog_request(&prog, MRC_ABI_REQ_CONNECT, "b/x", 0, 5);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_OPEN, &ev), 2);
	later.engine_id = peer_b.id_next;
	later.cookie = ev.channel.cookie;
	peer_drain(lab, &peer_b, true);
	told(lab, &prog, to_b.id, MRC_STATUS_DRAINING);
	prog_expect_nothing(&prog);
	/* One that the peer had accepted before hears of it when it is open. */
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_UP, &later));
	later.id = prog_expect(&prog, MRC_CQE_CONNECTED).channel;
	told(lab, &prog, later.id, MRC_STATUS_DRAINING);
	peer_drain(lab, &peer_b, true);
	prog_expect_nothing(&prog);
	peer_drain(lab, &peer_b, false);
	told(lab, &prog, to_b.id, MRC_STATUS_OK);
	told(lab, &prog, later.id, MRC_STATUS_OK);
	lab_perform(lab, &peer_c, act_channel(MRC_ACT_CH_DOWN, &to_c));
	prog_expect(&prog, MRC_CQE_CLOSED);
	peer_drain(lab, &peer_c, true);
	prog_expect_nothing(&prog);
	prog_leave(&prog);
}

/* So the completion ring has room for all of them, however often an operator changes his mind. */
static void of_each_one_word_lies_unread_and_the_last_one_is_told_after_it(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	for (int i = 0; i < 5; i++) {
		host_drain(lab, i % 2 == 0);
		peer_drain(lab, &peer_b, i % 2 == 0);
	}
	told(lab, &prog, 0, MRC_STATUS_DRAINING);
	told(lab, &prog, end.id, MRC_STATUS_DRAINING);
	prog_expect_nothing(&prog);
	for (int i = 0; i < 4; i++) {
		host_drain(lab, i % 2 == 1);
		peer_drain(lab, &peer_b, i % 2 == 1);
	}
	told(lab, &prog, 0, MRC_STATUS_OK);
	told(lab, &prog, end.id, MRC_STATUS_OK);
	told(lab, &prog, 0, MRC_STATUS_DRAINING);
	told(lab, &prog, end.id, MRC_STATUS_DRAINING);
	prog_expect_nothing(&prog);
	prog_leave(&prog);
}

static void who_attaches_meanwhile_is_told(void **state)
{
	struct lab *lab = *state;
	struct prog prog;

	host_drain(lab, true);
	prog_attach(lab, &prog, "x");
	told(lab, &prog, 0, MRC_STATUS_DRAINING);
	prog_expect_nothing(&prog);
	prog_leave(&prog);
}

/* A library of ABI version 1 takes an entry that it does not know for a broken daemon. */
static void an_older_library_is_refused_and_not_told(void **state)
{
	struct lab *lab = *state;
	struct prog prog;

	prog_version_max = 1;
	prog_attach(lab, &prog, "x");
	prog_version_max = MRC_ABI_VERSION;
	assert_int_equal(prog.welcome.version, 1);
	prog_open(lab, &prog, "b");
	host_drain(lab, true);
	peer_drain(lab, &peer_b, true);
	prog_expect_nothing(&prog);
	answered(lab, &prog, MRC_ABI_REQ_LISTEN, "tea", MRC_STATUS_NO_RESOURCES);
	prog_leave(&prog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		lab_test(a_drained_host_takes_nothing_new_and_what_is_open_goes_on),
		lab_test(what_is_not_open_yet_is_refused_when_it_begins),
		lab_test(a_peers_drain_is_told_on_each_open_channel_to_it),
		lab_test(of_each_one_word_lies_unread_and_the_last_one_is_told_after_it),
		lab_test(who_attaches_meanwhile_is_told),
		lab_test(an_older_library_is_refused_and_not_told),
	};

	return cmocka_run_group_tests_name("client_drain", tests, NULL, NULL);
}
