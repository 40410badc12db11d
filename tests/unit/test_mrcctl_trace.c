/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcctl trace: its bars, its table, its JSON, and what it says of a wrong command line. */
#include "trace_canned.h"

#include <errno.h>

#include "mrcctl_trace_options.h"
#include "mrcctl_trace_show.h"
#include "mrcctl_unit.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define THREE                                                                              \
	CANNED_MESSAGE("5", "OK", CANNED_GOOD)                                             \
	"," CANNED_MESSAGE("6", "OK", CANNED_CROSSED) "," CANNED_MESSAGE("7", "PEER_DIED", \
									 CANNED_FAILED)

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

/* ---- bars ---- */

static void bars_show_stages_on_one_scale(void **state)
{
	static const struct {
		const char *name, *moments, *want;
		int64_t scale_ns;
		size_t width;
	} rows[] = {
		{"all stages", CANNED_GOOD, "rrwwsssssssstLttppvv", 1000000, 20},
		{"half as long", CANNED_CROSSED, "rrwwssLpvv", 1000000, 20},
		{"ends unsent", CANNED_FAILED, "rrwwssssssss L", 1000000, 20},
		{"shorter than a column", CANNED_GOOD, "L", 1000000000, 20},
		{"and without local completion", "\"submitted_ns\":5,\"verdict_ns\":6", "r",
		 1000000000, 20},
		{"what the middle of a column falls into",
		 "\"submitted_ns\":0,\"fetched_ns\":40,\"verdict_ns\":340", "www", 1000, 10},
		{"one moment only", "\"placed_ns\":5", "p", 1000, 20},
		{"no moment at all", "\"code\":0", "", 1000, 20},
		{"an older libmrc", "\"fetched_ns\":0,\"first_sent_ns\":500,\"last_sent_ns\":600",
		 "wwwwws", 1000, 10},
		{"local completion last of all",
		 "\"last_sent_ns\":0,\"placed_ns\":200,\"verdict_ns\":400,\"local_ns\":990",
		 "ttpp     L", 1000, 10},
		{"local completion off the scale",
		 "\"last_sent_ns\":0,\"verdict_ns\":1000,\"local_ns\":5000", "tttttttttL", 1000,
		 10},
	};
	char bar[64];

	for (size_t i = 0; i < COUNT(rows); i++) {
		json_t *message = json_pack("{s:i s:s}", "seq", 1, "outcome", "OK"), *moments;
		json_t *result = json_loads(CANNED_ANSWER("null", ""), 0, NULL);
		char text[512];

		snprintf(text, sizeof(text), "{%s}", rows[i].moments);
		moments = json_loads(text, 0, NULL);
		assert_non_null(moments);
		json_object_update(message, moments);
		json_array_append_new(json_object_get(result, "messages"), message);
		assert_int_equal(mrc_trace_take(&trace, result), 0);
		mrcctl_trace_bar(&trace.messages[trace.count - 1], rows[i].scale_ns, rows[i].width,
				 bar);
		if (strcmp(bar, rows[i].want) != 0)
			fail_msg("%s: '%s' and not '%s'", rows[i].name, bar, rows[i].want);
		json_decref(moments);
		json_decref(result);
	}
}

/* What it prints; good until the next call. */
static const char *shown(void (*show)(FILE *out))
{
	static char page[16384];
	FILE *out = fmemopen(page, sizeof(page), "w");

	assert_non_null(out);
	page[0] = '\0';
	show(out);
	assert_int_equal(fclose(out), 0);
	return page;
}

static void show_bars_narrow(FILE *out)
{
	mrcctl_trace_show_bars(&trace, 24, 54, out, false);
}

static void show_last_bar(FILE *out)
{
	mrcctl_trace_show_bars(&trace, 1, 80, out, false);
}

static void show_bars_without_room(FILE *out)
{
	mrcctl_trace_show_bars(&trace, 24, 1, out, false);
}

