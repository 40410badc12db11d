/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mrcd_timeval.h"

#define LAST_MISSES_MAX 4U
#define PAGE            ((size_t)4096)
#define STUCK_NS_MIN    (10 * MRC_MS)
#define STUCK_NS_MAX    MRC_S
#define STUCK_TRIES_MAX 100U /* of a rail that closes: a second */

static void fence_continue(struct mrcd_verbs_link *link);
static void reset(struct mrcd_verbs_link *link);
static void reset_submit(struct mrcd_verbs_link *link);

static struct mrcd_verbs_link *link_of_job(struct mrcd_job *job)
{
	return (struct mrcd_verbs_link *)(void *)((char *)job -
						  offsetof(struct mrcd_verbs_link, job));
}

bool mrcd_verbs_link_is_attempt(const struct mrcd_verbs_link *link)
{
	return link->state < MRCD_VERBS_LINK_UP && !link->is_cancelled;
}

/* ---- by number ---- */

struct mrcd_verbs_link *mrcd_verbs_link_by_number(const struct mrcd_verbs *verbs, uint32_t number)
{
	struct mrcd_verbs_link *link;

	LIST_FOREACH(link, &verbs->by_number[number & (MRCD_VERBS_QPN_BUCKETS - 1)], number_entry)
	{
		if (link->number == number)
			return link;
	}
	return NULL;
}

static void number_set(struct mrcd_verbs_link *link)
{
	LIST_INSERT_HEAD(&link->verbs->by_number[link->number & (MRCD_VERBS_QPN_BUCKETS - 1)], link,
			 number_entry);
	link->is_numbered = true;
}

/* ---- life ---- */

static void job_submit(struct mrcd_verbs_link *link, enum mrcd_verbs_link_state state,
		       void (*run)(struct mrcd_job *), void (*done)(struct mrcd_job *),
		       bool is_slow)
{
	link->state = state;
	link->job = (struct mrcd_job){.run = run, .done = done, .is_slow = is_slow};
	mrcd_offload_submit(link->verbs->rail->worker->offload, &link->lane, &link->job);
}

static void fd_close(struct mrcd_verbs_link *link)
{
	if (link->fd < 0)
		return;
	event_del(&link->fd_event);
	if (!link->verbs->rail->is_carrier_up || link->is_drilled)
		mrcd_tcp_hush(link->fd);
	mrcd_tcp_abort(link->fd);
	link->fd = -1;
}

/* All of it has been undone. */
static void link_free(struct mrcd_verbs_link *link)
{
	struct mrcd_verbs_device *device = link->device;

	fd_close(link);
	event_del(&link->timer);
	event_del(&link->down_event);
	mrcd_verbs_early_drop(link);
	if (link->is_numbered)
		LIST_REMOVE(link, number_entry);
	if (link->is_busy)
		LIST_REMOVE(link, busy_entry);
	if (link->is_touched)
		LIST_REMOVE(link, touched_entry);
	LIST_REMOVE(link, entry);
	link->verbs->link_count--;
	if (link->cancel_fd >= 0)
		close(link->cancel_fd);
	mrcd_outq_fini(&link->outq);
	free(link->slot_memory);
	free(link->slots);
	free(link);
	mrcd_verbs_device_put(device);
}

static void on_fd(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_verbs_link *link = context;
	uint8_t byte;
	ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	mrcd_worker_now(link->verbs->rail->worker);
	/* Nothing is ever said here, so one byte ends it as well. */
	mrcd_verbs_link_down(link, MRC_REASON_CLOSED, "closed by the other end");
}

static void on_down(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_verbs_link *link = context;

	mrcd_worker_now(link->verbs->rail->worker);
	mrcd_verbs_link_down(link, MRC_REASON_ERROR, link->why);
}

static void on_timer(evutil_socket_t fd, short what, void *context);

