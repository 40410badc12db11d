/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_series - what happened in each interval of a run, and on each rail
 *
 * Units:     ns since the run began, bytes.
 * Ownership: points are the series'; they grow at interval ends, not on the data path.
 * Threads:   one caller at a time.  I/O, time: none.
 */
#ifndef MRC_PERF_SERIES_H
#define MRC_PERF_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#define PERF_RAILS_MAX       32U
#define PERF_RAIL_NAME_BYTES 64U

/* The counters of all rails of a daemon at one moment. */
struct perf_rails {
	uint32_t count;
	struct {
		char name[PERF_RAIL_NAME_BYTES];
		uint64_t bytes_sent;
	} rails[PERF_RAILS_MAX];
};

struct perf_point {
	uint64_t t_ns;    /* end of the interval */
	uint64_t span_ns; /* its length */
	uint64_t bytes;
	uint64_t messages;
	uint64_t stall_ns_max;
	bool has_rails;
	bool is_rail[PERF_RAILS_MAX]; /* whether this rail was seen in this interval */
	uint64_t rail_bytes[PERF_RAILS_MAX];
};

struct perf_series {
	struct perf_point *points;
	uint32_t point_count;
	uint32_t point_count_max;
	uint32_t rail_count; /* names ever seen; their order is the order of rail_bytes */
	char rail_names[PERF_RAILS_MAX][PERF_RAIL_NAME_BYTES];
	struct perf_rails last; /* of the sample before */
	bool has_last;
};

void perf_series_init(struct perf_series *series);
void perf_series_fini(struct perf_series *series);

/* Take a sample that ends no interval: what later ones are compared with. */
void perf_series_baseline(struct perf_series *series, const struct perf_rails *rails);

/*
 * Add a point; with `rails` (may be NULL) what each rail sent since the sample
 * before. A counter that went back is a daemon that was restarted: it counts
 * from 0. -ENOMEM: the point is not kept.
 */
int perf_series_add(struct perf_series *series, const struct perf_point *point,
		    const struct perf_rails *rails);

#endif
