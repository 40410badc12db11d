/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_verbs.h"

#include <errno.h>
#include <string.h>

#include "mrcd_crc.h"

/* Of payload looked at in one turn; a batch goes on to its end. */
#define BYTES_PER_TURN (1024U * 1024U)

/* A hold is the rail (8 bits), the entry, and the opening of the device. */
#define HOLD_INDEX_BITS 24
#define HOLD_INDEX_MASK ((1U << HOLD_INDEX_BITS) - 1)

/* A frame that is being handed up. */
struct received {
	struct mrcd_verbs_link *link;
	uint32_t index; /* of its receive entry */
	const struct mrc_wire_hdr *hdr;
	const uint8_t *body; /* in the entry */
	bool is_body_good;
	bool is_placed;
	uint64_t hold;
};

/* ---- fragments ---- */

/* It was written before its header was sent, so it has landed: look at it there. */
static void direct_judge(struct received *in)
{
	const struct mrc_wire_hdr *hdr = in->hdr;
	struct mrcd_verbs *verbs = in->link->verbs;
	uint8_t *memory = NULL;
	struct mrc_place place;

	if (mrc_conn_place_whole(mrcd_peer_conn(in->link->link.peer), hdr, &place) &&
	    !place.is_scratch)
		memory = mrcd_landing_memory(verbs->rail->worker, &place, hdr->body_len);
	in->is_placed = memory != NULL;
	if (memory && verbs->damage == MRCD_VERBS_DAMAGE_PAYLOAD &&
	    !(hdr->flags & MRC_WIRE_F_UNCHECKED))
		mrcd_verbs_fault_flip(verbs, memory, hdr->body_len);
	if (memory && !(hdr->flags & MRC_WIRE_F_UNCHECKED))
		in->is_body_good = mrcd_crc32c(0, memory, hdr->body_len) == hdr->body_crc;
}

/*
 * A copy whose writer is not fenced yet: the entry itself is the hold, as long
 * as the rail can spare entries. Otherwise it counts as thrown away, and the
 * engine asks for it again.
 */
static void hold_keep(struct received *in)
{
	struct mrcd_verbs_device *device = in->link->device;

	if (device->held_count >= MRCD_VERBS_HOLDS_MAX)
		return;
	device->held_count++;
	device->use_count++;
	device->entries[in->index].state = MRCD_VERBS_ENTRY_HELD;
	in->hold = (uint64_t)device->serial << (8 + HOLD_INDEX_BITS) | (uint64_t)in->index << 8 |
		   in->link->verbs->rail->index;
}

/* Payload that came in the frame: to where the engine wants it. */
static void payload_place(struct received *in)
{
	struct mrc_conn *conn = mrcd_peer_conn(in->link->link.peer);
	struct mrcd_worker *worker = in->link->verbs->rail->worker;
	const struct mrc_wire_hdr *hdr = in->hdr;
	bool is_all_placed = true;

	if (!(hdr->flags & MRC_WIRE_F_UNCHECKED))
		in->is_body_good = mrcd_crc32c(0, in->body, hdr->body_len) == hdr->body_crc;
	if (!in->is_body_good)
		return;
	for (uint32_t done = 0; done < hdr->body_len;) {
		struct mrc_place place;
		uint32_t len = mrc_conn_place(conn, hdr, done, &place);
		uint8_t *memory =
			place.is_scratch ? NULL : mrcd_landing_memory(worker, &place, len);

		if (memory) {
			memcpy(memory, in->body + done, len);
			in->link->verbs->counters.payload_copied += len;
		} else {
			is_all_placed = false;
		}
		done += len;
	}
	in->is_placed = is_all_placed;
	if (!is_all_placed && hdr->flags & MRC_WIRE_F_COPY)
		hold_keep(in);
}

/* ---- frames ---- */

/*
 * Positions are implied by their count (DESIGN 7.1): behind a frame that is not
 * taken in, no other may be.
 */
static bool frame_refuse(struct mrcd_verbs_link *link, enum mrc_path_reason reason, const char *why)
{
	link->is_deaf = true;
	mrcd_verbs_link_down(link, reason, why);
	return false;
}

static bool header_take(struct mrcd_verbs_link *link, const uint8_t *data, uint32_t len_bytes,
			struct mrc_wire_hdr *hdr)
{
	uint32_t body_len;
	int r;

