/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring_abi.h - what libmrc and mrcd share: the attach handshake and the rings
 *
 * Attach. The client connects to the daemon's SOCK_SEQPACKET socket and sends
 * struct mrc_abi_attach. The daemon answers struct mrc_abi_welcome; on success
 * five descriptors ride along (enum mrc_abi_fd). Afterwards the socket carries
 * struct mrc_abi_request from the client (operations that need a name) and
 * nothing from the daemon; their answers come through the completion ring. The
 * socket closing is how either side learns that the other has gone.
 *
 * Ring memory (one memfd, sealed SHRINK|GROW|SEAL):
 *
 *   0      struct mrc_ring_shm   (one page)
 *   4096   submission ring: sq_entry_count entries of 64 bytes, client writes
 *   ...    completion ring: cq_entry_count entries of 64 bytes, daemon writes
 *   ...    texts of submissions: sq_entry_count of 64 bytes, client writes
 *   ...    texts of completions: cq_entry_count of 64 bytes, daemon writes
 *
 * An entry with text_len has that much text in the place of the same index; it is
 * written before the entry is published, and copied before head passes it.
 *
 * Each ring has one producer and one consumer. head and tail are free-running
 * 32-bit counters; entry i lives at i & (count - 1). The producer writes the
 * entry, then stores tail with release order; the consumer loads tail with
 * acquire order, copies the entry, then stores head with release order.
 *
 * Sleeping. Before a consumer sleeps it stores its `sleeping` word (1), issues
 * a sequentially consistent fence, and looks at the tail once more. A producer
 * stores tail, issues the same fence, and rings the eventfd only when it reads
 * `sleeping` != 0. So a busy side is never woken by a system call and a
 * sleeping one never misses an entry. The daemon clears client_sleeping before
 * it rings: one bell for each time that the client goes to sleep.
 *
 * Trust. The daemon believes nothing in this page: it keeps its own positions
 * and counts, copies an entry once, and checks the copy. The completion ring
 * cannot overflow: the daemon grants message credit only for entries it has.
 *
 * Moments. While `is_tracing` is set, SENDs say when they were submitted; one that
 * does not was there before, and is not traced. Who gets an ARRIVED with
 * MRC_CQE_FLAG_TRACED says with its verdict (COMMIT, REJECT, or RELEASE) when it took
 * the message and when it judged it. All by CLOCK_MONOTONIC.
 *
 * Restart. A daemon may leave all of this to the next one: memory, rings, bells and
 * the socket stay as they are, `state` is PAUSED meanwhile, and what is put into the
 * rings is read by whoever comes. A client need not look: it waits for its bell as
 * ever, and when nobody comes the socket closes.
 *
 * Ends. After REFUSE, CLOSED, or a CONNECTED that failed, no entry names the
 * channel again; only a REFUSE and a CLOSED may cross on the way. A message
 * that was received stays the client's, and RELEASE is due, after CLOSED too;
 * until then the daemon does not use the channel's id again.
 *
 * Memory is named by offset into an arena, never by pointer. The client takes
 * no memory that is not sealed against shrinking (F_SEAL_SHRINK).
 */
#ifndef MRC_RING_ABI_H
#define MRC_RING_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MRC_ABI_MAGIC          0x4943524dU /* "MRCI", little-endian */
#define MRC_ABI_VERSION        2U /* the newest that is spoken; 2: MRC_CQE_DRAIN, _UNLISTENED */
#define MRC_ABI_VERSION_OLDEST 1U /* one back */

#define MRC_NAME_LEN_MAX       63U  /* a host or service name, without its 0 */
#define MRC_ABI_TARGET_BYTES   136U /* "host/service", 0-terminated */
#define MRC_ABI_TEXT_BYTES     120U
#define MRC_REASON_BYTES_MAX   64U /* of the text of a rejection */
#define MRC_RING_PAGE_BYTES    4096U

/* Client to daemon, first packet. */
struct mrc_abi_attach {
	uint32_t magic;                  /* MRC_ABI_MAGIC */
	uint32_t version_min;            /* oldest ABI the client speaks */
	uint32_t version_max;            /* newest ABI the client speaks */
	uint32_t reserved;               /* 0 */
	uint64_t send_arena_bytes;       /* wanted; 0: the daemon's default */
	uint64_t landing_arena_bytes;    /* wanted; 0: the daemon's default */
	char name[MRC_NAME_LEN_MAX + 1]; /* shown by mrcctl; may be empty */
};

/* Descriptors that ride with a successful welcome, in this order. */
enum mrc_abi_fd {
	MRC_ABI_FD_RINGS,         /* memfd, read-write */
	MRC_ABI_FD_SEND_ARENA,    /* memfd, read-write */
	MRC_ABI_FD_LANDING_ARENA, /* memfd, read-only */
	MRC_ABI_FD_DAEMON_BELL,   /* eventfd: the client rings it */
	MRC_ABI_FD_CLIENT_BELL,   /* pipe: the daemon writes 8 bytes to ring, read 8 to silence */
	MRC_ABI_FD_COUNT,
};

