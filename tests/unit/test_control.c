/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket: what it answers, whom, and what it does not let anybody do to the daemon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "mrcd_control.h"
#include "mrcd_drain.h"
#include "mrcd_log.h"
#include "mrcd_peer.h"
#include "mrcd_reload.h"
#include "mrcd_stall.h"
#include "mrcd_worker.h"

#define TURNS_MAX 20000

struct stage {
	struct mrcd_conf conf;
	struct mrcd_conf_peer peer;
	struct mrcd_worker *worker;
	char dir[64];
};

static int setup(void **state)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	struct mrcd_conf *conf = &stage->conf;

	mrcd_log_init(LOG_CRIT);
	strcpy(stage->dir, "/tmp/mrcd-test-XXXXXX");
	assert_non_null(mkdtemp(stage->dir));
	strcpy(conf->host, "a");
	strcpy(conf->runtime_dir, stage->dir);
	conf->rail_count = 2;
	strcpy(conf->rails[0].name, "r0");
	strcpy(conf->rails[1].name, "r1");
	conf->rails[0].speed_bits_per_s = 1000000000;
	conf->peers = &stage->peer;
	conf->peer_count = 1;
	strcpy(stage->peer.name, "b");
	strcpy(stage->peer.paths[0].address, "10.0.0.2");
	stage->peer.path_count = 1;
	assert_int_equal(mrcd_worker_new(conf, &stage->worker), 0);
	assert_int_equal(mrcd_control_new(stage->worker, &stage->worker->control), 0);
	*state = stage;
	return 0;
}

static int teardown(void **state)
{
	struct stage *stage = *state;

	mrcd_worker_free(stage->worker);
	assert_int_equal(rmdir(stage->dir), 0); /* the socket went with the daemon */
	free(stage);
	return 0;
}

static json_t *ask(struct stage *stage, const char *line, bool may_change)
{
	json_t *answer = mrcd_control_answer(stage->worker, line, strlen(line), may_change);

	assert_non_null(answer);
	return answer;
}

/* ---- answers ---- */

static void control_refuses_what_is_no_command_and_says_what_is(void **state)
{
	static const struct {
		const char *line, *want;
	} cases[] = {
		{"", "not JSON"},
		{"status", "not JSON"},
		{"{\"command\": \"status\"", "not JSON"},
		{"{\"command\": \"status\"} x", "not JSON"},
		{"{\"command\": \"status\", \"command\": \"drain\"}", "not JSON"},
		{"{\"command\": \"\xff\"}", "not JSON"},
		{"[[[[[[", "not JSON"},
		{"[]", "a JSON object is wanted"},
		{"\"status\"", "not JSON"}, /* RFC 4627: an object or array */
		{"{}", "\"command\" is missing"},
		{"{\"command\": 7}", "\"command\" is missing"},
		{"{\"command\": \"halt\"}", "no command \"halt\"; allowed: status, rails"},
		{"{\"command\": \"%s%n\"}", "no command \"%s%n\""},
		{"{\"command\": \"drain\"}", "which one? allowed: r0, r1"},
		{"{\"command\": \"drain\", \"rail\": \"r9\"}", "no rail \"r9\"; allowed: r0, r1"},
		{"{\"command\": \"undrain\", \"rail\": 0}", "which one? allowed: r0, r1"},
		{"{\"command\": \"drain\", \"host\": 1}", "\"host\": true for all of this host"},
		{"{\"command\": \"undrain\", \"host\": true, \"rail\": \"r0\"}", "not both"},
		{"{\"command\": \"events\", \"since\": -1}", "\"since\" is to be a number from 0"},
		{"{\"command\": \"stalls\", \"since_ns\": \"x\"}",
		 "\"since_ns\" is to be a number"},
		{"{\"command\": \"several\"}",
		 "several wants \"commands\", an array of at most 16"},
		{"{\"command\": \"several\", \"commands\": \"rails\"}", "several wants"},
		{"{\"command\": \"several\", \"commands\": "
		 "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}",
		 "several wants"},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		json_t *answer = ask(*state, cases[i].line, true);
		const char *error = json_string_value(json_object_get(answer, "error"));

		assert_true(json_is_false(json_object_get(answer, "ok")));
		if (error == NULL || strstr(error, cases[i].want) == NULL)
			fail_msg("\"%s\" is answered \"%s\", without \"%s\"", cases[i].line, error,
				 cases[i].want);
		json_decref(answer);
	}
}

