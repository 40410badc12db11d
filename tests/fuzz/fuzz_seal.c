/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of records, and somebody on the line who has it: he passes records on, or parts of
 * them, changes bits, repeats, leaves out and exchanges them, and says things of his own.
 *
 * The first bytes are what the peer says: so many frames, each a kind and a length. Then come the
 * lengths of the records that its stream is cut into, and then what he does, an operation each.
 *
 * What he can have done is known to the byte: of what he passed, so much is what the peer said.
 * Frames that are whole in records that are whole in there have come, each once and intact, and so
 * has the payload of a frame of which a part is in there. Nothing else has come, in no byte of
 * memory; and the link has ended as soon as there was a record that is not the next one.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit/rail_fake.h"
#include "fuzz.h"
#include "mrcd_log.h"
#include "mrcd_tcp.h"

#define FRAMES_MAX  12U
#define RECORDS_MAX 64U
#define FRAME_BYTES (MRC_WIRE_HDR_BYTES + 16384U + 1U)
#define PLAIN_MAX   (FRAMES_MAX * FRAME_BYTES)
#define WIRE_MAX    (PLAIN_MAX + RECORDS_MAX * (MRCD_SEAL_HDR_BYTES + MRCD_SEAL_TAG_BYTES))
#define SLOT_BYTES  16384U /* of landing memory: where the payload of a frame goes */
#define SAID_MAX    (1U << 18)

struct said_frame {
	struct mrc_wire_hdr hdr;
	uint32_t begin, end; /* in the plain stream, the tail included */
	const uint8_t *body;
};

/* What the peer said. */
struct stream {
	struct said_frame frames[FRAMES_MAX];
	uint32_t frame_count;
	uint8_t plain[PLAIN_MAX];
	uint32_t plain_len;
	uint8_t wire[WIRE_MAX];
	uint32_t wire_len;
	/* Where records end, on the wire and in the plain stream. */
	uint32_t wire_ends[RECORDS_MAX], plain_ends[RECORDS_MAX];
	uint32_t record_count;
};

/* He who has both sockets. */
struct tap {
	int fd;
	uint8_t said[SAID_MAX];
	uint32_t said_len;
	uint32_t read_len; /* and of that, written to the link's socket */
	uint32_t true_len; /* as long as this it is what the peer said */
	uint32_t next;     /* the record that the peer would say next */
};

static struct stream stream;
static struct tap tap;
static uint8_t pattern[FRAMES_MAX + SLOT_BYTES]; /* no byte of it is 0 */

static void stage_end(void)
{
	mrcd_rail_tcp_ops.close(fake->b->rail);
	fake_free(fake);
}

/* One rail for all inputs; a link for each. */
static struct mrcd_tcp *stage_tcp(void)
{
	if (!fake) {
		fake_new(&mrcd_rail_tcp_ops, "127.0.0.1", "127.0.0.1");
		FUZZ_CHECK(mrcd_rail_tcp_ops.open(fake->b->rail) == 0);
		for (uint32_t i = 0; i < sizeof(pattern); i++)
			pattern[i] = (uint8_t)(1 + i % 255);
		atexit(stage_end);
	}
	return fake->b->rail->kind_data;
}

/* ---- what the peer says ---- */

static void frame_say(struct fuzz_input *in)
{
	uint8_t kind = fuzz_u8(in);
	uint32_t len = (uint32_t)fuzz_uint(in, 2), index = stream.frame_count;
	struct said_frame *frame = &stream.frames[index];
	uint8_t *at = stream.plain + stream.plain_len, *body = at + MRC_WIRE_HDR_BYTES;
	bool is_frag = kind & 1;

	len = is_frag ? 1 + len % SLOT_BYTES : len % (MRC_WIRE_CTL_BYTES_MAX + 1);
	memcpy(body, pattern + index, len);
	*frame = (struct said_frame){
		.hdr = {.type = is_frag ? MRC_WIRE_FRAG : MRC_WIRE_STATE,
			.flags = is_frag && kind & 2 ? MRC_WIRE_F_UNCHECKED : 0,
			.conn_epoch = 1,
			.path_epoch = 1,
			.channel = 7,
			.msg = index,
			.msg_len = is_frag ? len : 0,
			.addr = (uint64_t)index * SLOT_BYTES,
			.body_len = len},
		.begin = stream.plain_len,
		.body = body,
	};
	frame->hdr.body_crc = mrcd_crc32c(0, body, len);
	mrc_wire_encode(&frame->hdr, mrcd_crc32c, at);
	frame->end = frame->begin + MRC_WIRE_HDR_BYTES + len;
	if (mrcd_tcp_has_tail(&frame->hdr))
		stream.plain[frame->end++] = MRCD_TCP_TAIL_WHOLE;
	stream.plain_len = frame->end;
	stream.frame_count++;
}

