/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_feed.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mrcctl_socket.h"

void mrcctl_feed_init(struct mrcctl_feed *feed, const char *path)
{
	memset(feed, 0, sizeof(*feed));
	feed->path = path;
	feed->fd = -1;
}

static void mrcctl_feed_drop(struct mrcctl_feed *feed)
{
	if (feed->fd >= 0)
		close(feed->fd);
	feed->fd = -1;
	feed->is_asking = false;
}

void mrcctl_feed_fini(struct mrcctl_feed *feed)
{
	mrcctl_feed_drop(feed);
	free(feed->question);
	free(feed->answer);
}

int mrcctl_feed_fd(const struct mrcctl_feed *feed)
{
	return feed->fd;
}

short mrcctl_feed_events(const struct mrcctl_feed *feed)
{
	if (feed->fd < 0)
		return 0;
	return feed->is_asking && feed->asked_bytes < feed->question_bytes ? POLLIN | POLLOUT
									   : POLLIN;
}

int mrcctl_feed_ask(struct mrcctl_feed *feed, const json_t *question)
{
	char *text;

	if (feed->is_asking)
		return -EALREADY;
	if (feed->fd < 0) {
		int fd = mrcctl_socket_connect(feed->path, 0);

		if (fd < 0)
			return fd;
		feed->fd = fd;
	}
	text = json_dumps(question, JSON_COMPACT);
	if (text == NULL)
		return -ENOMEM;
	free(feed->question);
	feed->question = text;
	feed->question_bytes = strlen(text) + 1;
	text[feed->question_bytes - 1] = '\n'; /* in place of the 0 */
	feed->asked_bytes = 0;
	feed->answer_bytes = 0;
	feed->is_asking = true;
	return 0;
}

/* An error in sending is left to be read: a daemon that turns us away has said why. */
static void mrcctl_feed_send(struct mrcctl_feed *feed)
{
	while (feed->is_asking && feed->asked_bytes < feed->question_bytes) {
		ssize_t count = send(feed->fd, feed->question + feed->asked_bytes,
				     feed->question_bytes - feed->asked_bytes, MSG_NOSIGNAL);

		if (count < 0)
			return;
		feed->asked_bytes += (size_t)count;
	}
}

static int mrcctl_feed_grow(struct mrcctl_feed *feed)
{
	size_t room = feed->answer_room == 0 ? 65536 : feed->answer_room * 2;
	char *answer;

	if (feed->answer_bytes < feed->answer_room)
		return 0;
	if (room > MRCCTL_ANSWER_BYTES_MAX)
		return -EBADMSG;
	answer = realloc(feed->answer, room);
	if (answer == NULL)
		return -ENOMEM;
	feed->answer = answer;
	feed->answer_room = room;
	return 0;
}

/* The line that has come whole; what is behind it would be an answer to nothing. */
static int mrcctl_feed_take(struct mrcctl_feed *feed, size_t len, json_t **answer_out)
{
	json_t *answer = json_loadb(feed->answer, len, 0, NULL);

	if (!feed->is_asking || len + 1 != feed->answer_bytes ||
	    !json_is_boolean(json_object_get(answer, "ok"))) {
		json_decref(answer);
		return -EBADMSG;
	}
	feed->is_asking = false;
	*answer_out = answer;
	return 1;
}

static int mrcctl_feed_receive(struct mrcctl_feed *feed, json_t **answer_out)
{
	for (;;) {
		int r = mrcctl_feed_grow(feed);
		ssize_t count;
		char *end;

		if (r < 0)
			return r;
		count = recv(feed->fd, feed->answer + feed->answer_bytes,
			     feed->answer_room - feed->answer_bytes, 0);
		if (count < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (count <= 0)
			return -ECONNRESET;
		end = memchr(feed->answer + feed->answer_bytes, '\n', (size_t)count);
		feed->answer_bytes += (size_t)count;
		if (end != NULL)
			return mrcctl_feed_take(feed, (size_t)(end - feed->answer), answer_out);
	}
}

int mrcctl_feed_turn(struct mrcctl_feed *feed, json_t **answer_out)
{
	int r;

	if (feed->fd < 0)
		return 0;
	mrcctl_feed_send(feed);
	r = mrcctl_feed_receive(feed, answer_out);
	if (r < 0)
		mrcctl_feed_drop(feed);
	return r;
}