static void control_changes_nothing_for_those_who_may_only_look(void **state)
{
	struct stage *stage = *state;
	static const char *const lines[] = {
		"{\"command\": \"drain\", \"rail\": \"r1\"}",
		"{\"command\": \"undrain\", \"rail\": \"r1\"}",
		"{\"command\": \"drain\", \"host\": true}",
		"{\"command\": \"undrain\", \"host\": true}",
		"{\"command\": \"fault\", \"rail\": \"r1\", \"what\": \"qp-error\"}",
		"{\"command\": \"drill\", \"do\": \"open\"}",
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(lines); i++) {
		json_t *answer = ask(stage, lines[i], false);

		assert_true(json_is_false(json_object_get(answer, "ok")));
		assert_non_null(
			strstr(json_string_value(json_object_get(answer, "error")), "only root"));
		json_decref(answer);
	}
	assert_false(stage->worker->rails[1].is_draining);
	assert_false(mrcd_drain_is_on(stage->worker));
}

static void control_answers_several_questions_in_one(void **state)
{
	struct stage *stage = *state;
	json_t *answer = ask(stage,
			     "{\"command\": \"several\", \"commands\": [\"status\", "
			     "{\"command\": \"rails\"}, \"halt\", "
			     "{\"command\": \"several\", \"commands\": []}, 7, "
			     "{\"command\": \"drain\", \"rail\": \"r1\"}, \"peers\", "
			     "\"rails\", {\"command\": \"status\"}]}",
			     true);
	static const char *const errors[] = {NULL,
					     NULL,
					     "no command \"halt\"",
					     "no place within itself",
					     "\"command\" is missing",
					     "only root",
					     NULL,
					     "each command once",
					     "each command once"};
	json_t *result = json_object_get(answer, "result");

	assert_true(json_is_true(json_object_get(answer, "ok")));
	assert_int_equal(json_array_size(result), MRC_ARRAY_LEN(errors));
	for (size_t i = 0; i < MRC_ARRAY_LEN(errors); i++) {
		const json_t *one = json_array_get(result, i);
		const char *error = json_string_value(json_object_get(one, "error"));

		assert_true(json_boolean_value(json_object_get(one, "ok")) == (errors[i] == NULL));
		if (errors[i] != NULL && strstr(error, errors[i]) == NULL)
			fail_msg("%zu is answered \"%s\", without \"%s\"", i, error, errors[i]);
	}
	assert_string_equal(json_string_value(json_object_get(
				    json_object_get(json_array_get(result, 0), "result"), "host")),
			    "a");
	assert_int_equal(json_array_size(json_object_get(json_array_get(result, 1), "result")), 2);
	assert_false(stage->worker->rails[1].is_draining); /* whoever asks, it only looks */
	json_decref(answer);
}

static void control_drains_and_gives_back(void **state)
{
	struct stage *stage = *state;
	json_t *answer = ask(stage, "{\"command\": \"drain\", \"rail\": \"r0\"}", true);
	json_t *result = json_object_get(answer, "result");

	assert_true(json_is_true(json_object_get(answer, "ok")));
	assert_string_equal(json_string_value(json_object_get(result, "rail")), "r0");
	assert_true(json_is_true(json_object_get(result, "drained")));
	assert_int_equal(json_integer_value(json_object_get(result, "paths")), 1);
	assert_true(stage->worker->rails[0].is_draining);
	json_decref(answer);
	answer = ask(stage, "{\"command\": \"undrain\", \"rail\": \"r0\"}", true);
	assert_true(json_is_true(json_object_get(answer, "ok")));
	assert_false(stage->worker->rails[0].is_draining);
	json_decref(answer);
}

static bool flag(const json_t *answer, const char *key)
{
	const json_t *value = json_object_get(json_object_get(answer, "result"), key);

	assert_true(json_is_boolean(value));
	return json_is_true(value);
}

