/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_fault - what goes wrong: faults that hold on ports, hosts and clients, and end again */
#include <string.h>

#include "sim_impl.h"

#define TROUBLE_NS (3 * MRC_S) /* so long after a fault a path may still be suspected */

/* ---- ports ---- */

static bool is_on_port(const struct active_fault *f, uint32_t host, uint32_t rail)
{
	bool is_two_ended = f->spec.kind == SIM_CARRIER_BOTH || f->spec.kind == SIM_FLAP;

	return f->handle && f->spec.rail == rail &&
	       (f->spec.host == host || (is_two_ended && f->spec.peer == host));
}

static void carrier_set(struct sim_world *w, uint32_t host, uint32_t rail, bool is_up)
{
	struct port *port = sim_port(w, host, rail);

	if (port->is_carrier == is_up)
		return;
	port->is_carrier = is_up;
	/* Now and then the event is lost: nobody may depend on it. */
	if (!sim_chance(w, w->o.carrier_missed_permille))
		sim_timer_add(w, w->now_ns + sim_draw(w, 300 * MRC_US), T_CARRIER, host, rail, 0,
			      0);
}

/* Make the port what all faults that hold on it say. */
static void port_set(struct sim_world *w, uint32_t host, uint32_t rail)
{
	struct port *port = sim_port(w, host, rail);
	struct port p = {.is_carrier = true, .slow = 1, .delay_factor = 1};
	bool was_full = port->is_full;

	for (uint32_t i = 0; i < w->active_cap; i++) {
		const struct active_fault *f = &w->active[i];
		uint64_t amount = f->spec.amount;

		if (!is_on_port(f, host, rail))
			continue;
		switch (f->spec.kind) {
		case SIM_CARRIER_BOTH:
		case SIM_CARRIER_ONE:
			p.is_carrier = false;
			p.is_off = p.is_off || (f->spec.is_off && f->spec.host == host);
			break;
		case SIM_FLAP:
			p.is_carrier = p.is_carrier && !f->is_off;
			break;
		case SIM_SILENCE:
			p.is_in_silent = true;
			p.is_out_silent = true;
			break;
		case SIM_SILENCE_ONE_WAY:
			p.is_in_silent = p.is_in_silent || f->spec.is_inward;
			p.is_out_silent = p.is_out_silent || !f->spec.is_inward;
			break;
		case SIM_AMBIGUOUS:
			p.is_in_silent = true;
			break;
		case SIM_SLOW:
		case SIM_RATE_DROP:
			p.slow = MRC_MAX(p.slow, amount);
			break;
		case SIM_RTT_JUMP:
			p.delay_factor = MRC_MAX(p.delay_factor, amount);
			break;
		case SIM_QUEUE_FULL:
			p.is_full = true;
			break;
		case SIM_CORRUPT_BODY:
			p.corrupt_body_permille = amount;
			break;
		case SIM_CORRUPT_HDR:
			p.corrupt_hdr_permille = amount;
			break;
		case SIM_CORRUPT_CTL:
			p.corrupt_ctl_permille = amount;
			break;
		default:
			break;
		}
	}
	if (MRC_MAX(p.slow, port->slow) > 1 || p.is_full || was_full)
		port->slow_until_ns = w->now_ns + TROUBLE_NS;
	port->is_out_silent = p.is_out_silent;
	port->is_in_silent = p.is_in_silent;
	port->slow = p.slow;
	port->delay_factor = p.delay_factor;
	port->is_full = p.is_full;
	port->corrupt_body_permille = p.corrupt_body_permille;
	port->corrupt_hdr_permille = p.corrupt_hdr_permille;
	port->corrupt_ctl_permille = p.corrupt_ctl_permille;
	port->trouble_until_ns = w->now_ns + TROUBLE_NS;
	carrier_set(w, host, rail, p.is_carrier);
	if (p.is_off && !port->is_off)
		sim_port_off(w, host, rail);
	port->is_off = p.is_off;
	if (!was_full || port->is_full)
		return;
	for (uint32_t i = 0; i < w->pair_count; i++) {
		for (uint32_t side = 0; side < 2; side++) {
			if (w->pairs[i].hosts[side] == host)
				sim_wire_kick(w, i, rail, side);
		}
	}
}

