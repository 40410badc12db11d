/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcctl drill: its command line, and what a record of a drill comes to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "mrcctl_drill_picture.h"
#include "mrcctl_drill_report.h"

#define MS 1000000ULL
#define S  1000000000ULL

/* ---- the command line ---- */

static void faults_are_taken_with_their_units(void **state)
{
	static const struct {
		enum mrcctl_drill_option option;
		const char *text;
		uint64_t ns, times; /* 0: refused */
	} cases[] = {
		{MRCCTL_DRILL_OPTION_DOWN, "2s", 2 * S, 10},
		{MRCCTL_DRILL_OPTION_DOWN, "1.5s", 1500 * MS, 10},
		{MRCCTL_DRILL_OPTION_SILENCE, "50ms", 50 * MS, 10},
		{MRCCTL_DRILL_OPTION_SILENCE, "10min", 600 * S, 10},
		{MRCCTL_DRILL_OPTION_SLOW, "10x", 2 * S, 10},
		{MRCCTL_DRILL_OPTION_SLOW, "4x,500ms", 500 * MS, 4},
		{MRCCTL_DRILL_OPTION_DOWN, "", 0, 0},
		{MRCCTL_DRILL_OPTION_DOWN, "2", 0, 0},
		{MRCCTL_DRILL_OPTION_DOWN, "s", 0, 0},
		{MRCCTL_DRILL_OPTION_DOWN, "-2s", 0, 0},
		{MRCCTL_DRILL_OPTION_DOWN, "2 s", 0, 0},
		{MRCCTL_DRILL_OPTION_DOWN, "1.s", 0, 0},
		{MRCCTL_DRILL_OPTION_DOWN, "1.23456s", 0, 0},
		{MRCCTL_DRILL_OPTION_DOWN, "2sx", 0, 0},
		{MRCCTL_DRILL_OPTION_DOWN, "49ms", 0, 0},
		{MRCCTL_DRILL_OPTION_DOWN, "11min", 0, 0},
		{MRCCTL_DRILL_OPTION_DOWN, "99999999999999999999s", 0, 0},
		{MRCCTL_DRILL_OPTION_SLOW, "10", 0, 0},
		{MRCCTL_DRILL_OPTION_SLOW, "1x", 0, 0},
		{MRCCTL_DRILL_OPTION_SLOW, "1001x", 0, 0},
		{MRCCTL_DRILL_OPTION_SLOW, "10x,", 0, 0},
		{MRCCTL_DRILL_OPTION_SLOW, "10x5s", 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char error[MRCCTL_DRILL_ERROR_BYTES] = "";
		struct mrcctl_drill_options options;
		int r;

		mrcctl_drill_options_init(&options);
		r = mrcctl_drill_option_take(&options, cases[i].option, cases[i].text, error);
		if (cases[i].ns == 0) {
			if (r != -EINVAL || strstr(error, "allowed is") == NULL)
				fail_msg("'%s' was taken: %s", cases[i].text, error);
			continue;
		}
		if (r != 0)
			fail_msg("'%s' was refused: %s", cases[i].text, error);
		assert_int_equal(options.duration_ns, cases[i].ns);
		assert_int_equal(options.times, cases[i].times);
		assert_int_equal((int)options.fault, (int)cases[i].option);
	}
}

static void what_does_not_go_together_is_refused(void **state)
{
	static const struct {
		const char *rail;
		struct mrcctl_drill_options options;
		const char *want; /* NULL: it does */
	} cases[] = {
		{"r1", {.fault = MRCCTL_DRILL_DOWN}, NULL},
		{"r1", {.fault = MRCCTL_DRILL_DOWN, .is_link = true}, NULL},
		{NULL, {.is_all = true}, NULL},
		{NULL, {.is_watch = true, .picture = "x.svg"}, NULL},
		{NULL, {.is_serve = true}, NULL},
		{NULL, {.fault = MRCCTL_DRILL_DOWN}, "which rail"},
		{"r1", {.is_all = true}, "one rail, or"},
		{NULL, {.is_all = true, .is_watch = true}, "one rail, or"},
		{"r1", {.fault = MRCCTL_DRILL_SILENCE, .is_link = true}, "with --down only"},
		{NULL, {.is_watch = true, .is_fault_given = true}, "break nothing"},
		{NULL, {.is_serve = true, .stream = "b"}, "no --stream"},
		{"r1", {.stream = "none", .pace = "1Gb/s"}, "wants none"},
	};
	char error[MRCCTL_DRILL_ERROR_BYTES];
	struct mrcctl_drill_options options;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		options = cases[i].options;
		error[0] = '\0';
		if (mrcctl_drill_options_check(&options, cases[i].rail, error) ==
		    (cases[i].want == NULL ? 0 : -EINVAL)) {
			if (cases[i].want != NULL && strstr(error, cases[i].want) == NULL)
				fail_msg("case %zu: \"%s\" is without \"%s\"", i, error,
					 cases[i].want);
			continue;
		}
		fail_msg("case %zu: \"%s\"", i, error);
	}
	mrcctl_drill_options_init(&options);
	assert_int_equal(mrcctl_drill_option_take(&options, MRCCTL_DRILL_OPTION_DOWN, "1s", error),
			 0);
	assert_int_equal(mrcctl_drill_option_take(&options, MRCCTL_DRILL_OPTION_SLOW, "9x", error),
			 -EINVAL);
	assert_int_equal(mrcctl_drill_option_take(&options, MRCCTL_DRILL_OPTION_PICTURE, "a.png",
						  error),
			 -EINVAL);
}