static void control_drains_the_host_and_gives_it_back(void **state)
{
	static const char *const kinds[] = {"host-drain", "host-undrain"};
	struct stage *stage = *state;
	json_t *answer, *events;

	for (int is_on = 1; is_on >= 0; is_on--) {
		for (int again = 0; again < 2; again++) {
			answer = ask(stage,
				     is_on ? "{\"command\": \"drain\", \"host\": true}"
					   : "{\"command\": \"undrain\", \"host\": true}",
				     true);
			assert_int_equal(flag(answer, "draining"), is_on);
			assert_int_equal(flag(answer, "drained"), is_on); /* no channel is open */
			json_decref(answer);
		}
		answer = ask(stage, "{\"command\": \"draining\"}", false);
		assert_int_equal(flag(answer, "draining"), is_on);
		json_decref(answer);
		answer = ask(stage, "{\"command\": \"status\"}", false);
		assert_int_equal(flag(answer, "draining"), is_on);
		assert_int_equal(strncmp(json_string_value(json_object_get(
						 json_object_get(answer, "result"), "summary")),
					 "draining: ", 10) == 0,
				 is_on);
		json_decref(answer);
		answer = ask(stage, "{\"command\": \"about\"}", false);
		assert_int_equal(json_integer_value(
					 json_object_get(json_object_get(answer, "result"),
							 "draining_ns")) > 0,
				 is_on);
		json_decref(answer);
	}
	answer = ask(stage, "{\"command\": \"events\"}", false);
	events = json_object_get(json_object_get(answer, "result"), "events");
	assert_int_equal(json_array_size(events), MRC_ARRAY_LEN(kinds)); /* once each */
	for (size_t i = 0; i < MRC_ARRAY_LEN(kinds); i++)
		assert_string_equal(json_string_value(
					    json_object_get(json_array_get(events, i), "kind")),
				    kinds[i]);
	json_decref(answer);
}

static void control_tells_what_others_rely_on(void **state)
{
	static const struct {
		const char *command;
		size_t rows; /* SIZE_MAX: an object */
		const char *keys[8];
	} cases[] = {
		{"status",
		 SIZE_MAX,
		 {"host", "version", "boot_id", "pid", "uptime_ns", "rails_up", "summary"}},
		{"rails",
		 2,
		 {"name", "type", "carrier", "drained", "speed_bits_per_s", "bytes_sent",
		  "paths_good"}},
		{"peers", 1, {"name", "state", "epoch", "paths", "messages_failed"}},
		{"paths", 1, {"peer", "rail", "state", "rtt_ns", "bytes_sent", "state_age_ns"}},
		{"about",
		 SIZE_MAX,
		 {"version", "kernel", "memlock_bytes", "may_lock", "arena_bytes", "rails",
		  "peers"}},
		{"draining",
		 SIZE_MAX,
		 {"host", "draining", "drained", "for_ns", "programs", "channels", "messages"}},
		{"channels", 0, {NULL}},
		{"clients", 0, {NULL}},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		char line[64];
		json_t *answer, *result, *row;

		snprintf(line, sizeof(line), "{\"command\": \"%s\"}", cases[i].command);
		answer = ask(*state, line, false);
		result = json_object_get(answer, "result");
		assert_true(json_is_true(json_object_get(answer, "ok")));
		if (cases[i].rows == SIZE_MAX) {
			row = result;
		} else {
			assert_true(json_is_array(result));
			assert_int_equal(json_array_size(result), cases[i].rows);
			row = json_array_get(result, 0);
		}
		for (const char *const *key = cases[i].keys; *key != NULL; key++) {
			if (json_object_get(row, *key) == NULL)
				fail_msg("%s has no key %s", cases[i].command, *key);
		}
		json_decref(answer);
	}
}

static void rail_describe(const struct mrcd_rail *rail, json_t *object)
{
	json_object_set_new(object, "verbs",
			    json_pack("{s:s}", "device", rail->index == 1 ? "rxe1" : "rxe0"));
}

