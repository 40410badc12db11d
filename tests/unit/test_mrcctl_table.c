/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables and units of mrcctl: what people see, character by character. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mrcctl_table.h"
#include "mrcctl_unit.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct unit_case {
	uint64_t value;
	const char *want;
};

static void unit_check(const struct unit_case *cases, size_t count,
		       const char *(*format)(uint64_t, char *))
{
	char text[64];

	for (size_t i = 0; i < count; i++)
		assert_string_equal(format(cases[i].value, text), cases[i].want);
}

static void units_of_bytes_are_binary_with_three_digits(void **state)
{
	static const struct unit_case cases[] = {
		{0, "0 B"},
		{1, "1 B"},
		{1023, "1023 B"},
		{1024, "1 KiB"},
		{1025, "1.00 KiB"},
		{1536, "1.50 KiB"},
		{10 * 1024 + 512, "10.5 KiB"},
		{128 * 1024, "128 KiB"},
		{1024 * 1024 - 1, "1023 KiB"},
		{1024 * 1024, "1 MiB"},
		{1234567890, "1.14 GiB"},
		{1ULL << 40, "1 TiB"},
		{UINT64_MAX, "16383 PiB"},
	};

	unit_check(cases, COUNT(cases), mrcctl_unit_bytes);
}

static void units_of_rates_are_decimal_and_never_rounded_up(void **state)
{
	static const struct unit_case cases[] = {
		{0, "0 b/s"},
		{999, "999 b/s"},
		{1000, "1 kb/s"},
		{999999, "999 kb/s"},
		{1000000000, "1 Gb/s"},
		{9414000000, "9.41 Gb/s"},
		{99990000000, "99.9 Gb/s"},
		{100000000000, "100 Gb/s"},
		{1600000000000, "1.60 Tb/s"},
		{UINT64_MAX, "18446744 Tb/s"},
	};

	unit_check(cases, COUNT(cases), mrcctl_unit_bits_per_s);
}

static void units_of_spans_go_from_ns_to_days(void **state)
{
	static const struct unit_case cases[] = {
		{0, "0 ns"},
		{999, "999 ns"},
		{1000, "1 us"},
		{31400, "31.4 us"},
		{1500000, "1.50 ms"},
		{999999999, "999 ms"},
		{1000000000, "1 s"},
		{59999999999, "59.9 s"},
		{60000000000, "1m 00s"},
		{3599000000000, "59m 59s"},
		{7500000000000, "2h 05m"},
		{90000000000000, "1d 01h"},
	};

	unit_check(cases, COUNT(cases), mrcctl_unit_span);
}

static void units_of_counts_set_thousands_apart(void **state)
{
	static const struct unit_case cases[] = {
		{0, "0"},
		{999, "999"},
		{1000, "1 000"},
		{1234567, "1 234 567"},
		{UINT64_MAX, "18 446 744 073 709 551 615"},
	};

	unit_check(cases, COUNT(cases), mrcctl_unit_count);
}

/* ---- tables ---- */

static const struct mrcctl_column three[] = {
	{"NAME", MRCCTL_LEFT},
	{"N", MRCCTL_RIGHT},
	{"NOTE", MRCCTL_LEFT},
};
static const struct mrcctl_column unnamed[] = {
	{"", MRCCTL_LEFT},
	{"", MRCCTL_RIGHT},
};

struct table_case {
	const char *name;
	const struct mrcctl_column *columns;
	size_t column_count;
	const char *cells[12];
	const char *want;
};

static void table_check(const struct table_case *c)
{
	struct mrcctl_table *table = mrcctl_table_new(c->columns, c->column_count);
	char *text = NULL;
	size_t text_bytes = 0;
	FILE *out = open_memstream(&text, &text_bytes);

	assert_non_null(table);
	assert_non_null(out);
	for (size_t i = 0; i < COUNT(c->cells) && c->cells[i] != NULL; i++)
		mrcctl_table_add(table, MRCCTL_BAD, "%s", c->cells[i]);
	mrcctl_table_print(table, out, false);
	fclose(out);
	if (strcmp(text, c->want) != 0)
		print_error("case: %s\n", c->name);
	assert_string_equal(text, c->want);
	free(text);
	mrcctl_table_free(table);
}

