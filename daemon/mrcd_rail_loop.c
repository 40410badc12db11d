/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rail between this host's own clients: two ends in one process
 *
 * Frames are handed over in a later callback of the loop, never inside the
 * sender's pump, and payload is copied once, from the sending client's memory
 * to the receiving client's. Nothing is checksummed: it never leaves memory
 * that is trusted already, so a checksum would guard the copy against itself.
 */
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "mrcd_auth.h"
#include "mrcd_outq.h"
#include "mrcd_rail.h"
#include "mrcd_worker.h"

/* Of one callback, so that clients of this host do not starve the rails. */
#define FRAMES_PER_TURN 64
#define BYTES_PER_TURN  (1024U * 1024U)

struct mrcd_loop;

/* One end. */
struct mrcd_loop_link {
	struct mrcd_link link; /* first */
	struct mrcd_loop *loop;
	struct mrcd_loop_link *other; /* NULL: it has gone */
	LIST_ENTRY(mrcd_loop_link) entry;
	bool is_closed;
	struct event event; /* something to do: hand frames over, or mourn the other end */
	struct mrcd_outq outq;
	uint64_t sent_count;
};

/* The kind's part of the rail. Lives until the rail is closed and its last link is gone. */
struct mrcd_loop {
	struct mrcd_rail *rail; /* the worker's */
	bool is_closed;
	struct mrcd_peer *caller; /* an attempt is under way for it; NULL: none */
	struct event connect_event;
	struct event reap_event;
	LIST_HEAD(, mrcd_loop_link) links;
	LIST_HEAD(, mrcd_loop_link) dead;
};

static struct mrcd_loop_link *link_of(struct mrcd_link *link)
{
	return (struct mrcd_loop_link *)link;
}

/* ---- life of a link ---- */

static void on_event(evutil_socket_t fd, short what, void *context);
static const struct mrcd_link_ops link_ops;

static struct mrcd_loop_link *link_new(struct mrcd_loop *loop, struct mrcd_peer *peer,
				       const struct mrc_auth *auth)
{
	struct mrcd_worker *worker = loop->rail->worker;
	struct mrcd_loop_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	if (mrcd_outq_init(&link->outq, mrcd_outq_frames_max(&worker->conf->limits)) < 0) {
		free(link);
		return NULL;
	}
	link->link = (struct mrcd_link){
		.ops = &link_ops,
		.rail = loop->rail,
		.peer = peer,
		.conn_epoch = auth->conn_epoch,
		.path_epoch = auth->path_epoch,
	};
	link->loop = loop;
	event_assign(&link->event, worker->base, -1, 0, on_event, link);
	LIST_INSERT_HEAD(&loop->links, link, entry);
	return link;
}

static void loop_reap(struct mrcd_loop *loop)
{
	struct mrcd_loop_link *link;

	while ((link = LIST_FIRST(&loop->dead)) != NULL) {
		LIST_REMOVE(link, entry);
		mrcd_outq_fini(&link->outq);
		free(link);
	}
	if (loop->is_closed && LIST_EMPTY(&loop->links))
		free(loop);
}

static void link_close(struct mrcd_loop_link *link)
{
	struct mrcd_loop *loop = link->loop;

	if (link->is_closed)
		return;
	link->is_closed = true;
	event_del(&link->event);
	if (link->other) {
		link->other->other = NULL;
		if (!loop->is_closed)
			event_active(&link->other->event, EV_TIMEOUT, 0);
		link->other = NULL;
	}
	LIST_REMOVE(link, entry);
	LIST_INSERT_HEAD(&loop->dead, link, entry);
	if (!loop->is_closed)
		event_active(&loop->reap_event, EV_TIMEOUT, 0);
}

static void link_down(struct mrcd_loop_link *link, enum mrc_path_reason reason, const char *why)
{
	struct mrcd_loop *loop = link->loop;

	link_close(link);
	mrcd_link_on_down(&link->link, reason, why);
	if (loop->is_closed)
		loop_reap(loop);
}

