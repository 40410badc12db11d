/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_perf_pattern.h"

#include <endian.h>
#include <string.h>

#define MESSAGE_MAGIC 0x4d43524dU
#define NUMBER_BITS   48
#define NUMBER_MASK   ((1ULL << NUMBER_BITS) - 1)

/* 64 bytes at once, at any address. The compiler makes of it what the machine has. */
typedef uint64_t perf_line __attribute__((vector_size(64), aligned(8), may_alias));

struct message_header {
	uint64_t number;
	uint64_t nonce;
	uint64_t size;
	uint64_t offset;
	uint32_t stream;
	uint32_t magic;
	uint64_t reserved[2];
	uint64_t check;
};

_Static_assert(sizeof(struct message_header) == PERF_PATTERN_HEADER_BYTES, "layout of the header");

uint64_t perf_hash(const void *data, size_t len_bytes)
{
	const unsigned char *bytes = data;
	uint64_t hash = 0x5bd1e9955bd1e995ULL ^ len_bytes, word;
	size_t i;

	for (i = 0; i + 8 <= len_bytes; i += 8) {
		memcpy(&word, bytes + i, 8);
		hash = perf_mix64(hash ^ le64toh(word));
	}
	return hash;
}

void perf_pattern_init(struct perf_pattern *pattern, uint64_t seed, uint64_t nonce)
{
	size_t i;

	/* Channels of one run share the seed: the nonce makes their bodies differ too. */
	pattern->seed = perf_mix64(seed ^ perf_mix64(nonce));
	pattern->nonce = nonce;
	for (i = 0; i < PERF_PATTERN_BLOCK_BYTES / 8; i++)
		pattern->table[i] = htole64(perf_mix64(pattern->seed + i * 0xd1342543de82ef95ULL));
}

static uint64_t pattern_key(const struct perf_pattern *pattern, uint32_t stream, uint64_t block)
{
	return htole64(perf_mix64(perf_mix64(pattern->seed ^ ((uint64_t)stream << 32)) + block));
}

static void block_write(unsigned char *out, const unsigned char *table, uint64_t key, size_t len)
{
	const unsigned char *key_bytes = (const unsigned char *)&key;
	perf_line keys = {key, key, key, key, key, key, key, key}, line;
	uint64_t word;
	size_t i = 0;

	for (; i + 64 <= len; i += 64) {
		memcpy(&line, table + i, 64);
		line ^= keys;
		memcpy(out + i, &line, 64);
	}
	for (; i + 8 <= len; i += 8) {
		memcpy(&word, table + i, 8);
		word ^= key;
		memcpy(out + i, &word, 8);
	}
	for (; i < len; i++)
		out[i] = table[i] ^ key_bytes[i & 7];
}

static bool block_equals(const unsigned char *data, const unsigned char *table, uint64_t key,
			 size_t len)
{
	const unsigned char *key_bytes = (const unsigned char *)&key;
	perf_line keys = {key, key, key, key, key, key, key, key}, line, want, wrong = {0};
	uint64_t word, word_want, bad = 0;
	size_t i = 0;

	for (; i + 64 <= len; i += 64) {
		memcpy(&line, data + i, 64);
		memcpy(&want, table + i, 64);
		wrong |= line ^ want ^ keys;
	}
	for (; i + 8 <= len; i += 8) {
		memcpy(&word, data + i, 8);
		memcpy(&word_want, table + i, 8);
		bad |= word ^ word_want ^ key;
	}
	for (; i < len; i++)
		bad |= (uint64_t)(data[i] ^ table[i] ^ key_bytes[i & 7]);
	bad |= wrong[0] | wrong[1] | wrong[2] | wrong[3] | wrong[4] | wrong[5] | wrong[6] |
	       wrong[7];
	return bad == 0;
}

static size_t block_damage_at(const unsigned char *data, const unsigned char *table, uint64_t key,
			      size_t len)
{
	const unsigned char *key_bytes = (const unsigned char *)&key;
	size_t i;

	for (i = 0; i < len; i++)
		if (data[i] != (table[i] ^ key_bytes[i & 7]))
			break;
	return i;
}