static void bars_stand_below_each_other_with_their_totals(void **state)
{
	const char *text;

	canned_take(&trace, CANNED_ANSWER(CANNED_CLOCK, THREE));
	text = shown(show_bars_narrow);
	assert_string_equal(text,
			    "NUMBER   SIZE  0               1 ms   TOTAL\n"
			    "   815  1 MiB  rrwwsssssssstLttppvv    1 ms\n"
			    "   816  1 MiB  rrwwssLpvv            500 us\n"
			    "   817  1 MiB  rrwwssssssss L        600 us  PEER_DIED\n"
			    "r in the ring, w waiting for a path, s being sent, t under way, p "
			    "placed,\nv visible, L local completion\n");
}

static void bars_are_as_wide_as_the_terminal_and_as_many_as_wanted(void **state)
{
	const char *text, *line;

	text = shown(show_last_bar);
	assert_string_equal(text, ""); /* nothing to show */
	canned_take(&trace, CANNED_ANSWER(CANNED_CLOCK, THREE));
	text = shown(show_last_bar);
	assert_null(strstr(text, "816"));
	assert_non_null(strstr(text, "817"));
	assert_non_null(strstr(text, "the last 1 of 3 messages"));
	line = strstr(text, "   817");
	assert_int_equal(strcspn(line, "\n"), 80);
	text = shown(show_bars_without_room);
	assert_non_null(strstr(text, "817"));
}

/* ---- the table ---- */

static void show_table(FILE *out)
{
	mrcctl_trace_show_table(&trace, out, false);
}

static void table_has_the_spans_and_what_the_clocks_are_worth(void **state)
{
	const char *text;

	canned_take(&trace, CANNED_ANSWER(CANNED_CLOCK, THREE));
	text = shown(show_table);
	assert_string_equal(text,
			    "FROM              TO                COUNT     P50     P90     P99   "
			    "P99.9     MAX\n"
			    "submitted         fetched               3  100 us  100 us  100 us  "
			    "100 us  100 us\n"
			    "fetched           first sent            3  100 us  100 us  100 us  "
			    "100 us  100 us\n"
			    "first sent        last sent             3  400 us  400 us  400 us  "
			    "400 us  400 us\n"
			    "last sent         local completion      3   50 us   50 us   50 us   "
			    "50 us   50 us\n"
			    "last sent         placed                2   -2 us  200 us  200 us  "
			    "200 us  200 us\n"
			    "placed            visible               2  100 us  102 us  102 us  "
			    "102 us  102 us\n"
			    "visible           committed             2  100 us  100 us  100 us  "
			    "100 us  100 us\n"
			    "submitted         committed             2  500 us    1 ms    1 ms    "
			    "1 ms    1 ms\n"
			    "local completion  placed                2   -3 us  150 us  150 us  "
			    "150 us  150 us\n"
			    "local completion  visible               2   99 us  250 us  250 us  "
			    "250 us  250 us\n"
			    "local completion  committed             2  199 us  350 us  350 us  "
			    "350 us  350 us\n"
			    "clock of b: offset -1.23 us, right to +-8 us, measured 50 ms ago\n");
}

static void table_marks_what_is_smaller_than_the_error(void **state)
{
	const char *text, *line;

	canned_take(&trace, CANNED_ANSWER(CANNED_CLOCK, CANNED_MESSAGE("6", "OK", CANNED_CROSSED)));
	text = shown(show_table);
	line = strstr(text, "last sent         placed");
	assert_non_null(line);
	assert_int_equal(line[strcspn(line, "\n") - 1], '*');
	line = strstr(text, "submitted         committed");
	assert_int_not_equal(line[strcspn(line, "\n") - 1], '*');
	assert_non_null(strstr(text, "\n* most of these are smaller than that error"));
}

