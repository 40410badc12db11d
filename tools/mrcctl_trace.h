/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_trace - the command trace: gather, then show
 *
 * Tracing lasts as long as somebody asks. It is turned off here at the end,
 * also at SIGINT and SIGTERM, which end the gathering and not the showing; if
 * this process is killed the daemon does it by itself.
 *
 * Threads: one.  I/O: the control socket, stdout, stderr, the Perfetto file.
 */
#ifndef MRCCTL_TRACE_H
#define MRCCTL_TRACE_H

#include "mrcctl_trace_options.h"

/* Answers the exit status. */
int mrcctl_trace(const char *socket, const struct mrcctl_trace_options *options, bool is_json);

#endif
