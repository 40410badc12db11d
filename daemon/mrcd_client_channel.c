/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_client_channel - a client's channels: what it asks, what the engine answers
 *
 * Largest message a client can receive: half its landing arena. The upper half
 * is for landing rings, one a channel, so that opening channels can never keep
 * a large message waiting; a ring is landing_ring_bytes while the half has room
 * for all other channels' smallest rings, and less when it does not.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mrcd_client_impl.h"
#include "mrcd_drain.h"
#include "mrcd_log.h"

/* ---- channels ---- */

/* The channel a client means; NULL with *was_one_out false when it can never have known such an id. */
static struct mrcd_channel *channel_find(struct mrcd_client *client, uint32_t id, bool *was_one_out)
{
	uint32_t index = id & ((1U << client->channel_bits) - 1);
	uint32_t serial = id >> client->channel_bits;
	struct mrcd_channel *channel;

	*was_one_out = false;
	if (serial == 0 || index >= client->channels_max)
		return NULL;
	channel = &client->channels[index];
	*was_one_out = serial < channel->serial ||
		       (serial == channel->serial && channel->state != MRCD_CHANNEL_CONNECTING);
	return channel->state != MRCD_CHANNEL_FREE && channel->id == id && *was_one_out ? channel
											: NULL;
}

struct mrcd_channel *mrcd_channel_new(struct mrcd_client *client, struct mrcd_peer *peer,
				      const char *service)
{
	struct mrcd_channel *channel = TAILQ_FIRST(&client->channels_free);

	/* A quota that has become smaller since it attached takes nothing back, and gives no more. */
	if (channel == NULL || client->channel_count >= client->quota.max.channels_max)
		return NULL;
	TAILQ_REMOVE(&client->channels_free, channel, entry);
	MRC_ASSERT(channel->state == MRCD_CHANNEL_FREE);
	*channel = (struct mrcd_channel){
		.index = channel->index,
		.serial = channel->serial + 1,
		.peer = peer,
	};
	TAILQ_INIT(&channel->queue);
	TAILQ_INIT(&channel->poisoned);
	channel->id = channel->serial << client->channel_bits | channel->index;
	snprintf(channel->service, sizeof(channel->service), "%s", service);
	client->channel_count++;
	return channel;
}

void mrcd_channel_set_state(struct mrcd_client *client, struct mrcd_channel *channel,
			    enum mrcd_channel_state state)
{
	struct mrcd_client_side *side = client->side;

	if (channel->state == MRCD_CHANNEL_INCOMING) {
		uint32_t bits = client->listener_bits;
		struct mrcd_listener *listener =
			&client->listeners[channel->listener_id & ((1U << bits) - 1)];

		side->incoming_count--;
		if (listener->id == channel->listener_id)
			listener->backlog--;
	}
	if (state == MRCD_CHANNEL_INCOMING)
		side->incoming_count++;
	channel->state = state;
}

void mrcd_channel_trace(struct mrcd_client *client, struct mrcd_channel *channel, uint32_t every)
{
	bool is_any = false;

	if (channel->trace_every == every)
		return;
	channel->trace_every = every;
	channel->trace_turn = 0;
	for (uint32_t i = 0; i < client->channels_max; i++)
		is_any |= client->channels[i].trace_every != 0;
	if (!client->is_dead)
		__atomic_store_n(&client->shm->is_tracing, is_any, __ATOMIC_RELAXED);
}

/* Free the slot when nobody can name it any more. */
void mrcd_channel_retire(struct mrcd_client *client, struct mrcd_channel *channel)
{
	if (channel->state != MRCD_CHANNEL_DOWN || !channel->is_engine_done ||
	    channel->msg_count > 0 || (channel->is_last_unread && !client->is_dead))
		return;
	MRC_ASSERT(TAILQ_EMPTY(&channel->queue));
	if (channel->ring_bytes > 0) {
		mrcd_client_poison_fill(client, channel->ring_offset, channel->ring_bytes);
		mrcd_arena_give(client->ring_arena, channel->ring_offset, channel->ring_bytes);
		channel->ring_bytes = 0;
		client->ring_count--;
	}
	channel->state = MRCD_CHANNEL_FREE;
	channel->id = 0;
	mrcd_channel_trace(client, channel, 0);
	/* An id is never used twice; a slot that has none left is left alone. */
	if (channel->serial < UINT32_MAX >> client->channel_bits)
		TAILQ_INSERT_HEAD(&client->channels_free, channel, entry);
	MRC_ASSERT(client->channel_count > 0);
	client->channel_count--;
	if (client->is_dead)
		mrcd_client_reap_later(client);
}