/* ---- handing over ---- */

/* Copy a payload to where the receiver wants it; false when some of it is not wanted. */
static bool payload_copy(struct mrcd_loop_link *to, const struct mrc_wire_hdr *hdr,
			 const uint8_t *payload)
{
	struct mrc_conn *conn = mrcd_peer_conn(to->link.peer);
	bool is_all_placed = true;
	uint32_t done = 0;

	MRC_ASSERT(payload || !hdr->body_len); /* a frame that was stripped is no fragment */
	while (done < hdr->body_len) {
		struct mrc_place place;
		uint32_t len = mrc_conn_place(conn, hdr, done, &place);
		uint8_t *memory = NULL;

		MRC_ASSERT(len > 0);
		len = MRC_MIN(len, hdr->body_len - done);
		if (!place.is_scratch)
			memory = mrcd_landing_memory(to->loop->rail->worker, &place, len);
		if (memory)
			memcpy(memory, payload + done, len);
		else
			is_all_placed = false;
		done += len;
	}
	return is_all_placed;
}

/* Hand the first frame over. Answers as mrcd_link_on_frame(). */
static int frame_hand_over(struct mrcd_loop_link *from)
{
	struct mrcd_rail *rail = from->loop->rail;
	struct mrcd_frame *frame = from->outq.first;
	const uint8_t *payload = NULL;
	bool is_placed = false;

	if (frame->payload_len) {
		payload = mrcd_send_memory(rail->worker, frame->channel_cookie, frame->payload_addr,
					   frame->payload_len);
		if (!payload)
			mrcd_frame_strip(frame); /* its client is gone */
	}
	if (frame->hdr.type == MRC_WIRE_FRAG)
		is_placed = payload_copy(from->other, &frame->hdr, payload);
	rail->frames_sent++;
	rail->frames_received++;
	rail->bytes_sent += frame->payload_len;
	rail->bytes_received += frame->payload_len;
	from->sent_count++;
	/* A probe's padding is not looked at by anybody, only its length. */
	return mrcd_link_on_frame(&from->other->link, &frame->hdr, frame->body, true, is_placed, 0);
}

static void on_event(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_loop_link *from = context, *to = from->other;
	struct mrcd_peer *sender = from->link.peer, *receiver;
	uint64_t bytes = 0;

	mrcd_worker_now(from->loop->rail->worker);
	if (!to) {
		link_down(from, MRC_REASON_CLOSED, "the other end is gone");
		return;
	}
	receiver = to->link.peer;
	for (int i = 0; i < FRAMES_PER_TURN && bytes < BYTES_PER_TURN && from->outq.count; i++) {
		bytes += from->outq.first->payload_len;
		if (frame_hand_over(from) == -EPROTO) {
			link_down(to, MRC_REASON_PROTOCOL, "the other end broke the protocol");
			return;
		}
		mrcd_outq_pop(&from->outq);
	}
	mrcd_link_on_sent(&from->link, from->sent_count);
	if (from->outq.count)
		event_active(&from->event, EV_TIMEOUT, 0);
	/* From here on either link may be closed. */
	mrcd_peer_pump(receiver);
	mrcd_peer_pump(sender);
}

static void loop_post(struct mrcd_link *link, const struct mrc_act_post *post)
{
	mrcd_outq_push(&link_of(link)->outq, post);
}

static void loop_flush(struct mrcd_link *base)
{
	struct mrcd_loop_link *link = link_of(base);

	if (link->outq.count && !link->is_closed)
		event_active(&link->event, EV_TIMEOUT, 0);
}

static void loop_strip(struct mrcd_link *link)
{
	mrcd_outq_strip(&link_of(link)->outq);
}

