/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MRCCTL_COLUMN_GAP 2

struct mrcctl_cell {
	enum mrcctl_mood mood;
	char *text; /* ours */
};

struct mrcctl_table {
	const struct mrcctl_column *columns; /* the caller's */
	size_t column_count;
	struct mrcctl_cell *cells; /* ours; row after row */
	size_t cell_count, cells_max;
};

struct mrcctl_table *mrcctl_table_new(const struct mrcctl_column *columns, size_t column_count)
{
	struct mrcctl_table *table = calloc(1, sizeof(*table));

	if (table == NULL)
		return NULL;
	table->columns = columns;
	table->column_count = column_count;
	return table;
}

void mrcctl_table_free(struct mrcctl_table *table)
{
	if (table == NULL)
		return;
	for (size_t i = 0; i < table->cell_count; i++)
		free(table->cells[i].text);
	free(table->cells);
	free(table);
}

static void mrcctl_table_grow(struct mrcctl_table *table)
{
	size_t cells_max = table->cells_max == 0 ? 64 : table->cells_max * 2;
	struct mrcctl_cell *cells = reallocarray(table->cells, cells_max, sizeof(*cells));

	if (cells == NULL)
		abort();
	table->cells = cells;
	table->cells_max = cells_max;
}

void mrcctl_table_add(struct mrcctl_table *table, enum mrcctl_mood mood, const char *format, ...)
{
	struct mrcctl_cell cell = {.mood = mood};
	va_list args;

	if (table->cell_count == table->cells_max)
		mrcctl_table_grow(table);
	va_start(args, format);
	if (vasprintf(&cell.text, format, args) < 0)
		abort();
	va_end(args);
	for (unsigned char *at = (unsigned char *)cell.text; *at != '\0'; at++) {
		if (at[0] == 0xc2 && at[1] >= 0x80 &&
		    at[1] < 0xa0) /* C1 in UTF-8: one is as good as ESC [ */
			at[0] = at[1] = '?';
		else if (*at < 0x20 || *at == 0x7f)
			*at = '?';
	}
	table->cells[table->cell_count++] = cell;
}

/* Characters of UTF-8: every byte that does not continue one. */
static size_t mrcctl_text_width(const char *text)
{
	size_t width = 0;

	for (; *text != '\0'; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

/* 0: the column has nothing to show and is left out. */
static size_t mrcctl_column_width(const struct mrcctl_table *table, size_t column)
{
	size_t width = 0, heading = mrcctl_text_width(table->columns[column].heading);

	for (size_t i = column; i < table->cell_count; i += table->column_count) {
		size_t cell = mrcctl_text_width(table->cells[i].text);

		width = cell > width ? cell : width;
	}
	if (width == 0 && table->cell_count > 0)
		return 0;
	return width > heading ? width : heading;
}

const char *mrcctl_table_mood_code(enum mrcctl_mood mood)
{
	switch (mood) {
	case MRCCTL_PLAIN:
		break;
	case MRCCTL_WELL:
		return "\033[32m";
	case MRCCTL_WORRY:
		return "\033[33m";
	case MRCCTL_BAD:
		return "\033[31m";
	case MRCCTL_FAINT:
		return "\033[2m";
	}
	return "";
}

/* One line. Blanks are owed until a cell follows them, so that none end the line. */
static void mrcctl_line_print(const struct mrcctl_table *table, const struct mrcctl_cell *cells,
			      const size_t *widths, FILE *out, bool has_colour)
{
	size_t owed = 0;

	for (size_t i = 0; i < table->column_count; i++) {
		size_t width = mrcctl_text_width(cells[i].text);
		const char *code = has_colour ? mrcctl_table_mood_code(cells[i].mood) : "";

		if (widths[i] == 0)
			continue;
		if (table->columns[i].align == MRCCTL_RIGHT)
			owed += widths[i] - width;
		if (width > 0) {
			fprintf(out, "%*s%s%s%s", (int)owed, "", code, cells[i].text,
				code[0] != '\0' ? "\033[0m" : "");
			owed = 0;
		}
		if (table->columns[i].align == MRCCTL_LEFT)
			owed += widths[i] - width;
		owed += MRCCTL_COLUMN_GAP;
	}
	fputc('\n', out);
}

void mrcctl_table_print(const struct mrcctl_table *table, FILE *out, bool has_colour)
{
	size_t *widths = calloc(table->column_count, sizeof(*widths));
	struct mrcctl_cell *headings = calloc(table->column_count, sizeof(*headings));
	bool has_heading = false;

	if (widths == NULL || headings == NULL || table->cell_count % table->column_count != 0)
		abort();
	for (size_t i = 0; i < table->column_count; i++) {
		widths[i] = mrcctl_column_width(table, i);
		headings[i].mood = MRCCTL_FAINT;
		has_heading = has_heading || table->columns[i].heading[0] != '\0';
		headings[i].text = strdup(table->columns[i].heading);
		if (headings[i].text == NULL)
			abort();
	}
	if (has_heading)
		mrcctl_line_print(table, headings, widths, out, has_colour);
	for (size_t i = 0; i < table->cell_count; i += table->column_count)
		mrcctl_line_print(table, &table->cells[i], widths, out, has_colour);
	for (size_t i = 0; i < table->column_count; i++)
		free(headings[i].text);
	free(headings);
	free(widths);
}

bool mrcctl_table_wants_colour(FILE *out)
{
	const char *no_color = getenv("NO_COLOR");

	return isatty(fileno(out)) && (no_color == NULL || no_color[0] == '\0');
}
