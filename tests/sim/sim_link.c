/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_link - virtual wires: frames under way, what gets through, what lands where */
#include <stdlib.h>
#include <string.h>

#include "sim_impl.h"

#define SIM_WIRE_FACTOR 20U /* how much faster than its rate a rail with a full bucket is */

#define LATE_NS         MRC_MS /* what a dead queue pair sent arrives up to so late */
#define QUEUED_NS \
	(10 * MRC_MS) /* so long after a queue its delay may still be held against a path */
#define RETRY_NS       (200 * MRC_US) /* a transport tries again what does not get through */
#define TRY_NS_MIN     7700000U       /* between two tries of a queue pair, by the kernel's ticks */
#define RETRY_FOR_EVER 7
#define OFF_NS_MIN     (3 * MRC_MS) /* an interface that is set down fails its queue pairs */
#define OFF_NS_MAX     (30 * MRC_MS)

/* ---- frames ---- */

static void frame_unlink(struct frame *f)
{
	if (!f->direct_at)
		return;
	*f->direct_at = f->direct_next;
	if (f->direct_next)
		f->direct_next->direct_at = f->direct_at;
	f->direct_at = NULL;
}

/* The rail no longer reads the client's memory for it. */
static void frame_read(struct frame *f)
{
	if (!f->is_reading)
		return;
	f->is_reading = false;
	sim_msg(&f->chan->ends[f->side], f->hdr.msg)->reads_out--;
}

static void frame_free(struct frame *f)
{
	frame_read(f);
	frame_unlink(f);
	free(f->payload);
	free(f);
}

void sim_queue_drop(struct sim_world *w, struct wire *wire, bool is_air)
{
	struct frame **head = is_air ? &wire->air_head : &wire->queue_head;

	(void)w;
	while (*head) {
		struct frame *next = (*head)->next;

		frame_free(*head);
		*head = next;
		wire->frame_count--;
	}
	if (is_air)
		wire->air_tail = NULL;
	else
		wire->queue_tail = NULL;
}

/* ---- what queue pairs do by themselves, as measured on soft-RoCE: README.md ---- */

/* So long it tries, (retries + 1) times its timer. */
static uint64_t tries_ns(struct sim_world *w)
{
	uint64_t try_ns = MRC_MAX(4096ULL << w->o.qp_timeout, TRY_NS_MIN);

	return (w->o.qp_retry + 1) * try_ns / 100 * (90 + sim_draw(w, 14));
}

void sim_wire_stuck(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side)
{
	struct end *end = &w->pairs[pair].paths[path].ends[side];

	if (!w->pairs[pair].paths[path].is_verbs || !end->is_up || end->out.is_dead ||
	    end->out.stuck_ns || w->o.qp_retry >= RETRY_FOR_EVER)
		return;
	end->out.stuck_ns = w->now_ns;
	sim_timer_add(w, w->now_ns + tries_ns(w), T_TRIED, pair, path, side, w->now_ns);
}

void sim_tried(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side, uint64_t since_ns)
{
	const struct end *end = &w->pairs[pair].paths[path].ends[side];

	/* Its peer's end stays up and knows nothing. */
	if (end->out.stuck_ns == since_ns)
		sim_path_error(w, pair, path, side, end->serial);
}

static void wire_fails(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side,
		       uint64_t after_ns)
{
	struct end *end = &w->pairs[pair].paths[path].ends[side];

	if (end->out.is_failing || !end->is_up)
		return;
	end->out.is_failing = true;
	sim_timer_add(w, w->now_ns + after_ns, T_ERROR, pair, path, side, end->serial);
}

static uint64_t off_ns(struct sim_world *w)
{
	return OFF_NS_MIN + sim_draw(w, OFF_NS_MAX - OFF_NS_MIN);
}

void sim_port_off(struct sim_world *w, uint32_t host, uint32_t rail)
{
	for (uint32_t i = 0; i < w->pair_count; i++) {
		for (uint32_t side = 0; side < 2; side++) {
			const struct path *p = &w->pairs[i].paths[rail];

			if (w->pairs[i].hosts[side] == host && p->is_verbs &&
			    p->ends[side].out.frame_count)
				wire_fails(w, i, rail, side, off_ns(w));
		}
	}
}

