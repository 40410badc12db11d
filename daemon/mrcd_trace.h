/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_trace - the moments of messages, gathered for who asks (mrcctl trace)
 *
 * A trace is of what one channel's client on this host sends, one message in
 * `every`. It lasts as long as somebody asks for what it gathered: MRCD_TRACE_LEASE_NS
 * after the last question it ends, so that nobody has to end it. What is finished
 * waits in a ring; who does not ask in time loses the oldest.
 *
 * Units:     nanoseconds.
 * Ownership: the worker owns the traces.
 * Threads:   the worker's loop.
 */
#ifndef MRCD_TRACE_H
#define MRCD_TRACE_H

#include <jansson.h>

#include "mrcd_worker.h"

#define MRCD_TRACE_LEASE_NS  (5 * MRC_S)
#define MRCD_TRACES_MAX      16U   /* channels traced at a time */
#define MRCD_TRACE_KEPT      4096U /* finished messages of one of them; a power of two */
#define MRCD_TRACE_TOLD_MAX  64U   /* in one answer: it is made on the data path's loop */
#define MRCD_TRACE_EVERY_MAX 1000000U

struct mrcd_traces;
struct mrcd_peer;

/* -ENOMEM. */
int mrcd_traces_new(struct mrcd_worker *worker, struct mrcd_traces **traces_out);
/* NULL is fine. Before the clients and the base go. */
void mrcd_traces_free(struct mrcd_traces *traces);

/* MRC_ACT_TRACED. Of a channel that is not traced any more it is dropped. */
void mrcd_trace_add(struct mrcd_traces *traces, const struct mrcd_peer *peer,
		    const struct mrc_act_trace *act);

/*
 * The command {"channel": N, "peer": NAME, "every": N, "since": SEQ}: begin or
 * renew a trace (every 0: end it), and tell what has finished since: "next" goes on
 * where an earlier trace ended. "ended" says that the channel is no more; then
 * the trace is not renewed. The answer's
 * result, a new reference; or NULL and *error_out, likewise one, a text that says
 * what is allowed.
 */
json_t *mrcd_trace_ask(struct mrcd_traces *traces, const json_t *command, json_t **error_out);

#endif
