/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_client_restore - the client side as the daemon before us left it (mrcd_client_save.c)
 *
 * What is read was written by a daemon, not by a client; still every number is
 * held against its bound, and every piece of memory can be taken only once, so
 * that a mistake of that daemon ends here, before anybody is told anything.
 *
 * Clients keep the bounds they attached with, whatever the configuration says
 * now: their rings were made for those.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrcd_client_impl.h"

struct restore {
	struct mrcd_client_side *side;
	struct mrcd_image_in *in;
	struct mrcd_peer *const *peers; /* by number in the image */
	uint32_t peer_count;
	char loss
		[96]; /* why the client that is being read cannot go on, though others can; "": it can */
};

/*
 * This client ends, and no other, but not yet: engines know it, and what it holds has to be
 * read to be given up. The first reason counts.
 */
static void lose(struct restore *re, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void lose(struct restore *re, const char *format, ...)
{
	char loss[sizeof(re->loss)];
	va_list args;

	va_start(args, format);
	vsnprintf(loss, sizeof(loss), format, args);
	va_end(args);
	if (re->loss[0] == '\0')
		memcpy(re->loss, loss, sizeof(loss));
}

static bool is_power_of_two(uint64_t value)
{
	return value != 0 && (value & (value - 1)) == 0;
}

/* ---- what a client holds ---- */

static int restore_listener(const struct restore *re, struct mrcd_client *client)
{
	uint64_t index = mrcd_image_take_max(re->in, client->listeners_max - 1);
	struct mrcd_listener *listener = &client->listeners[index];
	uint32_t serial =
		(uint32_t)mrcd_image_take_max(re->in, UINT32_MAX >> client->listener_bits);
	uint32_t id = (uint32_t)mrcd_image_take_max(re->in, UINT32_MAX);

	if (listener->serial != 0)
		return -EPROTO;
	listener->serial = serial;
	listener->client = client;
	listener->service.owner = listener;
	mrcd_image_take_name(re->in, listener->service.name);
	if (re->in->is_failed || serial == 0)
		return -EPROTO;
	if (id == 0)
		return 0;
	if (id != (serial << client->listener_bits | index) ||
	    !mrcd_name_is_valid(listener->service.name, sizeof(listener->service.name)) ||
	    mrcd_services_add(&re->side->services, &listener->service) < 0)
		return -EPROTO;
	listener->id = id;
	client->listener_count++;
	return 0;
}

static int restore_listeners(const struct restore *re, struct mrcd_client *client)
{
	uint64_t count = mrcd_image_take_max(re->in, client->listeners_max);

	for (uint64_t i = 0; i < count; i++) {
		int r = restore_listener(re, client);

		if (r < 0)
			return r;
	}
	return 0;
}

static int restore_ring(struct mrcd_client *client, struct mrcd_channel *channel)
{
	if (channel->ring_bytes == 0)
		return 0;
	if (mrcd_arena_claim(client->ring_arena, channel->ring_offset, channel->ring_bytes) < 0) {
		channel->ring_bytes = 0;
		return -EPROTO;
	}
	client->ring_count++;
	return 0;
}

static int restore_queue(const struct restore *re, struct mrcd_client *client,
			 struct mrcd_channel *channel)
{
	uint64_t count = mrcd_image_take_max(re->in, client->sends_max);

	for (uint64_t i = 0; i < count; i++) {
		uint64_t index = mrcd_image_take_max(re->in, client->sends_max - 1);
		struct mrcd_send *send = &client->sends[index];

		/* Its place in the queue; what it is follows with the sends. */
		if (re->in->is_failed || send->state != MRCD_SEND_FREE)
			return -EPROTO;
		send->state = MRCD_SEND_QUEUED;
		send->channel_id = channel->id;
		TAILQ_INSERT_TAIL(&channel->queue, send, entry);
		channel->queue_count++;
	}
	return 0;
}

/* An incoming one is in the line of its listener, unless that has closed meanwhile. */
static void restore_incoming(struct mrcd_client *client, const struct mrcd_channel *channel)
{
	uint32_t index = channel->listener_id & ((1U << client->listener_bits) - 1);

	client->side->incoming_count++;
	if (client->listeners[index].id == channel->listener_id)
		client->listeners[index].backlog++;
}

/* What came in names who listened for it, for as long as it lives. */
static bool listener_id_is_sound(const struct mrcd_client *client, uint32_t id)
{
	return (id & ((1U << client->listener_bits) - 1)) < MRC_MAX(client->listeners_max, 1U);
}

/* A daemon that knew of no drain has told of none. */
static void restore_drain(struct mrcd_image_in *in, struct mrcd_drain_told *told)
{
	if (in->version < 2)
		return;
	told->is_draining = mrcd_image_take_bool(in);
	told->is_unread = mrcd_image_take_bool(in);
}

static int restore_channel(struct restore *re, struct mrcd_client *client,
			   struct mrcd_channel *channel)
{
	struct mrcd_image_in *in = re->in;
	uint64_t peer = mrcd_image_take_max(in, re->peer_count - 1);
	int r;

	channel->peer = re->peers[peer];
	channel->engine_id = (uint32_t)mrcd_image_take_max(in, UINT32_MAX);
	channel->listener_id = (uint32_t)mrcd_image_take_max(in, UINT32_MAX);
	channel->user_data = mrcd_image_take(in);
	channel->ring_offset = mrcd_image_take(in);
	channel->ring_bytes = mrcd_image_take_max(in, client->landing.len_bytes);
	channel->is_unordered = mrcd_image_take_bool(in);
	channel->is_unchecked = mrcd_image_take_bool(in);
	channel->is_closing = mrcd_image_take_bool(in);
	channel->is_close_told = mrcd_image_take_bool(in);
	channel->is_engine_done = mrcd_image_take_bool(in);
	channel->is_last_unread = mrcd_image_take_bool(in);
	restore_drain(in, &channel->drain);
	channel->gaps_unread = (uint32_t)mrcd_image_take_max(in, client->window);
	channel->number_end = mrcd_image_take(in);
	mrcd_image_take_name(in, channel->service);
	if (in->is_failed || !listener_id_is_sound(client, channel->listener_id))
		return -EPROTO;
	if (channel->peer == NULL)
		lose(re, "it has a channel to a peer that is not configured any more");
	r = restore_ring(client, channel);
	if (r == 0)
		r = restore_queue(re, client, channel);
	if (r == 0 && channel->state == MRCD_CHANNEL_INCOMING)
		restore_incoming(client, channel);
	return r;
}

static int restore_channels(struct restore *re, struct mrcd_client *client)
{
	uint64_t count = mrcd_image_take_max(re->in, client->channels_max);

	for (uint64_t i = 0; i < count; i++) {
		uint64_t index = mrcd_image_take_max(re->in, client->channels_max - 1);
		struct mrcd_channel *channel = &client->channels[index];
		int r;

		if (channel->serial != 0)
			return -EPROTO;
		channel->serial =
			(uint32_t)mrcd_image_take_max(re->in, UINT32_MAX >> client->channel_bits);
		channel->state = (uint32_t)mrcd_image_take_max(re->in, MRCD_CHANNEL_DOWN);
		if (re->in->is_failed || channel->serial == 0)
			return -EPROTO;
		if (channel->state == MRCD_CHANNEL_FREE) {
			if (channel->serial == UINT32_MAX >> client->channel_bits)
				TAILQ_REMOVE(&client->channels_free, channel, entry);
			continue;
		}
		TAILQ_REMOVE(&client->channels_free, channel, entry);
		channel->id = channel->serial << client->channel_bits | channel->index;
		client->channel_count++;
		r = restore_channel(re, client, channel);
		if (r < 0)
			return r;
	}
	return 0;
}

static struct mrcd_channel *channel_of(struct mrcd_client *client, uint32_t id)
{
	uint32_t index = id & ((1U << client->channel_bits) - 1);

	if (index >= client->channels_max || id == 0 || client->channels[index].id != id)
		return NULL;
	return &client->channels[index];
}

static int restore_send(const struct restore *re, struct mrcd_client *client)
{
	struct mrcd_image_in *in = re->in;
	struct mrcd_send *send = &client->sends[mrcd_image_take_max(in, client->sends_max - 1)];
	uint8_t state = (uint8_t)mrcd_image_take_max(in, MRCD_SEND_UNDECIDED);
	bool was_queued = send->state == MRCD_SEND_QUEUED;
	struct mrcd_channel *channel;

	send->serial = (uint32_t)mrcd_image_take_max(in, UINT32_MAX);
	send->channel_id = (uint32_t)mrcd_image_take_max(in, UINT32_MAX);
	send->user_data = mrcd_image_take(in);
	send->offset = mrcd_image_take_max(in, client->send_arena.len_bytes);
	send->len_bytes = mrcd_image_take_max(in, client->send_arena.len_bytes - send->offset);
	send->deadline_ns = mrcd_image_take(in);
	send->number = mrcd_image_take(in);
	send->level = (uint8_t)mrcd_image_take_max(in, MRC_LEVEL_COMMITTED);
	send->is_held = mrcd_image_take_bool(in);
	channel = channel_of(client, send->channel_id);
	/* The queues said already which are queued, and no two may be the same. */
	if (in->is_failed || state == MRCD_SEND_FREE || channel == NULL ||
	    was_queued != (state == MRCD_SEND_QUEUED) ||
	    (!was_queued && send->state != MRCD_SEND_FREE))
		return -EPROTO;
	send->state = state;
	if (state != MRCD_SEND_QUEUED) {
		channel->sends_in_engine++;
		client->quota.in_flight_bytes += send->len_bytes;
	}
	client->send_count++;
	if (send->deadline_ns != 0)
		client->deadline_ns = MRC_MIN(client->deadline_ns, send->deadline_ns);
	return 0;
}

static int restore_sends(const struct restore *re, struct mrcd_client *client)
{
	uint64_t fresh = mrcd_image_take_max(re->in, client->sends_max);
	uint64_t count = mrcd_image_take_max(re->in, fresh);
	uint32_t queued = 0;

	client->sends_fresh = (uint32_t)fresh;
	for (uint64_t i = 0; i < count; i++) {
		int r = restore_send(re, client);

		if (r < 0)
			return r;
	}
	for (uint32_t i = 0; i < client->sends_max; i++) {
		struct mrcd_send *send = &client->sends[i];

		queued += send->state == MRCD_SEND_QUEUED;
		if (send->state == MRCD_SEND_FREE && i < fresh)
			TAILQ_INSERT_TAIL(&client->sends_free, send, entry);
		else if (send->state != MRCD_SEND_FREE && i >= fresh)
			return -EPROTO;
	}
	for (uint32_t i = 0; i < client->channels_max; i++)
		queued -= client->channels[i].queue_count;
	return queued == 0 && client->send_count == count ? 0 : -EPROTO;
}

static int restore_msg(const struct restore *re, struct mrcd_client *client,
		       struct mrcd_channel *channel)
{
	struct mrcd_image_in *in = re->in;
	uint64_t number = mrcd_image_take(in);
	uint64_t state = mrcd_image_take_max(in, MRCD_MSG_RELEASED);
	struct mrcd_msg *msg;

	if (in->is_failed || state == MRCD_MSG_WANTED || client->msgs_fresh == client->msgs_max ||
	    mrcd_msg_find(client, channel, number) != NULL)
		return -EPROTO;
	msg = mrcd_msg_new(client, channel, number, (enum mrcd_msg_state)state);
	MRC_ASSERT(msg != NULL);
	msg->addr = mrcd_image_take_max(in, client->landing.len_bytes);
	msg->len_bytes = mrcd_image_take_max(in, client->landing.len_bytes - msg->addr);
	msg->is_eager = mrcd_image_take_bool(in);
	msg->is_engine_done = mrcd_image_take_bool(in);
	msg->visible_ns = mrcd_image_take(in);
	msg->verdict_ns = mrcd_image_take(in);
	if (in->is_failed)
		return -EPROTO;
	if (!msg->is_eager)
		return mrcd_arena_claim(client->buffer_arena, msg->addr, msg->len_bytes);
	return 0;
}

static int restore_batch(const struct restore *re, struct mrcd_client *client)
{
	uint64_t count = mrcd_image_take_max(re->in, client->msgs_max);
	struct mrcd_msg **at = &client->batch;

	for (uint64_t i = 0; i < count; i++) {
		uint32_t id = (uint32_t)mrcd_image_take_max(re->in, UINT32_MAX);
		uint64_t number = mrcd_image_take(re->in);
		struct mrcd_channel *channel = channel_of(client, id);
		struct mrcd_msg *msg =
			channel != NULL ? mrcd_msg_find(client, channel, number) : NULL;

		if (msg == NULL || msg->is_in_batch)
			return -EPROTO;
		msg->is_in_batch = true;
		*at = msg;
		at = &msg->batch_next;
	}
	client->is_batch_spoilt = mrcd_image_take_bool(re->in);
	return 0;
}

static int restore_msgs(const struct restore *re, struct mrcd_client *client)
{
	for (uint32_t i = 0; i < client->channels_max; i++) {
		uint64_t count;

		if (client->channels[i].state == MRCD_CHANNEL_FREE)
			continue;
		count = mrcd_image_take_max(re->in, client->msgs_max);
		for (uint64_t m = 0; m < count; m++) {
			int r = restore_msg(re, client, &client->channels[i]);

			if (r < 0)
				return r;
		}
	}
	return restore_batch(re, client);
}

/* ---- the client ---- */

static int restore_bounds(struct restore *re, struct mrcd_client *client)
{
	struct mrcd_image_in *in = re->in;

	client->abi_version = (uint32_t)mrcd_image_take_max(in, UINT32_MAX);
	mrcd_image_take_name(in, client->name);
	client->flow = (uint32_t)mrcd_image_take_max(in, re->side->flow_last);
	client->window = (uint32_t)mrcd_image_take_max(in, MRCD_CQ_ENTRIES_MAX);
	client->channels_max = (uint32_t)mrcd_image_take_max(in, MRCD_CQ_ENTRIES_MAX);
	client->listeners_max = (uint32_t)mrcd_image_take_max(in, MRCD_CQ_ENTRIES_MAX);
	client->sends_max = (uint32_t)mrcd_image_take_max(in, MRCD_CQ_ENTRIES_MAX);
	client->ring_bytes_min = mrcd_image_take_max(in, UINT32_MAX);
	client->rings.page_bytes = mrcd_image_take(in);
	client->send_arena.page_bytes = mrcd_image_take(in);
	client->landing.page_bytes = mrcd_image_take(in);
	client->sq_entry_count = (uint32_t)mrcd_image_take_max(in, MRCD_CQ_ENTRIES_MAX);
	client->cq_entry_count = (uint32_t)mrcd_image_take_max(in, MRCD_CQ_ENTRIES_MAX);
	client->sq_head = (uint32_t)mrcd_image_take_max(in, UINT32_MAX);
	client->cq_head = (uint32_t)mrcd_image_take_max(in, UINT32_MAX);
	client->cq_tail = (uint32_t)mrcd_image_take_max(in, UINT32_MAX);
	client->answers_unread = (uint32_t)mrcd_image_take_max(in, MRCD_ANSWERS_MAX);
	client->undecided_count = (uint32_t)mrcd_image_take_max(in, client->sends_max);
	restore_drain(in, &client->drain);
	client->quota.paid_ns = mrcd_image_take(in);
	client->quota.waits = mrcd_image_take(in);
	client->completions = mrcd_image_take(in);
	client->submissions = mrcd_image_take(in);
	if (client->abi_version < MRC_ABI_VERSION_OLDEST || client->abi_version > MRC_ABI_VERSION)
		lose(re, "it speaks ABI version %u, and this daemon %u to %u", client->abi_version,
		     MRC_ABI_VERSION_OLDEST, MRC_ABI_VERSION);
	if (in->is_failed || !is_power_of_two(client->window) || client->channels_max == 0 ||
	    client->sends_max == 0 || client->ring_bytes_min == 0 ||
	    (uint64_t)client->channels_max * client->window > MRCD_CQ_ENTRIES_MAX ||
	    !is_power_of_two(client->sq_entry_count) || !is_power_of_two(client->cq_entry_count) ||
	    client->cq_tail - client->cq_head > client->cq_entry_count)
		return -EPROTO;
	return 0;
}

/*
 * Whatever happens, the descriptors are the client's from here on, or closed. What cannot be
 * mapped may be for want of huge pages (it has punched holes, and others have got them), or of
 * mappings.
 */
static int restore_memory(struct restore *re, struct mrcd_client *client,
			  struct mrcd_parcel *parcel)
{
	const struct {
		const char *name;
		struct mrcd_map *map;
		enum mrcd_client_fd fd;
		bool is_watched;
	} maps[] = {
		{"rings", &client->rings, MRCD_CLIENT_FD_RINGS, true},
		{"send arena", &client->send_arena, MRCD_CLIENT_FD_SEND_ARENA, true},
		{"landing arena", &client->landing, MRCD_CLIENT_FD_LANDING,
		 mrcd_client_landing_can_go(client->landing.page_bytes)},
	};
	int r;

	if (parcel->is_lost)
		lose(re, "this daemon may not have so many descriptors (LimitNOFILE=)");
	client->fd = parcel->fds[MRCD_CLIENT_FD_SOCKET];
	client->bell_fd = parcel->fds[MRCD_CLIENT_FD_BELL];
	client->client_bell_fd = parcel->fds[MRCD_CLIENT_FD_CLIENT_BELL];
	client->client_bell_read_fd = parcel->fds[MRCD_CLIENT_FD_CLIENT_BELL_READ];
	parcel->fds[MRCD_CLIENT_FD_SOCKET] = parcel->fds[MRCD_CLIENT_FD_BELL] = -1;
	parcel->fds[MRCD_CLIENT_FD_CLIENT_BELL] = parcel->fds[MRCD_CLIENT_FD_CLIENT_BELL_READ] = -1;
	for (size_t i = 0; i < MRC_ARRAY_LEN(maps); i++) {
		int fd = parcel->fds[maps[i].fd];

		parcel->fds[maps[i].fd] = -1;
		if (parcel->is_lost) {
			/* As long as it was: what is read is held against that. */
			*maps[i].map = (struct mrcd_map){
				.fd = -1,
				.page_bytes = maps[i].map->page_bytes,
				.len_bytes = parcel->fd_bytes[maps[i].fd],
				.sigbus_slot = UINT32_MAX,
			};
			continue;
		}
		r = mrcd_client_map_adopt(client, maps[i].map, fd, maps[i].map->page_bytes,
					  maps[i].is_watched);
		if (r == -EPROTO)
			return r;
		if (r < 0)
			lose(re, "its %s cannot be mapped by this daemon: %s", maps[i].name,
			     strerror(-r));
	}
	if (client->rings.len_bytes < mrcd_client_rings_bytes(client) ||
	    client->landing.len_bytes % (2 * MRCD_ARENA_PAGE_BYTES) != 0)
		return -EPROTO;
	r = mrcd_client_rings_lay(client);
	if (r == 0)
		r = mrcd_client_pools_new(client);
	return r;
}

static int restore_shadows(const struct restore *re, struct mrcd_client *client)
{
	for (uint32_t at = client->cq_head; at != client->cq_tail; at++) {
		struct mrcd_shadow *shadow = &client->shadows[at & (client->cq_entry_count - 1)];

		shadow->number = mrcd_image_take(re->in);
		shadow->channel_id = (uint32_t)mrcd_image_take_max(re->in, UINT32_MAX);
		shadow->told = (uint32_t)mrcd_image_take_max(re->in, MRCD_TOLD_COUNT - 1);
		if (re->in->is_failed)
			return -EPROTO;
	}
	return 0;
}

static int restore_client(struct restore *re, struct mrcd_client *client,
			  struct mrcd_parcel *parcel)
{
	int r = restore_bounds(re, client);

	if (r == 0)
		r = restore_memory(re, client, parcel);
	if (r == 0 && !parcel->is_lost)
		r = mrcd_client_meet(client);
	/* What it may take on the way is for the configuration of today to say. */
	if (r == 0)
		mrcd_conf_quota(re->side->worker->conf, &client->creds, &client->quota.max);
	if (r == 0)
		r = restore_shadows(re, client);
	if (r == 0)
		r = restore_listeners(re, client);
	if (r == 0)
		r = restore_channels(re, client);
	if (r == 0)
		r = restore_sends(re, client);
	if (r == 0)
		r = restore_msgs(re, client);
	if (r == 0 && re->in->is_failed)
		r = -EPROTO;
	if (r == 0 && re->loss[0] == '\0' && mrcd_client_regions_new(client) < 0)
		lose(re, "there is no memory for what its arenas need");
	return r;
}

/* Of which nobody has heard yet; the program is told that this attachment is over. */
static void client_drop(struct mrcd_client *client)
{
	for (uint32_t i = 0; client->listeners != NULL && i < client->listeners_max; i++) {
		if (client->listeners[i].id != 0)
			mrcd_listener_free(client, &client->listeners[i]);
	}
	mrcd_client_close(client);
	mrcd_client_free(client);
}

/* Its descriptors, if they are all there. */
static struct mrcd_parcel *client_parcel(struct mrcd_parcel *parcels, uint32_t parcel_count,
					 uint64_t index)
{
	struct mrcd_parcel *parcel;
	uint32_t at = 0;

	do {
		parcel = mrcd_parcel_next(parcels, parcel_count, MRCD_PARCEL_CLIENT, &at);
	} while (parcel != NULL && parcel->index != index);
	if (parcel == NULL || parcel->fd_count != MRCD_CLIENT_FD_COUNT ||
	    (parcel->fds[MRCD_CLIENT_FD_SOCKET] < 0 && !parcel->is_lost))
		return NULL;
	return parcel;
}

static int restore_one(struct restore *re, struct mrcd_parcel *parcels, uint32_t parcel_count,
		       char why[MRCD_IMAGE_WHY_BYTES])
{
	uint64_t index = mrcd_image_take_max(re->in, UINT32_MAX);
	struct mrcd_parcel *parcel;
	struct mrcd_client *client;
	int r;

	parcel = client_parcel(parcels, parcel_count, index);
	if (index >= re->side->slot_count || parcel == NULL || re->side->clients[index] != NULL) {
		snprintf(why, MRCD_IMAGE_WHY_BYTES,
			 "descriptors of program %" PRIu64 " are missing", index);
		return -EPROTO;
	}
	re->loss[0] = '\0';
	client = mrcd_client_blank(re->side);
	r = client == NULL ? -ENOMEM : restore_client(re, client, parcel);
	if (r < 0) {
		snprintf(why, MRCD_IMAGE_WHY_BYTES,
			 "program %" PRIu64 " (%s) cannot be taken over: %s", index,
			 client != NULL ? client->name : "", strerror(-r));
		if (client != NULL)
			client_drop(client);
		return r;
	}
	mrcd_client_list(client, (uint32_t)index, re->side->generations[index]);
	if (re->loss[0] != '\0')
		mrcd_client_break(client, "%s", re->loss);
	return 0;
}

/*
 * As many slots as there were: who is attached stays, though no more than the configuration of
 * today allows may attach.
 */
static int slots_grow(struct mrcd_client_side *side, uint32_t count)
{
	struct mrcd_client **clients;
	uint16_t *generations;

	if (count <= side->slot_count)
		return 0;
	clients = realloc(side->clients, count * sizeof(struct mrcd_client *));
	if (clients == NULL)
		return -ENOMEM;
	side->clients = clients;
	generations = realloc(side->generations, count * sizeof(*generations));
	if (generations == NULL)
		return -ENOMEM;
	side->generations = generations;
	for (uint32_t i = side->slot_count; i < count; i++) {
		clients[i] = NULL;
		generations[i] = 0;
	}
	side->slot_count = count;
	return 0;
}

int mrcd_client_side_restore(struct mrcd_client_side *side, struct mrcd_peer *const *peers,
			     uint32_t peer_count, struct mrcd_image_in *in,
			     struct mrcd_parcel *parcels, uint32_t parcel_count,
			     char why[MRCD_IMAGE_WHY_BYTES])
{
	struct restore re = {
		.side = side,
		.in = in,
		.peers = peers,
		.peer_count = peer_count,
	};
	struct mrcd_parcel *parcel;
	uint64_t slots, count;
	uint32_t at = 0;

	MRC_ASSERT(side->client_count == 0);
	MRC_ASSERT(peer_count > 0);
	side->is_paused = true;
	side->flow_last = (uint32_t)mrcd_image_take_max(in, UINT32_MAX);
	slots = mrcd_image_take_max(in, MRCD_CLIENTS_MAX);
	if (slots_grow(side, (uint32_t)slots) < 0) {
		snprintf(why, MRCD_IMAGE_WHY_BYTES, "there is no memory for %u programs",
			 (unsigned)slots);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < slots; i++)
		side->generations[i] = (uint16_t)mrcd_image_take_max(in, UINT16_MAX);
	count = mrcd_image_take_max(in, slots);
	for (uint64_t i = 0; i < count; i++) {
		int r = restore_one(&re, parcels, parcel_count, why);

		if (r < 0)
			return r;
	}
	if (!mrcd_image_is_done(in)) {
		snprintf(why, MRCD_IMAGE_WHY_BYTES, "the state has another length than it should");
		return -EPROTO;
	}
	while ((parcel = mrcd_parcel_next(parcels, parcel_count, MRCD_PARCEL_PENDING, &at)) !=
	       NULL) {
		if (parcel->is_lost)
			continue;
		mrcd_pending_new(side, parcel->fds[0]);
		parcel->fds[0] = -1;
	}
	return 0;
}

void mrcd_client_side_resume(struct mrcd_client_side *side)
{
	side->is_paused = false;
	for (uint32_t i = 0; i < side->slot_count; i++) {
		struct mrcd_client *client = side->clients[i];

		if (client == NULL || client->is_dead)
			continue;
		__atomic_store_n(&client->shm->is_tracing, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&client->shm->state, MRC_RING_STATE_RUNNING, __ATOMIC_RELEASE);
		if (mrcd_client_watch(client) < 0)
			mrcd_client_break(client, "the daemon is out of memory");
		/* What came while nobody looked. */
		mrcd_client_activate(client);
		for (uint32_t c = 0; c < client->channels_max; c++) {
			if (client->channels[c].queue_count > 0)
				mrcd_channel_feed(client, &client->channels[c]);
		}
		mrcd_client_side_arm(side, client->deadline_ns);
	}
	mrcd_client_side_schedule(side);
}
