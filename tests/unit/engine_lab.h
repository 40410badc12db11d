/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_lab - what the engine's tests share
 *
 * A checksum, an allocator that counts, one engine with its actions in a log
 * ("host"), and two engines joined by rails that exist in memory only ("pair").
 * The pair carries headers through the codec; payload stays where it is, for
 * the simulator looks after bytes. Time is virtual and moves from one deadline
 * or arrival to the next.
 *
 * Units: ns, bytes.  Ownership: all of a lab_pair or lab_host is freed by its _fini.
 */
#ifndef ENGINE_LAB_H
#define ENGINE_LAB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mrc_conn_impl.h"

#define LAB_LOG_MAX    16384U
#define LAB_FRAMES_MAX 8192U
#define LAB_PATHS_MAX  4U
#define LAB_DELAY_NS   (10 * MRC_US)
#define LAB_RING_BYTES 65536U
#define LAB_MSG_MAX    (16ULL << 20)
#define LAB_WINDOW     16U
#define LAB_BOOT_A     0xa1ULL
#define LAB_BOOT_B     0xb1ULL

static inline uint32_t lab_crc32c(uint32_t crc, const void *data, size_t len)
{
	static uint32_t table[256];
	const uint8_t *p = data;

	if (!table[1]) {
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t v = i;

			for (int bit = 0; bit < 8; bit++)
				v = v & 1 ? v >> 1 ^ 0x82f63b78U : v >> 1;
			table[i] = v;
		}
	}
	crc = ~crc;
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return ~crc;
}

/* ---- an allocator that counts, and fails when told to ---- */

struct lab_alloc {
	uint64_t taken;   /* calls of alloc, ever */
	int64_t live;     /* taken and not given back */
	uint64_t fail_at; /* this call (from 1) answers NULL; 0: none */
};

static inline void *lab_alloc_take(void *context, size_t bytes)
{
	struct lab_alloc *la = context;

	la->taken++;
	if (la->taken == la->fail_at)
		return NULL;
	la->live++;
	return calloc(1, bytes);
}

static inline void lab_alloc_give(void *context, void *memory)
{
	struct lab_alloc *la = context;

	la->live--;
	free(memory);
}

/* ---- one engine ---- */

struct lab_host {
	struct mrc_conn *conn;
	struct lab_alloc memory;
	struct mrc_action *log; /* every action taken, in order */
	uint32_t log_count;
	uint64_t now_ns;

	/* What the clients and the embedder of this host do by themselves. */
	bool accepts;  /* CH_INCOMING -> CH_ACCEPT */
	bool lands;    /* LANDING_WANT -> LANDING */
	bool releases; /* DELIVER -> RELEASE */
	bool finishes; /* POST -> SENT */
	bool fences;   /* FENCE -> FENCED */
	uint64_t landing_next;
	uint32_t window;      /* of the channels it opens and accepts */
	uint32_t share;       /* receive entries of each path; 0: no such bound */
	uint32_t entry_bytes; /* of body that each of them takes; 0: no such bound */
	uint32_t features;    /* agreed on for its paths */
	uint64_t hold_next;
	uint32_t holds; /* of a pair with direct paths: fragments in daemon memory now */
	uint64_t ring_addr;
	uint64_t ring_bytes;
	uint64_t msg_bytes_max;
	bool is_unchecked;              /* so are the channels it opens */
	uint64_t posted[MRC_PATHS_MAX]; /* in this path epoch */
	struct lab_pair *pair;          /* NULL: it stands alone */
	uint8_t index;
};

static inline void lab_host_log(struct lab_host *h, const struct mrc_action *act)
{
	if (h->log_count >= LAB_LOG_MAX)
		fail_msg("the lab's log is full");
	h->log[h->log_count++] = *act;
}

