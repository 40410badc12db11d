/* SPDX-License-Identifier: BSD-2-Clause */
/* Stalls, series, the control socket, and the shape of the JSON. Time here is a number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <errno.h>
#include <mrc/client.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mrc_perf_control.h"
#include "mrc_perf_report.h"
#include "mrc_perf_stall.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum step_kind { END, COMPLETED, PAUSE, RESUME, LOOK };

static void stall_is_the_longest_gap_in_which_something_was_wanted(void **state)
{
	static const struct {
		const char *name;
		struct {
			enum step_kind kind;
			uint64_t at_ns;
		} steps[10];
		uint64_t max_ns;
		uint64_t max_start_ns;
	} rows[] = {
		{"nothing completed", {{LOOK, 1000}}, 0, 0},
		{"start-up does not count", {{COMPLETED, 5000}, {COMPLETED, 5010}}, 10, 5000},
		{"the longest of three",
		 {{COMPLETED, 10}, {COMPLETED, 20}, {COMPLETED, 90}, {COMPLETED, 95}},
		 70,
		 20},
		{"the first of two equal",
		 {{COMPLETED, 0}, {COMPLETED, 50}, {COMPLETED, 100}},
		 50,
		 0},
		{"to the end if answers are due",
		 {{COMPLETED, 10}, {COMPLETED, 20}, {LOOK, 520}},
		 500,
		 20},
		{"not to the end if none are",
		 {{COMPLETED, 10}, {COMPLETED, 20}, {PAUSE, 20}, {LOOK, 520}},
		 10,
		 10},
		{"not between paced messages",
		 {{COMPLETED, 10}, {PAUSE, 10}, {RESUME, 900}, {COMPLETED, 930}},
		 30,
		 900},
		{"from a paced send on",
		 {{COMPLETED, 10}, {PAUSE, 15}, {PAUSE, 400}, {RESUME, 900}, {LOOK, 1900}},
		 1000,
		 900},
		{"resumed without a pause",
		 {{COMPLETED, 10}, {RESUME, 400}, {COMPLETED, 510}},
		 500,
		 10},
		{"looks do not end a gap",
		 {{COMPLETED, 10}, {LOOK, 100}, {LOOK, 200}, {COMPLETED, 310}},
		 300,
		 10},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct perf_stall stall;

		perf_stall_init(&stall, 0);
		for (size_t s = 0; rows[i].steps[s].kind != END; s++) {
			uint64_t at_ns = rows[i].steps[s].at_ns;

			switch (rows[i].steps[s].kind) {
			case COMPLETED:
				perf_stall_completed(&stall, at_ns);
				break;
			case PAUSE:
				perf_stall_pause(&stall, at_ns);
				break;
			case RESUME:
				perf_stall_resume(&stall, at_ns);
				break;
			case LOOK:
				perf_stall_look(&stall, at_ns);
				break;
			case END:
				break;
			}
		}
		if (stall.max_ns != rows[i].max_ns || stall.max_start_ns != rows[i].max_start_ns)
			fail_msg("%s: %llu from %llu", rows[i].name,
				 (unsigned long long)stall.max_ns,
				 (unsigned long long)stall.max_start_ns);
	}
}

static void stall_of_an_interval_grows_while_nothing_completes(void **state)
{
	struct perf_stall stall;

	perf_stall_init(&stall, 0);
	assert_int_equal(perf_stall_interval(&stall, 100), 0);
	perf_stall_completed(&stall, 150);
	perf_stall_completed(&stall, 180);
	assert_int_equal(perf_stall_interval(&stall, 200), 30);
	assert_int_equal(perf_stall_interval(&stall, 300), 120);
	assert_int_equal(perf_stall_interval(&stall, 400), 220);
	perf_stall_completed(&stall, 410);
	perf_stall_completed(&stall, 411);
	assert_int_equal(perf_stall_interval(&stall, 412), 230);
	assert_int_equal(perf_stall_interval(&stall, 413), 2);
	assert_int_equal(stall.max_ns, 230);
	assert_int_equal(stall.max_start_ns, 180);
}

static void stalls_that_are_long_enough_are_noted(void **state)
{
	struct perf_stall *stall = calloc(1, sizeof(*stall));
	struct perf_stall_note *note;

	perf_stall_init(stall, 100);
	assert_null(perf_stall_completed(stall, 5000)); /* start-up */
	assert_null(perf_stall_completed(stall, 5099));
	note = perf_stall_completed(stall, 5199);
	assert_non_null(note);
	assert_int_equal(note->start_ns, 5099);
	assert_int_equal(note->span_ns, 100);
	perf_stall_look(stall, 6000); /* a look ends nothing */
	assert_int_equal(stall->note_count, 1);
	assert_null(perf_stall_pause(stall, 5250));
	assert_null(perf_stall_pause(stall, 7000)); /* nothing was wanted */
	perf_stall_resume(stall, 8000);
	note = perf_stall_pause(stall, 8300); /* ended without an answer */
	assert_non_null(note);
	assert_int_equal(note->start_ns, 8000);
	assert_int_equal(note->span_ns, 300);
	assert_int_equal(stall->note_count, 2);
	assert_ptr_equal(note, &stall->notes[1]);

	perf_stall_init(stall, 0);
	perf_stall_completed(stall, 10);
	assert_null(perf_stall_completed(stall, 1000000)); /* nobody asked for them */
	assert_int_equal(stall->note_count, 0);
	free(stall);
}

