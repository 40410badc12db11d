/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_peer - one peer host: its engine, its paths' links, and the pump between them
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_PEER_H
#define MRCD_PEER_H

#include <jansson.h>

#include "mrcd_worker.h"

/* conf NULL: an end of the conn with ourselves, which has one path over loop_rail. */
int mrcd_peer_new(struct mrcd_worker *worker, const struct mrcd_conf_peer *conf,
		  const char *name, const char *own_name, struct mrcd_peer **peer_out);
/* Fences and frees its links. */
void mrcd_peer_free(struct mrcd_peer *peer);

/* Hand an event to the engine, with this turn's time. Does not pump. */
int mrcd_peer_handle(struct mrcd_peer *peer, const struct mrc_event_in *ev);

/* Give every path over this rail back (is_denied false) or take it out of service. Pumps. */
void mrcd_peer_deny_rail(struct mrcd_peer *peer, uint32_t rail_index, bool is_denied);

json_t *mrcd_peer_json(const struct mrcd_peer *peer);
json_t *mrcd_peer_paths_json(const struct mrcd_peer *peer);
json_t *mrcd_peer_channels_json(const struct mrcd_peer *peer);

#endif
