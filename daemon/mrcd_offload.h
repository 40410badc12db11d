/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_offload - calls that may block, run off the loop and answered on it
 *
 * Registering memory, connecting, fencing and resolving take from microseconds
 * to seconds; on the loop they would look to every peer like a dead host
 * (DESIGN 7.5). A job has two halves: run() on a thread of the pool, done() on
 * the loop afterwards. Jobs of one lane run one after the other in the order
 * they were given; lanes do not wait for each other, as long as threads are
 * left: a pool of N threads has at most N - reserved of them in jobs that are
 * marked slow, so that a fence never waits behind a connect that hangs.
 *
 * Ownership: a job is embedded in what it works for; the caller's memory, not
 *            to be touched or freed between submit and done.
 * Threads:   all calls on the loop; run() on any thread of the pool, so it
 *            reads and writes only what was handed to it for that time. Lanes
 *            are the loop's alone.
 */
#ifndef MRCD_OFFLOAD_H
#define MRCD_OFFLOAD_H

#include <event2/event.h>
#include <sys/queue.h>

#include "mrc_base.h"

struct mrcd_offload;
struct mrcd_job;

/*
 * Serializes its jobs: one runs only when done() of the one before has returned.
 * Embedded, by mrcd_lane_init(); to be freed when it is idle.
 */
struct mrcd_lane {
	TAILQ_HEAD(, mrcd_job) jobs; /* waiting */
	bool is_busy;                /* one of them runs, or is on its way to done() */
};

struct mrcd_job {
	TAILQ_ENTRY(mrcd_job) entry;
	struct mrcd_lane *lane;
	void (*run)(struct mrcd_job *job);
	void (*done)(struct mrcd_job *job); /* may free the job, and its lane when that is idle */
	bool is_slow;                       /* may take a second or more */
};

void mrcd_lane_init(struct mrcd_lane *lane);
/* No job waits or runs; asked in done(), that job is over. */
bool mrcd_lane_is_idle(const struct mrcd_lane *lane);

/* threads: 2 or more, and more than reserved. -ENOMEM, -EAGAIN (no thread), or what eventfd() says. */
int mrcd_offload_new(struct event_base *base, uint32_t threads, uint32_t reserved,
		     struct mrcd_offload **offload_out);
/* Waits for all jobs, done() included, then ends the threads. NULL is fine. Not from done(). */
void mrcd_offload_free(struct mrcd_offload *offload);
void mrcd_offload_submit(struct mrcd_offload *offload, struct mrcd_lane *lane,
			 struct mrcd_job *job);
/* Jobs given and not yet done. */
uint32_t mrcd_offload_pending(const struct mrcd_offload *offload);
/* Run the loop's half of what has ended until nothing is pending; for shutting down. Not from done(). */
void mrcd_offload_drain(struct mrcd_offload *offload);

#endif