void sim_carrier_tell(struct sim_world *w, uint32_t host, uint32_t rail)
{
	struct mrc_event_in ev = {.kind = MRC_EV_CARRIER,
				  .path = {.index = (uint8_t)rail,
					   .is_up = sim_port(w, host, rail)->is_carrier}};

	for (uint32_t i = 0; i < w->pair_count; i++) {
		for (uint32_t side = 0; side < 2; side++) {
			if (w->pairs[i].hosts[side] != host)
				continue;
			sim_tell(w, i, side, &ev);
			sim_pump(w, i, side);
		}
	}
}

void sim_flap_turn(struct sim_world *w, uint32_t handle, uint64_t period_ns)
{
	for (uint32_t i = 0; i < w->active_cap; i++) {
		struct active_fault *f = &w->active[i];

		if (f->handle != handle)
			continue;
		f->is_off = !f->is_off;
		port_set(w, f->spec.host, f->spec.rail);
		port_set(w, f->spec.peer, f->spec.rail);
		sim_timer_add(w, w->now_ns + period_ns, T_FLAP, handle, 0, 0, period_ns);
	}
}

/* ---- hosts ---- */

static void resume(struct sim_world *w, uint32_t host)
{
	struct host *h = &w->hosts[host];
	uint32_t count = h->deferred_count;

	if (--h->paused)
		return;
	/* A late turn: frames that wait are handled before any timer is judged (DESIGN 8). */
	for (uint32_t i = 0; i < count; i++) {
		const struct timer *t = &h->deferred[i];

		sim_timer_add(w, w->now_ns + (t->kind == T_ENGINE), t->kind, t->a, t->b, t->c,
			      t->d);
	}
	h->deferred_count = 0;
	h->trouble_until_ns = w->now_ns + TROUBLE_NS;
	for (uint32_t i = 0; i < w->pair_count; i++) {
		for (uint32_t side = 0; side < 2; side++) {
			if (w->pairs[i].hosts[side] == host)
				sim_pump(w, i, side);
		}
	}
}

static void break_paths(struct sim_world *w, uint32_t host, uint32_t rail, uint32_t peer,
			bool is_both)
{
	for (uint32_t i = 0; i < w->pair_count; i++) {
		for (uint32_t side = 0; side < 2; side++) {
			if (w->pairs[i].hosts[side] != host ||
			    (peer != SIM_NONE && w->pairs[i].hosts[1 - side] != peer))
				continue;
			sim_path_down(w, i, rail, side, MRC_REASON_ERROR);
			if (is_both)
				sim_path_down(w, i, rail, 1 - side, MRC_REASON_CLOSED);
		}
	}
}

/* Did it begin? A host that stands still hands nothing over. */
static bool leave(struct sim_world *w, uint32_t host)
{
	if (w->hosts[host].paused || w->failure[0])
		return false;
	sim_host_leave(w, host);
	return true;
}

static void take_over(struct sim_world *w, uint32_t host)
{
	sim_host_take_over(w, host);
	resume(w, host);
}

/* ---- beginning and ending ---- */

static uint64_t amount_draw(struct sim_world *w, enum sim_fault kind)
{
	switch (kind) {
	case SIM_SLOW:
		return 2 + sim_draw(w, 30);
	case SIM_RATE_DROP:
		return 100 + sim_draw(w, 900);
	case SIM_RTT_JUMP:
		return 2 + sim_draw(w, 62);
	case SIM_CORRUPT_BODY:
		return 1 + sim_draw(w, 300);
	case SIM_CORRUPT_HDR:
	case SIM_CORRUPT_CTL:
		return 1 + sim_draw(w, 20);
	case SIM_FLAP:
		return 2 + sim_draw(w, 6);
	default:
		return 0;
	}
}

