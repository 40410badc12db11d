/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_client - the inside of one attachment, for libmrc's own files
 *
 * What comes from the completion ring is taken in entry by entry
 * (mrc_client_take_in, mrc_intake.c), checked, and becomes an event parked in
 * the object it concerns: a message, a send, a channel, a listener. mrc_poll()
 * and the blocking calls take parked events out again. Nothing is allocated
 * for it: every object has room for the events that can befall it.
 *
 * What goes out and must not fail (releases, verdicts, closing) is linked into
 * `pending` when the submission ring is full, again inside its object.
 *
 * Units:     bytes, nanoseconds of CLOCK_MONOTONIC.
 * Ownership: the client owns everything below it.
 * Threads:   one at a time per client.
 */
#ifndef MRC_CLIENT_INSIDE_H
#define MRC_CLIENT_INSIDE_H

#include "mrc/client.h"
#include "mrc_buf.h"
#include "mrc_lib.h"
#include "mrc_ring.h"
#include "mrc_wake.h"

#define MRC_ERROR_TEXT_BYTES 192
#define MRC_GAPS_MAX         1024U /* parked at once; further ones are not reported */

/* An event not yet taken by the program; lives in the object it speaks of. */
struct mrc_parked {
	struct mrc_list node; /* in client->parked */
	enum mrc_event_type type;
};

/* A submission that found no room; lives in its object. */
struct mrc_pending {
	struct mrc_list node; /* in client->pending */
	uint8_t op;           /* enum mrc_sqe_op, which says what it lives in */
};

/* A received message, or a gap. Owned by the client's pool. */
struct mrc_msg {
	struct mrc_parked parked;   /* RECEIVED or GAP */
	struct mrc_list in_channel; /* in channel->inbox while parked, in channel->held after */
	struct mrc_pending pending_verdict;
	struct mrc_pending pending_release;
	struct mrc_client *client;
	struct mrc_channel *channel; /* NULL once released or freed with its channel */
	struct mrc_msg *next_free;
	uint64_t number;
	uint64_t offset; /* into the landing arena */
	uint64_t len_bytes;
	uint32_t channel_id;
	uint32_t code;          /* of a rejection */
	uint16_t verdict_flags; /* MRC_SQE_FLAG_* */
	uint8_t text_len;       /* of a rejection */
	bool has_verdict;
	bool is_gap; /* counted in client->gaps_count */
	/* Of a message whose sender wants to know; else 0. */
	uint64_t visible_ns; /* when it was taken from the ring */
	uint64_t stamp_ns;   /* when it was judged, or else released */
	char text[MRC_REJECT_TEXT_MAX];
};

/* One send, from mrc_send() until its answer was taken. Owned by the client's table. */
struct mrc_send_op {
	struct mrc_parked parked;    /* SENT */
	struct mrc_list in_client;   /* in client->sends_unanswered, or ->sends_undecided */
	struct mrc_channel *channel; /* NULL: its channel was freed, nobody wants the answer */
	uint64_t user;
	uint64_t number;
	uint32_t channel_id;
	uint32_t generation; /* so that an answer given twice is not taken for the next send's */
	uint32_t next_free;  /* index */
	uint32_t code;
	int status;
	enum mrc_level level_wanted;
	enum mrc_level level;
	bool is_unanswered;
	bool is_undecided; /* answered, and LATE is to come: the slot is the daemon's until then */
	char text[MRC_REJECT_TEXT_MAX + 1]; /* REJECTED */
};

/* What became of a send whose deadline passed. */
struct mrc_outcome {
	uint64_t number;
	enum mrc_level level;
	int status;
	uint32_t code;
	bool is_decided;
	char text[MRC_REJECT_TEXT_MAX + 1]; /* REJECTED */
};

enum mrc_channel_state {
	MRC_CHANNEL_CONNECTING, /* CONNECT asked; no id yet */
	MRC_CHANNEL_INCOMING,   /* the program has not decided */
	MRC_CHANNEL_ACCEPTING,  /* ACCEPT asked */
	MRC_CHANNEL_OPEN,
	MRC_CHANNEL_CLOSING, /* CLOSE asked */
	MRC_CHANNEL_CLOSED,  /* ended; no id any more */
};

