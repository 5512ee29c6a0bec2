/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fusee/unwinder.bpf.h - what an unwinder's step sees.
 *
 * A step is one C function, built twice from one source: for BPF, where it runs in the kernel at
 * each sample, and natively, where it runs over a copied stack, over recorded memory in tests and
 * under fuzzers. It therefore sees only `struct fusee_unwind` and the functions declared here: no
 * vmlinux.h, no task_struct, no helpers, no writable globals, no libc.
 *
 *	static int my_step(struct fusee_unwind *u) { ... return FUSEE_NEXT; }
 *	FUSEE_NATIVE_STEP(my, my_step);
 *
 * A native unwinder's step leaves one machine frame. A language unwinder's (FUSEE_LANGUAGE_STEP) is
 * called where pc is in code that it claimed: it pushes the source's frames, one a call, with
 * fusee_push() and FUSEE_AGAIN, and hands back with FUSEE_NATIVE (the native unwinders leave this
 * pc; if nothing was pushed for it, it is shown as the native frame that it is) or with FUSEE_NEXT,
 * when it has set pc, sp and fp to the caller's by itself. What the frames are called is sent while
 * they are alive, with fusee_emit(), to ops->record().
 *
 * Rules that the BPF verifier makes: no signed division, no unbounded loop, less than 300 bytes of
 * stack, and its own parts (FUSEE_PART) call each other at most four deep. Every read can fail, in
 *the kernel because a page is not there, natively because the copy ends: a failed read ends the
 *stack with a reason, it is never treated as zero.
 */
#ifndef FUSEE_UNWINDER_BPF_H
#define FUSEE_UNWINDER_BPF_H

#ifdef __bpf__
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
#else
#include <linux/types.h>
#endif

#define FUSEE_MAX_REGS 33

/* x86-64 DWARF register numbers (System V psABI, figure 3.36). */
enum fusee_x86_64_reg {
	FUSEE_X86_RAX,
	FUSEE_X86_RDX,
	FUSEE_X86_RCX,
	FUSEE_X86_RBX,
	FUSEE_X86_RSI,
	FUSEE_X86_RDI,
	FUSEE_X86_RBP,
	FUSEE_X86_RSP,
	FUSEE_X86_R8,
	FUSEE_X86_R9,
	FUSEE_X86_R10,
	FUSEE_X86_R11,
	FUSEE_X86_R12,
	FUSEE_X86_R13,
	FUSEE_X86_R14,
	FUSEE_X86_R15,
	FUSEE_X86_RIP,
};

/* What a step answers. */
enum fusee_next {
	FUSEE_STOP,   /* the stack ends here: whole if u->error is 0, else cut for that reason */
	FUSEE_NEXT,   /* pc, sp and fp are the caller's now */
	FUSEE_PASS,   /* native unwinders only: I know nothing about this pc, ask the next one */
	FUSEE_NATIVE, /* language unwinders only: frames are pushed; step this pc natively */
	FUSEE_AGAIN,  /* call me again at the same place */
	FUSEE_NATIVE_TOO, /* as FUSEE_NATIVE, and the native frame is shown, as their caller */
};

enum fusee_unwind_flags {
	FUSEE_PC_EXACT = 1, /* pc is the interrupted instruction (leaf, or below a signal frame),
			     * else a return address: look rules up at pc - 1 */
	FUSEE_FIRST = 2,   /* no step was taken yet: pc is where the thread was interrupted; without
			    * FUSEE_PC_EXACT it stands behind a system call's instruction */
	FUSEE_FP_LOST = 4, /* fp is not the caller's: it could not be recovered */
	FUSEE_GUESSED = 8, /* set by a step: the caller it found is a guess. The core clears it */
	FUSEE_SIGNAL = 16, /* set by a step: it left a signal frame. The core clears it */
	FUSEE_INEXPRESSIBLE = 32, /* set by a step that stops: a full CFI interpreter could go on.
				   * The core clears it */
};

