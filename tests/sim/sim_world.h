/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_world - two engines, virtual rails between them, virtual clients on them
 *
 * One seed, virtual time, real bytes. The pump is the daemon's: events in,
 * actions out. A link is in order and reliable while it lives; when it dies a
 * prefix of what was posted has arrived. With `verbs` semantics payload is
 * written to landing memory by the wire itself, and what is on the wire may
 * still land after the sender has given up, until the receiver has fenced
 * ("ghosts").
 *
 * Checked at every step: exactly once and in order, bytes right, no level
 * claimed before it was true, nothing read after its answer (send memory is
 * scribbled over then), nothing written after its delivery.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdio.h>

#include "mrc_conn.h"

#define SIM_HOSTS        2
#define SIM_CHANNELS_MAX 8
#define SIM_MSGS_MAX     4096
#define SIM_TRACE_LINES  400

struct sim_options {
	uint64_t seed;
	uint32_t rails;
	bool is_verbs;
	bool is_unordered;
	uint32_t channels;
	uint32_t messages; /* per channel and direction */
	uint32_t len_max;
	uint64_t delay_ns;
	uint64_t rate; /* bytes per second of a rail */
	uint32_t window;
	uint64_t ring_bytes;
	uint64_t arena_bytes;
	uint32_t reject_permille;
	uint64_t think_ns;    /* longest time a client keeps a message */
	uint32_t faults;      /* how many */
	uint32_t fault_kinds; /* bit set of enum sim_fault */
	bool is_traced;
};

enum sim_fault {
	SIM_CARRIER_BOTH,
	SIM_CARRIER_ONE,
	SIM_SILENCE,
	SIM_SILENCE_ONE_WAY,
	SIM_SLOW,
	SIM_RESET,
	SIM_FLAP,
	SIM_PAUSE,
	SIM_CORRUPT_BODY,
	SIM_CORRUPT_HDR,
	SIM_FAULT_COUNT
};

struct sim_world;

struct sim_world *sim_new(const struct sim_options *options);
void sim_free(struct sim_world *world);
/* Runs to the end. 0, or 1 with the reason in sim_failure(). */
int sim_run(struct sim_world *world);
const char *sim_failure(const struct sim_world *world);
void sim_trace_print(const struct sim_world *world, FILE *out);
void sim_report(const struct sim_world *world, FILE *out);
const char *sim_fault_name(enum sim_fault fault);
uint32_t sim_crc32c(uint32_t crc, const void *data, size_t len);

#endif