void perf_pattern_fill(const struct perf_pattern *pattern, uint32_t stream, uint64_t offset,
		       void *out, size_t len_bytes)
{
	const unsigned char *table = (const unsigned char *)pattern->table;
	unsigned char *bytes = out;

	while (len_bytes > 0) {
		size_t start = (size_t)(offset % PERF_PATTERN_BLOCK_BYTES);
		size_t part = PERF_PATTERN_BLOCK_BYTES - start;

		if (part > len_bytes)
			part = len_bytes;
		block_write(bytes, table + start,
			    pattern_key(pattern, stream, offset / PERF_PATTERN_BLOCK_BYTES), part);
		bytes += part;
		offset += part;
		len_bytes -= part;
	}
}

size_t perf_pattern_check(const struct perf_pattern *pattern, uint32_t stream, uint64_t offset,
			  const void *data, size_t len_bytes)
{
	const unsigned char *table = (const unsigned char *)pattern->table;
	const unsigned char *bytes = data;
	size_t done = 0;

	while (done < len_bytes) {
		size_t start = (size_t)(offset % PERF_PATTERN_BLOCK_BYTES);
		size_t part = PERF_PATTERN_BLOCK_BYTES - start;
		uint64_t key = pattern_key(pattern, stream, offset / PERF_PATTERN_BLOCK_BYTES);

		if (part > len_bytes - done)
			part = len_bytes - done;
		if (!block_equals(bytes + done, table + start, key, part))
			return done + block_damage_at(bytes + done, table + start, key, part);
		offset += part;
		done += part;
	}
	return len_bytes;
}

static void header_write(const struct perf_pattern *pattern, uint64_t number, uint32_t stream,
			 uint64_t offset, size_t size_bytes, unsigned char *out)
{
	struct message_header header = {
		.number = htole64(number),
		.nonce = htole64(pattern->nonce),
		.size = htole64(size_bytes),
		.offset = htole64(offset),
		.stream = htole32(stream),
		.magic = htole32(MESSAGE_MAGIC),
	};

	header.check = htole64(perf_hash(&header, offsetof(struct message_header, check)));
	memcpy(out, &header, sizeof(header));
}

static uint64_t number_pack(const struct perf_pattern *pattern, uint64_t number)
{
	number &= NUMBER_MASK;
	return number | (perf_mix64(number ^ pattern->nonce) << NUMBER_BITS);
}

void perf_message_write(const struct perf_pattern *pattern, uint64_t number, void *out,
			size_t size_bytes)
{
	unsigned char *bytes = out;
	uint64_t word;

	if (size_bytes >= PERF_PATTERN_HEADER_BYTES) {
		header_write(pattern, number, (uint32_t)number, 0, size_bytes, bytes);
		perf_pattern_fill(pattern, (uint32_t)number, PERF_PATTERN_HEADER_BYTES,
				  bytes + PERF_PATTERN_HEADER_BYTES,
				  size_bytes - PERF_PATTERN_HEADER_BYTES);
	} else if (size_bytes >= 8) {
		word = htole64(number_pack(pattern, number));
		memcpy(bytes, &word, 8);
		perf_pattern_fill(pattern, (uint32_t)number, 8, bytes + 8, size_bytes - 8);
	} else if (size_bytes > 0) {
		word = htole64(number);
		memcpy(bytes, &word, size_bytes);
	}
}

