/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The Python unwinder's step. CPython's interpreter is one C function, _PyEval_EvalFrameDefault. Up
 * to 3.10 each call of it runs one Python function. From 3.11 on, one frame of it on the C stack
 * stands for all Python functions that called each other without C in between. The difficulty is to
 * know which Python frames belong to which C frame: where the C function begins and ends, a sample
 * may see the Python frames before or after they change. So the innermost Python frame of a C frame
 * is read from the C frame itself, if the place where it keeps that is known (PYTHON_PLACE).
 */
#include <fusee/unwinder.bpf.h>

#include "versions.h"

/* u->scratch */
enum {
	STATE, /* the thread state; 0: not looked for */
	FRAME, /* the next frame; 0: there are no more */
	SP,    /* of the C frame that FRAME belongs to */
	BASE,  /* runtime address of _PyRuntime: there may be several interpreters */
	COUNT, /* see count_codes(); 0: not read yet */
	WORK,  /* WORK, NEXT: arguments and results of this file's functions */
	NEXT,
	PLACED, /* low byte: 1 or 2: the thread state was read; above it: see more_work() */
};

#define AT(u, what, addr) fusee_read(u, what, sizeof(*(what)), addr)

/* ---- what is kept while the frames of one C frame are pushed ---- */

/*
 * It is in the steps' half of the buffer, which other steps use, too, so it is valid from enter()
 * until the step has pushed all frames of the C frame. Frames that called each other lie next to
 * each other, so that one read may hold several. The memory below the innermost frame is read in
 * pieces that grow, because many C frames have one Python frame only.
 */
#define FRAME_BYTES 80u /* bytes of a frame that are read */
#define NEAR_BYTES 1024u
#define OBJECT_WORDS 11 /* words of a frame object, from f_back to f_lasti */
#define CODE_WORDS 10   /* words of a code object */
#define COROUTINES 64u  /* the most coroutines of a task; a power of two */

struct near {
	__u32 table[PYTHON_WORDS];
	__u32 next;        /* how many bytes the next read takes */
	__u64 base, bytes; /* word[] has the memory [base, base + bytes) */
	__u64 seen;        /* an earlier frame: see returns() */
	__u32 pushed, pad0;
	/* of the last frame: its code object, the key under which that is remembered, and the code
	 * object's key, 0 if it was not remembered */
	__u64 object, memory, key;
	__u64 word[(NEAR_BYTES + FRAME_BYTES) / 8];
	__u64 entry; /* address of the entry frame, which ends the list of frames; 0: not known */
	/* a task or future: the coroutines that await it are pushed next; 0: none; see tasks.h */
	__u64 future;
	__u32 then;        /* what the step returns when these are pushed */
	__u32 tasks;       /* tasks that were found to await it, directly or not */
	__u32 ncoroutines; /* coroutines of the last task that remain to be pushed */
	__u32 pad;
	__u64 text[5];
	__u64 code[CODE_WORDS]; /* what distinguishes a code object */
	__u64 coroutine[COROUTINES];
};

_Static_assert(sizeof(struct near) <= FUSEE_EMIT_BYTES, "the buffer has room");

FUSEE_FN struct near *near(struct fusee_unwind *u)
{
	char *buffer = fusee_buffer(u);

	return buffer ? (void *)(buffer + FUSEE_EMIT_BYTES) : 0;
}

#include "state.h"

/* ---- frames that lie near each other ---- */

/* Reads the table's words one by one, for when they do not lie in one page of the kernel's copy. */
static int read_table(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);

	(void)unused;
	if (!n)
		return -1;
	for (__u32 i = 0; i < PYTHON_WORDS; i++)
		if (fusee_slab32(u, i, &n->table[i]))
			return -1;
	return 0;
}
FUSEE_PART(fusee_python_read_table, read_table)

FUSEE_FN int begin_near(struct fusee_unwind *u, struct near *n)
{
	struct fusee_words words;

	n->next = FRAME_BYTES;
	n->bytes = n->memory = n->key = n->future = n->seen = n->entry = 0;
	n->pushed = 0;
	if (fusee_slab_words(u, 0, PYTHON_WORDS, &words))
		return FUSEE_CALL(fusee_python_read_table, u, 0);
	return fusee_copy_words(&words, PYTHON_WORDS, n->table);
}

/* Reads FRAME and memory below it, within the frame's page: the page before may not be in memory,
 * and an attempt to read it takes longer than ten other reads. 0 or -1. */