/* A landing ring, as large as leaves each other channel its smallest. */
static bool channel_take_ring(struct mrcd_client *client, struct mrcd_channel *channel)
{
	uint64_t free_bytes = mrcd_arena_size_bytes(client->ring_arena) -
			      mrcd_arena_used_bytes(client->ring_arena);
	uint64_t kept_bytes =
		client->ring_bytes_min * (client->channels_max - client->ring_count - 1);
	uint64_t len_bytes = client->ring_bytes_min;

	/* At least the smallest: retired slots may have made the sum pessimistic. */
	while (len_bytes * 2 <= client->side->limits->landing_ring_bytes &&
	       len_bytes * 2 + kept_bytes <= free_bytes)
		len_bytes *= 2;
	while (mrcd_arena_take(client->ring_arena, len_bytes, &channel->ring_offset) < 0) {
		len_bytes /= 2;
		if (len_bytes < client->ring_bytes_min)
			return false;
	}
	mrcd_client_poison_check(client, channel->ring_offset, len_bytes);
	channel->ring_bytes = len_bytes;
	client->ring_count++;
	return true;
}

void mrcd_channel_event(struct mrcd_client *client, const struct mrcd_channel *channel,
			enum mrc_event_kind kind, struct mrc_event_in *ev_out)
{
	*ev_out = (struct mrc_event_in){.kind = kind};
	ev_out->channel = (struct mrc_ev_channel){
		.id = channel->engine_id,
		.flow = client->flow,
		.weight = client->quota.max.weight,
		.is_unordered = channel->is_unordered,
		.is_unchecked = channel->is_unchecked,
		.cookie = mrcd_client_cookie(client, channel),
		.ring_addr = channel->ring_offset,
		.ring_bytes = channel->ring_bytes,
		.msg_bytes_max = mrcd_arena_size_bytes(client->buffer_arena),
		.window = client->window,
		.service = channel->service,
	};
}

/* The channel's last entry: CLOSED, or the answer of a CONNECT or ACCEPT that failed. */
void mrcd_channel_end(struct mrcd_client *client, struct mrcd_channel *channel, int status,
		      uint32_t code)
{
	struct mrc_cqe cqe = {.type = MRC_CQE_CLOSED,
			      .flags = MRC_CQE_FLAG_TELL_VISIBLE,
			      .status = status,
			      .code = code};
	bool was_tried = channel->state == MRCD_CHANNEL_CONNECTING ||
			 channel->state == MRCD_CHANNEL_ACCEPTING;
	int status_failed = status != MRC_STATUS_OK ? status : MRC_STATUS_CLOSED;

	MRC_ASSERT(channel->state != MRCD_CHANNEL_FREE && channel->state != MRCD_CHANNEL_DOWN);
	mrcd_channel_answer_queue(client, channel, status_failed);
	if (was_tried) {
		cqe.type = MRC_CQE_CONNECTED;
		cqe.status = status_failed;
		if (status_failed ==
		    MRC_STATUS_NO_RESOURCES) /* not ours: theirs says nothing of us */
			cqe.code = 0;
		cqe.user_data = channel->user_data;
	}
	/* The client of a CONNECT has not been told an id; the shadow needs it all the same. */
	cqe.channel = channel->id;
	mrcd_channel_set_state(client, channel, MRCD_CHANNEL_DOWN);
	channel->is_last_unread = true;
	mrcd_client_publish(client, &cqe, MRCD_TOLD_LAST);
}

void mrcd_channel_refuse(struct mrcd_client *client, struct mrcd_channel *channel, int outcome,
			 uint32_t code)
{
	struct mrc_event_in ev;

	mrcd_channel_event(client, channel, MRC_EV_CH_REFUSE, &ev);
	ev.channel.outcome = outcome;
	ev.channel.code = code;
	mrcd_client_side_tell(client->side, channel->peer, &ev);
	/* The engine has no cookie of it and will not speak of it again. */
	channel->is_engine_done = true;
}

