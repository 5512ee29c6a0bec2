/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, files, lines and inlined calls of the addresses of one file: from .symtab, .dynsym,
 * .gnu_debugdata, separate debug files, DWARF and Go's .gopclntab, demangled. Runs in the worker
 * process, on descriptors that it received; no number or text of the files is trusted. One thread
 * an object.
 */
#ifndef SYMBOLS_SYMBOLS_H
#define SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols;

/* Descriptors are borrowed and must stay open until symbols_close(). -1: none. */
struct symbols_files {
	int fd;       /* the file itself */
	int debug_fd; /* its separate debug file; ignored unless build ID or CRC match */
	int alt_fd;   /* the dwz file that .gnu_debugaltlink names; ignored unless it matches */
};

enum symbols_flags {
	SYMBOLS_STUB = 1,    /* no symbol: the name is "+0x" and the function's first address */
	SYMBOLS_INLINED = 2, /* inlined into the next frame */
};

/* One source frame. Texts are valid UTF-8 without control characters, valid until the callback
 * returns. */
struct symbols_frame {
	const char *name;                  /* demangled, without parameters */
	const char *system_name;           /* the linker's; equal to name if that is not mangled */
	const char *file;                  /* "": unknown */
	uint32_t line, column, start_line; /* 0: unknown */
	uint32_t flags;
};

/* The sources that were found. */
struct symbols_quality {
	bool symtab, dynsym, debugdata, dwarf, gopclntab;
	const char *note; /* sources that could not be used, a sentence a line; valid until close */
};

typedef void symbols_each(void *arg, const struct symbols_frame *);

/* ELF virtual addresses [lo, hi). */
struct symbols_span {
	uint64_t lo, hi;
	/* The span is one address because its limits are not known: there was no memory, no section
	 * has the address, or it is of a Go program whose table lacks it. The next address may have
	 * the same frames. */
	bool alone;
};

/* inlines false: DWARF is not read. 0; -ENOEXEC, -EBADMSG: no valid ELF file; -ENOMEM; -errno. */
int symbols_open(struct symbols **ret, const struct symbols_files *, bool inlines);
void symbols_close(struct symbols *); /* NULL is valid */
/* Calls each() for the source frames of an ELF virtual address, innermost first, at least once (a
 * stub). For a return address pass the address - 1. 0 or -ENOMEM. */
int symbols_lookup(struct symbols *, uint64_t vaddr, symbols_each *, void *arg);
/* The same, with a span around vaddr in which every address has these frames. The span need not be
 * the largest such. */
int symbols_lookup_span(struct symbols *, uint64_t vaddr, symbols_each *, void *arg,
			struct symbols_span *span);
/* The function at vaddr by the symbol tables. false: none. */
bool symbols_function(const struct symbols *, uint64_t vaddr, struct symbols_span *);
/* The first code at vaddr or above that a symbol covers, up to where the next symbol begins.
 * false: none. */
bool symbols_next(const struct symbols *, uint64_t vaddr, struct symbols_span *);
/* The i-th executable section of the file. false: there are not so many. */
bool symbols_code(const struct symbols *, size_t i, struct symbols_span *);
void symbols_quality(const struct symbols *, struct symbols_quality *);
/* The name of the dwz file that the debug file names and that was not passed, and *n bytes of its
 * build ID; valid until close. NULL: none is missing. */
const char *symbols_missing_alt(const struct symbols *, const uint8_t **build_id, uint32_t *n);
#endif
