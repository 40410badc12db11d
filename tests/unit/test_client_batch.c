/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_client_batch: messages that are committed together, or rejected together. */
#include "client_side_lab.h"
#include "mrcd_client_impl.h"

#define MORE MRC_SQE_FLAG_BATCH
#define END  (MRC_SQE_FLAG_BATCH | MRC_SQE_FLAG_BATCH_END)

static void prog_member(struct prog *prog, const struct pipe_end *end, uint64_t number,
			uint16_t flags, uint64_t user_data)
{
	prog_submit(prog, (struct mrc_sqe){
				  .op = MRC_SQE_COMMIT,
				  .flags = flags,
				  .channel = end->id,
				  .number = number,
				  .user_data = user_data,
			  });
}

/* A client with a message of each of two peers in its hands. */
static void two_arrive(struct lab *lab, struct prog *prog, struct pipe_end ends[2])
{
	prog_attach(lab, prog, "x");
	ends[0] = prog_open(lab, prog, "b");
	ends[1] = prog_open(lab, prog, "c");
	for (int i = 0; i < 2; i++) {
		lab_deliver_eager(lab, &ends[i], 0, 0, 6);
		prog_expect(prog, MRC_CQE_ARRIVED);
	}
}

static void nothing_is_said_before_the_last_is_named(void **state)
{
	struct lab *lab = *state;
	struct pipe_end ends[2];
	struct mrc_cqe cqe;
	struct prog prog;

	two_arrive(lab, &prog, ends);
	prog_member(&prog, &ends[0], 0, MORE, 0);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_COMMIT, NULL), 0);
	prog_expect_nothing(&prog);
	prog_member(&prog, &ends[1], 0, END, 77);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_COMMIT, NULL), 1);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_COMMIT, NULL), 1);
	cqe = prog_expect(&prog, MRC_CQE_BATCH);
	assert_int_equal(cqe.user_data, 77);
	assert_int_equal(cqe.status, MRC_STATUS_OK);
	/* Then they are as any other: given back, and the next batch is another. */
	for (int i = 0; i < 2; i++) {
		prog_verdict(&prog, &ends[i], MRC_SQE_RELEASE, 0);
		lab_deliver_eager(lab, &ends[i], 1, 0, 6);
		prog_expect(&prog, MRC_CQE_ARRIVED);
	}
	lab_turn(lab);
	prog_member(&prog, &ends[1], 1, END, 78);
	lab_turn(lab);
	assert_int_equal(prog_expect(&prog, MRC_CQE_BATCH).user_data, 78);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_COMMIT, NULL), 1);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_COMMIT, NULL), 2);
	prog_is_served(lab, &prog);
	prog_leave(&prog);
}

static void one_that_cannot_be_committed_has_the_others_rejected(void **state)
{
	enum trouble { GIVEN_UP, ENDED, GIVEN_BACK, TROUBLES };

	for (int first = 0; first < 2; first++) { /* named first, or last */
		for (int trouble = 0; trouble < TROUBLES; trouble++) {
			struct lab *lab = *state;
			struct mrc_event_in ev = {0};
			struct pipe_end ends[2];
			struct prog prog;

			two_arrive(lab, &prog, ends);
			if (trouble == GIVEN_UP) {
				peer_c.answer_of[MRC_EV_COMMIT_ASK] = -EALREADY;
			} else if (trouble == ENDED) {
				lab_perform(lab, &peer_c, act_channel(MRC_ACT_CH_DOWN, &ends[1]));
				prog_expect(&prog, MRC_CQE_CLOSED);
			} else {
				prog_verdict(&prog, &ends[1], MRC_SQE_RELEASE, 0);
			}
			prog_member(&prog, &ends[first], 0, MORE, 0);
			prog_member(&prog, &ends[!first], 0, END, 5);
			lab_turn(lab);
			assert_int_equal(prog_expect(&prog, MRC_CQE_BATCH).status,
					 MRC_STATUS_CLOSED);
			assert_int_equal(peer_saw(&peer_b, MRC_EV_COMMIT, NULL), 0);
			assert_int_equal(peer_saw(&peer_c, MRC_EV_COMMIT, NULL), 0);
			assert_int_equal(peer_saw(&peer_b, MRC_EV_REJECT, &ev), 1);
			assert_int_equal(ev.msg.code, MRC_CODE_BATCH);
			prog_is_served(lab, &prog);
			prog_leave(&prog);
			assert_int_equal(lab_teardown(state), 0);
			assert_int_equal(lab_setup(state), 0);
		}
	}
}

