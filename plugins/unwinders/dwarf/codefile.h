/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for the code of a file that has no description. */
#ifndef DWARF_CODEFILE_H
#define DWARF_CODEFILE_H

#include <fusee/helpers.h>

#include "rows.h"

/* Larger text is not read: libraries without a description are small. */
#define CODEFILE_MAX_BYTES (8u << 20)

/* Adds rows to `ret` for the text that has none in `known`. 0, -ENOMEM, -E2BIG. */
int codefile_add(struct table_build *, const struct fusee_unwinder_host *, uint64_t file,
		 uint64_t entry, const struct rows *known, struct rows *ret);
/* The address behind the code that begins at a program's entry; at most 64 bytes are decoded. */
uint64_t codefile_entry_end(const struct fusee_unwinder_host *, uint64_t file, uint64_t entry);
#endif