enum fusee_origin { FUSEE_CPU = 1, FUSEE_OFF_CPU, FUSEE_ALLOC, FUSEE_EVENT };

/* The state of one walk. Grows at the end only; frames are kept elsewhere for this reason. */
struct fusee_unwind {
	__u32 origin, pid, tid;
	__u32 machine; /* ELF e_machine: 62 x86-64, 183 aarch64 */
	__u32 slot;
	__u32 error;   /* reason of FUSEE_STOP: index into the unwinder's `reasons`, 0 none */
	__u32 flags;   /* enum fusee_unwind_flags */
	__u32 budget;  /* steps left; the core's */
	__u64 process; /* one life of a pid; ids are never used again */
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 value;   /* weight */
	__u64 pc, sp, fp, lr;      /* fp: rbp or x29; lr: aarch64 leaf only */
	__u64 tls;                 /* thread pointer */
	__u64 file;                /* of the mapping that holds pc; 0: anonymous memory */
	__u64 offset;              /* ELF virtual address of pc in that file */
	__u64 bias;                /* pc = offset + bias */
	__u64 claim_lo, claim_arg; /* claim_lo: runtime address of the claim's first byte */
	__u64 map_lo, map_hi;      /* the mapping that holds pc */
	/* Bit n: regs[n] is known in this frame. What stands in the others is what a frame below
	 * had there: a callee-saved one that nobody saved in between is this frame's still. */
	__u64 valid_regs;
	__u64 regs[FUSEE_MAX_REGS]; /* by DWARF number; pc, sp and fp stand above, not here */
	__u64 context;
	__u64 slab, slab_words; /* this unwinder's table of `file`, in words; 0 words: none */
	__u64 slab_id; /* of these words, never of others; 0: none, nothing is remembered of them */
	/* For language unwinders. */
	__u64 first_sp;   /* sp where the thread was interrupted; memory below is no frame's */
	__u64 scratch[8]; /* the step's own: zero at first, kept until the walk ends */
	__u64 pushed[2];  /* by fusee_push() */
	__u32 npushed;    /* 1: there is one; the core takes it, and sets it to 0 */
	__u32 pad;
};

#define FUSEE_EMIT_BYTES 2048u /* of one emission at most */

#ifdef __bpf__
/* ---- BPF: over the core's maps, matched by name when the object is linked at load ---- */

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name
#define FUSEE_FN static __attribute__((always_inline)) inline

#define FUSEE_SLAB_WORDS 262144 /* an element is 1 MiB */
#define FUSEE_SLAB_SHIFT 18

/* Helper numbers: enum bpf_func_id of the kernel's uapi/linux/bpf.h. */
static void *(*fusee_bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*fusee_bpf_probe_read_user)(void *dst, __u32 size, const void *from) = (void *)112;
static long (*fusee_bpf_probe_read_user_str)(void *dst, __u32 size, const void *from) = (void *)114;
static long (*fusee_bpf_map_update_elem)(void *map, const void *key, const void *value,
					 __u64 flags) = (void *)2;

struct fusee_slab_element {
	__u32 word[FUSEE_SLAB_WORDS];
};

/* All tables of all files; the core sizes it and fills it through mmap. */
struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__uint(map_flags, 1024 /* MMAPABLE */);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct fusee_slab_element));
} fusee_slabs SEC(".maps") __attribute__((weak));

/* The walk of this CPU. */
struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fusee_unwind);
} fusee_state SEC(".maps") __attribute__((weak));

/*
 * The window: a piece of the user stack that was read in one go, since the kernel takes not much
 * longer for 1 KiB than for 8 bytes, and longer than a step takes for everything else. It holds
 * what memory held during this sample, so it must be empty when a walk begins. Most stacks are
 * short and the caches cold: it begins small, and each move doubles it.
 */
#define FUSEE_WINDOW_WORDS 512
#define FUSEE_WINDOW_FIRST 1024       /* bytes */
#define FUSEE_WINDOW_REACH (1u << 20) /* a read this far above sp is one of the stack */