static void stalls_are_bounded_and_the_shortest_goes(void **state)
{
	struct perf_stall *stall = calloc(1, sizeof(*stall));
	uint64_t now_ns = 0;

	perf_stall_init(stall, 10);
	perf_stall_completed(stall, now_ns);
	for (uint32_t i = 0; i < PERF_STALL_NOTES_MAX; i++) {
		now_ns += i == 7 ? 20 : 30;
		assert_non_null(perf_stall_completed(stall, now_ns));
	}
	now_ns += 20; /* not longer than the shortest */
	assert_null(perf_stall_completed(stall, now_ns));
	now_ns += 50;
	assert_ptr_equal(perf_stall_completed(stall, now_ns),
			 &stall->notes[PERF_STALL_NOTES_MAX - 1]);
	assert_int_equal(stall->note_count, PERF_STALL_NOTES_MAX);
	assert_int_equal(stall->notes_dropped, 2);
	for (uint32_t i = 1; i < stall->note_count; i++) {
		assert_true(stall->notes[i].span_ns >= 30);
		assert_true(stall->notes[i - 1].start_ns < stall->notes[i].start_ns);
	}
	assert_int_equal(stall->notes[PERF_STALL_NOTES_MAX - 1].span_ns, 50);
	free(stall);
}

static void stall_is_told_with_its_time_of_day(void **state)
{
	struct perf_stall_note note = {.span_ns = 35200000, .wall_ns = 1700000000123456789};
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	setenv("TZ", "UTC", 1);
	tzset();
	perf_report_stall(out, &note);
	fclose(out);
	assert_string_equal(text,
			    "mrc-perf: nothing completed for 35.2 ms from 22:13:20.123456 on\n");
	free(text);
}

static struct perf_rails rails_of(const char *first, uint64_t first_bytes, const char *second,
				  uint64_t second_bytes)
{
	struct perf_rails rails = {0};

	if (first) {
		strcpy(rails.rails[rails.count].name, first);
		rails.rails[rails.count++].bytes_sent = first_bytes;
	}
	if (second) {
		strcpy(rails.rails[rails.count].name, second);
		rails.rails[rails.count++].bytes_sent = second_bytes;
	}
	return rails;
}

