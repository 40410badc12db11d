/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A frame becomes one or two work requests: payload that is written directly
 * goes first, by an RDMA write without a completion, then its header by a send
 * on the same queue pair; all other frames are one send. A flush gives the
 * device a chain of requests with one doorbell, and asks for one completion, of
 * the chain's last.
 *
 * Slots are counted by ourselves: a soft device takes more than its queue
 * holds, and a real one does not.
 */
#include "mrcd_verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mrcd_crc.h"

#define CHAIN_FRAMES 16U
/* Of one link in one turn: soft devices send within the call. */
#define BYTES_PER_TURN (512U * 1024U)

/* A chain in the making. */
struct chain {
	struct ibv_send_wr wrs[2 * CHAIN_FRAMES];
	struct ibv_sge sges[3 * CHAIN_FRAMES];
	uint32_t wr_count, sge_count;
};

/* Where a frame's payload is read from. */
struct source {
	const uint8_t *data;
	uint32_t lkey;
	bool is_known; /* lkey holds: the device can read it */
	struct mrcd_region *region;
	uint8_t bounce;
};

/* ---- bounce buffers: for payload that the device cannot read ---- */

static uint8_t *bounce_data(const struct mrcd_verbs_device *device, uint8_t bounce)
{
	return device->bounce_memory + (size_t)bounce * MRC_FRAG_BYTES_MAX;
}

static bool bounce_take(struct mrcd_verbs_link *link, struct source *source, uint32_t len)
{
	struct mrcd_verbs_device *device = link->device;
	uint8_t bounce;

	if (!device->bounces_free)
		return false;
	bounce = (uint8_t)__builtin_ctz(device->bounces_free);
	device->bounces_free &= device->bounces_free - 1;
	memcpy(bounce_data(device, bounce), source->data, len);
	link->verbs->counters.bounces++;
	link->verbs->counters.payload_copied += len;
	*source = (struct source){
		.data = bounce_data(device, bounce),
		.lkey = device->bounce_mr->lkey,
		.is_known = true,
		.bounce = bounce,
	};
	return true;
}

/* ---- frames ---- */

static struct source source_of(struct mrcd_verbs_link *link, const struct mrcd_frame *frame,
			       uint32_t len)
{
	struct mrcd_worker *worker = link->verbs->rail->worker;
	struct source source = {.bounce = MRCD_VERBS_BOUNCE_NONE};
	struct mrcd_region *region;
	const struct mrcd_region_rail *at;

	source.data = mrcd_send_memory(worker, frame->channel_cookie, frame->payload_addr, len);
	if (!source.data)
		return source;
	region = mrcd_send_region(worker, frame->channel_cookie);
	at = region ? &region->rails[link->verbs->rail->index] : NULL;
	if (at && at->state == MRCD_REGION_READY) {
		source.region = region;
		source.lkey = at->lkey;
		source.is_known = true;
	}
	return source;
}

static struct ibv_sge *sge_add(struct chain *chain, const void *data, uint32_t len, uint32_t lkey)
{
	struct ibv_sge *sge = &chain->sges[chain->sge_count++];

	*sge = (struct ibv_sge){.addr = (uint64_t)(uintptr_t)data, .length = len, .lkey = lkey};
	return sge;
}

static struct ibv_send_wr *wr_add(struct chain *chain, enum ibv_wr_opcode opcode, uint64_t number,
				  struct ibv_sge *sges, int sge_count)
{
	struct ibv_send_wr *wr = &chain->wrs[chain->wr_count];

	*wr = (struct ibv_send_wr){
		.wr_id = number,
		.sg_list = sges,
		.num_sge = sge_count,
		.opcode = opcode,
	};
	if (chain->wr_count)
		chain->wrs[chain->wr_count - 1].next = wr;
	chain->wr_count++;
	return wr;
}

static uint32_t frame_crc(const struct mrcd_verbs_link *link, const struct mrcd_frame *frame,
			  const struct source *source, uint32_t payload_len)
{
	uint32_t crc;

	if (payload_len)
		return frame->hdr.flags & MRC_WIRE_F_UNCHECKED
			       ? 0
			       : mrcd_crc32c(0, source->data, payload_len);
	crc = mrcd_crc32c(0, frame->body, frame->body_len);
	return mrcd_crc32c(crc, bounce_data(link->device, MRCD_VERBS_BOUNCES), frame->pad_len);
}

