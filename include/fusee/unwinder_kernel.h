/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fusee/unwinder_kernel.h - the functions of <fusee/unwinder.bpf.h> for BPF. They use maps of the
 * core, which are matched by name when the step's object is linked with the core's at load time.
 * The maps and all that is not described in <fusee/unwinder.bpf.h> belong to the core.
 *
 * An object that was built against an older header of the same ABI must still link. So maps that
 * both sides access have values with room, into which structs grow at their ends, and one entry;
 * the core resizes them when it loads them. Code that is not needed at each frame is a function of
 * the core (fusee_core_*), whose weak default in the object is replaced at link time.
 */
#ifndef FUSEE_UNWINDER_KERNEL_H
#define FUSEE_UNWINDER_KERNEL_H

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name

#define FUSEE_SLAB_WORDS 262144 /* of one map element: 1 MiB */
#define FUSEE_SLAB_SHIFT 18

/* Helper numbers: enum bpf_func_id of the kernel's uapi/linux/bpf.h. */
static void *(*fusee_bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*fusee_bpf_probe_read_user)(void *dst, __u32 size, const void *from) = (void *)112;
static long (*fusee_bpf_probe_read_user_str)(void *dst, __u32 size, const void *from) = (void *)114;
static long (*fusee_bpf_map_update_elem)(void *map, const void *key, const void *value,
					 __u64 flags) = (void *)2;

/* The version of the ABI that the object was built for, as the size of a map that is never made. */
struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, FUSEE_BPF_ABI);
	__uint(key_size, 4);
	__uint(value_size, 4);
} fusee_abi SEC(".maps") __attribute__((weak));

struct fusee_slab_element {
	__u32 word[FUSEE_SLAB_WORDS];
};

/* The tables of all files. The core sets its size and writes it through mmap. */
struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__uint(map_flags, 1024 /* MMAPABLE */);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct fusee_slab_element));
} fusee_slabs SEC(".maps") __attribute__((weak));

/* The frames of tables by page, and their states. The core sets their sizes and writes them through
 * mmap. */
struct fusee_frame {
	__u32 word[FUSEE_PAGE_WORDS];
};

struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__uint(map_flags, 1024 /* MMAPABLE */);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct fusee_frame));
} fusee_frames SEC(".maps") __attribute__((weak));

struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__uint(map_flags, 1024 /* MMAPABLE */);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct fusee_frame_state));
} fusee_frame_states SEC(".maps") __attribute__((weak));

/* The walk on this CPU: struct fusee_unwind, with room. */
struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 2048);
} fusee_state SEC(".maps") __attribute__((weak));

FUSEE_FN struct fusee_unwind *fusee_current(void)
{
	__u32 zero = 0;

	return fusee_bpf_map_lookup_elem(&fusee_state, &zero);
}

/* What the core says to steps of a walk, this many bytes behind struct fusee_unwind's beginning. */
#define FUSEE_WALK_AT 1024

struct fusee_walk {
	__u64 notes_of; /* of the process and the unwinder; 0: there are no notes */
};

FUSEE_FN struct fusee_walk *fusee_walk(struct fusee_unwind *u)
{
	return (void *)((char *)u + FUSEE_WALK_AT);
}

/*
 * The window: a piece of the user stack that is read with one helper call, since a call for 1 KiB
 * takes little more time than a call for 8 bytes, and both take more than the rest of a step. The
 * window must be empty when a walk begins, since its content is only true for one sample. Most
 * stacks are short and the caches cold, so the window begins small and each move doubles it.
 */
#define FUSEE_WINDOW_WORDS 512
#define FUSEE_WINDOW_FIRST 1024       /* bytes */
#define FUSEE_WINDOW_REACH (1u << 20) /* bytes above sp that are taken for the stack */

struct fusee_window {
	__u64 base; /* word[] is [base, base + len) of the target */
	__u32 len;  /* 0: the window is empty */
	__u32 next; /* bytes that the next move reads */
	/* the last keep what is read from masked indices on within the array */
	__u64 word[FUSEE_WINDOW_WORDS + FUSEE_STACK_WORDS];
};

/* The window on this CPU: struct fusee_window, with room. */
struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8192);
} fusee_window SEC(".maps") __attribute__((weak));

/* Empties the window. The core calls it at each sample, before the first step. */
FUSEE_FN void fusee_window_reset(void)
{
	__u32 zero = 0;
	struct fusee_window *w = fusee_bpf_map_lookup_elem(&fusee_window, &zero);

	if (w) {
		w->len = 0;
		w->next = FUSEE_WINDOW_FIRST;
	}
}

