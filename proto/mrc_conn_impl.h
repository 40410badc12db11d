/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_conn_impl - the inside of a conn, for the files mrc_conn*.c and nobody else
 *
 *	mrc_conn.c        life, handshake, what clients ask for
 *	mrc_conn_paths.c  paths: up, down, judged by time, probed, given up, fenced
 *	mrc_conn_change.c  which paths there are, and the timers
 *	mrc_conn_recv.c   frames from the peer
 *	mrc_conn_act.c    what to do next: paths, frames
 *	mrc_conn_clients.c  what to do next: clients
 *	mrc_ctl.c         the control log: what begins and ends things, once and in order
 *	mrc_conn_about.c  what each end tells about itself
 *	mrc_space.c       landing memory and the keys for writing it directly
 *	mrc_conn_state.c  a conn as bytes, and back; mrc_channel_state.c has its channels
 */
#ifndef MRC_CONN_IMPL_H
#define MRC_CONN_IMPL_H

#include <string.h>

#include "mrc_channel.h"
#include "mrc_conn.h"
#include "mrc_path.h"
#include "mrc_state.h"

#define MRC_HANDLE_SLOT_BITS 14U
#define MRC_ACK_BYTES        (64U * 1024U) /* so much taken in is told at once */
#define MRC_ACK_FRAMES       16U
#define MRC_HOLDS_LOST_MAX   256U /* ranges of copies that were lost before their writer's fence */
#define MRC_WANTS_MAX        16U  /* askings for one message before its sender is blamed */

/* Nodes of the range pool that are kept from what is here, and from what is wanted. */
#define MRC_RANGES_KEPT_HERE(conn)   ((conn)->limits.ranges_max / 2)
#define MRC_RANGES_KEPT_WANTED(conn) ((conn)->limits.ranges_max / 4)

/* A key to landing memory, for writing it directly by one path. */
struct mrc_key {
	uint32_t epoch; /* of the path: theirs is good in it, ours was told in it */
	bool is_given;  /* ours: there is something to tell */
	bool is_valid;
	uint32_t rkey;
	uint64_t base;
};

/*
 * What is short goes along with what has just been posted, by the same path: a
 * system call less at both ends. Not behind more bytes than this.
 */
#define MRC_ALONG_BYTES_MAX (16U * 1024U)
#define MRC_ALONG_LEN_MAX   4096U
#define MRC_ALONG_NS        (200 * MRC_US) /* nor where it arrives so much later than at best */

/*
 * One client's channels with something to send; turns go by client, then channel.
 *
 * Next is who has spent the least, in bytes: a small message waits for one
 * fragment of the others and not for one of each, and nobody gets more for
 * cutting his data otherwise. Who comes begins where the turns are, so nothing
 * is saved up (start-time fair queueing). Twice the weight is charged half.
 */
struct mrc_flow {
	uint32_t id;
	uint32_t channel_count;
	uint32_t space;                     /* its landing memory's number on the wire */
	struct mrc_key keys[MRC_PATHS_MAX]; /* to it, by path index; given to the peer */
	struct mrc_list in_turns;           /* conn->turns, while it has active channels */
	uint32_t weight;                    /* a byte costs MRC_WEIGHT_DEFAULT / weight */
	uint64_t spent;                     /* of the conn's turns */
	struct mrc_list channels;           /* active ones, least spent first */
	uint64_t channels_spent;            /* where their turns are */
	struct mrc_flow *next;
};

/* Landing memory of one of the peer's clients. Kept while a channel leads there, or as there is room. */
struct mrc_space {
	uint32_t id; /* the peer's number */
	uint32_t channel_count;
	struct mrc_key keys[MRC_PATHS_MAX]; /* to it, by our path index */
	struct mrc_space *next;             /* in its bucket */
	struct mrc_list in_unused;          /* conn->unused_spaces, while no channel leads there */
};

/* Of one path: what our end tells, and what the peer has told. */
struct mrc_path_about {
	bool is_given, is_heard;
	struct mrc_about own, theirs;
};

struct mrc_ctl_entry {
	uint8_t type; /* enum mrc_wire_type */
	uint32_t channel;
	uint64_t msg; /* VOID */
};

/* What is to be sent again: a fragment taken off a path, or a range asked for, of any length. */
struct mrc_resend {
	uint32_t channel;
	uint64_t len;
	uint64_t msg;
	uint64_t offset;
	bool is_copy;   /* writer_* wrote first */
	bool is_wanted; /* the peer asked for it: not taken off a path */
	uint8_t blame;  /* 1 + id of the path that damaged it; 0: none */
	uint8_t writer_path;
	uint32_t writer_epoch;
};

