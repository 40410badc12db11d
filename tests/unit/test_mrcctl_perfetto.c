/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file for viewers, held against the Trace Event Format: what an importer
 * reads of each kind of event, that it has the right type, and that the slices
 * of one thread lie in each other or beside each other, which is what the
 * viewers can draw.
 */
#include "trace_canned.h"

#include <math.h>

#include "mrcctl_trace_perfetto.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Three at once, one later; one crossed by the clocks, one failed. */
#define ANSWER                                                                                     \
	CANNED_ANSWER(                                                                             \
		CANNED_CLOCK,                                                                      \
		CANNED_MESSAGE("5", "OK", CANNED_GOOD) "," CANNED_MESSAGE(                         \
			"6", "OK",                                                                 \
			CANNED_CROSSED) "," CANNED_MESSAGE("7", "PEER_DIED",                       \
							   CANNED_FAILED) "," CANNED_MESSAGE("8",  \
											     "OK", \
											     CANNED_GOOD))

static json_t *perfetto(const char *answer)
{
	struct mrc_trace trace;
	json_error_t error;
	char *text = NULL;
	json_t *json;
	size_t size;
	FILE *out;

	mrc_trace_init(&trace, 1000);
	canned_take(&trace, answer);
	out = open_memstream(&text, &size);
	assert_non_null(out);
	assert_int_equal(mrcctl_trace_perfetto(&trace, "a", out), 0);
	assert_int_equal(fclose(out), 0);
	mrc_trace_fini(&trace);
	json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (json == NULL)
		fail_msg("not JSON: %s, line %d of\n%s", error.text, error.line, text);
	free(text);
	return json;
}

static const char *text_of(const json_t *event, const char *key)
{
	const char *text = json_string_value(json_object_get(event, key));

	if (text == NULL || text[0] == '\0')
		fail_msg("no text %s in %s", key, json_dumps(event, 0));
	return text;
}

static int64_t integer_of(const json_t *event, const char *key)
{
	const json_t *value = json_object_get(event, key);

	if (!json_is_integer(value))
		fail_msg("no integer %s in %s", key, json_dumps(event, 0));
	return json_integer_value(value);
}

/* us as they are written, to ns: nothing may be lost on the way. */
static int64_t ns_of(const json_t *event, const char *key)
{
	const json_t *value = json_object_get(event, key);
	double ns;

	if (!json_is_number(value) || !isfinite(json_number_value(value)))
		fail_msg("no number %s in %s", key, json_dumps(event, 0));
	ns = json_number_value(value) * 1e3;
	if (ns < 0 || fabs(ns - round(ns)) > 0.3)
		fail_msg("%s is below 0 or between two ns in %s", key, json_dumps(event, 0));
	return (int64_t)round(ns);
}

static bool is_on(const json_t *event, int64_t pid, int64_t tid)
{
	return integer_of(event, "pid") == pid && integer_of(event, "tid") == tid;
}

/* A viewer shows the names: each thread with events has one, and so has its process. */
static bool is_named(const json_t *events, const char *kind, int64_t pid, int64_t tid)
{
	const json_t *event;
	size_t i;

	json_array_foreach(events, i, event) if (strcmp(text_of(event, "name"), kind) == 0 &&
						 is_on(event, pid, tid) &&
						 strlen(text_of(json_object_get(event, "args"),
								"name")) > 0) return true;
	return false;
}

static void check_event(const json_t *events, const json_t *event)
{
	const char *phase = text_of(event, "ph");
	int64_t pid = integer_of(event, "pid"), tid = integer_of(event, "tid");

	text_of(event, "name");
	if (strcmp(phase, "M") == 0) {
		assert_true(json_is_object(json_object_get(event, "args")));
		return;
	}
	ns_of(event, "ts");
	text_of(event, "cat");
	assert_true(is_named(events, "process_name", pid, 0));
	assert_true(is_named(events, "thread_name", pid, tid));
	if (strcmp(phase, "X") == 0)
		ns_of(event, "dur");
	else if (strcmp(phase, "i") == 0)
		assert_string_equal(text_of(event, "s"), "t");
	else
		fail_msg("an event of kind %s: not one that we write", phase);
}

/* A number as a viewer may have it: from some other moment on, in doubles. */
static double us_of(const json_t *event, const char *key)
{
	return json_number_value(json_object_get(event, key)) -
	       (strcmp(key, "ts") == 0 ? 0.4150390625 : 0);
}

