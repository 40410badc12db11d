/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_carrier - which rails have a carrier, by event and by asking
 *
 * Listens to rtnetlink for links and addresses. A message is the occasion, the
 * kernel's present answer is what counts: so lost messages (ENOBUFS), renamed
 * and re-created interfaces need no care of their own. While a rail is down it
 * is also asked now and then: missing an event must not keep a rail away.
 *
 * Tells changes with mrcd_rail_on_carrier(). When an interface or address came or
 * went it has rails looked for anew (mrcd_nic.h), and what is found then is
 * ops->refresh(); every message of a rail's interface is ops->link_changed(), and
 * has its card asked again.
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_CARRIER_H
#define MRCD_CARRIER_H

#include "mrcd_worker.h"

struct mrcd_carrier;

/*
 * Begin to listen, have worker->nics look for the first time, and set
 * is_carrier_up of every rail to what is so now. Nothing is told before the loop
 * runs. Negative errno: no rtnetlink.
 */
int mrcd_carrier_new(struct mrcd_worker *worker, struct mrcd_carrier **carrier_out);
void mrcd_carrier_free(struct mrcd_carrier *carrier);

/* A rail that has come since: what is found of it is told as a change is. Without a worker->carrier nothing is. */
void mrcd_carrier_add(struct mrcd_rail *rail);

/* Ask for all rails now and tell what changed: a drill has taken a carrier away, or given it back. */
void mrcd_carrier_look(struct mrcd_carrier *carrier);

/*
 * Does this rail have a carrier, as far as the kernel has worked it out? Needs
 * no event to be read. IFF_RUNNING follows the carrier by a work queue of the
 * kernel's, at once on a machine with time to spare. Two ioctls of 1.5 us; tells
 * nobody. Without a worker->carrier: what was known last.
 */
bool mrcd_carrier_ask(struct mrcd_rail *rail);

#endif
