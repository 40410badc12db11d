/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_check - the checkers: what must hold at every step, one section per invariant of DESIGN section 3
 *
 * They know what truly happened, from the wire and from the clients, and hold
 * what the engines say and ask for against it.
 */
#include <stdlib.h>

#include "sim_impl.h"

#include <string.h>

#define AT_RING_LIMIT 32 /* in the body of STATE, CLOSE and RESET */
#define AT_MSG_LIMIT  40
#define AT_SERVICE    32 /* in that of OPEN */
#define RANGES_PLENTY 1024
#define STILL_NS      (20 * MRC_MS) /* what a paused host had answered has arrived by then */
#define HOLDS_PLENTY  64
#define SHARE_LEAST   16 /* a healed path carries at least this fraction of its fair share */

static const char *host_name(const struct sim_world *w, uint32_t pair, uint32_t side)
{
	return w->hosts[w->pairs[pair].hosts[side]].name;
}

static uint64_t body_u64(const uint8_t *body, uint32_t at)
{
	uint64_t v = 0;

	for (uint32_t i = 8; i-- > 0;)
		v = v << 8 | body[at + i];
	return v;
}

/* Wire numbers are learnt from the OPENs that name the channel. */
static struct chan *chan_by_wire(struct sim_world *w, uint32_t pair, const struct mrc_wire_hdr *hdr)
{
	const struct pair *pr = &w->pairs[pair];

	for (uint32_t i = pr->chan_count; i-- > 0;) {
		struct chan *c = w->chans[pr->chans[i]];

		if (c->conn_epoch == hdr->conn_epoch && c->wire_id == hdr->channel)
			return c; /* the newest: two daemons that both restart count from 1 again */
	}
	return NULL;
}

/* ---- 1: exactly once, in order; 8: the right bytes ---- */

void sim_check_deliver(struct sim_world *w, struct chan *c, uint32_t side,
		       const struct mrc_act_msg *am)
{
	struct chan_end *ce = &c->ends[side];
	struct chan_end *from = &c->ends[1 - side];
	const uint8_t *at;
	struct msg *m;

	if (ce->is_down || ce->is_aborted || ce->is_freed)
		sim_fail(w, "once", "channel %u: a delivery after its end", c->index);
	if (am->number >= from->send_next) {
		sim_fail(w, "once", "channel %u message %llu was delivered and never sent",
			 c->index, (unsigned long long)am->number);
		return;
	}
	m = sim_msg(from, am->number);
	if (m->is_delivered || m->is_gap)
		sim_fail(w, "once", "channel %u message %llu was delivered %s", c->index,
			 (unsigned long long)am->number, m->is_gap ? "after its gap" : "twice");
	if (!c->is_unordered && am->number != ce->expected)
		sim_fail(w, "order", "channel %u: message %llu was delivered, %llu was due",
			 c->index, (unsigned long long)am->number,
			 (unsigned long long)ce->expected);
	if (am->len != m->len) {
		sim_fail(w, "bytes", "channel %u message %llu has %llu bytes, sent were %llu",
			 c->index, (unsigned long long)am->number, (unsigned long long)am->len,
			 (unsigned long long)m->len);
		return;
	}
	if (m->is_answered && m->outcome != MRC_OUT_OK && m->outcome != MRC_OUT_UNKNOWN &&
	    m->outcome != MRC_OUT_CLOSED && m->outcome != MRC_OUT_PEER_DIED)
		sim_fail(w, "once", "channel %u message %llu was delivered, its sender was told %d",
			 c->index, (unsigned long long)am->number, m->outcome);
	if (!am->is_eager) {
		const struct grant *g = sim_client_grant(ce->client, c->index, side, am->number);

		if (!g || g->addr != am->addr) {
			sim_fail(w, "fence",
				 "channel %u message %llu was delivered outside its buffer",
				 c->index, (unsigned long long)am->number);
			return;
		}
	} else if (am->addr + am->len > ce->ring_bytes) {
		sim_fail(w, "fence", "channel %u message %llu was delivered outside the ring",
			 c->index, (unsigned long long)am->number);
		return;
	}
	sim_check_quiet(w, c, side, am->is_eager, am->addr, am->len, "delivered");
	at = am->len ? sim_landing(ce, am->is_eager, am->addr) : NULL;
	for (uint64_t i = 0; i < am->len; i++) {
		if (at[i] == sim_byte_of(c->index, 1 - side, am->number, i))
			continue;
		sim_fail(w, "bytes", "channel %u message %llu: byte %llu of %llu is %02x", c->index,
			 (unsigned long long)am->number, (unsigned long long)i,
			 (unsigned long long)am->len, at[i]);
		break;
	}
}

