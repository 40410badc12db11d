/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_client: messages both ways, and the memory they lie in. */
#include "client_side_lab.h"

/* ---- sending ---- */

static void send_reaches_the_engine_and_its_outcome_the_client(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev = {0};
	struct mrc_action done;
	struct pipe_end end;
	struct mrc_cqe cqe;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	memcpy(prog.send + 64, "hello", 6);
	prog_submit(&prog, (struct mrc_sqe){
				   .op = MRC_SQE_SEND,
				   .level = MRC_LEVEL_VISIBLE,
				   .channel = end.id,
				   .user_data = 0xabcdef0123456789,
				   .offset = 64,
				   .len_bytes = 6,
				   .deadline_ns = 1ULL << 62,
			   });
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, &ev), 1);
	assert_int_equal(ev.msg.channel, end.engine_id);
	assert_int_equal(ev.msg.level, MRC_LVL_VISIBLE);
	assert_int_equal(ev.msg.addr, 64);
	assert_int_equal(ev.msg.len, 6);
	assert_int_equal(ev.msg.deadline_ns, 1ULL << 62);
	assert_string_equal(mrcd_send_memory(&lab->worker, end.cookie, ev.msg.addr, ev.msg.len),
			    "hello");
	assert_int_equal(lab_number(lab, "x", "sends_outstanding"), 1);
	done = act_msg(MRC_ACT_DONE, &end, 0, 0, 0);
	done.msg.cookie = ev.msg.cookie;
	done.msg.outcome = MRC_OUT_REJECTED;
	done.msg.level = MRC_LVL_VISIBLE;
	done.msg.code = 17;
	lab_perform(lab, &peer_b, done);
	cqe = prog_expect(&prog, MRC_CQE_SENT);
	assert_int_equal(cqe.user_data, 0xabcdef0123456789);
	assert_int_equal(cqe.channel, end.id);
	assert_int_equal(cqe.status, MRC_STATUS_REJECTED);
	assert_int_equal(cqe.level, MRC_LEVEL_VISIBLE);
	assert_int_equal(cqe.code, 17);
	assert_int_equal(lab_number(lab, "x", "sends_outstanding"), 0);
	prog_leave(&prog);
}

static void send_that_the_engine_does_not_take_is_answered(void **state)
{
	static const struct {
		int answer, want;
	} cases[] = {
		{-EMSGSIZE, MRC_STATUS_TOO_BIG},
		{-EINVAL, MRC_STATUS_INVALID},
		{-ENOENT, MRC_STATUS_CLOSED},
	};
	struct lab *lab = *state;
	struct pipe_end end;
	struct mrc_cqe cqe;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		peer_b.answer_of[MRC_EV_SEND] = cases[i].answer;
		prog_send(&prog, &end, i);
		lab_turn(lab);
		cqe = prog_expect(&prog, MRC_CQE_SENT);
		assert_int_equal(cqe.status, cases[i].want);
		assert_int_equal(cqe.level, MRC_LEVEL_NONE);
		assert_int_equal(cqe.user_data, i);
	}
	prog_leave(&prog);
}

static void sends_without_credit_hold_up_no_other_channel(void **state)
{
	struct lab *lab = *state;
	struct pipe_end stuck, free_one;
	struct mrc_event_in ev = {0};
	struct prog prog;

	prog_attach(lab, &prog, "x");
	stuck = prog_open(lab, &prog, "b");
	free_one = prog_open(lab, &prog, "c");
	peer_b.credit = 2;
	for (uint64_t i = 0; i < 20; i++)
		prog_send(&prog, &stuck, i);
	prog_send(&prog, &free_one, 100);
	lab_turn(lab);
	assert_int_equal(prog.shm->sq_head, 21); /* the ring is empty all the same */
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 2);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_SEND, NULL), 1);
	/* More credit, no word of it: nothing is tried before CH_ROOM, and order is kept. */
	peer_b.credit = 3;
	prog_send(&prog, &stuck, 20);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 2);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_ROOM, &stuck));
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, &ev), 5);
	assert_int_equal(ev.msg.cookie & UINT32_MAX, 4); /* the fifth send's slot */
	prog_leave(&prog);
}