/* Daemon to client, the only packet it sends on the socket. */
struct mrc_abi_welcome {
	uint32_t magic;
	uint32_t version; /* the ABI both will speak: the newest that both can */
	int32_t status;   /* 0, or a negative errno; then only `text` counts */
	uint32_t reserved;
	uint64_t generation; /* of this daemon's state; another when a daemon began anew */
	uint64_t send_arena_bytes;
	uint64_t landing_arena_bytes;
	uint64_t ring_bytes;             /* size of the ring memfd */
	uint64_t message_bytes_max;      /* largest message this client can send */
	uint32_t sq_entry_count;         /* power of two */
	uint32_t cq_entry_count;         /* power of two */
	uint32_t channels_max;           /* of this client */
	uint32_t sends_max;              /* outstanding sends of this client, all channels */
	char host[MRC_NAME_LEN_MAX + 1]; /* this daemon's name */
	char text[MRC_ABI_TEXT_BYTES];   /* why not, for people */
};

/* Client to daemon on the socket: operations that carry a name. */
enum mrc_abi_request_op {
	MRC_ABI_REQ_LISTEN = 1,  /* target is the service; answer: MRC_CQE_LISTENING */
	MRC_ABI_REQ_CONNECT = 2, /* target is "host/service"; answer: MRC_CQE_CONNECTED */
};

#define MRC_ABI_CHANNEL_UNORDERED 1U /* deliver messages as soon as they are whole */
#define MRC_ABI_CHANNEL_UNCHECKED 2U /* no checksums of payload */

struct mrc_abi_request {
	uint32_t op;        /* enum mrc_abi_request_op */
	uint32_t flags;     /* MRC_ABI_CHANNEL_*; CONNECT only */
	uint64_t user_data; /* comes back in the answer */
	char target[MRC_ABI_TARGET_BYTES];
};

/* Submission entries. The daemon answers each SEND once, with MRC_CQE_SENT; LATE may follow. */
enum mrc_sqe_op {
	MRC_SQE_NOP = 0,
	MRC_SQE_SEND = 1,     /* channel, level, offset, len, user_data, deadline_ns */
	MRC_SQE_COMMIT = 2,   /* channel, number: a received message is accepted; buffer kept */
	MRC_SQE_REJECT = 3,   /* channel, number, code, text: refused by the program; buffer kept */
	MRC_SQE_RELEASE = 4,  /* channel, number: buffer given back; commits unless rejected */
	MRC_SQE_ACCEPT = 5,   /* channel: take an incoming channel */
	MRC_SQE_REFUSE = 6,   /* channel, code: turn an incoming channel away */
	MRC_SQE_CLOSE = 7,    /* channel: no more sends; ends when all are settled */
	MRC_SQE_UNLISTEN = 8, /* channel is the listener's id */
};

/*
 * On COMMIT: this message is committed together with others, all or none of
 * them. Of a batch nothing is said before its end; the end is answered once,
 * with MRC_CQE_BATCH and its user_data. Batches do not overlap, and a member is
 * not spoken of before its batch has ended.
 */
#define MRC_SQE_FLAG_BATCH     1U
#define MRC_SQE_FLAG_BATCH_END 2U /* with FLAG_BATCH: the last member */

struct mrc_sqe {
	uint8_t op;     /* enum mrc_sqe_op */
	uint8_t level;  /* enum mrc_level; SEND only */
	uint16_t flags; /* MRC_SQE_FLAG_*; COMMIT only */
	uint32_t channel;
	uint64_t user_data;
	uint64_t number; /* of a received message: COMMIT, REJECT, RELEASE */
	uint64_t offset; /* into the send arena */
	uint64_t len_bytes;
	union {
		uint64_t deadline_ns; /* SEND: CLOCK_MONOTONIC; 0: none */
		uint64_t visible_ns;  /* COMMIT, REJECT, RELEASE: when it was taken; 0: not said */
	};
	uint32_t code;     /* REJECT, REFUSE */
	uint32_t text_len; /* REJECT: at most MRC_REASON_BYTES_MAX */
	uint64_t stamp_ns; /* SEND, COMMIT, REJECT, RELEASE: when that was said; 0: not said */
};

