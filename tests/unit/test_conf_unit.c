/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_conf_unit: numbers with units, in and out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mrc_base.h"
#include "mrcd_conf_unit.h"

static void unit_parse_takes_numbers_with_units_only(void **state)
{
	static const struct {
		enum mrcd_unit unit;
		const char *text;
		int want;
		uint64_t value;
	} rows[] = {
		{MRCD_UNIT_COUNT, "0", 0, 0},
		{MRCD_UNIT_COUNT, "18446744073709551615", 0, UINT64_MAX},
		{MRCD_UNIT_COUNT, "18446744073709551616", -ERANGE, 0},
		{MRCD_UNIT_COUNT, "00", -EINVAL, 0},
		{MRCD_UNIT_COUNT, "", -EINVAL, 0},
		{MRCD_UNIT_COUNT, " 1", -EINVAL, 0},
		{MRCD_UNIT_COUNT, "1 ", -EINVAL, 0},
		{MRCD_UNIT_COUNT, "+1", -EINVAL, 0},
		{MRCD_UNIT_COUNT, "1e3", -EINVAL, 0},
		{MRCD_UNIT_COUNT, "1.0", -EINVAL, 0},
		{MRCD_UNIT_DURATION, "1ns", 0, 1},
		{MRCD_UNIT_DURATION, "10us", 0, 10000},
		{MRCD_UNIT_DURATION, "10ms", 0, 10000000},
		{MRCD_UNIT_DURATION, "1.5s", 0, 1500000000},
		{MRCD_UNIT_DURATION, "2 min", 0, 120 * MRC_S},
		{MRCD_UNIT_DURATION, "1h", 0, 3600 * MRC_S},
		{MRCD_UNIT_DURATION, "0", 0, 0},
		{MRCD_UNIT_DURATION, "0.0", 0, 0},
		{MRCD_UNIT_DURATION, "0ms", 0, 0},
		{MRCD_UNIT_DURATION, "0.000001s", 0, 1000},
		{MRCD_UNIT_DURATION, "0.0000001s", -EDOM, 0},
		{MRCD_UNIT_DURATION, "0.5ns", -EDOM, 0},
		{MRCD_UNIT_DURATION, "10", -EINVAL, 0},
		{MRCD_UNIT_DURATION, "10MS", -EINVAL, 0},
		{MRCD_UNIT_DURATION, "10m", -EINVAL, 0},
		{MRCD_UNIT_DURATION, "1.s", -EINVAL, 0},
		{MRCD_UNIT_DURATION, ".5s", -EINVAL, 0},
		{MRCD_UNIT_DURATION, "ms", -EINVAL, 0},
		{MRCD_UNIT_DURATION, "1ms ", -EINVAL, 0},
		{MRCD_UNIT_DURATION, "1,5s", -EINVAL, 0},
		{MRCD_UNIT_DURATION, "5124095h", 0, 5124095ULL * 3600 * MRC_S},
		{MRCD_UNIT_DURATION, "5124096h", -ERANGE, 0},
		{MRCD_UNIT_DURATION, "18446744073709551615.999999h", -ERANGE, 0},
		{MRCD_UNIT_DURATION, "99999999999999999999.999999h", -ERANGE, 0}, /* beyond 2^128 */
		{MRCD_UNIT_SIZE, "64KiB", 0, 65536},
		{MRCD_UNIT_SIZE, "0.5KiB", 0, 512},
		{MRCD_UNIT_SIZE, "1TiB", 0, 1ULL << 40},
		{MRCD_UNIT_SIZE, "16777215TiB", 0, 16777215ULL << 40},
		{MRCD_UNIT_SIZE, "16777216TiB", -ERANGE, 0},
		{MRCD_UNIT_SIZE, "64KB", -EINVAL, 0},
		{MRCD_UNIT_SIZE, "64k", -EINVAL, 0},
		{MRCD_UNIT_SIZE, "100Gb/s", -EINVAL, 0},
		{MRCD_UNIT_RATE, "100Gb/s", 0, 100000000000ULL},
		{MRCD_UNIT_RATE, "2.5Gb/s", 0, 2500000000ULL},
		{MRCD_UNIT_RATE, "9600bit/s", 0, 9600},
		{MRCD_UNIT_RATE, "1.6Tb/s", 0, 1600000000000ULL},
		{MRCD_UNIT_RATE, "100G", -EINVAL, 0},
		{MRCD_UNIT_RATE, "99999999999999999999999999999999999999999Gb/s", -ERANGE, 0},
		{MRCD_UNIT_RATE, "1.99999999999999999999999999999999999999999Gb/s", -EDOM, 0},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		uint64_t value = 0;
		int r = mrcd_unit_parse(rows[i].unit, rows[i].text, &value);

		if (r != rows[i].want || value != rows[i].value)
			fail_msg("'%s': answer %d, value %llu", rows[i].text, r,
				 (unsigned long long)value);
	}
}

static void unit_format_is_short_and_taken_back(void **state)
{
	static const struct {
		enum mrcd_unit unit;
		uint64_t value;
		const char *want;
	} rows[] = {
		{MRCD_UNIT_COUNT, 7471, "7471"},
		{MRCD_UNIT_DURATION, 0, "0"},
		{MRCD_UNIT_DURATION, 1500000, "1500us"},
		{MRCD_UNIT_DURATION, 90 * MRC_S, "90s"},
		{MRCD_UNIT_DURATION, UINT64_MAX, "18446744073709551615ns"},
		{MRCD_UNIT_SIZE, 65536, "64KiB"},
		{MRCD_UNIT_SIZE, 65537, "65537B"},
		{MRCD_UNIT_RATE, 2500000000ULL, "2500Mb/s"},
	};

	for (size_t i = 0; i < MRC_ARRAY_LEN(rows); i++) {
		char text[MRCD_UNIT_TEXT_BYTES];
		uint64_t back;

		assert_string_equal(mrcd_unit_format(rows[i].unit, rows[i].value, text),
				    rows[i].want);
		assert_int_equal(mrcd_unit_parse(rows[i].unit, text, &back), 0);
		assert_true(back == rows[i].value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unit_parse_takes_numbers_with_units_only),
		cmocka_unit_test(unit_format_is_short_and_taken_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