static inline void lab_host_init(struct lab_host *h, const char *host, const char *peer,
				 uint64_t boot_id, uint8_t path_count,
				 const struct mrc_limits *limits)
{
	struct mrc_conn_config config = {
		.host = host,
		.peer = peer,
		.boot_id = boot_id,
		.seed = 7,
		.path_count = path_count,
		.limits = limits ? *limits
				 : (struct mrc_limits){.channels_max = 8,
						       .frames_in_flight_max = 256},
		.alloc = {lab_alloc_take, lab_alloc_give, &h->memory},
	};

	memset(h, 0, sizeof(*h));
	/* The log of a pair's first host is freed with it; the analyzer loses it while the second is made. */
	for (uint8_t i = 0; i < path_count; i++) /* NOLINT(clang-analyzer-unix.Malloc) */
		config.rail_of[i] = i;
	assert_int_equal(mrc_conn_new(&config, &h->conn), 0);
	h->log = calloc(LAB_LOG_MAX, sizeof(*h->log));
	assert_non_null(h->log);
	h->now_ns = MRC_S;
	h->accepts = h->lands = h->releases = h->finishes = h->fences = true;
	h->landing_next = 1 << 20;
	h->window = LAB_WINDOW;
	h->ring_bytes = LAB_RING_BYTES;
	h->msg_bytes_max = LAB_MSG_MAX;
}

/* Also tells whether the engine gave back all that it took. */
static inline void lab_host_fini(struct lab_host *h)
{
	mrc_conn_free(h->conn);
	free(h->log);
	assert_int_equal(h->memory.live, 0);
}

static inline int lab_handle(struct lab_host *h, const struct mrc_event_in *ev)
{
	return mrc_conn_handle(h->conn, ev, h->now_ns);
}

/* ---- events, said shortly ---- */

static inline int lab_open_at(struct lab_host *h, const char *service, bool is_unordered,
			      uint32_t *id_out)
{
	struct mrc_event_in ev = {
		.kind = MRC_EV_CH_OPEN,
		.channel = {.flow = 1,
			    .is_unordered = is_unordered,
			    .is_unchecked = h->is_unchecked,
			    .cookie = 100 + h->index,
			    .ring_addr = h->ring_addr,
			    .ring_bytes = h->ring_bytes,
			    .msg_bytes_max = h->msg_bytes_max,
			    .window = h->window,
			    .service = service,
			    .id_out = id_out},
	};

	*id_out = 0;
	return lab_handle(h, &ev);
}

static inline int lab_accept(struct lab_host *h, uint32_t id)
{
	struct mrc_event_in ev = {
		.kind = MRC_EV_CH_ACCEPT,
		.channel = {.id = id,
			    .flow = 1,
			    .cookie = 100 + h->index,
			    .ring_addr = h->ring_addr,
			    .ring_bytes = h->ring_bytes,
			    .msg_bytes_max = h->msg_bytes_max,
			    .window = h->window},
	};

	return lab_handle(h, &ev);
}

static inline int lab_channel(struct lab_host *h, enum mrc_event_kind kind, uint32_t id)
{
	struct mrc_event_in ev = {.kind = kind, .channel = {.id = id}};

	return lab_handle(h, &ev);
}

static inline int lab_send(struct lab_host *h, uint32_t id, uint64_t len, enum mrc_lvl level,
			   uint64_t cookie)
{
	struct mrc_event_in ev = {
		.kind = MRC_EV_SEND,
		.msg = {.channel = id, .level = level, .cookie = cookie, .len = len},
	};

	return lab_handle(h, &ev);
}

/* VISIBLE, COMMIT, REJECT (with `code`), RELEASE; LANDING has `addr`. */
static inline int lab_msg(struct lab_host *h, enum mrc_event_kind kind, uint32_t id,
			  uint64_t number, uint64_t code_or_addr)
{
	struct mrc_event_in ev = {
		.kind = kind,
		.msg = {.channel = id,
			.number = number,
			.code = (uint32_t)code_or_addr,
			.addr = code_or_addr},
	};

	return lab_handle(h, &ev);
}

static inline int lab_cancel(struct lab_host *h, uint32_t id, uint64_t number, int outcome)
{
	struct mrc_event_in ev = {
		.kind = MRC_EV_CANCEL,
		.msg = {.channel = id, .number = number, .outcome = outcome},
	};

	return lab_handle(h, &ev);
}

/* The landing memory of flow 1, which all channels of the lab belong to. */
static inline int lab_key(struct lab_host *h, uint8_t index, bool is_valid, uint32_t rkey,
			  uint64_t base)
{
	struct mrc_event_in ev = {
		.kind = MRC_EV_KEY,
		.key = {.flow = 1,
			.index = index,
			.is_valid = is_valid,
			.rkey = rkey,
			.base = base},
	};

	return lab_handle(h, &ev);
}

