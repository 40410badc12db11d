/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_client: what goes along with verdicts: texts, and the moments of traced messages. */
#include "client_side_lab.h"

/* ---- texts ---- */

static void reject_with_text(struct prog *prog, const struct pipe_end *end, uint64_t number,
			     const char *text, uint32_t text_len)
{
	uint32_t at = prog->sq_tail & (prog->shm->sq_entry_count - 1);

	memcpy(prog->rings + prog->shm->sq_text_offset + (size_t)at * MRC_REASON_BYTES_MAX, text,
	       MRC_MIN(text_len, MRC_REASON_BYTES_MAX));
	prog_submit(prog, (struct mrc_sqe){
				  .op = MRC_SQE_REJECT,
				  .channel = end->id,
				  .number = number,
				  .code = 9,
				  .text_len = text_len,
			  });
}

static void text_of_a_rejection_goes_to_the_engine(void **state)
{
	static const char text[] =
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	struct lab *lab = *state;
	struct mrc_event_in ev = {0};
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	/* Round the whole ring, so that each place is used. */
	for (uint64_t i = 0; i < prog.shm->sq_entry_count + 3U; i++) {
		uint32_t len = i % (MRC_REASON_BYTES_MAX + 1);

		lab_deliver_large(lab, &end, i, 4096);
		prog_expect(&prog, MRC_CQE_ARRIVED);
		memset(peer_b.text, 0, sizeof(peer_b.text));
		reject_with_text(&prog, &end, i, text, len);
		lab_turn(lab);
		assert_int_equal(peer_saw(&peer_b, MRC_EV_REJECT, &ev), i + 1);
		assert_int_equal(ev.msg.code, 9);
		assert_int_equal(ev.msg.text_len, len);
		assert_memory_equal(peer_b.text, text, len);
		prog_verdict(&prog, &end, MRC_SQE_RELEASE, i);
		lab_turn(lab);
		lab_perform(lab, &peer_b, act_msg(MRC_ACT_LANDING_FREE, &end, i, 0, 4096));
	}
	assert_false(prog_is_ended(&prog));
	prog_leave(&prog);
}

static void text_that_cannot_be_ends_the_client(void **state)
{
	static const struct {
		uint8_t op;
		uint32_t text_len;
	} cases[] = {
		{MRC_SQE_REJECT, MRC_REASON_BYTES_MAX + 1},
		{MRC_SQE_REJECT, UINT32_MAX},
		{MRC_SQE_SEND, 1},
		{MRC_SQE_COMMIT, 1},
		{MRC_SQE_RELEASE, 64},
		{MRC_SQE_NOP, 1},
	};
	struct lab *lab = *state;

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct pipe_end end;
		struct prog prog;

		prog_attach(lab, &prog, "x");
		end = prog_open(lab, &prog, "b");
		prog_submit(&prog, (struct mrc_sqe){
					   .op = cases[i].op,
					   .level = MRC_LEVEL_PLACED,
					   .channel = end.id,
					   .text_len = cases[i].text_len,
				   });
		lab_turn(lab);
		if (!prog_is_ended(&prog))
			fail_msg("operation %u with a text of %u bytes passed", cases[i].op,
				 cases[i].text_len);
		assert_int_equal(peer_saw(&peer_b, MRC_EV_REJECT, NULL), 0);
		assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 0);
		prog_leave(&prog);
		lab_turn(lab);
	}
}

