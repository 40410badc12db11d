/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_heritage - what the daemon before us left (mrcd_handover.h), checked, and put in its place
 *
 *	heritage = mrcd_heritage_open(fds, count, conf);
 *	mrcd_worker_new(conf, &worker);
 *	mrcd_heritage_apply(heritage, worker);          boot id, counters, engines
 *	mrcd_worker_start(worker, client_fd, heritage); sockets and clients
 *
 * A step may find that it does not fit. Then the worker is freed, which tells
 * the clients that were taken over already that they have to attach again, and
 * another one starts with nothing. When the daemon cannot start for another
 * reason (a device that is not there yet, no memory) it is given back to the
 * manager, for the next try, as long as clients can be thought to wait for it.
 *
 * Threads: the worker's loop, before it runs.
 */
#ifndef MRCD_HERITAGE_H
#define MRCD_HERITAGE_H

#include "mrcd_bundle.h"
#include "mrcd_worker.h"

#define MRCD_HERITAGE_PATIENCE_NS (10 * MRC_S) /* from the end of the daemon before us */

/* What the daemon before us left. Owned by main(), until the worker has started. */
struct mrcd_heritage;

/*
 * From what the manager passed under MRCD_HANDOVER_NAME; the descriptors stay the caller's, and
 * the manager has forgotten them. NULL: nothing that can be used, which was logged.
 */
struct mrcd_heritage *mrcd_heritage_open(const int *fds, uint32_t count,
					 const struct mrcd_conf *conf);
/*
 * The worker could not start, and has been freed: have the manager keep all of it, and a copy of
 * the configuration that was to be in force. False: it is
 * not whole any more, did not fit, has waited for MRCD_HERITAGE_PATIENCE_NS, or nobody keeps it.
 */
bool mrcd_heritage_give_back(struct mrcd_heritage *heritage, const struct mrcd_conf *conf);
/* NULL is fine. Closes what was not taken. */
void mrcd_heritage_free(struct mrcd_heritage *heritage);

/* The boot id, rails' counters and engines; of a worker that has not started. Logged on error. */
int mrcd_heritage_apply(struct mrcd_heritage *heritage, struct mrcd_worker *worker);
/* A socket that listens at this path, or -1. The caller's. */
int mrcd_heritage_listener(struct mrcd_heritage *heritage, enum mrcd_parcel_kind kind,
			   const char *path);
/* The clients, as the last thing before peers are started. Logged on error. */
int mrcd_heritage_apply_clients(struct mrcd_heritage *heritage, struct mrcd_worker *worker);

#endif