	if (len_bytes < MRC_WIRE_HDR_BYTES)
		return frame_refuse(link, MRC_REASON_PROTOCOL, "a frame without a header");
	r = mrc_wire_decode(data, mrcd_crc32c, hdr);
	if (r == -EPROTO)
		return frame_refuse(link, MRC_REASON_PROTOCOL, "header field out of range");
	if (r < 0)
		return frame_refuse(link, MRC_REASON_CORRUPT, "header damaged");
	if (hdr->conn_epoch != link->link.conn_epoch || hdr->path_epoch != link->link.path_epoch)
		return frame_refuse(link, MRC_REASON_PROTOCOL, "frame of another epoch");
	if (hdr->type == MRC_WIRE_HELLO || hdr->type == MRC_WIRE_AUTH ||
	    hdr->type == MRC_WIRE_READY)
		return frame_refuse(link, MRC_REASON_PROTOCOL,
				    "handshake frame after the handshake");
	body_len = mrc_wire_has_body(hdr) ? hdr->body_len : 0;
	if (len_bytes != MRC_WIRE_HDR_BYTES + body_len)
		return frame_refuse(link, MRC_REASON_PROTOCOL, "frame longer or shorter than said");
	return true;
}

/* Hand a frame up. Afterwards the entry is ours again, or HELD. */
static void entry_take(struct mrcd_verbs_link *link, uint32_t index)
{
	struct mrcd_rail *rail = link->verbs->rail;
	uint8_t *data = mrcd_verbs_entry_data(link->device, index);
	struct mrcd_verbs *verbs = link->verbs;
	struct mrc_wire_hdr hdr;
	struct received in = {
		.link = link,
		.index = index,
		.hdr = &hdr,
		.body = data + MRC_WIRE_HDR_BYTES,
		.is_body_good = true,
	};

	/* Failed, but not yet told: what had arrived before counts. Once the engine has asked
	 * for the fence, it does not (DESIGN 7.3). */
	if (link->is_fence_asked || link->is_cancelled || link->is_deaf ||
	    (link->state != MRCD_VERBS_LINK_UP && link->state != MRCD_VERBS_LINK_STOPPING &&
	     link->state != MRCD_VERBS_LINK_LAST))
		return;
	if (verbs->damage == MRCD_VERBS_DAMAGE_HEADERS)
		mrcd_verbs_fault_flip(verbs, data, MRC_WIRE_HDR_BYTES);
	if (!header_take(link, data, link->device->entries[index].len_bytes, &hdr))
		return;
	rail->frames_received++;
	if (verbs->damage == MRCD_VERBS_DAMAGE_PAYLOAD && hdr.type == MRC_WIRE_FRAG &&
	    !(hdr.flags & (MRC_WIRE_F_DIRECT | MRC_WIRE_F_UNCHECKED)))
		mrcd_verbs_fault_flip(verbs, data + MRC_WIRE_HDR_BYTES, hdr.body_len);
	if (hdr.type == MRC_WIRE_FRAG) {
		rail->bytes_received += hdr.body_len;
		link->verbs->turn_bytes += hdr.body_len;
		if (hdr.body_len == 0)
			in.is_placed = true;
		else if (hdr.flags & MRC_WIRE_F_DIRECT)
			direct_judge(&in);
		else
			payload_place(&in);
	} else if (mrcd_crc32c(0, in.body, hdr.body_len) != hdr.body_crc) {
		/* No client's memory is in it: who damaged it is the path. */
		frame_refuse(link, MRC_REASON_CORRUPT, "checksum of a control frame wrong");
		return;
	}
	mrcd_verbs_link_touch(link);
	if (mrcd_link_on_frame(&link->link, &hdr, in.body, in.is_body_good, in.is_placed,
			       in.hold) == -EPROTO)
		frame_refuse(link, MRC_REASON_PROTOCOL, "broke the protocol");
}

/* ---- before a link is up ---- */

static void early_keep(struct mrcd_verbs_link *link, uint32_t index)
{
	struct mrcd_verbs_entry *entries = link->device->entries;

	entries[index].next = MRCD_VERBS_ENTRY_NONE;
	if (link->early_first == MRCD_VERBS_ENTRY_NONE)
		link->early_first = index;
	else
		entries[link->early_last].next = index;
	link->early_last = index;
	link->early_count++;
}

static void entry_back(struct mrcd_verbs_device *device, uint32_t index)
{
	if (device->entries[index].state == MRCD_VERBS_ENTRY_OURS && !device->is_lost)
		mrcd_verbs_entries_post(device, &index, 1);
}

void mrcd_verbs_recv_early(struct mrcd_verbs_link *link)
{
	while (link->early_first != MRCD_VERBS_ENTRY_NONE) {
		uint32_t index = link->early_first;

		link->early_first = link->device->entries[index].next;
		entry_take(link, index);
		entry_back(link->device, index);
	}
}