/* ---- 2 and 4: no level before it is true, no false success ---- */

bool sim_check_outcome(struct sim_world *w, const struct chan *c, uint32_t side, int outcome)
{
	switch (outcome) {
	case MRC_OUT_OK:
		return true;
	case MRC_OUT_UNKNOWN: /* a daemon restarted since it was opened */
		return w->pairs[c->pair].restarts > c->restarts;
	case MRC_OUT_PEER_DIED:
		return c->is_dead[1 - side];
	case MRC_OUT_CLOSED:
		return c->is_closed_early;
	case MRC_OUT_NO_RESOURCES: /* the peer's engine had no room for it: no client heard of it */
		return side == c->opener && !c->ends[1 - side].id;
	default:
		return c->refused && outcome == c->refused;
	}
}

/* Level and outcome are what they are said to be. */
static void check_verdict(struct sim_world *w, struct chan *c, uint32_t side,
			  const struct mrc_act_msg *am, const struct msg *m)
{
	unsigned long long number = am->number;
	char text[MRC_TEXT_BYTES_MAX];
	uint8_t text_len;

	if ((am->level >= MRC_LVL_PLACED && !m->is_delivered) ||
	    (am->level >= MRC_LVL_VISIBLE && !m->is_visible) ||
	    (am->level >= MRC_LVL_COMMITTED && !m->is_committed))
		sim_fail(w, "level", "channel %u message %llu: level %d is claimed and not true",
			 c->index, number, am->level);
	if (am->outcome == MRC_OUT_OK) {
		if (am->level < m->want)
			sim_fail(w, "level",
				 "channel %u message %llu: done with level %d, wanted %d", c->index,
				 number, am->level, m->want);
		for (uint64_t n = am->number;
		     !c->is_unordered && n-- > c->ends[1 - side].unreleased;) {
			const struct msg *before = sim_msg(&c->ends[side], n);

			if (!before->is_delivered && !before->is_gap)
				sim_fail(w, "order",
					 "channel %u message %llu is done before %llu came",
					 c->index, number, (unsigned long long)n);
		}
	} else if (am->outcome == MRC_OUT_REJECTED) {
		if (!m->is_rejected || m->code != am->code)
			sim_fail(w, "outcome", "channel %u message %llu: a rejection nobody gave",
				 c->index, number);
		sim_reject_text(am->code, text, &text_len);
		if (am->text_len &&
		    (am->text_len != text_len || memcmp(am->text, text, text_len) != 0))
			sim_fail(w, "outcome", "channel %u message %llu: not the text it was given",
				 c->index, number);
		w->counts.texts += am->text_len > 0;
	} else if (am->outcome == MRC_OUT_TIMED_OUT && m->is_cancelled) {
		if (am->is_undecided != (am->level >= MRC_LVL_PLACED))
			sim_fail(w, "outcome",
				 "channel %u message %llu: timed out at level %d, and that is %s "
				 "end",
				 c->index, number, am->level, am->is_undecided ? "not its" : "its");
		if (!am->is_undecided && m->is_delivered)
			sim_fail(w, "once", "channel %u message %llu is given up and was delivered",
				 c->index, number);
	} else if (!sim_check_outcome(w, c, side, am->outcome)) {
		sim_fail(w, "outcome", "channel %u message %llu: outcome %d", c->index, number,
			 am->outcome);
	}
}

/* DONE, or after an undecided one LATE. */
void sim_check_done(struct sim_world *w, struct chan *c, uint32_t side,
		    const struct mrc_act_msg *am, bool is_late)
{
	struct chan_end *ce = &c->ends[side];
	unsigned long long number = am->number;
	const struct msg *m;

	if (am->number != am->cookie || am->cookie >= ce->send_next || ce->is_aborted ||
	    ce->is_freed) {
		sim_fail(w, "outcome", "channel %u message %llu: an answer nobody waits for",
			 c->index, number);
		return;
	}
	m = sim_msg(ce, am->cookie);
	if (is_late ? !m->is_undecided : m->is_answered)
		sim_fail(w, "outcome", "channel %u message %llu is answered twice", c->index,
			 number);
	if (is_late && (am->is_undecided || am->level < m->level))
		sim_fail(w, "outcome", "channel %u message %llu: its end at level %d, %s", c->index,
			 number, am->level,
			 am->is_undecided ? "which is none" : "and it was further");
	if (m->reads_out)
		sim_fail(w, "memory",
			 "channel %u message %llu is answered, a rail may still read it", c->index,
			 number);
	check_verdict(w, c, side, am, m);
}

