/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_canvas.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define MRCCTL_CHARACTER_BYTES 5 /* of UTF-8, and the 0 */

struct mrcctl_canvas_cell {
	char character[MRCCTL_CHARACTER_BYTES]; /* "": the right half of the wide one before it */
	uint8_t mood;
};

struct mrcctl_canvas {
	size_t row_count, column_count;
	bool is_utf8;
	bool *is_reversed;                /* ours; one for each row */
	struct mrcctl_canvas_cell *cells; /* ours; row after row */
};

/* What a text's next character is shown as. */
struct mrcctl_character {
	char bytes[MRCCTL_CHARACTER_BYTES];
	size_t taken; /* bytes of the text; 0: it has ended */
	size_t width; /* cells: 1 or 2 */
};

static size_t mrcctl_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

struct mrcctl_canvas *mrcctl_canvas_new(size_t row_count, size_t column_count, bool is_utf8)
{
	struct mrcctl_canvas *canvas = calloc(1, sizeof(*canvas));

	if (canvas == NULL)
		return NULL;
	canvas->row_count = mrcctl_min(row_count, MRCCTL_CANVAS_ROWS_MAX);
	canvas->column_count = mrcctl_min(column_count, MRCCTL_CANVAS_COLUMNS_MAX);
	canvas->is_utf8 = is_utf8;
	canvas->is_reversed = calloc(canvas->row_count + 1, sizeof(*canvas->is_reversed));
	canvas->cells =
		calloc(canvas->row_count * canvas->column_count + 1, sizeof(*canvas->cells));
	if (canvas->is_reversed == NULL || canvas->cells == NULL) {
		mrcctl_canvas_free(canvas);
		return NULL;
	}
	for (size_t i = 0; i < canvas->row_count * canvas->column_count; i++)
		canvas->cells[i].character[0] = ' ';
	return canvas;
}

void mrcctl_canvas_free(struct mrcctl_canvas *canvas)
{
	if (canvas == NULL)
		return;
	free(canvas->is_reversed);
	free(canvas->cells);
	free(canvas);
}

size_t mrcctl_canvas_rows(const struct mrcctl_canvas *canvas)
{
	return canvas->row_count;
}

size_t mrcctl_canvas_columns(const struct mrcctl_canvas *canvas)
{
	return canvas->column_count;
}

bool mrcctl_canvas_is_utf8(const struct mrcctl_canvas *canvas)
{
	return canvas->is_utf8;
}

/* Bytes of the sequence that begins here; 0: it is no UTF-8. */
static size_t mrcctl_sequence_bytes(const char *text)
{
	unsigned char first = (unsigned char)text[0];
	size_t count = first < 0x80   ? 1
		       : first < 0xc2 ? 0
		       : first < 0xe0 ? 2
		       : first < 0xf0 ? 3
				      : 4;

	if (first > 0xf4)
		return 0;
	for (size_t i = 1; i < count; i++) {
		if (((unsigned char)text[i] & 0xc0) != 0x80)
			return 0;
	}
	return count;
}

/* The cells that one character takes, 0 when it is not for showing. */
static size_t mrcctl_character_width(const char *bytes, size_t count)
{
	mbstate_t state = {0};
	wchar_t wide;
	int width;

	if (mbrtowc(&wide, bytes, count, &state) != count)
		return 0;
	width = wcwidth(wide);
	return width == 1 || width == 2 ? (size_t)width : 0;
}

static struct mrcctl_character mrcctl_character_next(const struct mrcctl_canvas *canvas,
						     const char *text)
{
	struct mrcctl_character character = {.bytes = "?", .taken = 1, .width = 1};
	size_t count = mrcctl_sequence_bytes(text), width;

	if (text[0] == '\0')
		character.taken = 0;
	else if (count == 1 && text[0] >= ' ' && text[0] < 0x7f)
		character.bytes[0] = text[0];
	else if (count > 1) {
		character.taken = count;
		width = canvas->is_utf8 ? mrcctl_character_width(text, count) : 0;
		if (width > 0) {
			memcpy(character.bytes, text, count);
			character.bytes[count] = '\0';
			character.width = width;
		}
	}
	return character;
}

size_t mrcctl_canvas_width(const struct mrcctl_canvas *canvas, const char *text)
{
	struct mrcctl_character character;
	size_t width = 0;

	for (; (character = mrcctl_character_next(canvas, text)).taken > 0; text += character.taken)
		width += character.width;
	return width;
}

static void mrcctl_cell_set(struct mrcctl_canvas_cell *cell, enum mrcctl_mood mood,
			    const char *bytes)
{
	memcpy(cell->character, bytes, strlen(bytes) + 1);
	cell->mood = (uint8_t)mood;
}