static struct mrcd_verbs_link *link_new(struct mrcd_verbs *verbs, int fd,
					const struct mrcd_handshake *hs)
{
	struct event_base *base = verbs->rail->worker->base;
	struct mrcd_verbs_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	/* Pages of its own, whole ones: what is registered is pinned. */
	link->slot_memory =
		aligned_alloc(PAGE, ((size_t)MRCD_VERBS_SLOTS * MRCD_VERBS_SLOT_BYTES + PAGE - 1) &
					    ~(PAGE - 1));
	link->slots = calloc(MRCD_VERBS_SLOTS, sizeof(*link->slots));
	link->cancel_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!link->slot_memory || !link->slots || link->cancel_fd < 0 ||
	    mrcd_outq_init(&link->outq, mrcd_outq_frames_max(&verbs->rail->worker->conf->limits)) <
		    0) {
		if (link->cancel_fd >= 0)
			close(link->cancel_fd);
		free(link->slot_memory);
		free(link->slots);
		free(link);
		return NULL;
	}
	link->link = (struct mrcd_link){
		.ops = &mrcd_verbs_link_ops,
		.rail = verbs->rail,
		.peer = hs->peer,
		.path_index = hs->path_index,
		.conn_epoch = hs->auth.conn_epoch,
		.path_epoch = hs->auth.path_epoch,
		.receive_share = mrcd_peer_path_is_guest(hs->peer, hs->path_index)
					 ? MRCD_VERBS_SHARE_MIN
					 : verbs->device->share,
		.receive_bytes = verbs->device->entry_body_bytes,
	};
	link->verbs = verbs;
	link->device = verbs->device;
	link->device->use_count++;
	memcpy(link->link.key_id, hs->key_id, sizeof(link->link.key_id));
	link->auth = hs->auth;
	link->path_id = hs->ours.path_id;
	link->peer_boot_id = hs->theirs.boot_id;
	link->is_initiator = hs->is_initiator;
	memcpy(link->token, hs->device_token, sizeof(link->token));
	link->fd = fd;
	link->early_first = link->early_last = MRCD_VERBS_ENTRY_NONE;
	mrcd_lane_init(&link->lane);
	event_assign(&link->fd_event, base, fd, EV_READ | EV_PERSIST, on_fd, link);
	event_assign(&link->timer, base, -1, 0, on_timer, link);
	event_assign(&link->down_event, base, -1, 0, on_down, link);
	LIST_INSERT_HEAD(&verbs->links, link, entry);
	verbs->link_count++;
	return link;
}

static void destroy(struct mrcd_verbs_link *link);

/*
 * The device did not let go of its queue pair, which may still read and write.
 * Nobody is told that it is fenced: it is asked again, for as long as the rail
 * is open. False: the rail closes and has asked often enough.
 */
static bool stuck_again(struct mrcd_verbs_link *link, enum mrcd_verbs_link_state state,
			void (*again)(struct mrcd_verbs_link *link))
{
	uint64_t span_ns = STUCK_NS_MIN << MRC_MIN(link->stuck_count, 8U);
	const struct timeval span = mrcd_timeval_of(MRC_MIN(span_ns, STUCK_NS_MAX));

	if (link->stuck_count++ == 0)
		mrcd_verbs_error(link->verbs,
				 "queue pair %u can be neither reset nor destroyed: %s; "
				 "its path waits for that",
				 link->number, strerror(-link->stuck_error));
	if (!link->verbs->is_closing) {
		link->state = state;
		event_add(&link->timer, &span);
		return true;
	}
	if (link->stuck_count >= STUCK_TRIES_MAX) {
		mrcd_err("rail %s: queue pair %u is left to the end of the process",
			 link->link.rail->conf->name, link->number);
		mrcd_verbs_send_abandon(link);
		link->id->qp = NULL;
		link->qp = NULL;
		return false;
	}
	link->stuck_ns = STUCK_NS_MIN;
	again(link);
	return true;
}

static void destroyed(struct mrcd_job *job)
{
	struct mrcd_verbs_link *link = link_of_job(job);

	mrcd_worker_now(link->verbs->rail->worker);
	if (!link->stuck_error)
		link_free(link);
	else if (!stuck_again(link, MRCD_VERBS_LINK_QUARANTINE, destroy))
		destroy(link); /* the rest of it */
}

/*
 * The kernel says goodbye for an identifier that goes. Said on an interface that
 * is down, it ends soft-RoCE's connection manager for good (its queue pair 1
 * goes to ERR and stays there). What is fenced does no harm: it waits.
 */
static void destroy_soon(struct mrcd_verbs_link *link)
{
	const struct timeval again = mrcd_timeval_of(MRCD_VERBS_QUARANTINE_NS);
	struct mrcd_rail *rail = link->verbs->rail;

	if (!link->id || link->verbs->is_closing || link->device->is_lost ||
	    rail->ops->has_carrier(rail)) {
		destroy(link);
		return;
	}
	link->state = MRCD_VERBS_LINK_QUARANTINE;
	event_add(&link->timer, &again);
}

