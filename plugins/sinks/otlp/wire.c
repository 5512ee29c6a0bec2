/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 10 /* bytes of a number */

void wire_fini(struct wire *w)
{
	free(w->p);
	*w = (struct wire){0};
}

void wire_reset(struct wire *w)
{
	w->len = 0;
	w->error = 0;
}

/* Makes room for len more bytes. */
static bool grow(struct wire *w, size_t len)
{
	size_t cap = w->cap ? w->cap : 256;
	char *more;

	if (w->error)
		return false;
	while (cap - w->len < len && cap <= SIZE_MAX / 4)
		cap *= 2;
	more = cap - w->len < len ? NULL : realloc(w->p, cap);
	if (!more) {
		w->error = -ENOMEM;
		return false;
	}
	w->p = more;
	w->cap = cap;
	return true;
}

static inline bool reserve(struct wire *w, size_t len)
{
	return (!w->error && len <= w->cap - w->len) || grow(w, len);
}

bool wire_reserve(struct wire *w, size_t len)
{
	return reserve(w, len);
}

void wire_add(struct wire *w, const void *p, size_t len)
{
	if (!len || !reserve(w, len))
		return;
	memcpy(w->p + w->len, p, len);
	w->len += len;
}

/* Most of a request is such numbers: who calls has reserved room for the longest. */
static void put_varint(struct wire *w, uint64_t v)
{
	char *to = w->p + w->len;

	for (; v >= 0x80; v >>= 7)
		*to++ = (char)(v | 0x80);
	*to++ = (char)v;
	w->len = (size_t)(to - w->p);
}

void wire_varint(struct wire *w, uint64_t v)
{
	if (reserve(w, LONGEST))
		put_varint(w, v);
}

void wire_uint(struct wire *w, uint32_t field, uint64_t v)
{
	if (!v || !reserve(w, 2 * LONGEST))
		return;
	put_varint(w, field << 3);
	put_varint(w, v);
}

void wire_fixed64(struct wire *w, uint32_t field, uint64_t v)
{
	uint8_t bytes[8];

	if (!v)
		return;
	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(v >> 8 * i);
	wire_varint(w, field << 3 | 1);
	wire_add(w, bytes, sizeof(bytes));
}

void wire_bytes(struct wire *w, uint32_t field, const void *p, size_t len)
{
	if (len > SIZE_MAX / 2 || !reserve(w, 2 * LONGEST + len)) {
		w->error = -ENOMEM;
		return;
	}
	put_varint(w, field << 3 | 2);
	put_varint(w, len);
	if (len)
		memcpy(w->p + w->len, p, len);
	w->len += len;
}

void wire_indexes(struct wire *w, uint32_t field, const uint32_t *at, uint32_t n)
{
	size_t begun;

	if (!n)
		return;
	begun = wire_begin(w, field);
	if (!reserve(w, (size_t)n * LONGEST))
		return;
	for (uint32_t i = 0; i < n; i++)
		put_varint(w, at[i]);
	wire_end(w, begun);
}

/* Most messages are shorter than 128 bytes: one byte is kept for the length. */
size_t wire_begin(struct wire *w, uint32_t field)
{
	if (!reserve(w, LONGEST + 1))
		return w->len;
	put_varint(w, field << 3 | 2);
	w->p[w->len++] = 0;
	return w->len;
}

void wire_end(struct wire *w, size_t begun)
{
	size_t len = w->len - begun, more = 0;

	for (uint64_t v = len; v >= 0x80; v >>= 7)
		more++;
	if (!reserve(w, more))
		return;
	if (more)
		memmove(w->p + begun + more, w->p + begun, len);
	w->len = begun - 1;
	put_varint(w, len);
	w->len += len;
}

/* ---- reading ---- */

static bool take_varint(struct fusee_str *in, uint64_t *v)
{
	*v = 0;
	for (unsigned n = 0; n < 10 && in->len; n++) {
		uint8_t byte = (uint8_t)*in->p++;

		in->len--;
		*v |= (uint64_t)(byte & 0x7f) << 7 * n;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool take_fixed(struct fusee_str *in, unsigned n, uint64_t *v)
{
	*v = 0;
	if (in->len < n)
		return false;
	for (unsigned i = 0; i < n; i++)
		*v |= (uint64_t)(uint8_t)in->p[i] << 8 * i;
	in->p += n;
	in->len -= n;
	return true;
}

int wire_next(struct fusee_str *in, struct wire_field *f)
{
	uint64_t tag, len;
	bool ok = false;

	*f = (struct wire_field){0};
	if (!in->len)
		return 0;
	if (!take_varint(in, &tag) || tag >> 32 || tag < 8)
		return -EBADMSG;
	f->number = (uint32_t)tag >> 3;
	f->type = tag & 7;
	if (f->type == 0) {
		ok = take_varint(in, &f->value);
	} else if (f->type == 1 || f->type == 5) {
		ok = take_fixed(in, f->type == 1 ? 8 : 4, &f->value);
	} else if (f->type == 2) {
		ok = take_varint(in, &len) && len <= in->len;
		f->bytes = (struct fusee_str){in->p, ok ? len : 0};
		in->p += f->bytes.len;
		in->len -= f->bytes.len;
	}
	return ok ? 1 : -EBADMSG;
}