static void close_waits_for_the_sends_before_it(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct mrc_cqe cqe;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	peer_b.credit = 1;
	prog_send(&prog, &end, 1);
	prog_send(&prog, &end, 2);
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_CLOSE, .channel = end.id});
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_CLOSE, .channel = end.id});
	prog_send(&prog, &end, 3); /* after CLOSE */
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_CLOSE, NULL), 0);
	cqe = prog_expect(&prog, MRC_CQE_SENT);
	assert_int_equal(cqe.user_data, 3);
	assert_int_equal(cqe.status, MRC_STATUS_CLOSED);
	peer_b.credit = 5;
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_ROOM, &end));
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 2);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_CLOSE, NULL), 1);
	assert_int_equal(peer_b.events[peer_b.event_count - 1].kind, MRC_EV_CH_CLOSE);
	prog_leave(&prog);
}

static void channel_that_ends_answers_what_it_had_not_sent(void **state)
{
	struct lab *lab = *state;
	struct mrc_action down;
	struct pipe_end end;
	struct mrc_cqe cqe;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	peer_b.credit = 0;
	prog_send(&prog, &end, 1);
	prog_send(&prog, &end, 2);
	lab_turn(lab);
	down = act_channel(MRC_ACT_CH_DOWN, &end);
	down.channel.outcome = MRC_OUT_PEER_DIED;
	down.channel.code = 4;
	lab_perform(lab, &peer_b, down);
	for (uint64_t i = 1; i <= 2; i++) {
		cqe = prog_expect(&prog, MRC_CQE_SENT);
		assert_int_equal(cqe.user_data, i);
		assert_int_equal(cqe.status, MRC_STATUS_PEER_DIED);
		assert_int_equal(cqe.level, MRC_LEVEL_NONE);
	}
	cqe = prog_expect(&prog, MRC_CQE_CLOSED);
	assert_int_equal(cqe.status, MRC_STATUS_PEER_DIED);
	assert_int_equal(cqe.code, 4);
	/* The client could not know: these were on their way. Before CH_FREE, and long after. */
	prog_send(&prog, &end, 3);
	lab_turn(lab);
	assert_int_equal(prog_expect(&prog, MRC_CQE_SENT).status, MRC_STATUS_CLOSED);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end));
	prog_is_served(lab, &prog);
	prog_send(&prog, &end, 4);
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_CLOSE, .channel = end.id});
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 5);
	lab_turn(lab);
	assert_int_equal(prog_expect(&prog, MRC_CQE_SENT).user_data, 4);
	assert_false(prog_is_ended(&prog));
	prog_leave(&prog);
}

static void deadline_ends_a_send_that_waits_for_credit(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct mrc_cqe cqe = {0};
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	peer_b.credit = 0;
	prog_send(&prog, &end, 1);
	prog_submit(&prog, (struct mrc_sqe){
				   .op = MRC_SQE_SEND,
				   .level = MRC_LEVEL_PLACED,
				   .channel = end.id,
				   .user_data = 2,
				   .deadline_ns = lab_now_ns() + MRC_MS,
			   });
	prog_send(&prog, &end, 3);
	while (!prog_take(&prog, &cqe))
		event_base_loop(lab->worker.base, EVLOOP_ONCE); /* the bell, then the timer */
	assert_int_equal(cqe.type, MRC_CQE_SENT);
	assert_int_equal(cqe.user_data, 2);
	assert_int_equal(cqe.status, MRC_STATUS_TIMED_OUT);
	assert_int_equal(cqe.level, MRC_LEVEL_NONE);
	peer_b.credit = 9;
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_ROOM, &end));
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 2);
	prog_leave(&prog);
}

static void prog_send_until(struct prog *prog, const struct pipe_end *end, uint64_t user_data,
			    uint64_t deadline_ns)
{
	prog_submit(prog, (struct mrc_sqe){
				  .op = MRC_SQE_SEND,
				  .level = MRC_LEVEL_COMMITTED,
				  .channel = end->id,
				  .user_data = user_data,
				  .deadline_ns = deadline_ns,
			  });
}

/* Run until the engine was told to give so many up; answers the last. */
static struct mrc_ev_msg run_until_cancelled(struct lab *lab, uint32_t count)
{
	struct mrc_event_in ev = {0};

