/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_wire.h"

#include <string.h>

/* Offsets of the header's fields; WIRE.md is drawn from these. */
enum {
	AT_MAGIC = 0,
	AT_VERSION = 4,
	AT_TYPE = 5,
	AT_FLAGS = 6,
	AT_CONN_EPOCH = 8,
	AT_PATH_EPOCH = 12,
	AT_WRITER_PATH = 16,
	AT_RESERVED = 18,
	AT_WRITER_EPOCH = 20,
	AT_CHANNEL = 24,
	AT_BODY_LEN = 28,
	AT_MSG = 32,
	AT_OFFSET = 40,
	AT_MSG_LEN = 48,
	AT_ADDR = 56,
	AT_ARG = 64,
	AT_BODY_CRC = 72,
	AT_HDR_CRC = 76,
};

static void store16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static void store32(uint8_t *p, uint32_t v)
{
	store16(p, (uint16_t)v);
	store16(p + 2, (uint16_t)(v >> 16));
}

static void store64(uint8_t *p, uint64_t v)
{
	store32(p, (uint32_t)v);
	store32(p + 4, (uint32_t)(v >> 32));
}

static uint16_t load16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t load32(const uint8_t *p)
{
	return (uint32_t)load16(p) | (uint32_t)load16(p + 2) << 16;
}

static uint64_t load64(const uint8_t *p)
{
	return (uint64_t)load32(p) | (uint64_t)load32(p + 4) << 32;
}

void mrc_wire_encode(const struct mrc_wire_hdr *hdr, mrc_crc32c_fn crc32c,
		     uint8_t out[MRC_WIRE_HDR_BYTES])
{
	store32(out + AT_MAGIC, MRC_WIRE_MAGIC);
	out[AT_VERSION] = MRC_WIRE_VERSION;
	out[AT_TYPE] = hdr->type;
	store16(out + AT_FLAGS, hdr->flags);
	store32(out + AT_CONN_EPOCH, hdr->conn_epoch);
	store32(out + AT_PATH_EPOCH, hdr->path_epoch);
	store16(out + AT_WRITER_PATH, hdr->writer_path);
	store16(out + AT_RESERVED, 0);
	store32(out + AT_WRITER_EPOCH, hdr->writer_epoch);
	store32(out + AT_CHANNEL, hdr->channel);
	store32(out + AT_BODY_LEN, hdr->body_len);
	store64(out + AT_MSG, hdr->msg);
	store64(out + AT_OFFSET, hdr->offset);
	store64(out + AT_MSG_LEN, hdr->msg_len);
	store64(out + AT_ADDR, hdr->addr);
	store64(out + AT_ARG, hdr->arg);
	store32(out + AT_BODY_CRC, hdr->body_crc);
	store32(out + AT_HDR_CRC, crc32c(0, out, AT_HDR_CRC));
}

static uint16_t flags_of(uint8_t type)
{
	const uint16_t elsewhere = MRC_WIRE_F_UNORDERED | MRC_WIRE_F_PROVE | MRC_WIRE_F_PROOF;

	switch (type) {
	case MRC_WIRE_FRAG:
		return MRC_WIRE_F_ALL & ~elsewhere;
	case MRC_WIRE_OPEN:
		return MRC_WIRE_F_UNORDERED | MRC_WIRE_F_UNCHECKED;
	case MRC_WIRE_PROBE:
		return MRC_WIRE_F_PROVE | MRC_WIRE_F_PROOF;
	case MRC_WIRE_LEVEL:
		return MRC_WIRE_F_TRACED;
	default:
		return 0;
	}
}

/* The fields that can be judged without knowing the conn. */
static int check(const struct mrc_wire_hdr *hdr, uint16_t reserved)
{
	bool is_frag = hdr->type == MRC_WIRE_FRAG;
	uint32_t len_max = MRC_WIRE_CTL_BYTES_MAX;

	if (hdr->type == 0 || hdr->type >= MRC_WIRE_TYPE_END)
		return -EPROTO;
	if (reserved != 0 || (hdr->flags & ~MRC_WIRE_F_ALL) != 0)
		return -EPROTO;
	if (is_frag || hdr->type == MRC_WIRE_PROBE)
		len_max = MRC_FRAG_BYTES_MAX;
	if (hdr->body_len > len_max)
		return -EPROTO;
	if (hdr->flags & ~flags_of(hdr->type))
		return -EPROTO;
	if (is_frag) {
		if (hdr->offset > hdr->msg_len || hdr->body_len > hdr->msg_len - hdr->offset)
			return -EPROTO;
		if (hdr->body_len == 0 && hdr->msg_len != 0)
			return -EPROTO;
		if (hdr->flags & MRC_WIRE_F_DIRECT && hdr->flags & MRC_WIRE_F_COPY)
			return -EPROTO;
	}
	if (hdr->writer_path >= MRC_PATHS_MAX)
		return -EPROTO;
	return 0;
}