static void control_lets_a_kind_of_rail_describe_its_own(void **state)
{
	struct stage *stage = *state;
	struct mrcd_rail *rail = &stage->worker->rails[1];
	const struct mrcd_rail_ops *ops = rail->ops;
	struct mrcd_rail_ops described = *ops;
	json_t *answer, *result;

	described.describe = rail_describe;
	rail->ops = &described;
	answer = ask(stage, "{\"command\": \"rails\"}", false);
	rail->ops = ops;
	result = json_object_get(answer, "result");
	assert_null(json_object_get(json_array_get(result, 0), "verbs"));
	assert_string_equal(json_string_value(json_object_get(
				    json_object_get(json_array_get(result, 1), "verbs"), "device")),
			    "rxe1");
	json_decref(answer);
}

static void control_tells_events_and_what_comes_after_them(void **state)
{
	struct stage *stage = *state;
	json_t *answer, *result, *events;
	char line[96];

	json_decref(ask(stage, "{\"command\": \"drain\", \"rail\": \"r1\"}", true));
	json_decref(
		ask(stage, "{\"command\": \"drain\", \"rail\": \"r1\"}", true)); /* it is already */
	answer = ask(stage, "{\"command\": \"events\"}", false);
	result = json_object_get(answer, "result");
	events = json_object_get(result, "events");
	assert_int_equal(json_array_size(events), 1);
	assert_string_equal(json_string_value(json_object_get(json_array_get(events, 0), "text")),
			    "rail r1: drained by the operator");
	assert_int_equal(strlen(json_string_value(json_object_get(result, "boot_id"))), 16);
	snprintf(line, sizeof(line), "{\"command\": \"events\", \"since\": %lld}",
		 (long long)json_integer_value(json_object_get(result, "next")));
	json_decref(answer);
	json_decref(ask(stage, "{\"command\": \"undrain\", \"rail\": \"r1\"}", true));
	answer = ask(stage, line, false);
	events = json_object_get(json_object_get(answer, "result"), "events");
	assert_int_equal(json_array_size(events), 1);
	assert_string_equal(json_string_value(json_object_get(json_array_get(events, 0), "kind")),
			    "undrained");
	json_decref(answer);
}

static void control_tells_how_long_clients_stood_still(void **state)
{
	struct stage *stage = *state;
	struct mrcd_stall_meter *stalls = mrcd_peer_stalls(stage->worker->peers[0]);
	json_t *answer, *peer;

	stage->worker->now_ns = MRC_S;
	mrcd_stall_record(stalls, 30 * MRC_MS, 500 * MRC_MS);
	mrcd_stall_record(stalls, 10 * MRC_MS, 800 * MRC_MS);
	answer = ask(stage, "{\"command\": \"stalls\", \"since_ns\": 600000000}", false);
	assert_int_equal(json_integer_value(
				 json_object_get(json_object_get(answer, "result"), "now_ns")),
			 MRC_S);
	peer = json_array_get(json_object_get(json_object_get(answer, "result"), "peers"), 0);
	assert_string_equal(json_string_value(json_object_get(peer, "name")), "b");
	assert_int_equal(json_integer_value(json_object_get(peer, "count")), 2);
	assert_int_equal(json_integer_value(json_object_get(peer, "max_ns")), 30 * MRC_MS);
	assert_int_equal(json_integer_value(json_object_get(peer, "longest_ns")), 10 * MRC_MS);
	assert_int_equal(json_integer_value(json_object_get(peer, "waiting_ns")), 0);
	json_decref(answer);
}

static int rail_fault(struct mrcd_rail *rail, const char *what)
{
	return strcmp(what, "qp-error") == 0 ? 3 : -EINVAL;
}

static const char *fault_error(struct stage *stage, const char *line, json_t **answer_out)
{
	json_decref(*answer_out);
	*answer_out = ask(stage, line, true);
	return json_string_value(json_object_get(*answer_out, "error"));
}

