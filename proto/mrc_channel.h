/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_channel - one channel of a conn: its two directions, its state, its facts to tell
 *
 * Messages are numbered from 0 in each direction. Each direction remembers one
 * window of messages and no more: slot = number & (window - 1). A number's slot
 * is freed at both ends only when the sender has said it knows the final level
 * (DESIGN 7.8); that fact (`settled`) rides in every FRAG, RTS and STATE.
 *
 * What must be told to the peer is kept as flags ("facts", DESIGN 7.2) and made
 * into frames when a path has room.
 *
 * Ownership: the conn owns channels; messages live in two arrays of one allocation.
 * I/O, time: none.
 */
#ifndef MRC_CHANNEL_H
#define MRC_CHANNEL_H

#include "mrc_event.h"
#include "mrc_list.h"
#include "mrc_note.h"
#include "mrc_range.h"

#define MRC_WINDOW_MAX   1024U
#define MRC_WINDOW_WORDS (MRC_WINDOW_MAX / 64)
#define MRC_SLOT_NONE    UINT32_MAX

/* A message this end sends. Lives from SEND until it is settled. */
struct mrc_msg_out {
	uint64_t addr; /* in the client's send arena */
	uint64_t len;
	uint64_t cookie;
	uint64_t landing;     /* ring position, or the granted buffer's address */
	uint64_t next_offset; /* first byte never sent */
	uint32_t frames_out;  /* posted, and the rail may still read them */
	uint32_t frag_count;  /* first copies sent */
	uint32_t want_count;  /* times it came damaged by another path than the time before */
	uint32_t next_ready;  /* slot, in the channel's ready list */
	uint32_t code;
	int outcome;
	int outcome_void; /* what to say if the receiver lets it be void */
	int outcome_late; /* and if it proves delivered, for nobody waits any more; 0: it is waited for */
	uint8_t level;        /* enum mrc_lvl: highest known */
	uint8_t level_wanted; /* what the client waits for */
	uint8_t want_blame;   /* 1 + id of the path it last came damaged by; 0: never */
	uint8_t note;         /* in the channel's out_notes; 0: none */
	bool is_traced;       /* has a note, and TRACED is to be given */
	bool is_trace_heard; /* the LEVEL has come that tells the rest, or says that nothing does */
	bool has_deadline;   /* how far it is shall be known when that passes */
	bool is_eager;
	bool is_admitted; /* RTS to be sent, or ring space assigned */
	bool is_granted;
	bool is_ready;      /* in the ready list */
	bool is_empty_sent; /* a message of no bytes had its one frame */
	bool is_final;      /* level and outcome will not change */
	bool is_answered;   /* DONE was given */
	bool is_void_asked;
	bool is_late; /* DONE said that it was delivered and given up: its end is told by LATE */
};

/* A message this end receives. Lives until the sender has settled it. */
struct mrc_msg_in {
	uint64_t len;
	uint64_t addr; /* ring position, or the granted buffer's address */
	struct mrc_range_set here;
	struct mrc_range_set wanted; /* landed and thrown away: to be asked for again */
	uint32_t code;
	int outcome;
	uint8_t level;      /* enum mrc_lvl: reached here */
	uint8_t want_blame; /* 1 + id of the path that damaged some of what is wanted; 0: none */
	uint8_t note;       /* in the channel's in_notes; 0: none */
	bool is_traced; /* its sender waits for a LEVEL; the moments go with it, if it has a note */
	bool is_known;  /* len is known */
	bool is_eager;
	bool is_asked; /* LANDING_WANT was given */
	bool is_granted;
	bool is_landing_freed;
	bool is_whole;
	bool is_delivered;
	bool is_released;
	bool is_final;      /* committed, rejected or void */
	bool is_final_told; /* the peer has acknowledged a LEVEL that says so */
	bool is_void;
	bool is_draining;   /* void, and a write to its memory may still be under way */
	bool wants_placed;  /* the sender waits for just that; with wants_visible: for COMMITTED, */
	bool wants_visible; /* and wants to hear of each level at once */
};

