/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The Python unwinder's step. CPython's interpreter is one C function, _PyEval_EvalFrameDefault. To
 * 3.10 it runs one Python function; from 3.11 on a frame of it on the C stack stands for all Python
 * functions that called each other without C in between. The difficulty is to know which Python
 * frames belong to which C frame, since a sample may be taken while the two disagree: where the C
 * function begins and ends. So the innermost Python frame of a C frame is taken from that C frame
 * itself, as far as its place was found (PYTHON_PLACE).
 */
#include <fusee/unwinder.bpf.h>

#include "versions.h"

/* u->scratch */
enum {
	STATE, /* the thread state; 0: not looked for */
	FRAME, /* the next frame; 0: there are no more */
	SP,    /* of the C frame that FRAME belongs to */
	BASE,  /* runtime address of _PyRuntime: there may be several interpreters */
	CODE,  /* the code object of the frame that was pushed */
	WORK,  /* between this file's functions */
	NEXT,
	PLACED, /* the state was read for the chain */
};

#define AT(u, what, addr) fusee_read(u, what, sizeof(*(what)), addr)

/* A word of the table, 0 if there is no such word. */
FUSEE_FN __u32 word(struct fusee_unwind *u, __u32 i)
{
	__u32 w;

	return fusee_slab32(u, i, &w) ? 0 : w;
}

/* ---- the thread state ---- */

#define GLIBC_KEYS 0x310 /* struct pthread: the first block of 32 {sequence number, value} */
#define THREADS 512

/* Is WORK the state of this thread? thread_id is what pthread_self() returned, the thread pointer.
 */
FUSEE_FN int is_own(struct fusee_unwind *u)
{
	__u64 id;

	return u->scratch[WORK] && !(u->scratch[WORK] & 7) &&
	       !AT(u, &id, u->scratch[WORK] + word(u, PYTHON_THREAD_ID)) && id == u->tls;
}

/* The state that the thread keeps under a key of pthread's. 1: WORK is it; 0: there is none. */
static int state_by_key(struct fusee_unwind *u, __u32 unused)
{
	__u32 at = word(u, PYTHON_KEY);
	struct {
		__u32 made, key;
	} k;

	(void)unused;
	if (!at || AT(u, &k, u->scratch[BASE] + at) || !k.made || k.key >= 32)
		return 0;
	if (AT(u, &u->scratch[WORK], u->tls + GLIBC_KEYS + 16ull * k.key + 8))
		return 0;
	return is_own(u);
}
FUSEE_PART(fusee_python_state_by_key, state_by_key)

/* Goes from WORK to the next thread in the lists of all interpreters; NEXT is the next interpreter.
 * 1: it is this thread's; 0: it is another's; -1: there are no more. */
static int next_state(struct fusee_unwind *u, __u32 unused)
{
	__u64 interpreter;

	(void)unused;
	if (u->scratch[WORK]) {
		if (AT(u, &u->scratch[WORK], u->scratch[WORK] + 8))
			return -1;
	} else {
		interpreter = u->scratch[NEXT];
		if (!interpreter || AT(u, &u->scratch[NEXT], interpreter + word(u, PYTHON_NEXT)) ||
		    AT(u, &u->scratch[WORK], interpreter + word(u, PYTHON_THREADS)))
			return -1;
	}
	return is_own(u);
}
FUSEE_PART(fusee_python_next_state, next_state)

/* The state by the runtime's lists, which may change meanwhile; other: not STATE. As above. */
static int state_by_list(struct fusee_unwind *u, __u32 other)
{
	u->scratch[WORK] = 0;
	if (AT(u, &u->scratch[NEXT], u->scratch[BASE] + word(u, PYTHON_INTERPRETERS)))
		return 0;
	for (int i = 0; i < THREADS; i++) {
		int r = FUSEE_CALL(fusee_python_next_state, u, 0);

		if (r < 0)
			return 0;
		if (r && (!other || u->scratch[WORK] != u->scratch[STATE]))
			return 1;
	}
	return 0;
}
FUSEE_PART(fusee_python_state_by_list, state_by_list)