enum mrc_hold_state { MRC_HOLD_NONE, MRC_HOLD_WAITING, MRC_HOLD_READY, MRC_HOLD_DONE };

/*
 * A fragment in daemon memory, not yet copied to its place; or, without id, one
 * that was lost here and is asked for again when its writer is fenced.
 */
struct mrc_hold {
	enum mrc_hold_state state;
	uint32_t channel;
	uint64_t id;
	uint8_t blame; /* lost to its checksum: 1 + id of the path it came by; 0: not */
	uint64_t msg, offset, len;
	uint8_t writer_index; /* path index */
	uint32_t writer_epoch;
};

struct mrc_conn {
	char host[MRC_NAME_MAX + 1];
	char peer[MRC_NAME_MAX + 1];
	bool is_initiator;
	const char *breach; /* why the last frame was refused, if it was */
	uint64_t boot_id;
	uint64_t peer_boot_id;
	uint32_t epoch;      /* held; 0: none */
	uint32_t epoch_last; /* highest ever held */
	uint32_t features;   /* offered */
	struct mrc_limits limits;
	struct mrc_alloc alloc;
	struct mrc_rng rng;
	uint64_t now_ns; /* of the event being handled or the action being made */
	uint64_t (*stamp)(void *context);
	void *stamp_context;
	bool has_one_clock;
	struct mrc_clock clock;  /* the peer's, in this conn epoch */
	uint64_t clock_asked_ns; /* a probe was last sent for it */

	uint8_t path_count; /* slots in use, those of paths that were taken away included */
	uint8_t paths_max;  /* there is memory for */
	bool is_number_lost; /* a path of this conn epoch has got another path_id: some name nobody */
	uint32_t rail_of[MRC_PATHS_MAX];
	struct mrc_path paths[MRC_PATHS_MAX];
	struct mrc_record *records;    /* all paths' */
	struct mrc_path_about *abouts; /* by path index */
	bool is_direct_seen;           /* a path of this epoch could place by RDMA write */
	uint64_t silent_since_ns;      /* all paths are late; MRC_NEVER: no */
	uint32_t port_version;
	uint32_t ports_down; /* our ends of paths that are down, by path id */
	uint32_t peer_port_version;
	bool is_draining;           /* our host */
	bool is_peer_draining;      /* the peer's, as it said last */
	bool is_status_stale;       /* the run before may have said more by this version */
	uint32_t port_version_told; /* the last one that the peer has answered */
	uint32_t drilled;           /* paths that we have fail, by index */
	uint32_t peer_drilled, peer_drilled_told; /* and the peer, as it said, as we told */

	/* Channels by id's slot, and by wire id. */
	struct mrc_channel **slots;
	uint32_t *slot_generations;
	uint32_t slot_count, channel_count, slot_hint;
	struct mrc_channel **buckets;
	uint32_t bucket_count; /* power of two */
	uint32_t wire_next;    /* number of the next channel we open */
	struct mrc_flow *flows;
	uint32_t space_next;              /* number of the next flow's landing memory */
	struct mrc_space **space_buckets; /* bucket_count; of the peer's clients */
	uint32_t space_count;             /* at most as many as channels */
	struct mrc_list unused_spaces;    /* oldest first */

	/* Work lists of channels. */
	struct mrc_list all, client_work, fact_work, lazy_work, drain_work;
	struct mrc_list turns;  /* of flows, least spent first */
	uint64_t turns_spent;   /* where they are */
	uint64_t backlog_bytes; /* granted and never sent, all channels */

	/* Control log. */
	struct mrc_ctl_entry *ctl; /* ctl_count is a power of two */
	uint32_t ctl_count;
	uint64_t keys_after; /* no path is told keys before ctl_acked has come so far */
	uint64_t ctl_next, ctl_sent, ctl_acked; /* numbers to append, to send, taken by the peer */
	uint64_t ctl_taken;                     /* numbers of the peer's taken by us */
	uint64_t ctl_back_ns;                   /* last time it went back */
	uint8_t ctl_path;                       /* the one they go on while it is good */

	/* Resends. Twice all paths' records: those that come off dead paths, and as many ranges asked for. */
	struct mrc_resend *resends; /* resend_count is a power of two */
	uint32_t resend_count;
	uint64_t resend_head, resend_tail;
	uint32_t frags_out; /* in flight, and not yet said again: each may become a resend */