enum mrc_channel_state {
	MRC_CH_OPENING,  /* we opened it, no answer yet */
	MRC_CH_INCOMING, /* the peer opened it, our client has not answered */
	MRC_CH_OPEN,
	MRC_CH_CLOSING, /* our client closed; its sends are being settled */
	MRC_CH_ENDED,   /* no more messages either way */
};

/*
 * What the peer had posted per path at some moment: all of it has landed when
 * each path has taken so many in, or that epoch is fenced (DESIGN 7.6).
 */
struct mrc_drain {
	uint8_t count;
	struct {
		uint8_t index; /* ours: ids may be numbered anew while this waits */
		uint32_t epoch;
		uint64_t posted;
	} paths[MRC_PATHS_MAX];
};

/* Facts about the channel that the peer has to be told. */
enum {
	MRC_FACT_STATE = 1U << 0,
	MRC_FACT_DRAINED = 1U << 1,
	MRC_FACT_RTS = 1U << 2, /* and the next three: see the bit sets */
	MRC_FACT_CTS = 1U << 3,
	MRC_FACT_WANT = 1U << 4,
	MRC_FACT_LEVEL = 1U << 5,
	MRC_FACT_STATE_LAZY = 1U << 6, /* STATE has news nobody waits for */
	MRC_FACT_BITS = 7,
};

struct mrc_bits {
	uint64_t words[MRC_WINDOW_WORDS];
};

struct mrc_flow;  /* the client it belongs to, for fair turns; mrc_conn_impl.h */
struct mrc_space; /* the peer's client's landing memory, and our keys to it; mrc_conn_impl.h */

struct mrc_channel {
	/* Identity. */
	uint32_t id;      /* this end's */
	uint32_t wire_id; /* on the wire; owner's parity in bit 0 */
	uint64_t cookie;
	enum mrc_channel_state state;
	bool is_opener;
	bool is_unordered;
	bool is_unchecked;   /* its fragments carry no checksum of their payload */
	bool has_client;     /* CH_OPEN or CH_ACCEPT was given: there is a landing ring */
	bool is_established; /* the peer has accepted (or we have) */
	bool is_aborted;     /* our client has died */
	bool is_heard;       /* something of the peer's was taken in on it in this conn epoch */
	bool is_detached;    /* its conn epoch is over: nothing to tell anybody */
	char service[MRC_NAME_MAX + 1];
	int end_outcome;
	uint32_t end_code;

	/* A client that answers what it is sent: what the peer waits to hear goes with the answer. */
	uint64_t asked_ns; /* when the last message was delivered, if no send followed; 0: none */
	uint32_t answers;  /* messages in a row that a send followed at once */
	bool is_answering; /* the next fragment is such a send's */

	/* Links: in the conn's table and lists. */
	struct mrc_channel *next_in_bucket;
	struct mrc_list in_all;
	struct mrc_list in_clients; /* has actions for the embedder */
	struct mrc_list in_facts;   /* has facts to tell */
	struct mrc_list in_lazy;    /* has facts that may wait a little */
	struct mrc_list in_drain;   /* something of the peer's may still land: ended, or void */
	struct mrc_list in_flow;    /* has fragments to send */
	uint64_t spent;             /* of its flow's turns */
	struct mrc_flow *flow;

	/* Flags for the embedder; each stays set until the action is taken. */
	bool do_incoming, do_up, do_down, do_free, do_room;
	bool is_room_wanted; /* a SEND found no slot */
	bool is_down_told, is_freed;

	/* Ending. */
	bool end_wanted; /* CLOSE or RESET must be appended to the control log */
	bool end_is_reset;
	bool end_appended;
	bool drained_owed; /* the peer ended it: it must learn what we had posted */
	bool drained_acked;
	bool peer_drained;    /* the peer told what it had posted when it stopped */
	uint32_t ctl_unacked; /* control frames of this channel not yet taken */
	struct mrc_drain drain;

