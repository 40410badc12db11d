/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces: who may be asked for what, what is kept, and that nobody has to end them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "mrcd_log.h"
#include "mrcd_peer.h"
#include "mrcd_trace.h"
#include "mrcd_worker.h"

struct stage {
	struct mrcd_conf conf;
	struct mrcd_conf_peer peers[2];
	struct mrcd_worker *worker;
	uint32_t ids[2]; /* of a channel to each peer */
};

static uint32_t channel_open(struct stage *stage, struct mrcd_peer *peer, const char *service)
{
	uint32_t id = 0;
	struct mrc_event_in ev = {
		.kind = MRC_EV_CH_OPEN,
		.channel = {.flow = 1,
			    .cookie = 0x123456,
			    .ring_bytes = 65536,
			    .msg_bytes_max = 65536,
			    .window = 16,
			    .service = service,
			    .id_out = &id},
	};

	assert_int_equal(mrc_conn_handle(mrcd_peer_conn(peer), &ev, stage->worker->now_ns), 0);
	assert_int_not_equal(id, 0);
	return id;
}

static int setup(void **state)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	struct mrcd_conf *conf = &stage->conf;

	mrcd_log_init(LOG_CRIT);
	strcpy(conf->host, "a");
	strcpy(conf->runtime_dir, "/nonexistent");
	conf->rail_count = 1;
	strcpy(conf->rails[0].name, "r0");
	conf->peers = stage->peers;
	conf->peer_count = 2;
	for (int i = 0; i < 2; i++) {
		stage->peers[i].name[0] = (char)('b' + i);
		strcpy(stage->peers[i].paths[0].address, "10.0.0.2");
		stage->peers[i].path_count = 1;
	}
	assert_int_equal(mrcd_worker_new(conf, &stage->worker), 0);
	for (int i = 0; i < 2; i++)
		stage->ids[i] = channel_open(stage, stage->worker->peers[i], "svc");
	/* Engines number alike, which is what makes "peer" wanted. */
	assert_int_equal(stage->ids[0], stage->ids[1]);
	*state = stage;
	return 0;
}

static int teardown(void **state)
{
	struct stage *stage = *state;

	mrcd_worker_free(stage->worker);
	free(stage);
	return 0;
}

/* {"channel", "peer", "every", "since"}: answers the result, or NULL with the error's text. */
static json_t *ask(struct stage *stage, json_t *command, char error_out[256])
{
	json_t *error = NULL;
	json_t *result = mrcd_trace_ask(stage->worker->traces, command, &error);

	json_decref(command);
	error_out[0] = 0;
	if (result == NULL) {
		assert_non_null(error);
		snprintf(error_out, 256, "%s", json_string_value(error));
	} else {
		assert_null(error);
	}
	json_decref(error);
	return result;
}

static json_t *ask_b(struct stage *stage, int every, json_int_t since)
{
	char error[256];
	json_t *result = ask(stage,
			     json_pack("{s:I, s:s, s:i, s:I}", "channel", (json_int_t)stage->ids[0],
				       "peer", "b", "every", every, "since", since),
			     error);

	if (result == NULL)
		fail_msg("%s", error);
	return result;
}

static json_int_t number_of(const json_t *object, const char *key)
{
	assert_true(json_is_integer(json_object_get(object, key)));
	return json_integer_value(json_object_get(object, key));
}

static void finish_moments(struct stage *stage, uint64_t number, enum mrc_moment unknown)
{
	struct mrc_act_trace act = {
		.channel = stage->ids[0],
		.number = number,
		.len = 10 * number,
		.frag_count = 3,
		.outcome = MRC_OUT_REJECTED,
		.level = MRC_LVL_VISIBLE,
		.code = 5,
		.error_ns = 77,
	};

	for (uint64_t i = 0; i < MRC_MOMENT_COUNT; i++)
		act.moments_ns[i] = i == unknown ? 0 : MRC_MAX(1000 * number + i, 1);
	mrcd_trace_add(stage->worker->traces, stage->worker->peers[0], &act);
}

static void finish(struct stage *stage, uint64_t number)
{
	finish_moments(stage, number, MRC_MOMENT_LOCAL);
}

