/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_channel - channels: opened, used and ended by clients */
#include <stdlib.h>
#include <string.h>

#include "sim_impl.h"

#define PROOF_LEN 65536U

/* ---- one channel ---- */

struct chan *sim_channel_of(struct sim_world *w, uint64_t cookie)
{
	MRC_ASSERT(cookie >= 1 && cookie <= w->chan_count);
	return w->chans[cookie - 1];
}

struct msg *sim_msg(struct chan_end *ce, uint64_t number)
{
	uint32_t cap = (uint32_t)ce->msg_cap;

	sim_grow(&ce->msgs, &cap, (uint32_t)number + 1, sizeof(*ce->msgs));
	ce->msg_cap = cap;
	return &ce->msgs[number];
}

struct chan *sim_channel_new(struct sim_world *w, struct pipe *pipe,
			     const struct sim_channel_spec *spec)
{
	struct chan *c = calloc(1, sizeof(*c));
	uint32_t pair_index = w->pair_of[spec->from_host * w->o.hosts + spec->to_host];
	struct pair *pair = &w->pairs[pair_index];

	if (!c)
		abort();
	c->index = w->chan_count;
	c->pair = pair_index;
	c->pipe = pipe;
	c->opener = pair->hosts[1] == spec->from_host;
	c->is_unordered = spec->is_unordered;
	c->is_unchecked = spec->is_unchecked;
	c->to_client = spec->to_client;
	c->restarts = pair->restarts;
	c->close_after = UINT64_MAX;
	c->closer = SIM_NONE;
	c->think_ns = w->o.think_ns;
	if (spec->is_refused) {
		c->refused = MRC_OUT_REFUSED;
		c->refused_code = 7;
	}
	for (uint32_t side = 0; side < 2; side++) {
		struct chan_end *ce = &c->ends[side];

		ce->window = spec->window ? spec->window : w->o.window;
		ce->ring_bytes = spec->ring_bytes ? spec->ring_bytes : w->o.ring_bytes;
		ce->slot_bytes = spec->len_max ? spec->len_max : w->o.len_max;
		ce->slot_count = spec->slots ? spec->slots : w->o.slots;
	}
	sim_grow(&w->chans, &w->chan_cap, w->chan_count + 1, sizeof(struct chan *));
	w->chans[w->chan_count++] = c;
	sim_grow(&pair->chans, &pair->chan_cap, pair->chan_count + 1, sizeof(*pair->chans));
	pair->chans[pair->chan_count++] = c->index;
	return c;
}

/* This end begins: memory for both directions, and what the engine is told of it. */
static struct mrc_ev_channel end_begin(struct sim_world *w, struct chan *c, uint32_t side,
				       struct client *client)
{
	struct chan_end *ce = &c->ends[side];

	ce->client = client;
	client->refs++;
	w->ends_open++;
	ce->send = malloc(ce->slot_bytes * ce->slot_count + 1);
	ce->ring = malloc(ce->ring_bytes);
	if (!ce->send || !ce->ring)
		abort();
	memset(ce->ring, POISON, ce->ring_bytes);
	ce->msg_bytes_max = client->arena_bytes;
	for (uint32_t r = 0; r < w->o.rails; r++) {
		/* Now and then never: such a path carries payload in its frames. */
		if (w->o.verbs >> r & 1 && (!w->o.key_ns || sim_draw(w, 8)))
			sim_timer_add(w, w->now_ns + sim_draw(w, w->o.key_ns), T_KEY, c->index,
				      side, r, 0);
	}
	return (struct mrc_ev_channel){
		.id = ce->id,
		.flow = client->serial,
		.cookie = c->index + 1,
		.ring_addr = sim_ring_addr(c),
		.ring_bytes = ce->ring_bytes,
		.msg_bytes_max = ce->msg_bytes_max,
		.window = (uint32_t)ce->window,
	};
}

