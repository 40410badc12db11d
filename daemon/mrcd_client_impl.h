/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_client_impl - what the files of the client side share
 *
 *	mrcd_client.c          the socket, the turn, a client's beginning and end
 *	mrcd_client_attach.c   the handshake's memory: memfds, bells, the welcome
 *	mrcd_client_ring.c     the two rings
 *	mrcd_client_channel.c  listeners, channels, and what clients ask of them
 *	mrcd_client_conf.c     another configuration: quotas, limits, peers
 *	mrcd_client_send.c     messages going out, until they are answered
 *	mrcd_client_msg.c      messages coming in, until their memory is free
 *	mrcd_client_batch.c    messages that are committed together
 *	mrcd_client_drain.c    this host or a peer's is being drained
 *	mrcd_client_poison.c   the hunt for writes into memory that is free
 *	mrcd_client_perform.c  the engine's actions, and the end of all channels
 *	mrcd_client_rights.c   what it had a right to, and has no more
 *	mrcd_client_save.c     pausing, and all of it as bytes for the daemon after us
 *	mrcd_client_restore.c  and from there
 *
 * A turn. Clients whose bell rang are `active`: each turn takes a bounded part
 * of each one's rings, in rotation, then pumps the peers it touched, then rings
 * the bells of clients that got completions. A client that has had nothing for
 * spin_ns, or when the worker stops looking (mrc_look.h), goes to sleep
 * (ring_abi.h) and costs nothing.
 *
 * Ends. mrcd_client_break() may be called at any depth: it only marks the
 * client dead, which stops all reading, publishing and memory look-ups for it.
 * The next turn takes it apart; its landing memory lives until the engine has
 * freed every channel. Where the mapping of an arena goes, its region ends just
 * before (mrcd_region.h).
 *
 * A completion ring never runs over while its client keeps to the rules: see
 * cq_entries_needed() in mrcd_client_attach.c for the sum. A client that goes
 * on submitting without taking completions fills it and is ended.
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_CLIENT_IMPL_H
#define MRCD_CLIENT_IMPL_H

#include <sys/queue.h>
#include <sys/types.h>

#include "mrc/client.h"
#include "mrc/ring_abi.h"
#include "mrcd_arena.h"
#include "mrcd_bundle.h"
#include "mrcd_client.h"
#include "mrcd_image.h"
#include "mrcd_log.h"
#include "mrcd_lookout.h"
#include "mrcd_peer.h"
#include "mrcd_poison.h"
#include "mrcd_quota.h"
#include "mrcd_service.h"
#include "mrcd_stall.h"

#define MRCD_ABI_WITH_DRAIN    2U    /* MRC_CQE_DRAIN, MRC_STATUS_DRAINING, MRC_CQE_UNLISTENED */
#define MRCD_TURN_ENTRIES_MAX  256U  /* submissions of one client in one turn */
#define MRCD_TURN_SEEN_MAX     1024U /* completions of one client looked back on in one turn */
#define MRCD_TURN_REQUESTS_MAX 16U   /* named requests of one client in one turn */
#define MRCD_ANSWERS_MAX       256U  /* answers without a channel that a client may leave unread */
#define MRCD_BACKLOG_MAX       64U   /* incoming channels of one listener not yet answered */
#define MRCD_SQ_ENTRIES_MIN    64U
#define MRCD_SQ_ENTRIES_MAX    4096U
#define MRCD_CQ_ENTRIES_MAX    (1U << 24)
#define MRCD_CLIENTS_MAX       65536U        /* by the cookie's layout */
#define MRCD_SAMPLE_NS         (10 * MRC_MS) /* between two messages that are traced for the metrics */
#define MRCD_NUMBER_NONE       MRC_ABI_NUMBER_NONE
/* Looking for late writes: how soon buffers are used again, and how long ring space is held back. */
#define MRCD_POISON_SPAN_BYTES (16U << 20)
#define MRCD_POISON_HOLD_NS    (400 * MRC_MS)

