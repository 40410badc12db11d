/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_rtt.h"

/* So that eight of the largest samples are far from the end of 64 bits. */
#define QUEUE_BYTES_MAX (256ULL * 1024 * 1024)
#define QUEUE_NS_MAX    (10 * MRC_S)

void mrc_rtt_init(struct mrc_rtt *rtt)
{
	*rtt = (struct mrc_rtt){.min_ns = MRC_NEVER, .window_min_ns = MRC_NEVER};
}

void mrc_rtt_sample(struct mrc_rtt *rtt, uint64_t sample_ns, uint32_t bytes, uint64_t now_ns)
{
	uint64_t off_ns;

	if (rtt->smoothed_ns == 0) {
		rtt->smoothed_ns = MRC_MAX(sample_ns, 1);
		rtt->deviation_ns = sample_ns / 2;
		rtt->window_start_ns = now_ns;
	} else {
		off_ns = sample_ns > rtt->smoothed_ns ? sample_ns - rtt->smoothed_ns
						      : rtt->smoothed_ns - sample_ns;
		rtt->deviation_ns = (3 * rtt->deviation_ns + off_ns) / 4;
		rtt->smoothed_ns = MRC_MAX((7 * rtt->smoothed_ns + sample_ns) / 8, 1);
	}
	if (now_ns - rtt->window_start_ns >= MRC_RTT_MIN_WINDOW_NS) {
		rtt->min_ns = rtt->window_min_ns;
		rtt->min_bytes = rtt->window_min_bytes;
		rtt->window_min_ns = MRC_NEVER;
		rtt->window_start_ns = now_ns;
	}
	if (sample_ns < rtt->window_min_ns) {
		rtt->window_min_ns = sample_ns;
		rtt->window_min_bytes = bytes;
	}
	if (sample_ns < rtt->min_ns) {
		rtt->min_ns = sample_ns;
		rtt->min_bytes = bytes;
	}
}

uint64_t mrc_rtt_timeout_ns(const struct mrc_rtt *rtt, uint64_t floor_ns, uint64_t ceiling_ns)
{
	uint64_t timeout_ns;

	if (rtt->smoothed_ns == 0)
		return ceiling_ns;
	timeout_ns = rtt->smoothed_ns + 4 * rtt->deviation_ns;
	timeout_ns = MRC_MAX(timeout_ns, floor_ns);
	return MRC_MIN(timeout_ns, MRC_MAX(ceiling_ns, floor_ns));
}

void mrc_rate_init(struct mrc_rate *rate)
{
	*rate = (struct mrc_rate){0};
}

void mrc_rate_sample(struct mrc_rate *rate, uint64_t bytes, uint64_t delivered_then,
		     uint64_t then_ns, bool is_app_limited, uint64_t now_ns)
{
	uint64_t span_ns = now_ns - then_ns;
	uint64_t sample;

	rate->delivered_bytes += bytes;
	rate->delivered_ns = now_ns;
	if (span_ns < 10 * MRC_US || rate->delivered_bytes <= delivered_then)
		return; /* too short to divide by */
	sample = mrc_mul_div(rate->delivered_bytes - delivered_then, MRC_S, span_ns);
	if (is_app_limited && sample <= rate->best)
		return;
	if (rate->window_start_ns == 0)
		rate->window_start_ns = now_ns;
	if (now_ns - rate->window_start_ns >= MRC_RATE_WINDOW_NS) {
		rate->best = rate->window_best;
		rate->window_best = 0;
		rate->window_start_ns = now_ns;
	}
	rate->window_best = MRC_MAX(rate->window_best, sample);
	rate->best = MRC_MAX(rate->best, sample);
}

void mrc_queue_init(struct mrc_queue *queue)
{
	*queue = (struct mrc_queue){0};
}

void mrc_queue_sample(struct mrc_queue *queue, uint64_t bytes, uint64_t over_ns, uint64_t now_ns)
{
	uint64_t kib = MRC_MIN(bytes, QUEUE_BYTES_MAX) / 1024;

	if (bytes < MRC_QUEUE_BYTES_MIN)
		return;
	queue->kib_ns = queue->kib_ns - queue->kib_ns / 8 + kib * MRC_MIN(over_ns, QUEUE_NS_MAX);
	queue->kib_kib = queue->kib_kib - queue->kib_kib / 8 + kib * kib;
	queue->at_ns = now_ns;
}

uint64_t mrc_queue_ns(const struct mrc_queue *queue, uint64_t bytes)
{
	if (queue->kib_kib == 0)
		return 0;
	return mrc_mul_div(queue->kib_ns, bytes, queue->kib_kib * 1024);
}