	/* What the peer said of itself. */
	struct mrc_space *peer_space; /* the conn's; NULL: no room was left to keep keys for it */
	uint64_t peer_ring_addr;      /* of its landing ring, in that space */
	uint64_t peer_ring_bytes;
	uint64_t peer_msg_bytes_max;
	uint32_t peer_window;

	/* Out. settled <= admit_next <= send_next. */
	uint32_t out_window; /* power of two */
	struct mrc_msg_out *out;
	uint64_t send_next;
	uint64_t admit_next;
	uint64_t settled;
	uint64_t delivered_known; /* counts the peer stated */
	uint64_t visible_known;
	uint64_t final_known;
	uint64_t ring_next;  /* next free position of the peer's landing ring */
	uint64_t msg_limit;  /* numbers below it may be sent: the peer's credit */
	uint64_t ring_limit; /* up to which the peer granted */
	uint32_t ready_head; /* slots with bytes to send */
	uint32_t ready_tail;
	struct mrc_notes out_notes;
	uint64_t untraced; /* messages that should have been traced when no note was free */
	struct mrc_bits rts_bits, void_bits, done_bits;
	uint32_t done_count, void_count;

	/* In. */
	uint32_t in_window;
	struct mrc_msg_in *in;
	struct mrc_notes in_notes;
	uint64_t ring_addr; /* of our client's landing ring here, in its landing memory */
	uint64_t ring_bytes;
	uint64_t msg_bytes_max;
	uint64_t peer_settled;        /* window is [peer_settled, peer_settled + in_window) */
	uint64_t peer_settled_stated; /* what the sender said; we follow when memory is released */
	uint64_t deliver_next;        /* all before it are delivered or void */
	uint64_t visible_next;
	uint64_t final_next; /* all before it are final, and told where it matters */
	uint64_t ask_next;   /* next to get a landing buffer */
	bool is_asking;      /* LANDING_WANT of `asking` is unanswered */
	uint64_t asking;
	uint64_t ring_head;         /* positions before it are free again */
	uint64_t ring_release_next; /* message whose release moves ring_head next */
	uint64_t release_next;      /* all before it are released or void */
	uint64_t ring_limit_told, msg_limit_told;
	uint64_t known_end;          /* no message from there on was ever heard of */
	uint32_t void_count_in;      /* void messages in the window */
	uint32_t void_draining;      /* of them, with is_draining */
	struct mrc_drain void_drain; /* of the last VOID: what it says holds for all before it */
	uint32_t held_count;         /* delivered and not released */
	uint32_t level_unacked;      /* LEVEL frames in flight that the end waits for */
	uint64_t end_known;          /* known_end when the end was wanted; MRC_NEVER: it is not */
	struct mrc_bits ask_bits, cts_bits, want_bits, level_bits, free_bits, deliver_bits;
	uint32_t free_count;
	uint32_t facts; /* MRC_FACT_* */

	struct mrc_note *notes; /* out_notes' and in_notes' */

	/* Counters. */
	uint64_t sent_bytes, delivered_bytes, delivered_count, released_count;
};

static inline void mrc_bits_set(struct mrc_bits *bits, uint32_t i)
{
	bits->words[i / 64] |= 1ULL << (i % 64);
}

static inline void mrc_bits_clear(struct mrc_bits *bits, uint32_t i)
{
	bits->words[i / 64] &= ~(1ULL << (i % 64));
}

static inline bool mrc_bits_has(const struct mrc_bits *bits, uint32_t i)
{
	return bits->words[i / 64] >> (i % 64) & 1;
}

/* The first bit set at or after slot `from`, going round; MRC_SLOT_NONE when none is. */
uint32_t mrc_bits_first(const struct mrc_bits *bits, uint32_t from, uint32_t count);

