/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_conn_host - whether this host, or the peer's, is being drained
 *
 * A drained host takes no new channels; those that are open go on to their end.
 * To refuse new ones is the embedder's part; here each end learns it of the
 * other. It is a bit of PORT_STATUS, whose version tells which word came later
 * and which is repeated in every probe. Only where both know
 * MRC_FEATURE_HOST_DRAIN: to others a port map has no such bit, and a channel is
 * turned away for want of resources.
 */
#include "mrc_conn_impl.h"

static bool is_known_to(const struct mrc_path *path)
{
	return path->features & MRC_FEATURE_HOST_DRAIN;
}

int mrc_conn_host_event(struct mrc_conn *conn, const struct mrc_ev_host *ev)
{
	if (conn->is_draining == ev->is_draining)
		return 0;
	conn->is_draining = ev->is_draining;
	mrc_conn_ports_tell(conn);
	return 0;
}

void mrc_conn_host_path_up(struct mrc_conn *conn, const struct mrc_path *path)
{
	if (conn->is_draining && is_known_to(path))
		mrc_conn_ports_tell(conn);
}

uint64_t mrc_conn_host_status(const struct mrc_conn *conn, const struct mrc_path *path)
{
	return conn->ports_down |
	       (conn->is_draining && is_known_to(path) ? MRC_WIRE_HOST_DRAINING : 0);
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
	set_peer(conn, is_known_to(path) && status & MRC_WIRE_HOST_DRAINING);
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
}
