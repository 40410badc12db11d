/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_peer_state - what a peer's engine begins with, and what it leaves to the next daemon */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mrc_conn_state.h"
#include "mrcd_auth.h"
#include "mrcd_crc.h"
#include "mrcd_peer_impl.h"

/* A second work request, and the receiver's look at other memory, cost more than so short a copy. */
#define DIRECT_BYTES_MIN 2048U

static void *peer_alloc(void *context, size_t bytes)
{
	return calloc(1, bytes);
}

static void peer_release(void *context, void *memory)
{
	free(memory);
}

static uint64_t peer_stamp(void *context)
{
	return mrcd_worker_clock_ns();
}

/* What is offered in handshakes with this peer. */
static uint32_t peer_features(const struct mrcd_conf_peer *conf)
{
	uint32_t features = MRC_FEATURE_ABOUT | MRC_FEATURE_HOST_DRAIN | MRC_FEATURE_DRILL;

	if (conf == NULL)
		return 0;
	if (conf->encryption != MRCD_ENCRYPTION_OFF)
		features |= MRC_FEATURE_ENCRYPTION;
	if (conf->encryption == MRCD_ENCRYPTION_REQUIRED)
		features |= MRC_FEATURE_ENCRYPTION_REQUIRED;
	return features;
}

void mrcd_peer_configure(const struct mrcd_peer *peer, struct mrc_conn_config *config_out)
{
	const struct mrcd_worker *worker = peer->worker;

	*config_out = (struct mrc_conn_config){
		.host = peer->engine_own_name,
		.peer = peer->engine_name,
		.boot_id = worker->boot_id,
		.features = peer_features(peer->conf),
		.path_count = peer->path_count,
		.paths_max = peer->conf != NULL ? MRC_PATHS_MAX : 1,
		.limits = worker->conf->limits,
		.alloc = {.alloc = peer_alloc, .free = peer_release},
		.stamp = peer_stamp,
	};
	if (peer->conf != NULL) {
		for (uint8_t i = 0; i < peer->path_count; i++)
			config_out->rail_of[i] = peer->conf->paths[i].rail_index;
	} else {
		config_out->has_one_clock = true;
		/* The two ends are two runs of state: alike, the conn could not tell them apart. */
		if (!mrc_hello_is_initiator(peer->engine_own_name, peer->engine_name))
			config_out->boot_id = worker->boot_id ^ 1U;
	}
	mrc_limits_complete(&config_out->limits);
	config_out->limits.direct_bytes_min =
		MRC_MAX(config_out->limits.direct_bytes_min, (uint64_t)DIRECT_BYTES_MIN);
	mrcd_auth_random(&config_out->seed, sizeof(config_out->seed));
}

void mrcd_peer_quiesce(struct mrcd_peer *peer)
{
	peer->is_quiet = true;
	event_del(peer->timer);
	peer->armed_ns = MRC_NEVER;
	for (uint8_t i = 0; i < peer->path_count; i++) {
		struct mrcd_rail *rail = peer->paths[i].rail;

		if (rail != NULL && rail->kind_data != NULL && rail->ops->forget != NULL)
			rail->ops->forget(rail, peer);
		if (peer->paths[i].link != NULL)
			mrcd_peer_fence_link(&peer->paths[i]);
	}
}

bool mrcd_peer_settle(struct mrcd_peer *peer)
{
	MRC_ASSERT(peer->is_quiet);
	mrcd_peer_pump_now(peer);
	for (uint8_t i = 0; i < peer->path_count; i++) {
		if (peer->paths[i].link != NULL || peer->paths[i].fencing_epoch != 0)
			return false;
	}
	return true;
}

int mrcd_peer_save(struct mrcd_peer *peer, struct mrcd_image_out *out)
{
	size_t len_bytes = 0;
	uint8_t *room;
	int r = mrc_conn_export(peer->conn, mrcd_crc32c, NULL, 0, &len_bytes);

	if (r != -ENOBUFS)
		return r;
	room = mrcd_image_blob_room(out, len_bytes);
	if (room == NULL)
		return -ENOMEM;
	r = mrc_conn_export(peer->conn, mrcd_crc32c, room, len_bytes, &len_bytes);
	if (r == 0)
		mrcd_image_put_blob(out, len_bytes);
	return r;
}

int mrcd_peer_restore(struct mrcd_peer *peer, const uint32_t marks[MRC_PATHS_MAX],
		      const void *state, size_t state_bytes, const char **why_out)
{
	struct mrc_conn_config config;
	struct mrc_conn *conn;
	int r = marks != NULL ? mrcd_peer_arrange(peer, marks) : 0;

	if (r < 0)
		return r;

	mrcd_peer_configure(peer, &config);
	if (state == NULL)
		r = mrc_conn_new(&config, &conn);
	else
		r = mrc_conn_import(&config, mrcd_crc32c, state, state_bytes, peer->worker->now_ns,
				    &conn, why_out);
	if (r < 0)
		return r;
	mrc_conn_free(peer->conn);
	peer->conn = conn;
	for (uint8_t i = 0; marks != NULL && peer->conf != NULL && i < peer->path_count; i++) {
		if (peer->paths[i].rail == NULL ||
		    (marks[i] != 0 && marks[i] != mrcd_peer_path_mark(peer, i)))
			mrcd_peer_path_replace(peer, i);
	}
	/* What befell its paths before us is no news to who watches their health. */
	for (uint8_t i = 0; i < peer->path_count; i++) {
		struct mrc_health_sample *last = &peer->health_paths[i].last;

		mrc_conn_path_info(conn, i, &last->info);
		if (peer->paths[i].rail != NULL)
			last->carrier_losses = peer->paths[i].rail->carrier_losses;
	}
	return 0;
}
