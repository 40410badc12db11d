/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_engine - one engine between an honest embedder and a peer that may say anything
 *
 *	fuzz_engine.c        the input as a program: what happens next
 *	fuzz_engine_peer.c   the peer: right frames for the state the engine is in, then bent
 *	fuzz_engine_embed.c  the embedder: performs actions, and holds the engine to its promises
 *
 * The peer passed the handshake, so it looks into the engine to say what is nearly right. What
 * must hold whatever it says (each is checked at every step):
 *
 *	- payload is placed or copied only into a landing ring that is not freed, outside of what
 *	  was delivered and not released, or into a granted buffer that was neither delivered nor
 *	  given back;
 *	- each number is delivered or skipped at most once, in order on an ordered channel;
 *	- each SEND is answered once, and before CH_DOWN; each hold is freed once;
 *	- when it is answered no rail reads its memory any more;
 *	- a direct write goes where the peer said on that path epoch that it may;
 *	- nothing is allocated but where channels begin; all is given back in the end;
 *	- actions come to an end, and no timer stays in the past.
 *
 * What a direct path writes is the peer's NIC's doing and not looked at.
 *
 * Units: ns, bytes.  Ownership: a struct eng owns all of it.
 */
#ifndef FUZZ_ENGINE_H
#define FUZZ_ENGINE_H

#include "fuzz.h"
#include "mrc_conn_impl.h"

#define ENG_CHANNELS_MAX  24U /* of one input */
#define ENG_LIVE_MAX      4U  /* at once, the engine's limit */
#define ENG_FRAMES_MAX    64U /* in flight on one path */
#define ENG_NUMBERS_MAX   512U
#define ENG_GRANTS_MAX    64U
#define ENG_HOLDS_MAX     8U
#define ENG_BODY_BYTES    MRC_FRAG_BYTES_MAX
#define ENG_BOOT          7U
#define ENG_STEPS_MAX     600U
#define ENG_MSG_BYTES_MAX (64U * 1024U)
#define ENG_SPACES        3U  /* landing memories of the peer's clients */
#define ENG_SHARE         16U /* of receive entries, of both ends */
#define ENG_EAGER_MAX     1024U
#define ENG_SEND_SHIFT    20U /* a message lies in the send arena at its cookie, so far up */

/* What the client knows of one number that came in. */
struct eng_arrival {
	bool is_delivered, is_gap, is_released, is_eager;
	uint64_t addr, len;
};

struct eng_grant {
	bool is_live;
	uint64_t number, addr, len;
	bool is_delivered;
};

/* A channel as the embedder knows it; its cookie is its index + 1. */
struct eng_channel {
	uint32_t id; /* 0: the entry is free */
	bool is_incoming, has_client, is_up, is_down, is_freed, is_aborted;
	bool is_unordered, is_opener;
	uint64_t ring_bytes;
	uint64_t number_next; /* ordered: the least that may come next */
	struct eng_arrival arrivals[ENG_NUMBERS_MAX];
	struct eng_grant grants[ENG_GRANTS_MAX];
	struct {
		bool is_live;
		uint64_t number, len;
	} want; /* LANDING_WANT not answered */
	uint32_t sends, answered;
	bool is_answered[ENG_NUMBERS_MAX]; /* by cookie */
	bool is_undecided[ENG_NUMBERS_MAX];
	bool is_traced[ENG_NUMBERS_MAX]; /* its moments were told */
	uint64_t send_len[ENG_NUMBERS_MAX];
	/* The peer's own books of what it sends here. */
	uint64_t peer_next, peer_ring_next;
};

/* A fragment that a rail may still read from its client's memory. */
struct eng_posted {
	uint64_t cookie; /* channel's; 0: nothing is read */
	uint64_t msg;
};

struct eng {
	struct fuzz_input in;
	struct mrc_conn *conn;
	uint64_t now_ns;
	bool is_auto_sent, is_auto_fenced, is_auto_landing, is_auto_accept;
	uint8_t path_count;
	uint8_t direct_mask;
	uint32_t window;
	uint64_t ring_bytes;
	uint64_t peer_boot_id;
	uint64_t posted[MRC_PATHS_MAX], sent[MRC_PATHS_MAX];
	struct eng_posted queue[MRC_PATHS_MAX][ENG_FRAMES_MAX]; /* by position */
	bool is_linked[MRC_PATHS_MAX]; /* there is a transport of link_epoch */
	uint32_t link_epoch[MRC_PATHS_MAX];
	bool keys[MRC_PATHS_MAX][ENG_SPACES]; /* ever said valid on this path epoch: 100 + space */
	bool is_key_bent[MRC_PATHS_MAX];      /* or something like it */
	bool is_fence_due[MRC_PATHS_MAX];
	uint32_t fence_epoch[MRC_PATHS_MAX];
	bool is_connect_due[MRC_PATHS_MAX];
	bool is_carrier_asked[MRC_PATHS_MAX];
	uint64_t hold_next;
	uint64_t holds[ENG_HOLDS_MAX]; /* ids of those the engine has; 0: free */
	uint64_t landing_next;         /* landing addresses never come twice */
	uint64_t allocs;
	int64_t allocs_live;
	struct eng_channel channels[ENG_CHANNELS_MAX]; /* last; see LLVMFuzzerTestOneInput() */
};

/* ---- fuzz_engine_embed.c ---- */

void eng_new(struct eng *e);
void eng_free(struct eng *e);
/* An event, and a check of what it may and may not do. Answers what the engine answered. */
int eng_handle(struct eng *e, const struct mrc_event_in *ev);
/* Take and perform all actions. */
void eng_pump(struct eng *e);
void eng_tick(struct eng *e, uint64_t span_ns);
/* The transport of a path ends. */
void eng_link_down(struct eng *e, uint8_t path, enum mrc_path_reason reason);
/* A frame that was decoded arrives; ends the path when the engine says so. */
int eng_arrive(struct eng *e, uint8_t path, const struct mrc_wire_hdr *hdr, const uint8_t *body,
	       bool is_body_good, bool is_placed);
void eng_send(struct eng *e, struct eng_channel *ch, uint64_t len, enum mrc_lvl level);
void eng_landing_answer(struct eng *e, struct eng_channel *ch);
void eng_accept(struct eng *e, struct eng_channel *ch);
void eng_open(struct eng *e, bool is_unordered);
/* One that was ever known, by the input's choice; NULL: there is none. */
struct eng_channel *eng_channel_pick(struct eng *e);
uint64_t eng_cookie(const struct eng *e, const struct eng_channel *ch);

/* ---- fuzz_engine_peer.c ---- */

/* A handshake on this path. */
void eng_peer_connect(struct eng *e, uint8_t path, bool is_bent);
/* Answer probes until the path is in service. */
void eng_peer_path_good(struct eng *e, uint8_t path);
void eng_peer_ack_all(struct eng *e, uint8_t path);
/* One frame of a kind the input chooses, right for the state or bent. */
void eng_peer_frame(struct eng *e);
/* A channel opened to us. */
void eng_peer_open(struct eng *e, uint8_t path, bool is_unordered);
/* KEYS for one of its spaces. */
void eng_peer_keys(struct eng *e, uint8_t path, uint32_t space, bool is_valid);
/* ACCEPT of the channel we opened. */
void eng_peer_accept(struct eng *e, uint8_t path, struct eng_channel *ch);

#endif
