/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_script - what a script does with channels and messages, and what it sees of them */
#include "sim_impl.h"

static uint32_t side_of(const struct sim_world *w, const struct chan *c, uint32_t host)
{
	return w->pairs[c->pair].hosts[1] == host;
}

uint32_t sim_open(struct sim_world *w, const struct sim_channel_spec *spec)
{
	struct chan *c = sim_channel_new(w, NULL, spec);

	c->is_early = true;
	return sim_channel_open(w, c, spec) ? c->index : SIM_NONE;
}

uint64_t sim_send(struct sim_world *w, uint32_t channel, uint32_t host, uint64_t len,
		  enum mrc_lvl level)
{
	struct chan *c = w->chans[channel];
	uint32_t side = side_of(w, c, host);
	struct chan_end *ce = &c->ends[side];
	struct msg *m = sim_msg(ce, ce->planned);

	MRC_ASSERT(len <= ce->slot_bytes);
	m->len = len;
	m->want = level;
	ce->planned++;
	sim_channel_feed(w, c, side);
	return ce->planned - 1;
}

bool sim_cancel(struct sim_world *w, uint32_t channel, uint32_t host, uint64_t number)
{
	struct chan *c = w->chans[channel];
	uint32_t side = side_of(w, c, host);
	struct msg *m = sim_msg(&c->ends[side], number);

	if (m->is_sent && !m->is_answered)
		sim_channel_cancel(w, channel, side, number);
	return m->is_cancelled;
}

void sim_close(struct sim_world *w, uint32_t channel, uint32_t host)
{
	struct chan *c = w->chans[channel];

	c->is_closed_early = true;
	sim_channel_close(w, c, side_of(w, c, host));
}

void sim_channel_status(const struct sim_world *w, uint32_t channel, uint32_t host,
			struct sim_channel_status *status_out)
{
	const struct chan *c = w->chans[channel];
	const struct chan_end *ce = &c->ends[side_of(w, c, host)];

	*status_out = (struct sim_channel_status){
		.is_open = ce->is_up && !ce->is_down && !ce->is_gone,
		.is_down = ce->is_down,
		.is_freed = ce->is_freed || ce->is_gone,
		.outcome = ce->outcome,
		.sent = ce->send_next,
		.answered = ce->answered,
		.answered_ok = ce->answered_ok,
		.delivered = ce->delivered,
		.released = ce->released,
	};
}

void sim_message_status(const struct sim_world *w, uint32_t channel, uint32_t host, uint64_t number,
			struct sim_message_status *status_out)
{
	const struct chan *c = w->chans[channel];
	const struct chan_end *ce = &c->ends[side_of(w, c, host)];
	const struct msg *m;

	*status_out = (struct sim_message_status){0};
	if (number >= ce->planned)
		return;
	m = &ce->msgs[number];
	*status_out = (struct sim_message_status){
		.is_sent = m->is_sent,
		.is_answered = m->is_answered,
		.is_delivered = m->is_delivered,
		.is_visible = m->is_visible,
		.is_committed = m->is_committed,
		.is_rejected = m->is_rejected,
		.is_released = m->is_released,
		.is_gap = m->is_gap,
		.outcome = m->outcome,
		.level = m->level,
		.sent_ns = m->sent_ns,
		.delivered_ns = m->delivered_ns,
		.answered_ns = m->answered_ns,
	};
}
