/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_limits.h"

#define DEFAULT(field, value)                    \
	do {                                     \
		if (limits->field == 0)          \
			limits->field = (value); \
	} while (0)

static uint32_t power_of_two_above(uint32_t v)
{
	uint32_t p = 1;

	while (p < v && p < 1U << 20)
		p <<= 1;
	return p;
}

void mrc_limits_complete(struct mrc_limits *limits)
{
	DEFAULT(channels_max, 1024);
	DEFAULT(frames_in_flight_max, 1024);
	DEFAULT(holds_max, 64);
	DEFAULT(ranges_max, 4096);
	DEFAULT(eager_bytes_max, 32 * 1024);
	DEFAULT(frag_bytes_max, 128 * 1024);
	DEFAULT(path_window_bytes_min, 256 * 1024);
	DEFAULT(path_window_bytes_max, 4 * 1024 * 1024);
	DEFAULT(suspect_floor_ns, MRC_MS);
	DEFAULT(suspect_ceiling_ns, 200 * MRC_MS);
	DEFAULT(probe_interval_ns, 20 * MRC_MS);
	DEFAULT(probe_count, 3);
	DEFAULT(peer_silent_ns, 10 * MRC_S);
	DEFAULT(backoff_min_ns, 5 * MRC_MS);
	DEFAULT(backoff_max_ns, MRC_S);
	DEFAULT(revive_ns, 500 * MRC_MS);
	DEFAULT(hold_good_ns, MRC_S);

	limits->channels_max = MRC_MIN(limits->channels_max, 16384);
	limits->frames_in_flight_max =
		power_of_two_above(MRC_MAX(limits->frames_in_flight_max, 64));
	limits->ranges_max = MRC_MAX(limits->ranges_max, 16);
	limits->frag_bytes_max = MRC_MIN(limits->frag_bytes_max, MRC_FRAG_BYTES_MAX);
	limits->frag_bytes_max = MRC_MAX(limits->frag_bytes_max, 1024);
	limits->path_window_bytes_min =
		MRC_MAX(limits->path_window_bytes_min, (uint64_t)2 * limits->frag_bytes_max);
	limits->path_window_bytes_max =
		MRC_MAX(limits->path_window_bytes_max, limits->path_window_bytes_min);
	limits->suspect_ceiling_ns = MRC_MAX(limits->suspect_ceiling_ns, limits->suspect_floor_ns);
	limits->backoff_max_ns = MRC_MAX(limits->backoff_max_ns, limits->backoff_min_ns);
}