	while (peer_saw(&peer_b, MRC_EV_CANCEL, &ev) < count)
		event_base_loop(lab->worker.base, EVLOOP_ONCE);
	return ev.msg;
}

static void deadline_has_the_engine_give_up_what_it_has(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in first = {0}, other = {0};
	struct pipe_end end;
	struct mrc_ev_msg msg;
	struct mrc_action act;
	struct mrc_cqe cqe;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	prog_send(&prog, &end, 1);
	prog_send_until(&prog, &end, 2, 1ULL << 62);
	peer_b.number_next = 70;
	prog_send_until(&prog, &end, 3, lab_now_ns() + MRC_MS);
	msg = run_until_cancelled(lab, 1);
	peer_saw(&peer_b, MRC_EV_SEND, &first); /* the last one */
	assert_int_equal(msg.channel, end.engine_id);
	assert_int_equal(msg.number, 72);
	assert_int_equal(msg.outcome, MRC_OUT_TIMED_OUT);
	/* Once; its answer is the engine's to give, and the buffer the engine's until then. */
	peer_b.pump_count = 0;
	lab_turn(lab);
	assert_int_equal(peer_b.pump_count, 1);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CANCEL, NULL), 1);
	prog_expect_nothing(&prog);
	prog_send_until(&prog, &end, 4, lab_now_ns());
	assert_int_equal(run_until_cancelled(lab, 2).number, 73);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CANCEL, NULL), 2);
	act = act_msg(MRC_ACT_DONE, &end, 72, 0, 0);
	act.msg.cookie = first.msg.cookie;
	act.msg.outcome = MRC_OUT_TIMED_OUT;
	act.msg.level = MRC_LVL_PLACED;
	act.msg.is_undecided = true;
	lab_perform(lab, &peer_b, act);
	cqe = prog_expect(&prog, MRC_CQE_SENT);
	assert_int_equal(cqe.flags, MRC_CQE_FLAG_UNDECIDED);
	assert_int_equal(cqe.user_data, 3);
	assert_int_equal(cqe.number, 72);
	assert_int_equal(cqe.status, MRC_STATUS_TIMED_OUT);
	assert_int_equal(cqe.level, MRC_LEVEL_PLACED);
	/* Its slot is not another's before its end; nor is it given up again. */
	prog_send(&prog, &end, 5);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, &other), 5);
	assert_int_not_equal((uint32_t)other.msg.cookie, (uint32_t)first.msg.cookie);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CANCEL, NULL), 2);
	act.kind = MRC_ACT_LATE;
	act.msg.outcome = MRC_OUT_REJECTED;
	act.msg.code = 8;
	act.msg.level = MRC_LVL_VISIBLE;
	act.msg.is_undecided = false;
	lab_perform(lab, &peer_b, act);
	cqe = prog_expect(&prog, MRC_CQE_LATE);
	assert_int_equal(cqe.user_data, 3);
	assert_int_equal(cqe.number, 72);
	assert_int_equal(cqe.status, MRC_STATUS_REJECTED);
	assert_int_equal(cqe.level, MRC_LEVEL_VISIBLE);
	assert_int_equal(cqe.code, 8);
	prog_send(&prog, &end, 6);
	lab_turn(lab);
	peer_saw(&peer_b, MRC_EV_SEND, &other);
	assert_int_equal((uint32_t)other.msg.cookie, (uint32_t)first.msg.cookie);
	prog_leave(&prog);
}

