/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_tcp_seal - links whose stream is made of records (mrcd_seal.h)
 *
 * Frames are sealed from where they lie, a client's memory included, into a
 * buffer of a few records, and count as sent then: nothing reads that memory
 * any more. Records are opened from a buffer that all links of the rail share
 * into the staging buffer, where frames are parsed as those of any other link:
 * nothing of a record is looked at before its tag was right, and no client can
 * write there.
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "mrcd_tcp.h"

#define RECORDS_AT_ONCE 8U
#define OUT_BYTES       (RECORDS_AT_ONCE * MRCD_SEAL_RECORD_MAX)
#define PARTS_MAX       128

struct mrcd_tcp_seal {
	struct mrcd_seal out, in;
	uint8_t *
		out_records; /* OUT_BYTES; sealed and not yet taken by the socket: from done to len */
	uint32_t out_len, out_done;
	uint32_t carry_len; /* of a record that was cut off by the end of a read */
	uint8_t carry[MRCD_SEAL_RECORD_MAX];
};

int mrcd_tcp_seal_new(struct mrcd_tcp_link *link, const uint8_t secret_out[MRCD_SEAL_SECRET_BYTES],
		      const uint8_t secret_in[MRCD_SEAL_SECRET_BYTES])
{
	struct mrcd_tcp *tcp = link->tcp;
	struct mrcd_tcp_seal *seal = calloc(1, sizeof(*seal));

	if (!seal)
		return -ENOMEM;
	link->seal = seal; /* freed with the link */
	seal->out_records = malloc(OUT_BYTES);
	if (!tcp->records)
		tcp->records = malloc(MRCD_TCP_RECORDS_BYTES);
	if (!seal->out_records || !tcp->records ||
	    mrcd_seal_init(&seal->out, secret_out, true) < 0 ||
	    mrcd_seal_init(&seal->in, secret_in, false) < 0)
		return -ENOMEM;
	link->link.is_sealed = true;
	return 0;
}

void mrcd_tcp_seal_free(struct mrcd_tcp_seal *seal)
{
	if (!seal)
		return;
	mrcd_seal_fini(&seal->out);
	mrcd_seal_fini(&seal->in);
	free(seal->out_records);
	free(seal);
}

/* ---- sending ---- */

/* The next record, of what waits in the queue. */
static int record_seal(struct mrcd_tcp_link *link)
{
	struct mrcd_tcp_seal *seal = link->seal;
	uint8_t *record = seal->out_records + seal->out_len;
	struct iovec parts[PARTS_MAX];
	uint32_t len = 0, taken = 0;
	int count = 0, summed = 0, r;

	/* Made ready first: a frame whose client is gone is shorter afterwards. */
	for (struct mrcd_frame *frame = link->outq.first;
	     frame && len < MRCD_SEAL_PLAIN_MAX && count + MRCD_TCP_PARTS <= PARTS_MAX;
	     frame = frame->next) {
		count += mrcd_tcp_frame_parts(link, frame, parts + count);
		for (; summed < count; summed++)
			len += (uint32_t)parts[summed].iov_len;
	}
	len = MRC_MIN(len, MRCD_SEAL_PLAIN_MAX);
	r = mrcd_seal_begin(&seal->out, record, len);
	for (int i = 0; r == 0 && taken < len; i++) {
		uint32_t part = MRC_MIN((uint32_t)parts[i].iov_len, len - taken);

		r = mrcd_seal_add(&seal->out, parts[i].iov_base, part);
		taken += part;
	}
	if (r == 0)
		r = mrcd_seal_end(&seal->out, record);
	if (r < 0)
		return r;
	seal->out_len += (uint32_t)r;
	mrcd_tcp_taken(link, len);
	return 0;
}

bool mrcd_tcp_seal_is_drained(const struct mrcd_tcp_seal *seal)
{
	return seal->out_done == seal->out_len;
}

ssize_t mrcd_tcp_seal_send(struct mrcd_tcp_link *link, size_t len_max, bool *is_full_out)
{
	struct mrcd_tcp_seal *seal = link->seal;
	ssize_t n;

	*is_full_out = false;
	if (seal->out_done == seal->out_len) {
		seal->out_done = seal->out_len = 0;
		while (link->outq.count && seal->out_len + MRCD_SEAL_RECORD_MAX <= OUT_BYTES) {
			int r = record_seal(link);

			if (r < 0)
				return r;
		}
	}
	n = send(link->fd, seal->out_records + seal->out_done,
		 MRC_MIN((size_t)(seal->out_len - seal->out_done), len_max),
		 MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	if (n > 0)
		seal->out_done += (uint32_t)n;
	*is_full_out = seal->out_done < seal->out_len;
	return MRC_MAX(n, 0);
}

/* ---- receiving ---- */

static bool fail(struct mrcd_tcp_failure *failure, enum mrc_path_reason reason, const char *why)
{
	failure->reason = reason;
	failure->why = why;
	return false;
}

bool mrcd_tcp_seal_read(struct mrcd_tcp_link *link, uint32_t *bytes_out, bool *is_more_out,
			struct mrcd_tcp_failure *failure)
{
	struct mrcd_tcp_seal *seal = link->seal;
	struct mrcd_tcp *tcp = link->tcp;
	uint8_t *records = tcp->records;
	uint32_t len, at = 0, room = MRCD_TCP_RECORDS_BYTES - seal->carry_len;
	ssize_t n;

	memcpy(records, seal->carry, seal->carry_len);
	n = recv(link->fd, records + seal->carry_len, room, 0);
	*bytes_out = 0;
	*is_more_out = false;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n < 0)
		return fail(failure, MRC_REASON_ERROR, strerror(errno));
	if (n == 0)
		return fail(failure, MRC_REASON_CLOSED, "the peer closed the connection");
	*bytes_out = (uint32_t)n;
	*is_more_out = (uint32_t)n == room;
	len = seal->carry_len + (uint32_t)n;

	while (len - at >= MRCD_SEAL_HDR_BYTES) {
		uint8_t *plain = tcp->staging + link->carry_len;
		int record_len = mrcd_seal_record_len(records + at);
		int plain_len;

		/* No client's memory is in it: who changed it is the path, or somebody on it. */
		if (record_len < 0)
			return fail(failure, MRC_REASON_CORRUPT, "length of a record out of range");
		if (len - at < (uint32_t)record_len)
			break;
		plain_len = mrcd_seal_open(&seal->in, records + at, (uint32_t)record_len, plain);
		if (plain_len < 0)
			return fail(failure, MRC_REASON_CORRUPT,
				    "a record is not as the peer sealed it");
		memcpy(tcp->staging, link->carry, link->carry_len);
		if (!mrcd_tcp_staged_take(link, link->carry_len + (uint32_t)plain_len, failure))
			return false;
		at += (uint32_t)record_len;
	}
	seal->carry_len = len - at;
	MRC_ASSERT(seal->carry_len < sizeof(seal->carry));
	memcpy(seal->carry, records + at, seal->carry_len);
	return true;
}
