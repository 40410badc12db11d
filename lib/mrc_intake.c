/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From completion entries to events.
 *
 * When is an arrival VISIBLE? When it was taken out of the ring, by mrc_poll()
 * for the program or by a blocking call that passes it on its way to its own
 * entry. The other choice, to leave the head behind arrivals of other
 * channels, would let one channel nobody reads stop all channels of the client
 * once the ring is full of its arrivals. So VISIBLE says that the receiving
 * program's library holds the message; that the program has looked at it is
 * what COMMITTED is for, and a message that is never handed to the program is
 * rejected (mrc_msg_turn_away), never committed.
 */
#include "mrc_client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

void mrc_client_park(struct mrc_client *client, struct mrc_parked *parked, enum mrc_event_type type)
{
	parked->type = type;
	mrc_list_append(&client->parked, &parked->node);
}

/* The daemon is broken: believe nothing more. */
static void __attribute__((format(printf, 2, 3)))
breach(struct mrc_client *client, const char *format, ...)
{
	static const char lead[] = "the daemon broke the ring protocol: ";
	char text[MRC_ERROR_TEXT_BYTES];
	va_list args;
	int len = snprintf(text, sizeof(text), "%s", lead);

	va_start(args, format);
	vsnprintf(text + len, sizeof(text) - (size_t)len, format, args);
	va_end(args);
	mrc_client_bury(client, text);
}

static void take_listening(struct mrc_client *client, const struct mrc_cqe *cqe)
{
	struct mrc_listener *listener = NULL;

	for (struct mrc_list *at = client->listeners.next; at != &client->listeners;
	     at = at->next) {
		listener = MRC_CONTAINER_OF(at, struct mrc_listener, in_client);
		if (!listener->is_answered && listener->request == cqe->user_data)
			break;
		listener = NULL;
	}
	if (!listener || cqe->status > 0) {
		breach(client, "LISTENING answers no request of ours");
		return;
	}
	listener->is_answered = true;
	listener->status = cqe->status;
	listener->id = cqe->channel;
	if (listener->is_freed)
		mrc_listener_reap(listener);
	else
		mrc_client_park(client, &listener->parked, MRC_EVENT_LISTENING);
}

static struct mrc_listener *listener_find(struct mrc_client *client, uint64_t id)
{
	for (struct mrc_list *at = client->listeners.next; at != &client->listeners;
	     at = at->next) {
		struct mrc_listener *listener =
			MRC_CONTAINER_OF(at, struct mrc_listener, in_client);

		if (listener->is_answered && listener->status == MRC_STATUS_OK &&
		    !listener->is_freed && listener->id == id)
			return listener;
	}
	return NULL;
}

/* May this be the id of one more channel? */
static bool id_is_new(struct mrc_client *client, uint32_t id)
{
	if (mrc_channel_find(client, id)) {
		breach(client, "channel %u exists already", id);
		return false;
	}
	if (client->ids_count >= client->channels_max) {
		breach(client, "more than %u channels", client->channels_max);
		return false;
	}
	return true;
}

static void take_incoming(struct mrc_client *client, const struct mrc_cqe *cqe)
{
	struct mrc_listener *listener = listener_find(client, cqe->number);
	struct mrc_channel *channel;

	if (!id_is_new(client, cqe->channel))
		return;
	channel = mrc_channel_new(client, MRC_CHANNEL_INCOMING);
	if (!channel) {
		mrc_client_bury(client, "no memory for an incoming channel");
		return;
	}
	mrc_channel_set_id(channel, cqe->channel);
	channel->is_unordered = cqe->flags & MRC_CQE_FLAG_UNORDERED;
	channel->is_unchecked = cqe->flags & MRC_CQE_FLAG_UNCHECKED;
	if (!listener) {
		/* It met our UNLISTEN on the way. */
		channel->is_freed = true;
		mrc_client_submit_later(client, &channel->pending, MRC_SQE_REFUSE);
		return;
	}
	channel->listener = listener;
	mrc_list_append(&listener->incoming, &channel->in_listener);
	mrc_client_park(client, &channel->parked, MRC_EVENT_INCOMING);
}

