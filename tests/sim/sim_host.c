/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_host - engines and the pump, as in the daemon: events in, actions out; daemons that restart */
#include <stdlib.h>
#include <string.h>

#include "mrc_conn_impl.h" /* sizeof(struct mrc_space) and nothing else */
#include "sim_impl.h"

/* ---- memory ---- */

struct block {
	size_t bytes;
	uint64_t pad; /* keeps what follows aligned */
};

static void *engine_alloc(void *context, size_t bytes)
{
	struct pair_end *pe = context;
	struct block *block = calloc(1, sizeof(*block) + bytes);

	if (!block)
		abort();
	if (!pe->may_alloc)
		sim_fail(pe->world, "allocation", "%zu bytes taken on the data path", bytes);
	block->bytes = bytes;
	pe->alloc_count++;
	pe->space_count += bytes == sizeof(struct mrc_space);
	pe->alloc_bytes += bytes;
	return block + 1;
}

static void engine_free(void *context, void *memory)
{
	struct pair_end *pe = context;
	struct block *block = (struct block *)memory - 1;

	pe->alloc_count--;
	pe->space_count -= block->bytes == sizeof(struct mrc_space);
	pe->alloc_bytes -= block->bytes;
	free(block);
}

/* Set-up takes memory, nothing else does (invariant 6). */
static bool is_setup(const struct mrc_event_in *ev)
{
	if (ev->kind == MRC_EV_ARRIVED)
		return ev->arrived.hdr->type == MRC_WIRE_OPEN ||
		       ev->arrived.hdr->type == MRC_WIRE_ACCEPT ||
		       ev->arrived.hdr->type == MRC_WIRE_KEYS;
	return ev->kind == MRC_EV_CH_OPEN || ev->kind == MRC_EV_CH_ACCEPT;
}

/* ---- time ---- */

/* What a host's clock shows: each began elsewhere, and one may run fast. */
uint64_t sim_clock(const struct sim_world *w, uint32_t host)
{
	const struct host *h = &w->hosts[host];

	return h->offset_ns + w->now_ns + (h->is_fast ? w->now_ns / 10 : 0);
}

/* When its clock will show `at_ns`. */
static uint64_t world_time(const struct sim_world *w, uint32_t host, uint64_t at_ns)
{
	const struct host *h = &w->hosts[host];

	if (at_ns <= h->offset_ns)
		return 0;
	at_ns -= h->offset_ns;
	return h->is_fast ? at_ns / 11 * 10 + at_ns % 11 : at_ns;
}

uint64_t sim_path_asked_ns(const struct sim_world *w, uint32_t pair, uint32_t side, uint8_t path)
{
	const struct mrc_conn *conn = w->pairs[pair].ends[side].conn;

	return conn->paths[path].oldest_sent_ns +
	       mrc_path_timeout_ns(&conn->paths[path], &conn->limits) / 2;
}

/* ---- events in ---- */

int sim_tell(struct sim_world *w, uint32_t pair, uint32_t side, const struct mrc_event_in *ev)
{
	struct pair_end *pe = &w->pairs[pair].ends[side];
	int r;

	if (!pe->conn)
		return -ENOENT;
	if (ev->kind == MRC_EV_ARRIVED)
		pe->heard_ns = sim_clock(w, w->pairs[pair].hosts[side]);
	pe->may_alloc = is_setup(ev);
	r = mrc_conn_handle(pe->conn, ev, sim_clock(w, w->pairs[pair].hosts[side]));
	pe->may_alloc = false;
	return r;
}

void sim_engine_timer(struct sim_world *w, uint32_t pair, uint32_t side, uint64_t armed_ns)
{
	struct mrc_event_in ev = {.kind = MRC_EV_TIMER};

	if (w->pairs[pair].ends[side].timer_ns != armed_ns)
		return;
	w->pairs[pair].ends[side].timer_ns = 0;
	sim_tell(w, pair, side, &ev);
	sim_pump(w, pair, side);
}

/* ---- actions out ---- */

static void copy(struct sim_world *w, struct pair_end *pe, uint32_t side,
		 const struct mrc_act_msg *am)
{
	struct chan *c = sim_channel_of(w, am->channel_cookie);
	struct chan_end *ce = &c->ends[side];

	for (uint32_t i = 0; i < w->o.holds; i++) {
		const struct hold *hold = &pe->holds[i];

		if (hold->id != am->hold)
			continue;
		if (am->hold_offset + am->len > hold->len) {
			sim_fail(w, "bounds", "copy beyond the end of hold %llu",
				 (unsigned long long)am->hold);
			return;
		}
		w->counts.copies++;
		if (!sim_check_quiet(w, c, side, am->is_eager, am->addr, am->len, "copied") ||
		    !sim_check_write(w, c, side, am->is_eager, am->addr, am->len, am->number))
			return;
		memcpy(sim_landing(ce, am->is_eager, am->addr), hold->data + am->hold_offset,
		       am->len);
		return;
	}
	sim_fail(w, "bounds", "copy of hold %llu, which is not there",
		 (unsigned long long)am->hold);
}

