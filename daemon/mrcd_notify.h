/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_notify - what the service manager is told: sd_notify(3), but never for longer than we can wait
 *
 * The loop that speaks is the one that data waits for, and libsystemd's functions
 * wait for as long as the manager reads nothing. Here each word has its patience,
 * and one that was not taken in it is not said.
 *
 * Where NOTIFY_SOCKET names nothing, nobody listens, and nothing happens.
 *
 * Units: ns.  Threads: any.
 */
#ifndef MRCD_NOTIFY_H
#define MRCD_NOTIFY_H

#include "mrc_base.h"

#define MRCD_NOTIFY_FDS_MAX 253U /* of one message: the kernel's bound */

/*
 * 1: it was taken, 0: nobody listens, -EAGAIN: not taken in that time; other negative errno.
 * patience_ns 0: now or not at all.
 */
int mrcd_notify(uint64_t patience_ns, const char *words);
/* The same with descriptors, which stay the caller's; MRCD_NOTIFY_FDS_MAX at most. */
int mrcd_notify_fds(uint64_t patience_ns, const char *words, const int *fds, uint32_t count);
/*
 * Wait until the manager has read all that was said so far. 0: it has, or nobody listens;
 * -ETIMEDOUT: it has not; other negative errno.
 */
int mrcd_notify_barrier(uint64_t patience_ns);

#endif
