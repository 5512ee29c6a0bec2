/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded reading of a target's bytes: little-endian numbers and DWARF's LEB128. */
#ifndef DWARF_CURSOR_H
#define DWARF_CURSOR_H

#include <stdint.h>
#include <string.h>

/* A read beyond the end returns 0 and sets bad, which stays set. */
struct cursor {
	const uint8_t *p, *end; /* borrowed */
	int bad;
};

uint64_t cursor_fixed(struct cursor *, unsigned int size); /* 1, 2, 4 or 8 bytes */
uint64_t cursor_uleb_slow(struct cursor *);
int64_t cursor_sleb(struct cursor *);
void cursor_skip(struct cursor *, uint64_t n);

static inline uint64_t cursor_uleb(struct cursor *c)
{
	if (c->p < c->end && *c->p < 0x80)
		return *c->p++;
	return cursor_uleb_slow(c);
}

static inline uint8_t cursor_u8(struct cursor *c)
{
	if (c->p < c->end)
		return *c->p++;
	c->bad = 1;
	return 0;
}

/* The 8 bytes at p, which need not be aligned. The caller has checked that they are there. */
static inline uint64_t load_u64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}
#endif