/* So that their entries never fill the ring: half of the sends may be told undecided, until it was read. */
static void answers_of_more_that_are_undecided_wait_for_their_end(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev = {0};
	struct pipe_end end;
	struct mrc_action act;
	struct prog prog;
	uint64_t cookies[64];
	struct mrc_cqe cqe;
	uint32_t half;

	prog_attach(lab, &prog, "x");
	half = prog.welcome.sends_max / 2;
	end = prog_open(lab, &prog, "b");
	peer_b.credit = half + 2;
	for (uint32_t i = 0; i <= half; i++) {
		prog_send(&prog, &end, i);
		lab_turn(lab);
		peer_saw(&peer_b, MRC_EV_SEND, &ev);
		cookies[i] = ev.msg.cookie;
		act = act_msg(MRC_ACT_DONE, &end, i, 0, 0);
		act.msg.cookie = ev.msg.cookie;
		act.msg.outcome = MRC_OUT_TIMED_OUT;
		act.msg.level = MRC_LVL_PLACED;
		act.msg.is_undecided = true;
		lab_perform(lab, &peer_b, act);
		if (i < half)
			assert_int_equal(prog_expect(&prog, MRC_CQE_SENT).flags,
					 MRC_CQE_FLAG_UNDECIDED);
	}
	prog_expect_nothing(&prog);
	for (uint32_t i = 0; i <= half; i++) {
		act = act_msg(MRC_ACT_LATE, &end, half - i, 0, 0);
		act.msg.cookie = cookies[half - i];
		act.msg.level = MRC_LVL_COMMITTED;
		lab_perform(lab, &peer_b, act);
		cqe = prog_expect(&prog, i == 0 ? MRC_CQE_SENT : MRC_CQE_LATE);
		assert_int_equal(cqe.user_data, half - i);
		assert_int_equal(cqe.status, MRC_STATUS_OK);
		assert_int_equal(cqe.flags, 0);
	}
	/* All was read, so there is room for as many again. */
	prog_send(&prog, &end, 100);
	lab_turn(lab);
	peer_saw(&peer_b, MRC_EV_SEND, &ev);
	act = act_msg(MRC_ACT_DONE, &end, half + 1, 0, 0);
	act.msg.cookie = ev.msg.cookie;
	act.msg.outcome = MRC_OUT_TIMED_OUT;
	act.msg.level = MRC_LVL_PLACED;
	act.msg.is_undecided = true;
	lab_perform(lab, &peer_b, act);
	prog_expect(&prog, MRC_CQE_SENT);
	prog_leave(&prog);
}

static void on_wait(void *context, struct mrcd_peer *peer, uint64_t since_ns)
{
	assert_ptr_equal(peer, &peer_b);
	*(uint64_t *)context = since_ns;
}

/* Since when some channel's client has not been answered; 0: none waits. */
static uint64_t waits_ns(struct lab *lab)
{
	uint64_t since_ns = 0;

	mrcd_client_side_each_waiting(lab->worker.clients, on_wait, &since_ns);
	return since_ns;
}

static void time_without_an_answer_is_counted_for_the_peer(void **state)
{
	struct lab *lab = *state;
	struct mrcd_stall_meter *stalls = &peer_b.stalls;
	struct mrc_event_in ev = {0};
	struct mrc_action done;
	struct pipe_end end;
	struct prog prog;
	uint64_t sent_ns;

	*stalls = (struct mrcd_stall_meter){0};
	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	peer_b.credit = 2;
	assert_int_equal(waits_ns(lab), 0);
	for (uint64_t i = 0; i < 2; i++) {
		prog_send(&prog, &end, i);
		lab_turn(lab);
	}
	sent_ns = waits_ns(lab);
	assert_int_not_equal(sent_ns, 0);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, &ev), 2);
	lab->worker.now_ns = sent_ns + 70 * MRC_MS;
	done = act_msg(MRC_ACT_DONE, &end, 1, 0, 0);
	done.msg.cookie = ev.msg.cookie;
	lab_perform(lab, &peer_b, done);
	assert_int_equal(stalls->gaps.count, 1);
	assert_int_equal(stalls->gaps.max_ns, 70 * MRC_MS);
	assert_int_equal(waits_ns(lab), sent_ns + 70 * MRC_MS); /* for the other one */
	prog_leave(&prog);
}

static bool was_cancelled(uint64_t number)
{
	for (uint32_t i = 0; i < peer_b.event_count; i++) {
		if (peer_b.events[i].kind == MRC_EV_CANCEL && peer_b.events[i].msg.number == number)
			return true;
	}
	return false;
}

