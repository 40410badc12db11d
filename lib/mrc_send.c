/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends, from the call to the answer. */
#include "mrc_client.h"

#include <errno.h>
#include <string.h>

_Static_assert(MRC_REJECT_TEXT_MAX == MRC_REASON_BYTES_MAX, "API and ring say the same");

void mrc_text_copy(char to[MRC_REJECT_TEXT_MAX + 1], const char *from)
{
	size_t len = strnlen(from, MRC_REJECT_TEXT_MAX);

	memcpy(to, from, len);
	to[len] = 0;
}

static struct mrc_send_op *op_new(struct mrc_client *client)
{
	struct mrc_send_op *op;

	if (client->send_free != UINT32_MAX) {
		op = &client->sends[client->send_free];
		client->send_free = op->next_free;
	} else if (client->sends_fresh < client->sends_max) {
		op = &client->sends[client->sends_fresh++];
		mrc_list_init(&op->parked.node);
		mrc_list_init(&op->in_client);
	} else {
		return NULL;
	}
	op->generation++;
	return op;
}

void mrc_send_op_free(struct mrc_client *client, struct mrc_send_op *op)
{
	MRC_ASSERT(!mrc_list_is_linked(&op->parked.node));
	MRC_ASSERT(!mrc_list_is_linked(&op->in_client));
	op->is_unanswered = false;
	op->is_undecided = false;
	op->next_free = client->send_free;
	client->send_free = (uint32_t)(op - client->sends);
}

static uint64_t op_user_data(const struct mrc_client *client, const struct mrc_send_op *op)
{
	return (uint64_t)op->generation << 32 | (uint64_t)(op - client->sends);
}

struct mrc_send_op *mrc_send_op_find(struct mrc_client *client, uint64_t user_data)
{
	uint32_t index = (uint32_t)user_data;
	struct mrc_send_op *op;

	if (index >= client->sends_fresh)
		return NULL;
	op = &client->sends[index];
	if (op->generation != user_data >> 32)
		return NULL;
	return op->is_unanswered || op->is_undecided ? op : NULL;
}

void mrc_send_op_event(struct mrc_send_op *op, struct mrc_event *event_out)
{
	struct mrc_channel *channel = op->channel;

	MRC_ASSERT(channel);
	MRC_ASSERT(channel->sends_outstanding > 0);
	*event_out = (struct mrc_event){
		.type = MRC_EVENT_SENT,
		.status = op->status,
		.level = op->level,
		.code = op->code,
		.number = op->number,
		.user = op->user,
		.channel = channel,
	};
	if (op->status == MRC_STATUS_REJECTED)
		mrc_text_copy(event_out->text, op->text);
	channel->sends_outstanding--;
	if (!op->is_undecided)
		mrc_send_op_free(channel->client, op);
}

static int channel_is_ready(const struct mrc_channel *channel)
{
	if (channel->client->is_gone)
		return -ECONNRESET;
	switch (channel->state) {
	case MRC_CHANNEL_CONNECTING:
	case MRC_CHANNEL_ACCEPTING:
		return channel->is_close_wanted ? -EPIPE : -ENOTCONN;
	case MRC_CHANNEL_INCOMING:
		return -ENOTCONN;
	case MRC_CHANNEL_OPEN:
		return 0;
	case MRC_CHANNEL_CLOSING:
	case MRC_CHANNEL_CLOSED:
		break;
	}
	return -EPIPE;
}

static int send_start(struct mrc_channel *channel, const void *data, size_t len_bytes,
		      enum mrc_level level, uint64_t deadline_ns, uint64_t user,
		      struct mrc_send_op **op_out)
{
	struct mrc_client *client = channel->client;
	uint64_t offset = (uint64_t)((uintptr_t)data - (uintptr_t)client->send_arena.bytes);
	struct mrc_send_op *op;
	struct mrc_sqe sqe = {.op = MRC_SQE_SEND};
	int r = channel_is_ready(channel);

