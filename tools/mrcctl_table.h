/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_table - rows of text as aligned columns
 *
 * Columns are as wide as their widest cell, two spaces apart; numbers stand to
 * the right. Nothing is printed behind the last cell of a line. A column in
 * which every cell is empty is left out, heading and all. Width counts
 * characters (UTF-8), not bytes, and control bytes of a cell come out as '?',
 * so that a name somebody chose cannot drive the terminal. Columns that all have
 * no heading get no line of headings.
 *
 * Ownership: cells are copied.
 * Threads:   one.  I/O: only the print.
 */
#ifndef MRCCTL_TABLE_H
#define MRCCTL_TABLE_H

#include <stdbool.h>
#include <stdio.h>

enum mrcctl_align { MRCCTL_LEFT, MRCCTL_RIGHT };

/* How a cell is to be looked at. Colours only. */
enum mrcctl_mood { MRCCTL_PLAIN, MRCCTL_WELL, MRCCTL_WORRY, MRCCTL_BAD, MRCCTL_FAINT };

struct mrcctl_column {
	const char *heading;
	enum mrcctl_align align;
};

struct mrcctl_table;

/* `columns` must outlive the table. NULL: no memory. */
struct mrcctl_table *mrcctl_table_new(const struct mrcctl_column *columns, size_t column_count);
void mrcctl_table_free(struct mrcctl_table *table);

/* Append the next cell; after column_count of them a new row begins. Running out of memory aborts. */
void mrcctl_table_add(struct mrcctl_table *table, enum mrcctl_mood mood, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Prints nothing but the headings when there are no rows. The last row must be complete. */
void mrcctl_table_print(const struct mrcctl_table *table, FILE *out, bool has_colour);

/* What switches a terminal to how that is shown; "" for MRCCTL_PLAIN. "\033[0m" ends it. */
const char *mrcctl_table_mood_code(enum mrcctl_mood mood);

/* Colours only on a terminal, and not when $NO_COLOR is set and not empty. */
bool mrcctl_table_wants_colour(FILE *out);

#endif