static struct mrc_channel *connecting_find(struct mrc_client *client, uint64_t request)
{
	for (struct mrc_list *at = client->channels.next; at != &client->channels; at = at->next) {
		struct mrc_channel *channel = MRC_CONTAINER_OF(at, struct mrc_channel, in_client);

		if (channel->state == MRC_CHANNEL_CONNECTING && channel->request == request)
			return channel;
	}
	return NULL;
}

static void take_connected(struct mrc_client *client, const struct mrc_cqe *cqe)
{
	bool is_accept = cqe->user_data == 0;
	struct mrc_channel *channel = is_accept ? mrc_channel_find(client, cqe->channel)
						: connecting_find(client, cqe->user_data);

	if (!channel || cqe->status > 0 || (is_accept && channel->state != MRC_CHANNEL_ACCEPTING)) {
		breach(client, "CONNECTED answers no request of ours");
		return;
	}
	channel->status = cqe->status;
	channel->code = cqe->code;
	if (cqe->status != MRC_STATUS_OK) {
		channel->state = MRC_CHANNEL_CLOSED;
		mrc_channel_drop_id(channel);
		if (channel->is_freed || mrc_list_is_linked(&channel->in_listener))
			mrc_channel_destroy(channel);
		else
			mrc_client_park(client, &channel->parked, MRC_EVENT_CONNECTED);
		return;
	}
	if (!is_accept) {
		if (!id_is_new(client, cqe->channel))
			return;
		mrc_channel_set_id(channel, cqe->channel);
		channel->is_unordered = cqe->flags & MRC_CQE_FLAG_UNORDERED;
		channel->is_unchecked = cqe->flags & MRC_CQE_FLAG_UNCHECKED;
	}
	channel->state = MRC_CHANNEL_OPEN;
	channel->message_bytes_max = cqe->len_bytes < client->message_bytes_max
					     ? cqe->len_bytes
					     : client->message_bytes_max;
	/* One that mrc_accept() took is found by it in the listener's list. */
	if (!channel->is_freed && !mrc_list_is_linked(&channel->in_listener))
		mrc_client_park(client, &channel->parked, MRC_EVENT_CONNECTED);
	if (channel->is_close_wanted)
		mrc_channel_ask_close(channel);
}

static void take_sent(struct mrc_client *client, const struct mrc_cqe *cqe, const char *text)
{
	struct mrc_send_op *op = mrc_send_op_find(client, cqe->user_data);

	if (!op || !op->is_unanswered || op->channel_id != cqe->channel) {
		breach(client, "SENT on channel %u answers no send of ours", cqe->channel);
		return;
	}
	if (cqe->status > 0 || cqe->level > MRC_LEVEL_COMMITTED ||
	    (cqe->status == MRC_STATUS_OK && cqe->level < op->level_wanted) ||
	    (cqe->flags & MRC_CQE_FLAG_UNDECIDED &&
	     (cqe->status != MRC_STATUS_TIMED_OUT || cqe->level < MRC_LEVEL_PLACED))) {
		breach(client, "SENT on channel %u says status %d at level %u", cqe->channel,
		       cqe->status, cqe->level);
		return;
	}
	op->status = cqe->status;
	op->level = (enum mrc_level)cqe->level;
	op->code = cqe->code;
	op->number = cqe->number;
	if (op->status == MRC_STATUS_REJECTED)
		mrc_text_copy(op->text, text);
	op->is_unanswered = false;
	op->is_undecided = cqe->flags & MRC_CQE_FLAG_UNDECIDED;
	mrc_list_remove(&op->in_client);
	if (op->is_undecided)
		mrc_list_append(&client->sends_undecided, &op->in_client);
	if (!op->channel) {
		if (!op->is_undecided)
			mrc_send_op_free(client, op);
		return;
	}
	op->channel->sends_unanswered--;
	if (op->status == MRC_STATUS_TIMED_OUT && op->number != MRC_ABI_NUMBER_NONE)
		mrc_outcome_add(op->channel, op);
	mrc_client_park(client, &op->parked, MRC_EVENT_SENT);
	if (op->channel->is_end_held && op->channel->sends_unanswered == 0) {
		op->channel->is_end_held = false;
		mrc_client_park(client, &op->channel->parked_end, MRC_EVENT_CLOSED);
	}
}