/* Nobody shall break a daemon at work by a slip of the pen. */
static void control_breaks_things_on_purpose_where_that_was_asked_for_only(void **state)
{
	static const char fault[] =
		"{\"command\": \"fault\", \"rail\": \"r1\", \"what\": \"qp-error\"}";
	struct stage *stage = *state;
	struct mrcd_rail *rail = &stage->worker->rails[1];
	const struct mrcd_rail_ops *ops = rail->ops;
	struct mrcd_rail_ops faulty = *ops;
	json_t *answer = NULL, *result;

	unsetenv("MRCD_FAULT");
	faulty.fault = rail_fault;
	rail->ops = &faulty;
	if (!MRC_DEBUG)
		assert_non_null(strstr(fault_error(stage, fault, &answer), "are for tests"));
	setenv("MRCD_FAULT", "on", 1);
	rail->is_open = false;
	assert_non_null(strstr(fault_error(stage, fault, &answer), "rail r1 is closed"));
	rail->is_open = true;
	assert_null(fault_error(stage, fault, &answer));
	result = json_object_get(answer, "result");
	assert_int_equal(json_integer_value(json_object_get(result, "broken")), 3);
	assert_non_null(strstr(fault_error(stage,
					   "{\"command\": \"fault\", \"rail\": \"r1\", "
					   "\"what\": \"all\"}",
					   &answer),
			       "has no fault \"all\""));
	assert_non_null(strstr(fault_error(stage, "{\"command\": \"fault\"}", &answer),
			       "wants a \"rail\"; allowed: r0, r1"));
	rail->ops = ops; /* of type tcp */
	assert_non_null(strstr(fault_error(stage, fault, &answer), "has no fault \"qp-error\""));
	rail->is_open = false;
	unsetenv("MRCD_FAULT");
	json_decref(answer);
}

/* ---- the socket ---- */

static int dial(const struct stage *stage)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", stage->dir);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void turn(struct stage *stage)
{
	event_base_loop(stage->worker->base, EVLOOP_NONBLOCK);
}

/* One line of answer; "" when the daemon closes first. */
static const char *hear(struct stage *stage, int fd, char text[4096])
{
	size_t len = 0;

	for (int i = 0; i < TURNS_MAX && len < 4095; i++) {
		ssize_t count = recv(fd, text + len, 1, MSG_DONTWAIT);

		if (count == 0 || (count == 1 && text[len] == '\n'))
			break;
		if (count == 1)
			len++;
		else
			turn(stage);
	}
	text[len] = '\0';
	return text;
}

static bool is_closed(struct stage *stage, int fd)
{
	char byte;

	for (int i = 0; i < TURNS_MAX; i++) {
		if (recv(fd, &byte, 1, MSG_DONTWAIT) == 0)
			return true;
		turn(stage);
	}
	return false;
}

static void control_answers_line_by_line(void **state)
{
	struct stage *stage = *state;
	int fd = dial(stage);
	char text[4096];

	say(fd, "{\"command\":\"cha");
	for (int i = 0; i < 100; i++)
		turn(stage);
	say(fd, "nnels\"}\n{\"command\":\"clients\"}\nnonsense\n{\"command\":\"channels\"}");
	assert_string_equal(hear(stage, fd, text), "{\"ok\":true,\"result\":[]}");
	assert_string_equal(hear(stage, fd, text), "{\"ok\":true,\"result\":[]}");
	assert_non_null(strstr(hear(stage, fd, text), "\"ok\":false"));
	say(fd, "\n");
	assert_string_equal(hear(stage, fd, text), "{\"ok\":true,\"result\":[]}");
	close(fd);
}

/* ---- answers that come later ---- */

static struct {
	int r; /* refused at once with it */
	bool is_trial;
	mrcd_reload_fn done; /* NULL: nobody waits */
	void *done_context;
} reread;

static int read_again(void *context, bool is_trial, mrcd_reload_fn done, void *done_context)
{
	reread.is_trial = is_trial;
	reread.done = reread.r == 0 ? done : NULL;
	reread.done_context = done_context;
	return reread.r;
}

static void reread_end(int r, const char *error)
{
	struct mrcd_reload reload = {0};
	mrcd_reload_fn done = reread.done;

	reread.done = NULL;
	snprintf(reload.error, sizeof(reload.error), "%s", error);
	done(reread.done_context, r, &reload);
}

