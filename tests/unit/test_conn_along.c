/* SPDX-License-Identifier: BSD-2-Clause */
/* What goes along with what: words with an answer, short messages with each other. */
#include "engine_lab.h"

struct fixture {
	struct lab_pair pair;
	uint32_t ids[2];
	uint64_t cookie;
};

static void fixture_init(struct fixture *f, uint8_t path_count)
{
	*f = (struct fixture){.cookie = 1};
	lab_pair_up(&f->pair, path_count, NULL);
	lab_pair_channel(&f->pair, false, f->ids);
	lab_pair_run(&f->pair, 10 * MRC_MS); /* nothing is left to say */
}

/* a sends; b has it delivered when this returns. Answers how far b's log was before. */
static uint32_t ask(struct fixture *f)
{
	struct lab_host *b = &f->pair.hosts[1];
	uint32_t from = b->log_count;

	assert_int_equal(lab_send(&f->pair.hosts[0], f->ids[0], 100, MRC_LVL_PLACED, f->cookie++),
			 0);
	lab_pair_run(&f->pair, LAB_DELAY_NS + MRC_US);
	assert_int_equal(lab_count(b, MRC_ACT_DELIVER, from), 1);
	return from;
}

static void answer(struct fixture *f)
{
	assert_int_equal(lab_send(&f->pair.hosts[1], f->ids[1], 100, MRC_LVL_PLACED, f->cookie++),
			 0);
	lab_pair_pump(&f->pair);
}

/* Asked and answered so often that it is expected. */
static void talk(struct fixture *f)
{
	for (uint32_t i = 0; i < MRC_ANSWERS_MIN; i++) {
		uint32_t from = ask(f);

		/* Not yet: the sender waits for it. */
		assert_int_equal(lab_posted_count(&f->pair.hosts[1], MRC_WIRE_STATE, from), 1);
		answer(f);
		lab_pair_run(&f->pair, MRC_MS);
	}
}

static void what_the_peer_waits_to_hear_goes_along_with_the_answer(void **state)
{
	struct lab_host *b;
	struct fixture f;
	uint32_t from;

	fixture_init(&f, 4);
	b = &f.pair.hosts[1];
	talk(&f);
	from = ask(&f);
	assert_int_equal(lab_posted_count(b, MRC_WIRE_STATE, from), 0);
	answer(&f);
	assert_int_equal(lab_posted_count(b, MRC_WIRE_STATE, from), 1);
	assert_int_equal(lab_posted_count(b, MRC_WIRE_FRAG, from), 1);
	/* One call to one socket. */
	assert_int_equal(lab_posted(b, MRC_WIRE_STATE, from, 0)->index,
			 lab_posted(b, MRC_WIRE_FRAG, from, 0)->index);
	assert_int_equal(lab_posted(b, MRC_WIRE_ACK, from, 0)->index,
			 lab_posted(b, MRC_WIRE_FRAG, from, 0)->index);
	lab_pair_run(&f.pair, MRC_MS);
	lab_done_is(&f.pair.hosts[0], f.cookie - 2, MRC_OUT_OK);
	lab_pair_fini(&f.pair);
}

static void without_the_answer_it_is_told_all_the_same_and_at_once_from_then_on(void **state)
{
	struct lab_host *b;
	struct fixture f;
	uint32_t from;

	fixture_init(&f, 2);
	b = &f.pair.hosts[1];
	talk(&f);
	from = ask(&f);
	assert_int_equal(lab_posted_count(b, MRC_WIRE_STATE, from), 0);
	lab_pair_run(&f.pair, MRC_ACK_DELAY_NS);
	assert_int_equal(lab_posted_count(b, MRC_WIRE_STATE, from), 1);
	lab_pair_run(&f.pair, LAB_DELAY_NS);
	lab_done_is(&f.pair.hosts[0], f.cookie - 1, MRC_OUT_OK);
	from = ask(&f);
	assert_int_equal(lab_posted_count(b, MRC_WIRE_STATE, from), 1);
	lab_pair_fini(&f.pair);
}