static inline int lab_path(struct lab_host *h, enum mrc_event_kind kind, uint8_t index,
			   enum mrc_path_reason reason)
{
	struct mrc_event_in ev = {
		.kind = kind,
		.path = {.index = index,
			 .reason = reason,
			 .path_epoch = h->conn->paths[index].epoch},
	};

	return lab_handle(h, &ev);
}

static inline int lab_carrier(struct lab_host *h, uint8_t index, bool is_up)
{
	struct mrc_event_in ev = {.kind = MRC_EV_CARRIER, .path = {.index = index, .is_up = is_up}};

	return lab_handle(h, &ev);
}

static inline int lab_path_up(struct lab_host *h, uint8_t index, uint32_t conn_epoch,
			      uint32_t path_epoch, uint64_t peer_boot_id, bool is_direct)
{
	struct mrc_event_in ev = {
		.kind = MRC_EV_PATH_UP,
		.path = {.index = index,
			 .path_id = index,
			 .conn_epoch = conn_epoch,
			 .path_epoch = path_epoch,
			 .peer_boot_id = peer_boot_id,
			 .receive_share = h->share,
			 .receive_bytes = h->entry_bytes,
			 .version = 2,
			 .features = h->features,
			 .is_direct_capable = is_direct},
	};

	h->posted[index] = 0;
	return lab_handle(h, &ev);
}

static inline int lab_timer(struct lab_host *h)
{
	struct mrc_event_in ev = {.kind = MRC_EV_TIMER};

	return lab_handle(h, &ev);
}

/* ---- looking at the log ---- */

/* The nth action of this kind at or after log position `from`; NULL: none. */
static inline const struct mrc_action *lab_find(const struct lab_host *h, enum mrc_action_kind kind,
						uint32_t from, uint32_t nth)
{
	for (uint32_t i = from; i < h->log_count; i++) {
		if (h->log[i].kind == kind && nth-- == 0)
			return &h->log[i];
	}
	return NULL;
}

static inline uint32_t lab_count(const struct lab_host *h, enum mrc_action_kind kind, uint32_t from)
{
	uint32_t count = 0;

	while (lab_find(h, kind, from, count))
		count++;
	return count;
}

static inline const struct mrc_act_post *lab_posted(const struct lab_host *h,
						    enum mrc_wire_type type, uint32_t from,
						    uint32_t nth)
{
	for (uint32_t i = from; i < h->log_count; i++) {
		if (h->log[i].kind == MRC_ACT_POST && h->log[i].post.hdr.type == type && nth-- == 0)
			return &h->log[i].post;
	}
	return NULL;
}

static inline uint32_t lab_posted_count(const struct lab_host *h, enum mrc_wire_type type,
					uint32_t from)
{
	uint32_t count = 0;

	while (lab_posted(h, type, from, count))
		count++;
	return count;
}

/* The DONE with this cookie: its outcome in *outcome_out; false when there is none. */
static inline bool lab_done(const struct lab_host *h, uint64_t cookie, int *outcome_out)
{
	for (uint32_t i = 0; i < h->log_count; i++) {
		if (h->log[i].kind == MRC_ACT_DONE && h->log[i].msg.cookie == cookie) {
			*outcome_out = h->log[i].msg.outcome;
			return true;
		}
	}
	return false;
}

static inline void lab_done_is(const struct lab_host *h, uint64_t cookie, int outcome)
{
	int got = 1;

	if (!lab_done(h, cookie, &got))
		fail_msg("message with cookie %llu was never answered", (unsigned long long)cookie);
	if (got != outcome)
		fail_msg("message with cookie %llu ended as %d, want %d",
			 (unsigned long long)cookie, got, outcome);
}

static inline struct mrc_path_info lab_path_info(const struct lab_host *h, uint8_t index)
{
	struct mrc_path_info info;

	mrc_conn_path_info(h->conn, index, &info);
	return info;
}

static inline struct mrc_conn_info lab_info(const struct lab_host *h)
{
	struct mrc_conn_info info;

	mrc_conn_info(h->conn, &info);
	return info;
}

/* ---- two engines and the rails between them ---- */

