/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mrc_buf.h"

static uint64_t take(struct mrc_bufs *bufs, uint64_t len_bytes)
{
	uint64_t offset = UINT64_MAX;

	assert_int_equal(mrc_bufs_take(bufs, len_bytes, &offset), 0);
	assert_int_equal(offset % MRC_BUF_ALIGN_BYTES, 0);
	assert_true(mrc_bufs_check(bufs));
	return offset;
}

static void give(struct mrc_bufs *bufs, uint64_t offset)
{
	assert_int_equal(mrc_bufs_give(bufs, offset), 0);
	assert_true(mrc_bufs_check(bufs));
}

static void buf_takes_the_lowest_place_that_fits(void **state)
{
	struct mrc_bufs *bufs;
	uint64_t a, b, c, d;

	assert_int_equal(mrc_bufs_new(4096, 64, &bufs), 0);
	a = take(bufs, 64);
	b = take(bufs, 128);
	c = take(bufs, 64);
	d = take(bufs, 256);
	assert_int_equal(a, 0);
	assert_int_equal(b, 64);
	assert_int_equal(c, 192);
	assert_int_equal(d, 256);
	give(bufs, a);
	give(bufs, b); /* joins a: 192 bytes from 0 */
	assert_int_equal(take(bufs, 192), 0);
	give(bufs, d);
	assert_int_equal(take(bufs, 1), 256); /* used again at once, not the untouched memory */
	mrc_bufs_free(bufs);
}

static void buf_lengths_have_edges(void **state)
{
	static const struct {
		const char *name;
		uint64_t len_bytes;
		int want;
	} cases[] = {
		{"nothing", 0, 0},
		{"one", 1, 0},
		{"all", 4096, 0},
		{"one more", 4097, -EMSGSIZE},
		{"would wrap when rounded up", UINT64_MAX, -EMSGSIZE},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct mrc_bufs *bufs;
		uint64_t offset;
		int r;

		assert_int_equal(mrc_bufs_new(4096 + 63, 4, &bufs), 0);
		r = mrc_bufs_take(bufs, cases[i].len_bytes, &offset);
		if (r != cases[i].want)
			fail_msg("%s: %d", cases[i].name, r);
		mrc_bufs_free(bufs);
	}
}

static void buf_is_refused_when_there_is_no_room_or_too_many(void **state)
{
	struct mrc_bufs *bufs;
	uint64_t offset;

	assert_int_equal(mrc_bufs_new(63, 4, &bufs), -EINVAL);
	assert_int_equal(mrc_bufs_new(0, 4, &bufs), -EINVAL);
	assert_int_equal(mrc_bufs_new(1024, 3, &bufs), 0);
	take(bufs, 64);
	take(bufs, 512);
	assert_int_equal(mrc_bufs_largest(bufs), 1024 - 576);
	assert_int_equal(mrc_bufs_take(bufs, 512, &offset), -ENOMEM);
	take(bufs, 64);
	assert_int_equal(mrc_bufs_take(bufs, 64, &offset), -ENOMEM); /* three are out */
	assert_int_equal(mrc_bufs_count(bufs), 3);
	mrc_bufs_free(bufs);
	mrc_bufs_free(NULL);
}

static void buf_that_was_not_taken_is_not_given_back(void **state)
{
	struct mrc_bufs *bufs;
	uint64_t a;

	assert_int_equal(mrc_bufs_new(4096, 16, &bufs), 0);
	a = take(bufs, 128);
	assert_int_equal(mrc_bufs_give(bufs, a + 64), -EINVAL);  /* within */
	assert_int_equal(mrc_bufs_give(bufs, a + 128), -EINVAL); /* free */
	assert_int_equal(mrc_bufs_give(bufs, UINT64_MAX), -EINVAL);
	give(bufs, a);
	assert_int_equal(mrc_bufs_give(bufs, a), -EINVAL); /* twice */
	assert_int_equal(mrc_bufs_largest(bufs), 4096);
	mrc_bufs_free(bufs);
}

#define MODEL_UNITS 4096U

