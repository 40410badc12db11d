/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_lookout - which sockets have something, asked without a turn of the event loop
 *
 * While a worker looks for work (mrc_look.h) each look costs what it costs to
 * be awake. A turn of libevent is two system calls and the order of its timers;
 * this is one system call. The sockets are watched by the event loop as well:
 * what is not taken here is taken there.
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_LOOKOUT_H
#define MRCD_LOOKOUT_H

#include <stdbool.h>
#include <stdint.h>

struct mrcd_lookout;

/* What is called when a descriptor can be read; embedded in its owner. */
struct mrcd_lookout_source {
	void (*on_readable)(struct mrcd_lookout_source *source);
};

/* -errno */
int mrcd_lookout_new(struct mrcd_lookout **lookout_out);
void mrcd_lookout_free(struct mrcd_lookout *lookout);

/*
 * `source` stays where it is until a mrcd_lookout_take() in which
 * mrcd_lookout_remove() was called is over: it may have been found before. A descriptor that
 * cannot be added is watched by the event loop alone. is_edge: one that nobody
 * reads; it is found once each time it is written. NULL lookout: nothing.
 */
void mrcd_lookout_add(struct mrcd_lookout *lookout, int fd, struct mrcd_lookout_source *source,
		      bool is_edge);
void mrcd_lookout_remove(struct mrcd_lookout *lookout, int fd);

/* Call on_readable() of those that can be read, some of them at a time. Answers how many. */
uint32_t mrcd_lookout_take(struct mrcd_lookout *lookout);

#endif
