/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels, from connecting or coming in to closed and freed.
 *
 * A channel the program has freed lives on here until the daemon has said its
 * last word about it: entries for it may still be on their way.
 */
#include "mrc_client.h"

#include <errno.h>
#include <string.h>

/* ---- the table of ids ---- */

static struct mrc_list *bucket_of(struct mrc_client *client, uint32_t id)
{
	/* Ids are the daemon's choice; a multiplication spreads whatever pattern they have. */
	uint32_t hash = id * 0x9e3779b1U;

	return &client->buckets[(hash >> 8) & (client->bucket_count - 1)];
}

struct mrc_channel *mrc_channel_find(struct mrc_client *client, uint32_t id)
{
	struct mrc_list *bucket = bucket_of(client, id);

	for (struct mrc_list *at = bucket->next; at != bucket; at = at->next) {
		struct mrc_channel *channel = MRC_CONTAINER_OF(at, struct mrc_channel, in_bucket);

		if (channel->id == id)
			return channel;
	}
	return NULL;
}

void mrc_channel_set_id(struct mrc_channel *channel, uint32_t id)
{
	MRC_ASSERT(!channel->has_id);
	channel->id = id;
	channel->has_id = true;
	channel->client->ids_count++;
	mrc_list_append(bucket_of(channel->client, id), &channel->in_bucket);
}

void mrc_channel_drop_id(struct mrc_channel *channel)
{
	if (!channel->has_id)
		return;
	MRC_ASSERT(channel->client->ids_count > 0);
	channel->has_id = false;
	channel->client->ids_count--;
	mrc_list_remove(&channel->in_bucket);
}

/* ---- life ---- */

struct mrc_channel *mrc_channel_new(struct mrc_client *client, enum mrc_channel_state state)
{
	struct mrc_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->outcomes = calloc(client->outcomes_kept, sizeof(*channel->outcomes));
	if (!channel->outcomes) {
		free(channel);
		return NULL;
	}
	channel->client = client;
	channel->state = state;
	mrc_list_init(&channel->in_client);
	mrc_list_init(&channel->in_bucket);
	mrc_list_init(&channel->in_listener);
	mrc_list_init(&channel->parked.node);
	mrc_list_init(&channel->parked_end.node);
	mrc_list_init(&channel->parked_drain.node);
	mrc_list_init(&channel->pending.node);
	mrc_list_init(&channel->pending_close.node);
	mrc_list_init(&channel->inbox);
	mrc_list_init(&channel->held);
	mrc_list_append(&client->channels, &channel->in_client);
	return channel;
}

static struct mrc_msg *first_of(struct mrc_list *messages)
{
	if (mrc_list_is_empty(messages))
		return NULL;
	return MRC_CONTAINER_OF(messages->next, struct mrc_msg, in_channel);
}

void mrc_channel_reject_inbox(struct mrc_channel *channel)
{
	struct mrc_msg *msg;

	while ((msg = first_of(&channel->inbox)))
		mrc_msg_turn_away(msg);
}

void mrc_channel_destroy(struct mrc_channel *channel)
{
	struct mrc_msg *msg;

	mrc_channel_reject_inbox(channel);
	while ((msg = first_of(&channel->held)))
		mrc_msg_turn_away(msg); /* only at detach: mrc_channel_free() has released them */
	mrc_channel_drop_id(channel);
	mrc_list_remove(&channel->pending.node);
	mrc_list_remove(&channel->pending_close.node);
	mrc_list_remove(&channel->parked.node);
	mrc_list_remove(&channel->parked_end.node);
	mrc_list_remove(&channel->parked_drain.node);
	mrc_list_remove(&channel->in_listener);
	mrc_list_remove(&channel->in_client);
	free(channel->outcomes);
	free(channel);
}

void mrc_channel_reap(struct mrc_channel *channel)
{
	if (channel->is_freed && channel->state == MRC_CHANNEL_CLOSED)
		mrc_channel_destroy(channel);
}

void mrc_channel_ask_close(struct mrc_channel *channel)
{
	MRC_ASSERT(channel->state == MRC_CHANNEL_OPEN);
	channel->state = MRC_CHANNEL_CLOSING;
	mrc_client_submit_later(channel->client, &channel->pending_close, MRC_SQE_CLOSE);
}

