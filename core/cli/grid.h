/* SPDX-License-Identifier: Apache-2.0 */
/* Tables on a terminal: columns as wide as what is in them, and no wider than the terminal. */
#ifndef CLI_GRID_H
#define CLI_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define GRID_COLUMNS 8

struct grid_column {
	const char *title;
	bool right;        /* numbers */
	uint32_t optional; /* left out where it is too narrow: the lowest first; 0: never */
};

struct grid {
	struct grid_column columns[GRID_COLUMNS];
	uint32_t ncolumns;
	struct buf text; /* the cells, each terminated, row by row */
	uint32_t ncells;
};

/* The next cell, printed by printf; made printable. */
void grid_cell(struct grid *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Titles and rows. The last column is cut where the line ends; width 0: no limit. */
void grid_print(const struct grid *, uint32_t width, struct buf *out);
void grid_fini(struct grid *);

/* Columns of standard output: $COLUMNS, the terminal's; 0: no limit. */
uint32_t grid_width(void);
/* Words in lines of at most this width, each behind so many spaces; the first line is begun, so
 * many columns of it are used. */
void grid_wrap(struct buf *out, const char *text, uint32_t used, uint32_t indent, uint32_t width);
#endif
