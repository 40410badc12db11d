/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_peer_note - what befalls a peer and its paths: a line of log, an event, counters */
#include <stdio.h>
#include <string.h>

#include "mrcd_event_log.h"
#include "mrcd_peer_impl.h"
#include "mrcd_span.h"

#define SILENT_NOTED_NS (100 * MRC_MS) /* on all paths, until it is an event */

/* ", 12 lines like this not shown" or nothing. */
static const char *held_back_text(uint64_t suppressed, char text[64])
{
	text[0] = '\0';
	if (suppressed > 0)
		snprintf(text, 64, " (%llu change%s before this not logged)",
			 (unsigned long long)suppressed, suppressed == 1 ? "" : "s");
	return text;
}

uint8_t mrcd_peer_paths_good(const struct mrcd_peer *peer)
{
	struct mrc_conn_info info;

	mrc_conn_info(peer->conn, &info);
	return info.paths_good;
}

uint8_t mrcd_peer_paths_listed(const struct mrcd_peer *peer)
{
	uint8_t count = 0;

	for (uint8_t i = 0; i < peer->path_count; i++)
		count += peer->paths[i].rail != NULL;
	return count;
}

/* ---- paths ---- */

/* What it means when a path leaves service: how long it was silent, what moved where. */
static void log_bad(const struct mrcd_peer *peer, const struct mrc_act_path *act, uint8_t good,
		    const char *held_back)
{
	const struct mrcd_peer_path *path = &peer->paths[act->index];
	uint64_t silent_ns = peer->worker->now_ns - path->heard_ns;
	char span[MRCD_SPAN_BYTES], why[96], moved[64] = "";

	/* Silent is a path whose frames are not answered; the peer may still be heard on it. */
	if (act->reason == MRC_REASON_SILENT && silent_ns >= MRC_MS)
		snprintf(why, sizeof(why), "silent for %s", mrcd_span_text(silent_ns, span));
	else if (act->reason == MRC_REASON_SILENT)
		snprintf(why, sizeof(why), "does not answer in time");
	else
		snprintf(why, sizeof(why), "%s", mrc_path_reason_name(act->reason));
	if (act->moved_count > 0 && good > 0)
		snprintf(moved, sizeof(moved), "%u fragment%s moved to ", act->moved_count,
			 act->moved_count == 1 ? "" : "s");
	else if (act->moved_count > 0)
		snprintf(moved, sizeof(moved), "%u fragment%s waiting, ", act->moved_count,
			 act->moved_count == 1 ? "" : "s");
	if (good > 0)
		mrcd_warn("rail %s to %s: %s, %s%u other path%s%s", path->rail->conf->name,
			  peer->name, why, moved, good, good == 1 ? "" : "s", held_back);
	else
		mrcd_warn("rail %s to %s: %s, %sno good path is left%s", path->rail->conf->name,
			  peer->name, why, moved, held_back);
}

static void log_good(const struct mrcd_peer *peer, const struct mrc_act_path *act, uint8_t good,
		     const char *held_back)
{
	const struct mrcd_peer_path *path = &peer->paths[act->index];
	char span[MRCD_SPAN_BYTES];

	if (path->left_ns != 0)
		mrcd_notice("rail %s to %s: in service again after %s, %u of %u paths good%s",
			    path->rail->conf->name, peer->name,
			    mrcd_span_text(peer->worker->now_ns - path->left_ns, span), good,
			    mrcd_peer_paths_listed(peer), held_back);
	else
		mrcd_notice("rail %s to %s: in service, %u of %u paths good%s",
			    path->rail->conf->name, peer->name, good, mrcd_peer_paths_listed(peer),
			    held_back);
}

static void log_path(struct mrcd_peer *peer, const struct mrc_act_path *act, uint8_t good)
{
	struct mrcd_peer_path *path = &peer->paths[act->index];
	uint64_t suppressed;
	char held_back[64];

	if (!mrcd_log_allowed(&path->state_limit, peer->worker->now_ns, &suppressed))
		return;
	held_back_text(suppressed, held_back);
	if (act->state == MRC_PATH_GOOD)
		log_good(peer, act, good, held_back);
	else if (act->state == MRC_PATH_DENIED)
		mrcd_notice("rail %s to %s: drained, carries nothing more, %u other paths good%s",
			    path->rail->conf->name, peer->name, good, held_back);
	else if (act->state_old == MRC_PATH_GOOD)
		log_bad(peer, act, good, held_back);
	else
		mrcd_notice("rail %s to %s: no longer drained, connecting%s",
			    path->rail->conf->name, peer->name, held_back);
}

static void add_path_event(const struct mrcd_peer *peer, const struct mrc_act_path *act,
			   uint8_t good)
{
	const struct mrcd_peer_path *path = &peer->paths[act->index];
	uint64_t now_ns = peer->worker->now_ns;
	struct mrcd_event event = {
		.kind = MRCD_EVENT_PATH,
		.path_index = act->index,
		.state_old = act->state_old,
		.state = act->state,
		.reason = act->reason,
		.path_epoch = act->path_epoch,
		.paths_good = good,
	};

	snprintf(event.rail, sizeof(event.rail), "%s", path->rail->conf->name);
	snprintf(event.peer, sizeof(event.peer), "%s", peer->name);
	if (act->state == MRC_PATH_GOOD) {
		event.away_ns = path->left_ns != 0 ? now_ns - path->left_ns : 0;
	} else if (act->state_old == MRC_PATH_GOOD) {
		event.moved_count = act->moved_count;
		event.silent_ns = now_ns - path->heard_ns;
		event.late_ns = act->late_ns;
	}
	mrcd_event_log_add(peer->worker->events, &event);
}