/*
 * The moments of a message that has settled: in order, and the receiver's as they truly
 * were, give or take the error that is stated. Of a clock that runs 10% fast nothing is
 * promised.
 */
void sim_check_traced(struct sim_world *w, struct chan *c, uint32_t side,
		      const struct mrc_act_trace *trace)
{
	const uint64_t *ns = trace->moments_ns;
	const struct msg *m = sim_msg(&c->ends[side], trace->number);
	const struct pair *pair = &w->pairs[c->pair];
	uint32_t host = pair->hosts[side];
	bool is_fast = w->hosts[host].is_fast || w->hosts[pair->hosts[1 - side]].is_fast;
	const uint64_t truth_ns[] = {m->delivered_ns, m->visible_ns, m->judged_ns};

	w->counts.traced++;
	if (!m->is_answered || m->is_undecided || trace->len != m->len)
		sim_fail(w, "outcome", "channel %u message %llu: its moments are told too soon",
			 c->index, (unsigned long long)trace->number);
	for (int i = MRC_MOMENT_FETCHED; i < MRC_MOMENT_COUNT; i++) {
		if (i != MRC_MOMENT_PLACED && ns[i] && ns[i] < ns[i - 1])
			sim_fail(w, "outcome",
				 "channel %u message %llu: moment %d before moment %d", c->index,
				 (unsigned long long)trace->number, i, i - 1);
	}
	if (trace->outcome == MRC_OUT_OK && (!ns[MRC_MOMENT_FIRST_SENT] || !ns[MRC_MOMENT_LOCAL]))
		sim_fail(w, "outcome", "channel %u message %llu: committed and never sent",
			 c->index, (unsigned long long)trace->number);
	for (int i = MRC_MOMENT_PLACED; i < MRC_MOMENT_COUNT && !is_fast; i++) {
		uint64_t then_ns =
			sim_clock(w, host) - (w->now_ns - truth_ns[i - MRC_MOMENT_PLACED]);

		if (ns[i] &&
		    (ns[i] > then_ns + trace->error_ns || ns[i] + trace->error_ns < then_ns))
			sim_fail(w, "outcome",
				 "channel %u message %llu: moment %d was at %llu, it is said to be "
				 "at "
				 "%llu +-%llu",
				 c->index, (unsigned long long)trace->number, i,
				 (unsigned long long)then_ns, (unsigned long long)ns[i],
				 (unsigned long long)trace->error_ns);
	}
}

/* ---- 3: fence before release, one direct writer ---- */

static bool overlaps(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len)
{
	return a < b + b_len && b < a + a_len;
}

/* A direct write that is under way lands as long as its end here is not fenced. */
static bool can_land(const struct sim_world *w, const struct chan *c, const struct frame *f)
{
	const struct end *end = &w->pairs[c->pair].paths[f->path].ends[1 - f->side];

	/* One not joined yet will be; a newer one has fenced it. */
	return end->serial < f->serial || (end->serial == f->serial && end->is_up);
}

bool sim_check_quiet(struct sim_world *w, struct chan *c, uint32_t side, bool is_ring,
		     uint64_t offset, uint64_t len, const char *what)
{
	const struct chan_end *ce = &c->ends[side];

	for (const struct frame *f = ce->direct; f; f = f->direct_next) {
		bool is_eager = f->hdr.flags & MRC_WIRE_F_EAGER;
		uint64_t at = is_eager ? f->hdr.addr % ce->ring_bytes + f->hdr.offset : f->start;

		if (is_eager != is_ring || !can_land(w, c, f) ||
		    !overlaps(at, f->hdr.body_len, offset, len))
			continue;
		sim_fail(w, "fence",
			 "channel %u: bytes %llu to %llu are %s, and message %llu may still be "
			 "written there by path epoch %u",
			 c->index, (unsigned long long)offset, (unsigned long long)offset + len,
			 what, (unsigned long long)f->hdr.msg, f->path_epoch);
		return false;
	}
	return true;
}