static void destroy(struct mrcd_verbs_link *link)
{
	link->stuck_error = 0;
	if (link->is_channel_watched)
		event_del(&link->channel_event);
	link->is_channel_watched = false;
	event_del(&link->timer);
	job_submit(link, MRCD_VERBS_LINK_DESTROYING, mrcd_verbs_destroy_run, destroyed, false);
}

/* ---- connecting ---- */

/* Our own attempt ends; the initiator's engine is told. */
static void attempt_fail(struct mrcd_verbs_link *link)
{
	struct mrcd_peer *peer = link->is_initiator && !link->is_cancelled ? link->link.peer : NULL;
	uint8_t path_index = link->link.path_index;
	char why[MRCD_VERBS_REASON_BYTES];

	snprintf(why, sizeof(why), "%s", link->is_doomed ? link->doom : link->why);
	if (!link->is_cancelled && !link->is_initiator)
		mrcd_debug("rail %s: a queue pair of %s did not come up: %s",
			   link->link.rail->conf->name, mrcd_peer_name(link->link.peer), why);
	link->is_cancelled = true;
	fd_close(link);
	fence_continue(link);
	if (peer)
		mrcd_peer_on_connect_failed(peer, path_index, why);
}

static void on_channel(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_verbs_link *link = context;
	struct rdma_cm_event *event;
	bool is_over = false;

	while (rdma_get_cm_event(link->channel, &event) == 0) {
		is_over = is_over || event->event == RDMA_CM_EVENT_DISCONNECTED ||
			  event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
		rdma_ack_cm_event(event);
	}
	if (!is_over)
		return;
	mrcd_worker_now(link->verbs->rail->worker);
	mrcd_verbs_link_down(link, MRC_REASON_CLOSED, "disconnected");
}

static void join(struct mrcd_verbs_link *link)
{
	int r;

	link->state = MRCD_VERBS_LINK_UP;
	r = mrcd_link_on_up(&link->link, &link->auth, link->path_id, link->peer_boot_id, true);
	if (r < 0) {
		link->state = MRCD_VERBS_LINK_WAITING;
		if (r == -EBUSY) {
			const struct timeval timeout = mrcd_timeval_of(
				link->verbs->rail->worker->conf->handshake_timeout_ns);

			event_add(&link->timer, &timeout);
			return;
		}
		snprintf(link->why, sizeof(link->why), "epochs have moved on");
		attempt_fail(link);
		return;
	}
	event_del(&link->timer);
	/* Not all that changes makes an event: an MTU, for one. */
	mrcd_verbs_device_refresh(link->device);
	mrcd_verbs_recv_early(link);
	mrcd_verbs_poll_soon(link->verbs);
}

/* This one's fence holds: who waits for it goes on. */
static void join_waiting(struct mrcd_verbs *verbs, const struct mrcd_peer *peer, uint8_t path_index)
{
	struct mrcd_verbs_link *link, *next;

	for (link = LIST_FIRST(&verbs->links); link; link = next) {
		next = LIST_NEXT(link, entry);
		if (link->state == MRCD_VERBS_LINK_WAITING && !link->is_cancelled &&
		    link->link.peer == peer && link->link.path_index == path_index)
			join(link);
	}
}

static void connected(struct mrcd_job *job)
{
	struct mrcd_verbs_link *link = link_of_job(job);
	struct mrcd_verbs *verbs = link->verbs;

	mrcd_worker_now(verbs->rail->worker);
	if (link->error || link->is_cancelled || link->is_doomed) {
		attempt_fail(link);
		return;
	}
	event_assign(&link->channel_event, verbs->rail->worker->base, link->channel->fd,
		     EV_READ | EV_PERSIST, on_channel, link);
	event_add(&link->channel_event, NULL);
	link->is_channel_watched = true;
	join(link);
}

static void prepared(struct mrcd_job *job)
{
	struct mrcd_verbs_link *link = link_of_job(job);

	mrcd_worker_now(link->verbs->rail->worker);
	if (link->qp)
		number_set(link);
	if (link->error || link->is_cancelled || link->is_doomed) {
		attempt_fail(link);
		return;
	}
	job_submit(link, MRCD_VERBS_LINK_CONNECTING, mrcd_verbs_connect_run, connected, true);
}

