/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking events, waiting for them, and the way to the submission ring. */
#include "mrc_client.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#define ALIVE_CHECK_NS 2000000ULL /* how often a program that only polls looks at the socket */
#define ROOM_CHECK_NS  1000000ULL /* how often a sleeper looks for room: no bell tells of it */

uint64_t mrc_client_deadline_ns(int64_t timeout_ns)
{
	if (timeout_ns == MRC_WAIT_FOREVER)
		return UINT64_MAX;
	return mrc_now_ns() + (timeout_ns > 0 ? (uint64_t)timeout_ns : 0);
}

/* ---- out ---- */

/* Into an entry and, if it has text_len, its text. */
static void pending_fill(struct mrc_pending *pending, struct mrc_sqe *sqe, const char **text_out)
{
	const struct mrc_channel *channel = NULL;
	const struct mrc_msg *msg = NULL;

	memset(sqe, 0, sizeof(*sqe));
	sqe->op = pending->op;
	switch (pending->op) {
	case MRC_SQE_COMMIT:
	case MRC_SQE_REJECT:
		msg = MRC_CONTAINER_OF(pending, struct mrc_msg, pending_verdict);
		sqe->code = msg->code;
		sqe->flags = msg->verdict_flags;
		sqe->text_len = msg->text_len;
		*text_out = msg->text;
		if (msg->verdict_flags & MRC_SQE_FLAG_BATCH_END)
			sqe->user_data = msg->client->batch_request;
		break;
	case MRC_SQE_RELEASE:
		msg = MRC_CONTAINER_OF(pending, struct mrc_msg, pending_release);
		break;
	case MRC_SQE_ACCEPT:
	case MRC_SQE_REFUSE:
		channel = MRC_CONTAINER_OF(pending, struct mrc_channel, pending);
		sqe->code = channel->refuse_code;
		break;
	case MRC_SQE_CLOSE:
		channel = MRC_CONTAINER_OF(pending, struct mrc_channel, pending_close);
		break;
	default:
		MRC_ASSERT(pending->op == MRC_SQE_UNLISTEN);
		sqe->channel = MRC_CONTAINER_OF(pending, struct mrc_listener, pending)->id;
		break;
	}
	if (msg) {
		sqe->channel = msg->channel_id;
		sqe->number = msg->number;
		sqe->visible_ns = msg->visible_ns;
		sqe->stamp_ns = msg->stamp_ns;
	} else if (channel) {
		sqe->channel = channel->id;
	}
}

/* It is in the ring (or the daemon has gone): what waited only for this can go. */
static void pending_finish(struct mrc_pending *pending)
{
	struct mrc_channel *channel;

	switch (pending->op) {
	case MRC_SQE_RELEASE:
		mrc_msg_free(MRC_CONTAINER_OF(pending, struct mrc_msg, pending_release));
		break;
	case MRC_SQE_REFUSE:
		channel = MRC_CONTAINER_OF(pending, struct mrc_channel, pending);
		channel->state = MRC_CHANNEL_CLOSED;
		mrc_channel_drop_id(channel);
		mrc_channel_reap(channel);
		break;
	case MRC_SQE_UNLISTEN:
		mrc_listener_destroy(MRC_CONTAINER_OF(pending, struct mrc_listener, pending));
		break;
	default:
		break;
	}
}

void mrc_client_flush(struct mrc_client *client)
{
	bool is_any = false;

	while (!mrc_list_is_empty(&client->pending)) {
		struct mrc_pending *pending =
			MRC_CONTAINER_OF(client->pending.next, struct mrc_pending, node);
		const char *text = NULL;
		struct mrc_sqe sqe;

		if (!client->is_gone) {
			int r;

			pending_fill(pending, &sqe, &text);
			r = mrc_ring_submit(&client->ring, &sqe, text);
			if (r == -EAGAIN)
				break;
			if (r < 0) {
				mrc_client_bury(client, "the daemon broke the ring protocol: "
							"impossible head of the submission ring");
				continue;
			}
			is_any = true;
		}
		mrc_list_remove(&pending->node);
		pending_finish(pending);
	}
	if (is_any && mrc_ring_daemon_sleeps(&client->ring))
		mrc_ring_bell(client->daemon_bell_fd);
}

