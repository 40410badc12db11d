/* SPDX-License-Identifier: BSD-2-Clause */
/* Received messages: reading, accepting, rejecting, giving back. */
#include "mrc_client.h"

#include <errno.h>
#include <string.h>

struct mrc_msg *mrc_msg_new(struct mrc_client *client)
{
	struct mrc_msg *msg = client->msg_free;

	if (msg) {
		client->msg_free = msg->next_free;
	} else if (client->msgs_fresh < client->msgs_max) {
		msg = &client->msgs[client->msgs_fresh++];
		mrc_list_init(&msg->parked.node);
		mrc_list_init(&msg->in_channel);
		mrc_list_init(&msg->pending_verdict.node);
		mrc_list_init(&msg->pending_release.node);
		msg->client = client;
	} else {
		return NULL;
	}
	msg->code = 0;
	msg->verdict_flags = 0;
	msg->text_len = 0;
	msg->visible_ns = 0;
	msg->stamp_ns = 0;
	msg->has_verdict = false;
	msg->is_gap = false;
	return msg;
}

void mrc_msg_free(struct mrc_msg *msg)
{
	struct mrc_client *client = msg->client;

	mrc_list_remove(&msg->parked.node);
	mrc_list_remove(&msg->in_channel);
	mrc_list_remove(&msg->pending_verdict.node);
	mrc_list_remove(&msg->pending_release.node);
	if (msg->is_gap) {
		MRC_ASSERT(client->gaps_count > 0);
		client->gaps_count--;
	}
	msg->channel = NULL;
	msg->next_free = client->msg_free;
	client->msg_free = msg;
}

/* Its verdict falls now. */
static void stamp(struct mrc_msg *msg)
{
	if (__builtin_expect(msg->visible_ns != 0, 0))
		msg->stamp_ns = mrc_now_ns();
}

static void give_back(struct mrc_msg *msg)
{
	if (!msg->has_verdict)
		stamp(msg);
	mrc_list_remove(&msg->parked.node);
	mrc_list_remove(&msg->in_channel);
	msg->channel = NULL;
	if (msg->is_gap || msg->client->is_gone)
		mrc_msg_free(msg);
	else
		mrc_client_submit_later(msg->client, &msg->pending_release, MRC_SQE_RELEASE);
}

void mrc_msg_turn_away(struct mrc_msg *msg)
{
	if (!msg->is_gap && !msg->has_verdict && !msg->client->is_gone) {
		msg->has_verdict = true;
		msg->code = MRC_CODE_NOT_READ;
		stamp(msg);
		mrc_client_submit_later(msg->client, &msg->pending_verdict, MRC_SQE_REJECT);
	}
	give_back(msg);
}

MRC_API int mrc_recv(struct mrc_channel *channel, int64_t timeout_ns, struct mrc_msg **msg_out)
{
	uint64_t deadline_ns = mrc_client_deadline_ns(timeout_ns);
	struct mrc_client *client = channel->client;
	int r = 0;

	if (channel->state == MRC_CHANNEL_INCOMING)
		return -ENOTCONN;
	for (;;) {
		if (!mrc_list_is_empty(&channel->inbox)) {
			struct mrc_msg *msg =
				MRC_CONTAINER_OF(channel->inbox.next, struct mrc_msg, in_channel);

			if (msg->is_gap) {
				mrc_msg_free(msg); /* the next number tells */
				continue;
			}
			mrc_list_remove(&msg->parked.node);
			mrc_list_remove(&msg->in_channel);
			mrc_list_append(&channel->held, &msg->in_channel);
			*msg_out = msg;
			r = 0;
			break;
		}
		if (channel->state == MRC_CHANNEL_CLOSED) {
			r = client->is_gone ? -ECONNRESET : -EPIPE;
			break;
		}
		r = mrc_client_await(client, deadline_ns);
		if (r < 0)
			break;
	}
	mrc_client_settle(client);
	return r;
}

MRC_API const void *mrc_msg_data(const struct mrc_msg *msg)
{
	return (const char *)msg->client->landing_arena.bytes + msg->offset;
}

MRC_API size_t mrc_msg_len_bytes(const struct mrc_msg *msg)
{
	return msg->len_bytes;
}

MRC_API uint64_t mrc_msg_number(const struct mrc_msg *msg)
{
	return msg->number;
}

MRC_API struct mrc_channel *mrc_msg_channel(const struct mrc_msg *msg)
{
	return msg->channel;
}

static int verdict(struct mrc_msg *msg, uint8_t op, uint32_t code, const char *text)
{
	struct mrc_client *client = msg->client;

	if (msg->has_verdict)
		return -EALREADY;
	if (client->is_gone)
		return -ECONNRESET;
	msg->has_verdict = true;
	msg->code = code;
	if (text) {
		msg->text_len = (uint8_t)strlen(text);
		memcpy(msg->text, text, msg->text_len);
	}
	stamp(msg);
	mrc_client_submit_later(client, &msg->pending_verdict, op);
	mrc_client_settle(client);
	return 0;
}

MRC_API int mrc_msg_commit(struct mrc_msg *msg)
{
	return verdict(msg, MRC_SQE_COMMIT, 0, NULL);
}

/* Whether all may be accepted together; they are marked so, or none is. */
static int batch_mark(struct mrc_msg *const *msgs, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count; i++) {
		if (msgs[i]->client != msgs[0]->client)
			r = -EINVAL;
		else if (msgs[i]->has_verdict)
			r = -EALREADY;
		if (r < 0) {
			while (i-- > 0)
				msgs[i]->has_verdict = false;
			return r;
		}
		msgs[i]->has_verdict = true;
	}
	return 0;
}

MRC_API int mrc_msg_commit_batch(struct mrc_msg *const *msgs, size_t count)
{
	struct mrc_client *client;
	int r;

	if (!msgs || count == 0)
		return -EINVAL;
	client = msgs[0]->client;
	if (client->is_gone)
		return -ECONNRESET;
	r = batch_mark(msgs, count);
	if (r < 0)
		return r;
	client->batch_request = client->request_next++;
	for (size_t i = 0; i < count; i++) {
		stamp(msgs[i]);
		msgs[i]->verdict_flags = MRC_SQE_FLAG_BATCH;
		if (i + 1 == count)
			msgs[i]->verdict_flags |= MRC_SQE_FLAG_BATCH_END;
		mrc_client_submit_later(client, &msgs[i]->pending_verdict, MRC_SQE_COMMIT);
	}
	while (client->batch_request != 0 && (r == 0 || r == -EINTR))
		r = mrc_client_await(client, UINT64_MAX);
	if (client->batch_request == 0)
		r = client->batch_status == MRC_STATUS_OK ? 0 : -ECANCELED;
	client->batch_request = 0;
	mrc_client_settle(client);
	return r;
}

MRC_API int mrc_msg_reject(struct mrc_msg *msg, uint32_t code, const char *text)
{
	if (text && strnlen(text, MRC_REJECT_TEXT_MAX + 1) > MRC_REJECT_TEXT_MAX)
		return -EMSGSIZE;
	return verdict(msg, MRC_SQE_REJECT, code, text);
}

MRC_API void mrc_msg_release(struct mrc_msg *msg)
{
	struct mrc_client *client;

	if (!msg)
		return;
	client = msg->client;
	give_back(msg);
	mrc_client_settle(client);
}