/* A peer has one attempt for each path: the newest. */
static void awaiting_drop(const struct mrcd_verbs_link *newest)
{
	struct mrcd_verbs_link *link, *next;

	for (link = LIST_FIRST(&newest->verbs->links); link; link = next) {
		next = LIST_NEXT(link, entry);
		if (link != newest && link->link.peer == newest->link.peer &&
		    link->link.path_index == newest->link.path_index &&
		    (link->state == MRCD_VERBS_LINK_AWAITING ||
		     link->state == MRCD_VERBS_LINK_WAITING))
			mrcd_verbs_link_drop(link);
	}
}

void mrcd_verbs_link_start(struct mrcd_verbs *verbs, int fd, const struct mrcd_handshake *hs,
			   const struct sockaddr_storage *address, socklen_t address_len)
{
	uint64_t timeout_ns = verbs->rail->worker->conf->handshake_timeout_ns;
	struct timeval timeout = mrcd_timeval_of(timeout_ns);
	struct mrcd_verbs_link *link = verbs->device ? link_new(verbs, fd, hs) : NULL;

	if (!link) {
		mrcd_tcp_abort(fd);
		if (hs->is_initiator)
			mrcd_peer_on_connect_failed(hs->peer, hs->path_index,
						    verbs->device ? strerror(ENOMEM)
								  : "the device has gone");
		return;
	}
	link->address = *address;
	link->address_len = address_len;
	link->deadline_ns = verbs->rail->worker->now_ns + timeout_ns;
	event_add(&link->fd_event, NULL);
	if (!link->is_initiator) {
		awaiting_drop(link);
		link->state = MRCD_VERBS_LINK_AWAITING;
		event_add(&link->timer, &timeout);
		return;
	}
	if (address->ss_family == AF_INET)
		((struct sockaddr_in *)&link->address)->sin_port = htons(hs->device_port);
	else
		((struct sockaddr_in6 *)&link->address)->sin6_port = htons(hs->device_port);
	job_submit(link, MRCD_VERBS_LINK_PREPARING, mrcd_verbs_prepare_run, prepared, true);
}

void mrcd_verbs_link_requested(struct mrcd_verbs_link *link, struct rdma_cm_id *id)
{
	event_del(&link->timer);
	link->id = id;
	job_submit(link, MRCD_VERBS_LINK_PREPARING, mrcd_verbs_prepare_run, prepared, true);
}

/* ---- the end ---- */

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_verbs_link *link = context;

	mrcd_worker_now(link->verbs->rail->worker);
	if (link->state == MRCD_VERBS_LINK_AWAITING) {
		mrcd_verbs_link_drop(link);
	} else if (link->state == MRCD_VERBS_LINK_WAITING) {
		mrcd_verbs_link_down(link, MRC_REASON_CONNECT,
				     "the older link is still being fenced");
	} else if (link->state == MRCD_VERBS_LINK_QUARANTINE) {
		destroy_soon(link);
	} else if (link->state == MRCD_VERBS_LINK_STUCK) {
		reset_submit(link);
	} else if (link->state == MRCD_VERBS_LINK_LAST) {
		link->verbs->last_misses++;
		reset(link);
	}
}

/* RESET has returned, or the queue pair is gone: nothing of it can land or be read any more. */
static void reset_done(struct mrcd_job *job)
{
	struct mrcd_verbs_link *link = link_of_job(job);
	const struct timeval quarantine = mrcd_timeval_of(MRCD_VERBS_QUARANTINE_NS);
	bool was_failed = link->is_failed, is_fence_asked = link->is_fence_asked;
	struct mrcd_verbs *verbs = link->verbs;
	struct mrcd_peer *peer = link->link.peer;
	uint8_t path_index = link->link.path_index;

	mrcd_worker_now(verbs->rail->worker);
	if (link->stuck_error) {
		if (!stuck_again(link, MRCD_VERBS_LINK_STUCK, reset_submit))
			destroy(link);
		return;
	}
	mrcd_verbs_send_abandon(link);
	mrcd_verbs_early_drop(link);
	link->verbs->counters.fences++;
	link->state = MRCD_VERBS_LINK_QUARANTINE;
	/* Of one that was not established nobody has heard; and a closing rail has no time. */
	if (link->qp && link->was_established && !verbs->is_closing && !link->device->is_lost)
		event_add(&link->timer, &quarantine);
	else
		destroy_soon(link);
	if (is_fence_asked)
		mrcd_link_on_fenced(&link->link);
	else if (was_failed)
		mrcd_link_on_down(&link->link, link->reason, link->why);
	if (is_fence_asked || was_failed)
		join_waiting(verbs, peer, path_index);
}