static void forget_in(struct mrc_list *sends, const struct mrc_channel *channel)
{
	for (struct mrc_list *at = sends->next; at != sends; at = at->next) {
		struct mrc_send_op *op = MRC_CONTAINER_OF(at, struct mrc_send_op, in_client);

		if (op->channel == channel)
			op->channel = NULL;
	}
}

/* The answers of this channel's sends go nowhere from now on. */
static void forget_sends(struct mrc_channel *channel)
{
	struct mrc_client *client = channel->client;
	struct mrc_list *next;

	for (struct mrc_list *at = client->parked.next; at != &client->parked; at = next) {
		struct mrc_parked *parked = MRC_CONTAINER_OF(at, struct mrc_parked, node);
		struct mrc_send_op *op = MRC_CONTAINER_OF(parked, struct mrc_send_op, parked);

		next = at->next;
		if (parked->type == MRC_EVENT_SENT && op->channel == channel) {
			mrc_list_remove(at);
			if (!op->is_undecided)
				mrc_send_op_free(client, op);
		}
	}
	forget_in(&client->sends_unanswered, channel);
	forget_in(&client->sends_undecided, channel);
	channel->sends_unanswered = 0;
	channel->sends_outstanding = 0;
}

static void channel_give_up(struct mrc_channel *channel)
{
	struct mrc_client *client = channel->client;
	struct mrc_msg *msg;

	/* What the program has seen it may have used: released, as it would have done. */
	while ((msg = first_of(&channel->held)))
		mrc_msg_release(msg);
	mrc_channel_reject_inbox(channel);
	forget_sends(channel);
	mrc_list_remove(&channel->parked.node);
	mrc_list_remove(&channel->parked_end.node);
	mrc_list_remove(&channel->parked_drain.node);
	mrc_list_remove(&channel->in_listener);
	channel->listener = NULL;
	channel->is_unread = true;
	channel->is_freed = true;
	if (client->is_gone)
		channel->state = MRC_CHANNEL_CLOSED;
	switch (channel->state) {
	case MRC_CHANNEL_CONNECTING:
	case MRC_CHANNEL_ACCEPTING:
		channel->is_close_wanted = true;
		break;
	case MRC_CHANNEL_INCOMING:
		mrc_client_submit_later(client, &channel->pending, MRC_SQE_REFUSE);
		break;
	case MRC_CHANNEL_OPEN:
		mrc_channel_ask_close(channel);
		break;
	case MRC_CHANNEL_CLOSING:
		break;
	case MRC_CHANNEL_CLOSED:
		mrc_channel_reap(channel);
		break;
	}
}

MRC_API void mrc_channel_free(struct mrc_channel *channel)
{
	struct mrc_client *client;

	if (!channel)
		return;
	client = channel->client;
	channel_give_up(channel);
	mrc_client_settle(client);
}

/* ---- connecting ---- */

static bool target_is_good(const char *target)
{
	const char *slash = target ? strchr(target, '/') : NULL;

	return slash && mrc_name_is_good(target, (size_t)(slash - target)) &&
	       mrc_name_is_good(slash + 1, strlen(slash + 1));
}

MRC_API int mrc_connect_start(struct mrc_client *client, const char *target, unsigned flags,
			      uint64_t user, struct mrc_channel **channel_out)
{
	struct mrc_channel *channel;
	int r;

	if (!target_is_good(target) || (flags & ~(MRC_CHANNEL_UNORDERED | MRC_CHANNEL_UNCHECKED)))
		return -EINVAL;
	if (client->is_gone)
		return -ECONNRESET;
	channel = mrc_channel_new(client, MRC_CHANNEL_CONNECTING);
	if (!channel)
		return -ENOMEM;
	channel->user = user;
	channel->is_unordered = flags & MRC_CHANNEL_UNORDERED;
	channel->is_unchecked = flags & MRC_CHANNEL_UNCHECKED;
	channel->request = client->request_next++;
	r = mrc_client_request(client, MRC_ABI_REQ_CONNECT,
			       (channel->is_unordered ? MRC_ABI_CHANNEL_UNORDERED : 0) |
				       (channel->is_unchecked ? MRC_ABI_CHANNEL_UNCHECKED : 0),
			       channel->request, target);
	if (r < 0) {
		mrc_channel_destroy(channel);
		return r;
	}
	*channel_out = channel;
	return 0;
}

