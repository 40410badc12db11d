/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_link - virtual rails: frames under way, links that live and die, and the engines' actions */
#include "sim_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- wires ---- */

static void frame_free(struct frame *f)
{
	free(f->payload);
	free(f);
}

void sim_queue_drop(struct frame **head, struct frame **tail)
{
	while (*head) {
		struct frame *next = (*head)->next;

		frame_free(*head);
		*head = next;
	}
	*tail = NULL;
}

static void wire_kick(struct sim_world *w, uint32_t path, uint32_t host)
{
	struct wire *wire = &w->paths[path].ends[host].out;
	struct frame *f = wire->queue_head;
	uint64_t bytes;

	if (wire->is_busy || wire->is_dead || !f)
		return;
	wire->is_busy = true;
	bytes = MRC_WIRE_HDR_BYTES + (f->is_nop ? 0 : f->post.hdr.body_len);
	sim_timer_add(w, w->now_ns + 200 + bytes * MRC_S / w->o.rate * w->paths[path].rail.slow,
		      T_FRAME_OUT, path, host, w->paths[path].ends[host].epoch, 0);
}

bool sim_is_blocked(const struct sim_world *w, uint32_t path, uint32_t from)
{
	const struct rail_state *rail = &w->paths[path].rail;

	return rail->is_silent[from] || !rail->is_carrier[0] || !rail->is_carrier[1];
}

void sim_frame_out(struct sim_world *w, uint32_t path, uint32_t host, uint32_t epoch)
{
	struct end *end = &w->paths[path].ends[host];
	struct wire *wire = &end->out;
	struct frame *f = wire->queue_head;
	struct mrc_event_in ev = {.kind = MRC_EV_SENT,
				  .path = {.index = (uint8_t)path, .path_epoch = epoch}};

	if (end->epoch != epoch || wire->is_dead || !f)
		return;
	wire->is_busy = false;
	wire->queue_head = f->next;
	if (!wire->queue_head)
		wire->queue_tail = NULL;
	f->next = NULL;
	if (f->post.hdr.type == MRC_WIRE_FRAG && !f->is_nop && f->post.hdr.body_len) {
		struct chan_end *ce = sim_chan_by_cookie(w, host, f->post.channel_cookie);

		f->payload = malloc(f->post.hdr.body_len);
		if (!f->payload)
			abort();
		memcpy(f->payload, ce->send + f->post.payload_addr, f->post.hdr.body_len);
		f->post.hdr.body_crc = sim_crc32c(0, f->payload, f->post.hdr.body_len);
	}
	f->arrive_ns = w->now_ns + w->o.delay_ns + sim_draw(w, w->o.delay_ns / 4 + 1);
	if (wire->air_tail) {
		f->arrive_ns = MRC_MAX(f->arrive_ns, wire->air_tail->arrive_ns);
		wire->air_tail->next = f;
	} else {
		wire->air_head = f;
	}
	wire->air_tail = f;
	sim_timer_add(w, f->arrive_ns, T_ARRIVE, path, host, epoch, 0);
	wire->sent++;
	ev.path.count = wire->sent;
	if (end->is_up)
		sim_handle(w, host, &ev);
	wire_kick(w, path, host);
	sim_pump(w, host);
}

void sim_link_down(struct sim_world *w, uint32_t path, uint32_t host, enum mrc_path_reason reason)
{
	struct end *end = &w->paths[path].ends[host];
	struct mrc_event_in ev = {.kind = MRC_EV_PATH_DOWN,
				  .path = {.index = (uint8_t)path,
					   .path_epoch = end->epoch,
					   .reason = reason}};

	if (!end->is_up)
		return;
	end->is_up = false;
	end->out.is_dead = true;
	sim_queue_drop(&end->out.queue_head, &end->out.queue_tail);
	if (!w->o.is_verbs)
		sim_queue_drop(&end->out.air_head, &end->out.air_tail);
	/* Nothing can land here any more: the other end's frames in the air are refused. */
	sim_queue_drop(&w->paths[path].ends[1 - host].out.air_head,
		       &w->paths[path].ends[1 - host].out.air_tail);
	sim_handle(w, host, &ev);
	sim_pump(w, host);
}

