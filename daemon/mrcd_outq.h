/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_outq - frames posted on a link and not yet taken by its transport
 *
 * First in, first out. Payload is named (channel, address, length), never
 * pointed to: the client it belongs to may be gone at the next turn of the
 * loop. Control bodies are copied in.
 *
 * Frames and bodies come from stacks, the most recently used on top, so that
 * a shallow queue touches little memory however large its bound is.
 *
 * Units:     bytes.
 * Ownership: the queue owns its frames; a frame is valid until popped.
 * Threads:   the loop of the link's worker.  I/O, time: none.
 */
#ifndef MRCD_OUTQ_H
#define MRCD_OUTQ_H

#include "mrc_conn.h"

struct mrcd_frame {
	struct mrcd_frame *next;
	struct mrc_wire_hdr hdr; /* body_len is what follows it on the wire */
	uint64_t channel_cookie; /* whose memory the payload is */
	uint64_t payload_addr;
	uint32_t payload_len; /* of a FRAG with a body; else 0 */
	uint32_t direct_len;  /* of a FRAG whose payload is written directly; else 0 */
	uint32_t rkey;        /* direct_len: by this key */
	uint64_t remote_addr; /* direct_len: to there */
	uint32_t body_len;    /* of a control frame */
	uint32_t pad_len;     /* of mrcd_padding(), after the control body */
	uint32_t tail_len;    /* after the payload: tells whether that is whole (WIRE.md) */
	uint32_t done;        /* bytes the transport has taken, header included */
	bool is_encoded;      /* `wire` is made */
	bool is_void;         /* the payload may not be read any more: zeros instead */
	uint8_t *body;        /* body_len bytes, in the queue's store; NULL when there are none */
	uint8_t wire[MRC_WIRE_HDR_BYTES];
};

struct mrcd_outq {
	struct mrcd_frame *first, *last; /* waiting */
	uint32_t count;
	uint32_t frames_max;
	struct mrcd_frame *frames; /* frames_max of them, owned */
	struct mrcd_frame *frames_free;
	uint32_t frames_fresh; /* never used so far: index of the next */
	uint8_t *bodies;       /* frames_max times MRC_WIRE_CTL_BYTES_MAX, owned */
	uint8_t *bodies_free;  /* each free one begins with a pointer to the next */
	uint32_t bodies_fresh;
};

/*
 * What probes are padded with: MRC_FRAG_BYTES_MAX bytes, in every place as often ones as zeros
 * and no two words alike. Zeros would find nothing wrong with a rail whose bits stick at zero.
 */
const uint8_t *mrcd_padding(void);

/* Room for what one path may have in flight, and for the ACKs and probes that come on top. */
uint32_t mrcd_outq_frames_max(const struct mrc_limits *limits);

/* -ENOMEM. */
int mrcd_outq_init(struct mrcd_outq *outq, uint32_t frames_max);
void mrcd_outq_fini(struct mrcd_outq *outq);

/* Append a frame; body_len of its header is set here. No room is the caller's bug. */
struct mrcd_frame *mrcd_outq_push(struct mrcd_outq *outq, const struct mrc_act_post *post);
/* Give the first frame back. */
void mrcd_outq_pop(struct mrcd_outq *outq);

/*
 * No payload may be read any more: fragments that have not begun become NOPs
 * (they keep their positions), one that has will be finished with zeros.
 * Control frames stay: they hold no client's memory, and what they say is
 * true whenever it arrives.
 */
void mrcd_outq_strip(struct mrcd_outq *outq);

/* The same for one frame. */
void mrcd_frame_strip(struct mrcd_frame *frame);

static inline uint32_t mrcd_frame_len(const struct mrcd_frame *frame)
{
	return MRC_WIRE_HDR_BYTES + frame->payload_len + frame->tail_len + frame->body_len +
	       frame->pad_len;
}

#endif
