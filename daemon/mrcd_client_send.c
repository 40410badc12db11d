/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_client_send - messages a client has asked to send, until they are answered
 *
 * Submissions are always taken off the ring: those a channel has no credit for
 * wait here, so that they hold up no other channel.
 */
#include <errno.h>

#include "mrcd_client_impl.h"

#define THROTTLE_NS_MIN MRC_MS /* a tenth of the burst that a rate allows */

static void send_free(struct mrcd_client *client, struct mrcd_send *send)
{
	send->state = MRCD_SEND_FREE;
	send->is_held = false;
	TAILQ_INSERT_HEAD(&client->sends_free, send, entry);
	MRC_ASSERT(client->send_count > 0);
	client->send_count--;
}

void mrcd_send_answer(struct mrcd_client *client, struct mrcd_send *send, uint64_t number,
		      int status, uint32_t level)
{
	const struct mrc_act_msg act = {.outcome = status, .level = (enum mrc_lvl)level};

	mrcd_send_answer_done(client, send, number, &act);
}

void mrcd_send_answer_done(struct mrcd_client *client, struct mrcd_send *send, uint64_t number,
			   const struct mrc_act_msg *act)
{
	bool is_late = send->state == MRCD_SEND_UNDECIDED;
	struct mrc_cqe cqe = {
		.type = is_late ? MRC_CQE_LATE : MRC_CQE_SENT,
		.level = (uint8_t)act->level,
		.channel = send->channel_id,
		.user_data = send->user_data,
		.number = number,
		.status = act->outcome,
		.code = act->code,
		.text_len = act->text_len,
	};

	send_free(client, send);
	mrcd_client_publish_text(client, &cqe, is_late ? MRCD_TOLD_LATE : MRCD_TOLD_PLAIN,
				 act->text);
}

void mrcd_send_answer_undecided(struct mrcd_client *client, struct mrcd_send *send, uint32_t level)
{
	struct mrc_cqe cqe = {
		.type = MRC_CQE_SENT,
		.flags = MRC_CQE_FLAG_UNDECIDED,
		.level = (uint8_t)level,
		.channel = send->channel_id,
		.user_data = send->user_data,
		.number = send->number,
		.status = MRC_STATUS_TIMED_OUT,
	};

	if (client->undecided_count >= MRCD_UNDECIDED_MAX(client->sends_max))
		mrcd_client_take_seen(client, UINT32_MAX);
	if (client->undecided_count >= MRCD_UNDECIDED_MAX(client->sends_max)) {
		send->is_held = true;
		return;
	}
	client->undecided_count++;
	send->state = MRCD_SEND_UNDECIDED;
	mrcd_client_publish(client, &cqe, MRCD_TOLD_PLAIN);
}

static void send_dequeue(struct mrcd_channel *channel, struct mrcd_send *send)
{
	TAILQ_REMOVE(&channel->queue, send, entry);
	channel->queue_count--;
}

/* What a SEND's refusal means to its sender. */
static int send_status(int error)
{
	switch (error) {
	case -EMSGSIZE:
		return MRC_STATUS_TOO_BIG;
	case -EINVAL:
		return MRC_STATUS_INVALID;
	default:
		return MRC_STATUS_CLOSED; /* -ENOENT: the channel is ending, CH_DOWN says why */
	}
}

/* What is next on this channel; NULL: nothing can be handed to the engine now. */
static struct mrcd_send *send_next(const struct mrcd_client *client,
				   const struct mrcd_channel *channel)
{
	if (client->is_dead || channel->state != MRCD_CHANNEL_UP || channel->is_blocked)
		return NULL;
	return TAILQ_FIRST(&channel->queue);
}

/* Hand it to the engine, which may refuse it, or have no room for it yet. */
static void send_hand_over(struct mrcd_client *client, struct mrcd_channel *channel,
			   struct mrcd_send *send)
{
	struct mrc_event_in ev = {.kind = MRC_EV_SEND};
	int r;

	ev.msg = (struct mrc_ev_msg){
		.channel = channel->engine_id,
		.level = (enum mrc_lvl)send->level,
		.cookie = (uint64_t)send->serial << 32 | (uint64_t)(send - client->sends),
		.addr = send->offset,
		.len = send->len_bytes,
		.deadline_ns = send->deadline_ns,
		.number_out = &send->number,
		.is_traced = send->is_traced,
		.submitted_ns = send->submitted_ns,
		.fetched_ns = send->fetched_ns,
	};
	r = mrcd_client_side_tell(client->side, channel->peer, &ev);
	if (r == -ENOSPC) {
		channel->is_blocked = true;
		return;
	}
	send_dequeue(channel, send);
	if (r < 0) {
		mrcd_send_answer(client, send, MRCD_NUMBER_NONE, send_status(r), MRC_LEVEL_NONE);
		return;
	}
	send->state = MRCD_SEND_IN_ENGINE;
	channel->sends_in_engine++;
	mrcd_stall_begin(&channel->stall, client->side->worker->now_ns);
	mrcd_quota_take(&client->quota, send->len_bytes, client->side->worker->now_ns);
}

