/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of events: what is told is in order, what is lost is counted to the event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "mrc_conn.h"
#include "mrcd_event_log.h"

static int setup(void **state)
{
	struct mrcd_event_log *log;

	assert_int_equal(mrcd_event_log_new(&log), 0);
	*state = log;
	return 0;
}

static int teardown(void **state)
{
	mrcd_event_log_free(*state);
	return 0;
}

static void add(struct mrcd_event_log *log, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		struct mrcd_event event = {.kind = MRCD_EVENT_CARRIER_LOST};

		snprintf(event.rail, sizeof(event.rail), "r%u",
			 (unsigned)mrcd_event_log_count(log) + 1);
		mrcd_event_log_add(log, &event);
	}
}

static uint64_t number(const json_t *object, const char *key)
{
	assert_true(json_is_integer(json_object_get(object, key)));
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* Asks until all is told; each event exactly once, in order, or counted as missed. */
static void read_all(const struct mrcd_event_log *log, uint64_t since, uint64_t want_missed)
{
	uint64_t told = since, missed = 0;

	for (;;) {
		json_t *answer = mrcd_event_log_json(log, told), *event;
		size_t index;

		missed += number(answer, "missed");
		told += number(answer, "missed");
		assert_true(json_array_size(json_object_get(answer, "events")) <=
			    MRCD_EVENTS_TOLD_MAX);
		json_array_foreach(json_object_get(answer, "events"), index, event)
		{
			char rail[16];

			told++;
			snprintf(rail, sizeof(rail), "r%u", (unsigned)told);
			assert_int_equal(number(event, "seq"), told);
			assert_string_equal(json_string_value(json_object_get(event, "rail")),
					    rail);
		}
		assert_int_equal(number(answer, "next"), told);
		assert_int_equal(number(answer, "count"), mrcd_event_log_count(log));
		if (json_array_size(json_object_get(answer, "events")) == 0) {
			json_decref(answer);
			break;
		}
		json_decref(answer);
	}
	assert_int_equal(told, mrcd_event_log_count(log));
	assert_int_equal(missed, want_missed);
}

static void log_of_nothing_tells_nothing(void **state)
{
	json_t *answer = mrcd_event_log_json(*state, 0);

	assert_int_equal(json_array_size(json_object_get(answer, "events")), 0);
	assert_int_equal(number(answer, "next"), 0);
	assert_int_equal(number(answer, "missed"), 0);
	assert_int_equal(number(answer, "dropped"), 0);
	json_decref(answer);
}

static void events_are_told_once_and_in_order(void **state)
{
	add(*state, 1);
	read_all(*state, 0, 0);
	add(*state, MRCD_EVENTS_TOLD_MAX);
	read_all(*state, 0, 0);
	read_all(*state, 77, 0);
	add(*state, MRCD_EVENTS_KEPT - MRCD_EVENTS_TOLD_MAX - 1);
	assert_int_equal(mrcd_event_log_dropped(*state), 0);
	read_all(*state, 0, 0);
}

static void what_fell_out_is_counted_to_the_event(void **state)
{
	add(*state, MRCD_EVENTS_KEPT + 1);
	assert_int_equal(mrcd_event_log_dropped(*state), 1);
	read_all(*state, 0, 1);
	read_all(*state, 1, 0);
	add(*state, 3 * MRCD_EVENTS_KEPT + 5);
	assert_int_equal(mrcd_event_log_dropped(*state), 3 * MRCD_EVENTS_KEPT + 6);
	read_all(*state, 0, 3 * MRCD_EVENTS_KEPT + 6);
	read_all(*state, MRCD_EVENTS_KEPT, 2 * MRCD_EVENTS_KEPT + 6);
	read_all(*state, 4 * MRCD_EVENTS_KEPT, 0);
}

static void number_of_another_life_is_told_all(void **state)
{
	json_t *answer;

	add(*state, 3);
	answer = mrcd_event_log_json(*state, 4);
	assert_int_equal(json_array_size(json_object_get(answer, "events")), 3);
	assert_int_equal(number(answer, "missed"), 0);
	json_decref(answer);
}

/* Who follows tells another process's numbers from ours, whatever its boot id is. */
static void no_two_logs_are_the_same(void **state)
{
	json_t *ours = mrcd_event_log_json(*state, 0), *theirs;
	struct mrcd_event_log *log;

	assert_int_equal(mrcd_event_log_new(&log), 0);
	theirs = mrcd_event_log_json(log, 0);
	assert_true(number(ours, "log") > 0);
	assert_true(number(theirs, "log") > number(ours, "log"));
	json_decref(ours);
	json_decref(theirs);
	mrcd_event_log_free(log);
}

static void path_event_says_what_was_seen(void **state)
{
	struct mrcd_event event = {
		.kind = MRCD_EVENT_PATH,
		.rail = "r1",
		.peer = "b",
		.path_index = 2,
		.state_old = MRC_PATH_GOOD,
		.state = MRC_PATH_ASSUMED_BAD,
		.reason = MRC_REASON_SILENT,
		.path_epoch = 9,
		.moved_count = 17,
		.paths_good = 3,
		.silent_ns = 2100 * MRC_US,
		.late_ns = 1300 * MRC_US,
	};
	char text[MRCD_EVENT_TEXT_BYTES];
	json_t *answer, *told;

	mrcd_event_log_add(*state, &event);
	answer = mrcd_event_log_json(*state, 0);
	told = json_array_get(json_object_get(answer, "events"), 0);
	assert_string_equal(json_string_value(json_object_get(told, "kind")), "path");
	assert_string_equal(json_string_value(json_object_get(told, "state")),
			    mrc_path_state_name(MRC_PATH_ASSUMED_BAD));
	assert_string_equal(json_string_value(json_object_get(told, "reason")),
			    mrc_path_reason_name(MRC_REASON_SILENT));
	assert_int_equal(number(told, "path"), 2);
	assert_int_equal(number(told, "moved"), 17);
	assert_int_equal(number(told, "late_ns"), 1300 * MRC_US);
	assert_int_equal(number(told, "silent_ns"), 2100 * MRC_US);
	assert_true(number(told, "wall_ns") > 1600000000 * MRC_S);
	json_decref(answer);
	mrcd_event_text(&event, text);
	if (strstr(text, "rail r1 to b") == NULL ||
	    strstr(text, "not answered for 1.3 ms") == NULL ||
	    strstr(text, "17 fragments moved, 3 paths good") == NULL)
		fail_msg("%s", text);
	event.state = MRC_PATH_GOOD;
	event.state_old = MRC_PATH_PROBING;
	event.moved_count = 0;
	event.away_ns = 2 * MRC_S;
	mrcd_event_text(&event, text);
	if (strstr(text, "after 2.0 s, 3 paths good") == NULL)
		fail_msg("%s", text);
}

static void every_kind_has_words(void **state)
{
	for (int kind = 0; kind < MRCD_EVENT_KIND_COUNT; kind++) {
		struct mrcd_event event = {.kind = (enum mrcd_event_kind)kind, .note = "so"};
		char text[MRCD_EVENT_TEXT_BYTES];

		mrcd_event_text(&event, text);
		assert_null(strstr(text, "(null)"));
		if (kind != MRCD_EVENT_PATH)
			assert_non_null(strstr(text, ", so"));
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(log_of_nothing_tells_nothing),
		TEST(events_are_told_once_and_in_order),
		TEST(what_fell_out_is_counted_to_the_event),
		TEST(number_of_another_life_is_told_all),
		TEST(no_two_logs_are_the_same),
		TEST(path_event_says_what_was_seen),
		TEST(every_kind_has_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
