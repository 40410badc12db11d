/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * late - send with a deadline to a program that takes its time, and tell what is answered
 *
 *	late receive SERVICE		take a message when told to on stdin: take, commit, reject CODE
 *	late send HOST/SERVICE MS	one message at COMMITTED with a deadline in MS milliseconds
 *					(0: none), then what became of it
 *
 * Both say each step in a line on stdout.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mrc/client.h>

static int fail(const char *what, int error)
{
	fprintf(stderr, "late: %s: %s\n", what, mrc_error_text(error));
	return 1;
}

static uint64_t in_ms(const char *text)
{
	struct timespec now;
	uint64_t ms = strtoull(text, NULL, 10);

	if (ms == 0)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec + ms * 1000000U;
}

static void say(const char *what, const struct mrc_event *event)
{
	printf("%s: %s, %s, code %u%s%s\n", what, mrc_status_name(event->status),
	       mrc_level_name(event->level), event->code, event->text[0] != 0 ? ": " : "",
	       event->text);
	fflush(stdout);
}

static int send_one(struct mrc_client *client, const char *target, const char *ms)
{
	struct mrc_channel *channel;
	struct mrc_event event;
	void *buf;
	int r = mrc_connect(client, target, 0, 10000000000, &channel, NULL);

	if (r == 0)
		r = mrc_buf_alloc(client, 1000, &buf);
	if (r < 0)
		return fail(target, r);
	memset(buf, 7, 1000);
	r = mrc_send(channel, buf, 1000, MRC_LEVEL_COMMITTED, in_ms(ms), 0);
	if (r < 0)
		return fail("mrc_send", r);
	do {
		r = mrc_wait(client, MRC_WAIT_FOREVER);
		if (r == 1 && mrc_poll(client, &event, 1) < 1)
			event.type = MRC_EVENT_GAP; /* woken for nothing */
	} while (r == 1 && event.type != MRC_EVENT_SENT);
	if (r < 0)
		return fail("mrc_wait", r);
	say("answered", &event);
	r = mrc_send_query(channel, event.number, MRC_WAIT_FOREVER, &event);
	if (r == 0)
		say("ended", &event);
	else if (r != -ENOENT)
		return fail("mrc_send_query", r);
	mrc_channel_free(channel);
	return 0;
}

static int receive(struct mrc_client *client, const char *service)
{
	struct mrc_listener *listener;
	struct mrc_channel *channel = NULL;
	struct mrc_msg *msg = NULL;
	char word[32];
	unsigned code = 0;
	int r = mrc_listen(client, service, 10000000000, &listener, NULL);

	if (r < 0)
		return fail(service, r);
	puts("listening");
	fflush(stdout);
	while (scanf("%31s", word) == 1) {
		if (strcmp(word, "accept") == 0) {
			r = mrc_accept(listener, 10000000000, &channel);
		} else if (strcmp(word, "take") == 0) {
			r = mrc_recv(channel, 10000000000, &msg);
		} else if (strcmp(word, "commit") == 0) {
			mrc_msg_release(msg);
		} else if (strcmp(word, "reject") == 0 && scanf("%u", &code) == 1) {
			r = mrc_msg_reject(msg, code, "too late");
			mrc_msg_release(msg);
		} else {
			fprintf(stderr, "late: '%s'\n", word);
			return 2;
		}
		if (r < 0)
			return fail(word, r);
		puts(word);
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct mrc_client *client;
	int r;

	if (!(argc == 3 && strcmp(argv[1], "receive") == 0) &&
	    !(argc == 4 && strcmp(argv[1], "send") == 0)) {
		fprintf(stderr, "usage: late receive SERVICE | late send HOST/SERVICE MS\n");
		return 2;
	}
	r = mrc_attach(NULL, &client);
	if (r < 0)
		return fail(mrc_last_error(NULL), r);
	r = argc == 3 ? receive(client, argv[2]) : send_one(client, argv[2], argv[3]);
	mrc_detach(client);
	return r;
}
