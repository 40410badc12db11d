/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_wire - what the two ends of mrc-perf say to each other besides data
 *
 * SETUP  the first message of each channel, sender to server, 64 bytes
 * ASK    sender to server, 64 bytes: what became of the channel with this nonce?
 * ANSWER server to sender, 128 bytes: its counters
 *
 * Little-endian words, a magic that no data message begins with, and a check
 * over all of it: damage here must not pass for a bad result.
 */
#ifndef MRC_PERF_WIRE_H
#define MRC_PERF_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_WIRE_VERSION      1U
#define PERF_WIRE_BYTES        64U /* of SETUP and ASK */
#define PERF_WIRE_ANSWER_BYTES 128U

#define PERF_FLAG_VERIFY       1U
#define PERF_FLAG_UNORDERED    2U
#define PERF_FLAG_ECHO         4U /* send each message back */
#define PERF_FLAGS_KNOWN       7U

enum perf_wire_kind {
	PERF_WIRE_NONE = 0, /* data */
	PERF_WIRE_SETUP = 1,
	PERF_WIRE_ASK = 2,
	PERF_WIRE_ANSWER = 3,
};

/* Why the server says no. */
enum perf_code {
	PERF_CODE_NOT_SETUP = 1, /* the first message is no setup message */
	PERF_CODE_VERSION = 2,   /* of another mrc-perf */
	PERF_CODE_DAMAGED = 3,   /* the check is wrong */
	PERF_CODE_MODE = 4,
	PERF_CODE_FLAGS = 5,
	PERF_CODE_SIZE = 6,      /* larger than this channel takes */
	PERF_CODE_NO_MEMORY = 7, /* for the echo */
	PERF_CODE_BUSY = 8,      /* more messages at once than the echo keeps */
	PERF_CODE_SETUP_TWICE = 9,
};

struct perf_setup {
	uint64_t nonce;
	uint64_t seed;
	uint64_t size_bytes;
	uint32_t mode; /* enum perf_mode */
	uint32_t flags;
};

struct perf_ask {
	uint64_t nonce; /* of the channel in question, not always this one */
};

struct perf_answer {
	uint64_t nonce;
	uint64_t is_known; /* 0: no such channel, the counts are 0 */
	uint64_t received;
	uint64_t bytes;
	uint64_t checked;
	uint64_t skipped;
	uint64_t unplaced;
	uint64_t number_next;
	uint64_t duplicated;
	uint64_t reordered;
	uint64_t corrupted;
	uint64_t gap_ns_max; /* longest time between two arrivals */
};

/* Which of these a message claims to be, by its length and magic. */
enum perf_wire_kind perf_wire_kind(const void *data, size_t len_bytes);

void perf_setup_encode(const struct perf_setup *setup, void *out);
/* 0, or an enum perf_code (positive) that says what is wrong with the form. */
int perf_setup_decode(const void *data, size_t len_bytes, struct perf_setup *setup_out);

void perf_ask_encode(const struct perf_ask *ask, void *out);
int perf_ask_decode(const void *data, size_t len_bytes, struct perf_ask *ask_out);

void perf_answer_encode(const struct perf_answer *answer, void *out);
int perf_answer_decode(const void *data, size_t len_bytes, struct perf_answer *answer_out);

const char *perf_code_text(uint32_t code);

#endif