uint32_t sim_fault_begin(struct sim_world *w, const struct sim_fault_spec *spec)
{
	struct active_fault *f;
	uint32_t i = 0;

	while (i < w->active_cap && w->active[i].handle)
		i++;
	sim_grow(&w->active, &w->active_cap, i + 1, sizeof(*w->active));
	f = &w->active[i];
	*f = (struct active_fault){.handle = w->handle_next++, .spec = *spec, .is_off = true};
	if (!f->spec.amount)
		f->spec.amount = amount_draw(w, spec->kind);
	w->active_count++;
	w->counts.faults++;
	sim_trace(w, "fault %u: %s host %s rail %u peer %s client %u amount %llu%s%s", f->handle,
		  sim_fault_name(spec->kind), w->hosts[spec->host].name, spec->rail,
		  w->hosts[spec->peer].name, spec->client, (unsigned long long)f->spec.amount,
		  spec->is_inward ? " inward" : "", spec->is_both ? " both" : "");
	switch (spec->kind) {
	case SIM_RESET:
		port_set(w, spec->host, spec->rail);
		port_set(w, spec->peer, spec->rail);
		break_paths(w, spec->host, spec->rail, spec->peer, spec->is_both);
		f->handle = 0;
		w->active_count--;
		return 0;
	case SIM_PAUSE:
		if (!w->hosts[spec->host].paused++)
			w->hosts[spec->host].paused_ns = w->now_ns;
		w->hosts[spec->host].trouble_until_ns = MRC_NEVER;
		return f->handle;
	case SIM_RESTART:
		sim_host_stop(w, spec->host);
		if (spec->is_both)
			sim_host_stop(w, spec->peer);
		return f->handle;
	case SIM_HANDOVER:
		f->is_left[0] = leave(w, spec->host);
		f->is_left[1] = spec->is_both && leave(w, spec->peer);
		return f->handle;
	case SIM_CLIENT_DEATH:
		sim_client_kill(w, spec->host, spec->client);
		f->handle = 0;
		w->active_count--;
		return 0;
	case SIM_CLIENT_STALL:
		sim_client_stall(w, spec->host, spec->client, true);
		return f->handle;
	case SIM_DRAIN:
		port_set(w, spec->host, spec->rail);
		if (!sim_port(w, spec->host, spec->rail)->denials++)
			sim_deny(w, spec->host, spec->rail, true);
		return f->handle;
	case SIM_KEY:
		port_set(w, spec->host, spec->rail);
		sim_key_withdraw(w, spec->host, spec->rail, true);
		return f->handle;
	default:
		port_set(w, spec->host, spec->rail);
		if (spec->kind == SIM_CARRIER_BOTH || spec->kind == SIM_FLAP)
			port_set(w, spec->peer, spec->rail);
		return f->handle;
	}
}

void sim_fault_end(struct sim_world *w, uint32_t handle)
{
	struct sim_fault_spec spec;
	bool is_left[2];
	uint32_t i = 0;

	while (i < w->active_cap && w->active[i].handle != handle)
		i++;
	if (!handle || i == w->active_cap)
		return;
	spec = w->active[i].spec;
	memcpy(is_left, w->active[i].is_left, sizeof(is_left));
	w->active[i].handle = 0;
	w->active_count--;
	sim_trace(w, "fault %u over: %s host %s", handle, sim_fault_name(spec.kind),
		  w->hosts[spec.host].name);
	switch (spec.kind) {
	case SIM_PAUSE:
		resume(w, spec.host);
		break;
	case SIM_RESTART:
		sim_host_start(w, spec.host);
		if (spec.is_both)
			sim_host_start(w, spec.peer);
		break;
	case SIM_HANDOVER:
		if (is_left[0])
			take_over(w, spec.host);
		if (is_left[1])
			take_over(w, spec.peer);
		break;
	case SIM_CLIENT_STALL:
		for (uint32_t k = 0; k < w->active_cap; k++) {
			const struct active_fault *f = &w->active[k];

			if (f->handle && f->spec.kind == SIM_CLIENT_STALL &&
			    f->spec.host == spec.host && f->spec.client == spec.client)
				return; /* another one holds */
		}
		sim_client_stall(w, spec.host, spec.client, false);
		break;
	case SIM_DRAIN:
		port_set(w, spec.host, spec.rail);
		if (!--sim_port(w, spec.host, spec.rail)->denials)
			sim_deny(w, spec.host, spec.rail, false);
		break;
	case SIM_KEY:
		port_set(w, spec.host, spec.rail);
		sim_key_withdraw(w, spec.host, spec.rail, false);
		break;
	default:
		port_set(w, spec.host, spec.rail);
		if (spec.kind == SIM_CARRIER_BOTH || spec.kind == SIM_FLAP)
			port_set(w, spec.peer, spec.rail);
		if (spec.kind == SIM_AMBIGUOUS)
			break_paths(w, spec.host, spec.rail, SIM_NONE, true);
		break;
	}
}

/*
 * While it was denied the operator had taken the rail out of the file, and has put it back: another
 * path is in the place of the one before. Without one more draw, so that seeds stay what they are.
 */
