/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_handover - a daemon ends and the next one goes on, without its programs noticing
 *
 * The ending daemon stops reading its clients, fences all paths, lets the
 * engines say what they have to say, writes everything into an image
 * (mrcd_image.h), puts it and all descriptors into a bundle (mrcd_bundle.h), and
 * has the service manager keep that (sd_pid_notify_with_fds(3), FDSTORE=1). A
 * manager that starts a daemon again passes it on; one that does not closes it,
 * which is how clients learn that the daemon has gone. So a restart need not be
 * told from a stop, and a daemon that was killed left nothing.
 *
 * The next daemon has the manager forget it before anything else, checks all of
 * it, and takes it or leaves it: memories, rings and sockets of clients, engines,
 * services, counters, and the boot id, which names a run of state and not a
 * process (DESIGN 7.13). Paths are opened anew. What does not fit is said in the
 * log, and the daemon starts with nothing; never with a part.
 *
 * What may differ in its configuration: everything but the host's name. Paths have
 * the places they had (DECISIONS 67). A program that cannot go on (its memory cannot
 * be mapped, a peer that it has a channel to is gone, the kernel passes no more
 * descriptors) ends alone, as if it had died.
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_HANDOVER_H
#define MRCD_HANDOVER_H

#include "mrcd_bundle.h"
#include "mrcd_worker.h"

#define MRCD_HANDOVER_NAME "mrcd-state" /* of what the manager keeps: FDNAME */
#define MRCD_HANDOVER_CONF_NAME \
	"mrcd-conf" /* and of a copy of the configuration (mrcd_conf_copy) */
#define MRCD_HANDOVER_PATIENCE_NS (2 * MRC_S) /* for paths that take a while to be fenced */

struct mrcd_handover;

/* It is over: the process may end, with or without a state left behind. */
typedef void (*mrcd_handover_done_fn)(void *context);

/* Is there a manager that might keep something? */
bool mrcd_handover_is_possible(void);
/* How many descriptors it keeps; an old one (before systemd 254) does not say. */
uint32_t mrcd_handover_room(void);
/*
 * Begin; `done` is called once, later or before this returns. What goes wrong is logged, and
 * clients are then told at mrcd_worker_free(), as ever. -ENOMEM: not begun.
 */
int mrcd_handover_begin(struct mrcd_worker *worker, mrcd_handover_done_fn done, void *context,
			struct mrcd_handover **handover_out);
/*
 * Have the manager keep a bundle under MRCD_HANDOVER_NAME, and what was in force under
 * MRCD_HANDOVER_CONF_NAME (NULL: no program would miss it). 0: it has the bundle. Negative errno:
 * nobody has, for what it may have got or may yet get is empty; -ETIMEDOUT: it does not take it.
 */
int mrcd_handover_store(struct mrcd_bundle *bundle, const struct mrcd_conf *conf);
/* Before the worker; NULL is fine. */
void mrcd_handover_free(struct mrcd_handover *handover);

#endif