/* Two slices of one thread: apart, or one in the other, by the sums that a viewer makes. */
static void check_pair(const json_t *a, const json_t *b)
{
	double a_start, a_end, b_start, b_end;

	if (strcmp(text_of(a, "ph"), "X") != 0 || strcmp(text_of(b, "ph"), "X") != 0 ||
	    !is_on(a, integer_of(b, "pid"), integer_of(b, "tid")))
		return;
	a_start = us_of(a, "ts");
	a_end = a_start + us_of(a, "dur");
	b_start = us_of(b, "ts");
	b_end = b_start + us_of(b, "dur");
	if (a_end <= b_start || b_end <= a_start || (a_start <= b_start && b_end <= a_end) ||
	    (b_start <= a_start && a_end <= b_end))
		return;
	fail_msg("two slices cross: %s and %s", json_dumps(a, 0), json_dumps(b, 0));
}

static const json_t *check(const json_t *json)
{
	const json_t *events = json_object_get(json, "traceEvents"), *a, *b;
	size_t i, j;

	assert_true(json_is_array(events));
	assert_string_equal(text_of(json, "displayTimeUnit"), "ns");
	assert_true(json_is_object(json_object_get(json, "otherData")));
	json_array_foreach(events, i, a)
	{
		check_event(events, a);
		json_array_foreach(events, j, b)
		{
			if (j > i)
				check_pair(a, b);
		}
	}
	return events;
}

/* The slice of that name in the process, at that time; NULL: none. */
static const json_t *slice(const json_t *events, const char *name, int64_t pid, int64_t ts_ns)
{
	const json_t *event;
	size_t i;

	json_array_foreach(events, i, event) if (strcmp(text_of(event, "name"), name) == 0 &&
						 integer_of(event, "pid") == pid &&
						 strcmp(text_of(event, "ph"), "M") != 0 &&
						 ns_of(event, "ts") == ts_ns) return event;
	return NULL;
}

static void perfetto_keeps_to_the_trace_event_format(void **state)
{
	static const char *const rows[] = {
		ANSWER,
		CANNED_ANSWER("null", ""),
		CANNED_ANSWER("null", CANNED_MESSAGE("7", "PEER_DIED", CANNED_FAILED)),
		CANNED_ANSWER("null", CANNED_MESSAGE("5", "OK", "\"visible_ns\":-7")),
		CANNED_ANSWER("null", CANNED_MESSAGE("5", "OK",
						     "\"fetched_ns\":9000000000000001,"
						     "\"placed_ns\":9000000000000003")),
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		json_t *json = perfetto(rows[i]);

		check(json);
		json_decref(json);
	}
}

static void perfetto_has_a_slice_for_each_stage(void **state)
{
	static const struct {
		const char *name;
		int64_t pid, ts_ns, dur_ns;
	} rows[] = {
		{"message 815", 1, 0, 1000000},
		{"in the ring", 1, 0, 100000},
		{"waiting for a path", 1, 100000, 100000},
		{"being sent", 1, 200000, 400000},
		{"under way", 1, 600000, 200000},
		{"message 815", 2, 800000, 200000},
		{"placed", 2, 800000, 100000},
		{"visible", 2, 900000, 100000},
	};
	json_t *json =
		perfetto(CANNED_ANSWER(CANNED_CLOCK, CANNED_MESSAGE("5", "OK", CANNED_GOOD)));
	const json_t *events = check(json), *event;
	const json_t *args;
	size_t i, slice_count = 0;

	for (i = 0; i < COUNT(rows); i++) {
		event = slice(events, rows[i].name, rows[i].pid, rows[i].ts_ns);
		if (event == NULL)
			fail_msg("no %s", rows[i].name);
		assert_int_equal(ns_of(event, "dur"), rows[i].dur_ns);
	}
	json_array_foreach(events, i, event) slice_count += strcmp(text_of(event, "ph"), "X") == 0;
	assert_int_equal(slice_count, COUNT(rows));
	event = slice(events, "local completion", 1, 650000);
	assert_non_null(event);
	assert_string_equal(text_of(event, "ph"), "i");
	args = json_object_get(slice(events, "message 815", 1, 0), "args");
	assert_int_equal(integer_of(args, "number"), 815);
	assert_int_equal(integer_of(args, "bytes"), 1048576);
	assert_int_equal(integer_of(args, "error_ns"), 8000);
	assert_string_equal(text_of(args, "outcome"), "OK");
	assert_int_equal(integer_of(json_object_get(json, "otherData"), "base_ns"), 1000000);
	json_decref(json);
}

