/* SPDX-License-Identifier: BSD-2-Clause */
/* A page of cells: nothing leaves its cells, and no text drives the terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <locale.h>

#include "mrcctl_canvas.h"

static void is_row(const struct mrcctl_canvas *canvas, size_t row, const char *want)
{
	char *text = mrcctl_canvas_row_text(canvas, row);

	assert_string_equal(text, want);
	free(text);
}

static void canvas_keeps_text_within_its_cells(void **state)
{
	static const struct {
		const char *name, *text, *want;
		bool is_utf8;
		size_t column, width;
		enum mrcctl_align align;
	} cases[] = {
		{"fits", "abc", "|abc    |", true, 1, 7, MRCCTL_LEFT},
		{"to the right", "abc", "|    abc|", true, 1, 7, MRCCTL_RIGHT},
		{"just fits", "abcdefg", "|abcdefg|", true, 1, 7, MRCCTL_LEFT},
		{"is cut", "abcdefgh", "|abcdef\u2026|", true, 1, 7, MRCCTL_LEFT},
		{"is cut, to the right", "abcdefgh", "|abcdef\u2026|", true, 1, 7, MRCCTL_RIGHT},
		{"is cut, ASCII", "abcdefgh", "|abcdef~|", false, 1, 7, MRCCTL_LEFT},
		{"one cell", "abc", "|~      |", false, 1, 1, MRCCTL_LEFT},
		{"no cell", "abc", "|       |", true, 1, 0, MRCCTL_LEFT},
		{"nothing", "", "|       |", true, 1, 7, MRCCTL_RIGHT},
		{"up to the edge", "abcdefgh", "|     ab\u2026", true, 6, 100, MRCCTL_LEFT},
		{"beside the page", "abc", "|       |", true, 9, 5, MRCCTL_LEFT},
		{"beyond it", "abc", "|       |", true, SIZE_MAX, 5, MRCCTL_LEFT},
		{"wide ones", "\u4e2d\u6587x", "|\u4e2d\u6587x  |", true, 1, 7, MRCCTL_LEFT},
		{"a wide one is cut", "\u4e2d\u6587", "|\u4e2d\u2026    |", true, 1, 3,
		 MRCCTL_LEFT},
		{"no room for half", "\u4e2d\u6587", "|\u2026      |", true, 1, 2, MRCCTL_LEFT},
		{"wide ones as ASCII", "\u4e2d\u6587", "|??     |", false, 1, 7, MRCCTL_LEFT},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mrcctl_canvas *canvas = mrcctl_canvas_new(3, 9, cases[i].is_utf8);
		char *text;

		assert_non_null(canvas);
		mrcctl_canvas_put(canvas, 1, 0, 1, MRCCTL_LEFT, MRCCTL_PLAIN, "|");
		mrcctl_canvas_put(canvas, 1, 8, 1, MRCCTL_LEFT, MRCCTL_PLAIN, "|");
		mrcctl_canvas_put(canvas, 1, cases[i].column, cases[i].width, cases[i].align,
				  MRCCTL_PLAIN, cases[i].text);
		text = mrcctl_canvas_row_text(canvas, 1);
		if (strcmp(text, cases[i].want) != 0)
			fail_msg("%s: \"%s\", not \"%s\"", cases[i].name, text, cases[i].want);
		free(text);
		is_row(canvas, 0, "");
		is_row(canvas, 2, "");
		mrcctl_canvas_free(canvas);
	}
}

static void canvas_shows_nothing_that_drives_the_terminal(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"\033[2J", "?[2J"},
		{"a\nb\rc\td\b\a", "a?b?c?d??"},
		{"\x7f", "?"},
		{"\xc2\x9b"
		 "2J",
		 "?2J"},           /* C1: CSI */
		{"\xc2\x85", "?"}, /* next line */
		{"\x9b", "?"},     /* not UTF-8 */
		{"\xe2\x80\xae"
		 "abc",
		 "?abc"},                  /* right to left from here */
		{"e\xcc\x81", "e?"},       /* combining */
		{"\xe2\x80\x8b", "?"},     /* of no width */
		{"\xc0\xaf", "??"},        /* too long a form */
		{"\xe0\x80\xaf", "?"},     /* the same of three */
		{"\xed\xa0\x80", "?"},     /* half of a pair */
		{"\xf4\x90\x80\x80", "?"}, /* beyond Unicode */
		{"\xf5\x80\x80\x80", "????"},
		{"\xe2\x82", "??"}, /* ends too soon */
		{"\xe2\x82"
		 "x",
		 "??x"},
		{"\xff\xfe", "??"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int is_utf8 = 0; is_utf8 < 2; is_utf8++) {
			struct mrcctl_canvas *canvas = mrcctl_canvas_new(1, 20, is_utf8);
			char *text;

			assert_non_null(canvas);
			mrcctl_canvas_put(canvas, 0, 0, 20, MRCCTL_LEFT, MRCCTL_PLAIN,
					  cases[i].text);
			text = mrcctl_canvas_row_text(canvas, 0);
			if (strcmp(text, cases[i].want) != 0)
				fail_msg("case %zu: \"%s\", not \"%s\"", i, text, cases[i].want);
			free(text);
			mrcctl_canvas_free(canvas);
		}
	}
}