/* Add the first frame of the queue to the chain. False: it needs a buffer that is not free now. */
static bool frame_add(struct mrcd_verbs_link *link, struct chain *chain, struct mrcd_frame *frame)
{
	struct mrcd_verbs_counters *counters = &link->verbs->counters;
	uint32_t index = (uint32_t)(link->frames_posted & (MRCD_VERBS_SLOTS - 1));
	uint8_t *memory = link->slot_memory + (size_t)index * MRCD_VERBS_SLOT_BYTES;
	struct mrcd_verbs_slot *slot = &link->slots[index];
	uint32_t len = frame->payload_len + frame->direct_len;
	uint32_t wr_count = chain->wr_count, body_len = 0;
	struct source source = {.bounce = MRCD_VERBS_BOUNCE_NONE};
	struct ibv_send_wr *wr;
	struct ibv_sge *sges;
	bool is_inline;

	if (len) {
		source = source_of(link, frame, len);
		if (!source.data) { /* its client is gone */
			mrcd_frame_strip(frame);
			len = 0;
		}
	}
	is_inline = !frame->direct_len && !frame->pad_len &&
		    MRC_WIRE_HDR_BYTES + len + frame->body_len <= link->inline_bytes;
	if (len && !source.is_known && !is_inline) {
		if (frame->direct_len || len > MRC_WIRE_CTL_BYTES_MAX) {
			if (!bounce_take(link, &source, len))
				return false;
		} else {
			memcpy(memory + MRC_WIRE_HDR_BYTES, source.data, len);
			counters->payload_copied += len;
			source.data = memory + MRC_WIRE_HDR_BYTES;
			body_len = len;
		}
	}
	frame->hdr.body_crc = frame_crc(link, frame, &source, len);
	mrc_wire_encode(&frame->hdr, mrcd_crc32c, memory);
	if (frame->body_len) {
		memcpy(memory + MRC_WIRE_HDR_BYTES, frame->body, frame->body_len);
		body_len = frame->body_len;
	}

	if (frame->direct_len) {
		sges = sge_add(chain, source.data, frame->direct_len, source.lkey);
		wr = wr_add(chain, IBV_WR_RDMA_WRITE, link->frames_posted, sges, 1);
		wr->wr.rdma.remote_addr = frame->remote_addr;
		wr->wr.rdma.rkey = frame->rkey;
		counters->writes++;
		counters->wr_bytes += frame->direct_len;
	}
	sges = sge_add(chain, memory, MRC_WIRE_HDR_BYTES + body_len, link->slot_mr->lkey);
	wr = wr_add(chain, IBV_WR_SEND, link->frames_posted, sges, 1);
	if (frame->payload_len && !body_len) {
		sge_add(chain, source.data, frame->payload_len, source.lkey);
		wr->num_sge = 2;
	} else if (frame->pad_len) {
		sge_add(chain, bounce_data(link->device, MRCD_VERBS_BOUNCES), frame->pad_len,
			link->device->bounce_mr->lkey);
		wr->num_sge = 2;
	}
	if (is_inline) {
		wr->send_flags = IBV_SEND_INLINE;
		counters->inline_sends++;
	}
	counters->sends++;
	counters->wr_bytes += mrcd_frame_len(frame);

	/* Inline payload is the device's as soon as it was posted. */
	if (source.region && !is_inline)
		source.region->rails[link->verbs->rail->index].wr_count++;
	*slot = (struct mrcd_verbs_slot){
		.region = is_inline ? NULL : source.region,
		.payload_len = len,
		.wr_count = (uint8_t)(chain->wr_count - wr_count),
		.bounce = source.bounce,
	};
	link->wrs_out += slot->wr_count;
	link->frames_posted++;
	MRC_ASSERT(link->wrs_out <= MRCD_VERBS_WRS);
	MRC_ASSERT(link->frames_posted - link->frames_done <= MRCD_VERBS_SLOTS);
	return true;
}

static void slot_release(struct mrcd_verbs_link *link)
{
	struct mrcd_verbs_slot *slot = &link->slots[link->frames_done & (MRCD_VERBS_SLOTS - 1)];

	link->wrs_out -= slot->wr_count;
	if (slot->bounce != MRCD_VERBS_BOUNCE_NONE)
		link->device->bounces_free |= 1U << slot->bounce;
	if (slot->region)
		mrcd_verbs_region_put(link->verbs, slot->region);
	slot->region = NULL;
	link->frames_done++;
}