/* What a completion entry was, to know what it means that the client has taken it. */
enum mrcd_told {
	MRCD_TOLD_PLAIN,
	MRCD_TOLD_ANSWER,  /* counts in answers_unread */
	MRCD_TOLD_ARRIVED, /* taking it makes the message visible */
	MRCD_TOLD_GAP,     /* counts in the channel's gaps_unread */
	MRCD_TOLD_LATE,    /* counts in undecided_count */
	MRCD_TOLD_LAST,    /* the channel's last entry */
	MRCD_TOLD_DRAIN,   /* of a channel, or channel 0: the client's */
	MRCD_TOLD_COUNT
};

/* What was told last of a host's drain, and whether that was read. */
struct mrcd_drain_told {
	bool is_draining;
	bool is_unread;
};

struct mrcd_shadow {
	uint64_t number;
	uint32_t channel_id;
	uint32_t told; /* enum mrcd_told */
};

/*
 * Of a client's sends so many may be answered before their end is known, until it has read of
 * that: each of them has two entries in the completion ring. The answer of any more waits for
 * the end.
 */
#define MRCD_UNDECIDED_MAX(sends_max) (((sends_max) + 1) / 2)

enum mrcd_send_state {
	MRCD_SEND_FREE,
	MRCD_SEND_QUEUED,
	MRCD_SEND_IN_ENGINE,
	MRCD_SEND_UNDECIDED, /* answered: its deadline passed. The engine has it until its end is known */
};

/* One message a client has asked to send. Owned by the client, in sends[]. */
struct mrcd_send {
	TAILQ_ENTRY(mrcd_send) entry; /* in its channel's queue, or in the free list */
	uint64_t user_data;
	uint64_t offset;
	uint64_t len_bytes;
	uint64_t deadline_ns;              /* 0: none, or it has passed and the engine was told */
	uint64_t number;                   /* IN_ENGINE, UNDECIDED: on its channel */
	uint64_t submitted_ns, fetched_ns; /* is_traced */
	uint32_t channel_id;
	uint32_t serial; /* of this use of the slot; half of the engine's cookie */
	uint8_t level;
	uint8_t state; /* enum mrcd_send_state */
	bool is_held;  /* IN_ENGINE: undecided, and too many are for it to be told */
	bool is_traced;
};
TAILQ_HEAD(mrcd_send_list, mrcd_send);

enum mrcd_msg_state {
	MRCD_MSG_WANTED,   /* the engine asked for a buffer; in the client's wants */
	MRCD_MSG_GRANTED,  /* it has one; the bytes are under way */
	MRCD_MSG_HELD,     /* delivered; the client reads it */
	MRCD_MSG_RELEASED, /* given back by the client, not yet by the engine */
};

/*
 * One message that is coming in or that the client holds. Owned by the client,
 * in msgs[]. Memory is free only when both the client and the engine are done
 * with it: a program may read what it received after its channel has closed.
 */
struct mrcd_msg {
	TAILQ_ENTRY(mrcd_msg) want_entry; /* in the client's wants, or in the channel's poisoned */
	struct mrcd_msg *next;            /* in its bucket, or in the free list */
	uint64_t number;
	uint64_t addr; /* in the landing arena */
	uint64_t len_bytes;
	uint32_t channel_id;
	uint8_t state;       /* enum mrcd_msg_state */
	bool is_eager;       /* lies in the channel's landing ring */
	bool is_engine_done; /* HELD: only the client's release is missing */
	bool is_poisoned;    /* RELEASED: in its channel's poisoned; the engine does not know yet */
	bool is_in_batch;    /* HELD: named, and not committed before all of the batch are */
	struct mrcd_msg *batch_next;
	/* Of a traced one whose verdict waits, as its client says. */
	uint64_t visible_ns, verdict_ns;
	uint64_t poisoned_ns;
};
TAILQ_HEAD(mrcd_want_list, mrcd_msg);