struct fusee_window {
	__u64 base;                         /* word[] is [base, base + len) of the target */
	__u32 len;                          /* 0: nothing */
	__u32 next;                         /* bytes to read when it is moved */
	__u64 word[FUSEE_WINDOW_WORDS + 1]; /* the last: that no masked index leads outside */
};

/* The window of this CPU. */
struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fusee_window);
} fusee_window SEC(".maps") __attribute__((weak));

/* The core's entry programs call it at each sample, before the first step. */
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
 * Moves the window to addr, with room below it for what a frame saves under its return address. -1:
 * that cannot be read. One for all objects that are linked, and global: verified once.
 */
__attribute__((noinline, weak)) int fusee_window_move(__u64 addr)
{
	__u32 zero = 0, size, most = FUSEE_WINDOW_WORDS * 8;
	struct fusee_window *w = fusee_bpf_map_lookup_elem(&fusee_window, &zero);
	__u64 base = (addr - 56) & ~63ull;

	if (!w)
		return -1;
	size = w->next;
	if (size > most) /* never; the verifier can't know */
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

/* Copies len bytes at addr of the target. 0, or -1: not there. */
FUSEE_FN int fusee_read(struct fusee_unwind *u, void *dst, __u32 len, __u64 addr)
{
	struct fusee_window *w;
	__u32 zero = 0, i;

	/* What steps read of stacks are words and pairs of them; the rest is rare. */
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

/* Copies word `i` of this unwinder's table of u->file. 0, or -1: outside the table. */
FUSEE_FN int fusee_slab32(struct fusee_unwind *u, __u64 i, __u32 *word)
{
	struct fusee_slab_element *e;
	__u64 at = u->slab + i;
	__u32 key = at >> FUSEE_SLAB_SHIFT;

	if (i >= u->slab_words)
		return -1;
	e = fusee_bpf_map_lookup_elem(&fusee_slabs, &key);
	if (!e)
		return -1;
	*word = e->word[at & (FUSEE_SLAB_WORDS - 1)];
	return 0;
}

/* Words of a table that lie one behind the other. */
struct fusee_words {
	const struct fusee_slab_element *element;
	__u32 at;
};

/*
 * Finds words [i, i + n) of this unwinder's table of u->file, to be read without further looking
 * up. 0, or -1: not all in the table, or, which happens to any table now and then, not together in
 * the kernel: take them by fusee_slab32().
 */
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

/* Word k of them. k >= n: what stands there is another word of any table; natively: never. */
FUSEE_FN __u32 fusee_word(const struct fusee_words *words, __u32 k)
{
	return words->element->word[(words->at + k) & (FUSEE_SLAB_WORDS - 1)];
}

/*
 * Copies a string with its NUL, cap bytes at most, the last of them NUL. Bytes with the NUL, or -1:
 * not there.
 */
FUSEE_FN int fusee_read_str(struct fusee_unwind *u, char *dst, __u32 cap, __u64 addr)
{
	long n = fusee_bpf_probe_read_user_str(dst, cap, (const void *)addr);

	(void)u;
	return n > 0 ? (int)n : -1;
}

#define FUSEE_EMITS 64u        /* in one sample */
#define FUSEE_EMIT_ROOM 16384u /* bytes of all of one sample's */
#define FUSEE_EMIT_HEAD 64u    /* the core's, before them */
#define FUSEE_EMIT_EACH 16u    /* before each: key, kind, bytes */

struct fusee_sent_key {
	__u64 process, key;
	__u32 kind, slot;
};

/* What was sent, or will be with this sample. */
struct {
	__uint(type, 9 /* LRU_HASH */);
	__uint(max_entries, 16384);
	__type(key, struct fusee_sent_key);
	__type(value, __u32);
} fusee_sent SEC(".maps") __attribute__((weak));

/* What this sample's step has emitted: the core sends it before the sample. */
struct fusee_emissions {
	__u32 n, at; /* at: bytes used */
	struct fusee_sent_key key[FUSEE_EMITS];
	__u8 head[FUSEE_EMIT_HEAD];
	__u8 byte[FUSEE_EMIT_ROOM + FUSEE_EMIT_EACH + FUSEE_EMIT_BYTES];
};

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fusee_emissions);
} fusee_emissions SEC(".maps") __attribute__((weak));

