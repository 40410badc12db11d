/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_client_drain - what it means to programs that this host, or a peer's, is being drained
 *
 * They are told: of this host each program once, of a peer's on each open
 * channel to it. Of the client and of each channel one such entry may lie unread, which
 * is what the completion ring has room for; what has changed meanwhile is told
 * when it was read.
 *
 * A channel is open or it is not when the drain begins. One that is not, because the
 * peer or the program has not answered yet, is refused like those that come
 * later: it would keep the host from being drained for as long as nobody does.
 */
#include "mrcd_client_impl.h"
#include "mrcd_drain.h"

static void tell(struct mrcd_client *client, uint32_t channel_id, struct mrcd_drain_told *told,
		 bool is_draining)
{
	const struct mrc_cqe cqe = {
		.type = MRC_CQE_DRAIN,
		.flags = MRC_CQE_FLAG_TELL_VISIBLE,
		.channel = channel_id,
		.status = is_draining ? MRC_STATUS_DRAINING : MRC_STATUS_OK,
	};

	if (client->abi_version < MRCD_ABI_WITH_DRAIN || client->is_dead || told->is_unread ||
	    told->is_draining == is_draining)
		return;
	told->is_draining = is_draining;
	told->is_unread = true;
	mrcd_client_publish(client, &cqe, MRCD_TOLD_DRAIN);
}

void mrcd_client_tell_drain(struct mrcd_client *client)
{
	tell(client, 0, &client->drain, mrcd_drain_is_on(client->side->worker));
}

void mrcd_channel_tell_drain(struct mrcd_client *client, struct mrcd_channel *channel)
{
	if (channel->state == MRCD_CHANNEL_UP)
		tell(client, channel->id, &channel->drain, mrcd_peer_is_draining(channel->peer));
}

void mrcd_client_on_drain_seen(struct mrcd_client *client, uint32_t channel_id)
{
	uint32_t index = channel_id & ((1U << client->channel_bits) - 1);
	struct mrcd_channel *channel = &client->channels[index];

	if (channel_id == 0) {
		client->drain.is_unread = false;
		mrcd_client_tell_drain(client);
	} else if (channel->id == channel_id) {
		channel->drain.is_unread = false;
		mrcd_channel_tell_drain(client, channel);
	}
}

static void refuse_opening(struct mrcd_client *client, struct mrcd_channel *channel)
{
	struct mrc_event_in ev;

	if (channel->state == MRCD_CHANNEL_INCOMING) {
		mrcd_channel_refuse(client, channel, MRC_OUT_DRAINING, 0);
		mrcd_channel_end(client, channel, MRC_STATUS_DRAINING, 0);
	} else if (channel->state == MRCD_CHANNEL_CONNECTING) {
		mrcd_channel_event(client, channel, MRC_EV_CH_CLOSE, &ev);
		mrcd_client_side_tell(client->side, channel->peer, &ev);
		mrcd_channel_end(client, channel, MRC_STATUS_DRAINING, 0);
	}
}

void mrcd_client_side_drain(struct mrcd_client_side *side)
{
	bool is_draining = mrcd_drain_is_on(side->worker);

	for (uint32_t i = 0; i < side->slot_count; i++) {
		struct mrcd_client *client = side->clients[i];

		if (client == NULL || client->is_dead)
			continue;
		for (uint32_t c = 0; c < client->channels_max && is_draining; c++)
			refuse_opening(client, &client->channels[c]);
		mrcd_client_tell_drain(client);
	}
	mrcd_client_side_flush(side);
}

void mrcd_client_side_peer_drain(struct mrcd_client_side *side, const struct mrcd_peer *peer)
{
	for (uint32_t i = 0; i < side->slot_count; i++) {
		struct mrcd_client *client = side->clients[i];

		if (client == NULL || client->is_dead)
			continue;
		for (uint32_t c = 0; c < client->channels_max; c++) {
			if (client->channels[c].peer == peer)
				mrcd_channel_tell_drain(client, &client->channels[c]);
		}
	}
}

void mrcd_client_side_in_flight(const struct mrcd_client_side *side, uint64_t *messages_out,
				uint64_t *bytes_out)
{
	*messages_out = *bytes_out = 0;
	for (uint32_t i = 0; i < side->slot_count; i++) {
		const struct mrcd_client *client = side->clients[i];

		if (client == NULL || client->is_dead || client->send_count == 0)
			continue;
		*messages_out += client->send_count;
		for (uint32_t s = 0; s < client->sends_fresh; s++) {
			if (client->sends[s].state != MRCD_SEND_FREE)
				*bytes_out += client->sends[s].len_bytes;
		}
	}
}