void mrcd_channel_on_seen(struct mrcd_client *client, const struct mrcd_shadow *shadow)
{
	uint32_t index = shadow->channel_id & ((1U << client->channel_bits) - 1);
	struct mrcd_channel *channel = &client->channels[index];

	if (channel->id != shadow->channel_id)
		return;
	switch ((enum mrcd_told)shadow->told) {
	case MRCD_TOLD_GAP:
		channel->gaps_unread--;
		return;
	case MRCD_TOLD_LAST:
		channel->is_last_unread = false;
		mrcd_channel_retire(client, channel);
		return;
	case MRCD_TOLD_ARRIVED:
	case MRCD_TOLD_PLAIN:
	case MRCD_TOLD_ANSWER:
	case MRCD_TOLD_LATE:
	case MRCD_TOLD_DRAIN:
	case MRCD_TOLD_COUNT:
		return;
	}
}

void mrcd_channel_on_arrivals_seen(struct mrcd_client *client, const struct mrcd_shadow *shadow,
				   uint32_t more)
{
	uint32_t index = shadow->channel_id & ((1U << client->channel_bits) - 1);
	struct mrcd_channel *channel = &client->channels[index];
	struct mrc_event_in ev = {.kind = MRC_EV_VISIBLE};

	if (channel->id != shadow->channel_id || channel->is_engine_done)
		return;
	ev.msg.channel = channel->engine_id;
	ev.msg.number = shadow->number;
	ev.msg.more = more;
	/* Committed before it was seen to be visible, or over: no news then. */
	mrcd_client_side_tell(client->side, channel->peer, &ev);
}

/* ---- what clients ask by name ---- */

static void answer(struct mrcd_client *client, enum mrc_cqe_type type, uint64_t user_data,
		   int status, uint32_t id, uint32_t code)
{
	struct mrc_cqe cqe = {
		.type = (uint8_t)type,
		.channel = id,
		.user_data = user_data,
		.status = status,
		.code = code,
	};

	mrcd_client_publish(client, &cqe, MRCD_TOLD_ANSWER);
}

static int listen_start(struct mrcd_client *client, const struct mrc_abi_request *request,
			uint32_t *id_out)
{
	struct mrcd_listener *listener = NULL;
	uint32_t index = 0;

	if (!mrcd_name_is_valid(request->target, sizeof(request->target)) || request->flags != 0)
		return MRC_STATUS_INVALID;
	if (!mrcd_client_may(client, MRCD_USE_LISTEN, request->target))
		return MRC_STATUS_NOT_ALLOWED;
	if (mrcd_drain_is_on(client->side->worker))
		return MRC_STATUS_DRAINING;
	for (; index < client->listeners_max; index++) {
		listener = &client->listeners[index];
		if (listener->id == 0 && listener->serial < UINT32_MAX >> client->listener_bits)
			break;
	}
	if (index == client->listeners_max)
		return MRC_STATUS_NO_RESOURCES;
	memset(listener->service.name, 0, sizeof(listener->service.name));
	memcpy(listener->service.name, request->target, strlen(request->target));
	listener->service.owner = listener;
	if (mrcd_services_add(&client->side->services, &listener->service) < 0)
		return MRC_STATUS_IN_USE;
	listener->client = client;
	listener->serial++;
	listener->backlog = 0;
	listener->id = listener->serial << client->listener_bits | index;
	client->listener_count++;
	*id_out = listener->id;
	return MRC_STATUS_OK;
}

void mrcd_listener_free(struct mrcd_client *client, struct mrcd_listener *listener)
{
	mrcd_services_remove(&client->side->services, &listener->service);
	listener->id = 0;
	client->listener_count--;
}

