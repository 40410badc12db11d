/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_client_save - the client side comes to rest, and becomes bytes and descriptors for the next daemon
 *
 * Paused, nothing is read: what clients go on putting into their rings and
 * sockets lies there for whoever reads next, from the positions that are saved.
 * The engines still speak, and clients are told. A dead client is not saved: to
 * an engine whose client has gone nothing is lost when nobody answers to its
 * name, and the slot's generation keeps that name from the next one.
 *
 * Not saved: messages that wait for a buffer (the engine asks again), who waits
 * for a quota (he will again), and what is traced. mrcd_client_restore.c reads what is written here, field by field.
 */
#include <errno.h>
#include <string.h>

#include "mrcd_client_impl.h"

/* ---- coming to rest ---- */

void mrcd_client_side_pause(struct mrcd_client_side *side)
{
	struct mrcd_pending *pending;

	side->is_paused = true;
	event_del(side->listen_event);
	event_del(side->listen_retry_event);
	event_del(side->turn_event);
	event_del(side->deadline_event);
	TAILQ_FOREACH(pending, &side->pendings, entry)
	event_del(pending->event);
	for (uint32_t i = 0; i < side->slot_count; i++) {
		struct mrcd_client *client = side->clients[i];

		if (client == NULL || client->is_apart)
			continue;
		event_del(client->socket_event);
		event_del(client->bell_event);
		mrcd_lookout_remove(side->worker->lookout, client->bell_fd);
		if (client->is_dead)
			continue;
		for (uint32_t c = 0; c < client->channels_max; c++)
			mrcd_channel_poison_end(client, &client->channels[c]);
		__atomic_store_n(&client->shm->state, MRC_RING_STATE_PAUSED, __ATOMIC_RELEASE);
	}
	if (side->poison_event != NULL)
		event_del(side->poison_event);
}

void mrcd_client_side_leave(struct mrcd_client_side *side)
{
	side->is_left = true;
	side->path[0] = 0; /* what listens there goes on listening */
}

/* ---- descriptors ---- */

static void client_parcel(const struct mrcd_client *client, struct mrcd_parcel *parcel_out)
{
	*parcel_out = (struct mrcd_parcel){
		.kind = MRCD_PARCEL_CLIENT,
		.index = client->index,
		.fd_count = MRCD_CLIENT_FD_COUNT,
		.fds =
			{
				[MRCD_CLIENT_FD_SOCKET] = client->fd,
				[MRCD_CLIENT_FD_BELL] = client->bell_fd,
				[MRCD_CLIENT_FD_CLIENT_BELL] = client->client_bell_fd,
				[MRCD_CLIENT_FD_CLIENT_BELL_READ] = client->client_bell_read_fd,
				[MRCD_CLIENT_FD_RINGS] = client->rings.fd,
				[MRCD_CLIENT_FD_SEND_ARENA] = client->send_arena.fd,
				[MRCD_CLIENT_FD_LANDING] = client->landing.fd,
			},
	};
}

static int put_fd(struct mrcd_bundle *bundle, enum mrcd_parcel_kind kind, int fd)
{
	const struct mrcd_parcel parcel = {.kind = kind, .fd_count = 1, .fds = {fd}};

	return mrcd_bundle_put(bundle, &parcel);
}

/* Its end is its own, whatever the reason: those that were put before it go on. */
static void client_cannot_be_packed(struct mrcd_client *client, int r)
{
	const char *why = strerror(-r);

	if (r == -ETOOMANYREFS)
		why = "the kernel lets this user have no more on their way (LimitNOFILE=)";
	else if (r == -ENOSPC)
		why = "the service manager keeps no more (FileDescriptorStoreMax=)";
	mrcd_client_break(client, "its descriptors cannot be passed to the next daemon: %s", why);
}

int mrcd_client_side_pack(struct mrcd_client_side *side, struct mrcd_bundle *bundle)
{
	struct mrcd_pending *pending;
	struct mrcd_parcel parcel;
	int r;

	if (side->path[0] != 0) {
		r = put_fd(bundle, MRCD_PARCEL_LISTEN, side->listen_fd);
		if (r < 0)
			return r;
	}
	for (uint32_t i = 0; i < side->slot_count; i++) {
		struct mrcd_client *client = side->clients[i];

		if (client == NULL || client->is_dead)
			continue;
		client_parcel(client, &parcel);
		r = mrcd_bundle_put(bundle, &parcel);
		if (r < 0)
			client_cannot_be_packed(client, r);
	}
	/* Who has said nothing yet has nothing to lose: after the others, and he may try again. */
	TAILQ_FOREACH(pending, &side->pendings, entry)
	put_fd(bundle, MRCD_PARCEL_PENDING, pending->fd);
	return 0;
}

