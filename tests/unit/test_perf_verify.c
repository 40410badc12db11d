/* SPDX-License-Identifier: BSD-2-Clause */
/* What came twice, late, damaged or never is counted as just that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mrc_perf_verify.h"
#include "mrc_perf_wire.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define END      UINT64_MAX       /* of a list of numbers */
#define BROKEN   (UINT64_MAX - 1) /* a message that does not say which it is */

static struct perf_verify verify;

struct row {
	const char *name;
	uint64_t numbers[12];
	bool is_unordered;
	uint64_t expected; /* sent, all answered OK */
	struct perf_counts want;
};

static void verify_counts_what_happened(void **state)
{
	static const struct row rows[] = {
		{"all well", {0, 1, 2, 3, END}, false, 4, {.checked = 4}},
		{"none came", {END}, false, 3, {.lost = 3}},
		{"one missing", {0, 2, 3, END}, false, 4, {.checked = 3, .lost = 1}},
		{"first missing", {1, 2, END}, false, 3, {.checked = 2, .lost = 1}},
		{"last missing", {0, 1, END}, false, 3, {.checked = 2, .lost = 1}},
		{"twice", {0, 1, 1, 2, END}, false, 3, {.checked = 4, .duplicated = 1}},
		{"twice, later", {0, 1, 2, 0, END}, false, 3, {.checked = 4, .duplicated = 1}},
		{"swapped", {0, 2, 1, 3, END}, false, 4, {.checked = 4, .reordered = 1}},
		{"swapped, allowed", {0, 2, 1, 3, END}, true, 4, {.checked = 4}},
		{"twice, unordered", {2, 0, 1, 0, END}, true, 3, {.checked = 4, .duplicated = 1}},
		{"late and twice",
		 {0, 2, 1, 1, END},
		 false,
		 3,
		 {.checked = 4, .duplicated = 1, .reordered = 1}},
		{"broken in the middle",
		 {0, BROKEN, 2, END},
		 false,
		 3,
		 {.checked = 3, .corrupted = 1}},
		{"broken at the end",
		 {0, 1, BROKEN, END},
		 false,
		 3,
		 {.checked = 3, .corrupted = 1}},
		{"broken and missing",
		 {0, BROKEN, 3, END},
		 false,
		 4,
		 {.checked = 3, .corrupted = 1, .lost = 1}},
		{"far ahead", {0, 200000, END}, false, 200001, {.checked = 2, .lost = 199999}},
		{"older than the window",
		 {0, 1, 200000, 0, END},
		 false,
		 2,
		 {.checked = 4, .duplicated = 1, .lost = 199998}},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct perf_counts got;

		perf_verify_init(&verify, rows[i].is_unordered);
		for (const uint64_t *n = rows[i].numbers; *n != END; n++)
			if (*n == BROKEN)
				perf_verify_unnumbered(&verify, false, false);
			else
				perf_verify_number(&verify, *n, true);
		got = (struct perf_counts){
			.checked = verify.checked,
			.lost = perf_verify_lost(verify.number_next, verify.skipped,
						 verify.unplaced, rows[i].expected, 0),
			.duplicated = verify.duplicated,
			.reordered = verify.reordered,
			.corrupted = verify.corrupted,
		};
		if (memcmp(&got, &rows[i].want, sizeof(got)) != 0)
			fail_msg("%s: lost %llu duplicated %llu reordered %llu corrupted %llu",
				 rows[i].name, (unsigned long long)got.lost,
				 (unsigned long long)got.duplicated,
				 (unsigned long long)got.reordered,
				 (unsigned long long)got.corrupted);
		assert_int_equal(perf_counts_are_clean(&got),
				 !got.lost && !got.duplicated && !got.reordered && !got.corrupted);
	}
}

static void verify_remembers_across_the_window(void **state)
{
	perf_verify_init(&verify, true);
	/* Each pair swapped, over several windows: no number is mistaken for one a window before. */
	for (uint64_t n = 0; n < 4 * PERF_VERIFY_WINDOW; n += 2) {
		assert_int_equal(perf_verify_number(&verify, n + 1, true), PERF_VERDICT_AHEAD);
		assert_int_equal(perf_verify_number(&verify, n, true), PERF_VERDICT_LATE);
		assert_int_equal(perf_verify_number(&verify, n, true), PERF_VERDICT_DUPLICATE);
	}
	assert_int_equal(verify.skipped, 0);
	assert_int_equal(verify.reordered, 0);
	assert_int_equal(verify.duplicated, 2 * PERF_VERIFY_WINDOW);
}