/* Does a write to the landing memory of this message hit one that was delivered? */
static void ghost_check(struct sim_world *w, uint32_t chan, uint32_t host, uint64_t number)
{
	struct msg *m = &w->chans[chan].ends[1 - host].msgs[number];

	if (m->is_delivered)
		sim_fail(w,
			 "channel %u message %llu: a late write landed after its delivery to host "
			 "%u",
			 chan, (unsigned long long)number, host);
}

static void frame_arrives(struct sim_world *w, uint32_t path, uint32_t from)
{
	uint32_t host = 1 - from;
	struct end *end = &w->paths[path].ends[host];
	struct end *sender = &w->paths[path].ends[from];
	struct wire *wire = &sender->out;
	struct frame *f = wire->air_head;
	struct rail_state *rail = &w->paths[path].rail;
	struct mrc_wire_hdr hdr;
	struct mrc_event_in ev = {.kind = MRC_EV_ARRIVED};
	uint8_t raw[MRC_WIRE_HDR_BYTES];
	bool is_hdr_bad;
	int r;

	wire->air_head = f->next;
	if (!wire->air_head)
		wire->air_tail = NULL;
	w->frames++;
	if (f->is_nop) {
		f->post.hdr.type = MRC_WIRE_NOP;
		f->post.hdr.body_len = 0;
		f->post.hdr.flags = 0;
		f->post.hdr.msg_len = 0;
		f->post.hdr.offset = 0;
	}
	is_hdr_bad = sim_draw(w, 1000) < rail->corrupt_hdr_permille;
	if (f->payload && sim_draw(w, 1000) < rail->corrupt_body_permille)
		f->payload[sim_draw(w, f->post.hdr.body_len)] ^= (uint8_t)(1 + sim_draw(w, 255));
	mrc_wire_encode(&f->post.hdr, sim_crc32c, raw);
	if (is_hdr_bad)
		raw[sim_draw(w, MRC_WIRE_HDR_BYTES)] ^= (uint8_t)(1U << sim_draw(w, 8));
	r = mrc_wire_decode(raw, sim_crc32c, &hdr);
	if (r) {
		if (!is_hdr_bad)
			sim_fail(w, "host %u sent a frame of type %u that does not decode: %d",
				 from, f->post.hdr.type, r);
		frame_free(f);
		sim_link_down(w, path, host, MRC_REASON_CORRUPT);
		return;
	}
	if (!end->is_up || end->epoch != f->post.path_epoch) {
		frame_free(f);
		return;
	}
	/* A write lands whether or not the engine still believes in the path: our end is not fenced. */
	if (f->payload && hdr.flags & MRC_WIRE_F_DIRECT) {
		for (uint32_t c = 0; c < w->o.channels; c++) {
			struct chan_end *ce = &w->chans[c].ends[host];

			if (f->post.channel_cookie != c + 1 || !ce->is_live || ce->is_freed)
				continue;
			ghost_check(w, c, host, hdr.msg);
			if (!sender->is_up)
				w->ghosts++;
			memcpy(ce->landing +
				       (hdr.flags & MRC_WIRE_F_EAGER ? hdr.addr % w->o.ring_bytes
								     : w->o.ring_bytes + hdr.addr) +
				       hdr.offset,
			       f->payload, hdr.body_len);
		}
	}
	ev.arrived = (struct mrc_ev_arrived){
		.index = (uint8_t)path,
		.is_body_good = true,
		.path_epoch = end->epoch,
		.hdr = &hdr,
		.body = f->post.body,
	};
	if (hdr.type == MRC_WIRE_FRAG && hdr.body_len == 0) {
		ev.arrived.is_placed = true;
	} else if (hdr.type == MRC_WIRE_FRAG && hdr.flags & MRC_WIRE_F_DIRECT) {
		struct mrc_place place;

		ev.arrived.is_placed = true;
		if (mrc_conn_place_whole(w->hosts[host].conn, &hdr, &place)) {
			struct chan_end *ce = sim_chan_by_cookie(w, host, place.channel_cookie);

			ev.arrived.is_body_good =
				sim_crc32c(0,
					   ce->landing + (place.is_eager ? 0 : w->o.ring_bytes) +
						   place.addr,
					   hdr.body_len) == hdr.body_crc;
		}
	} else if (hdr.type == MRC_WIRE_FRAG && w->o.is_verbs) {
		struct host *hs = &w->hosts[host];

		for (uint32_t i = 0; i < 64; i++) {
			if (!hs->holds[i].id) {
				ev.arrived.is_body_good =
					sim_crc32c(0, f->payload, hdr.body_len) == hdr.body_crc;
				if (ev.arrived
					    .is_body_good) { /* as the rail does: a bad one is not kept */
					hs->holds[i].id = ++hs->hold_next;
					hs->holds[i].data = f->payload;
					ev.arrived.hold = hs->holds[i].id;
					f->payload = NULL;
				}
				break;
			}
		}
	} else if (hdr.type == MRC_WIRE_FRAG) {
		uint32_t done = 0;
		struct mrc_place place;

		MRC_ASSERT(f->payload || !hdr.body_len);
		ev.arrived.is_placed = true;
		while (done < hdr.body_len) {
			uint32_t len = mrc_conn_place(w->hosts[host].conn, &hdr, done, &place);

			if (place.is_scratch) {
				ev.arrived.is_placed = false;
			} else {
				struct chan_end *ce =
					sim_chan_by_cookie(w, host, place.channel_cookie);

				memcpy(ce->landing + (place.is_eager ? 0 : w->o.ring_bytes) +
					       place.addr,
				       f->payload + done, len);
				ghost_check(w, (uint32_t)place.channel_cookie - 1, host, hdr.msg);
			}
			done += len;
		}
		ev.arrived.is_body_good = sim_crc32c(0, f->payload, hdr.body_len) == hdr.body_crc;
	}
	r = sim_handle(w, host, &ev);
	if (w->o.is_traced)
		sim_trace(w, "%u<-%u path %u/%u %s ch %u msg %llu off %llu len %u -> %d", host,
			  from, path, end->epoch, mrc_wire_type_name(hdr.type), hdr.channel,
			  (unsigned long long)hdr.msg, (unsigned long long)hdr.offset, hdr.body_len,
			  r);
	frame_free(f);
	if (r == -EPROTO) {
		if (!is_hdr_bad)
			sim_fail(w, "host %u: %s from an honest peer broke the protocol", host,
				 mrc_wire_type_name(hdr.type));
		sim_link_down(w, path, host, MRC_REASON_PROTOCOL);
	}
	sim_pump(w, host);
}

