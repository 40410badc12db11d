/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_peer_drill - paths that fail on purpose: nothing of it is held against them
 *
 * Who drills tells the peer before anything fails (MRC_EV_DRILL), so that at both
 * ends what befalls the path is neither counted as a flap nor judged. That goes
 * on until it has been in service again for a while. Of a rail it is so in our own
 * drill, or while all its paths are in one: a peer speaks for its own paths alone.
 * And it is believed as long as a drill can last, and then a fifth of the time: it
 * cannot hide for good what its paths are like.
 */
#include <stdio.h>

#include "mrcd_drill.h"
#include "mrcd_event_log.h"
#include "mrcd_peer_impl.h"

#define BELIEVED_NS  (MRCD_DRILL_DURATION_NS_MAX + 60 * MRC_S)
#define REPAID       8U           /* so long without one makes up for a part of that */
#define AFTER_NS     (5 * MRC_S)  /* in service: its rate is learnt anew, its queues are empty */
#define AFTER_NS_MAX (30 * MRC_S) /* or not: then it is no drill any more */

static bool is_believed(const struct mrcd_peer_path *path, uint64_t now_ns)
{
	return path->is_peer_drill && path->excuse_ns != 0 &&
	       path->excused_ns + now_ns - path->excuse_ns < BELIEVED_NS;
}

/* It has drilled, and is believed unless that was for too long: the time without counts for a part. */
static void excuse_begin(struct mrcd_peer_path *path, uint64_t now_ns)
{
	if (path->excuse_ns != 0)
		return;
	path->excused_ns -= MRC_MIN((now_ns - path->unexcused_ns) / REPAID, path->excused_ns);
	path->unexcused_ns = now_ns;
	if (path->excused_ns < BELIEVED_NS)
		path->excuse_ns = now_ns;
}

/* What the last drill left is over as well. */
static void excuse_end(struct mrcd_peer_path *path, uint64_t now_ns)
{
	path->drill_ns = 0;
	if (path->excuse_ns == 0)
		return;
	path->excused_ns += now_ns - path->excuse_ns;
	path->unexcused_ns = now_ns;
	path->excuse_ns = 0;
}

const char *mrcd_peer_path_drill(const struct mrcd_peer *peer, uint8_t index)
{
	const struct mrcd_peer_path *path = &peer->paths[index];

	if (path->rail == NULL)
		return NULL;
	if (path->rail->is_drilled)
		return "here";
	return is_believed(path, peer->worker->now_ns) ? "peer" : NULL;
}

bool mrcd_peer_is_drilling(const struct mrcd_peer *peer, uint8_t index)
{
	return is_believed(&peer->paths[index], peer->worker->now_ns);
}

bool mrcd_peer_path_is_excused(struct mrcd_peer *peer, uint8_t index)
{
	struct mrcd_peer_path *path = &peer->paths[index];
	uint64_t now_ns = peer->worker->now_ns, since_ns;
	struct mrc_path_info info;

	if (mrcd_peer_path_drill(peer, index) != NULL) {
		path->drill_ns = now_ns;
		return true;
	}
	if (path->drill_ns == 0)
		return false;
	mrc_conn_path_info(peer->conn, index, &info);
	since_ns = MRC_MAX(path->drill_ns, info.state_since_ns);
	if (now_ns - path->drill_ns >= AFTER_NS_MAX ||
	    (info.state == MRC_PATH_GOOD && now_ns >= since_ns + AFTER_NS))
		excuse_end(path, now_ns);
	return path->drill_ns != 0;
}

bool mrcd_rail_is_excused(const struct mrcd_rail *rail)
{
	struct mrcd_worker *worker = rail->worker;
	bool has_paths = false;

	for (uint32_t p = 0; p < worker->peer_count; p++) {
		struct mrcd_peer *peer = worker->peers[p];

		for (uint8_t i = 0; i < peer->path_count; i++) {
			if (peer->paths[i].rail != rail)
				continue;
			if (!mrcd_peer_path_is_excused(peer, i))
				return false;
			has_paths = true;
		}
	}
	return has_paths || rail->is_drilled;
}

const char *mrcd_rail_drill_name(const struct mrcd_rail *rail)
{
	const struct mrcd_worker *worker = rail->worker;
	bool has_paths = false;

	if (rail->is_drilled)
		return mrcd_drill_fault_name(worker->drill, rail);
	for (uint32_t p = 0; p < worker->peer_count; p++) {
		const struct mrcd_peer *peer = worker->peers[p];

		for (uint8_t i = 0; i < peer->path_count; i++) {
			if (peer->paths[i].rail != rail)
				continue;
			if (mrcd_peer_path_drill(peer, i) == NULL)
				return NULL;
			has_paths = true;
		}
	}
	return has_paths ? "peer" : NULL;
}

/* ---- ours ---- */

void mrcd_peer_tell_drill(struct mrcd_peer *peer, const struct mrcd_rail *rail, bool is_on)
{
	bool is_told = false;

	for (uint8_t i = 0; i < peer->path_count; i++) {
		const struct mrc_event_in ev = {
			.kind = MRC_EV_DRILL,
			.path = {.index = i, .is_up = is_on},
		};

		if (peer->paths[i].rail != rail)
			continue;
		peer->paths[i].drill_ns = peer->worker->now_ns;
		mrcd_peer_handle(peer, &ev);
		is_told = true;
	}
	if (is_told)
		mrcd_peer_pump(peer);
}

bool mrcd_peer_has_heard(const struct mrcd_peer *peer)
{
	struct mrc_conn_info info;

	mrc_conn_info(peer->conn, &info);
	return info.is_status_told || info.paths_good == 0;
}

/* ---- the peer's ---- */

/* Not as often as it may please the peer. */
static void note(struct mrcd_peer *peer, uint8_t index, bool is_on)
{
	struct mrcd_event event = {.kind = is_on ? MRCD_EVENT_DRILL_BEGIN : MRCD_EVENT_DRILL_END};
	const char *rail = peer->paths[index].rail->conf->name;
	uint64_t suppressed;

	if (peer->conf == NULL ||
	    !mrcd_log_allowed(&peer->drill_limit, peer->worker->now_ns, &suppressed))
		return;
	snprintf(event.rail, sizeof(event.rail), "%s", rail);
	snprintf(event.peer, sizeof(event.peer), "%s", peer->name);
	snprintf(event.note, sizeof(event.note), "the peer's");
	mrcd_event_log_add(peer->worker->events, &event);
	mrcd_notice("rail %s to %s: a drill of the peer's %s", rail, peer->name,
		    is_on ? "begins" : "ends");
}

void mrcd_peer_on_drill(struct mrcd_peer *peer, uint32_t paths)
{
	uint64_t now_ns = peer->worker->now_ns;

	for (uint8_t i = 0; i < peer->path_count; i++) {
		struct mrcd_peer_path *path = &peer->paths[i];
		bool is_on = paths >> i & 1;

		if (path->rail == NULL || is_on == path->is_peer_drill)
			continue;
		if (is_on)
			excuse_begin(path, now_ns);
		path->is_peer_drill = path->is_peer_drill || is_on;
		if (is_believed(path, now_ns))
			path->drill_ns = now_ns;
		path->is_peer_drill = is_on;
		note(peer, i, is_on);
	}
}