void mrc_client_submit_later(struct mrc_client *client, struct mrc_pending *pending, uint8_t op)
{
	pending->op = op;
	mrc_list_append(&client->pending, &pending->node);
	mrc_client_flush(client);
}

int mrc_client_submit(struct mrc_client *client, const struct mrc_sqe *sqe)
{
	int r;

	mrc_client_flush(client);
	if (client->is_gone)
		return -ECONNRESET;
	r = mrc_list_is_empty(&client->pending) ? mrc_ring_submit(&client->ring, sqe, NULL)
						: -EAGAIN;
	if (r == -EAGAIN) {
		client->is_room_wanted = true;
		return r;
	}
	if (r < 0) {
		mrc_client_bury(client, "the daemon broke the ring protocol: impossible head of "
					"the submission ring");
		return -ECONNRESET;
	}
	client->is_room_wanted = false;
	if (mrc_ring_daemon_sleeps(&client->ring))
		mrc_ring_bell(client->daemon_bell_fd);
	return 0;
}

int mrc_client_request(struct mrc_client *client, uint32_t op, uint32_t flags, uint64_t user_data,
		       const char *target)
{
	struct mrc_abi_request request = {.op = op, .flags = flags, .user_data = user_data};

	MRC_ASSERT(strlen(target) < sizeof(request.target));
	memcpy(request.target, target, strlen(target));
	if (client->is_gone)
		return -ECONNRESET;
	if (send(client->socket_fd, &request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT) ==
	    sizeof(request))
		return 0;
	/* That the daemon has gone is found by the next poll, after the ring was emptied. */
	return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? -EAGAIN : -ECONNRESET;
}

/* ---- is the daemon there? ---- */

/* Call it with an empty ring only: what was delivered before the daemon ended comes first. */
static void look_at_socket(struct mrc_client *client)
{
	char byte;
	ssize_t r = recv(client->socket_fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);

	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* Once more, now that nobody can add to it any longer. */
	if (r <= 0 && mrc_ring_is_filled(&client->ring))
		return;
	if (r > 0)
		mrc_client_bury(client, "the daemon broke the protocol: it spoke on the socket");
	else
		mrc_client_bury(client, "the daemon has ended");
}

static bool is_said_gone(struct mrc_client *client)
{
	if (mrc_ring_state(&client->ring) != MRC_RING_STATE_GONE ||
	    mrc_ring_is_filled(&client->ring))
		return false;
	mrc_client_bury(client, "the daemon ended this attachment");
	return true;
}

/* For a poll that found nothing. */
static void look_around(struct mrc_client *client, bool is_socket)
{
	uint64_t now_ns;

	if (client->is_gone || is_said_gone(client))
		return;
	now_ns = mrc_now_ns();
	if (!is_socket && now_ns - client->alive_checked_ns < ALIVE_CHECK_NS)
		return;
	client->alive_checked_ns = now_ns;
	look_at_socket(client);
}

/* ---- in ---- */

static void publish(struct mrc_client *client)
{
	if (!client->is_gone && mrc_ring_publish(&client->ring) &&
	    mrc_ring_daemon_sleeps(&client->ring))
		mrc_ring_bell(client->daemon_bell_fd);
}

void mrc_client_settle(struct mrc_client *client)
{
	publish(client);
	mrc_wake_leave(client->wake, &client->ring,
		       !mrc_list_is_empty(&client->parked) ||
			       !mrc_list_is_empty(&client->pending) || client->is_room_wanted);
}

int mrc_client_block(struct mrc_client *client, uint64_t deadline_ns)
{
	uint64_t until_ns = deadline_ns;
	uint64_t now_ns;

	mrc_client_flush(client);
	publish(client);
	if (client->is_gone)
		return -ECONNRESET;
	if (mrc_ring_is_filled(&client->ring) || is_said_gone(client))
		return 1;
	now_ns = mrc_now_ns();
	if (now_ns >= deadline_ns) {
		look_around(client, false);
		return client->is_gone ? 1 : 0;
	}
	if (mrc_wake_spin(client->wake, &client->ring, deadline_ns))
		return 1;
	if ((client->is_room_wanted || !mrc_list_is_empty(&client->pending)) &&
	    deadline_ns - now_ns > ROOM_CHECK_NS)
		until_ns = now_ns + ROOM_CHECK_NS;
	switch (mrc_wake_sleep(client->wake, &client->ring, until_ns)) {
	case MRC_WAKE_SIGNAL:
		return -EINTR;
	case MRC_WAKE_SOCKET:
		if (!mrc_ring_is_filled(&client->ring))
			look_at_socket(client);
		return 1;
	case MRC_WAKE_TIMEOUT:
	case MRC_WAKE_BELL:
		break;
	}
	return 1; /* a deadline that has passed is found on the next turn, after a last look */
}

