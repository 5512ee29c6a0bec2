/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Go's function table, .gopclntab. Every Go binary has the table, also a stripped binary.
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

/* A function of the table. */
struct go_func {
	uint64_t lo, hi; /* ELF virtual addresses */
	uint64_t pcsp;   /* offset in the table */
	const char *name;
	size_t name_len;
	int spwrite; /* writes sp in ways that pcsp does not know */
};

/* Reads the header. 0; -ENOENT: no table of a known version for x86-64; -EBADMSG: it contradicts
 * itself. */
int go_open(struct go_table *, const void *bytes, size_t len);
/* The addresses of the first function and of the end, relative to `text`. 0 or -EBADMSG. */
int go_span(const struct go_table *, uint64_t *lo, uint64_t *hi);
/* Reads function i. 0 or -EBADMSG. */
int go_function(const struct go_table *, uint64_t i, struct go_func *);
/* Code bytes at vaddr. n are there, or NULL. */
const uint8_t *go_code(const struct go_table *, uint64_t vaddr, size_t n);
#endif