/* The end of a send whose deadline had passed. */
static void op_decide(struct mrc_client *client, struct mrc_send_op *op, int status,
		      enum mrc_level level, uint32_t code, const char *text)
{
	op->is_undecided = false;
	mrc_list_remove(&op->in_client);
	if (op->channel)
		mrc_outcome_decide(op->channel, op->number, status, level, code, text);
	if (!mrc_list_is_linked(&op->parked.node)) /* else its answer is still to be taken */
		mrc_send_op_free(client, op);
}

static void take_late(struct mrc_client *client, const struct mrc_cqe *cqe, const char *text)
{
	struct mrc_send_op *op = mrc_send_op_find(client, cqe->user_data);

	if (!op || !op->is_undecided || op->channel_id != cqe->channel ||
	    op->number != cqe->number) {
		breach(client, "LATE on channel %u is about no send of ours", cqe->channel);
		return;
	}
	if (cqe->status > 0 || cqe->level > MRC_LEVEL_COMMITTED || cqe->level < op->level ||
	    (cqe->status == MRC_STATUS_OK && cqe->level < op->level_wanted)) {
		breach(client, "LATE on channel %u says status %d at level %u", cqe->channel,
		       cqe->status, cqe->level);
		return;
	}
	op_decide(client, op, cqe->status, (enum mrc_level)cqe->level, cqe->code,
		  cqe->status == MRC_STATUS_REJECTED ? text : NULL);
}

/* The channel an arrival or a gap is for; NULL after a breach. */
static struct mrc_channel *receiving_find(struct mrc_client *client, const struct mrc_cqe *cqe)
{
	struct mrc_channel *channel = mrc_channel_find(client, cqe->channel);

	if (!channel || channel->state == MRC_CHANNEL_INCOMING) {
		breach(client, "message %llu for channel %u, which is not open",
		       (unsigned long long)cqe->number, cqe->channel);
		return NULL;
	}
	if (!channel->is_unordered) {
		if (cqe->number < channel->number_next) {
			breach(client, "message %llu on channel %u is out of order",
			       (unsigned long long)cqe->number, cqe->channel);
			return NULL;
		}
		channel->number_next = cqe->number + 1;
	}
	return channel;
}

static void take_arrived(struct mrc_client *client, const struct mrc_cqe *cqe)
{
	struct mrc_channel *channel;
	struct mrc_msg *msg;

	if (cqe->len_bytes > client->landing_arena.len_bytes ||
	    cqe->offset > client->landing_arena.len_bytes - cqe->len_bytes) {
		breach(client, "message %llu of channel %u lies outside the landing arena",
		       (unsigned long long)cqe->number, cqe->channel);
		return;
	}
	channel = receiving_find(client, cqe);
	if (!channel)
		return;
	msg = mrc_msg_new(client);
	if (!msg) {
		breach(client, "more than %u messages not released", client->msgs_max);
		return;
	}
	msg->channel = channel;
	msg->channel_id = cqe->channel;
	msg->number = cqe->number;
	msg->offset = cqe->offset;
	msg->len_bytes = cqe->len_bytes;
	if (cqe->flags & MRC_CQE_FLAG_TRACED)
		msg->visible_ns = mrc_now_ns();
	if (channel->is_unread) {
		mrc_msg_turn_away(msg);
		return;
	}
	mrc_list_append(&channel->inbox, &msg->in_channel);
	mrc_client_park(client, &msg->parked, MRC_EVENT_RECEIVED);
}