static void deadline_of_what_was_answered_is_forgotten(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev = {0};
	uint64_t span_ns = 2 * MRC_MS;
	bool was_late;
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	do {
		uint64_t deadline_ns = lab_now_ns() + span_ns;
		uint64_t number = peer_b.number_next;
		struct mrc_action act;

		prog_send_until(&prog, &end, 1, deadline_ns);
		lab_turn(lab);
		peer_saw(&peer_b, MRC_EV_SEND, &ev);
		prog_send_until(&prog, &end, 2, deadline_ns + 1);
		lab_turn(lab);
		act = act_msg(MRC_ACT_DONE, &end, number, 0, 0);
		act.msg.cookie = ev.msg.cookie;
		lab_perform(lab, &peer_b, act);
		assert_int_equal(prog_expect(&prog, MRC_CQE_SENT).user_data, 1);
		/* On a slow machine its time may have come first: again, with more of it. */
		was_late = was_cancelled(number);
		while (!was_cancelled(number + 1))
			event_base_loop(lab->worker.base, EVLOOP_ONCE);
		assert_int_equal(was_cancelled(number), was_late);
		span_ns *= 2;
	} while (was_late);
	prog_leave(&prog);
}

/* It waited for credit first, and its time goes on in the engine. */
static void deadline_goes_with_a_send_into_the_engine(void **state)
{
	struct lab *lab = *state;
	uint64_t span_ns = 4 * MRC_MS;
	struct pipe_end end;
	struct mrc_cqe cqe;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	for (;; span_ns *= 2) {
		peer_b.credit = 0;
		prog_send_until(&prog, &end, 1, lab_now_ns() + span_ns);
		lab_turn(lab);
		if (prog_take(&prog, &cqe))
			continue; /* too slow: its time is over already */
		peer_b.credit = 1;
		lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_ROOM, &end));
		break;
	}
	assert_int_equal(run_until_cancelled(lab, 1).number, 0);
	prog_expect_nothing(&prog);
	prog_leave(&prog);
}

static void more_sends_than_agreed_end_the_client(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	peer_b.credit = 3;
	for (uint32_t i = 0; i < 64; i++)
		prog_send(&prog, &end, i);
	lab_turn(lab);
	assert_false(prog_is_ended(&prog));
	prog_send(&prog, &end, 64);
	lab_turn(lab);
	assert_true(prog_is_ended(&prog));
	prog_leave(&prog);
}

static void touched_peers_are_pumped_once_a_turn(void **state)
{
	struct lab *lab = *state;
	struct pipe_end b, c;
	uint32_t before;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	b = prog_open(lab, &prog, "b");
	c = prog_open(lab, &prog, "c");
	before = peer_b.pump_count;
	for (int i = 0; i < 10; i++) {
		prog_send(&prog, &b, 0);
		prog_send(&prog, &c, 0);
	}
	lab_turn(lab);
	assert_int_equal(peer_b.pump_count, before + 1);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_SEND, NULL), 10);
	/* From inside a pump: that one goes on by itself. */
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_WANT, &b, 0, 0, 100000));
	lab_turn(lab);
	assert_int_equal(peer_b.pump_count, before + 1);
	prog_leave(&prog);
}

/* ---- receiving ---- */

static void large_message_is_granted_delivered_seen_and_released(void **state)
{
	struct lab *lab = *state;
	long long used;
	struct mrc_event_in ev = {0};
	struct mrc_action act;
	struct mrc_place place;
	struct pipe_end end;
	struct mrc_cqe cqe = {0};
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	used = lab_number(lab, "x", "landing_used_bytes");
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_WANT, &end, 0, 0, 100000));
	assert_int_equal(peer_saw(&peer_b, MRC_EV_LANDING, &ev), 1);
	assert_int_equal(ev.msg.len, 100000);
	assert_int_equal(lab_number(lab, "x", "landing_used_bytes"), used + 25LL * 4096);
	place = (struct mrc_place){.channel_cookie = end.cookie, .addr = ev.msg.addr + 10};
	memcpy(mrcd_landing_memory(&lab->worker, &place, 6), "world", 6);
	act = act_msg(MRC_ACT_DELIVER, &end, 0, ev.msg.addr, 100000);
	act.msg.is_visible_wanted = true;
	lab_perform(lab, &peer_b, act);
	assert_true(prog_peek(&prog, &cqe));
	assert_int_equal(cqe.type, MRC_CQE_ARRIVED);
	assert_int_equal(cqe.flags, MRC_CQE_FLAG_TELL_VISIBLE);
	assert_int_equal(cqe.len_bytes, 100000);
	assert_string_equal((char *)prog.landing + cqe.offset + 10, "world");
	prog_bell(&prog);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_VISIBLE, NULL), 0); /* not yet taken */
	prog.shm->cq_head = prog.cq_head;
	prog_bell(&prog);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_VISIBLE, &ev), 1);
	assert_int_equal(ev.msg.number, 0);
	prog_verdict(&prog, &end, MRC_SQE_REJECT, 0);
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 0);
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 0); /* counts once */
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_REJECT, &ev), 1);
	assert_int_equal(ev.msg.code, 42);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_RELEASE, NULL), 1);
	assert_int_equal(lab_number(lab, "x", "landing_used_bytes"), used + 25LL * 4096);
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_FREE, &end, 0, place.addr - 10, 100000));
	assert_int_equal(lab_number(lab, "x", "landing_used_bytes"), used);
	assert_false(prog_is_ended(&prog));
	prog_leave(&prog);
}

