/* SPDX-License-Identifier: Apache-2.0 */
/* Go's function table, .gopclntab, to rows: how far sp has moved at each instruction (pcsp), and
 * how Go's compiler saves rbp. It is in every Go binary, stripped ones too. Every byte is foreign.
 */
#ifndef DWARF_GOPCLNTAB_H
#define DWARF_GOPCLNTAB_H

#include <stddef.h>
#include <stdint.h>

#include "rows.h"

enum go_version { GO_1_2 = 1, GO_1_16, GO_1_18, GO_1_20 };

struct go_table {
	const uint8_t *bytes; /* the table; borrowed */
	size_t len;
	enum go_version version;
	uint64_t n;    /* functions */
	uint64_t text; /* what the functions' addresses count from; 0: to be found elsewhere */
	size_t functab, names,
		pctab;       /* offsets; pctab and names of Go 1.2 are 0: the whole table */
	const uint8_t *code; /* the bytes at code_vaddr: how rbp is saved; borrowed, may be empty */
	size_t code_len;
	uint64_t code_vaddr;
};

/* Reads the header. 0; -ENOENT: not one for x86-64 of a version that we know; -EBADMSG: it lies. */
int go_open(struct go_table *, const void *bytes, size_t len);
/* The first function's and the end's address, counted from `text`. */
int go_span(const struct go_table *, uint64_t *lo, uint64_t *hi);
/* Sorted rows. Functions that lie are left out or EXPRESSION, and counted in build. */
int go_read(struct table_build *, const struct go_table *, struct rows *ret);
#endif