static void canvas_leaves_no_half_of_a_wide_character(void **state)
{
	struct mrcctl_canvas *canvas = mrcctl_canvas_new(2, 6, true);

	assert_non_null(canvas);
	mrcctl_canvas_put(canvas, 0, 0, 6, MRCCTL_LEFT, MRCCTL_PLAIN, "\u4e2d\u6587");
	mrcctl_canvas_put(canvas, 0, 1, 2, MRCCTL_LEFT, MRCCTL_PLAIN, "ab");
	is_row(canvas, 0, " ab");
	mrcctl_canvas_put(canvas, 1, 0, 6, MRCCTL_LEFT, MRCCTL_PLAIN, "\u4e2d\u6587");
	mrcctl_canvas_put(canvas, 1, 2, 1, MRCCTL_LEFT, MRCCTL_PLAIN, "a");
	is_row(canvas, 1, "\u4e2da");
	mrcctl_canvas_free(canvas);
}

static void is_frame(const struct mrcctl_canvas *canvas, bool has_colour, const char *want)
{
	size_t len;
	char *frame = mrcctl_canvas_frame(canvas, has_colour, &len);

	assert_int_equal(len, strlen(want));
	assert_memory_equal(frame, want, len);
	free(frame);
}

static void a_frame_draws_every_row_to_its_end_and_scrolls_nothing(void **state)
{
	struct mrcctl_canvas *canvas = mrcctl_canvas_new(4, 5, false);

	assert_non_null(canvas);
	mrcctl_canvas_put(canvas, 0, 0, 5, MRCCTL_LEFT, MRCCTL_PLAIN, "top");
	mrcctl_canvas_reverse(canvas, 0);
	mrcctl_canvas_put(canvas, 1, 0, 2, MRCCTL_LEFT, MRCCTL_BAD, "ab");
	mrcctl_canvas_put(canvas, 1, 3, 1, MRCCTL_LEFT, MRCCTL_PLAIN, "c");
	mrcctl_canvas_put(canvas, 3, 0, 5, MRCCTL_LEFT, MRCCTL_WELL, "whole");
	is_frame(canvas, false, "\033[H\033[7mtop  \033[0m\r\nab c\033[K\r\n\033[K\r\nwhole");
	is_frame(canvas, true,
		 "\033[H\033[7mtop  \033[0m\r\n\033[0m\033[31mab\033[0m c\033[K\r\n\033[K\r\n"
		 "\033[0m\033[32mwhole\033[0m");
	mrcctl_canvas_free(canvas);
}

static void canvas_of_no_or_too_many_cells_is_one(void **state)
{
	static const size_t sizes[][2] = {{0, 0}, {0, 80}, {24, 0}, {1, 1}, {SIZE_MAX, SIZE_MAX}};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct mrcctl_canvas *canvas = mrcctl_canvas_new(sizes[i][0], sizes[i][1], true);
		size_t len;
		char *frame;

		assert_non_null(canvas);
		assert_true(mrcctl_canvas_rows(canvas) <= MRCCTL_CANVAS_ROWS_MAX);
		assert_true(mrcctl_canvas_columns(canvas) <= MRCCTL_CANVAS_COLUMNS_MAX);
		mrcctl_canvas_put(canvas, 0, 0, 80, MRCCTL_LEFT, MRCCTL_WELL, "abc");
		mrcctl_canvas_reverse(canvas, sizes[i][0]);
		frame = mrcctl_canvas_frame(canvas, true, &len);
		assert_true(len >= 3);
		free(frame);
		mrcctl_canvas_free(canvas);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(canvas_keeps_text_within_its_cells),
		cmocka_unit_test(canvas_shows_nothing_that_drives_the_terminal),
		cmocka_unit_test(canvas_leaves_no_half_of_a_wide_character),
		cmocka_unit_test(a_frame_draws_every_row_to_its_end_and_scrolls_nothing),
		cmocka_unit_test(canvas_of_no_or_too_many_cells_is_one),
	};

	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) {
		printf("skipped: the C library has no locale C.UTF-8\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
