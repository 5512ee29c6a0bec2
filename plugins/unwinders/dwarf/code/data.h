/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a file's data that are addresses, as the dynamic linker leaves them. */
#ifndef DWARF_CODE_DATA_H
#define DWARF_CODE_DATA_H

#include "switch.h"

#define CODE_DATA_PARTS 4

struct code_reloc {
	uint64_t at, to;
};

/* A zeroed struct is empty. */
struct code_data {
	struct code_reloc *relocs; /* owned; sorted by code_data_sort() */
	size_t n;
	uint64_t cap;
	struct code_bytes parts[CODE_DATA_PARTS]; /* borrowed */
	size_t n_parts;
};

int code_data_add(struct code_data *, uint64_t at, uint64_t to);
void code_data_add_part(struct code_data *, const struct code_bytes *);
void code_data_sort(struct code_data *);
/* 0; -1: no word is there. */
int code_data_word(const struct code_data *, uint64_t vaddr, uint64_t *value);
void code_data_fini(struct code_data *);
#endif