static int move_near(struct fusee_unwind *u, __u32 unused)
{
	__u64 at = u->scratch[FRAME];
	struct near *n = near(u);
	__u32 size;

	(void)unused;
	if (!n)
		return -1;
	size = n->next;
	n->bytes = 0;
	n->next = size == FRAME_BYTES ? 4 * FRAME_BYTES : NEAR_BYTES;
	if (size > FRAME_BYTES + (at & 4095))
		size = FRAME_BYTES + (at & 4095);
	n->base = at + FRAME_BYTES - size;
	__asm__ volatile("" : "+r"(size));
	if (size > NEAR_BYTES || fusee_read(u, n->word, size, n->base))
		return -1;
	n->bytes = size;
	return 0;
}
FUSEE_PART(fusee_python_move_near, move_near)

/* The words of FRAME. NULL: they cannot be read. */
FUSEE_FN const __u64 *frame_words(struct fusee_unwind *u, struct near *n)
{
	__u64 at = u->scratch[FRAME], i = at - n->base;

	if (at & 7)
		return 0;
	if (i >= n->bytes || n->bytes - i < FRAME_BYTES) {
		if (FUSEE_CALL(fusee_python_move_near, u, 0))
			return 0;
		i = at - n->base;
	}
	i /= 8;
	__asm__ volatile("" : "+r"(i));
	return &n->word[i & (NEAR_BYTES / 8 - 1)];
}

/* ---- the walk comes to a C frame ---- */

/* Was the C function interrupted where it begins or ends? There it has no Python frame, and sp is
 * not yet, or no longer, what its body uses. */
