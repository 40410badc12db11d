/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_loop - the clock, signals, and the one place where mrc-perf sleeps
 *
 * SIGINT and SIGTERM are blocked and come through a descriptor, so they are
 * noticed between two turns and never in the middle of one.
 *
 * Units: ns of CLOCK_MONOTONIC.
 */
#ifndef MRC_PERF_LOOP_H
#define MRC_PERF_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include <mrc/client.h>

#define PERF_US 1000ULL
#define PERF_MS 1000000ULL
#define PERF_S  1000000000ULL

struct perf_loop {
	int signal_fd;
	uint32_t signal_count; /* SIGINT and SIGTERM so far */
	uint32_t busy_turns;   /* turns that found events at once */
	uint64_t spin_ns;      /* look this long for events before sleeping */
};

int perf_loop_init(struct perf_loop *loop, uint64_t spin_ns);
void perf_loop_fini(struct perf_loop *loop);

uint64_t perf_now_ns(void);
uint64_t perf_wall_ns(void); /* since 1970; may jump */

/*
 * Take events from `client` (NULL: none), and if there are none sleep until
 * there are, a signal comes, control_fd or trace_fd (-1: none) is readable, or
 * deadline_ns. Answers mrc_poll()'s answer: events, 0, or -ECONNRESET.
 * *control_ready_out (may be NULL) says whether control_fd was found readable.
 */
int perf_loop_turn(struct perf_loop *loop, struct mrc_client *client, int control_fd, int trace_fd,
		   uint64_t deadline_ns, struct mrc_event *events, int events_max,
		   bool *control_ready_out);

#endif