/*
 * Moves the window to addr, with room below it for what a frame saves below its return address. 0,
 * or -1: addr cannot be read. The function is global, so that all linked objects share it and the
 * verifier checks it once.
 */
__attribute__((noinline, weak)) int fusee_window_move(__u64 addr)
{
	__u32 zero = 0, size, most = FUSEE_WINDOW_WORDS * 8;
	struct fusee_window *w = fusee_bpf_map_lookup_elem(&fusee_window, &zero);
	__u64 base = (addr - 56) & ~63ull;

	if (!w)
		return -1;
	size = w->next;
	if (size > most) /* for the verifier: it never is */
		return -1;
	w->base = base;
	w->len = 0;
	w->next = size < most ? size * 2 : most;
	if (fusee_bpf_probe_read_user(w->word, size, (const void *)base)) {
		/* the next page may be missing */
		most = size;
		size = -(__u32)base & 4095;
		if (!size || size >= most ||
		    fusee_bpf_probe_read_user(w->word, size, (const void *)base))
			return -1;
	}
	w->len = size;
	return 0;
}

FUSEE_FN int fusee_window_holds(const struct fusee_window *w, __u64 addr, __u32 len)
{
	__u64 at = addr - w->base;

	return at < w->len && len <= w->len - at;
}

FUSEE_FN int fusee_read(struct fusee_unwind *u, void *dst, __u32 len, __u64 addr)
{
	struct fusee_window *w;
	__u32 zero = 0, i;

	/* Steps read words and pairs of words of the stack; other reads are rare. */
	if ((len != 8 && len != 16) || addr & 7)
		goto direct;
	w = fusee_bpf_map_lookup_elem(&fusee_window, &zero);
	if (!w)
		goto direct;
	if (__builtin_expect(!fusee_window_holds(w, addr, len), 0) &&
	    (addr - u->sp >= FUSEE_WINDOW_REACH || fusee_window_move(addr) ||
	     !fusee_window_holds(w, addr, len)))
		goto direct;
	i = (addr - w->base) / 8 & (FUSEE_WINDOW_WORDS - 1);
	__builtin_memcpy(dst, &w->word[i], 8);
	if (len == 16)
		__builtin_memcpy((char *)dst + 8, &w->word[i + 1], 8);
	return 0;
direct:
	return fusee_bpf_probe_read_user(dst, len, (const void *)addr) ? -1 : 0;
}

FUSEE_FN int fusee_read_stack(struct fusee_unwind *u, __u64 *dst, __u32 n, __u64 addr)
{
	struct fusee_window *w;
	__u32 zero = 0, at;

	w = fusee_bpf_map_lookup_elem(&fusee_window, &zero);
	if (!w || addr & 7 ||
	    (!fusee_window_holds(w, addr, 8 * n) &&
	     (addr - u->sp >= FUSEE_WINDOW_REACH || fusee_window_move(addr) ||
	      !fusee_window_holds(w, addr, 8 * n))))
		return fusee_bpf_probe_read_user(dst, 8 * n, (const void *)addr) ? -1 : 0;
	at = (addr - w->base) / 8 & (FUSEE_WINDOW_WORDS - 1);
	for (__u32 i = 0; i < n; i++)
		dst[i] = w->word[at + i];
	return 0;
}

/* Word `at` of all tables. */
FUSEE_FN int fusee_slab_word(__u64 at, __u32 *word)
{
	struct fusee_slab_element *e;
	__u32 key = at >> FUSEE_SLAB_SHIFT;

	e = fusee_bpf_map_lookup_elem(&fusee_slabs, &key);
	if (!e)
		return -1;
	*word = e->word[at & (FUSEE_SLAB_WORDS - 1)];
	return 0;
}

FUSEE_FN int fusee_slab32(struct fusee_unwind *u, __u64 i, __u32 *word)
{
	return i < u->slab_words ? fusee_slab_word(u->slab + i, word) : -1;
}

FUSEE_FN int fusee_process_word(struct fusee_unwind *u, __u64 i, __u32 *word)
{
	return i < u->words ? fusee_slab_word(u->words_at + i, word) : -1;
}

struct fusee_words {
	const struct fusee_slab_element *element;
	__u32 at;
};