static void path_replace(struct sim_world *w, uint32_t pair, uint32_t side, uint32_t rail)
{
	struct pair *pr = &w->pairs[pair];
	struct attempt *attempt = &pr->paths[rail].attempt;
	struct mrc_conn *conn = pr->ends[side].conn;
	struct mrc_event_in ev = {.kind = MRC_EV_PATH_FAILED, .path = {.index = (uint8_t)rail}};

	if (!conn || (w->now_ns ^ w->o.seed ^ side) & 1)
		return;
	attempt->is_running = attempt->is_running && side != 0;
	sim_tell(w, pair, side, &ev);
	if (mrc_conn_path_remove(conn, (uint8_t)rail))
		return; /* its transport is there yet */
	if (mrc_conn_path_add(conn, (uint8_t)rail, sim_clock(w, pr->hosts[side])))
		sim_fail(w, "replace", "rail %u: no path can be put back", rail);
	w->counts.paths_replaced++;
	ev = (struct mrc_event_in){
		.kind = MRC_EV_CARRIER,
		.path = {.index = (uint8_t)rail,
			 .is_up = sim_port(w, pr->hosts[side], rail)->is_carrier}};
	sim_tell(w, pair, side, &ev);
	for (uint32_t k = 0; k < pr->chan_count; k++) {
		struct chan_end *end = &w->chans[pr->chans[k]]->ends[side];

		if (end->client && !end->is_freed && !end->is_gone)
			sim_keys_tell(w, pair, side, end->client);
	}
}

void sim_deny(struct sim_world *w, uint32_t host, uint32_t rail, bool is_denied)
{
	struct mrc_event_in ev = {.kind = is_denied ? MRC_EV_DENY : MRC_EV_ALLOW,
				  .path = {.index = (uint8_t)rail}};
	struct port *port = sim_port(w, host, rail);

	port->is_denied = port->is_denied && is_denied;

	for (uint32_t i = 0; i < w->pair_count; i++) {
		for (uint32_t side = 0; side < 2; side++) {
			if (w->pairs[i].hosts[side] != host)
				continue;
			if (!is_denied)
				path_replace(w, i, side, rail);
			sim_tell(w, i, side, &ev);
			sim_pump(w, i, side);
		}
	}
	port->is_denied = is_denied; /* all its engines have heard it */
}

void sim_denials_tell(struct sim_world *w, uint32_t host)
{
	for (uint32_t r = 0; r < w->o.rails; r++) {
		if (sim_port(w, host, r)->is_denied)
			sim_deny(w, host, r, true);
	}
}

/* One fault drawn, and the time of the next. */
void sim_fault_draw(struct sim_world *w)
{
	struct sim_fault_spec spec = {0};
	uint64_t span_ns;
	uint32_t handle;

	if (!w->faults_left || !w->o.fault_kinds)
		w->faults_left = 0;
	if (!w->faults_left)
		return;
	w->faults_left--;
	do
		spec.kind = (enum sim_fault)sim_draw(w, SIM_FAULT_COUNT);
	while (!(w->o.fault_kinds >> spec.kind & 1));
	spec.host = (uint32_t)sim_draw(w, w->o.hosts);
	spec.peer = (uint32_t)((spec.host + 1 + sim_draw(w, w->o.hosts - 1)) % w->o.hosts);
	spec.rail = (uint32_t)sim_draw(w, w->o.rails);
	spec.client = (uint32_t)sim_draw(w, w->o.clients);
	spec.is_inward = sim_draw(w, 2);
	spec.is_both = sim_draw(w, 3) == 0;
	spec.is_off = sim_draw(w, 2);
	/* Mostly short; a third as long as they get. */
	span_ns = sim_draw(w, sim_draw(w, 3) ? w->o.fault_span_ns / 8 : w->o.fault_span_ns) + 1;
	if (spec.kind == SIM_PAUSE && sim_draw(w, 16) == 0)
		span_ns = sim_draw(w, 3 * MRC_S);
	handle = sim_fault_begin(w, &spec);
	if (handle)
		sim_timer_add(w, w->now_ns + span_ns, T_FAULT_END, handle, 0, 0, 0);
	if (handle && spec.kind == SIM_FLAP)
		sim_flap_turn(w, handle, span_ns / 12 + MRC_US);
	sim_timer_add(w, w->now_ns + sim_draw(w, w->o.fault_gap_ns), T_FAULT, 0, 0, 0, 0);
}