static void take_gap(struct mrc_client *client, const struct mrc_cqe *cqe)
{
	struct mrc_channel *channel = receiving_find(client, cqe);
	struct mrc_msg *msg;

	/* With so many parked nobody has taken anything for long. The numbers of later messages
	 * tell of it too. */
	if (!channel || channel->is_unread || client->gaps_count == MRC_GAPS_MAX)
		return;
	msg = mrc_msg_new(client);
	if (!msg)
		return;
	client->gaps_count++;
	msg->is_gap = true;
	msg->channel = channel;
	msg->channel_id = cqe->channel;
	msg->number = cqe->number;
	mrc_list_append(&channel->inbox, &msg->in_channel);
	mrc_client_park(client, &msg->parked, MRC_EVENT_GAP);
}

static void take_closed(struct mrc_client *client, const struct mrc_cqe *cqe)
{
	struct mrc_channel *channel = mrc_channel_find(client, cqe->channel);
	enum mrc_channel_state state;

	/* One we have refused may have ended by itself while our REFUSE was on its way. */
	if (!channel)
		return;
	if (cqe->status > 0) {
		breach(client, "channel %u closed with status %d", cqe->channel, cqe->status);
		return;
	}
	state = channel->state;
	channel->state = MRC_CHANNEL_CLOSED;
	channel->status = cqe->status;
	channel->code = cqe->code;
	mrc_channel_drop_id(channel);
	mrc_list_remove(&channel->pending.node);
	mrc_list_remove(&channel->pending_close.node);
	/* One that mrc_accept() is just taking was never the program's. */
	if (channel->is_freed ||
	    (state == MRC_CHANNEL_ACCEPTING && mrc_list_is_linked(&channel->in_listener)))
		mrc_channel_destroy(channel);
	else if (channel->sends_unanswered > 0)
		channel->is_end_held =
			true; /* sends crossed with it in the rings: their answers come first */
	else
		mrc_client_park(client, &channel->parked_end, MRC_EVENT_CLOSED);
}

static void take_batch(struct mrc_client *client, const struct mrc_cqe *cqe)
{
	if (client->batch_request == 0 || cqe->user_data != client->batch_request ||
	    cqe->status > 0) {
		breach(client, "BATCH answers no request of ours");
		return;
	}
	client->batch_request = 0;
	client->batch_status = cqe->status;
}

/* An event is parked once, and says how things are when it is taken: only a change is one. */
static void take_drain(struct mrc_client *client, const struct mrc_cqe *cqe)
{
	struct mrc_channel *channel = cqe->channel ? mrc_channel_find(client, cqe->channel) : NULL;
	bool *is_draining = channel ? &channel->is_draining : &client->is_draining;
	struct mrc_parked *parked = channel ? &channel->parked_drain : &client->parked_drain;
	bool is_now = cqe->status == MRC_STATUS_DRAINING;

	if ((cqe->channel && !channel) || (!is_now && cqe->status != MRC_STATUS_OK)) {
		breach(client, "DRAIN of channel %u with status %d", cqe->channel, cqe->status);
		return;
	}
	if (*is_draining == is_now)
		return;
	*is_draining = is_now;
	if (mrc_list_is_linked(&parked->node)) /* there and back untold is no news */
		mrc_list_remove(&parked->node);
	else if (!channel || !channel->is_freed)
		mrc_client_park(client, parked, MRC_EVENT_DRAIN);
}

/* The program may have closed it meanwhile. */
static void take_unlistened(struct mrc_client *client, const struct mrc_cqe *cqe)
{
	struct mrc_listener *listener = listener_find(client, cqe->channel);

	if (cqe->status >= MRC_STATUS_OK) {
		breach(client, "UNLISTENED with status %d", cqe->status);
		return;
	}
	if (!listener)
		return;
	listener->status = cqe->status;
	/* Else the program has not seen it begin. */
	if (!mrc_list_is_linked(&listener->parked.node))
		mrc_client_park(client, &listener->parked, MRC_EVENT_LISTENING);
}