bool sim_check_write(struct sim_world *w, struct chan *c, uint32_t side, bool is_ring,
		     uint64_t offset, uint64_t len, uint64_t number)
{
	struct chan_end *ce = &c->ends[side];
	struct chan_end *from = &c->ends[1 - side];
	const struct grant *g;

	if (ce->is_gone)
		return false;
	if (ce->is_freed || !ce->client) {
		sim_fail(w, "fence", "channel %u message %llu is written after CH_FREE", c->index,
			 (unsigned long long)number);
		return false;
	}
	if (sim_msg(from, number)->is_delivered) {
		sim_fail(w, "fence", "channel %u message %llu is written after its delivery",
			 c->index, (unsigned long long)number);
		return false;
	}
	if (!is_ring) {
		g = sim_client_grant(ce->client, c->index, side, number);
		if (g && offset >= g->addr && offset + len <= g->addr + g->len)
			return true;
		sim_fail(w, "fence", "channel %u message %llu is written outside its buffer",
			 c->index, (unsigned long long)number);
		return false;
	}
	if (offset + len > ce->ring_bytes) {
		sim_fail(w, "fence", "channel %u message %llu is written outside the ring",
			 c->index, (unsigned long long)number);
		return false;
	}
	for (uint64_t n = ce->unreleased; n < ce->delivered_end; n++) {
		const struct msg *held = sim_msg(from, n);

		if (!held->is_delivered || held->is_released || !held->is_eager ||
		    !overlaps(held->landing, held->len, offset, len))
			continue;
		sim_fail(w, "fence",
			 "channel %u message %llu is written over message %llu, which its client "
			 "holds",
			 c->index, (unsigned long long)number, (unsigned long long)n);
		return false;
	}
	return true;
}

/* The sender's end of this path epoch can write no more. */
static bool is_given_up(const struct sim_world *w, uint32_t pair, uint32_t side,
			const struct span *span)
{
	for (uint32_t r = 0; r < w->o.rails; r++) {
		const struct end *end = &w->pairs[pair].paths[r].ends[side];

		if (end->serial == span->serial)
			return !end->is_up || end->out.is_dead;
	}
	return true; /* a newer epoch is there */
}

static void span_add(struct msg *m, const struct mrc_act_post *post, uint64_t serial)
{
	const struct mrc_wire_hdr *hdr = &post->hdr;
	struct span *last = m->span_count ? &m->spans[m->span_count - 1] : NULL;

	if (last && last->serial == serial && last->end == hdr->offset) {
		last->end += hdr->body_len;
		return;
	}
	sim_grow(&m->spans, &m->span_cap, m->span_count + 1, sizeof(*m->spans));
	m->spans[m->span_count++] = (struct span){
		.start = hdr->offset,
		.end = hdr->offset + hdr->body_len,
		.path_id = hdr->writer_path,
		.path_epoch = hdr->writer_epoch,
		.serial = serial,
	};
}

static void check_writers(struct sim_world *w, uint32_t pair, uint32_t side, struct chan *c,
			  struct msg *m, const struct mrc_act_post *post)
{
	const struct mrc_wire_hdr *hdr = &post->hdr;
	unsigned long long number = hdr->msg;
	const struct chan_end *to = &c->ends[1 - side];

	for (uint32_t i = 0; i < m->span_count; i++) {
		const struct span *span = &m->spans[i];

		if (!overlaps(span->start, span->end - span->start, hdr->offset, hdr->body_len))
			continue;
		if (hdr->flags & MRC_WIRE_F_DIRECT) {
			sim_fail(w, "writer",
				 "channel %u message %llu: a second direct writer of "
				 "bytes at %llu",
				 c->index, number, (unsigned long long)hdr->offset);
			return;
		}
		if (hdr->flags & MRC_WIRE_F_COPY) {
			if (span->path_id != hdr->writer_path ||
			    span->path_epoch != hdr->writer_epoch)
				sim_fail(w, "writer",
					 "channel %u message %llu: a copy names writer %u/%u, it "
					 "was %u/%u",
					 c->index, number, hdr->writer_path, hdr->writer_epoch,
					 span->path_id, span->path_epoch);
			if (!is_given_up(w, pair, side, span))
				sim_fail(w, "writer",
					 "channel %u message %llu: a copy, and writer %u/%u is not "
					 "given up",
					 c->index, number, span->path_id, span->path_epoch);
			continue;
		}
		/* Asked for again: then the first copy has landed, or never can. */
		for (const struct frame *f = to->direct; f; f = f->direct_next) {
			if (f->hdr.msg == hdr->msg && can_land(w, c, f) &&
			    overlaps(f->hdr.offset, f->hdr.body_len, hdr->offset, hdr->body_len))
				sim_fail(w, "writer",
					 "channel %u message %llu: a copy that names no writer, "
					 "and %u/%u "
					 "may still write",
					 c->index, number, span->path_id, span->path_epoch);
		}
	}
	if (hdr->flags & MRC_WIRE_F_DIRECT)
		span_add(m, post, w->pairs[pair].paths[post->index].ends[side].serial);
}

