/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * echo_server - offer a service and send every message back
 *
 *	mrc_echo_server [SERVICE]        default: echo
 *
 * Event driven: one loop serves any number of channels. Answers are copied to
 * the send arena, because received memory is read-only and goes back to its
 * sender's credit; a message for which there is no memory now waits its turn.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mrc/client.h>

#define EVENTS_MAX  32
#define WAITING_MAX 4096

/* Messages not yet answered, of all channels, oldest first. Enough for this example's clients. */
static struct mrc_msg *waiting[WAITING_MAX];
static size_t waiting_count;

/* 0: under way, or its channel has ended. -EAGAIN, -ENOMEM: try again later. */
static int echo(struct mrc_client *client, struct mrc_msg *msg)
{
	struct mrc_channel *channel = mrc_msg_channel(msg);
	size_t len = mrc_msg_len_bytes(msg);
	void *buf;
	int r;

	r = mrc_buf_alloc(client, len, &buf);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		mrc_msg_reject(msg, 1, "longer than I can send back");
		mrc_msg_release(msg);
		return 0;
	}
	memcpy(buf, mrc_msg_data(msg), len);
	r = mrc_send(channel, buf, len, MRC_LEVEL_COMMITTED, 0, (uintptr_t)buf);
	if (r < 0)
		mrc_buf_free(client, buf);
	if (r == -EAGAIN)
		return r;
	if (r < 0)
		mrc_msg_reject(msg, 2, "the channel takes nothing more back");
	mrc_msg_release(msg); /* commits, unless rejected */
	return 0;
}

static void echo_waiting(struct mrc_client *client)
{
	size_t done = 0;

	while (done < waiting_count && echo(client, waiting[done]) == 0)
		done++;
	waiting_count -= done;
	memmove(waiting, waiting + done, waiting_count * sizeof(struct mrc_msg *));
}

/* A channel's messages are freed with it: forget those that wait. */
static void forget(struct mrc_channel *channel)
{
	size_t kept = 0;

	for (size_t i = 0; i < waiting_count; i++)
		if (mrc_msg_channel(waiting[i]) != channel)
			waiting[kept++] = waiting[i];
	waiting_count = kept;
}

static int handle(struct mrc_client *client, const struct mrc_event *event)
{
	switch (event->type) {
	case MRC_EVENT_LISTENING:
		if (event->status == MRC_STATUS_OK)
			return 0;
		fprintf(stderr, "listen: %s\n", mrc_status_text(event->status));
		return 1;
	case MRC_EVENT_INCOMING:
		mrc_accept_incoming(event->channel);
		return 0;
	case MRC_EVENT_CONNECTED:
		if (event->status != MRC_STATUS_OK)
			mrc_channel_free(event->channel);
		return 0;
	case MRC_EVENT_RECEIVED:
		if (waiting_count < WAITING_MAX) {
			waiting[waiting_count++] = event->msg;
		} else {
			mrc_msg_reject(event->msg, 3, "too many wait to be sent back");
			mrc_msg_release(event->msg);
		}
		return 0;
	case MRC_EVENT_SENT: {
		void *buf = NULL;

		/* The address was given as a number. */
		memcpy(&buf, &event->user, sizeof(buf));
		if (event->status != MRC_STATUS_OK)
			fprintf(stderr, "answer %llu: %s\n", (unsigned long long)event->number,
				mrc_status_text(event->status));
		mrc_buf_free(client, buf);
		return 0;
	}
	case MRC_EVENT_CLOSED:
		forget(event->channel);
		mrc_channel_free(event->channel);
		return 0;
	case MRC_EVENT_GAP:
	case MRC_EVENT_DRAIN: /* one that runs elsewhere too would send its clients there */
		return 0;
	case MRC_EVENT_DETACHED:
		fprintf(stderr, "%s\n", mrc_last_error(client));
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *service = argc > 1 ? argv[1] : "echo";
	struct mrc_listener *listener;
	struct mrc_client *client;
	int stop = 0;
	int r;

	r = mrc_attach(NULL, &client);
	if (r < 0) {
		fprintf(stderr, "attach: %s\n", mrc_last_error(NULL));
		return 1;
	}
	r = mrc_listen_start(client, service, 0, &listener);
	if (r < 0) {
		fprintf(stderr, "listen: %s\n", mrc_error_text(r));
		stop = 1;
	}
	while (!stop) {
		struct mrc_event events[EVENTS_MAX];
		int count;

		r = mrc_wait(client, MRC_WAIT_FOREVER);
		if (r < 0)
			break;
		count = mrc_poll(client, events, EVENTS_MAX);
		for (int i = 0; i < count; i++)
			stop |= handle(client, &events[i]);
		echo_waiting(client);
	}
	mrc_detach(client);
	return 1;
}