static void hold_free(struct sim_world *w, struct pair_end *pe, uint64_t id)
{
	for (uint32_t i = 0; i < w->o.holds; i++) {
		if (pe->holds[i].id != id)
			continue;
		free(pe->holds[i].data);
		pe->holds[i] = (struct hold){0};
		pe->holds_used--;
		return;
	}
	sim_fail(w, "bounds", "hold %llu is freed and not there", (unsigned long long)id);
}

/* ERR, the wait for the last entry, RESET: mostly quick. */
static uint64_t fence_ns(struct sim_world *w, bool is_verbs)
{
	if (!is_verbs)
		return 0;
	return sim_draw(w,
			sim_draw(w, 1000) < w->o.fence_slow_permille ? 20 * MRC_MS : w->o.fence_ns);
}

static void path_action(struct sim_world *w, uint32_t pair, uint32_t side,
			const struct mrc_action *act)
{
	struct path *p = &w->pairs[pair].paths[act->path.index];
	struct end *end = &p->ends[side];
	uint32_t host = w->pairs[pair].hosts[side];
	struct mrc_event_in ev = {.kind = MRC_EV_CARRIER};

	switch (act->kind) {
	case MRC_ACT_CONNECT:
		sim_connect(w, pair, act->path.index);
		break;
	case MRC_ACT_FENCE:
		/* ERR at once: nothing more leaves. The confirmation takes its time on verbs. */
		sim_wire_kill(w, pair, act->path.index, side);
		sim_timer_add(w, w->now_ns + fence_ns(w, p->is_verbs), T_FENCED, pair,
			      act->path.index, side, end->serial);
		break;
	case MRC_ACT_STRIP:
		sim_wire_strip(w, &end->out);
		break;
	case MRC_ACT_CARRIER_ASK:
		ev.path.index = act->path.index;
		ev.path.is_up = sim_port(w, host, act->path.index)->is_carrier;
		sim_tell(w, pair, side, &ev);
		break;
	default:
		sim_trace(w, "host %s to %s path %u: %s -> %s (%s), %u moved", w->hosts[host].name,
			  w->hosts[w->pairs[pair].hosts[1 - side]].name, act->path.index,
			  mrc_path_state_name(act->path.state_old),
			  mrc_path_state_name(act->path.state),
			  mrc_path_reason_name(act->path.reason), act->path.moved_count);
		sim_check_path(w, pair, side, &act->path);
		if (w->path_watch) {
			const struct sim_path_change change = {
				.at_ns = w->now_ns,
				.host = host,
				.peer = w->pairs[pair].hosts[1 - side],
				.rail = act->path.index,
				.from = act->path.state_old,
				.to = act->path.state,
				.reason = act->path.reason,
				.moved = act->path.moved_count,
			};

			w->path_watch(w, &change, w->path_watch_context);
		}
		break;
	}
}

