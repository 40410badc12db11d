/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_top_view - the page of mrcctl top: two snapshots in, characters out
 *
 *	 a: 4 of 4 rails up, 1 of 1 peer connected, 1 client, 1 channel       17:20:31
 *	 out 3.81 Gb/s  in 12 Mb/s  sent 454/s  delivered 0/s    mrcd 0.1.0, up 2h 05m
 *	RAIL   STATE ...     all of them, or as many as fit, those in trouble first
 *	PEER   STATE ...
 *	CHANNEL ...          the busiest, by what is sorted by
 *	TIME   EVENT         the newest at the bottom
 *	 q quit  s sort: rate  p pause  h help                                  every 1 s
 *
 * Nothing is remembered here: the same view gives the same page.
 *
 * Units:     times as said; rates of payload.
 * Ownership: all that a view points to is lent.
 * Threads:   one.  I/O, time: none.
 */
#ifndef MRCCTL_TOP_VIEW_H
#define MRCCTL_TOP_VIEW_H

#include <time.h>

#include "mrcctl_canvas.h"
#include "mrcctl_snapshot.h"
#include "mrcctl_top_log.h"

/* What the busiest are. In the order of the key that changes it. */
enum mrcctl_top_sort {
	MRCCTL_TOP_RATE,
	MRCCTL_TOP_MESSAGES,
	MRCCTL_TOP_QUEUED,
	MRCCTL_TOP_NAME,
	MRCCTL_TOP_SORTS,
};

struct mrcctl_top_view {
	struct mrcctl_snapshot before, after; /* `before` may be all 0: then no rate is known */
	const struct mrcctl_top_log *log;     /* NULL: a single frame, without events and keys */
	enum mrcctl_top_sort sort;
	bool is_paused, shows_help;
	const char *trouble; /* with the daemon; NULL: none */
	time_t at;           /* the wall clock at `after` */
	uint64_t interval_ns;
};

/* The rows a single frame takes to show all there is. */
size_t mrcctl_top_view_rows(const struct mrcctl_top_view *view);

/* Draw onto a page that is blank. */
void mrcctl_top_view_draw(const struct mrcctl_top_view *view, struct mrcctl_canvas *canvas);

#endif