void sim_end_free(struct chan_end *ce)
{
	free(ce->send);
	free(ce->ring);
	ce->send = NULL;
	ce->ring = NULL;
	if (ce->client)
		sim_client_put(ce->client);
	ce->client = NULL;
}

bool sim_channel_open(struct sim_world *w, struct chan *c, const struct sim_channel_spec *spec)
{
	struct chan_end *ce = &c->ends[c->opener];
	struct mrc_event_in ev = {.kind = MRC_EV_CH_OPEN};
	char service[16];
	int r;

	ev.channel = end_begin(w, c, c->opener, sim_client(w, spec->from_host, spec->from_client));
	snprintf(service, sizeof(service), "s%u.%u", c->index, spec->to_client);
	ev.channel.service = service;
	ev.channel.is_unordered = c->is_unordered;
	ev.channel.is_unchecked = c->is_unchecked;
	ev.channel.id_out = &ce->id;
	r = sim_tell(w, c->pair, c->opener, &ev);
	if (r == 0) {
		sim_pump(w, c->pair, c->opener);
		return true;
	}
	if (r != -ENOSPC)
		sim_fail(w, "client", "CH_OPEN answered %d", r);
	w->ends_open--;
	ce->is_freed = true;
	sim_end_free(ce);
	return false;
}

/* ---- pipes ---- */

void sim_pipe_new(struct sim_world *w, uint32_t from, uint32_t from_client, uint32_t to,
		  uint32_t to_client, uint64_t messages, bool is_proof)
{
	struct pipe *pipe = calloc(1, sizeof(*pipe));

	if (!pipe)
		abort();
	*pipe = (struct pipe){
		.index = w->pipe_count,
		.host = {from, to},
		.client = {from_client, to_client},
		.is_unordered = !is_proof && sim_chance(w, w->o.unordered_permille),
		.is_unchecked = !is_proof && sim_chance(w, w->o.unchecked_permille),
		.chan = SIM_NONE,
		.left = {messages, messages},
		.is_proof = is_proof,
	};
	sim_grow(&w->pipes, &w->pipe_cap, w->pipe_count + 1, sizeof(struct pipe *));
	w->pipes[w->pipe_count++] = pipe;
	sim_pipe_kick(w, pipe);
}

void sim_pipe_kick(struct sim_world *w, struct pipe *pipe)
{
	if (pipe->chan != SIM_NONE || pipe->is_armed || (!pipe->left[0] && !pipe->left[1]))
		return;
	pipe->is_armed = true;
	sim_timer_add(w, w->now_ns + sim_draw(w, 5 * MRC_MS), T_PIPE, pipe->index, 0, 0, 0);
}

void sim_pipe_open(struct sim_world *w, uint32_t index)
{
	struct pipe *pipe = w->pipes[index];
	struct sim_channel_spec spec = {.from_host = pipe->host[0],
					.from_client = pipe->client[0],
					.to_host = pipe->host[1],
					.to_client = pipe->client[1],
					.is_unordered = pipe->is_unordered,
					.is_unchecked = pipe->is_unchecked};
	struct chan *c;

	pipe->is_armed = false;
	if (!sim_is_running(w, pipe->host[0]))
		return; /* when it starts again */
	if (w->hosts[pipe->host[0]].paused) {
		sim_pipe_kick(w, pipe);
		return;
	}
	if (pipe->is_proof) {
		spec.window = 64;
		spec.ring_bytes = PROOF_LEN;
		spec.len_max = PROOF_LEN;
		spec.slots = 8 * w->o.rails; /* enough to fill all windows */
	}
	c = sim_channel_new(w, pipe, &spec);
	if (pipe->is_proof) {
		c->think_ns = 0;
	} else {
		c->is_early = sim_chance(w, w->o.early_permille);
		c->closer = (uint32_t)sim_draw(w, 2);
		if (sim_chance(w, w->o.close_permille))
			c->close_after =
				sim_draw(w, w->o.close_after ? w->o.close_after : w->o.messages);
		if (sim_chance(w, w->o.refuse_permille)) {
			c->refused = sim_draw(w, 2) ? MRC_OUT_REFUSED : MRC_OUT_NOT_ALLOWED;
			c->refused_code = (uint32_t)sim_draw(w, 100);
		}
	}
	pipe->chan = c->index;
	if (!sim_channel_open(w, c, &spec)) {
		pipe->chan = SIM_NONE;
		sim_pipe_kick(w, pipe);
		return;
	}
	if (c->is_early)
		sim_channel_feed(w, c, c->opener);
}