static void eager_message_lies_in_the_channels_ring(void **state)
{
	struct lab *lab = *state;
	struct pipe_end first, end;
	struct mrc_place place;
	struct mrc_cqe cqe;
	struct prog prog;
	void *memory;

	prog_attach(lab, &prog, "x");
	first = prog_open(lab, &prog, "b");
	end = prog_open(lab, &prog, "b");
	assert_true(first.cookie != end.cookie);
	place = (struct mrc_place){.is_eager = true, .channel_cookie = end.cookie, .addr = 512};
	memory = mrcd_landing_memory(&lab->worker, &place, 6);
	assert_non_null(memory);
	memcpy(memory, "small", 6);
	lab_deliver_eager(lab, &end, 0, 512, 6);
	lab_deliver_eager(lab, &end, 1, 0, 0);
	lab_deliver_eager(lab, &end, 2, end.ring_bytes - 6, 6);
	cqe = prog_expect(&prog, MRC_CQE_ARRIVED);
	assert_string_equal((char *)prog.landing + cqe.offset, "small");
	assert_int_equal(prog_expect(&prog, MRC_CQE_ARRIVED).len_bytes, 0);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	/* Not one byte past the ring. */
	place.addr = end.ring_bytes - 5;
	assert_null(mrcd_landing_memory(&lab->worker, &place, 6));
	place.is_scratch = true;
	assert_null(mrcd_landing_memory(&lab->worker, &place, 1));
	/* Released out of order, as programs do. */
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 2);
	prog_verdict(&prog, &end, MRC_SQE_COMMIT, 0);
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 0);
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 1);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_VISIBLE, NULL), 3);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_RELEASE, NULL), 3);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_COMMIT, NULL), 1);
	prog_leave(&prog);
}

/* The engine is told once of what follows each other, and of nothing in another order. */
static void messages_taken_and_given_back_in_a_row_are_one_event(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev = {0};
	struct pipe_end b, c;
	struct prog prog;
	uint32_t calls;

	prog_attach(lab, &prog, "x");
	b = prog_open(lab, &prog, "b");
	c = prog_open(lab, &prog, "b");
	for (uint64_t i = 0; i < 6; i++)
		lab_deliver_eager(lab, &b, i, i * 64, 6);
	lab_deliver_eager(lab, &c, 0, 0, 6);
	for (uint64_t i = 6; i < 8; i++)
		lab_deliver_eager(lab, &b, i, i * 64, 6);
	for (int i = 0; i < 9; i++)
		prog_expect(&prog, MRC_CQE_ARRIVED);
	calls = peer_b.event_calls;
	prog.shm->cq_head = prog.cq_head;
	prog_bell(&prog);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_VISIBLE, &ev), 9);
	assert_int_equal(ev.msg.number, 7);
	assert_int_equal(peer_b.event_calls - calls, 3);

	calls = peer_b.event_calls;
	for (uint64_t i = 0; i < 4; i++)
		prog_verdict(&prog, &b, MRC_SQE_RELEASE, i);
	prog_verdict(&prog, &b, MRC_SQE_COMMIT, 4);
	prog_verdict(&prog, &b, MRC_SQE_RELEASE, 4);
	prog_verdict(&prog, &c, MRC_SQE_RELEASE, 0);
	prog_verdict(&prog, &b, MRC_SQE_RELEASE, 5);
	prog_verdict(&prog, &b, MRC_SQE_RELEASE, 7);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_RELEASE, &ev), 8);
	assert_int_equal(ev.msg.number, 7);
	assert_int_equal(peer_b.event_calls - calls, 6);
	prog_leave(&prog);
}