/* Does the client's quota let it go now? If a time will come when it does, the timer knows. */
static bool send_is_admitted(struct mrcd_client *client, const struct mrcd_send *send)
{
	uint64_t when_ns;

	if (mrcd_quota_admits(&client->quota, send->len_bytes, client->side->worker->now_ns,
			      &when_ns))
		return true;
	if (when_ns != MRC_NEVER) {
		/* Not for each message: to look through all that wait costs more than one of them. */
		when_ns = MRC_MAX(when_ns, client->side->worker->now_ns + THROTTLE_NS_MIN);
		client->deadline_ns = MRC_MIN(client->deadline_ns, when_ns);
		mrcd_client_side_arm(client->side, when_ns);
	}
	return false;
}

static void channel_throttle(struct mrcd_client *client, struct mrcd_channel *channel)
{
	channel->is_throttled = true;
	client->quota.waits++;
	TAILQ_INSERT_TAIL(&client->throttled, channel, entry);
}

static void channel_unthrottle(struct mrcd_client *client, struct mrcd_channel *channel)
{
	if (!channel->is_throttled)
		return;
	channel->is_throttled = false;
	TAILQ_REMOVE(&client->throttled, channel, entry);
}

/* Hand queued sends to the engine while it takes them; then the CLOSE that waits behind them. */
void mrcd_channel_feed(struct mrcd_client *client, struct mrcd_channel *channel)
{
	struct mrcd_send *send;

	while (!channel->is_throttled && (send = send_next(client, channel)) != NULL) {
		/* Those that wait already come first. */
		if (TAILQ_EMPTY(&client->throttled) && send_is_admitted(client, send))
			send_hand_over(client, channel, send);
		else
			channel_throttle(client, channel);
	}
	if (channel->is_closing && !channel->is_close_told && TAILQ_EMPTY(&channel->queue) &&
	    channel->state == MRCD_CHANNEL_UP && !client->is_dead) {
		struct mrc_event_in ev = {.kind = MRC_EV_CH_CLOSE};

		ev.channel.id = channel->engine_id;
		channel->is_close_told = true;
		mrcd_client_side_tell(client->side, channel->peer, &ev);
	}
}

void mrcd_client_feed_throttled(struct mrcd_client *client)
{
	struct mrcd_channel *channel;

	while ((channel = TAILQ_FIRST(&client->throttled)) != NULL) {
		struct mrcd_send *send = send_next(client, channel);

		if (send != NULL && !send_is_admitted(client, send))
			return;
		channel_unthrottle(client, channel);
		if (send != NULL)
			send_hand_over(client, channel, send);
		if (send_next(client, channel) != NULL && !TAILQ_EMPTY(&client->throttled)) {
			channel->is_throttled = true; /* to the end of the line */
			TAILQ_INSERT_TAIL(&client->throttled, channel, entry);
			continue;
		}
		mrcd_channel_feed(client, channel);
	}
}

void mrcd_channel_answer_queue(struct mrcd_client *client, struct mrcd_channel *channel, int status)
{
	struct mrcd_send *send;

	channel_unthrottle(client, channel);
	while ((send = TAILQ_FIRST(&channel->queue)) != NULL) {
		send_dequeue(channel, send);
		mrcd_send_answer(client, send, MRCD_NUMBER_NONE, status, MRC_LEVEL_NONE);
	}
}

/*
 * The receiver alone knows whether the message was delivered (DESIGN 7.10): once
 * that is known DONE says that the time was over, and how far the message had got
 * by then. Until then the buffer is the engine's.
 */
static void send_give_up(struct mrcd_client *client, struct mrcd_send *send)
{
	const struct mrcd_channel *channel =
		&client->channels[send->channel_id & ((1U << client->channel_bits) - 1)];
	struct mrc_event_in ev = {.kind = MRC_EV_CANCEL};

	MRC_ASSERT(channel->id == send->channel_id);
	ev.msg.channel = channel->engine_id;
	ev.msg.number = send->number;
	ev.msg.outcome = MRC_OUT_TIMED_OUT;
	send->deadline_ns = 0;
	/* -EALREADY: its DONE is on the way. */
	mrcd_client_side_tell(client->side, channel->peer, &ev);
}

/* Sends the engine has; found one by one, for few have a deadline and fewer pass it. */
static void expire_in_engine(struct mrcd_client *client, uint64_t now_ns)
{
	for (uint32_t i = 0; i < client->sends_fresh; i++) {
		struct mrcd_send *send = &client->sends[i];

		if (send->state != MRCD_SEND_IN_ENGINE || send->deadline_ns == 0)
			continue;
		if (send->deadline_ns <= now_ns)
			send_give_up(client, send);
		else
			client->deadline_ns = MRC_MIN(client->deadline_ns, send->deadline_ns);
	}
}