/* MRC_STATUS_OK: the engine will answer. *limit_out: of channels, if that is what is reached; else 0. */
static int connect_start(struct mrcd_client *client, const struct mrc_abi_request *request,
			 uint32_t *limit_out)
{
	char host[MRC_NAME_MAX + 1];
	char service[MRC_NAME_MAX + 1];
	struct mrcd_channel *channel;
	struct mrcd_peer *peer;
	struct mrc_event_in ev;

	if (mrcd_target_parse(request->target, sizeof(request->target), host, service) < 0 ||
	    (request->flags & ~(MRC_ABI_CHANNEL_UNORDERED | MRC_ABI_CHANNEL_UNCHECKED)) != 0)
		return MRC_STATUS_INVALID;
	if (!mrcd_client_may(client, MRCD_USE_CONNECT, service))
		return MRC_STATUS_NOT_ALLOWED;
	peer = mrcd_worker_peer(client->side->worker, host);
	if (peer == NULL)
		return MRC_STATUS_NO_PEER;
	if (mrcd_drain_is_on(client->side->worker))
		return MRC_STATUS_DRAINING;
	channel = mrcd_channel_new(client, peer, service);
	if (channel == NULL) {
		*limit_out = MRC_MIN(client->channels_max, client->quota.max.channels_max);
		return MRC_STATUS_NO_RESOURCES;
	}
	channel->user_data = request->user_data;
	channel->is_unordered = (request->flags & MRC_ABI_CHANNEL_UNORDERED) != 0;
	channel->is_unchecked = (request->flags & MRC_ABI_CHANNEL_UNCHECKED) != 0;
	channel->state = MRCD_CHANNEL_CONNECTING;
	if (channel_take_ring(client, channel)) {
		mrcd_channel_event(client, channel, MRC_EV_CH_OPEN, &ev);
		ev.channel.id_out = &channel->engine_id;
		if (mrcd_client_side_tell(client->side, peer, &ev) >= 0) {
			mrcd_region_tell_keys(client->landing_region, peer);
			return MRC_STATUS_OK;
		}
	}
	channel->state = MRCD_CHANNEL_DOWN;
	channel->is_engine_done = true;
	mrcd_channel_retire(client, channel);
	return MRC_STATUS_NO_RESOURCES;
}

void mrcd_client_request(struct mrcd_client *client, const struct mrc_abi_request *request)
{
	uint32_t id = 0, limit = 0;
	int status;

	if (!mrcd_client_may_answer(client))
		return;
	switch (request->op) {
	case MRC_ABI_REQ_LISTEN:
		status = listen_start(client, request, &id);
		answer(client, MRC_CQE_LISTENING, request->user_data, status, id, 0);
		return;
	case MRC_ABI_REQ_CONNECT:
		status = connect_start(client, request, &limit);
		if (status != MRC_STATUS_OK)
			answer(client, MRC_CQE_CONNECTED, request->user_data, status, 0, limit);
		return;
	default:
		mrcd_client_break(client, "it made a request of unknown kind %u", request->op);
	}
}

/* ---- what clients submit ---- */

void mrcd_client_tell_releases(struct mrcd_client *client)
{
	struct mrcd_releases *releases = &client->releases;
	struct mrc_event_in ev = {.kind = MRC_EV_RELEASE};

	if (releases->count == 0)
		return;
	ev.msg.channel = releases->channel->engine_id;
	ev.msg.number = releases->number;
	ev.msg.more = releases->count - 1;
	ev.msg.visible_ns = releases->visible_ns;
	ev.msg.verdict_ns = releases->verdict_ns;
	releases->count = 0;
	/* -EALREADY, -ENOENT: settled in another way meanwhile. */
	mrcd_client_side_tell(client->side, releases->channel->peer, &ev);
}

/* The engine hears of those that follow each other at once, when something else comes. */
static void release_tell(struct mrcd_client *client, struct mrcd_channel *channel,
			 const struct mrc_sqe *sqe)
{
	struct mrcd_releases *releases = &client->releases;

	if (releases->count > 0 && releases->channel == channel &&
	    sqe->number == releases->number + releases->count && sqe->visible_ns == 0 &&
	    sqe->stamp_ns == 0 && releases->visible_ns == 0 && releases->verdict_ns == 0) {
		releases->count++;
		return;
	}
	mrcd_client_tell_releases(client);
	*releases = (struct mrcd_releases){
		.channel = channel,
		.number = sqe->number,
		.count = 1,
		.visible_ns = sqe->visible_ns,
		.verdict_ns = sqe->stamp_ns,
	};
	/* Else the channel may be gone before anything else comes. */
	if (channel->state != MRCD_CHANNEL_UP)
		mrcd_client_tell_releases(client);
}

static void submit_release(struct mrcd_client *client, struct mrcd_channel *channel,
			   struct mrcd_msg *msg, const struct mrc_sqe *sqe)
{
	bool was_waited_for = msg->is_engine_done && !msg->is_eager;