static void question_that_is_no_good_says_what_is(void **state)
{
	static const struct {
		const char *command, *want;
	} rows[] = {
		{"{}", "\"channel\" is wanted"},
		{"{\"channel\": \"b\", \"every\": 1}", "\"channel\" is wanted"},
		{"{\"channel\": 0, \"every\": 1}", "\"channel\" is wanted"},
		{"{\"channel\": 4294967296, \"every\": 1}", "\"channel\" is wanted"},
		{"{\"channel\": 1}", "\"every\" is wanted"},
		{"{\"channel\": 1, \"every\": -1}", "1 to 1000000; 0 ends it"},
		{"{\"channel\": 1, \"every\": 1000001}", "1 to 1000000; 0 ends it"},
		{"{\"channel\": 1, \"every\": 1, \"since\": \"x\"}", "\"since\" is to be a number"},
		{"{\"channel\": 77, \"every\": 1}", "there is no channel 77"},
		{"{\"channel\": 77, \"every\": 1, \"peer\": \"b\"}", "there is no channel 77 to b"},
		{"{\"channel\": %u, \"every\": 1, \"peer\": \"z\"}", "to z"},
		{"{\"channel\": %u, \"every\": 1}", "which \"peer\"? There are b/"},
		{"{\"channel\": %u, \"every\": 0, \"peer\": \"b\"}", "is not traced"},
		{"{\"channel\": %u, \"every\": 1, \"peer\": \"\\u0000\"}", NULL}, /* no crash */
	};
	struct stage *stage = *state;
	char text[256], error[256];

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		json_t *command, *result;
		const char *at = strstr(rows[i].command, "%u");

		snprintf(text, sizeof(text), "%s", rows[i].command);
		if (at != NULL)
			snprintf(text, sizeof(text), "%.*s%u%s", (int)(at - rows[i].command),
				 rows[i].command, stage->ids[0], at + 2);
		command = json_loads(text, JSON_ALLOW_NUL, NULL);
		assert_non_null(command);
		result = ask(stage, command, error);
		if (rows[i].want != NULL && (result != NULL || strstr(error, rows[i].want) == NULL))
			fail_msg("%s: %s", text, result != NULL ? "was answered" : error);
		json_decref(result);
	}
}

static void messages_are_told_once_and_in_order(void **state)
{
	struct stage *stage = *state;
	json_t *result, *message;

	finish(stage, 1); /* nobody asked for it */
	result = ask_b(stage, 10, -1);
	assert_string_equal(json_string_value(json_object_get(result, "peer")), "b");
	assert_string_equal(json_string_value(json_object_get(result, "service")), "svc");
	assert_int_equal(number_of(result, "channel"), stage->ids[0]);
	assert_int_equal(number_of(result, "every"), 10);
	assert_int_equal(number_of(result, "next"), 0);
	assert_true(json_is_null(json_object_get(result, "clock"))); /* never met */
	assert_int_equal(json_array_size(json_object_get(result, "messages")), 0);
	json_decref(result);

	for (uint64_t i = 2; i < 5; i++)
		finish(stage, i);
	result = ask_b(stage, 10, 1);
	assert_int_equal(number_of(result, "next"), 3);
	assert_int_equal(number_of(result, "missed"), 0);
	assert_int_equal(json_array_size(json_object_get(result, "messages")), 2);
	message = json_array_get(json_object_get(result, "messages"), 1);
	assert_int_equal(number_of(message, "seq"), 2);
	assert_int_equal(number_of(message, "number"), 4);
	assert_int_equal(number_of(message, "bytes"), 40);
	assert_int_equal(number_of(message, "fragments"), 3);
	assert_int_equal(number_of(message, "code"), 5);
	assert_int_equal(number_of(message, "error_ns"), 77);
	assert_string_equal(json_string_value(json_object_get(message, "outcome")), "REJECTED");
	assert_string_equal(json_string_value(json_object_get(message, "level")), "visible");
	assert_int_equal(number_of(message, "submitted_ns"), 4000);
	assert_int_equal(number_of(message, "fetched_ns"), 4001);
	assert_int_equal(number_of(message, "first_sent_ns"), 4002);
	assert_int_equal(number_of(message, "last_sent_ns"), 4003);
	assert_null(json_object_get(message, "local_ns")); /* not known */
	assert_int_equal(number_of(message, "placed_ns"), 4005);
	assert_int_equal(number_of(message, "visible_ns"), 4006);
	assert_int_equal(number_of(message, "verdict_ns"), 4007);
	assert_int_equal(json_object_size(message), 15);
	json_decref(result);
	/* From beyond the end, and as far from the other side as can be. */
	result = ask_b(stage, 10, 1000000);
	assert_int_equal(number_of(result, "next"), 3);
	json_decref(result);
	result = ask_b(stage, 10, INT64_MIN);
	assert_int_equal(number_of(result, "next"), 3);
	json_decref(result);
}

