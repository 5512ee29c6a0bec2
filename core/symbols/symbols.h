/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of one file's code: .symtab, .dynsym, .gnu_debugdata, separate debug files, DWARF lines and
 * inlined frames, Go's .gopclntab; demangled. Runs in the worker process, over file descriptors
 * that it was handed: everything in the files is foreign and may lie.
 */
#ifndef SYMBOLS_SYMBOLS_H
#define SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

struct symbols;

/* Descriptors are borrowed and must stay open until symbols_close(). -1: none. */
struct symbols_files {
	int fd;       /* the file itself */
	int debug_fd; /* its separate debug file; one that does not match (build id, else CRC) is
			 not used */
	int alt_fd;   /* the dwz file that the debug file names (.gnu_debugaltlink) */
};

enum symbols_flags {
	SYMBOLS_STUB = 1, /* no symbol: the name is +0xoffset of the function's start by its FDE */
	SYMBOLS_INLINED = 2, /* was inlined into the next frame */
};

/* One source frame. Texts are valid UTF-8 and live until the callback returns. */
struct symbols_frame {
	const char *name;        /* demangled, without parameters; Go names as they are */
	const char *system_name; /* the linker's; equals name where there is nothing to demangle */
	const char *file;        /* "" unknown */
	uint32_t line, column, start_line; /* 0 unknown */
	uint32_t flags;
};

/* Where a file's names come from: said once, at the end of a record. */
struct symbols_quality {
	bool symtab, dynsym, debugdata, dwarf, gopclntab;
	const char *note; /* what was there and could not be used, one sentence a line, "" nothing;
			     until close */
};

typedef void symbols_each(void *arg, const struct symbols_frame *);

/* ELF virtual addresses: [lo, hi). */
struct symbols_span {
	uint64_t lo, hi;
};

/* 0, or -errno: not an ELF file and the like. `want_inlines` false: no DWARF is read at all. */
int symbols_open(struct symbols **ret, const struct symbols_files *, bool want_inlines);
void symbols_close(struct symbols *);
/* Source frames of one ELF virtual address, innermost first; at least one call (a stub, if need
 * be). For the address of a caller pass one inside its call instruction (return address - 1). */
int symbols_lookup(struct symbols *, uint64_t vaddr, symbols_each *, void *arg);
/* Likewise; and *span, around vaddr, in which each address has the same frames. It may be smaller
 * than it could be. */
int symbols_lookup_span(struct symbols *, uint64_t vaddr, symbols_each *, void *arg,
			struct symbols_span *span);
/* The function that the symbol tables have at vaddr; false: none. */
bool symbols_function(const struct symbols *, uint64_t vaddr, struct symbols_span *);
/* The first code at vaddr or above that a symbol names, up to where the next one begins; false:
 * none.
 */
bool symbols_next(const struct symbols *, uint64_t vaddr, struct symbols_span *);
void symbols_quality(const struct symbols *, struct symbols_quality *);
/* The dwz file that would help and was not handed in: its name and *n bytes of build id, as the
 * debug file has them, until close. NULL: none is missing. */
const char *symbols_missing_alt(const struct symbols *, const uint8_t **build_id, uint32_t *n);
#endif
