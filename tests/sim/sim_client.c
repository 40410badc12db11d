/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_client - virtual clients: what they send, take and judge, and what they hold the engines to */
#include "sim_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- clients ---- */

void sim_client_equip(struct sim_world *w, struct chan_end *ce)
{
	ce->is_live = true;
	ce->send = malloc(w->o.arena_bytes);
	ce->landing = malloc(w->o.arena_bytes + w->o.ring_bytes);
	ce->msgs = calloc(SIM_MSGS_MAX, sizeof(*ce->msgs));
	if (!ce->send || !ce->landing || !ce->msgs)
		abort();
	memset(ce->landing, POISON, w->o.arena_bytes + w->o.ring_bytes);
}

struct mrc_ev_channel sim_half(struct sim_world *w, uint32_t chan)
{
	return (struct mrc_ev_channel){
		.flow = chan % 3 + 1,
		.cookie = chan + 1,
		.ring_bytes = w->o.ring_bytes,
		.msg_bytes_max = w->o.arena_bytes / 2,
		.window = w->o.window,
	};
}

/* Send arena: slot per message, chosen by number; wide enough for the largest. */
static uint64_t send_slots(const struct sim_world *w)
{
	return w->o.arena_bytes / w->o.len_max;
}

void sim_client_send(struct sim_world *w, uint32_t host, uint32_t chan)
{
	struct chan_end *ce = &w->chans[chan].ends[host];
	struct msg *m;
	struct mrc_event_in ev = {.kind = MRC_EV_SEND};
	int r;

	while (ce->is_live && !ce->is_down && !ce->is_closing && ce->send_next < w->o.messages &&
	       ce->send_next - ce->answered < send_slots(w)) {
		m = &ce->msgs[ce->send_next];
		if (!m->is_sent) {
			uint64_t kind = sim_draw(w, 10);

			/* Its slot must be free: answers may come out of order on an unordered channel. */
			if (ce->send_next >= send_slots(w) &&
			    !ce->msgs[ce->send_next - send_slots(w)].is_answered)
				return;
			m->len = kind == 0  ? 0
				 : kind < 6 ? sim_draw(w, MRC_MIN(200, w->o.len_max))
					    : sim_draw(w, w->o.len_max) + 1;
			m->addr = ce->send_next % send_slots(w) * w->o.len_max;
			m->want = (enum mrc_lvl)(1 + sim_draw(w, 3));
			for (uint64_t i = 0; i < m->len; i++)
				ce->send[m->addr + i] = sim_byte_of(chan, host, ce->send_next, i);
		}
		ev.msg = (struct mrc_ev_msg){.channel = ce->id,
					     .level = m->want,
					     .cookie = ce->send_next,
					     .addr = m->addr,
					     .len = m->len};
		r = sim_handle(w, host, &ev);
		if (r == -ENOSPC)
			return;
		if (r) {
			if (!ce->is_down)
				sim_fail(w, "host %u channel %u: SEND answered %d", host, chan, r);
			return;
		}
		m->is_sent = true;
		ce->send_next++;
	}
}

static void client_close_if_done(struct sim_world *w, uint32_t chan)
{
	struct chan *c = &w->chans[chan];
	struct mrc_event_in ev = {.kind = MRC_EV_CH_CLOSE};

	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		struct chan_end *ce = &c->ends[h];

		if (!ce->is_live || ce->answered < w->o.messages)
			return;
		for (uint64_t n = 0; n < ce->send_next; n++) {
			if (!ce->msgs[n].is_released)
				return;
		}
	}
	if (!c->ends[0].is_closing && !c->ends[0].is_down) {
		c->ends[0].is_closing = true;
		ev.channel.id = c->ends[0].id;
		sim_handle(w, 0, &ev);
		sim_pump(w, 0);
	}
}

void sim_client_delivered(struct sim_world *w, uint32_t host, const struct mrc_act_msg *am)
{
	uint32_t chan = (uint32_t)am->channel_cookie - 1;
	struct chan_end *ce = sim_chan_by_cookie(w, host, am->channel_cookie);
	struct chan_end *from = &w->chans[chan].ends[1 - host];
	struct msg *m = &from->msgs[am->number];
	uint8_t *at = ce->landing + (am->is_eager ? 0 : w->o.ring_bytes) + am->addr;

	if (am->number >= from->send_next || m->is_delivered) {
		sim_fail(w, "host %u channel %u: message %llu delivered %s", host, chan,
			 (unsigned long long)am->number,
			 m->is_delivered ? "twice" : "that was never sent");
		return;
	}
	if (!w->o.is_unordered && am->number != ce->expected)
		sim_fail(w, "host %u channel %u: message %llu delivered, %llu was due", host, chan,
			 (unsigned long long)am->number, (unsigned long long)ce->expected);
	ce->expected = am->number + 1;
	if (am->len != m->len)
		sim_fail(w, "host %u channel %u message %llu: %llu bytes, sent %llu", host, chan,
			 (unsigned long long)am->number, (unsigned long long)am->len,
			 (unsigned long long)m->len);
	for (uint64_t i = 0; i < am->len; i++) {
		if (at[i] != sim_byte_of(chan, 1 - host, am->number, i)) {
			sim_fail(w, "host %u channel %u message %llu: byte %llu is %02x", host,
				 chan, (unsigned long long)am->number, (unsigned long long)i,
				 at[i]);
			break;
		}
	}
	m->is_delivered = true;
	m->landing = am->addr;
	m->is_eager = am->is_eager;
	ce->delivered++;
	sim_timer_add(w, w->now_ns + sim_draw(w, w->o.think_ns), T_THINK, host, chan, 0,
		      am->number);
}