static void look_at_large(const struct perf_pattern *pattern, const unsigned char *data,
			  size_t len_bytes, size_t size_bytes, struct perf_look *look)
{
	struct message_header header;
	size_t body_bytes = size_bytes - PERF_PATTERN_HEADER_BYTES, good_bytes;

	if (len_bytes < PERF_PATTERN_HEADER_BYTES) {
		look->damage_at = len_bytes;
		return;
	}
	memcpy(&header, data, sizeof(header));
	if (le64toh(header.check) != perf_hash(&header, offsetof(struct message_header, check)) ||
	    le32toh(header.magic) != MESSAGE_MAGIC || le64toh(header.nonce) != pattern->nonce ||
	    le64toh(header.size) != size_bytes || le64toh(header.offset) % 8 != 0)
		return;
	look->number = le64toh(header.number);
	look->has_number = true;
	if (len_bytes != size_bytes) {
		look->damage_at = len_bytes < size_bytes ? len_bytes : size_bytes;
		return;
	}
	good_bytes = perf_pattern_check(pattern, le32toh(header.stream),
					le64toh(header.offset) + PERF_PATTERN_HEADER_BYTES,
					data + PERF_PATTERN_HEADER_BYTES, body_bytes);
	look->damage_at = PERF_PATTERN_HEADER_BYTES + good_bytes;
	look->is_intact = good_bytes == body_bytes;
}

static void look_at_small(const struct perf_pattern *pattern, const unsigned char *data,
			  size_t len_bytes, size_t size_bytes, struct perf_look *look)
{
	uint64_t word, number;
	size_t good_bytes;

	if (len_bytes < 8) {
		look->damage_at = len_bytes;
		return;
	}
	memcpy(&word, data, 8);
	number = le64toh(word) & NUMBER_MASK;
	if (le64toh(word) != number_pack(pattern, number))
		return;
	look->number = number;
	look->has_number = true;
	if (len_bytes != size_bytes) {
		look->damage_at = len_bytes < size_bytes ? len_bytes : size_bytes;
		return;
	}
	good_bytes = perf_pattern_check(pattern, (uint32_t)number, 8, data + 8, size_bytes - 8);
	look->damage_at = 8 + good_bytes;
	look->is_intact = good_bytes == size_bytes - 8;
}

void perf_message_look(const struct perf_pattern *pattern, const void *data, size_t len_bytes,
		       size_t size_bytes, uint64_t number_expected, struct perf_look *look_out)
{
	uint64_t word = htole64(number_expected);

	memset(look_out, 0, sizeof(*look_out));
	if (size_bytes >= PERF_PATTERN_HEADER_BYTES)
		look_at_large(pattern, data, len_bytes, size_bytes, look_out);
	else if (size_bytes >= 8)
		look_at_small(pattern, data, len_bytes, size_bytes, look_out);
	else
		look_out->is_intact = len_bytes == size_bytes &&
				      (size_bytes == 0 || memcmp(data, &word, size_bytes) == 0);
}

size_t perf_source_region_bytes(size_t size_bytes)
{
	return size_bytes < PERF_PATTERN_ROTATE_FROM_BYTES
		       ? size_bytes
		       : size_bytes + PERF_PATTERN_ROTATION_BYTES;
}

void perf_source_init(struct perf_source *source, const struct perf_pattern *pattern,
		      uint32_t stream, void *region, size_t size_bytes)
{
	source->region = region;
	source->size_bytes = size_bytes;
	source->offset = 0;
	source->stream = stream;
	source->step = 0;
	source->is_rotating = size_bytes >= PERF_PATTERN_ROTATE_FROM_BYTES;
	if (source->is_rotating)
		perf_pattern_fill(pattern, stream, 0, region, perf_source_region_bytes(size_bytes));
	else
		perf_message_write(pattern, 0, region, size_bytes);
}

const void *perf_source_message(struct perf_source *source, const struct perf_pattern *pattern,
				uint64_t number)
{
	unsigned char *message;

	if (!source->is_rotating) {
		perf_message_write(pattern, number, source->region, source->size_bytes);
		return source->region;
	}
	/* The header of the message before lies in this one's body, or a later one's: put the stream back. */
	perf_pattern_fill(pattern, source->stream, source->offset, source->region + source->offset,
			  PERF_PATTERN_HEADER_BYTES);
	source->step = (source->step + 1) % PERF_PATTERN_STEPS;
	source->offset = (size_t)source->step * 64;
	message = source->region + source->offset;
	header_write(pattern, number, source->stream, source->offset, source->size_bytes, message);
	return message;
}
