/* SPDX-License-Identifier: Apache-2.0 */
#include <fusee/proto.h>

#define LONGEST 10 /* bytes of a number */

/* Most of a request consists of such numbers; the caller has reserved room for the longest. */
static void put_varint(struct fusee_bytes *b, uint64_t v)
{
	char *to = b->p + b->len;

	for (; v >= 0x80; v >>= 7)
		*to++ = (char)(v | 0x80);
	*to++ = (char)v;
	b->len = (uint64_t)(to - b->p);
}

void fusee_proto_uint(struct fusee_bytes *b, uint32_t field, uint64_t v)
{
	if (!v || !fusee_bytes_reserve(b, 2 * LONGEST))
		return;
	put_varint(b, field << 3);
	put_varint(b, v);
}

void fusee_proto_fixed64(struct fusee_bytes *b, uint32_t field, uint64_t v)
{
	if (!v)
		return;
	fusee_bytes_varint(b, field << 3 | FUSEE_PROTO_FIXED64);
	fusee_bytes_number(b, v, 8);
}

void fusee_proto_bytes(struct fusee_bytes *b, uint32_t field, const void *p, uint64_t len)
{
	if (!fusee_bytes_reserve(b, len > UINT64_MAX / 2 ? len : 2 * LONGEST + len))
		return;
	put_varint(b, field << 3 | FUSEE_PROTO_BYTES);
	put_varint(b, len);
	if (len)
		memcpy(b->p + b->len, p, len);
	b->len += len;
}

void fusee_proto_text(struct fusee_bytes *b, uint32_t field, struct fusee_str s)
{
	fusee_proto_bytes(b, field, s.p, s.len);
}

void fusee_proto_indexes(struct fusee_bytes *b, uint32_t field, const uint32_t *at, uint32_t n)
{
	uint64_t begun;

	if (!n)
		return;
	begun = fusee_proto_begin(b, field);
	if (!fusee_bytes_reserve(b, (uint64_t)n * LONGEST))
		return;
	for (uint32_t i = 0; i < n; i++)
		put_varint(b, at[i]);
	fusee_proto_end(b, begun);
}

/* Most messages are shorter than 128 bytes: one byte is kept for the length. */
uint64_t fusee_proto_begin(struct fusee_bytes *b, uint32_t field)
{
	if (!fusee_bytes_reserve(b, LONGEST + 1))
		return b->len;
	put_varint(b, field << 3 | FUSEE_PROTO_BYTES);
	b->p[b->len++] = 0;
	return b->len;
}

void fusee_proto_end(struct fusee_bytes *b, uint64_t begun)
{
	uint64_t len = b->len - begun, more = 0;

	for (uint64_t v = len; v >= 0x80; v >>= 7)
		more++;
	if (!fusee_bytes_reserve(b, more))
		return;
	if (more)
		memmove(b->p + begun + more, b->p + begun, len);
	b->len = begun - 1;
	put_varint(b, len);
	b->len += len;
}