	if (r < 0)
		return r;
	if (level < MRC_LEVEL_PLACED || level > MRC_LEVEL_COMMITTED)
		return -EINVAL;
	if (len_bytes > channel->message_bytes_max)
		return -EMSGSIZE;
	if (len_bytes == 0)
		offset = 0; /* no memory, so none that could be wrong */
	else if (offset > client->send_arena.len_bytes ||
		 len_bytes > client->send_arena.len_bytes - offset)
		return -EINVAL;
	op = op_new(client);
	if (!op)
		return -EAGAIN;
	op->channel = channel;
	op->channel_id = channel->id;
	op->user = user;
	op->level_wanted = level;
	sqe.level = (uint8_t)level;
	sqe.channel = channel->id;
	sqe.user_data = op_user_data(client, op);
	sqe.offset = offset;
	sqe.len_bytes = len_bytes;
	sqe.deadline_ns = deadline_ns;
	if (mrc_ring_is_tracing(&client->ring))
		sqe.stamp_ns = mrc_now_ns();
	r = mrc_client_submit(client, &sqe);
	if (r < 0) {
		mrc_send_op_free(client, op);
		return r;
	}
	op->is_unanswered = true;
	mrc_list_append(&client->sends_unanswered, &op->in_client);
	channel->sends_unanswered++;
	channel->sends_outstanding++;
	*op_out = op;
	return 0;
}

MRC_API int mrc_send(struct mrc_channel *channel, const void *data, size_t len_bytes,
		     enum mrc_level level, uint64_t deadline_ns, uint64_t user)
{
	struct mrc_client *client = channel->client;
	struct mrc_send_op *op;
	int r = send_start(channel, data, len_bytes, level, deadline_ns, user, &op);

	mrc_client_settle(client);
	return r;
}

/* Is there an answer whose taking frees its send's slot? */
static bool has_answer_to_take(struct mrc_client *client)
{
	for (struct mrc_list *at = client->parked.next; at != &client->parked; at = at->next) {
		struct mrc_parked *parked = MRC_CONTAINER_OF(at, struct mrc_parked, node);

		if (parked->type == MRC_EVENT_SENT &&
		    !MRC_CONTAINER_OF(parked, struct mrc_send_op, parked)->is_undecided)
			return true;
	}
	return false;
}

MRC_API int mrc_send_wait(struct mrc_channel *channel, const void *data, size_t len_bytes,
			  enum mrc_level level, int64_t timeout_ns, struct mrc_event *event_out)
{
	uint64_t deadline_ns = mrc_client_deadline_ns(timeout_ns);
	struct mrc_client *client = channel->client;
	struct mrc_send_op *op;
	struct mrc_event event;
	int r;

	/* After a time-out the answer still comes, by mrc_poll(): `user` says whose it is. */
	while ((r = send_start(channel, data, len_bytes, level, 0, (uintptr_t)data, &op)) ==
	       -EAGAIN) {
		if (mrc_client_take_in(client) > 0)
			continue;
		/* Answers of other sends, parked for mrc_poll(), hold all slots: only the program
		 * can free them. */
		if (!client->is_room_wanted && mrc_list_is_empty(&client->sends_unanswered) &&
		    (mrc_list_is_empty(&client->sends_undecided) || has_answer_to_take(client)))
			break;
		r = mrc_client_block(client, deadline_ns);
		if (r <= 0) {
			r = r == 0 ? -ETIMEDOUT : r;
			client->is_room_wanted = false; /* nobody waits for it any more */
			break;
		}
	}
	if (r == 0)
		r = mrc_client_wait_parked(client, &op->parked, deadline_ns);
	if (r == 0) {
		mrc_list_remove(&op->parked.node);
		mrc_send_op_event(op, &event);
		if (event_out)
			*event_out = event;
	}
	mrc_client_settle(client);
	return r;
}
