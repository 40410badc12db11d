/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_perf_pattern - what a verified message contains, and whether it still does
 *
 * A message of 64 bytes and more:
 *
 *   0   number     of the message on its channel, from 0
 *   8   nonce      of the channel: a message of another channel is not ours
 *   16  size       bytes of the whole message
 *   24  offset     where in its stream the body was cut out, a multiple of 64
 *   32  stream     (32 bit)
 *   36  magic      (32 bit)
 *   40  reserved   16 bytes of 0
 *   56  check      a hash of the 56 bytes before
 *   64  body       byte i of the message is byte (offset + i) of the stream
 *
 * A stream is endless and depends on the seed and the nonce: word p is a table of 4 KiB,
 * repeated, xor a key that is drawn anew for each (stream, 4 KiB block). So a
 * piece of a message that lands at another place, or in another message, or
 * that does not land and leaves what was there before, does not look right.
 *
 * The point of offset and stream: a sender keeps one prepared region per buffer
 * (struct perf_source) and cuts each message out at the next of 1021 places. It
 * writes 128 bytes per message however large that is; the receiver compares
 * all bytes with a table that stays in its first cache. 1021 is prime, so that
 * a landing memory with a power of two of buffers never sees the same message
 * body at the same place twice in a row.
 *
 * Smaller messages: 8 to 63 bytes begin with the number in 48 bits and a 16 bit
 * hash of it, the rest is stream (uint32_t)number from byte 8. 1 to 7 bytes are
 * the number's low bytes. 0 bytes can only be counted.
 *
 * Units:     bytes; all words little-endian.
 * Ownership: memory is the caller's.
 * Threads:   a pattern is read-only after init.  I/O, time: none.
 */
#ifndef MRC_PERF_PATTERN_H
#define MRC_PERF_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_PATTERN_HEADER_BYTES 64U
#define PERF_PATTERN_BLOCK_BYTES  4096U
#define PERF_PATTERN_STEPS        1021U
/* How much longer than its messages the region of a rotating source is. */
#define PERF_PATTERN_ROTATION_BYTES ((size_t)(PERF_PATTERN_STEPS - 1) * 64U)
/* Below this a message is written anew each time: that is cheaper than the longer region. */
#define PERF_PATTERN_ROTATE_FROM_BYTES 16384U

struct perf_pattern {
	uint64_t seed; /* of seed and nonce */
	uint64_t nonce;
	uint64_t table[PERF_PATTERN_BLOCK_BYTES / 8];
};

/* One send buffer and what is prepared in it. */
struct perf_source {
	unsigned char
		*region; /* lent by the caller; perf_source_region_bytes() of it, 64-byte aligned */
	size_t size_bytes; /* of each message */
	size_t offset;     /* where the last message began */
	uint32_t stream;
	uint32_t step;
	bool is_rotating;
};

/* What a look at a received message found. */
struct perf_look {
	uint64_t number;  /* when has_number */
	size_t damage_at; /* first wrong byte, when not intact */
	bool has_number;  /* the message says which it is, and can be believed */
	bool is_intact;   /* all bytes and the length are right */
};

/* splitmix64's finalizer: the only hash here. */
static inline uint64_t perf_mix64(uint64_t z)
{
	z += 0x9e3779b97f4a7c15ULL;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Hash of `len_bytes` (a multiple of 8) bytes. */
uint64_t perf_hash(const void *data, size_t len_bytes);

void perf_pattern_init(struct perf_pattern *pattern, uint64_t seed, uint64_t nonce);

/* Write bytes [offset, offset + len_bytes) of a stream; offset is a multiple of 8. */
void perf_pattern_fill(const struct perf_pattern *pattern, uint32_t stream, uint64_t offset,
		       void *out, size_t len_bytes);
/* Compare with the same: len_bytes when equal, else the position of the first difference. */
size_t perf_pattern_check(const struct perf_pattern *pattern, uint32_t stream, uint64_t offset,
			  const void *data, size_t len_bytes);

/* Write message `number` in full. */
void perf_message_write(const struct perf_pattern *pattern, uint64_t number, void *out,
			size_t size_bytes);

/*
 * Look at a received message that should have size_bytes.
 * A number is told only where it can be believed: has_number is false for
 * messages below 8 bytes and for damaged headers. A message of 1 to 7 bytes is
 * compared with `number_expected`; the others do not use it.
 */
void perf_message_look(const struct perf_pattern *pattern, const void *data, size_t len_bytes,
		       size_t size_bytes, uint64_t number_expected, struct perf_look *look_out);

size_t perf_source_region_bytes(size_t size_bytes);
/* Fill the region; the first message may be cut out afterwards. */
void perf_source_init(struct perf_source *source, const struct perf_pattern *pattern,
		      uint32_t stream, void *region, size_t size_bytes);
/*
 * Message `number`, ready to be sent; the one before from this source is gone,
 * so it must have been answered. Asking again for the same number is fine.
 */
const void *perf_source_message(struct perf_source *source, const struct perf_pattern *pattern,
				uint64_t number);

#endif
