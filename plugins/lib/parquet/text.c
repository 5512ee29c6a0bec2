/* SPDX-License-Identifier: Apache-2.0 */
#include <fusee/helpers.h>

#include "internal.h"

#define BOUND 64 /* bytes of a bound */

static unsigned int encode(uint32_t point, char *to)
{
	unsigned int size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

	for (unsigned int i = size; i-- > 1; point >>= 6)
		to[i] = (char)(0x80 | (point & 0x3f));
	to[0] = (char)(size == 1 ? point : (0xf00u >> size & 0xff) | point);
	return size;
}

bool pq_is_utf8(struct fusee_str s)
{
	uint32_t point;

	for (uint64_t i = 0; i < s.len;) {
		unsigned int size = fusee_character(s.p + i, s.len - i, &point);

		if (!size)
			return false;
		i += size;
	}
	return true;
}

static bool is_inside(char c)
{
	return ((uint8_t)c & 0xc0) == 0x80;
}

struct fusee_str pq_lower_bound(struct fusee_str s, bool *exact)
{
	*exact = s.len <= BOUND;
	return fusee_text_shortened(s, BOUND);
}

/* The first characters of the text, with the last character raised, which sorts after all texts
 * that begin with these characters: texts are in the order of code points. */
struct fusee_str pq_upper_bound(struct fusee_str s, char room[BOUND], bool *exact)
{
	uint64_t n = BOUND - 4; /* a raised character can be longer */
	uint32_t point = 0;

	*exact = s.len <= BOUND;
	if (*exact)
		return s;
	while (n) {
		while (is_inside(s.p[n]))
			n--;
		if (!n)
			break;
		do
			n--;
		while (is_inside(s.p[n]));
		fusee_character(s.p + n, s.len - n, &point);
		if (point != 0x10ffff)
			break;
		point = 0;
	}
	*exact = !point && !n;
	if (*exact)
		return s;
	memcpy(room, s.p, n);
	point++;
	point = point == 0xd800 ? 0xe000 : point; /* no characters are between them */
	return (struct fusee_str){room, n + encode(point, room + n)};
}
