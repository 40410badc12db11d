/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_client_perform - what the engine wishes of clients, and their end */
#include <string.h>

#include "mrcd_client_impl.h"
#include "mrcd_drain.h"
#include "mrcd_sigbus.h"
#include "mrcd_trace.h"

/* ---- a client's end ---- */

void mrcd_client_abort_channels(struct mrcd_client *client)
{
	struct mrc_event_in ev;

	MRC_ASSERT(client->is_dead);
	client->batch = NULL; /* its members go with their channels */
	for (uint32_t i = 0; i < client->listeners_max; i++)
		if (client->listeners[i].id != 0)
			mrcd_listener_free(client, &client->listeners[i]);
	for (uint32_t i = 0; i < client->channels_max; i++) {
		struct mrcd_channel *channel = &client->channels[i];
		uint32_t state = channel->state;

		if (state == MRCD_CHANNEL_FREE)
			continue;
		mrcd_channel_answer_queue(client, channel, MRC_STATUS_DETACHED);
		mrcd_channel_poison_end(client, channel);
		if (channel->peer == NULL) {
			channel->is_engine_done = true; /* which the daemon before us had */
		} else if (state == MRCD_CHANNEL_INCOMING) {
			mrcd_channel_refuse(client, channel, MRC_OUT_NO_SERVICE, 0);
		} else if (!channel->is_engine_done) {
			mrcd_channel_event(client, channel, MRC_EV_CH_ABORT, &ev);
			if (mrcd_client_side_tell(client->side, channel->peer, &ev) < 0 &&
			    state != MRCD_CHANNEL_DOWN)
				channel->is_engine_done =
					true; /* the engine knows no such channel */
		}
		mrcd_channel_set_state(client, channel, MRCD_CHANNEL_DOWN);
		mrcd_channel_msgs_on_death(client, channel);
		mrcd_channel_retire(client, channel);
	}
}

/* ---- what the engine says ---- */

static uint16_t channel_flags(const struct mrcd_channel *channel)
{
	return (uint16_t)((channel->is_unordered ? MRC_CQE_FLAG_UNORDERED : 0) |
			  (channel->is_unchecked ? MRC_CQE_FLAG_UNCHECKED : 0));
}

static void on_incoming(struct mrcd_client_side *side, struct mrcd_peer *peer,
			const struct mrc_act_channel *act)
{
	struct mrcd_service *service = mrcd_services_find(&side->services, act->service);
	struct mrc_event_in ev = {.kind = MRC_EV_CH_REFUSE};
	struct mrcd_listener *listener;
	struct mrcd_channel *channel;
	struct mrcd_client *client;
	struct mrc_cqe cqe;

	ev.channel.id = act->id;
	/* Also of a service that is not here: its program may have gone because of the drain. */
	if (service == NULL || mrcd_drain_is_on(side->worker)) {
		ev.channel.outcome =
			mrcd_drain_is_on(side->worker) ? MRC_OUT_DRAINING : MRC_OUT_NO_SERVICE;
		mrcd_client_side_tell(side, peer, &ev);
		return;
	}
	listener = service->owner;
	client = listener->client;
	channel = client->is_dead || listener->backlog >= MRCD_BACKLOG_MAX
			  ? NULL
			  : mrcd_channel_new(client, peer, act->service);
	if (channel == NULL) {
		ev.channel.outcome = client->is_dead ? MRC_OUT_NO_SERVICE : MRC_OUT_NO_RESOURCES;
		mrcd_client_side_tell(side, peer, &ev);
		return;
	}
	channel->engine_id = act->id;
	channel->listener_id = listener->id;
	channel->is_unordered = act->is_unordered;
	channel->is_unchecked = act->is_unchecked;
	mrcd_channel_set_state(client, channel, MRCD_CHANNEL_INCOMING);
	listener->backlog++;
	cqe = (struct mrc_cqe){
		.type = MRC_CQE_INCOMING,
		.flags = channel_flags(channel),
		.channel = channel->id,
		.number = listener->id,
	};
	mrcd_client_publish(client, &cqe, MRCD_TOLD_PLAIN);
}

/* An incoming channel that ends before it was answered has no cookie yet. */
static void on_incoming_down(struct mrcd_client_side *side, struct mrcd_peer *peer,
			     const struct mrc_act_channel *act)
{
	if (side->incoming_count == 0)
		return;
	for (uint32_t c = 0; c < side->slot_count; c++) {
		struct mrcd_client *client = side->clients[c];

		for (uint32_t i = 0; client != NULL && i < client->channels_max; i++) {
			struct mrcd_channel *channel = &client->channels[i];

			if (channel->state != MRCD_CHANNEL_INCOMING || channel->peer != peer ||
			    channel->engine_id != act->id)
				continue;
			channel->is_engine_done = true;
			mrcd_channel_end(client, channel, act->outcome, act->code);
			return;
		}
	}
}