/* Its sender gives up: nothing more leaves or is read; what is on the way may still land. */
void sim_wire_kill(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side)
{
	struct wire *wire = &w->pairs[pair].paths[path].ends[side].out;
	bool is_late = w->pairs[pair].paths[path].is_verbs && !wire->is_dead && sim_draw(w, 2);
	uint64_t late_ns = is_late ? sim_draw(w, LATE_NS) : 0;

	/* All work requests complete now, flushed: that says nothing of the peer. */
	if (w->pairs[pair].paths[path].is_verbs && wire->done < wire->posted) {
		wire->done = wire->posted;
		if (!wire->is_sent_armed) {
			wire->is_sent_armed = true;
			sim_timer_add(w, w->now_ns, T_SENT, pair, path, side,
				      w->pairs[pair].paths[path].ends[side].serial);
		}
	}
	wire->is_dead = true;
	sim_queue_drop(w, wire, false);
	for (struct frame *f = wire->air_head; f; f = f->next) {
		frame_read(f);
		if (!is_late)
			continue;
		/* A switch had queued it: it comes when nobody thinks of it any more, and by no silence kept. */
		f->is_loose = true;
		f->arrive_ns = MRC_MAX(f->arrive_ns, w->now_ns) + late_ns;
		sim_timer_add(w, f->arrive_ns, T_ARRIVE, pair, path, side, 0);
	}
}

/* Frames of this transport that are in the air find nobody. */
void sim_wire_refuse(struct sim_world *w, struct wire *wire, uint64_t serial)
{
	struct frame **at = &wire->air_head;

	(void)w;
	wire->air_tail = NULL;
	while (*at) {
		struct frame *f = *at;

		if (f->serial != serial) {
			wire->air_tail = f;
			at = &f->next;
			continue;
		}
		*at = f->next;
		frame_free(f);
		wire->frame_count--;
	}
}

void sim_post(struct sim_world *w, uint32_t pair, uint32_t side, const struct mrc_act_post *post)
{
	struct end *end = &w->pairs[pair].paths[post->index].ends[side];
	struct frame *f;

	if (!end->is_up || end->epoch != post->path_epoch || end->out.is_dead) {
		sim_fail(w, "path", "host %s posts on path %u/%u, which is not there",
			 w->hosts[w->pairs[pair].hosts[side]].name, post->index, post->path_epoch);
		return;
	}
	sim_check_post(w, pair, side, post);
	f = malloc(sizeof(*f) + post->body_len);
	if (!f)
		abort();
	*f = (struct frame){
		.path = post->index,
		.side = side,
		.payload_addr = post->payload_addr,
		.rkey = post->rkey,
		.post_ns = w->now_ns,
		.serial = end->serial,
		.path_epoch = post->path_epoch,
		.hdr = post->hdr,
		.body_len = post->body_len,
	};
	memcpy(f->body, post->body, post->body_len);
	if (post->hdr.type == MRC_WIRE_FRAG && post->hdr.body_len) {
		struct chan_end *target;

		f->chan = sim_channel_of(w, post->channel_cookie);
		target = &f->chan->ends[1 - side];
		f->start = post->hdr.addr + post->hdr.offset;
		f->end = f->start + post->hdr.body_len;
		f->is_reading = true;
		sim_msg(&f->chan->ends[side], post->hdr.msg)->reads_out++;
		if (post->hdr.flags & MRC_WIRE_F_DIRECT) {
			f->direct_next = target->direct;
			f->direct_at = &target->direct;
			if (target->direct)
				target->direct->direct_at = &f->direct_next;
			target->direct = f;
		}
	}
	if (end->out.queue_tail)
		end->out.queue_tail->next = f;
	else
		end->out.queue_head = f;
	end->out.queue_tail = f;
	end->out.frame_count++;
	end->out.posted++;
	if (w->pairs[pair].paths[post->index].is_verbs &&
	    sim_port(w, w->pairs[pair].hosts[side], post->index)->is_off)
		wire_fails(w, pair, post->index, side, off_ns(w));
	sim_wire_kick(w, pair, post->index, side);
}

