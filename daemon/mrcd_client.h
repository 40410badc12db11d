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

#include "mrcd_bundle.h"
#include "mrcd_image.h"
#include "mrcd_worker.h"

#define MRCD_SOCKET_PATH_BYTES 128

/* <runtime-dir>/mrcd.sock */
void mrcd_client_side_path(const struct mrcd_worker *worker, char path_out[MRCD_SOCKET_PATH_BYTES]);

/*
 * Listen at <runtime-dir>/mrcd.sock, or take over `listen_fd` when it is not
 * -1 (socket activation; then ours to close).
 */
int mrcd_client_side_new(struct mrcd_worker *worker, int listen_fd,
			 struct mrcd_client_side **clients_out);
/* The socket taken over is not somebody else's: its file is ours to remove at the end. */
void mrcd_client_side_own(struct mrcd_client_side *clients);
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

/* ---- another configuration (mrcd_reload.h) ---- */

/* Room for so many peers of the worker. -ENOMEM: nothing has changed. */
int mrcd_client_side_peers_reserve(struct mrcd_client_side *clients, uint32_t peer_count);
/*
 * worker->conf is another one: take its limits and quotas, and hold clients to its rules. Who has
 * more than a quota of today gives keeps it.
 */
void mrcd_client_side_configure(struct mrcd_client_side *clients);
/*
 * Does a channel name this peer, if only until its program has read what is left of it? Then the
 * program's name and *pid_out; else NULL.
 */
const char *mrcd_client_side_holder(const struct mrcd_client_side *clients,
				    const struct mrcd_peer *peer, pid_t *pid_out);
/* The peer is to be freed. False: somebody holds it still. */
bool mrcd_client_side_release(struct mrcd_client_side *clients, const struct mrcd_peer *peer);

/* A drain of this host begins or ends (mrcd_drain.h): tell programs, and refuse what is not open yet. */
void mrcd_client_side_drain(struct mrcd_client_side *clients);
/* One of this peer's host did: tell who has open channels to it. Bells are rung by mrcd_client_side_flush(). */
void mrcd_client_side_peer_drain(struct mrcd_client_side *clients, const struct mrcd_peer *peer);
/* Messages that programs have sent and that are not answered, and their bytes. */
void mrcd_client_side_in_flight(const struct mrcd_client_side *clients, uint64_t *messages_out,
				uint64_t *bytes_out);

/* ---- from one daemon to the next (mrcd_handover.h); `peers` are numbered as in the image ---- */

/* Read nothing of clients any more. What engines say of them is still done. */
void mrcd_client_side_pause(struct mrcd_client_side *clients);
/* Paused: take dead clients apart. True: something was done, and engines may have something to say. */
bool mrcd_client_side_settle(struct mrcd_client_side *clients);
/*
 * All descriptors of the socket if it is ours, of clients, and of those who are about to attach.
 * A client whose descriptors cannot be passed on ends, and says so in the log; the others go on.
 * Negative errno: the socket's cannot.
 */
int mrcd_client_side_pack(struct mrcd_client_side *clients, struct mrcd_bundle *bundle);
/* Nothing may change between this and the end. */
void mrcd_client_side_save(const struct mrcd_client_side *clients, struct mrcd_peer *const *peers,
			   uint32_t peer_count, struct mrcd_image_out *out);
/* It has worked: what is shared with clients belongs to the next daemon, and freeing leaves it alone. */
void mrcd_client_side_leave(struct mrcd_client_side *clients);

/*
 * Of a fresh client side: be what was saved. peers[i] NULL: there is no such peer any more.
 * Takes descriptors out of the parcels. On error `why` says why, and the client side must be freed.
 */
int mrcd_client_side_restore(struct mrcd_client_side *clients, struct mrcd_peer *const *peers,
			     uint32_t peer_count, struct mrcd_image_in *in,
			     struct mrcd_parcel *parcels, uint32_t parcel_count,
			     char why[MRCD_IMAGE_WHY_BYTES]);
/* After that: read clients again. */
void mrcd_client_side_resume(struct mrcd_client_side *clients);

/*
 * The services' rules may be others than when clients did what they did: end what they would
 * not let them do now. A name that a client may not offer is taken from it, and who waits to be
 * accepted there is refused. A channel that it may not have, to a service or by one, is closed
 * as if the client had done so: what is under way is settled, and nothing more is taken.
 * Each is logged, with the client.
 */
void mrcd_client_side_hold_to_rules(struct mrcd_client_side *clients);

/* What a client would lose by that, were `conf` in force. */
struct mrcd_client_loss {
	const char *client; /* its name; lent */
	pid_t pid;
	uid_t uid;
	uint32_t services, channels; /* names that it offers, channels that it has */
};
typedef int (*mrcd_client_loss_fn)(void *context, const struct mrcd_client_loss *loss);
/* Each client that would lose something, until on_loss() answers something else than 0, which is answered. */
int mrcd_client_side_each_loss(const struct mrcd_client_side *clients, const struct mrcd_conf *conf,
			       mrcd_client_loss_fn on_loss, void *context);

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
