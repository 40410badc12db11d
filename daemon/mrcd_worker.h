/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_worker - one event loop and what it owns: rails, peers, clients
 *
 * A worker shares nothing with another worker. `now_ns` is read once per turn
 * of the loop (mrcd_worker_now() in callbacks) from CLOCK_MONOTONIC.
 *
 * Threads: everything here belongs to the worker's own thread.
 */
#ifndef MRCD_WORKER_H
#define MRCD_WORKER_H

#include <event2/event.h>

#include "mrcd_conf.h"
#include "mrcd_rail.h"

struct mrcd_client_side; /* mrcd_client.h */

struct mrcd_worker {
	struct event_base *base;       /* ours */
	const struct mrcd_conf *conf;  /* the daemon's; outlives the worker */
	uint64_t boot_id;              /* of this run of state */
	uint64_t now_ns;
	struct mrcd_rail rails[MRCD_RAILS_MAX];
	uint32_t rail_count;
	struct mrcd_rail loop_rail;    /* joins this host's own clients; see mrcd_rail_loop.c */
	struct mrcd_peer **peers;      /* ours; conf->peer_count of them, in its order */
	uint32_t peer_count;
	struct mrcd_peer *loop_ends[2]; /* the two ends of the conn with ourselves */
	struct mrcd_client_side *clients; /* ours */
	struct mrcd_carrier *carrier;     /* ours */
	uint64_t strangers;               /* handshakes refused, all rails */
};

/* CLOCK_MONOTONIC, read afresh and remembered in worker->now_ns. */
uint64_t mrcd_worker_now(struct mrcd_worker *worker);

int mrcd_worker_new(const struct mrcd_conf *conf, struct mrcd_worker **worker_out);
void mrcd_worker_free(struct mrcd_worker *worker);

/* The peer called `name`, or NULL. This host's own name and "localhost" give loop_ends[0]. */
struct mrcd_peer *mrcd_worker_peer(struct mrcd_worker *worker, const char *name);

#endif