static void on_up(struct mrcd_client *client, struct mrcd_channel *channel,
		  const struct mrc_act_channel *act)
{
	struct mrc_cqe cqe = {
		.type = MRC_CQE_CONNECTED,
		.flags = channel_flags(channel),
		.channel = channel->id,
		.user_data = channel->user_data,
		.len_bytes = act->msg_bytes_max,
	};

	MRC_ASSERT(channel->state == MRCD_CHANNEL_CONNECTING ||
		   channel->state == MRCD_CHANNEL_ACCEPTING);
	mrcd_channel_set_state(client, channel, MRCD_CHANNEL_UP);
	mrcd_client_publish(client, &cqe, MRCD_TOLD_PLAIN);
	mrcd_channel_tell_drain(client, channel);
	mrcd_channel_feed(client, channel);
}

static void on_down(struct mrcd_client *client, struct mrcd_channel *channel,
		    const struct mrc_act_channel *act)
{
	MRC_ASSERT(channel->sends_in_engine == 0);
	mrcd_channel_drop_wants(client, channel);
	mrcd_channel_end(client, channel, act->outcome, act->code);
	mrcd_client_grant(client);
}

static void on_channel_free(struct mrcd_client *client, struct mrcd_channel *channel)
{
	channel->is_engine_done = true;
	mrcd_channel_msgs_on_free(client, channel);
	mrcd_channel_retire(client, channel);
	mrcd_client_grant(client);
}

static void on_done(struct mrcd_client *client, struct mrcd_channel *channel,
		    const struct mrc_act_msg *act, bool is_late)
{
	uint64_t index = act->cookie & UINT32_MAX;
	struct mrcd_send *send;

	MRC_ASSERT(index < client->sends_max);
	send = &client->sends[index];
	MRC_ASSERT(send->state ==
		   (is_late && !send->is_held ? MRCD_SEND_UNDECIDED : MRCD_SEND_IN_ENGINE));
	MRC_ASSERT(send->serial == act->cookie >> 32);
	if (!is_late)
		mrcd_stall_answer(&channel->stall, mrcd_peer_stalls(channel->peer),
				  client->side->worker->now_ns);
	if (act->is_undecided) {
		MRC_ASSERT(!is_late && act->outcome == MRC_OUT_TIMED_OUT);
		mrcd_send_answer_undecided(client, send, (uint32_t)act->level);
		return;
	}
	MRC_ASSERT(channel->sends_in_engine > 0);
	channel->sends_in_engine--;
	mrcd_quota_give(&client->quota, send->len_bytes);
	mrcd_send_answer_done(client, send, act->number, act);
	mrcd_client_feed_throttled(client);
}

static void on_deliver(struct mrcd_client *client, struct mrcd_channel *channel,
		       const struct mrc_act_msg *act)
{
	struct mrc_cqe cqe = {
		.type = MRC_CQE_ARRIVED,
		.flags = (uint16_t)((act->is_visible_wanted ? MRC_CQE_FLAG_TELL_VISIBLE : 0) |
				    (act->is_traced ? MRC_CQE_FLAG_TRACED : 0)),
		.channel = channel->id,
		.number = act->number,
		.len_bytes = act->len,
	};
	struct mrcd_msg *msg;

	MRC_ASSERT(channel->state != MRCD_CHANNEL_DOWN);
	/* What lies there is not what the client would read; the bell has not been heard yet. */
	if (client->landing.sigbus_slot != UINT32_MAX &&
	    mrcd_sigbus_has_hit(client->landing.sigbus_slot)) {
		mrcd_client_break(client, "its memory went away under the daemon");
		return;
	}
	if (act->is_eager) {
		MRC_ASSERT(act->len <= channel->ring_bytes);
		MRC_ASSERT(act->addr <= channel->ring_bytes - act->len);
		msg = mrcd_msg_new(client, channel, act->number, MRCD_MSG_HELD);
		if (msg == NULL)
			return;
		msg->is_eager = true;
		msg->addr = channel->ring_offset + act->addr;
		msg->len_bytes = act->len;
	} else {
		msg = mrcd_msg_find(client, channel, act->number);
		MRC_ASSERT(msg != NULL);
		MRC_ASSERT(msg->state == MRCD_MSG_GRANTED);
		MRC_ASSERT(msg->addr == act->addr);
		MRC_ASSERT(act->len <= msg->len_bytes);
		msg->state = MRCD_MSG_HELD;
	}
	cqe.offset = msg->addr;
	channel->number_end = MRC_MAX(channel->number_end, act->number + 1);
	mrcd_client_publish(client, &cqe, MRCD_TOLD_ARRIVED);
}