	/* Holds: the embedder's holds_max buffers, and the lost ones. */
	struct mrc_hold *holds;
	uint32_t hold_count, holds_used, holds_ready, holds_lost;

	/*
	 * Ranges: what is here may take the pool's first half, what is wanted half of
	 * the rest. The last quarter is for WANTs that come back from a dead path.
	 */
	struct mrc_range_node *range_nodes;
	struct mrc_range_pool ranges;
	uint32_t wants_out; /* WANT frames not acknowledged; at most that quarter */

	/* Acknowledgements we owe. */
	uint64_t ack_due_ns; /* MRC_NEVER: none */
	bool ack_now;
	bool ack_has_news; /* it speaks of more than ACKs: the peer acknowledges it */
	uint32_t ack_frames;
	uint64_t ack_bytes;
	bool has_along;       /* one of them by a path that was chosen for it: */
	uint8_t along_index;  /* this one, of the last */
	bool is_posting;      /* frames were posted since the last time there was nothing to do */
	uint64_t lazy_due_ns; /* facts in lazy_work are told by then */

	bool do_reset;      /* tell the embedder of a new epoch */
	bool do_peer_drain; /* and of the peer's host being drained, or no longer */
	uint64_t active_ns; /* last time a message was under way */

	/* Counters. */
	uint64_t resets, messages_sent, messages_delivered, messages_failed, duplicates,
		protocol_errors;
};

/* How long an acknowledgement may wait for company: below a quarter of the timer's floor (DESIGN 7.2). */
static inline uint64_t mrc_conn_ack_delay_ns(const struct mrc_conn *conn)
{
	return MRC_MIN(MRC_ACK_DELAY_NS, conn->limits.suspect_floor_ns / 4);
}

/* So many WANTs are on their way that no other may go. */
static inline bool mrc_conn_wants_full(const struct mrc_conn *conn)
{
	return conn->wants_out >= MRC_RANGES_KEPT_WANTED(conn);
}

/* What time it is just now, of which now_ns may lag behind. */
static inline uint64_t mrc_conn_stamp(const struct mrc_conn *conn)
{
	uint64_t ns = conn->stamp ? conn->stamp(conn->stamp_context) : conn->now_ns;

	return MRC_MAX(ns, conn->now_ns);
}

/* ---- mrc_conn_room.c: each table for at least so many; 0, or -ENOMEM ---- */
/* Slots, all free, and room for what they may have to say. Before the first channel. */
int mrc_conn_room_channels(struct mrc_conn *conn, uint32_t count);
/* Control frames, in the half that is not kept for ends of channels. Only to grow, before the first of them. */
int mrc_conn_room_ctl(struct mrc_conn *conn, uint32_t count);
/* Before the first of them. */
int mrc_conn_room_resends(struct mrc_conn *conn, uint32_t count);
/* One range more than there are. */
int mrc_conn_room_range(struct mrc_conn *conn);

/* ---- mrc_conn.c ---- */
struct mrc_channel *mrc_conn_channel(const struct mrc_conn *conn, uint32_t id);
struct mrc_channel *mrc_conn_channel_by_wire(const struct mrc_conn *conn, uint32_t wire_id);
/* -ENOSPC, -ENOMEM */
int mrc_conn_channel_new(struct mrc_conn *conn, uint32_t wire_id, bool is_opener,
			 struct mrc_channel **ch_out);
/* Give it its client's half: windows, ring, flow. -EINVAL, -ENOMEM. */
int mrc_conn_channel_equip(struct mrc_conn *conn, struct mrc_channel *ch,
			   const struct mrc_ev_channel *ev);
void mrc_conn_channel_free(struct mrc_conn *conn, struct mrc_channel *ch);
/* Its number on the wire is another channel's now: the peer does not mean this one by it. */
void mrc_conn_channel_unname(struct mrc_conn *conn, struct mrc_channel *ch);
/* Is there an action for the embedder? */
bool mrc_conn_channel_has_work(struct mrc_channel *ch);
/* Both ends have said all there is to say about it: it can be forgotten. */
bool mrc_conn_channel_is_over(const struct mrc_channel *ch);
/* Something about the channel has changed: put it on the lists it belongs to. */
void mrc_conn_touch(struct mrc_conn *conn, struct mrc_channel *ch);
/* What it sent has a price: this channel and its flow go to their new places in the turns. */
void mrc_conn_turn_spend(struct mrc_conn *conn, struct mrc_channel *ch, uint64_t bytes);
/* It ends now: unanswered sends get `outcome`. */
void mrc_conn_channel_end(struct mrc_conn *conn, struct mrc_channel *ch, int outcome,
			  uint32_t code);