static void perform(struct sim_world *w, uint32_t pair, uint32_t side, const struct mrc_action *act)
{
	struct pair_end *pe = &w->pairs[pair].ends[side];
	struct chan *c;

	switch (act->kind) {
	case MRC_ACT_POST:
		sim_post(w, pair, side, &act->post);
		break;
	case MRC_ACT_CONNECT:
	case MRC_ACT_FENCE:
	case MRC_ACT_STRIP:
	case MRC_ACT_CARRIER_ASK:
	case MRC_ACT_PATH_STATE:
		path_action(w, pair, side, act);
		break;
	case MRC_ACT_CH_INCOMING:
		sim_channel_incoming(w, pair, side, &act->channel);
		break;
	case MRC_ACT_CH_UP:
		sim_channel_up(w, sim_channel_of(w, act->channel.cookie), side);
		break;
	case MRC_ACT_CH_ROOM:
		c = sim_channel_of(w, act->channel.cookie);
		sim_timer_add(w, w->now_ns, T_SEND, c->index, side, 0, 0);
		break;
	case MRC_ACT_CH_DOWN:
		sim_channel_down(w, pair, side, &act->channel);
		break;
	case MRC_ACT_CH_FREE:
		sim_channel_free(w, sim_channel_of(w, act->channel.cookie), side);
		break;
	case MRC_ACT_LANDING_WANT:
		sim_client_want(w, sim_channel_of(w, act->msg.channel_cookie), side,
				act->msg.number, act->msg.len);
		break;
	case MRC_ACT_LANDING_FREE:
		sim_client_landing_free(w, sim_channel_of(w, act->msg.channel_cookie), side,
					&act->msg);
		break;
	case MRC_ACT_DELIVER:
		sim_client_delivered(w, sim_channel_of(w, act->msg.channel_cookie), side,
				     &act->msg);
		break;
	case MRC_ACT_GAP:
		sim_client_gap(w, sim_channel_of(w, act->msg.channel_cookie), side,
			       act->msg.number);
		break;
	case MRC_ACT_DONE:
	case MRC_ACT_LATE:
		sim_channel_done(w, sim_channel_of(w, act->msg.channel_cookie), side, &act->msg,
				 act->kind == MRC_ACT_LATE);
		break;
	case MRC_ACT_TRACED:
		sim_check_traced(w, sim_channel_of(w, act->trace.channel_cookie), side,
				 &act->trace);
		break;
	case MRC_ACT_COPY:
		copy(w, pe, side, &act->msg);
		break;
	case MRC_ACT_HOLD_FREE:
		hold_free(w, pe, act->msg.hold);
		break;
	case MRC_ACT_PEER_DRAIN: /* no host of the simulator's is drained, nor a path drilled */
	case MRC_ACT_PEER_DRILL:
		sim_fail(w, "drain", "host %s: a peer is drained or drills, or did",
			 w->hosts[w->pairs[pair].hosts[side]].name);
		break;
	case MRC_ACT_CONN_RESET:
		w->counts.resets++;
		sim_trace(w, "host %s: a new conn epoch with %s",
			  w->hosts[w->pairs[pair].hosts[side]].name,
			  w->hosts[w->pairs[pair].hosts[1 - side]].name);
		if (w->pairs[pair].restarts == 0 && w->pairs[pair].is_met)
			sim_fail(w, "reset",
				 "host %s: a new conn epoch, though no daemon restarted",
				 w->hosts[w->pairs[pair].hosts[side]].name);
		break;
	}
}

void sim_pump(struct sim_world *w, uint32_t pair, uint32_t side)
{
	struct pair_end *pe = &w->pairs[pair].ends[side];
	uint32_t host = w->pairs[pair].hosts[side];
	uint64_t clock_ns = sim_clock(w, host);
	struct mrc_action act;
	uint64_t at_ns;
	uint32_t count = 0;

	if (!pe->conn || pe->is_pumping || w->hosts[host].paused)
		return;
	pe->is_pumping = true;
	while (!w->failure[0] && mrc_conn_next_action(pe->conn, &act, clock_ns)) {
		perform(w, pair, side, &act);
		if (++count > 1000000)
			sim_fail(w, "progress", "host %s: actions without end",
				 w->hosts[host].name);
	}
	pe->is_pumping = false;
	at_ns = mrc_conn_deadline_ns(pe->conn);
	if (at_ns == MRC_NEVER)
		return;
	at_ns = MRC_MAX(world_time(w, host, at_ns), w->now_ns + 1);
	if (pe->timer_ns <= w->now_ns || at_ns < pe->timer_ns) {
		pe->timer_ns = at_ns;
		sim_timer_add(w, at_ns, T_ENGINE, pair, side, 0, at_ns);
	}
}

/* ---- daemons ---- */

void sim_engine_config(struct sim_world *w, uint32_t pair, uint32_t side,
		       struct mrc_conn_config *config_out)
{
	const uint32_t *hosts = w->pairs[pair].hosts;

	*config_out = (struct mrc_conn_config){
		.host = w->hosts[hosts[side]].name,
		.peer = w->hosts[hosts[1 - side]].name,
		.boot_id = (uint64_t)(hosts[side] + 1) << 32 | w->hosts[hosts[side]].boot,
		.seed = w->o.seed + ((uint64_t)pair << 8 | side) +
			((uint64_t)w->hosts[hosts[side]].process << 40),
		.path_count = (uint8_t)w->o.rails,
		.features = sim_host_features(w, hosts[side], w->hosts[hosts[side]].process),
		.limits =
			{
				.channels_max = (uint32_t)w->o.channels_max,
				.frames_in_flight_max = (uint32_t)w->o.records,
				.holds_max = (uint32_t)w->o.holds,
				.ranges_max = (uint32_t)w->o.ranges,
				.eager_bytes_max = (uint32_t)w->o.eager_bytes,
				.direct_bytes_min = w->o.direct_bytes,
				.frag_bytes_max = (uint32_t)w->o.frag_bytes,
				.path_window_bytes_min = w->o.window_bytes_min,
				.path_window_bytes_max = w->o.window_bytes_max,
				.suspect_floor_ns = w->o.suspect_floor_ns,
				.suspect_ceiling_ns = w->o.suspect_ceiling_ns,
				.probe_interval_ns = w->o.probe_interval_ns,
			},
		.alloc = {.alloc = engine_alloc,
			  .free = engine_free,
			  .context = &w->pairs[pair].ends[side]},
	};
	for (uint32_t r = 0; r < w->o.rails; r++)
		config_out->rail_of[r] = r;
}