/* Against a map of units: the lowest run of free units that is long enough is what must come. */
static void buf_agrees_with_a_simple_model(void **state)
{
	static uint8_t is_used[MODEL_UNITS];
	static uint32_t lens[MODEL_UNITS]; /* units of the buffer that begins here */
	struct mrc_bufs *bufs;
	uint64_t seed = 0x5eed;
	uint32_t count = 0;

	memset(is_used, 0, sizeof(is_used));
	memset(lens, 0, sizeof(lens));
	assert_int_equal(mrc_bufs_new(MODEL_UNITS * 64ULL, 3000, &bufs), 0);
	for (int step = 0; step < 20000; step++) {
		uint32_t random;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		random = (uint32_t)(seed >> 33);
		if (random % 100 < 52) {
			uint32_t len = (random / 100) % 5 == 0 ? 1 + (random / 1000) % 200
							       : 1 + (random / 1000) % 3;
			uint64_t offset = UINT64_MAX;
			uint32_t at = 0;
			uint32_t run = 0;
			int r = mrc_bufs_take(bufs, len * 64ULL - random % 64, &offset);

			for (at = 0; at < MODEL_UNITS && run < len; at++)
				run = is_used[at] ? 0 : run + 1;
			if (run < len) {
				assert_int_equal(r, -ENOMEM);
				continue;
			}
			assert_int_equal(r, 0);
			assert_int_equal(offset, (at - len) * 64ULL);
			memset(&is_used[at - len], 1, len);
			lens[at - len] = len;
			count++;
		} else {
			uint32_t at = random / 100 % MODEL_UNITS;
			uint32_t tries = 0;

			while (lens[at] == 0 && tries++ < MODEL_UNITS)
				at = (at + 1) % MODEL_UNITS;
			if (lens[at] == 0)
				continue;
			assert_int_equal(mrc_bufs_give(bufs, at * 64ULL), 0);
			memset(&is_used[at], 0, lens[at]);
			lens[at] = 0;
			count--;
		}
		assert_int_equal(mrc_bufs_count(bufs), count);
		if (step % 64 == 0)
			assert_true(mrc_bufs_check(bufs));
	}
	for (uint32_t at = 0; at < MODEL_UNITS; at++)
		if (lens[at])
			assert_int_equal(mrc_bufs_give(bufs, at * 64ULL), 0);
	assert_true(mrc_bufs_check(bufs));
	assert_int_equal(mrc_bufs_largest(bufs), MODEL_UNITS * 64ULL);
	mrc_bufs_free(bufs);
}

/* Every second one free, as many as there may be: where lists of free segments grow long. */
static void buf_survives_the_worst_fragmentation(void **state)
{
	struct mrc_bufs *bufs;
	uint64_t offset;

	assert_int_equal(mrc_bufs_new(MRC_BUFS_MAX * 64ULL, MRC_BUFS_MAX, &bufs), 0);
	for (uint32_t i = 0; i < MRC_BUFS_MAX; i++) {
		assert_int_equal(mrc_bufs_take(bufs, 64, &offset), 0);
		assert_int_equal(offset, i * 64ULL);
	}
	assert_int_equal(mrc_bufs_take(bufs, 64, &offset), -ENOMEM);
	for (uint32_t i = 0; i < MRC_BUFS_MAX; i += 2)
		assert_int_equal(mrc_bufs_give(bufs, i * 64ULL), 0);
	assert_true(mrc_bufs_check(bufs));
	assert_int_equal(mrc_bufs_largest(bufs), 64);
	assert_int_equal(mrc_bufs_take(bufs, 65, &offset), -ENOMEM);
	for (uint32_t i = 1; i < MRC_BUFS_MAX; i += 2)
		assert_int_equal(mrc_bufs_give(bufs, i * 64ULL), 0);
	assert_true(mrc_bufs_check(bufs));
	assert_int_equal(mrc_bufs_largest(bufs), MRC_BUFS_MAX * 64ULL);
	mrc_bufs_free(bufs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buf_takes_the_lowest_place_that_fits),
		cmocka_unit_test(buf_lengths_have_edges),
		cmocka_unit_test(buf_is_refused_when_there_is_no_room_or_too_many),
		cmocka_unit_test(buf_that_was_not_taken_is_not_given_back),
		cmocka_unit_test(buf_agrees_with_a_simple_model),
		cmocka_unit_test(buf_survives_the_worst_fragmentation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