static void a_pace_is_what_mrc_perf_takes(void **state)
{
	static const struct {
		const char *text;
		bool is_taken;
	} cases[] = {
		{"1kb/s", true},    {"1.5Gb/s", true},
		{"0.5Mb/s", true},  {"1000000000b/s", true},
		{"100Tb/s", true},  {"0", false},
		{"5", false},       {"Mb/s", false},
		{"999b/s", false},  {"0.9kb/s", false},
		{"101Tb/s", false}, {"5MB/s", false},
		{"5 Mb/s", false},  {"-5Mb/s", false},
		{"", false},        {"999999999999999999Tb/s", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char error[MRCCTL_DRILL_ERROR_BYTES] = "";
		struct mrcctl_drill_options options;
		int r;

		mrcctl_drill_options_init(&options);
		r = mrcctl_drill_option_take(&options, MRCCTL_DRILL_OPTION_PACE, cases[i].text,
					     error);
		if (r != (cases[i].is_taken ? 0 : -EINVAL))
			fail_msg("'%s': %d, %s", cases[i].text, r, error);
		if (r < 0)
			assert_non_null(strstr(error, "allowed is 1kb/s"));
	}
}

/* ---- a record ---- */

/*
 * Two rails of 100 MB/s each, r1 is silent from 2 s to 4 s: found out after
 * 5 ms, back 200 ms after the end, at its rate from then on. Times of the fake
 * daemon begin at 1000 s.
 */
struct play {
	uint64_t left_ns, back_ns; /* since the fault's beginning, its end; 0: never */
	uint64_t others_percent;   /* of r0's rate meanwhile */
	uint64_t after_percent;    /* of both rates afterwards */
	uint64_t stall_ns;
	uint64_t failed;
	bool is_cut;
	const char *over;
	enum mrcctl_drill_fault fault;
	bool is_link;
	uint64_t span_ns; /* of the fault; 0: 2 s */
};

#define BASE_NS (1000 * S)

static json_t *event_json(uint64_t t_ns, const char *from, const char *to)
{
	return json_pack("{s:s s:I s:s s:s s:s s:s s:s s:I s:I}", "kind", "path", "at_ns",
			 (json_int_t)t_ns, "rail", "r1", "peer", "b", "state_old", from, "state",
			 to, "reason", "silent", "moved", (json_int_t)17, "silent_ns",
			 (json_int_t)(4 * MS));
}

static void play(const struct play *play, struct mrcctl_drill_record *record,
		 struct mrcctl_drill_result *result)
{
	const struct mrcctl_drill_options options = {.fault = play->fault,
						     .is_link = play->is_link,
						     .duration_ns = 2 * S};
	const uint64_t began_ns = BASE_NS + 2 * S;
	const uint64_t ended_ns = began_ns + (play->span_ns ? play->span_ns : 2 * S);
	const uint64_t left_ns = play->left_ns ? began_ns + play->left_ns : UINT64_MAX;
	const uint64_t back_ns = play->back_ns ? ended_ns + play->back_ns : UINT64_MAX;
	uint64_t bytes[2] = {0, 0};

	mrcctl_drill_record_init(record);
	for (uint64_t t_ns = BASE_NS; t_ns <= BASE_NS + 7 * S; t_ns += 25 * MS) {
		bool is_during = t_ns > began_ns && t_ns <= ended_ns;
		bool is_away = t_ns > left_ns && t_ns <= back_ns;
		uint64_t step = 100000000 / 40,
			 percent = t_ns > ended_ns ? play->after_percent : 100;
		json_t *state, *events = json_array();

		bytes[0] += step * (is_during ? play->others_percent : percent) / 100;
		bytes[1] += is_during || is_away ? 0 : step * percent / 100;
		if (left_ns <= t_ns && left_ns > t_ns - 25 * MS)
			json_array_append_new(events, event_json(left_ns, "GOOD", "ASSUMED_BAD"));
		if (back_ns <= t_ns && back_ns > t_ns - 25 * MS)
			json_array_append_new(events, event_json(back_ns, "PROBING", "GOOD"));
		state = json_pack(
			"{s:I s:I s:s s:I s:I s:s s:I s:I s:I s:{s:o} s:o s:[{s:s s:b s:i s:i s:I},"
			"{s:s s:b s:i s:i s:I}]}",
			"session", (json_int_t)1, "now_ns", (json_int_t)t_ns, "state",
			is_during ? "on" : "idle", "began_ns",
			(json_int_t)(t_ns > began_ns ? began_ns : 0), "ended_ns",
			(json_int_t)(t_ns > ended_ns ? ended_ns : 0), "over", play->over, "resent",
			(json_int_t)(t_ns >= left_ns ? 117 : 100), "failed",
			(json_int_t)(t_ns > began_ns ? play->failed : 0), "stall_ns",
			(json_int_t)(is_during && t_ns < began_ns + 60 * MS ? play->stall_ns
									    : 2 * MS),
			"log", "events", events, "cut",
			is_during && play->is_cut ? json_pack("[s]", "b") : json_array(), "rails",
			"name", "r0", "carrier", 1, "paths", 1, "paths_good", 1, "bytes_sent",
			(json_int_t)bytes[0], "name", "r1", "carrier", 1, "paths", 1, "paths_good",
			(int)!is_away, "bytes_received", (json_int_t)bytes[1]);
		assert_non_null(state);
		assert_int_equal(mrcctl_drill_record_take(record, state), 0);
		json_decref(state);
	}
	mrcctl_drill_result_make(record, &options, "r1", BASE_NS + S, result);
}

static const struct play well = {.left_ns = 5 * MS,
				 .back_ns = 200 * MS,
				 .others_percent = 100,
				 .after_percent = 100,
				 .stall_ns = 8 * MS,
				 .over = "its time is over",
				 .fault = MRCCTL_DRILL_SILENCE};

static void a_drill_that_went_well_has_its_figures(void **state)
{
	struct mrcctl_drill_record record;
	struct mrcctl_drill_result result;

	play(&well, &record, &result);
	assert_int_equal(result.problem_count, 0);
	assert_true(result.is_measured);
	assert_in_range(result.before.rate, 199000000, 201000000);
	assert_in_range(result.during.rate, 99000000, 104000000);
	assert_in_range(result.after.rail_rate, 99000000, 101000000);
	assert_int_equal(result.before.stall_ns, 2 * MS);
	assert_int_equal(result.during.stall_ns, 8 * MS);
	assert_int_equal(result.after.stall_ns, 2 * MS);
	assert_int_equal(result.path_count, 1);
	assert_int_equal(result.paths[0].left_ns, 5 * MS);
	assert_string_equal(result.paths[0].reason, "silent");
	assert_int_equal(result.paths[0].back_ns, 200 * MS);
	assert_int_equal(result.resent, 17);
	assert_in_range(result.full_ns, 200 * MS, 350 * MS);
	assert_in_range(result.share_ns, 200 * MS, 350 * MS);
	assert_true(mrcctl_drill_is_over(&record, "r1", BASE_NS + S));
	mrcctl_drill_record_fini(&record);
}

static void what_went_wrong_is_said(void **state)
{
	static const struct {
		struct play play;
		const char *want;
	} cases[] = {
		{{0, 200 * MS, 100, 100, 2 * MS, 0, false, "its time is over", MRCCTL_DRILL_SILENCE,
		  false, 0},
		 "not found out"},
		{{5 * MS, 0, 100, 100, 2 * MS, 0, false, "its time is over", MRCCTL_DRILL_SILENCE,
		  false, 0},
		 "not all of its paths"},
		{{5 * MS, 200 * MS, 50, 100, 2 * MS, 0, false, "its time is over",
		  MRCCTL_DRILL_SILENCE, false, 0},
		 "the other rails carried 5"},
		{{5 * MS, 200 * MS, 100, 60, 2 * MS, 0, false, "its time is over",
		  MRCCTL_DRILL_SILENCE, false, 0},
		 "% of the rate before is back"},
		{{5 * MS, 200 * MS, 100, 100, 1100 * MS, 0, false, "its time is over",
		  MRCCTL_DRILL_SILENCE, false, 0},
		 "stood still"},
		{{5 * MS, 200 * MS, 100, 100, 2 * MS, 3, false, "its time is over",
		  MRCCTL_DRILL_SILENCE, false, 0},
		 "3 messages failed"},
		{{5 * MS, 200 * MS, 100, 100, 2 * MS, 1, false, "its time is over",
		  MRCCTL_DRILL_SILENCE, false, 0},
		 "1 message failed"},
		{{5 * MS, 200 * MS, 100, 100, 2 * MS, 0, true, "its time is over",
		  MRCCTL_DRILL_SILENCE, false, 0},
		 "could not be reached"},
		{{5 * MS, 200 * MS, 100, 100, 2 * MS, 0, false, "nobody asked",
		  MRCCTL_DRILL_SILENCE, false, 0},
		 "ended early"},
	};
	struct mrcctl_drill_record record;
	struct mrcctl_drill_result result;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool is_said = false;

		play(&cases[i].play, &record, &result);
		for (uint32_t p = 0; p < result.problem_count; p++)
			is_said = is_said || strstr(result.problems[p], cases[i].want) != NULL;
		if (!is_said)
			fail_msg("nobody says \"%s\", but %u others, \"%s\"", cases[i].want,
				 result.problem_count, result.problems[0]);
		mrcctl_drill_record_fini(&record);
	}
}

