/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_state - the form in which a conn's state travels: sections of fields, read and written by one code
 *
 * A function that names a struct's fields in their order serves both ways: a
 * field is written from where it is, or read to there. So the two cannot differ.
 * What was wrong first is kept as a text; after that, reading gives zeros and
 * goes no further.
 *
 *	bytes  header
 *	4      "MRCS"
 *	2      version of the form, MRC_STATE_VERSION
 *	2      0
 *	8      length of all, header included
 *	4      CRC32C of what follows the header
 *	4      0
 *	       then sections, in the order of their tags, each
 *	2      tag
 *	2      1: who does not know the tag may skip the section; 0: he refuses the image
 *	8      length of the body that follows
 *
 * Versions: a reader of version N reads N and N-1 (there is none before 1). A
 * field that is new in a version is read `if (state->version >= N)`, and has a
 * value for images without it; the order of the others stays.
 *
 * Units:     bytes; little-endian, unsigned; signed ones in two's complement.
 * Ownership: the buffer is the caller's.
 * Threads:   one.  I/O, time: none.
 */
#ifndef MRC_STATE_H
#define MRC_STATE_H

#include "mrc_base.h"

#define MRC_STATE_VERSION      2U /* 2: whether the peer's host is being drained */
#define MRC_STATE_HEADER_BYTES 24U

struct mrc_state {
	bool is_reading;
	uint16_t version; /* of what is read */
	uint8_t *out;     /* of `cap` bytes; what goes beyond is only counted */
	size_t cap;
	const uint8_t *in;
	size_t at;         /* next byte */
	size_t end;        /* reading: of the section, or of all */
	size_t section_at; /* where its body begins */
	size_t image_end;
	const char *why; /* reading: what was wrong; NULL: nothing so far */
};

/* Begin an image; `out` may be NULL when `cap` is 0. */
void mrc_state_write(struct mrc_state *state, void *out, size_t cap);
/* Write its header. 0; -ENOBUFS: it needs more than cap. *len_out: how many it needs either way. */
int mrc_state_written(struct mrc_state *state, mrc_crc32c_fn crc32c, size_t *len_out);

/* Begin to read; -EPROTO with state->why when the header or the checksum is wrong. */
int mrc_state_read(struct mrc_state *state, mrc_crc32c_fn crc32c, const void *in, size_t len);
/* What is behind the last section may only be such as can be skipped. */
void mrc_state_finish(struct mrc_state *state, uint16_t tag_last);

/* The section `tag` begins, tag_last being the last one known; it ends where its fields do. */
void mrc_state_begin(struct mrc_state *state, uint16_t tag, uint16_t tag_last);
void mrc_state_end(struct mrc_state *state);

/* Keeps the first. */
void mrc_state_fail(struct mrc_state *state, const char *why);

void mrc_state_bytes(struct mrc_state *state, void *data, size_t len);
void mrc_state_u8(struct mrc_state *state, uint8_t *v);
void mrc_state_u16(struct mrc_state *state, uint16_t *v);
void mrc_state_u32(struct mrc_state *state, uint32_t *v);
void mrc_state_u64(struct mrc_state *state, uint64_t *v);
void mrc_state_i32(struct mrc_state *state, int32_t *v);
/* Read: anything but 0 and 1 is wrong. */
void mrc_state_bool(struct mrc_state *state, bool *v);
/* The lowest `count` bits, of which no other is set. */
void mrc_state_bits(struct mrc_state *state, uint32_t *v, uint32_t count);

#endif
