/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One read fills the rest of the current payload where it belongs and, behind
 * it, the staging buffer with what follows. All that was staged is parsed at
 * once, so that between two reads a link carries less than a header and a
 * control body.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "mrcd_crc.h"
#include "mrcd_sigbus.h"
#include "mrcd_tcp.h"

/* Of one callback, so that no link starves the others. */
#define READ_BYTES_MAX (1024U * 1024U)
/* Behind a large payload mostly comes the next one, of which staging takes no more than this: the
 * rest of it can then be read to its place. */
#define STAGE_BEHIND_BYTES 4096U
#define LARGE_BYTES        (16U * 1024U)

static bool fail(struct mrcd_tcp_failure *failure, enum mrc_path_reason reason, const char *why)
{
	failure->reason = reason;
	failure->why = why;
	return false;
}

static bool frame_up(struct mrcd_tcp_link *link, const struct mrc_wire_hdr *hdr,
		     const uint8_t *body, bool is_body_good, bool is_placed,
		     struct mrcd_tcp_failure *failure)
{
	struct mrcd_rail *rail = link->tcp->rail;

	rail->frames_received++;
	if (hdr->type == MRC_WIRE_FRAG)
		rail->bytes_received += hdr->body_len;
	if (mrcd_link_on_frame(&link->link, hdr, body, is_body_good, is_placed, 0) == -EPROTO)
		return fail(failure, MRC_REASON_PROTOCOL, "the peer broke the protocol");
	return true;
}

/* ---- bodies ---- */

/* Another link brings the same bytes, and no checksum would tell whose lie there: the one that began last writes. */
static bool is_overtaken(const struct mrcd_tcp_link *link)
{
	return link->is_contested && link->hdr.flags & MRC_WIRE_F_UNCHECKED;
}

/* Where the next bytes of the payload go; NULL: nobody wants them. *len_out: how many of them. */
static uint8_t *payload_place(struct mrcd_tcp_link *link, uint32_t *len_out)
{
	uint32_t left = link->hdr.body_len - link->body_done;
	struct mrc_place place;
	uint8_t *memory = NULL;
	uint32_t len;

	len = mrc_conn_place(mrcd_peer_conn(link->link.peer), &link->hdr, link->body_done, &place);
	MRC_ASSERT(len > 0);
	*len_out = MRC_MIN(len, left);
	if (!place.is_scratch && !is_overtaken(link))
		memory = mrcd_landing_memory(link->tcp->rail->worker, &place, *len_out);
	return memory;
}

/* A copy that overtakes the first one: what lies in memory may be of either, byte by byte. */
static void contest(struct mrcd_tcp_link *link)
{
	const struct mrc_wire_hdr *hdr = &link->hdr;
	uint8_t path_count = mrcd_peer_path_count(link->link.peer);

	link->is_contested = false;
	for (uint8_t i = 0; i < path_count; i++) {
		struct mrcd_link *other = mrcd_peer_path_link(link->link.peer, i);
		struct mrcd_tcp_link *rival;

		if (!other || other == &link->link || other->ops->post != link->link.ops->post)
			continue;
		rival = mrcd_tcp_link_of(other);
		if (!rival->is_in_body || rival->hdr.type != MRC_WIRE_FRAG ||
		    rival->hdr.channel != hdr->channel || rival->hdr.msg != hdr->msg ||
		    rival->hdr.offset >= hdr->offset + hdr->body_len ||
		    hdr->offset >= rival->hdr.offset + rival->hdr.body_len)
			continue;
		rival->is_contested = true;
		link->is_contested = !(hdr->flags & MRC_WIRE_F_UNCHECKED);
	}
}

/*
 * All of a fragment has come. The path answers for what it brought, and not for
 * what a rival wrote over it: those bytes are asked for again, and nobody is blamed.
 */
static bool payload_finish(struct mrcd_tcp_link *link, struct mrcd_tcp_failure *failure)
{
	const struct mrc_wire_hdr *hdr = &link->hdr;
	bool is_checked = !(hdr->flags & MRC_WIRE_F_UNCHECKED);
	bool is_placed = link->is_all_placed, is_good = true;
	struct mrc_place place;

	link->is_in_body = false;
	if (is_placed && hdr->body_len) {
		const uint8_t *memory = link->whole;

		if (!memory && mrc_conn_place_whole(mrcd_peer_conn(link->link.peer), hdr, &place) &&
		    !place.is_scratch)
			memory =
				mrcd_landing_memory(link->tcp->rail->worker, &place, hdr->body_len);
		/* DESIGN 7.12: the checksum of a copy no longer needed is not looked at. */
		if (!memory)
			is_placed = false;
		else if (is_checked)
			is_good = link->body_crc == hdr->body_crc;
		if (is_placed && is_good && link->is_contested)
			is_placed = is_checked &&
				    mrcd_crc32c(0, memory, hdr->body_len) == hdr->body_crc;
	}
	link->whole = NULL;
	return frame_up(link, hdr, NULL, is_good, is_placed, failure);
}