FUSEE_FN int is_edge(const struct fusee_unwind *u, const struct near *n)
{
	__u64 at = u->pc - u->claim_lo;

	if (u->claim_arg != PYTHON_EVAL || !(u->flags & FUSEE_FIRST))
		return 0;
	return at < n->table[PYTHON_PROLOGUE] ||
	       (at >= n->table[PYTHON_EPILOGUE] && at < n->table[PYTHON_EPILOGUE_END]);
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

/* 3.8 to 3.10: is this C frame at its end, where it has already unlinked its Python frame? */
FUSEE_FN int is_unlinked(struct fusee_unwind *u, const struct near *n)
{
	__u64 back, at = u->pc - u->claim_lo;
	__u32 reg = n->table[PYTHON_PLACE];

	if (u->claim_arg != PYTHON_EVAL)
		return 0;
	if (reg & PYTHON_IN_STACK)
		return !AT(u, &back, u->sp + (reg & ~PYTHON_IN_STACK)) &&
		       !AT(u, &back, back + 24) && back == u->scratch[FRAME];
	if (u->flags & FUSEE_FIRST)
		return reg && !AT(u, &back, callee_saved(u, reg) + 24) && back == u->scratch[FRAME];
	for (__u32 i = 0; i < 4; i++)
		if (at && at == n->table[PYTHON_UNLINKED + i])
			return 1;
	return 0;
}

/* Returns a reason if this C frame's Python frames are missing, otherwise 0. A C frame that has
 * called something has Python frames. If the thread's list has ended nevertheless, a greenlet began
 * there, which has a list of its own. */
FUSEE_FN int is_missing(struct fusee_unwind *u)
{
	return !u->scratch[FRAME] && !(u->flags & FUSEE_FIRST) ? PYTHON_OUT_OF_STEP : 0;
}

FUSEE_FN __u64 runtime_of(const struct fusee_unwind *u, const struct near *n)
{
	return u->bias + n->table[PYTHON_RUNTIME] + ((__u64)n->table[PYTHON_RUNTIME_HIGH] << 32);
}

/* Forgets what was read of a runtime if this C frame is of another: a process may have several. */
FUSEE_FN void begin_runtime(struct fusee_unwind *u, const struct near *n)
{
	__u64 base = runtime_of(u, n);

	if (u->scratch[BASE] == base)
		return;
	u->scratch[BASE] = base;
	u->scratch[PLACED] &= ~255ull;
	u->scratch[COUNT] = 0;
}

/* Is this C frame at a call of an instruction's function, in interpreters that have such
 * functions? */
FUSEE_FN int is_call(const struct fusee_unwind *u)
{
	return (u->claim_arg & 255) == PYTHON_CALL;
}

FUSEE_FN int is_inner(const struct fusee_unwind *u, __u64 at)
{
	return at >= u->first_sp && at < u->sp;
}

/*
 * If instructions have functions that call each other, the interpreter's C function is recognized
 * by its call of the first; before that call, and after it has returned, it is not. Such a C
 * function, below this C frame on the stack, may already have an entry frame: that is skipped, with
 * the frame of the Python function that has not begun. 0 or -1.
 */
static int pass_inner(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	const __u64 *f;
	__u64 previous;

	(void)unused;
	if (!n || !u->scratch[FRAME])
		return n ? 0 : -1;
	if (!is_inner(u, u->scratch[FRAME])) {
		f = frame_words(u, n);
		if (!f)
			return -1;
		if (!is_inner(u, f[1]))
			return 0;
		u->scratch[FRAME] = f[1];
	}
	if (AT(u, &previous, u->scratch[FRAME] + 8))
		return -1;
	u->scratch[FRAME] = previous;
	return 0;
}
FUSEE_PART(fusee_python_pass_inner, pass_inner)

/* From 3.13 on: has this C frame, whose frames end at n->entry, unlinked them? 0: no; -1: yes, or
 * no frame is missing; or a reason. inner: frames of other C frames were pushed. */
FUSEE_FN int unlinked_chain(struct fusee_unwind *u, const struct near *n, int inner)
{
	__u64 previous;

	if (AT(u, &previous, n->entry + 8))
		return PYTHON_UNREADABLE;
	/* not if the list has ended, although this C frame has called others */
	if (previous == u->scratch[FRAME] && (previous || !inner))
		return -1;
	return is_missing(u);
}

/* Sets FRAME to the innermost Python frame of this C frame; 0: it has none. Returns 0 or a
 * reason. */
static int enter(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	__u32 family, place, inner;

	(void)unused;
	u->scratch[SP] = u->sp;
	if (!n || begin_near(u, n))
		return PYTHON_UNREADABLE;
	family = n->table[PYTHON_FAMILY];
	place = is_call(u) ? (__u32)(u->claim_arg >> 32) : n->table[PYTHON_PLACE];
	begin_runtime(u, n);
	inner = placed(u) != 0;
	if (is_edge(u, n) || (is_call(u) && u->flags & FUSEE_PC_EXACT))
		return -1;
	if (is_call(u))
		u->flags |= FUSEE_OMIT_CALLEE;
	if (place && (family == PYTHON_ENTRIES || family == PYTHON_SHIMS))
		return AT(u, &u->scratch[FRAME], u->sp + place) ? PYTHON_UNREADABLE : 0;
	if (!placed(u) && FUSEE_CALL(fusee_python_find_state, u, 0))
		return PYTHON_NO_STATE;
	if (!u->scratch[FRAME] && placed(u) == 1)
		FUSEE_CALL(fusee_python_find_state, u, 1);
	if (family == PYTHON_OBJECTS)
		return is_unlinked(u, n) ? -1 : is_missing(u);
	if (is_call(u) && FUSEE_CALL(fusee_python_pass_inner, u, 0))
		return PYTHON_UNREADABLE;
	if (!place || (place & PYTHON_BELOW_FP && u->flags & FUSEE_FP_LOST))
		return inner ? is_missing(u) : 0;
	n->entry = place & PYTHON_BELOW_FP ? u->fp - (place & ~PYTHON_BELOW_FP) : u->sp + place;
	return unlinked_chain(u, n, inner);
}
FUSEE_PART(fusee_python_enter, enter)

/* ---- frames ---- */

/* The key of a code object: its address with what is there now, as memory is used again. */
FUSEE_FN __u64 key_of(__u64 code, __u64 file, __u64 name, __u64 table, __u32 line)
{
	__u64 key = fusee_mix(0x707974686f6eull, code);

	return fusee_mix(fusee_mix(fusee_mix(fusee_mix(key, file), name), table), line);
}

/* 3.8 to 3.10: pushes FRAME, a frame object. */
static int push_object(struct fusee_unwind *u, __u32 unused)
{
	/* from f_back and f_code on; the place of f_lasti differs between versions */
	__u64 f[OBJECT_WORDS], c[PYTHON_CODE_WORDS];
	struct near *n = near(u);

	(void)unused;
	if (!n || u->scratch[FRAME] & 7 || AT(u, &f, u->scratch[FRAME] + 24) || f[1] & 7 ||
	    AT(u, &c, f[1] + n->table[PYTHON_CODE]))
		return fusee_stop(u, PYTHON_UNREADABLE);
	n->object = f[1];
	u->scratch[FRAME] = f[0];
	fusee_push(u,
		   key_of(f[1], c[PYTHON_OLD_FILENAME], c[PYTHON_OLD_FILENAME + 1],
			  c[PYTHON_OLD_FILENAME + 2], (__u32)c[0]),
		   (__u32)(n->table[PYTHON_FRAME] == 96 ? f[9] : f[10]));
	return FUSEE_NATIVE;
}
FUSEE_PART(fusee_python_push_object, push_object)

/* From 3.12 on: FRAME is an entry frame. It must be in this C frame; otherwise the frames that were
 * pushed belong to another. */
FUSEE_FN int leave(struct fusee_unwind *u, const struct near *n, __u64 previous)
{
	__u64 at = u->scratch[FRAME];
	int fits = n->entry ? at == n->entry : at - u->sp <= PYTHON_MOST_FRAME;

	u->scratch[FRAME] = previous;
	return fits ? FUSEE_NATIVE : fusee_stop(u, PYTHON_OUT_OF_STEP);
}

#include "known.h"

/* Replaces NEXT, the number of a copy of the bytecode of the code object WORK, by the copy's
 * address. 0 or -1. */
static int find_copy(struct fusee_unwind *u, __u32 unused)
{
	__u64 copies, size, number = u->scratch[NEXT];
	struct near *n = near(u);

	(void)unused;
	return !n || AT(u, &copies, u->scratch[WORK] + n->table[PYTHON_COPIES]) ||
			       AT(u, &size, copies) || number >= size ||
			       AT(u, &u->scratch[NEXT], copies + 8 + 8 * number)
		       ? -1
		       : 0;
}
FUSEE_PART(fusee_python_find_copy, find_copy)

/* The address of the bytecode that a frame of this code object runs. 0: it cannot be read. */
FUSEE_FN __u64 bytecode_of(struct fusee_unwind *u, const struct near *n, const __u64 *f, __u64 code)
{
	if (!n->table[PYTHON_COPIES] || !(__u32)f[9]) /* the first copy is in the code object */
		return code + n->table[PYTHON_BYTECODE];
	u->scratch[WORK] = code;
	u->scratch[NEXT] = (__u32)f[9];
	return FUSEE_CALL(fusee_python_find_copy, u, 0) ? 0 : u->scratch[NEXT];
}

/* Pushes a frame that runs `code`, and is `at` bytes behind the beginning of the bytecode. Returns
 * what push_code() does. While a frame changes to another copy of its bytecode, `at` may be
 * invalid. */
FUSEE_FN int push_function(struct fusee_unwind *u, struct near *n, __u64 code, __u64 at,
			   __u32 flags)
{
	at = at >> 32 ? PYTHON_NO_INSTRUCTION : (__u32)(at / 2);
	n->object = code;
	n->memory = n->table[PYTHON_FAMILY] == PYTHON_ENTRIES ? 0 : memory_of(u, code);
	n->key = n->memory ? fusee_recall(u, n->memory) : noted(u, code);
	if (!n->key)
		return push_code(u, n, code, (__u32)at, flags);
	push_key(u, n->key, (__u32)at, flags);
	return 0;
}

/* One of the bytes 64 to 79 of a frame; `bit` counts bits from byte 64 on. */
FUSEE_FN __u8 late_byte(const __u64 *f, __u32 bit)
{
	return (bit & 64 ? f[9] : f[8]) >> (bit & 63);
}

/* Is it the last Python frame of a C frame? */
FUSEE_FN int is_last(const struct near *n, const __u64 *f)
{
	return late_byte(f, n->table[PYTHON_FRAME] & 127) == (n->table[PYTHON_FRAME] >> 8 & 255);
}

#define OWNED_BY_GENERATOR 1

/* Is it the frame of a generator or coroutine? */
FUSEE_FN int is_generator(const struct near *n, const __u64 *f)
{
	__u32 is_entry = n->table[PYTHON_FAMILY] == PYTHON_ENTRIES; /* `owner` follows it */

	return late_byte(f, (n->table[PYTHON_FRAME] & 127) + 8 * is_entry) == OWNED_BY_GENERATOR;
}

FUSEE_FN __u64 code_of(const struct near *n, const __u64 *f)
{
	return n->table[PYTHON_FAMILY] == PYTHON_ENTRIES ? f[4] : f[0] & ~1ull;
}

#include "names.h"
#include "tasks.h"

/* Was the next frame pushed before? It is compared with one earlier frame, which is replaced
 * whenever the number of frames has doubled. So a list that leads back into itself ends in its
 * third round. */
FUSEE_FN int returns(struct near *n, __u64 next)
{
	if (next && next == n->seen)
		return 1;
	if (!(n->pushed & (n->pushed + 1)))
		n->seen = next;
	n->pushed++;
	return 0;
}

/* Pushes FRAME, and sets FRAME to its caller. */
FUSEE_FN int push(struct fusee_unwind *u, struct near *n)
{
	__u32 entries = n->table[PYTHON_FAMILY] == PYTHON_ENTRIES;
	const __u64 *f = frame_words(u, n);
	__u64 code, at, previous, bytecode;
	int last, r = 0;

	if (!f)
		return fusee_stop(u, PYTHON_UNREADABLE);
	last = is_last(n, f);
	code = code_of(n, f);
	at = f[7];
	previous = entries ? f[6] : f[1];
	if (!entries && last)
		return leave(u, n, previous);
	bytecode = bytecode_of(u, n, f, code);
	if (!bytecode)
		return fusee_stop(u, PYTHON_UNREADABLE);
	if (n->table[PYTHON_TASKS] && is_generator(n, f) && last == (int)entries) {
		u->scratch[NEXT] = previous;
		r = FUSEE_CALL(fusee_python_find_task, u, 0);
		if (r == 1)
			r = next_task(u, n);
	}
	if (push_function(u, n, code, at - bytecode, r == 1 ? FUSEE_PUSH_ASYNC : 0))
		return fusee_stop(u, PYTHON_UNREADABLE);
	if (returns(n, previous))
		return fusee_stop(u, PYTHON_OUT_OF_STEP);
	u->scratch[FRAME] = previous;
	n->then = entries && last ? FUSEE_NATIVE : FUSEE_AGAIN;
	if (r < 0)
		return stop_in_tasks(u, r);
	return r == 1 ? FUSEE_AGAIN : (int)n->then;
}

/* ---- the step ---- */

/* Emits the code object of the frame that was pushed, unless it was emitted before. */
FUSEE_FN void name_pushed(struct fusee_unwind *u, const struct near *n)
{
	struct fusee_note *k;

	if (n->key)
		return;
	if (!fusee_emitted(u, 0, u->pushed[0])) {
		FUSEE_CALL(fusee_python_emit, u, 0);
		return;
	}
	if (n->memory) {
		fusee_remember(u, n->memory, u->pushed[0]);
		return;
	}
	k = fusee_make_note(u, note_key(n->object));
	if (k) {
		k->word[NOTED_KEY] = u->pushed[0];
		k->word[NOTED_AT] = u->time_ns;
	}
}

/* Pushes the next frame of the C frame. Returns what the step does. */
FUSEE_FN int push_next(struct fusee_unwind *u, struct near *n)
{
	int r;

	if (n->future)
		r = push_awaiting(u, n);
	else if (!u->scratch[FRAME])
		return FUSEE_NATIVE;
	else if (n->table[PYTHON_FAMILY] == PYTHON_OBJECTS)
		r = FUSEE_CALL(fusee_python_push_object, u, 0);
	else
		r = push(u, n);
	if (u->npushed)
		name_pushed(u, n);
	return r;
}

/* One frame. A part, as the verifier would follow the loop's passes apart. */
static int push_part(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);

	(void)unused;
	return n ? push_next(u, n) : FUSEE_NATIVE;
}
FUSEE_PART(fusee_python_push, push_part)

#define MORE_FRAMES 32u /* of one call */

static int python_step(struct fusee_unwind *u)
{
	int r;

	if (u->scratch[SP] != u->sp) {
		r = FUSEE_CALL(fusee_python_enter, u, 0);
		if (r)
			return r < 0 ? FUSEE_NATIVE : fusee_stop(u, (__u32)r);
	}
	for (__u32 i = 0; i < MORE_FRAMES; i++) {
		r = FUSEE_CALL(fusee_python_push, u, 0);
		if (r != FUSEE_AGAIN || !fusee_go_on(u, FUSEE_AGAIN))
			break;
	}
	return r;
}
FUSEE_LANGUAGE_STEP(python, python_step);
