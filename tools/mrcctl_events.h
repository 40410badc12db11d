/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_events - print what befell paths, rails and peers, and go on with it
 *
 * Threads: one.  I/O: the control socket, stdout, stderr.
 */
#ifndef MRCCTL_EVENTS_H
#define MRCCTL_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* How far who follows has come. All zero: not begun. */
struct mrcctl_events_place {
	uint64_t since;
	char boot_id[24]; /* of the daemon that numbers so; "": none has been heard */
};

/*
 * Print one answer of the command "events" and move the place on. 0: all is
 * told; 1: ask again at once, there is more, or another daemon answered and
 * numbers from 1; -EBADMSG: it is no such answer.
 */
int mrcctl_events_take(struct mrcctl_events_place *place, const json_t *result, bool is_json,
		       bool has_colour, FILE *out);

/* All that is kept; with is_following until somebody ends us. The exit status. */
int mrcctl_events(const char *socket, bool is_following, bool is_json);

#endif
