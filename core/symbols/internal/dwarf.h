/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and inlined calls by DWARF, read by libdw. One thread an object. */
#ifndef SYMBOLS_DWARF_H
#define SYMBOLS_DWARF_H

#include <stdint.h>

#include "symbols/symbols.h"

struct source;
struct dwarf;

/* file: has the sections. code: the file itself, for the addresses that are code; borrowed until
 * close. alt: the dwz file or NULL. 0; -ENOENT: no DWARF; -ENOMEM; -EIO; -EBADMSG; -ENOTSUP;
 * -EFBIG. */
int dwarf_open(struct dwarf **ret, const struct source *file, const struct source *code,
	       const struct source *alt);
/* Whether functions are in files that are not read, .dwo or .dwp: lines are known, inlined
 * functions are not. */
bool dwarf_is_split(const struct dwarf *);
void dwarf_close(struct dwarf *); /* NULL is valid */
/*
 * Calls each() for the frames of addr, innermost first, and returns their number; 0: unknown
 * address. Texts are raw and valid until the next lookup: name is the source's with its scopes,
 * system_name the linker's; NULL: unknown; both NULL: only the line is known. *span, which
 * contains addr, is narrowed to addresses with the same frames. With ascending addresses each
 * unit is read once.
 */
uint32_t dwarf_lookup(struct dwarf *, uint64_t addr, symbols_each *, void *arg,
		      struct symbols_span *span);
#endif
