/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_renewal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrcd_carrier.h"
#include "mrcd_client.h"
#include "mrcd_drill.h"
#include "mrcd_event_log.h"
#include "mrcd_log.h"
#include "mrcd_peer.h"
#include "mrcd_timeval.h"
#include "mrcd_trace.h"

#define SOON_NS  (2 * MRC_MS)  /* while something is on its way */
#define LATER_NS (50 * MRC_MS) /* while all that is left waits for others */

struct mrcd_renewal {
	struct mrcd_worker *worker; /* the owner */
	struct event *timer;        /* ours; pending while something is to be done */
};

static void note(struct mrcd_worker *worker, enum mrcd_event_kind kind, const char *rail,
		 const char *peer)
{
	struct mrcd_event event = {.kind = kind};

	snprintf(event.rail, sizeof(event.rail), "%s", rail);
	snprintf(event.peer, sizeof(event.peer), "%s", peer);
	mrcd_event_log_add(worker->events, &event);
}

/* ---- peers ---- */

static void peer_remove(struct mrcd_worker *worker, uint32_t index)
{
	struct mrcd_peer *peer = worker->peers[index];

	mrcd_notice("peer %s: removed", mrcd_peer_name(peer));
	note(worker, MRCD_EVENT_PEER_REMOVED, "", mrcd_peer_name(peer));
	worker->peer_count--;
	memmove(&worker->peers[index], &worker->peers[index + 1],
		(worker->peer_count - index) * sizeof(struct mrcd_peer *));
	mrcd_traces_forget(worker->traces, peer);
	mrcd_peer_free(peer);
}

static bool peers_tend(struct mrcd_worker *worker)
{
	bool is_done = true;

	for (uint32_t i = 0; i < worker->peer_count;) {
		struct mrcd_peer *peer = worker->peers[i];
		bool has_gone = mrcd_peer_tend(peer) && mrcd_peer_is_going(peer) &&
				mrcd_peer_is_over(peer) &&
				mrcd_client_side_release(worker->clients, peer);

		if (has_gone) {
			peer_remove(worker, i);
			continue;
		}
		is_done = is_done && mrcd_peer_paths_going(peer) == 0 && !mrcd_peer_is_going(peer);
		i++;
	}
	return is_done;
}

/* ---- rails ---- */

static uint32_t paths_over(const struct mrcd_rail *rail)
{
	const struct mrcd_worker *worker = rail->worker;
	uint32_t count = 0, good;

	for (uint32_t i = 0; i < worker->peer_count; i++)
		count += mrcd_peer_rail_paths(worker->peers[i], rail->index, &good);
	return count;
}

/* A peer whose last good path is over this rail; NULL: it can be spared. */
static struct mrcd_peer *held_by(const struct mrcd_rail *rail)
{
	const struct mrcd_worker *worker = rail->worker;
	uint32_t good;

	for (uint32_t i = 0; i < worker->peer_count; i++) {
		mrcd_peer_rail_paths(worker->peers[i], rail->index, &good);
		if (good > 0 && !mrcd_peer_has_else(worker->peers[i], rail))
			return worker->peers[i];
	}
	return NULL;
}

static bool is_ready_to_close(struct mrcd_rail *rail)
{
	return rail->hold_count == 0 &&
	       (!rail->is_open || rail->ops->leave == NULL || rail->ops->leave(rail));
}

/* True: it has gone. */
static bool rail_go(struct mrcd_rail *rail)
{
	struct mrcd_worker *worker = rail->worker;
	char name[MRC_NAME_MAX + 1];

	if (paths_over(rail) > 0 || mrcd_drill_has(worker->drill, rail))
		return false;
	rail->is_leaving = true;
	if (!is_ready_to_close(rail))
		return false;
	snprintf(name, sizeof(name), "%s", rail->given.name);
	mrcd_worker_rail_remove(rail);
	mrcd_notice("rail %s: removed", name);
	note(worker, MRCD_EVENT_RAIL_REMOVED, name, "");
	return true;
}

static bool is_any_leaving(const struct mrcd_worker *worker)
{
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		if (worker->rails[i].fate == MRCD_RAIL_RENEW && worker->rails[i].is_leaving)
			return true;
	}
	return false;
}

static void rail_leave(struct mrcd_rail *rail, bool is_leaving)
{
	struct mrcd_worker *worker = rail->worker;

	rail->is_leaving = is_leaving;
	for (uint32_t i = 0; i < worker->peer_count; i++)
		mrcd_peer_leave_rail(worker->peers[i], rail, is_leaving);
}

static bool all_have_left(struct mrcd_rail *rail)
{
	struct mrcd_worker *worker = rail->worker;
	bool have_left = true;

	for (uint32_t i = 0; i < worker->peer_count; i++)
		have_left = mrcd_peer_has_left(worker->peers[i], rail) && have_left;
	return have_left;
}

/* It is closed. False: it cannot be opened, and is tried again every second. */
static bool rail_open_anew(struct mrcd_rail *rail)
{
	struct mrcd_worker *worker = rail->worker;

	if (worker->now_ns < rail->open_ns)
		return false;
	rail->open_ns = worker->now_ns + MRC_S;
	if (rail->next.is_drained != rail->given.is_drained)
		rail->is_draining = rail->next.is_drained;
	rail->given = rail->next;
	rail->conf = &rail->given;
	mrcd_carrier_add(rail);
	if (mrcd_worker_rail_open(rail) < 0)
		return false;
	rail->open_ns = 0;
	rail->fate = MRCD_RAIL_STAYS;
	rail_leave(rail, false);
	mrcd_notice("rail %s: closed and opened anew", rail->given.name);
	note(worker, MRCD_EVENT_RAIL_RENEWED, rail->given.name, "");
	return true;
}

