/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_client - client processes: their landing memory, and what they do with what they receive */
#include <stdlib.h>
#include <string.h>

#include "sim_impl.h"

#define REJECT_CODE 42

struct client *sim_client_new(struct sim_world *w, uint32_t host, uint32_t index,
			      uint64_t arena_bytes)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client)
		abort();
	*client = (struct client){.host = host,
				  .index = index,
				  .serial = ++w->client_next,
				  .refs = 1,
				  .arena_bytes = arena_bytes};
	return client;
}

void sim_client_put(struct client *client)
{
	if (--client->refs)
		return;
	free(client->arena);
	free(client->grants);
	free(client->wants);
	free(client);
}

struct client *sim_client(struct sim_world *w, uint32_t host, uint32_t index)
{
	return w->hosts[host].clients[index];
}

uint8_t *sim_landing(struct chan_end *ce, bool is_ring, uint64_t offset)
{
	return (is_ring ? ce->ring : ce->client->arena) + offset;
}

/* ---- landing memory ---- */

uint64_t sim_ring_addr(const struct chan *c)
{
	return (1ULL << 40) + ((uint64_t)c->index << 24);
}

/* First fit over the grants. */
static bool landing_take(struct client *client, uint64_t len, uint64_t *addr_out)
{
	uint64_t at = 0;
	uint32_t i = 0;

	if (!client->arena) { /* taken when first needed: many clients receive small messages only */
		client->arena = malloc(client->arena_bytes + 1);
		if (!client->arena)
			abort();
		memset(client->arena, POISON, client->arena_bytes);
	}
	while (i < client->grant_count) {
		const struct grant *g = &client->grants[i++];

		if (at < g->addr + g->len && g->addr < at + len) {
			at = g->addr + g->len;
			i = 0;
		}
	}
	*addr_out = at;
	return at + len <= client->arena_bytes;
}

struct grant *sim_client_grant(struct client *client, uint32_t chan, uint32_t side, uint64_t number)
{
	for (uint32_t i = 0; i < client->grant_count; i++) {
		struct grant *g = &client->grants[i];

		if (g->chan == chan && g->side == side && g->number == number)
			return g;
	}
	return NULL;
}

static void grant_remove(struct client *client, struct grant *g)
{
	memset(client->arena + g->addr, POISON, g->len);
	*g = client->grants[--client->grant_count];
}

void sim_client_want(struct sim_world *w, struct chan *c, uint32_t side, uint64_t number,
		     uint64_t len)
{
	struct client *client = c->ends[side].client;

	if (len > c->ends[side].msg_bytes_max)
		sim_fail(w, "bounds", "channel %u: a buffer of %llu bytes is wanted", c->index,
			 (unsigned long long)len);
	for (uint32_t i = 0; i < client->want_count; i++) {
		if (client->wants[i].chan == c->index && client->wants[i].side == side)
			sim_fail(w, "bounds", "channel %u: two buffers are wanted at once",
				 c->index);
	}
	sim_grow(&client->wants, &client->want_cap, client->want_count + 1, sizeof(*client->wants));
	client->wants[client->want_count++] = (struct grant){c->index, side, number, 0, len};
	sim_client_grants(w, client);
}

void sim_client_unwant(struct client *client, uint32_t chan, uint32_t side)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < client->want_count; i++) {
		if (client->wants[i].chan != chan || client->wants[i].side != side)
			client->wants[kept++] = client->wants[i];
	}
	client->want_count = kept;
}

/* Give out what there is room for, first asked first. */
void sim_client_grants(struct sim_world *w, struct client *client)
{
	while (client->want_count && !client->is_dead) {
		struct grant want = client->wants[0];
		struct chan *c = w->chans[want.chan];
		struct mrc_event_in ev = {.kind = MRC_EV_LANDING,
					  .msg = {.channel = c->ends[want.side].id,
						  .number = want.number}};

		if (!landing_take(client, want.len, &want.addr))
			return;
		sim_client_unwant(client, want.chan, want.side);
		ev.msg.addr = want.addr;
		sim_grow(&client->grants, &client->grant_cap, client->grant_count + 1,
			 sizeof(*client->grants));
		client->grants[client->grant_count++] = want;
		/* Not needed any more: it is ours again. */
		if (sim_tell(w, c->pair, want.side, &ev))
			client->grant_count--;
		else
			sim_pump(w, c->pair, want.side);
	}
}

void sim_client_landing_free(struct sim_world *w, struct chan *c, uint32_t side,
			     const struct mrc_act_msg *am)
{
	struct client *client = c->ends[side].client;
	struct grant *g = sim_client_grant(client, c->index, side, am->number);

	if (!g || g->addr != am->addr || g->len != am->len) {
		sim_fail(w, "fence", "channel %u message %llu: a buffer is freed that it has not",
			 c->index, (unsigned long long)am->number);
		return;
	}
	sim_check_quiet(w, c, side, false, am->addr, am->len, "freed");
	grant_remove(client, g);
	sim_client_grants(w, client);
}

