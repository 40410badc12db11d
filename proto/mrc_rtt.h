/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_rtt - one path's delay and delivery rate, estimated from its acknowledgements
 *
 * Delay: smoothed mean and deviation as in RFC 6298 section 2, and the least of
 * the last seconds. Rate: bytes acknowledged between two acknowledgements a
 * round trip apart (draft-cheng-iccrg-delivery-rate-estimation), largest of
 * the last two windows, so that a fall is believed after a window at most; of a
 * path with room left, what mrc_path.c's round_sample() makes of a round trip.
 * Queue: how the delay grows with what is in flight, which the rate does not
 * say: a rail behind a token bucket is as fast as its best until the bucket is
 * empty, and slow from then on.
 *
 * Units: ns; bytes per second.  I/O, time: none.
 */
#ifndef MRC_RTT_H
#define MRC_RTT_H

#include "mrc_base.h"

#define MRC_RTT_MIN_WINDOW_NS (5 * MRC_S)    /* how long a least delay is believed */
#define MRC_RATE_WINDOW_NS    (100 * MRC_MS) /* how long a largest rate is */
#define MRC_QUEUE_BYTES_MIN   4096U          /* fewer in flight say nothing about a queue */

struct mrc_rtt {
	uint64_t smoothed_ns; /* 0: no sample yet */
	uint64_t deviation_ns;
	uint64_t min_ns; /* of this window and the last */
	uint64_t window_min_ns;
	uint32_t min_bytes; /* length of the frame that met min_ns */
	uint32_t window_min_bytes;
	uint64_t window_start_ns;
};

struct mrc_rate {
	uint64_t delivered_bytes; /* acknowledged since the epoch began */
	uint64_t delivered_ns;    /* when that last grew */
	uint64_t best;            /* bytes per second; 0: not known */
	uint64_t window_best;
	uint64_t window_start_ns;
};

/* Least squares through the origin over the last samples or so: sums that fade by an eighth. */
struct mrc_queue {
	uint64_t kib_ns;  /* of bytes in flight, in KiB, times delay */
	uint64_t kib_kib; /* of their squares; 0: no sample yet */
	uint64_t at_ns;   /* when the last one was */
};

void mrc_rtt_init(struct mrc_rtt *rtt);
void mrc_rtt_sample(struct mrc_rtt *rtt, uint64_t sample_ns, uint32_t bytes, uint64_t now_ns);
/* How long an answer may take before it is late: mean + 4 deviations, within the bounds. */
uint64_t mrc_rtt_timeout_ns(const struct mrc_rtt *rtt, uint64_t floor_ns, uint64_t ceiling_ns);

void mrc_rate_init(struct mrc_rate *rate);
/*
 * `bytes` more were acknowledged; the frame that proves it was sent when
 * `delivered_then` bytes had been, at `then_ns`. When the path was not kept
 * full (`is_app_limited`) a sample can only raise the estimate.
 */
void mrc_rate_sample(struct mrc_rate *rate, uint64_t bytes, uint64_t delivered_then,
		     uint64_t then_ns, bool is_app_limited, uint64_t now_ns);

void mrc_queue_init(struct mrc_queue *queue);
/* A frame with `bytes` in flight, its own included, took `over_ns` longer than an idle path takes. */
void mrc_queue_sample(struct mrc_queue *queue, uint64_t bytes, uint64_t over_ns, uint64_t now_ns);
/* How much longer than an idle path it takes with `bytes` in flight; 0 without a sample. */
uint64_t mrc_queue_ns(const struct mrc_queue *queue, uint64_t bytes);

#endif