static void pipe_lost(struct sim_world *w, struct chan *c)
{
	if (!c->pipe || c->pipe->chan != c->index)
		return;
	c->pipe->chan = SIM_NONE;
	sim_pipe_kick(w, c->pipe);
}

/* ---- sending ---- */

void sim_channel_close(struct sim_world *w, struct chan *c, uint32_t side)
{
	struct chan_end *ce = &c->ends[side];
	struct mrc_event_in ev = {.kind = MRC_EV_CH_CLOSE, .channel = {.id = ce->id}};

	if (!ce->id || ce->is_closing || ce->is_down || ce->is_gone || ce->is_aborted)
		return;
	ce->is_closing = true;
	sim_tell(w, c->pair, side, &ev);
	sim_pump(w, c->pair, side);
}

/* Which message comes next: a script's, or one drawn. False: none now. */
static bool plan(struct sim_world *w, struct chan *c, uint32_t side)
{
	struct chan_end *ce = &c->ends[side];
	uint32_t role = side != c->opener;
	struct msg *m;
	uint64_t kind;

	if (ce->send_next < ce->planned)
		return true;
	if (!c->pipe || c->pipe->chan != c->index || !c->pipe->left[role])
		return false;
	m = sim_msg(ce, ce->planned++);
	kind = sim_draw(w, 10);
	m->len = kind == 0  ? 0
		 : kind < 6 ? sim_draw(w, MRC_MIN(200, ce->slot_bytes))
			    : sim_draw(w, ce->slot_bytes) + 1;
	if (c->pipe->is_proof)
		m->len = ce->slot_bytes;
	m->want = (enum mrc_lvl)(1 + sim_draw(w, 3));
	c->pipe->left[role]--;
	return true;
}

void sim_channel_feed(struct sim_world *w, struct chan *c, uint32_t side)
{
	struct chan_end *ce = &c->ends[side];
	struct mrc_event_in ev = {.kind = MRC_EV_SEND};
	int r;

	if (!w->pairs[c->pair].ends[side].conn) {
		ce->is_unfed = true; /* when a daemon is there again */
		return;
	}
	while (ce->id && !ce->is_gone && !ce->is_aborted && !ce->is_down && !ce->is_closing &&
	       !w->failure[0] && (ce->is_up || c->is_early)) {
		uint64_t number = ce->send_next;
		uint64_t number_out = UINT64_MAX;
		uint64_t now_ns = sim_clock(w, w->pairs[c->pair].hosts[side]);
		struct msg *m;

		if (c->closer == side && number >= c->close_after) {
			c->is_closed_early = true;
			w->counts.closed_early++;
			sim_channel_close(w, c, side);
			return;
		}
		/* Its slot must be free: on an unordered channel answers come out of order. */
		if (number >= ce->slot_count && !sim_msg(ce, number - ce->slot_count)->is_answered)
			return;
		if (!plan(w, c, side))
			break;
		m = sim_msg(ce, number);
		m->addr = number % ce->slot_count * ce->slot_bytes;
		for (uint64_t i = 0; i < m->len; i++)
			ce->send[m->addr + i] = sim_byte_of(c->index, side, number, i);
		ev.msg = (struct mrc_ev_msg){.channel = ce->id,
					     .level = m->want,
					     .cookie = number,
					     .number_out = &number_out,
					     .addr = m->addr,
					     .len = m->len,
					     /* Any: the engine only wants to know whether. */
					     .deadline_ns = number % 3 ? 0 : 1,
					     .is_traced = c->pipe && number % 4 == 1,
					     .submitted_ns = now_ns,
					     .fetched_ns = now_ns};
		r = sim_tell(w, c->pair, side, &ev);
		if (r == -ENOSPC)
			return;
		if (r) { /* it has ended, and we shall hear of it */
			if (r != -ENOENT)
				sim_fail(w, "client", "channel %u: SEND answered %d", c->index, r);
			return;
		}
		if (number_out != number)
			sim_fail(w, "client", "channel %u: SEND numbered %llu, %llu was due",
				 c->index, (unsigned long long)number_out,
				 (unsigned long long)number);
		if (sim_chance(w, c->pipe && !c->pipe->is_proof ? w->o.cancel_permille : 0))
			sim_timer_add(w, w->now_ns + sim_draw(w, 2 * c->think_ns), T_CANCEL,
				      c->index, side, 0, number);
		m->is_sent = true;
		m->sent_ns = w->now_ns;
		ce->send_next++;
		sim_pump(w, c->pair, side);
	}
	sim_channel_close_if_done(w, c);
}

