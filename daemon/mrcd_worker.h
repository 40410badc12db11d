/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_worker - one event loop and what it owns: rails, peers, clients
 *
 * A worker shares nothing with another worker. `now_ns` is read once per turn
 * of the loop (mrcd_worker_now() in callbacks) from CLOCK_MONOTONIC.
 *
 * The base has three priorities and everything uses the middle one, which is
 * libevent's default. Within one turn libevent runs what became readable
 * before the timers that came due, so a timer is judged after the rails were
 * read. A lower priority for timers would starve them while a stream keeps
 * some socket readable, and a silent path would then not be found.
 *
 * Threads: everything here belongs to the worker's own thread.
 */
#ifndef MRCD_WORKER_H
#define MRCD_WORKER_H

#include <event2/event.h>
#include <sys/queue.h>

#include "mrc_look.h"
#include "mrcd_conf.h"
#include "mrcd_rail.h"

struct mrcd_about;       /* mrcd_about.h */
struct mrcd_cards;       /* mrcd_card.h */
struct mrcd_client_side; /* mrcd_client.h */
struct mrcd_carrier;     /* mrcd_carrier.h */
struct mrcd_control;     /* mrcd_control.h */
struct mrcd_event_log;   /* mrcd_event_log.h */
struct mrcd_heritage;    /* mrcd_heritage.h */
struct mrcd_http;        /* mrcd_http.h */
struct mrcd_lookout;     /* mrcd_lookout.h */
struct mrcd_drill;       /* mrcd_drill.h */
struct mrcd_health;      /* mrcd_health.h */
struct mrcd_nics;        /* mrcd_nic.h */
struct mrcd_offload;     /* mrcd_offload.h */
struct mrcd_traces;      /* mrcd_trace.h */
struct mrcd_readings;    /* mrcd_reading.h */
struct mrcd_reload;      /* mrcd_reload.h */
struct mrcd_renewal;     /* mrcd_renewal.h */

/* What came of a reload: r as mrcd_reload(), *reload for as long as the call lasts. */
typedef void (*mrcd_reload_fn)(void *context, int r, const struct mrcd_reload *reload);

struct mrcd_worker {
	struct event_base *base; /* ours */
	const struct mrcd_conf
		*conf;    /* the daemon's, the one in force; a reload puts another here */
	uint64_t boot_id; /* of this run of state */
	uint64_t now_ns;
	uint64_t start_ns;       /* when mrcd_worker_new() was called */
	uint64_t drain_since_ns; /* this host is being drained (mrcd_drain.h); 0: it is not */
	struct mrcd_rail rails[MRCD_RAILS_MAX];
	uint32_t rail_count;        /* slots in use, or used once: see mrcd_rail_is_there() */
	struct mrcd_rail loop_rail; /* joins this host's own clients; see mrcd_rail_loop.c */
	bool is_loop_open;
	struct mrcd_peer **peers; /* ours */
	uint32_t peer_count;
	struct mrcd_peer *loop_ends[2];   /* the two ends of the conn with ourselves */
	struct mrcd_client_side *clients; /* ours */
	struct mrcd_region_list regions;  /* clients' arenas; each belongs to itself */
	struct mrcd_offload *offload;     /* ours; NULL while no rail has calls that block */
	struct mrcd_nics *nics;           /* ours */
	struct mrcd_carrier *carrier;     /* ours */
	struct mrcd_about *about;         /* ours */
	struct mrcd_control *control;     /* ours */
	struct mrcd_cards *cards;         /* ours */
	struct mrcd_health *health;       /* ours */
	struct mrcd_traces *traces;       /* ours */
	struct mrcd_event_log *events;    /* ours */
	struct mrcd_drill *drill;         /* ours */
	struct mrcd_http *http;           /* ours; NULL: metrics are switched off */
	uint64_t strangers;               /* handshakes refused, all rails */
	struct mrc_look look;
	struct event *look_event;     /* ours; pending while look.is_looking */
	struct mrcd_lookout *lookout; /* ours */
	bool is_in_look;              /* in look_event's callback, which pumps who is kicked */
	TAILQ_HEAD(mrcd_peer_list, mrcd_peer) kicked; /* by it */
	/*
	 * Reads the configuration again, off the loop, and reloads with it; main()'s. `done` is
	 * called once, later; after an error (-EBUSY: the daemon ends; -EAGAIN: it is being read
	 * for many others; -ENOMEM) it is not. NULL: nobody can.
	 */
	int (*read_again)(void *context, bool is_trial, mrcd_reload_fn done, void *done_context);
	void *read_again_context;
	struct mrcd_readings *readings; /* ours; NULL: nothing was read again yet */
	struct mrcd_renewal *renewal;   /* ours: what a reload has begun; NULL: no reload yet */
};

