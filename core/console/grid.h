/* SPDX-License-Identifier: Apache-2.0 */
/* Tables on a terminal: columns are as wide as their cells, and the table as the terminal. */
#ifndef CONSOLE_GRID_H
#define CONSOLE_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define GRID_COLUMNS 9

struct grid_column {
	const char *title;
	bool right;        /* numbers */
	uint32_t optional; /* dropped on a narrow terminal, the lowest number first; 0: never */
};

struct grid {
	struct grid_column columns[GRID_COLUMNS];
	uint32_t ncolumns;
	struct buf text; /* the cells, each with a NUL, row by row */
	uint32_t ncells;
};

/* Appends the next cell; control characters are replaced. An error is reported by grid_print(). */
void grid_cell(struct grid *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends titles and rows. A last column of text is truncated at the width; 0: no limit. */
void grid_print(const struct grid *, uint32_t width, struct buf *out);
void grid_fini(struct grid *);

/* Width of standard output: $COLUMNS, or that of the terminal; 0: it is no terminal. */
uint32_t grid_width(void);
/* Appends the words of the text in lines of at most `width` columns (0: no limit) and a newline.
 * `used` columns of the first line are in use; the others are indented. */
void grid_wrap(struct buf *out, const char *text, uint32_t used, uint32_t indent, uint32_t width);
#endif