void sim_channel_cancel(struct sim_world *w, uint32_t chan, uint32_t side, uint64_t number)
{
	struct chan *c = w->chans[chan];
	struct chan_end *ce = &c->ends[side];
	struct mrc_event_in ev = {.kind = MRC_EV_CANCEL,
				  .msg = {.channel = ce->id,
					  .number = number,
					  .outcome = MRC_OUT_TIMED_OUT}};
	struct msg *m = sim_msg(ce, number);
	int r;

	if (ce->is_gone || ce->is_freed || ce->is_aborted)
		return;
	r = sim_tell(w, c->pair, side, &ev);
	if (r == 0) {
		m->is_cancelled = true;
		w->counts.cancels++;
		sim_pump(w, c->pair, side);
	} else if (r != -EALREADY && r != -ENOENT) {
		sim_fail(w, "client", "channel %u message %llu: CANCEL answered %d", chan,
			 (unsigned long long)number, r);
	}
}

void sim_channel_close_if_done(struct sim_world *w, struct chan *c)
{
	if (!c->pipe || c->pipe->chan != c->index || c->pipe->left[0] || c->pipe->left[1])
		return;
	for (uint32_t side = 0; side < 2; side++) {
		const struct chan_end *ce = &c->ends[side];

		if (!ce->is_up || ce->answered < ce->planned ||
		    ce->unreleased < c->ends[1 - side].planned)
			return;
	}
	sim_channel_close(w, c, c->closer == SIM_NONE ? c->opener : c->closer);
}

void sim_channel_done(struct sim_world *w, struct chan *c, uint32_t side,
		      const struct mrc_act_msg *am, bool is_late)
{
	struct chan_end *ce = &c->ends[side];
	struct msg *m;

	sim_check_done(w, c, side, am, is_late);
	if (w->failure[0])
		return;
	m = sim_msg(ce, am->cookie);
	m->outcome = am->outcome;
	m->level = am->level;
	m->is_undecided = am->is_undecided;
	if (is_late) {
		MRC_ASSERT(ce->undecided > 0);
		ce->undecided--;
		w->counts.late++;
		return;
	}
	ce->undecided += am->is_undecided;
	m->is_answered = true;
	m->answered_ns = w->now_ns;
	ce->answered++;
	ce->answered_ok += am->outcome == MRC_OUT_OK;
	w->counts.unknown += am->outcome == MRC_OUT_UNKNOWN;
	/* The client's again: whoever reads now reads wrong. */
	memset(ce->send + m->addr, SCRIBBLE, m->len);
	sim_timer_add(w, w->now_ns + sim_draw(w, c->think_ns ? 20 * MRC_US : 0), T_SEND, c->index,
		      side, 0, 0);
	sim_channel_close_if_done(w, c);
}

