/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_world.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SCRIBBLE   0xEE
#define POISON     0xDD
#define HEAL_NS    (20 * MRC_S) /* after the faults stop, all must be finished by then */
#define EVENTS_MAX (50U * 1000 * 1000)

/* ---- virtual time ---- */

enum timer_kind {
	T_FRAME_OUT,
	T_ARRIVE,
	T_ENGINE,
	T_FENCED,
	T_CONNECT,
	T_CLIENT_SEND,
	T_THINK,
	T_FAULT,
	T_FAULT_END,
	T_CARRIER
};

struct timer {
	uint64_t at_ns;
	uint64_t order;
	enum timer_kind kind;
	uint32_t a, b, c;
	uint64_t d;
};

/* ---- wires ---- */

struct frame {
	struct frame *next;
	struct mrc_act_post post;
	uint8_t *payload; /* snapshot, taken when it leaves */
	bool is_nop;
	uint64_t arrive_ns;
};

struct wire {                                  /* one direction of one link */
	struct frame *queue_head, *queue_tail; /* posted, not yet left */
	struct frame *air_head, *air_tail;     /* left, not yet arrived */
	bool is_busy;                          /* a T_FRAME_OUT is armed */
	uint64_t sent;                         /* frames that left */
	bool is_dead;                          /* its sender gave up: nothing more leaves */
};

struct end { /* one host's end of one path */
	bool is_up;
	uint32_t epoch, conn_epoch;
	struct wire out;
};

struct rail_state {
	bool is_carrier[SIM_HOSTS];
	bool is_silent[SIM_HOSTS]; /* frames from this host do not arrive */
	uint32_t slow;             /* factor */
	uint32_t corrupt_body_permille, corrupt_hdr_permille;
};

struct path {
	struct end ends[SIM_HOSTS];
	struct rail_state rail;
	uint32_t faults_active;
};

/* ---- clients ---- */

struct msg { /* as the sender knows it, with what truly happened to it */
	uint64_t len;
	uint64_t addr;
	enum mrc_lvl want;
	bool is_sent, is_answered, is_delivered, is_visible, is_committed, is_rejected, is_released;
	uint32_t code;
	uint64_t landing; /* where it was delivered, at the receiver */
	bool is_eager;
};

struct chan_end {
	uint32_t id;
	bool is_live; /* it has a half here */
	bool is_connected, is_down, is_freed, is_closing;
	uint8_t *send, *landing; /* arenas: ring first, then buffers */
	uint64_t send_next;      /* index of the next message to send */
	uint64_t answered;
	uint64_t landing_next; /* bump allocator over the buffers, see landing_take() */
	struct {
		uint64_t addr, len;
	} grants[64];
	struct {
		uint64_t number, len;
	} wants[64];
	uint32_t want_count;
	struct msg *msgs;  /* sent by this end */
	uint64_t expected; /* next number to be delivered here */
	uint64_t delivered;
};

struct chan {
	struct chan_end ends[SIM_HOSTS];
};

struct hold {
	uint64_t id;
	uint8_t *data;
};

struct host {
	struct mrc_conn *conn;
	uint64_t timer_ns; /* armed */
	uint64_t paused_until_ns;
	struct hold holds[64];
	uint64_t hold_next;
	bool is_pumping;
};

struct sim_world {
	struct sim_options o;
	struct mrc_rng rng;
	uint64_t now_ns;
	struct timer *heap;
	uint32_t heap_count, heap_cap;
	uint64_t order_next;
	struct host hosts[SIM_HOSTS];
	struct path *paths;
	struct chan chans[SIM_CHANNELS_MAX];
	uint32_t faults_left, faults_open;
	uint64_t heal_by_ns;
	uint64_t events, frames, ghosts, copies, resets;
	char failure[256];
	char trace[SIM_TRACE_LINES][160];
	uint64_t trace_count;
};

