/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_world - hosts with engines, virtual rails between them, virtual clients on them
 *
 * One seed, virtual time, real bytes. The pump is the daemon's: events in,
 * actions out. A transport is in order and reliable while it lives; when it
 * dies a prefix of what was posted has arrived, and its sender does not know
 * which. On a `verbs` rail payload is written to landing memory by the wire
 * itself, and what is on the wire may still land after the sender has given up,
 * until the receiver has fenced ("ghosts"). README.md tells what each fault
 * does and what the checkers hold the engines to; they watch every step.
 *
 * A world is driven in one of two ways. sim_run() does all that the options
 * say. Or a script does: sim_options_default() (pipes and faults 0), sim_new(),
 * sim_open(), sim_send(), sim_fault_begin(), then sim_step() or
 * sim_run_until(), and looks at what came of it. Both may be mixed.
 *
 * Hosts are numbered from 0 and named a, b, c ... (h026 and on beyond z); path
 * n of two hosts joins rail n of both. Channels are numbered from 0 as opened.
 *
 * Units:     ns of virtual time, bytes, counts.
 * Ownership: sim_free() frees all; nothing handed out is the caller's.
 * Threads:   one at a time. Two worlds share nothing.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "mrc_conn.h"
#include "sim_options.h"

#define SIM_NONE UINT32_MAX

struct sim_world;

/* Nothing has happened yet: the first steps connect. Aborts when memory runs out. */
struct sim_world *sim_new(const struct sim_options *options);
void sim_free(struct sim_world *world);

/* All that the options say, to the end and its proofs. 0, or 1 with the reason in sim_failure(). */
int sim_run(struct sim_world *world);

/* ---- what a run says of itself ---- */

/* NULL: no checker has fired. Begins with the checker's name and a colon. */
const char *sim_failure(const struct sim_world *world);
/* Call before the first step: one line per event is kept, the last `lines` of them. */
void sim_trace_on(struct sim_world *world, uint32_t lines);
void sim_trace_print(const struct sim_world *world, FILE *out);
/* Of all events so far and their times: equal in two runs of the same options. */
uint64_t sim_hash(const struct sim_world *world);
void sim_report(const struct sim_world *world, FILE *out);

/* What happened, to see that a run did what it was meant to. X(name) */
/* clang-format off */
#define SIM_COUNTS(X) \
	X(events) \
	X(frames) \
	X(messages) \
	X(ghosts) \
	X(copies) \
	X(wants) \
	X(duplicates) \
	X(resent) \
	X(suspicions) \
	X(suspicions_false) \
	X(resets) \
	X(restarts) \
	X(handovers) \
	X(deaths) \
	X(rejected) \
	X(texts) \
	X(traced) \
	X(refused) \
	X(closed_early) \
	X(unknown) \
	X(cancels) \
	X(late) \
	X(gaps) \
	X(handshakes) \
	X(handshakes_failed) \
	X(paths_replaced) \
	X(ctl_doubled) \
	X(qp_errors) \
	X(key_errors) \
	X(faults)
/* clang-format on */
struct sim_counts {
#define X(name) uint64_t name;
	SIM_COUNTS(X)
#undef X
};
void sim_counts(const struct sim_world *world, struct sim_counts *counts_out);

/* ---- time ---- */

uint64_t sim_now_ns(const struct sim_world *world);
/* One event. False: nothing is left to happen, or a checker fired. */
bool sim_step(struct sim_world *world);
/* Step until cond() holds (asked before each step): true; false at by_ns or when sim_step() is. */
typedef bool (*sim_cond_fn)(struct sim_world *world, void *context);
bool sim_run_until(struct sim_world *world, sim_cond_fn cond, void *context, uint64_t by_ns);
/* All events before at_ns; now is at_ns then. False when a checker fired. */
bool sim_run_to(struct sim_world *world, uint64_t at_ns);
/* Call back at that time, as an event of its own. */
typedef void (*sim_call_fn)(struct sim_world *world, void *context);
void sim_at(struct sim_world *world, uint64_t at_ns, sim_call_fn call, void *context);
/* A broken claim of the script's own: fails the run as a checker does. */
void sim_fail_script(struct sim_world *world, const char *what);

/* ---- clients ---- */

struct sim_channel_spec {
	uint32_t from_host, from_client; /* the opener */
	uint32_t to_host, to_client;
	bool is_unordered;
	bool is_unchecked; /* integrity off */
	bool is_refused;   /* the service says REFUSED, code 7 */
	uint64_t window;   /* 0: as the options say; so are the rest */
	uint64_t ring_bytes;
	uint64_t len_max; /* of its messages: size of a slot in the send arena */
	uint64_t slots;
};