void sim_wire_kick(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side)
{
	struct end *end = &w->pairs[pair].paths[path].ends[side];
	struct port *out = sim_port(w, w->pairs[pair].hosts[side], path);
	struct port *in = sim_port(w, w->pairs[pair].hosts[1 - side], path);
	struct frame *f = end->out.queue_head;
	uint64_t rate = w->o.unequal ? w->o.rate / (path + 1) : w->o.rate;
	uint64_t bytes, span_ns;

	if (end->out.is_busy || end->out.is_dead || !f || out->is_full)
		return;
	end->out.is_busy = true;
	bytes = MRC_WIRE_HDR_BYTES + (f->is_nop ? 0 : f->hdr.body_len);
	/* All conns of a host share its port: they take turns by who asks first. */
	span_ns = bytes * MRC_S / rate * MRC_MAX(out->slow, in->slow);
	out->free_at_ns = MRC_MAX(out->free_at_ns, w->now_ns) + 200;
	if (w->o.bucket_bytes) {
		/* What was not used since is in the bucket, and goes out as fast as the wire is. */
		uint64_t bucket_ns = w->o.bucket_bytes * MRC_S / rate;

		out->paid_until_ns = MRC_MAX(out->paid_until_ns, w->now_ns) + span_ns;
		out->free_at_ns =
			MRC_MAX(out->free_at_ns + span_ns / SIM_WIRE_FACTOR,
				out->paid_until_ns - MRC_MIN(bucket_ns, out->paid_until_ns));
	} else {
		out->free_at_ns += span_ns;
	}
	sim_timer_add(w, out->free_at_ns, T_FRAME_OUT, pair, path, side, end->serial);
}

/* What is queued may not be read any more: it becomes NOPs, and one half written ends in zeros. */
void sim_wire_strip(struct sim_world *w, struct wire *wire)
{
	(void)w;
	for (struct frame *f = wire->queue_head; f; f = f->next) {
		frame_read(f);
		frame_unlink(f);
		if (f == wire->queue_head && wire->is_busy && f->hdr.type == MRC_WIRE_FRAG)
			f->is_zeroed = true;
		else
			f->is_nop = true;
	}
}

bool sim_is_blocked(const struct sim_world *w, uint32_t pair, uint32_t path, uint32_t from)
{
	const uint32_t *hosts = w->pairs[pair].hosts;
	const struct port *out = &w->hosts[hosts[from]].ports[path];
	const struct port *in = &w->hosts[hosts[1 - from]].ports[path];

	return out->is_out_silent || in->is_in_silent || !out->is_carrier || !in->is_carrier;
}

static void frame_read_payload(struct sim_world *w, struct frame *f, bool is_first)
{
	const struct chan_end *ce = &f->chan->ends[f->side];

	(void)w;
	if (is_first) {
		f->payload = malloc(f->hdr.body_len);
		if (!f->payload)
			abort();
	}
	memcpy(f->payload, ce->send + f->payload_addr, f->hdr.body_len);
	if (is_first)
		f->hdr.body_crc = sim_crc32c(0, f->payload, f->hdr.body_len);
}

