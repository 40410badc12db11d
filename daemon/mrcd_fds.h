/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_fds - how many descriptors programs may have, so that the daemon has enough for itself
 *
 * A program has MRCD_PARCEL_FDS_MAX of them. Once all are used up no path could be opened any
 * more, and no state be left; so some are kept: as many as this configuration may need, or half
 * of what the process may have (RLIMIT_NOFILE), where that is less.
 *
 * The kernel gives the lowest number that is free, so a number tells how many there are.
 *
 * Threads: any.
 */
#ifndef MRCD_FDS_H
#define MRCD_FDS_H

#include "mrcd_conf.h"

/* What the daemon may need itself. */
uint32_t mrcd_fds_own(const struct mrcd_conf *conf);
/* The first number that no program gets. */
uint64_t mrcd_fds_end(const struct mrcd_conf *conf);
/* Are there so many for a program, below that number? */
bool mrcd_fds_have_room(uint64_t fd_end, uint32_t count);

#endif