/* ---- state ---- */

static void save_listeners(const struct mrcd_client *client, struct mrcd_image_out *out)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < client->listeners_max; i++)
		count += client->listeners[i].serial != 0;
	mrcd_image_put(out, count);
	for (uint32_t i = 0; i < client->listeners_max; i++) {
		const struct mrcd_listener *listener = &client->listeners[i];

		if (listener->serial == 0)
			continue;
		mrcd_image_put(out, i);
		mrcd_image_put(out, listener->serial);
		mrcd_image_put(out, listener->id);
		mrcd_image_put_name(out, listener->id != 0 ? listener->service.name : "");
	}
}

static uint64_t peer_number(struct mrcd_peer *const *peers, uint32_t peer_count,
			    const struct mrcd_peer *peer)
{
	uint32_t i = 0;

	while (i < peer_count && peers[i] != peer)
		i++;
	MRC_ASSERT(i < peer_count);
	return i;
}

static void save_channel(const struct mrcd_client *client, const struct mrcd_channel *channel,
			 struct mrcd_peer *const *peers, uint32_t peer_count,
			 struct mrcd_image_out *out)
{
	const struct mrcd_send *send;

	mrcd_image_put(out, peer_number(peers, peer_count, channel->peer));
	mrcd_image_put(out, channel->engine_id);
	mrcd_image_put(out, channel->listener_id);
	mrcd_image_put(out, channel->user_data);
	mrcd_image_put(out, channel->ring_offset);
	mrcd_image_put(out, channel->ring_bytes);
	mrcd_image_put(out, channel->is_unordered);
	mrcd_image_put(out, channel->is_unchecked);
	mrcd_image_put(out, channel->is_closing);
	mrcd_image_put(out, channel->is_close_told);
	mrcd_image_put(out, channel->is_engine_done);
	mrcd_image_put(out, channel->is_last_unread);
	mrcd_image_put(out, channel->drain.is_draining);
	mrcd_image_put(out, channel->drain.is_unread);
	mrcd_image_put(out, channel->gaps_unread);
	mrcd_image_put(out, channel->number_end);
	mrcd_image_put_name(out, channel->service);
	mrcd_image_put(out, channel->queue_count);
	TAILQ_FOREACH(send, &channel->queue, entry)
	mrcd_image_put(out, (uint64_t)(send - client->sends));
}

static void save_channels(const struct mrcd_client *client, struct mrcd_peer *const *peers,
			  uint32_t peer_count, struct mrcd_image_out *out)
{
	uint32_t count = 0;

	/* A slot that was ever used has given away ids, which no other channel may get. */
	for (uint32_t i = 0; i < client->channels_max; i++)
		count += client->channels[i].serial != 0;
	mrcd_image_put(out, count);
	for (uint32_t i = 0; i < client->channels_max; i++) {
		const struct mrcd_channel *channel = &client->channels[i];

		if (channel->serial == 0)
			continue;
		mrcd_image_put(out, i);
		mrcd_image_put(out, channel->serial);
		mrcd_image_put(out, channel->state);
		if (channel->state != MRCD_CHANNEL_FREE)
			save_channel(client, channel, peers, peer_count, out);
	}
}

static void save_sends(const struct mrcd_client *client, struct mrcd_image_out *out)
{
	mrcd_image_put(out, client->sends_fresh);
	mrcd_image_put(out, client->send_count);
	for (uint32_t i = 0; i < client->sends_fresh; i++) {
		const struct mrcd_send *send = &client->sends[i];

		if (send->state == MRCD_SEND_FREE)
			continue;
		mrcd_image_put(out, i);
		mrcd_image_put(out, send->state);
		mrcd_image_put(out, send->serial);
		mrcd_image_put(out, send->channel_id);
		mrcd_image_put(out, send->user_data);
		mrcd_image_put(out, send->offset);
		mrcd_image_put(out, send->len_bytes);
		mrcd_image_put(out, send->deadline_ns);
		mrcd_image_put(out, send->number);
		mrcd_image_put(out, send->level);
		mrcd_image_put(out, send->is_held);
	}
}

