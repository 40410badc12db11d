/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tools make of the daemon's answers to trace: messages, spans, percentiles. */
#include "trace_canned.h"

#include <errno.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct mrc_trace trace;

static int setup(void **state)
{
	mrc_trace_init(&trace, 1000);
	return 0;
}

static int teardown(void **state)
{
	mrc_trace_fini(&trace);
	return 0;
}

static void trace_takes_a_message_with_all_its_moments(void **state)
{
	static const int64_t at_ns[] = {1000000, 1100000, 1200000, 1600000,
					1650000, 1800000, 1900000, 2000000};
	const struct mrc_trace_message *message;

	assert_int_equal(canned_take(&trace, CANNED_ANSWER(CANNED_CLOCK,
							   CANNED_MESSAGE("5", "OK", CANNED_GOOD))),
			 0);
	assert_string_equal(trace.peer, "b");
	assert_string_equal(trace.service, "bulk");
	assert_int_equal(trace.channel, 7);
	assert_int_equal(trace.every, 100);
	assert_int_equal(trace.next, 123);
	assert_true(trace.clock.is_known);
	assert_int_equal(trace.clock.offset_ns, -1234);
	assert_int_equal(trace.clock.error_ns, 8000);
	assert_int_equal(trace.count, 1);
	message = &trace.messages[0];
	assert_int_equal(message->seq, 5);
	assert_int_equal(message->number, 815);
	assert_int_equal(message->bytes, 1048576);
	assert_int_equal(message->fragments, 8);
	assert_int_equal(message->error_ns, 8000);
	assert_string_equal(message->outcome, "OK");
	assert_string_equal(message->level, "committed");
	for (unsigned i = 0; i < MRC_TRACE_MOMENT_COUNT; i++) {
		assert_true(mrc_trace_knows(message, (enum mrc_trace_moment)i));
		assert_int_equal(message->at_ns[i], at_ns[i]);
	}
}

static void trace_tells_an_unknown_moment_from_one_at_0(void **state)
{
	int64_t span_ns;

	canned_take(&trace, CANNED_ANSWER("null", CANNED_MESSAGE("5", "OK",
								 "\"submitted_ns\":0,"
								 "\"fetched_ns\":null,"
								 "\"placed_ns\":-30")));
	assert_false(trace.clock.is_known);
	assert_true(mrc_trace_knows(&trace.messages[0], MRC_TRACE_SUBMITTED));
	assert_false(mrc_trace_knows(&trace.messages[0], MRC_TRACE_FETCHED));
	assert_false(mrc_trace_knows(&trace.messages[0], MRC_TRACE_LOCAL));
	assert_false(mrc_trace_span(&trace.messages[0], MRC_TRACE_SUBMITTED, MRC_TRACE_FETCHED,
				    &span_ns));
	assert_true(mrc_trace_span(&trace.messages[0], MRC_TRACE_SUBMITTED, MRC_TRACE_PLACED,
				   &span_ns));
	assert_int_equal(span_ns, -30);
}

static void trace_is_ended_when_its_channel_is(void **state)
{
	assert_int_equal(canned_take(&trace, CANNED_ANSWER("null", "")), 0);
	assert_false(trace.is_ended);
	assert_int_equal(canned_take(&trace, "{\"next\":5,\"messages\":[],\"ended\":true}"), 0);
	assert_true(trace.is_ended);
}

