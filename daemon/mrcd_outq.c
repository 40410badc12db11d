/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_outq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_IN_FLIGHT_DEFAULT 1024U /* as struct mrc_limits says */

static uint64_t padding[MRC_FRAG_BYTES_MAX / sizeof(uint64_t)];

/* Before main(), so that it is the same for all threads. */
__attribute__((constructor)) static void padding_make(void)
{
	struct mrc_rng rng = {.state = 1};

	for (size_t i = 0; i < MRC_ARRAY_LEN(padding); i++)
		padding[i] = mrc_rng_next(&rng);
}

const uint8_t *mrcd_padding(void)
{
	return (const uint8_t *)padding;
}

uint32_t mrcd_outq_frames_max(const struct mrc_limits *limits)
{
	uint32_t in_flight = limits->frames_in_flight_max;

	return 2 * (in_flight ? in_flight : FRAMES_IN_FLIGHT_DEFAULT);
}

int mrcd_outq_init(struct mrcd_outq *outq, uint32_t frames_max)
{
	memset(outq, 0, sizeof(*outq));
	outq->frames = calloc(frames_max, sizeof(*outq->frames));
	outq->bodies = calloc(frames_max, MRC_WIRE_CTL_BYTES_MAX);
	if (!outq->frames || !outq->bodies) {
		mrcd_outq_fini(outq);
		return -ENOMEM;
	}
	outq->frames_max = frames_max;
	return 0;
}

void mrcd_outq_fini(struct mrcd_outq *outq)
{
	free(outq->frames);
	free(outq->bodies);
	memset(outq, 0, sizeof(*outq));
}

static struct mrcd_frame *frame_get(struct mrcd_outq *outq)
{
	struct mrcd_frame *frame = outq->frames_free;

	if (frame)
		outq->frames_free = frame->next;
	else {
		MRC_ASSERT(outq->frames_fresh < outq->frames_max);
		frame = &outq->frames[outq->frames_fresh++];
	}
	memset(frame, 0, offsetof(struct mrcd_frame, wire));
	return frame;
}

static uint8_t *body_get(struct mrcd_outq *outq)
{
	uint8_t *body = outq->bodies_free;

	if (body)
		memcpy(&outq->bodies_free, body, sizeof(outq->bodies_free));
	else {
		MRC_ASSERT(outq->bodies_fresh < outq->frames_max);
		body = outq->bodies + (size_t)outq->bodies_fresh++ * MRC_WIRE_CTL_BYTES_MAX;
	}
	return body;
}

struct mrcd_frame *mrcd_outq_push(struct mrcd_outq *outq, const struct mrc_act_post *post)
{
	struct mrcd_frame *frame = frame_get(outq);

	frame->hdr = post->hdr;
	if (post->hdr.type == MRC_WIRE_FRAG) {
		MRC_ASSERT(post->hdr.body_len <= MRC_FRAG_BYTES_MAX);
		frame->channel_cookie = post->channel_cookie;
		frame->payload_addr = post->payload_addr;
		if (mrc_wire_has_body(&post->hdr)) {
			frame->payload_len = post->hdr.body_len;
		} else {
			frame->direct_len = post->hdr.body_len;
			frame->remote_addr = post->remote_addr;
			frame->rkey = post->rkey;
		}
	} else {
		MRC_ASSERT(post->body_len <= MRC_WIRE_CTL_BYTES_MAX);
		MRC_ASSERT(post->pad_len <= MRC_FRAG_BYTES_MAX - post->body_len);
		frame->body_len = post->body_len;
		frame->pad_len = post->pad_len;
		frame->hdr.body_len = post->body_len + post->pad_len;
		if (post->body_len) {
			frame->body = body_get(outq);
			memcpy(frame->body, post->body, post->body_len);
		}
	}

	if (outq->last)
		outq->last->next = frame;
	else
		outq->first = frame;
	outq->last = frame;
	outq->count++;
	return frame;
}

void mrcd_outq_pop(struct mrcd_outq *outq)
{
	struct mrcd_frame *frame = outq->first;

	MRC_ASSERT(frame);
	outq->first = frame->next;
	if (!outq->first)
		outq->last = NULL;
	outq->count--;

	if (frame->body) {
		memcpy(frame->body, &outq->bodies_free, sizeof(outq->bodies_free));
		outq->bodies_free = frame->body;
	}
	frame->next = outq->frames_free;
	outq->frames_free = frame;
}

void mrcd_frame_strip(struct mrcd_frame *frame)
{
	if (frame->hdr.type != MRC_WIRE_FRAG)
		return;
	if (frame->done) {
		frame->is_void = true;
		return;
	}
	frame->hdr = (struct mrc_wire_hdr){
		.type = MRC_WIRE_NOP,
		.conn_epoch = frame->hdr.conn_epoch,
		.path_epoch = frame->hdr.path_epoch,
	};
	frame->payload_len = 0;
	frame->tail_len = 0;
	frame->direct_len = 0;
	frame->is_encoded = false;
}

void mrcd_outq_strip(struct mrcd_outq *outq)
{
	for (struct mrcd_frame *frame = outq->first; frame; frame = frame->next)
		mrcd_frame_strip(frame);
}
