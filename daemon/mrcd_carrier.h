/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_carrier - which rails have a carrier, by event and by asking
 *
 * Listens to rtnetlink for links and addresses. A message is the occasion, the
 * kernel's present answer is what counts: so lost messages (ENOBUFS), renamed
 * and re-created interfaces need no care of their own. While a rail is down it
 * is also asked now and then: missing an event must not keep a rail away.
 *
 * Keeps rail->ifindex; tells changes with mrcd_rail_on_carrier() and, when an
 * interface or address came or went, ops->refresh(); every message of a rail's
 * interface is ops->link_changed().
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_CARRIER_H
#define MRCD_CARRIER_H

#include "mrcd_worker.h"

struct mrcd_carrier;

/*
 * Begin to listen, and set is_carrier_up and ifindex of every rail to what is
 * so now. Nothing is told before the loop runs. Negative errno: no rtnetlink.
 */
int mrcd_carrier_new(struct mrcd_worker *worker, struct mrcd_carrier **carrier_out);
void mrcd_carrier_free(struct mrcd_carrier *carrier);

/* A rail that has come since, which is not told of it. Without a worker->carrier it stays as it was known last. */
void mrcd_carrier_add(struct mrcd_rail *rail);

/* Ask for all rails now and tell what changed: a drill has taken a carrier away, or given it back. */
void mrcd_carrier_look(struct mrcd_carrier *carrier);

/*
 * Does this rail have a carrier, as far as the kernel has worked it out? Needs
 * no event to be read. IFF_RUNNING follows the carrier by a work queue of the
 * kernel's, at once on a machine with time to spare. An ioctl of 1.5 us; tells
 * nobody. Without a worker->carrier: what was known last.
 */
bool mrcd_carrier_ask(struct mrcd_rail *rail);

/* What the interface runs at, in bits per second; 0: it does not say. */
uint64_t mrcd_carrier_speed(const char *interface);

#endif
