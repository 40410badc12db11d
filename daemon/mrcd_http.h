/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_http - metrics and the status page over HTTP, for whoever may look
 *
 *	GET /                    the status page (mrcd_status.html)
 *	GET /metrics             Prometheus' text format (mrcd_metrics.h)
 *	GET /status.json?since=N what the page polls (mrcd_status.h)
 *
 * It runs on the data path's loop, so everything is small: a connection is one
 * request; its head has a bound and a time; so many connections at once, of
 * which the oldest that has not said what it wants makes room; and an answer is
 * made piece by piece, the next one when the last has left. Nothing here changes
 * anything of the daemon.
 *
 * Bounds:  below.  Threads: the worker's loop.
 */
#ifndef MRCD_HTTP_H
#define MRCD_HTTP_H

#include "mrcd_worker.h"

#define MRCD_HTTP_CONNECTIONS_MAX 16U
#define MRCD_HTTP_ASK_S           5  /* to say what one wants */
#define MRCD_HTTP_ANSWER_S        30 /* to take all of the answer */

struct mrcd_http;

/*
 * Answer at conf->metrics.address. While that cannot be had (another daemon, an
 * interface that is not up yet) it is logged and tried again. -ENOMEM.
 */
int mrcd_http_new(struct mrcd_worker *worker, struct mrcd_http **http_out);
/* The same in two steps: what can fail, and what makes it answer. */
int mrcd_http_make(struct mrcd_worker *worker, struct mrcd_http **http_out);
void mrcd_http_start(struct mrcd_http *http);
/* A socket that listens there; or a negative errno, not logged. */
int mrcd_http_listen(const struct mrcd_conf_metrics *conf);
/* NULL is fine. */
void mrcd_http_free(struct mrcd_http *http);

/* Requests answered, and turned away: malformed, of a method or host that is not served, too many. */
uint64_t mrcd_http_requests(const struct mrcd_http *http);
uint64_t mrcd_http_refusals(const struct mrcd_http *http);
/* Where it listens, as it was bound; 0: it does not. */
uint16_t mrcd_http_port(const struct mrcd_http *http);

#endif
