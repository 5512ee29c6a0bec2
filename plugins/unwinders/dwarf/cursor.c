/* SPDX-License-Identifier: Apache-2.0 */
#include "cursor.h"

/* tests/fuzz/planted builds this with a fault, a read of one byte too many, which the fuzzer must
 * find. */
#ifdef FUSEE_PLANTED_BUG
#define SLACK 1
#else
#define SLACK 0
#endif

uint64_t cursor_fixed(struct cursor *c, unsigned int size)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->p) + SLACK < size) {
		c->bad = 1;
		return 0;
	}
	for (unsigned int i = 0; i < size; i++)
		v |= (uint64_t)c->p[i] << 8 * i;
	c->p += size;
	return v;
}

uint64_t cursor_uleb_slow(struct cursor *c)
{
	uint64_t v = 0;

	for (int shift = 0; c->p < c->end; shift += 7) {
		uint8_t b = *c->p++;

		if (shift > 63 || (shift == 63 && (b & 0x7f) > 1))
			break;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
	c->bad = 1;
	return 0;
}

int64_t cursor_sleb(struct cursor *c)
{
	uint64_t v = 0;

	for (int shift = 0; c->p < c->end && shift <= 63; shift += 7) {
		uint8_t b = *c->p++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if (b & 0x80)
			continue;
		if (b & 0x40 && shift + 7 < 64)
			v |= ~0ull << (shift + 7);
		return (int64_t)v;
	}
	c->bad = 1;
	return 0;
}

void cursor_skip(struct cursor *c, uint64_t n)
{
	if (n > (size_t)(c->end - c->p))
		c->bad = 1;
	else
		c->p += n;
}
