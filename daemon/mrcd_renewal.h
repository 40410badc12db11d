/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_renewal - rails, paths and peers on their way out after a reload
 *
 * A reload says what is to become of them (rail->fate, mrcd_peer_path_doom(), mrcd_peer_doom());
 * this carries it out while everything else runs on. A path that carries data is denied only when
 * its peer has another good one that stays, so what was added comes into service first. What it
 * had in flight goes by the others at once; when its transport is fenced it is taken away. A rail
 * is closed when no path is left on it and no engine holds any of its memory. Rails that are
 * opened anew take turns, and their paths keep their places.
 *
 * What cannot be done yet waits, as long as it takes; the next reload may say otherwise.
 *
 * Ownership: the worker's.  Threads: the worker's loop.
 */
#ifndef MRCD_RENEWAL_H
#define MRCD_RENEWAL_H

#include <jansson.h>

#include "mrcd_worker.h"

struct mrcd_renewal;

/* -ENOMEM. Nothing is begun. */
int mrcd_renewal_new(struct mrcd_worker *worker, struct mrcd_renewal **renewal_out);
/* Leaves everything as it is. NULL is fine. */
void mrcd_renewal_free(struct mrcd_renewal *renewal);

/* There is something to do, or other things than before. */
void mrcd_renewal_go_on(struct mrcd_renewal *renewal);
/* Something is half done that cannot be taken back: a rail or path that carries nothing any more. */
bool mrcd_renewal_is_moving(const struct mrcd_worker *worker);
/* What is not done yet, as texts for people: ["rail r1: waits until ..."]. New reference, or NULL. */
json_t *mrcd_renewal_json(const struct mrcd_worker *worker);

#endif