/* The message with this number, or NULL when it is outside the window. Asked some ten times for each. */
static inline struct mrc_msg_out *mrc_channel_out(struct mrc_channel *ch, uint64_t number)
{
	if (number < ch->settled || number >= ch->send_next)
		return NULL;
	return &ch->out[number & (ch->out_window - 1)];
}

static inline struct mrc_msg_in *mrc_channel_in(struct mrc_channel *ch, uint64_t number)
{
	if (!ch->has_client || number < ch->peer_settled ||
	    number - ch->peer_settled >= ch->in_window)
		return NULL;
	return &ch->in[number & (ch->in_window - 1)];
}

/* Number of the message in this slot. */
uint64_t mrc_channel_out_number(const struct mrc_channel *ch, uint32_t slot);
uint64_t mrc_channel_in_number(const struct mrc_channel *ch, uint32_t slot);

/* ---- sending (mrc_msg_out.c) ---- */

/* -ENOSPC: no slot; -EMSGSIZE: more than the peer takes. */
int mrc_channel_send(struct mrc_channel *ch, const struct mrc_ev_msg *send, uint64_t *number_out);
/* Admit what credit allows: assigns ring space, asks for buffers (rts_bits). */
void mrc_channel_admit(struct mrc_channel *ch, uint32_t eager_bytes_max);
void mrc_channel_ready_push(struct mrc_channel *ch, uint32_t slot);
uint32_t mrc_channel_ready_pop(struct mrc_channel *ch);
/* Bytes (or the one frame of an empty message) that were never sent. */
bool mrc_msg_out_has_more(const struct mrc_msg_out *msg);
/* The peer states: level of one message. False when that cannot be. */
bool mrc_channel_out_level(struct mrc_channel *ch, uint64_t number, enum mrc_lvl level, int outcome,
			   uint32_t code, bool is_final);
/* The peer states its counts; false when they cannot be. */
bool mrc_channel_out_counts(struct mrc_channel *ch, uint64_t delivered, uint64_t visible,
			    uint64_t final);
/* If this message is as far as its client waits: ask for DONE, or LATE, once nothing reads its memory. */
void mrc_channel_out_answer(struct mrc_channel *ch, uint64_t number);
/* Was it asked for, and is it not given yet? */
bool mrc_channel_out_is_due(const struct mrc_channel *ch, uint64_t number);
/* The first answer that may be given: nothing reads that message's memory any more. */
uint32_t mrc_channel_done_slot(const struct mrc_channel *ch);
/* Would mrc_channel_settle() move? */
bool mrc_channel_can_settle(const struct mrc_channel *ch);
/*
 * Its client waits no longer: one known to be delivered, or of which nothing was sent, is
 * answered with `outcome` and its level now, any other as soon as the receiver has said
 * which it is. `number` is one that is not settled.
 */
void mrc_channel_out_give_up(struct mrc_channel *ch, uint64_t number, int outcome);
/* Give this message up, if the receiver lets it: it is then answered with `outcome`. */
void mrc_channel_out_void(struct mrc_channel *ch, uint64_t number, int outcome);
/* It can settle, and its TRACED is due before that. */
bool mrc_channel_is_trace_due(const struct mrc_channel *ch);
/* Move `settled` over all that are final, answered and traced. True when it moved. */
bool mrc_channel_settle(struct mrc_channel *ch);
/* End every unanswered send with this outcome. */
void mrc_channel_out_fail_all(struct mrc_channel *ch, int outcome, uint32_t code);

/* ---- receiving (mrc_msg_in.c) ---- */

/* Can the sender have settled so many? */
bool mrc_channel_in_may_settle(const struct mrc_channel *ch, uint64_t settled);
/* The sender has settled all before `settled`: free their slots. False when that cannot be. */
bool mrc_channel_in_settled(struct mrc_channel *ch, struct mrc_range_pool *pool, uint64_t settled);
/* First sight of a message's length and place (eager), or of its length (RTS). -EPROTO. */
int mrc_channel_in_learn(struct mrc_channel *ch, uint64_t number, uint64_t len, bool is_eager,
			 uint64_t position);