static void who_comes_late_is_told_what_was_missed(void **state)
{
	struct stage *stage = *state;
	json_t *result = ask_b(stage, 1, -1);
	json_int_t next = 0;
	uint32_t told = 0;

	json_decref(result);
	for (uint64_t i = 0; i < MRCD_TRACE_KEPT + 100; i++)
		finish(stage, i);
	for (int answers = 0; next < MRCD_TRACE_KEPT + 100; answers++) {
		const json_t *messages;

		assert_true(answers <= (int)(MRCD_TRACE_KEPT / MRCD_TRACE_TOLD_MAX));
		result = ask_b(stage, 1, next);
		messages = json_object_get(result, "messages");
		assert_int_equal(number_of(result, "missed"), next == 0 ? 100 : 0);
		assert_in_range(json_array_size(messages), 1, MRCD_TRACE_TOLD_MAX);
		assert_int_equal(number_of(json_array_get(messages, 0), "number"), 100 + told);
		told += (uint32_t)json_array_size(messages);
		next = number_of(result, "next");
		json_decref(result);
	}
	assert_int_equal(told, MRCD_TRACE_KEPT);
}

static void trace_ends_when_it_is_said_or_nobody_asks(void **state)
{
	struct stage *stage = *state;
	char error[256];
	json_t *result;
	uint64_t end_ns;

	json_decref(ask_b(stage, 1, -1));
	finish(stage, 1);
	result = ask_b(stage, 0, 0);
	assert_int_equal(number_of(result, "every"), 0);
	assert_int_equal(json_array_size(json_object_get(result, "messages")), 1);
	json_decref(result);
	finish(stage, 2);
	result = ask_b(stage, 1, 0);
	assert_int_equal(json_array_size(json_object_get(result, "messages")), 0);
	json_decref(result);

	/* The lease: asked almost so long ago, and the timer ends it. */
	end_ns = mrcd_worker_now(stage->worker) + 20 * MRC_MS;
	stage->worker->now_ns = end_ns - MRCD_TRACE_LEASE_NS;
	json_decref(ask_b(stage, 1, 0));
	do {
		event_base_loop(stage->worker->base, EVLOOP_ONCE);
	} while (mrcd_worker_now(stage->worker) < end_ns);
	event_base_loop(stage->worker->base, EVLOOP_NONBLOCK);
	result = ask(stage,
		     json_pack("{s:I, s:s, s:i}", "channel", (json_int_t)stage->ids[0], "peer", "b",
			       "every", 0),
		     error);
	assert_null(result);
	assert_non_null(strstr(error, "is not traced"));
}

static void trace_of_a_channel_that_ends_says_so_and_is_not_renewed(void **state)
{
	struct stage *stage = *state;
	struct mrcd_peer *peer = stage->worker->peers[0];
	struct mrc_event_in ev = {.kind = MRC_EV_CH_ABORT, .channel = {.id = stage->ids[0]}};
	struct mrc_action act;
	json_t *result = ask_b(stage, 1, -1);

	assert_true(json_is_false(json_object_get(result, "ended")));
	json_decref(result);
	finish(stage, 1);
	assert_int_equal(mrc_conn_handle(mrcd_peer_conn(peer), &ev, stage->worker->now_ns), 0);
	while (mrc_conn_next_action(mrcd_peer_conn(peer), &act, stage->worker->now_ns))
		continue;
	/* What it left is told all the same. */
	stage->worker->now_ns += 2 * MRCD_TRACE_LEASE_NS;
	result = ask_b(stage, 1, 0);
	assert_true(json_is_true(json_object_get(result, "ended")));
	assert_int_equal(json_array_size(json_object_get(result, "messages")), 1);
	json_decref(result);
}

