/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of functions by call frame information: .eh_frame and .debug_frame. ELF virtual
 * addresses. */
#ifndef SYMBOLS_FDE_H
#define SYMBOLS_FDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source;

struct fde {
	uint64_t start, end; /* [start, end); start first, for array_count_to() */
};

struct fdes {
	struct fde *p; /* sorted by start; owned */
	size_t n, cap;
};

/* Adds the functions of a file: of .eh_frame up to the first entry that is malformed, of
 * .debug_frame if no entry is. 0 or -ENOMEM. */
int fdes_add(struct fdes *, const struct source *);
/* To be called once, after the last add. */
void fdes_sort(struct fdes *);
void fdes_fini(struct fdes *);
/* The function that covers addr; NULL: none. */
const struct fde *fdes_find(const struct fdes *, uint64_t addr);

#endif
