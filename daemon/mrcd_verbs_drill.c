/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_verbs_drill - a rail of queue pairs that fails on purpose (mrcd_drill.h)
 *
 * Silence: what arrives is not taken in, what is posted is thrown away, as when
 * a post has failed but for the telling. A queue pair itself still acknowledges
 * and places what the peer writes; that is no news to an engine, which counts
 * the frames behind it. What was missed leaves a hole in the count of frames,
 * so a queue pair that nobody has given up by the end is given up then.
 *
 * To slow one down would take work requests that wait here: it is not done.
 */
#include <errno.h>

#include "mrcd_verbs.h"

static void link_silence(struct mrcd_verbs_link *link)
{
	link->is_drilled = true;
	link->is_deaf = true;
	link->post_error = ECOMM;
	/* Nor would the end of the peer's process be heard. */
	if (link->fd >= 0)
		event_del(&link->fd_event);
}

/* Links that are being made have no epoch that anybody relies on. */
static void links_silence(struct mrcd_verbs *verbs)
{
	struct mrcd_verbs_link *link, *next;

	for (link = LIST_FIRST(&verbs->links); link; link = next) {
		next = LIST_NEXT(link, entry);
		if (link->state == MRCD_VERBS_LINK_UP)
			link_silence(link);
		else if (mrcd_verbs_link_is_attempt(link))
			mrcd_verbs_link_down(link, MRC_REASON_CONNECT, "cut by a drill");
	}
}

static void links_end(struct mrcd_verbs *verbs)
{
	struct mrcd_verbs_link *link, *next;

	for (link = LIST_FIRST(&verbs->links); link; link = next) {
		next = LIST_NEXT(link, entry);
		if (link->is_drilled && link->state == MRCD_VERBS_LINK_UP)
			mrcd_verbs_link_down(link, MRC_REASON_SILENT,
					     "nobody gave it up before the drill ended");
	}
}

int mrcd_verbs_drill(struct mrcd_rail *rail)
{
	struct mrcd_verbs *verbs = rail->kind_data;

	if (rail->drill == MRCD_DRILL_SLOW)
		return -ENOTSUP;
	if (verbs->tcp)
		mrcd_tcp_drill(verbs->tcp);
	if (rail->drill == MRCD_DRILL_NONE)
		links_end(verbs);
	else
		links_silence(verbs);
	return 0;
}