static void a_client_that_ends_in_a_batch_has_committed_none(void **state)
{
	struct lab *lab = *state;
	struct pipe_end ends[2];
	struct prog prog;

	two_arrive(lab, &prog, ends);
	prog_member(&prog, &ends[0], 0, MORE, 0);
	prog_member(&prog, &ends[1], 0, MORE, 0);
	prog_leave(&prog);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_COMMIT, NULL), 0);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_COMMIT, NULL), 0);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_ABORT, NULL), 1);
}

static void what_breaks_the_rules_of_batches_ends_the_client(void **state)
{
	static const struct {
		const char *name;
		struct mrc_sqe sqe;
	} rows[] = {
		{"a member named twice", {.op = MRC_SQE_COMMIT, .flags = MORE}},
		{"a member named twice, last", {.op = MRC_SQE_COMMIT, .flags = END}},
		{"a member committed alone", {.op = MRC_SQE_COMMIT}},
		{"a member rejected", {.op = MRC_SQE_REJECT}},
		{"a member released", {.op = MRC_SQE_RELEASE}},
		{"an end without a batch", {.op = MRC_SQE_COMMIT, .flags = MRC_SQE_FLAG_BATCH_END}},
		{"a rejection in a batch", {.op = MRC_SQE_REJECT, .flags = MORE}},
		{"a release in a batch", {.op = MRC_SQE_RELEASE, .flags = END}},
		{"a flag nobody knows", {.op = MRC_SQE_COMMIT, .flags = 4}},
		{"a message never given", {.op = MRC_SQE_COMMIT, .flags = END, .number = 9}},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct lab *lab = *state;
		struct pipe_end ends[2];
		struct mrc_sqe sqe = rows[i].sqe;
		struct prog prog;

		two_arrive(lab, &prog, ends);
		prog_member(&prog, &ends[0], 0, MORE, 0);
		sqe.channel = ends[0].id;
		prog_submit(&prog, sqe);
		lab_turn(lab);
		if (!prog_is_ended(&prog))
			fail_msg("%s: the client lives on", rows[i].name);
		assert_int_equal(peer_saw(&peer_b, MRC_EV_COMMIT, NULL), 0);
		prog_leave(&prog);
		assert_int_equal(lab_teardown(state), 0);
		assert_int_equal(lab_setup(state), 0);
	}
}

static void batches_without_reading_their_answers_end_the_client(void **state)
{
	struct lab *lab = *state;
	struct pipe_end ends[2];
	uint32_t count = 0;
	struct prog prog;

	two_arrive(lab, &prog, ends);
	for (; count < 10000 && !prog_is_ended(&prog); count++) {
		prog_member(&prog, &ends[0], 0, END, count);
		lab_turn(lab);
	}
	assert_in_range(count, MRCD_ANSWERS_MAX, MRCD_ANSWERS_MAX + 2);
	prog_leave(&prog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		lab_test(nothing_is_said_before_the_last_is_named),
		lab_test(one_that_cannot_be_committed_has_the_others_rejected),
		lab_test(a_client_that_ends_in_a_batch_has_committed_none),
		lab_test(what_breaks_the_rules_of_batches_ends_the_client),
		lab_test(batches_without_reading_their_answers_end_the_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
