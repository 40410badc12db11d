/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_conn_change - what may change of a conn while it lives: which paths it has, and its timers
 *
 * A path that is taken away leaves its slot behind, and its epochs and counts with it: frames that
 * speak of them may still come, and who has the slot next goes on counting from there. So nothing
 * that was said of the old path can be taken for the new one (DESIGN 7.3, 7.4).
 */
#include "mrc_conn_impl.h"

void mrc_conn_path_place(struct mrc_conn *conn, uint8_t index)
{
	struct mrc_path *path = &conn->paths[index];
	const uint32_t record_count = conn->limits.frames_in_flight_max;

	mrc_path_init(path, index, conn->records + (size_t)index * record_count, record_count);
	path->backoff_ns = conn->limits.backoff_min_ns;
	path->floor_ns = conn->limits.suspect_floor_ns;
	path->connect_ns = conn->is_initiator ? conn->now_ns : MRC_NEVER;
	if (conn->is_initiator) {
		path->path_id = index;
		path->is_known = true;
	}
}

/* What people and estimates know of the path that had the slot before. */
static void path_forget(struct mrc_path *path)
{
	path->frames_sent = 0;
	path->frames_received = 0;
	path->bytes_sent = 0;
	path->bytes_received = 0;
	path->frames_resent = 0;
	path->suspicions = 0;
	path->suspicions_false = 0;
	path->body_errors = 0;
	path->header_errors = 0;
	path->good_count = 0;
	path->bad_count = 0;
	path->rtts = (struct mrc_histogram){0};
	path->reason = MRC_REASON_NONE;
	path->is_convicted = false;
	path->prove_left = 0;
	path->floor_until_ns = 0;
	path->is_carrier_up = true;
	path->is_peer_port_up = true;
}

int mrc_conn_path_add(struct mrc_conn *conn, uint8_t index, uint64_t now_ns)
{
	struct mrc_path *path = &conn->paths[index];

	if (index > conn->path_count || index >= conn->paths_max)
		return -EINVAL;
	if (index < conn->path_count && !path->is_absent)
		return -EEXIST;
	conn->now_ns = MRC_MAX(conn->now_ns, now_ns);
	if (index == conn->path_count) {
		mrc_conn_path_place(conn, index);
		path->state_since_ns = conn->now_ns;
		conn->path_count++;
	} else {
		path_forget(path);
		path->is_absent = false;
		path->is_denied = false;
		path->backoff_ns = conn->limits.backoff_min_ns;
		path->floor_ns = conn->limits.suspect_floor_ns;
		path->connect_ns = conn->is_initiator ? conn->now_ns : MRC_NEVER;
		path->state = MRC_PATH_CONNECTING;
		path->state_told = MRC_PATH_CONNECTING;
		path->state_since_ns = conn->now_ns;
	}
	mrc_conn_ports_update(conn);
	return 0;
}

int mrc_conn_path_remove(struct mrc_conn *conn, uint8_t index)
{
	struct mrc_path *path = &conn->paths[index];

	if (index >= conn->path_count)
		return -EINVAL;
	if (!path->is_denied || path->is_connected || path->is_connecting)
		return -EBUSY;
	path->is_absent = true;
	path->do_connect = false;
	path->do_carrier_ask = false;
	path->do_state = false;
	conn->abouts[index] = (struct mrc_path_about){0};
	mrc_conn_host_forget_path(conn, index);
	/* The next path here may be over another device. */
	for (struct mrc_flow *flow = conn->flows; flow; flow = flow->next)
		flow->keys[index] = (struct mrc_key){0};
	return 0;
}

void mrc_conn_set_timers(struct mrc_conn *conn, const struct mrc_limits *limits)
{
	struct mrc_limits *own = &conn->limits;

	own->suspect_floor_ns = limits->suspect_floor_ns;
	own->suspect_ceiling_ns = limits->suspect_ceiling_ns;
	own->probe_interval_ns = limits->probe_interval_ns;
	own->probe_count = limits->probe_count;
	own->peer_silent_ns = limits->peer_silent_ns;
	own->backoff_min_ns = limits->backoff_min_ns;
	own->backoff_max_ns = limits->backoff_max_ns;
	own->revive_ns = limits->revive_ns;
	own->hold_good_ns = limits->hold_good_ns;
	for (uint8_t i = 0; i < conn->path_count; i++) {
		struct mrc_path *path = &conn->paths[i];

		path->floor_ns = own->suspect_floor_ns;
		path->floor_until_ns = 0;
		path->backoff_ns = MRC_MAX(path->backoff_ns, own->backoff_min_ns);
		path->backoff_ns = MRC_MIN(path->backoff_ns, own->backoff_max_ns);
	}
}