static void save_msg(const struct mrcd_msg *msg, struct mrcd_image_out *out)
{
	mrcd_image_put(out, msg->number);
	mrcd_image_put(out, msg->state);
	mrcd_image_put(out, msg->addr);
	mrcd_image_put(out, msg->len_bytes);
	mrcd_image_put(out, msg->is_eager);
	mrcd_image_put(out, msg->is_engine_done);
	mrcd_image_put(out, msg->visible_ns);
	mrcd_image_put(out, msg->verdict_ns);
}

static void save_msgs(const struct mrcd_client *client, struct mrcd_image_out *out)
{
	uint32_t batch_count = 0;

	for (uint32_t i = 0; i < client->channels_max; i++) {
		const struct mrcd_channel *channel = &client->channels[i];
		uint32_t count = 0;

		if (channel->state == MRCD_CHANNEL_FREE)
			continue;
		for (int is_writing = 0; is_writing < 2; is_writing++) {
			for (uint32_t b = 0; b < client->window; b++) {
				const struct mrcd_msg *msg =
					client->buckets[(uint64_t)i * client->window + b];

				for (; msg != NULL; msg = msg->next) {
					if (msg->state == MRCD_MSG_WANTED)
						continue;
					if (is_writing)
						save_msg(msg, out);
					else
						count++;
				}
			}
			if (!is_writing)
				mrcd_image_put(out, count);
		}
	}
	for (const struct mrcd_msg *msg = client->batch; msg != NULL; msg = msg->batch_next)
		batch_count++;
	mrcd_image_put(out, batch_count);
	for (const struct mrcd_msg *msg = client->batch; msg != NULL; msg = msg->batch_next) {
		mrcd_image_put(out, msg->channel_id);
		mrcd_image_put(out, msg->number);
	}
	mrcd_image_put(out, client->is_batch_spoilt);
}

static void save_client(const struct mrcd_client *client, struct mrcd_peer *const *peers,
			uint32_t peer_count, struct mrcd_image_out *out)
{
	mrcd_image_put(out, client->index);
	mrcd_image_put(out, client->abi_version);
	mrcd_image_put_name(out, client->name);
	mrcd_image_put(out, client->flow);
	mrcd_image_put(out, client->window);
	mrcd_image_put(out, client->channels_max);
	mrcd_image_put(out, client->listeners_max);
	mrcd_image_put(out, client->sends_max);
	mrcd_image_put(out, client->ring_bytes_min);
	mrcd_image_put(out, client->rings.page_bytes);
	mrcd_image_put(out, client->send_arena.page_bytes);
	mrcd_image_put(out, client->landing.page_bytes);
	mrcd_image_put(out, client->sq_entry_count);
	mrcd_image_put(out, client->cq_entry_count);
	mrcd_image_put(out, client->sq_head);
	mrcd_image_put(out, client->cq_head);
	mrcd_image_put(out, client->cq_tail);
	mrcd_image_put(out, client->answers_unread);
	mrcd_image_put(out, client->undecided_count);
	mrcd_image_put(out, client->drain.is_draining);
	mrcd_image_put(out, client->drain.is_unread);
	mrcd_image_put(out, client->quota.paid_ns);
	mrcd_image_put(out, client->quota.waits);
	mrcd_image_put(out, client->completions);
	mrcd_image_put(out, client->submissions);
	for (uint32_t at = client->cq_head; at != client->cq_tail; at++) {
		const struct mrcd_shadow *shadow =
			&client->shadows[at & (client->cq_entry_count - 1)];

		mrcd_image_put(out, shadow->number);
		mrcd_image_put(out, shadow->channel_id);
		mrcd_image_put(out, shadow->told);
	}
	save_listeners(client, out);
	save_channels(client, peers, peer_count, out);
	save_sends(client, out);
	save_msgs(client, out);
}

void mrcd_client_side_save(const struct mrcd_client_side *side, struct mrcd_peer *const *peers,
			   uint32_t peer_count, struct mrcd_image_out *out)
{
	mrcd_image_put(out, side->flow_last);
	mrcd_image_put(out, side->slot_count);
	for (uint32_t i = 0; i < side->slot_count; i++)
		mrcd_image_put(out, side->generations[i]);
	mrcd_image_put(out, side->client_alive_count);
	for (uint32_t i = 0; i < side->slot_count; i++) {
		if (side->clients[i] != NULL && !side->clients[i]->is_dead)
			save_client(side->clients[i], peers, peer_count, out);
	}
}