static void trace(struct sim_world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void trace(struct sim_world *w, const char *format, ...)
{
	char *line = w->trace[w->trace_count % SIM_TRACE_LINES];
	int n = snprintf(line, sizeof(w->trace[0]), "%12.3f us  ", (double)w->now_ns / 1000);
	va_list args;

	va_start(args, format);
	vsnprintf(line + n, sizeof(w->trace[0]) - (size_t)n, format, args);
	va_end(args);
	w->trace_count++;
	if (w->o.is_traced)
		fprintf(stderr, "%s\n", line);
}

static void fail(struct sim_world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void fail(struct sim_world *w, const char *format, ...)
{
	va_list args;

	if (w->failure[0])
		return;
	va_start(args, format);
	vsnprintf(w->failure, sizeof(w->failure), format, args);
	va_end(args);
	trace(w, "FAILED: %s", w->failure);
}

static uint64_t draw(struct sim_world *w, uint64_t below)
{
	return below ? mrc_rng_next(&w->rng) % below : 0;
}

uint32_t sim_crc32c(uint32_t crc, const void *data, size_t len)
{
	static uint32_t table[256];
	const uint8_t *p = data;

	if (!table[1]) {
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t v = i;

			for (int k = 0; k < 8; k++)
				v = v & 1 ? v >> 1 ^ 0x82f63b78U : v >> 1;
			table[i] = v;
		}
	}
	crc = ~crc;
	while (len--)
		crc = table[(crc ^ *p++) & 0xff] ^ crc >> 8;
	return ~crc;
}

/* ---- heap ---- */

static bool timer_before(const struct timer *a, const struct timer *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void timer_add(struct sim_world *w, uint64_t at_ns, enum timer_kind kind, uint32_t a,
		      uint32_t b, uint32_t c, uint64_t d)
{
	uint32_t i = w->heap_count++;
	struct timer t = {.at_ns = MRC_MAX(at_ns, w->now_ns),
			  .order = w->order_next++,
			  .kind = kind,
			  .a = a,
			  .b = b,
			  .c = c,
			  .d = d};

	if (w->heap_count > w->heap_cap) {
		w->heap_cap = w->heap_cap ? w->heap_cap * 2 : 1024;
		w->heap = realloc(w->heap, w->heap_cap * sizeof(*w->heap));
		if (!w->heap)
			abort();
	}
	while (i && timer_before(&t, &w->heap[(i - 1) / 2])) {
		w->heap[i] = w->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	w->heap[i] = t;
}

static struct timer timer_pop(struct sim_world *w)
{
	struct timer top = w->heap[0];
	struct timer last = w->heap[--w->heap_count];
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= w->heap_count)
			break;
		if (child + 1 < w->heap_count && timer_before(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!timer_before(&w->heap[child], &last))
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	w->heap[i] = last;
	return top;
}

/* ---- bytes ---- */

/* What message `number` of a channel and direction holds at `at`. */
static uint8_t byte_of(uint32_t chan, uint32_t host, uint64_t number, uint64_t at)
{
	uint64_t v = (number * 2654435761U) ^ ((uint64_t)chan << 20) ^ ((uint64_t)host << 28);

	return (uint8_t)(v >> 8) ^ (uint8_t)(at * 31) ^ (uint8_t)(at >> 8);
}

static void pump(struct sim_world *w, uint32_t host);

static int handle(struct sim_world *w, uint32_t host, const struct mrc_event_in *ev)
{
	return mrc_conn_handle(w->hosts[host].conn, ev, w->now_ns);
}

static struct chan_end *chan_by_cookie(struct sim_world *w, uint32_t host, uint64_t cookie)
{
	return &w->chans[cookie - 1].ends[host];
}

/* ---- clients ---- */

static void client_equip(struct sim_world *w, struct chan_end *ce)
{
	ce->is_live = true;
	ce->send = malloc(w->o.arena_bytes);
	ce->landing = malloc(w->o.arena_bytes + w->o.ring_bytes);
	ce->msgs = calloc(SIM_MSGS_MAX, sizeof(*ce->msgs));
	if (!ce->send || !ce->landing || !ce->msgs)
		abort();
	memset(ce->landing, POISON, w->o.arena_bytes + w->o.ring_bytes);
}

static struct mrc_ev_channel half(struct sim_world *w, uint32_t chan)
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

static void client_send(struct sim_world *w, uint32_t host, uint32_t chan)
{
	struct chan_end *ce = &w->chans[chan].ends[host];
	struct msg *m;
	struct mrc_event_in ev = {.kind = MRC_EV_SEND};
	int r;

	while (ce->is_live && !ce->is_down && !ce->is_closing && ce->send_next < w->o.messages &&
	       ce->send_next - ce->answered < send_slots(w)) {
		m = &ce->msgs[ce->send_next];
		if (!m->is_sent) {
			uint64_t kind = draw(w, 10);

			/* Its slot must be free: answers may come out of order on an unordered channel. */
			if (ce->send_next >= send_slots(w) &&
			    !ce->msgs[ce->send_next - send_slots(w)].is_answered)
				return;
			m->len = kind == 0  ? 0
				 : kind < 6 ? draw(w, MRC_MIN(200, w->o.len_max))
					    : draw(w, w->o.len_max) + 1;
			m->addr = ce->send_next % send_slots(w) * w->o.len_max;
			m->want = (enum mrc_lvl)(1 + draw(w, 3));
			for (uint64_t i = 0; i < m->len; i++)
				ce->send[m->addr + i] = byte_of(chan, host, ce->send_next, i);
		}
		ev.msg = (struct mrc_ev_msg){.channel = ce->id,
					     .level = m->want,
					     .cookie = ce->send_next,
					     .addr = m->addr,
					     .len = m->len};
		r = handle(w, host, &ev);
		if (r == -ENOSPC)
			return;
		if (r) {
			if (!ce->is_down)
				fail(w, "host %u channel %u: SEND answered %d", host, chan, r);
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
		handle(w, 0, &ev);
		pump(w, 0);
	}
}

static void client_delivered(struct sim_world *w, uint32_t host, const struct mrc_act_msg *am)
{
	uint32_t chan = (uint32_t)am->channel_cookie - 1;
	struct chan_end *ce = chan_by_cookie(w, host, am->channel_cookie);
	struct chan_end *from = &w->chans[chan].ends[1 - host];
	struct msg *m = &from->msgs[am->number];
	uint8_t *at = ce->landing + (am->is_eager ? 0 : w->o.ring_bytes) + am->addr;

	if (am->number >= from->send_next || m->is_delivered) {
		fail(w, "host %u channel %u: message %llu delivered %s", host, chan,
		     (unsigned long long)am->number,
		     m->is_delivered ? "twice" : "that was never sent");
		return;
	}
	if (!w->o.is_unordered && am->number != ce->expected)
		fail(w, "host %u channel %u: message %llu delivered, %llu was due", host, chan,
		     (unsigned long long)am->number, (unsigned long long)ce->expected);
	ce->expected = am->number + 1;
	if (am->len != m->len)
		fail(w, "host %u channel %u message %llu: %llu bytes, sent %llu", host, chan,
		     (unsigned long long)am->number, (unsigned long long)am->len,
		     (unsigned long long)m->len);
	for (uint64_t i = 0; i < am->len; i++) {
		if (at[i] != byte_of(chan, 1 - host, am->number, i)) {
			fail(w, "host %u channel %u message %llu: byte %llu is %02x", host, chan,
			     (unsigned long long)am->number, (unsigned long long)i, at[i]);
			break;
		}
	}
	m->is_delivered = true;
	m->landing = am->addr;
	m->is_eager = am->is_eager;
	ce->delivered++;
	timer_add(w, w->now_ns + draw(w, w->o.think_ns), T_THINK, host, chan, 0, am->number);
}

/* The receiving program sees, judges and releases a message, a step at a time. */
static void client_thinks(struct sim_world *w, uint32_t host, uint32_t chan, uint64_t number)
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
	} else if (!m->is_committed && !m->is_rejected && draw(w, 2)) {
		if (draw(w, 1000) < w->o.reject_permille) {
			ev.kind = MRC_EV_REJECT;
			ev.msg.code = (uint32_t)draw(w, 1000) + 1;
			m->code = ev.msg.code;
			m->is_rejected = true;
		} else {
			ev.kind = MRC_EV_COMMIT;
			m->is_committed = true;
		}
	} else {
		uint8_t *at = ce->landing + (m->is_eager ? 0 : w->o.ring_bytes) + m->landing;

		for (uint64_t i = 0; i < m->len; i++) {
			if (at[i] != byte_of(chan, 1 - host, number, i)) {
				fail(w,
				     "host %u channel %u message %llu: byte %llu changed after "
				     "delivery",
				     host, chan, (unsigned long long)number, (unsigned long long)i);
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
	r = handle(w, host, &ev);
	if (r && !ce->is_down)
		fail(w, "host %u channel %u message %llu: event %d answered %d", host, chan,
		     (unsigned long long)number, ev.kind, r);
	if (!m->is_released)
		timer_add(w, w->now_ns + draw(w, w->o.think_ns), T_THINK, host, chan, 0, number);
	pump(w, host);
	client_close_if_done(w, chan);
}

static void client_done(struct sim_world *w, uint32_t host, const struct mrc_act_msg *am)
{
	uint32_t chan = (uint32_t)am->channel_cookie - 1;
	struct chan_end *ce = chan_by_cookie(w, host, am->channel_cookie);
	struct msg *m = &ce->msgs[am->cookie];

	if (m->is_answered || !m->is_sent || am->number != am->cookie) {
		fail(w, "host %u channel %u: message %llu answered wrongly", host, chan,
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
			fail(w, "host %u channel %u message %llu: level %d claimed too early", host,
			     chan, (unsigned long long)am->number, m->want);
	} else if (am->outcome == MRC_OUT_REJECTED) {
		if (!m->is_rejected || m->code != am->code)
			fail(w, "host %u channel %u message %llu: rejection nobody gave", host,
			     chan, (unsigned long long)am->number);
	} else {
		fail(w, "host %u channel %u message %llu: outcome %d", host, chan,
		     (unsigned long long)am->number, am->outcome);
	}
	timer_add(w, w->now_ns + draw(w, 20 * MRC_US), T_CLIENT_SEND, host, chan, 0, 0);
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

static void landing_answer(struct sim_world *w, uint32_t host, struct chan_end *ce)
{
	while (ce->want_count) {
		struct mrc_event_in ev = {.kind = MRC_EV_LANDING,
					  .msg = {.channel = ce->id,
						  .number = ce->wants[0].number}};

		if (!landing_take(w, ce, ce->wants[0].len, &ev.msg.addr))
			return;
		ce->want_count--;
		memmove(ce->wants, ce->wants + 1, sizeof(ce->wants[0]) * ce->want_count);
		if (handle(w, host, &ev)) {
			for (uint32_t i = 0; i < 64; i++) {
				if (ce->grants[i].len && ce->grants[i].addr == ev.msg.addr)
					ce->grants[i].len = 0;
			}
		}
	}
}

/* ---- wires ---- */

static void frame_free(struct frame *f)
{
	free(f->payload);
	free(f);
}

static void queue_drop(struct frame **head, struct frame **tail)
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
	timer_add(w, w->now_ns + 200 + bytes * MRC_S / w->o.rate * w->paths[path].rail.slow,
		  T_FRAME_OUT, path, host, w->paths[path].ends[host].epoch, 0);
}

static bool is_blocked(const struct sim_world *w, uint32_t path, uint32_t from)
{
	const struct rail_state *rail = &w->paths[path].rail;

	return rail->is_silent[from] || !rail->is_carrier[0] || !rail->is_carrier[1];
}

static void frame_out(struct sim_world *w, uint32_t path, uint32_t host, uint32_t epoch)
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
		struct chan_end *ce = chan_by_cookie(w, host, f->post.channel_cookie);

		f->payload = malloc(f->post.hdr.body_len);
		if (!f->payload)
			abort();
		memcpy(f->payload, ce->send + f->post.payload_addr, f->post.hdr.body_len);
		f->post.hdr.body_crc = sim_crc32c(0, f->payload, f->post.hdr.body_len);
	}
	f->arrive_ns = w->now_ns + w->o.delay_ns + draw(w, w->o.delay_ns / 4 + 1);
	if (wire->air_tail) {
		f->arrive_ns = MRC_MAX(f->arrive_ns, wire->air_tail->arrive_ns);
		wire->air_tail->next = f;
	} else {
		wire->air_head = f;
	}
	wire->air_tail = f;
	timer_add(w, f->arrive_ns, T_ARRIVE, path, host, epoch, 0);
	wire->sent++;
	ev.path.count = wire->sent;
	if (end->is_up)
		handle(w, host, &ev);
	wire_kick(w, path, host);
	pump(w, host);
}

static void link_down(struct sim_world *w, uint32_t path, uint32_t host,
		      enum mrc_path_reason reason)
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
	queue_drop(&end->out.queue_head, &end->out.queue_tail);
	if (!w->o.is_verbs)
		queue_drop(&end->out.air_head, &end->out.air_tail);
	/* Nothing can land here any more: the other end's frames in the air are refused. */
	queue_drop(&w->paths[path].ends[1 - host].out.air_head,
		   &w->paths[path].ends[1 - host].out.air_tail);
	handle(w, host, &ev);
	pump(w, host);
}

/* Does a write to the landing memory of this message hit one that was delivered? */
static void ghost_check(struct sim_world *w, uint32_t chan, uint32_t host, uint64_t number)
{
	struct msg *m = &w->chans[chan].ends[1 - host].msgs[number];

	if (m->is_delivered)
		fail(w,
		     "channel %u message %llu: a late write landed after its delivery to host %u",
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
	is_hdr_bad = draw(w, 1000) < rail->corrupt_hdr_permille;
	if (f->payload && draw(w, 1000) < rail->corrupt_body_permille)
		f->payload[draw(w, f->post.hdr.body_len)] ^= (uint8_t)(1 + draw(w, 255));
	mrc_wire_encode(&f->post.hdr, sim_crc32c, raw);
	if (is_hdr_bad)
		raw[draw(w, MRC_WIRE_HDR_BYTES)] ^= (uint8_t)(1U << draw(w, 8));
	r = mrc_wire_decode(raw, sim_crc32c, &hdr);
	if (r) {
		if (!is_hdr_bad)
			fail(w, "host %u sent a frame of type %u that does not decode: %d", from,
			     f->post.hdr.type, r);
		frame_free(f);
		link_down(w, path, host, MRC_REASON_CORRUPT);
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
			struct chan_end *ce = chan_by_cookie(w, host, place.channel_cookie);

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
				struct chan_end *ce = chan_by_cookie(w, host, place.channel_cookie);

				memcpy(ce->landing + (place.is_eager ? 0 : w->o.ring_bytes) +
					       place.addr,
				       f->payload + done, len);
				ghost_check(w, (uint32_t)place.channel_cookie - 1, host, hdr.msg);
			}
			done += len;
		}
		ev.arrived.is_body_good = sim_crc32c(0, f->payload, hdr.body_len) == hdr.body_crc;
	}
	r = handle(w, host, &ev);
	if (w->o.is_traced)
		trace(w, "%u<-%u path %u/%u %s ch %u msg %llu off %llu len %u -> %d", host, from,
		      path, end->epoch, mrc_wire_type_name(hdr.type), hdr.channel,
		      (unsigned long long)hdr.msg, (unsigned long long)hdr.offset, hdr.body_len, r);
	frame_free(f);
	if (r == -EPROTO) {
		if (!is_hdr_bad)
			fail(w, "host %u: %s from an honest peer broke the protocol", host,
			     mrc_wire_type_name(hdr.type));
		link_down(w, path, host, MRC_REASON_PROTOCOL);
	}
	pump(w, host);
}

static void arrive(struct sim_world *w, uint32_t path, uint32_t from, uint32_t epoch)
{
	struct wire *wire = &w->paths[path].ends[from].out;

	if (w->paths[path].ends[from].epoch != epoch)
		return;
	/* Blocked frames wait in the air: TCP and RC send them again until they give up. */
	while (wire->air_head && wire->air_head->arrive_ns <= w->now_ns) {
		if (is_blocked(w, path, from)) {
			timer_add(w, w->now_ns + 200 * MRC_US, T_ARRIVE, path, from, epoch, 0);
			return;
		}
		frame_arrives(w, path, from);
		if (w->paths[path].ends[from].epoch != epoch)
			return;
	}
}

/* Both ends conclude the same from two HELLOs, as in the daemon. */
static void connect_path(struct sim_world *w, uint32_t path)
{
	struct mrc_hello hello[SIM_HOSTS];
	struct mrc_auth auth;
	struct mrc_event_in ev = {.kind = MRC_EV_PATH_FAILED, .path = {.index = (uint8_t)path}};
	uint64_t boot[SIM_HOSTS];

	if (is_blocked(w, path, 0) || is_blocked(w, path, 1)) {
		handle(w, 0, &ev);
		pump(w, 0);
		return;
	}
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		if (w->paths[path].ends[h].is_up)
			link_down(w, path, h, MRC_REASON_CLOSED);
	}
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		mrc_conn_hello(w->hosts[h].conn, (uint8_t)path, &hello[h]);
		boot[h] = hello[h].boot_id;
	}
	mrc_hello_conclude(&hello[0], &hello[1], &auth);
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		if (mrc_conn_join(w->hosts[h].conn, (uint8_t)path, &auth, boot[1 - h])) {
			handle(w, 0, &ev);
			pump(w, 0);
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

		queue_drop(&end->out.queue_head, &end->out.queue_tail);
		queue_drop(&end->out.air_head, &end->out.air_tail);
		*end = (struct end){.is_up = true,
				    .epoch = auth.path_epoch,
				    .conn_epoch = auth.conn_epoch};
		ev.path.peer_boot_id = boot[1 - h];
		if (handle(w, h, &ev))
			fail(w, "host %u: PATH_UP refused", h);
	}
	pump(w, 0);
	pump(w, 1);
}