void mrcd_peer_note_path(struct mrcd_peer *peer, const struct mrc_act_path *act)
{
	struct mrcd_peer_path *path = &peer->paths[act->index];
	bool was_good = act->state_old == MRC_PATH_GOOD, is_good = act->state == MRC_PATH_GOOD;
	uint64_t now_ns = peer->worker->now_ns;
	uint8_t good;

	/* The loop's only path comes with the daemon and goes with it: nothing to tell. */
	if (peer->conf == NULL || path->rail == NULL)
		return;
	if (!was_good && !is_good && act->state != MRC_PATH_DENIED &&
	    act->state_old != MRC_PATH_DENIED) {
		mrcd_debug("rail %s to %s: %s, was %s (%s), epoch %u", path->rail->conf->name,
			   peer->name, mrc_path_state_name(act->state),
			   mrc_path_state_name(act->state_old), mrc_path_reason_name(act->reason),
			   act->path_epoch);
		return;
	}
	good = mrcd_peer_paths_good(peer);
	log_path(peer, act, good);
	add_path_event(peer, act, good);
	if (is_good)
		path->left_ns = 0;
	else if (was_good)
		path->left_ns = now_ns;
	if (was_good && act->state != MRC_PATH_DENIED &&
	    !mrcd_peer_path_is_excused(peer, act->index)) {
		path->flaps++;
		path->flapped_ns = now_ns;
		path->rail->flaps++;
		path->rail->flapped_ns = now_ns;
	}
}

/* ---- the peer ---- */

static void add_peer_event(const struct mrcd_peer *peer, enum mrcd_event_kind kind)
{
	struct mrcd_event event = {.kind = kind};

	snprintf(event.peer, sizeof(event.peer), "%s", peer->name);
	mrcd_event_log_add(peer->worker->events, &event);
}

void mrcd_peer_note_reset(struct mrcd_peer *peer)
{
	struct mrc_conn_info info;

	mrc_conn_info(peer->conn, &info);
	if (info.resets == 0) {
		mrcd_debug("peer %s: connection epoch %u begins", peer->name, info.epoch);
		return;
	}
	mrcd_warn("peer %s: its daemon restarted or forgot us; connection epoch %u begins, what "
		  "was in flight ends with an unknown outcome",
		  peer->name, info.epoch);
	if (peer->conf != NULL)
		add_peer_event(peer, MRCD_EVENT_PEER_RESTARTED);
}

void mrcd_peer_note_drain(struct mrcd_peer *peer, bool is_draining)
{
	uint64_t suppressed;
	char held_back[64];

	if (mrcd_log_allowed(&peer->drain_limit, peer->worker->now_ns, &suppressed)) {
		held_back_text(suppressed, held_back);
		mrcd_notice("peer %s: %s%s", peer->name,
			    is_draining ? "it is being drained, and takes no new channels"
					: "it is no longer being drained",
			    held_back);
	}
	add_peer_event(peer, is_draining ? MRCD_EVENT_PEER_DRAIN : MRCD_EVENT_PEER_UNDRAIN);
}

/* A host that is busy is late on all paths for a moment, and often: that is no event. */
static void note_silence(struct mrcd_peer *peer, bool is_silent)
{
	uint64_t now_ns = peer->worker->now_ns;

	if (!is_silent) {
		if (peer->is_silent)
			add_peer_event(peer, MRCD_EVENT_PEER_HEARD);
		peer->is_silent = false;
		peer->silent_since_ns = 0;
	} else if (peer->silent_since_ns == 0) {
		peer->silent_since_ns = now_ns;
	} else if (!peer->is_silent && now_ns - peer->silent_since_ns >= SILENT_NOTED_NS) {
		peer->is_silent = true;
		add_peer_event(peer, MRCD_EVENT_PEER_SILENT);
	}
}

void mrcd_peer_note_reach(struct mrcd_peer *peer)
{
	struct mrc_conn_info info;

	if (peer->conf == NULL)
		return;
	mrc_conn_info(peer->conn, &info);
	note_silence(peer, info.is_peer_silent);
	if (peer->is_connected == (info.paths_good > 0))
		return;
	peer->is_connected = info.paths_good > 0;
	mrcd_debug("peer %s: %s, %u channel%s", peer->name,
		   peer->is_connected ? "connected" : "out of reach", info.channel_count,
		   info.channel_count == 1 ? "" : "s");
	add_peer_event(peer, peer->is_connected ? MRCD_EVENT_PEER_CONNECTED : MRCD_EVENT_PEER_LOST);
}

/* ---- rails ---- */

static void add_rail_event(const struct mrcd_rail *rail, enum mrcd_event_kind kind)
{
	struct mrcd_event event = {.kind = kind};

	snprintf(event.rail, sizeof(event.rail), "%s", rail->conf->name);
	mrcd_event_log_add(rail->worker->events, &event);
}

void mrcd_rail_note_carrier(struct mrcd_rail *rail, bool is_up)
{
	if (is_up) {
		mrcd_info("rail %s (%s): carrier is back", rail->conf->name, rail->conf->interface);
	} else {
		rail->carrier_losses += !mrcd_rail_is_excused(rail);
		mrcd_warn("rail %s (%s): carrier lost", rail->conf->name, rail->conf->interface);
	}
	add_rail_event(rail, is_up ? MRCD_EVENT_CARRIER_BACK : MRCD_EVENT_CARRIER_LOST);
}

void mrcd_rail_note_drain(struct mrcd_rail *rail, bool is_draining)
{
	mrcd_notice("rail %s: %s by the operator", rail->conf->name,
		    is_draining ? "drained" : "given back");
	add_rail_event(rail, is_draining ? MRCD_EVENT_DRAINED : MRCD_EVENT_UNDRAINED);
}