struct mrc_channel {
	struct mrc_client *client;
	struct mrc_list in_client;    /* in client->channels */
	struct mrc_list in_bucket;    /* in client->buckets[], while it has an id */
	struct mrc_list in_listener;  /* in listener->incoming, or ->accepting by mrc_accept() */
	struct mrc_parked parked;     /* INCOMING, then CONNECTED */
	struct mrc_parked parked_end; /* CLOSED */
	struct mrc_parked parked_drain;
	struct mrc_pending pending; /* ACCEPT or REFUSE */
	struct mrc_pending pending_close;
	struct mrc_list inbox;         /* messages and gaps parked, in order */
	struct mrc_list held;          /* messages the program has */
	struct mrc_listener *listener; /* of an incoming one, until it is decided; not owned */
	struct mrc_outcome *outcomes;  /* client->outcomes_kept of them */
	uint64_t outcomes_count;       /* ever: the next one's place, counted round */
	void *context;
	uint64_t user;
	uint64_t request; /* CONNECTING: what the answer brings back */
	uint64_t message_bytes_max;
	uint64_t number_next;       /* ordered: the least number a message may have now */
	uint32_t sends_outstanding; /* answers the program has not taken */
	uint32_t sends_unanswered;  /* answers the daemon has not given */
	bool is_end_held;           /* CLOSED came while sends were on their way to the daemon */
	uint32_t id;
	uint32_t refuse_code;
	uint32_t code; /* of CONNECTED, then of CLOSED */
	int status;    /* of CONNECTED, then of CLOSED */
	enum mrc_channel_state state;
	bool has_id;
	bool is_unordered;
	bool is_unchecked;
	bool is_draining;     /* the peer's host is */
	bool is_close_wanted; /* closed while CONNECTING or ACCEPTING */
	bool is_unread;       /* nobody will read what arrives: reject it */
	bool is_freed;        /* by the program; we keep it until the daemon is done with it */
};

struct mrc_listener {
	struct mrc_client *client;
	struct mrc_list in_client;  /* in client->listeners */
	struct mrc_parked parked;   /* LISTENING */
	struct mrc_pending pending; /* UNLISTEN */
	struct mrc_list incoming;   /* channels whose event is parked */
	struct mrc_list accepting;  /* channels taken by mrc_accept() and not yet answered */
	uint64_t user;
	uint64_t request;
	uint32_t id;
	int status;
	bool is_answered;
	bool is_freed;
};

/* What is mapped and passed at attach. */
struct mrc_memory {
	void *bytes;
	uint64_t len_bytes;
};

struct mrc_client {
	struct mrc_ring ring;
	struct mrc_wake
		*wake; /* ours; its own object, so that mrc_client_fd() can take a const client */
	struct mrc_list parked;           /* events in order */
	struct mrc_list pending;          /* submissions in order */
	struct mrc_list sends_unanswered; /* in order */
	struct mrc_list sends_undecided;  /* in order of their answers */
	struct mrc_list channels;
	struct mrc_list listeners;
	struct mrc_parked parked_detached;
	struct mrc_parked parked_drain; /* of this host */

	struct mrc_memory rings;
	struct mrc_memory send_arena;
	struct mrc_memory landing_arena; /* read-only */
	int socket_fd;
	int daemon_bell_fd;

	struct mrc_bufs *bufs;
	struct mrc_send_op *sends; /* sends_max */
	struct mrc_msg *msgs;      /* msgs_max */
	struct mrc_msg *msg_free;
	struct mrc_list *buckets; /* channels by id; bucket_count, a power of two */
	uint32_t bucket_count;
	uint32_t sends_max;
	uint32_t outcomes_kept; /* for each channel */
	uint32_t sends_fresh;   /* first of the table never used */
	uint32_t send_free;     /* chain; UINT32_MAX ends it */
	uint32_t gaps_count;    /* parked */
	uint32_t msgs_max;      /* what the ring holds, and MRC_GAPS_MAX */
	uint32_t msgs_fresh;
	uint32_t channels_max;
	uint32_t ids_count; /* channels the daemon has */
	uint64_t request_next;
	uint64_t batch_request; /* of the batch whose answer is awaited; 0: none is */
	int batch_status;
	uint64_t message_bytes_max;
	uint64_t alive_checked_ns;
	bool is_idle;        /* the last mrc_poll() found nothing */
	bool is_draining;    /* this host is */
	bool is_gone;        /* the daemon, or we ended it: everything was answered */
	bool is_gone_taken;  /* and the program has seen MRC_EVENT_DETACHED */
	bool is_room_wanted; /* a send found the submission ring full */
	char host[MRC_NAME_LEN_MAX + 1];
	char error_text[MRC_ERROR_TEXT_BYTES];
};

/* ---- mrc_client.c ---- */

/* When a wait that begins now and may last timeout_ns ends; UINT64_MAX: never. */
uint64_t mrc_client_deadline_ns(int64_t timeout_ns);

/*
 * Wait until there may be something to take in, for a blocking call.
 * 1: look again; 0: the deadline has passed; -EINTR; -ECONNRESET: the daemon
 * has gone, everything was answered, and there is nothing to wait for.
 */
int mrc_client_block(struct mrc_client *client, uint64_t deadline_ns);

