/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_options - what one run of the simulator is like: plain numbers, drawn from a seed or set by name
 *
 * All that a run depends on is here, so a line of `name=value` pairs and a seed replay it.
 *
 * Units: bytes, ns, bytes per second, counts, permille.  Ownership: plain data.
 */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Faults. One whose `amount` is 0 draws it. X(ENUM, name, what it is) */
#define SIM_FAULTS(X)                                                                              \
	X(CARRIER_BOTH, "carrier-both",                                                            \
	  "a rail between two hosts loses carrier, both ports see it")                             \
	X(CARRIER_ONE, "carrier-one", "one host's port loses carrier, the other ends see nothing") \
	X(SILENCE, "silence", "one port passes nothing either way, and nobody is told")            \
	X(SILENCE_ONE_WAY, "silence-one-way", "one port passes nothing in, or nothing out")        \
	X(SLOW, "slow", "one port is 2 to 32 times slower")                                        \
	X(RTT_JUMP, "rtt-jump", "frames of one port take 2 to 64 times as long")                   \
	X(RATE_DROP, "rate-drop", "one port is 100 to 1000 times slower")                          \
	X(QUEUE_FULL, "queue-full", "one port takes nothing from its queues for a while")          \
	X(FLAP, "flap", "a rail's carrier goes down and up several times")                         \
	X(RESET, "reset", "the transport of one path breaks, at one end or both")                  \
	X(AMBIGUOUS, "ambiguous", "frames arrive but answers do not, then the transports break")   \
	X(CORRUPT_BODY, "corrupt-body", "payload through one port is damaged now and then")        \
	X(CORRUPT_HDR, "corrupt-header", "headers through one port are damaged now and then")      \
	X(CORRUPT_CTL, "corrupt-control", "so are bodies of control frames")                       \
	X(DRAIN, "drain", "the operator drains one host's rail, and undrains it")                  \
	X(KEY, "key-withdrawn", "one port's device lets go of all landing memory for a while")     \
	X(PAUSE, "pause", "one host stands still, up to seconds")                                  \
	X(RESTART, "restart", "one daemon, or both of a pair, ends and starts with nothing")       \
	X(CLIENT_DEATH, "client-death", "one client process dies, and is started again")           \
	X(CLIENT_STALL, "client-stall", "one client takes and releases nothing for a while")       \
	X(HANDOVER, "handover",                                                                    \
	  "one daemon, or both of a pair, ends; the next takes its state over")

enum sim_fault {
#define X(id, name, help) SIM_##id,
	SIM_FAULTS(X)
#undef X
		SIM_FAULT_COUNT
};

/* X(name, what it is); all are uint64_t. */
#define SIM_OPTIONS(X)                                                                           \
	X(hosts, "hosts, each with a conn to each other")                                        \
	X(rails, "rails of each host; path n joins rail n to rail n")                            \
	X(verbs, "bit n: rail n places by RDMA write, else it is a stream")                      \
	X(unequal, "1: rail n has 1/(n+1) of the rate")                                          \
	X(delay_ns, "one way delay of a frame, up to a quarter more is drawn")                   \
	X(rate, "of a rail, bytes per second")                                                   \
	X(bucket_bytes, "what a rail sends at once after a pause, as behind a token bucket")     \
	X(fast_host, "n: the clock of host n-1 runs 10% fast; 0: none")                          \
	X(old_host, "n: the first daemon of host n-1 speaks version 1 of the wire; 0: none")     \
	X(clients, "clients of each host")                                                       \
	X(pipes, "client pairs that talk; each opens channel after channel till all is said")    \
	X(messages, "per pipe and direction")                                                    \
	X(len_max, "longest message")                                                            \
	X(slots, "messages a client has room for in its send arena")                             \
	X(window, "of a channel, messages; power of two")                                        \
	X(ring_bytes, "landing ring of a channel")                                               \
	X(arena_bytes, "landing arena of a client, for all its channels")                        \
	X(think_ns, "longest time a client takes for each step with a message")                  \
	X(unordered_permille, "channels that are unordered")                                     \
	X(unchecked_permille, "channels whose payload has no checksums; nothing damages it")     \
	X(reject_permille, "messages the receiver rejects")                                      \
	X(refuse_permille, "channels the service refuses")                                       \
	X(early_permille, "channels whose opener sends before the answer")                       \
	X(cancel_permille, "messages given up some time after they were sent")                   \
	X(fence_ns, "longest time it takes to fence a queue pair")                               \
	X(fence_slow_permille, "fences that take up to 20 ms")                                   \
	X(key_ns, "longest time it takes to register landing memory with a device")              \
	X(close_permille, "channels one end closes before all is said")                          \
	X(close_after, "after so many messages at most; 0: as many as there are")                \
	X(qp_timeout, "queue pairs try again after 4.096 us times 2 to the power of this,")      \
	X(qp_retry, "so often more, then they break; 7: for ever")                               \
	X(turn_ns,                                                                               \
	  "longest time in which a host takes what arrives before it says anything; 0: none")    \
	X(beside, "1: a connection beside each queue pair tells when its other end is gone")     \
	X(frag_bytes, "limits.frag_bytes_max")                                                   \
	X(eager_bytes, "limits.eager_bytes_max")                                                 \
	X(direct_bytes, "limits.direct_bytes_min")                                               \
	X(share,                                                                                 \
	  "least receive entries of a path that places by RDMA write, up to twice is drawn")     \
	X(records, "limits.frames_in_flight_max")                                                \
	X(holds, "limits.holds_max")                                                             \
	X(ranges, "limits.ranges_max")                                                           \
	X(channels_max, "limits.channels_max")                                                   \
	X(window_bytes_min, "limits.path_window_bytes_min")                                      \
	X(window_bytes_max, "limits.path_window_bytes_max")                                      \
	X(suspect_floor_ns, "limits.suspect_floor_ns")                                           \
	X(suspect_ceiling_ns, "limits.suspect_ceiling_ns")                                       \
	X(probe_interval_ns, "limits.probe_interval_ns")                                         \
	X(faults, "how many faults begin")                                                       \
	X(fault_kinds, "which kinds of them: names joined by +, none or all")                    \
	X(fault_gap_ns, "longest time between the beginnings of two")                            \
	X(fault_span_ns, "longest time one holds")                                               \
	X(carrier_missed_permille, "carrier events nobody is told of")                           \
	X(proof_bytes, "sent per pair, path and direction when all is healed; 0: no such proof") \
	X(heal_ns, "all must be finished so long after the last fault ended")

struct sim_options {
	uint64_t seed;
#define X(name, help) uint64_t name;
	SIM_OPTIONS(X)
#undef X
};

/* A plain world for scripts: 2 hosts, 2 rails, no pipes, no faults, clients that answer at once. */
void sim_options_default(struct sim_options *options_out);
/* Swarm testing: each run draws which kinds of trouble it has, and how much. */
void sim_options_draw(uint64_t seed, struct sim_options *options_out);
/*
 * "name=value,name=value": changes those. On error -EINVAL, a sentence in `why`,
 * and those before the bad one are changed.
 */
int sim_options_set(struct sim_options *options, const char *text, char *why, size_t why_len);
/* The pairs that differ from `base`, or all when it is NULL, in the form that sim_options_set() takes. */
void sim_options_print(const struct sim_options *options, const struct sim_options *base,
		       FILE *out);
/* Names and meanings of all options and faults, for --help. */
void sim_options_help(FILE *out);

const char *sim_fault_name(enum sim_fault fault);
/* SIM_FAULT_COUNT: no such fault. */
enum sim_fault sim_fault_find(const char *name);

#endif
