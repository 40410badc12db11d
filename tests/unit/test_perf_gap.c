/* SPDX-License-Identifier: BSD-2-Clause */
/* mrc-perf gap: how it talks to the daemon, and what it makes of the answers. */
#include "trace_canned.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mrc_perf_gap.h"
#include "mrc_perf_gap_report.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MS       1000000ULL

/* A gap and the daemon's end of its control socket. */
struct stage {
	struct perf_gap gap;
	int daemon_fd;
	uint64_t now_ns;
};

static int setup(void **state)
{
	struct perf_options options = {.service = "perf",
				       .size_bytes = 1048576,
				       .every = 3,
				       .control_path = "/nowhere/control.sock"};
	struct stage *stage = calloc(1, sizeof(*stage));
	int ends[2];

	assert_int_equal(perf_gap_init(&stage->gap, &options), 0);
	stage->gap.pid = 42;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	stage->gap.control.fd = ends[0];
	stage->daemon_fd = ends[1];
	stage->now_ns = 1000 * MS;
	*state = stage;
	return 0;
}

static int teardown(void **state)
{
	struct stage *stage = *state;

	perf_gap_fini(&stage->gap);
	close(stage->daemon_fd);
	free(stage);
	return 0;
}

/* The question that has come to the daemon; NULL: none. */
static json_t *asked(struct stage *stage)
{
	char text[512];
	ssize_t got = recv(stage->daemon_fd, text, sizeof(text), MSG_DONTWAIT);
	json_t *question;

	if (got <= 0)
		return NULL;
	assert_int_equal(text[got - 1], '\n');
	question = json_loadb(text, (size_t)got, 0, NULL);
	assert_non_null(question);
	return question;
}

static void asks(struct stage *stage, const char *command, int64_t since, int64_t every)
{
	json_t *question;

	perf_gap_step(&stage->gap, stage->now_ns);
	question = asked(stage);
	if (question == NULL)
		fail_msg("nothing was asked; state %d, %s", (int)stage->gap.state,
			 stage->gap.error);
	assert_string_equal(json_string_value(json_object_get(question, "command")), command);
	if (strcmp(command, "trace") == 0) {
		assert_int_equal(json_integer_value(json_object_get(question, "channel")), 9);
		assert_string_equal(json_string_value(json_object_get(question, "peer")), "b");
		assert_int_equal(json_integer_value(json_object_get(question, "since")), since);
		assert_int_equal(json_integer_value(json_object_get(question, "every")), every);
	}
	json_decref(question);
}

static void answers(struct stage *stage, const char *text)
{
	assert_int_equal(write(stage->daemon_fd, text, strlen(text)), strlen(text));
	assert_int_equal(write(stage->daemon_fd, "\n", 1), 1);
	perf_gap_step(&stage->gap, stage->now_ns);
}

#define CHANNEL(pid, service, id) \
	"{\"peer\":\"b\",\"id\":" id ",\"service\":\"" service "\",\"pid\":" pid "}"
#define CHANNELS                                                            \
	"{\"ok\":true,\"result\":[" CHANNEL("41", "perf", "7") "," CHANNEL( \
		"42", "other", "8") "," CHANNEL("42", "perf", "9") "]}"
#define TRACED(next, messages) \
	"{\"ok\":true,\"result\":{\"next\":" next ",\"messages\":[" messages "]}}"

static void gap_is_on(struct stage *stage)
{
	perf_gap_begin(&stage->gap, stage->now_ns);
	asks(stage, "channels", 0, 0);
	answers(stage, CHANNELS);
	asks(stage, "trace", -1, 3);
	answers(stage, TRACED("100", ""));
	assert_int_equal(stage->gap.state, PERF_GAP_ON);
}