	msg->state = MRCD_MSG_RELEASED;
	if (msg->is_eager && mrcd_client_poison_hold(client, channel, msg))
		return;
	if (msg->is_eager || msg->is_engine_done)
		mrcd_msg_give(client, channel, msg);
	if (was_waited_for)
		mrcd_client_grant(client);
	if (!channel->is_engine_done)
		release_tell(client, channel, sqe);
	mrcd_channel_retire(client, channel);
}

/* COMMIT, REJECT, RELEASE. */
static void submit_verdict(struct mrcd_client *client, struct mrcd_channel *channel,
			   const struct mrc_sqe *sqe, const char *text)
{
	struct mrcd_msg *msg = mrcd_msg_find(client, channel, sqe->number);
	struct mrc_event_in ev = {0};

	if (msg == NULL || msg->state != MRCD_MSG_HELD) {
		/* One it has given back already counts once; one it never had is garbage. */
		if (sqe->number >= channel->number_end)
			mrcd_client_break(client,
					  "it spoke of message %llu, which it was never given",
					  (unsigned long long)sqe->number);
		else if (sqe->flags & MRC_SQE_FLAG_BATCH)
			mrcd_client_submit_batch(client, NULL, sqe);
		return;
	}
	msg->visible_ns = sqe->visible_ns;
	msg->verdict_ns = sqe->stamp_ns;
	if (sqe->flags & MRC_SQE_FLAG_BATCH) {
		mrcd_client_submit_batch(client, msg, sqe);
		return;
	}
	if (msg->is_in_batch) {
		mrcd_client_break(client, "it spoke of message %llu, whose batch has not ended",
				  (unsigned long long)sqe->number);
		return;
	}
	if (sqe->op == MRC_SQE_RELEASE) {
		submit_release(client, channel, msg, sqe);
		return;
	}
	ev.kind = sqe->op == MRC_SQE_COMMIT ? MRC_EV_COMMIT : MRC_EV_REJECT;
	ev.msg.channel = channel->engine_id;
	ev.msg.number = sqe->number;
	ev.msg.code = sqe->code;
	ev.msg.text = text;
	ev.msg.text_len = (uint8_t)sqe->text_len;
	ev.msg.visible_ns = sqe->visible_ns;
	ev.msg.verdict_ns = sqe->stamp_ns;
	/* -EALREADY, -ENOENT: settled in another way meanwhile. */
	if (!channel->is_engine_done)
		mrcd_client_side_tell(client->side, channel->peer, &ev);
	mrcd_channel_retire(client, channel);
}

static void submit_accept(struct mrcd_client *client, struct mrcd_channel *channel)
{
	struct mrc_event_in ev;

	if (channel->state == MRCD_CHANNEL_DOWN)
		return; /* the peer was faster: CLOSED is on its way */
	if (channel->state != MRCD_CHANNEL_INCOMING) {
		mrcd_client_break(client, "it accepted channel %u, which is not incoming",
				  channel->id);
		return;
	}
	mrcd_channel_set_state(client, channel, MRCD_CHANNEL_ACCEPTING);
	if (!channel_take_ring(client, channel)) {
		mrcd_channel_refuse(client, channel, MRC_OUT_NO_RESOURCES, 0);
		mrcd_channel_end(client, channel, MRC_STATUS_NO_RESOURCES, 0);
		return;
	}
	mrcd_channel_event(client, channel, MRC_EV_CH_ACCEPT, &ev);
	if (mrcd_client_side_tell(client->side, channel->peer, &ev) < 0) {
		channel->is_engine_done = true;
		mrcd_channel_end(client, channel, MRC_STATUS_CLOSED, 0);
		return;
	}
	mrcd_region_tell_keys(client->landing_region, channel->peer);
}

static void submit_refuse(struct mrcd_client *client, struct mrcd_channel *channel, uint32_t code)
{
	if (channel->state == MRCD_CHANNEL_DOWN)
		return;
	if (channel->state != MRCD_CHANNEL_INCOMING) {
		mrcd_client_break(client, "it refused channel %u, which is not incoming",
				  channel->id);
		return;
	}
	mrcd_channel_refuse(client, channel, MRC_OUT_REFUSED, code);
	mrcd_channel_set_state(client, channel, MRCD_CHANNEL_DOWN);
	mrcd_channel_retire(client, channel);
}