/* Whether anybody notices so short a fault is chance; what is told at once is noticed, or something is wrong. */
static void what_a_short_drill_cannot_prove_is_no_failure(void **state)
{
	static const struct {
		enum mrcctl_drill_fault fault;
		bool is_link;
		uint64_t span_ns, left_ns, others_percent;
		const char *finding, *problem; /* NULL: there is none */
	} cases[] = {
		{MRCCTL_DRILL_SILENCE, false, 50 * MS, 0, 100, "not found out", NULL},
		{MRCCTL_DRILL_SILENCE, false, 499 * MS, 0, 100, "not found out", NULL},
		{MRCCTL_DRILL_SILENCE, false, 500 * MS, 0, 100, NULL, "not found out"},
		{MRCCTL_DRILL_SILENCE, false, 50 * MS, 45 * MS, 100, NULL, NULL},
		{MRCCTL_DRILL_DOWN, true, 50 * MS, 0, 100, "not found out", NULL},
		{MRCCTL_DRILL_DOWN, false, 50 * MS, 0, 100, NULL, "not found out"},
		{MRCCTL_DRILL_DOWN, false, 50 * MS, 1 * MS, 30, "cannot be told", NULL},
		{MRCCTL_DRILL_DOWN, false, 500 * MS, 1 * MS, 30, NULL, "the other rails carried"},
		{MRCCTL_DRILL_SLOW, false, 50 * MS, 0, 100, NULL, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mrcctl_drill_record record;
		struct mrcctl_drill_result result;
		struct play one = well;

		one.fault = cases[i].fault;
		one.is_link = cases[i].is_link;
		one.span_ns = cases[i].span_ns;
		one.left_ns = cases[i].left_ns;
		one.back_ns = cases[i].left_ns ? well.back_ns : 0;
		one.others_percent = cases[i].others_percent;
		play(&one, &record, &result);
		if (result.finding_count != (cases[i].finding != NULL) ||
		    (cases[i].finding && !strstr(result.findings[0], cases[i].finding)))
			fail_msg("case %zu: %u findings, \"%s\"", i, result.finding_count,
				 result.findings[0]);
		if (result.problem_count != (cases[i].problem != NULL) ||
		    (cases[i].problem && !strstr(result.problems[0], cases[i].problem)))
			fail_msg("case %zu: %u problems, \"%s\"", i, result.problem_count,
				 result.problems[0]);
		mrcctl_drill_record_fini(&record);
	}
}

/* Whoever ends a drill does not wait for its rail: that it is not back then is nobody's failure. */
static void of_an_interrupted_drill_nothing_else_is_said(void **state)
{
	struct play play_out = well;
	struct mrcctl_drill_record record;
	struct mrcctl_drill_result result;

	play_out.back_ns = 0;
	play_out.after_percent = 10;
	play_out.over = "its asker said so";
	play(&play_out, &record, &result);
	assert_int_equal(result.problem_count, 1);
	assert_string_equal(result.problems[0], "it ended early: its asker said so");
	mrcctl_drill_record_fini(&record);
}

static void what_is_no_state_is_not_taken(void **state)
{
	static const char *const texts[] = {"{}", "{\"now_ns\": 1}",
					    "{\"now_ns\": 1, \"rails\": 2}", "[]",
					    "{\"now_ns\": \"1\", \"rails\": []}"};
	struct mrcctl_drill_record record;

	mrcctl_drill_record_init(&record);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_t *json = json_loads(texts[i], 0, NULL);

		assert_int_equal(mrcctl_drill_record_take(&record, json), -EBADMSG);
		json_decref(json);
	}
	assert_int_equal(record.sample_count, 0);
	mrcctl_drill_record_fini(&record);
}