static void table_aligns_columns(void **state)
{
	static const struct table_case cases[] = {
		{.name = "no rows: the headings",
		 .columns = three,
		 .column_count = 3,
		 .cells = {NULL},
		 .want = "NAME  N  NOTE\n"},
		{.name = "cells wider than headings, numbers to the right",
		 .columns = three,
		 .column_count = 3,
		 .cells = {"rail-zero", "7", "x", "r1", "12345", "y"},
		 .want = "NAME           N  NOTE\n"
			 "rail-zero      7  x\n"
			 "r1         12345  y\n"},
		{.name = "no blanks behind a line's last cell",
		 .columns = three,
		 .column_count = 3,
		 .cells = {"a", "1", "", "b", "", "", "c", "", "note"},
		 .want = "NAME  N  NOTE\n"
			 "a     1\n"
			 "b\n"
			 "c        note\n"},
		{.name = "a column with nothing in it is left out",
		 .columns = three,
		 .column_count = 3,
		 .cells = {"a", "", "x", "b", "", "y"},
		 .want = "NAME  NOTE\n"
			 "a     x\n"
			 "b     y\n"},
		{.name = "width counts characters, not bytes",
		 .columns = three,
		 .column_count = 3,
		 .cells = {"\xc3\xa4\xc3\xb6\xc3\xbc", "1", "x", "aou", "2", "y"},
		 .want = "NAME  N  NOTE\n"
			 "\xc3\xa4\xc3\xb6\xc3\xbc   1  x\n"
			 "aou   2  y\n"},
		{.name = "control bytes do not reach the terminal",
		 .columns = three,
		 .column_count = 3,
		 .cells = {"a\033[2Jb", "1\n", "\x7f"},
		 .want = "NAME     N  NOTE\n"
			 "a?[2Jb  1?  ?\n"},
		{.name = "nor do those of UTF-8",
		 .columns = three,
		 .column_count = 3,
		 .cells = {"a\xc2\x9b"
			   "2J",
			   "\xc2\x80\xc2\x9f", "\xc2\xa0\xc3\x9b"},
		 .want = "NAME      N  NOTE\n"
			 "a??2J  ????  \xc2\xa0\xc3\x9b\n"},
		{.name = "no headings, no line of headings",
		 .columns = unnamed,
		 .column_count = 2,
		 .cells = {"clients", "3", "rails up", "4/4"},
		 .want = "clients     3\n"
			 "rails up  4/4\n"},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		table_check(&cases[i]);
}

static void table_colours_do_not_move_columns(void **state)
{
	struct mrcctl_table *table = mrcctl_table_new(three, COUNT(three));
	char *text = NULL;
	size_t text_bytes = 0;
	FILE *out = open_memstream(&text, &text_bytes);

	mrcctl_table_add(table, MRCCTL_PLAIN, "a");
	mrcctl_table_add(table, MRCCTL_BAD, "1");
	mrcctl_table_add(table, MRCCTL_WELL, "x");
	mrcctl_table_print(table, out, true);
	fclose(out);
	assert_string_equal(text, "\033[2mNAME\033[0m  \033[2mN\033[0m  \033[2mNOTE\033[0m\n"
				  "a     \033[31m1\033[0m  \033[32mx\033[0m\n");
	free(text);
	mrcctl_table_free(table);
}

static void table_wants_no_colour_in_a_file(void **state)
{
	FILE *out = tmpfile();

	assert_non_null(out);
	assert_false(mrcctl_table_wants_colour(out));
	fclose(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_of_bytes_are_binary_with_three_digits),
		cmocka_unit_test(units_of_rates_are_decimal_and_never_rounded_up),
		cmocka_unit_test(units_of_spans_go_from_ns_to_days),
		cmocka_unit_test(units_of_counts_set_thousands_apart),
		cmocka_unit_test(table_aligns_columns),
		cmocka_unit_test(table_colours_do_not_move_columns),
		cmocka_unit_test(table_wants_no_colour_in_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