static void until_reread(struct stage *stage)
{
	for (int i = 0; i < TURNS_MAX && reread.done == NULL; i++)
		turn(stage);
	assert_non_null(reread.done);
}

/* Others are answered meanwhile, and the same one in the order it asked. */
static void control_answers_a_reload_when_it_is_done(void **state)
{
	struct stage *stage = *state;
	int fd = dial(stage), other = dial(stage);
	char text[4096];

	stage->worker->read_again = read_again;
	say(fd, "{\"command\":\"reload\",\"check\":true}\n{\"command\":\"channels\"}\n");
	until_reread(stage);
	assert_true(reread.is_trial);
	say(other, "{\"command\":\"clients\"}\n");
	assert_string_equal(hear(stage, other, text), "{\"ok\":true,\"result\":[]}");
	assert_true(recv(fd, text, 1, MSG_DONTWAIT) < 0);
	reread_end(-EINVAL, "it is wrong");
	assert_string_equal(hear(stage, fd, text),
			    "{\"ok\":false,\"error\":\"nothing was changed: it is wrong\"}");
	assert_string_equal(hear(stage, fd, text), "{\"ok\":true,\"result\":[]}");
	say(fd, "{\"command\":\"reload\"}\n");
	until_reread(stage);
	assert_false(reread.is_trial);
	reread_end(0, "");
	assert_non_null(strstr(hear(stage, fd, text), "\"unchanged\""));
	/* Refused at once. */
	reread.r = -EBUSY;
	say(fd, "{\"command\":\"reload\"}\n{\"command\":\"channels\"}\n");
	assert_string_equal(
		hear(stage, fd, text),
		"{\"ok\":false,\"error\":\"nothing was changed: the daemon is ending\"}");
	assert_string_equal(hear(stage, fd, text), "{\"ok\":true,\"result\":[]}");
	reread.r = 0;
	close(fd);
	close(other);
}

static void control_says_nothing_to_who_has_gone_while_he_waited(void **state)
{
	struct stage *stage = *state;
	int fd = dial(stage);
	json_t *answer;

	stage->worker->read_again = read_again;
	say(fd, "{\"command\":\"reload\"}\n");
	until_reread(stage);
	close(fd);
	turn(stage);
	reread_end(-EINVAL, "");
	/* Nor when the socket has gone. */
	fd = dial(stage);
	say(fd, "{\"command\":\"reload\"}\n");
	until_reread(stage);
	mrcd_control_free(stage->worker->control);
	stage->worker->control = NULL;
	reread_end(0, "");
	assert_true(is_closed(stage, fd));
	close(fd);
	/* Nobody waits for what is asked without a connection. */
	answer = ask(stage, "{\"command\":\"reload\"}", true);
	assert_non_null(strstr(json_string_value(json_object_get(answer, "error")), "not asked"));
	assert_null(reread.done);
	json_decref(answer);
}

static void control_answers_those_who_have_closed_their_half(void **state)
{
	struct stage *stage = *state;
	int fd = dial(stage);
	char text[4096];

	say(fd, "{\"command\":\"channels\"}\n{\"command\":\"status\"}\n{\"command\":");
	shutdown(fd, SHUT_WR);
	assert_string_equal(hear(stage, fd, text), "{\"ok\":true,\"result\":[]}");
	assert_non_null(strstr(hear(stage, fd, text), "\"ok\":true"));
	assert_true(is_closed(stage, fd));
	close(fd);
}

static void control_ends_a_connection_with_an_endless_line(void **state)
{
	struct stage *stage = *state;
	int fd = dial(stage);
	char text[4096];

	memset(text, ' ', sizeof(text));
	for (int i = 0; i < 3; i++)
		assert_true(send(fd, text, sizeof(text), MSG_NOSIGNAL) > 0);
	assert_non_null(strstr(hear(stage, fd, text), "a line has more than 4096 bytes"));
	assert_true(is_closed(stage, fd));
	close(fd);
}

