/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "internal.h"

bool pq_grow(void *array, uint64_t *cap, uint64_t need, size_t size)
{
	uint64_t n = *cap ? *cap : 64;
	void *at, *more;

	if (need <= *cap)
		return true;
	while (n < need)
		n *= 2;
	if (n > SIZE_MAX / 2 / size)
		return false;
	memcpy(&at, array, sizeof(at));
	more = realloc(at, n * size);
	if (!more)
		return false;
	memcpy(array, &more, sizeof(more));
	*cap = n;
	return true;
}

void pq_put(struct pq_bytes *b, const void *p, size_t n)
{
	uint64_t cap = b->cap;

	if (b->error || !n)
		return;
	if (n > SIZE_MAX / 4 || !pq_grow(&b->p, &cap, b->len + n, 1)) {
		b->error = -ENOMEM;
		return;
	}
	b->cap = cap;
	memcpy(b->p + b->len, p, n);
	b->len += n;
}

void pq_put_byte(struct pq_bytes *b, uint8_t v)
{
	pq_put(b, &v, 1);
}

void pq_put_varint(struct pq_bytes *b, uint64_t v)
{
	for (; v > 127; v >>= 7)
		pq_put_byte(b, (uint8_t)(v & 127) | 128);
	pq_put_byte(b, (uint8_t)v);
}

void pq_put_number(struct pq_bytes *b, uint64_t v, unsigned int size)
{
	uint8_t bytes[8];

	for (unsigned int i = 0; i < size; i++, v >>= 8)
		bytes[i] = (uint8_t)v;
	pq_put(b, bytes, size);
}

void pq_bytes_fini(struct pq_bytes *b)
{
	free(b->p);
	*b = (struct pq_bytes){0};
}
