/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_client_poison - the hunt for writes into landing memory that is free (mrcd_poison.h)
 *
 * Buffers and whole rings are poisoned when both the client and the engine are
 * done with them, and looked at when they are taken again, or when the client
 * goes. Inside a ring there is no such moment: the peer writes as soon as the
 * engine has given it credit, which it does upon the release. So with `hold`
 * the engine learns of a release late: when the message's bytes have been
 * poison for MRCD_POISON_HOLD_NS, or when a quarter of the ring or of the
 * channel's window is held back like this. It makes programs slower that wait
 * for such a release and changes nothing else.
 *
 * Who writes late is never the client, which cannot write to this memory: it is
 * a device, a peer that has the key, or ourselves. A client is not ended for it.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "mrcd_client_impl.h"

void mrcd_client_side_poison_read(struct mrcd_client_side *side)
{
	const char *text = getenv("MRCD_POISON");
	struct mrcd_poison_mode *mode = &side->poison_mode;

	side->log_late = (struct mrcd_log_limit)MRCD_LOG_LIMIT_INIT(10 * MRC_S, 10);
	if (mrcd_poison_mode_read(text, mode) < 0) {
		mrcd_warn("MRCD_POISON='%s' is not understood; allowed: off, count, abort, hold",
			  text);
		mrcd_poison_mode_read(NULL, mode);
	}
	if (mode->is_on)
		mrcd_notice("released landing memory is poisoned; a late write is %s%s",
			    mode->is_fatal ? "the end" : "counted",
			    mode->is_held ? ", releases are held back" : "");
}

static void late_write(struct mrcd_client *client, uint64_t at)
{
	struct mrcd_client_side *side = client->side;
	uint64_t held_back;
	char more[MRCD_LOG_HELD_BACK_BYTES];

	client->late_writes++;
	side->late_writes++;
	if (mrcd_log_allowed(&side->log_late, side->worker->now_ns, &held_back))
		mrcd_err("client %s (pid %d): a late write landed in released memory, at offset "
			 "%" PRIu64 " of its landing arena: 0x%02x where 0x%02x was%s",
			 client->name, (int)client->creds.pid, at, client->landing.addr[at],
			 mrcd_poison_byte(at), mrcd_log_held_back(held_back, more));
	MRC_ASSERT(!side->poison_mode.is_fatal);
}

void mrcd_client_poison_fill(struct mrcd_client *client, uint64_t offset, uint64_t len_bytes)
{
	if (client->poison != NULL)
		mrcd_poison_fill(client->poison, offset, len_bytes);
}

void mrcd_client_poison_check(struct mrcd_client *client, uint64_t offset, uint64_t len_bytes)
{
	uint64_t at;

	if (client->poison != NULL && !mrcd_poison_take(client->poison, offset, len_bytes, &at))
		late_write(client, at);
}

/* ---- inside a ring ---- */

void mrcd_msg_poison_forget(struct mrcd_client *client, struct mrcd_channel *channel,
			    struct mrcd_msg *msg)
{
	uint64_t at;

	if (!msg->is_poisoned)
		return;
	TAILQ_REMOVE(&channel->poisoned, msg, want_entry);
	msg->is_poisoned = false;
	channel->poisoned_count--;
	channel->poisoned_bytes -= msg->len_bytes;
	client->side->poisoned_count--;
	if (!mrcd_poison_holds_bytes(client->poison, msg->addr, msg->len_bytes, &at))
		late_write(client, at);
}

/* The oldest has been held back for long enough. */
static void release_first(struct mrcd_client *client, struct mrcd_channel *channel)
{
	struct mrcd_msg *msg = TAILQ_FIRST(&channel->poisoned);
	struct mrc_event_in ev = {.kind = MRC_EV_RELEASE};

	ev.msg.channel = channel->engine_id;
	ev.msg.number = msg->number;
	ev.msg.visible_ns = msg->visible_ns;
	ev.msg.verdict_ns = msg->verdict_ns;
	mrcd_msg_give(client, channel, msg);
	if (!channel->is_engine_done)
		mrcd_client_side_tell(client->side, channel->peer, &ev);
}

void mrcd_channel_poison_end(struct mrcd_client *client, struct mrcd_channel *channel)
{
	while (channel->poisoned_count > 0)
		release_first(client, channel);
}

static void on_poison_timer(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_client_side *side = context;
	uint64_t now_ns = mrcd_worker_now(side->worker);

	for (uint32_t c = 0; c < side->slot_count; c++) {
		struct mrcd_client *client = side->clients[c];

		for (uint32_t i = 0; client != NULL && i < client->channels_max; i++) {
			struct mrcd_channel *channel = &client->channels[i];

			if (channel->poisoned_count == 0)
				continue;
			while (channel->poisoned_count > 0 &&
			       now_ns - TAILQ_FIRST(&channel->poisoned)->poisoned_ns >=
				       MRCD_POISON_HOLD_NS)
				release_first(client, channel);
			mrcd_channel_retire(client, channel);
		}
	}
	if (side->poisoned_count == 0)
		event_del(side->poison_event);
}

static bool timer_is_on(struct mrcd_client_side *side)
{
	struct timeval tick = {.tv_usec = MRCD_POISON_HOLD_NS / 8 / MRC_US};

	if (side->poison_event == NULL)
		side->poison_event =
			event_new(side->worker->base, -1, EV_PERSIST, on_poison_timer, side);
	return side->poison_event != NULL && (event_pending(side->poison_event, EV_TIMEOUT, NULL) ||
					      event_add(side->poison_event, &tick) == 0);
}

bool mrcd_client_poison_hold(struct mrcd_client *client, struct mrcd_channel *channel,
			     struct mrcd_msg *msg)
{
	struct mrcd_client_side *side = client->side;

	if (client->poison == NULL || !side->poison_mode.is_held || channel->is_engine_done ||
	    !timer_is_on(side))
		return false;
	mrcd_poison_fill_bytes(client->poison, msg->addr, msg->len_bytes);
	msg->is_poisoned = true;
	msg->poisoned_ns = side->worker->now_ns;
	TAILQ_INSERT_TAIL(&channel->poisoned, msg, want_entry);
	channel->poisoned_count++;
	channel->poisoned_bytes += msg->len_bytes;
	side->poisoned_count++;
	while (channel->poisoned_bytes > channel->ring_bytes / 4 ||
	       channel->poisoned_count > client->window / 4)
		release_first(client, channel);
	return true;
}