/* ---- actions ---- */

static void post(struct sim_world *w, uint32_t host, const struct mrc_act_post *p)
{
	struct end *end = &w->paths[p->index].ends[host];
	struct frame *f = malloc(sizeof(*f));

	if (!f)
		abort();
	if (!end->is_up || end->epoch != p->path_epoch) {
		fail(w, "host %u posts on path %u/%u which is not there", host, p->index,
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
	struct mrc_event_in ev = {.kind = MRC_EV_CH_ACCEPT, .channel = half(w, chan)};

	client_equip(w, ce);
	ce->id = ac->id;
	ev.channel.id = ac->id;
	if (handle(w, host, &ev))
		fail(w, "host %u: ACCEPT refused", host);
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
		timer_add(w, w->now_ns + 2 * w->o.delay_ns, T_CONNECT, act->path.index, 0, 0, 0);
		break;
	case MRC_ACT_FENCE: {
		struct end *end = &w->paths[act->path.index].ends[host];

		/* ERR at once: nothing more leaves. The confirmation takes its time on verbs. */
		end->out.is_dead = true;
		queue_drop(&end->out.queue_head, &end->out.queue_tail);
		timer_add(w, w->now_ns + (w->o.is_verbs ? draw(w, 500 * MRC_US) : 0), T_FENCED,
			  act->path.index, host, act->path.path_epoch, 0);
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
		handle(w, host, &ev);
		break;
	case MRC_ACT_PATH_STATE:
		trace(w, "host %u path %u: %s -> %s (%s), %u moved", host, act->path.index,
		      mrc_path_state_name(act->path.state_old),
		      mrc_path_state_name(act->path.state), mrc_path_reason_name(act->path.reason),
		      act->path.moved_count);
		break;
	case MRC_ACT_CH_INCOMING:
		incoming(w, host, &act->channel);
		break;
	case MRC_ACT_CH_UP:
		ce = chan_by_cookie(w, host, act->channel.cookie);
		ce->is_connected = true;
		timer_add(w, w->now_ns, T_CLIENT_SEND, host, (uint32_t)act->channel.cookie - 1, 0,
			  0);
		break;
	case MRC_ACT_CH_ROOM:
		timer_add(w, w->now_ns, T_CLIENT_SEND, host, (uint32_t)act->channel.cookie - 1, 0,
			  0);
		break;
	case MRC_ACT_CH_DOWN:
		ce = chan_by_cookie(w, host, act->channel.cookie);
		ce->is_down = true;
		if (act->channel.outcome)
			fail(w, "host %u channel %llu went down: %d", host,
			     (unsigned long long)act->channel.cookie - 1, act->channel.outcome);
		if (ce->answered != ce->send_next)
			fail(w, "host %u channel %llu down with unanswered sends", host,
			     (unsigned long long)act->channel.cookie - 1);
		break;
	case MRC_ACT_CH_FREE:
		chan_by_cookie(w, host, act->channel.cookie)->is_freed = true;
		break;
	case MRC_ACT_LANDING_WANT:
		ce = chan_by_cookie(w, host, act->msg.channel_cookie);
		ce->wants[ce->want_count].number = act->msg.number;
		ce->wants[ce->want_count++].len = act->msg.len;
		landing_answer(w, host, ce);
		break;
	case MRC_ACT_LANDING_FREE:
		ce = chan_by_cookie(w, host, act->msg.channel_cookie);
		for (uint32_t i = 0; i < 64; i++) {
			if (ce->grants[i].len && ce->grants[i].addr == act->msg.addr) {
				memset(ce->landing + w->o.ring_bytes + act->msg.addr, POISON,
				       ce->grants[i].len);
				ce->grants[i].len = 0;
			}
		}
		landing_answer(w, host, ce);
		break;
	case MRC_ACT_DELIVER:
		client_delivered(w, host, &act->msg);
		break;
	case MRC_ACT_GAP:
		fail(w, "host %u: a gap nobody asked for", host);
		break;
	case MRC_ACT_DONE:
		client_done(w, host, &act->msg);
		break;
	case MRC_ACT_COPY:
		ce = chan_by_cookie(w, host, act->msg.channel_cookie);
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
		fail(w, "host %u: the conn was reset", host);
		break;
	}
}

static void pump(struct sim_world *w, uint32_t host)
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
			fail(w, "host %u: actions without end", host);
	}
	hs->is_pumping = false;
	at_ns = mrc_conn_deadline_ns(hs->conn);
	if (at_ns != MRC_NEVER && (hs->timer_ns <= w->now_ns || at_ns < hs->timer_ns)) {
		hs->timer_ns = MRC_MAX(at_ns, w->now_ns + 1);
		timer_add(w, hs->timer_ns, T_ENGINE, host, 0, 0, hs->timer_ns);
	}
}

