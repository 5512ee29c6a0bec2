/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of names of one file: the source frames of each address of its code, as the worker made
 * it once, in a descriptor from which single pages are read. It is never mapped: a file that is
 * truncated while it is mapped is a SIGBUS. A worker may have been taken over and a disk may be
 * damaged, so each page has a checksum, and each number and text is checked when it is read: a
 * lying table leads nowhere, and harms only the names of its own file. One thread an object.
 */
#ifndef NAMES_NAMES_H
#define NAMES_NAMES_H

#include <assert.h>
#include <stdint.h>

#include "symbols/symbols.h"

#define NAMES_MAGIC 0x746d6e66u
#define NAMES_VERSION 1
#define NAMES_PAGE 4096u
#define NAMES_MAX_BYTES (32ull << 20) /* of a table */
#define NAMES_MAX_FRAMES 512u         /* of an address */
#define NAMES_MAX_TEXTS (1u << 20)    /* bytes of all texts of an address */
#define NAMES_STUB UINT32_MAX

/*
 * The head. Behind it follow, each without a gap, rows, frames, functions and texts, zeros up to
 * the next multiple of 8, and a checksum (XXH3, 64 bits, seed: the page's number) for each
 * NAMES_PAGE bytes of what is before the checksums. Host byte order.
 */
struct names_head {
	uint32_t magic, version;
	uint64_t bytes; /* of the table */
	uint32_t rows, frames, functions;
	uint32_t quality; /* INSPECTION_SYMTAB ..: the sources, as of struct worker_symbols */
	uint64_t texts;   /* bytes; each text ends with a NUL */
};
static_assert(sizeof(struct names_head) == 40, "rows are aligned to 8");

/* ELF virtual addresses from lo up to the next row's lo; sorted. */
struct names_row {
	uint64_t lo;
	/* Frames [first, first + n), innermost first. n 0: the table does not know them. first
	 * NAMES_STUB, n 1: a stub "+0x" and lo, without anything else. */
	uint32_t first, n;
};
static_assert(sizeof(struct names_row) == 16, "without padding");

struct names_frame {
	uint32_t function, line, column;
};

struct names_function {
	uint32_t name, system_name, file; /* positions in texts */
	uint32_t start_line, flags;       /* enum symbols_flags */
};

struct names_table;

/* The table of `bytes` bytes that begins at byte `at` of fd, which is closed by names_close(), and
 * here on an error. 0; -EBADMSG: it is damaged, or of another version; -ENOMEM; -errno. */
int names_open(struct names_table **ret, int fd, uint64_t at, uint64_t bytes);
void names_close(struct names_table *); /* NULL is fine */
uint32_t names_quality(const struct names_table *);
/* The source frames of an address, innermost first; they and their texts, which are printable, are
 * valid until the next call. 0; -ENOENT: they are not in the table; -EBADMSG: it is damaged;
 * -ENOMEM; -errno. */
int names_find(struct names_table *, uint64_t vaddr, const struct symbols_frame **frames,
	       uint32_t *n);
#endif