static void control_turns_away_more_than_it_serves_and_recovers(void **state)
{
	struct stage *stage = *state;
	int fds[MRCD_CONTROL_OWNERS_MAX], fd;
	char text[4096];

	for (uint32_t i = 0; i < MRCD_CONTROL_OWNERS_MAX; i++) {
		fds[i] = dial(stage);
		say(fds[i], "{\"command\":\"channels\"}\n");
		assert_string_equal(hear(stage, fds[i], text), "{\"ok\":true,\"result\":[]}");
	}
	fd = dial(stage);
	assert_string_equal(hear(stage, fd, text),
			    "{\"ok\":false,\"error\":\"root and the daemon's user have 32 "
			    "connections to its control socket; allowed: 32\"}");
	assert_true(is_closed(stage, fd));
	close(fd);
	close(fds[0]);
	for (int i = 0; i < 100; i++)
		turn(stage);
	fds[0] = dial(stage);
	say(fds[0], "{\"command\":\"channels\"}\n");
	assert_string_equal(hear(stage, fds[0], text), "{\"ok\":true,\"result\":[]}");
	for (uint32_t i = 0; i < MRCD_CONTROL_OWNERS_MAX; i++)
		close(fds[i]);
}

static bool is_served(struct stage *stage, int fd)
{
	char text[4096];

	say(fd, "{\"command\":\"channels\"}\n");
	return strcmp(hear(stage, fd, text), "{\"ok\":true,\"result\":[]}") == 0;
}

/* Connected by this user; the kernel takes its name at that moment. */
static int dial_as(struct stage *stage, uid_t uid)
{
	int fd;

	assert_int_equal(chmod(stage->dir, 0711), 0);
	assert_int_equal(seteuid(uid), 0);
	fd = dial(stage);
	assert_int_equal(seteuid(0), 0);
	turn(stage);
	return fd;
}

static void control_keeps_a_place_for_everybody(void **state)
{
	enum { SHARE = MRCD_CONTROL_SHARE_MAX, USERS = MRCD_CONTROL_OTHERS_MAX / SHARE };
	struct stage *stage = *state;
	int roots[MRCD_CONTROL_SHARE_MAX + 4], fds[USERS][SHARE], fd, other;
	char text[4096];

	if (geteuid() != 0) {
		print_message("skipped: only root can be several users\n");
		skip();
	}
	for (size_t i = 0; i < MRC_ARRAY_LEN(roots);
	     i++) /* silent, and more than others may have */
		roots[i] = dial_as(stage, 0);
	for (uint32_t i = 0; i < SHARE; i++) {
		fds[0][i] = dial_as(stage, 1000);
		assert_true(is_served(stage, fds[0][i]));
	}
	fd = dial_as(stage, 1000);
	assert_string_equal(hear(stage, fd, text),
			    "{\"ok\":false,\"error\":\"user 1000 has 8 connections to the daemon's "
			    "control socket; allowed: 8 of one user\"}");
	close(fd);
	for (uint32_t user = 1; user < USERS; user++) {
		for (uint32_t i = 0; i < SHARE; i++) {
			fds[user][i] = dial_as(stage, 1000 + user);
			assert_true(is_served(stage, fds[user][i]));
		}
	}
	/* All have gone to four users: one more gets what was silent longest, and root its own. */
	assert_true(is_served(stage, fds[0][0]));
	fd = dial_as(stage, 2000);
	assert_true(is_served(stage, fd));
	assert_true(is_closed(stage, fds[0][1]));
	assert_true(is_served(stage, fds[0][0]));
	/* Now it is another's turn to lose one, for three have more than the first. */
	other = dial_as(stage, 2000);
	assert_true(is_served(stage, other));
	assert_true(is_closed(stage, fds[1][0]));
	assert_true(is_served(stage, fds[0][2]));
	close(other);
	other = dial_as(stage, 0);
	assert_true(is_served(stage, other));
	close(other);
	close(fd);
	for (size_t i = 0; i < MRC_ARRAY_LEN(roots); i++) {
		assert_true(is_served(stage, roots[i]));
		close(roots[i]);
	}
	for (uint32_t user = 0; user < USERS; user++) {
		for (uint32_t i = 0; i < SHARE; i++)
			close(fds[user][i]);
	}
}