MRC_API int mrc_connect(struct mrc_client *client, const char *target, unsigned flags,
			int64_t timeout_ns, struct mrc_channel **channel_out, int *status_out)
{
	uint64_t deadline_ns = mrc_client_deadline_ns(timeout_ns);
	struct mrc_channel *channel;
	int r = mrc_connect_start(client, target, flags, 0, &channel);
	int status;

	if (r < 0)
		return r;
	r = mrc_client_wait_parked(client, &channel->parked, deadline_ns);
	if (r < 0) {
		channel_give_up(channel);
		goto out;
	}
	mrc_list_remove(&channel->parked.node);
	status = channel->status;
	if (status != MRC_STATUS_OK && !mrc_list_is_linked(&channel->parked_end.node)) {
		channel_give_up(channel);
		channel = NULL;
		r = status_out ? 0 : -ECONNREFUSED;
	} else {
		status = MRC_STATUS_OK; /* connected, even if it has ended already */
	}
	if (status_out)
		*status_out = status;
	*channel_out = channel;
out:
	mrc_client_settle(client);
	return r;
}

/* ---- coming in ---- */

MRC_API int mrc_accept_incoming(struct mrc_channel *channel)
{
	struct mrc_client *client = channel->client;

	if (client->is_gone)
		return -ECONNRESET;
	if (channel->state == MRC_CHANNEL_CLOSED)
		return -EPIPE;
	if (channel->state != MRC_CHANNEL_INCOMING)
		return -EINVAL;
	channel->state = MRC_CHANNEL_ACCEPTING;
	mrc_client_submit_later(client, &channel->pending, MRC_SQE_ACCEPT);
	mrc_client_settle(client);
	return 0;
}

MRC_API int mrc_refuse_incoming(struct mrc_channel *channel, uint32_t code)
{
	/* One that has ended meanwhile is freed all the same. */
	if (channel->state != MRC_CHANNEL_INCOMING && channel->state != MRC_CHANNEL_CLOSED)
		return -EINVAL;
	channel->refuse_code = code;
	mrc_channel_free(channel);
	return 0;
}

/* ---- closing ---- */

MRC_API int mrc_close(struct mrc_channel *channel)
{
	struct mrc_client *client = channel->client;

	switch (channel->state) {
	case MRC_CHANNEL_CONNECTING:
	case MRC_CHANNEL_ACCEPTING:
		channel->is_close_wanted = true;
		return 0;
	case MRC_CHANNEL_INCOMING:
		return -ENOTCONN;
	case MRC_CHANNEL_OPEN:
		mrc_channel_ask_close(channel);
		mrc_client_settle(client);
		return 0;
	case MRC_CHANNEL_CLOSING:
	case MRC_CHANNEL_CLOSED:
		return 0;
	}
	return -EINVAL;
}

MRC_API int mrc_close_wait(struct mrc_channel *channel, int64_t timeout_ns, int *status_out)
{
	uint64_t deadline_ns = mrc_client_deadline_ns(timeout_ns);
	struct mrc_client *client = channel->client;
	int r = mrc_close(channel);

	if (r < 0)
		return r;
	/* The program waits here and can read nothing any more. Messages left lying would keep
	 * their sender waiting, and perhaps this channel from ending. */
	channel->is_unread = true;
	mrc_channel_reject_inbox(channel);
	while (channel->state != MRC_CHANNEL_CLOSED) {
		r = mrc_client_await(client, deadline_ns);
		if (r < 0) {
			mrc_client_settle(client);
			return r;
		}
	}
	if (status_out)
		*status_out = channel->status;
	mrc_channel_free(channel);
	return 0;
}

/* ---- questions ---- */

MRC_API struct mrc_client *mrc_channel_client(const struct mrc_channel *channel)
{
	return channel->client;
}

MRC_API bool mrc_channel_is_unordered(const struct mrc_channel *channel)
{
	return channel->is_unordered;
}

MRC_API bool mrc_channel_is_unchecked(const struct mrc_channel *channel)
{
	return channel->is_unchecked;
}

MRC_API bool mrc_channel_is_draining(const struct mrc_channel *channel)
{
	return channel->is_draining;
}

MRC_API uint64_t mrc_channel_message_bytes_max(const struct mrc_channel *channel)
{
	return channel->message_bytes_max;
}

MRC_API void mrc_channel_set_context(struct mrc_channel *channel, void *context)
{
	channel->context = context;
}

MRC_API void *mrc_channel_context(const struct mrc_channel *channel)
{
	return channel->context;
}

MRC_API uint32_t mrc_channel_sends_outstanding(const struct mrc_channel *channel)
{
	return channel->sends_outstanding;
}