void mrcd_channel_close(struct mrcd_client *client, struct mrcd_channel *channel)
{
	if (channel->state == MRCD_CHANNEL_DOWN || channel->is_closing)
		return;
	if (channel->state == MRCD_CHANNEL_INCOMING) {
		mrcd_channel_refuse(client, channel, MRC_OUT_REFUSED, 0);
		mrcd_channel_end(client, channel, MRC_STATUS_OK, 0);
		return;
	}
	mrcd_channel_poison_end(client, channel);
	channel->is_closing = true;
	mrcd_channel_feed(client, channel);
}

void mrcd_listener_close(struct mrcd_client *client, struct mrcd_listener *listener)
{
	for (uint32_t i = 0; i < client->channels_max && listener->backlog > 0; i++) {
		struct mrcd_channel *channel = &client->channels[i];

		if (channel->state != MRCD_CHANNEL_INCOMING || channel->listener_id != listener->id)
			continue;
		mrcd_channel_refuse(client, channel, MRC_OUT_NO_SERVICE, 0);
		mrcd_channel_end(client, channel, MRC_STATUS_CLOSED, 0);
	}
	mrcd_listener_free(client, listener);
}

static void submit_unlisten(struct mrcd_client *client, uint32_t id)
{
	uint32_t index = id & ((1U << client->listener_bits) - 1);
	uint32_t serial = id >> client->listener_bits;

	if (serial == 0 || index >= client->listeners_max ||
	    serial > client->listeners[index].serial) {
		mrcd_client_break(client, "it closed listener %u, which it never had", id);
		return;
	}
	if (client->listeners[index].id == id)
		mrcd_listener_close(client, &client->listeners[index]);
}

static bool flags_are_good(const struct mrc_sqe *sqe)
{
	if (sqe->flags == 0)
		return true;
	return sqe->op == MRC_SQE_COMMIT && sqe->flags & MRC_SQE_FLAG_BATCH &&
	       !(sqe->flags & ~(MRC_SQE_FLAG_BATCH | MRC_SQE_FLAG_BATCH_END));
}

void mrcd_client_submit(struct mrcd_client *client, const struct mrc_sqe *sqe, const char *text)
{
	struct mrcd_channel *channel;
	bool was_one;

	if (sqe->op != MRC_SQE_RELEASE)
		mrcd_client_tell_releases(client);
	if (!flags_are_good(sqe)) {
		mrcd_client_break(client, "it set flags 0x%x in a submission of kind %u",
				  sqe->flags, sqe->op);
		return;
	}
	if (sqe->text_len > (sqe->op == MRC_SQE_REJECT ? MRC_REASON_BYTES_MAX : 0)) {
		mrcd_client_break(client, "a submission of kind %u has a text of %u bytes", sqe->op,
				  sqe->text_len);
		return;
	}
	if (sqe->op > MRC_SQE_UNLISTEN) {
		mrcd_client_break(client, "it submitted an operation of unknown kind %u", sqe->op);
		return;
	}
	if (sqe->op == MRC_SQE_NOP)
		return;
	if (sqe->op == MRC_SQE_UNLISTEN) {
		submit_unlisten(client, sqe->channel);
		return;
	}
	channel = channel_find(client, sqe->channel, &was_one);
	if (channel == NULL && !was_one) {
		mrcd_client_break(client, "it named channel %u, which it never had", sqe->channel);
		return;
	}
	if (sqe->op == MRC_SQE_SEND) {
		mrcd_client_submit_send(client, channel, sqe);
		return;
	}
	if (channel == NULL) {
		/* It has ended and nothing of it is left to speak of. */
		if (sqe->flags & MRC_SQE_FLAG_BATCH)
			mrcd_client_submit_batch(client, NULL, sqe);
		return;
	}
	switch ((enum mrc_sqe_op)sqe->op) {
	case MRC_SQE_COMMIT:
	case MRC_SQE_REJECT:
	case MRC_SQE_RELEASE:
		submit_verdict(client, channel, sqe, text);
		return;
	case MRC_SQE_ACCEPT:
		submit_accept(client, channel);
		return;
	case MRC_SQE_REFUSE:
		submit_refuse(client, channel, sqe->code);
		return;
	case MRC_SQE_CLOSE:
		mrcd_channel_close(client, channel);
		return;
	case MRC_SQE_NOP:
	case MRC_SQE_SEND:
	case MRC_SQE_UNLISTEN:
		return;
	}
}
