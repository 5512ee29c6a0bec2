/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Go's function table, .gopclntab, into rows: how far sp has moved at each instruction
 * (pcsp), and how Go's compiler saves rbp. Every Go binary has the table, also a stripped binary.
 * Every byte is foreign. */
#ifndef DWARF_GOPCLNTAB_H
#define DWARF_GOPCLNTAB_H

#include <stddef.h>
#include <stdint.h>

#include "../rows.h"

enum go_version { GO_1_2 = 1, GO_1_16, GO_1_18, GO_1_20 };

struct go_table {
	const uint8_t *bytes; /* the table; borrowed */
	size_t len;
	enum go_version version;
	uint64_t n;    /* functions */
	uint64_t text; /* added to the addresses of functions; 0: not in the table */
	size_t functab, names,
		pctab;       /* offsets; pctab and names of Go 1.2 are 0: the complete table */
	const uint8_t *code; /* the bytes at code_vaddr: how rbp is saved; borrowed, may be empty */
	size_t code_len;
	uint64_t code_vaddr;
};

/* Reads the header. 0; -ENOENT: no table of a known version for x86-64; -EBADMSG: it contradicts
 * itself. */
int go_open(struct go_table *, const void *bytes, size_t len);
/* The addresses of the first function and of the end, relative to `text`. 0 or -EBADMSG. */
int go_span(const struct go_table *, uint64_t *lo, uint64_t *hi);
/* Makes sorted rows. Functions with invalid entries are skipped or get the rule EXPRESSION, and are
 * counted. 0, -ENOMEM, -E2BIG. */
int go_read(struct table_build *, const struct go_table *, struct rows *ret);
#endif
