/* SPDX-License-Identifier: Apache-2.0 */
/* Function symbols of one file, of .symtab, .dynsym and .gnu_debugdata together. */
#ifndef SYMBOLS_SYMTAB_H
#define SYMBOLS_SYMTAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "symbols/ranges.h"

struct source;
struct fdes;

struct symtab_entry {
	uint64_t start, size;
	uint32_t name;  /* offset in names */
	uint32_t worth; /* among aliases: the highest is the name */
};

struct symtab {
	struct symtab_entry *entries; /* owned */
	size_t n, cap;
	struct buf names;
	struct segment *segments;
	size_t nsegments;
};

/* Adds the functions of one table (".symtab", ".strtab" or ".dynsym", ".dynstr"). How many, or
 * -errno: -ENOENT the file has no such table. */
int symtab_add(struct symtab *, const struct source *, const char *table, const char *strings);
/* The same of the file within .gnu_debugdata. -ENOENT: has none. */
int symtab_add_debugdata(struct symtab *, const struct source *);
/* After the last add. A symbol without a size counts as far as a function of `fdes` that starts
 * there, else not at all; fdes NULL: none. 0 or -ENOMEM */
int symtab_finish(struct symtab *, const struct fdes *);
/* Are there symbols without a size? Then symtab_finish() wants to know the functions. */
int symtab_has_sizeless(const struct symtab *);
/* The symbol within whose size addr lies, or NULL; its name lives as long as the table. */
const struct symtab_entry *symtab_find(const struct symtab *, uint64_t addr);
const char *symtab_name(const struct symtab *, const struct symtab_entry *);
/* The end of the last symbol that ends at or before addr; 0 none. */
uint64_t symtab_gap(const struct symtab *, uint64_t addr);
void symtab_fini(struct symtab *);
#endif