/* ---- messages that came ---- */

static void thinks_later(struct sim_world *w, struct chan *c, uint32_t side, uint64_t number)
{
	if (!c->ends[side].client->is_stalled)
		sim_timer_add(w, w->now_ns + sim_draw(w, c->think_ns), T_THINK, c->index, side, 0,
			      number);
}

void sim_client_delivered(struct sim_world *w, struct chan *c, uint32_t side,
			  const struct mrc_act_msg *am)
{
	struct chan_end *ce = &c->ends[side];
	struct msg *m;

	sim_check_deliver(w, c, side, am);
	if (w->failure[0])
		return;
	m = sim_msg(&c->ends[1 - side], am->number);
	m->is_delivered = true;
	m->landing = am->addr;
	m->is_eager = am->is_eager;
	m->delivered_ns = w->now_ns;
	ce->expected = am->number + 1;
	ce->delivered_end = MRC_MAX(ce->delivered_end, am->number + 1);
	ce->delivered++;
	w->counts.messages++;
	thinks_later(w, c, side, am->number);
}

static void unreleased_advance(struct chan *c, uint32_t side)
{
	struct chan_end *ce = &c->ends[side];

	while (ce->unreleased < ce->delivered_end) {
		const struct msg *m = sim_msg(&c->ends[1 - side], ce->unreleased);

		if (!m->is_released && !m->is_gap)
			break;
		ce->unreleased++;
	}
}

void sim_client_gap(struct sim_world *w, struct chan *c, uint32_t side, uint64_t number)
{
	struct chan_end *ce = &c->ends[side];
	struct msg *m = sim_msg(&c->ends[1 - side], number);

	if (m->is_delivered || m->is_gap || !m->is_cancelled)
		sim_fail(w, "once", "channel %u message %llu: a gap, though %s", c->index,
			 (unsigned long long)number,
			 m->is_cancelled ? "it was delivered or skipped" : "nobody gave it up");
	if (!c->is_unordered && number != ce->expected)
		sim_fail(w, "order", "channel %u: a gap at %llu, %llu was due", c->index,
			 (unsigned long long)number, (unsigned long long)ce->expected);
	m->is_gap = true;
	ce->expected = number + 1;
	ce->delivered_end = MRC_MAX(ce->delivered_end, number + 1);
	w->counts.gaps++;
	unreleased_advance(c, side);
	sim_channel_close_if_done(w, c);
}

static void release(struct sim_world *w, struct chan *c, uint32_t side, struct msg *m,
		    uint64_t number)
{
	struct chan_end *ce = &c->ends[side];
	uint8_t *at = m->is_eager && m->len == 0 ? NULL : sim_landing(ce, m->is_eager, m->landing);

	for (uint64_t i = 0; i < m->len; i++) {
		if (at[i] != sim_byte_of(c->index, 1 - side, number, i)) {
			sim_fail(w, "bytes",
				 "channel %u message %llu: byte %llu changed after delivery",
				 c->index, (unsigned long long)number, (unsigned long long)i);
			break;
		}
	}
	m->is_released = true;
	if (!m->is_rejected)
		m->is_committed = true;
	if (m->is_eager && m->len)
		memset(at, POISON, m->len);
	ce->released++;
	unreleased_advance(c, side);
}

void sim_reject_text(uint32_t code, char text[MRC_TEXT_BYTES_MAX], uint8_t *len_out)
{
	*len_out = (uint8_t)(code % (MRC_TEXT_BYTES_MAX + 1));
	memset(text, 'a' + (int)(code % 26), *len_out);
}

/* A program that takes or gives back several at once: those that follow `number` and may go with it. */
static uint32_t take_along(struct sim_world *w, struct chan *c, uint32_t side, uint64_t number,
			   enum mrc_event_kind kind)
{
	struct chan_end *ce = &c->ends[side];
	uint32_t more = 0;

	while (number % 4 == 2 && more < 3 && number + more + 1 < ce->delivered_end) {
		struct msg *m = sim_msg(&c->ends[1 - side], number + more + 1);

		if (!m->is_delivered || m->is_gap || m->is_released)
			break;
		if (kind == MRC_EV_RELEASE ? !m->is_visible || ce->client->manner == SIM_REJECTS
					   : m->is_visible)
			break;
		if (kind == MRC_EV_VISIBLE) {
			m->is_visible = true;
			m->visible_ns = w->now_ns;
		} else {
			m->judged_ns = m->judged_ns ? m->judged_ns : w->now_ns;
			release(w, c, side, m, number + more + 1);
		}
		more++;
	}
	return more;
}