/* ---- what the engine says ---- */

static bool service_parse(struct sim_world *w, const char *service, struct chan **c_out,
			  uint32_t *client_out)
{
	unsigned index;
	unsigned client;

	if (sscanf(service, "s%u.%u", &index, &client) != 2 || index >= w->chan_count) {
		sim_fail(w, "client", "a channel to service '%s' comes in", service);
		return false;
	}
	*c_out = w->chans[index];
	*client_out = client;
	return true;
}

void sim_channel_incoming(struct sim_world *w, uint32_t pair, uint32_t side,
			  const struct mrc_act_channel *ac)
{
	struct chan *c;
	uint32_t client;
	struct chan_end *ce;

	if (!service_parse(w, ac->service, &c, &client))
		return;
	ce = &c->ends[side];
	if (c->pair != pair || side == c->opener || ce->is_waiting ||
	    ac->is_unordered != c->is_unordered || ac->is_unchecked != c->is_unchecked ||
	    (ce->id && c->restarts == w->pairs[pair].restarts)) {
		sim_fail(w, "once", "channel %u comes in twice, or at the wrong host", c->index);
		return;
	}
	if (ce->id) { /* of a run of the daemon before, or a conn epoch: it opens anew */
		struct mrc_event_in ev = {.kind = MRC_EV_CH_REFUSE,
					  .channel = {.id = ac->id, .outcome = MRC_OUT_NO_SERVICE}};

		c->refused = MRC_OUT_NO_SERVICE;
		c->refused_code = 0;
		sim_tell(w, pair, side, &ev);
		return;
	}
	ce->id = ac->id;
	ce->is_waiting = true;
	sim_timer_add(w, w->now_ns + sim_draw(w, c->think_ns), T_INCOMING, c->index, side, ac->id,
		      0);
}

void sim_channel_answer(struct sim_world *w, uint32_t chan, uint32_t side, uint32_t id)
{
	struct chan *c = w->chans[chan];
	struct chan_end *ce = &c->ends[side];
	struct mrc_event_in ev = {.kind = MRC_EV_CH_REFUSE, .channel = {.id = id}};
	int r;

	sim_pump(w, c->pair, side); /* no client has a turn before what has arrived is done with */
	if (!ce->is_waiting || ce->id != id || ce->is_gone)
		return;
	ce->is_waiting = false;
	if (c->refused) {
		ev.channel.outcome = c->refused;
		ev.channel.code = c->refused_code;
		ce->id = 0;
		w->counts.refused++;
	} else {
		ev.kind = MRC_EV_CH_ACCEPT;
		ev.channel = end_begin(w, c, side,
				       sim_client(w, w->pairs[c->pair].hosts[side], c->to_client));
	}
	r = sim_tell(w, c->pair, side, &ev);
	if (r)
		sim_fail(w, "client", "channel %u: ACCEPT or REFUSE answered %d", chan, r);
	sim_pump(w, c->pair, side);
}

void sim_channel_up(struct sim_world *w, struct chan *c, uint32_t side)
{
	struct chan_end *ce = &c->ends[side];

	if (ce->is_up || ce->is_down || ce->is_aborted)
		sim_fail(w, "client", "channel %u comes up twice, or after its end", c->index);
	ce->is_up = true;
	sim_timer_add(w, w->now_ns, T_SEND, c->index, side, 0, 0);
}

