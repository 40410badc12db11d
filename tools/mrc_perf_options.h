/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_options - the command line of mrc-perf
 *
 * Units:     bytes, ns, bits per second.
 * Ownership: string pointers are into argv.
 * Threads:   parsing uses getopt: one thread.  I/O, time: none.
 */
#ifndef MRC_PERF_OPTIONS_H
#define MRC_PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* On the wire too (struct perf_setup): do not renumber. */
enum perf_mode {
	PERF_MODE_SERVE = 0,
	PERF_MODE_BW = 1,
	PERF_MODE_RATE = 2,
	PERF_MODE_LAT = 3,
	PERF_MODE_STREAM = 4,
	PERF_MODE_GAP = 5, /* never on the wire: to the server it is a stream */
};

#define PERF_TARGET_BYTES   136U
#define PERF_ERROR_BYTES    256U
#define PERF_SIZE_BYTES_MAX (1ULL << 40)

struct perf_options {
	enum perf_mode mode;
	char target[PERF_TARGET_BYTES]; /* "host/service"; empty for serve */
	const char *service;
	uint64_t size_bytes;
	uint32_t in_flight; /* per channel */
	uint32_t channels;
	int level;                /* enum mrc_level */
	uint64_t duration_ns;     /* 0: until interrupted, or until count */
	uint64_t count;           /* 0: no limit */
	uint64_t interval_ns;     /* 0: no interval lines (serve only) */
	uint64_t stalls_ns;       /* gaps at least this long are listed; 0: none */
	uint64_t pace_bits_per_s; /* 0: as fast as it goes */
	uint64_t connect_timeout_ns;
	uint64_t drain_timeout_ns;
	uint64_t spin_ns;       /* how long to look before sleeping */
	uint64_t landing_bytes; /* 0: the daemon's default */
	uint64_t seed;
	uint64_t every;      /* gap: one message of so many is traced */
	const char *picture; /* gap: a .png or .svg to draw; NULL: none */
	bool is_verify;
	bool is_unordered;
	bool is_unchecked; /* --integrity off */
	bool is_json;
	bool is_once;
	bool is_quiet;
	bool is_help;
	bool is_version;
	const char *socket_path;  /* NULL: libmrc's default */
	const char *control_path; /* NULL: beside the socket; "none": do not ask */
};

/*
 * Parse argv. 0, or -EINVAL with a text for people in error_out
 * (PERF_ERROR_BYTES) that says what is allowed. --help and --version end
 * parsing with 0 and their flag set.
 */
int perf_options_parse(int argc, char **argv, struct perf_options *options_out, char *error_out);

void perf_options_help(FILE *out);
const char *perf_mode_name(enum perf_mode mode);

/* Quantities with units: 64KiB, 10s, 1.5Gb/s. -EINVAL: not one; -ERANGE: does not fit. */
int perf_size_parse(const char *text, uint64_t *bytes_out);
int perf_duration_parse(const char *text, uint64_t *ns_out);
int perf_rate_parse(const char *text, uint64_t *bits_per_s_out);

#endif