void sim_frame_out(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side,
		   uint64_t serial)
{
	struct path *p = &w->pairs[pair].paths[path];
	struct end *end = &p->ends[side];
	struct wire *wire = &end->out;
	struct frame *f = wire->queue_head;
	struct port *out = sim_port(w, w->pairs[pair].hosts[side], path);
	const struct port *in = sim_port(w, w->pairs[pair].hosts[1 - side], path);
	uint64_t delay_ns = w->o.delay_ns * MRC_MAX(out->delay_factor, in->delay_factor);

	if (end->serial != serial || wire->is_dead || !f)
		return;
	wire->is_busy = false;
	if (w->now_ns - f->post_ns > w->o.suspect_floor_ns / 2)
		out->queued_until_ns = w->now_ns + QUEUED_NS;
	wire->queue_head = f->next;
	if (!wire->queue_head)
		wire->queue_tail = NULL;
	f->next = NULL;
	if (f->is_reading) {
		frame_read_payload(w, f, true);
		if (!p->is_verbs) /* the kernel has a copy now */
			frame_read(f);
	} else if (f->is_zeroed) {
		f->payload = calloc(1, f->hdr.body_len + 1);
		if (!f->payload)
			abort();
		f->hdr.body_crc = ~sim_crc32c(0, f->payload, f->hdr.body_len);
	}
	f->arrive_ns = w->now_ns + delay_ns + sim_draw(w, delay_ns / 4 + 1);
	if (wire->air_tail) {
		f->arrive_ns = MRC_MAX(f->arrive_ns, wire->air_tail->arrive_ns);
		wire->air_tail->next = f;
	} else {
		wire->air_head = f;
	}
	wire->air_tail = f;
	sim_timer_add(w, f->arrive_ns, T_ARRIVE, pair, path, side, 0);
	if (!p->is_verbs) {
		wire->done++;
		if (!wire->is_sent_armed) {
			wire->is_sent_armed = true;
			sim_timer_add(w, w->now_ns, T_SENT, pair, path, side, serial);
		}
	}
	sim_wire_kick(w, pair, path, side);
}

/* Local completions: TCP's when the kernel has it all, an RC queue pair's when the other has. */
void sim_sent(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side, uint64_t serial)
{
	struct end *end = &w->pairs[pair].paths[path].ends[side];
	struct mrc_event_in ev = {.kind = MRC_EV_SENT, .path = {.index = (uint8_t)path}};

	if (end->serial != serial || !end->is_up)
		return;
	if (w->pairs[pair].paths[path].is_verbs && !end->out.is_dead &&
	    sim_is_blocked(w, pair, path, 1 - side)) {
		sim_wire_stuck(w, pair, path, side);
		sim_timer_add(w, w->now_ns + RETRY_NS, T_SENT, pair, path, side, serial);
		return;
	}
	end->out.is_sent_armed = false;
	end->out.stuck_ns = 0;
	ev.path.path_epoch = end->epoch;
	ev.path.count = end->out.done;
	sim_tell(w, pair, side, &ev);
	sim_pump(w, pair, side);
}

/* ---- arriving ---- */

/* A write lands whether or not the engine still believes in the path: this end is not fenced. */
static void land_direct(struct sim_world *w, struct frame *f, const struct mrc_wire_hdr *hdr,
			bool is_ghost)
{
	uint32_t side = 1 - f->side;
	struct chan_end *ce = &f->chan->ends[side];
	bool is_ring = hdr->flags & MRC_WIRE_F_EAGER;
	uint64_t offset = is_ring ? hdr->addr % ce->ring_bytes + hdr->offset : f->start;

	w->counts.ghosts += is_ghost;
	if (sim_check_write(w, f->chan, side, is_ring, offset, hdr->body_len, hdr->msg))
		memcpy(sim_landing(ce, is_ring, offset), f->payload, hdr->body_len);
}

/* As a rail judges it: without a checksum nothing is said against it. */
static bool is_whole(const struct mrc_wire_hdr *hdr, const uint8_t *data)
{
	return hdr->flags & MRC_WIRE_F_UNCHECKED ||
	       sim_crc32c(0, data, hdr->body_len) == hdr->body_crc;
}

