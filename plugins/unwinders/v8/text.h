/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Texts of V8: a sequence of characters of one or two bytes; a text that is in another place; a
 * part of another text; two texts that were joined. A part of the step: v8.bpf.c includes it.
 */
#ifndef V8_TEXT_H
#define V8_TEXT_H

#include "state.h"

#define MOST_HOPS 8
#define MOST_PIECES 16u
#define UNCACHED                                                                         \
	16u /* bit of the type of an external text that does not say where its bytes are \
	     */

/* The text is no sequence of characters. As follow(). */
FUSEE_FN int follow_shape(struct fusee_unwind *u, struct near *n, __u64 text, __u32 shape)
{
	struct flat *f = &n->flat;
	__u64 at;

	if (shape == word(u, V8_THIN))
		return AT(u, &f->text, field(text, word(u, V8_THIN_ACTUAL)));
	if (shape == word(u, V8_SLICED)) {
		if (AT(u, &at, field(text, word(u, V8_SLICED_OFFSET))))
			return -1;
		f->at = at >> NUMBER_SHIFT << f->wide;
		return AT(u, &f->text, field(text, word(u, V8_SLICED_PARENT)));
	}
	if (shape == word(u, V8_CONS)) {
		if (n->rests >= MOST_RESTS || AT(u, &n->rest[n->rests & (MOST_RESTS - 1)],
						 field(text, word(u, V8_CONS_SECOND))))
			return -1;
		n->rests++;
		f->length = 0;
		return AT(u, &f->text, field(text, word(u, V8_CONS_FIRST)));
	}
	if (shape != word(u, V8_EXTERNAL) ||
	    AT(u, &at, field(text, word(u, V8_EXTERNAL_RESOURCE) + 8)))
		return -1;
	f->at += at;
	return 1;
}

/* One hop from the text of n->flat towards its characters. 1: they are found; 0: n->flat.text is
 * the next; -1: it is none, or cannot be read. */
static int follow(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	__u32 shape, length;
	struct flat *f;
	__u64 text;
	int type;

	(void)unused;
	if (!n)
		return -1;
	f = &n->flat;
	text = f->text;
	type = type_of(u, &text);
	if (type < 0 || (__u32)type >= word(u, V8_FIRST_NONSTRING) ||
	    AT(u, &length, field(text, word(u, V8_STRING_LENGTH))))
		return -1;
	shape = (__u32)type & word(u, V8_SHAPE_MASK);
	if (shape == word(u, V8_EXTERNAL) && (__u32)type & UNCACHED)
		return -1;
	if (!f->length) /* of the outermost: a part is shorter than what it is a part of */
		f->length = length;
	f->wide = !((__u32)type & word(u, V8_ONE_BYTE));
	if (shape)
		return follow_shape(u, n, text, shape);
	f->at += field(text, word(u, V8_STRING_CHARS));
	return 1;
}
FUSEE_PART(fusee_v8_follow, follow)

/* Copies the characters to byte `at` of the buffer. 0 or -1. */
FUSEE_FN int put_flat(struct fusee_unwind *u, struct near *n, const struct flat *f, __u32 at,
		      __u32 most)
{
	char *buffer = fusee_buffer(u);
	__u32 bytes = f->length << f->wide;

	if (f->length > 1u << 28 || !buffer)
		return -1;
	if (bytes > most)
		bytes = most & ~f->wide;
	__asm__ volatile("" : "+r"(bytes), "+r"(at));
	bytes &= V8_SCRIPT_BYTES;
	at &= FUSEE_EMIT_BYTES - 1;
	if (bytes && fusee_read(u, buffer + at, bytes, f->at))
		return -1;
	n->text.bytes = (unsigned short)bytes;
	n->text.wide = (unsigned short)f->wide;
	return 0;
}

/* Copies the first text of TEXT that is not joined to byte `at` of the buffer; TEXT becomes what
 * follows it, 0: nothing. */
static int put_piece(struct fusee_unwind *u, __u32 at_most)
{
	struct near *n = near(u);
	int r = 0;

	if (!n)
		return -1;
	n->flat = (struct flat){.text = u->scratch[TEXT]};
	for (int i = 0; i < MOST_HOPS && !r; i++)
		r = FUSEE_CALL(fusee_v8_follow, u, 0);
	u->scratch[TEXT] = 0;
	if (n->rests)
		u->scratch[TEXT] = n->rest[--n->rests & (MOST_RESTS - 1)];
	return r == 1 ? put_flat(u, n, &n->flat, at_most >> 16, at_most & 0xffff) : -1;
}
FUSEE_PART(fusee_v8_put_piece, put_piece)

/* Copies TEXT to byte at_most >> 16 of the buffer, at most so many bytes. n->text says what was
 * copied. 0, or -1: it is no text, or cannot be read. */
static int put_text(struct fusee_unwind *u, __u32 at_most)
{
	__u32 at = at_most >> 16, most = at_most & 0xffff, bytes = 0, wide = 0;
	struct near *n = near(u);

	if (!n)
		return -1;
	n->rests = 0;
	for (__u32 i = 0; i < MOST_PIECES && (!i || (u->scratch[TEXT] && bytes < most)); i++) {
		if (FUSEE_CALL(fusee_v8_put_piece, u, (at + bytes) << 16 | (most - bytes)))
			return -1;
		if (!bytes)
			wide = n->text.wide;
		if (n->text.wide != wide && n->text.bytes)
			break; /* characters of another size */
		bytes += n->text.bytes;
	}
	n->text.bytes = (unsigned short)bytes;
	n->text.wide = (unsigned short)wide;
	return 0;
}
FUSEE_PART(fusee_v8_put_text, put_text)

#endif
