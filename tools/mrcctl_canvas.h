/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_canvas - a page of character cells, and how it is written to a terminal
 *
 * Text is put at a row and column and never leaves the cells it was given: what
 * is too long ends in an ellipsis, what lies beside the page is not there. Every
 * character is judged before it gets a cell, so that a name somebody chose can
 * neither drive the terminal nor move what stands beside it: control characters
 * (C0, DEL, C1), characters of no width (combining ones, those that turn the
 * direction of writing), unknown ones and broken UTF-8 come out as '?'. On a
 * page without UTF-8 so does all that is not ASCII.
 *
 * Widths are those of the C library's locale: with is_utf8 LC_CTYPE has to be
 * one of UTF-8.
 *
 * Units:     rows and columns from 0, in cells.
 * Ownership: texts are copied; the bytes of a frame are the caller's.
 * Threads:   one.  I/O, time: none.
 */
#ifndef MRCCTL_CANVAS_H
#define MRCCTL_CANVAS_H

#include <stdbool.h>
#include <stddef.h>

#include "mrcctl_table.h"

/* No page is larger: a terminal that says so is not believed. */
#define MRCCTL_CANVAS_ROWS_MAX    1000U
#define MRCCTL_CANVAS_COLUMNS_MAX 1000U

struct mrcctl_canvas;

/* All blank. More than the maximum is the maximum. NULL: no memory. */
struct mrcctl_canvas *mrcctl_canvas_new(size_t row_count, size_t column_count, bool is_utf8);
void mrcctl_canvas_free(struct mrcctl_canvas *canvas);

size_t mrcctl_canvas_rows(const struct mrcctl_canvas *canvas);
size_t mrcctl_canvas_columns(const struct mrcctl_canvas *canvas);
bool mrcctl_canvas_is_utf8(const struct mrcctl_canvas *canvas);

/* How many cells the text takes on this page, when nothing is cut. */
size_t mrcctl_canvas_width(const struct mrcctl_canvas *canvas, const char *text);

/*
 * Put `text` into `width` cells, at their left or right end; the other cells keep
 * what they have. Answers the cells that were taken.
 */
size_t mrcctl_canvas_put(struct mrcctl_canvas *canvas, size_t row, size_t column, size_t width,
			 enum mrcctl_align align, enum mrcctl_mood mood, const char *text);

/* The whole row is shown in reverse, as a bar. */
void mrcctl_canvas_reverse(struct mrcctl_canvas *canvas, size_t row);

/*
 * A row as text without what follows its last character; for plain output and for
 * tests. malloc'd; running out of memory aborts.
 */
char *mrcctl_canvas_row_text(const struct mrcctl_canvas *canvas, size_t row);

/*
 * The page as bytes for a terminal that is drawn over from its upper left corner,
 * every line to its end, without a byte more than the terminal has rows for.
 * *len_out of them, not ended by a 0; malloc'd; running out of memory aborts.
 */
char *mrcctl_canvas_frame(const struct mrcctl_canvas *canvas, bool has_colour, size_t *len_out);

#endif