/* To 3.10: a thread that runs a second interpreter keeps the state of the first under its key. The
 * thread that has the GIL runs the state that the runtime names. 0: WORK is the state that runs;
 * -1: it cannot be known. */
static int running_state(struct fusee_unwind *u, __u32 unused)
{
	__u64 state = u->scratch[WORK], next;
	__u32 at = word(u, PYTHON_HOLDER);

	(void)unused;
	if (!at)
		return 0;
	if (!AT(u, &u->scratch[WORK], u->scratch[BASE] + at) && is_own(u))
		return 0;
	u->scratch[WORK] = state;
	if (AT(u, &next, u->scratch[BASE] + word(u, PYTHON_INTERPRETERS)) || !next ||
	    AT(u, &next, next + word(u, PYTHON_NEXT)))
		return -1;
	return next ? -1 : 0; /* there are several interpreters */
}
FUSEE_PART(fusee_python_running_state, running_state)

/* FRAME becomes the innermost frame of the thread; other: of the other interpreter that the thread
 * runs, from which it called the first. 0, or -1: there is no state. */
static int find_state(struct fusee_unwind *u, __u32 other)
{
	__u32 family = word(u, PYTHON_FAMILY);
	__u64 at;

	u->scratch[PLACED] = 1 + other;
	u->scratch[FRAME] = 0;
	if (other) {
		if (FUSEE_CALL(fusee_python_state_by_list, u, 1) != 1)
			return -1;
	} else if (!u->tls ||
		   (FUSEE_CALL(fusee_python_state_by_key, u, 0) != 1 &&
		    FUSEE_CALL(fusee_python_state_by_list, u, 0) != 1) ||
		   FUSEE_CALL(fusee_python_running_state, u, 0)) {
		return -1;
	}
	u->scratch[STATE] = u->scratch[WORK];
	if (AT(u, &at, u->scratch[STATE] + word(u, PYTHON_CURRENT)))
		return -1;
	if (family == PYTHON_ENTRIES || family == PYTHON_SHIMS) /* it is the current cframe */
		return AT(u, &u->scratch[FRAME], at + (family == PYTHON_ENTRIES ? 8 : 0));
	u->scratch[FRAME] = at;
	return 0;
}
FUSEE_PART(fusee_python_find_state, find_state)

/* ---- the walk comes to a C frame ---- */

/* Does the C function begin or end at this pc, so that it has no Python frame, and sp is not where
 * its body has it? */
FUSEE_FN int is_edge(struct fusee_unwind *u)
{
	__u64 at = u->pc - u->claim_lo;

	if (u->claim_arg != PYTHON_EVAL || !(u->flags & FUSEE_FIRST))
		return 0;
	return at < word(u, PYTHON_PROLOGUE) ||
	       (at >= word(u, PYTHON_EPILOGUE) && at < word(u, PYTHON_EPILOGUE_END));
}

FUSEE_FN __u64 callee_saved(const struct fusee_unwind *u, __u32 reg)
{
	return reg == FUSEE_X86_RBX   ? u->regs[FUSEE_X86_RBX]
	       : reg == FUSEE_X86_RBP ? u->fp
	       : reg == FUSEE_X86_R12 ? u->regs[FUSEE_X86_R12]
	       : reg == FUSEE_X86_R13 ? u->regs[FUSEE_X86_R13]
	       : reg == FUSEE_X86_R14 ? u->regs[FUSEE_X86_R14]
	       : reg == FUSEE_X86_R15 ? u->regs[FUSEE_X86_R15]
				      : 0;
}