/* ---- faults ---- */

static const char *const fault_names[SIM_FAULT_COUNT] = {
	[SIM_CARRIER_BOTH] = "carrier-both",
	[SIM_CARRIER_ONE] = "carrier-one",
	[SIM_SILENCE] = "silence",
	[SIM_SILENCE_ONE_WAY] = "silence-one-way",
	[SIM_SLOW] = "slow",
	[SIM_RESET] = "reset",
	[SIM_FLAP] = "flap",
	[SIM_PAUSE] = "pause",
	[SIM_CORRUPT_BODY] = "corrupt-body",
	[SIM_CORRUPT_HDR] = "corrupt-header",
};

const char *sim_fault_name(enum sim_fault fault)
{
	return fault_names[fault];
}

static void carrier_tell(struct sim_world *w, uint32_t path, uint32_t host)
{
	struct mrc_event_in ev = {.kind = MRC_EV_CARRIER,
				  .path = {.index = (uint8_t)path,
					   .is_up = w->paths[path].rail.is_carrier[host]}};

	handle(w, host, &ev);
	pump(w, host);
}

static void carrier_set(struct sim_world *w, uint32_t path, uint32_t host, bool is_up)
{
	w->paths[path].rail.is_carrier[host] = is_up;
	if (draw(w, 8)) /* now and then the event is lost: nobody may depend on it */
		timer_add(w, w->now_ns + draw(w, 300 * MRC_US), T_CARRIER, path, host, 0, 0);
}

