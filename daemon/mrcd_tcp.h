/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_tcp - what the files of the tcp kind of rail share
 *
 *	mrcd_rail_tcp.c     the rail: listening, accepting, coming and going of its address
 *	mrcd_tcp_attempt.c  a connection until its handshake is done
 *	mrcd_tcp_link.c     a connection that is a link: life and sending
 *	mrcd_tcp_recv.c     receiving
 *	mrcd_tcp_seal.c     sending and receiving in records
 *	mrcd_tcp_drill.c    a rail that fails on purpose
 *
 * Threads: the worker's loop.
 */
#ifndef MRCD_TCP_H
#define MRCD_TCP_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "mrcd_handshake.h"
#include "mrcd_lookout.h"
#include "mrcd_outq.h"
#include "mrcd_rail.h"
#include "mrcd_resolve.h"
#include "mrcd_seal.h"
#include "mrcd_tcp_sock.h"
#include "mrcd_worker.h"

struct mrcd_tcp_link;
struct mrcd_tcp_seal;
struct mrcd_tcp_attempt;

/* Attempts that go out, by whom they are for: thousands of peers may be out of reach at once. */
#define MRCD_TCP_BUCKETS       1024U

#define MRCD_TCP_STAGING_BYTES (64U * 1024U)
#define MRCD_TCP_RECORDS_BYTES (MRCD_SEAL_RECORD_MAX + 128U * 1024U)
/* A header with the longest control body, cut off by the end of a read. */
#define MRCD_TCP_CARRY_BYTES (MRC_WIRE_HDR_BYTES + MRC_WIRE_CTL_BYTES_MAX)

/*
 * What a rail with a device makes of a connection whose handshake is done: its
 * queue pairs are connected under the eyes of who has proved the key (WIRE.md,
 * READY). A rail without it makes a tcp link of every connection.
 */
struct mrcd_tcp_upgrade {
	/* Can the rail place directly now? Asked when a handshake begins. */
	bool (*is_capable)(void *context);
	/* type verbs: a handshake in which not both ends are capable is refused. */
	bool is_required;
	/* Responder: the port on which its device listens; said in READY. 0: as if not capable. */
	uint16_t (*port)(void *context);
	/*
	 * Both ends are capable and the handshake is done: hs has the peer, path,
	 * epochs, hs->device_port and hs->device_token. The connection is the
	 * callee's from now on (its end says that the peer's process has ended), and
	 * so is the attempt: it ends in mrcd_link_on_up() or, for the initiator,
	 * mrcd_peer_on_connect_failed().
	 */
	void (*start)(void *context, int fd, const struct mrcd_handshake *hs,
		      const struct sockaddr_storage *address, socklen_t address_len);
	void *context;
};

TAILQ_HEAD(mrcd_tcp_bucket, mrcd_tcp_attempt);

/* The tcp part of one rail. Lives until its rail is closed and its last link is gone. */
struct mrcd_tcp {
	struct mrcd_rail *rail;                 /* the worker's */
	const struct mrcd_tcp_upgrade *upgrade; /* NULL: none */
	bool is_closed;

	int listen_fd;               /* -1: not listening now */
	struct event listen_event;   /* while listening */
	struct event retry_event;    /* try to listen again, or go on accepting */
	unsigned listen_ifindex;     /* of the interface it was bound to; 0: to none */
	struct sockaddr_storage own; /* bound to */
	socklen_t own_len;           /* 0: none so far */
	int listen_error;            /* last one logged */

	TAILQ_HEAD(, mrcd_tcp_attempt) inbound;            /* oldest first */
	struct mrcd_tcp_bucket outbound[MRCD_TCP_BUCKETS]; /* those for one peer are in one */
	uint32_t inbound_count;
	struct mrcd_strangers strangers;
	struct mrcd_resolver *resolver; /* ours */

	LIST_HEAD(, mrcd_tcp_link) links;
	LIST_HEAD(, mrcd_tcp_link) dead; /* closed; freed by reap_event, when nobody is inside */
	struct event reap_event;

	/* A drill (mrcd_tcp_drill.c). */
	const struct mrcd_link_ops *link_ops; /* of links that begin */
	bool is_cut;                          /* nothing comes in, nobody answers */
	uint64_t slow_bytes, slow_ns;         /* that may be sent now, and as of when */
	struct event slow_event;