/* Ring positions below a limit less the ring are given out again: nothing may still write there. */
static void check_reuse(struct sim_world *w, const struct chan *c, uint32_t side, uint64_t limit)
{
	const struct chan_end *ce = &c->ends[side];

	for (const struct frame *f = ce->direct; f; f = f->direct_next) {
		if (f->hdr.flags & MRC_WIRE_F_EAGER && can_land(w, c, f) &&
		    f->start + ce->ring_bytes < limit)
			sim_fail(w, "fence",
				 "channel %u: credit to %llu gives out what message %llu may still "
				 "be "
				 "written to by path epoch %u",
				 c->index, (unsigned long long)limit,
				 (unsigned long long)f->hdr.msg, f->path_epoch);
	}
}

/* ---- 6: bounds, and credit ---- */

/* Only who knows the frame may hear it, and of the end that it speaks of. */
static void about_heard(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t to,
			const struct mrc_wire_hdr *hdr, const uint8_t *body)
{
	uint8_t copy[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_cursor c = {.at = copy, .end = copy + hdr->body_len, .ok = true};
	struct mrc_path_info info;
	struct mrc_about about;

	mrc_conn_path_info(w->pairs[pair].ends[to].conn, (uint8_t)path, &info);
	if (info.epoch == hdr->path_epoch && !(info.features & MRC_FEATURE_ABOUT))
		sim_fail(w, "about", "said where it was not agreed on");
	memcpy(copy, body, hdr->body_len);
	if (mrc_about_take(&c, &about) || about.mtu != sim_about_mtu(pair, path, 1 - to))
		sim_fail(w, "about", "what is heard of path %u is not what was told", path);
}

void sim_check_heard(struct sim_world *w, uint32_t pair, uint32_t path, uint32_t to,
		     const struct mrc_wire_hdr *hdr, const uint8_t *body)
{
	struct pair_end *pe = &w->pairs[pair].ends[to];
	struct chan *c;
	struct chan_end *ce;

	w->counts.wants += hdr->type == MRC_WIRE_WANT;
	if (hdr->type == MRC_WIRE_KEYS)
		sim_key_heard(w, pair, path, to, hdr);
	if (hdr->type == MRC_WIRE_ABOUT)
		about_heard(w, pair, path, to, hdr, body);
	if (hdr->type >= MRC_WIRE_OPEN && hdr->type <= MRC_WIRE_VOID) {
		if (pe->ctl_epoch != hdr->conn_epoch) {
			pe->ctl_epoch = hdr->conn_epoch;
			pe->ctl_next = 0;
		}
		w->counts.ctl_doubled += hdr->msg < pe->ctl_next;
		pe->ctl_next = MRC_MAX(pe->ctl_next, hdr->msg + 1);
	}
	if (hdr->type != MRC_WIRE_OPEN && hdr->type != MRC_WIRE_ACCEPT &&
	    hdr->type != MRC_WIRE_STATE && hdr->type != MRC_WIRE_CLOSE &&
	    hdr->type != MRC_WIRE_RESET)
		return;
	c = chan_by_wire(w, pair, hdr);
	if (!c)
		return;
	ce = &c->ends[1 - to];
	if (hdr->type == MRC_WIRE_OPEN || hdr->type == MRC_WIRE_ACCEPT) {
		ce->ring_limit_heard = MRC_MAX(ce->ring_limit_heard, ce->ring_bytes);
		ce->msg_limit_heard = MRC_MAX(ce->msg_limit_heard, ce->window);
	} else {
		ce->ring_limit_heard = MRC_MAX(ce->ring_limit_heard, body_u64(body, AT_RING_LIMIT));
		ce->msg_limit_heard = MRC_MAX(ce->msg_limit_heard, body_u64(body, AT_MSG_LIMIT));
	}
}

static void check_open(struct sim_world *w, uint32_t pair, const struct mrc_act_post *post)
{
	struct chan *old = chan_by_wire(w, pair, &post->hdr);
	const char *service = (const char *)post->body + AT_SERVICE;
	unsigned index;

	if (sscanf(service, "s%u.", &index) != 1 || index >= w->chan_count) {
		sim_fail(w, "wire", "OPEN for service '%.16s'", service);
		return;
	}
	/* A conn epoch that never came up at the other end may be begun again by its next run. */
	if (old && old->index != index &&
	    old->wire_boots[0] == w->hosts[w->pairs[pair].hosts[0]].boot &&
	    old->wire_boots[1] == w->hosts[w->pairs[pair].hosts[1]].boot)
		sim_fail(w, "once", "channel number %u is used twice in conn epoch %u: %u and %u",
			 post->hdr.channel, post->hdr.conn_epoch, old->index, index);
	w->chans[index]->wire_id = post->hdr.channel;
	w->chans[index]->conn_epoch = post->hdr.conn_epoch;
	for (uint32_t side = 0; side < 2; side++)
		w->chans[index]->wire_boots[side] = w->hosts[w->pairs[pair].hosts[side]].boot;
}

static void check_frag(struct sim_world *w, uint32_t pair, uint32_t side,
		       const struct mrc_act_post *post)
{
	const struct mrc_wire_hdr *hdr = &post->hdr;
	struct chan *c = sim_channel_of(w, post->channel_cookie);
	struct chan_end *ce = &c->ends[side];
	struct chan_end *to = &c->ends[1 - side];
	struct msg *m = sim_msg(ce, hdr->msg);
	unsigned long long number = hdr->msg;

	if (hdr->msg >= ce->send_next || m->is_answered || hdr->msg_len != m->len ||
	    hdr->offset + hdr->body_len > m->len || post->payload_addr != m->addr + hdr->offset) {
		/* It is sent just now, inside the call, when the number is the next one. */
		if (hdr->msg != ce->send_next)
			sim_fail(w, "memory",
				 "channel %u message %llu: a fragment of what is not its", c->index,
				 number);
	}
	if (!(hdr->flags & MRC_WIRE_F_UNCHECKED) == c->is_unchecked)
		sim_fail(w, "bytes", "channel %u message %llu: sent %s a checksum", c->index,
			 number, c->is_unchecked ? "with" : "without");
	if (hdr->msg >= to->msg_limit_heard)
		sim_fail(w, "credit", "channel %u message %llu is sent, the limit is %llu",
			 c->index, number, (unsigned long long)to->msg_limit_heard);
	if (hdr->flags & MRC_WIRE_F_EAGER && hdr->addr + hdr->msg_len > to->ring_limit_heard)
		sim_fail(w, "credit",
			 "channel %u message %llu: ring position %llu, the limit is %llu", c->index,
			 number, (unsigned long long)hdr->addr + hdr->msg_len,
			 (unsigned long long)to->ring_limit_heard);
	if (hdr->flags & MRC_WIRE_F_DIRECT)
		sim_check_key(w, c, 1 - side, post);
	if (hdr->body_len)
		check_writers(w, pair, side, c, m, post);
}

void sim_check_post(struct sim_world *w, uint32_t pair, uint32_t side,
		    const struct mrc_act_post *post)
{
	const struct end *end = &w->pairs[pair].paths[post->index].ends[side];
	struct mrc_path_info info;
	struct chan *c;

	if (end->out.frame_count >= w->o.records)
		sim_fail(w, "bounds", "host %s path %u: more than %llu frames under way",
			 host_name(w, pair, side), post->index, (unsigned long long)w->o.records);
	if (end->share) {
		mrc_conn_path_info(w->pairs[pair].ends[side].conn, post->index, &info);
		if (info.frames_in_flight > end->share)
			sim_fail(
				w, "credit",
				"host %s path %u: %u frames unacknowledged, the peer's share is %u",
				host_name(w, pair, side), post->index, info.frames_in_flight,
				end->share);
	}
	if (post->hdr.body_len > MRC_MAX(w->o.frag_bytes, MRC_WIRE_CTL_BYTES_MAX))
		sim_fail(w, "bounds", "host %s: a frame of %u bytes", host_name(w, pair, side),
			 post->hdr.body_len);
	if (sim_port(w, w->pairs[pair].hosts[side], post->index)->is_denied)
		sim_fail(w, "path", "host %s posts on path %u, which is drained",
			 host_name(w, pair, side), post->index);
	if (end->entry_bytes && !(post->hdr.flags & MRC_WIRE_F_DIRECT) &&
	    post->hdr.body_len > end->entry_bytes)
		sim_fail(w, "credit",
			 "host %s path %u: a frame of %u bytes, the peer's receive entries take %u",
			 host_name(w, pair, side), post->index, post->hdr.body_len,
			 end->entry_bytes);
	switch (post->hdr.type) {
	case MRC_WIRE_FRAG:
		check_frag(w, pair, side, post);
		break;
	case MRC_WIRE_OPEN:
		check_open(w, pair, post);
		break;
	case MRC_WIRE_STATE:
	case MRC_WIRE_CLOSE:
	case MRC_WIRE_RESET:
		c = chan_by_wire(w, pair, &post->hdr);
		if (c && c->ends[side].client)
			check_reuse(w, c, side, body_u64(post->body, AT_RING_LIMIT));
		break;
	default:
		break;
	}
}

/* ---- 5 and 7: a path is given up for what befell it, and never for congestion ---- */

/* Has something befallen this rail between the two, or its hosts, now or lately? */
static bool is_troubled(struct sim_world *w, uint32_t pair, uint32_t rail)
{
	for (uint32_t side = 0; side < 2; side++) {
		uint32_t host = w->pairs[pair].hosts[side];

		const struct port *port = sim_port(w, host, rail);

		if (w->hosts[host].trouble_until_ns > w->now_ns ||
		    port->trouble_until_ns > w->now_ns || port->corrupt_body_permille ||
		    port->corrupt_hdr_permille || port->corrupt_ctl_permille)
			return true;
	}
	return false;
}

/* Have frames waited for the wire so long, on this rail between the two, that it looks like silence? */
static bool has_queued(struct sim_world *w, uint32_t pair, uint32_t rail)
{
	return sim_port(w, w->pairs[pair].hosts[0], rail)->queued_until_ns > w->now_ns ||
	       sim_port(w, w->pairs[pair].hosts[1], rail)->queued_until_ns > w->now_ns;
}

/*
 * By time a path may be suspected wrongly while frames, or the answers to them
 * on another rail, queue on the wire or are held up there. Never because of
 * what clients do or leave undone.
 */
static bool may_be_congested(struct sim_world *w, uint32_t pair, enum mrc_path_reason reason)
{
	if (reason != MRC_REASON_SILENT && reason != MRC_REASON_PEER_FENCE &&
	    reason != MRC_REASON_PROBE)
		return false;
	for (uint32_t r = 0; r < w->o.rails; r++) {
		if (is_troubled(w, pair, r) || has_queued(w, pair, r))
			return true;
	}
	/* What one host is slow to take stands in the port of another before frames for a third. */
	for (uint32_t host = 0; host < w->o.hosts; host++) {
		for (uint32_t r = 0; r < w->o.rails; r++) {
			if (sim_port(w, host, r)->slow_until_ns > w->now_ns)
				return true;
		}
	}
	return false;
}

/* With next to no room to remember things by, frames are refused and their paths with them. */
static bool is_tight(const struct sim_world *w, enum mrc_path_reason reason)
{
	return (w->o.ranges < RANGES_PLENTY || w->o.holds < HOLDS_PLENTY) &&
	       (reason == MRC_REASON_ERROR || reason == MRC_REASON_PEER_FENCE);
}

/* A host that stands still has answered nothing on any path: that is no evidence against one (DESIGN 8). */
static bool is_without_evidence(struct sim_world *w, uint32_t pair, uint32_t side)
{
	const struct host *peer = &w->hosts[w->pairs[pair].hosts[1 - side]];

	if (!peer->paused || w->now_ns - peer->paused_ns < STILL_NS)
		return false;
	for (uint32_t r = 0; r < w->o.rails; r++) {
		if (has_queued(w, pair, r) ||
		    sim_port(w, w->pairs[pair].hosts[0], r)->trouble_until_ns > w->now_ns ||
		    sim_port(w, w->pairs[pair].hosts[1], r)->trouble_until_ns > w->now_ns)
			return false;
	}
	return true;
}

/*
 * Suspected by time only when the peer has answered, by whatever path, something
 * that was sent after what this one owes an answer to: silence of all paths says
 * something of the peer or of us, and nothing of this one (DESIGN 8).
 */
static void check_evidence(struct sim_world *w, uint32_t pair, uint32_t side,
			   const struct mrc_act_path *ap)
{
	const struct pair_end *pe = &w->pairs[pair].ends[side];
	uint64_t asked_ns = sim_path_asked_ns(w, pair, side, ap->index);

	if (ap->reason != MRC_REASON_SILENT || pe->heard_ns > asked_ns)
		return;
	sim_fail(w, "blame",
		 "host %s path %u to %s is suspected, and the peer was last heard %llu us before",
		 host_name(w, pair, side), ap->index, host_name(w, pair, 1 - side),
		 (unsigned long long)((asked_ns - pe->heard_ns) / MRC_US));
}

void sim_check_path(struct sim_world *w, uint32_t pair, uint32_t side,
		    const struct mrc_act_path *ap)
{
	/* The peer-silent limit, which needs no evidence, is 10 s. */
	if (ap->reason == MRC_REASON_SILENT &&
	    sim_clock(w, w->pairs[pair].hosts[side]) - sim_path_asked_ns(w, pair, side, ap->index) >
		    5 * MRC_S)
		return;
	if (ap->state == MRC_PATH_ASSUMED_BAD)
		check_evidence(w, pair, side, ap);
	if (ap->state == MRC_PATH_ASSUMED_BAD && ap->reason == MRC_REASON_SILENT &&
	    is_without_evidence(w, pair, side))
		sim_fail(w, "blame", "host %s path %u: %s stands still, and the path is given up",
			 host_name(w, pair, side), ap->index, host_name(w, pair, 1 - side));
	if (ap->state != MRC_PATH_ASSUMED_BAD || is_troubled(w, pair, ap->index) ||
	    may_be_congested(w, pair, ap->reason) || is_tight(w, ap->reason))
		return;
	sim_fail(w, "blame", "host %s path %u to %s is given up (%s), and nothing befell it",
		 host_name(w, pair, side), ap->index, host_name(w, pair, 1 - side),
		 mrc_path_reason_name(ap->reason));
}

/* ---- 9: healed paths carry their share ---- */

/* Suspected under this load: where several hosts fill a port, what waits there looks silent (8). */
static bool was_suspected(struct sim_world *w, uint32_t pair, uint32_t rail)
{
	for (uint32_t side = 0; side < 2; side++) {
		const struct pair_end *pe = &w->pairs[pair].ends[side];
		struct mrc_path_info info;

		mrc_conn_path_info(pe->conn, (uint8_t)rail, &info);
		if (info.suspicions != pe->good_suspicions[rail])
			return true;
	}
	return false;
}

/* What this end has sent over each path since the load began. True: none has sent nothing. */
static bool share_add(struct sim_world *w, uint32_t pair, uint32_t side, uint64_t *bytes,
		      char why[SIM_SHARE_WHY_BYTES])
{
	bool is_fair = true;
	const struct pair_end *pe = &w->pairs[pair].ends[side];

	for (uint32_t r = 0; r < w->o.rails; r++) {
		struct mrc_path_info info;

		mrc_conn_path_info(pe->conn, (uint8_t)r, &info);
		if (info.bytes_sent == pe->good_bytes[r] &&
		    (w->o.hosts == 2 || !was_suspected(w, pair, r))) {
			snprintf(why, SIM_SHARE_WHY_BYTES,
				 "host %s path %u to %s is healed and carries nothing",
				 host_name(w, pair, side), r, host_name(w, pair, 1 - side));
			is_fair = false;
		}
		bytes[r] += info.bytes_sent - pe->good_bytes[r];
	}
	return is_fair;
}

/*
 * What this host can send by a rail, bytes per second: what the wire takes, and where
 * peers have only so many receive entries for a path, those filled once a round trip.
 */
static double rail_capacity(struct sim_world *w, uint32_t host, uint32_t rail)
{
	double wire = (double)w->o.rate / (w->o.unequal ? rail + 1 : 1);
	double round_trip_ns = 2.5 * (double)w->o.delay_ns + 2 * (double)w->o.turn_ns;
	double entries = 0;

	for (uint32_t p = 0; p < w->pair_count; p++) {
		for (uint32_t side = 0; side < 2; side++) {
			const struct end *end = &w->pairs[p].paths[rail].ends[side];

			if (w->pairs[p].hosts[side] != host)
				continue;
			if (!end->share)
				return wire;
			entries += (double)end->share * (double)w->o.frag_bytes * MRC_S /
				   round_trip_ns;
		}
	}
	return MRC_MIN(wire, entries);
}

/*
 * Of a host's rails, not of each path: where several hosts send to one, a port
 * of it may be full of what others send, and then this one's path is rightly
 * the last to be used.
 */
bool sim_is_share_fair(struct sim_world *w, char why[SIM_SHARE_WHY_BYTES])
{
	bool is_fair = true;

	for (uint32_t host = 0; host < w->o.hosts; host++) {
		uint64_t bytes[MRC_PATHS_MAX] = {0};
		double capacity[MRC_PATHS_MAX];
		uint64_t total = 0;
		double sum = 0;

		for (uint32_t p = 0; p < w->pair_count; p++) {
			for (uint32_t side = 0; side < 2; side++) {
				if (w->pairs[p].hosts[side] == host)
					is_fair = share_add(w, p, side, bytes, why) && is_fair;
			}
		}
		for (uint32_t r = 0; r < w->o.rails; r++) {
			total += bytes[r];
			capacity[r] = rail_capacity(w, host, r);
			sum += capacity[r];
		}
		for (uint32_t r = 0; r < w->o.rails; r++) {
			if ((double)bytes[r] * SHARE_LEAST >= (double)total * capacity[r] / sum)
				continue;
			snprintf(why, SIM_SHARE_WHY_BYTES,
				 "host %s rail %u is healed and carries %llu KiB of %llu",
				 w->hosts[host].name, r, (unsigned long long)bytes[r] >> 10,
				 (unsigned long long)total >> 10);
			is_fair = false;
		}
	}
	return is_fair;
}

/* ---- 10: what the dead leave behind is freed ---- */

void sim_check_clean(struct sim_world *w)
{
	char why[160];

	if (!sim_is_clean(w, why, sizeof(why)))
		sim_fail(w, "memory", "%s", why);
}
