/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and inlined calls by DWARF, through libdw. Not for threads. */
#ifndef SYMBOLS_DWARF_H
#define SYMBOLS_DWARF_H

#include <stdint.h>

#include "symbols/symbols.h"

struct source;
struct dwarf;

/* `file` has the sections, `code` says which addresses are code (the file itself), `alt` is the dwz
 * file or NULL. All are only read here. 0; -ENOENT: no DWARF; -ENOMEM; -EIO; -EBADMSG; -ENOTSUP;
 * -EFBIG */
int dwarf_open(struct dwarf **ret, const struct source *file, const struct source *code,
	       const struct source *alt);
void dwarf_close(struct dwarf *); /* NULL is fine */
/*
 * Frames of addr, innermost first; how many, 0: it knows nothing of addr. The frames' texts are
 * raw: name is the source's, with its scopes, NULL unknown; system_name the linker's, NULL unknown.
 * Both NULL: only the line is known. They live until the next lookup. Ask in ascending order of
 * addresses: each unit is then read once. *span, which holds addr, is made no larger than where
 * the answer is the same.
 */
uint32_t dwarf_lookup(struct dwarf *, uint64_t addr, symbols_each *, void *arg,
		      struct symbols_span *span);
#endif