static void text_of_the_receiver_comes_with_the_answer(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev = {0};
	struct mrc_action done;
	struct pipe_end end;
	struct mrc_cqe cqe;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	for (uint8_t len = 0; len <= MRC_TEXT_BYTES_MAX; len += 32) {
		const char *at;

		prog_send(&prog, &end, len);
		lab_turn(lab);
		peer_saw(&peer_b, MRC_EV_SEND, &ev);
		done = act_msg(MRC_ACT_DONE, &end, len / 32, 0, 0);
		done.msg.cookie = ev.msg.cookie;
		done.msg.outcome = MRC_OUT_REJECTED;
		done.msg.text_len = len;
		memset(done.msg.text, 'a' + len / 32, sizeof(done.msg.text));
		at = (char *)prog.rings + prog.shm->cq_text_offset +
		     (size_t)(prog.cq_head & (prog.shm->cq_entry_count - 1)) * MRC_REASON_BYTES_MAX;
		lab_perform(lab, &peer_b, done);
		cqe = prog_expect(&prog, MRC_CQE_SENT);
		assert_int_equal(cqe.text_len, len);
		assert_memory_equal(at, done.msg.text, len);
	}
	prog_leave(&prog);
}

/* ---- moments ---- */

/* Which of the next `count` sends the engine is to trace: bit n for the nth. */
static uint32_t traced_of(struct lab *lab, struct prog *prog, const struct pipe_end *end,
			  uint32_t count)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t before_ns = lab_now_ns();
		struct mrc_event_in ev = {0};

		prog_submit(prog, (struct mrc_sqe){
					  .op = MRC_SQE_SEND,
					  .level = MRC_LEVEL_PLACED,
					  .channel = end->id,
					  .len_bytes = 10,
					  .stamp_ns = before_ns,
				  });
		lab_turn(lab);
		peer_saw(end->peer, MRC_EV_SEND, &ev);
		bits |= (uint32_t)ev.msg.is_traced << i;
		if (ev.msg.is_traced) {
			assert_int_equal(ev.msg.submitted_ns, before_ns);
			assert_in_range(ev.msg.fetched_ns, before_ns, lab_now_ns());
		} else {
			struct mrc_action done = act_msg(MRC_ACT_DONE, end, 0, 0, 0);

			assert_int_equal(ev.msg.fetched_ns, 0);
			done.msg.cookie = ev.msg.cookie;
			done.msg.level = MRC_LVL_PLACED;
			lab_perform(lab, end->peer, done);
			prog_expect(prog, MRC_CQE_SENT);
		}
	}
	return bits;
}

static void one_send_in_so_many_is_traced_while_it_is_wanted(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end, other;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	other = prog_open(lab, &prog, "c");
	assert_int_equal(prog.shm->is_tracing, 0);
	assert_int_equal(traced_of(lab, &prog, &end, 4), 0);
	mrcd_client_side_trace(lab->worker.clients, end.cookie, 3);
	assert_int_equal(prog.shm->is_tracing, 1);
	assert_int_equal(traced_of(lab, &prog, &end, 7), 1U | 1U << 3 | 1U << 6);
	/* Renewed it goes on where it was. */
	mrcd_client_side_trace(lab->worker.clients, end.cookie, 3);
	assert_int_equal(traced_of(lab, &prog, &end, 3), 1U << 2);
	assert_int_equal(traced_of(lab, &prog, &other, 3), 0);
	mrcd_client_side_trace(lab->worker.clients, other.cookie, 1);
	mrcd_client_side_trace(lab->worker.clients, end.cookie, 0);
	assert_int_equal(prog.shm->is_tracing, 1); /* the other one is */
	assert_int_equal(traced_of(lab, &prog, &end, 3), 0);
	assert_int_equal(traced_of(lab, &prog, &other, 2), 3);
	mrcd_client_side_trace(lab->worker.clients, other.cookie, 0);
	assert_int_equal(prog.shm->is_tracing, 0);
	mrcd_client_side_trace(lab->worker.clients, 0xdead, 1); /* gone, and that is fine */
	prog_leave(&prog);
}

/* Its first moment is not known, and the next one's is. */
static void what_was_submitted_before_tracing_began_is_not_traced(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev = {0};
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	prog_send(&prog, &end, 10);
	mrcd_client_side_trace(lab->worker.clients, end.cookie, 2);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, &ev), 1);
	assert_false(ev.msg.is_traced);
	assert_int_equal(traced_of(lab, &prog, &end, 3), 1U | 1U << 2);
	prog_leave(&prog);
}