static void samples_before_a_moment_are_forgotten(void **state)
{
	struct mrcctl_drill_record record;
	struct mrcctl_drill_result result;

	play(&well, &record, &result);
	mrcctl_drill_record_forget(&record, BASE_NS + 3 * S);
	assert_true(record.samples[0].t_ns < BASE_NS + 3 * S);
	assert_true(record.samples[1].t_ns >= BASE_NS + 3 * S);
	assert_int_equal(mrcctl_drill_rate(&record, UINT32_MAX, BASE_NS, BASE_NS + 2 * S), 0);
	mrcctl_drill_record_fini(&record);
}

/* ---- what is shown ---- */

static char *shown(const struct mrcctl_drill_report *report)
{
	size_t bytes;
	char *text;
	FILE *out = open_memstream(&text, &bytes);

	mrcctl_drill_report_text(report, out, false);
	fclose(out);
	return text;
}

static void the_report_ends_with_its_verdict(void **state)
{
	struct mrcctl_drill_record record;
	struct mrcctl_drill_result results[2];
	const struct mrcctl_drill_verdict verdict = {.messages = 1000, .lost = 2};
	struct mrcctl_drill_report report = {.results = results, .result_count = 1};
	json_t *json;
	char *text;

	play(&well, &record, &results[0]);
	text = shown(&report);
	assert_non_null(strstr(text, "rail r1: silence for 2 s\n"));
	if (strstr(text, "longest stall       2 ms      8 ms       2 ms") == NULL)
		fail_msg("the table is another one:\n%s", text);
	assert_non_null(strstr(text,
			       "path to b: found out after 5 ms (silent), 17 fragments moved, "
			       "back 200 ms after the end\n"));
	assert_non_null(strstr(text, "\nPASS\n"));
	free(text);

	results[0].finding_count = 1;
	strcpy(results[0].findings[0], "it drizzles");
	text = shown(&report);
	assert_non_null(strstr(text, "\nPASS, but rail r1: it drizzles\n"));
	free(text);
	json = mrcctl_drill_report_json(&report, &record);
	assert_true(json_is_true(json_object_get(json, "passed")));
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(json_array_get(json_object_get(json, "drills"),
								   0),
						    "findings"),
				    0)),
			    "it drizzles");
	json_decref(json);
	results[0].finding_count = 0;

	results[1] = results[0];
	mrcctl_drill_problem(&results[1], "it rains");
	report.result_count = 2;
	report.stream = "b";
	report.verdict = &verdict;
	text = shown(&report);
	assert_non_null(strstr(text, "VERDICT\n"));
	assert_non_null(strstr(text, "test stream to b: 1000 messages, lost 2, duplicated 0"));
	assert_non_null(strstr(text, "\nFAIL rail r1: it rains\n"));
	free(text);
	assert_false(mrcctl_drill_report_is_passed(&report));

	json = mrcctl_drill_report_json(&report, &record);
	assert_true(json_is_false(json_object_get(json, "passed")));
	assert_int_equal(json_integer_value(
				 json_object_get(json_object_get(json, "stream"), "lost")),
			 2);
	assert_int_equal(json_array_size(json_object_get(json, "series")), record.sample_count - 1);
	json_decref(json);
	mrcctl_drill_record_fini(&record);
}