/* The receiving program sees, judges and releases a message, a step at a time. */
void sim_client_thinks(struct sim_world *w, uint32_t host, uint32_t chan, uint64_t number)
{
	struct chan_end *ce = &w->chans[chan].ends[host];
	struct msg *m = &w->chans[chan].ends[1 - host].msgs[number];
	struct mrc_event_in ev = {.msg = {.channel = ce->id, .number = number}};
	int r;

	if (ce->is_freed)
		return;
	if (!m->is_visible) {
		m->is_visible = true;
		ev.kind = MRC_EV_VISIBLE;
	} else if (!m->is_committed && !m->is_rejected && sim_draw(w, 2)) {
		if (sim_draw(w, 1000) < w->o.reject_permille) {
			ev.kind = MRC_EV_REJECT;
			ev.msg.code = (uint32_t)sim_draw(w, 1000) + 1;
			m->code = ev.msg.code;
			m->is_rejected = true;
		} else {
			ev.kind = MRC_EV_COMMIT;
			m->is_committed = true;
		}
	} else {
		uint8_t *at = ce->landing + (m->is_eager ? 0 : w->o.ring_bytes) + m->landing;

		for (uint64_t i = 0; i < m->len; i++) {
			if (at[i] != sim_byte_of(chan, 1 - host, number, i)) {
				sim_fail(w,
					 "host %u channel %u message %llu: byte %llu changed after "
					 "delivery",
					 host, chan, (unsigned long long)number,
					 (unsigned long long)i);
				break;
			}
		}
		ev.kind = MRC_EV_RELEASE;
		m->is_released = true;
		if (!m->is_rejected)
			m->is_committed = true;
		if (m->is_eager)
			memset(at, POISON, m->len);
	}
	r = sim_handle(w, host, &ev);
	if (r && !ce->is_down)
		sim_fail(w, "host %u channel %u message %llu: event %d answered %d", host, chan,
			 (unsigned long long)number, ev.kind, r);
	if (!m->is_released)
		sim_timer_add(w, w->now_ns + sim_draw(w, w->o.think_ns), T_THINK, host, chan, 0,
			      number);
	sim_pump(w, host);
	client_close_if_done(w, chan);
}

void sim_client_done(struct sim_world *w, uint32_t host, const struct mrc_act_msg *am)
{
	uint32_t chan = (uint32_t)am->channel_cookie - 1;
	struct chan_end *ce = sim_chan_by_cookie(w, host, am->channel_cookie);
	struct msg *m = &ce->msgs[am->cookie];

	if (m->is_answered || !m->is_sent || am->number != am->cookie) {
		sim_fail(w, "host %u channel %u: message %llu answered wrongly", host, chan,
			 (unsigned long long)am->number);
		return;
	}
	m->is_answered = true;
	ce->answered++;
	memset(ce->send + m->addr, SCRIBBLE,
	       m->len); /* the client's again: whoever reads now reads wrong */
	if (am->outcome == MRC_OUT_OK) {
		bool is_true = (m->want != MRC_LVL_PLACED || m->is_delivered) &&
			       (m->want != MRC_LVL_VISIBLE || m->is_visible) &&
			       (m->want != MRC_LVL_COMMITTED || m->is_committed);

		if (!is_true)
			sim_fail(w, "host %u channel %u message %llu: level %d claimed too early",
				 host, chan, (unsigned long long)am->number, m->want);
	} else if (am->outcome == MRC_OUT_REJECTED) {
		if (!m->is_rejected || m->code != am->code)
			sim_fail(w, "host %u channel %u message %llu: rejection nobody gave", host,
				 chan, (unsigned long long)am->number);
	} else {
		sim_fail(w, "host %u channel %u message %llu: outcome %d", host, chan,
			 (unsigned long long)am->number, am->outcome);
	}
	sim_timer_add(w, w->now_ns + sim_draw(w, 20 * MRC_US), T_CLIENT_SEND, host, chan, 0, 0);
	client_close_if_done(w, chan);
}

/* Landing buffers: first fit over the grants of one channel, answered when there is room. */
static bool landing_take(struct sim_world *w, struct chan_end *ce, uint64_t len, uint64_t *addr_out)
{
	uint64_t at = 0;

	for (;;) {
		bool is_free = true;

		if (at + len > w->o.arena_bytes)
			return false;
		for (uint32_t i = 0; i < 64; i++) {
			if (ce->grants[i].len && at < ce->grants[i].addr + ce->grants[i].len &&
			    ce->grants[i].addr < at + len) {
				at = ce->grants[i].addr + ce->grants[i].len;
				is_free = false;
				break;
			}
		}
		if (is_free)
			break;
	}
	for (uint32_t i = 0; i < 64; i++) {
		if (!ce->grants[i].len) {
			ce->grants[i].addr = at;
			ce->grants[i].len = len;
			*addr_out = at;
			return true;
		}
	}
	return false;
}

void sim_landing_answer(struct sim_world *w, uint32_t host, struct chan_end *ce)
{
	while (ce->want_count) {
		struct mrc_event_in ev = {.kind = MRC_EV_LANDING,
					  .msg = {.channel = ce->id,
						  .number = ce->wants[0].number}};

		if (!landing_take(w, ce, ce->wants[0].len, &ev.msg.addr))
			return;
		ce->want_count--;
		memmove(ce->wants, ce->wants + 1, sizeof(ce->wants[0]) * ce->want_count);
		if (sim_handle(w, host, &ev)) {
			for (uint32_t i = 0; i < 64; i++) {
				if (ce->grants[i].len && ce->grants[i].addr == ev.msg.addr)
					ce->grants[i].len = 0;
			}
		}
	}
}
