/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields as protobuf's wire format has them (protobuf.dev, "Encoding"), added to a buffer. Errors
 * are the buffer's.
 */
#ifndef PPROF_WIRE_H
#define PPROF_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

#define VARINT_MOST 10u  /* bytes */
#define VARINT32_MOST 5u /* .. of a number of 32 bits */

/* Writes a number, where there is room for it. Returns its end. */
static inline char *varint_at(char *to, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*to++ = (char)(v | 0x80);
	*to++ = (char)v;
	return to;
}

/* Most of a profile is such numbers: they are written in place where there is room for the longest.
 */
static inline void put_varint(struct buf *b, uint64_t v)
{
	char bytes[VARINT_MOST];

	if (!b->error && b->cap - b->len >= sizeof(bytes))
		b->len = (size_t)(varint_at(b->p + b->len, v) - b->p);
	else
		buf_add(b, bytes, (size_t)(varint_at(bytes, v) - bytes));
}

/* proto3: a zero is not written. */
static inline void put_uint(struct buf *b, uint32_t field, uint64_t v)
{
	if (!v)
		return;
	put_varint(b, field << 3);
	put_varint(b, v);
}

/* Writes n ids in hexadecimal, 16 digits each, terminated. false: all are 0. */
static inline bool hex_of(const uint64_t *ids, uint32_t n, char *to)
{
	uint64_t any = 0;

	for (uint32_t i = 0; i < n; i++)
		any |= ids[i];
	if (!any)
		return false;
	for (uint32_t i = 0; i < 16 * n; i++)
		to[i] = "0123456789abcdef"[ids[i / 16] >> (60 - i % 16 * 4) & 15];
	to[16 * n] = 0;
	return true;
}

static inline void put_bytes(struct buf *b, uint32_t field, const void *p, size_t len)
{
	char *to = buf_grow(b, 2 * VARINT_MOST + len);

	if (!to)
		return;
	to = varint_at(varint_at(to, field << 3 | 2), len);
	if (len)
		memcpy(to, p, len);
	b->len = (size_t)(to + len - b->p);
}
#endif