static void record_say(struct mrcd_seal *seal, uint32_t begin, uint32_t len)
{
	uint8_t *at = stream.wire + stream.wire_len;
	uint32_t half = len / 2;
	int r;

	FUZZ_CHECK(stream.record_count < RECORDS_MAX);
	FUZZ_CHECK(mrcd_seal_begin(seal, at, len) == 0);
	FUZZ_CHECK(mrcd_seal_add(seal, stream.plain + begin, half) == 0);
	FUZZ_CHECK(mrcd_seal_add(seal, stream.plain + begin + half, len - half) == 0);
	r = mrcd_seal_end(seal, at);
	FUZZ_CHECK(r == (int)(MRCD_SEAL_HDR_BYTES + len + MRCD_SEAL_TAG_BYTES));
	stream.wire_len += (uint32_t)r;
	stream.wire_ends[stream.record_count] = stream.wire_len;
	stream.plain_ends[stream.record_count] = begin + len;
	stream.record_count++;
}

static void stream_say(struct fuzz_input *in, const uint8_t secret[MRCD_SEAL_SECRET_BYTES])
{
	static const uint32_t lens[] = {MRCD_SEAL_PLAIN_MAX, 1, 79, 80, 81, 1000};
	struct mrcd_seal seal;
	uint32_t count = 1 + fuzz_below(in, FRAMES_MAX), done = 0;

	stream.frame_count = stream.plain_len = stream.wire_len = stream.record_count = 0;
	for (uint32_t i = 0; i < count; i++)
		frame_say(in);
	FUZZ_CHECK(mrcd_seal_init(&seal, secret, true) == 0);
	while (done < stream.plain_len) {
		uint8_t which = fuzz_u8(in);
		uint32_t len = which < MRC_ARRAY_LEN(lens) ? lens[which] : which * 13U;

		/* However short they were so far: those that are left hold the rest. */
		if (stream.record_count >= RECORDS_MAX / 2)
			len = MRCD_SEAL_PLAIN_MAX;
		len = MRC_MIN(len, stream.plain_len - done);
		record_say(&seal, done, len);
		done += len;
	}
	mrcd_seal_fini(&seal);
}

/* ---- what he passes on ---- */

static void say(const uint8_t *bytes, uint32_t len)
{
	bool is_true = tap.true_len == tap.said_len;
	uint32_t i = 0;

	len = MRC_MIN(len, SAID_MAX - tap.said_len);
	memcpy(tap.said + tap.said_len, bytes, len);
	tap.said_len += len;
	while (is_true && i < len && tap.true_len < stream.wire_len &&
	       stream.wire[tap.true_len] == bytes[i++])
		tap.true_len++;
}

static uint32_t record_begin_of(uint32_t record)
{
	return record ? stream.wire_ends[record - 1] : 0;
}

static void say_record(uint32_t record, uint32_t from, uint32_t len_max)
{
	uint32_t begin = record_begin_of(record), len = stream.wire_ends[record] - begin;

	from = MRC_MIN(from, len);
	say(stream.wire + begin + from, MRC_MIN(len - from, len_max));
}

static void say_changed(uint32_t record, uint32_t bit)
{
	uint32_t begin = record_begin_of(record), len = stream.wire_ends[record] - begin;
	uint8_t *copy = fuzz_copy(stream.wire + begin, len);

	bit %= 8 * len;
	copy[bit / 8] ^= (uint8_t)(1U << bit % 8);
	say(copy, len);
	free(copy);
}

/* ---- what has to have come ---- */

static uint32_t records_come(void)
{
	uint32_t count = 0;

	while (count < stream.record_count && stream.wire_ends[count] <= tap.true_len)
		count++;
	return count;
}

/* Whether what he said behind the peer's records is one that cannot be opened, or begins like none. */
static bool is_over(uint32_t records)
{
	uint32_t begin = records ? stream.wire_ends[records - 1] : 0;
	const uint8_t *at = tap.said + begin;
	uint32_t len = 0;

	if (tap.read_len - begin < MRCD_SEAL_HDR_BYTES)
		return false;
	for (uint32_t i = 0; i < MRCD_SEAL_HDR_BYTES; i++)
		len |= (uint32_t)at[i] << 8 * i;
	return len < 1 || len > MRCD_SEAL_PLAIN_MAX ||
	       tap.read_len - begin >= MRCD_SEAL_HDR_BYTES + len + MRCD_SEAL_TAG_BYTES;
}

static void frame_check(const struct said_frame *frame, const struct fake_frame *came)
{
	const struct mrc_wire_hdr *hdr = &frame->hdr;

	FUZZ_CHECK(came->hdr.type == hdr->type && came->hdr.msg == hdr->msg);
	FUZZ_CHECK(came->hdr.body_len == hdr->body_len && came->is_body_good);
	if (hdr->type == MRC_WIRE_FRAG)
		FUZZ_CHECK(came->is_placed);
	else
		FUZZ_CHECK(!memcmp(came->body, frame->body,
				   MRC_MIN(hdr->body_len, sizeof(came->body))));
}