/* A trace outlives its channel by a while, and a peer may be taken out of the configuration meanwhile. */
static void traces_of_a_peer_that_goes_end(void **state)
{
	struct stage *stage = *state;
	char error[256];

	json_decref(ask_b(stage, 1, -1));
	mrcd_traces_forget(stage->worker->traces, stage->worker->peers[1]);
	json_decref(ask_b(stage, 1, 0)); /* it was another's */
	mrcd_traces_forget(stage->worker->traces, stage->worker->peers[0]);
	assert_null(ask(stage,
			json_pack("{s:I, s:s, s:i}", "channel", (json_int_t)stage->ids[0], "peer",
				  "b", "every", 0),
			error));
	assert_non_null(strstr(error, "is not traced"));
}

/* It was taken for the stages alone, before the channel was traced. */
static void a_message_taken_for_the_stages_is_none_of_a_trace(void **state)
{
	struct stage *stage = *state;
	json_t *result;

	json_decref(ask_b(stage, 1, -1));
	finish_moments(stage, 0, MRC_MOMENT_SUBMITTED);
	finish(stage, 1);
	result = ask_b(stage, 1, 0);
	assert_int_equal(json_array_size(json_object_get(result, "messages")), 1);
	assert_int_equal(number_of(json_array_get(json_object_get(result, "messages"), 0),
				   "number"),
			 1);
	json_decref(result);
}

/* Numbers are not used twice: who goes on from an old trace misses nothing of the new one. */
static void a_trace_goes_on_where_the_last_one_ended(void **state)
{
	struct stage *stage = *state;
	json_t *result;

	json_decref(ask_b(stage, 1, -1));
	for (uint64_t i = 0; i < 5; i++)
		finish(stage, i);
	json_decref(ask_b(stage, 0, 0));
	json_decref(ask_b(stage, 1, 0));
	finish(stage, 5);
	result = ask_b(stage, 1, 5);
	assert_int_equal(json_array_size(json_object_get(result, "messages")), 1);
	assert_int_equal(number_of(result, "missed"), 0);
	assert_int_equal(number_of(result, "next"), 6);
	json_decref(result);
	/* From before it began is from its beginning. */
	result = ask_b(stage, 1, 2);
	assert_int_equal(json_array_size(json_object_get(result, "messages")), 1);
	assert_int_equal(number_of(result, "missed"), 0);
	json_decref(result);
}

static void a_running_trace_hides_no_ambiguity(void **state)
{
	struct stage *stage = *state;
	char error[256];

	json_decref(ask_b(stage, 1, -1));
	assert_null(ask(stage,
			json_pack("{s:I, s:i}", "channel", (json_int_t)stage->ids[0], "every", 0),
			error));
	assert_non_null(strstr(error, "which \"peer\"?"));
}

static void more_traces_than_there_may_be_are_refused(void **state)
{
	struct stage *stage = *state;
	char error[256];
	json_t *result;

	for (uint32_t i = 0; i <= MRCD_TRACES_MAX; i++) {
		uint32_t id = channel_open(stage, stage->worker->peers[1], "many");

		result = ask(stage,
			     json_pack("{s:I, s:s, s:i}", "channel", (json_int_t)id, "peer", "c",
				       "every", 1),
			     error);
		if (i < MRCD_TRACES_MAX)
			assert_non_null(result);
		else
			assert_non_null(strstr(error, "16 channels are traced"));
		json_decref(result);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(question_that_is_no_good_says_what_is),
		TEST(messages_are_told_once_and_in_order),
		TEST(who_comes_late_is_told_what_was_missed),
		TEST(trace_ends_when_it_is_said_or_nobody_asks),
		TEST(trace_of_a_channel_that_ends_says_so_and_is_not_renewed),
		TEST(traces_of_a_peer_that_goes_end),
		TEST(a_message_taken_for_the_stages_is_none_of_a_trace),
		TEST(a_trace_goes_on_where_the_last_one_ended),
		TEST(a_running_trace_hides_no_ambiguity),
		TEST(more_traces_than_there_may_be_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
