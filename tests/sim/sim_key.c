/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_key - keys of landing memory: what the devices of a host know, and what their peers have heard
 *
 * A key is an rkey that names client, rail and how often the memory was
 * registered there, so none comes twice. When a device is withdrawn the key is
 * dead at once; a peer goes on writing with it until it hears, and such a write
 * breaks its queue pair.
 */
#include "sim_impl.h"

#define RAIL_BITS       4U
#define GENERATION_BITS 10U

static uint32_t rkey_of(const struct client *client, uint32_t rail)
{
	return client->serial << (GENERATION_BITS + RAIL_BITS) |
	       (client->keys[rail].generation & ((1U << GENERATION_BITS) - 1)) << RAIL_BITS | rail;
}

static uint64_t base_of(uint32_t rkey)
{
	return (uint64_t)rkey << 44;
}

bool sim_key_is_valid(const struct client *client, uint32_t rail, uint32_t rkey)
{
	return client->keys[rail].is_valid && rkey == rkey_of(client, rail);
}

static void tell(struct sim_world *w, uint32_t pair, uint32_t side, const struct client *client,
		 uint32_t rail)
{
	uint32_t rkey = rkey_of(client, rail);
	struct mrc_event_in ev = {.kind = MRC_EV_KEY,
				  .key = {.flow = client->serial,
					  .index = (uint8_t)rail,
					  .is_valid = client->keys[rail].is_valid,
					  .rkey = rkey,
					  .base = base_of(rkey)}};
	int r = sim_tell(w, pair, side, &ev);

	if (r && r != -ENOENT) /* it has no channel with that peer */
		sim_fail(w, "client", "KEY answered %d", r);
	sim_pump(w, pair, side);
}

/* The device of this rail has registered the landing memory of the end's client. */
void sim_key_given(struct sim_world *w, uint32_t chan, uint32_t side, uint32_t rail)
{
	struct chan *c = w->chans[chan];
	struct chan_end *ce = &c->ends[side];
	uint32_t host = w->pairs[c->pair].hosts[side];

	if (!ce->client || ce->is_gone || ce->is_freed)
		return;
	ce->client->keys[rail].is_wanted = true;
	if (sim_port(w, host, rail)->withdrawals)
		return; /* when it is there again */
	ce->client->keys[rail].is_valid = true;
	tell(w, c->pair, side, ce->client, rail);
}

void sim_keys_tell(struct sim_world *w, uint32_t pair, uint32_t side, const struct client *client)
{
	for (uint32_t r = 0; r < w->o.rails; r++) {
		if (client->keys[r].is_wanted)
			tell(w, pair, side, client, r);
	}
}

static void tell_all(struct sim_world *w, uint32_t host, uint32_t rail, const struct client *client)
{
	for (uint32_t i = 0; i < w->pair_count; i++) {
		for (uint32_t side = 0; side < 2; side++) {
			if (w->pairs[i].hosts[side] == host)
				tell(w, i, side, client, rail);
		}
	}
}

/* The device lets go of all clients' memory, or registers it anew, with keys of another number. */
void sim_key_withdraw(struct sim_world *w, uint32_t host, uint32_t rail, bool is_withdrawn)
{
	struct port *port = sim_port(w, host, rail);

	if (is_withdrawn ? port->withdrawals++ : --port->withdrawals)
		return;
	for (uint32_t i = 0; i < w->o.clients + (w->o.proof_bytes != 0); i++) {
		struct client *client = w->hosts[host].clients[i];

		if (!client->keys[rail].is_wanted)
			continue;
		client->keys[rail].is_valid = !is_withdrawn;
		client->keys[rail].generation += !is_withdrawn;
		tell_all(w, host, rail, client);
	}
}

/* ---- what a peer has heard ---- */

static struct key_heard *heard_find(const struct end *end, uint32_t client_serial)
{
	for (uint32_t i = 0; i < end->key_count; i++) {
		if (end->keys[i].rkey >> (GENERATION_BITS + RAIL_BITS) == client_serial)
			return &end->keys[i];
	}
	return NULL;
}

void sim_key_heard(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t to,
		   const struct mrc_wire_hdr *hdr)
{
	struct end *end = &w->pairs[pair].paths[path].ends[to];
	uint32_t rkey = (uint32_t)hdr->arg;
	struct key_heard *heard = heard_find(end, rkey >> (GENERATION_BITS + RAIL_BITS));

	if (!heard) {
		sim_grow(&end->keys, &end->key_cap, end->key_count + 1, sizeof(*end->keys));
		heard = &end->keys[end->key_count++];
	}
	*heard = (struct key_heard){.rkey = rkey, .is_valid = hdr->arg >> 32 & 1};
}

/* A direct write goes where the receiver's device put the client's memory, with the last key told on that path epoch. */
void sim_check_key(struct sim_world *w, const struct chan *c, uint32_t to,
		   const struct mrc_act_post *post)
{
	const struct chan_end *ce = &c->ends[to];
	const struct end *end = &w->pairs[c->pair].paths[post->index].ends[1 - to];
	const struct mrc_wire_hdr *hdr = &post->hdr;
	const struct key_heard *heard;
	uint64_t addr = hdr->flags & MRC_WIRE_F_EAGER
				? sim_ring_addr(c) + hdr->addr % ce->ring_bytes
				: hdr->addr;

	if (!ce->client)
		return; /* it was freed with its daemon */
	heard = heard_find(end, ce->client->serial);
	if (!heard || !heard->is_valid || post->rkey != heard->rkey ||
	    post->remote_addr != base_of(heard->rkey) + addr + hdr->offset)
		sim_fail(w, "key",
			 "channel %u message %llu: written at %llx with key %x on path %u; told "
			 "was %x%s",
			 c->index, (unsigned long long)hdr->msg,
			 (unsigned long long)post->remote_addr, post->rkey, post->index,
			 heard ? heard->rkey : 0, heard && heard->is_valid ? "" : ", not valid");
}