static void fault_begin(struct sim_world *w)
{
	enum sim_fault fault;
	uint32_t path = (uint32_t)draw(w, w->o.rails);
	uint32_t host = (uint32_t)draw(w, SIM_HOSTS);
	struct rail_state *rail = &w->paths[path].rail;
	uint64_t span_ns = draw(w, 10) < 7 ? draw(w, 30 * MRC_MS) : draw(w, 800 * MRC_MS);

	do
		fault = (enum sim_fault)draw(w, SIM_FAULT_COUNT);
	while (!(w->o.fault_kinds >> fault & 1));
	trace(w, "fault %s on path %u host %u for %.1f ms", fault_names[fault], path, host,
	      (double)span_ns / MRC_MS);
	switch (fault) {
	case SIM_CARRIER_BOTH:
	case SIM_FLAP:
		carrier_set(w, path, 0, false);
		carrier_set(w, path, 1, false);
		if (fault == SIM_FLAP)
			span_ns /= 10;
		break;
	case SIM_CARRIER_ONE:
		carrier_set(w, path, host, false);
		break;
	case SIM_SILENCE:
		rail->is_silent[0] = true;
		rail->is_silent[1] = true;
		break;
	case SIM_SILENCE_ONE_WAY:
		rail->is_silent[host] = true;
		break;
	case SIM_SLOW:
		rail->slow = 2 + (uint32_t)draw(w, 30);
		break;
	case SIM_RESET:
		link_down(w, path, host, MRC_REASON_ERROR);
		if (!w->o.is_verbs && draw(w, 2))
			link_down(w, path, 1 - host, MRC_REASON_CLOSED);
		break;
	case SIM_PAUSE:
		span_ns = draw(w, 200 * MRC_MS);
		w->hosts[host].paused_until_ns =
			MRC_MAX(w->hosts[host].paused_until_ns, w->now_ns + span_ns);
		break;
	case SIM_CORRUPT_BODY:
		rail->corrupt_body_permille = 1 + (uint32_t)draw(w, 300);
		break;
	default:
		rail->corrupt_hdr_permille = 1 + (uint32_t)draw(w, 20);
		break;
	}
	w->paths[path].faults_active++;
	w->faults_open++;
	timer_add(w, w->now_ns + span_ns, T_FAULT_END, path, fault, host, 0);
}