enum mrcd_channel_state {
	MRCD_CHANNEL_FREE,
	MRCD_CHANNEL_CONNECTING, /* CH_OPEN was said; the client does not know the id yet */
	MRCD_CHANNEL_INCOMING,   /* announced; waits for ACCEPT or REFUSE */
	MRCD_CHANNEL_ACCEPTING,  /* CH_ACCEPT was said */
	MRCD_CHANNEL_UP,
	MRCD_CHANNEL_DOWN, /* the client has its last entry; the engine frees it, or has done */
};

/* One end of a channel. Owned by the client, in channels[]; the slot is used again, the id is not. */
struct mrcd_channel {
	TAILQ_ENTRY(mrcd_channel) entry; /* in the client's free list, or in throttled */
	uint32_t index;
	uint32_t serial;        /* of this use of the slot */
	uint32_t id;            /* serial and index */
	uint32_t state;         /* enum mrcd_channel_state */
	struct mrcd_peer *peer; /* the worker's; NULL: it is no more, and the client is dead */
	uint32_t engine_id;
	uint32_t listener_id; /* whose line it came to; 0: we connected */
	uint64_t user_data;   /* of the CONNECT */
	uint64_t ring_offset; /* its landing ring */
	uint64_t ring_bytes;  /* 0: none */
	bool is_unordered;
	bool is_unchecked;
	bool is_closing;     /* the client has said CLOSE */
	bool is_close_told;  /* and the engine knows */
	bool is_blocked;     /* a SEND was answered -ENOSPC; wait for CH_ROOM */
	bool is_throttled;   /* in the client's throttled: its quota lets no more go now */
	bool is_engine_done; /* CH_FREE, or the engine never knew it */
	bool is_last_unread; /* the client has not taken the last entry */
	uint32_t gaps_unread;
	uint32_t sends_in_engine;
	struct mrcd_stall_watch stall;
	uint32_t queue_count;
	uint32_t msg_count;             /* records in its buckets */
	uint64_t number_end;            /* above every number delivered */
	uint32_t trace_every;           /* of its sends one in so many is traced; 0: none */
	uint32_t trace_turn;            /* sends since the last one */
	struct mrcd_send_list queue;    /* not yet in the engine, in order */
	struct mrcd_want_list poisoned; /* released eager messages, oldest first (mrcd_poison.h) */
	uint32_t poisoned_count;
	uint64_t poisoned_bytes;
	char service[MRC_NAME_MAX + 1];
	/* Of the peer's host. */
	struct mrcd_drain_told drain;
};
TAILQ_HEAD(mrcd_channel_list, mrcd_channel);

/* One service a client offers. Owned by the client, in listeners[]. */
struct mrcd_listener {
	struct mrcd_service service;
	struct mrcd_client *client; /* the owner */
	uint32_t id;                /* 0: the slot is free */
	uint32_t serial;
	uint32_t backlog; /* INCOMING channels of it */
};

/*
 * Released messages of one channel, one number after the other, of which the engine has not
 * heard: while submissions are taken, and no longer than they say nothing else.
 */
struct mrcd_releases {
	struct mrcd_channel *channel;
	uint64_t number; /* of the first */
	uint32_t count;  /* 0: none */
	/* Of a traced one, which stands alone, as its client says. */
	uint64_t visible_ns, verdict_ns;
};

/* A mapped memfd. Owned by the client. */
struct mrcd_map {
	uint8_t *addr; /* NULL: none */
	int fd;        /* -1: none; kept for the daemon after us (mrcd_handover.h) */
	uint64_t len_bytes;
	uint64_t page_bytes;  /* what it is made of */
	uint32_t sigbus_slot; /* UINT32_MAX: not watched */
};

/* In a parcel of a client (mrcd_bundle.h). */
enum mrcd_client_fd {
	MRCD_CLIENT_FD_SOCKET,
	MRCD_CLIENT_FD_BELL,
	MRCD_CLIENT_FD_CLIENT_BELL,
	MRCD_CLIENT_FD_CLIENT_BELL_READ,
	MRCD_CLIENT_FD_RINGS,
	MRCD_CLIENT_FD_SEND_ARENA,
	MRCD_CLIENT_FD_LANDING,
	MRCD_CLIENT_FD_COUNT,
};
_Static_assert(MRCD_CLIENT_FD_COUNT <= MRCD_PARCEL_FDS_MAX, "a client is one parcel");