static void verify_of_uncountable_sizes_only_counts(void **state)
{
	perf_verify_init(&verify, false);
	for (int i = 0; i < 5; i++)
		perf_verify_unnumbered(&verify, true, true);
	assert_int_equal(verify.number_next, 5);
	assert_int_equal(perf_verify_lost(verify.number_next, verify.skipped, verify.unplaced, 6,
					  0),
			 1);
	assert_int_equal(verify.corrupted, 0);
}

static void verify_unknown_is_not_lost(void **state)
{
	/* Ten sent, seven answered OK, three unknown of which one came. */
	assert_int_equal(perf_verify_lost(8, 0, 0, 7, 0), 0);
	/* Unordered the seven may have any number below ten. */
	assert_int_equal(perf_verify_lost(10, 3, 0, 10, 3), 0);
	assert_int_equal(perf_verify_lost(10, 4, 0, 10, 3), 1);
}

static void wire_carries_all_fields(void **state)
{
	struct perf_setup setup = {.nonce = 1, .seed = 2, .size_bytes = 3, .mode = 4, .flags = 5},
			  setup_got = {0};
	struct perf_ask ask = {.nonce = 6}, ask_got = {0};
	struct perf_answer answer = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, answer_got = {0};
	unsigned char bytes[PERF_WIRE_ANSWER_BYTES];

	perf_setup_encode(&setup, bytes);
	assert_int_equal(perf_wire_kind(bytes, PERF_WIRE_BYTES), PERF_WIRE_SETUP);
	assert_int_equal(perf_setup_decode(bytes, PERF_WIRE_BYTES, &setup_got), 0);
	assert_memory_equal(&setup, &setup_got, sizeof(setup));
	assert_int_equal(perf_ask_decode(bytes, PERF_WIRE_BYTES, &ask_got), PERF_CODE_NOT_SETUP);
	perf_ask_encode(&ask, bytes);
	assert_int_equal(perf_wire_kind(bytes, PERF_WIRE_BYTES), PERF_WIRE_ASK);
	assert_int_equal(perf_ask_decode(bytes, PERF_WIRE_BYTES, &ask_got), 0);
	assert_memory_equal(&ask, &ask_got, sizeof(ask));
	perf_answer_encode(&answer, bytes);
	assert_int_equal(perf_wire_kind(bytes, sizeof(bytes)), PERF_WIRE_ANSWER);
	assert_int_equal(perf_answer_decode(bytes, sizeof(bytes), &answer_got), 0);
	assert_memory_equal(&answer, &answer_got, sizeof(answer));
}

static void wire_refuses_what_is_wrong(void **state)
{
	static const struct {
		struct perf_setup setup;
		int code;
	} rows[] = {
		{{.mode = 0}, PERF_CODE_MODE},
		{{.mode = 5}, PERF_CODE_MODE},
		{{.mode = 1, .flags = 8}, PERF_CODE_FLAGS},
		{{.mode = 1, .flags = 7}, 0},
	};
	struct perf_setup setup = {.mode = 1}, got;
	unsigned char bytes[PERF_WIRE_BYTES];

	for (size_t i = 0; i < COUNT(rows); i++) {
		perf_setup_encode(&rows[i].setup, bytes);
		assert_int_equal(perf_setup_decode(bytes, sizeof(bytes), &got), rows[i].code);
	}
	perf_setup_encode(&setup, bytes);
	for (size_t at = 0; at < sizeof(bytes); at++) {
		bytes[at] ^= 0x10;
		assert_int_not_equal(perf_setup_decode(bytes, sizeof(bytes), &got), 0);
		bytes[at] ^= 0x10;
	}
	for (size_t len = 0; len < sizeof(bytes); len++)
		assert_int_equal(perf_setup_decode(bytes, len, &got), PERF_CODE_NOT_SETUP);
	assert_int_equal(perf_wire_kind(bytes, 63), PERF_WIRE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verify_counts_what_happened),
		cmocka_unit_test(verify_remembers_across_the_window),
		cmocka_unit_test(verify_of_uncountable_sizes_only_counts),
		cmocka_unit_test(verify_unknown_is_not_lost),
		cmocka_unit_test(wire_carries_all_fields),
		cmocka_unit_test(wire_refuses_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