struct lab_frame {
	bool is_used;
	uint8_t to; /* host */
	uint8_t path;
	uint32_t path_epoch;
	uint64_t at_ns;
	uint64_t order;
	uint8_t hdr[MRC_WIRE_HDR_BYTES];
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
};

struct lab_pair {
	struct lab_host hosts[2]; /* "a", which connects, and "b" */
	uint8_t path_count;
	uint64_t now_ns;
	uint64_t order_next;
	struct lab_frame *frames;
	uint32_t frames_high; /* none is used from here on */
	uint64_t delay_ns[LAB_PATHS_MAX];
	bool is_cut[LAB_PATHS_MAX];       /* nobody can connect */
	bool is_silent[LAB_PATHS_MAX][2]; /* what host h sends is lost, with no word of it */
	bool is_direct;
	bool is_unsure; /* frames may be refused with -EPROTO */
	uint64_t refused;
};

static inline void lab_pair_init(struct lab_pair *p, uint8_t path_count,
				 const struct mrc_limits *limits)
{
	memset(p, 0, sizeof(*p));
	lab_host_init(&p->hosts[0], "a", "b", LAB_BOOT_A, path_count, limits);
	lab_host_init(&p->hosts[1], "b", "a", LAB_BOOT_B, path_count, limits);
	p->hosts[1].index = 1;
	p->hosts[0].pair = p->hosts[1].pair = p;
	p->path_count = path_count;
	p->now_ns = MRC_S;
	p->frames = calloc(LAB_FRAMES_MAX, sizeof(*p->frames));
	assert_non_null(p->frames);
	for (uint8_t i = 0; i < path_count; i++)
		p->delay_ns[i] = LAB_DELAY_NS;
}

static inline void lab_pair_fini(struct lab_pair *p)
{
	lab_host_fini(&p->hosts[0]);
	lab_host_fini(&p->hosts[1]);
	free(p->frames);
}

static inline void lab_wire_put(struct lab_host *h, const struct mrc_act_post *post)
{
	struct lab_pair *p = h->pair;
	struct lab_frame *frame = p->frames;

	if (p->is_silent[post->index][h->index])
		return;
	while (frame->is_used) {
		if (++frame == p->frames + LAB_FRAMES_MAX)
			fail_msg("the lab's wire is full");
	}
	*frame = (struct lab_frame){
		.is_used = true,
		.to = !h->index,
		.path = post->index,
		.path_epoch = post->path_epoch,
		.at_ns = p->now_ns + p->delay_ns[post->index],
		.order = p->order_next++,
	};
	p->frames_high = MRC_MAX(p->frames_high, (uint32_t)(frame - p->frames) + 1);
	mrc_wire_encode(&post->hdr, lab_crc32c, frame->hdr);
	memcpy(frame->body, post->body, post->body_len);
}

/* What is under way on this path never arrives. */
static inline void lab_wire_drop(struct lab_pair *p, uint8_t path)
{
	for (uint32_t i = 0; i < p->frames_high; i++) {
		if (p->frames[i].path == path)
			p->frames[i].is_used = false;
	}
}

static inline void lab_connect(struct lab_pair *p, uint8_t path)
{
	struct mrc_hello hello[2];
	struct mrc_auth auth;

	if (p->is_cut[path] || p->is_silent[path][0] || p->is_silent[path][1] ||
	    !p->hosts[1].conn || p->hosts[1].conn->paths[path].is_denied) {
		assert_int_equal(lab_path(&p->hosts[0], MRC_EV_PATH_FAILED, path,
					  MRC_REASON_CONNECT),
				 0);
		return;
	}
	for (int i = 0; i < 2; i++)
		mrc_conn_hello(p->hosts[i].conn, path, &hello[i]);
	mrc_hello_conclude(&hello[0], &hello[1], &auth);
	if (mrc_conn_join(p->hosts[0].conn, path, &auth, hello[1].boot_id) ||
	    mrc_conn_join(p->hosts[1].conn, path, &auth, hello[0].boot_id)) {
		assert_int_equal(lab_path(&p->hosts[0], MRC_EV_PATH_FAILED, path,
					  MRC_REASON_CONNECT),
				 0);
		return;
	}
	lab_wire_drop(p, path);
	for (int i = 0; i < 2; i++)
		assert_int_equal(lab_path_up(&p->hosts[i], path, auth.conn_epoch, auth.path_epoch,
					     hello[!i].boot_id, p->is_direct),
				 0);
}

