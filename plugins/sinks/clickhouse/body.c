/* SPDX-License-Identifier: Apache-2.0 */
#include "body.h"

#include <stdlib.h>

void body_reset(struct body *b)
{
	b->len = 0;
	b->error = 0;
}

void body_fini(struct body *b)
{
	free(b->p);
	*b = (struct body){0};
}

static void grow(struct body *b, uint64_t need)
{
	uint64_t cap = b->cap ? b->cap : 1 << 16;
	char *more;

	while (cap < need)
		cap *= 2;
	more = realloc(b->p, cap);
	if (!more) {
		b->error = -ENOMEM;
		return;
	}
	b->p = more;
	b->cap = cap;
}

void body_add(struct body *b, const void *bytes, uint64_t n)
{
	if (b->error || !n)
		return;
	if (n > b->most || b->len > b->most - n) {
		b->error = -E2BIG;
		return;
	}
	if (b->len + n > b->cap)
		grow(b, b->len + n);
	if (b->error)
		return;
	memcpy(b->p + b->len, bytes, n);
	b->len += n;
}

void body_varint(struct body *b, uint64_t v)
{
	uint8_t bytes[10];
	uint32_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	body_add(b, bytes, n);
}

void body_int(struct body *b, uint64_t v, uint32_t size)
{
	uint8_t bytes[8];

	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(v >> 8 * i);
	body_add(b, bytes, size);
}

void body_text(struct body *b, struct fusee_str s)
{
	body_varint(b, s.len);
	body_add(b, s.p, s.len);
}

void body_uuid(struct body *b, const uint8_t id[16])
{
	uint8_t turned[16];

	for (int i = 0; i < 8; i++) {
		turned[i] = id[7 - i];
		turned[8 + i] = id[15 - i];
	}
	body_add(b, turned, sizeof(turned));
}
