/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fusee/unwinder_native.h - the functions of <fusee/unwinder.bpf.h> for a step that is compiled
 * natively: over a copied stack, over memory that a test makes up, or under a fuzzer.
 */
#ifndef FUSEE_UNWINDER_NATIVE_H
#define FUSEE_UNWINDER_NATIVE_H

#define FUSEE_TOUCHED 32

/*
 * A native walk. The caller of the step makes it and passes &native->u, so `u` stays the first
 * member; the struct grows only at its end. Reads of [stack_lo, stack_hi) are served from the copy,
 * all others by `read`.
 */
struct fusee_native {
	struct fusee_unwind u;
	const unsigned char *stack; /* copy of the target's [stack_lo, stack_hi); borrowed */
	__u64 stack_lo, stack_hi;
	__u64 holes;        /* bit i: page i of the copy is missing; page 0 contains stack_lo */
	const __u32 *slab;  /* u.slab_words words; borrowed */
	const __u32 *words; /* u.words words; borrowed */
	/* Copies memory. 0 or -1. NULL: nothing but the copy can be read. */
	int (*read)(struct fusee_native *, void *dst, __u32 len, __u64 addr);
	void *arg; /* for the callbacks */
	/* 1: the key was emitted already. NULL: no key was. */
	int (*emitted)(struct fusee_native *, __u32 kind, __u64 key);
	/* Takes an emission. 0, or -1: no room. NULL: there is never room. */
	int (*emit)(struct fusee_native *, __u32 kind, __u64 key, const void *, __u32 len);
	/* What a step remembers, as fusee_recall() and fusee_remember(). NULL: nothing. */
	__u64 (*recall)(struct fusee_native *, __u64 key);
	void (*remember)(struct fusee_native *, __u64 key, __u64 value);
	__u64 buffer[2 * FUSEE_EMIT_BYTES / 8]; /* fusee_buffer() */
	/* Pages of the table that were read since ntouched was 0. Some are missing if it has
	 * FUSEE_TOUCHED; some may be there twice. */
	__u32 ntouched, touched[FUSEE_TOUCHED];
	/* Takes a labeler's label: fusee_label_text(). NULL: it cannot be read. */
	int (*label)(struct fusee_native *, __u64 key, __u64 key_len, __u64 value, __u64 value_len);
	/* The place of a note: fusee_find_note(), fusee_make_note(). NULL: there are none. */
	struct fusee_note *(*note)(struct fusee_native *, __u64 key);
	/* As fusee_go_on(). NULL: a frame at each call of the step. */
	int (*go_on)(struct fusee_native *, enum fusee_next how);
};

/* 1: some of the bytes are in a missing page of the copy. */
FUSEE_FN int fusee_hole(const struct fusee_native *n, __u64 addr, __u32 len)
{
	__u64 page = (addr >> 12) - (n->stack_lo >> 12), last = (addr + len - 1) >> 12;

	for (; page < 64 && page <= last - (n->stack_lo >> 12); page++)
		if (n->holes >> page & 1)
			return 1;
	return 0;
}

FUSEE_FN int fusee_read(struct fusee_unwind *u, void *dst, __u32 len, __u64 addr)
{
	struct fusee_native *n = (struct fusee_native *)u;

	if (addr >= n->stack_lo && addr < n->stack_hi && len <= n->stack_hi - addr) {
		if (n->holes && fusee_hole(n, addr, len))
			return -1;
		__builtin_memcpy(dst, n->stack + (addr - n->stack_lo), len);
		return 0;
	}
	return n->read ? n->read(n, dst, len, addr) : -1;
}

FUSEE_FN int fusee_read_stack(struct fusee_unwind *u, __u64 *dst, __u32 n, __u64 addr)
{
	return fusee_read(u, dst, 8 * n, addr);
}

FUSEE_FN int fusee_slab32(struct fusee_unwind *u, __u64 i, __u32 *word)
{
	struct fusee_native *n = (struct fusee_native *)u;

	if (i >= u->slab_words)
		return -1;
	*word = n->slab[i];
	return 0;
}

FUSEE_FN int fusee_process_word(struct fusee_unwind *u, __u64 i, __u32 *word)
{
	struct fusee_native *n = (struct fusee_native *)u;

	if (i >= u->words)
		return -1;
	*word = n->words[i];
	return 0;
}

struct fusee_words {
	const __u32 *word;
};

FUSEE_FN int fusee_slab_words(struct fusee_unwind *u, __u64 i, __u32 n, struct fusee_words *words)
{
	if (i >= u->slab_words || n > u->slab_words - i)
		return -1;
	words->word = ((struct fusee_native *)u)->slab + i;
	return 0;
}

