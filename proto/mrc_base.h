/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_base - what every part of the engine uses: assertions, bounds, small types
 *
 * Threads: none of its own.  I/O, time: none.
 */
#ifndef MRC_BASE_H
#define MRC_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

_Noreturn void abort(void); /* the one thing the engine takes from libc beside mem*() */

/* For what is ours to get right; on in release builds too. */
#define MRC_ASSERT(cond)                          \
	do {                                      \
		if (__builtin_expect(!(cond), 0)) \
			abort();                  \
	} while (0)

#define MRC_ARRAY_LEN(a)   (sizeof(a) / sizeof((a)[0]))
#define MRC_MIN(a, b)      ((a) < (b) ? (a) : (b))
#define MRC_MAX(a, b)      ((a) > (b) ? (a) : (b))

#define MRC_NEVER          UINT64_MAX /* a deadline that does not come */

#define MRC_US             1000ULL
#define MRC_MS             1000000ULL
#define MRC_S              1000000000ULL

#define MRC_PATHS_MAX      16  /* paths of one conn */
#define MRC_NAME_MAX       63  /* host and service names, without the 0 */
#define MRC_WEIGHT_DEFAULT 100 /* of a flow's turns */
#define MRC_FRAG_BYTES_MAX \
	(256U * 1024U) /* of one fragment's payload; a peer's larger one is -EPROTO */

/* a * b / c. Nearly always 64 bits hold the product, and 128 cost some fifty instructions more. */
static inline uint64_t mrc_mul_div(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t product;

	if (!__builtin_mul_overflow(a, b, &product))
		return product / c;
	return (uint64_t)((unsigned __int128)a * b / c);
}

/* Memory for set-up, lent by the embedder; never called on the data path. alloc answers zeroed memory or NULL. */
struct mrc_alloc {
	void *(*alloc)(void *context, size_t bytes);
	void (*free)(void *context, void *memory);
	void *context;
};

/* CRC32C (Castagnoli, reflected) of `len` bytes, continuing from crc (0 to begin). Lent by the embedder. */
typedef uint32_t (*mrc_crc32c_fn)(uint32_t crc, const void *data, size_t len);

/* A small random generator (splitmix64), seeded by the embedder: same seed, same run. */
struct mrc_rng {
	uint64_t state;
};

static inline uint64_t mrc_rng_next(struct mrc_rng *rng)
{
	uint64_t z = (rng->state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

#endif