static void landing_room_is_granted_in_turn_as_it_is_freed(void **state)
{
	struct lab *lab = *state;
	uint64_t half = 4U << 20;
	struct mrc_event_in ev = {0};
	struct pipe_end b, c;
	uint32_t pumps;
	struct prog prog;
	uint64_t addr;

	prog_attach(lab, &prog, "x");
	b = prog_open(lab, &prog, "b");
	c = prog_open(lab, &prog, "c");
	addr = lab_deliver_large(lab, &b, 0, half); /* the largest there can be */
	assert_int_equal(addr, 0);
	lab_perform(lab, &peer_c, act_msg(MRC_ACT_LANDING_WANT, &c, 0, 0, half / 2 + 1));
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_WANT, &b, 1, 0, half / 2));
	lab_perform(lab, &peer_c, act_msg(MRC_ACT_LANDING_WANT, &c, 1, 0, 4096));
	assert_int_equal(peer_saw(&peer_c, MRC_EV_LANDING, NULL), 0);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	prog_verdict(&prog, &b, MRC_SQE_RELEASE, 0);
	lab_turn(lab);
	pumps = peer_c.pump_count;
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_FREE, &b, 0, addr, half));
	/* First come: c's; then b's does not fit and the small one waits behind it. */
	assert_int_equal(peer_saw(&peer_c, MRC_EV_LANDING, &ev), 1);
	assert_int_equal(ev.msg.number, 0);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_LANDING, NULL), 1);
	/* c was not the one being pumped: it is now. */
	lab_turn(lab);
	assert_int_equal(peer_c.pump_count, pumps + 1);
	lab_perform(lab, &peer_c, act_msg(MRC_ACT_LANDING_FREE, &c, 0, ev.msg.addr, half / 2 + 1));
	assert_int_equal(peer_saw(&peer_b, MRC_EV_LANDING, NULL), 2);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_LANDING, NULL), 2);
	prog_leave(&prog);
}

static void ended_channel_does_not_keep_others_waiting_for_room(void **state)
{
	struct lab *lab = *state;
	uint64_t half = 4U << 20;
	struct pipe_end b, c;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	b = prog_open(lab, &prog, "b");
	c = prog_open(lab, &prog, "c");
	lab_deliver_large(lab, &c, 0, half / 2);
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_WANT, &b, 0, 0, half));
	lab_perform(lab, &peer_c, act_msg(MRC_ACT_LANDING_WANT, &c, 1, 0, 4096));
	assert_int_equal(peer_saw(&peer_c, MRC_EV_LANDING, NULL), 1);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_DOWN, &b));
	assert_int_equal(peer_saw(&peer_c, MRC_EV_LANDING, NULL), 2);
	prog_leave(&prog);
}

static void grant_the_engine_no_longer_wants_goes_back(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct prog prog;
	long long used;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	used = lab_number(lab, "x", "landing_used_bytes");
	peer_b.answer_of[MRC_EV_LANDING] = -ENOENT;
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_WANT, &end, 0, 0, 100000));
	assert_int_equal(lab_number(lab, "x", "landing_used_bytes"), used);
	prog_leave(&prog);
}

