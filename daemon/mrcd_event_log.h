/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_event_log - what befell paths, rails and peers, the last of it in a ring
 *
 * Events are numbered from 1. The ring keeps the newest; what fell out of it is
 * counted, to the event. Who asks names the last event that he knows and hears
 * of all that came after it, or exactly how many of them he has missed.
 *
 * Noted are changes that matter to somebody who looks after rails: a path that
 * enters or leaves service, not each try to bring it back.
 *
 * Units:     nanoseconds; two clocks, one that only grows and one for people.
 * Ownership: the worker owns the log; events are copied in whole.
 * Threads:   the worker's loop.
 */
#ifndef MRCD_EVENT_LOG_H
#define MRCD_EVENT_LOG_H

#include <jansson.h>

#include "mrc_event.h"

#define MRCD_EVENTS_KEPT     1024U /* a power of two */
#define MRCD_EVENTS_TOLD_MAX 128U  /* in one answer: it is made on the data path's loop */

/* X(enumerator, its name in JSON) */
#define MRCD_EVENT_KINDS(X)                                                   \
	X(STARTED, "started")       /* the daemon */                          \
	X(RELOADED, "reloaded")     /* the configuration */                   \
	X(RAIL_ADDED, "rail-added") /* by it, as the next three */            \
	X(RAIL_REMOVED, "rail-removed")                                       \
	X(RAIL_RENEWED, "rail-renewed") /* closed, and opened anew */         \
	X(PEER_REMOVED, "peer-removed")                                       \
	X(PATH, "path")                 /* see state_old and state */         \
	X(CARRIER_LOST, "carrier-lost") /* of a rail, by the kernel */        \
	X(CARRIER_BACK, "carrier-back")                                       \
	X(DRAINED, "drained") /* a rail, by the operator */                   \
	X(UNDRAINED, "undrained")                                             \
	X(DRILL_BEGIN, "drill-begin") /* of a rail, ours or a peer's */       \
	X(DRILL_END, "drill-end")                                             \
	X(HEALTH_GOOD, "health-good") /* of a rail, or of one path over it */ \
	X(HEALTH_DEGRADED, "health-degraded")                                 \
	X(HEALTH_FAILING, "health-failing")                                   \
	X(PEER_CONNECTED, "peer-connected") /* its first path is good */      \
	X(PEER_LOST, "peer-lost")           /* no path to it is good */       \
	X(PEER_SILENT, "peer-silent")       /* on all paths at once */        \
	X(PEER_HEARD, "peer-heard")         /* again, after it was */         \
	X(PEER_RESTARTED, "peer-restarted") /* its daemon, or it forgot us */ \
	X(HOST_DRAIN, "host-drain")         /* this host is being drained */  \
	X(HOST_UNDRAIN, "host-undrain")                                       \
	X(PEER_DRAIN, "peer-drain") /* and a peer's */                        \
	X(PEER_UNDRAIN, "peer-undrain")

enum mrcd_event_kind {
#define KIND(id, name) MRCD_EVENT_##id,
	MRCD_EVENT_KINDS(KIND)
#undef KIND
		MRCD_EVENT_KIND_COUNT
};

struct mrcd_event {
	/* Set by mrcd_event_log_add(). */
	uint64_t seq;     /* from 1 */
	uint64_t at_ns;   /* CLOCK_MONOTONIC */
	uint64_t wall_ns; /* CLOCK_REALTIME */
	/* Set by who adds it; what does not belong to its kind is zero. */
	enum mrcd_event_kind kind;
	char rail[MRC_NAME_MAX + 1]; /* "": not of one rail */
	char peer[MRC_NAME_MAX + 1]; /* "": not of one peer */
	char note[160];              /* more, for people */
	/* PATH */
	uint8_t path_index;
	enum mrc_path_state state_old, state;
	enum mrc_path_reason reason;
	uint32_t path_epoch;
	uint32_t moved_count; /* fragments taken off it */
	uint8_t paths_good;   /* to this peer, after it */
	uint64_t silent_ns;   /* left service: nothing had come by it for so long */
	uint64_t
		late_ns; /* left service: its oldest frame had waited so long for an answer; 0: none */
	uint64_t away_ns; /* entered service: it had been out of it for so long; 0: it is new */
};

struct mrcd_event_log;

/* -ENOMEM. */
int mrcd_event_log_new(struct mrcd_event_log **log_out);
void mrcd_event_log_free(struct mrcd_event_log *log);

/* Numbers it and keeps a copy. Never fails: the oldest one makes room. */
void mrcd_event_log_add(struct mrcd_event_log *log, const struct mrcd_event *event);

uint64_t mrcd_event_log_count(const struct mrcd_event_log *log);   /* of all there ever were */
uint64_t mrcd_event_log_dropped(const struct mrcd_event_log *log); /* no longer kept */

/* "rail r1 to b: ASSUMED_BAD, was GOOD: silent, ..." in one line, without the time. Answers `text`. */
#define MRCD_EVENT_TEXT_BYTES 320
const char *mrcd_event_text(const struct mrcd_event *event, char text[MRCD_EVENT_TEXT_BYTES]);

/*
 * What came after event `since` (0: all that is kept), oldest first, at most
 * MRCD_EVENTS_TOLD_MAX: {"log": N, "events": [...], "next": N, "missed": N,
 * "count": N, "dropped": N}. `next` is what to ask with the next time, `missed`
 * how many came after `since` and are lost. Another `log` than the last time is
 * that of another process, also of one that has taken the state over: it numbers
 * from 1, so who has a place in the old one asks again from 0. A `since` above
 * all there were is of another log: all that is kept is told. A new reference;
 * NULL when memory is short.
 */
json_t *mrcd_event_log_json(const struct mrcd_event_log *log, uint64_t since);

#endif