/* A new conn epoch, or none (epoch 0): every channel but those still opening ends as unknown. */
void mrc_conn_reset(struct mrc_conn *conn, uint32_t epoch, uint64_t peer_boot_id);

/* ---- mrc_ctl.c ---- */
void mrc_ctl_append(struct mrc_conn *conn, enum mrc_wire_type type, struct mrc_channel *ch,
		    uint64_t msg);
/* Room for what is not the beginning or end of a channel (VOID). */
bool mrc_ctl_has_room(const struct mrc_conn *conn);
/* The peer has taken all before `taken`. False when we never sent so many. */
bool mrc_ctl_acked(struct mrc_conn *conn, uint64_t taken);
/* Make the frame of ctl_sent. */
void mrc_ctl_frame(struct mrc_conn *conn, struct mrc_act_post *post);
/* One from the peer, in its turn, as it came by `path`. -EPROTO. */
int mrc_ctl_take(struct mrc_conn *conn, const struct mrc_path *path, const struct mrc_wire_hdr *hdr,
		 const uint8_t *body);
/* The counts that ride in STATE, CLOSE and RESET. */
void mrc_state_put(struct mrc_conn *conn, struct mrc_channel *ch, struct mrc_cursor *c);
int mrc_state_take(struct mrc_conn *conn, struct mrc_channel *ch, struct mrc_cursor *c);
/* Frames posted per path until now: body of DRAINED and VOID, tail of CLOSE and RESET. */
void mrc_drain_put(const struct mrc_conn *conn, struct mrc_cursor *c);
/* -EPROTO; *drain_out is then unspecified. */
int mrc_drain_take(struct mrc_conn *conn, struct mrc_cursor *c, struct mrc_drain *drain_out);
/* Can nothing of what it counts land here any more? */
bool mrc_drain_is_over(const struct mrc_conn *conn, const struct mrc_drain *drain);

/* ---- mrc_space.c: keys to landing memory, ours and the peer's ---- */
int mrc_space_key(struct mrc_conn *conn, const struct mrc_ev_key *ev);
/* The next KEYS of ours to tell on this path; false and do_keys cleared: none. */
bool mrc_space_key_frame(struct mrc_conn *conn, struct mrc_path *path, struct mrc_wire_hdr *hdr);
/* KEYS from the peer. -EPROTO. */
int mrc_space_on_keys(struct mrc_conn *conn, struct mrc_path *path, const struct mrc_wire_hdr *hdr);
/* The channel's messages land in the peer's space `id`; NULL: no room to remember keys to it. */
struct mrc_space *mrc_space_join(struct mrc_conn *conn, uint32_t id);
void mrc_space_leave(struct mrc_conn *conn, struct mrc_space *space);
/* A new conn epoch, or the end: all are forgotten. */
void mrc_space_forget_all(struct mrc_conn *conn);
/* The key by which this path writes the channel's landing memory, or NULL. */
const struct mrc_key *mrc_space_key_for(const struct mrc_channel *ch, const struct mrc_path *path);

/* ---- mrc_channel_state.c ---- */
/* Write the channel. */
void mrc_channel_state_write(struct mrc_conn *conn, struct mrc_channel *ch,
			     struct mrc_state *state);
/* Read and make one. 0 with state->why set or not; -ENOMEM. */
int mrc_channel_state_read(struct mrc_conn *conn, struct mrc_state *state);
/* Numbers that count on for ever are below it: what adds to them cannot wrap. */
#define MRC_STATE_NUMBER_MAX (1ULL << 62)

/* ---- mrc_conn_paths.c ---- */
int mrc_conn_path_event(struct mrc_conn *conn, const struct mrc_event_in *ev);
struct mrc_path *mrc_conn_path_by_id(struct mrc_conn *conn, uint16_t path_id);
/*
 * Take it out of service: what was in flight is said again elsewhere. With
 * `is_closing` the transport is given up now; else it may come back by itself.
 */
void mrc_conn_path_leave(struct mrc_conn *conn, struct mrc_path *path, enum mrc_path_reason reason,
			 bool is_closing);
/* Records up to `count` are settled: the peer took them in. -EPROTO. */
int mrc_conn_path_acked(struct mrc_conn *conn, struct mrc_path *path, uint64_t count);
void mrc_conn_drains(struct mrc_conn *conn);
void mrc_conn_path_judge(struct mrc_conn *conn, struct mrc_path *path);
void mrc_conn_tick(struct mrc_conn *conn);
void mrc_conn_path_set(struct mrc_conn *conn, struct mrc_path *path, enum mrc_path_state state,
		       enum mrc_path_reason reason);
