/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_top - the command top: a daemon watched on a terminal, or snapshot by snapshot
 *
 * On a terminal it goes on when the daemon goes away, says so, and has it back when
 * it is there again.
 *
 * Threads: one.  I/O: the control socket, the terminal or stdout, signals.
 */
#ifndef MRCCTL_TOP_H
#define MRCCTL_TOP_H

#include <stdbool.h>
#include <stdint.h>

#define MRCCTL_TOP_INTERVAL_NS     1000000000ULL
#define MRCCTL_TOP_INTERVAL_NS_MIN 100000000ULL
#define MRCCTL_TOP_INTERVAL_NS_MAX 3600000000000ULL

struct mrcctl_top_options {
	bool is_once;  /* one frame as text, or one snapshot */
	bool is_json;  /* snapshots instead of pages, a line each */
	bool is_ascii; /* whatever the locale says */
	uint64_t interval_ns;
};

/* "500ms", "2s", "1.5" (seconds). -EINVAL: not a time, or not within the bounds above. */
int mrcctl_top_interval_parse(const char *text, uint64_t *interval_ns_out);

/* The exit status. What is wrong has been said on stderr. */
int mrcctl_top(const char *socket, const struct mrcctl_top_options *options);

#endif