/* What a program received it may read until it releases it, whatever became of the channel. */
static void held_messages_outlive_their_channel(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct prog prog;
	uint64_t addr;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	addr = lab_deliver_large(lab, &end, 0, 4096);
	lab_deliver_large(lab, &end, 1, 4096);
	lab_deliver_eager(lab, &end, 2, 0, 10);
	for (int i = 0; i < 3; i++)
		prog_expect(&prog, MRC_CQE_ARRIVED);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_DOWN, &end));
	prog_expect(&prog, MRC_CQE_CLOSED);
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_FREE, &end, 0, addr, 4096));
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &end));
	prog_is_served(lab, &prog);
	assert_int_equal(lab_number(lab, "x", "landing_used_bytes"), end.ring_bytes + 8192);
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 0);
	lab_turn(lab);
	assert_int_equal(lab_number(lab, "x", "landing_used_bytes"), end.ring_bytes + 4096);
	prog_verdict(&prog, &end, MRC_SQE_COMMIT, 1);
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 1);
	lab_turn(lab);
	assert_int_equal(lab_number(lab, "x", "landing_used_bytes"), end.ring_bytes);
	prog_verdict(&prog, &end, MRC_SQE_RELEASE, 2);
	lab_turn(lab);
	assert_int_equal(lab_number(lab, "x", "landing_used_bytes"), 0);
	assert_int_equal(lab_number(lab, "x", "channels"), 0);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_RELEASE, NULL), 0); /* nobody to tell */
	prog_leave(&prog);
}

static void release_after_the_end_makes_room_for_who_waits(void **state)
{
	struct lab *lab = *state;
	uint64_t half = 4U << 20;
	struct pipe_end b, c;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	b = prog_open(lab, &prog, "b");
	c = prog_open(lab, &prog, "c");
	lab_deliver_large(lab, &b, 0, half);
	prog_expect(&prog, MRC_CQE_ARRIVED);
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_DOWN, &b));
	lab_perform(lab, &peer_b, act_channel(MRC_ACT_CH_FREE, &b));
	lab_perform(lab, &peer_c, act_msg(MRC_ACT_LANDING_WANT, &c, 0, 0, half));
	assert_int_equal(peer_saw(&peer_c, MRC_EV_LANDING, NULL), 0);
	prog_verdict(&prog, &b, MRC_SQE_RELEASE, 0);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_LANDING, NULL), 1);
	prog_leave(&prog);
}

static void gaps_are_told_and_cannot_fill_the_ring(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end;
	struct mrc_cqe cqe;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	lab_perform(lab, &peer_b, act_msg(MRC_ACT_GAP, &end, 0, 0, 0));
	assert_int_equal(prog_expect(&prog, MRC_CQE_GAP).number, 0);
	prog_is_served(lab, &prog);
	for (uint64_t i = 1; i < 10000; i++) /* never reading */
		lab_perform(lab, &peer_b, act_msg(MRC_ACT_GAP, &end, i, 0, 0));
	lab_deliver_eager(lab, &end, 10000, 0, 1);
	for (uint64_t i = 1; i <= 4; i++)
		assert_int_equal(prog_expect(&prog, MRC_CQE_GAP).number, i);
	cqe = prog_expect(&prog, MRC_CQE_ARRIVED);
	assert_int_equal(cqe.number, 10000);
	assert_false(prog_is_ended(&prog));
	prog_leave(&prog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		lab_test(send_reaches_the_engine_and_its_outcome_the_client),
		lab_test(send_that_the_engine_does_not_take_is_answered),
		lab_test(sends_without_credit_hold_up_no_other_channel),
		lab_test(close_waits_for_the_sends_before_it),
		lab_test(channel_that_ends_answers_what_it_had_not_sent),
		lab_test(time_without_an_answer_is_counted_for_the_peer),
		lab_test(deadline_ends_a_send_that_waits_for_credit),
		lab_test(deadline_has_the_engine_give_up_what_it_has),
		lab_test(answers_of_more_that_are_undecided_wait_for_their_end),
		lab_test(deadline_of_what_was_answered_is_forgotten),
		lab_test(deadline_goes_with_a_send_into_the_engine),
		lab_test(more_sends_than_agreed_end_the_client),
		lab_test(touched_peers_are_pumped_once_a_turn),
		lab_test(large_message_is_granted_delivered_seen_and_released),
		lab_test(eager_message_lies_in_the_channels_ring),
		lab_test(messages_taken_and_given_back_in_a_row_are_one_event),
		lab_test(landing_room_is_granted_in_turn_as_it_is_freed),
		lab_test(ended_channel_does_not_keep_others_waiting_for_room),
		lab_test(grant_the_engine_no_longer_wants_goes_back),
		lab_test(held_messages_outlive_their_channel),
		lab_test(release_after_the_end_makes_room_for_who_waits),
		lab_test(gaps_are_told_and_cannot_fill_the_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
