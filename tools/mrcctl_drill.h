/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_drill - the command drill: break a rail for a while, look, say what came of it
 *
 * The daemon breaks and mends; it does so too when nobody asks it any more, so
 * this process may be killed at any time. SIGINT and SIGTERM end the fault at
 * once.
 *
 * Threads: one.  I/O: the control socket, the terminal, mrc-perf, the picture.
 */
#ifndef MRCCTL_DRILL_H
#define MRCCTL_DRILL_H

#include "mrcctl_drill_options.h"

/* Answers the exit status. */
int mrcctl_drill(const char *socket, const struct mrcctl_drill_options *options, bool is_json);

#endif