static void fault_end(struct sim_world *w, uint32_t path, enum sim_fault fault, uint32_t host)
{
	struct rail_state *rail = &w->paths[path].rail;

	w->faults_open--;
	if (fault == SIM_PAUSE)
		pump(w, host);
	if (--w->paths[path].faults_active)
		return; /* another one holds: the last puts all right */
	trace(w, "path %u healed", path);
	rail->is_silent[0] = false;
	rail->is_silent[1] = false;
	rail->slow = 1;
	rail->corrupt_body_permille = 0;
	rail->corrupt_hdr_permille = 0;
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		if (!rail->is_carrier[h])
			carrier_set(w, path, h, true);
	}
}

/* ---- the run ---- */

static void *sim_alloc(void *context, size_t bytes)
{
	(void)context;
	return calloc(1, bytes);
}

static void sim_release(void *context, void *memory)
{
	(void)context;
	free(memory);
}

struct sim_world *sim_new(const struct sim_options *options)
{
	struct sim_world *w = calloc(1, sizeof(*w));
	static const char *const names[SIM_HOSTS] = {"a", "b"};

	if (!w)
		abort();
	w->o = *options;
	w->rng.state = options->seed;
	w->paths = calloc(options->rails, sizeof(*w->paths));
	if (!w->paths)
		abort();
	for (uint32_t p = 0; p < options->rails; p++) {
		w->paths[p].rail = (struct rail_state){.is_carrier = {true, true}, .slow = 1};
	}
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		struct mrc_conn_config config = {
			.host = names[h],
			.peer = names[1 - h],
			.boot_id = 100 + h,
			.seed = options->seed + h,
			.path_count = (uint8_t)options->rails,
			.limits = {.frag_bytes_max = 4096,
				   .eager_bytes_max = 1024,
				   .frames_in_flight_max = 256,
				   .channels_max = 16,
				   .holds_max = 64,
				   .path_window_bytes_min = 16384,
				   .path_window_bytes_max = 256 * 1024},
			.alloc = {.alloc = sim_alloc, .free = sim_release},
		};

