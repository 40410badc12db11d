/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_peer - one peer host: its engine, its paths' links, and the pump between them
 *
 * The functions that kinds of rails call are declared in mrcd_rail.h. All of
 * them may be called from inside ops->post, flush, connect and fence, since
 * none performs the engine's actions before it returns: that is done at the end
 * of the turn (mrcd_peer_pump), so no link is closed under its caller's feet.
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_PEER_H
#define MRCD_PEER_H

#include <jansson.h>

#include "mrcd_image.h"
#include "mrcd_worker.h"

struct mrcd_stall_meter; /* mrcd_stall.h */

/*
 * conf NULL: an end of the conn with ourselves, which has one path over
 * loop_rail. Its rails are the worker's, by their index. All texts are copied: `name` and
 * `own_name` are what the two engines call each other. Answers what mrc_conn_new() does, or -ENOMEM.
 */
int mrcd_peer_new(struct mrcd_worker *worker, const struct mrcd_conf_peer *conf, const char *name,
		  const char *own_name, struct mrcd_peer **peer_out);
/* The rails are open: tell the engine which have a carrier and which are drained, and pump. */
void mrcd_peer_start(struct mrcd_peer *peer);
/* Fences its links, ends attempts to connect, and pumps no more. The engine still answers. */
void mrcd_peer_stop(struct mrcd_peer *peer);
/* Fences and frees its links. */
void mrcd_peer_free(struct mrcd_peer *peer);

/*
 * Pump those for whom it was asked while the worker looks (mrcd_worker.h), once
 * each; whom that asks for again has its turn next time.
 */
void mrcd_peer_pump_kicked(struct mrcd_worker *worker);

/* ---- from one daemon to the next (mrcd_handover.h) ---- */

/* Fence all links and make none any more; the engine goes on being asked what it wishes. */
void mrcd_peer_quiesce(struct mrcd_peer *peer);
/* Pump now. True: no link is left, not even one that is being fenced. */
bool mrcd_peer_settle(struct mrcd_peer *peer);
/* Its engine's state. -EBUSY: it is not settled. Otherwise as mrc_conn_export(), -ENOMEM. */
int mrcd_peer_save(struct mrcd_peer *peer, struct mrcd_image_out *out);
/*
 * Of a peer that has not started: go on from there, or (state NULL) begin anew under the
 * worker's boot id. marks: of the paths that the state has, by slot, 0 beyond them; those that
 * are listed still go where they were, others where there is room. As mrc_conn_import(), with
 * its *why_out, or mrc_conn_new().
 */
int mrcd_peer_restore(struct mrcd_peer *peer, const uint32_t marks[MRC_PATHS_MAX],
		      const void *state, size_t state_bytes, const char **why_out);

/* ---- other paths while it runs (mrcd_peer_paths.c) ---- */

/* Have room for so many paths more, so that adding them does not fail. -ENOSPC, -ENOMEM. */
int mrcd_peer_reserve(struct mrcd_peer *peer, uint8_t count);
/* A path more, over a rail that is open. Does not pump. */
void mrcd_peer_path_add(struct mrcd_peer *peer, const struct mrcd_conf_path *conf,
			struct mrcd_rail *rail);
/* Other keys, for paths that open from now on. */
void mrcd_peer_set_keys(struct mrcd_peer *peer, const struct mrcd_key *keys, uint32_t key_count);
/* The worker's configuration has other timers. */
void mrcd_peer_set_timers(struct mrcd_peer *peer);
/* As it runs: the paths that are not to go, in the order of their slots; rails by the worker's index. */
void mrcd_peer_listed(const struct mrcd_peer *peer, struct mrcd_conf_peer *conf_out);
/* The slot of the path that is like this one over `rail`, to go or not; -ENOENT. */
int mrcd_peer_path_find(const struct mrcd_peer *peer, const struct mrcd_rail *rail,
			const struct mrcd_conf_path *conf);
/* It is to go, or is to stay after all. What is under way is not taken back. */
void mrcd_peer_path_doom(struct mrcd_peer *peer, uint8_t index, bool is_going);
/* The whole peer is to go: it has no channel, and from now on nobody finds it. */
void mrcd_peer_doom(struct mrcd_peer *peer);
bool mrcd_peer_is_going(const struct mrcd_peer *peer);
/* Paths that are to go; and whether any of them carries nothing any more for that. */
uint32_t mrcd_peer_paths_going(const struct mrcd_peer *peer);
bool mrcd_peer_is_cutting(const struct mrcd_peer *peer);
/* A path is good that is not to go, over another rail than this (NULL: any) that is not leaving. */
bool mrcd_peer_has_else(const struct mrcd_peer *peer, const struct mrcd_rail *rail);
/*
 * Go on with those that are to go: each is denied once another is good, and its slot is free when
 * its transport has gone. Pumps. True: none is left.
 */