static void gap_finds_its_channel_and_has_it_traced_to_the_end(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(perf_gap_due_ns(&stage->gap), UINT64_MAX);
	gap_is_on(stage);
	/* Not at once, and well before the daemon forgets us. */
	assert_null(asked(stage));
	assert_true(perf_gap_due_ns(&stage->gap) > stage->now_ns);
	assert_true(perf_gap_due_ns(&stage->gap) <= stage->now_ns + 1000 * MS);
	stage->now_ns = perf_gap_due_ns(&stage->gap);
	asks(stage, "trace", 100, 3);
	answers(stage, TRACED("101", CANNED_MESSAGE("5", "OK", CANNED_GOOD)));
	assert_int_equal(stage->gap.trace.count, 1);
	perf_gap_end(&stage->gap, stage->now_ns);
	perf_gap_end(&stage->gap, stage->now_ns);
	for (int look = 0; look < 3; look++) {
		assert_int_equal(stage->gap.state, PERF_GAP_ENDING);
		stage->now_ns = perf_gap_due_ns(&stage->gap);
		asks(stage, "trace", 101 + look, 3);
		if (look == 0)
			answers(stage, TRACED("102", CANNED_MESSAGE("6", "OK", CANNED_GOOD)));
		else
			answers(stage, look == 1 ? TRACED("103", "") : TRACED("104", ""));
	}
	asks(stage, "trace", 104, 0);
	/* The last thing said is how the run ends: no data. */
	answers(stage, TRACED("105", "{\"seq\":104,\"bytes\":100,\"outcome\":\"OK\"}"));
	assert_int_equal(stage->gap.state, PERF_GAP_ENDED);
	assert_int_equal(stage->gap.trace.count, 2);
	assert_int_equal(perf_gap_due_ns(&stage->gap), UINT64_MAX);
}

static void gap_asks_again_at_once_after_a_full_answer(void **state)
{
	struct stage *stage = *state;
	json_t *answer = json_loads(TRACED("400", ""), 0, NULL);
	json_t *messages = json_object_get(json_object_get(answer, "result"), "messages");
	char *text;

	gap_is_on(stage);
	for (unsigned i = 0; i < MRC_TRACE_ANSWER_MAX; i++)
		json_array_append_new(messages, json_pack("{s:i s:s}", "seq", i, "outcome", "OK"));
	text = json_dumps(answer, 0);
	stage->now_ns = perf_gap_due_ns(&stage->gap);
	asks(stage, "trace", 100, 3);
	answers(stage, text); /* and within that step the next question is asked */
	assert_true(stage->gap.control.is_waiting);
	assert_int_equal(stage->gap.trace.next, 400);
	free(text);
	json_decref(answer);
}