	/* Where reads land. Between two reads a link keeps only what it carries, so one buffer
	 * serves all of a rail, and stays in the cache. */
	uint8_t *staging; /* MRCD_TCP_CARRY_BYTES, then MRCD_TCP_STAGING_BYTES */
	uint8_t *scratch; /* MRCD_TCP_STAGING_BYTES: payload nobody wants any more */
	uint8_t *
		records; /* MRCD_TCP_RECORDS_BYTES: as they come; NULL before the first sealed link */
};

/* -EINVAL, -ENOMEM. It listens, or tries again until it can. `upgrade` outlives it; NULL: none. */
int mrcd_tcp_new(struct mrcd_rail *rail, const struct mrcd_tcp_upgrade *upgrade,
		 struct mrcd_tcp **tcp_out);
/* Its links may outlive it until they are fenced. NULL is fine. */
void mrcd_tcp_free(struct mrcd_tcp *tcp);
/* Its interface or address came, went or changed. */
void mrcd_tcp_refresh(struct mrcd_tcp *tcp);
/* Take up what waits to be accepted (again), if is_cut does not forbid it; those that came while it did are sent away. */
void mrcd_tcp_listen_watch(struct mrcd_tcp *tcp);

/* ---- attempts ---- */

/* A connection that came in; the fd is ours. The oldest one makes room when there are too many. */
void mrcd_tcp_attempt_inbound(struct mrcd_tcp *tcp, int fd, const struct sockaddr_storage *from,
			      socklen_t from_len);
/* Ends in mrcd_link_on_up() or mrcd_peer_on_connect_failed(), not before it returns. */
void mrcd_tcp_attempt_outbound(struct mrcd_tcp *tcp, struct mrcd_peer *peer, uint8_t path_index);
/* Is one under way? */
bool mrcd_tcp_attempt_exists(const struct mrcd_tcp *tcp, const struct mrcd_peer *peer,
			     uint8_t path_index);
/* Those that come in are dropped; those that go out fail, for `why` (static). */
void mrcd_tcp_attempts_fail(struct mrcd_tcp *tcp, const char *why);
/* Drop those of `peer` (NULL: all), without a word to anybody. */
void mrcd_tcp_attempts_drop(struct mrcd_tcp *tcp, const struct mrcd_peer *peer);

/* ---- links ---- */

struct mrcd_tcp_link {
	struct mrcd_link link; /* first: what the seam hands around is a pointer to it */
	struct mrcd_tcp *tcp;
	LIST_ENTRY(mrcd_tcp_link) entry;
	int fd; /* -1: closed */
	struct event read_event;
	struct mrcd_lookout_source lookout_source; /* as read_event, while the worker looks */
	struct event write_event;                  /* armed while the socket takes no more */
	struct event down_event; /* made active to report a failed write from outside the pump */
	int write_error;         /* the errno that it reports */

	struct mrcd_tcp_seal *seal; /* ours; NULL: bytes travel as they are */

	/* Sending. */
	struct mrcd_outq outq;
	uint64_t sent_count; /* frames the socket has taken whole */

	/* Receiving. */
	bool is_in_body;      /* of `hdr`; a FRAG's or a PROBE's */
	bool is_all_placed;   /* so far none of it went to scratch */
	bool is_contested;    /* another link has brought some of the same bytes meanwhile */
	const uint8_t *whole; /* all of it was placed there just now; NULL: ask where it lies */
	struct mrc_wire_hdr hdr;
	uint32_t body_done;
	uint32_t body_crc; /* of what came so far */
	uint32_t carry_len;
	uint8_t carry[MRCD_TCP_CARRY_BYTES];
};

static inline struct mrcd_tcp_link *mrcd_tcp_link_of(struct mrcd_link *link)
{
	return (struct mrcd_tcp_link *)link;
}

/* Takes the fd on success. -ENOMEM. Its events are not armed before mrcd_tcp_link_start(). */
int mrcd_tcp_link_new(struct mrcd_tcp *tcp, int fd, struct mrcd_peer *peer, uint8_t path_index,
		      const struct mrc_auth *auth, struct mrcd_tcp_link **link_out);