static inline void lab_perform(struct lab_host *h, const struct mrc_action *act)
{
	struct lab_pair *p = h->pair;

	switch (act->kind) {
	case MRC_ACT_POST:
		h->posted[act->post.index]++;
		if (p)
			lab_wire_put(h, &act->post);
		if (h->finishes) {
			struct mrc_event_in ev = {
				.kind = MRC_EV_SENT,
				.path = {.index = act->post.index,
					 .path_epoch = act->post.path_epoch,
					 .count = h->posted[act->post.index]},
			};

			assert_int_equal(lab_handle(h, &ev), 0);
		}
		break;
	case MRC_ACT_CONNECT:
		if (p)
			lab_connect(p, act->path.index);
		break;
	case MRC_ACT_FENCE:
		if (p)
			lab_wire_drop(p, act->path.index);
		if (h->fences)
			lab_path(h, MRC_EV_FENCED, act->path.index, MRC_REASON_NONE);
		/* The other end sees its socket closed, unless nothing gets through. */
		if (p && !p->is_silent[act->path.index][h->index] &&
		    p->hosts[!h->index].conn->paths[act->path.index].epoch == act->path.path_epoch)
			lab_path(&p->hosts[!h->index], MRC_EV_PATH_DOWN, act->path.index,
				 MRC_REASON_CLOSED);
		break;
	case MRC_ACT_CH_INCOMING:
		if (h->accepts)
			assert_int_equal(lab_accept(h, act->channel.id), 0);
		break;
	case MRC_ACT_CH_UP:
		for (uint8_t i = 0; p && p->is_direct && i < p->path_count; i++)
			assert_int_equal(lab_key(h, i, true, 100U + i, 0), 0);
		break;
	case MRC_ACT_HOLD_FREE:
		if (p)
			h->holds--;
		break;
	case MRC_ACT_LANDING_WANT:
		if (h->lands) {
			assert_int_equal(lab_msg(h, MRC_EV_LANDING, act->msg.channel,
						 act->msg.number, h->landing_next),
					 0);
			h->landing_next += act->msg.len;
		}
		break;
	case MRC_ACT_DELIVER:
		if (h->releases)
			assert_int_equal(lab_msg(h, MRC_EV_RELEASE, act->msg.channel,
						 act->msg.number, 0),
					 0);
		break;
	default:
		break;
	}
}

/* Take all actions there are now. */
static inline void lab_pump(struct lab_host *h)
{
	struct mrc_action act;
	uint32_t turns = 0;

	while (mrc_conn_next_action(h->conn, &act, h->now_ns)) {
		lab_host_log(h, &act);
		lab_perform(h, &act);
		if (++turns > 100000)
			fail_msg("the engine never runs out of actions");
	}
}

static inline void lab_pair_pump(struct lab_pair *p)
{
	uint32_t before;

	do {
		before = p->hosts[0].log_count + p->hosts[1].log_count;
		for (int i = 0; i < 2; i++) {
			p->hosts[i].now_ns = p->now_ns;
			lab_pump(&p->hosts[i]);
		}
	} while (p->hosts[0].log_count + p->hosts[1].log_count != before);
}

/* Hand one frame to an engine as a rail would: ask where each part goes, then tell. */
static inline int lab_arrive(struct lab_host *h, uint8_t path, uint32_t path_epoch,
			     const struct mrc_wire_hdr *hdr, const uint8_t *body)
{
	struct mrc_event_in ev = {
		.kind = MRC_EV_ARRIVED,
		.arrived = {.index = path,
			    .is_body_good = true,
			    .is_placed = true,
			    .path_epoch = path_epoch,
			    .hdr = hdr,
			    .body = body},
	};

	if (hdr->type == MRC_WIRE_FRAG && mrc_wire_has_body(hdr) && h->pair && h->pair->is_direct) {
		/* It came as a SEND: into daemon memory, while there is some. */
		if (h->holds < h->conn->limits.holds_max) {
			h->holds++;
			ev.arrived.hold = ++h->hold_next;
		}
		ev.arrived.is_placed = false;
	} else if (hdr->type == MRC_WIRE_FRAG && mrc_wire_has_body(hdr)) {
		uint32_t done = 0;

		while (done < hdr->body_len) {
			struct mrc_place place;
			uint32_t part = mrc_conn_place(h->conn, hdr, done, &place);

			assert_true(part > 0 && part <= hdr->body_len - done);
			ev.arrived.is_placed = ev.arrived.is_placed && !place.is_scratch;
			done += part;
		}
	}
	return lab_handle(h, &ev);
}

