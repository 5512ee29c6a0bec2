/* SPDX-License-Identifier: Apache-2.0 */
#include "positions.h"

#define FARTHEST \
	(1 << 30) /* the largest offset in code, and the largest step between two entries */

/* Decodes a signed number: seven bits a byte, the lowest first; the lowest bit of all is the sign.
 * false: the table ends within the number, or the number is too long. */
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

/* V8's SourcePosition: bit 0 is set if it is not in a script; then 30 bits with the position + 1,
 * and 16 bits with the index + 1 of the place where the code was inlined. */
struct v8_place v8_place_of(uint64_t raw)
{
	uint32_t v = (uint32_t)(raw >> 1) & 0x3fffffff;
	struct v8_place p = {0, (int)(raw >> 31 & 0xffff) - 1, !(raw & 1) && v};

	p.position = p.known ? v - 1 : 0;
	return p;
}

/* Finds the last place up to this offset, and the place that follows. false: a truncated table ends
 * before an entry behind the offset. */
static bool find(const struct v8_table *t, uint32_t offset, struct v8_place *last,
		 struct v8_place *following)
{
	int64_t code = -1; /* so that the first entry, of the function itself, can be at offset 0 */
	uint64_t raw = 0;
	uint32_t at = 0;
	int64_t v;

	*last = *following = (struct v8_place){0, -1, false};
	while (at < t->n) {
		if (!next(t->at, t->n, &at, &v) || v > FARTHEST || v < -FARTHEST || code > FARTHEST)
			return false;
		code += v < 0 ? -(v + 1) : v; /* negative: no statement begins there */
		if (!next(t->at, t->n, &at, &v))
			return false;
		raw += (uint64_t)v;
		*following = v8_place_of(raw);
		if (code > (int64_t)offset)
			return true;
		*last = *following;
	}
	following->known = false;
	return t->complete;
}

struct v8_place v8_position(const struct v8_table *t, uint32_t offset)
{
	struct v8_place last, following;

	if (!find(t, offset, &last, &following)) /* a missing entry may be nearer */
		last.known = false;
	return last;
}

struct v8_place v8_position_between(const struct v8_table *t, uint32_t offset)
{
	struct v8_place last, following;

	last.known = find(t, offset, &last, &following) && last.known && following.known &&
		     last.inlined == following.inlined;
	return last;
}
