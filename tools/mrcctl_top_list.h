/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_top_list - rows of cells under headings, in a part of a page
 *
 * Columns are as wide as they have to be and two cells apart. When they do not
 * fit, those of the highest rank are left out; what is of rank 0 always stays, and
 * is cut where the page ends.
 *
 * Ownership: cells are copied.  Threads: one.  I/O, time: none.
 */
#ifndef MRCCTL_TOP_LIST_H
#define MRCCTL_TOP_LIST_H

#include "mrcctl_canvas.h"

#define MRCCTL_TOP_COLUMNS_MAX 16U

struct mrcctl_top_column {
	const char *heading;
	enum mrcctl_align align;
	unsigned rank;
	size_t width_min; /* so that numbers that change move nothing */
	size_t width_max; /* 0: none */
};

struct mrcctl_top_list;

/* `columns` must outlive the list; at most MRCCTL_TOP_COLUMNS_MAX. Running out of memory aborts. */
struct mrcctl_top_list *mrcctl_top_list_new(const struct mrcctl_top_column *columns,
					    size_t column_count);
void mrcctl_top_list_free(struct mrcctl_top_list *list);

/* The next cell; after the last of a row the next row begins. */
void mrcctl_top_list_add(struct mrcctl_top_list *list, enum mrcctl_mood mood, const char *format,
			 ...) __attribute__((format(printf, 3, 4)));

/*
 * The headings into `row`, the rows below. `note` stands behind the first heading;
 * "": nothing.
 */
void mrcctl_top_list_draw(const struct mrcctl_top_list *list, struct mrcctl_canvas *canvas,
			  size_t row, const char *note);

#endif
