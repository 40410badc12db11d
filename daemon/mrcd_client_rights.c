/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_client_rights - rules that have changed, held against what clients have
 *
 * A right is asked for where something begins: LISTEN, CONNECT. A daemon that goes
 * on with another configuration has to ask again.
 */
#include <string.h>

#include "mrcd_client_impl.h"

/*
 * That a listener is over. It takes an answer's place, and what a program asks for itself shall
 * find one, too: beyond half of them it learns it when it listens again.
 */
static void tell_unlistened(struct mrcd_client *client, uint32_t id)
{
	const struct mrc_cqe cqe = {
		.type = MRC_CQE_UNLISTENED,
		.channel = id,
		.status = MRC_STATUS_NOT_ALLOWED,
	};

	if (client->abi_version < MRCD_ABI_WITH_DRAIN)
		return;
	if (client->answers_unread >= MRCD_ANSWERS_MAX / 2)
		mrcd_client_take_seen(client, UINT32_MAX);
	if (client->answers_unread < MRCD_ANSWERS_MAX / 2 && !client->is_dead)
		mrcd_client_publish(client, &cqe, MRCD_TOLD_ANSWER);
}

static void hold_listeners(struct mrcd_client *client)
{
	for (uint32_t i = 0; i < client->listeners_max; i++) {
		struct mrcd_listener *listener = &client->listeners[i];
		uint32_t id;

		if (listener->id == 0 ||
		    mrcd_client_may(client, MRCD_USE_LISTEN, listener->service.name))
			continue;
		mrcd_warn("client %s (pid %d, uid %d): may not offer service %s any more: taken "
			  "from it",
			  client->name, (int)client->creds.pid, (int)client->creds.uid,
			  listener->service.name);
		id = listener->id;
		mrcd_listener_close(client, listener);
		tell_unlistened(client, id);
	}
}

static void hold_channels(struct mrcd_client *client)
{
	/* Many channels are of one service, and there may be rules for a thousand. */
	const struct mrcd_channel *last = NULL;
	enum mrcd_use use, last_use = MRCD_USE_LISTEN;
	bool may = false;
	uint32_t closed = 0;

	for (uint32_t i = 0; i < client->channels_max; i++) {
		struct mrcd_channel *channel = &client->channels[i];

		if (channel->state == MRCD_CHANNEL_FREE || channel->state == MRCD_CHANNEL_DOWN ||
		    channel->is_closing)
			continue;
		use = channel->listener_id != 0 ? MRCD_USE_LISTEN : MRCD_USE_CONNECT;
		if (last == NULL || use != last_use || strcmp(channel->service, last->service) != 0)
			may = mrcd_client_may(client, use, channel->service);
		last = channel;
		last_use = use;
		if (may)
			continue;
		mrcd_channel_close(client, channel);
		closed++;
	}
	if (closed > 0)
		mrcd_warn("client %s (pid %d, uid %d): has no right any more to services of %u of "
			  "its channels: closed",
			  client->name, (int)client->creds.pid, (int)client->creds.uid, closed);
}

void mrcd_client_side_hold_to_rules(struct mrcd_client_side *side)
{
	for (uint32_t i = 0; i < side->slot_count; i++) {
		struct mrcd_client *client = side->clients[i];

		if (client == NULL || client->is_dead)
			continue;
		hold_listeners(client);
		hold_channels(client);
	}
	mrcd_client_side_flush(side);
}