/* True: it is what it is to be. */
static bool rail_renew(struct mrcd_rail *rail)
{
	if (!rail->is_leaving) {
		if (is_any_leaving(rail->worker) || held_by(rail) != NULL ||
		    mrcd_drill_has(rail->worker->drill, rail))
			return false;
		rail_leave(rail, true);
	}
	if (rail->is_open) {
		if (!all_have_left(rail) || !is_ready_to_close(rail))
			return false;
		mrcd_worker_rail_close(rail);
	}
	return rail_open_anew(rail);
}

/* What one listened on, another may wait for. */
static void rails_refresh(struct mrcd_worker *worker)
{
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		struct mrcd_rail *rail = &worker->rails[i];

		if (rail->is_open && !rail->is_leaving && rail->ops->refresh != NULL)
			rail->ops->refresh(rail);
	}
}

static bool rails_tend(struct mrcd_worker *worker)
{
	bool is_done = true;

	for (uint32_t i = 0; i < worker->rail_count; i++) {
		struct mrcd_rail *rail = &worker->rails[i];

		if (!mrcd_rail_is_there(rail) || rail->fate == MRCD_RAIL_STAYS)
			continue;
		if (rail->fate == MRCD_RAIL_GOES ? rail_go(rail) : rail_renew(rail))
			rails_refresh(worker);
		else
			is_done = false;
	}
	return is_done;
}

/* ---- the timer ---- */

static void tend(struct mrcd_renewal *renewal)
{
	struct mrcd_worker *worker = renewal->worker;
	bool are_peers_done = peers_tend(worker), are_rails_done = rails_tend(worker);
	struct timeval again;

	if (are_peers_done && are_rails_done)
		return;
	again = mrcd_timeval_of(mrcd_renewal_is_moving(worker) ? SOON_NS : LATER_NS);
	event_add(renewal->timer, &again);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_renewal *renewal = context;

	mrcd_worker_now(renewal->worker);
	tend(renewal);
}

int mrcd_renewal_new(struct mrcd_worker *worker, struct mrcd_renewal **renewal_out)
{
	struct mrcd_renewal *renewal = calloc(1, sizeof(*renewal));

	if (renewal == NULL)
		return -ENOMEM;
	renewal->worker = worker;
	renewal->timer = evtimer_new(worker->base, on_timer, renewal);
	if (renewal->timer == NULL) {
		free(renewal);
		return -ENOMEM;
	}
	*renewal_out = renewal;
	return 0;
}

void mrcd_renewal_free(struct mrcd_renewal *renewal)
{
	if (renewal == NULL)
		return;
	event_free(renewal->timer);
	free(renewal);
}

void mrcd_renewal_go_on(struct mrcd_renewal *renewal)
{
	tend(renewal);
}

bool mrcd_renewal_is_moving(const struct mrcd_worker *worker)
{
	for (uint32_t i = 0; i < worker->rail_count; i++) {
		const struct mrcd_rail *rail = &worker->rails[i];

		/* One that is closed and cannot be opened waits: another file may help it. */
		if (mrcd_rail_is_there(rail) && rail->is_leaving && rail->is_open)
			return true;
	}
	for (uint32_t i = 0; i < worker->peer_count; i++) {
		if (mrcd_peer_is_cutting(worker->peers[i]))
			return true;
	}
	return false;
}

/* ---- for people ---- */

static const char *rail_text(const struct mrcd_rail *rail, char *text, size_t text_bytes)
{
	const char *what = rail->fate == MRCD_RAIL_GOES ? "removed" : "opened anew";
	const struct mrcd_peer *peer = held_by(rail);

	if (rail->is_leaving && !rail->is_open)
		snprintf(text, text_bytes, "rail %s: cannot be opened, tried again",
			 rail->given.name);
	else if (rail->is_leaving)
		snprintf(text, text_bytes, "rail %s: is being closed", rail->given.name);
	else if (peer != NULL)
		snprintf(text, text_bytes,
			 "rail %s: is %s once another path to %s is good, which there is not yet",
			 rail->given.name, what, mrcd_peer_name(peer));
	else
		snprintf(text, text_bytes, "rail %s: is about to be %s", rail->given.name, what);
	return text;
}

json_t *mrcd_renewal_json(const struct mrcd_worker *worker)
{
	json_t *pending = json_array();
	char text[2 * MRC_NAME_MAX + 128];

	for (uint32_t i = 0; i < worker->rail_count; i++) {
		const struct mrcd_rail *rail = &worker->rails[i];

		if (mrcd_rail_is_there(rail) && rail->fate != MRCD_RAIL_STAYS)
			json_array_append_new(pending,
					      json_string(rail_text(rail, text, sizeof(text))));
	}
	for (uint32_t i = 0; i < worker->peer_count; i++) {
		const struct mrcd_peer *peer = worker->peers[i];
		uint32_t going = mrcd_peer_paths_going(peer);

		if (mrcd_peer_is_going(peer))
			snprintf(text, sizeof(text), "peer %s: is being removed",
				 mrcd_peer_name(peer));
		else if (going > 0)
			snprintf(text, sizeof(text), "peer %s: %u path%s %s still to go",
				 mrcd_peer_name(peer), going, going == 1 ? "" : "s",
				 going == 1 ? "is" : "are");
		else
			continue;
		json_array_append_new(pending, json_string(text));
	}
	return pending;
}
