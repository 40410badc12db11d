/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_client_batch - messages that are committed together, or rejected together
 *
 * Members are named one by one and nothing is said of them before the last: a
 * client that ends in between has committed none. Then the engines are asked
 * whether each can still be committed, and only if all can they are told; what
 * is asked and told lies within one turn, so nothing comes between. One that
 * cannot (its channel has ended, or its sender has given it up) has the others
 * rejected.
 */
#include "mrcd_client_impl.h"

static struct mrcd_channel *member_channel(const struct mrcd_client *client,
					   const struct mrcd_msg *msg)
{
	return &client->channels[msg->channel_id & ((1U << client->channel_bits) - 1)];
}

static int member_tell(struct mrcd_client *client, const struct mrcd_msg *msg,
		       enum mrc_event_kind kind)
{
	struct mrcd_channel *channel = member_channel(client, msg);
	struct mrc_event_in ev = {.kind = kind};

	if (channel->is_engine_done || channel->state == MRCD_CHANNEL_DOWN)
		return -ENOENT;
	ev.msg.channel = channel->engine_id;
	ev.msg.number = msg->number;
	ev.msg.code = MRC_CODE_BATCH;
	ev.msg.visible_ns = msg->visible_ns;
	ev.msg.verdict_ns = msg->verdict_ns;
	return mrcd_client_side_tell(client->side, channel->peer, &ev);
}

static void batch_end(struct mrcd_client *client, uint64_t user_data)
{
	enum mrc_event_kind verdict = client->is_batch_spoilt ? MRC_EV_REJECT : MRC_EV_COMMIT;
	struct mrc_cqe cqe = {.type = MRC_CQE_BATCH, .user_data = user_data};

	for (struct mrcd_msg *msg = client->batch; msg != NULL; msg = msg->batch_next)
		if (member_tell(client, msg, MRC_EV_COMMIT_ASK) < 0)
			verdict = MRC_EV_REJECT;
	while (client->batch != NULL) {
		struct mrcd_msg *msg = client->batch;

		client->batch = msg->batch_next;
		msg->batch_next = NULL;
		msg->is_in_batch = false;
		(void)member_tell(client, msg, verdict); /* one that spoilt it has its verdict */
	}
	client->is_batch_spoilt = false;
	cqe.status = verdict == MRC_EV_COMMIT ? MRC_STATUS_OK : MRC_STATUS_CLOSED;
	mrcd_client_publish(client, &cqe, MRCD_TOLD_ANSWER);
}

void mrcd_client_submit_batch(struct mrcd_client *client, struct mrcd_msg *msg,
			      const struct mrc_sqe *sqe)
{
	if (msg == NULL) {
		client->is_batch_spoilt = true; /* it has given the message back already */
	} else if (msg->is_in_batch) {
		mrcd_client_break(client, "it named message %llu twice in a batch",
				  (unsigned long long)msg->number);
		return;
	} else {
		msg->is_in_batch = true;
		msg->batch_next = client->batch;
		client->batch = msg;
	}
	if (sqe->flags & MRC_SQE_FLAG_BATCH_END && mrcd_client_may_answer(client))
		batch_end(client, sqe->user_data);
}