static void table_says_what_is_not_in_it(void **state)
{
	static const char *const wants[] = {"clock of b: not known;", "missed: 12 messages",
					    "untraced: 7 messages", "rejected: 1 messages"};
	const char *text;

	canned_take(&trace, "{\"peer\":\"b\",\"next\":1,\"messages\":[]}");
	text = shown(show_table);
	assert_null(strstr(text, "missed:"));
	assert_null(strstr(text, "untraced:"));
	assert_null(strstr(text, "rejected:"));
	assert_non_null(strstr(text, "committed             0    -"));
	canned_take(&trace, "{\"peer\":\"b\",\"next\":2,\"missed\":12,\"untraced\":7,"
			    "\"messages\":[{\"seq\":1,\"outcome\":\"REJECTED\"}]}");
	text = shown(show_table);
	for (size_t i = 0; i < COUNT(wants); i++)
		if (strstr(text, wants[i]) == NULL)
			fail_msg("no '%s' in:\n%s", wants[i], text);
}

/* ---- JSON ---- */

static void json_has_the_shape_that_scripts_read(void **state)
{
	json_t *json, *row, *percentiles;
	size_t i;

	canned_take(&trace, CANNED_ANSWER(CANNED_CLOCK, THREE));
	json = mrcctl_trace_json(&trace);
	assert_string_equal(json_string_value(json_object_get(json, "peer")), "b");
	assert_string_equal(json_string_value(json_object_get(json, "service")), "bulk");
	assert_int_equal(json_integer_value(json_object_get(json, "channel")), 7);
	assert_int_equal(json_integer_value(json_object_get(json, "every")), 100);
	assert_int_equal(json_integer_value(json_object_get(json, "missed")), 0);
	assert_int_equal(json_integer_value(json_object_get(json, "untraced")), 0);
	assert_int_equal(json_integer_value(
				 json_object_get(json_object_get(json, "clock"), "error_ns")),
			 8000);
	assert_int_equal(json_array_size(json_object_get(json, "messages")), 3);
	percentiles = json_object_get(json, "percentiles");
	assert_int_equal(json_array_size(percentiles), MRCCTL_TRACE_ROW_COUNT);
	json_array_foreach(percentiles, i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "from")), "last_sent") != 0 ||
		    strcmp(json_string_value(json_object_get(row, "to")), "placed") != 0)
			continue;
		assert_int_equal(json_integer_value(json_object_get(row, "count")), 2);
		assert_int_equal(json_integer_value(json_object_get(row, "p50_ns")), -2000);
		assert_int_equal(json_integer_value(json_object_get(row, "p999_ns")), 200000);
		assert_int_equal(json_integer_value(json_object_get(row, "max_ns")), 200000);
		assert_int_equal(json_integer_value(json_object_get(row, "error_ns")), 8000);
	}
	json_decref(json);
	trace.clock.is_known = false;
	json = mrcctl_trace_json(&trace);
	assert_true(json_is_null(json_object_get(json, "clock")));
	json_decref(json);
}

/* ---- the command line ---- */

static void targets_are_a_channel_and_perhaps_its_peer(void **state)
{
	static const struct {
		const char *text, *peer;
		uint64_t channel;
		int want;
	} rows[] = {
		{"7", "", 7, 0},
		{"0", "", 0, 0},
		{"b/7", "b", 7, 0},
		{"rack1/b/7", "rack1/b", 7, 0},
		{"", "", 0, -EINVAL},
		{"b", "", 0, -EINVAL},
		{"b/", "", 0, -EINVAL},
		{"/7", "", 0, -EINVAL},
		{"-7", "", 0, -EINVAL},
		{"7x", "", 0, -EINVAL},
		{"9223372036854775808", "", 0, -EINVAL},
		{"a-name-of-a-host-that-is-longer-than-any-name-that-a-host-can-have/7", "", 0,
		 -EINVAL},
	};
	struct mrcctl_trace_options options;
	char error[MRCCTL_TRACE_ERROR_BYTES];

	for (size_t i = 0; i < COUNT(rows); i++) {
		mrcctl_trace_options_init(&options);
		error[0] = '\0';
		if (mrcctl_trace_target_take(&options, rows[i].text, error) != rows[i].want)
			fail_msg("'%s': %s", rows[i].text, error);
		if (rows[i].want != 0) {
			assert_non_null(strstr(error, "allowed is CHANNEL or PEER/CHANNEL"));
			continue;
		}
		assert_string_equal(options.peer, rows[i].peer);
		assert_int_equal(options.channel, rows[i].channel);
	}
}

