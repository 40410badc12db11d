/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_events - what befell paths, rails and peers: follow the daemon's ring of it, and print it
 *
 * Threads: one.  I/O: the control socket, stdout, stderr.
 */
#ifndef MRCCTL_EVENTS_H
#define MRCCTL_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "mrcctl_table.h"

/* How far who follows has come. All zero: not begun. */
struct mrcctl_events_place {
	uint64_t since;
	char boot_id[24]; /* of the daemon that numbers so; "": none has been heard */
	uint64_t log;     /* its log: a daemon that took the state over has another */
};

/* What one answer brings. */
struct mrcctl_events_news {
	const json_t *events; /* lent by the answer; each has wall_ns, kind and text; NULL: none */
	uint64_t missed;      /* so many were before these, and are lost */
};

/* The question for what comes after that place; new reference. NULL: no memory. */
json_t *mrcctl_events_question(const struct mrcctl_events_place *place);

/*
 * Read one answer of the command "events" and move the place on. 0: that is
 * all; 1: ask again at once, there is more, or another daemon answered and
 * numbers from 1 (then there is no news); -EBADMSG: it is no such answer, and
 * nothing has changed.
 */
int mrcctl_events_advance(struct mrcctl_events_place *place, const json_t *result,
			  struct mrcctl_events_news *news_out);

/* "3 older events are no longer kept" */
#define MRCCTL_EVENTS_MISSED_BYTES 64
const char *mrcctl_events_missed_text(uint64_t missed, char text[MRCCTL_EVENTS_MISSED_BYTES]);

/* How an event is to be looked at. */
enum mrcctl_mood mrcctl_events_mood(const json_t *event);

/* Print one answer and move the place on; answers as mrcctl_events_advance(). */
int mrcctl_events_take(struct mrcctl_events_place *place, const json_t *result, bool is_json,
		       bool has_colour, FILE *out);

/* All that is kept; with is_following until somebody ends us. The exit status. */
int mrcctl_events(const char *socket, bool is_following, bool is_json);

#endif
