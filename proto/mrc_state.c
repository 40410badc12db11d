/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_state.h"

#include <string.h>

static const uint8_t magic[4] = {'M', 'R', 'C', 'S'};

#define AT_CRC         16U
#define SECTION_BYTES  12U
#define AT_SECTION_LEN 4U
#define MAY_SKIP       1U

void mrc_state_fail(struct mrc_state *s, const char *why)
{
	if (!s->why)
		s->why = why;
}

void mrc_state_bytes(struct mrc_state *s, void *data, size_t len)
{
	if (s->is_reading) {
		if (s->why || len > s->end - s->at) {
			mrc_state_fail(s, "it ends too soon");
			memset(data, 0, len);
			return;
		}
		memcpy(data, s->in + s->at, len);
	} else if (s->at <= s->cap && len <= s->cap - s->at && len) {
		memcpy(s->out + s->at, data, len);
	}
	s->at += len;
}

/* A number of `bytes` bytes; what is read is returned. */
static uint64_t number(struct mrc_state *s, uint64_t v, uint32_t bytes)
{
	uint8_t raw[8];
	uint64_t read = 0;

	for (uint32_t i = 0; i < bytes; i++)
		raw[i] = (uint8_t)(v >> (8 * i));
	mrc_state_bytes(s, raw, bytes);
	for (uint32_t i = bytes; i-- > 0;)
		read = read << 8 | raw[i];
	return read;
}

void mrc_state_u8(struct mrc_state *s, uint8_t *v)
{
	*v = (uint8_t)number(s, *v, 1);
}

void mrc_state_u16(struct mrc_state *s, uint16_t *v)
{
	*v = (uint16_t)number(s, *v, 2);
}

void mrc_state_u32(struct mrc_state *s, uint32_t *v)
{
	*v = (uint32_t)number(s, *v, 4);
}

void mrc_state_u64(struct mrc_state *s, uint64_t *v)
{
	*v = number(s, *v, 8);
}

void mrc_state_i32(struct mrc_state *s, int32_t *v)
{
	*v = (int32_t)(uint32_t)number(s, (uint32_t)*v, 4);
}

void mrc_state_bits(struct mrc_state *s, uint32_t *v, uint32_t count)
{
	mrc_state_u32(s, v);
	if ((uint64_t)*v >> count)
		mrc_state_fail(s, "a flag without meaning is set");
}

void mrc_state_bool(struct mrc_state *s, bool *v)
{
	uint8_t byte = *v;

	mrc_state_u8(s, &byte);
	if (byte > 1)
		mrc_state_fail(s, "a flag is neither 0 nor 1");
	*v = byte == 1;
}

/* ---- sections ---- */

static void section(struct mrc_state *s, uint16_t *tag, uint16_t *flags, uint64_t *len)
{
	mrc_state_u16(s, tag);
	mrc_state_u16(s, flags);
	mrc_state_u64(s, len);
	s->section_at = s->at;
	if (s->is_reading && *len > s->end - s->at)
		mrc_state_fail(s, "a section is longer than all");
}

/* Step over one that is not known here; false when the next is not such. */
static bool section_skip(struct mrc_state *s, uint16_t tag_last)
{
	size_t at = s->at;
	uint16_t tag = 0;
	uint16_t flags = 0;
	uint64_t len = 0;

	section(s, &tag, &flags, &len);
	if (s->why || tag <= tag_last || flags != MAY_SKIP) {
		s->at = at;
		return false;
	}
	s->at += len;
	return true;
}

void mrc_state_begin(struct mrc_state *s, uint16_t tag, uint16_t tag_last)
{
	uint16_t found = tag;
	uint16_t flags = 0;
	uint64_t len = 0;

	while (s->is_reading && s->at < s->end && section_skip(s, tag_last))
		;
	section(s, &found, &flags, &len);
	if (found != tag || flags > MAY_SKIP)
		mrc_state_fail(s, "a section is missing, or one is there that is not known here");
	if (s->is_reading && !s->why)
		s->end = s->at + len;
}

void mrc_state_end(struct mrc_state *s)
{
	size_t at = s->at;
	uint64_t len = at - s->section_at;

	if (s->is_reading) {
		if (at != s->end)
			mrc_state_fail(s, "a section goes on where it should end");
		s->end = s->image_end;
		return;
	}
	s->at = s->section_at - (SECTION_BYTES - AT_SECTION_LEN);
	mrc_state_u64(s, &len);
	s->at = at;
}

/* ---- images ---- */

void mrc_state_write(struct mrc_state *s, void *out, size_t cap)
{
	*s = (struct mrc_state){
		.version = MRC_STATE_VERSION,
		.out = out,
		.cap = cap,
		.at = MRC_STATE_HEADER_BYTES,
	};
}

/* Magic, version, length, checksum; the fields between are 0. */
static void header(struct mrc_state *s, uint8_t mark[4], uint64_t *len, uint32_t *crc)
{
	uint16_t zero16 = 0;
	uint32_t zero32 = 0;

	mrc_state_bytes(s, mark, sizeof(magic));
	mrc_state_u16(s, &s->version);
	mrc_state_u16(s, &zero16);
	mrc_state_u64(s, len);
	mrc_state_u32(s, crc);
	mrc_state_u32(s, &zero32);
	if (zero16 || zero32)
		mrc_state_fail(s, "a field that must be 0 is not");
}

int mrc_state_written(struct mrc_state *s, mrc_crc32c_fn crc32c, size_t *len_out)
{
	uint8_t mark[4];
	uint64_t len = s->at;
	uint32_t crc;

	*len_out = s->at;
	if (s->at > s->cap)
		return -ENOBUFS;
	memcpy(mark, magic, sizeof(mark));
	crc = crc32c(0, s->out + MRC_STATE_HEADER_BYTES, s->at - MRC_STATE_HEADER_BYTES);
	s->at = 0;
	header(s, mark, &len, &crc);
	return 0;
}

int mrc_state_read(struct mrc_state *s, mrc_crc32c_fn crc32c, const void *in, size_t len)
{
	uint8_t mark[4];
	uint64_t said = 0;
	uint32_t crc = 0;

	*s = (struct mrc_state){.is_reading = true, .in = in, .end = len, .image_end = len};
	header(s, mark, &said, &crc);
	if (memcmp(mark, magic, sizeof(mark)) != 0)
		s->why = "it is no state of a conn";
	if (s->version == 0 || s->version > MRC_STATE_VERSION ||
	    s->version + 1U < MRC_STATE_VERSION)
		mrc_state_fail(s, "it is of a version that is not read here");
	if (said != len)
		mrc_state_fail(s, "it is shorter or longer than it says");
	if (!s->why &&
	    crc != crc32c(0, s->in + MRC_STATE_HEADER_BYTES, len - MRC_STATE_HEADER_BYTES))
		mrc_state_fail(s, "its checksum is wrong");
	return s->why ? -EPROTO : 0;
}

void mrc_state_finish(struct mrc_state *s, uint16_t tag_last)
{
	while (!s->why && s->at < s->end) {
		if (!section_skip(s, tag_last))
			mrc_state_fail(s, "a section is there that is not known here");
	}
}
