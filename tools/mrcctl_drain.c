/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_drain.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mrcctl_ask.h"
#include "mrcctl_drain_show.h"
#include "mrcctl_field.h"
#include "mrcctl_socket.h"
#include "mrcctl_table.h"
#include "mrcctl_unit.h"

#define LOOK_NS   200000000L     /* between two questions */
#define AWAY_NS   10000000000ULL /* a daemon that is being restarted is back by then */
#define TIMEOUT_S 10

/* One drain that is being waited for. */
struct drain {
	const char *socket;
	const struct mrcctl_drain_options *options;
	sigset_t stops; /* held back, and looked for between two questions */
	bool is_interrupted;
	bool has_terminal; /* on stderr */
	uint64_t begin_ns;
	uint64_t heard_ns; /* the daemon answered last */
	json_t *last;      /* ours: its last answer */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static int ask_host(const char *socket, const char *command, json_t **result_out)
{
	json_t *question = json_pack("{s:s s:b}", "command", command, "host", 1);
	int r = mrcctl_ask(socket, question, result_out);

	json_decref(question);
	return r;
}

static int print_end(int status)
{
	if (fflush(stdout) == 0)
		return status;
	fprintf(stderr, "mrcctl: cannot write: %s\n", strerror(errno));
	return MRCCTL_EXIT_REFUSED;
}

static void print_json(const json_t *object)
{
	json_dumpf(object, stdout, JSON_INDENT(2));
	putchar('\n');
}

/* ---- waiting ---- */

static void show_progress(const struct drain *drain)
{
	char text[MRCCTL_DRAIN_TEXT_BYTES], span[MRCCTL_UNIT_BYTES];

	if (drain->has_terminal)
		fprintf(stderr, "\r\033[Kdraining %s for %s: %s", mrcctl_text(drain->last, "host"),
			mrcctl_unit_span(mrcctl_number(drain->last, "for_ns"), span),
			mrcctl_drain_text(drain->last, text));
}

static void clear_progress(const struct drain *drain)
{
	if (drain->has_terminal)
		fprintf(stderr, "\r\033[K");
}

/* A daemon that does not answer may be on its way back. 0, or the exit status, with the reason printed. */
static int ask_again(struct drain *drain)
{
	json_t *question = json_pack("{s:s}", "command", "draining"), *answer;
	int r = mrcctl_socket_ask(drain->socket, question, TIMEOUT_S, &answer);

	json_decref(question);
	if (r < 0 && now_ns() - drain->heard_ns < AWAY_NS)
		return 0;
	if (r < 0) {
		clear_progress(drain);
		fprintf(stderr, "mrcctl: mrcd at %s does not answer any more: %s\n", drain->socket,
			mrcctl_unreached_text(r));
		return MRCCTL_EXIT_UNREACHED;
	}
	drain->heard_ns = now_ns();
	json_decref(drain->last);
	drain->last = json_incref(json_object_get(answer, "result"));
	json_decref(answer);
	return 0;
}

/* Until there is an end to it. 0, or the exit status, with the reason printed. */
static int wait_for_end(struct drain *drain)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};

	while (mrcctl_flag(drain->last, "draining") && !mrcctl_flag(drain->last, "drained")) {
		int r;

		if (drain->options->wait_ns != MRCCTL_DRAIN_FOR_EVER &&
		    now_ns() - drain->begin_ns >= drain->options->wait_ns)
			return 0;
		if (sigtimedwait(&drain->stops, NULL, &pause) > 0) {
			drain->is_interrupted = true;
			return 0;
		}
		r = ask_again(drain);
		if (r != 0)
			return r;
		show_progress(drain);
	}
	return 0;
}

/* ---- the end ---- */

static int say_left(const struct drain *drain, const json_t *left)
{
	char text[MRCCTL_DRAIN_TEXT_BYTES], span[MRCCTL_UNIT_BYTES];

	printf("%s: %snot drained after %s: %s\n", mrcctl_text(drain->last, "host"),
	       drain->is_interrupted ? "interrupted, " : "",
	       mrcctl_unit_span(now_ns() - drain->begin_ns, span),
	       mrcctl_drain_text(drain->last, text));
	printf("The drain goes on; mrcctl undrain --host takes it back.\n\n");
	mrcctl_show_left(left, stdout, mrcctl_table_wants_colour(stdout));
	return print_end(MRCCTL_EXIT_LEFT);
}

static int finish_left(struct drain *drain)
{
	json_t *question = json_pack("{s:s}", "command", "channels"), *left;
	int r = mrcctl_ask(drain->socket, question, &left);

	json_decref(question);
	if (r != 0)
		return r;
	if (drain->options->is_json) {
		json_object_set(drain->last, "left", left);
		print_json(drain->last);
		r = print_end(MRCCTL_EXIT_LEFT);
	} else {
		r = say_left(drain, left);
	}
	json_decref(left);
	return r;
}

static int finish(struct drain *drain)
{
	const char *host = mrcctl_text(drain->last, "host");
	bool is_drained = mrcctl_flag(drain->last, "drained");
	char text[MRCCTL_DRAIN_TEXT_BYTES], span[MRCCTL_UNIT_BYTES];

	clear_progress(drain);
	if (!mrcctl_flag(drain->last, "draining")) {
		fprintf(stderr,
			"mrcctl: %s is no longer being drained: somebody took it back, or its "
			"daemon began anew\n",
			host);
		return MRCCTL_EXIT_REFUSED;
	}
	if (!is_drained)
		return finish_left(drain);
	if (drain->options->is_json) {
		json_object_set_new(drain->last, "left", json_array());
		print_json(drain->last);
	} else {
		uint64_t for_ns = mrcctl_number(drain->last, "for_ns");

		printf("%s: drained %s%s: %s\n", host, for_ns < 1000000 ? "at once" : "after ",
		       for_ns < 1000000 ? "" : mrcctl_unit_span(for_ns, span),
		       mrcctl_drain_text(drain->last, text));
	}
	return print_end(EXIT_SUCCESS);
}

int mrcctl_drain_host(const char *socket, const struct mrcctl_drain_options *options)
{
	struct drain drain = {
		.socket = socket,
		.options = options,
		.has_terminal = !options->is_json && isatty(STDERR_FILENO),
	};
	int r;

	sigemptyset(&drain.stops);
	sigaddset(&drain.stops, SIGINT);
	sigaddset(&drain.stops, SIGTERM);
	sigprocmask(SIG_BLOCK, &drain.stops, NULL);
	drain.begin_ns = drain.heard_ns = now_ns();
	r = ask_host(socket, "drain", &drain.last);
	if (r != 0)
		return r;
	r = wait_for_end(&drain);
	if (r == 0)
		r = finish(&drain);
	json_decref(drain.last);
	return r;
}

int mrcctl_undrain_host(const char *socket, bool is_json)
{
	json_t *result;
	int r = ask_host(socket, "undrain", &result);

	if (r != 0)
		return r;
	if (is_json)
		print_json(result);
	else
		printf("%s: not drained, takes new channels and services\n",
		       mrcctl_text(result, "host"));
	json_decref(result);
	return print_end(EXIT_SUCCESS);
}
