/* SPDX-License-Identifier: Apache-2.0 */
/* Go's table in memory, and checked reads of it. For gopclntab.c and gomodule.c, which it calls. */
#ifndef SYMBOLS_GOTABLE_H
#define SYMBOLS_GOTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum go_version { GO_12, GO_116, GO_118, GO_120 };

/* A part of the table. Offsets in it are checked against len. */
struct go_part {
	const uint8_t *p;
	uint64_t len;
};

struct gopclntab {
	uint8_t *section; /* owned; a NUL follows its bytes */
	uint8_t *bytes;   /* the table, which ends with the section */
	uint64_t len, vaddr;
	enum go_version version;
	uint8_t quantum, pointer;
	uint64_t nfunc, nfile;
	uint64_t text; /* base of code offsets; 0 before 1.18 */
	struct go_part names, cus, files, pcs, funcs;
	uint8_t *funcdata; /* go:func.*, with inline trees; owned; NULL: unknown */
	uint64_t nfuncdata;
};

static inline bool go_u32(const struct go_part *p, uint64_t at, uint32_t *v)
{
	if (at > p->len || p->len - at < 4)
		return false;
	memcpy(v, p->p + at, 4);
	return true;
}

/* A pointer-sized word. */
static inline bool go_word(const struct gopclntab *t, const struct go_part *p, uint64_t at,
			   uint64_t *v)
{
	*v = 0;
	if (at > p->len || p->len - at < t->pointer)
		return false;
	memcpy(v, p->p + at, t->pointer);
	return true;
}

struct source;

/*
 * Sets text and funcdata from runtime.moduledata, as far as it is found: the base of code offsets,
 * which the table lacks since 1.26 and in position-independent programs, and the inline trees. 0
 * or -ENOMEM.
 */
int gomodule_find(struct gopclntab *, const struct source *);
#endif
