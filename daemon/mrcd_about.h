/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_about - what this daemon tells of itself, its host and its rails: to mrcctl doctor, and to peers
 *
 * Peers are told on each path when it comes up, when the kernel speaks of the
 * rail's interface, and when somebody sets the clock; what has not changed is
 * not sent again.
 *
 * Threads: the worker's loop.  I/O: none but the first look for rdma-core's version;
 *          what it says of interfaces is what mrcd_nic.h keeps.
 */
#ifndef MRCD_ABOUT_H
#define MRCD_ABOUT_H

#include <jansson.h>

#include "mrcd_rail.h"

struct mrcd_about; /* watches the clock */

/* -ENOMEM, or what the kernel says to a timer. */
int mrcd_about_new(struct mrcd_worker *worker, struct mrcd_about **about_out);
void mrcd_about_free(struct mrcd_about *about);

/* The control command "about": a new reference; NULL: no memory. */
json_t *mrcd_about_json(struct mrcd_worker *worker);
/* What a peer has told, as the member "about" of a path. */
json_t *mrcd_about_peer_json(const struct mrc_about *about);

/* Tell every peer with a path over this rail (and pump it), or this one alone (and do not). */
void mrcd_about_tell_all(struct mrcd_rail *rail);
void mrcd_about_tell(struct mrcd_peer *peer, uint8_t path_index, const struct mrcd_rail *rail);

#endif