/* The receiving program sees, judges and releases a message, a step at a time. */
void sim_client_thinks(struct sim_world *w, uint32_t chan, uint32_t side, uint64_t number)
{
	struct chan *c = w->chans[chan];
	struct chan_end *ce = &c->ends[side];
	struct msg *m = sim_msg(&c->ends[1 - side], number);
	struct mrc_event_in ev = {.msg = {.channel = ce->id, .number = number}};
	char text[MRC_TEXT_BYTES_MAX];
	int r;

	if (ce->is_freed || ce->is_gone || ce->is_aborted || m->is_released ||
	    ce->client->is_stalled)
		return;
	if (!m->is_visible) {
		m->is_visible = true;
		m->visible_ns = w->now_ns;
		ev.kind = MRC_EV_VISIBLE;
		ev.msg.more = take_along(w, c, side, number, ev.kind);
	} else if (ce->client->manner == SIM_HOLDS) {
		return; /* until it is told otherwise */
	} else if (ce->client->manner == SIM_REJECTS && !m->is_rejected && !m->is_committed) {
		ev.kind = MRC_EV_REJECT;
		ev.msg.code = REJECT_CODE;
		m->code = REJECT_CODE;
		m->is_rejected = true;
		w->counts.rejected++;
	} else if (!m->is_committed && !m->is_rejected && sim_draw(w, 2)) {
		if (sim_chance(w, w->o.reject_permille)) {
			ev.kind = MRC_EV_REJECT;
			ev.msg.code = (uint32_t)sim_draw(w, 1000) + 1;
			m->code = ev.msg.code;
			m->is_rejected = true;
			w->counts.rejected++;
		} else {
			ev.kind = MRC_EV_COMMIT;
			m->is_committed = true;
		}
	} else {
		ev.kind = MRC_EV_RELEASE;
		release(w, c, side, m, number);
		ev.msg.more = take_along(w, c, side, number, ev.kind);
	}
	if (ev.kind != MRC_EV_VISIBLE) {
		m->judged_ns = m->judged_ns ? m->judged_ns : w->now_ns;
		/* It may say when it took it, and has the time of this host for that. */
		if (number % 8 == 1)
			ev.msg.visible_ns =
				sim_clock(w, ce->client->host) - (w->now_ns - m->visible_ns);
	}
	if (ev.kind == MRC_EV_REJECT) {
		sim_reject_text(ev.msg.code, text, &ev.msg.text_len);
		ev.msg.text = text;
	}
	r = sim_tell(w, c->pair, side, &ev);
	if (r && !ce->is_down)
		sim_fail(w, "client", "channel %u message %llu: event %d answered %d", c->index,
			 (unsigned long long)number, ev.kind, r);
	if (m->is_released && r == 0 && sim_draw(w, 16) == 0) {
		/* A release counts once, whatever a client does. */
		r = sim_tell(w, c->pair, side, &ev);
		if (r != -EALREADY)
			sim_fail(w, "client", "channel %u message %llu: second release answered %d",
				 c->index, (unsigned long long)number, r);
	}
	if (!m->is_released)
		thinks_later(w, c, side, number);
	sim_pump(w, c->pair, side);
	sim_channel_close_if_done(w, c);
}

/* ---- processes ---- */

/* It looks again at all it has not released. */
static void thinks_on(struct sim_world *w, const struct client *cl)
{
	for (uint32_t i = 0; i < w->chan_count; i++) {
		struct chan *c = w->chans[i];

		for (uint32_t side = 0; side < 2; side++) {
			struct chan_end *ce = &c->ends[side];

			if (ce->client != cl || ce->is_freed || ce->is_gone)
				continue;
			for (uint64_t n = ce->unreleased; n < ce->delivered_end; n++) {
				const struct msg *m = sim_msg(&c->ends[1 - side], n);

				if (m->is_delivered && !m->is_released)
					thinks_later(w, c, side, n);
			}
		}
	}
}

void sim_client_stall(struct sim_world *w, uint32_t host, uint32_t client, bool is_stalled)
{
	struct client *cl = sim_client(w, host, client);

	cl->is_stalled = is_stalled;
	if (!is_stalled)
		thinks_on(w, cl);
}

void sim_client_manner(struct sim_world *w, uint32_t host, uint32_t client, enum sim_manner manner)
{
	struct client *cl = sim_client(w, host, client);

	cl->manner = manner;
	thinks_on(w, cl);
}

void sim_client_kill(struct sim_world *w, uint32_t host, uint32_t client)
{
	struct client *old = sim_client(w, host, client);

	if (!sim_is_running(w, host))
		return;
	w->counts.deaths++;
	w->hosts[host].clients[client] = sim_client_new(w, host, client, old->arena_bytes);
	w->hosts[host].clients[client]->is_stalled = old->is_stalled;
	w->hosts[host].clients[client]->manner = old->manner;
	old->is_dead = true;
	old->want_count = 0;
	for (uint32_t i = 0; i < w->chan_count; i++) {
		for (uint32_t side = 0; side < 2; side++) {
			if (w->chans[i]->ends[side].client == old)
				sim_channel_abort(w, w->chans[i], side);
		}
	}
	sim_client_put(old);
	for (uint32_t i = 0; i < w->pipe_count; i++) {
		struct pipe *pipe = w->pipes[i];

		if (pipe->host[0] == host && pipe->client[0] == client)
			sim_pipe_kick(w, pipe);
	}
}
