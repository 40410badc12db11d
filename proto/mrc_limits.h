/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_limits - the engine's bounds and timers, given at start
 *
 * Units: bytes, ns, counts.
 */
#ifndef MRC_LIMITS_H
#define MRC_LIMITS_H

#include "mrc_base.h"

/* Bounds and timers; all are taken at mrc_conn_new(). Zero means the default in the comment. */
struct mrc_limits {
	uint32_t channels_max;         /* live at once: 1024 */
	uint32_t frames_in_flight_max; /* of one path: 1024, power of two */
	uint32_t holds_max;            /* fragments waiting for a fence: 64 */
	uint32_t ranges_max;           /* gaps remembered, all messages of the conn: 4096;
					 * at least half of what all its paths may have in flight */
	uint32_t eager_bytes_max;      /* larger messages ask first: 32 KiB */
	uint32_t frag_bytes_max;       /* 128 KiB; at most MRC_FRAG_BYTES_MAX */
	uint64_t direct_bytes_min; /* shorter fragments travel in the frame, not by RDMA write: 0 */
	uint64_t path_window_bytes_min; /* 256 KiB */
	uint64_t path_window_bytes_max; /* 4 MiB */
	uint64_t suspect_floor_ns;      /* the per-path timer's floor: 1 ms */
	uint64_t suspect_ceiling_ns;    /* and its ceiling: 200 ms */
	uint64_t probe_interval_ns;     /* of an idle path: 20 ms */
	uint64_t probe_count;           /* answered before GOOD: 3 */
	uint64_t peer_silent_ns;        /* all paths silent this long: give them up: 10 s */
	uint64_t backoff_min_ns;        /* first reconnect delay: 5 ms */
	uint64_t backoff_max_ns;        /* largest: 1 s */
	uint64_t revive_ns;    /* how long a suspected path may come back by itself: 500 ms */
	uint64_t hold_good_ns; /* data carried this long resets the backoff: 1 s */
};

/* Puts the defaults in place of zeros and forces the rest into bounds that work together. */
void mrc_limits_complete(struct mrc_limits *limits);

#endif