/* Where the bytes of the next emission are to be put: FUSEE_EMIT_BYTES, filled with what was there
 * before. NULL: no room is left in this sample. */
FUSEE_FN void *fusee_buffer(struct fusee_unwind *u)
{
	__u32 zero = 0, at;
	struct fusee_emissions *e = fusee_bpf_map_lookup_elem(&fusee_emissions, &zero);

	(void)u;
	if (!e || e->n >= FUSEE_EMITS)
		return 0;
	at = e->at;
	if (at > FUSEE_EMIT_ROOM - FUSEE_EMIT_EACH - FUSEE_EMIT_BYTES)
		return 0;
	return &e->byte[at + FUSEE_EMIT_EACH];
}

/* 1: it was emitted for this process, and needs not be again. */
FUSEE_FN int fusee_emitted(struct fusee_unwind *u, __u32 kind, __u64 key)
{
	struct fusee_sent_key k = {u->process, key, kind, u->slot};

	return fusee_bpf_map_lookup_elem(&fusee_sent, &k) != 0;
}

/*
 * Sends the first len bytes of fusee_buffer() to ops->record(), with kind and key, if they were not
 * sent before. An address alone is a bad key, since memory is used again: mix in what tells its
 * contents apart. 0, or -1: no room in this sample, come again with the next one.
 */
FUSEE_FN int fusee_emit(struct fusee_unwind *u, __u32 kind, __u64 key, __u32 len)
{
	struct fusee_sent_key k = {u->process, key, kind, u->slot};
	__u32 zero = 0, at, one = 1;
	struct fusee_emissions *e = fusee_bpf_map_lookup_elem(&fusee_emissions, &zero);

	if (!e || e->n >= FUSEE_EMITS || len > FUSEE_EMIT_BYTES)
		return -1;
	at = e->at;
	if (at > FUSEE_EMIT_ROOM - FUSEE_EMIT_EACH - FUSEE_EMIT_BYTES ||
	    fusee_bpf_map_update_elem(&fusee_sent, &k, &one, 0))
		return -1;
	__asm__ volatile("" : "+r"(at));
	at &= FUSEE_EMIT_ROOM - 1; /* it is; 5.10 forgets what is spilled */
	*(__u64 *)&e->byte[at] = key;
	*(__u32 *)&e->byte[at + 8] = kind;
	*(__u32 *)&e->byte[at + 12] = len;
	e->key[e->n & (FUSEE_EMITS - 1)] = k;
	e->n++;
	e->at = at + FUSEE_EMIT_EACH + ((len + 7) & ~7u);
	return 0;
}

/*
 * A part of a step, `static int part(struct fusee_unwind *u, __u32 arg)`, as a global function:
 * verified once, whoever calls it, and out of the way of what runs at each frame, whose few cache
 * lines count when nothing is in the caches. Called as FUSEE_CALL(name, u, arg); prefix the name
 * with fusee_ and the plugin's. (The verifier wants an argument to be there even where nothing
 * reads it, and the compiler would leave it out.)
 */
#define FUSEE_PART(name, part)                                                           \
	__attribute__((noinline)) int name(__u32 arg)                                    \
	{                                                                                \
		__u32 zero = 0;                                                          \
		struct fusee_unwind *u = fusee_bpf_map_lookup_elem(&fusee_state, &zero); \
                                                                                         \
		__asm__ volatile("" : "+r"(arg));                                        \
		return u ? part(u, arg) : -1;                                            \
	}
#define FUSEE_CALL(name, u, arg) name(arg)