/* The rail no longer reads frames before `position`. */
void mrc_conn_path_sent(struct mrc_conn *conn, struct mrc_path *path, uint64_t position);
/* Least delay among those in service with room for control; NULL: none. */
struct mrc_path *mrc_conn_path_for_control(struct mrc_conn *conn, enum mrc_room room);
/* A fragment came damaged by `path`, which proves nothing yet: have the peer prove it. */
void mrc_conn_path_mistrust(const struct mrc_conn *conn, struct mrc_path *path);
/* Probe `id` was answered; the peer says, by its clock, when it came and when it answered. */
void mrc_conn_probe_answered(struct mrc_conn *conn, struct mrc_path *path, uint64_t id,
			     uint64_t came_ns, uint64_t answered_ns);
/* Which of our ends are down, and the version that says so. */
void mrc_conn_ports_update(struct mrc_conn *conn);
/* PORT_STATUS is another than before: a new version of it, told at once. */
void mrc_conn_ports_tell(struct mrc_conn *conn);
/* PORT_STATUS of the peer, by this path. */
void mrc_conn_peer_ports(struct mrc_conn *conn, const struct mrc_path *by, uint32_t version,
			 uint64_t status);

/* ---- mrc_conn_change.c ---- */
/* Begin with a path in this slot. */
void mrc_conn_path_place(struct mrc_conn *conn, uint8_t index);

/* ---- mrc_conn_recv.c ---- */
int mrc_conn_frame(struct mrc_conn *conn, const struct mrc_ev_arrived *ev);
void mrc_conn_holds_fenced(struct mrc_conn *conn, uint8_t path_index);

/* ---- mrc_conn_about.c ---- */
/* MRC_EV_ABOUT. -EINVAL. */
int mrc_conn_about_event(struct mrc_conn *conn, const struct mrc_ev_about *ev);
/* A path epoch begins: it is told again, if the peer knows what it is. */
void mrc_conn_about_begin(const struct mrc_conn *conn, struct mrc_path *path);
/* ABOUT of this path: its body. */
void mrc_conn_about_put(const struct mrc_conn *conn, const struct mrc_path *path,
			struct mrc_cursor *c);
/* ABOUT from the peer. -EPROTO. */
int mrc_conn_about_take(struct mrc_conn *conn, const struct mrc_path *path,
			const struct mrc_wire_hdr *hdr, const uint8_t *body);
/* A new conn epoch: another run of the peer may be another program on another machine. */
void mrc_conn_about_forget(struct mrc_conn *conn);

/* ---- mrc_conn_host.c ---- */
/* MRC_EV_HOST_DRAIN, MRC_EV_DRILL. */
int mrc_conn_host_drill(struct mrc_conn *conn, uint8_t index, bool is_on);
int mrc_conn_host_event(struct mrc_conn *conn, const struct mrc_ev_host *ev);
/* Our PORT_STATUS, as it is said on this path. */
uint64_t mrc_conn_host_status(const struct mrc_conn *conn, const struct mrc_path *path);
/* The peer's, by this path. */
void mrc_conn_host_take(struct mrc_conn *conn, const struct mrc_path *path, uint64_t status);
/* Why a channel is turned away, in words that the peer knows. */
int mrc_conn_host_outcome(const struct mrc_path *path, int outcome);
/* A path with these features begins: a peer that was upgraded has heard this version without it. */
void mrc_conn_host_path_up(struct mrc_conn *conn, const struct mrc_path *path);
/* Whether this frame of the path may have it as its reason. */
bool mrc_conn_host_may_say(const struct mrc_path *path, uint8_t frame_type);
/* A new conn epoch: another run of the peer says so itself. */
void mrc_conn_host_forget(struct mrc_conn *conn);
/* Another path is in this slot, or none. */
void mrc_conn_host_forget_path(struct mrc_conn *conn, uint8_t index);
/* The action that tells what the peer said; false: it said nothing new. */
bool mrc_conn_next_host(struct mrc_conn *conn, struct mrc_action *act_out);

/* ---- mrc_conn_clients.c ---- */
/* The next action for a client; false: none. */
bool mrc_conn_next_client(struct mrc_conn *conn, struct mrc_action *act);
/* The next copy out of a hold, or its end; false: none. For when holds_ready says that there are any. */
bool mrc_conn_next_hold(struct mrc_conn *conn, struct mrc_action *act);

#endif