static void reset_submit(struct mrcd_verbs_link *link)
{
	event_del(&link->timer);
	job_submit(link, MRCD_VERBS_LINK_RESETTING, mrcd_verbs_reset_run, reset_done, false);
}

/*
 * What was received before ERR is the engine's, and its entry is ours: RESET takes
 * both off the queues without a word (InfiniBand specification, 10.3.1).
 */
static void reset(struct mrcd_verbs_link *link)
{
	mrcd_verbs_poll_dry(link->verbs);
	reset_submit(link);
}

void mrcd_verbs_link_last(struct mrcd_verbs_link *link)
{
	link->verbs->has_last_event = true;
	link->is_last_seen = true;
	if (link->state == MRCD_VERBS_LINK_LAST)
		reset(link);
}

void mrcd_verbs_link_hurry(struct mrcd_verbs_link *link)
{
	if (link->state == MRCD_VERBS_LINK_QUARANTINE)
		destroy(link);
	else if (link->state == MRCD_VERBS_LINK_LAST)
		reset(link);
	else if (link->state == MRCD_VERBS_LINK_STUCK)
		reset_submit(link);
}

static void stop_done(struct mrcd_job *job)
{
	struct mrcd_verbs_link *link = link_of_job(job);

	struct mrcd_verbs_device *device = link->device;
	const struct timeval last = mrcd_timeval_of(MRCD_VERBS_LAST_NS);

	mrcd_worker_now(link->verbs->rail->worker);
	/* RESET leads there from every state. But until then it receives, and there is no last entry. */
	if (link->stop_error && !device->is_lost)
		mrcd_verbs_error(link->verbs, "queue pair %u does not stop: %s", link->number,
				 strerror(-link->stop_error));
	/* Some devices never say it (the soft ones): they are found out. */
	if (link->qp && !link->stop_error && !link->is_last_seen && !device->is_lost &&
	    !link->verbs->is_closing &&
	    (link->verbs->has_last_event || link->verbs->last_misses < LAST_MISSES_MAX)) {
		link->state = MRCD_VERBS_LINK_LAST;
		event_add(&link->timer, &last);
		return;
	}
	reset(link);
}

static void fence_continue(struct mrcd_verbs_link *link)
{
	event_del(&link->timer);
	fd_close(link);
	job_submit(link, MRCD_VERBS_LINK_STOPPING, mrcd_verbs_stop_run, stop_done, false);
}

void mrcd_verbs_link_down(struct mrcd_verbs_link *link, enum mrc_path_reason reason,
			  const char *why)
{
	if (link->state < MRCD_VERBS_LINK_UP) {
		/* The job finds it in its own time; then the attempt fails. */
		if (link->state == MRCD_VERBS_LINK_AWAITING) {
			mrcd_verbs_link_drop(link);
			return;
		}
		if (link->state == MRCD_VERBS_LINK_WAITING) {
			snprintf(link->why, sizeof(link->why), "%s", why);
			attempt_fail(link);
			return;
		}
		/* The job has `why`; its done() half looks here. */
		if (!link->is_doomed)
			snprintf(link->doom, sizeof(link->doom), "%s", why);
		link->is_doomed = true;
		fd_close(link);
		eventfd_write(link->cancel_fd, 1);
		return;
	}
	if (link->state != MRCD_VERBS_LINK_UP)
		return;
	link->is_failed = true;
	link->reason = reason;
	if (why != link->why)
		snprintf(link->why, sizeof(link->why), "%s", why);
	fence_continue(link);
}

static void link_fence(struct mrcd_link *base)
{
	struct mrcd_verbs_link *link = mrcd_verbs_link_of(base);

	MRC_ASSERT(link->state >= MRCD_VERBS_LINK_UP);
	link->is_fence_asked = true;
	if (link->state == MRCD_VERBS_LINK_UP)
		fence_continue(link);
}

void mrcd_verbs_link_drop(struct mrcd_verbs_link *link)
{
	if (link->is_cancelled)
		return;
	link->is_cancelled = true;
	if (link->state == MRCD_VERBS_LINK_AWAITING || link->state == MRCD_VERBS_LINK_WAITING) {
		fence_continue(link);
		return;
	}
	fd_close(link);
	eventfd_write(link->cancel_fd, 1);
}

const struct mrcd_link_ops mrcd_verbs_link_ops = {
	.kind = "verbs",
	.post = mrcd_verbs_post,
	.flush = mrcd_verbs_flush,
	.strip = mrcd_verbs_strip,
	.fence = link_fence,
	.describe = mrcd_verbs_link_describe,
};
