/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc/client.h - libmrc, the program's side of the MRC daemon
 *
 * A program attaches to the daemon of its host, opens channels to services on
 * other hosts (or its own) and exchanges messages. Payload is not copied
 * between the program and the daemon: a message is sent from memory of the
 * send arena (mrc_buf_alloc) and received in the landing arena, read-only.
 *
 * Calls answer 0 or more for success and a negative errno for failure. What
 * becomes of a message is not a call's result but its outcome: enum mrc_status
 * and enum mrc_level, in struct mrc_event or from the blocking calls.
 *
 * Two ways to use it. Event driven: start operations, wait for mrc_client_fd()
 * to become readable, take events with mrc_poll(). Blocking: mrc_connect(),
 * mrc_accept(), mrc_send_wait(), mrc_recv() with a timeout. Both may be mixed:
 * a blocking call keeps events that are not its own for mrc_poll() or for the
 * blocking call they belong to. A blocking call answers -EINTR when a signal
 * handler ran, -ETIMEDOUT when its time has passed (0: do not wait).
 *
 * Threads: one thread at a time per client; different clients are independent.
 * Fork: a child must not use its parent's client.
 */
#ifndef MRC_CLIENT_H
#define MRC_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mrc_client;   /* one attachment to the daemon */
struct mrc_listener; /* a service this client offers */
struct mrc_channel;  /* a two-way pipe of messages to one other client */
struct mrc_msg;      /* a received message */

/* How far a message got (mrc_levels(7)). Larger is further. */
enum mrc_level {
	MRC_LEVEL_NONE = 0,    /* not known to have reached the other side */
	MRC_LEVEL_PLACED = 1,  /* whole and checked in the receiver's memory, and announced there */
	MRC_LEVEL_VISIBLE = 2, /* the receiving program took it from its ring */
	MRC_LEVEL_COMMITTED = 3, /* the receiving program accepted it */
};

/* What became of an operation. */
enum mrc_status {
	MRC_STATUS_OK = 0,
	MRC_STATUS_REJECTED = -1,  /* the receiving program said no; `code` is its reason */
	MRC_STATUS_UNKNOWN = -2,   /* the peer's daemon restarted: it may have arrived or not */
	MRC_STATUS_PEER_DIED = -3, /* the receiving program ended before the level was reached */
	MRC_STATUS_TIMED_OUT = -4, /* the deadline passed; the level is what was known by then */
	MRC_STATUS_CLOSED = -5,    /* the channel was closed before the message could be settled */
	MRC_STATUS_TOO_BIG = -6,   /* more than the peer's landing memory takes; nothing was sent */
	MRC_STATUS_NO_SERVICE = -7, /* nobody listens to that service there */
	MRC_STATUS_NO_PEER = -8,    /* no such host in this daemon's configuration */
	MRC_STATUS_REFUSED = -9,    /* the service turned the channel away; `code` is its reason */
	MRC_STATUS_NOT_ALLOWED = -10,    /* this user may not use that service */
	MRC_STATUS_NO_RESOURCES = -11,   /* a limit of the daemon or of this client is reached */
	MRC_STATUS_DETACHED = -12,       /* the daemon of this host ended; outcome unknown */
	MRC_STATUS_INVALID = -13,        /* the daemon found the request malformed */
	MRC_STATUS_BUFFER_CHANGED = -14, /* the sender changed the buffer while it was sent */
	MRC_STATUS_IN_USE = -15,         /* another client offers that service already */
	MRC_STATUS_DRAINING = -16, /* a host is being drained: no new channels or services there */
};

enum mrc_event_type {
	/* Of a listener also once more, with NOT_ALLOWED, when the right to offer it is taken away:
	 * nobody comes any more, close it. */
	MRC_EVENT_LISTENING = 1, /* listener, status, user */
	MRC_EVENT_INCOMING = 2,  /* listener, channel: accept or refuse it */
	MRC_EVENT_CONNECTED = 3, /* channel, status, code, user; answers mrc_accept_incoming() too,
				  * with user 0. On failure nothing more comes: free the channel
				  * with mrc_channel_free() */
	MRC_EVENT_SENT = 4,      /* channel, number, status, level, code, text, user */
	MRC_EVENT_RECEIVED = 5,  /* channel, msg: the program owns msg until it releases it */
	MRC_EVENT_CLOSED = 6,    /* channel, status, code: nothing more will happen on it */
	MRC_EVENT_GAP = 7,       /* channel, number: the sender gave this message up */
	MRC_EVENT_DETACHED = 8,  /* the daemon went away; every operation has been answered */
	MRC_EVENT_DRAIN = 9, /* channel, status: its peer's host (channel NULL: this host) is being
				  * drained (DRAINING), or is no longer (OK): mrc_client_is_draining() */
};

