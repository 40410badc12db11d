/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_conn_host - what an operator does to this host, or to the peer's: it is drained, its paths drilled
 *
 * A drained host takes no new channels; those that are open go on to their end.
 * To refuse new ones is the embedder's part; here each end learns it of the
 * other. A path in a drill fails on purpose, and nothing that is seen of it is
 * to be held against it; what to make of that is the embedder's, too.
 *
 * Both are bits of PORT_STATUS, whose version tells which word came later and
 * which is repeated in every probe. Only where both know MRC_FEATURE_HOST_DRAIN
 * and MRC_FEATURE_DRILL: to others a port map has no such bits, and a channel is
 * turned away for want of resources.
 */
#include "mrc_conn_impl.h"

static bool is_known_to(const struct mrc_path *path)
{
	return path->features & MRC_FEATURE_HOST_DRAIN;
}

static bool is_drill_known_to(const struct mrc_path *path)
{
	return path->features & MRC_FEATURE_DRILL;
}

int mrc_conn_host_event(struct mrc_conn *conn, const struct mrc_ev_host *ev)
{
	if (conn->is_draining == ev->is_draining)
		return 0;
	conn->is_draining = ev->is_draining;
	mrc_conn_ports_tell(conn);
	return 0;
}

int mrc_conn_host_drill(struct mrc_conn *conn, uint8_t index, bool is_on)
{
	uint32_t bit = 1U << index;

	if (!!(conn->drilled & bit) == is_on)
		return 0;
	conn->drilled ^= bit;
	mrc_conn_ports_tell(conn);
	return 0;
}

void mrc_conn_host_path_up(struct mrc_conn *conn, const struct mrc_path *path)
{
	if ((conn->is_draining && is_known_to(path)) ||
	    ((conn->drilled || conn->is_status_stale) && is_drill_known_to(path))) {
		conn->is_status_stale = false;
		mrc_conn_ports_tell(conn);
	}
}

uint64_t mrc_conn_host_status(const struct mrc_conn *conn, const struct mrc_path *path)
{
	uint64_t status = conn->ports_down;

	if (conn->is_draining && is_known_to(path))
		status |= MRC_WIRE_HOST_DRAINING;
	for (uint8_t i = 0; conn->drilled && is_drill_known_to(path) && i < conn->path_count; i++) {
		if (conn->drilled >> i & 1 && conn->paths[i].is_known)
			status |= 1ULL << (MRC_WIRE_DRILLED_SHIFT + conn->paths[i].path_id);
	}
	return status;
}

static void set_peer(struct mrc_conn *conn, bool is_draining)
{
	if (conn->is_peer_draining == is_draining)
		return;
	conn->is_peer_draining = is_draining;
	conn->do_peer_drain = !conn->do_peer_drain; /* there and back untold is no news */
}

void mrc_conn_host_take(struct mrc_conn *conn, const struct mrc_path *path, uint64_t status)
{
	uint32_t drilled = 0;

	set_peer(conn, is_known_to(path) && status & MRC_WIRE_HOST_DRAINING);
	for (uint8_t i = 0; is_drill_known_to(path) && i < conn->path_count; i++) {
		const struct mrc_path *other = &conn->paths[i];

		if (other->is_known && status >> (MRC_WIRE_DRILLED_SHIFT + other->path_id) & 1)
			drilled |= 1U << i;
	}
	conn->peer_drilled = drilled;
}

int mrc_conn_host_outcome(const struct mrc_path *path, int outcome)
{
	return outcome == MRC_OUT_DRAINING && !is_known_to(path) ? MRC_OUT_NO_RESOURCES : outcome;
}

bool mrc_conn_host_may_say(const struct mrc_path *path, uint8_t frame_type)
{
	return frame_type == MRC_WIRE_REFUSE && is_known_to(path);
}

void mrc_conn_host_forget(struct mrc_conn *conn)
{
	set_peer(conn, false);
	conn->peer_drilled = 0;
	conn->port_version_told = 0;
}

void mrc_conn_host_forget_path(struct mrc_conn *conn, uint8_t index)
{
	conn->drilled &= ~(1U << index);
	conn->peer_drilled &= ~(1U << index);
}

bool mrc_conn_next_host(struct mrc_conn *conn, struct mrc_action *act_out)
{
	if (conn->do_peer_drain) {
		conn->do_peer_drain = false;
		act_out->kind = MRC_ACT_PEER_DRAIN;
		act_out->host.is_draining = conn->is_peer_draining;
		return true;
	}
	if (conn->peer_drilled == conn->peer_drilled_told)
		return false;
	conn->peer_drilled_told = conn->peer_drilled;
	act_out->kind = MRC_ACT_PEER_DRILL;
	act_out->host.paths_drilled = conn->peer_drilled;
	return true;
}