/* Bytes [offset, offset + len) are here and right. Answers how many were new, -ENOBUFS. */
int64_t mrc_channel_in_here(struct mrc_channel *ch, struct mrc_range_pool *pool, uint64_t number,
			    uint64_t offset, uint64_t len);
/*
 * They landed and were thrown away though they are needed: ask again. -ENOBUFS:
 * not more than `kept` nodes are left to remember it by, and nothing changed.
 */
int mrc_channel_in_want(struct mrc_channel *ch, struct mrc_range_pool *pool, uint64_t number,
			uint64_t start, uint64_t end, uint32_t kept);
/* The sender gives it up, and we let it. `is_draining`: its memory may still be written. */
void mrc_channel_in_void(struct mrc_channel *ch, uint64_t number, bool is_draining);
/* Nothing of the void messages is under way any more: their memory is free. */
void mrc_channel_in_drained(struct mrc_channel *ch, struct mrc_range_pool *pool);
/* Say how far this one is, whether the counts say so too or not. */
void mrc_channel_in_tell(struct mrc_channel *ch, uint64_t number);
/* The message reached a level here; tells the peer in the cheapest way that is right. */
void mrc_channel_in_reached(struct mrc_channel *ch, uint64_t number, enum mrc_lvl level);

#define MRC_ANSWERS_MIN 3U /* so many tell a client that answers */

/* How news of a count are told, which the peer's client waits for or not: with the answer, if one is due. */
static inline uint32_t mrc_channel_news(const struct mrc_channel *ch, bool is_awaited)
{
	bool is_answer_due = ch->asked_ns && ch->answers >= MRC_ANSWERS_MIN;

	return is_awaited && !is_answer_due ? MRC_FACT_STATE : MRC_FACT_STATE_LAZY;
}
/* Its moments are wanted: from now on they are noted, if a note is free. Its verdict is told by LEVEL. */
void mrc_channel_in_trace(struct mrc_channel *ch, struct mrc_msg_in *msg);
/*
 * Its verdict is about to be final: what is to be said besides. Of the client's times only
 * those are believed that can be; `now_ns` is for the others.
 */
void mrc_channel_in_note(struct mrc_channel *ch, struct mrc_msg_in *msg,
			 const struct mrc_ev_msg *ev, uint8_t text_len, uint64_t now_ns);
/* It has come so far now; noted if it is traced. */
void mrc_channel_in_stamp(struct mrc_channel *ch, struct mrc_msg_in *msg, enum mrc_moment moment,
			  uint64_t now_ns);
/*
 * Is there a LEVEL that the end has to wait for, because no count says the same? Of
 * messages first heard of after the end was wanted (end_known) none has.
 */
bool mrc_channel_in_owes(const struct mrc_channel *ch);
/* Its verdict is final (committed, rejected, void). */
void mrc_channel_in_final(struct mrc_channel *ch, uint64_t number, int outcome, uint32_t code);
/* A LEVEL frame that said its verdict was acknowledged. */
void mrc_channel_in_level_acked(struct mrc_channel *ch, uint64_t number);
/* The client gave the buffer back. -EALREADY, -EINVAL. */
int mrc_channel_in_release(struct mrc_channel *ch, struct mrc_range_pool *pool, uint64_t number);
/* Which message gets the next landing buffer: in message order on an ordered channel (DESIGN 7.9). */
bool mrc_channel_in_ask(struct mrc_channel *ch, uint64_t *number_out);
/* Is there something to DELIVER or a GAP now? The number in *number_out. */
bool mrc_channel_in_next(struct mrc_channel *ch, uint64_t *number_out);
/* No count may pass a void message before its LEVEL was heard: the first such, or `to`. */
uint64_t mrc_channel_in_heard(const struct mrc_channel *ch, uint64_t to);

#endif
