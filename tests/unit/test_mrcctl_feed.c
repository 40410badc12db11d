/* SPDX-License-Identifier: BSD-2-Clause */
/* One question after another over one connection, and what an answer must be. */
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
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mrcctl_feed.h"

/* A daemon's socket, and whoever is connected. */
struct stage {
	char dir[64], path[100];
	int listener, peer;
	struct mrcctl_feed feed;
	unsigned asked; /* each question has another number */
};

static void listen_again(struct stage *stage)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, stage->path, strlen(stage->path) + 1);
	stage->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_true(stage->listener >= 0);
	assert_int_equal(bind(stage->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(stage->listener, 4), 0);
}

static int setup(void **state)
{
	struct stage *stage = calloc(1, sizeof(*stage));

	strcpy(stage->dir, "/tmp/mrcctl-test-XXXXXX");
	assert_non_null(mkdtemp(stage->dir));
	snprintf(stage->path, sizeof(stage->path), "%s/socket", stage->dir);
	listen_again(stage);
	stage->peer = -1;
	mrcctl_feed_init(&stage->feed, stage->path);
	*state = stage;
	return 0;
}

static int teardown(void **state)
{
	struct stage *stage = *state;

	mrcctl_feed_fini(&stage->feed);
	if (stage->peer >= 0)
		close(stage->peer);
	close(stage->listener);
	unlink(stage->path);
	assert_int_equal(rmdir(stage->dir), 0);
	free(stage);
	return 0;
}

static int ask(struct stage *stage, unsigned number)
{
	json_t *question = json_pack("{s:i}", "number", (int)number);
	int r = mrcctl_feed_ask(&stage->feed, question);

	json_decref(question);
	return r;
}

/* Asks something new, and reads the question at the other end. */
static void asks(struct stage *stage)
{
	char want[40], got[100] = "";
	json_t *answer;

	snprintf(want, sizeof(want), "{\"number\":%u}\n", ++stage->asked);
	assert_int_equal(ask(stage, stage->asked), 0);
	assert_int_equal(mrcctl_feed_turn(&stage->feed, &answer), 0);
	if (stage->peer < 0)
		stage->peer = accept(stage->listener, NULL, NULL);
	assert_int_equal(read(stage->peer, got, sizeof(got)), strlen(want));
	assert_string_equal(got, want);
}

static void says(struct stage *stage, const char *text)
{
	assert_int_equal(write(stage->peer, text, strlen(text)), strlen(text));
}

static void answers_come_over_one_connection(void **state)
{
	struct stage *stage = *state;
	struct pollfd another = {.fd = stage->listener, .events = POLLIN};
	json_t *answer;

	assert_int_equal(mrcctl_feed_fd(&stage->feed), -1);
	assert_int_equal(mrcctl_feed_events(&stage->feed), 0);
	for (int i = 0; i < 3; i++) {
		asks(stage);
		assert_int_equal(mrcctl_feed_events(&stage->feed), POLLIN);
		assert_int_equal(ask(stage, 1000), -EALREADY);
		says(stage, "{\"ok\": true, \"res");
		assert_int_equal(mrcctl_feed_turn(&stage->feed, &answer), 0);
		says(stage, "ult\": 7}\n");
		assert_int_equal(mrcctl_feed_turn(&stage->feed, &answer), 1);
		assert_int_equal(json_integer_value(json_object_get(answer, "result")), 7);
		json_decref(answer);
	}
	assert_int_equal(poll(&another, 1, 0), 0);
}

static void a_long_answer_comes_whole(void **state)
{
	struct stage *stage = *state;
	size_t len = 300000, at = 0;
	char *text = malloc(len + 1);
	json_t *answer = NULL;
	int r = 0;

	memset(text, 'x', len);
	text[stpcpy(text, "{\"ok\":true,\"result\":\"") - text] = 'x';
	strcpy(text + len - 3, "\"}\n");
	asks(stage);
	while (r == 0) {
		ssize_t count = send(stage->peer, text + at, len - at, MSG_DONTWAIT);

		at += count > 0 ? (size_t)count : 0;
		r = mrcctl_feed_turn(&stage->feed, &answer);
	}
	assert_int_equal(r, 1);
	assert_int_equal(json_string_length(json_object_get(answer, "result")), len - 24);
	json_decref(answer);
	free(text);
}

static void a_daemon_that_comes_back_is_asked_again(void **state)
{
	struct stage *stage = *state;
	json_t *answer;

	asks(stage);
	close(stage->peer);
	stage->peer = -1;
	close(stage->listener);
	assert_int_equal(mrcctl_feed_turn(&stage->feed, &answer), -ECONNRESET);
	assert_int_equal(mrcctl_feed_fd(&stage->feed), -1);
	assert_int_equal(mrcctl_feed_turn(&stage->feed, &answer), 0);
	assert_int_equal(ask(stage, 1), -ECONNREFUSED);
	unlink(stage->path);
	assert_int_equal(ask(stage, 1), -ENOENT);
	listen_again(stage);
	asks(stage);
	says(stage, "{\"ok\": false, \"error\": \"no\"}\n");
	assert_int_equal(mrcctl_feed_turn(&stage->feed, &answer), 1);
	json_decref(answer);
}

static void what_is_no_answer_ends_the_connection(void **state)
{
	static const char *const lines[] = {
		"\n",
		"hello\n",
		"[]\n",
		"{\"ok\": 1}\n",
		"{\"ok\": true}\n{\"ok\": true}\n",
		"{\"ok\": true\n",
	};
	struct stage *stage = *state;
	json_t *answer;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		asks(stage);
		says(stage, lines[i]);
		assert_int_equal(mrcctl_feed_turn(&stage->feed, &answer), -EBADMSG);
		assert_int_equal(mrcctl_feed_fd(&stage->feed), -1);
		close(stage->peer);
		stage->peer = -1;
	}
	/* One that nobody asked for. */
	asks(stage);
	says(stage, "{\"ok\": true}\n");
	assert_int_equal(mrcctl_feed_turn(&stage->feed, &answer), 1);
	json_decref(answer);
	says(stage, "{\"ok\": true}\n");
	assert_int_equal(mrcctl_feed_turn(&stage->feed, &answer), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answers_come_over_one_connection, setup, teardown),
		cmocka_unit_test_setup_teardown(a_long_answer_comes_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(a_daemon_that_comes_back_is_asked_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_no_answer_ends_the_connection, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