/* Completion entries. */
enum mrc_cqe_type {
	MRC_CQE_LISTENING = 1, /* user_data, status, channel = listener id */
	MRC_CQE_INCOMING = 2,  /* channel = the new channel's id, number = listener id, flags */
	MRC_CQE_CONNECTED = 3, /* user_data, status, code, channel, len_bytes = largest message the
				* peer takes. Also answers ACCEPT, with user_data 0. */
	MRC_CQE_SENT = 4,      /* user_data, channel, number, status, level, code, text */
	MRC_CQE_ARRIVED = 5,   /* channel, number, offset (landing arena), len_bytes, flags */
	MRC_CQE_CLOSED = 6,    /* channel, status, code: the channel's last entry, but for SENT of
				* SENDs that were still in the ring then: those follow, with
				* status CLOSED */
	MRC_CQE_GAP = 7,       /* channel, number: this message was given up by its sender */
	MRC_CQE_BATCH = 8,     /* user_data, status: OK all are committed; CLOSED one could not be,
				* and those that could are rejected with MRC_CODE_BATCH */
	MRC_CQE_LATE = 9, /* as SENT, after one that was UNDECIDED: what became of the message */
	/* Since version 2. status: DRAINING, a host is being drained; OK, it is not any longer.
	 * channel: the peer's host, of an open channel; 0: this host. */
	MRC_CQE_DRAIN = 10,
	/* Since version 2. channel = listener id, status: NOT_ALLOWED, the right to it was taken
	 * away. It is over, and an UNLISTEN of it changes nothing. While more than 127 answers
	 * without a channel lie unread it is not told. */
	MRC_CQE_UNLISTENED = 11,
};

/*
 * Ring the daemon's bell once head has moved past this entry. On ARRIVED: the
 * sender waits for VISIBLE. On a channel's last entry: its memory is freed then.
 * On DRAIN: what has changed meanwhile is told then.
 */
#define MRC_CQE_FLAG_TELL_VISIBLE 1U
/* On INCOMING and CONNECTED: the channel is unordered; its payload has no checksums. */
#define MRC_CQE_FLAG_UNORDERED 2U
#define MRC_CQE_FLAG_UNCHECKED 4U
/* On SENT: TIMED_OUT, but delivered; its slot among the client's sends is free after LATE. */
#define MRC_CQE_FLAG_UNDECIDED 8U
/* On ARRIVED: its sender wants to know when it was taken and judged. */
#define MRC_CQE_FLAG_TRACED 16U

#define MRC_ABI_NUMBER_NONE UINT64_MAX /* SENT of a message that never got a number */

struct mrc_cqe {
	uint8_t type;  /* enum mrc_cqe_type */
	uint8_t level; /* SENT: highest level known reached, enum mrc_level */
	uint16_t flags;
	uint32_t channel;
	uint64_t user_data;
	uint64_t number;
	uint64_t offset;
	uint64_t len_bytes;
	int32_t status; /* enum mrc_status: 0 or negative */
	uint32_t code;  /* the peer program's own; CONNECTED with NO_RESOURCES: the client's limit
			    * of channels, if that is reached, else 0 */
	uint32_t text_len; /* SENT, LATE with REJECTED: at most MRC_REASON_BYTES_MAX */
	uint32_t reserved0;
	uint64_t reserved1;
};

/* Daemon's state, in mrc_ring_shm.state. */
enum mrc_ring_state {
	MRC_RING_STATE_RUNNING = 1,
	MRC_RING_STATE_PAUSED = 2, /* the daemon is handing over; rings are kept, wait */
	MRC_RING_STATE_GONE = 3,   /* this attachment is over */
};

struct mrc_ring_shm {
	/* Set once by the daemon. */
	uint32_t magic;
	uint32_t version;
	uint64_t generation;
	uint32_t sq_entry_count;
	uint32_t cq_entry_count;
	uint32_t sq_offset; /* bytes from the start of the memfd */
	uint32_t cq_offset;
	uint32_t sq_text_offset;
	uint32_t cq_text_offset;
	uint8_t pad0[24];

	uint32_t state;      /* enum mrc_ring_state, daemon writes */
	uint32_t is_tracing; /* some of this client's sends are traced, daemon writes */
	uint8_t pad1[56];

	/* One cache line each, so that the two sides do not pull at one line. */
	uint32_t sq_tail; /* client writes */
	uint8_t pad2[60];
	uint32_t sq_head; /* daemon writes */
	uint8_t pad3[60];
	uint32_t cq_tail; /* daemon writes */
	uint8_t pad4[60];
	uint32_t cq_head; /* client writes; what is behind it is VISIBLE */
	uint8_t pad5[60];
	uint32_t daemon_sleeping; /* daemon writes */
	uint8_t pad6[60];
	uint32_t client_sleeping; /* client writes; the daemon clears it when it rings */
	uint8_t pad7[60];
};

#ifdef __cplusplus
static_assert(sizeof(struct mrc_sqe) == 64, "ring ABI: one cache line");
static_assert(sizeof(struct mrc_cqe) == 64, "ring ABI: one cache line");
#else
_Static_assert(sizeof(struct mrc_sqe) == 64, "ring ABI: one cache line");
_Static_assert(sizeof(struct mrc_cqe) == 64, "ring ABI: one cache line");
_Static_assert(sizeof(struct mrc_ring_shm) == 512, "ring ABI: eight cache lines");
#endif

#ifdef __cplusplus
}
#endif

#endif