static inline void lab_frame_arrive(struct lab_pair *p, struct lab_frame *frame)
{
	struct lab_host *to = &p->hosts[frame->to];
	struct mrc_wire_hdr hdr;
	int r;

	frame->is_used = false;
	if (p->is_silent[frame->path][!frame->to])
		return;
	assert_int_equal(mrc_wire_decode(frame->hdr, lab_crc32c, &hdr), 0);
	r = lab_arrive(to, frame->path, frame->path_epoch, &hdr, frame->body);
	if (r == 0)
		return;
	if (!p->is_unsure)
		fail_msg("host %s answers %d to %s", frame->to ? "b" : "a", r,
			 mrc_wire_type_name(hdr.type));
	p->refused++;
	lab_path(to, MRC_EV_PATH_DOWN, frame->path, MRC_REASON_PROTOCOL);
}

static inline uint64_t lab_pair_next_ns(const struct lab_pair *p)
{
	uint64_t at_ns = MRC_MIN(mrc_conn_deadline_ns(p->hosts[0].conn),
				 mrc_conn_deadline_ns(p->hosts[1].conn));

	for (uint32_t i = 0; i < p->frames_high; i++) {
		if (p->frames[i].is_used)
			at_ns = MRC_MIN(at_ns, p->frames[i].at_ns);
	}
	return at_ns;
}

/* Time goes on by `span_ns`; all that falls due happens in order. */
static inline void lab_pair_run(struct lab_pair *p, uint64_t span_ns)
{
	uint64_t end_ns = p->now_ns + span_ns;

	lab_pair_pump(p);
	for (;;) {
		uint64_t at_ns = lab_pair_next_ns(p);
		struct lab_frame *first = NULL;

		if (at_ns > end_ns)
			break;
		p->now_ns = MRC_MAX(p->now_ns, at_ns);
		p->hosts[0].now_ns = p->hosts[1].now_ns = p->now_ns;
		for (uint32_t i = 0; i < p->frames_high; i++) {
			struct lab_frame *frame = &p->frames[i];

			if (frame->is_used && frame->at_ns <= p->now_ns &&
			    (!first || frame->order < first->order))
				first = frame;
		}
		if (first)
			lab_frame_arrive(p, first);
		for (int i = 0; i < 2; i++) {
			if (mrc_conn_deadline_ns(p->hosts[i].conn) <= p->now_ns) {
				lab_timer(&p->hosts[i]);
				/* A deadline that stays in the past is a busy loop. */
				if (mrc_conn_deadline_ns(p->hosts[i].conn) <= p->now_ns) {
					lab_pair_pump(p);
					lab_timer(&p->hosts[i]);
					assert_true(mrc_conn_deadline_ns(p->hosts[i].conn) >
						    p->now_ns);
				}
			}
		}
		lab_pair_pump(p);
	}
	p->now_ns = end_ns;
	p->hosts[0].now_ns = p->hosts[1].now_ns = end_ns;
}

/* Connected and every path GOOD. */
static inline void lab_pair_up(struct lab_pair *p, uint8_t path_count,
			       const struct mrc_limits *limits)
{
	lab_pair_init(p, path_count, limits);
	lab_timer(&p->hosts[0]);
	lab_pair_run(p, 20 * MRC_MS);
	for (int h = 0; h < 2; h++)
		assert_int_equal(lab_info(&p->hosts[h]).paths_good, path_count);
}

/* A channel from a to b, open at both ends: its ids. */
static inline void lab_pair_channel(struct lab_pair *p, bool is_unordered, uint32_t ids_out[2])
{
	uint32_t from = p->hosts[1].log_count;
	const struct mrc_action *up;

	ids_out[1] = 0;
	assert_int_equal(lab_open_at(&p->hosts[0], "svc", is_unordered, &ids_out[0]), 0);
	lab_pair_run(p, MRC_MS);
	up = lab_find(&p->hosts[1], MRC_ACT_CH_UP, from, 0);
	assert_non_null(up);
	ids_out[1] = up->channel.id;
	assert_non_null(lab_find(&p->hosts[0], MRC_ACT_CH_UP, 0, 0));
}