static void gap_says_why_it_cannot_be(void **state)
{
	static const struct {
		const char *channels, *trace, *error; /* error: part of it */
	} rows[] = {
		{"{\"ok\":true,\"result\":[]}", NULL, "no channel of ours (pid 42, service perf)"},
		{"{\"ok\":true,\"result\":[" CHANNEL("42", "other", "1") "]}", NULL,
		 "no channel of ours"},
		{"nonsense", NULL, "it does not say why"},
		{CHANNELS,
		 "{\"ok\":false,\"error\":\"trace changes how the daemon works: only root may\"}",
		 "the daemon does not trace for us: trace changes how the daemon works: only root"},
		{CHANNELS, "{\"ok\":true,\"result\":{}}", "is not understood"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct stage *stage = *state;

		perf_gap_begin(&stage->gap, stage->now_ns);
		asks(stage, "channels", 0, 0);
		answers(stage, rows[i].channels);
		if (rows[i].trace != NULL) {
			asks(stage, "trace", -1, 3);
			answers(stage, rows[i].trace);
		}
		assert_int_equal(stage->gap.state, PERF_GAP_FAILED);
		if (strstr(stage->gap.error, rows[i].error) == NULL)
			fail_msg("'%s' does not say '%s'", stage->gap.error, rows[i].error);
		teardown(state);
		setup(state);
	}
}

static void gap_does_not_wait_for_ever(void **state)
{
	struct stage *stage = *state;

	gap_is_on(stage);
	stage->now_ns = perf_gap_due_ns(&stage->gap);
	asks(stage, "trace", 100, 3);
	stage->now_ns = perf_gap_due_ns(&stage->gap) - 1;
	perf_gap_step(&stage->gap, stage->now_ns);
	assert_int_equal(stage->gap.state, PERF_GAP_ON);
	perf_gap_step(&stage->gap, stage->now_ns + 1);
	assert_int_equal(stage->gap.state, PERF_GAP_FAILED);
	assert_non_null(strstr(stage->gap.error, "did not answer in time"));
}

static void gap_notices_that_the_daemon_is_gone(void **state)
{
	struct stage *stage = *state;

	gap_is_on(stage);
	stage->now_ns = perf_gap_due_ns(&stage->gap);
	asks(stage, "trace", 100, 3);
	shutdown(stage->daemon_fd, SHUT_RDWR);
	perf_gap_step(&stage->gap, stage->now_ns);
	assert_int_equal(stage->gap.state, PERF_GAP_FAILED);
	assert_non_null(strstr(stage->gap.error, "/nowhere/control.sock"));
}

/* ---- the report ---- */

#define TWO CANNED_MESSAGE("5", "OK", CANNED_GOOD) "," CANNED_MESSAGE("6", "OK", CANNED_CROSSED)

static void take(struct mrc_trace *trace, const char *answer)
{
	mrc_trace_init(trace, 1000);
	canned_take(trace, answer);
}

static void report_says_what_the_local_completion_was_worth(void **state)
{
	struct mrc_trace trace;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	take(&trace, CANNED_ANSWER(CANNED_CLOCK, TWO));
	perf_gap_report(out, &trace, false);
	fclose(out);
	assert_string_equal(
		text,
		"the gap after the local completion, channel 7 to b/bulk, 1 message in 100:\n"
		"at that moment RDMA would have said \"done\"; so much later the message really "
		"was\n"
		"REALLY     COUNT     MIN     P50     P90     P99   P99.9     MAX  LOCAL FIRST  "
		"WITHIN ERROR\n"
		"placed         2   -3 us   -3 us  150 us  150 us  150 us  150 us      50.00 %  "
		"     50.00 %\n"
		"visible        2   99 us   99 us  250 us  250 us  250 us  250 us     100.00 %  "
		"      0.00 %\n"
		"committed      2  199 us  199 us  350 us  350 us  350 us  350 us     100.00 %  "
		"      0.00 %\n"
		"clock of b: offset -1.23 us, right to +-8 us, measured 50 ms ago\n");
	free(text);
	mrc_trace_fini(&trace);
}

static void report_as_json_has_the_shape_that_scripts_read(void **state)
{
	struct mrc_trace trace;
	json_t *json, *placed;

	take(&trace, CANNED_ANSWER(CANNED_CLOCK, TWO));
	json = perf_gap_json(&trace);
	placed = json_object_get(json, "placed");
	assert_int_equal(json_integer_value(json_object_get(placed, "count")), 2);
	assert_int_equal(json_integer_value(json_object_get(placed, "min_ns")), -3000);
	assert_int_equal(json_integer_value(json_object_get(placed, "p99_ns")), 150000);
	assert_int_equal(json_integer_value(json_object_get(placed, "max_ns")), 150000);
	assert_int_equal(json_integer_value(json_object_get(placed, "error_ns")), 8000);
	assert_true(json_number_value(json_object_get(placed, "local_first")) == 0.5);
	assert_true(json_number_value(json_object_get(placed, "within_error")) == 0.5);
	assert_int_equal(json_integer_value(
				 json_object_get(json_object_get(json, "committed"), "max_ns")),
			 350000);
	assert_int_equal(json_integer_value(
				 json_object_get(json_object_get(json, "visible"), "p50_ns")),
			 99000);
	assert_int_equal(json_integer_value(json_object_get(json, "every")), 100);
	json_decref(json);
	mrc_trace_fini(&trace);
}

/* ---- the picture ---- */

static void script_draws_what_is_above_0_and_quotes_the_file(void **state)
{
	struct mrc_trace trace;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	take(&trace, CANNED_ANSWER(CANNED_CLOCK, TWO));
	assert_int_equal(perf_gap_script(&trace, "it's.svg", out), 0);
	fclose(out);
	/* One of two was not above 0: the curve begins at one half and goes up to all. */
	assert_non_null(strstr(text, "$curve0 << EOD\n150.000 1.000000\nEOD\n"));
	assert_non_null(strstr(text, "$curve1 << EOD\n99.000 0.500000\n250.000 1.000000\nEOD\n"));
	assert_non_null(strstr(text, "set output 'it''s.svg'\n"));
	assert_non_null(strstr(text, "set terminal svg "));
	free(text);
	mrc_trace_fini(&trace);
}

static void script_of_nothing_is_none(void **state)
{
	struct mrc_trace trace;
	FILE *out = tmpfile();

	take(&trace, CANNED_ANSWER(CANNED_CLOCK, CANNED_MESSAGE("5", "PEER_DIED", CANNED_FAILED)));
	assert_int_equal(perf_gap_script(&trace, "gap.png", out), -ENODATA);
	fclose(out);
	mrc_trace_fini(&trace);
}

static void picture_is_drawn_by_gnuplot(void **state)
{
	static const struct {
		const char *name, *begin;
	} rows[] = {{"gap's.svg", "<?xml"}, {"gap.png", "\x89PNG"}};
	char dir[] = "/tmp/mrc-perf-gap-XXXXXX", error[PERF_ERROR_BYTES] = "";
	struct mrc_trace trace;

	assert_non_null(mkdtemp(dir));
	take(&trace, CANNED_ANSWER(CANNED_CLOCK, TWO));
	for (size_t i = 0; i < COUNT(rows); i++) {
		char path[128], begin[8] = "";
		FILE *file;
		int r;

		snprintf(path, sizeof(path), "%s/%s", dir, rows[i].name);
		r = perf_gap_draw_check(path, error);
		if (r == -ENOENT) {
			print_message("skipped: %s\n", error);
			rmdir(dir);
			mrc_trace_fini(&trace);
			skip();
		}
		assert_int_equal(r, 0);
		assert_int_equal(access(path, F_OK), -1); /* a look leaves nothing behind */
		if (perf_gap_draw(&trace, path, error) < 0)
			fail_msg("%s", error);
		file = fopen(path, "r");
		assert_non_null(file);
		assert_true(fread(begin, 1, 7, file) == 7);
		assert_memory_equal(begin, rows[i].begin, strlen(rows[i].begin));
		fclose(file);
		unlink(path);
	}
	assert_int_equal(rmdir(dir), 0);
	mrc_trace_fini(&trace);
}

static void picture_that_cannot_be_is_told_before_the_run(void **state)
{
	char error[PERF_ERROR_BYTES] = "", *path = strdup(getenv("PATH"));
	struct mrc_trace trace;

	assert_int_equal(perf_gap_draw_check("/nowhere/gap.png", error), -ENOENT);
	assert_non_null(strstr(error, "/nowhere/gap.png"));
	setenv("PATH", "/nowhere", 1);
	assert_int_equal(perf_gap_draw_check("/dev/null", error), -ENOENT);
	assert_non_null(strstr(error, "gnuplot, which is not installed"));
	setenv("PATH", path, 1);
	free(path);
	take(&trace, CANNED_ANSWER("null", ""));
	assert_int_equal(perf_gap_draw(&trace, "/dev/null", error), -ENODATA);
	assert_non_null(strstr(error, "nothing to draw"));
	mrc_trace_fini(&trace);
}

int main(void)
{
#define STAGED(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		STAGED(gap_finds_its_channel_and_has_it_traced_to_the_end),
		STAGED(gap_asks_again_at_once_after_a_full_answer),
		STAGED(gap_says_why_it_cannot_be),
		STAGED(gap_does_not_wait_for_ever),
		STAGED(gap_notices_that_the_daemon_is_gone),
		cmocka_unit_test(report_says_what_the_local_completion_was_worth),
		cmocka_unit_test(report_as_json_has_the_shape_that_scripts_read),
		cmocka_unit_test(script_draws_what_is_above_0_and_quotes_the_file),
		cmocka_unit_test(script_of_nothing_is_none),
		cmocka_unit_test(picture_is_drawn_by_gnuplot),
		cmocka_unit_test(picture_that_cannot_be_is_told_before_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