FUSEE_FN int fusee_slab_words(struct fusee_unwind *u, __u64 i, __u32 n, struct fusee_words *words)
{
	__u64 at = u->slab + i;
	__u32 key = at >> FUSEE_SLAB_SHIFT;

	if (i >= u->slab_words || n > u->slab_words - i)
		return -1;
	words->at = at & (FUSEE_SLAB_WORDS - 1);
	if (n > FUSEE_SLAB_WORDS - words->at)
		return -1;
	words->element = fusee_bpf_map_lookup_elem(&fusee_slabs, &key);
	return words->element ? 0 : -1;
}

FUSEE_FN __u32 fusee_word(const struct fusee_words *words, __u32 k)
{
	return words->element->word[(words->at + k) & (FUSEE_SLAB_WORDS - 1)];
}

FUSEE_FN int fusee_copy_words(const struct fusee_words *words, __u32 n, void *to)
{
	__u64 at = words->at;
	const __u32 *from;

	__asm__ volatile("" : "+r"(at));
	if (at > FUSEE_SLAB_WORDS - n) /* for the verifier: it never is */
		return -1;
	from = &words->element->word[at];
	for (__u32 i = 0; i < n / 2; i++)
		((__u64 *)to)[i] = *(const __u64 *)(const void *)(from + 2 * i);
	if (n & 1)
		((__u32 *)to)[n - 1] = from[n - 1];
	return 0;
}

struct fusee_page_words {
	const __u32 *page;
	volatile struct fusee_frame_state *state;
	__u32 at, filling;
};

/* Finds the page of word i; its frame is marked as used. u->absent is set until
 * fusee_table_holds() says that what was read is true; once it has remained set all reads fail. */
FUSEE_FN int fusee_table_page(struct fusee_unwind *u, __u64 i, struct fusee_page_words *words)
{
	__u32 entry, frame;

	if (u->absent)
		return -1;
	words->at = i & (FUSEE_PAGE_WORDS - 1);
	i = u->slab + (i >> FUSEE_PAGE_SHIFT);
	if (fusee_slab_word(i, &entry))
		return -1;
	u->absent = i;
	frame = entry & ((1u << FUSEE_FRAME_BITS) - 1);
	words->filling = entry >> FUSEE_FRAME_BITS;
	words->page = fusee_bpf_map_lookup_elem(&fusee_frames, &frame);
	words->state = fusee_bpf_map_lookup_elem(&fusee_frame_states, &frame);
	if (!entry || !words->page || !words->state)
		return -1;
	if (!words->state->used)
		words->state->used = 1;
	return 0;
}

FUSEE_FN int fusee_table_holds(struct fusee_unwind *u, const struct fusee_page_words *words)
{
	/* Loads of an x86-64 CPU are in order; this keeps the compiler's in order too. */
	__asm__ volatile("" ::: "memory");
	if (words->state->filling != words->filling)
		return -1;
	u->absent = 0;
	return 0;
}

FUSEE_FN int fusee_table32(struct fusee_unwind *u, __u64 i, __u32 *word)
{
	struct fusee_page_words words;

	if (i >= u->slab_words || fusee_table_page(u, i, &words))
		return -1;
	*word = words.page[words.at];
	return fusee_table_holds(u, &words);
}

FUSEE_FN int fusee_table_words(struct fusee_unwind *u, __u64 i, __u32 n,
			       struct fusee_page_words *words)
{
	if (i >= u->slab_words || n > u->slab_words - i ||
	    n > FUSEE_PAGE_WORDS - (i & (FUSEE_PAGE_WORDS - 1)))
		return -1;
	return fusee_table_page(u, i, words);
}

FUSEE_FN __u32 fusee_table_word(const struct fusee_page_words *words, __u32 k)
{
	return words->page[(words->at + k) & (FUSEE_PAGE_WORDS - 1)];
}

FUSEE_FN int fusee_read_str(struct fusee_unwind *u, char *dst, __u32 cap, __u64 addr)
{
	long n = fusee_bpf_probe_read_user_str(dst, cap, (const void *)addr);

	(void)u;
	return n > 0 ? (int)n : -1;
}

/* The buffer of fusee_buffer() on this CPU. */
struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 2 * FUSEE_EMIT_BYTES);
} fusee_emission SEC(".maps") __attribute__((weak));

FUSEE_FN void *fusee_buffer(struct fusee_unwind *u)
{
	__u32 zero = 0;

	(void)u;
	return fusee_bpf_map_lookup_elem(&fusee_emission, &zero);
}

/* Notes, by a part of the key. */
#define FUSEE_NOTES_SHIFT 10

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1 << FUSEE_NOTES_SHIFT);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct fusee_note));
} fusee_notes SEC(".maps") __attribute__((weak));