static void memory_check(const struct said_frame *frame, uint32_t plain_come)
{
	static const uint8_t zeros[SLOT_BYTES];
	const uint8_t *slot = fake->landing + frame->hdr.addr;
	uint32_t begin = frame->begin + MRC_WIRE_HDR_BYTES, landed = 0;

	if (frame->hdr.type == MRC_WIRE_FRAG && plain_come > begin)
		landed = MRC_MIN(plain_come - begin, frame->hdr.body_len);
	FUZZ_CHECK(!memcmp(slot, frame->body, landed));
	FUZZ_CHECK(!memcmp(slot + landed, zeros, SLOT_BYTES - landed));
}

static void come_check(const struct mrcd_peer *peer)
{
	uint32_t records = records_come();
	uint32_t plain_come = records ? stream.plain_ends[records - 1] : 0, frames = 0;

	while (frames < stream.frame_count && stream.frames[frames].end <= plain_come)
		frames++;
	FUZZ_CHECK(peer->frame_count == frames);
	for (uint32_t i = 0; i < frames; i++)
		frame_check(&stream.frames[i], &peer->frames[i]);
	for (uint32_t i = 0; i < stream.frame_count; i++)
		memory_check(&stream.frames[i], plain_come);
}

/* What he has said so far is read. False: the link is over. */
static bool hear(struct mrcd_tcp_link *link)
{
	struct mrcd_tcp_failure failure = {0};

	while (tap.read_len < tap.said_len) {
		ssize_t n = send(tap.fd, tap.said + tap.read_len, tap.said_len - tap.read_len,
				 MSG_NOSIGNAL | MSG_DONTWAIT);
		bool is_good;

		FUZZ_CHECK(n > 0);
		tap.read_len += (uint32_t)n;
		is_good = mrcd_tcp_recv(link, &failure);
		/* True is what was heard of it, and no more. */
		FUZZ_CHECK(is_good || failure.reason == MRC_REASON_CORRUPT);
		FUZZ_CHECK(tap.read_len < tap.said_len || is_good == !is_over(records_come()));
		if (!is_good)
			return false;
	}
	return true;
}

static bool do_one(struct fuzz_input *in, struct mrcd_tcp_link *link)
{
	uint8_t op = fuzz_u8(in);
	uint8_t bytes[64];
	uint32_t len;

	switch (op & 7) {
	case 0: /* the next one, as it is; several at once */
	case 1:
		for (uint32_t i = 0; i <= (uint32_t)op >> 5 && tap.next < stream.record_count; i++)
			say_record(tap.next++, 0, UINT32_MAX);
		break;
	case 2: /* part of the next one; the rest may follow */
		if (tap.next < stream.record_count) {
			len = (uint32_t)fuzz_uint(in, 2);
			say_record(tap.next, 0, len);
			if (op & 8 && !hear(link))
				return false;
			if (op & 16)
				say_record(tap.next++, len, UINT32_MAX);
		}
		break;
	case 3: /* one of those there are, once more or too early */
		tap.next = fuzz_u8(in) % stream.record_count;
		say_record(tap.next++, 0, UINT32_MAX);
		break;
	case 4: /* one that is not as it was */
		if (tap.next < stream.record_count)
			say_changed(tap.next++, (uint32_t)fuzz_uint(in, 3));
		break;
	case 5: /* his own, of a length that a record might have */
		len = (uint32_t)fuzz_uint(in, op & 8 ? 1 : 4);
		for (uint32_t i = 0; i < 4; i++)
			bytes[i] = (uint8_t)(len >> 8 * i);
		for (uint32_t i = 4; i < sizeof(bytes); i++)
			bytes[i] = fuzz_u8(in);
		say(bytes, 4 + (op >> 4) * 4U);
		break;
	case 6: /* the next one is left out */
		tap.next++;
		break;
	default:
		return hear(link);
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint8_t secret_in[MRCD_SEAL_SECRET_BYTES] = {1}, secret_out[] = {2, [31] = 0};
	const struct mrc_auth auth = {.conn_epoch = 1, .path_epoch = 1};
	struct fuzz_input in = {.at = data, .end = data + len};
	struct mrcd_tcp *tcp = stage_tcp();
	struct mrcd_peer *peer = fake->b;
	struct mrcd_tcp_link *link;
	bool is_good = true;
	int pair[2];

	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	tap.fd = pair[0];
	tap.said_len = tap.read_len = tap.true_len = tap.next = 0;
	stream_say(&in, secret_in);
	memset(fake->landing, 0, (size_t)stream.frame_count * SLOT_BYTES);
	/* What an earlier one left there is nothing. */
	memset(tcp->staging, 0xee, MRCD_TCP_CARRY_BYTES + MRCD_TCP_STAGING_BYTES);
	peer->frame_count = 0;
	FUZZ_CHECK(mrcd_tcp_link_new(tcp, pair[1], peer, 0, &auth, &link) == 0);
	FUZZ_CHECK(mrcd_tcp_seal_new(link, secret_out, secret_in) == 0);
	peer->link = &link->link;
	while (is_good && !fuzz_is_over(&in))
		is_good = do_one(&in, link);
	if (is_good)
		hear(link);
	come_check(peer);
	peer->link = NULL;
	mrcd_tcp_link_close(link);
	mrcd_tcp_reap(tcp);
	close(tap.fd);
	return 0;
}
