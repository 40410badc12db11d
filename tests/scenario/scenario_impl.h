/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_impl - one run of a scenario: what scenario_run.c plays and scenario_cond.c looks at
 *
 * Units: ns of the world's virtual time; the scenario's own begins at start_ns.
 */
#ifndef SCENARIO_IMPL_H
#define SCENARIO_IMPL_H

#include "mrc_health.h"
#include "scenario.h"

/* Of the deliveries to one end of a channel. */
struct sc_flow {
	uint64_t progress; /* deliveries and answers so far */
	uint64_t since_ns; /* nothing came since; 0: nothing is under way */
	uint64_t stall_ns_max;
};

struct sc_active { /* a fault that holds */
	uint32_t handle;
	struct sim_fault_spec spec;
	bool is_over;
};

struct sc_call {
	struct sc_run *run;
	struct sc_call *next; /* for the freeing */
	void (*call)(struct sc_run *run, struct sc_call *self);
	uint32_t event;
	uint32_t active; /* index of the fault; SC_NONE: none */
	uint32_t msg;    /* next to be sent; or number to be given up */
	uint64_t until_ns;
};

struct sc_run {
	struct scenario *sc;
	struct sim_world *world;
	uint64_t start_ns;
	uint64_t label_ns[SC_LABELS_MAX]; /* MRC_NEVER: not reached */
	bool is_triggered[SC_EVENTS_MAX]; /* its condition held, or its time came */
	bool is_done[SC_EVENTS_MAX];      /* and all of it has happened */
	bool is_met[SC_CLAIMS_MAX];
	bool is_ended;
	uint32_t channels[SC_CHANNELS_MAX];                        /* the world's; SC_NONE */
	uint32_t numbers[SC_CHANNELS_MAX][2][SC_MESSAGES_MAX + 1]; /* of m1.. by opener, service */
	uint64_t planned[SC_CHANNELS_MAX][2];
	struct sc_flow flows[SC_CHANNELS_MAX][2]; /* to opener, service */
	uint64_t moved[SC_HOSTS_MAX][SC_HOSTS_MAX][MRC_PATHS_MAX];
	struct mrc_health healths[SC_HOSTS_MAX][SC_HOSTS_MAX]; /* their paths are ours */
	uint64_t judge_ns;
	struct sc_active *active;
	uint32_t active_count;
	struct sc_call *calls;
	char failure[1200];
};

/* ---- scenario_health.c: what mrc_health says of each path ---- */

void sc_health_init(struct sc_run *run);
void sc_health_fini(struct sc_run *run);
/* Once after each step: judges when it is time. */
void sc_health_watch(struct sc_run *run);
enum mrc_health_state sc_health(const struct sc_run *run, uint32_t host, uint32_t peer,
				uint32_t rail);

/* ---- scenario_cond.c ---- */

bool sc_holds(struct sc_run *run, struct sc_clause *clause);
/* What is so instead, of the first condition that does not hold (or the first, when all do). */
void sc_seen(struct sc_run *run, struct sc_clause *clause, char *out, size_t out_len);
/* A label is reached: conditions count from here. */
void sc_bases_set(struct sc_run *run, uint32_t label);
/* Once after each step: watches deliveries for stalls. */
void sc_flows_watch(struct sc_run *run);

#endif
