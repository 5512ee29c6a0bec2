/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's line table, which stripped programs have too: functions, lines, inlined calls (since Go
 * 1.18) and first lines (since 1.20). Reads all four layouts: 1.2, 1.16, 1.18, and 1.20 to 1.26.
 */
#ifndef SYMBOLS_GOPCLNTAB_H
#define SYMBOLS_GOPCLNTAB_H

#include <stdbool.h>
#include <stdint.h>

#include "symbols/symbols.h"

struct source;
struct gopclntab;

/* 0; -ENOENT: no Go program; -EBADMSG: the table is malformed or of an unknown version; -ENOMEM;
 * -EIO. The source is used during the call only. */
int gopclntab_open(struct gopclntab **ret, const struct source *);
void gopclntab_close(struct gopclntab *); /* NULL is valid */
/* Calls each() for the frames of addr, innermost first, and returns their number; 0: addr is not in
 * the table. Texts are bytes of the table, of any content, and valid until close. Narrows *span,
 * which contains addr, to addresses with the same frames. */
uint32_t gopclntab_lookup(const struct gopclntab *, uint64_t addr, symbols_each *, void *arg,
			  struct symbols_span *span);
#endif