/* One attached program. Owned by the client side, in clients[]. */
struct mrcd_client {
	TAILQ_ENTRY(mrcd_client) active_entry;
	TAILQ_ENTRY(mrcd_client) bell_entry;
	TAILQ_ENTRY(mrcd_client) dead_entry;
	struct mrcd_client_side *side; /* the owner */
	uint32_t index;
	uint32_t generation; /* of the slot; 16 bits in cookies */
	uint32_t abi_version;
	char name[MRC_NAME_MAX + 1];
	struct mrcd_creds creds; /* ours */
	struct mrcd_quota quota;
	struct mrcd_channel_list throttled; /* each sends one message when it is its turn */

	/* Of this host. */
	struct mrcd_drain_told drain;

	bool is_active, is_bell_due, is_dead_due; /* in these lists */
	bool is_hung_up; /* the socket has closed: read the ring to its end, then end it */
	bool is_dead;    /* nothing is read from it or told to it any more */
	bool is_apart;   /* taken apart; waits for the engine to free its channels */
	uint64_t idle_since_ns;

	int fd;                  /* its socket; -1 once closed */
	int bell_fd;             /* we are rung by it */
	int client_bell_fd;      /* the write end of a pipe: we ring the client by it */
	int client_bell_read_fd; /* its read end, so that a write without readers raises no signal */
	struct event *socket_event;
	struct event *bell_event;
	struct mrcd_lookout_source bell_source; /* likewise, while the worker looks */

	struct mrcd_map rings, send_arena, landing;
	uint32_t flow; /* the engines' name for it; never another client's */
	/* The arenas as devices see them. NULL: not begun, or ended with its mapping. */
	struct mrcd_region *send_region, *landing_region;
	struct mrc_ring_shm *shm;     /* in rings */
	struct mrc_sqe *sq;           /* in rings */
	struct mrc_cqe *cq;           /* in rings */
	uint8_t *sq_texts, *cq_texts; /* in rings */
	uint32_t sq_entry_count, cq_entry_count;
	uint32_t sq_head; /* ours; the shared ones are copies for the client */
	uint32_t cq_tail, cq_head;
	struct mrcd_shadow *shadows; /* cq_entry_count */
	uint32_t answers_unread;

	uint32_t
		window; /* of its channels, in messages; as the configuration was when it attached */
	uint32_t channels_max, channel_count, channel_bits;
	uint32_t ring_count; /* channels that have a landing ring */
	struct mrcd_channel *channels;
	struct mrcd_channel_list channels_free;
	uint32_t listeners_max, listener_count, listener_bits;
	struct mrcd_listener *listeners;

	struct mrcd_send *sends; /* sends_max */
	uint32_t sends_max, sends_fresh, send_count;
	uint32_t undecided_count; /* answered TIMED_OUT, and its end not known, or not read yet */
	struct mrcd_send_list sends_free;
	uint64_t deadline_ns; /* of the first send that has one, or earlier */

	struct mrcd_msg *msgs; /* msgs_max */
	uint32_t msgs_max, msgs_fresh;
	struct mrcd_msg *msgs_free;
	struct mrcd_msg **buckets; /* channels_max * window */
	struct mrcd_want_list wants;
	struct mrcd_releases releases;
	struct mrcd_msg *batch;          /* members named so far, last first */
	bool is_batch_spoilt;            /* one named was not a message the client holds */
	struct mrcd_arena *ring_arena;   /* the upper half of the landing arena: landing rings */
	struct mrcd_arena *buffer_arena; /* the lower half: one buffer per large message */
	uint64_t ring_bytes_min;
	struct mrcd_poison *poison; /* of the landing arena; NULL: off */
	uint64_t late_writes;