		if (mrc_conn_new(&config, &w->hosts[h].conn))
			abort();
		w->hosts[h].timer_ns = 0;
	}
	return w;
}

void sim_free(struct sim_world *w)
{
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		mrc_conn_free(w->hosts[h].conn);
		for (uint32_t i = 0; i < 64; i++)
			free(w->hosts[h].holds[i].data);
		for (uint32_t p = 0; p < w->o.rails; p++) {
			struct wire *wire = &w->paths[p].ends[h].out;

			queue_drop(&wire->queue_head, &wire->queue_tail);
			queue_drop(&wire->air_head, &wire->air_tail);
		}
		for (uint32_t c = 0; c < SIM_CHANNELS_MAX; c++) {
			free(w->chans[c].ends[h].send);
			free(w->chans[c].ends[h].landing);
			free(w->chans[c].ends[h].msgs);
		}
	}
	free(w->paths);
	free(w->heap);
	free(w);
}

static bool is_finished(const struct sim_world *w)
{
	struct mrc_conn_info info;

	for (uint32_t c = 0; c < w->o.channels; c++) {
		for (uint32_t h = 0; h < SIM_HOSTS; h++) {
			if (!w->chans[c].ends[h].is_freed)
				return false;
		}
	}
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		mrc_conn_info(w->hosts[h].conn, &info);
		if (info.channel_count || info.paths_good < w->o.rails)
			return false;
	}
	return true;
}

static void step(struct sim_world *w, const struct timer *t)
{
	struct mrc_event_in ev = {.kind = MRC_EV_TIMER};
	struct mrc_event_in fenced = {.kind = MRC_EV_FENCED};
	struct end *end;

	switch (t->kind) {
	case T_FRAME_OUT:
		frame_out(w, t->a, t->b, t->c);
		break;
	case T_ARRIVE:
		if (w->now_ns < w->hosts[1 - t->b].paused_until_ns)
			timer_add(w, w->hosts[1 - t->b].paused_until_ns, T_ARRIVE, t->a, t->b, t->c,
				  0);
		else
			arrive(w, t->a, t->b, t->c);
		break;
	case T_ENGINE:
		if (w->hosts[t->a].timer_ns != t->d)
			break;
		if (w->now_ns < w->hosts[t->a].paused_until_ns) {
			/* A late turn: frames that wait are handled before any timer is judged. */
			w->hosts[t->a].timer_ns = w->hosts[t->a].paused_until_ns + 1;
			timer_add(w, w->hosts[t->a].timer_ns, T_ENGINE, t->a, 0, 0,
				  w->hosts[t->a].timer_ns);
			break;
		}
		w->hosts[t->a].timer_ns = 0;
		handle(w, t->a, &ev);
		pump(w, t->a);
		break;
	case T_FENCED:
		end = &w->paths[t->a].ends[t->b];
		if (end->is_up && end->epoch == t->c) {
			end->is_up = false;
			if (!w->o.is_verbs)
				queue_drop(&end->out.air_head, &end->out.air_tail);
			queue_drop(&w->paths[t->a].ends[1 - t->b].out.air_head,
				   &w->paths[t->a].ends[1 - t->b].out.air_tail);
		}
		fenced.path.index = (uint8_t)t->a;
		fenced.path.path_epoch = t->c;
		handle(w, t->b, &fenced);
		pump(w, t->b);
		/* TCP: the other end reads the close, if anything gets through. */
		if (!w->o.is_verbs && !is_blocked(w, t->a, t->b) &&
		    w->paths[t->a].ends[1 - t->b].epoch == t->c)
			link_down(w, t->a, 1 - t->b, MRC_REASON_CLOSED);
		break;
	case T_CONNECT:
		connect_path(w, t->a);
		break;
	case T_CLIENT_SEND:
		client_send(w, t->a, t->b);
		pump(w, t->a);
		break;
	case T_THINK:
		client_thinks(w, t->a, t->b, t->d);
		break;
	case T_FAULT:
		if (w->faults_left) {
			w->faults_left--;
			fault_begin(w);
			timer_add(w, w->now_ns + draw(w, 20 * MRC_MS), T_FAULT, 0, 0, 0, 0);
		}
		break;
	case T_FAULT_END:
		fault_end(w, t->a, (enum sim_fault)t->b, t->c);
		break;
	case T_CARRIER:
		carrier_tell(w, t->a, t->b);
		break;
	}
}