bool mrcd_peer_tend(struct mrcd_peer *peer);
/* Deny its paths over this rail, which is leaving; or give them back, when it is open again. Pumps. */
void mrcd_peer_leave_rail(struct mrcd_peer *peer, struct mrcd_rail *rail, bool is_leaving);
/* Pump; end attempts over this rail. True: no link of the peer is left on it. */
bool mrcd_peer_has_left(struct mrcd_peer *peer, struct mrcd_rail *rail);
/* Of one that is to go: no link is left, and nothing of any rail's memory. Pumps. */
bool mrcd_peer_is_over(struct mrcd_peer *peer);

/* ---- */

/* Its host is being drained, as it says. Of our own, at the other end of the loop: no. */
bool mrcd_peer_is_draining(const struct mrcd_peer *peer);
/* It is to know whether our host is being drained. Pumps. */
void mrcd_peer_tell_drain(struct mrcd_peer *peer);
/* And that its paths over this rail are to fail on purpose, or no longer. Pumps. */
void mrcd_peer_tell_drill(struct mrcd_peer *peer, const struct mrcd_rail *rail, bool is_on);
/* It has this path fail on purpose itself, as it says. */
bool mrcd_peer_is_drilling(const struct mrcd_peer *peer, uint8_t index);
/* It has answered what we told last of drains and drills; or cannot, for no path is good. */
bool mrcd_peer_has_heard(const struct mrcd_peer *peer);

/* Hand an event to the engine, with this turn's time. Does not pump. */
int mrcd_peer_handle(struct mrcd_peer *peer, const struct mrc_event_in *ev);

/*
 * Tell the engine the key of a client's landing memory for every path over this
 * rail; key->index is ours to fill. Does not pump. False: it has no channel of
 * that flow, or no such path; it was told nothing.
 */
bool mrcd_peer_tell_key(struct mrcd_peer *peer, const struct mrcd_rail *rail,
			const struct mrc_ev_key *key);

/* Give every path over this rail back (is_denied false) or take it out of service. Pumps. */
void mrcd_peer_deny_rail(struct mrcd_peer *peer, uint32_t rail_index, bool is_denied);

/* True when all good paths to this peer use this rail (and there is at least one). */
bool mrcd_peer_needs_rail(const struct mrcd_peer *peer, uint32_t rail_index);

/* Paths over this rail; *good_out: how many of them are good. */
uint32_t mrcd_peer_rail_paths(const struct mrcd_peer *peer, uint32_t rail_index,
			      uint32_t *good_out);

/* The rail of this path; NULL: the path was taken away. */
struct mrcd_rail *mrcd_peer_path_rail(const struct mrcd_peer *peer, uint8_t path_index);
/*
 * Tells the paths of a peer from each other, over restarts: made of the rail's name and the
 * far address and port. 0 beyond the last one, and for an end of the loop.
 */
#define MRCD_PATH_MARK_ABSENT 1U /* of a slot whose path was taken away */
uint32_t mrcd_peer_path_mark(const struct mrcd_peer *peer, uint8_t path_index);
/* How well this path does. */
const struct mrc_health_view *mrcd_peer_path_health(const struct mrcd_peer *peer,
						    uint8_t path_index);
/* Add the round trips of its paths over `rail`. */
void mrcd_peer_add_rtts(const struct mrcd_peer *peer, const struct mrcd_rail *rail,
			struct mrc_histogram *sum);
/* Where the gaps of its channels' answers are counted. */
struct mrcd_stall_meter *mrcd_peer_stalls(struct mrcd_peer *peer);

/* The operator took the rail out of service, or gives it back. Tells no peer. */
void mrcd_rail_note_drain(struct mrcd_rail *rail, bool is_draining);
/* It is in a drill, here or of a peer's, or was until just now: what befalls it is not its fault. */
bool mrcd_rail_is_excused(const struct mrcd_rail *rail);
/* "down", "silence", "slow": in our drill; "peer": in a peer's; NULL: in none. */
const char *mrcd_rail_drill_name(const struct mrcd_rail *rail);

/* An object, and arrays of objects; new references, NULL when memory is short. */
json_t *mrcd_peer_json(const struct mrcd_peer *peer);
json_t *mrcd_peer_paths_json(const struct mrcd_peer *peer);
json_t *mrcd_peer_channels_json(const struct mrcd_peer *peer);
/* One object for each key that is valid with this peer or that a path still lives by. */
json_t *mrcd_peer_keys_json(const struct mrcd_peer *peer);
/*
 * Of each peer, how long its channels' clients went without an answer (mrcd_stall.h): percentiles
 * since the daemon began; "longest_ns", the longest that ended after since_ns; and
 * "waiting_ns", for how long one waits now, 0 when none does. Of the first peers_max peers.
 */
json_t *mrcd_peer_stalls_json(struct mrcd_worker *worker, uint64_t since_ns, uint32_t peers_max);

#endif
