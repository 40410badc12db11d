/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_reading.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "mrcd_log.h"
#include "mrcd_nic.h"
#include "mrcd_offload.h"
#include "mrcd_worker.h"

#define THREADS 2U /* the fewest that a pool has */

struct mrcd_readings {
	struct mrcd_offload *offload; /* ours */
	struct mrcd_lane lane;        /* one file after the other */
};

/* One that was asked for. Owns itself, until it is done. */
struct asked {
	struct mrcd_job job; /* first */
	char file[512];
	struct mrcd_reading reading;
	mrcd_reading_fn fn;
	void *context;
};

static void complain(void *context, const char *line)
{
	struct mrcd_reading *reading = context;

	mrcd_err("%s", line);
	if (reading->error[0] == '\0')
		snprintf(reading->error, sizeof(reading->error), "%s", line);
}

void mrcd_reading_now(const char *file, struct mrcd_reading *reading_out)
{
	*reading_out = (struct mrcd_reading){0};
	reading_out->r = mrcd_conf_load(file, complain, reading_out, &reading_out->conf);
	if (reading_out->r < 0)
		reading_out->conf = NULL;
	else
		reading_out->places_error =
			mrcd_nic_find_places(reading_out->conf, reading_out->places);
}

static void run(struct mrcd_job *job)
{
	struct asked *asked = (struct asked *)job;

	mrcd_reading_now(asked->file, &asked->reading);
}

static void done(struct mrcd_job *job)
{
	struct asked *asked = (struct asked *)job;

	asked->fn(asked->context, &asked->reading);
	free(asked);
}

static int readings_new(struct mrcd_worker *worker)
{
	struct mrcd_readings *readings = calloc(1, sizeof(*readings));
	int r;

	if (readings == NULL)
		return -ENOMEM;
	r = mrcd_offload_new(worker->base, THREADS, 0, &readings->offload);
	if (r < 0) {
		free(readings);
		return r;
	}
	mrcd_lane_init(&readings->lane);
	worker->readings = readings;
	return 0;
}

int mrcd_reading_ask(struct mrcd_worker *worker, const char *file, mrcd_reading_fn fn,
		     void *context)
{
	struct asked *asked;
	int r = worker->readings != NULL ? 0 : readings_new(worker);

	if (r < 0)
		return r;
	asked = calloc(1, sizeof(*asked));
	if (asked == NULL)
		return -ENOMEM;
	snprintf(asked->file, sizeof(asked->file), "%s", file);
	asked->fn = fn;
	asked->context = context;
	asked->job = (struct mrcd_job){.run = run, .done = done, .is_slow = true};
	mrcd_offload_submit(worker->readings->offload, &worker->readings->lane, &asked->job);
	return 0;
}

void mrcd_readings_free(struct mrcd_readings *readings)
{
	if (readings == NULL)
		return;
	mrcd_offload_free(readings->offload);
	free(readings);
}
