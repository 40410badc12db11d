/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_metrics - all that is counted, in Prometheus' text format, piece by piece
 *
 * A walk goes through the table of metrics and, for each, through rails, peers
 * or paths. It stops where a piece is full and goes on in a later turn of the
 * loop, so that a host with a thousand peers is not held up by who looks at it.
 * Channels have no series of their own: there can be too many.
 *
 * Nothing points into the daemon between two pieces. Rails and peers may come
 * and go; a series that is told in such a moment is whole, others may be missing.
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_METRICS_H
#define MRCD_METRICS_H

#include <event2/buffer.h>

#include "mrcd_worker.h"

struct mrcd_metrics_walk {
	struct mrcd_worker *worker; /* whose */
	struct mrcd_worker_summary summary;
	uint32_t metric; /* in the table */
	uint32_t outer;  /* of its scope: rail, peer or stage */
	uint32_t inner;  /* path of that peer */
	bool is_titled;  /* HELP and TYPE of this one are out */
};

void mrcd_metrics_walk_begin(struct mrcd_metrics_walk *walk, struct mrcd_worker *worker);
/* Write until some `bytes` are in `out` or all is. False: that was all. */
bool mrcd_metrics_walk_on(struct mrcd_metrics_walk *walk, struct evbuffer *out, size_t bytes);

#endif
