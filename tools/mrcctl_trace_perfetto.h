/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_trace_perfetto - traced messages in the Trace Event Format, for a viewer
 *
 * ui.perfetto.dev, chrome://tracing and speedscope open the file. Process 1 is
 * the sending host, process 2 the receiving one. Each has as many threads
 * ("lanes") as messages were under way at once, so that no two overlap in one.
 * In the sender's lane a slice is the whole message and those within it are its
 * stages; in the receiver's lane are the stages after it was placed. An instant
 * marks the local completion.
 *
 * A stage that came out below 0, by the error of the clocks, is no slice a
 * viewer could draw: its length is in the args of the message, as it is.
 *
 * Units:   ts and dur are us, in steps of 1/4096, rounded from ns; 0 is the earliest moment of all,
 *          which otherData has as base_ns on the sender's CLOCK_MONOTONIC.
 * Threads: one.  I/O: writes to `out`.
 */
#ifndef MRCCTL_TRACE_PERFETTO_H
#define MRCCTL_TRACE_PERFETTO_H

#include <stdio.h>

#include "mrc_trace.h"

#define MRCCTL_TRACE_PID_SENDER   1
#define MRCCTL_TRACE_PID_RECEIVER 2

/* `host` names the sending one. 0, or -EIO: `out` took not all; -ENOMEM. */
int mrcctl_trace_perfetto(const struct mrc_trace *trace, const char *host, FILE *out);

#endif
