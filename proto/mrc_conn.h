/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_conn - our association with one peer daemon: all paths, all channels, one epoch
 *
 * The pump, the same in the daemon and in the simulator:
 *
 *	mrc_conn_handle(conn, &ev, now_ns);         any number of events
 *	while (mrc_conn_next_action(conn, &act, now_ns))
 *		perform(&act);
 *	arm(mrc_conn_deadline_ns(conn));
 *
 * Actions are made from state when they are taken, so nothing queues up here
 * and several events may be handled before the actions are taken.
 *
 * Units:     bytes; nanoseconds of one monotonic clock.
 * Ownership: the conn owns its channels and paths; payload memory is never touched.
 * Threads:   one at a time (its worker's loop).
 * I/O, time: none; now_ns is an argument.
 */
#ifndef MRC_CONN_H
#define MRC_CONN_H

#include "mrc_event.h"
#include "mrc_hello.h"
#include "mrc_histogram.h"
#include "mrc_limits.h"

struct mrc_conn;

struct mrc_conn_config {
	const char *host;                /* ours; copied */
	const char *peer;                /* theirs; copied */
	uint64_t boot_id;                /* ours */
	uint64_t seed;                   /* of the jitter */
	uint8_t path_count;              /* 1 to MRC_PATHS_MAX */
	uint8_t paths_max;               /* so many there may ever be; 0: no more than path_count */
	uint32_t rail_of[MRC_PATHS_MAX]; /* path index -> local rail index, for PORT_STATUS */
	uint32_t features;               /* that are offered to the peer, see mrc_hello.h */
	struct mrc_limits limits;
	struct mrc_alloc alloc;
	/*
	 * The clock itself, for the moments of traced messages and of probes, which an event's
	 * time would blur. NULL: the event's time it is. Never less than that.
	 */
	uint64_t (*stamp)(void *context);
	void *stamp_context;
	bool has_one_clock; /* both ends are on this machine */
};

/* -EINVAL, -ENOMEM. All paths begin CONNECTING. */
int mrc_conn_new(const struct mrc_conn_config *config, struct mrc_conn **conn_out);
void mrc_conn_free(struct mrc_conn *conn);

/*
 * -EPROTO   the peer broke the protocol with this frame: the path must be closed
 * -ENOENT   no such channel, or not in a state for this
 * -ENOSPC   a limit is reached (CH_OPEN), or no message slot is free (SEND; MRC_ACT_CH_ROOM
 *           says when to try again); nothing changed
 * -EMSGSIZE SEND: the peer does not take so large a message; nothing changed
 * -EINVAL   a number or level out of range; nothing changed
 * -EALREADY COMMIT, REJECT, RELEASE: done before
 */
int mrc_conn_handle(struct mrc_conn *conn, const struct mrc_event_in *ev, uint64_t now_ns);
bool mrc_conn_next_action(struct mrc_conn *conn, struct mrc_action *act_out, uint64_t now_ns);
uint64_t mrc_conn_deadline_ns(const struct mrc_conn *conn);

/*
 * Where the payload of this fragment goes, asked before every read of a rail
 * whose payload comes in a stream. `done` bytes of the body were read already.
 * Answers how many of the next bytes have one destination, and in *place_out
 * which; they may differ from the last answer (the range was completed by
 * another path, or the message is gone).
 */
struct mrc_place {
	bool is_scratch; /* read it and throw it away */
	bool is_eager;
	uint64_t channel_cookie; /* whose landing arena */
	uint64_t
		addr; /* its landing ring's offset (is_eager: relative to the ring), or arena offset */
};
uint32_t mrc_conn_place(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr, uint32_t done,
			struct mrc_place *place_out);

/* Where the whole fragment lies, to verify its checksum there: false when it is not ours to read. */
bool mrc_conn_place_whole(struct mrc_conn *conn, const struct mrc_wire_hdr *hdr,
			  struct mrc_place *place_out);

/* ---- what changes while it lives ---- */

/*
 * A path more, in this slot: the next one (path_count), or that of a path that was taken away.
 * It begins CONNECTING, with a carrier and not denied.
 * -EINVAL  there is no such slot, or no memory for it (paths_max)
 * -EEXIST  a path has it
 */
int mrc_conn_path_add(struct mrc_conn *conn, uint8_t index, uint64_t now_ns);
/*
 * Take a path away that was denied, and whose transport is gone (fenced, and no attempt under way).
 * Its slot keeps counting epochs and may be used again. -EBUSY: it is not so far. -EINVAL.
 */
int mrc_conn_path_remove(struct mrc_conn *conn, uint8_t index);
/* Other timers (the suspect_*, probe_*, backoff_*, peer_silent, revive and hold_good of completed limits). */
void mrc_conn_set_timers(struct mrc_conn *conn, const struct mrc_limits *limits);

/* ---- handshake ---- */

/* Fills what we say of ourselves on this path; the embedder adds the nonce. */
void mrc_conn_hello(const struct mrc_conn *conn, uint8_t path_index, struct mrc_hello *hello_out);
/*
 * `auth` as mrc_hello_conclude() made it. -ESTALE: things have moved on since these HELLOs; try
 * again. -EPROTONOSUPPORT: the two have no version in common.
 */
int mrc_conn_join(const struct mrc_conn *conn, uint8_t path_index, const struct mrc_auth *auth,
		  uint64_t peer_boot_id);
bool mrc_conn_is_initiator(const struct mrc_conn *conn);

/* ---- looking in, for mrcctl and metrics ---- */

struct mrc_path_info {
	enum mrc_path_state state;
	enum mrc_path_reason reason; /* of the last time it left service */
	bool is_absent;              /* taken away: nothing else here means anything */
	bool is_connecting;
	bool is_connected;
	bool is_carrier_up;
	bool is_filled; /* it was kept full lately: what its rate says is its own */
	uint32_t epoch;
	uint8_t version;   /* of the protocol, as agreed for this epoch; 0: never connected */
	uint32_t features; /* and what else was agreed on */
	uint32_t frames_in_flight;
	uint64_t bytes_in_flight;
	uint64_t window_bytes;
	uint64_t rate_bytes_per_s; /* delivery rate estimate */
	uint64_t rtt_ns;           /* smoothed */
	uint64_t rtt_ns_min;
	uint64_t frames_sent, frames_received, bytes_sent, bytes_received; /* payload bytes */
	uint64_t frames_resent; /* taken off this path and sent on another */
	uint64_t suspicions, suspicions_false;
	uint64_t body_errors, header_errors;
	uint64_t good_count; /* times it came into service */
	uint64_t bad_count;  /* times it left service */
	uint64_t state_since_ns;
};

struct mrc_conn_info {
	uint32_t epoch; /* 0: never met */
	uint64_t peer_boot_id;
	uint8_t path_count;   /* slots: paths have numbers below it */
	uint8_t paths_listed; /* of them, not taken away */
	uint8_t paths_good;
	uint32_t channel_count;
	bool is_peer_silent;
	bool is_peer_draining; /* its host takes no new channels */
	bool is_status_told; /* it has answered what we said last of our ports, drains and drills */
	uint64_t resets;     /* conn epochs begun after the first */
	uint64_t messages_sent, messages_delivered, messages_failed;
	uint64_t duplicates; /* fragments that were not needed */
	uint64_t protocol_errors;
	/* The peer's clock: what was added to ours to make it; right to +-clock_error_ns by now. */
	bool is_clock_known;
	int64_t clock_offset_ns;
	uint64_t clock_error_ns;
	uint64_t clock_age_ns; /* since the probe that told */
};

struct mrc_channel_info {
	uint32_t id;
	uint64_t cookie;
	const char *state;   /* static string */
	const char *service; /* valid until the next event */
	bool is_unordered, is_unchecked, is_opener;
	uint64_t sent, sent_settled, delivered, released; /* message numbers */
	uint64_t bytes_sent, bytes_delivered;
	uint32_t sends_queued;
	uint64_t untraced; /* sends that were to be traced while as many as can be were */
};

void mrc_conn_info(const struct mrc_conn *conn, struct mrc_conn_info *info_out);
/* After MRC_EV_ARRIVED was answered -EPROTO: what was wrong, for people. A static string. */
const char *mrc_conn_breach(const struct mrc_conn *conn);
void mrc_conn_path_info(const struct mrc_conn *conn, uint8_t path_index,
			struct mrc_path_info *info_out);
/*
 * What the peer said last about its end of this path, also while that is down; NULL: nothing in
 * this conn epoch. Valid until the next event. Texts are printable, and the peer chose them.
 */
const struct mrc_about *mrc_conn_path_about(const struct mrc_conn *conn, uint8_t path_index);
/*
 * All connected paths have agreed on this feature, and at least one is. It is agreed on for
 * a path epoch: the peer may come back as an older program in the same conn epoch, so what
 * depends on a feature has to bear that it is gone.
 */
bool mrc_conn_has_feature(const struct mrc_conn *conn, uint32_t feature);
/* All its round trips; valid as long as the conn. */
const struct mrc_histogram *mrc_conn_path_rtts(const struct mrc_conn *conn, uint8_t path_index);
/* Walk the channels: start with *iter 0; false at the end. */
bool mrc_conn_channel_info(const struct mrc_conn *conn, uint32_t *iter,
			   struct mrc_channel_info *info_out);

const char *mrc_path_state_name(enum mrc_path_state state);
const char *mrc_path_reason_name(enum mrc_path_reason reason);

#endif