FUSEE_FN __u32 fusee_word(const struct fusee_words *words, __u32 k)
{
	return words->word[k];
}

FUSEE_FN int fusee_copy_words(const struct fusee_words *words, __u32 n, void *to)
{
	__builtin_memcpy(to, words->word, n * sizeof(*words->word));
	return 0;
}

struct fusee_page_words {
	const __u32 *word;
};

FUSEE_FN void fusee_touch(struct fusee_native *n, __u64 i)
{
	__u32 page = (__u32)(i >> FUSEE_PAGE_SHIFT);

	if (n->ntouched < FUSEE_TOUCHED && !(n->ntouched && n->touched[n->ntouched - 1] == page))
		n->touched[n->ntouched++] = page;
}

FUSEE_FN int fusee_table32(struct fusee_unwind *u, __u64 i, __u32 *word)
{
	if (fusee_slab32(u, i, word))
		return -1;
	fusee_touch((struct fusee_native *)u, i);
	return 0;
}

FUSEE_FN int fusee_table_words(struct fusee_unwind *u, __u64 i, __u32 n,
			       struct fusee_page_words *words)
{
	struct fusee_native *native = (struct fusee_native *)u;

	if (i >= u->slab_words || n > u->slab_words - i)
		return -1;
	fusee_touch(native, i);
	if (n)
		fusee_touch(native, i + n - 1);
	words->word = native->slab + i;
	return 0;
}

FUSEE_FN __u32 fusee_table_word(const struct fusee_page_words *words, __u32 k)
{
	return words->word[k];
}

FUSEE_FN int fusee_table_holds(struct fusee_unwind *u, const struct fusee_page_words *words)
{
	(void)u;
	(void)words;
	return 0;
}

FUSEE_FN int fusee_read_str(struct fusee_unwind *u, char *dst, __u32 cap, __u64 addr)
{
	__u32 n = 0;

	if (!cap)
		return -1;
	for (; n < cap - 1; n++) {
		if (fusee_read(u, &dst[n], 1, addr + n))
			return -1;
		if (!dst[n])
			return (int)n + 1;
	}
	dst[n] = 0;
	return (int)cap;
}

FUSEE_FN void *fusee_buffer(struct fusee_unwind *u)
{
	return ((struct fusee_native *)u)->buffer;
}

FUSEE_FN int fusee_emitted(struct fusee_unwind *u, __u32 kind, __u64 key)
{
	struct fusee_native *n = (struct fusee_native *)u;

	return n->emitted ? n->emitted(n, kind, key) : 0;
}

FUSEE_FN int fusee_emit(struct fusee_unwind *u, __u32 kind, __u64 key, __u32 len)
{
	struct fusee_native *n = (struct fusee_native *)u;

	return n->emit && len <= FUSEE_EMIT_BYTES ? n->emit(n, kind, key, n->buffer, len) : -1;
}

FUSEE_FN __u64 fusee_recall(struct fusee_unwind *u, __u64 key)
{
	struct fusee_native *n = (struct fusee_native *)u;

	return n->recall ? n->recall(n, key) : 0;
}

FUSEE_FN void fusee_remember(struct fusee_unwind *u, __u64 key, __u64 value)
{
	struct fusee_native *n = (struct fusee_native *)u;

	if (n->remember)
		n->remember(n, key, value);
}

FUSEE_FN struct fusee_note *fusee_make_note(struct fusee_unwind *u, __u64 key)
{
	struct fusee_native *n = (struct fusee_native *)u;
	struct fusee_note *note = n->note ? n->note(n, key) : 0;

	if (note)
		note->key = key;
	return note;
}

FUSEE_FN struct fusee_note *fusee_find_note(struct fusee_unwind *u, __u64 key)
{
	struct fusee_native *n = (struct fusee_native *)u;
	struct fusee_note *note = n->note ? n->note(n, key) : 0;

	return note && note->key == key ? note : 0;
}

FUSEE_FN int fusee_go_on(struct fusee_unwind *u, enum fusee_next how)
{
	struct fusee_native *n = (struct fusee_native *)u;

	return n->go_on ? n->go_on(n, how) : 0;
}

#define FUSEE_PART(name, part)                                    \
	static inline int name(struct fusee_unwind *u, __u32 arg) \
	{                                                         \
		return part(u, arg);                              \
	}
#define FUSEE_CALL(name, u, arg) name(u, arg)

#define FUSEE_NATIVE_STEP(name, step)                  \
	int fusee_step_##name(struct fusee_unwind *u); \
	int fusee_step_##name(struct fusee_unwind *u)  \
	{                                              \
		return step(u);                        \
	}                                              \
	_Static_assert(1, "")
#define FUSEE_LANGUAGE_STEP(name, step) FUSEE_NATIVE_STEP(name, step)
#endif
