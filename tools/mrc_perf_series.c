/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void perf_series_init(struct perf_series *series)
{
	memset(series, 0, sizeof(*series));
}

void perf_series_fini(struct perf_series *series)
{
	free(series->points);
	memset(series, 0, sizeof(*series));
}

void perf_series_baseline(struct perf_series *series, const struct perf_rails *rails)
{
	series->last = *rails;
	series->has_last = true;
}

/* Position of a rail's name, a new one if need be; PERF_RAILS_MAX when there is no room. */
static uint32_t series_rail(struct perf_series *series, const char *name)
{
	uint32_t i;

	for (i = 0; i < series->rail_count; i++)
		if (strcmp(series->rail_names[i], name) == 0)
			return i;
	if (i < PERF_RAILS_MAX) {
		memcpy(series->rail_names[i], name, PERF_RAIL_NAME_BYTES);
		series->rail_count++;
	}
	return i;
}

static uint64_t rails_bytes_before(const struct perf_rails *rails, const char *name)
{
	for (uint32_t i = 0; i < rails->count; i++)
		if (strcmp(rails->rails[i].name, name) == 0)
			return rails->rails[i].bytes_sent;
	return 0;
}

int perf_series_add(struct perf_series *series, const struct perf_point *point,
		    const struct perf_rails *rails)
{
	bool has_rails = rails && series->has_last;
	struct perf_point *kept;

	if (series->point_count == series->point_count_max) {
		uint32_t count_max = series->point_count_max ? series->point_count_max * 2 : 64;
		struct perf_point *points = realloc(series->points, count_max * sizeof(*points));

		if (!points)
			return -ENOMEM;
		series->points = points;
		series->point_count_max = count_max;
	}
	kept = &series->points[series->point_count++];
	*kept = *point;
	kept->has_rails = has_rails;
	memset(kept->is_rail, 0, sizeof(kept->is_rail));
	memset(kept->rail_bytes, 0, sizeof(kept->rail_bytes));
	for (uint32_t i = 0; has_rails && i < rails->count; i++) {
		uint64_t now_bytes = rails->rails[i].bytes_sent;
		uint64_t before_bytes = rails_bytes_before(&series->last, rails->rails[i].name);
		uint32_t at = series_rail(series, rails->rails[i].name);

		if (at == PERF_RAILS_MAX)
			continue;
		kept->is_rail[at] = true;
		kept->rail_bytes[at] =
			now_bytes >= before_bytes ? now_bytes - before_bytes : now_bytes;
	}
	if (rails)
		perf_series_baseline(series, rails);
	return 0;
}
