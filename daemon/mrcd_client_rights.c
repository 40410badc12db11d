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

static bool may(const struct mrcd_client *client, const struct mrcd_conf *conf, enum mrcd_use use,
		const char *name)
{
	const struct mrcd_conf_service *service = mrcd_conf_service(conf, name);

	return service != NULL && mrcd_conf_service_allows(service, use, &client->creds);
}

bool mrcd_client_may(const struct mrcd_client *client, enum mrcd_use use, const char *service)
{
	return may(client, client->side->worker->conf, use, service);
}

static bool listener_is_lost(const struct mrcd_client *client, const struct mrcd_conf *conf,
			     const struct mrcd_listener *listener)
{
	return listener->id != 0 && !may(client, conf, MRCD_USE_LISTEN, listener->service.name);
}

/* Many channels are of one service, and there may be rules for a thousand: the last answer. */
struct judged {
	const struct mrcd_channel *channel;
	enum mrcd_use use;
	bool may;
};

static bool channel_is_lost(const struct mrcd_client *client, const struct mrcd_conf *conf,
			    const struct mrcd_channel *channel, struct judged *last)
{
	enum mrcd_use use = channel->listener_id != 0 ? MRCD_USE_LISTEN : MRCD_USE_CONNECT;

	if (channel->state == MRCD_CHANNEL_FREE || channel->state == MRCD_CHANNEL_DOWN ||
	    channel->is_closing)
		return false;
	if (last->channel == NULL || use != last->use ||
	    strcmp(channel->service, last->channel->service) != 0)
		last->may = may(client, conf, use, channel->service);
	last->channel = channel;
	last->use = use;
	return !last->may;
}

static void hold_listeners(struct mrcd_client *client)
{
	for (uint32_t i = 0; i < client->listeners_max; i++) {
		struct mrcd_listener *listener = &client->listeners[i];
		uint32_t id;

		if (!listener_is_lost(client, client->side->worker->conf, listener))
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
	struct judged last = {0};
	uint32_t closed = 0;

	for (uint32_t i = 0; i < client->channels_max; i++) {
		struct mrcd_channel *channel = &client->channels[i];

		if (!channel_is_lost(client, client->side->worker->conf, channel, &last))
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

int mrcd_client_side_each_loss(const struct mrcd_client_side *side, const struct mrcd_conf *conf,
			       mrcd_client_loss_fn on_loss, void *context)
{
	int r = 0;

	for (uint32_t i = 0; i < side->slot_count && r == 0; i++) {
		const struct mrcd_client *client = side->clients[i];
		struct mrcd_client_loss loss = {0};
		struct judged last = {0};

		if (client == NULL || client->is_dead)
			continue;
		for (uint32_t l = 0; l < client->listeners_max; l++)
			loss.services += listener_is_lost(client, conf, &client->listeners[l]);
		for (uint32_t c = 0; c < client->channels_max; c++)
			loss.channels += channel_is_lost(client, conf, &client->channels[c], &last);
		if (loss.services + loss.channels == 0)
			continue;
		loss.client = client->name;
		loss.pid = client->creds.pid;
		loss.uid = client->creds.uid;
		r = on_loss(context, &loss);
	}
	return r;
}