static void a_rail_that_was_not_drilled_is_no_pass(void **state)
{
	struct mrcctl_drill_record record;
	struct mrcctl_drill_result result;
	struct mrcctl_drill_report report = {.results = &result,
					     .result_count = 1,
					     .rails_left = 2};
	json_t *json;
	char *text;

	play(&well, &record, &result);
	assert_int_equal(result.problem_count, 0);
	assert_false(mrcctl_drill_report_is_passed(&report));
	text = shown(&report);
	assert_non_null(strstr(text, "\nFAIL 2 of 3 rails not drilled\n"));
	free(text);
	mrcctl_drill_problem(&result, "it rains");
	text = shown(&report);
	assert_non_null(strstr(text, "\nFAIL 2 of 3 rails not drilled; rail r1: it rains\n"));
	free(text);
	json = mrcctl_drill_report_json(&report, &record);
	assert_true(json_is_false(json_object_get(json, "passed")));
	assert_int_equal(json_integer_value(json_object_get(json, "rails_left")), 2);
	json_decref(json);
	mrcctl_drill_record_fini(&record);
}

/* Nobody knows when a cable was pulled: the time without a word stands in the place of the time to find it out. */
static void of_a_watched_rail_nobody_knows_when_it_went(void **state)
{
	struct mrcctl_drill_record record;
	struct mrcctl_drill_result results[2];
	struct mrcctl_drill_report report = {.results = results, .result_count = 2};
	json_t *json, *path;
	char *text;

	play(&well, &record, &results[0]);
	results[0].is_watch = true;
	results[0].paths[0].back_ns = 0;
	results[1] = results[0];
	text = shown(&report);
	assert_non_null(strstr(text, "\nr1         4 ms  silent   8 ms     at once "));
	assert_non_null(strstr(text,
			       "path to b: found out when it had said nothing for 4 ms (silent), "
			       "17 fragments moved, back at the end\n"));
	free(text);
	json = mrcctl_drill_report_json(&report, &record);
	path = json_array_get(json_object_get(json_array_get(json_object_get(json, "drills"), 0),
					      "paths"),
			      0);
	assert_true(json_is_null(json_object_get(path, "detected_ns")));
	assert_int_equal(json_integer_value(json_object_get(path, "quiet_ns")), 4 * MS);
	json_decref(json);
	mrcctl_drill_record_fini(&record);
}