#define MRC_REJECT_TEXT_MAX 64U /* bytes, without its 0 */

struct mrc_event {
	enum mrc_event_type type;
	int status;           /* enum mrc_status */
	enum mrc_level level; /* SENT: highest level known reached */
	uint32_t code;        /* the other program's code: REJECTED, REFUSED. CONNECTED with
			       * NO_RESOURCES: how many channels this client may have, if it has
			       * as many; 0 if something else is short */
	uint64_t number;      /* of the message on its channel, from 0 */
	uint64_t user;        /* as given when the operation was started */
	struct mrc_listener *listener;
	struct mrc_channel *channel;
	struct mrc_msg *msg;
	/* SENT with REJECTED: the other program's words, as it wrote them; "" when there are none. */
	char text[MRC_REJECT_TEXT_MAX + 1];
};

struct mrc_attach_options {
	const char *socket_path;      /* NULL: $MRC_SOCKET, else /run/mrcd/mrcd.sock */
	const char *name;             /* shown by mrcctl; NULL: the program's name */
	uint64_t send_arena_bytes;    /* 0: the daemon's default */
	uint64_t landing_arena_bytes; /* 0: the daemon's default */
	uint32_t outcomes_kept;       /* for mrc_send_query(), of each channel; 0: 64 */
};

#define MRC_OUTCOMES_KEPT_MAX 65536U

#define MRC_CHANNEL_UNORDERED 1U /* messages are delivered as soon as they are whole */
#define MRC_CHANNEL_UNCHECKED \
	2U /* integrity off: payload has no checksums, either way (mrc_connect(3)) */

#define MRC_WAIT_FOREVER INT64_MAX

/* The code of a rejection by the library: the channel was freed before the program took the message. */
#define MRC_CODE_NOT_READ UINT32_MAX
/* The code of a rejection because another message of its batch could not be committed. */
#define MRC_CODE_BATCH (UINT32_MAX - 1)

/* ---- attachment ---- */

/*
 * Attach to the daemon. `options` may be NULL.
 * -ENOENT, -ECONNREFUSED  no daemon there
 * -EPROTONOSUPPORT        daemon and library share no ABI version
 * -EACCES, -EMFILE, -ENOMEM  the daemon refused; mrc_last_error() says why
 * -EINVAL                 outcomes_kept is above MRC_OUTCOMES_KEPT_MAX
 */
int mrc_attach(const struct mrc_attach_options *options, struct mrc_client **client_out);

/* Ends the attachment and frees all of its channels, listeners, messages and buffers. NULL is fine. */
void mrc_detach(struct mrc_client *client);

/*
 * Readable, level triggered, when mrc_poll() has something to say; no rule
 * about how it must be called in between. It may be readable for nothing.
 * Owned by the client: poll it, do not read it.
 */
int mrc_client_fd(const struct mrc_client *client);

/* The name of this host's daemon, and the largest message this client can send. */
const char *mrc_client_host(const struct mrc_client *client);
uint64_t mrc_client_message_bytes_max(const struct mrc_client *client);

/*
 * This host is being drained before maintenance: open channels go on to their end, and
 * there are no new ones. A program that can move to another host does so now. False again
 * when the drain was taken back; MRC_EVENT_DRAIN tells of both. As far as events were taken in.
 */
bool mrc_client_is_draining(const struct mrc_client *client);

/* Text of the last error of attaching or of this client (NULL: of attaching). For people. */
const char *mrc_last_error(const struct mrc_client *client);

/* Name and explanation of an outcome (enum mrc_status) or level. Static strings. */
const char *mrc_status_name(int status);
const char *mrc_status_text(int status);
/* Explanation of a negative errno that a call answered (their numbers are not those of outcomes). */
const char *mrc_error_text(int error);
const char *mrc_level_name(enum mrc_level level);

/*
 * Take up to `events_max` events, without waiting. Answers how many.
 * -ECONNRESET  the daemon has gone and MRC_EVENT_DETACHED was already taken
 */
int mrc_poll(struct mrc_client *client, struct mrc_event *events_out, int events_max);

