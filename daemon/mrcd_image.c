/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mrcd_crc.h"

#define IMAGE_MAGIC 0x5343524dU /* "MRCS", little-endian */
#define SEALS       (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

static void store(uint8_t *to, uint64_t value, size_t len_bytes)
{
	for (size_t i = 0; i < len_bytes; i++)
		to[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t load(const uint8_t *from, size_t len_bytes)
{
	uint64_t value = 0;

	for (size_t i = 0; i < len_bytes; i++)
		value |= (uint64_t)from[i] << (8 * i);
	return value;
}

/* ---- writing ---- */

/* Makes room behind what is there; NULL: memory is short, now or before. */
static uint8_t *room(struct mrcd_image_out *out, size_t len_bytes)
{
	size_t room_bytes = MRC_MAX(out->room_bytes, (size_t)4096);
	uint8_t *bytes;

	if (out->is_failed)
		return NULL;
	while (room_bytes - out->len_bytes < len_bytes && room_bytes <= SIZE_MAX / 2)
		room_bytes *= 2;
	if (room_bytes - out->len_bytes < len_bytes) {
		out->is_failed = true;
		return NULL;
	}
	if (room_bytes != out->room_bytes) {
		bytes = realloc(out->bytes, room_bytes);
		if (bytes == NULL) {
			out->is_failed = true;
			return NULL;
		}
		out->bytes = bytes;
		out->room_bytes = room_bytes;
	}
	return out->bytes + out->len_bytes;
}

void mrcd_image_begin(struct mrcd_image_out *out)
{
	uint8_t *header;

	*out = (struct mrcd_image_out){0};
	header = room(out, MRCD_IMAGE_HEADER_BYTES);
	if (header == NULL)
		return;
	memset(header, 0, MRCD_IMAGE_HEADER_BYTES);
	out->len_bytes = MRCD_IMAGE_HEADER_BYTES;
}

void mrcd_image_put(struct mrcd_image_out *out, uint64_t value)
{
	uint8_t *at = room(out, sizeof(value));

	if (at == NULL)
		return;
	store(at, value, sizeof(value));
	out->len_bytes += sizeof(value);
}

void mrcd_image_put_bytes(struct mrcd_image_out *out, const void *bytes, size_t len_bytes)
{
	uint8_t *at = room(out, len_bytes);

	if (at == NULL)
		return;
	memcpy(at, bytes, len_bytes);
	out->len_bytes += len_bytes;
}

void mrcd_image_put_name(struct mrcd_image_out *out, const char *name)
{
	char field[MRC_NAME_MAX + 1] = {0};

	memcpy(field, name, strnlen(name, MRC_NAME_MAX));
	mrcd_image_put_bytes(out, field, sizeof(field));
}

uint8_t *mrcd_image_blob_room(struct mrcd_image_out *out, size_t room_bytes)
{
	uint8_t *at = room(out, sizeof(uint64_t) + room_bytes);

	return at == NULL ? NULL : at + sizeof(uint64_t);
}

void mrcd_image_put_blob(struct mrcd_image_out *out, size_t len_bytes)
{
	if (out->is_failed)
		return;
	MRC_ASSERT(out->room_bytes - out->len_bytes >= sizeof(uint64_t) + len_bytes);
	store(out->bytes + out->len_bytes, len_bytes, sizeof(uint64_t));
	out->len_bytes += sizeof(uint64_t) + len_bytes;
}

static int write_all(int fd, const uint8_t *bytes, size_t len_bytes)
{
	while (len_bytes > 0) {
		ssize_t n = write(fd, bytes, len_bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		len_bytes -= (size_t)n;
	}
	return 0;
}

int mrcd_image_seal(struct mrcd_image_out *out, int *fd_out)
{
	size_t body_bytes = out->len_bytes - MRCD_IMAGE_HEADER_BYTES;
	int fd, r;

	if (out->is_failed)
		return -ENOMEM;
	store(out->bytes, IMAGE_MAGIC, 4);
	store(out->bytes + 4, MRCD_IMAGE_VERSION, 4);
	store(out->bytes + 8, body_bytes, 8);
	store(out->bytes + 16, mrcd_crc32c(0, out->bytes + MRCD_IMAGE_HEADER_BYTES, body_bytes), 4);
	store(out->bytes + 20, mrcd_crc32c(0, out->bytes, 20), 4);
	fd = memfd_create("mrcd-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	r = write_all(fd, out->bytes, out->len_bytes);
	if (r == 0 && fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) < 0)
		r = -errno;
	if (r < 0) {
		close(fd);
		return r;
	}
	*fd_out = fd;
	return 0;
}

void mrcd_image_fini(struct mrcd_image_out *out)
{
	free(out->bytes);
	*out = (struct mrcd_image_out){0};
}

/* ---- reading ---- */

/* Whoever could still write to it could make two looks differ. */
static int image_map(struct mrcd_image_in *in, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size <= 0)
		return -EPROTO;
	in->map_bytes = (size_t)st.st_size;
	in->map = mmap(NULL, in->map_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (in->map == MAP_FAILED) {
		in->map = NULL;
		return -errno;
	}
	return 0;
}

int mrcd_image_open(struct mrcd_image_in *in, int fd, char why[MRCD_IMAGE_WHY_BYTES])
{
	const uint8_t *header;
	int r;

	*in = (struct mrcd_image_in){0};
	r = image_map(in, fd);
	if (r < 0) {
		snprintf(why, MRCD_IMAGE_WHY_BYTES, "what was left is no sealed memory: %s",
			 strerror(-r));
		return r;
	}
	header = in->map;
	if (in->map_bytes < MRCD_IMAGE_HEADER_BYTES || load(header, 4) != IMAGE_MAGIC ||
	    load(header + 20, 4) != mrcd_crc32c(0, header, 20)) {
		snprintf(why, MRCD_IMAGE_WHY_BYTES, "what was left is no state of a daemon");
		goto err_close;
	}
	in->version = (uint32_t)load(header + 4, 4);
	if (in->version < MRCD_IMAGE_VERSION_OLDEST || in->version > MRCD_IMAGE_VERSION) {
		snprintf(why, MRCD_IMAGE_WHY_BYTES,
			 "the state is of version %u, this daemon reads %u to %u", in->version,
			 MRCD_IMAGE_VERSION_OLDEST, MRCD_IMAGE_VERSION);
		goto err_close;
	}
	in->bytes = header + MRCD_IMAGE_HEADER_BYTES;
	in->len_bytes = in->map_bytes - MRCD_IMAGE_HEADER_BYTES;
	if (load(header + 8, 8) != in->len_bytes ||
	    load(header + 16, 4) != mrcd_crc32c(0, in->bytes, in->len_bytes)) {
		snprintf(why, MRCD_IMAGE_WHY_BYTES, "the state is damaged");
		goto err_close;
	}
	return 0;

err_close:
	mrcd_image_close(in);
	return -EPROTO;
}

const uint8_t *mrcd_image_take_bytes(struct mrcd_image_in *in, size_t len_bytes)
{
	const uint8_t *bytes = in->bytes + in->at;

	if (in->is_failed || len_bytes > in->len_bytes - in->at) {
		in->is_failed = true;
		return NULL;
	}
	in->at += len_bytes;
	return bytes;
}

uint64_t mrcd_image_take(struct mrcd_image_in *in)
{
	const uint8_t *bytes = mrcd_image_take_bytes(in, sizeof(uint64_t));

	return bytes == NULL ? 0 : load(bytes, sizeof(uint64_t));
}

uint64_t mrcd_image_take_max(struct mrcd_image_in *in, uint64_t max)
{
	uint64_t value = mrcd_image_take(in);

	if (value <= max)
		return value;
	in->is_failed = true;
	return 0;
}

bool mrcd_image_take_bool(struct mrcd_image_in *in)
{
	return mrcd_image_take_max(in, 1) != 0;
}

const uint8_t *mrcd_image_take_blob(struct mrcd_image_in *in, size_t *len_out)
{
	*len_out = (size_t)mrcd_image_take_max(in, in->len_bytes);
	return mrcd_image_take_bytes(in, *len_out);
}

void mrcd_image_take_name(struct mrcd_image_in *in, char name_out[MRC_NAME_MAX + 1])
{
	const uint8_t *bytes = mrcd_image_take_bytes(in, MRC_NAME_MAX + 1);

	name_out[0] = '\0';
	if (bytes == NULL)
		return;
	if (bytes[MRC_NAME_MAX] != 0)
		in->is_failed = true;
	else
		memcpy(name_out, bytes, MRC_NAME_MAX + 1);
}

bool mrcd_image_is_done(const struct mrcd_image_in *in)
{
	return !in->is_failed && in->at == in->len_bytes;
}

void mrcd_image_close(struct mrcd_image_in *in)
{
	if (in->map != NULL)
		munmap(in->map, in->map_bytes);
	in->map = NULL;
}