/* Opens it at once; SIM_NONE when the engine says no. */
uint32_t sim_open(struct sim_world *world, const struct sim_channel_spec *spec);
/* One more message from this host's end, after those before it; sent as soon as there is room. Its number. */
uint64_t sim_send(struct sim_world *world, uint32_t channel, uint32_t host, uint64_t len,
		  enum mrc_lvl level);
/* Give it up, if its receiver lets it: then its outcome is TIMED_OUT. False: it is too late. */
bool sim_cancel(struct sim_world *world, uint32_t channel, uint32_t host, uint64_t number);
void sim_close(struct sim_world *world, uint32_t channel, uint32_t host);
/* Takes, commits and releases nothing until told to go on. */
void sim_client_stall(struct sim_world *world, uint32_t host, uint32_t client, bool is_stalled);
/* What it does with each message; what it holds it goes on with when its manner changes. */
enum sim_manner { SIM_AS_DRAWN, SIM_REJECTS, SIM_HOLDS };
void sim_client_manner(struct sim_world *world, uint32_t host, uint32_t client,
		       enum sim_manner manner);
/* Its process dies; a new one is there at once, with none of its channels. */
void sim_client_kill(struct sim_world *world, uint32_t host, uint32_t client);

struct sim_channel_status {
	bool is_open;  /* this end: CH_UP came */
	bool is_down;  /* CH_DOWN came */
	bool is_freed; /* CH_FREE came */
	int outcome;   /* of the end */
	uint64_t sent; /* from this end: the engine took them */
	uint64_t answered;
	uint64_t answered_ok;
	uint64_t delivered; /* to this end */
	uint64_t released;
};
void sim_channel_status(const struct sim_world *world, uint32_t channel, uint32_t host,
			struct sim_channel_status *status_out);

struct sim_message_status {
	bool is_sent, is_answered, is_delivered, is_visible, is_committed, is_rejected, is_released;
	bool is_gap; /* the receiver was told that it will not come */
	int outcome; /* when answered */
	enum mrc_lvl level;
	uint64_t sent_ns, delivered_ns, answered_ns;
};
/* Of message `number` from this host's end. */
void sim_message_status(const struct sim_world *world, uint32_t channel, uint32_t host,
			uint64_t number, struct sim_message_status *status_out);

/* ---- faults ---- */

struct sim_fault_spec {
	enum sim_fault kind;
	uint32_t host, rail; /* which port; RESET, CARRIER_BOTH, FLAP: and `peer`'s */
	uint32_t peer;
	uint32_t client; /* CLIENT_*: of host */
	bool is_inward;  /* SILENCE_ONE_WAY: nothing comes in; else nothing goes out */
	bool is_both;    /* RESET: both ends see it; RESTART, HANDOVER: of peer as well */
	bool is_off;     /* CARRIER_*: this host's interface is set down, and not a cable pulled */
	uint64_t amount; /* factor, permille or turns; 0: drawn */
};
/*
 * A fault that holds is ended with its handle. RESET ends by itself. PAUSE, RESTART and
 * HANDOVER hold the host down until ended; a host that is paused hands nothing over.
 */
uint32_t sim_fault_begin(struct sim_world *world, const struct sim_fault_spec *spec);
void sim_fault_end(struct sim_world *world, uint32_t handle);
/* Operator: MRC_EV_DENY or MRC_EV_ALLOW at this host for all paths of the rail. */
void sim_deny(struct sim_world *world, uint32_t host, uint32_t rail, bool is_denied);

/* ---- engines ---- */

/* This host's engine for that peer: for mrc_conn_info() and its kin only. NULL while the daemon is down. */
struct mrc_conn *sim_conn(struct sim_world *world, uint32_t host, uint32_t peer);
/* All paths of all pairs are GOOD at both ends. */
bool sim_is_all_good(struct sim_world *world);
/* Every channel end is freed, and all memory and holds the engines took for them are returned. */
bool sim_is_clean(struct sim_world *world, char *why, size_t why_len);
/* Bytes one conn of this host holds now. */
uint64_t sim_conn_bytes(const struct sim_world *world, uint32_t host, uint32_t peer);
struct sim_path_change {
	uint64_t at_ns;
	uint32_t host, peer, rail;
	enum mrc_path_state from, to;
	enum mrc_path_reason reason;
	uint32_t moved; /* to ASSUMED_BAD: fragments to be sent again */
};
typedef void (*sim_path_fn)(struct sim_world *world, const struct sim_path_change *change,
			    void *context);
/* Called at every MRC_ACT_PATH_STATE; one watcher. */
void sim_path_watch(struct sim_world *world, sim_path_fn watch, void *context);

uint32_t sim_crc32c(uint32_t crc, const void *data, size_t len);

#endif
