/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_gap - have the daemon trace our own channel, and gather what it tells
 *
 * Our channel is the one that `channels` shows with our pid and service. The
 * daemon is asked while the messages flow, without waiting for its answers, and
 * asked to stop at the end.
 *
 * Units:     ns on the caller's clock.
 * Ownership: the control and the trace are the gap's; service is lent.
 * Threads:   one.  I/O: a non-blocking Unix stream socket.
 */
#ifndef MRC_PERF_GAP_H
#define MRC_PERF_GAP_H

#include "mrc_perf_control.h"
#include "mrc_perf_options.h"
#include "mrc_trace.h"

#define PERF_GAP_MESSAGES_MAX 200000U

enum perf_gap_state {
	PERF_GAP_IDLE,
	PERF_GAP_FINDING,  /* our channel */
	PERF_GAP_STARTING, /* tracing has been asked for */
	PERF_GAP_ON,
	PERF_GAP_ENDING,   /* the last messages are read */
	PERF_GAP_STOPPING, /* tracing has been asked to end */
	PERF_GAP_ENDED,
	PERF_GAP_FAILED, /* error says why */
};

struct perf_gap {
	struct perf_control control;
	struct mrc_trace trace;
	enum perf_gap_state state;
	const char *service;
	int64_t pid;
	uint64_t every;
	uint64_t size_bytes; /* of the messages that count */
	uint64_t channel;
	char peer[MRC_TRACE_NAME_BYTES];
	uint64_t ask_ns;      /* when the next question is due */
	uint64_t deadline_ns; /* for the answer to the last one */
	uint32_t looks_left;  /* while ending */
	char error[2 * PERF_ERROR_BYTES];
};

/* -ENOMEM */
int perf_gap_init(struct perf_gap *gap, const struct perf_options *options);
void perf_gap_fini(struct perf_gap *gap);

/* The channel is open: find it and have it traced. Once; later calls change nothing. */
void perf_gap_begin(struct perf_gap *gap, uint64_t now_ns);
/* The last message has been answered: read the rest and end the tracing. Once, too. */
void perf_gap_end(struct perf_gap *gap, uint64_t now_ns);

/* Read what has come and ask what is due. */
void perf_gap_step(struct perf_gap *gap, uint64_t now_ns);
/* When to step though nothing came; UINT64_MAX: no need. */
uint64_t perf_gap_due_ns(const struct perf_gap *gap);

#endif
