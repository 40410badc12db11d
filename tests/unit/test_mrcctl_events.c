/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcctl events: what is printed, where it goes on, and that another daemon's numbers begin anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "mrcctl_events.h"

static const char answer_of_two[] =
	"{\"events\":[{\"seq\":4,\"wall_ns\":1700000000123000000,\"kind\":\"carrier-lost\","
	"\"rail\":\"r1\",\"text\":\"rail r1: carrier lost\"},"
	"{\"seq\":5,\"wall_ns\":1700000001456000000,\"kind\":\"path\",\"state\":\"GOOD\","
	"\"text\":\"rail r1 to b: GOOD\"}],"
	"\"next\":5,\"missed\":3,\"count\":5,\"dropped\":3,\"boot_id\":\"00000000000000aa\"}";

static char text[4096];

static int take(struct mrcctl_events_place *place, const char *answer, bool is_json,
		bool has_colour)
{
	json_t *result = json_loads(answer, 0, NULL);
	FILE *out;
	int r;

	assert_non_null(result);
	memset(text, 0, sizeof(text));
	out = fmemopen(text, sizeof(text) - 1, "w");
	assert_non_null(out);
	r = mrcctl_events_take(place, result, is_json, has_colour, out);
	fclose(out);
	json_decref(result);
	return r;
}

static void lines_have_the_time_and_the_words(void **state)
{
	struct mrcctl_events_place place = {0};

	setenv("TZ", "UTC", 1);
	assert_int_equal(take(&place, answer_of_two, false, false), 0);
	assert_string_equal(text, "3 older events are no longer kept\n"
				  "2023-11-14 22:13:20.123  rail r1: carrier lost\n"
				  "2023-11-14 22:13:21.456  rail r1 to b: GOOD\n");
	assert_int_equal(place.since, 5);
	assert_string_equal(place.boot_id, "00000000000000aa");
	assert_int_equal(take(&place, answer_of_two, false, true), 0);
	assert_non_null(strstr(text, "\033[31mrail r1: carrier lost\033[0m"));
	assert_non_null(strstr(text, "\033[32mrail r1 to b: GOOD\033[0m"));
}

static void json_is_an_object_a_line(void **state)
{
	struct mrcctl_events_place place = {0};
	char *line;
	int lines = 0;

	assert_int_equal(take(&place, answer_of_two, true, false), 0);
	for (line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		json_t *object = json_loads(line, 0, NULL);

		assert_true(json_is_object(object));
		json_decref(object);
		lines++;
	}
	assert_int_equal(lines, 3);
}

static void another_daemon_is_asked_from_its_beginning(void **state)
{
	struct mrcctl_events_place place = {.since = 77, .boot_id = "00000000000000bb"};

	assert_int_equal(take(&place, answer_of_two, false, false), 1);
	assert_string_equal(text, "");
	assert_int_equal(place.since, 0);
	assert_int_equal(take(&place, answer_of_two, false, false), 0);
	assert_int_equal(place.since, 5);
}

/* A daemon that took the state of another over has its boot id, and numbers from 1 all the same. */
static void another_log_of_the_same_state_is_asked_from_its_beginning(void **state)
{
	static const char answer[] = "{\"log\":8,\"events\":[],\"next\":77,\"missed\":0,\"count\":"
				     "77,\"boot_id\":\"aa\"}";
	struct mrcctl_events_place place = {.since = 5, .boot_id = "aa", .log = 7};

	assert_int_equal(take(&place, answer, false, false), 1);
	assert_int_equal(place.since, 0);
	assert_int_equal(take(&place, answer, false, false), 0);
	assert_int_equal(place.since, 77);
	assert_int_equal(place.log, 8);
}

static void what_is_not_told_yet_is_asked_for_at_once(void **state)
{
	struct mrcctl_events_place place = {0};

	assert_int_equal(take(&place,
			      "{\"events\":[],\"next\":5,\"missed\":0,\"count\":6,"
			      "\"boot_id\":\"aa\"}",
			      false, false),
			 1);
}

static void what_is_no_answer_is_said_so(void **state)
{
	static const char *const answers[] = {
		"{}",
		"{\"events\":[],\"next\":5,\"count\":5}",
		"{\"events\":[],\"next\":5,\"count\":5,\"boot_id\":"
		"\"0123456789012345678901234567\"}",
		"{\"events\":[{}],\"next\":5,\"count\":5,\"boot_id\":\"aa\"}",
		"{\"events\":[7],\"next\":5,\"count\":5,\"boot_id\":\"aa\"}",
		"{\"events\":[{\"wall_ns\":1,\"text\":\"x\"}],\"next\":5,\"count\":5,\"boot_id\":"
		"\"aa\"}",
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct mrcctl_events_place place = {0};

		assert_int_equal(take(&place, answers[i], false, false), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_have_the_time_and_the_words),
		cmocka_unit_test(json_is_an_object_a_line),
		cmocka_unit_test(another_daemon_is_asked_from_its_beginning),
		cmocka_unit_test(another_log_of_the_same_state_is_asked_from_its_beginning),
		cmocka_unit_test(what_is_not_told_yet_is_asked_for_at_once),
		cmocka_unit_test(what_is_no_answer_is_said_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
