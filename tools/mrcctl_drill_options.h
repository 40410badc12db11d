/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_drill_options - what `mrcctl drill` is asked to do
 *
 * Ownership: strings are argv's.  Threads: any.  I/O, time: none.
 */
#ifndef MRCCTL_DRILL_OPTIONS_H
#define MRCCTL_DRILL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define MRCCTL_DRILL_ERROR_BYTES 192U

enum mrcctl_drill_fault { MRCCTL_DRILL_DOWN, MRCCTL_DRILL_SILENCE, MRCCTL_DRILL_SLOW };

struct mrcctl_drill_options {
	const char *rail; /* NULL: each in turn, or whichever goes */
	enum mrcctl_drill_fault fault;
	uint64_t duration_ns;
	uint64_t times;      /* slow: to one of so many */
	bool is_fault_given; /* one of down, silence, slow */
	bool is_link, is_all, is_watch, is_serve, is_yes;
	bool is_forced;      /* the caller's: --force goes with other commands, too */
	const char *stream;  /* a peer, "none"; NULL: one is begun when too little flows */
	const char *pace;    /* of that stream, as mrc-perf takes it; NULL: none */
	const char *picture; /* an .svg to draw; NULL: none */
};

/* In the order of mrcctl_command.h. */
enum mrcctl_drill_option {
	MRCCTL_DRILL_OPTION_DOWN,
	MRCCTL_DRILL_OPTION_SILENCE,
	MRCCTL_DRILL_OPTION_SLOW,
	MRCCTL_DRILL_OPTION_LINK,
	MRCCTL_DRILL_OPTION_ALL,
	MRCCTL_DRILL_OPTION_WATCH,
	MRCCTL_DRILL_OPTION_SERVE,
	MRCCTL_DRILL_OPTION_STREAM,
	MRCCTL_DRILL_OPTION_PACE,
	MRCCTL_DRILL_OPTION_YES,
	MRCCTL_DRILL_OPTION_PICTURE
};

/* What holds where nothing is said. */
void mrcctl_drill_options_init(struct mrcctl_drill_options *options);

/* -EINVAL, and in error_out (MRCCTL_DRILL_ERROR_BYTES) what is allowed. */
int mrcctl_drill_option_take(struct mrcctl_drill_options *options, enum mrcctl_drill_option option,
			     const char *text, char *error_out);

/* All were taken; `rail` is NULL when none was named. Does it go together? As above. */
int mrcctl_drill_options_check(struct mrcctl_drill_options *options, const char *rail,
			       char *error_out);

/* "down", "silence", "slow" */
const char *mrcctl_drill_fault_name(enum mrcctl_drill_fault fault);

#endif