void mrcd_tcp_link_start(struct mrcd_tcp_link *link);
/* Whether its socket is read; not said twice. */
void mrcd_tcp_link_listen(struct mrcd_tcp_link *link, bool does_listen);
/* Close the socket; memory is freed later in this turn. A second call does nothing. */
void mrcd_tcp_link_close(struct mrcd_tcp_link *link);
/* Close it and tell the peer's side why. `link` is gone afterwards. */
void mrcd_tcp_link_down(struct mrcd_tcp_link *link, enum mrc_path_reason reason, const char *why);
/* Frees what was closed; the tcp part too when its rail is closed and this was the last. */
void mrcd_tcp_reap(struct mrcd_tcp *tcp);

/*
 * What is left to send of a frame, in the order of the wire: header, payload,
 * tail, body, padding. Valid until the turn ends. Answers how many parts.
 */
#define MRCD_TCP_PARTS 3 /* those of five that a frame has */
int mrcd_tcp_frame_parts(struct mrcd_tcp_link *link, struct mrcd_frame *frame,
			 struct iovec parts[MRCD_TCP_PARTS]);
/* So many more bytes of the queue will not be read again. */
void mrcd_tcp_taken(struct mrcd_tcp_link *link, size_t len);

void mrcd_tcp_post(struct mrcd_link *link, const struct mrc_act_post *post);
void mrcd_tcp_flush(struct mrcd_link *link);
void mrcd_tcp_strip(struct mrcd_link *link);
void mrcd_tcp_fence(struct mrcd_link *link);
bool mrcd_tcp_link_resends(const struct mrcd_link *link, uint64_t *sent_out, uint64_t *resent_out);

extern const struct mrcd_link_ops mrcd_tcp_link_ops;
/* Nothing is sealed that the socket has not taken. */
bool mrcd_tcp_seal_is_drained(const struct mrcd_tcp_seal *seal);
/* Does it have anything to send? */
static inline bool mrcd_tcp_link_is_waiting(const struct mrcd_tcp_link *link)
{
	return link->outq.count > 0 || (link->seal && !mrcd_tcp_seal_is_drained(link->seal));
}
/* Send what waits, up to len_max bytes of it. Answers how many. Arms no event. */
size_t mrcd_tcp_link_write_part(struct mrcd_tcp_link *link, size_t len_max);

/* ---- drills ---- */

void mrcd_tcp_drill_init(struct mrcd_tcp *tcp);
void mrcd_tcp_drill_fini(struct mrcd_tcp *tcp);
/* mrcd_rail.h, drill */
int mrcd_tcp_drill(struct mrcd_tcp *tcp);

/* ---- receiving ---- */

/*
 * A fragment without a checksum is followed by one byte, which says whether it is whole, or
 * had to be ended with zeros because its bytes could no longer be read (WIRE.md).
 */
#define MRCD_TCP_TAIL_CUT   0x00U
#define MRCD_TCP_TAIL_WHOLE 0xffU

static inline bool mrcd_tcp_has_tail(const struct mrc_wire_hdr *hdr)
{
	return hdr->type == MRC_WIRE_FRAG && hdr->body_len && hdr->flags & MRC_WIRE_F_UNCHECKED;
}

struct mrcd_tcp_failure {
	enum mrc_path_reason reason;
	const char *why;
};

/*
 * Read what is there, up to a bound, and hand frames up.
 * False: the link is to be taken down, for *failure_out.
 */
bool mrcd_tcp_recv(struct mrcd_tcp_link *link, struct mrcd_tcp_failure *failure_out);
/* So many bytes are staged, those that the link carried first: parse them. False as above. */
bool mrcd_tcp_staged_take(struct mrcd_tcp_link *link, uint32_t staged,
			  struct mrcd_tcp_failure *failure);

/* ---- records ---- */

/* From here on the link's stream is made of records. -ENOMEM: the link is to be closed. */
int mrcd_tcp_seal_new(struct mrcd_tcp_link *link, const uint8_t secret_out[MRCD_SEAL_SECRET_BYTES],
		      const uint8_t secret_in[MRCD_SEAL_SECRET_BYTES]);
/* NULL is fine. */
void mrcd_tcp_seal_free(struct mrcd_tcp_seal *seal);
/* One call to the socket. Answers what it took, or a negative errno; *is_full_out: no more for now. */
ssize_t mrcd_tcp_seal_send(struct mrcd_tcp_link *link, size_t len_max, bool *is_full_out);
/* One read, as read_once() of mrcd_tcp_recv.c. */
bool mrcd_tcp_seal_read(struct mrcd_tcp_link *link, uint32_t *bytes_out, bool *is_more_out,
			struct mrcd_tcp_failure *failure);

#endif
