/* SPDX-License-Identifier: BSD-2-Clause */
/* A verified message is right as sent, and wrong after any damage to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mrc_perf_pattern.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MIB      (1024U * 1024U)

static const size_t sizes[] = {0,   1,   7,    8,    9,    15,    16,    63,    64,    65,
			       127, 128, 4095, 4096, 4097, 16383, 16384, 16385, 65536, 100003};

static struct perf_pattern pattern;

static struct perf_look look_at(const void *data, size_t len_bytes, size_t size_bytes,
				uint64_t number)
{
	struct perf_look look;

	perf_message_look(&pattern, data, len_bytes, size_bytes, number, &look);
	return look;
}

static int set_up(void **state)
{
	perf_pattern_init(&pattern, 7, 0x1234567890abcdef);
	return 0;
}

static void *region_new(size_t size_bytes)
{
	size_t bytes = (perf_source_region_bytes(size_bytes) + 127) / 64 * 64;
	void *region = aligned_alloc(64, bytes);

	assert_non_null(region);
	return region;
}

static void message_is_intact_as_sent(void **state)
{
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct perf_source source;
		void *region = region_new(sizes[i]);

		perf_source_init(&source, &pattern, 3, region, sizes[i]);
		/* More than once round, so that every place has been used and put back. */
		for (uint64_t n = 0; n < PERF_PATTERN_STEPS + 50; n++) {
			const void *data = perf_source_message(&source, &pattern, n);
			struct perf_look look = look_at(data, sizes[i], sizes[i], n);

			assert_true(look.is_intact);
			assert_int_equal(look.has_number, sizes[i] >= 8);
			if (look.has_number)
				assert_int_equal(look.number, n);
		}
		free(region);
	}
}

static void message_of_the_same_number_may_be_asked_for_again(void **state)
{
	size_t size = 65536;
	struct perf_source source;
	void *region = region_new(size);

	perf_source_init(&source, &pattern, 0, region, size);
	for (int i = 0; i < 3; i++)
		assert_true(look_at(perf_source_message(&source, &pattern, 5), size, size, 5)
				    .is_intact);
	free(region);
}

static void message_with_any_byte_flipped_is_damaged(void **state)
{
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct perf_source source;
		void *region = region_new(sizes[i]);
		unsigned char *copy = malloc(sizes[i] + 1);
		size_t step = sizes[i] > 20000 ? 37 : 1;

		perf_source_init(&source, &pattern, 1, region, sizes[i]);
		memcpy(copy, perf_source_message(&source, &pattern, 77), sizes[i]);
		for (size_t at = 0; at < sizes[i]; at += step)
			for (unsigned bit = 0; bit < 8; bit++) {
				struct perf_look look;

				copy[at] ^= (unsigned char)(1U << bit);
				look = look_at(copy, sizes[i], sizes[i], 77);
				if (look.is_intact)
					fail_msg("size %zu: bit %u of byte %zu", sizes[i], bit, at);
				if (look.has_number)
					assert_int_equal(look.damage_at, at);
				copy[at] ^= (unsigned char)(1U << bit);
			}
		assert_true(look_at(copy, sizes[i], sizes[i], 77).is_intact);
		free(copy);
		free(region);
	}
}

static void message_of_another_length_is_damaged(void **state)
{
	for (size_t i = 0; i < COUNT(sizes); i++) {
		unsigned char *data = calloc(1, sizes[i] + 64);

		perf_message_write(&pattern, 9, data, sizes[i]);
		for (size_t cut = 1; cut <= 64; cut++) {
			assert_false(look_at(data, sizes[i] + cut, sizes[i], 9).is_intact);
			if (cut <= sizes[i])
				assert_false(look_at(data, sizes[i] - cut, sizes[i], 9).is_intact);
		}
		free(data);
	}
}

/* A piece that landed elsewhere, or did not land over what was there before. */
static void message_with_a_misplaced_piece_is_damaged(void **state)
{
	static const size_t pieces[] = {64, 512, 4096, 8192, 65536, 262144};
	size_t size = MIB;
	struct perf_source sources[2];
	void *regions[2] = {region_new(size), region_new(size)};
	unsigned char *copy = malloc(size);

	for (uint32_t i = 0; i < 2; i++)
		perf_source_init(&sources[i], &pattern, i, regions[i], size);
	for (size_t p = 0; p < COUNT(pieces); p++) {
		size_t piece = pieces[p], at = size / 2;
		const unsigned char *first = perf_source_message(&sources[0], &pattern, 10);
		const unsigned char *other = perf_source_message(&sources[1], &pattern, 11);

		/* Swapped within the message. */
		memcpy(copy, first, size);
		memcpy(copy + at, first + at + piece, piece);
		memcpy(copy + at + piece, first + at, piece);
		assert_false(look_at(copy, size, size, 10).is_intact);
		assert_int_equal(look_at(copy, size, size, 10).number, 10);
		/* Of the message beside it, at the same place. */
		memcpy(copy, first, size);
		memcpy(copy + at, other + at, piece);
		assert_false(look_at(copy, size, size, 10).is_intact);
		/* Of the message before it in the same buffer, at the same place. */
		memcpy(copy, first, size);
		other = perf_source_message(&sources[0], &pattern, 12);
		memcpy(copy + at, other + at, piece);
		assert_false(look_at(copy, size, size, 10).is_intact);
	}
	free(copy);
	free(regions[0]);
	free(regions[1]);
}

static void message_of_another_channel_is_damaged(void **state)
{
	static const size_t some[] = {8, 63, 64, 4096};
	struct perf_pattern other;
	unsigned char data[4096];

	perf_pattern_init(&other, 7, 0xfeedbeef);
	for (size_t i = 0; i < COUNT(some); i++) {
		perf_message_write(&other, 5, data, some[i]);
		assert_false(look_at(data, some[i], some[i], 5).is_intact);
	}
	/* Nor would its body pass with our head: same seed, same stream, same place. */
	perf_message_write(&pattern, 5, data, 64);
	assert_false(look_at(data, sizeof(data), sizeof(data), 5).is_intact);
	perf_message_write(&other, 5, data, sizeof(data));
	assert_int_equal(perf_pattern_check(&other, 5, 64, data + 64, sizeof(data) - 64),
			 sizeof(data) - 64);
	assert_int_equal(perf_pattern_check(&pattern, 5, 64, data + 64, sizeof(data) - 64), 0);
}

static void pattern_is_the_same_at_any_cut(void **state)
{
	unsigned char whole[4 * PERF_PATTERN_BLOCK_BYTES], part[4 * PERF_PATTERN_BLOCK_BYTES];

	perf_pattern_fill(&pattern, 2, 0, whole, sizeof(whole));
	for (size_t at = 0; at < 2 * PERF_PATTERN_BLOCK_BYTES; at += 8)
		for (size_t len = 1; len < 5000; len += 613) {
			perf_pattern_fill(&pattern, 2, at, part, len);
			assert_memory_equal(part, whole + at, len);
			assert_int_equal(perf_pattern_check(&pattern, 2, at, whole + at, len), len);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_is_intact_as_sent),
		cmocka_unit_test(message_of_the_same_number_may_be_asked_for_again),
		cmocka_unit_test(message_with_any_byte_flipped_is_damaged),
		cmocka_unit_test(message_of_another_length_is_damaged),
		cmocka_unit_test(message_with_a_misplaced_piece_is_damaged),
		cmocka_unit_test(message_of_another_channel_is_damaged),
		cmocka_unit_test(pattern_is_the_same_at_any_cut),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