/* The stream's payload, read in pieces to where the engine says. */
static void land_stream(struct sim_world *w, struct mrc_conn *conn, uint32_t side, struct frame *f,
			const struct mrc_wire_hdr *hdr, struct mrc_ev_arrived *arrived)
{
	struct mrc_place place;
	uint32_t done = 0;

	arrived->is_placed = true;
	while (done < hdr->body_len) {
		uint32_t len = mrc_conn_place(conn, hdr, done, &place);
		uint32_t part = sim_draw(w, 4) ? len : 1 + (uint32_t)sim_draw(w, len);
		struct chan *c;

		if (place.is_scratch) {
			arrived->is_placed = false;
		} else {
			c = sim_channel_of(w, place.channel_cookie);
			if (!sim_check_write(w, c, side, place.is_eager, place.addr, part,
					     hdr->msg))
				return;
			memcpy(sim_landing(&c->ends[side], place.is_eager, place.addr),
			       f->payload + done, part);
		}
		done += part;
	}
	arrived->is_body_good = is_whole(hdr, f->payload);
	/* Its last byte says what no checksum does. */
	if (f->is_zeroed && hdr->flags & MRC_WIRE_F_UNCHECKED)
		arrived->is_placed = false;
}

static void land_hold(struct sim_world *w, struct pair_end *pe, struct frame *f,
		      const struct mrc_wire_hdr *hdr, struct mrc_ev_arrived *arrived)
{
	uint32_t i = 0;

	arrived->is_body_good = is_whole(hdr, f->payload);
	if (!arrived->is_body_good)
		return; /* as the rail does: a bad one is not kept */
	while (i < w->o.holds && pe->holds[i].id)
		i++;
	if (i == w->o.holds)
		return; /* no room: as if it had gone to scratch */
	pe->holds[i].id = ++pe->hold_next;
	pe->holds[i].data = f->payload;
	pe->holds[i].len = hdr->body_len;
	pe->holds_used++;
	arrived->hold = pe->holds[i].id;
	f->payload = NULL;
}

static void land(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t side, struct frame *f,
		 const struct mrc_wire_hdr *hdr, struct mrc_ev_arrived *arrived)
{
	struct pair_end *pe = &w->pairs[pair].ends[side];
	struct path *p = &w->pairs[pair].paths[path];
	struct mrc_place place;

	if (hdr->body_len == 0) {
		arrived->is_placed = true;
	} else if (hdr->flags & MRC_WIRE_F_DIRECT) {
		land_direct(w, f, hdr, !p->ends[1 - side].is_up || p->ends[1 - side].out.is_dead);
		arrived->is_placed = true;
		if (mrc_conn_place_whole(pe->conn, hdr, &place)) {
			const struct chan_end *ce =
				&sim_channel_of(w, place.channel_cookie)->ends[side];
			const uint8_t *at =
				(place.is_eager ? ce->ring : ce->client->arena) + place.addr;

			arrived->is_body_good = is_whole(hdr, at);
		}
	} else if (p->is_verbs) {
		land_hold(w, pe, f, hdr, arrived);
	} else {
		land_stream(w, pe->conn, side, f, hdr, arrived);
	}
}

/* What the wire made of the header: true when it decodes. */
static bool header_travels(struct sim_world *w, struct frame *f, uint64_t corrupt_permille,
			   struct mrc_wire_hdr *hdr_out, uint32_t from_host)
{
	uint8_t raw[MRC_WIRE_HDR_BYTES];
	bool is_bad = sim_chance(w, corrupt_permille);
	int r;

	if (f->is_nop) {
		f->hdr = (struct mrc_wire_hdr){.type = MRC_WIRE_NOP,
					       .conn_epoch = f->hdr.conn_epoch,
					       .path_epoch = f->hdr.path_epoch};
	}
	mrc_wire_encode(&f->hdr, sim_crc32c, raw);
	if (is_bad)
		raw[sim_draw(w, MRC_WIRE_HDR_BYTES)] ^= (uint8_t)(1U << sim_draw(w, 8));
	r = mrc_wire_decode(raw, sim_crc32c, hdr_out);
	if (r && !is_bad)
		sim_fail(w, "wire", "host %s sent a frame of type %u that does not decode: %d",
			 w->hosts[from_host].name, f->hdr.type, r);
	return r == 0;
}

/*
 * A write with a key that the device does not know any more lands nowhere: the
 * sender's queue pair breaks with the answer, and takes what is behind it along.
 */
