/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_health - early warning: which rails do badly, and which will leave service
 *
 * Four times a second the counters of every path are judged (mrc_health.h, which
 * says what counts as evidence and what does not). A rail is judged by the paths
 * over it that carried something: its state is that of the middle one, for a
 * fault of the rail shows in all of them, and a peer's fault in one. Of an even
 * number the better half decides. With a single path the two are one.
 *
 * Each change is logged once, with its numbers. Nothing follows for traffic: what
 * is slow carries less by itself, since fragments are pulled.
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_HEALTH_H
#define MRCD_HEALTH_H

#include <jansson.h>

#include "mrcd_worker.h"

struct mrcd_health;

/* Begin to judge. -ENOMEM. */
int mrcd_health_new(struct mrcd_worker *worker, struct mrcd_health **health_out);
void mrcd_health_free(struct mrcd_health *health);

/* One judgement of all paths and rails, as the timer makes it. */
void mrcd_health_judge(struct mrcd_worker *worker, uint64_t now_ns);

/* Add an object "health": score, state, since when, the numbers, and "why" in words. */
void mrcd_health_describe_rail(const struct mrcd_rail *rail, json_t *object);
void mrcd_health_describe_path(const struct mrc_health_view *view, uint64_t now_ns, json_t *object);

/* "1.2% of what comes is damaged, left service 2 times within two hours"; "" when it is good and nothing is wrong. */
const char *mrcd_health_why(const struct mrc_health_view *view, char *text, size_t text_bytes);

#endif
