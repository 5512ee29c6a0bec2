/* SPDX-License-Identifier: Apache-2.0 */
/* Go's function table, .gopclntab, to rows: how far sp has moved at each instruction (pcsp), and
 * how Go's compiler saves rbp. It is in every Go binary, stripped ones too. Every byte is foreign.
 */
#ifndef DWARF_GOPCLNTAB_H
#define DWARF_GOPCLNTAB_H

#include <stddef.h>
#include <stdint.h>

#include "rows.h"

enum dwt_go_version { DWT_GO_1_2 = 1, DWT_GO_1_16, DWT_GO_1_18, DWT_GO_1_20 };

struct dwt_go {
	const uint8_t *bytes; /* the table; borrowed */
	size_t len;
	enum dwt_go_version version;
	uint64_t n;    /* functions */
	uint64_t text; /* what the functions' addresses count from; 0: to be found elsewhere */
	size_t functab, names,
		pctab;       /* offsets; pctab and names of Go 1.2 are 0: the whole table */
	const uint8_t *code; /* the bytes at code_vaddr: how rbp is saved; borrowed, may be empty */
	size_t code_len;
	uint64_t code_vaddr;
};

/* Reads the header. 0; -ENOENT: not one for x86-64 of a version that we know; -EBADMSG: it lies. */
int dwt_go_open(struct dwt_go *, const void *bytes, size_t len);
/* The first function's and the end's address, counted from `text`. */
int dwt_go_span(const struct dwt_go *, uint64_t *lo, uint64_t *hi);
/* Sorted rows. Functions that lie are left out or EXPRESSION, and counted in dwt. */
int dwt_go_read(struct dwt *, const struct dwt_go *, struct dwt_rows *ret);
#endif
