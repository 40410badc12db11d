/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_image - the daemon's state as bytes in a memfd, for the daemon after it
 *
 * A header, then fields one after the other, little-endian, as the functions
 * that write and read them agree (mrcd_handover.c, mrcd_client_save.c):
 *
 *	0   magic     u32  "MRCS"
 *	4   version   u32  MRCD_IMAGE_VERSION of who wrote it
 *	8   length    u64  of what follows the header
 *	16  body_crc  u32  CRC32C of that
 *	20  crc       u32  CRC32C of the 20 bytes above
 *	24  ...
 *
 * It is written whole and sealed before anybody gets it, so there is no half of
 * one; the checksums tell of what else could befall it. A daemon reads its own
 * version and the one before. Reading is total: whatever the bytes, nothing
 * beyond the end is looked at, and one look at is_failed at the end is enough.
 *
 * Units:     bytes.
 * Ownership: of each struct its user, until its fini or close.
 * Threads:   any, one at a time.
 */
#ifndef MRCD_IMAGE_H
#define MRCD_IMAGE_H

#include "mrc_base.h"

#define MRCD_IMAGE_VERSION        2U /* 2: drains, of this host and of peers */
#define MRCD_IMAGE_VERSION_OLDEST 1U /* that is read: one back */
#define MRCD_IMAGE_HEADER_BYTES   24U
#define MRCD_IMAGE_WHY_BYTES      256

/* ---- writing ---- */

struct mrcd_image_out {
	uint8_t *bytes; /* ours */
	size_t len_bytes, room_bytes;
	bool is_failed; /* memory was short: it takes nothing more */
};

void mrcd_image_begin(struct mrcd_image_out *out);
void mrcd_image_put(struct mrcd_image_out *out, uint64_t value); /* 8 bytes */
void mrcd_image_put_bytes(struct mrcd_image_out *out, const void *bytes, size_t len_bytes);
/* Up to MRC_NAME_MAX characters. */
void mrcd_image_put_name(struct mrcd_image_out *out, const char *name);
/*
 * Room for up to `room_bytes` that somebody else writes; NULL: memory is short.
 * mrcd_image_put_blob() then says how many they are, and must come next.
 */
uint8_t *mrcd_image_blob_room(struct mrcd_image_out *out, size_t room_bytes);
void mrcd_image_put_blob(struct mrcd_image_out *out, size_t len_bytes);
/* Into a memfd, sealed against every change. -ENOMEM when something was put in vain; negative errno. */
int mrcd_image_seal(struct mrcd_image_out *out, int *fd_out);
void mrcd_image_fini(struct mrcd_image_out *out);

/* ---- reading ---- */

struct mrcd_image_in {
	void *map; /* ours */
	size_t map_bytes;
	const uint8_t *bytes;
	size_t len_bytes, at;
	uint32_t version;
	bool is_failed; /* there was less than was asked for; from then on all is 0 */
};

/* -EPROTO: it is no image that this daemon reads, and `why` says why; other negative errno as well. */
int mrcd_image_open(struct mrcd_image_in *in, int fd, char why[MRCD_IMAGE_WHY_BYTES]);
uint64_t mrcd_image_take(struct mrcd_image_in *in);
/* A value of at most `max`; above it, reading has failed. */
uint64_t mrcd_image_take_max(struct mrcd_image_in *in, uint64_t max);
bool mrcd_image_take_bool(struct mrcd_image_in *in);
/* Lent until mrcd_image_close(); NULL: there are fewer. */
const uint8_t *mrcd_image_take_bytes(struct mrcd_image_in *in, size_t len_bytes);
const uint8_t *mrcd_image_take_blob(struct mrcd_image_in *in, size_t *len_out);
/* "" when reading has failed. */
void mrcd_image_take_name(struct mrcd_image_in *in, char name_out[MRC_NAME_MAX + 1]);
/* All was read, and nothing is left. */
bool mrcd_image_is_done(const struct mrcd_image_in *in);
void mrcd_image_close(struct mrcd_image_in *in);

#endif
