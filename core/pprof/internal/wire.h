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

#include "base/buf.h"

/* Most of a profile is such numbers: they are written in place where there is room for the longest.
 */
static inline void put_varint(struct buf *b, uint64_t v)
{
	char bytes[10];
	bool fits = !b->error && b->cap - b->len >= sizeof(bytes);
	char *to = fits ? b->p + b->len : bytes;
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (char)(v | 0x80);
	to[n++] = (char)v;
	if (fits)
		b->len += n;
	else
		buf_add(b, bytes, n);
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

	for (uint32_t i = 0; i < 16 * n; i++)
		to[i] = "0123456789abcdef"[ids[i / 16] >> (60 - i % 16 * 4) & 15];
	to[16 * n] = 0;
	for (uint32_t i = 0; i < n; i++)
		any |= ids[i];
	return any;
}

static inline void put_bytes(struct buf *b, uint32_t field, const void *p, size_t len)
{
	put_varint(b, field << 3 | 2);
	put_varint(b, len);
	buf_add(b, p, len);
}
#endif