static void series_counts_each_rail_per_interval(void **state)
{
	struct perf_point point = {0};
	struct perf_series series;
	struct perf_rails rails;

	perf_series_init(&series);
	rails = rails_of("r0", 1000, "r1", 5000);
	perf_series_baseline(&series, &rails);
	rails = rails_of("r1", 5500, "r0", 1300); /* the order does not matter */
	assert_int_equal(perf_series_add(&series, &point, &rails), 0);
	assert_int_equal(perf_series_add(&series, &point, NULL), 0); /* the daemon did not answer */
	rails = rails_of("r0", 200, NULL, 0); /* it was restarted, with one rail less */
	assert_int_equal(perf_series_add(&series, &point, &rails), 0);
	rails = rails_of("r0", 300, "r7", 40); /* and got a new one */
	assert_int_equal(perf_series_add(&series, &point, &rails), 0);

	assert_int_equal(series.rail_count, 3);
	assert_string_equal(series.rail_names[0], "r1");
	assert_string_equal(series.rail_names[1], "r0");
	assert_string_equal(series.rail_names[2], "r7");
	assert_int_equal(series.points[0].rail_bytes[0], 500);
	assert_int_equal(series.points[0].rail_bytes[1], 300);
	assert_false(series.points[1].has_rails);
	assert_false(series.points[2].is_rail[0]);
	assert_int_equal(series.points[2].rail_bytes[1], 200);
	assert_int_equal(series.points[3].rail_bytes[1], 100);
	assert_int_equal(series.points[3].rail_bytes[2], 40);
	perf_series_fini(&series);
}

static void series_has_no_rails_without_a_sample_before(void **state)
{
	struct perf_rails rails = rails_of("r0", 1000, NULL, 0);
	struct perf_point point = {0};
	struct perf_series series;

	perf_series_init(&series);
	for (int i = 0; i < 200; i++)
		assert_int_equal(perf_series_add(&series, &point, &rails), 0);
	assert_false(series.points[0].has_rails);
	assert_true(series.points[199].has_rails);
	assert_int_equal(series.point_count, 200);
	perf_series_fini(&series);
}

static void rails_are_read_from_what_the_daemon_says(void **state)
{
	static const struct {
		const char *text;
		int want;
		uint32_t count;
	} rows[] = {
		{"{\"ok\": true, \"result\": []}", 0, 0},
		{"{\"ok\": true, \"result\": [{\"name\": \"r0\", \"bytes_sent\": 7, \"more\": "
		 "{}}]}",
		 0, 1},
		{"{\"ok\": true, \"result\": [{\"name\": 5, \"bytes_sent\": 7}, {\"bytes_sent\": "
		 "7}, {}, 3]}",
		 0, 0},
		{"{\"ok\": true, \"result\": [{\"name\": \"r0\", \"bytes_sent\": \"7\"}]}", 0, 0},
		{"{\"ok\": false, \"error\": \"no\"}", -EPROTO, 0},
		{"{\"ok\": true, \"result\": {}}", -EPROTO, 0},
		{"{\"ok\": true}", -EPROTO, 0},
		{"{\"ok\": false, \"result\": []}", -EPROTO, 0},
		{"[]", -EPROTO, 0},
		{"", -EPROTO, 0},
		{"nonsense", -EPROTO, 0},
	};
	struct perf_rails rails;

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(perf_rails_parse(rows[i].text, strlen(rows[i].text), &rails),
				 rows[i].want);
		assert_int_equal(rails.count, rows[i].count);
	}
	perf_rails_parse(rows[1].text, strlen(rows[1].text), &rails);
	assert_string_equal(rails.rails[0].name, "r0");
	assert_int_equal(rails.rails[0].bytes_sent, 7);
}

static void control_takes_an_answer_in_pieces(void **state)
{
	static const char answer[] =
		"{\"ok\": true, \"result\": [{\"name\": \"r0\", \"bytes_sent\": 12345678901}]}\n";
	struct perf_control control;
	struct perf_rails rails;
	char question[64];
	int ends[2];

	assert_int_equal(perf_control_init(&control, "/nowhere/control.sock", NULL), 0);
	assert_int_equal(perf_control_ask(&control), -ENOENT);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	control.fd = ends[0];
	for (int round = 0; round < 2; round++) {
		assert_int_equal(perf_control_ask(&control), 0);
		assert_int_equal(perf_control_ask(&control), 0); /* one question at a time */
		assert_int_equal(read(ends[1], question, sizeof(question)),
				 sizeof("{\"command\": \"rails\"}"));
		for (size_t i = 0; i < sizeof(answer) - 1; i++) {
			assert_int_equal(perf_control_read(&control, &rails), 0);
			assert_int_equal(write(ends[1], answer + i, 1), 1);
			if (i < sizeof(answer) - 2)
				continue;
			assert_int_equal(perf_control_read(&control, &rails), 1);
		}
		assert_int_equal(rails.rails[0].bytes_sent, 12345678901);
	}
	close(ends[1]);
	assert_true(perf_control_read(&control, &rails) < 0);
	assert_int_equal(control.fd, -1);
	perf_control_fini(&control);
}