int mrc_client_await(struct mrc_client *client, uint64_t deadline_ns)
{
	int r;

	if (mrc_client_take_in(client) > 0)
		return 0;
	r = mrc_client_block(client, deadline_ns);
	if (r > 0)
		return 0;
	return r == 0 ? -ETIMEDOUT : r;
}

int mrc_client_wait_parked(struct mrc_client *client, const struct mrc_parked *parked,
			   uint64_t deadline_ns)
{
	while (!mrc_list_is_linked(&parked->node)) {
		int r = mrc_client_await(client, deadline_ns);

		if (r < 0)
			return r;
	}
	return 0;
}

MRC_API int mrc_poll(struct mrc_client *client, struct mrc_event *events_out, int events_max)
{
	bool was_idle = client->is_idle;
	int count = 0;

	if (!events_out || events_max <= 0)
		return -EINVAL;
	mrc_wake_enter(client->wake, &client->ring);
	mrc_client_flush(client);
	while (count < events_max) {
		if (mrc_client_unpark(client, &events_out[count])) {
			count++;
			continue;
		}
		if (mrc_client_take_in(client) > 0)
			continue;
		if (client->is_gone)
			break;
		if (count > 0)
			break;
		/* Mostly there is just nothing yet, and it goes to sleep: no call for that. */
		look_around(client, was_idle && mrc_wake_ask(client->wake));
		if (!client->is_gone)
			break;
	}
	client->is_idle = count == 0;
	if (client->is_room_wanted) {
		if (client->is_gone || mrc_ring_has_room(&client->ring))
			client->is_room_wanted = false;
		else if (count == 0)
			sched_yield(); /* the daemon makes the room; let it */
	}
	if (count == 0 && client->is_gone_taken)
		count = -ECONNRESET;
	mrc_client_settle(client);
	return count;
}

MRC_API int mrc_wait(struct mrc_client *client, int64_t timeout_ns)
{
	uint64_t deadline_ns = mrc_client_deadline_ns(timeout_ns);
	int r;

	/* Nothing is taken in here: an arrival is visible when the program takes it. */
	for (;;) {
		r = 1;
		if (!mrc_list_is_empty(&client->parked))
			break;
		if (!client->is_gone && mrc_ring_is_filled(&client->ring))
			break;
		if (client->is_room_wanted && mrc_ring_has_room(&client->ring)) {
			client->is_room_wanted = false;
			break;
		}
		r = mrc_client_block(client, deadline_ns);
		if (r <= 0)
			break;
	}
	mrc_client_settle(client);
	return r;
}

/* ---- questions ---- */

MRC_API int mrc_client_fd(const struct mrc_client *client)
{
	return mrc_wake_fd(client->wake);
}

MRC_API const char *mrc_client_host(const struct mrc_client *client)
{
	return client->host;
}

MRC_API uint64_t mrc_client_message_bytes_max(const struct mrc_client *client)
{
	return client->message_bytes_max;
}

MRC_API bool mrc_client_is_draining(const struct mrc_client *client)
{
	return client->is_draining;
}

/* ---- the send arena ---- */

MRC_API int mrc_buf_alloc(struct mrc_client *client, size_t len_bytes, void **buf_out)
{
	uint64_t offset;
	int r = mrc_bufs_take(client->bufs, len_bytes, &offset);

	if (r < 0)
		return r;
	*buf_out = (char *)client->send_arena.bytes + offset;
	return 0;
}

MRC_API void mrc_buf_free(struct mrc_client *client, void *buf)
{
	uint64_t offset = (uint64_t)((uintptr_t)buf - (uintptr_t)client->send_arena.bytes);

	if (!buf)
		return;
	if (mrc_bufs_give(client->bufs, offset) < 0)
		mrc_client_set_error(client, "mrc_buf_free: %p is no buffer of this client", buf);
}