static void who_answers_late_is_not_waited_for(void **state)
{
	struct fixture f;
	uint32_t from;

	fixture_init(&f, 2);
	talk(&f);
	ask(&f);
	lab_pair_run(&f.pair, MRC_ACK_DELAY_NS);
	answer(&f);
	lab_pair_run(&f.pair, MRC_MS);
	from = ask(&f);
	assert_int_equal(lab_posted_count(&f.pair.hosts[1], MRC_WIRE_STATE, from), 1);
	lab_pair_fini(&f.pair);
}

/* On how many paths are the fragments that host a posted? */
static uint32_t paths_used(const struct lab_host *h, uint32_t from)
{
	const struct mrc_act_post *post;
	uint32_t mask = 0;

	for (uint32_t i = 0; (post = lab_posted(h, MRC_WIRE_FRAG, from, i)) != NULL; i++)
		mask |= 1U << post->index;
	return (uint32_t)__builtin_popcount(mask);
}

static void messages_of_one_turn_share_a_path_if_they_are_short(void **state)
{
	static const struct {
		const char *name;
		uint64_t len;
		uint32_t count, want;
	} rows[] = {
		{"short", 64, 8, 1},
		{"short, but many bytes", 4096, 8, 2},
		{"longer", 8192, 8, 2},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		struct fixture f;
		struct lab_host *a;
		uint32_t from, used;

		fixture_init(&f, 4);
		a = &f.pair.hosts[0];
		from = a->log_count;
		for (uint32_t n = 0; n < rows[i].count; n++)
			assert_int_equal(lab_send(a, f.ids[0], rows[i].len, MRC_LVL_PLACED,
						  ++f.cookie),
					 0);
		lab_pump(a);
		used = paths_used(a, from);
		if (used != rows[i].want)
			fail_msg("%s: %u paths", rows[i].name, used);
		lab_pair_run(&f.pair, MRC_MS);
		lab_pair_fini(&f.pair);
	}
}

/* A probe has to go by its own path, which may be the slowest. */
static void nothing_goes_along_with_a_probe(void **state)
{
	struct fixture f;
	struct lab_host *a;
	uint32_t from;

	fixture_init(&f, 2);
	a = &f.pair.hosts[0];
	a->conn->paths[1].rtt.smoothed_ns = a->conn->paths[1].rtt.min_ns = MRC_MS;
	a->conn->paths[1].do_probe = true;
	from = a->log_count;
	assert_int_equal(lab_send(a, f.ids[0], 64, MRC_LVL_PLACED, ++f.cookie), 0);
	lab_pump(a);
	assert_int_equal(lab_posted(a, MRC_WIRE_PROBE, from, 0)->index, 1);
	assert_int_equal(lab_posted(a, MRC_WIRE_FRAG, from, 0)->index, 0);
	lab_pair_run(&f.pair, 10 * MRC_MS);
	lab_pair_fini(&f.pair);
}

/* Once it has answered, and no more: what streams has nothing to say along. */
static void a_stream_after_a_talk_tells_its_state_lazily(void **state)
{
	struct fixture f;
	struct lab_host *b;
	uint32_t from, states;

	fixture_init(&f, 2);
	b = &f.pair.hosts[1];
	talk(&f);
	ask(&f);
	answer(&f);
	lab_pair_run(&f.pair, MRC_MS);
	from = b->log_count;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(lab_send(b, f.ids[1], 100, MRC_LVL_PLACED, f.cookie++), 0);
		lab_pair_run(&f.pair, 5 * MRC_US);
	}
	lab_pair_run(&f.pair, MRC_MS);
	states = lab_posted_count(b, MRC_WIRE_STATE, from);
	if (states > 5) /* once in the delay of an ACK */
		fail_msg("%u STATE for 20 messages in 100 us", states);
	lab_pair_fini(&f.pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_peer_waits_to_hear_goes_along_with_the_answer),
		cmocka_unit_test(
			without_the_answer_it_is_told_all_the_same_and_at_once_from_then_on),
		cmocka_unit_test(who_answers_late_is_not_waited_for),
		cmocka_unit_test(nothing_goes_along_with_a_probe),
		cmocka_unit_test(a_stream_after_a_talk_tells_its_state_lazily),
		cmocka_unit_test(messages_of_one_turn_share_a_path_if_they_are_short),
	};

	return cmocka_run_group_tests_name("conn_along", tests, NULL, NULL);
}