static void control_is_beside_the_socket(void **state)
{
	static const struct {
		const char *path;
		const char *socket_path;
		const char *want;
	} rows[] = {
		{NULL, "/tmp/a/mrcd.sock", "/tmp/a/control.sock"},
		{NULL, "mrcd.sock", "control.sock"},
		{"/x/c", "/tmp/a/mrcd.sock", "/x/c"},
		{"none", "/tmp/a/mrcd.sock", ""},
		{NULL, NULL, "/run/mrcd/control.sock"},
	};
	struct perf_control named;

	unsetenv("MRC_SOCKET");
	unsetenv("MRC_CONTROL");
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct perf_control control;

		assert_int_equal(perf_control_init(&control, rows[i].path, rows[i].socket_path), 0);
		assert_string_equal(control.path, rows[i].want);
		perf_control_fini(&control);
	}
	/* What the environment names is less than what an option names. */
	setenv("MRC_CONTROL", "/y/c", 1);
	assert_int_equal(perf_control_init(&named, NULL, NULL), 0);
	assert_string_equal(named.path, "/y/c");
	perf_control_fini(&named);
	assert_int_equal(perf_control_init(&named, NULL, "/tmp/a/mrcd.sock"), 0);
	assert_string_equal(named.path, "/tmp/a/control.sock");
	perf_control_fini(&named);
	assert_int_equal(perf_control_init(&named, "/x/c", NULL), 0);
	assert_string_equal(named.path, "/x/c");
	perf_control_fini(&named);
	unsetenv("MRC_CONTROL");
}

static void result_has_the_shape_that_scripts_read(void **state)
{
	static const char *const keys[] = {
		"mode",           "target",       "size_bytes",       "level",
		"in_flight",      "channels",     "start_unix_us",    "duration_ns",
		"messages",       "bytes",        "rate_bytes_per_s", "rate_messages_per_s",
		"latency_ns",     "stall_ns_max", "stall_at_ns",      "stalls",
		"stalls_dropped", "verify",       "outcomes",         "series",
	};
	struct perf_options options = {.mode = PERF_MODE_BW,
				       .target = "b/perf",
				       .size_bytes = 1000,
				       .channels = 1,
				       .level = MRC_LEVEL_PLACED};
	struct perf_point point = {.t_ns = 5, .bytes = 6, .messages = 7, .stall_ns_max = 8};
	struct perf_result *result = calloc(1, sizeof(*result));
	struct perf_rails rails = rails_of("r0", 100, NULL, 0);
	struct perf_stall *stall = calloc(1, sizeof(*stall));
	json_t *json, *part;

	perf_stall_init(stall, 100);
	perf_stall_completed(stall, 7000);
	perf_stall_completed(stall, 9000)->wall_ns = 1700000000123456789;
	stall->notes_dropped = 4;
	result->stall = stall;
	result->start_ns = 6000;
	result->start_wall_ns = 1700000000123453789;
	result->options = &options;
	result->duration_ns = 2000000000;
	result->messages = 10;
	result->bytes = 10000;
	result->outcomes[0] = 10;
	result->outcomes[perf_outcome_of_status(MRC_STATUS_UNKNOWN)] = 2;
	result->counts.lost = 3;
	perf_histogram_init(&result->latency);
	perf_histogram_record(&result->latency, 50);
	perf_series_baseline(&result->series, &rails);
	rails = rails_of("r0", 142, NULL, 0);
	perf_series_add(&result->series, &point, &rails);

	json = perf_result_json(result);
	for (size_t i = 0; i < COUNT(keys); i++)
		if (!json_object_get(json, keys[i]))
			fail_msg("no %s", keys[i]);
	assert_string_equal(json_string_value(json_object_get(json, "mode")), "bw");
	assert_string_equal(json_string_value(json_object_get(json, "level")), "placed");
	assert_true(json_number_value(json_object_get(json, "rate_bytes_per_s")) == 5000.0);
	assert_int_equal(json_integer_value(
				 json_object_get(json_object_get(json, "latency_ns"), "p999")),
			 50);
	assert_int_equal(json_integer_value(json_object_get(json, "start_unix_us")),
			 1700000000123453);
	part = json_object_get(json, "outcomes");
	assert_int_equal(json_integer_value(json_object_get(part, "OK")), 10);
	assert_int_equal(json_integer_value(json_object_get(part, "UNKNOWN")), 2);
	assert_null(json_object_get(part, "REJECTED"));
	assert_int_equal(json_integer_value(
				 json_object_get(json_object_get(json, "verify"), "lost")),
			 3);
	part = json_array_get(json_object_get(json, "series"), 0);
	assert_int_equal(json_integer_value(json_object_get(part, "t_ns")), 5);
	assert_int_equal(json_integer_value(json_object_get(part, "stall_ns_max")), 8);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(part, "rails"), "r0")),
			 42);
	part = json_array_get(json_object_get(json, "stalls"), 0);
	assert_int_equal(json_integer_value(json_object_get(part, "unix_us")), 1700000000123456);
	assert_int_equal(json_integer_value(json_object_get(part, "t_ns")), 1000);
	assert_int_equal(json_integer_value(json_object_get(part, "span_ns")), 2000);
	assert_int_equal(json_array_size(json_object_get(json, "stalls")), 1);
	assert_int_equal(json_integer_value(json_object_get(json, "stalls_dropped")), 4);
	json_decref(json);
	free(stall);
	perf_series_fini(&result->series);
	free(result);
}

