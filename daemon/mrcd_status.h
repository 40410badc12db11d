/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_status - the status page, and what it polls
 *
 * The page is mrcd_status.html, put into the daemon when it is built.
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_STATUS_H
#define MRCD_STATUS_H

#include <jansson.h>

#include "mrcd_worker.h"

/* What is told has bounds, for it is made on the data path's loop; those that are out of order come first. */
#define MRCD_STATUS_PEERS_MAX 32U
#define MRCD_STATUS_PATHS_MAX 128U
#define MRCD_STATUS_STALL_NS  (10 * MRC_S) /* "longest_ns" is of so long */

extern const unsigned char mrcd_status_page[];
extern const size_t mrcd_status_page_bytes;

/*
 * How all stands, with the events after `since` (see mrcd_event_log_json()).
 * "peers_left_out" says how many peers there are beyond the bound. A new
 * reference; NULL when memory is short.
 */
json_t *mrcd_status_json(struct mrcd_worker *worker, uint64_t since);

#endif
