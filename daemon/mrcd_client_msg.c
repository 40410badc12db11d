/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_client_msg - the landing memory of a client: who waits for it, who holds it
 *
 * A record a message, from the engine's wish for a buffer (or the arrival, for
 * what lies in a landing ring) to the last of the two who need its memory.
 */
#include "mrcd_client_impl.h"

static struct mrcd_msg **msg_bucket(struct mrcd_client *client, const struct mrcd_channel *channel,
				    uint64_t number)
{
	uint32_t window = client->window;

	return &client->buckets[(uint64_t)channel->index * window + (number & (window - 1))];
}

struct mrcd_msg *mrcd_msg_find(struct mrcd_client *client, const struct mrcd_channel *channel,
			       uint64_t number)
{
	struct mrcd_msg *msg = *msg_bucket(client, channel, number);

	while (msg != NULL && msg->number != number)
		msg = msg->next;
	return msg;
}

struct mrcd_msg *mrcd_msg_new(struct mrcd_client *client, struct mrcd_channel *channel,
			      uint64_t number, enum mrcd_msg_state state)
{
	struct mrcd_msg **bucket = msg_bucket(client, channel, number);
	struct mrcd_msg *msg = client->msgs_free;

	if (msg != NULL) {
		client->msgs_free = msg->next;
	} else if (client->msgs_fresh < client->msgs_max) {
		msg = &client->msgs[client->msgs_fresh++];
	} else {
		/* It commits messages and keeps them all: credit does not count those. */
		mrcd_client_break(client, "it holds %u received messages", client->msgs_max);
		return NULL;
	}
	*msg = (struct mrcd_msg){
		.number = number,
		.channel_id = channel->id,
		.state = (uint8_t)state,
		.next = *bucket,
	};
	*bucket = msg;
	channel->msg_count++;
	if (state == MRCD_MSG_WANTED)
		TAILQ_INSERT_TAIL(&client->wants, msg, want_entry);
	return msg;
}

/* Forget it; its memory has been dealt with. */
static void msg_free(struct mrcd_client *client, struct mrcd_channel *channel, struct mrcd_msg *msg)
{
	struct mrcd_msg **at = msg_bucket(client, channel, msg->number);

	while (*at != msg) {
		MRC_ASSERT(*at != NULL);
		at = &(*at)->next;
	}
	*at = msg->next;
	if (msg->state == MRCD_MSG_WANTED)
		TAILQ_REMOVE(&client->wants, msg, want_entry);
	mrcd_msg_poison_forget(client, channel, msg);
	msg->next = client->msgs_free;
	client->msgs_free = msg;
	MRC_ASSERT(channel->msg_count > 0);
	channel->msg_count--;
}

static void buffer_give(struct mrcd_client *client, const struct mrcd_msg *msg)
{
	mrcd_client_poison_fill(client, msg->addr, msg->len_bytes);
	mrcd_arena_give(client->buffer_arena, msg->addr, msg->len_bytes);
}

/* Give landing buffers to who waits, first come first served; for each channel that is the engine's order. */
void mrcd_client_grant(struct mrcd_client *client)
{
	struct mrcd_msg *msg;

	while (!client->is_dead && (msg = TAILQ_FIRST(&client->wants)) != NULL) {
		struct mrcd_channel *channel =
			&client->channels[msg->channel_id & ((1U << client->channel_bits) - 1)];
		struct mrc_event_in ev = {.kind = MRC_EV_LANDING};

		MRC_ASSERT(channel->id == msg->channel_id);
		if (mrcd_arena_take(client->buffer_arena, msg->len_bytes, &msg->addr) < 0)
			return;
		mrcd_client_poison_check(client, msg->addr, msg->len_bytes);
		TAILQ_REMOVE(&client->wants, msg, want_entry);
		msg->state = MRCD_MSG_GRANTED;
		ev.msg = (struct mrc_ev_msg){
			.channel = channel->engine_id,
			.number = msg->number,
			.addr = msg->addr,
			.len = msg->len_bytes,
		};
		if (mrcd_client_side_tell(client->side, channel->peer, &ev) < 0) {
			/* Given up meanwhile. */
			buffer_give(client, msg);
			msg_free(client, channel, msg);
		}
	}
}

/* Both the client and the engine are done with this buffer. */
void mrcd_msg_give(struct mrcd_client *client, struct mrcd_channel *channel, struct mrcd_msg *msg)
{
	if (!msg->is_eager && msg->state != MRCD_MSG_WANTED)
		buffer_give(client, msg);
	msg_free(client, channel, msg);
}

/* The engine is done with it: free it, unless the client still reads it. */
void mrcd_msg_on_engine_done(struct mrcd_client *client, struct mrcd_channel *channel,
			     struct mrcd_msg *msg)
{
	if (msg->state == MRCD_MSG_HELD)
		msg->is_engine_done = true;
	else
		mrcd_msg_give(client, channel, msg);
}

void mrcd_channel_drop_wants(struct mrcd_client *client, struct mrcd_channel *channel)
{
	struct mrcd_msg *msg = TAILQ_FIRST(&client->wants);

	while (msg != NULL) {
		struct mrcd_msg *next = TAILQ_NEXT(msg, want_entry);

		if (msg->channel_id == channel->id)
			msg_free(client, channel, msg);
		msg = next;
	}
}

void mrcd_channel_msgs_on_free(struct mrcd_client *client, struct mrcd_channel *channel)
{
	for (uint32_t b = 0; b < client->window && channel->msg_count > 0; b++) {
		struct mrcd_msg *msg = *msg_bucket(client, channel, b);

		while (msg != NULL) {
			struct mrcd_msg *next = msg->next;

			if (!msg->is_engine_done)
				mrcd_msg_on_engine_done(client, channel, msg);
			msg = next;
		}
	}
}

void mrcd_channel_msgs_on_death(struct mrcd_client *client, struct mrcd_channel *channel)
{
	for (uint32_t b = 0; b < client->window && channel->msg_count > 0; b++) {
		struct mrcd_msg *msg = *msg_bucket(client, channel, b);

		while (msg != NULL) {
			struct mrcd_msg *next = msg->next;
			bool is_engine_done = msg->is_engine_done || channel->is_engine_done ||
					      msg->is_eager || msg->state == MRCD_MSG_WANTED;

			if (is_engine_done)
				mrcd_msg_give(client, channel, msg);
			else if (msg->state == MRCD_MSG_HELD)
				msg->state = MRCD_MSG_RELEASED;
			msg = next;
		}
	}
}