/* CLOCK_MONOTONIC, read afresh. */
uint64_t mrcd_worker_clock_ns(void);

/* The same, remembered in worker->now_ns. */
uint64_t mrcd_worker_now(struct mrcd_worker *worker);

/* By the timer: made active from its own callback it would run again before any I/O. */
static inline void mrcd_worker_look_soon(struct mrcd_worker *worker)
{
	struct timeval now = {0};

	event_add(worker->look_event, &now);
}

/*
 * There was work for a client (frames of a channel, entries of a ring) at
 * worker->now_ns: look for more before sleeping. Probes and the like are none.
 */
static inline void mrcd_worker_worked(struct mrcd_worker *worker)
{
	if (mrc_look_work(&worker->look, worker->now_ns))
		mrcd_worker_look_soon(worker);
}

/*
 * A loop, its rails and its peers; nothing is open yet, nothing is heard and
 * nothing is sent. -ENOMEM; -ENOTSUP: a rail of a type this build does not
 * have, or other values from mrc_conn_new(); logged.
 */
int mrcd_worker_new(const struct mrcd_conf *conf, struct mrcd_worker **worker_out);

/*
 * Open the rails, the client socket (or take over client_fd, unless it is
 * -1), the control socket, and begin to connect. On error it was logged, and
 * mrcd_worker_free() takes back what was opened. client_fd is the worker's
 * from the call on. heritage: what the daemon before us left, applied to the worker already;
 * its clients and sockets go on here. NULL: nothing.
 */
int mrcd_worker_start(struct mrcd_worker *worker, int client_fd, struct mrcd_heritage *heritage);

/* Closes every path (that is how peers are told), socket and file. NULL is fine. */
void mrcd_worker_free(struct mrcd_worker *worker);

/* The peer called `name`, or NULL. This host's own name and "localhost" give loop_ends[0]. */
struct mrcd_peer *mrcd_worker_peer(struct mrcd_worker *worker, const char *name);

/* The rail called `name`, or NULL. */
struct mrcd_rail *mrcd_worker_rail(struct mrcd_worker *worker, const char *name);
/* How many there are. */
uint32_t mrcd_worker_rails(const struct mrcd_worker *worker);
/* A rail more, in a free slot, not open; NULL: there are MRCD_RAILS_MAX. */
struct mrcd_rail *mrcd_worker_rail_add(struct mrcd_worker *worker,
				       const struct mrcd_conf_rail *conf);
/* As when the worker starts. Negative errno, logged. */
int mrcd_worker_rail_open(struct mrcd_rail *rail);
void mrcd_worker_rail_close(struct mrcd_rail *rail);
/* No peer has a path over it: close it, and its slot is free. */
void mrcd_worker_rail_remove(struct mrcd_rail *rail);
/* Room for so many peers more, so that adding them does not fail. -ENOMEM. */
int mrcd_worker_peers_reserve(struct mrcd_worker *worker, uint32_t count);

/* How things stand, counted now. */
struct mrcd_worker_summary {
	uint32_t rails, rails_up;
	uint32_t rails_degraded, rails_failing; /* by their health */
	uint32_t peers, peers_connected;
	uint32_t clients;
	uint32_t channels; /* of the conns; one with both ends here counts once */
	bool is_draining;
	bool is_conf_former; /* what is in force is not what the file says, which has errors */
};
void mrcd_worker_summarize(const struct mrcd_worker *worker,
			   struct mrcd_worker_summary *summary_out);

/* The same in words, for status lines. Answers `text`. */
const char *mrcd_worker_summary_text(const struct mrcd_worker_summary *summary, char *text,
				     size_t text_bytes);

#endif