	uint64_t completions, submissions; /* counters for mrcctl */
};
TAILQ_HEAD(mrcd_client_list, mrcd_client);

/* Somebody who has connected and not yet said who he is. */
struct mrcd_pending {
	TAILQ_ENTRY(mrcd_pending) entry;
	struct mrcd_client_side *side;
	struct event *event;
	uid_t uid;
	int fd;
};
TAILQ_HEAD(mrcd_pending_list, mrcd_pending);

struct mrcd_client_side {
	struct mrcd_worker *worker;                   /* the owner */
	const struct mrcd_conf_client_limits *limits; /* the configuration's */
	struct mrcd_services services;

	int listen_fd;
	char path[MRCD_SOCKET_PATH_BYTES]; /* "": taken over, not ours to unlink */
	struct event *listen_event;
	struct event *listen_retry_event; /* when accept() failed for want of descriptors */
	struct mrcd_pending_list pendings;
	uint32_t pending_count, pendings_max;
	uint64_t fd_end; /* the first descriptor that is not for programs */

	struct mrcd_client **clients; /* slot_count; NULL: free */
	uint16_t *generations;        /* slot_count */
	uint32_t slot_count;          /* at least limits->clients_max; a restart has brought more */
	uint32_t flow_last;           /* given to a client */
	uint32_t client_count;        /* in clients[], dead ones included */
	uint32_t client_alive_count;
	uint32_t incoming_count; /* channels that are INCOMING, all clients */
	struct mrcd_client_list active, bells, dead;

	struct event *turn_event;
	bool is_turn_due;
	struct event *deadline_event;
	uint64_t deadline_ns; /* armed for; MRC_NEVER: not */
	int sigbus_fd;
	struct event *sigbus_event;

	struct mrcd_peer **touched; /* peers to pump at the end of the turn */
	struct mrcd_peer **pumping; /* those of the turn that is ending */
	uint32_t touched_count, touched_max;
	struct mrcd_peer *performing; /* the peer whose pump we are called from */
	uint32_t sample_left;         /* sends until one may be traced for the metrics */
	uint64_t sample_due_ns;       /* and not before then */
	bool is_paused;               /* nothing is read any more: the next daemon goes on */
	bool is_left;                 /* and it has all: what is shared with clients is its */
	struct mrcd_log_limit log_refused, log_broken, log_huge, log_late;

	struct mrcd_poison_mode poison_mode;
	struct event *poison_event; /* while anything is poisoned and held back; NULL: nothing is */
	uint32_t poisoned_count;    /* held back, all clients */
	uint64_t late_writes;
};

/* ---- mrcd_client.c ---- */

