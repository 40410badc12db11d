/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_history - what befalls the rails of a host in hours and days, and what mrc_health says of it
 *
 * No engine runs here: a history is too long for frames. It says how many
 * frames a rail carries, which part of them is damaged or lost, what waits in
 * queues, and when a rail leaves service; the counters that an engine would
 * have by then are drawn four times a second, and judged.
 *
 * A history is drawn (sim_health.c), or read from a file:
 *
 *	rails 4
 *	lasts 2h
 *	at 0s      all    frames 2000            # a second and rail
 *	at 10min   rail 1 damage 20000 over 1h   # ppm of frames; grows to it, as a power
 *	at 1h10min rail 1 dead
 *	want rail 1 failing before 1h10min
 *	want others never degraded
 *	want rail 1 turns at most 4
 *
 * What can be set: frames; damage and loss in ppm; queue in us; stalls a
 * minute; rate, in percent; noise, by which damage and loss vary (in percent of
 * a factor e, anew every 5 s). What happens: down SPAN (carrier), silent SPAN,
 * dead, and `all paused SPAN`: the host stands still.
 *
 * Units: seconds; double, for nature knows no integers.
 */
#ifndef SIM_HISTORY_H
#define SIM_HISTORY_H

#include <stdio.h>

#include "mrc_health.h"

#define HISTORY_RAILS_MAX   8
#define HISTORY_CHANGES_MAX 4096
#define HISTORY_WANTS_MAX   32
#define HISTORY_TURNS_MAX   4096 /* changes of state that are kept, of one rail */

#define HISTORY_SETTINGS(X) \
	X(frames)           \
	X(damage)           \
	X(loss)             \
	X(queue)            \
	X(stalls)           \
	X(rate)             \
	X(noise)
#define HISTORY_HAPPENINGS(X) \
	X(down)               \
	X(silent)             \
	X(paused)             \
	X(dead)

enum history_what {
#define X(name) HISTORY_##name,
	HISTORY_SETTINGS(X) HISTORY_SETTING_COUNT,
	HISTORY_SETTING_LAST = HISTORY_SETTING_COUNT - 1,
	HISTORY_HAPPENINGS(X) HISTORY_WHAT_COUNT
#undef X
};

struct history_change {
	double at_s;
	int rail; /* -1: all */
	enum history_what what;
	double value;  /* settings; happenings: how long */
	double over_s; /* settings: so long until it has that value */
};

struct history_want {
	int line;
	int rail;     /* -1: all */
	int rail_not; /* `others`: all but this one; -1 otherwise */
	enum mrc_health_state state;
	bool is_never;   /* it never is in `state` or worse */
	bool is_at_end;  /* it is in `state` at the end */
	int turns_max;   /* it changes at most so often; -1: that is not asked */
	double before_s; /* else: it is in `state` or worse before this */
	double from_s;   /* and not before that */
};

struct history {
	int rail_count;
	double lasts_s;
	struct history_change changes[HISTORY_CHANGES_MAX]; /* in order of time */
	int change_count;
	struct history_want wants[HISTORY_WANTS_MAX];
	int want_count;
};

/* What came of it for one rail. */
struct history_turn {
	double at_s;
	enum mrc_health_state state;
	enum mrc_health_cause cause;
};
struct history_rail {
	struct history_turn turns[HISTORY_TURNS_MAX];
	int turn_count; /* may be more than are kept */
	double dead_s;  /* <0: it lives */
	int outs;       /* left service */
	int outs_told;  /* of them, while FAILING */
	int outs_seen;  /* of them, while DEGRADED or FAILING */
};
struct history_outcome {
	struct history_rail rails[HISTORY_RAILS_MAX];
	double judged_s;
};

void history_init(struct history *h, int rail_count, double lasts_s);
/* Changes may be added in any order of time. */
void history_add(struct history *h, double at_s, int rail, enum history_what what, double value,
		 double over_s);
/* False: *why says what is wrong with the file. */
bool history_read(const char *file, struct history *h, char why[256]);
/* `trace`: each change of state as a line; NULL: none. */
void history_run(struct history *h, uint64_t seed, struct history_outcome *out, FILE *trace);
/* How many wants do not hold; each is printed. */
int history_check(const struct history *h, const char *file, const struct history_outcome *out,
		  FILE *to);

/* The state of a rail just before `at_s`, and since when it was no better than `state`; <0: it was better. */
double history_since(const struct history_rail *rail, enum mrc_health_state state, double at_s);
/* How many times it came into `state` or worse from a better one. */
int history_times(const struct history_rail *rail, enum mrc_health_state state);

/* Draws, for histories: uniform in [0, 1), log-uniform, exponential, normal, Poisson. */
double history_uniform(struct mrc_rng *rng);
double history_between(struct mrc_rng *rng, double low, double high);
double history_waiting(struct mrc_rng *rng, double mean);
double history_normal(struct mrc_rng *rng);
uint64_t history_count(struct mrc_rng *rng, double mean);

#endif