/*
 * Wait until mrc_poll() has something, or there is room after an -EAGAIN, at
 * most timeout_ns (0: do not wait). Answers 1 for something, 0 for time-out,
 * -EINTR, -ECONNRESET.
 */
int mrc_wait(struct mrc_client *client, int64_t timeout_ns);

/* ---- channels ---- */

/*
 * Offer a service: answered by MRC_EVENT_LISTENING, and so is its end when the daemon's rules
 * change (but by a daemon of before, or when more than 127 answers lie unread). -EINVAL (name),
 * -EAGAIN (try later).
 */
int mrc_listen_start(struct mrc_client *client, const char *service, uint64_t user,
		     struct mrc_listener **listener_out);
/*
 * The same, waiting for the answer. 0: *status_out says what it was, and
 * *listener_out is NULL unless that is MRC_STATUS_OK. With status_out NULL,
 * another status is -ECONNREFUSED. mrc_connect() answers alike.
 */
int mrc_listen(struct mrc_client *client, const char *service, int64_t timeout_ns,
	       struct mrc_listener **listener_out, int *status_out);
/* Stop offering; channels already accepted live on. Frees the listener. */
void mrc_listener_close(struct mrc_listener *listener);

/*
 * Open a channel to "host/service": answered by MRC_EVENT_CONNECTED, also when
 * the peer comes up only later. After a time-out or signal mrc_connect() has
 * given the channel up.
 */
int mrc_connect_start(struct mrc_client *client, const char *target, unsigned flags, uint64_t user,
		      struct mrc_channel **channel_out);
int mrc_connect(struct mrc_client *client, const char *target, unsigned flags, int64_t timeout_ns,
		struct mrc_channel **channel_out, int *status_out);

/* Take or turn away a channel from MRC_EVENT_INCOMING. refuse frees the channel. */
int mrc_accept_incoming(struct mrc_channel *channel);
int mrc_refuse_incoming(struct mrc_channel *channel, uint32_t code);
/* Wait for the next incoming channel of this listener and take it. -ETIMEDOUT, -ECONNRESET. */
int mrc_accept(struct mrc_listener *listener, int64_t timeout_ns, struct mrc_channel **channel_out);

/*
 * No more sends. What was sent is still delivered and answered; then
 * MRC_EVENT_CLOSED comes. mrc_close_wait() waits for that and frees the
 * channel; meanwhile arrivals are rejected (MRC_CODE_NOT_READ), for nobody can
 * read them. mrc_channel_free() frees it at once, after CLOSED or not: what is
 * then unanswered is never reported, messages the program holds of it are
 * released, those it has not taken are rejected.
 */
int mrc_close(struct mrc_channel *channel);
int mrc_close_wait(struct mrc_channel *channel, int64_t timeout_ns, int *status_out);
void mrc_channel_free(struct mrc_channel *channel);

struct mrc_client *mrc_channel_client(const struct mrc_channel *channel);
bool mrc_channel_is_unordered(const struct mrc_channel *channel);
/* Integrity is off: damage to a message is not noticed. A server may refuse such a channel. */
bool mrc_channel_is_unchecked(const struct mrc_channel *channel);
/* Largest message the peer takes on this channel; known once connected. */
uint64_t mrc_channel_message_bytes_max(const struct mrc_channel *channel);
/* The host at the other end is being drained, see mrc_client_is_draining(). False of one's own host. */
bool mrc_channel_is_draining(const struct mrc_channel *channel);
/* A pointer of the program's own, NULL at first. */
void mrc_channel_set_context(struct mrc_channel *channel, void *context);
void *mrc_channel_context(const struct mrc_channel *channel);

/* ---- sending ---- */

/* Memory to send from, 64-byte aligned. -ENOMEM: no contiguous space now; -EMSGSIZE: never. */
int mrc_buf_alloc(struct mrc_client *client, size_t len_bytes, void **buf_out);
/* Give it back. Not while a send from it is unanswered. NULL is fine; anything else that
 * mrc_buf_alloc() did not give is left alone, and mrc_last_error() says so. */
void mrc_buf_free(struct mrc_client *client, void *buf);

