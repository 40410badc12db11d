/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_crc: known sums, and continuing from a sum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mrcd_crc.h"

static void crc_gives_the_sums_of_rfc_3720(void **state)
{
	uint8_t zeros[32] = {0}, ones[32], up[32], down[32];
	const struct {
		const char *name;
		const void *data;
		size_t len;
		uint32_t want;
	} rows[] = {
		{"nothing", "", 0, 0},
		{"check value", "123456789", 9, 0xe3069283},
		{"one byte", "a", 1, 0xc1d04330},
		{"32 zeros", zeros, 32, 0x8a9136aa},
		{"32 ones", ones, 32, 0x62a8ab43},
		{"ascending", up, 32, 0x46dd794e},
		{"descending", down, 32, 0x113fdb5c},
	};

	memset(ones, 0xff, sizeof(ones));
	for (int i = 0; i < 32; i++) {
		up[i] = (uint8_t)i;
		down[i] = (uint8_t)(31 - i);
	}
	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		uint32_t got = mrcd_crc32c(0, rows[i].data, rows[i].len);

		if (got != rows[i].want)
			fail_msg("%s: %08x, want %08x", rows[i].name, got, rows[i].want);
	}
}

static void crc_of_the_parts_is_crc_of_the_whole(void **state)
{
	uint8_t data[257];
	struct mrc_rng rng = {.state = 7};
	uint32_t whole;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)mrc_rng_next(&rng);
	whole = mrcd_crc32c(0, data, sizeof(data));
	for (size_t cut = 0; cut <= sizeof(data); cut++) {
		uint32_t head = mrcd_crc32c(0, data, cut);

		assert_int_equal(mrcd_crc32c(head, data + cut, sizeof(data) - cut), whole);
	}
}

static void crc_is_an_mrc_crc32c_fn(void **state)
{
	mrc_crc32c_fn fn = mrcd_crc32c;

	assert_int_equal(fn(0, "123456789", 9), 0xe3069283);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_gives_the_sums_of_rfc_3720),
		cmocka_unit_test(crc_of_the_parts_is_crc_of_the_whole),
		cmocka_unit_test(crc_is_an_mrc_crc32c_fn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
