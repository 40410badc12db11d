/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_drain - drain the whole host and wait until nothing is left, or take that back
 *
 * Threads: one.  I/O: the control socket; the outcome goes to stdout, how far it is to
 * stderr when that is a terminal.
 */
#ifndef MRCCTL_DRAIN_H
#define MRCCTL_DRAIN_H

#include "mrcctl_drain_options.h"

/*
 * The exit status: 0 drained, MRCCTL_EXIT_LEFT when the time was over or SIGINT or SIGTERM
 * came first (the drain goes on then), MRCCTL_EXIT_REFUSED also when somebody took it back.
 */
int mrcctl_drain_host(const char *socket, const struct mrcctl_drain_options *options);
int mrcctl_undrain_host(const char *socket, bool is_json);

#endif