/*
 * One turn of a blocking call that has not found what it waits for: take in
 * what is there, or else wait. 0: look again; -ETIMEDOUT, -EINTR, -ECONNRESET.
 */
int mrc_client_await(struct mrc_client *client, uint64_t deadline_ns);

/* For a blocking call: take in until this event is parked. 0, -ETIMEDOUT, -EINTR, -ECONNRESET. */
int mrc_client_wait_parked(struct mrc_client *client, const struct mrc_parked *parked,
			   uint64_t deadline_ns);

/* The end of a call that took in or submitted: publish, and keep mrc_client_fd() true. */
void mrc_client_settle(struct mrc_client *client);

/* The beginning of one: bring pending submissions under way. */
void mrc_client_flush(struct mrc_client *client);

/* Submit now; rings the bell. -EAGAIN, -ECONNRESET. */
int mrc_client_submit(struct mrc_client *client, const struct mrc_sqe *sqe);
/* Submit now or as soon as there is room; never fails. */
void mrc_client_submit_later(struct mrc_client *client, struct mrc_pending *pending, uint8_t op);

/* Send a request with a name. -EAGAIN, -ECONNRESET. */
int mrc_client_request(struct mrc_client *client, uint32_t op, uint32_t flags, uint64_t user_data,
		       const char *target);

void mrc_client_set_error(struct mrc_client *client, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- mrc_intake.c ---- */

/*
 * Take one entry from the completion ring and park its event. 1: taken (which
 * may have been nothing for the program); 0: the ring is empty. An entry that
 * breaks the protocol ends the attachment: see is_gone.
 */
int mrc_client_take_in(struct mrc_client *client);

/* The attachment is over: answer everything outstanding, then DETACHED. Once. */
void mrc_client_bury(struct mrc_client *client, const char *why);

void mrc_client_park(struct mrc_client *client, struct mrc_parked *parked,
		     enum mrc_event_type type);

/* Take the oldest parked event out into *event_out; false: there is none. */
bool mrc_client_unpark(struct mrc_client *client, struct mrc_event *event_out);

/* ---- mrc_channel.c ---- */

/* Zeroed, in client->channels, with no id. NULL: no memory. */
struct mrc_channel *mrc_channel_new(struct mrc_client *client, enum mrc_channel_state state);
struct mrc_channel *mrc_channel_find(struct mrc_client *client, uint32_t id);
void mrc_channel_set_id(struct mrc_channel *channel, uint32_t id);
void mrc_channel_drop_id(struct mrc_channel *channel);
/* Frees a channel that the program has given up, once the daemon is done with it too. */
void mrc_channel_reap(struct mrc_channel *channel);
/* Frees the memory; unlinks everything. */
void mrc_channel_destroy(struct mrc_channel *channel);
/* Ask for CLOSE, once. */
void mrc_channel_ask_close(struct mrc_channel *channel);
/* Reject and release what is parked for it. */
void mrc_channel_reject_inbox(struct mrc_channel *channel);

/* ---- mrc_listener.c ---- */

void mrc_listener_reap(struct mrc_listener *listener);
void mrc_listener_destroy(struct mrc_listener *listener);
bool mrc_name_is_good(const char *name, size_t len);

/* ---- mrc_send.c ---- */

struct mrc_send_op *mrc_send_op_find(struct mrc_client *client, uint64_t user_data);
void mrc_send_op_free(struct mrc_client *client, struct mrc_send_op *op);
void mrc_send_op_event(struct mrc_send_op *op, struct mrc_event *event_out);
/* Of a text that is 0-terminated, at most MRC_REJECT_TEXT_MAX bytes; the rest of the place is left alone. */
void mrc_text_copy(char to[MRC_REJECT_TEXT_MAX + 1], const char *from);

/* ---- mrc_outcome.c ---- */

/* Remember a send whose deadline passed. The oldest one makes room. */
void mrc_outcome_add(struct mrc_channel *channel, const struct mrc_send_op *op);
/* It has come to its end. `text`: of REJECTED; "" or NULL: none. */
void mrc_outcome_decide(struct mrc_channel *channel, uint64_t number, int status,
			enum mrc_level level, uint32_t code, const char *text);

/* ---- mrc_msg.c ---- */

/* From the pool, parked nowhere. NULL: all are out. */
struct mrc_msg *mrc_msg_new(struct mrc_client *client);
void mrc_msg_free(struct mrc_msg *msg);
/* The daemon is to know that nobody will read it. */
void mrc_msg_turn_away(struct mrc_msg *msg);

/* ---- mrc_error.c ---- */

/* Text of the last failed mrc_attach() of this thread. */
void mrc_error_set_attach(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *mrc_error_attach_text(void);

#endif