int sim_run(struct sim_world *w)
{
	for (uint32_t c = 0; c < w->o.channels; c++) {
		struct mrc_event_in ev = {.kind = MRC_EV_CH_OPEN, .channel = half(w, c)};
		char service[16];

		snprintf(service, sizeof(service), "s%u", c);
		client_equip(w, &w->chans[c].ends[0]);
		ev.channel.service = service;
		ev.channel.is_unordered = w->o.is_unordered;
		ev.channel.id_out = &w->chans[c].ends[0].id;
		if (handle(w, 0, &ev))
			fail(w, "CH_OPEN refused");
	}
	w->faults_left = w->o.faults;
	timer_add(w, 2 * MRC_MS, T_FAULT, 0, 0, 0, 0);
	pump(w, 0);
	pump(w, 1);
	/* Timers for the first turn: the initiator connects at once. */
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		struct mrc_event_in ev = {.kind = MRC_EV_TIMER};

		handle(w, h, &ev);
		pump(w, h);
	}
	while (w->heap_count && !w->failure[0]) {
		struct timer t = timer_pop(w);

		w->now_ns = MRC_MAX(w->now_ns, t.at_ns);
		step(w, &t);
		w->events++;
		if (w->events > EVENTS_MAX) {
			fail(w, "too many events");
			break;
		}
		if (w->faults_left == 0 && w->faults_open == 0) {
			if (w->heal_by_ns == 0)
				w->heal_by_ns = w->now_ns + HEAL_NS;
			if ((w->events & 63) == 0 && is_finished(w))
				return 0;
			if (w->now_ns > w->heal_by_ns) {
				fail(w, "no progress: not finished %llu s after the last fault",
				     (unsigned long long)(HEAL_NS / MRC_S));
			}
		}
	}
	if (!w->failure[0] && !is_finished(w))
		fail(w, "nothing left to do, and not finished");
	return w->failure[0] != 0;
}

const char *sim_failure(const struct sim_world *w)
{
	return w->failure;
}

void sim_trace_print(const struct sim_world *w, FILE *out)
{
	uint64_t from = w->trace_count > SIM_TRACE_LINES ? w->trace_count - SIM_TRACE_LINES : 0;

	for (uint64_t i = from; i < w->trace_count; i++)
		fprintf(out, "%s\n", w->trace[i % SIM_TRACE_LINES]);
}

void sim_report(const struct sim_world *w, FILE *out)
{
	struct mrc_conn_info info;

	mrc_conn_info(w->hosts[0].conn, &info);
	fprintf(out,
		"%.3f ms virtual, %llu events, %llu frames, %llu ghosts, %llu copies, %llu "
		"duplicates\n",
		(double)w->now_ns / MRC_MS, (unsigned long long)w->events,
		(unsigned long long)w->frames, (unsigned long long)w->ghosts,
		(unsigned long long)w->copies, (unsigned long long)info.duplicates);
	for (uint32_t h = 0; h < SIM_HOSTS; h++) {
		for (uint8_t p = 0; p < w->o.rails; p++) {
			struct mrc_path_info pi;

			mrc_conn_path_info(w->hosts[h].conn, p, &pi);
			fprintf(out,
				"  host %u path %u: %-11s epoch %u, suspected %llu (%llu false), "
				"resent %llu\n",
				h, p, mrc_path_state_name(pi.state), pi.epoch,
				(unsigned long long)pi.suspicions,
				(unsigned long long)pi.suspicions_false,
				(unsigned long long)pi.frames_resent);
		}
		for (uint32_t c = 0; c < w->o.channels; c++) {
			const struct chan_end *ce = &w->chans[c].ends[h];

			fprintf(out,
				"  host %u channel %u: sent %llu answered %llu delivered "
				"%llu%s%s%s\n",
				h, c, (unsigned long long)ce->send_next,
				(unsigned long long)ce->answered, (unsigned long long)ce->delivered,
				ce->is_connected ? " connected" : "", ce->is_down ? " down" : "",
				ce->is_freed ? " freed" : "");
		}
	}
}
