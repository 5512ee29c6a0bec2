/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's own line table, which stripped programs have too: functions, lines, inlined calls (Go 1.18
 * on) and first lines (1.20 on). All four layouts: Go 1.2, 1.16, 1.18 and 1.20 to 1.26.
 */
#ifndef SYMBOLS_GOPCLNTAB_H
#define SYMBOLS_GOPCLNTAB_H

#include <stdbool.h>
#include <stdint.h>

#include "symbols/symbols.h"

struct source;
struct gopclntab;

/* 0; -ENOENT: no Go program; -EBADMSG: its table lies or is of a version that we don't know;
 * -ENOMEM; -EIO */
int gopclntab_open(struct gopclntab **ret, const struct source *);
void gopclntab_close(struct gopclntab *); /* NULL is fine */
/* Frames of addr, innermost first; how many, 0: not in this table's code. Texts are the table's
 * bytes: not checked for UTF-8, they live as long as the table. */
uint32_t gopclntab_lookup(const struct gopclntab *, uint64_t addr, symbols_each *, void *arg);
#endif