static bool probe_finish(struct mrcd_tcp_link *link, struct mrcd_tcp_failure *failure)
{
	link->is_in_body = false;
	/* No client's memory is in it: who damaged it is the path. */
	if (link->body_crc != link->hdr.body_crc)
		return fail(failure, MRC_REASON_CORRUPT, "checksum of a probe wrong");
	return frame_up(link, &link->hdr, NULL, true, false, failure);
}

/* `len` bytes of the body are where they should be. False as mrcd_tcp_recv(). */
static bool body_advance(struct mrcd_tcp_link *link, uint32_t len, struct mrcd_tcp_failure *failure)
{
	link->body_done += len;
	MRC_ASSERT(link->body_done <= link->hdr.body_len);
	if (link->body_done < link->hdr.body_len || mrcd_tcp_has_tail(&link->hdr))
		return true;
	return link->hdr.type == MRC_WIRE_FRAG ? payload_finish(link, failure)
					       : probe_finish(link, failure);
}

/* All of a fragment without a checksum has come; its last byte tells whether it was cut. */
static bool tail_take(struct mrcd_tcp_link *link, uint8_t tail, struct mrcd_tcp_failure *failure)
{
	/* No client's memory is in it: who damaged it is the path. */
	if (tail != MRCD_TCP_TAIL_WHOLE && tail != MRCD_TCP_TAIL_CUT)
		return fail(failure, MRC_REASON_CORRUPT, "tail of a fragment damaged");
	if (tail == MRCD_TCP_TAIL_CUT)
		link->is_all_placed = false;
	return payload_finish(link, failure);
}

/* As they come, so that the path is judged by what it brought, while they are in the cache. */
static void body_sum(struct mrcd_tcp_link *link, const uint8_t *data, uint32_t len)
{
	if (!(link->hdr.flags & MRC_WIRE_F_UNCHECKED))
		link->body_crc = mrcd_crc32c(link->body_crc, data, len);
}

/* The body's bytes among those staged. */
static bool body_take(struct mrcd_tcp_link *link, const uint8_t *data, uint32_t len,
		      struct mrcd_tcp_failure *failure)
{
	body_sum(link, data, len);
	if (link->hdr.type != MRC_WIRE_FRAG)
		return body_advance(link, len, failure);
	while (len > 0) {
		uint32_t part;
		uint8_t *memory = payload_place(link, &part);

		part = MRC_MIN(part, len);
		if (memory)
			memcpy(memory, data, part);
		else
			link->is_all_placed = false;
		/* Nothing comes between this and the end, so the answer holds for all of it. */
		if (part == link->hdr.body_len && !mrcd_tcp_has_tail(&link->hdr))
			link->whole = memory;
		data += part;
		len -= part;
		if (!body_advance(link, part, failure))
			return false;
	}
	return true;
}

/* ---- headers ---- */

static bool header_take(struct mrcd_tcp_link *link, const uint8_t *at, struct mrc_wire_hdr *hdr,
			struct mrcd_tcp_failure *failure)
{
	int r = mrc_wire_decode(at, mrcd_crc32c, hdr);

	/* Where the next header is was told by this one: a damaged one ends the stream. */
	if (r == -EPROTO)
		return fail(failure, MRC_REASON_PROTOCOL, "header field out of range");
	if (r < 0)
		return fail(failure, MRC_REASON_CORRUPT, "header damaged");
	if (hdr->conn_epoch != link->link.conn_epoch || hdr->path_epoch != link->link.path_epoch)
		return fail(failure, MRC_REASON_PROTOCOL, "frame of another epoch");
	if (hdr->type == MRC_WIRE_HELLO || hdr->type == MRC_WIRE_AUTH ||
	    hdr->type == MRC_WIRE_READY)
		return fail(failure, MRC_REASON_PROTOCOL, "handshake frame after the handshake");
	if (hdr->flags & MRC_WIRE_F_DIRECT)
		return fail(failure, MRC_REASON_PROTOCOL, "direct placement on a stream");
	MRC_ASSERT(hdr->body_len <= MRC_FRAG_BYTES_MAX);
	return true;
}