/* ---- an engine alone, its peer played by the test ---- */

#define LAB_EPOCH      5U
#define LAB_PATH_EPOCH 3U
#define LAB_SPACE      7U      /* the played peer's landing memory */
#define LAB_RING_ADDR  0x1000U /* and where in it the ring of its channel is */

/* Feed a frame on a path; conn and path epoch are filled in. */
static inline int lab_feed(struct lab_host *h, uint8_t path, struct mrc_wire_hdr hdr,
			   const uint8_t *body)
{
	hdr.conn_epoch = h->conn->epoch;
	hdr.path_epoch = h->conn->paths[path].epoch;
	return lab_arrive(h, path, hdr.path_epoch, &hdr, body);
}

/* How a fragment came: as it should unless it says otherwise. */
struct lab_came {
	bool is_bad;   /* its checksum was wrong */
	bool is_lost;  /* there was no place for it */
	uint64_t hold; /* it is in daemon memory */
};

/* Feed a fragment without asking for its place first. */
static inline int lab_feed_frag(struct lab_host *h, uint8_t path, struct mrc_wire_hdr hdr,
				struct lab_came came)
{
	struct mrc_event_in ev = {
		.kind = MRC_EV_ARRIVED,
		.arrived = {.index = path,
			    .is_body_good = !came.is_bad,
			    .is_placed = !came.is_lost && !came.hold,
			    .path_epoch = h->conn->paths[path].epoch,
			    .hdr = &hdr,
			    .hold = came.hold},
	};

	hdr.type = MRC_WIRE_FRAG;
	hdr.conn_epoch = h->conn->epoch;
	hdr.path_epoch = h->conn->paths[path].epoch;
	return lab_handle(h, &ev);
}

/* The peer's key for this path to its landing memory `space`. */
static inline int lab_feed_key(struct lab_host *h, uint8_t path, uint64_t space, bool is_valid,
			       uint32_t rkey, uint64_t base)
{
	return lab_feed(h, path,
			(struct mrc_wire_hdr){.type = MRC_WIRE_KEYS,
					      .msg = space,
					      .addr = base,
					      .arg = rkey | (uint64_t)is_valid << 32},
			NULL);
}

/* Acknowledge everything posted on every path, and every control frame. */
static inline void lab_ack_all(struct lab_host *h)
{
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_ACK};
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_cursor c = {.at = body, .end = body + sizeof(body), .ok = true};

	mrc_put_u64(&c, h->conn->ctl_sent);
	mrc_put_u8(&c, h->conn->path_count);
	for (uint8_t i = 0; i < h->conn->path_count; i++) {
		mrc_put_u16(&c, h->conn->paths[i].path_id);
		mrc_put_u32(&c, h->conn->paths[i].epoch);
		mrc_put_u64(&c, h->conn->paths[i].posted);
	}
	hdr.body_len = (uint32_t)(c.at - body);
	for (uint8_t i = 0; i < h->conn->path_count; i++) {
		const struct mrc_path *path = &h->conn->paths[i];

		if (path->is_connected) {
			/* It wants to hear of its own before its share is used up. */
			hdr.arg = path->share_given &&
				  path->taken - path->taken_told >= path->share_given / 2;
			assert_int_equal(lab_feed(h, i, hdr, body), 0);
			return;
		}
	}
}

/* Bring a path into service by answering its probes. */
static inline void lab_path_good(struct lab_host *h, uint8_t path, bool is_direct)
{
	uint32_t epoch = h->conn->paths[path].epoch + LAB_PATH_EPOCH;

	assert_int_equal(lab_path_up(h, path, LAB_EPOCH, epoch, LAB_BOOT_B, is_direct), 0);
	for (int i = 0; i < 8 && h->conn->paths[path].state != MRC_PATH_GOOD; i++) {
		lab_pump(h);
		h->now_ns += LAB_DELAY_NS;
		assert_int_equal(
			lab_feed(h, path,
				 (struct mrc_wire_hdr){.type = MRC_WIRE_PROBE_ACK,
						       .msg = h->conn->paths[path].probe_id},
				 NULL),
			0);
	}
	lab_pump(h);
	lab_ack_all(h);
	assert_int_equal(h->conn->paths[path].state, MRC_PATH_GOOD);
}