/* 3.8 to 3.10: has this C frame unlinked its frame already, at its end? */
FUSEE_FN int is_unlinked(struct fusee_unwind *u)
{
	__u64 back, at = u->pc - u->claim_lo;
	__u32 reg = word(u, PYTHON_PLACE);

	if (u->claim_arg != PYTHON_EVAL)
		return 0;
	if (u->flags & FUSEE_FIRST)
		return reg && !AT(u, &back, callee_saved(u, reg) + 24) && back == u->scratch[FRAME];
	for (__u32 i = 0; i < 4; i++)
		if (at && at == word(u, PYTHON_UNLINKED + i))
			return 1;
	return 0;
}

/* Are this C frame's Python frames missing? It has called something, so that it has some, but the
 * thread's list of them has ended: a greenlet began there, whose list is its own. A reason or 0. */
FUSEE_FN int is_missing(struct fusee_unwind *u)
{
	return !u->scratch[FRAME] && !(u->flags & FUSEE_FIRST) ? PYTHON_OUT_OF_STEP : 0;
}

/* FRAME becomes the innermost Python frame of this C frame, 0: it has none. 0, or a reason. */
static int enter(struct fusee_unwind *u, __u32 unused)
{
	__u64 base = u->bias + word(u, PYTHON_RUNTIME) +
		     ((__u64)word(u, PYTHON_RUNTIME_HIGH) << 32);
	__u32 family = word(u, PYTHON_FAMILY), place = word(u, PYTHON_PLACE);
	__u64 previous;
	int inner;

	(void)unused;
	u->scratch[SP] = u->sp;
	if (u->scratch[BASE] != base) {
		u->scratch[BASE] = base;
		u->scratch[PLACED] = 0;
	}
	inner = u->scratch[PLACED] != 0;
	if (is_edge(u))
		return -1;
	if (place && (family == PYTHON_ENTRIES || family == PYTHON_SHIMS))
		return AT(u, &u->scratch[FRAME], u->sp + place) ? PYTHON_UNREADABLE : 0;
	if (!u->scratch[PLACED] && FUSEE_CALL(fusee_python_find_state, u, 0))
		return PYTHON_NO_STATE;
	if (!u->scratch[FRAME] && u->scratch[PLACED] == 1)
		FUSEE_CALL(fusee_python_find_state, u, 1);
	if (family == PYTHON_OBJECTS)
		return is_unlinked(u) ? -1 : is_missing(u);
	if (place & PYTHON_BELOW_FP && u->flags & FUSEE_FP_LOST)
		return 0;
	if (family == PYTHON_CHAIN && place) {
		if (AT(u, &previous,
		       (place & PYTHON_BELOW_FP ? u->fp - (place & ~PYTHON_BELOW_FP)
						: u->sp + place) +
			       8))
			return PYTHON_UNREADABLE;
		/* it has unlinked its frames, unless there is none and it has called others */
		if (previous == u->scratch[FRAME] && (previous || !inner))
			return -1;
		return is_missing(u);
	}
	return 0;
}
FUSEE_PART(fusee_python_enter, enter)

/* ---- frames ---- */

FUSEE_FN __u64 mix(__u64 a, __u64 b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15ull;
	return a ^ a >> 32;
}

/* A code object's key: what is at its address now. c: PYTHON_CODE_WORDS words of it. */
FUSEE_FN __u64 key_of(__u64 code, __u64 file, __u64 name, __u64 table, __u32 line)
{
	return mix(mix(mix(mix(mix(0x707974686f6eull, code), file), name), table), line);
}

/* Pushes a frame of the code object CODE at instruction WORK. 0, -1: it cannot be read, 1: it is
 * none that a program has. */
