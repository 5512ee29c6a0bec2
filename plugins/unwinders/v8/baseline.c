/* SPDX-License-Identifier: Apache-2.0 */
#include "baseline.h"

#include "words.h"

/* The size of a bytecode in bytes; 0: it is not known. */
static uint32_t size_of(const uint32_t *words, uint32_t scale, uint32_t bytecode)
{
	uint32_t i = scale * V8_MOST_BYTECODES + bytecode;

	return bytecode < words[V8_BYTECODES]
		       ? words[V8_BYTECODE_SIZES + i / 4] >> 8 * (i % 4) & 255
		       : 0;
}

/* The size of the bytecode at this offset, with the bytecode before it that makes its operands
 * wider. 0: it is not known, or its end is behind the table's. */
static uint32_t size_at(const uint32_t *words, const struct v8_table *t, uint32_t at)
{
	static const uint32_t scales[] = {1, 2, 1, 2}; /* Wide, ExtraWide, and a debugger's */
	uint32_t scale = 0, n = 0, size;

	if (t->at[at] < 4) {
		scale = scales[t->at[at]];
		n = 1;
	}
	if (t->n - at <= n)
		return 0;
	size = size_of(words, scale, t->at[at + n]);
	return size && size <= t->n - at - n ? n + size : 0;
}

/* Decodes an unsigned number: seven bits a byte, the lowest first. false: the table ends within it,
 * or it is too long. */
static bool next(const struct v8_table *t, uint32_t *at, uint64_t *value)
{
	*value = 0;
	for (uint32_t shift = 0; shift < 32; shift += 7) {
		unsigned char b;

		if (*at >= t->n)
			return false;
		b = t->at[(*at)++];
		*value |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return true;
	}
	return false;
}

int64_t v8_baseline_bytecode(const uint32_t *words, const struct v8_table *bytecode,
			     const struct v8_table *offsets, uint32_t offset)
{
	uint32_t at = 0, i = 0, size;
	uint64_t end = 0, bytes;
	int64_t found = -1;

	if (!bytecode->complete || !offsets->complete || !next(offsets, &i, &bytes))
		return -1;
	end = bytes; /* where the code of the first bytecode begins: what makes the frame is before
		      */
	if (offset < end)
		found = 0;
	for (; at < bytecode->n; at += size) {
		size = size_at(words, bytecode, at);
		if (!size || !next(offsets, &i, &bytes))
			return -1;
		end += bytes;
		if (found < 0 && offset < end)
			found = at;
	}
	return i == offsets->n ? found : -1;
}