static inline void lab_solo_up(struct lab_host *h, uint8_t path_count, bool is_direct)
{
	lab_host_init(h, "a", "b", LAB_BOOT_A, path_count, NULL);
	for (uint8_t i = 0; i < path_count; i++)
		lab_path_good(h, i, is_direct);
}

/* The body of OPEN (service not NULL) or ACCEPT; its landing memory is `space`. */
static inline uint32_t lab_half_in(uint8_t *body, uint64_t ring_bytes, uint64_t msg_bytes_max,
				   uint32_t window, uint32_t space, uint64_t ring_addr,
				   const char *service)
{
	struct mrc_cursor c = {.at = body, .end = body + MRC_WIRE_CTL_BYTES_MAX, .ok = true};
	char name[MRC_NAME_MAX + 1] = {0};

	mrc_put_u64(&c, ring_bytes);
	mrc_put_u64(&c, msg_bytes_max);
	mrc_put_u32(&c, window);
	mrc_put_u32(&c, space);
	mrc_put_u64(&c, ring_addr);
	if (service) {
		snprintf(name, sizeof(name), "%s", service);
		mrc_put_bytes(&c, name, sizeof(name));
	}
	return (uint32_t)(c.at - body);
}

static inline uint32_t lab_half(uint8_t *body, uint64_t ring_bytes, uint64_t msg_bytes_max,
				uint32_t window, const char *service)
{
	return lab_half_in(body, ring_bytes, msg_bytes_max, window, LAB_SPACE, LAB_RING_ADDR,
			   service);
}

/* VOID of a message of the peer's, of which nothing was posted. */
static inline int lab_feed_void(struct lab_host *h, uint32_t wire_id, uint64_t number)
{
	const uint8_t nothing_posted = 0;

	return lab_feed(h, 0,
			(struct mrc_wire_hdr){.type = MRC_WIRE_VOID,
					      .channel = wire_id,
					      .msg = h->conn->ctl_taken,
					      .offset = number,
					      .body_len = sizeof(nothing_posted)},
			&nothing_posted);
}

/* A channel opened by our side and accepted by the played peer; its id. Its wire id is 0. */
static inline uint32_t lab_solo_channel(struct lab_host *h, bool is_unordered)
{
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_ACCEPT, .msg = h->conn->ctl_taken};
	uint32_t id;

	assert_int_equal(lab_open_at(h, "svc", is_unordered, &id), 0);
	lab_pump(h);
	hdr.channel = mrc_conn_channel(h->conn, id)->wire_id;
	hdr.body_len = lab_half(body, LAB_RING_BYTES, LAB_MSG_MAX, LAB_WINDOW, NULL);
	assert_int_equal(lab_feed(h, 0, hdr, body), 0);
	lab_pump(h);
	lab_ack_all(h);
	assert_int_equal(mrc_conn_channel(h->conn, id)->state, MRC_CH_OPEN);
	return id;
}

/* STATE's six numbers. */
struct lab_state {
	uint64_t delivered, visible, final, settled, ring_limit, msg_limit;
};

static inline uint32_t lab_state_body(uint8_t *body, const struct lab_state *s)
{
	struct mrc_cursor c = {.at = body, .end = body + MRC_WIRE_CTL_BYTES_MAX, .ok = true};

	mrc_put_u64(&c, s->delivered);
	mrc_put_u64(&c, s->visible);
	mrc_put_u64(&c, s->final);
	mrc_put_u64(&c, s->settled);
	mrc_put_u64(&c, s->ring_limit);
	mrc_put_u64(&c, s->msg_limit);
	return (uint32_t)(c.at - body);
}

static inline int lab_feed_state(struct lab_host *h, uint8_t path, uint32_t wire_id,
				 const struct lab_state *s)
{
	uint8_t body[MRC_WIRE_CTL_BYTES_MAX];
	struct mrc_wire_hdr hdr = {.type = MRC_WIRE_STATE, .channel = wire_id};

	hdr.body_len = lab_state_body(body, s);
	return lab_feed(h, path, hdr, body);
}

#endif