static int push_code(struct fusee_unwind *u, __u32 family)
{
	__u64 c[PYTHON_CODE_WORDS], code = u->scratch[CODE], at = u->scratch[WORK];
	__u32 line = word(u, PYTHON_FIRST_LINE);

	if (family == PYTHON_OBJECTS) {
		if (AT(u, &c, code + word(u, PYTHON_CODE)))
			return -1;
		fusee_push(u,
			   key_of(code, c[PYTHON_OLD_FILENAME], c[PYTHON_OLD_FILENAME + 1],
				  c[PYTHON_OLD_FILENAME + 2], (__u32)c[0]),
			   (__u32)at);
		return 0;
	}
	if (fusee_read(u, c, 80, code + word(u, PYTHON_CODE)))
		return -1;
	/* what initializes instances of classes is a frame of a static code object */
	if (c[PYTHON_NEW_FILENAME] == c[PYTHON_NEW_FILENAME + 2])
		return 1;
	at -= code + word(u, PYTHON_BYTECODE);
	fusee_push(u,
		   key_of(code, c[PYTHON_NEW_FILENAME], c[PYTHON_NEW_FILENAME + 2],
			  c[PYTHON_NEW_FILENAME + 3], line == 64 ? c[1] : c[0] >> 32),
		   at >> 63 ? PYTHON_NO_INSTRUCTION : (__u32)(at / 2));
	return 0;
}
FUSEE_PART(fusee_python_push_code, push_code)

/* 3.8 to 3.10: pushes FRAME, a frame object. */
static int push_object(struct fusee_unwind *u, __u32 unused)
{
	__u64 f[2];
	__s32 lasti;

	(void)unused;
	if (AT(u, &f, u->scratch[FRAME] + 24) ||
	    AT(u, &lasti, u->scratch[FRAME] + word(u, PYTHON_FRAME)))
		return fusee_stop(u, PYTHON_UNREADABLE);
	u->scratch[CODE] = f[1];
	u->scratch[WORK] = (__u32)lasti;
	if (FUSEE_CALL(fusee_python_push_code, u, PYTHON_OBJECTS))
		return fusee_stop(u, PYTHON_UNREADABLE);
	u->scratch[FRAME] = f[0];
	return FUSEE_NATIVE;
}
FUSEE_PART(fusee_python_push_object, push_object)

/* 3.12 on: FRAME is the frame on the C stack that ends a C frame's frames. It must be in this
 * C frame, or those that were pushed are another's. */
FUSEE_FN int leave(struct fusee_unwind *u, __u64 previous)
{
	__u64 at = u->scratch[FRAME] - u->sp;

	u->scratch[FRAME] = previous;
	return at > PYTHON_MOST_FRAME ? fusee_stop(u, PYTHON_OUT_OF_STEP) : FUSEE_NATIVE;
}

/* Pushes FRAME, and goes to its caller. */
static int push(struct fusee_unwind *u, __u32 family)
{
	__u32 how = word(u, PYTHON_FRAME);
	__u64 f[10], previous;
	int last;

	if (AT(u, &f, u->scratch[FRAME]))
		return fusee_stop(u, PYTHON_UNREADABLE);
	last = ((how & 64 ? f[9] : f[8]) >> (how & 63) & 255) == (how >> 8 & 255);
	if (family == PYTHON_ENTRIES) {
		u->scratch[CODE] = f[4];
		previous = f[6];
	} else {
		u->scratch[CODE] = f[0] & ~1ull;
		previous = f[1];
		if (last)
			return leave(u, previous);
	}
	u->scratch[WORK] = f[7];
	if (FUSEE_CALL(fusee_python_push_code, u, family) < 0)
		return fusee_stop(u, PYTHON_UNREADABLE);
	u->scratch[FRAME] = previous;
	return family == PYTHON_ENTRIES && last ? FUSEE_NATIVE : FUSEE_AGAIN;
}
FUSEE_PART(fusee_python_push, push)

/* ---- what names a code object ---- */

/* Copies a str's characters to dst, which has room for `cap` bytes rounded up to a power of two. 0
 * bytes: it is none that can be read. */