static void on_gap(struct mrcd_client *client, struct mrcd_channel *channel,
		   const struct mrc_act_msg *act)
{
	struct mrc_cqe cqe = {
		.type = MRC_CQE_GAP,
		.channel = channel->id,
		.number = act->number,
	};

	/* A sender can give up any number of messages while this client reads none: beyond
	 * this share of the ring they are not told one by one. */
	if (channel->gaps_unread >= client->window / 2)
		return;
	channel->gaps_unread++;
	mrcd_client_publish(client, &cqe, MRCD_TOLD_GAP);
}

static void on_landing_want(struct mrcd_client *client, struct mrcd_channel *channel,
			    const struct mrc_act_msg *act)
{
	struct mrcd_msg *msg;

	/* The peer was told msg_bytes_max, and the engine holds it to that. */
	MRC_ASSERT(act->len <= mrcd_arena_size_bytes(client->buffer_arena));
	msg = mrcd_msg_new(client, channel, act->number, MRCD_MSG_WANTED);
	if (msg == NULL)
		return;
	msg->len_bytes = act->len;
	mrcd_client_grant(client);
}

static void on_landing_free(struct mrcd_client *client, struct mrcd_channel *channel,
			    const struct mrc_act_msg *act)
{
	struct mrcd_msg *msg = mrcd_msg_find(client, channel, act->number);

	if (msg == NULL)
		return; /* freed with its channel */
	MRC_ASSERT(!msg->is_eager);
	if (!msg->is_engine_done)
		mrcd_msg_on_engine_done(client, channel, msg);
	mrcd_channel_retire(client, channel);
	mrcd_client_grant(client);
}

static void perform_channel(struct mrcd_client_side *side, struct mrcd_peer *peer,
			    const struct mrc_action *act)
{
	struct mrcd_client *client;
	struct mrcd_channel *channel = mrcd_client_side_channel(side, act->channel.cookie, &client);

	if (act->kind == MRC_ACT_CH_INCOMING) {
		on_incoming(side, peer, &act->channel);
		return;
	}
	if (channel == NULL) {
		if (act->kind == MRC_ACT_CH_DOWN)
			on_incoming_down(side, peer, &act->channel);
		return;
	}
	if (act->kind == MRC_ACT_CH_FREE) {
		on_channel_free(client, channel);
		return;
	}
	if (client->is_dead || channel->state == MRCD_CHANNEL_DOWN)
		return;
	if (act->kind == MRC_ACT_CH_UP) {
		on_up(client, channel, &act->channel);
	} else if (act->kind == MRC_ACT_CH_DOWN) {
		on_down(client, channel, &act->channel);
	} else if (act->kind == MRC_ACT_CH_ROOM) {
		channel->is_blocked = false;
		mrcd_channel_feed(client, channel);
	}
}

static void perform_message(struct mrcd_client_side *side, const struct mrc_action *act)
{
	struct mrcd_client *client;
	struct mrcd_channel *channel =
		mrcd_client_side_channel(side, act->msg.channel_cookie, &client);

	if (channel == NULL)
		return;
	if (act->kind == MRC_ACT_LANDING_FREE)
		on_landing_free(client, channel, &act->msg);
	else if (client->is_dead)
		return;
	else if (act->kind == MRC_ACT_DELIVER)
		on_deliver(client, channel, &act->msg);
	else if (act->kind == MRC_ACT_GAP)
		on_gap(client, channel, &act->msg);
	else if (act->kind == MRC_ACT_DONE)
		on_done(client, channel, &act->msg, false);
	else if (act->kind == MRC_ACT_LATE)
		on_done(client, channel, &act->msg, true);
	else if (act->kind == MRC_ACT_LANDING_WANT)
		on_landing_want(client, channel, &act->msg);
}

void mrcd_client_side_perform(struct mrcd_client_side *side, struct mrcd_peer *peer,
			      const struct mrc_action *act)
{
	struct mrcd_peer *outer = side->performing;

	side->performing = peer;
	switch ((int)act->kind) {
	case MRC_ACT_CH_INCOMING:
	case MRC_ACT_CH_UP:
	case MRC_ACT_CH_DOWN:
	case MRC_ACT_CH_ROOM:
	case MRC_ACT_CH_FREE:
		perform_channel(side, peer, act);
		break;
	case MRC_ACT_LANDING_WANT:
	case MRC_ACT_LANDING_FREE:
	case MRC_ACT_DELIVER:
	case MRC_ACT_GAP:
	case MRC_ACT_DONE:
	case MRC_ACT_LATE:
		perform_message(side, act);
		break;
	case MRC_ACT_TRACED:
		mrcd_trace_add(side->worker->traces, peer, &act->trace);
		break;
	default:
		break;
	}
	side->performing = outer;
}