/* Parse what is staged; *used_out: how much of it is done with. False as mrcd_tcp_recv(). */
static bool staged_parse(struct mrcd_tcp_link *link, const uint8_t *data, uint32_t len,
			 uint32_t *used_out, struct mrcd_tcp_failure *failure)
{
	uint32_t at = 0;

	*used_out = 0;
	while (at < len) {
		struct mrc_wire_hdr hdr;

		if (link->is_in_body) {
			uint32_t part = MRC_MIN(link->hdr.body_len - link->body_done, len - at);

			if (part == 0) {
				if (!tail_take(link, data[at], failure))
					return false;
				at++;
				continue;
			}
			if (!body_take(link, data + at, part, failure))
				return false;
			at += part;
			continue;
		}
		if (len - at < MRC_WIRE_HDR_BYTES)
			break;
		if (!header_take(link, data + at, &hdr, failure))
			return false;

		if (hdr.type == MRC_WIRE_FRAG || hdr.body_len > MRC_WIRE_CTL_BYTES_MAX) {
			link->hdr = hdr;
			link->is_in_body = true;
			link->is_all_placed = true;
			link->body_done = 0;
			link->body_crc = 0;
			if (hdr.type == MRC_WIRE_FRAG)
				contest(link);
			at += MRC_WIRE_HDR_BYTES;
			if (!hdr.body_len && !payload_finish(link, failure))
				return false;
			continue;
		}
		if (len - at < MRC_WIRE_HDR_BYTES + hdr.body_len)
			break;
		at += MRC_WIRE_HDR_BYTES;
		if (mrcd_crc32c(0, data + at, hdr.body_len) != hdr.body_crc)
			return fail(failure, MRC_REASON_CORRUPT,
				    "checksum of a control frame wrong");
		if (!frame_up(link, &hdr, data + at, true, false, failure))
			return false;
		at += hdr.body_len;
	}
	*used_out = at;
	return true;
}

bool mrcd_tcp_staged_take(struct mrcd_tcp_link *link, uint32_t staged,
			  struct mrcd_tcp_failure *failure)
{
	struct mrcd_tcp *tcp = link->tcp;
	uint32_t used;

	if (!staged_parse(link, tcp->staging, staged, &used, failure))
		return false;
	link->carry_len = staged - used;
	MRC_ASSERT(link->carry_len <= sizeof(link->carry));
	memcpy(link->carry, tcp->staging + used, link->carry_len);
	return true;
}

/* ---- reading ---- */

/* One read. *is_more_out: there may be more at once. */
static bool read_once(struct mrcd_tcp_link *link, uint32_t *bytes_out, bool *is_more_out,
		      struct mrcd_tcp_failure *failure)
{
	struct mrcd_tcp *tcp = link->tcp;
	uint8_t *stage = tcp->staging + link->carry_len;
	uint32_t stage_len = MRCD_TCP_STAGING_BYTES;
	uint32_t direct_len = 0;
	bool is_scratch = false;
	struct iovec iov[2];
	int iov_count = 0;
	ssize_t n;

	/* What is carried is the beginning of a frame, so there is none in a payload. */
	if (link->is_in_body && link->hdr.type == MRC_WIRE_FRAG &&
	    link->body_done < link->hdr.body_len) {
		uint32_t left = link->hdr.body_len - link->body_done;
		uint8_t *memory = payload_place(link, &direct_len);

		is_scratch = !memory;
		if (is_scratch)
			direct_len = MRC_MIN(direct_len, MRCD_TCP_STAGING_BYTES);
		iov[0] = (struct iovec){is_scratch ? tcp->scratch : memory, direct_len};
		iov_count = 1;
		if (direct_len < left)
			stage_len = 0; /* the rest of the payload comes first */
		else if (left >= LARGE_BYTES)
			stage_len = STAGE_BEHIND_BYTES;
	}
	memcpy(tcp->staging, link->carry, link->carry_len);
	if (stage_len)
		iov[iov_count++] = (struct iovec){stage, stage_len};

	n = readv(link->fd, iov, iov_count);
	*bytes_out = 0;
	*is_more_out = false;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n < 0 && errno == EFAULT && direct_len && !is_scratch &&
	    mrcd_sigbus_report(iov[0].iov_base)) {
		/* That client's loss; the link is everybody's. What it brings now shall not count. */
		link->is_all_placed = false;
		*is_more_out = true;
		return true;
	}
	if (n < 0)
		return fail(failure, MRC_REASON_ERROR, strerror(errno));
	if (n == 0)
		return fail(failure, MRC_REASON_CLOSED, "the peer closed the connection");
	*bytes_out = (uint32_t)n;
	*is_more_out = (size_t)n == (size_t)direct_len + stage_len;

	if (direct_len) {
		uint32_t part = MRC_MIN((uint32_t)n, direct_len);

		if (is_scratch)
			link->is_all_placed = false;
		else
			body_sum(link, iov[0].iov_base, part);
		if (!body_advance(link, part, failure))
			return false;
		n -= part;
	}
	return mrcd_tcp_staged_take(link, link->carry_len + (uint32_t)n, failure);
}

bool mrcd_tcp_recv(struct mrcd_tcp_link *link, struct mrcd_tcp_failure *failure_out)
{
	uint32_t total = 0, bytes;
	bool is_more = true;

	/* Nothing pumps while frames are handed up, so nobody closes the link under our feet. */
	while (is_more && total < READ_BYTES_MAX) {
		bool is_good = link->seal ? mrcd_tcp_seal_read(link, &bytes, &is_more, failure_out)
					  : read_once(link, &bytes, &is_more, failure_out);

		if (!is_good)
			return false;
		total += bytes;
	}
	return true;
}
