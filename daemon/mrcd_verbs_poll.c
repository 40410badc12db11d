/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When to look for completions. While there is work, every turn of the loop
 * looks; after spin-ns without any, the queues are armed and looked at once
 * more (what came before they were armed makes no event), and then the rail
 * sleeps until the completion channel wakes it.
 */
#include "mrcd_verbs.h"

#define RECEIVES_PER_TURN 128U
#define SENDS_PER_TURN    64U /* of one link */
#define SPINS_BETWEEN     16U

void mrcd_verbs_link_set_busy(struct mrcd_verbs_link *link)
{
	if (link->is_busy)
		return;
	link->is_busy = true;
	LIST_INSERT_HEAD(&link->verbs->busy, link, busy_entry);
}

void mrcd_verbs_link_touch(struct mrcd_verbs_link *link)
{
	if (link->is_touched)
		return;
	link->is_touched = true;
	LIST_INSERT_HEAD(&link->verbs->touched, link, touched_entry);
}

void mrcd_verbs_poll_soon(struct mrcd_verbs *verbs)
{
	verbs->is_armed = false;
	event_active(&verbs->poll_event, EV_TIMEOUT, 0);
}

static uint32_t look(struct mrcd_verbs *verbs)
{
	struct mrcd_verbs_link *link, *next;
	uint32_t count;

	verbs->turn_bytes = 0;
	count = verbs->device ? mrcd_verbs_recv(verbs, RECEIVES_PER_TURN) : 0;

	for (link = LIST_FIRST(&verbs->busy); link; link = next) {
		next = LIST_NEXT(link, busy_entry);
		if (link->state == MRCD_VERBS_LINK_UP)
			count += mrcd_verbs_send_complete(link, SENDS_PER_TURN);
		if (link->state == MRCD_VERBS_LINK_UP && link->outq.count) {
			uint64_t posted = link->frames_posted;

			mrcd_verbs_send(link);
			count += (uint32_t)(link->frames_posted - posted);
		}
		if ((link->frames_done == link->frames_posted && !link->outq.count) ||
		    link->state != MRCD_VERBS_LINK_UP) {
			link->is_busy = false;
			LIST_REMOVE(link, busy_entry);
		}
	}
	while ((link = LIST_FIRST(&verbs->touched))) {
		link->is_touched = false;
		LIST_REMOVE(link, touched_entry);
		mrcd_peer_pump(link->link.peer);
	}
	return count;
}

static void arm(struct mrcd_verbs *verbs)
{
	struct mrcd_verbs_link *link;

	verbs->is_armed = true;
	ibv_req_notify_cq(verbs->device->recv_cq, 0);
	LIST_FOREACH(link, &verbs->busy, busy_entry)
	{
		ibv_req_notify_cq(link->send_cq, 0);
	}
}

void mrcd_verbs_on_poll(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_verbs *verbs = context;
	struct mrcd_worker *worker = verbs->rail->worker;
	uint64_t now_ns = mrcd_worker_now(worker);
	uint32_t count = look(verbs);

	if (verbs->device && verbs->device->is_lost) {
		mrcd_verbs_device_lost(verbs, verbs->device->why[0] ? verbs->device->why
								    : "a queue of it has failed");
		return;
	}
	if (!verbs->device)
		return;
	if (count)
		verbs->worked_ns = now_ns;
	if (count || now_ns - verbs->worked_ns < worker->conf->spin_ns) {
		event_active(&verbs->poll_event, EV_TIMEOUT, 0);
		/* Sockets, timers and jobs that ended come between two turns of ours that did something. */
		if (count || ++verbs->spins % SPINS_BETWEEN == 0)
			event_base_loopcontinue(worker->base);
		return;
	}
	if (verbs->is_armed)
		return;
	arm(verbs);
	/* What completed before the queues were armed makes no event. */
	if (look(verbs) || verbs->device->is_lost) {
		verbs->worked_ns = now_ns;
		mrcd_verbs_poll_soon(verbs);
		event_base_loopcontinue(worker->base);
	}
}

void mrcd_verbs_on_comp(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_verbs *verbs = context;
	struct ibv_cq *cq;
	void *cq_context;

	while (verbs->device && ibv_get_cq_event(verbs->device->comp, &cq, &cq_context) == 0)
		ibv_ack_cq_events(cq, 1);
	verbs->worked_ns = mrcd_worker_now(verbs->rail->worker);
	verbs->is_armed = false;
	mrcd_verbs_on_poll(fd, what, context);
}

void mrcd_verbs_poll_dry(struct mrcd_verbs *verbs)
{
	uint32_t left = verbs->device ? verbs->device->entry_count : 0;
	struct mrcd_verbs_link *link;

	/* The queue holds no more than that; what comes meanwhile, of others, may wait. */
	while (left) {
		uint32_t count;

		verbs->turn_bytes = 0;
		count = mrcd_verbs_recv(verbs, MRC_MIN(left, RECEIVES_PER_TURN));
		if (!count)
			break;
		left -= MRC_MIN(left, count);
	}
	while ((link = LIST_FIRST(&verbs->touched))) {
		link->is_touched = false;
		LIST_REMOVE(link, touched_entry);
		mrcd_peer_pump(link->link.peer);
	}
}
