/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_server - the receiving side: mrc-perf serve
 *
 * Offers the service until it is told to stop, to any number of channels at
 * once. The first message of each says what will come (struct perf_setup).
 * Counts of channels that have ended are kept for a while, by nonce, for a
 * sender that was cut off and asks later on another channel.
 *
 * Threads: one.
 */
#ifndef MRC_PERF_SERVER_H
#define MRC_PERF_SERVER_H

#include <stdio.h>

#include "mrc_perf_options.h"

/* Serve, report on `text` (and JSON on stdout), answer the exit code. */
int perf_server(const struct perf_options *options, FILE *text);

#endif