void mrcd_client_expire(struct mrcd_client *client, uint64_t now_ns, uint64_t *next_out)
{
	client->deadline_ns = MRC_NEVER;
	for (uint32_t i = 0; i < client->channels_max; i++) {
		struct mrcd_channel *channel = &client->channels[i];
		struct mrcd_send *send = TAILQ_FIRST(&channel->queue);

		while (send != NULL) {
			struct mrcd_send *next = TAILQ_NEXT(send, entry);

			if (send->deadline_ns != 0 && send->deadline_ns <= now_ns) {
				send_dequeue(channel, send);
				mrcd_send_answer(client, send, MRCD_NUMBER_NONE,
						 MRC_STATUS_TIMED_OUT, MRC_LEVEL_NONE);
			} else if (send->deadline_ns != 0) {
				client->deadline_ns =
					MRC_MIN(client->deadline_ns, send->deadline_ns);
			}
			send = next;
		}
		mrcd_channel_feed(client, channel);
	}
	mrcd_client_feed_throttled(client);
	expire_in_engine(client, now_ns);
	*next_out = client->deadline_ns;
}

/* One in so many, and the first; of those that say when they were submitted, as all do that came later than the wish. */
static void send_trace(struct mrcd_channel *channel, struct mrcd_send *send, uint64_t submitted_ns)
{
	if (submitted_ns == 0)
		return;
	send->is_traced = channel->trace_turn == 0;
	channel->trace_turn = (channel->trace_turn + 1) % channel->trace_every;
	if (!send->is_traced)
		return;
	send->submitted_ns = submitted_ns;
	send->fetched_ns = mrcd_worker_clock_ns();
}

/*
 * For the metrics of stages: a message now and then, whoever sends it. The one
 * that is due is not taken at once but one to eight sends later, or it would be
 * the first of its turn each time. When it was submitted is not known: programs
 * read the clock for that only while somebody traces their channel.
 */
static void send_sample(struct mrcd_client_side *side, struct mrcd_send *send)
{
	uint64_t now_ns = side->worker->now_ns;

	side->sample_left = 1 + (uint32_t)(now_ns / 64 % 8);
	if (!side->worker->conf->metrics.is_enabled || now_ns < side->sample_due_ns)
		return;
	side->sample_due_ns = now_ns + MRCD_SAMPLE_NS;
	send->is_traced = true;
	send->submitted_ns = 0;
	send->fetched_ns = mrcd_worker_clock_ns();
}

void mrcd_client_submit_send(struct mrcd_client *client, struct mrcd_channel *channel,
			     const struct mrc_sqe *sqe)
{
	uint64_t arena_bytes = client->send_arena.len_bytes;
	struct mrcd_send *send;

	if (sqe->level < MRC_LEVEL_PLACED || sqe->level > MRC_LEVEL_COMMITTED) {
		mrcd_client_break(client, "it sent at level %u", sqe->level);
		return;
	}
	if (sqe->offset > arena_bytes || sqe->len_bytes > arena_bytes - sqe->offset) {
		mrcd_client_break(client, "it sent %llu bytes at offset %llu of an arena of %llu",
				  (unsigned long long)sqe->len_bytes,
				  (unsigned long long)sqe->offset, (unsigned long long)arena_bytes);
		return;
	}
	send = TAILQ_FIRST(&client->sends_free);
	if (send != NULL) {
		TAILQ_REMOVE(&client->sends_free, send, entry);
	} else if (client->sends_fresh < client->sends_max) {
		send = &client->sends[client->sends_fresh++];
	} else {
		mrcd_client_break(client, "it has more than %u sends outstanding",
				  client->sends_max);
		return;
	}
	MRC_ASSERT(send->state == MRCD_SEND_FREE);
	client->send_count++;
	send->user_data = sqe->user_data;
	send->offset = sqe->offset;
	send->len_bytes = sqe->len_bytes;
	send->deadline_ns = sqe->deadline_ns;
	send->level = sqe->level;
	send->channel_id = sqe->channel;
	send->serial++;
	if (channel == NULL || channel->state == MRCD_CHANNEL_DOWN || channel->is_closing) {
		mrcd_send_answer(client, send, MRCD_NUMBER_NONE, MRC_STATUS_CLOSED, MRC_LEVEL_NONE);
		return;
	}
	if (channel->state == MRCD_CHANNEL_INCOMING) {
		mrcd_send_answer(client, send, MRCD_NUMBER_NONE, MRC_STATUS_INVALID,
				 MRC_LEVEL_NONE);
		return;
	}
	send->is_traced = false;
	if (__builtin_expect(channel->trace_every != 0, 0))
		send_trace(channel, send, sqe->stamp_ns);
	else if (--client->side->sample_left == 0)
		send_sample(client->side, send);
	send->state = MRCD_SEND_QUEUED;
	TAILQ_INSERT_TAIL(&channel->queue, send, entry);
	channel->queue_count++;
	mrcd_channel_feed(client, channel);
	if (send->state != MRCD_SEND_FREE && send->deadline_ns != 0) {
		client->deadline_ns = MRC_MIN(client->deadline_ns, send->deadline_ns);
		mrcd_client_side_arm(client->side, client->deadline_ns);
	}
}
