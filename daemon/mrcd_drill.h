/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_drill - a failover drill: have a rail fail for a while on purpose, and say what came of it
 *
 * Whoever drills opens a session, of which there is one at a time. It has a
 * lease: who does not ask again in time has gone, and the session is closed for
 * him. In a session one rail at a time can be broken, for a time that the daemon
 * keeps. However a fault ends (its time, the session's end, the lease's, the
 * daemon's), the rail is given back as it was; a link that was really taken down
 * is taken up even by the daemon that follows one that was killed
 * (mrcd_interface.h).
 *
 * Peers are told before anything fails, and when it is over (mrcd_peer_drill.c): at
 * neither end is it held against the rail. A peer that does not answer is waited
 * for no longer than MRCD_DRILL_TELL_NS.
 *
 * Each answer has what its asker measures by: counters of the rails, and what
 * befell and how long clients stood still since the last one
 * (mrcd_event_log.h, mrcd_stall.h). Nothing of a drill is on the way of data:
 * kinds of rails put other functions in place for so long (mrcd_rail.h, drill).
 *
 * Units:     ns, bytes.
 * Ownership: the worker's.  Threads: the worker's loop; links go up and down on
 *            another (mrcd_offload.h).
 */
#ifndef MRCD_DRILL_H
#define MRCD_DRILL_H

#include <jansson.h>

#include "mrcd_rail.h"

#define MRCD_DRILL_LEASE_NS_MIN    (100 * MRC_MS)
#define MRCD_DRILL_LEASE_NS_MAX    (60 * MRC_S)
#define MRCD_DRILL_DURATION_NS_MIN (50 * MRC_MS)
#define MRCD_DRILL_DURATION_NS_MAX (600 * MRC_S)
#define MRCD_DRILL_TELL_NS         (1 * MRC_S)
#define MRCD_DRILL_TIMES_MIN       2U
#define MRCD_DRILL_TIMES_MAX       1000U

struct mrcd_drill;

/* -ENOMEM. No session is open. */
int mrcd_drill_new(struct mrcd_worker *worker, struct mrcd_drill **drill_out);
/* At the start: take up, off the loop, what a daemon that was killed has left down. */
void mrcd_drill_recover(struct mrcd_drill *drill);
/* Ends what there is. Before the rails close. NULL is fine. */
void mrcd_drill_free(struct mrcd_drill *drill);

/* Is it about this rail now? One that it is about must not go. */
bool mrcd_drill_has(const struct mrcd_drill *drill, const struct mrcd_rail *rail);
/* What our drill does to this rail, which is in it. A static string. */
const char *mrcd_drill_fault_name(const struct mrcd_drill *drill, const struct mrcd_rail *rail);

/*
 * {"command": "drill", "do": WHAT, ...}, and what it answers:
 *	open   [lease_ns]                     a state; its "session" is to be named from then on
 *	break  session rail fault [duration_ns times link force]   a state
 *	renew  session                        a state
 *	mend   session                        end the fault now; a state
 *	close  session                        a state, the last one
 * fault is down, silence or slow (to one of `times`). In a state "error" says why
 * a link did not go down; or, while the state is "ending", why it does not come up,
 * which is tried again every second. NULL: refused, with the reason for people in
 * *error_out. New references.
 */
json_t *mrcd_drill_ask(struct mrcd_drill *drill, const json_t *command, json_t **error_out);

#endif
