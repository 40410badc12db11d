/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_sigbus - survive memory that a client took away under us
 *
 * Seals keep a client from shrinking its memfds, not from punching holes in
 * them; where the kernel cannot fill the hole (huge pages, memory limits) our
 * next look raises SIGBUS. The handler puts anonymous memory over the whole
 * mapping, so that each mapping faults at most once, marks it, and rings a
 * bell; the owner then ends that client. A SIGBUS anywhere else kills the
 * process as ever.
 *
 * System calls do not raise the signal: they answer -EFAULT. Whoever hands
 * client memory to one must take that as the client's fault, and report it.
 *
 * The handler and its table are the process's, as signals are: this is the one
 * place with a global. Ranges are added and removed by any thread.
 */
#ifndef MRCD_SIGBUS_H
#define MRCD_SIGBUS_H

#include "mrc_base.h"

#define MRCD_SIGBUS_RANGES_MAX 16384U

/* Install the handler; again is harmless. Negative errno of sigaction(). */
int mrcd_sigbus_install(void);

/*
 * Watch [addr, addr + len): when it faults, 1 is added to the eventfd
 * bell_fd (-1: none). *slot_out names it. -ENOSPC: the table is full.
 */
int mrcd_sigbus_watch(void *addr, size_t len_bytes, int bell_fd, uint32_t *slot_out);
/* Before the mapping goes. */
void mrcd_sigbus_unwatch(uint32_t slot);
/*
 * A system call answered -EFAULT for client memory at `addr`: as if the daemon had looked at
 * it itself. False: nobody watches it.
 */
bool mrcd_sigbus_report(const void *addr);
/* Has it faulted since it is watched? */
bool mrcd_sigbus_has_hit(uint32_t slot);

#endif