/* A native unwinder's step becomes a global function too, called by the core's loop. */
#define FUSEE_NATIVE_STEP(name, step)                                                    \
	__attribute__((noinline)) int fusee_step_##name(__u32 slot)                      \
	{                                                                                \
		__u32 zero = 0;                                                          \
		struct fusee_unwind *u = fusee_bpf_map_lookup_elem(&fusee_state, &zero); \
                                                                                         \
		(void)slot;                                                              \
		return u ? step(u) : FUSEE_STOP;                                         \
	}                                                                                \
	char LICENSE[] SEC("license") = "Dual BSD/GPL"

/* A language unwinder's: one to a program, so it has no name of its own there. */
#define FUSEE_LANGUAGE_STEP(name, step)                                                  \
	__attribute__((noinline)) int fusee_language_step(__u32 slot)                    \
	{                                                                                \
		__u32 zero = 0;                                                          \
		struct fusee_unwind *u = fusee_bpf_map_lookup_elem(&fusee_state, &zero); \
                                                                                         \
		__asm__ volatile("" : "+r"(slot));                                       \
		return u ? step(u) : FUSEE_STOP;                                         \
	}                                                                                \
	char LICENSE[] SEC("license") = "Dual BSD/GPL"

#else /* !__bpf__ */
/* ---- native: over a memory reader ---- */

#define FUSEE_FN static inline

/*
 * What stands behind a native walk. The stack copy is read in place; everything else goes to
 * `read`, which may be NULL. `u` must be the first member: a step is handed &native->u.
 */
struct fusee_native {
	struct fusee_unwind u;
	const unsigned char *stack; /* copy of the target's [stack_lo, stack_hi) */
	__u64 stack_lo, stack_hi;
	__u64 holes; /* bit i: page i of the copy, from the one on that stack_lo is in, is not there
		      */
	const __u32 *slab; /* u.slab_words of them */
	int (*read)(struct fusee_native *, void *dst, __u32 len, __u64 addr); /* 0 or -1 */
	void *arg; /* of whoever made `read` */
	/* 1: it was emitted before. NULL: nothing ever was */
	int (*emitted)(struct fusee_native *, __u32 kind, __u64 key);
	/* 0 or -1: no room. NULL: there is none */
	int (*emit)(struct fusee_native *, __u32 kind, __u64 key, const void *, __u32 len);
	__u64 buffer[FUSEE_EMIT_BYTES / 8]; /* fusee_buffer() */
};

/* Are bytes of the copy in a page that is not there? */
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

FUSEE_FN int fusee_slab32(struct fusee_unwind *u, __u64 i, __u32 *word)
{
	struct fusee_native *n = (struct fusee_native *)u;

	if (i >= u->slab_words)
		return -1;
	*word = n->slab[i];
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

#define FUSEE_PART(name, part)                                    \
	static inline int name(struct fusee_unwind *u, __u32 arg) \
	{                                                         \
		return part(u, arg);                              \
	}
#define FUSEE_CALL(name, u, arg) name(u, arg)

/* Natively the step is a function that the plugin's descriptor names. */
#define FUSEE_NATIVE_STEP(name, step)                  \
	int fusee_step_##name(struct fusee_unwind *u); \
	int fusee_step_##name(struct fusee_unwind *u)  \
	{                                              \
		return step(u);                        \
	}                                              \
	_Static_assert(1, "")
#define FUSEE_LANGUAGE_STEP(name, step) FUSEE_NATIVE_STEP(name, step)
#endif /* __bpf__ */

/* Ends the stack: `return fusee_stop(u, MY_REASON);`. reason: index into ops->reasons from 1, or 0
 * if the stack is complete. */
FUSEE_FN int fusee_stop(struct fusee_unwind *u, __u32 reason)
{
	u->error = reason;
	return FUSEE_STOP;
}

/*
 * Pushes a frame of the source: two words that ops->symbolize() is handed to name it by. Once a
 * call of the step. 0, or -1: this call has pushed one.
 */
FUSEE_FN int fusee_push(struct fusee_unwind *u, __u64 v0, __u64 v1)
{
	if (u->npushed)
		return -1;
	u->pushed[0] = v0;
	u->pushed[1] = v1;
	u->npushed = 1;
	return 0;
}
#endif
