/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_poison: a byte written into memory that was given back is found, wherever it is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mrcd_poison.h"

#define PAGE 4096ULL
#define KIB  1024ULL
#define MIB  (1024 * KIB)

static uint8_t *memory;
static struct mrcd_poison *poison;

static int setup(void **state)
{
	(void)state;
	memory = aligned_alloc(PAGE, 4 * MIB);
	assert_non_null(memory);
	memset(memory, 0, 4 * MIB);
	assert_int_equal(mrcd_poison_new(memory, 4 * MIB, &poison), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mrcd_poison_free(poison);
	mrcd_poison_free(NULL);
	free(memory);
	return 0;
}

static void memory_that_nobody_wrote_is_intact(void **state)
{
	uint64_t at = 99;

	(void)state;
	/* Never given back: whatever lies there is nobody's business. */
	assert_true(mrcd_poison_take(poison, 0, 4 * MIB, &at));
	mrcd_poison_fill(poison, 3 * PAGE, 5 * PAGE - 17);
	assert_int_equal(memory[3 * PAGE - 1], 0);
	assert_int_equal(memory[8 * PAGE], 0);
	assert_true(mrcd_poison_take(poison, 0, 4 * MIB, &at));
	/* Taken once, it is somebody's again. */
	memset(memory, 1, 4 * MIB);
	assert_true(mrcd_poison_take(poison, 0, 4 * MIB, &at));
	assert_int_equal(at, 99);
}

/* The first byte, the last, the one behind the message on its last page: all of them. */
static void late_write_of_one_byte_is_found_where_it_is(void **state)
{
	static const uint64_t places[] = {PAGE,         PAGE + 1,     PAGE + 7,     PAGE + 8,
					  2 * PAGE - 1, 2 * PAGE + 9, 4 * PAGE - 1, 3 * PAGE + 200};
	uint64_t at;

	(void)state;
	for (size_t i = 0; i < MRC_ARRAY_LEN(places); i++) {
		mrcd_poison_fill(poison, PAGE, 2 * PAGE + 100);
		memory[places[i]] ^= 0x10;
		at = 0;
		assert_false(mrcd_poison_take(poison, PAGE, 2 * PAGE + 100, &at));
		assert_int_equal(at, places[i]);
		/* Told once. */
		assert_true(mrcd_poison_take(poison, PAGE, 2 * PAGE + 100, &at));
	}
}

/* A run need not be taken as it was given back. */
static void part_of_a_run_is_taken_and_the_rest_stays_poisoned(void **state)
{
	uint64_t at;

	(void)state;
	mrcd_poison_fill(poison, 0, 8 * PAGE);
	memory[5 * PAGE + 3]++;
	assert_true(mrcd_poison_take(poison, 2 * PAGE, 2 * PAGE, &at));
	memory[2 * PAGE + 3]++;
	assert_false(mrcd_poison_take(poison, 0, 8 * PAGE, &at));
	assert_int_equal(at, 5 * PAGE + 3);
}

/* Poison of another place, as a stray copy would bring it, is no poison. */
static void no_two_pages_are_alike(void **state)
{
	uint64_t at;

	(void)state;
	mrcd_poison_fill(poison, 0, MIB);
	for (uint64_t a = 0; a < 16; a++)
		for (uint64_t b = 0; b < a; b++)
			assert_memory_not_equal(memory + a * PAGE, memory + b * PAGE, 16);
	memcpy(memory + PAGE, memory + 7 * PAGE, PAGE);
	assert_false(mrcd_poison_take(poison, 0, MIB, &at));
	assert_int_equal(at / PAGE, 1);
}

/* Above 1 MiB not all is looked at, but no stray fragment of 64 KiB can miss what is. */
static void fragment_cannot_miss_what_is_poisoned_of_a_long_run(void **state)
{
	uint64_t at;

	(void)state;
	for (uint64_t start = 0; start + 64 * KIB <= 4 * MIB; start += 60 * KIB) {
		mrcd_poison_fill(poison, 0, 4 * MIB);
		memset(memory + start, 0, 64 * KIB);
		assert_false(mrcd_poison_take(poison, 0, 4 * MIB, &at));
		assert_true(at >= start && at < start + 64 * KIB);
	}
	mrcd_poison_fill(poison, 0, MIB);
	memory[600 * KIB + 5]++;
	assert_false(mrcd_poison_take(poison, 0, MIB, &at));
}

static void bytes_are_poisoned_exactly(void **state)
{
	uint64_t at;

	(void)state;
	for (uint64_t start = 0; start < 9; start++) {
		for (uint64_t len = 0; len < 20; len++) {
			memset(memory, 0, 64);
			mrcd_poison_fill_bytes(poison, 16 + start, len);
			for (uint64_t i = 0; i < 64; i++)
				assert_int_equal(memory[i], i >= 16 + start && i < 16 + start + len
								    ? mrcd_poison_byte(i)
								    : 0);
			assert_true(mrcd_poison_holds_bytes(poison, 16 + start, len, &at));
			for (uint64_t i = 16 + start; i < 16 + start + len; i++) {
				memory[i] ^= 1;
				assert_false(mrcd_poison_holds_bytes(poison, 16 + start, len, &at));
				assert_int_equal(at, i);
				memory[i] ^= 1;
			}
		}
	}
}

static void mode_is_read_from_words(void **state)
{
	static const struct {
		const char *text;
		int want;
		struct mrcd_poison_mode mode;
	} cases[] = {
		{NULL, 0, {MRC_DEBUG, MRC_DEBUG, false}},
		{"", 0, {false, false, false}},
		{"off", 0, {false, false, false}},
		{"count", 0, {true, false, false}},
		{"abort", 0, {true, true, false}},
		{"hold", 0, {true, false, true}},
		{"abort,hold", 0, {true, true, true}},
		{"abort,off", 0, {false, false, false}},
		{"on", -EINVAL, {true, false, true}},
		{"abort hold", -EINVAL, {true, false, true}},
		{"abo", -EINVAL, {true, false, true}},
	};

	(void)state;
	for (size_t i = 0; i < MRC_ARRAY_LEN(cases); i++) {
		struct mrcd_poison_mode mode = {true, false, true};

		assert_int_equal(mrcd_poison_mode_read(cases[i].text, &mode), cases[i].want);
		assert_int_equal(mode.is_on, cases[i].mode.is_on);
		assert_int_equal(mode.is_fatal, cases[i].mode.is_fatal);
		assert_int_equal(mode.is_held, cases[i].mode.is_held);
	}
}

#define poison_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		poison_test(memory_that_nobody_wrote_is_intact),
		poison_test(late_write_of_one_byte_is_found_where_it_is),
		poison_test(part_of_a_run_is_taken_and_the_rest_stays_poisoned),
		poison_test(no_two_pages_are_alike),
		poison_test(fragment_cannot_miss_what_is_poisoned_of_a_long_run),
		poison_test(bytes_are_poisoned_exactly),
		cmocka_unit_test(mode_is_read_from_words),
	};

	return cmocka_run_group_tests_name("poison", tests, NULL, NULL);
}