static void numbers_have_their_bounds_and_errors_name_them(void **state)
{
	static const struct {
		enum mrcctl_trace_option option;
		const char *text, *error; /* error: part of it, NULL: it is taken */
	} rows[] = {
		{MRCCTL_TRACE_EVERY, "1", NULL},
		{MRCCTL_TRACE_EVERY, "1000000000", NULL},
		{MRCCTL_TRACE_EVERY, "0", "--every '0': allowed is 1 to 1000000000"},
		{MRCCTL_TRACE_COUNT, "100000", NULL},
		{MRCCTL_TRACE_COUNT, "100001", "--count '100001': allowed is 1 to 100000"},
		{MRCCTL_TRACE_COUNT, "many", "--count 'many': allowed is 1 to 100000"},
		{MRCCTL_TRACE_SECONDS, "86400", NULL},
		{MRCCTL_TRACE_SECONDS, "1s", "--seconds '1s': allowed is 1 to 86400"},
		{MRCCTL_TRACE_SECONDS, "-1", "--seconds '-1': allowed is 1 to 86400"},
		{MRCCTL_TRACE_SECONDS, "", "--seconds '': allowed is 1 to 86400"},
		{MRCCTL_TRACE_SECONDS, "18446744073709551617", "allowed is 1 to 86400"},
	};
	struct mrcctl_trace_options options;
	char error[MRCCTL_TRACE_ERROR_BYTES];

	mrcctl_trace_options_init(&options);
	assert_int_equal(options.every, 100);
	assert_int_equal(options.count, 1000);
	assert_int_equal(options.seconds, 10);
	for (size_t i = 0; i < COUNT(rows); i++) {
		int r = mrcctl_trace_option_take(&options, rows[i].option, rows[i].text, error);

		assert_int_equal(r, rows[i].error != NULL ? -EINVAL : 0);
		if (rows[i].error != NULL && strstr(error, rows[i].error) == NULL)
			fail_msg("'%s' does not say '%s'", error, rows[i].error);
	}
	assert_int_equal(options.every, 1000000000);
	assert_int_equal(options.count, 100000);
	assert_int_equal(options.seconds, 86400);
	assert_true(options.is_count_given);
}

static void signed_spans_keep_their_sign(void **state)
{
	static const struct {
		int64_t ns;
		const char *want;
	} rows[] = {{0, "0 ns"},
		    {-2000, "-2 us"},
		    {2000, "2 us"},
		    {-1234567, "-1.23 ms"},
		    {INT64_MIN, "-106751d 23h"}};
	char text[MRCCTL_UNIT_BYTES];

	for (size_t i = 0; i < COUNT(rows); i++)
		assert_string_equal(mrcctl_unit_span_signed(rows[i].ns, text), rows[i].want);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(bars_show_stages_on_one_scale),
		TEST(bars_stand_below_each_other_with_their_totals),
		TEST(bars_are_as_wide_as_the_terminal_and_as_many_as_wanted),
		TEST(table_has_the_spans_and_what_the_clocks_are_worth),
		TEST(table_marks_what_is_smaller_than_the_error),
		TEST(table_says_what_is_not_in_it),
		TEST(json_has_the_shape_that_scripts_read),
		TEST(targets_are_a_channel_and_perhaps_its_peer),
		TEST(numbers_have_their_bounds_and_errors_name_them),
		TEST(signed_spans_keep_their_sign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
