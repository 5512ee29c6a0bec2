/* SPDX-License-Identifier: Apache-2.0 */
/* The function symbols of one file: of .symtab, .dynsym and .gnu_debugdata. */
#ifndef SYMBOLS_SYMTAB_H
#define SYMBOLS_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/ranges.h"

struct source;
struct fdes;

struct symtab_entry {
	uint64_t start, size;
	uint32_t name;        /* position in names */
	uint32_t rank : 31;   /* of aliases, the highest gives the name */
	uint32_t chooses : 1; /* STT_GNU_IFUNC: the code at start chooses the function */
};

struct symtab {
	struct symtab_entry *entries; /* owned */
	size_t n, cap;
	struct buf names;
	struct segment *segments;
	size_t nsegments;
};

/* Adds the functions of one table (".symtab", ".strtab" or ".dynsym", ".dynstr"). Returns how many,
 * -ENOENT (no such table) or -errno. */
int symtab_add(struct symtab *, const struct source *, const char *table, const char *strings);
/* Adds a function with that name and suffix. If all names exceed 4 GiB nothing is added. 0 or
 * -ENOMEM. */
int symtab_add_one(struct symtab *, uint64_t start, uint64_t size, const char *name,
		   const char *suffix);
/* symtab_add() for the ELF file in .gnu_debugdata. -ENOENT: no such section. */
int symtab_add_debugdata(struct symtab *, const struct source *);
/* To be called once, after the last add. A symbol without a size ends with the function of `fdes`
 * (may be NULL) that starts at its address or one byte before; without such a function it covers
 * nothing. 0 or -ENOMEM. */
int symtab_finish(struct symtab *, const struct fdes *);
/* Whether symbols without a size exist, for which symtab_finish() needs fdes. */
bool symtab_has_sizeless(const struct symtab *);
/* The innermost symbol that covers addr; NULL: none. Valid as long as the table. */
const struct symtab_entry *symtab_find(const struct symtab *, uint64_t addr);
/* The symbol that begins at addr + 1, if no symbol covers addr; NULL: none. Such an addr is a
 * return address - 1 where the "caller" was never called but is returned to at its first
 * instruction, as returns from signal handlers and starts of fibers. */
const struct symtab_entry *symtab_behind(const struct symtab *, uint64_t addr);
const char *symtab_name(const struct symtab *, const struct symtab_entry *);
/* The end of the last symbol before addr, if no symbol covers addr; else 0. */
uint64_t symtab_gap(const struct symtab *, uint64_t addr);
void symtab_fini(struct symtab *);
#endif
