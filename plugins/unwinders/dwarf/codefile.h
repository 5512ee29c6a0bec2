/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for a file's code without a description. */
#ifndef DWARF_CODEFILE_H
#define DWARF_CODEFILE_H

#include <fusee/helpers.h>

#include "rows.h"

/* What is followed at most: libraries without a description are small. */
#define CODEFILE_MAX_BYTES (8u << 20)

/* Adds rows to `ret` for the text that `known` says nothing about. 0, -ENOMEM, -E2BIG. */
int codefile_add(struct table_build *, const struct fusee_unwinder_host *, uint64_t file,
		 uint64_t entry, const struct rows *known, struct rows *ret);
/* Behind the last instruction of the code that begins at a program's entry, at most 64 bytes. */
uint64_t codefile_entry_end(const struct fusee_unwinder_host *, uint64_t file, uint64_t entry);
#endif
