/* SPDX-License-Identifier: Apache-2.0 */
/* One compilation unit, its functions and the calls inlined into them. For dwarf.c. */
#ifndef SYMBOLS_DWARF_UNIT_H
#define SYMBOLS_DWARF_UNIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ranges.h"

struct source;

/* A function or an inlined call. */
struct unit_node {
	uint64_t die;    /* offset in .debug_info */
	uint32_t parent; /* node that it is inlined into; RANGES_NONE: a function */
	uint32_t call_file, call_line, call_column;
	uint32_t start_line;
	bool inlined, resolved;
	const char *name, *linkage; /* if resolved; NULL: unknown */
};

struct unit {
	uint64_t die;         /* offset of its DIE */
	uint64_t end;         /* of the unit in .debug_info */
	bool loaded, qualify; /* qualify: names of the language have scopes */
	bool failed;          /* there was no memory to load it; until unit_unload() */
	const char *dir;      /* folder of the compiler, absolute; NULL: unknown */
	struct unit_node *nodes;
	struct segment *segments; /* id: a node */
	size_t n, cap, nsegments;
	Dwarf_Lines *lines; /* libdw's */
	Dwarf_Files *files;
	size_t nlines, nfiles;
};

/* Reads a unit's functions and lines, without those that are malformed. 0 or -ENOMEM. */
int unit_load(struct unit *, Dwarf *, const struct source *code);
void unit_unload(struct unit *);
/* About how many bytes a loaded unit takes, libdw's lines included. */
size_t unit_bytes(const struct unit *);
/* The line row of addr; NULL: none. Narrows [*lo, *hi), which contains addr, to the row or to the
 * gap between rows. */
Dwarf_Line *unit_line(const struct unit *, uint64_t addr, uint64_t *lo, uint64_t *hi);

/* A growing array of address ranges. */
struct range_list {
	struct range *p; /* owned */
	size_t n, cap;
};

/* 0 or -ENOMEM. */
int range_list_add(struct range_list *, struct range);
/* Appends the ranges of a DIE that are code. 0; -ENOMEM; -EFBIG: too many ranges. */
int ranges_of_die(struct range_list *, Dwarf_Die *, const struct source *code, uint32_t id,
		  uint32_t rank);
#endif