static void loop_fence(struct mrcd_link *base)
{
	struct mrcd_loop_link *link = link_of(base);
	struct mrcd_loop *loop = link->loop;

	if (link->is_closed)
		return;
	link_close(link);
	mrcd_link_on_fenced(base);
	if (loop->is_closed)
		loop_reap(loop);
}

static const struct mrcd_link_ops link_ops = {
	.kind = "loop",
	.post = loop_post,
	.flush = loop_flush,
	.strip = loop_strip,
	.fence = loop_fence,
};

/* ---- joining ---- */

static void hello_make(struct mrcd_peer *peer, struct mrc_hello *hello)
{
	mrc_conn_hello(mrcd_peer_conn(peer), 0, hello);
	mrcd_auth_random(hello->nonce, sizeof(hello->nonce));
}

/* Both ends are ours, so they need no proof of each other: only the same conclusion. */
static void on_connect(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_loop *loop = context;
	struct mrcd_worker *worker = loop->rail->worker;
	struct mrcd_peer *i = loop->caller;
	struct mrcd_peer *r = worker->loop_ends[i == worker->loop_ends[0]];
	struct mrcd_loop_link *link_i, *link_r;
	struct mrc_hello hello_i, hello_r;
	struct mrc_auth auth;

	mrcd_worker_now(worker);
	loop->caller = NULL;
	hello_make(i, &hello_i);
	hello_make(r, &hello_r);
	mrc_hello_conclude(&hello_i, &hello_r, &auth);

	link_i = link_new(loop, i, &auth);
	link_r = link_new(loop, r, &auth);
	if (!link_i || !link_r) {
		if (link_i)
			link_close(link_i);
		if (link_r)
			link_close(link_r);
		mrcd_peer_on_connect_failed(i, 0, strerror(ENOMEM));
		return;
	}
	link_i->other = link_r;
	link_r->other = link_i;
	if (mrcd_link_on_up(&link_i->link, &auth, hello_i.path_id, hello_r.boot_id, false) < 0) {
		link_i->other = link_r->other = NULL;
		link_close(link_r);
		link_close(link_i);
		mrcd_peer_on_connect_failed(i, 0, "epochs have moved on");
		return;
	}
	/* The initiator's end then hears that this one has gone, and tries again. */
	if (mrcd_link_on_up(&link_r->link, &auth, hello_i.path_id, hello_i.boot_id, false) < 0)
		link_close(link_r);
}

static void loop_connect(struct mrcd_rail *rail, struct mrcd_peer *peer, uint8_t path_index)
{
	struct mrcd_loop *loop = rail->kind_data;

	MRC_ASSERT(path_index == 0);
	if (loop->caller)
		return;
	loop->caller = peer;
	event_active(&loop->connect_event, EV_TIMEOUT, 0);
}

/* ---- the rail ---- */

static void on_reap(evutil_socket_t fd, short what, void *context)
{
	loop_reap(context);
}

static int loop_open(struct mrcd_rail *rail)
{
	struct mrcd_loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->rail = rail;
	LIST_INIT(&loop->links);
	LIST_INIT(&loop->dead);
	event_assign(&loop->connect_event, rail->worker->base, -1, 0, on_connect, loop);
	event_assign(&loop->reap_event, rail->worker->base, -1, 0, on_reap, loop);
	rail->kind_data = loop;
	rail->is_carrier_up = true;
	return 0;
}

static void loop_close(struct mrcd_rail *rail)
{
	struct mrcd_loop *loop = rail->kind_data;

	if (!loop)
		return;
	event_del(&loop->connect_event);
	event_del(&loop->reap_event);
	rail->kind_data = NULL;
	loop->is_closed = true;
	loop_reap(loop);
}

static bool loop_has_carrier(struct mrcd_rail *rail)
{
	return true;
}

const struct mrcd_rail_ops mrcd_rail_loop_ops = {
	.kind = "loop",
	.open = loop_open,
	.close = loop_close,
	.connect = loop_connect,
	.has_carrier = loop_has_carrier,
};
