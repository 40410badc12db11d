/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz - what the fuzz targets share: an input that is read as a program, and an oracle
 *
 * A target is one source with fuzz_one(). Linked with libFuzzer it searches; linked with
 * replay_main.c it runs the files of a corpus again. An input that has been read to its end
 * gives zeros, so every input is a program and shortening one keeps its beginning.
 *
 * Same input, same run: nothing here reads a clock, and what a target keeps between inputs may
 * not change what the next one does.
 */
#ifndef MRC_FUZZ_H
#define MRC_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What both mains call. libFuzzer wants the first name, and takes 0 for "keep it if it is new". */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A claim about the code under test; also where the build leaves assert() out. */
#define FUZZ_CHECK(condition)                                                             \
	do {                                                                              \
		if (!(condition)) {                                                       \
			fprintf(stderr, "%s:%d: %s: does not hold\n", __FILE__, __LINE__, \
				#condition);                                              \
			abort();                                                          \
		}                                                                         \
	} while (0)

struct fuzz_input {
	const uint8_t *at;
	const uint8_t *end;
};

static inline bool fuzz_is_over(const struct fuzz_input *in)
{
	return in->at == in->end;
}

static inline uint8_t fuzz_u8(struct fuzz_input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static inline uint64_t fuzz_uint(struct fuzz_input *in, int bytes)
{
	uint64_t v = 0;

	for (int i = 0; i < bytes; i++)
		v |= (uint64_t)fuzz_u8(in) << 8 * i;
	return v;
}

/* 0 to n - 1; n is 1 to 256. */
static inline uint32_t fuzz_below(struct fuzz_input *in, uint32_t n)
{
	return fuzz_u8(in) % n;
}

static inline bool fuzz_flip(struct fuzz_input *in)
{
	return fuzz_u8(in) & 1;
}

/*
 * A number near where things change: mostly one of the landmarks or its neighbour, sometimes
 * anything. The landmarks are what a valid input would have here.
 */
static inline uint64_t fuzz_near(struct fuzz_input *in, const uint64_t *landmarks, uint32_t count)
{
	uint8_t how = fuzz_u8(in);
	uint64_t v = landmarks[(how & 0x1f) % count];

	switch (how >> 5) {
	case 5:
		return v + 1;
	case 6:
		return v - 1;
	case 7:
		return how & 1 ? fuzz_uint(in, 8) : v + fuzz_u8(in);
	default:
		return v;
	}
}

#define FUZZ_NEAR(in, ...)                             \
	fuzz_near(in, (const uint64_t[]){__VA_ARGS__}, \
		  sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* CRC32C by table; the code under test takes its checksum as an argument. */
static inline uint32_t fuzz_crc32c(uint32_t crc, const void *data, size_t len)
{
	static uint32_t table[256];
	const uint8_t *p = data;

	for (uint32_t i = 0; i < 256 && !table[255]; i++) {
		uint32_t v = i;

		for (int bit = 0; bit < 8; bit++)
			v = v & 1 ? v >> 1 ^ 0x82f63b78U : v >> 1;
		table[i] = v;
	}
	crc = ~crc;
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return ~crc;
}

/* An exact copy on the heap, so that reading one byte too many is seen. The caller frees it. */
static inline uint8_t *fuzz_copy(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	FUZZ_CHECK(copy != NULL);
	if (len)
		memcpy(copy, data, len);
	return copy;
}

#endif
