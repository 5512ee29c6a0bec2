/* SPDX-License-Identifier: Apache-2.0 */
/* Within dwarf: one compilation unit, its functions and what was inlined into them. */
#ifndef SYMBOLS_DWARF_UNIT_H
#define SYMBOLS_DWARF_UNIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/ranges.h"

struct source;

/* A function, or one inlined call of one. */
struct unit_node {
	uint64_t die;    /* its offset */
	uint32_t parent; /* the node that it was inlined into; RANGES_NONE: a function by itself */
	uint32_t call_file, call_line, call_column;
	uint32_t start_line;
	bool inlined, resolved;
	const char *name, *linkage; /* when resolved; NULL unknown */
};

struct unit {
	uint64_t die;         /* offset of its DIE */
	uint64_t end;         /* of the unit in .debug_info */
	bool loaded, qualify; /* qualify: a language whose names have scopes */
	bool failed;          /* there was no memory for it; until it is unloaded */
	const char *dir;      /* where the compiler ran, absolute; NULL unknown */
	struct unit_node *nodes;
	struct segment *segments; /* id: a node */
	size_t n, cap, nsegments;
	Dwarf_Lines *lines; /* libdw's */
	Dwarf_Files *files;
	size_t nlines, nfiles;
};

/* Reads a unit's functions and lines. What lies is left out. 0 or -ENOMEM */
int unit_load(struct unit *, Dwarf *, const struct source *code);
void unit_unload(struct unit *);
/* Bytes that a loaded unit holds, libdw's lines included, about. */
size_t unit_bytes(const struct unit *);
/* The line row that addr lies in, or NULL. [*lo, *hi), which holds addr, is made no larger than the
 * row, or than where there is none. */
Dwarf_Line *unit_line(const struct unit *, uint64_t addr, uint64_t *lo, uint64_t *hi);

/* Address ranges of a DIE that are code, at the end of a growing array. */
struct range_list {
	struct range *p; /* owned */
	size_t n, cap;
};

/* 0, -ENOMEM; -EFBIG: more than a sane file has. */
int ranges_of_die(struct range_list *, Dwarf_Die *, const struct source *code, uint32_t id,
		  uint32_t rank);
#endif