void sim_arrive(struct sim_world *w, uint32_t path, uint32_t from, uint32_t epoch)
{
	struct wire *wire = &w->paths[path].ends[from].out;

	if (w->paths[path].ends[from].epoch != epoch)
		return;
	/* Blocked frames wait in the air: TCP and RC send them again until they give up. */
	while (wire->air_head && wire->air_head->arrive_ns <= w->now_ns) {
		if (sim_is_blocked(w, path, from)) {
			sim_timer_add(w, w->now_ns + 200 * MRC_US, T_ARRIVE, path, from, epoch, 0);
			return;
		}
		frame_arrives(w, path, from);
		if (w->paths[path].ends[from].epoch != epoch)
			return;
	}
}

/* Both ends conclude the same from two HELLOs, as in the daemon. */
void sim_connect_path(struct sim_world *w, uint32_t path)
{
	struct mrc_hello hello[SIM_HOSTS];
	struct mrc_auth auth;
	struct mrc_event_in ev = {.kind = MRC_EV_PATH_FAILED, .path = {.index = (uint8_t)path}};
	uint64_t boot[SIM_HOSTS];

	if (sim_is_blocked(w, path, 0) || sim_is_blocked(w, path, 1)) {
		sim_handle(w, 0, &ev);
		sim_pump(w, 0);
		return;
	}
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		if (w->paths[path].ends[h].is_up)
			sim_link_down(w, path, h, MRC_REASON_CLOSED);
	}
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		mrc_conn_hello(w->hosts[h].conn, (uint8_t)path, &hello[h]);
		boot[h] = hello[h].boot_id;
	}
	mrc_hello_conclude(&hello[0], &hello[1], &auth);
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		if (mrc_conn_join(w->hosts[h].conn, (uint8_t)path, &auth, boot[1 - h])) {
			sim_handle(w, 0, &ev);
			sim_pump(w, 0);
			return;
		}
	}
	ev.kind = MRC_EV_PATH_UP;
	ev.path.conn_epoch = auth.conn_epoch;
	ev.path.path_epoch = auth.path_epoch;
	ev.path.path_id = (uint16_t)path;
	ev.path.is_direct_capable = w->o.is_verbs;
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		struct end *end = &w->paths[path].ends[h];

		sim_queue_drop(&end->out.queue_head, &end->out.queue_tail);
		sim_queue_drop(&end->out.air_head, &end->out.air_tail);
		*end = (struct end){.is_up = true,
				    .epoch = auth.path_epoch,
				    .conn_epoch = auth.conn_epoch};
		ev.path.peer_boot_id = boot[1 - h];
		if (sim_handle(w, h, &ev))
			sim_fail(w, "host %u: PATH_UP refused", h);
	}
	sim_pump(w, 0);
	sim_pump(w, 1);
}

