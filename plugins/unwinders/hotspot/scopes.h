/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Which methods were inlined at a place of a compiled method. It has a description for each place
 * at which the JVM may stop it, behind each call for example; this leads to the innermost method
 * there and where in it, and from each to the method that it was inlined into, as packed numbers. A
 * part of the step: emit.h includes it.
 */
#ifndef HOTSPOT_SCOPES_H
#define HOTSPOT_SCOPES_H

#include "blob.h"
#include "state.h"

#define MOST_HALVES 24 /* of a table of descriptions */

FUSEE_FN int description(struct fusee_unwind *u, __u64 table, __u32 i, __u32 field, __s32 *value)
{
	return AT(u, value, table + (__u64)i * word(u, HOTSPOT_PC_SIZE) + word(u, field));
}

/* Where the offsets of the tables count from. 0 or -1. */
FUSEE_FN int tables_begin(struct fusee_unwind *u, const struct near *n, __u64 *base)
{
	__u32 at = word(u, HOTSPOT_NMETHOD_IMMUTABLE);

	*base = u->scratch[BLOB];
	return at ? BLOB_AT(u, n, base, at) : 0;
}

/* Where the packed descriptions begin. 0 or -1. */
FUSEE_FN int scopes_begin(struct fusee_unwind *u, const struct near *n, __u64 *scopes)
{
	__u32 at = word(u, HOTSPOT_NMETHOD_SCOPES);
	__u64 base;

	if (at)
		return BLOB_AT(u, n, scopes, at);
	if (tables_begin(u, n, &base) ||
	    blob_number(u, n, word(u, HOTSPOT_NMETHOD_SCOPES_OFFSET), scopes))
		return -1;
	*scopes += base;
	return 0;
}

/* Where the methods are that the descriptions number. 0 or -1. */
FUSEE_FN int metadata_begin(struct fusee_unwind *u, const struct near *n, __u64 *metadata)
{
	__u64 blob = u->scratch[BLOB], number;
	unsigned short narrow;

	if (!word(u, HOTSPOT_NMETHOD_METADATA)) {
		if (BLOB_AT(u, n, metadata, word(u, HOTSPOT_BLOB_MUTABLE)) ||
		    blob_number(u, n, word(u, HOTSPOT_BLOB_RELOCATIONS), &number))
			return -1;
		*metadata += number;
		return 0;
	}
	if (word(u, HOTSPOT_METADATA_BYTES) == sizeof(narrow)) {
		if (BLOB_AT(u, n, &narrow, word(u, HOTSPOT_NMETHOD_METADATA)) ||
		    blob_number(u, n, word(u, HOTSPOT_BLOB_DATA), metadata))
			return -1;
		*metadata += blob + narrow;
		return 0;
	}
	if (blob_number(u, n, word(u, HOTSPOT_NMETHOD_METADATA), metadata))
		return -1;
	*metadata += blob;
	return 0;
}

/* The table of descriptions. 0 or -1. */
FUSEE_FN int descriptions(struct fusee_unwind *u, const struct near *n, __u64 *table, __u64 *end)
{
	__u32 at = word(u, HOTSPOT_NMETHOD_PCS_END);
	__u64 base;

	if (tables_begin(u, n, &base) || blob_number(u, n, word(u, HOTSPOT_NMETHOD_PCS), table))
		return -1;
	*table += base;
	if (!at)
		return scopes_begin(u, n, end);
	if (blob_number(u, n, at, end))
		return -1;
	*end += base;
	return 0;
}

/* Where the description begins of what is executed at this offset of the code: a caller's call is
 * described exactly, an interrupted instruction by what follows. 0: there is none; -1: it cannot be
 * read. */
static int find_scope(struct fusee_unwind *u, __u32 offset)
{
	__u32 size = word(u, HOTSPOT_PC_SIZE), lo = 0, hi, to;
	__u64 table, end;
	struct near *n = near(u);
	__s32 at = 0, scope = 0;

	if (!n || !word(u, HOTSPOT_NMETHOD_PCS) || !size)
		return 0;
	if (descriptions(u, n, &table, &end))
		return -1;
	if (table > end || (end - table) >> 32)
		return 0;
	hi = (__u32)(end - table) / size;
	to = hi;
	for (int i = 0; i < MOST_HALVES && lo < hi; i++) {
		__u32 middle = (lo + hi) / 2;

		if (description(u, table, middle, HOTSPOT_PC_OFFSET, &at))
			return -1;
		if (at < (__s32)offset)
			lo = middle + 1;
		else
			hi = middle;
		lo = forget(n, 0, lo);
		hi = forget(n, 1, hi);
	}
	if (lo >= to)
		return 0;
	if (description(u, table, lo, HOTSPOT_PC_OFFSET, &at) ||
	    description(u, table, lo, HOTSPOT_PC_SCOPE, &scope))
		return -1;
	if (!is_exact(u) && at != (__s32)offset)
		return 0;
	return scope > 0 ? scope : 0;
}
FUSEE_PART(fusee_hotspot_find_scope, find_scope)

/* The next packed number: six bits and more in each byte, the first with the lowest. */
FUSEE_FN __u32 unpack(struct near *n, __u32 *i, __u32 excess)
{
	__u32 sum = 0;

	for (int k = 0; k < 5; k++) {
		__u32 b = n->packed[*i & 15];

		*i = forget(n, 0, *i + 1);
		sum += (b - excess) << 6 * k;
		if (b < 192)
			break;
	}
	return sum;
}

/* n->found becomes the description at this offset. 0; 1: it has no method; -1: it cannot be read.
 */
static int read_scope(struct fusee_unwind *u, __u32 offset)
{
	__u32 i = 0, excess = word(u, HOTSPOT_EXCESS), number;
	struct near *n = near(u);
	__u64 data, metadata;

	if (!n)
		return -1;
	if (scopes_begin(u, n, &data) || metadata_begin(u, n, &metadata) ||
	    fusee_read(u, n->packed, sizeof(n->packed), data + offset))
		return -1;
	n->found.outer = unpack(n, &i, excess);
	number = unpack(n, &i, excess);
	n->found.bci = unpack(n, &i, excess) - 1; /* InvocationEntryBci is -1 */
	if (!number || number >> 24)
		return 1;
	return AT(u, &n->found.method, metadata + 8ull * (number - 1));
}
FUSEE_PART(fusee_hotspot_read_scope, read_scope)

#endif