static void trace_refuses_what_is_no_answer(void **state)
{
	static const char *const rows[] = {
		"[]",
		"{}",
		"{\"messages\":[]}",
		"{\"next\":5}",
		"{\"next\":-1,\"messages\":[]}",
		"{\"next\":5,\"messages\":{}}",
		"{\"next\":5,\"messages\":[],\"missed\":-1}",
		"{\"next\":5,\"messages\":[],\"every\":\"1\"}",
		"{\"next\":5,\"messages\":[],\"clock\":7}",
		"{\"next\":5,\"messages\":[],\"clock\":{\"offset_ns\":7}}",
		"{\"next\":5,\"messages\":[3]}",
		"{\"next\":5,\"messages\":[{\"seq\":1}]}",
		"{\"next\":5,\"messages\":[{\"outcome\":\"OK\"}]}",
		"{\"next\":5,\"messages\":[{\"seq\":1,\"outcome\":\"OK\",\"bytes\":-1}]}",
		"{\"next\":5,\"messages\":[{\"seq\":1,\"outcome\":\"OK\",\"placed_ns\":\"x\"}]}",
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		if (canned_take(&trace, rows[i]) != -EBADMSG)
			fail_msg("taken: %s", rows[i]);
	assert_int_equal(trace.count, 0);
	assert_int_equal(trace.next, MRC_TRACE_FROM_NOW_ON);
}

static void trace_asks_from_where_the_last_answer_ended(void **state)
{
	json_t *question = mrc_trace_question(&trace, NULL, 7, 100);

	assert_int_equal(json_integer_value(json_object_get(question, "since")), -1);
	assert_int_equal(json_integer_value(json_object_get(question, "channel")), 7);
	assert_int_equal(json_integer_value(json_object_get(question, "every")), 100);
	assert_string_equal(json_string_value(json_object_get(question, "command")), "trace");
	assert_null(json_object_get(question, "peer"));
	json_decref(question);
	canned_take(&trace, CANNED_ANSWER("null", ""));
	question = mrc_trace_question(&trace, "b", 7, 0);
	assert_int_equal(json_integer_value(json_object_get(question, "since")), 123);
	assert_string_equal(json_string_value(json_object_get(question, "peer")), "b");
	assert_int_equal(json_integer_value(json_object_get(question, "every")), 0);
	json_decref(question);
	assert_null(mrc_trace_question(&trace, "\xff", 7, 0));
}

/* An answer with `count` messages, each committed after its index + 1 times step_ns. */
static int take_many(size_t count, int64_t step_ns)
{
	json_t *result = json_loads(CANNED_ANSWER(CANNED_CLOCK, ""), 0, NULL);
	json_t *messages = json_object_get(result, "messages");
	int r;

	for (size_t i = 0; i < count; i++) {
		/* shuffled, so that sorting has something to do */
		int64_t place = (int64_t)(i * 7919 % count) + 1;

		json_array_append_new(messages,
				      json_pack("{s:I s:s s:I s:I s:I}", "seq", (json_int_t)i,
						"outcome", "OK", "submitted_ns", (json_int_t)1000,
						"verdict_ns", (json_int_t)1000 + place * step_ns,
						"error_ns", (json_int_t)100));
	}
	r = mrc_trace_take(&trace, result);
	json_decref(result);
	return r;
}

static void trace_wants_to_be_asked_again_after_a_full_answer(void **state)
{
	assert_int_equal(take_many(MRC_TRACE_ANSWER_MAX - 1, 1), 0);
	assert_int_equal(take_many(MRC_TRACE_ANSWER_MAX, 1), 1);
	assert_int_equal(trace.count, 2 * MRC_TRACE_ANSWER_MAX - 1);
}

static void trace_keeps_no_more_than_its_bound_and_counts_the_rest(void **state)
{
	int answers = 0;

	for (; trace.count < 1000 && answers < 100; answers++)
		assert_int_equal(take_many(MRC_TRACE_ANSWER_MAX, 1), 1);
	assert_int_equal(trace.count, 1000); /* its bound */
	assert_int_equal(trace.left_out, (uint64_t)answers * MRC_TRACE_ANSWER_MAX - 1000);
	assert_true(trace.left_out > 0);
}

static void trace_counts_what_went_missing_since_it_began(void **state)
{
	static const struct {
		const char *text;
		uint64_t missed, untraced;
	} rows[] = {
		{"{\"next\":5,\"messages\":[],\"missed\":0,\"untraced\":40}", 0, 0},
		{"{\"next\":6,\"messages\":[],\"missed\":2,\"untraced\":41}", 2, 1},
		{"{\"next\":7,\"messages\":[],\"missed\":3,\"untraced\":45}", 5, 5},
		{"{\"next\":8,\"messages\":[],\"missed\":0,\"untraced\":3}", 5, 3},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(canned_take(&trace, rows[i].text), 0);
		assert_int_equal(trace.missed, rows[i].missed);
		assert_int_equal(trace.untraced, rows[i].untraced);
	}
}

static void quantiles_are_of_the_nearest_rank(void **state)
{
	static const struct {
		size_t count;
		int64_t p50_ns, p90_ns, p99_ns, p999_ns;
	} rows[] = {
		{1, 1, 1, 1, 1},           {2, 1, 2, 2, 2},
		{10, 5, 9, 10, 10},        {11, 6, 10, 11, 11},
		{100, 50, 90, 99, 100},    {101, 51, 91, 100, 101},
		{999, 500, 900, 990, 999}, {1000, 500, 900, 990, 999},
	};
	struct mrc_trace_quantiles quantiles;

	for (size_t i = 0; i < COUNT(rows); i++) {
		mrc_trace_fini(&trace);
		mrc_trace_init(&trace, 1000);
		take_many(rows[i].count, 1);
		mrc_trace_quantiles(&trace, MRC_TRACE_SUBMITTED, MRC_TRACE_VERDICT, &quantiles);
		assert_int_equal(quantiles.count, rows[i].count);
		assert_int_equal(quantiles.min_ns, 1);
		assert_int_equal(quantiles.p50_ns, rows[i].p50_ns);
		assert_int_equal(quantiles.p90_ns, rows[i].p90_ns);
		assert_int_equal(quantiles.p99_ns, rows[i].p99_ns);
		assert_int_equal(quantiles.p999_ns, rows[i].p999_ns);
		assert_int_equal(quantiles.max_ns, rows[i].count);
	}
}

static void quantiles_of_nothing_are_0(void **state)
{
	struct mrc_trace_quantiles quantiles;

	mrc_trace_quantiles(&trace, MRC_TRACE_SUBMITTED, MRC_TRACE_VERDICT, &quantiles);
	assert_int_equal(quantiles.count, 0);
	assert_int_equal(quantiles.max_ns, 0);
	canned_take(&trace,
		    CANNED_ANSWER(CANNED_CLOCK, CANNED_MESSAGE("5", "PEER_DIED", CANNED_FAILED)));
	mrc_trace_quantiles(&trace, MRC_TRACE_LAST_SENT, MRC_TRACE_PLACED, &quantiles);
	assert_int_equal(quantiles.count, 0);
}

static void quantiles_keep_what_is_below_0_and_say_what_is_not_sure(void **state)
{
	struct mrc_trace_quantiles quantiles;

	canned_take(&trace, CANNED_ANSWER(CANNED_CLOCK,
					  CANNED_MESSAGE("5", "OK", CANNED_GOOD) "," CANNED_MESSAGE(
						  "6", "OK", CANNED_CROSSED)));
	mrc_trace_quantiles(&trace, MRC_TRACE_LAST_SENT, MRC_TRACE_PLACED, &quantiles);
	assert_int_equal(quantiles.count, 2);
	assert_int_equal(quantiles.min_ns, -2000);
	assert_int_equal(quantiles.p50_ns, -2000);
	assert_int_equal(quantiles.max_ns, 200000);
	assert_int_equal(quantiles.after_count, 1);
	assert_int_equal(quantiles.unsure_count, 1);
	assert_int_equal(quantiles.error_ns, 8000);
	/* One clock, no error of two. */
	mrc_trace_quantiles(&trace, MRC_TRACE_LAST_SENT, MRC_TRACE_LOCAL, &quantiles);
	assert_int_equal(quantiles.min_ns, 1000);
	assert_int_equal(quantiles.unsure_count, 0);
	assert_int_equal(quantiles.error_ns, 0);
	mrc_trace_quantiles(&trace, MRC_TRACE_PLACED, MRC_TRACE_VISIBLE, &quantiles);
	assert_int_equal(quantiles.error_ns, 0);
}

static void a_rejected_message_is_not_committed(void **state)
{
	struct mrc_trace_quantiles quantiles;

	canned_take(&trace,
		    CANNED_ANSWER(CANNED_CLOCK, CANNED_MESSAGE("5", "REJECTED", CANNED_GOOD)));
	mrc_trace_quantiles(&trace, MRC_TRACE_VISIBLE, MRC_TRACE_VERDICT, &quantiles);
	assert_int_equal(quantiles.count, 0);
	mrc_trace_quantiles(&trace, MRC_TRACE_PLACED, MRC_TRACE_VISIBLE, &quantiles);
	assert_int_equal(quantiles.count, 1);
}

static void a_message_comes_out_as_it_came_in(void **state)
{
	static const char *const rows[] = {
		CANNED_MESSAGE("5", "OK", CANNED_GOOD),
		CANNED_MESSAGE("6", "OK", CANNED_CROSSED),
		CANNED_MESSAGE("7", "PEER_DIED", CANNED_FAILED),
	};

	canned_take(&trace,
		    CANNED_ANSWER(CANNED_CLOCK,
				  CANNED_MESSAGE("5", "OK", CANNED_GOOD) "," CANNED_MESSAGE(
					  "6", "OK",
					  CANNED_CROSSED) "," CANNED_MESSAGE("7", "PEER_DIED",
									     CANNED_FAILED)));
	for (size_t i = 0; i < COUNT(rows); i++) {
		json_t *want = json_loads(rows[i], 0, NULL);
		json_t *json = mrc_trace_message_json(&trace.messages[i]);

		assert_true(json_equal(json, want));
		json_decref(json);
		json_decref(want);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(trace_takes_a_message_with_all_its_moments),
		TEST(trace_tells_an_unknown_moment_from_one_at_0),
		TEST(trace_refuses_what_is_no_answer),
		TEST(trace_is_ended_when_its_channel_is),
		TEST(trace_asks_from_where_the_last_answer_ended),
		TEST(trace_wants_to_be_asked_again_after_a_full_answer),
		TEST(trace_keeps_no_more_than_its_bound_and_counts_the_rest),
		TEST(trace_counts_what_went_missing_since_it_began),
		TEST(quantiles_are_of_the_nearest_rank),
		TEST(quantiles_of_nothing_are_0),
		TEST(quantiles_keep_what_is_below_0_and_say_what_is_not_sure),
		TEST(a_rejected_message_is_not_committed),
		TEST(a_message_comes_out_as_it_came_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