/* ---- actions ---- */

static void post(struct sim_world *w, uint32_t host, const struct mrc_act_post *p)
{
	struct end *end = &w->paths[p->index].ends[host];
	struct frame *f = malloc(sizeof(*f));

	if (!f)
		abort();
	if (!end->is_up || end->epoch != p->path_epoch) {
		sim_fail(w, "host %u posts on path %u/%u which is not there", host, p->index,
			 p->path_epoch);
		free(f);
		return;
	}
	memcpy(&f->post, p, offsetof(struct mrc_act_post, body) + p->body_len);
	f->next = NULL;
	f->payload = NULL;
	f->is_nop = false;
	if (end->out.queue_tail)
		end->out.queue_tail->next = f;
	else
		end->out.queue_head = f;
	end->out.queue_tail = f;
	wire_kick(w, p->index, host);
}

static void incoming(struct sim_world *w, uint32_t host, const struct mrc_act_channel *ac)
{
	uint32_t chan = (uint32_t)strtoul(ac->service + 1, NULL, 10);
	struct chan_end *ce = &w->chans[chan].ends[host];
	struct mrc_event_in ev = {.kind = MRC_EV_CH_ACCEPT, .channel = sim_half(w, chan)};

	sim_client_equip(w, ce);
	ce->id = ac->id;
	ev.channel.id = ac->id;
	if (sim_handle(w, host, &ev))
		sim_fail(w, "host %u: ACCEPT refused", host);
}