static bool is_let_in(struct sim_world *w, uint32_t pair, uint32_t path, const struct frame *f)
{
	struct end *sender = &w->pairs[pair].paths[path].ends[f->side];
	uint32_t host = w->pairs[pair].hosts[1 - f->side];
	struct wire *wire = &sender->out;
	const struct client *client;

	if (sender->serial == f->serial && wire->is_refused)
		return false;
	if (f->hdr.type != MRC_WIRE_FRAG || !(f->hdr.flags & MRC_WIRE_F_DIRECT))
		return true;
	client = f->chan->ends[1 - f->side].client;
	if (!client || sim_key_is_valid(client, path, f->rkey))
		return true;
	w->counts.key_errors++;
	sim_trace(w, "host %s path %u: a write with key %x is refused", w->hosts[host].name, path,
		  f->rkey);
	sim_port(w, host, path)->trouble_until_ns = w->now_ns + 3 * MRC_S;
	if (sender->serial == f->serial) {
		wire->is_refused = true;
		wire_fails(w, pair, path, f->side, w->o.delay_ns);
	}
	/* By the book this end breaks as well; on soft-RoCE it does not. */
	if (sim_draw(w, 2))
		wire_fails(w, pair, path, 1 - f->side, 0);
	return false;
}

/* What damages payload damages a probe's padding as well. */
static bool is_control_damaged(struct sim_world *w, const struct port *out, const struct port *in,
			       const struct mrc_wire_hdr *hdr)
{
	uint64_t permille = MRC_MAX(out->corrupt_ctl_permille, in->corrupt_ctl_permille);

	if (hdr->type == MRC_WIRE_PROBE) {
		permille = MRC_MAX(permille, out->corrupt_body_permille);
		permille = MRC_MAX(permille, in->corrupt_body_permille);
	}
	return hdr->body_len && sim_chance(w, permille);
}

/* As a daemon does: what has arrived by the time it looks is all taken in before anything is said. */
static void arrived_pump(struct sim_world *w, uint32_t pair, uint32_t side)
{
	struct pair_end *pe = &w->pairs[pair].ends[side];

	if (w->o.turn_ns == 0) {
		sim_pump(w, pair, side);
	} else if (!pe->is_turn_due) {
		pe->is_turn_due = true;
		sim_timer_add(w, w->now_ns + 1 + sim_draw(w, w->o.turn_ns), T_TURN, pair, side, 0,
			      0);
	}
}