static void chain_post(struct mrcd_verbs_link *link, struct chain *chain)
{
	struct mrcd_verbs_counters *counters = &link->verbs->counters;
	struct ibv_send_wr *bad;
	int r;

	chain->wrs[chain->wr_count - 1].send_flags |= IBV_SEND_SIGNALED;
	r = ibv_post_send(link->qp, chain->wrs, &bad);
	counters->doorbells++;
	counters->work_requests += chain->wr_count;
	if (r) {
		/* The queue pair is in error, or not what we think: what the device has of the
		 * chain is unknown, and the fence makes an end of all of it. */
		snprintf(link->why, sizeof(link->why), "post: %s", strerror(r < 0 ? -r : r));
		link->post_error = r;
		event_active(&link->down_event, EV_TIMEOUT, 0);
		return;
	}
	mrcd_verbs_link_set_busy(link);
}

void mrcd_verbs_send(struct mrcd_verbs_link *link)
{
	struct mrcd_rail *rail = link->verbs->rail;
	uint64_t bytes = 0;
	struct chain chain;

	while (link->outq.count && !link->post_error && bytes < BYTES_PER_TURN) {
		uint32_t frames = 0;

		chain.wr_count = chain.sge_count = 0;
		while (frames < CHAIN_FRAMES && link->outq.count && bytes < BYTES_PER_TURN &&
		       link->frames_posted - link->frames_done < MRCD_VERBS_SLOTS) {
			bytes += mrcd_frame_len(link->outq.first) + link->outq.first->direct_len;
			if (!frame_add(link, &chain, link->outq.first))
				break;
			rail->frames_sent++;
			rail->bytes_sent +=
				link->outq.first->payload_len + link->outq.first->direct_len;
			mrcd_outq_pop(&link->outq);
			frames++;
		}
		if (!frames)
			break; /* completions make room */
		chain_post(link, &chain);
	}
	/* A buffer it waits for may come back with another link's completion. */
	if (link->outq.count && !link->post_error)
		mrcd_verbs_link_set_busy(link);
}

/* ---- the operations ---- */

void mrcd_verbs_post(struct mrcd_link *base, const struct mrc_act_post *post)
{
	struct mrcd_verbs_link *link = mrcd_verbs_link_of(base);

	/* Between its failure and the engine's hearing of it: as if it had been lost on the way. */
	if (link->state == MRCD_VERBS_LINK_UP && !link->post_error)
		mrcd_outq_push(&link->outq, post);
}

void mrcd_verbs_flush(struct mrcd_link *base)
{
	struct mrcd_verbs_link *link = mrcd_verbs_link_of(base);

	if (link->state != MRCD_VERBS_LINK_UP)
		return;
	mrcd_verbs_send(link);
	mrcd_verbs_poll_soon(link->verbs);
}

void mrcd_verbs_strip(struct mrcd_link *base)
{
	/* What the device has, it reads until it completes or is fenced; SENT and FENCED say when. */
	mrcd_outq_strip(&mrcd_verbs_link_of(base)->outq);
}

uint32_t mrcd_verbs_send_complete(struct mrcd_verbs_link *link, uint32_t budget)
{
	struct mrcd_verbs_counters *counters = &link->verbs->counters;
	uint64_t done_before = link->frames_done;
	uint32_t total = 0;

	while (total < budget) {
		struct ibv_wc wc[MRCD_VERBS_BATCH];
		int n = ibv_poll_cq(link->send_cq, MRCD_VERBS_BATCH, wc);

		for (int i = 0; i < n; i++) {
			counters->completions++;
			if (wc[i].status == IBV_WC_SUCCESS) {
				MRC_ASSERT(wc[i].wr_id < link->frames_posted);
				while (link->frames_done <= wc[i].wr_id)
					slot_release(link);
				continue;
			}
			if (wc[i].status == IBV_WC_WR_FLUSH_ERR) {
				counters->flushes++;
				link->flushes++;
			} else {
				counters->errors++;
				link->errors++;
				mrcd_verbs_error(link->verbs, "queue pair %u to %s: %s",
						 link->number, mrcd_peer_name(link->link.peer),
						 ibv_wc_status_str(wc[i].status));
			}
			mrcd_verbs_link_down(link, MRC_REASON_ERROR,
					     ibv_wc_status_str(wc[i].status));
		}
		if (n < 0)
			mrcd_verbs_link_down(link, MRC_REASON_ERROR,
					     "its completion queue does not answer");
		if (n <= 0)
			break;
		total += (uint32_t)n;
	}
	if (link->state != MRCD_VERBS_LINK_UP || link->frames_done == done_before)
		return total;
	mrcd_link_on_sent(&link->link, link->frames_done);
	mrcd_verbs_link_touch(link);
	return total;
}

void mrcd_verbs_send_abandon(struct mrcd_verbs_link *link)
{
	while (link->frames_done < link->frames_posted)
		slot_release(link);
	/* No completion tells those who wait for a buffer. */
	mrcd_verbs_poll_soon(link->verbs);
}