/* A wide character of which one half is written over is whole no longer. */
static void mrcctl_cells_part(struct mrcctl_canvas_cell *row, size_t column_count, size_t column,
			      size_t width)
{
	if (row[column].character[0] == '\0')
		memcpy(row[column - 1].character, " ", 2);
	if (column + width < column_count && row[column + width].character[0] == '\0')
		memcpy(row[column + width].character, " ", 2);
}

size_t mrcctl_canvas_put(struct mrcctl_canvas *canvas, size_t row, size_t column, size_t width,
			 enum mrcctl_align align, enum mrcctl_mood mood, const char *text)
{
	size_t text_width = mrcctl_canvas_width(canvas, text), taken, used = 0;
	bool is_cut;
	struct mrcctl_canvas_cell *cells;
	struct mrcctl_character character;

	if (row >= canvas->row_count || column >= canvas->column_count)
		return 0;
	width = mrcctl_min(width, canvas->column_count - column);
	taken = mrcctl_min(text_width, width);
	if (taken == 0)
		return 0;
	if (align == MRCCTL_RIGHT)
		column += width - taken;
	is_cut = text_width > taken;
	cells = &canvas->cells[row * canvas->column_count];
	mrcctl_cells_part(cells, canvas->column_count, column, taken);
	cells += column;
	for (;; text += character.taken) {
		character = mrcctl_character_next(canvas, text);
		if (character.taken == 0 || used + character.width > taken - (is_cut ? 1 : 0))
			break;
		mrcctl_cell_set(&cells[used], mood, character.bytes);
		if (character.width == 2)
			mrcctl_cell_set(&cells[used + 1], mood, "");
		used += character.width;
	}
	if (is_cut)
		mrcctl_cell_set(&cells[used++], mood, canvas->is_utf8 ? "\u2026" : "~");
	while (used < taken) /* a wide one that had no place */
		mrcctl_cell_set(&cells[used++], mood, " ");
	return taken;
}

void mrcctl_canvas_reverse(struct mrcctl_canvas *canvas, size_t row)
{
	if (row < canvas->row_count)
		canvas->is_reversed[row] = true;
}

/* Cells up to the last that is not blank. */
static size_t mrcctl_row_end(const struct mrcctl_canvas *canvas, size_t row)
{
	const struct mrcctl_canvas_cell *cells = &canvas->cells[row * canvas->column_count];
	size_t end = canvas->column_count;

	while (end > 0 && strcmp(cells[end - 1].character, " ") == 0)
		end--;
	return end;
}

static FILE *mrcctl_stream_open(char **text, size_t *len)
{
	FILE *out = open_memstream(text, len);

	if (out == NULL)
		abort();
	return out;
}

static void mrcctl_stream_close(FILE *out)
{
	if (fclose(out) != 0)
		abort();
}

char *mrcctl_canvas_row_text(const struct mrcctl_canvas *canvas, size_t row)
{
	const struct mrcctl_canvas_cell *cells = &canvas->cells[row * canvas->column_count];
	size_t end = mrcctl_row_end(canvas, row), len;
	char *text;
	FILE *out = mrcctl_stream_open(&text, &len);

	for (size_t i = 0; i < end; i++)
		fputs(cells[i].character, out);
	mrcctl_stream_close(out);
	return text;
}

static void mrcctl_row_write(const struct mrcctl_canvas *canvas, size_t row, bool has_colour,
			     FILE *out)
{
	const struct mrcctl_canvas_cell *cells = &canvas->cells[row * canvas->column_count];
	bool is_reversed = canvas->is_reversed[row];
	size_t end = is_reversed ? canvas->column_count : mrcctl_row_end(canvas, row);
	enum mrcctl_mood mood = MRCCTL_PLAIN;

	if (is_reversed)
		fputs("\033[7m", out);
	for (size_t i = 0; i < end; i++) {
		if (has_colour && !is_reversed && cells[i].mood != mood) {
			mood = cells[i].mood;
			fprintf(out, "\033[0m%s", mrcctl_table_mood_code(mood));
		}
		fputs(cells[i].character, out);
	}
	if (is_reversed || mood != MRCCTL_PLAIN)
		fputs("\033[0m", out);
	/* Behind a full line the cursor stands on its last cell, which this would wipe out. */
	if (end < canvas->column_count)
		fputs("\033[K", out);
}

char *mrcctl_canvas_frame(const struct mrcctl_canvas *canvas, bool has_colour, size_t *len_out)
{
	char *text;
	FILE *out = mrcctl_stream_open(&text, len_out);

	fputs("\033[H", out);
	for (size_t row = 0; row < canvas->row_count; row++) {
		if (row > 0)
			fputs("\r\n", out);
		mrcctl_row_write(canvas, row, has_colour, out);
	}
	mrcctl_stream_close(out);
	return text;
}