/* Who has few does not lose them to who has as many. */
static void control_takes_no_place_from_who_has_as_few(void **state)
{
	struct stage *stage = *state;
	int fds[MRCD_CONTROL_OTHERS_MAX], fd;
	char text[4096];

	if (geteuid() != 0) {
		print_message("skipped: only root can be several users\n");
		skip();
	}
	for (uint32_t i = 0; i < MRCD_CONTROL_OTHERS_MAX; i++) {
		fds[i] = dial_as(stage, 1000 + i);
		assert_true(is_served(stage, fds[i]));
	}
	fd = dial_as(stage, 2000);
	assert_string_equal(hear(stage, fd, text),
			    "{\"ok\":false,\"error\":\"users have 32 connections to the daemon's "
			    "control socket; allowed: 32 of all but root\"}");
	close(fd);
	for (uint32_t i = 0; i < MRCD_CONTROL_OTHERS_MAX; i++) {
		assert_true(is_served(stage, fds[i]));
		close(fds[i]);
	}
}

/* Who asks without reading is not read either, once one answer waits; others are served. */
static void control_stops_listening_to_those_who_do_not_read(void **state)
{
	static const char line[] = "{\"command\":\"status\"}\n";
	struct stage *stage = *state;
	int slow = dial(stage), other, turns_stuck = 0;
	size_t sent = 0;
	char text[4096];

	while (turns_stuck < 100) {
		ssize_t count = send(slow, line, sizeof(line) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (count > 0) {
			sent += (size_t)count;
			turns_stuck = 0;
		} else {
			assert_int_equal(errno, EAGAIN);
			turns_stuck++;
		}
		turn(stage);
		assert_true(sent < 64U * 1024U * 1024U);
	}
	other = dial(stage);
	say(other, "{\"command\":\"channels\"}\n");
	assert_string_equal(hear(stage, other, text), "{\"ok\":true,\"result\":[]}");
	/* And when it reads again it is answered again. */
	for (int i = 0; i < 3; i++)
		assert_non_null(strstr(hear(stage, slow, text), "\"ok\":true"));
	close(other);
	close(slow);
}

static void control_socket_is_for_everybody_and_replaces_a_dead_ones(void **state)
{
	struct stage *stage = *state;
	struct stat status;
	char path[128];

	snprintf(path, sizeof(path), "%s/control.sock", stage->dir);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0666);
	/* A daemon that was killed leaves its socket behind. */
	mrcd_control_free(stage->worker->control);
	stage->worker->control = NULL;
	assert_int_equal(mknod(path, S_IFSOCK | 0600, 0), 0);
	assert_int_equal(mrcd_control_new(stage->worker, &stage->worker->control), 0);
	close(dial(stage));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(control_refuses_what_is_no_command_and_says_what_is),
		TEST(control_changes_nothing_for_those_who_may_only_look),
		TEST(control_answers_several_questions_in_one),
		TEST(control_drains_and_gives_back),
		TEST(control_drains_the_host_and_gives_it_back),
		TEST(control_tells_what_others_rely_on),
		TEST(control_tells_events_and_what_comes_after_them),
		TEST(control_tells_how_long_clients_stood_still),
		TEST(control_lets_a_kind_of_rail_describe_its_own),
		TEST(control_breaks_things_on_purpose_where_that_was_asked_for_only),
		TEST(control_answers_line_by_line),
		TEST(control_answers_a_reload_when_it_is_done),
		TEST(control_says_nothing_to_who_has_gone_while_he_waited),
		TEST(control_answers_those_who_have_closed_their_half),
		TEST(control_ends_a_connection_with_an_endless_line),
		TEST(control_turns_away_more_than_it_serves_and_recovers),
		TEST(control_keeps_a_place_for_everybody),
		TEST(control_takes_no_place_from_who_has_as_few),
		TEST(control_stops_listening_to_those_who_do_not_read),
		TEST(control_socket_is_for_everybody_and_replaces_a_dead_ones),
	};

	signal(SIGPIPE, SIG_IGN); /* as the daemon has it */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
