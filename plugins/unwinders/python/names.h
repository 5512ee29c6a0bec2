/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Emits what names a code object. A part of the step: python.bpf.c includes it. */
#ifndef PYTHON_NAMES_H
#define PYTHON_NAMES_H

/* Copies a str's characters to dst, which has room for `cap` bytes rounded up to a power of two. 0
 * bytes: it is none that can be read. */
FUSEE_FN void text(struct fusee_unwind *u, const __u32 *table, struct python_text *t, void *dst,
		   __u32 cap, __u64 at)
{
	__u32 sizes = table[PYTHON_TEXT], kind, n;
	struct {
		__u64 length, hash, state;
	} s;

	t->bytes = 0;
	t->shortened = 0;
	t->kind = 1;
	at += table[PYTHON_HEADER];
	if (AT(u, &s, at + 16))
		return;
	s.state >>= table[PYTHON_KIND] & 31; /* kind: 3 bits, compact, ascii */
	kind = s.state & 7;
	if (!(s.state >> 3 & 1) || (kind != 1 && kind != 2 && kind != 4))
		return;
	n = s.length > cap / kind ? cap : (__u32)s.length * kind;
	__asm__ volatile("" : "+r"(n));
	n &= 1023;
	if (n > cap || !n ||
	    fusee_read(u, dst, n, at + (s.state >> 4 & 1 ? sizes & 0xffff : sizes >> 16)))
		return;
	t->bytes = n;
	t->kind = kind;
	t->shortened = s.length > cap / kind;
}

/* Finds the words of a code object that name it: WORK becomes co_filename, NEXT the line table, as
 * far as bytes of a shorter header would begin, and the result is the name. 0: they cannot be read.
 */
FUSEE_FN __u64 naming(struct fusee_unwind *u, struct python_head *h, const struct near *n)
{
	__u32 at = n->table[PYTHON_CODE], version = n->table[PYTHON_VERSION];
	__u64 c[PYTHON_CODE_WORDS], object = n->object;

	h->minor = version >> 8;
	h->micro = version & 255;
	h->has_tasks = n->table[PYTHON_TASKS] != 0;
	h->pad = 0;
	if (n->table[PYTHON_FAMILY] == PYTHON_OBJECTS) {
		if (AT(u, &c, object + at))
			return 0;
		h->first_line = c[0];
		u->scratch[WORK] = c[PYTHON_OLD_FILENAME];
		u->scratch[NEXT] = c[PYTHON_OLD_FILENAME + 2];
		return c[PYTHON_OLD_FILENAME + 1];
	}
	if (fusee_read(u, c, 80, object + at))
		return 0;
	h->first_line = n->table[PYTHON_FIRST_LINE] == 64 ? c[1] : c[0] >> 32;
	u->scratch[WORK] = c[PYTHON_NEW_FILENAME];
	u->scratch[NEXT] = c[PYTHON_NEW_FILENAME + 3] + n->table[PYTHON_HEADER];
	return c[PYTHON_NEW_FILENAME + 2];
}

/* Emits part `part` of the table, of which the buffer has `at` bytes. 1: it was the last; 0: there
 * are more; -1: there is no room. */
FUSEE_FN int emit_table(struct fusee_unwind *u, char *to, __u32 at, __u32 part, __u32 size)
{
	struct python_part *p = (void *)to;
	__u32 from = part * PYTHON_PART_BYTES, n = 0, last;

	if (size > from)
		n = size - from > PYTHON_PART_BYTES ? PYTHON_PART_BYTES : size - from;
	last = from + n >= size;
	__asm__ volatile("" : "+r"(n), "+r"(at));
	n &= 2047;
	at &= 1023;
	if (n > PYTHON_PART_BYTES)
		return -1;
	if (n && fusee_read(u, to + at, n, u->scratch[NEXT] + 32 + from))
		return -1;
	p->part = part;
	p->bytes = n;
	if (!last && fusee_emitted(u, part + 1, u->pushed[0]))
		return 0;
	if (fusee_emit(u, last ? 0 : part + 1, u->pushed[0], at + n))
		return -1;
	return last;
}

/* Emits the names of the code object and the beginning of its table. As emit_table(); WORK: the
 * table's bytes.
 */
static int emit_head(struct fusee_unwind *u, __u32 unused)
{
	struct python_head *h = fusee_buffer(u);
	struct near *n = near(u);
	__u64 name, size;
	__u32 at;

	(void)unused;
	if (!h || !n)
		return -1;
	name = naming(u, h, n);
	if (!name)
		return -1;
	text(u, n->table, &h->name, h + 1, PYTHON_NAME_BYTES, name);
	at = sizeof(*h) + ((h->name.bytes + 7u) & ~7u);
	__asm__ volatile("" : "+r"(at));
	at &= 511;
	text(u, n->table, &h->file, (char *)h + at, PYTHON_FILE_BYTES, u->scratch[WORK]);
	at += (h->file.bytes + 7u) & ~7u;
	if (AT(u, &size, u->scratch[NEXT] + 16) || size > PYTHON_PARTS * PYTHON_PART_BYTES)
		size = 0;
	h->table = size;
	u->scratch[WORK] = size;
	return emit_table(u, (char *)h, at, 0, size);
}
FUSEE_PART(fusee_python_emit_head, emit_head)

static int emit_part(struct fusee_unwind *u, __u32 part)
{
	char *to = fusee_buffer(u);

	if (!to)
		return -1;
	return emit_table(u, to, sizeof(struct python_part), part, u->scratch[WORK]);
}
FUSEE_PART(fusee_python_emit_part, emit_part)

/* Emits what names the frame that was pushed. What has no room comes with the next sample. */
static int emit(struct fusee_unwind *u, __u32 unused)
{
	int r = FUSEE_CALL(fusee_python_emit_head, u, 0);

	(void)u;
	(void)unused;
	for (__u32 i = 1; i < PYTHON_PARTS && !r; i++)
		r = FUSEE_CALL(fusee_python_emit_part, u, i);
	return 0;
}
FUSEE_PART(fusee_python_emit, emit)

#endif