static void frame_arrives(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t from)
{
	struct pair *pr = &w->pairs[pair];
	uint32_t side = 1 - from;
	struct end *end = &pr->paths[path].ends[side];
	struct end *sender = &pr->paths[path].ends[from];
	struct wire *wire = &sender->out;
	struct frame *f = wire->air_head;
	const struct port *out = sim_port(w, pr->hosts[from], path);
	const struct port *in = sim_port(w, pr->hosts[side], path);
	bool is_verbs = pr->paths[path].is_verbs;
	struct mrc_wire_hdr hdr;
	struct mrc_event_in ev = {.kind = MRC_EV_ARRIVED};
	uint64_t serial = f->serial;
	int r;

	wire->air_head = f->next;
	if (!wire->air_head)
		wire->air_tail = NULL;
	f->next = NULL;
	wire->frame_count--;
	w->counts.frames++;
	/* A queue pair sends again by reading again. */
	if (wire->was_blocked && f->is_reading && sender->is_up && !wire->is_dead)
		frame_read_payload(w, f, false);
	frame_read(f);
	if (!end->is_up || end->serial != serial || !pr->ends[side].conn) {
		/* Nobody is there. A stream's sender learns it soon, a queue pair's when it has tried enough. */
		frame_free(f);
		if (!is_verbs)
			sim_timer_add(w, w->now_ns + w->o.delay_ns, T_BROKEN, pair, path, from,
				      serial);
		else if (sender->serial == serial)
			sim_wire_stuck(w, pair, path, from);
		return;
	}
	if (is_verbs && !is_let_in(w, pair, path, f)) {
		frame_free(f);
		return;
	}
	if (is_verbs && sender->serial == serial) {
		wire->done++;
		if (!wire->is_sent_armed) {
			wire->is_sent_armed = true;
			sim_timer_add(w, w->now_ns + w->o.delay_ns, T_SENT, pair, path, from,
				      serial);
		}
	}
	if (f->payload && !(f->hdr.flags & MRC_WIRE_F_UNCHECKED) &&
	    sim_chance(w, MRC_MAX(out->corrupt_body_permille, in->corrupt_body_permille)))
		f->payload[sim_draw(w, f->hdr.body_len)] ^= (uint8_t)(1 + sim_draw(w, 255));
	if (!header_travels(w, f, MRC_MAX(out->corrupt_hdr_permille, in->corrupt_hdr_permille),
			    &hdr, pr->hosts[from])) {
		frame_free(f);
		sim_path_down(w, pair, path, side, MRC_REASON_CORRUPT);
		return;
	}
	ev.arrived = (struct mrc_ev_arrived){
		.index = (uint8_t)path,
		.is_body_good = true,
		.path_epoch = end->epoch,
		.hdr = &hdr,
		.body = f->body,
	};
	if (hdr.type == MRC_WIRE_FRAG) {
		land(w, pair, path, side, f, &hdr, &ev.arrived);
	} else if (is_control_damaged(w, out, in, &hdr)) {
		/*
		 * Its checksum is wrong, and it is the path's fault: no client can write there.
		 * A rail closes it by itself, or has the engine do so.
		 */
		if (sim_draw(w, 2)) {
			frame_free(f);
			sim_path_down(w, pair, path, side, MRC_REASON_CORRUPT);
			return;
		}
		ev.arrived.is_body_good = false;
		if (f->body_len)
			f->body[sim_draw(w, f->body_len)] ^= (uint8_t)(1 + sim_draw(w, 255));
	} else {
		sim_check_heard(w, pair, path, side, &hdr, f->body);
	}
	frame_unlink(f); /* it has landed */
	r = sim_tell(w, pair, side, &ev);
	if (w->is_traced)
		sim_trace(w, "%s<-%s path %u/%u %s ch %u msg %llu off %llu len %u flags %x -> %d",
			  w->hosts[pr->hosts[side]].name, w->hosts[pr->hosts[from]].name, path,
			  end->epoch, mrc_wire_type_name(hdr.type), hdr.channel,
			  (unsigned long long)hdr.msg, (unsigned long long)hdr.offset, hdr.body_len,
			  hdr.flags, r);
	frame_free(f);
	if (r == -EPROTO) {
		sim_fail(w, "protocol", "host %s: %s of an honest peer (%s) broke the protocol",
			 w->hosts[pr->hosts[side]].name, mrc_wire_type_name(hdr.type),
			 w->hosts[pr->hosts[from]].name);
		sim_path_down(w, pair, path, side, MRC_REASON_PROTOCOL);
	}
	arrived_pump(w, pair, side);
}

void sim_arrive(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t from)
{
	struct path *p = &w->pairs[pair].paths[path];
	struct wire *wire = &p->ends[from].out;

	while (wire->air_head && !w->failure[0] && wire->air_head->arrive_ns <= w->now_ns) {
		/* The responder may not have read the last word of the handshake yet. */
		bool is_early = p->attempt.is_running &&
				p->attempt.serial == wire->air_head->serial &&
				p->ends[1 - from].serial != p->attempt.serial;

		if (is_early ||
		    (!wire->air_head->is_loose && sim_is_blocked(w, pair, path, from))) {
			wire->was_blocked = true;
			if (!is_early && wire->air_head->serial == p->ends[from].serial)
				sim_wire_stuck(w, pair, path, from);
			sim_timer_add(w, w->now_ns + (is_early ? MRC_US : RETRY_NS), T_ARRIVE, pair,
				      path, from, 0);
			return;
		}
		frame_arrives(w, pair, path, from);
	}
	if (!wire->air_head)
		wire->was_blocked = false;
}