void sim_engine_holds(struct sim_world *w, struct pair_end *pe)
{
	pe->holds = calloc(w->o.holds + 1, sizeof(*pe->holds));
	if (!pe->holds)
		abort();
}

static void engine_new(struct sim_world *w, uint32_t pair, uint32_t side)
{
	struct pair_end *pe = &w->pairs[pair].ends[side];
	struct mrc_conn_config config;

	sim_engine_config(w, pair, side, &config);
	pe->world = w;
	pe->may_alloc = true;
	if (mrc_conn_new(&config, &pe->conn))
		abort();
	pe->may_alloc = false;
	pe->alloc_count_base = pe->alloc_count;
	pe->timer_ns = 0;
	pe->ctl_epoch = 0;
	sim_engine_holds(w, pe);
	sim_pump(w, pair, side);
}

void sim_engine_end(struct sim_world *w, struct pair_end *pe)
{
	mrc_conn_free(pe->conn);
	pe->conn = NULL;
	pe->timer_ns = 0;
	for (uint32_t i = 0; pe->holds && i < w->o.holds; i++)
		free(pe->holds[i].data);
	free(pe->holds);
	pe->holds = NULL;
	pe->holds_used = 0;
	if (pe->alloc_count)
		sim_fail(w, "memory", "a conn that is freed keeps %llu allocations",
			 (unsigned long long)pe->alloc_count);
}

void sim_host_start(struct sim_world *w, uint32_t host)
{
	struct host *h = &w->hosts[host];

	if (h->boot && --h->down)
		return;
	h->boot++;
	h->process++;
	if (h->boot > 1)
		h->trouble_until_ns = w->now_ns + 3 * MRC_S;
	sim_trace(w, "host %s: its daemon starts", h->name);
	for (uint32_t i = 0; i < w->pair_count; i++) {
		for (uint32_t side = 0; side < 2; side++) {
			if (w->pairs[i].hosts[side] != host)
				continue;
			engine_new(w, i, side);
		}
	}
	sim_denials_tell(w, host);
	for (uint32_t i = 0; i < w->pipe_count; i++) {
		if (w->pipes[i]->host[0] == host)
			sim_pipe_kick(w, w->pipes[i]);
	}
}

/* The daemon ends with all it knew; its clients lose their channels, its peers find out somehow. */
void sim_host_stop(struct sim_world *w, uint32_t host)
{
	struct host *h = &w->hosts[host];

	if (h->down++)
		return;
	w->counts.restarts++;
	h->trouble_until_ns = MRC_NEVER;
	sim_trace(w, "host %s: its daemon ends", h->name);
	for (uint32_t i = 0; i < w->pair_count; i++) {
		struct pair *pair = &w->pairs[i];
		uint32_t side = pair->hosts[1] == host;

		if (pair->hosts[side] != host)
			continue;
		pair->restarts++;
		for (uint32_t r = 0; r < w->o.rails; r++) {
			struct path *p = &pair->paths[r];

			if (side == 0)
				p->attempt.is_running = false;
			if (!p->ends[side].is_up)
				continue;
			sim_path_cut(w, i, r, side);
			if (!p->is_verbs)
				sim_path_gone_later(w, i, r, 1 - side, p->ends[side].serial);
		}
		for (uint32_t k = 0; k < pair->chan_count; k++)
			sim_channel_gone(w, w->chans[pair->chans[k]], side);
		sim_engine_end(w, &pair->ends[side]);
		sim_host_forget(w, i, side);
	}
	for (uint32_t c = 0; c < w->o.clients + (w->o.proof_bytes != 0); c++) {
		struct client *old = h->clients[c];

		h->clients[c] = sim_client_new(w, host, c, old->arena_bytes);
		h->clients[c]->is_stalled = old->is_stalled;
		h->clients[c]->manner = old->manner;
		old->is_dead = true;
		sim_client_put(old);
	}
}

void sim_pair_free(struct sim_world *w, struct pair *pair)
{
	for (uint32_t side = 0; side < 2; side++) {
		sim_engine_end(w, &pair->ends[side]);
		free(pair->ends[side].image.data);
		for (uint32_t r = 0; r < w->o.rails; r++) {
			sim_queue_drop(w, &pair->paths[r].ends[side].out, false);
			sim_queue_drop(w, &pair->paths[r].ends[side].out, true);
			free(pair->paths[r].ends[side].keys);
		}
	}
	free(pair->paths);
	free(pair->chans);
}