static void perfetto_lays_messages_at_once_into_lanes_of_their_own(void **state)
{
	static const struct {
		const char *name;
		int64_t pid, ts_ns, lane;
	} rows[] = {
		{"message 815", 1, 0, 1},       {"message 818", 1, 0, 2}, /* the same times */
		{"message 816", 1, 500000, 3},  /* begins while both go on */
		{"message 817", 1, 2000000, 1}, /* after them: the first lane again */
		{"message 816", 2, 798000, 1},  /* the first one to be placed */
	};
	json_t *json = perfetto(ANSWER);
	const json_t *events = check(json);

	for (size_t i = 0; i < COUNT(rows); i++) {
		const json_t *event = slice(events, rows[i].name, rows[i].pid, rows[i].ts_ns);

		if (event == NULL)
			fail_msg("no %s", rows[i].name);
		assert_int_equal(integer_of(event, "tid"), rows[i].lane);
	}
	json_decref(json);
}

static void perfetto_says_what_it_cannot_draw(void **state)
{
	json_t *json =
		perfetto(CANNED_ANSWER(CANNED_CLOCK, CANNED_MESSAGE("6", "OK", CANNED_CROSSED)));
	const json_t *events = check(json);
	const json_t *args = json_object_get(slice(events, "message 816", 1, 0), "args");

	assert_int_equal(integer_of(args, "under_way_ns"), -2000);
	assert_null(slice(events, "under way", 1, 300000));
	assert_null(slice(events, "under way", 1, 298000));
	assert_non_null(slice(events, "placed", 2, 298000));
	json_decref(json);
}

static void perfetto_loses_no_nanosecond(void **state)
{
	json_t *json = perfetto(
		CANNED_ANSWER("null", CANNED_MESSAGE("5", "OK",
						     "\"submitted_ns\":9000000000000001,"
						     "\"fetched_ns\":9000000000123457,"
						     "\"first_sent_ns\":9003600000000002")));
	const json_t *events = check(json);

	assert_int_equal(ns_of(slice(events, "in the ring", 1, 0), "dur"), 123456);
	assert_int_equal(ns_of(slice(events, "message 815", 1, 0), "dur"), 3600000000001);
	json_decref(json);
}

/* What speedscope stumbled over: 0.1 + 0.2 is more than 0.3. */
static void perfetto_has_slices_that_meet_in_the_arithmetic_of_viewers(void **state)
{
	uint64_t random = 1;

	for (int round = 0; round < 200; round++) {
		int64_t at_ns[7] = {0};
		char text[1024];
		json_t *json;

		for (int i = 1; i < 7; i++) {
			random = random * 6364136223846793005U + 1442695040888963407U;
			at_ns[i] = at_ns[i - 1] + (int64_t)(random >> 44);
		}
		snprintf(text, sizeof(text),
			 CANNED_ANSWER("null",
				       CANNED_MESSAGE("5", "OK",
						      "\"submitted_ns\":%lld,\"fetched_ns\":%lld,"
						      "\"first_sent_ns\":%lld,"
						      "\"last_sent_ns\":%lld,"
						      "\"placed_ns\":%lld,\"visible_ns\":%lld,"
						      "\"verdict_ns\":%lld")),
			 (long long)at_ns[0], (long long)at_ns[1], (long long)at_ns[2],
			 (long long)at_ns[3], (long long)at_ns[4], (long long)at_ns[5],
			 (long long)at_ns[6]);
		json = perfetto(text);
		check(json);
		json_decref(json);
	}
}

static void perfetto_tells_when_it_could_not_write(void **state)
{
	struct mrc_trace trace;
	FILE *full = fopen("/dev/full", "w");

	if (full == NULL)
		skip();
	mrc_trace_init(&trace, 10);
	canned_take(&trace, ANSWER);
	assert_true(mrcctl_trace_perfetto(&trace, "a", full) < 0);
	fclose(full);
	mrc_trace_fini(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perfetto_keeps_to_the_trace_event_format),
		cmocka_unit_test(perfetto_has_a_slice_for_each_stage),
		cmocka_unit_test(perfetto_lays_messages_at_once_into_lanes_of_their_own),
		cmocka_unit_test(perfetto_says_what_it_cannot_draw),
		cmocka_unit_test(perfetto_loses_no_nanosecond),
		cmocka_unit_test(perfetto_has_slices_that_meet_in_the_arithmetic_of_viewers),
		cmocka_unit_test(perfetto_tells_when_it_could_not_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