/* This client broke a rule: mark it dead, say why once. Any depth; ends it next turn. */
void mrcd_client_break(struct mrcd_client *client, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Give it a place in the next turn. */
void mrcd_client_activate(struct mrcd_client *client);
void mrcd_client_side_schedule(struct mrcd_client_side *side);
/* Its last channel may have gone: free it, next turn. */
void mrcd_client_reap_later(struct mrcd_client *client);
/* Hand an event to a peer's engine; the peer is pumped at the end of the turn or by who is pumping it. */
int mrcd_client_side_tell(struct mrcd_client_side *side, struct mrcd_peer *peer,
			  const struct mrc_event_in *ev);
/* A send of this client has a deadline: see that the timer knows. */
void mrcd_client_side_arm(struct mrcd_client_side *side, uint64_t deadline_ns);
uint64_t mrcd_client_cookie(const struct mrcd_client *client, const struct mrcd_channel *channel);
/* The channel of a cookie, also of a dead client; NULL when it is gone. */
struct mrcd_channel *mrcd_client_side_channel(const struct mrcd_client_side *side, uint64_t cookie,
					      struct mrcd_client **client_out);

/* It has its descriptors: learn who is at the other end, and make its events. */
int mrcd_client_meet(struct mrcd_client *client);
/* Have its events come. */
int mrcd_client_watch(struct mrcd_client *client);
/* Put it among the others, in a free slot. */
void mrcd_client_list(struct mrcd_client *client, uint32_t index, uint32_t generation);
/* Somebody has connected: wait for what he says. fd is ours. */
void mrcd_pending_new(struct mrcd_client_side *side, int fd);

/* ---- mrcd_client_attach.c ---- */

/*
 * Check what was received as a first packet from a process of this user, who may
 * take what `quota` says. Negative errno with text for people.
 */
int mrcd_attach_check(const struct mrcd_client_side *side, const struct mrc_abi_attach *attach,
		      ssize_t len_bytes, uid_t uid, const struct mrcd_conf_quota *quota,
		      uint32_t *version_out, char *text, size_t text_bytes);
/*
 * Make a client with all its memory and descriptors, not yet in clients[] and
 * without events. fds_out: what the welcome carries; the caller's to close are those of which
 * mrcd_attach_is_lent() says no, which the client does not need itself.
 */
int mrcd_client_new(struct mrcd_client_side *side, const struct mrc_abi_attach *attach,
		    uint32_t version, const struct mrcd_conf_quota *quota,
		    struct mrcd_client **client_out, int fds_out[MRC_ABI_FD_COUNT], char *text,
		    size_t text_bytes);
bool mrcd_attach_is_lent(enum mrc_abi_fd which);
void mrcd_client_welcome(const struct mrcd_client *client, uint32_t version,
			 struct mrc_abi_welcome *welcome_out);
/*
 * Parts of mrcd_client_new(), for who has the memory already: an empty client; where the entries
 * are in its rings, unless those are not mapped (their size for these entry counts; shadows too);
 * its pools, for its bounds and the size of its landing arena; its regions, of the flow that it has.
 */
struct mrcd_client *mrcd_client_blank(struct mrcd_client_side *side);
uint64_t mrcd_client_rings_bytes(const struct mrcd_client *client);
int mrcd_client_rings_lay(struct mrcd_client *client);
int mrcd_client_pools_new(struct mrcd_client *client);
int mrcd_client_regions_new(struct mrcd_client *client);
/*
 * Maps all of fd, which is the map's then, or closed. is_watched: it can go away under us.
 * -EPROTO: it is no memory. Other negative errno: it cannot be mapped, or not be watched; how
 * long it is is known all the same.
 */
int mrcd_client_map_adopt(struct mrcd_client *client, struct mrcd_map *map, int fd,
			  uint64_t page_bytes, bool is_watched);
/* No client can write to it; only of huge pages the kernel may have none when one is touched. */
static inline bool mrcd_client_landing_can_go(uint64_t page_bytes)
{
	return page_bytes > MRCD_ARENA_PAGE_BYTES;
}
/* Give back rings, send arena, events and descriptors; what landing needs stays. Twice is fine. */
void mrcd_client_close(struct mrcd_client *client);
/* And the rest. NULL and half-made ones are fine. */
void mrcd_client_free(struct mrcd_client *client);

/* ---- mrcd_client_ring.c ---- */

/* Put an entry into the completion ring; dropped when the client is dead. */
void mrcd_client_publish(struct mrcd_client *client, const struct mrc_cqe *cqe,
			 enum mrcd_told told);
/* The same with a text of cqe->text_len bytes, MRC_REASON_BYTES_MAX at most. */
void mrcd_client_publish_text(struct mrcd_client *client, const struct mrc_cqe *cqe,
			      enum mrcd_told told, const char *text);
/* Look how far the client took its completions. Answers how many are new, `budget` at most. */
uint32_t mrcd_client_take_seen(struct mrcd_client *client, uint32_t budget);
/* Take up to `budget` submissions. Answers how many. */
uint32_t mrcd_client_take_submissions(struct mrcd_client *client, uint32_t budget);
/* Whether there is room for one more answer without a channel; a client that reads none is ended. */
bool mrcd_client_may_answer(struct mrcd_client *client);
/* Declare ourselves asleep for this client; false: something came in between, we are awake. */
bool mrcd_client_sleep(struct mrcd_client *client);
/* Wake it if it sleeps. */
void mrcd_client_ring_bell(struct mrcd_client *client);

/* ---- mrcd_client_channel.c ---- */

/* Do what one submission asks; `text` is its own, of sqe->text_len bytes. */
void mrcd_client_submit(struct mrcd_client *client, const struct mrc_sqe *sqe, const char *text);
/* Do what one request on the socket asks. */
void mrcd_client_request(struct mrcd_client *client, const struct mrc_abi_request *request);
/* A fresh channel in a free slot; its state is for the caller to set. NULL: all are in use. */
struct mrcd_channel *mrcd_channel_new(struct mrcd_client *client, struct mrcd_peer *peer,
				      const char *service);
/* Every change of state but to and from FREE: keeps the count of incoming ones. */
void mrcd_channel_set_state(struct mrcd_client *client, struct mrcd_channel *channel,
			    enum mrcd_channel_state state);
/* The channel's last entry: CLOSED, or the answer of a CONNECT or ACCEPT that failed. */
void mrcd_channel_end(struct mrcd_client *client, struct mrcd_channel *channel, int status,
		      uint32_t code);
/* Turn an incoming channel away; for the engine it is over. */
void mrcd_channel_refuse(struct mrcd_client *client, struct mrcd_channel *channel, int outcome,
			 uint32_t code);
/* Of its sends one in `every` is traced; 0: none. */
void mrcd_channel_trace(struct mrcd_client *client, struct mrcd_channel *channel, uint32_t every);
/* Free its ring and slot when neither the client nor the engine can name it any more. */
void mrcd_channel_retire(struct mrcd_client *client, struct mrcd_channel *channel);
/* Fill an event about this channel. */
void mrcd_channel_event(struct mrcd_client *client, const struct mrcd_channel *channel,
			enum mrc_event_kind kind, struct mrc_event_in *ev_out);
/* The client took an entry of this channel. */
void mrcd_channel_on_seen(struct mrcd_client *client, const struct mrcd_shadow *shadow);
/* The engine hears now what it has not heard of. */
void mrcd_client_tell_releases(struct mrcd_client *client);
/* The client has taken these arrivals: `shadow` is the first, and `more` follow by their numbers. */
void mrcd_channel_on_arrivals_seen(struct mrcd_client *client, const struct mrcd_shadow *shadow,
				   uint32_t more);
/* No more sends: it ends when all are settled. An incoming one is refused. */
void mrcd_channel_close(struct mrcd_client *client, struct mrcd_channel *channel);
/* Refuse who waits in its line, and free it. */
void mrcd_listener_close(struct mrcd_client *client, struct mrcd_listener *listener);
void mrcd_listener_free(struct mrcd_client *client, struct mrcd_listener *listener);
/* ---- mrcd_client_rights.c ---- */

/* Whether the configuration in force lets it. */
bool mrcd_client_may(const struct mrcd_client *client, enum mrcd_use use, const char *service);

/* ---- mrcd_client_send.c ---- */

/* Take a SEND; channel NULL: it has ended. */
void mrcd_client_submit_send(struct mrcd_client *client, struct mrcd_channel *channel,
			     const struct mrc_sqe *sqe);
/* Answer a send and free its slot. */
void mrcd_send_answer(struct mrcd_client *client, struct mrcd_send *send, uint64_t number,
		      int status, uint32_t level);
/* The same as the engine says it: outcome, level, code, text. */
void mrcd_send_answer_done(struct mrcd_client *client, struct mrcd_send *send, uint64_t number,
			   const struct mrc_act_msg *act);
/* Its deadline has passed, and the engine goes on with it: mrcd_send_answer() ends it later. */
void mrcd_send_answer_undecided(struct mrcd_client *client, struct mrcd_send *send, uint32_t level);
/* Hand queued sends to the engine while it takes them; then the CLOSE that waits behind them. */
void mrcd_channel_feed(struct mrcd_client *client, struct mrcd_channel *channel);
/* Something of the client's has ended, or time has passed: what its quota held back goes on. */
void mrcd_client_feed_throttled(struct mrcd_client *client);
/* Answer all sends that the engine does not have. */
void mrcd_channel_answer_queue(struct mrcd_client *client, struct mrcd_channel *channel,
			       int status);
/*
 * Answer queued sends whose time is over, and have the engine give up those it
 * has, if the receiver lets it; *next_out: when to look again.
 */
void mrcd_client_expire(struct mrcd_client *client, uint64_t now_ns, uint64_t *next_out);

/* ---- mrcd_client_batch.c ---- */

/* Take a COMMIT that is a member of a batch; msg NULL: the client holds no such message any more. */
void mrcd_client_submit_batch(struct mrcd_client *client, struct mrcd_msg *msg,
			      const struct mrc_sqe *sqe);

/* ---- mrcd_client_drain.c ---- */

/* Tell it what it does not know yet of this host's drain, or on this open channel of its peer's. */
void mrcd_client_tell_drain(struct mrcd_client *client);
void mrcd_channel_tell_drain(struct mrcd_client *client, struct mrcd_channel *channel);
/* It has read what was told. */
void mrcd_client_on_drain_seen(struct mrcd_client *client, uint32_t channel_id);

/* ---- mrcd_client_poison.c ---- */

/* What the environment asks for. */
void mrcd_client_side_poison_read(struct mrcd_client_side *side);

/* All of these do nothing when the client has no poison. */

/* Pages of the landing arena that were taken from, or are given back to, one of its halves. */
void mrcd_client_poison_fill(struct mrcd_client *client, uint64_t offset, uint64_t len_bytes);
void mrcd_client_poison_check(struct mrcd_client *client, uint64_t offset, uint64_t len_bytes);
/*
 * The client has released an eager message. True: the engine is told later,
 * when its bytes have been poison for a while; the record lives until then.
 */
bool mrcd_client_poison_hold(struct mrcd_client *client, struct mrcd_channel *channel,
			     struct mrcd_msg *msg);
/* Tell it now: of the whole channel. The channel is not retired by this. */
void mrcd_channel_poison_end(struct mrcd_client *client, struct mrcd_channel *channel);
/* This record goes, whatever it was. */
void mrcd_msg_poison_forget(struct mrcd_client *client, struct mrcd_channel *channel,
			    struct mrcd_msg *msg);

/* ---- mrcd_client_msg.c ---- */

struct mrcd_msg *mrcd_msg_find(struct mrcd_client *client, const struct mrcd_channel *channel,
			       uint64_t number);
/* A record, WANTED (then in client->wants, by this call) or HELD. NULL: too many; the client is ended. */
struct mrcd_msg *mrcd_msg_new(struct mrcd_client *client, struct mrcd_channel *channel,
			      uint64_t number, enum mrcd_msg_state state);
/* Nobody needs it any more: free memory and record. */
void mrcd_msg_give(struct mrcd_client *client, struct mrcd_channel *channel, struct mrcd_msg *msg);
/* The engine does not need it any more: free it, unless the client still reads it. */
void mrcd_msg_on_engine_done(struct mrcd_client *client, struct mrcd_channel *channel,
			     struct mrcd_msg *msg);
/* Give landing buffers to who waits for them, first come first served. */
void mrcd_client_grant(struct mrcd_client *client);
/* The engine waits for no buffer of this channel any more. */
void mrcd_channel_drop_wants(struct mrcd_client *client, struct mrcd_channel *channel);
/* The engine has freed the channel: so it is done with every message of it. */
void mrcd_channel_msgs_on_free(struct mrcd_client *client, struct mrcd_channel *channel);
/* The client has died: so it is done with every message of this channel. */
void mrcd_channel_msgs_on_death(struct mrcd_client *client, struct mrcd_channel *channel);

/* ---- mrcd_client_perform.c ---- */

/* End the listeners and channels of a dead client. */
void mrcd_client_abort_channels(struct mrcd_client *client);

#endif