int mrc_client_take_in(struct mrc_client *client)
{
	char text[MRC_REASON_BYTES_MAX + 1];
	struct mrc_cqe cqe;
	int r;

	if (client->is_gone)
		return 0;
	r = mrc_ring_take(&client->ring, &cqe, text);
	if (r < 0) {
		breach(client, "impossible tail or text of the completion ring");
		return 1;
	}
	if (r == 0)
		return 0;
	text[cqe.text_len] = 0;
	switch (cqe.type) {
	case MRC_CQE_LISTENING:
		take_listening(client, &cqe);
		break;
	case MRC_CQE_INCOMING:
		take_incoming(client, &cqe);
		break;
	case MRC_CQE_CONNECTED:
		take_connected(client, &cqe);
		break;
	case MRC_CQE_SENT:
		take_sent(client, &cqe, text);
		break;
	case MRC_CQE_LATE:
		take_late(client, &cqe, text);
		break;
	case MRC_CQE_ARRIVED:
		take_arrived(client, &cqe);
		break;
	case MRC_CQE_CLOSED:
		take_closed(client, &cqe);
		break;
	case MRC_CQE_GAP:
		take_gap(client, &cqe);
		break;
	case MRC_CQE_BATCH:
		take_batch(client, &cqe);
		break;
	case MRC_CQE_DRAIN:
		take_drain(client, &cqe);
		break;
	case MRC_CQE_UNLISTENED:
		take_unlistened(client, &cqe);
		break;
	default:
		breach(client, "completion of unknown type %u", cqe.type);
		break;
	}
	return 1;
}

static void bury_channel(struct mrc_client *client, struct mrc_channel *channel)
{
	enum mrc_channel_state state = channel->state;

	mrc_channel_drop_id(channel);
	/* One that mrc_accept() is just taking was never the program's. */
	if (channel->is_freed ||
	    (state == MRC_CHANNEL_ACCEPTING && mrc_list_is_linked(&channel->in_listener))) {
		mrc_channel_destroy(channel);
		return;
	}
	if (state == MRC_CHANNEL_CLOSED) {
		if (channel->is_end_held) {
			channel->is_end_held = false;
			channel->sends_unanswered = 0;
			mrc_client_park(client, &channel->parked_end, MRC_EVENT_CLOSED);
		}
		return;
	}
	channel->state = MRC_CHANNEL_CLOSED;
	channel->status = MRC_STATUS_DETACHED;
	channel->code = 0;
	channel->sends_unanswered = 0;
	if (state == MRC_CHANNEL_CONNECTING || state == MRC_CHANNEL_ACCEPTING)
		mrc_client_park(client, &channel->parked, MRC_EVENT_CONNECTED);
	else
		mrc_client_park(client, &channel->parked_end, MRC_EVENT_CLOSED);
}

void mrc_client_bury(struct mrc_client *client, const char *why)
{
	struct mrc_list *at;
	struct mrc_list *next;

	if (client->is_gone)
		return;
	client->is_gone = true;
	client->is_room_wanted = false;
	mrc_client_set_error(client, "%s", why);
	/* If it still runs it shall know that we are through with it. */
	mrc_wake_drop_socket(client->wake);
	shutdown(client->socket_fd, SHUT_RDWR);

	mrc_client_flush(client); /* with the daemon gone: only frees what waited */
	while (!mrc_list_is_empty(&client->sends_unanswered)) {
		struct mrc_send_op *op = MRC_CONTAINER_OF(client->sends_unanswered.next,
							  struct mrc_send_op, in_client);

		mrc_list_remove(&op->in_client);
		op->is_unanswered = false;
		op->status = MRC_STATUS_DETACHED;
		op->level = MRC_LEVEL_NONE;
		if (op->channel)
			mrc_client_park(client, &op->parked, MRC_EVENT_SENT);
		else
			mrc_send_op_free(client, op);
	}
	while (!mrc_list_is_empty(&client->sends_undecided)) {
		struct mrc_send_op *op = MRC_CONTAINER_OF(client->sends_undecided.next,
							  struct mrc_send_op, in_client);

		op_decide(client, op, MRC_STATUS_DETACHED, op->level, 0, NULL);
	}
	for (at = client->listeners.next; at != &client->listeners; at = next) {
		struct mrc_listener *listener =
			MRC_CONTAINER_OF(at, struct mrc_listener, in_client);

		next = at->next;
		if (listener->is_answered)
			continue;
		listener->is_answered = true;
		listener->status = MRC_STATUS_DETACHED;
		if (listener->is_freed)
			mrc_listener_destroy(listener);
		else
			mrc_client_park(client, &listener->parked, MRC_EVENT_LISTENING);
	}
	for (at = client->channels.next; at != &client->channels; at = next) {
		next = at->next;
		bury_channel(client, MRC_CONTAINER_OF(at, struct mrc_channel, in_client));
	}
	mrc_client_park(client, &client->parked_detached, MRC_EVENT_DETACHED);
}