static void perform(struct sim_world *w, uint32_t host, const struct mrc_action *act)
{
	struct mrc_event_in ev = {0};
	struct chan_end *ce;

	switch (act->kind) {
	case MRC_ACT_POST:
		post(w, host, &act->post);
		break;
	case MRC_ACT_CONNECT:
		sim_timer_add(w, w->now_ns + 2 * w->o.delay_ns, T_CONNECT, act->path.index, 0, 0,
			      0);
		break;
	case MRC_ACT_FENCE: {
		struct end *end = &w->paths[act->path.index].ends[host];

		/* ERR at once: nothing more leaves. The confirmation takes its time on verbs. */
		end->out.is_dead = true;
		sim_queue_drop(&end->out.queue_head, &end->out.queue_tail);
		sim_timer_add(w, w->now_ns + (w->o.is_verbs ? sim_draw(w, 500 * MRC_US) : 0),
			      T_FENCED, act->path.index, host, act->path.path_epoch, 0);
		break;
	}
	case MRC_ACT_STRIP:
		for (struct frame *f = w->paths[act->path.index].ends[host].out.queue_head; f;
		     f = f->next)
			f->is_nop = true;
		break;
	case MRC_ACT_CARRIER_ASK:
		ev.kind = MRC_EV_CARRIER;
		ev.path.index = act->path.index;
		ev.path.is_up = w->paths[act->path.index].rail.is_carrier[host];
		sim_handle(w, host, &ev);
		break;
	case MRC_ACT_PATH_STATE:
		sim_trace(w, "host %u path %u: %s -> %s (%s), %u moved", host, act->path.index,
			  mrc_path_state_name(act->path.state_old),
			  mrc_path_state_name(act->path.state),
			  mrc_path_reason_name(act->path.reason), act->path.moved_count);
		break;
	case MRC_ACT_CH_INCOMING:
		incoming(w, host, &act->channel);
		break;
	case MRC_ACT_CH_UP:
		ce = sim_chan_by_cookie(w, host, act->channel.cookie);
		ce->is_connected = true;
		sim_timer_add(w, w->now_ns, T_CLIENT_SEND, host, (uint32_t)act->channel.cookie - 1,
			      0, 0);
		break;
	case MRC_ACT_CH_ROOM:
		sim_timer_add(w, w->now_ns, T_CLIENT_SEND, host, (uint32_t)act->channel.cookie - 1,
			      0, 0);
		break;
	case MRC_ACT_CH_DOWN:
		ce = sim_chan_by_cookie(w, host, act->channel.cookie);
		ce->is_down = true;
		if (act->channel.outcome)
			sim_fail(w, "host %u channel %llu went down: %d", host,
				 (unsigned long long)act->channel.cookie - 1, act->channel.outcome);
		if (ce->answered != ce->send_next)
			sim_fail(w, "host %u channel %llu down with unanswered sends", host,
				 (unsigned long long)act->channel.cookie - 1);
		break;
	case MRC_ACT_CH_FREE:
		sim_chan_by_cookie(w, host, act->channel.cookie)->is_freed = true;
		break;
	case MRC_ACT_LANDING_WANT:
		ce = sim_chan_by_cookie(w, host, act->msg.channel_cookie);
		ce->wants[ce->want_count].number = act->msg.number;
		ce->wants[ce->want_count++].len = act->msg.len;
		sim_landing_answer(w, host, ce);
		break;
	case MRC_ACT_LANDING_FREE:
		ce = sim_chan_by_cookie(w, host, act->msg.channel_cookie);
		for (uint32_t i = 0; i < 64; i++) {
			if (ce->grants[i].len && ce->grants[i].addr == act->msg.addr) {
				memset(ce->landing + w->o.ring_bytes + act->msg.addr, POISON,
				       ce->grants[i].len);
				ce->grants[i].len = 0;
			}
		}
		sim_landing_answer(w, host, ce);
		break;
	case MRC_ACT_DELIVER:
		sim_client_delivered(w, host, &act->msg);
		break;
	case MRC_ACT_GAP:
		sim_fail(w, "host %u: a gap nobody asked for", host);
		break;
	case MRC_ACT_DONE:
		sim_client_done(w, host, &act->msg);
		break;
	case MRC_ACT_COPY:
		ce = sim_chan_by_cookie(w, host, act->msg.channel_cookie);
		for (uint32_t i = 0; i < 64; i++) {
			struct hold *hold = &w->hosts[host].holds[i];

			if (hold->id == act->msg.hold)
				memcpy(ce->landing + (act->msg.is_eager ? 0 : w->o.ring_bytes) +
					       act->msg.addr,
				       hold->data + act->msg.hold_offset, act->msg.len);
		}
		ghost_check(w, (uint32_t)act->msg.channel_cookie - 1, host, act->msg.number);
		w->copies++;
		break;
	case MRC_ACT_HOLD_FREE:
		for (uint32_t i = 0; i < 64; i++) {
			struct hold *hold = &w->hosts[host].holds[i];

			if (hold->id == act->msg.hold) {
				free(hold->data);
				*hold = (struct hold){0};
			}
		}
		break;
	case MRC_ACT_CONN_RESET:
		w->resets++;
		sim_fail(w, "host %u: the conn was reset", host);
		break;
	}
}

void sim_pump(struct sim_world *w, uint32_t host)
{
	struct host *hs = &w->hosts[host];
	struct mrc_action act;
	uint64_t at_ns;
	uint32_t count = 0;

	if (hs->is_pumping || w->now_ns < hs->paused_until_ns)
		return;
	hs->is_pumping = true;
	while (mrc_conn_next_action(hs->conn, &act, w->now_ns) && !w->failure[0]) {
		perform(w, host, &act);
		if (++count > 1000000)
			sim_fail(w, "host %u: actions without end", host);
	}
	hs->is_pumping = false;
	at_ns = mrc_conn_deadline_ns(hs->conn);
	if (at_ns != MRC_NEVER && (hs->timer_ns <= w->now_ns || at_ns < hs->timer_ns)) {
		hs->timer_ns = MRC_MAX(at_ns, w->now_ns + 1);
		sim_timer_add(w, hs->timer_ns, T_ENGINE, host, 0, 0, hs->timer_ns);
	}
}