void sim_channel_down(struct sim_world *w, uint32_t pair, uint32_t side,
		      const struct mrc_act_channel *ac)
{
	struct chan *c;
	struct chan_end *ce;
	uint32_t client;

	if (!service_parse(w, ac->service, &c, &client))
		return;
	ce = &c->ends[side];
	if (c->pair != pair || ce->is_down || ce->is_aborted || !ce->id) {
		sim_fail(w, "client", "channel %u goes down twice, or was never up", c->index);
		return;
	}
	if (ce->is_waiting) { /* its client has not answered yet */
		ce->is_waiting = false;
		ce->id = 0;
		return;
	}
	ce->is_down = true;
	ce->outcome = ac->outcome;
	ce->down_code = ac->code;
	if (!sim_check_outcome(w, c, side, ac->outcome))
		sim_fail(w, "outcome", "channel %u went down at host %s: %d", c->index,
			 w->hosts[w->pairs[pair].hosts[side]].name, ac->outcome);
	if (c->refused && ac->outcome == c->refused && ac->code != c->refused_code)
		sim_fail(w, "outcome", "channel %u is refused with code %u, said was %u", c->index,
			 ac->code, c->refused_code);
	if (ce->undecided)
		sim_fail(w, "outcome", "channel %u is down with %llu undecided sends", c->index,
			 (unsigned long long)ce->undecided);
	if (ce->answered != ce->send_next)
		sim_fail(w, "outcome", "channel %u is down with %llu unanswered sends", c->index,
			 (unsigned long long)(ce->send_next - ce->answered));
	sim_client_unwant(ce->client, c->index, side);
	sim_client_grants(w, ce->client);
	if (side == c->opener)
		pipe_lost(w, c);
}

void sim_channel_free(struct sim_world *w, struct chan *c, uint32_t side)
{
	struct chan_end *ce = &c->ends[side];

	if (ce->is_freed || !ce->id) {
		sim_fail(w, "client", "channel %u is freed twice", c->index);
		return;
	}
	sim_check_quiet(w, c, side, true, 0, ce->ring_bytes, "freed with its channel");
	sim_check_quiet(w, c, side, false, 0, ce->client->arena_bytes, "freed with its channel");
	for (uint32_t i = 0; i < ce->client->grant_count; i++) {
		const struct grant *g = &ce->client->grants[i];

		if (g->chan == c->index && g->side == side)
			sim_fail(w, "memory",
				 "channel %u is freed, its buffer of message %llu is not", c->index,
				 (unsigned long long)g->number);
	}
	for (uint64_t n = 0; n < ce->send_next; n++) {
		if (sim_msg(ce, n)->reads_out)
			sim_fail(w, "memory",
				 "channel %u is freed, a rail may still read message %llu",
				 c->index, (unsigned long long)n);
	}
	ce->is_freed = true;
	w->ends_open--;
	sim_client_unwant(ce->client, c->index, side);
	sim_client_grants(w, ce->client);
	sim_end_free(ce);
}

/* ---- ends that nobody asked for ---- */

void sim_channel_abort(struct sim_world *w, struct chan *c, uint32_t side)
{
	struct chan_end *ce = &c->ends[side];
	struct mrc_event_in ev = {.kind = MRC_EV_CH_ABORT, .channel = {.id = ce->id}};

	sim_pump(w, c->pair, side); /* what has arrived is done with before a client's end is */
	if (!ce->id || ce->is_freed || ce->is_gone || ce->is_aborted)
		return;
	ce->is_aborted = true;
	c->is_dead[side] = true;
	sim_tell(w, c->pair, side, &ev);
	sim_pump(w, c->pair, side);
	if (side == c->opener)
		pipe_lost(w, c);
}

void sim_channel_gone(struct sim_world *w, struct chan *c, uint32_t side)
{
	struct chan_end *ce = &c->ends[side];

	if (!ce->id || ce->is_freed || ce->is_gone)
		return;
	ce->is_gone = true;
	if (!ce->is_waiting) {
		w->ends_open--;
		sim_end_free(ce);
	}
	ce->is_waiting = false;
	if (side == c->opener)
		pipe_lost(w, c);
}