bool mrc_client_unpark(struct mrc_client *client, struct mrc_event *event_out)
{
	struct mrc_channel *channel;
	struct mrc_listener *listener;
	struct mrc_parked *parked;
	struct mrc_msg *msg;

	if (mrc_list_is_empty(&client->parked))
		return false;
	parked = MRC_CONTAINER_OF(client->parked.next, struct mrc_parked, node);
	mrc_list_remove(&parked->node);
	*event_out = (struct mrc_event){.type = parked->type};
	switch (parked->type) {
	case MRC_EVENT_LISTENING:
		listener = MRC_CONTAINER_OF(parked, struct mrc_listener, parked);
		event_out->listener = listener;
		event_out->status = listener->status;
		event_out->user = listener->user;
		break;
	case MRC_EVENT_INCOMING:
		channel = MRC_CONTAINER_OF(parked, struct mrc_channel, parked);
		event_out->channel = channel;
		event_out->listener = channel->listener;
		channel->listener = NULL;
		mrc_list_remove(&channel->in_listener);
		break;
	case MRC_EVENT_CONNECTED:
		channel = MRC_CONTAINER_OF(parked, struct mrc_channel, parked);
		event_out->channel = channel;
		/* If it ended meanwhile, its status is that of the CLOSED that follows. */
		event_out->status = mrc_list_is_linked(&channel->parked_end.node) ? MRC_STATUS_OK
										  : channel->status;
		event_out->code = event_out->status ? channel->code : 0;
		event_out->user = channel->user;
		break;
	case MRC_EVENT_SENT:
		mrc_send_op_event(MRC_CONTAINER_OF(parked, struct mrc_send_op, parked), event_out);
		break;
	case MRC_EVENT_RECEIVED:
		msg = MRC_CONTAINER_OF(parked, struct mrc_msg, parked);
		mrc_list_remove(&msg->in_channel);
		mrc_list_append(&msg->channel->held, &msg->in_channel);
		event_out->channel = msg->channel;
		event_out->number = msg->number;
		event_out->msg = msg;
		break;
	case MRC_EVENT_CLOSED:
		channel = MRC_CONTAINER_OF(parked, struct mrc_channel, parked_end);
		event_out->channel = channel;
		event_out->status = channel->status;
		event_out->code = channel->code;
		break;
	case MRC_EVENT_GAP:
		msg = MRC_CONTAINER_OF(parked, struct mrc_msg, parked);
		event_out->channel = msg->channel;
		event_out->number = msg->number;
		mrc_msg_free(msg);
		break;
	case MRC_EVENT_DETACHED:
		client->is_gone_taken = true;
		break;
	case MRC_EVENT_DRAIN:
		channel = parked == &client->parked_drain
				  ? NULL
				  : MRC_CONTAINER_OF(parked, struct mrc_channel, parked_drain);
		event_out->channel = channel;
		event_out->status = (channel ? channel->is_draining : client->is_draining)
					    ? MRC_STATUS_DRAINING
					    : MRC_STATUS_OK;
		break;
	}
	return true;
}