static void the_picture_shades_the_fault_and_trusts_no_name(void **state)
{
	struct mrcctl_drill_record record;
	struct mrcctl_drill_result result;
	size_t bytes;
	char *text;
	FILE *out;

	play(&well, &record, &result);
	strcpy(record.rails[0], "<r&0>");
	out = open_memstream(&text, &bytes);
	assert_int_equal(mrcctl_drill_picture(&record, &result, 1, out), 0);
	fclose(out);
	assert_int_equal(strncmp(text, "<svg ", 5), 0);
	assert_non_null(strstr(text, "&lt;r&amp;0>"));
	assert_null(strstr(text, "<r&"));
	assert_non_null(strstr(text, "r1 silence, silent after 5 ms, longest stall 8 ms"));
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	free(text);
	record.sample_count = 1;
	assert_int_equal(mrcctl_drill_picture(&record, &result, 1, stdout), -ENODATA);
	mrcctl_drill_record_fini(&record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_are_taken_with_their_units),
		cmocka_unit_test(what_does_not_go_together_is_refused),
		cmocka_unit_test(a_pace_is_what_mrc_perf_takes),
		cmocka_unit_test(a_drill_that_went_well_has_its_figures),
		cmocka_unit_test(what_went_wrong_is_said),
		cmocka_unit_test(what_a_short_drill_cannot_prove_is_no_failure),
		cmocka_unit_test(of_an_interrupted_drill_nothing_else_is_said),
		cmocka_unit_test(what_is_no_state_is_not_taken),
		cmocka_unit_test(samples_before_a_moment_are_forgotten),
		cmocka_unit_test(the_report_ends_with_its_verdict),
		cmocka_unit_test(a_rail_that_was_not_drilled_is_no_pass),
		cmocka_unit_test(of_a_watched_rail_nobody_knows_when_it_went),
		cmocka_unit_test(the_picture_shades_the_fault_and_trusts_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
