/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_client - local programs: their socket, rings, arenas, channels, services
 *
 * All input from clients is hostile until checked (ring_abi.h, "Trust"). A
 * client that breaks the rules is ended, with a line in the log; nobody else
 * notices.
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_CLIENT_H
#define MRCD_CLIENT_H

#include <jansson.h>

#include "mrcd_worker.h"

/*
 * Listen at <runtime-dir>/mrcd.sock, or take over `listen_fd` when it is not
 * -1 (socket activation; then ours to close).
 */
int mrcd_client_side_new(struct mrcd_worker *worker, int listen_fd,
			 struct mrcd_client_side **clients_out);
void mrcd_client_side_free(struct mrcd_client_side *clients);

/*
 * An action of the engine that concerns a client (MRC_ACT_CH_*, DELIVER, GAP,
 * DONE, LANDING_*). May call mrc_conn_handle() of that peer, but does not
 * pump. Called by mrcd_peer.c while it pumps.
 */
void mrcd_client_side_perform(struct mrcd_client_side *clients, struct mrcd_peer *peer,
			      const struct mrc_action *act);

/* One part of what clients want: see "A turn" in mrcd_client_impl.h. The loop does it by itself. */
void mrcd_client_side_turn(struct mrcd_client_side *clients);

/* End of a pump: ring the bells of clients that got completions. */
void mrcd_client_side_flush(struct mrcd_client_side *clients);

/* For mrcctl: an array of clients with their counters. New reference. */
json_t *mrcd_client_side_json(const struct mrcd_client_side *clients);
/* Adds client name, pid and service to a channel's object, by its cookie. */
void mrcd_client_side_describe(const struct mrcd_client_side *clients, uint64_t channel_cookie,
			       json_t *object);
/* Trace one in `every` of the sends of this channel's client; 0: none. One that is gone is fine. */
void mrcd_client_side_trace(struct mrcd_client_side *clients, uint64_t channel_cookie,
			    uint32_t every);
/* Call `each` for every channel one of whose sends is not answered yet: its peer, and since when nothing was. */
void mrcd_client_side_each_waiting(const struct mrcd_client_side *clients,
				   void (*each)(void *context, struct mrcd_peer *peer,
						uint64_t since_ns),
				   void *context);
uint32_t mrcd_client_side_count(const struct mrcd_client_side *clients);

#endif
