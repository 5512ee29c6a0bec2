/* SPDX-License-Identifier: Apache-2.0 */
/* Where functions begin and end by the call frame information: .eh_frame and .debug_frame. */
#ifndef SYMBOLS_FDE_H
#define SYMBOLS_FDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source;

struct fde {
	uint64_t start, end;
};

struct fdes {
	struct fde *p; /* sorted by start; owned */
	size_t n, cap;
};

/* Adds the functions of one file's sections, as many as can be read: what lies ends its section. 0
 * or -ENOMEM. */
int fdes_add(struct fdes *, const struct source *);
void fdes_sort(struct fdes *); /* once, after the last add */
void fdes_fini(struct fdes *);
const struct fde *fdes_find(const struct fdes *, uint64_t addr); /* that holds addr, or NULL */
/* The end of the last function that ends at or before addr; 0 none. */
uint64_t fdes_gap(const struct fdes *, uint64_t addr);
#endif