static void result_is_clean_only_when_all_is_well(void **state)
{
	struct perf_options options = {.is_verify = true};
	struct perf_result *result = calloc(1, sizeof(*result));
	uint64_t *const spoilers[] = {&result->counts.lost,
				      &result->counts.duplicated,
				      &result->counts.reordered,
				      &result->counts.corrupted,
				      &result->counts.unchecked,
				      &result->outcomes[1],
				      &result->outcomes[PERF_OUTCOME_UNANSWERED]};

	result->options = &options;
	assert_false(perf_result_is_clean(result)); /* nothing was measured */
	result->messages = 1;
	assert_true(perf_result_is_clean(result));
	for (size_t i = 0; i < COUNT(spoilers); i++) {
		*spoilers[i] = 1;
		assert_false(perf_result_is_clean(result));
		*spoilers[i] = 0;
	}
	assert_true(perf_result_is_clean(result));
	free(result);
}

static void outcome_names_follow_the_header(void **state)
{
	assert_string_equal(perf_outcome_name(perf_outcome_of_status(MRC_STATUS_OK)), "OK");
	assert_string_equal(perf_outcome_name(perf_outcome_of_status(MRC_STATUS_DETACHED)),
			    "DETACHED");
	assert_string_equal(perf_outcome_name(perf_outcome_of_status(MRC_STATUS_IN_USE)), "IN_USE");
	assert_string_equal(perf_outcome_name(perf_outcome_of_status(MRC_STATUS_DRAINING)),
			    "DRAINING");
	assert_string_equal(perf_outcome_name(perf_outcome_of_status(-100)), "UNKNOWN");
	assert_string_equal(perf_outcome_name(perf_outcome_of_status(5)), "UNKNOWN");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stall_is_the_longest_gap_in_which_something_was_wanted),
		cmocka_unit_test(stall_of_an_interval_grows_while_nothing_completes),
		cmocka_unit_test(stalls_that_are_long_enough_are_noted),
		cmocka_unit_test(stalls_are_bounded_and_the_shortest_goes),
		cmocka_unit_test(stall_is_told_with_its_time_of_day),
		cmocka_unit_test(series_counts_each_rail_per_interval),
		cmocka_unit_test(series_has_no_rails_without_a_sample_before),
		cmocka_unit_test(rails_are_read_from_what_the_daemon_says),
		cmocka_unit_test(control_takes_an_answer_in_pieces),
		cmocka_unit_test(control_is_beside_the_socket),
		cmocka_unit_test(result_has_the_shape_that_scripts_read),
		cmocka_unit_test(result_is_clean_only_when_all_is_well),
		cmocka_unit_test(outcome_names_follow_the_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