FUSEE_FN void text(struct fusee_unwind *u, struct python_text *t, void *dst, __u32 cap, __u64 at)
{
	__u32 sizes = word(u, PYTHON_TEXT), kind, n;
	struct {
		__u64 length, hash, state;
	} s;

	t->bytes = 0;
	t->shortened = 0;
	t->kind = 1;
	at += word(u, PYTHON_HEADER);
	if (AT(u, &s, at + 16))
		return;
	kind = s.state >> 2 & 7;
	if (!(s.state >> 5 & 1) || (kind != 1 && kind != 2 && kind != 4))
		return;
	n = s.length > cap / kind ? cap : (__u32)s.length * kind;
	__asm__ volatile("" : "+r"(n));
	n &= 1023;
	if (n > cap || !n ||
	    fusee_read(u, dst, n, at + (s.state >> 6 & 1 ? sizes & 0xffff : sizes >> 16)))
		return;
	t->bytes = n;
	t->kind = kind;
	t->shortened = s.length > cap / kind;
}

/* Finds the words of CODE that name it: WORK becomes co_filename, NEXT the line table, as far as
 * bytes of a shorter header would begin, and the result is the name. 0: they cannot be read. */
FUSEE_FN __u64 naming(struct fusee_unwind *u, struct python_head *h)
{
	__u64 c[PYTHON_CODE_WORDS];
	__u32 at = word(u, PYTHON_CODE), version = word(u, PYTHON_VERSION);

	h->minor = version >> 8;
	h->micro = version & 255;
	if (word(u, PYTHON_FAMILY) == PYTHON_OBJECTS) {
		if (AT(u, &c, u->scratch[CODE] + at))
			return 0;
		h->first_line = c[0];
		u->scratch[WORK] = c[PYTHON_OLD_FILENAME];
		u->scratch[NEXT] = c[PYTHON_OLD_FILENAME + 2];
		return c[PYTHON_OLD_FILENAME + 1];
	}
	if (fusee_read(u, c, 80, u->scratch[CODE] + at))
		return 0;
	h->first_line = word(u, PYTHON_FIRST_LINE) == 64 ? c[1] : c[0] >> 32;
	u->scratch[WORK] = c[PYTHON_NEW_FILENAME];
	u->scratch[NEXT] = c[PYTHON_NEW_FILENAME + 3] + word(u, PYTHON_HEADER);
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

/* Emits the names of CODE and the beginning of its table. As emit_table(); WORK: the table's bytes.
 */
static int emit_head(struct fusee_unwind *u, __u32 unused)
{
	struct python_head *h = fusee_buffer(u);
	__u64 name, size;
	__u32 at;

	(void)unused;
	if (!h)
		return -1;
	name = naming(u, h);
	if (!name)
		return -1;
	text(u, &h->name, h + 1, PYTHON_NAME_BYTES, name);
	at = sizeof(*h) + ((h->name.bytes + 7u) & ~7u);
	__asm__ volatile("" : "+r"(at));
	at &= 511;
	text(u, &h->file, (char *)h + at, PYTHON_FILE_BYTES, u->scratch[WORK]);
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

/* ---- the step ---- */

static int python_step(struct fusee_unwind *u)
{
	__u32 family = word(u, PYTHON_FAMILY);
	int r;

	if (u->scratch[SP] != u->sp) {
		r = FUSEE_CALL(fusee_python_enter, u, 0);
		if (r)
			return r < 0 ? FUSEE_NATIVE : fusee_stop(u, (__u32)r);
	}
	if (!u->scratch[FRAME])
		return FUSEE_NATIVE;
	r = family == PYTHON_OBJECTS ? FUSEE_CALL(fusee_python_push_object, u, 0)
				     : FUSEE_CALL(fusee_python_push, u, family);
	if (u->npushed && !fusee_emitted(u, 0, u->pushed[0]))
		FUSEE_CALL(fusee_python_emit, u, 0);
	return r;
}
FUSEE_LANGUAGE_STEP(python, python_step);