int mrc_wire_decode(const uint8_t in[MRC_WIRE_HDR_BYTES], mrc_crc32c_fn crc32c,
		    struct mrc_wire_hdr *hdr_out)
{
	if (load32(in + AT_MAGIC) != MRC_WIRE_MAGIC || in[AT_VERSION] != MRC_WIRE_VERSION)
		return -EBADMSG;
	if (load32(in + AT_HDR_CRC) != crc32c(0, in, AT_HDR_CRC))
		return -EILSEQ;
	*hdr_out = (struct mrc_wire_hdr){
		.type = in[AT_TYPE],
		.flags = load16(in + AT_FLAGS),
		.conn_epoch = load32(in + AT_CONN_EPOCH),
		.path_epoch = load32(in + AT_PATH_EPOCH),
		.writer_path = load16(in + AT_WRITER_PATH),
		.writer_epoch = load32(in + AT_WRITER_EPOCH),
		.channel = load32(in + AT_CHANNEL),
		.body_len = load32(in + AT_BODY_LEN),
		.msg = load64(in + AT_MSG),
		.offset = load64(in + AT_OFFSET),
		.msg_len = load64(in + AT_MSG_LEN),
		.addr = load64(in + AT_ADDR),
		.arg = load64(in + AT_ARG),
		.body_crc = load32(in + AT_BODY_CRC),
	};
	return check(hdr_out, load16(in + AT_RESERVED));
}

bool mrc_wire_has_body(const struct mrc_wire_hdr *hdr)
{
	return hdr->body_len > 0 && !(hdr->flags & MRC_WIRE_F_DIRECT);
}

const char *mrc_wire_type_name(uint8_t type)
{
	static const char *const names[MRC_WIRE_TYPE_END] = {
		[MRC_WIRE_HELLO] = "HELLO",
		[MRC_WIRE_AUTH] = "AUTH",
		[MRC_WIRE_PATH_OPEN] = "PATH_OPEN",
		[MRC_WIRE_KEYS] = "KEYS",
		[MRC_WIRE_OPEN] = "OPEN",
		[MRC_WIRE_ACCEPT] = "ACCEPT",
		[MRC_WIRE_REFUSE] = "REFUSE",
		[MRC_WIRE_CLOSE] = "CLOSE",
		[MRC_WIRE_RESET] = "RESET",
		[MRC_WIRE_VOID] = "VOID",
		[MRC_WIRE_RTS] = "RTS",
		[MRC_WIRE_CTS] = "CTS",
		[MRC_WIRE_FRAG] = "FRAG",
		[MRC_WIRE_ACK] = "ACK",
		[MRC_WIRE_WANT] = "WANT",
		[MRC_WIRE_STATE] = "STATE",
		[MRC_WIRE_LEVEL] = "LEVEL",
		[MRC_WIRE_DRAINED] = "DRAINED",
		[MRC_WIRE_PROBE] = "PROBE",
		[MRC_WIRE_PROBE_ACK] = "PROBE_ACK",
		[MRC_WIRE_PATH_FENCE] = "PATH_FENCE",
		[MRC_WIRE_PATH_FENCED] = "PATH_FENCED",
		[MRC_WIRE_NOP] = "NOP",
		[MRC_WIRE_READY] = "READY",
		[MRC_WIRE_ABOUT] = "ABOUT",
	};

	return type < MRC_WIRE_TYPE_END && names[type] ? names[type] : "?";
}

/* Room for n more bytes: their place, or NULL and the cursor is spoilt. */
static uint8_t *take(struct mrc_cursor *c, size_t n)
{
	uint8_t *at = c->at;

	if (!c->ok || (size_t)(c->end - c->at) < n) {
		c->ok = false;
		return NULL;
	}
	c->at += n;
	return at;
}

void mrc_put_u8(struct mrc_cursor *c, uint8_t v)
{
	uint8_t *p = take(c, 1);

	if (p)
		*p = v;
}

void mrc_put_u16(struct mrc_cursor *c, uint16_t v)
{
	uint8_t *p = take(c, 2);

	if (p)
		store16(p, v);
}

void mrc_put_u32(struct mrc_cursor *c, uint32_t v)
{
	uint8_t *p = take(c, 4);

	if (p)
		store32(p, v);
}

void mrc_put_u64(struct mrc_cursor *c, uint64_t v)
{
	uint8_t *p = take(c, 8);

	if (p)
		store64(p, v);
}

void mrc_put_bytes(struct mrc_cursor *c, const void *data, size_t len)
{
	uint8_t *p = take(c, len);

	if (p)
		memcpy(p, data, len);
}

uint8_t mrc_get_u8(struct mrc_cursor *c)
{
	const uint8_t *p = take(c, 1);

	return p ? *p : 0;
}

uint16_t mrc_get_u16(struct mrc_cursor *c)
{
	const uint8_t *p = take(c, 2);

	return p ? load16(p) : 0;
}

uint32_t mrc_get_u32(struct mrc_cursor *c)
{
	const uint8_t *p = take(c, 4);

	return p ? load32(p) : 0;
}

uint64_t mrc_get_u64(struct mrc_cursor *c)
{
	const uint8_t *p = take(c, 8);

	return p ? load64(p) : 0;
}

void mrc_get_bytes(struct mrc_cursor *c, void *data_out, size_t len)
{
	const uint8_t *p = take(c, len);

	if (p)
		memcpy(data_out, p, len);
	else
		memset(data_out, 0, len);
}