/*
 * Send [data, data + len) of the send arena. Answered once, by MRC_EVENT_SENT,
 * when `level` is reached or the message has failed. Until then the memory is
 * the daemon's to read and must not change. `deadline_ns` is a CLOCK_MONOTONIC
 * time, 0 for none: past it a message that was not delivered is given up, and
 * MRC_STATUS_TIMED_OUT is answered, with the level known by then: at once when it
 * was delivered or nothing of it was sent, else when the receiver's daemon has said
 * that it was, or agreed that it never will be (level NONE). mrc_send_query() tells
 * what became of it.
 * Order of sends on a channel is order of delivery, unless it is unordered.
 *
 * -EAGAIN     the ring or the client's share of sends is full: take events, try again
 * -EINVAL     not memory of the send arena, or a bad level
 * -EMSGSIZE   larger than the peer takes
 * -EPIPE      the channel is closed or closing
 * -ENOTCONN   not connected yet
 * -ECONNRESET the daemon has gone
 */
int mrc_send(struct mrc_channel *channel, const void *data, size_t len_bytes, enum mrc_level level,
	     uint64_t deadline_ns, uint64_t user);

/*
 * Send and wait for the answer. 0 with the outcome in *event_out (may be NULL).
 * -ETIMEDOUT and -EINTR: if it is under way, mrc_poll() answers it later, with
 * the address of `data` as `user`; mrc_channel_sends_outstanding() counts it.
 */
int mrc_send_wait(struct mrc_channel *channel, const void *data, size_t len_bytes,
		  enum mrc_level level, int64_t timeout_ns, struct mrc_event *event_out);

/*
 * What became of a send that was answered MRC_STATUS_TIMED_OUT, by the number in
 * that answer. Waits at most timeout_ns (0: does not wait) for it to be known.
 *
 * 0           *event_out (may be NULL) is as the answer would have been without a
 *             deadline; TIMED_OUT at level NONE: it was not delivered and never will be
 * -ETIMEDOUT, -EINTR  not known yet; *event_out is as it was answered
 * -ENOENT     no such send timed out on this channel, or as many as are kept did since
 *             (mrc_attach_options.outcomes_kept)
 *
 * A channel that has ended knows it until it is freed.
 */
int mrc_send_query(struct mrc_channel *channel, uint64_t number, int64_t timeout_ns,
		   struct mrc_event *event_out);

/* Sends on this channel whose answer the program has not taken. */
uint32_t mrc_channel_sends_outstanding(const struct mrc_channel *channel);

/* ---- receiving ---- */

/*
 * Wait for the channel's next message. -ETIMEDOUT; -EPIPE: closed and all
 * taken; -ECONNRESET. The program owns *msg_out until mrc_msg_release().
 */
int mrc_recv(struct mrc_channel *channel, int64_t timeout_ns, struct mrc_msg **msg_out);

const void *mrc_msg_data(const struct mrc_msg *msg);
size_t mrc_msg_len_bytes(const struct mrc_msg *msg);
uint64_t mrc_msg_number(const struct mrc_msg *msg);
struct mrc_channel *mrc_msg_channel(const struct mrc_msg *msg);

/* Tell the sender now that it is accepted; the memory stays readable until release. */
int mrc_msg_commit(struct mrc_msg *msg);
/*
 * Accept `count` messages, of any channels of one client, together: all are
 * committed, or none is. Waits for the daemon's word, some microseconds, and no
 * signal ends that. A program that ends meanwhile has committed all or none; to
 * turn all down, reject each.
 *
 * 0           all are committed
 * -ECANCELED  one could not be any more, for its channel has ended or its sender
 *             has given it up: the others were rejected with MRC_CODE_BATCH
 * -EINVAL     none, or messages of several clients; nothing was said
 * -EALREADY   one has its verdict already, or is named twice; nothing was said
 * -ECONNRESET the daemon has gone: all or none, not known which; senders may have heard either
 */
int mrc_msg_commit_batch(struct mrc_msg *const *msgs, size_t count);
/*
 * Tell the sender no, with a code and, unless it is NULL, a text for people of at most
 * MRC_REJECT_TEXT_MAX bytes. The code always arrives; the text does unless many
 * rejections of the channel (32; 8 while it is traced) are on their way at once.
 *
 * -EALREADY  it has its verdict already
 * -EMSGSIZE  the text is longer; nothing was said
 */
int mrc_msg_reject(struct mrc_msg *msg, uint32_t code, const char *text);
/* Give the memory back; commits, unless rejected before. Never fails. NULL is fine. */
void mrc_msg_release(struct mrc_msg *msg);

#ifdef __cplusplus
}
#endif

#endif