void mrcd_verbs_early_drop(struct mrcd_verbs_link *link)
{
	while (link->early_first != MRCD_VERBS_ENTRY_NONE) {
		uint32_t index = link->early_first;

		link->early_first = link->device->entries[index].next;
		entry_back(link->device, index);
	}
}

/* ---- completions ---- */

/* Answers whether the entry can go back to the device. */
static bool completion_take(struct mrcd_verbs *verbs, const struct ibv_wc *wc)
{
	struct mrcd_verbs_device *device = verbs->device;
	uint32_t index = (uint32_t)wc->wr_id;
	struct mrcd_verbs_link *link;

	MRC_ASSERT(index < device->entry_count);
	MRC_ASSERT(device->entries[index].state == MRCD_VERBS_ENTRY_POSTED);
	device->entries[index].state = MRCD_VERBS_ENTRY_OURS;
	device->entries[index].len_bytes = wc->byte_len;
	device->posted_count--;
	verbs->counters.receives++;
	/* Of a queue pair that was put away meanwhile: nobody. */
	link = mrcd_verbs_link_by_number(verbs, wc->qp_num);
	if (wc->status != IBV_WC_SUCCESS) {
		verbs->counters.flushes += wc->status == IBV_WC_WR_FLUSH_ERR;
		if (wc->status != IBV_WC_WR_FLUSH_ERR) {
			verbs->counters.errors++;
			mrcd_verbs_error(verbs, "a receive ended with: %s",
					 ibv_wc_status_str(wc->status));
		}
		if (link && link->device == device)
			frame_refuse(link, MRC_REASON_ERROR, ibv_wc_status_str(wc->status));
		return true;
	}
	if (!link || link->device != device)
		return true;
	if (link->state < MRCD_VERBS_LINK_UP) {
		/* Before our PATH_OPEN it has the least share and no more. */
		if (link->early_count >= MRCD_VERBS_SHARE_MIN) {
			frame_refuse(link, MRC_REASON_PROTOCOL, "sends more than its share");
			return true;
		}
		early_keep(link, index);
		return false;
	}
	entry_take(link, index);
	return device->entries[index].state == MRCD_VERBS_ENTRY_OURS;
}

uint32_t mrcd_verbs_recv(struct mrcd_verbs *verbs, uint32_t budget)
{
	struct mrcd_verbs_device *device = verbs->device;
	uint32_t total = 0;

	while (total < budget && !device->is_lost && verbs->turn_bytes < BYTES_PER_TURN) {
		uint32_t back[MRCD_VERBS_BATCH], back_count = 0;
		struct ibv_wc wc[MRCD_VERBS_BATCH];
		int n = ibv_poll_cq(device->recv_cq, MRCD_VERBS_BATCH, wc);

		if (n < 0)
			mrcd_verbs_device_broken(device);
		for (int i = 0; i < n; i++)
			if (completion_take(verbs, &wc[i]))
				back[back_count++] = (uint32_t)wc[i].wr_id;
		mrcd_verbs_entries_post(device, back, back_count);
		if (n <= 0)
			break;
		total += (uint32_t)n;
	}
	return total;
}

/* ---- holds ---- */

static struct mrcd_verbs_device *hold_device(struct mrcd_rail *rail, uint64_t hold,
					     uint32_t *index_out)
{
	struct mrcd_verbs *verbs = rail->kind_data;
	struct mrcd_verbs_device *device;

	*index_out = (uint32_t)(hold >> 8 & HOLD_INDEX_MASK);
	/* The device it was received by may have been lost since; its memory waits for us. */
	LIST_FOREACH(device, &verbs->devices, rail_entry)
	{
		if (device->serial == hold >> (8 + HOLD_INDEX_BITS))
			break;
	}
	MRC_ASSERT(device);
	MRC_ASSERT(*index_out < device->entry_count);
	MRC_ASSERT(device->entries[*index_out].state == MRCD_VERBS_ENTRY_HELD);
	return device;
}

const uint8_t *mrcd_verbs_hold_data(struct mrcd_rail *rail, uint64_t hold, uint32_t *len_out)
{
	uint32_t index;
	struct mrcd_verbs_device *device = hold_device(rail, hold, &index);

	*len_out = device->entries[index].len_bytes - MRC_WIRE_HDR_BYTES;
	return mrcd_verbs_entry_data(device, index) + MRC_WIRE_HDR_BYTES;
}

void mrcd_verbs_hold_free(struct mrcd_rail *rail, uint64_t hold)
{
	uint32_t index;
	struct mrcd_verbs_device *device = hold_device(rail, hold, &index);

	device->held_count--;
	device->entries[index].state = MRCD_VERBS_ENTRY_OURS;
	entry_back(device, index);
	mrcd_verbs_device_put(device);
}
