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

/* From one moment of a message to a later one: X(enumerator, name, from, to) */
#define MRCD_STAGES(X)                                                                      \
	X(RING, "ring", SUBMITTED, FETCHED)      /* in the client's ring */                 \
	X(WAIT, "wait", FETCHED, FIRST_SENT)     /* for credit, and for a path with room */ \
	X(SEND, "send", FIRST_SENT, LAST_SENT)   /* its fragments are being posted */       \
	X(TRANSIT, "transit", LAST_SENT, PLACED) /* the last one is under way */            \
	X(NOTICE, "notice", PLACED, VISIBLE)     /* until the receiving program takes it */ \
	X(VERDICT, "verdict", VISIBLE, VERDICT)  /* until it has made up its mind */        \
	X(LOCAL, "local", FIRST_SENT, LOCAL)     /* until RDMA would have called it done */ \
	X(WHOLE, "whole", FETCHED, VERDICT)

enum mrcd_stage {
#define STAGE(id, name, from, to) MRCD_STAGE_##id,
	MRCD_STAGES(STAGE)
#undef STAGE
		MRCD_STAGE_COUNT
};

struct mrcd_traces;
struct mrcd_peer;

/* -ENOMEM. */
int mrcd_traces_new(struct mrcd_worker *worker, struct mrcd_traces **traces_out);
/* NULL is fine. Before the clients and the base go. */
void mrcd_traces_free(struct mrcd_traces *traces);

/* The peer goes: ends the traces of channels to it, which may have outlived these. */
void mrcd_traces_forget(struct mrcd_traces *traces, const struct mrcd_peer *peer);

/* MRC_ACT_TRACED. Counted in its stages; kept only when its channel is traced. */
void mrcd_trace_add(struct mrcd_traces *traces, const struct mrcd_peer *peer,
		    const struct mrc_act_trace *act);

const char *mrcd_stage_name(enum mrcd_stage stage);
/*
 * How long that stage took, of all messages to peers that were traced. Those whose two
 * ends are of two hosts are right to the error of the clocks; below 0 is counted as 0.
 */
const struct mrc_histogram *mrcd_trace_stage(const struct mrcd_traces *traces,
					     enum mrcd_stage stage);

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