static void who_is_to_tell_is_told_and_believed(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev = {0};
	struct mrc_action act;
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	for (uint64_t i = 0; i < 3; i++) {
		static const enum mrc_sqe_op ops[] = {MRC_SQE_COMMIT, MRC_SQE_REJECT,
						      MRC_SQE_RELEASE};
		static const enum mrc_event_kind kinds[] = {MRC_EV_COMMIT, MRC_EV_REJECT,
							    MRC_EV_RELEASE};

		act = act_msg(MRC_ACT_DELIVER, &end, i, i * 64, 10);
		act.msg.is_eager = true;
		act.msg.is_traced = i != 1;
		lab_perform(lab, &peer_b, act);
		assert_int_equal(prog_expect(&prog, MRC_CQE_ARRIVED).flags,
				 i != 1 ? MRC_CQE_FLAG_TRACED : 0);
		prog_submit(&prog, (struct mrc_sqe){
					   .op = (uint8_t)ops[i],
					   .channel = end.id,
					   .number = i,
					   .visible_ns = 1000 + i,
					   .stamp_ns = 2000 + i,
				   });
		lab_turn(lab);
		assert_int_equal(peer_saw(&peer_b, kinds[i], &ev), 1);
		assert_int_equal(ev.msg.visible_ns, 1000 + i);
		assert_int_equal(ev.msg.verdict_ns, 2000 + i);
	}
	prog_leave(&prog);
}

static void moments_are_handed_on(void **state)
{
	struct lab *lab = *state;
	struct mrc_action act = {.kind = MRC_ACT_TRACED};
	struct pipe_end end;
	struct prog prog;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	act.trace.channel = end.engine_id;
	act.trace.channel_cookie = end.cookie;
	act.trace.number = 77;
	lab_perform(lab, &peer_b, act);
	assert_int_equal(lab_traced.number, 77);
	prog_expect_nothing(&prog);
	prog_leave(&prog);
}

/* How many of `count` sends the engine is told to trace, for nobody in particular. */
static uint32_t sampled(struct lab *lab, uint32_t count)
{
	struct pipe_end end;
	struct prog prog;
	uint32_t traced = 0;

	prog_attach(lab, &prog, "x");
	end = prog_open(lab, &prog, "b");
	peer_b.event_count = 0;
	peer_b.credit = count;
	for (uint32_t i = 0; i < count; i++) {
		prog_send(&prog, &end, i);
		lab_turn(lab);
	}
	for (uint32_t i = 0; i < peer_b.event_count; i++) {
		const struct mrc_event_in *ev = &peer_b.events[i];

		if (ev->kind != MRC_EV_SEND || !ev->msg.is_traced)
			continue;
		traced++;
		assert_int_equal(ev->msg.submitted_ns, 0);
		assert_int_not_equal(ev->msg.fetched_ns, 0);
	}
	prog_leave(&prog);
	lab_turn(lab);
	return traced;
}

static void sends_are_sampled_while_there_are_metrics(void **state)
{
	struct lab *lab = *state;
	uint64_t begin_ns = lab_now_ns();
	uint32_t traced;

	assert_int_equal(sampled(lab, 40), 0);
	lab->conf.metrics.is_enabled = true;
	traced = sampled(lab, 40);
	assert_true(traced > 0);
	assert_true(traced <=
		    1 + (lab_now_ns() - begin_ns) / (10 * MRC_MS)); /* a hundred a second */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		lab_test(text_of_a_rejection_goes_to_the_engine),
		lab_test(text_that_cannot_be_ends_the_client),
		lab_test(text_of_the_receiver_comes_with_the_answer),
		lab_test(one_send_in_so_many_is_traced_while_it_is_wanted),
		lab_test(what_was_submitted_before_tracing_began_is_not_traced),
		lab_test(who_is_to_tell_is_told_and_believed),
		lab_test(moments_are_handed_on),
		lab_test(sends_are_sampled_while_there_are_metrics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