FUSEE_FN struct fusee_note *fusee_note_place(__u64 key)
{
	__u32 i = key * 0x9e3779b97f4a7c15ull >> (64 - FUSEE_NOTES_SHIFT);

	return fusee_bpf_map_lookup_elem(&fusee_notes, &i);
}

FUSEE_FN struct fusee_note *fusee_find_note(struct fusee_unwind *u, __u64 key)
{
	struct fusee_note *n = fusee_note_place(key);

	return n && n->key == key && n->of == fusee_walk(u)->notes_of && n->of ? n : 0;
}

FUSEE_FN struct fusee_note *fusee_make_note(struct fusee_unwind *u, __u64 key)
{
	struct fusee_note *n = fusee_note_place(key);

	if (n) {
		n->key = key;
		n->of = fusee_walk(u)->notes_of;
	}
	return n;
}

#ifdef FUSEE_CORE
int fusee_core_go_on(int how);
int fusee_core_emitted(__u32 kind, __u64 key);
int fusee_core_emit(__u32 kind, __u64 key, __u32 len);
__u64 fusee_core_recall(__u64 key);
int fusee_core_remember(__u64 key, __u64 value);
#else
/* The empty assembly keeps arguments that nothing reads: the verifier requires them, and the
 * compiler would drop them. */
__attribute__((noinline, weak)) int fusee_core_go_on(int how)
{
	__asm__ volatile("" : "+r"(how));
	return 0;
}

__attribute__((noinline, weak)) int fusee_core_emitted(__u32 kind, __u64 key)
{
	__asm__ volatile("" : "+r"(kind), "+r"(key));
	return 0;
}

__attribute__((noinline, weak)) int fusee_core_emit(__u32 kind, __u64 key, __u32 len)
{
	__asm__ volatile("" : "+r"(kind), "+r"(key), "+r"(len));
	return -1;
}

__attribute__((noinline, weak)) __u64 fusee_core_recall(__u64 key)
{
	__asm__ volatile("" : "+r"(key));
	return 0;
}

__attribute__((noinline, weak)) int fusee_core_remember(__u64 key, __u64 value)
{
	__asm__ volatile("" : "+r"(key), "+r"(value));
	return -1;
}
#endif

FUSEE_FN int fusee_emitted(struct fusee_unwind *u, __u32 kind, __u64 key)
{
	(void)u;
	return fusee_core_emitted(kind, key);
}

FUSEE_FN int fusee_emit(struct fusee_unwind *u, __u32 kind, __u64 key, __u32 len)
{
	(void)u;
	return fusee_core_emit(kind, key, len);
}

FUSEE_FN __u64 fusee_recall(struct fusee_unwind *u, __u64 key)
{
	(void)u;
	return fusee_core_recall(key);
}

FUSEE_FN void fusee_remember(struct fusee_unwind *u, __u64 key, __u64 value)
{
	(void)u;
	fusee_core_remember(key, value);
}

FUSEE_FN int fusee_go_on(struct fusee_unwind *u, enum fusee_next how)
{
	(void)u;
	return fusee_core_go_on(how);
}

/* A global function. */
#define FUSEE_PART(name, part)                            \
	__attribute__((noinline)) int name(__u32 arg)     \
	{                                                 \
		struct fusee_unwind *u = fusee_current(); \
                                                          \
		__asm__ volatile("" : "+r"(arg));         \
		return u ? part(u, arg) : -1;             \
	}
#define FUSEE_CALL(name, u, arg) name(arg)

/* A global function that the core's loop calls. */
#define FUSEE_NATIVE_STEP(name, step)                               \
	__attribute__((noinline)) int fusee_step_##name(__u32 slot) \
	{                                                           \
		struct fusee_unwind *u = fusee_current();           \
                                                                    \
		(void)slot;                                         \
		return u ? step(u) : FUSEE_STOP;                    \
	}                                                           \
	char LICENSE[] SEC("license") = "Dual BSD/GPL"

/* A program has one language unwinder, so that the function has a fixed name. */
#define FUSEE_LANGUAGE_STEP(name, step)                               \
	__attribute__((noinline)) int fusee_language_step(__u32 slot) \
	{                                                             \
		struct fusee_unwind *u = fusee_current();             \
                                                                      \
		__asm__ volatile("" : "+r"(slot));                    \
		return u ? step(u) : FUSEE_STOP;                      \
	}                                                             \
	char LICENSE[] SEC("license") = "Dual BSD/GPL"

#endif
