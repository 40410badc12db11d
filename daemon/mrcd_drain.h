/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_drain - this host is being drained, before maintenance
 *
 * From then on the daemon takes no new service, connect or incoming channel
 * (MRC_STATUS_DRAINING). Channels that are open go on, in both directions, until
 * their programs close them; programs here and at peers are told, so that they
 * can. The host is drained when no channel is left: then nothing is under way,
 * and nobody waits for a word of ours.
 *
 * It outlives a restart that keeps programs (mrcd_handover.h), and ends with the
 * state: a daemon that begins anew is not draining.
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_DRAIN_H
#define MRCD_DRAIN_H

#include <jansson.h>

#include "mrcd_worker.h"

static inline bool mrcd_drain_is_on(const struct mrcd_worker *worker)
{
	return worker->drain_since_ns != 0;
}

/* For how long, at least 1 when it is on at all; 0: it is not. */
static inline uint64_t mrcd_drain_age_ns(const struct mrcd_worker *worker)
{
	return mrcd_drain_is_on(worker) ? MRC_MAX(worker->now_ns - worker->drain_since_ns, 1) : 0;
}

/* Begin it, or take it back; nothing when it is so already. */
void mrcd_drain_set(struct mrcd_worker *worker, bool is_on);

/*
 * {"host", "draining", "drained", "for_ns", "programs", "channels", "messages", "bytes"}: how far it is.
 * Messages are those that programs here wait for an answer to. A new reference.
 */
json_t *mrcd_drain_json(const struct mrcd_worker *worker);

#endif
