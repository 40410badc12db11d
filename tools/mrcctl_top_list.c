/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_top_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MRCCTL_TOP_GAP 2

struct mrcctl_top_cell {
	enum mrcctl_mood mood;
	char *text; /* ours */
};

struct mrcctl_top_list {
	const struct mrcctl_top_column *columns; /* the caller's */
	size_t column_count;
	struct mrcctl_top_cell *cells; /* ours; row after row */
	size_t cell_count, cells_max;
};

struct mrcctl_top_list *mrcctl_top_list_new(const struct mrcctl_top_column *columns,
					    size_t column_count)
{
	struct mrcctl_top_list *list = calloc(1, sizeof(*list));

	if (list == NULL || column_count > MRCCTL_TOP_COLUMNS_MAX)
		abort();
	list->columns = columns;
	list->column_count = column_count;
	return list;
}

void mrcctl_top_list_free(struct mrcctl_top_list *list)
{
	for (size_t i = 0; i < list->cell_count; i++)
		free(list->cells[i].text);
	free(list->cells);
	free(list);
}

void mrcctl_top_list_add(struct mrcctl_top_list *list, enum mrcctl_mood mood, const char *format,
			 ...)
{
	struct mrcctl_top_cell cell = {.mood = mood};
	va_list args;

	if (list->cell_count == list->cells_max) {
		list->cells_max = list->cells_max == 0 ? 128 : list->cells_max * 2;
		list->cells = reallocarray(list->cells, list->cells_max, sizeof(*list->cells));
		if (list->cells == NULL)
			abort();
	}
	va_start(args, format);
	if (vasprintf(&cell.text, format, args) < 0)
		abort();
	va_end(args);
	list->cells[list->cell_count++] = cell;
}

static size_t mrcctl_column_wants(const struct mrcctl_top_list *list, size_t column,
				  const struct mrcctl_canvas *canvas, const char *note)
{
	const struct mrcctl_top_column *c = &list->columns[column];
	size_t wants = mrcctl_canvas_width(canvas, c->heading) +
		       (column == 0 ? mrcctl_canvas_width(canvas, note) : 0);

	wants = wants > c->width_min ? wants : c->width_min;
	for (size_t i = column; i < list->cell_count; i += list->column_count) {
		size_t width = mrcctl_canvas_width(canvas, list->cells[i].text);

		wants = width > wants ? width : wants;
	}
	return c->width_max > 0 && wants > c->width_max ? c->width_max : wants;
}

/* A width of 0: left out. */
static void mrcctl_columns_fit(const struct mrcctl_top_list *list,
			       const struct mrcctl_canvas *canvas, const char *note, size_t *widths)
{
	size_t total = 0;

	for (size_t i = 0; i < list->column_count; i++) {
		widths[i] = mrcctl_column_wants(list, i, canvas, note);
		total += widths[i] + (i > 0 ? MRCCTL_TOP_GAP : 0);
	}
	while (total > mrcctl_canvas_columns(canvas)) {
		size_t least = 0;

		for (size_t i = 1; i < list->column_count; i++) {
			if (widths[i] > 0 && list->columns[i].rank > list->columns[least].rank)
				least = i;
		}
		if (list->columns[least].rank == 0)
			return;
		total -= widths[least] + MRCCTL_TOP_GAP;
		widths[least] = 0;
	}
}

void mrcctl_top_list_draw(const struct mrcctl_top_list *list, struct mrcctl_canvas *canvas,
			  size_t row, const char *note)
{
	size_t widths[MRCCTL_TOP_COLUMNS_MAX], column = 0;
	char heading[64];

	mrcctl_columns_fit(list, canvas, note, widths);
	for (size_t i = 0; i < list->column_count; i++) {
		const struct mrcctl_top_column *c = &list->columns[i];

		if (widths[i] == 0)
			continue;
		snprintf(heading, sizeof(heading), "%s%s", c->heading, i == 0 ? note : "");
		mrcctl_canvas_put(canvas, row, column, widths[i], c->align, MRCCTL_FAINT, heading);
		for (size_t cell = i; cell < list->cell_count; cell += list->column_count)
			mrcctl_canvas_put(canvas, row + 1 + cell / list->column_count, column,
					  widths[i], c->align, list->cells[cell].mood,
					  list->cells[cell].text);
		column += widths[i] + MRCCTL_TOP_GAP;
	}
}
