/* SPDX-License-Identifier: Apache-2.0 */
#include "positions.h"

#define FARTHEST (1 << 30) /* the largest offset of code, and step between two entries */

/* A signed number, seven bits in each byte, the lowest first; its sign is the lowest bit. false:
 * the table ends in it, or it is too long. */
static bool next(const unsigned char *table, uint32_t n, uint32_t *at, int64_t *value)
{
	uint64_t v = 0;

	for (uint32_t shift = 0; shift < 63; shift += 7) {
		unsigned char b;

		if (*at >= n)
			return false;
		b = table[(*at)++];
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*value = (int64_t)(v >> 1 ^ (0 - (v & 1)));
			return true;
		}
	}
	return false;
}

/* A position: bit 0 says that it is no place in the script, 30 bits are the place and 1; above them
 * is the function that was inlined, in tables of compiled code. */
static void set_place(struct v8_place *p, uint64_t raw)
{
	uint32_t v = (uint32_t)(raw >> 1) & 0x3fffffff;

	p->known = !(raw & 1) && v;
	p->position = p->known ? v - 1 : 0;
}

struct v8_place v8_position(const unsigned char *table, uint32_t n, bool complete, uint32_t offset)
{
	struct v8_place found = {0, false};
	int64_t code =
		-1; /* the first entry may be that of the function itself, which begins there */
	uint64_t raw = 0;
	uint32_t at = 0;
	int64_t v;

	while (at < n) {
		if (!next(table, n, &at, &v) || v > FARTHEST || v < -FARTHEST || code > FARTHEST)
			break;
		code += v < 0 ? -(v + 1) : v; /* the sign: no statement begins there */
		if (!next(table, n, &at, &v))
			break;
		raw += (uint64_t)v;
		if (code > (int64_t)offset)
			return found;
		set_place(&found, raw);
	}
	if (!complete || at < n) /* an entry behind those may be nearer */
		found.known = false;
	return found;
}
