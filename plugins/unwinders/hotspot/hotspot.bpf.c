/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The step for code that a JVM has made. Its heaps of code consist of blocks. A map of segments
 * leads from any address to the beginning of its block, where a CodeBlob describes the code: a
 * compiled method, the interpreter, or stubs. If the blob has a frame size, the caller's sp is at
 * that distance from the sp, and the caller's frame pointer is right below the return address.
 * Interpreted methods keep a frame pointer; at fixed places below it are the method, the address of
 * the current bytecode, and the caller's sp.
 */
#include <fusee/unwinder.bpf.h>

#include "bare.h"
#include "blob.h"
#include "chunk.h"
#include "classes.h"
#include "code.h"
#include "emit.h"
#include "interpreter.h"
#include "known.h"
#include "replaced.h"
#include "state.h"
#include "thread.h"

/* ---- which code it is ---- */

#define IS_STUBS TEXT8('S', 't', 'u', 'b', 'R', 'o', 'u', 't')
#define IS_HANDLES TEXT8('M', 'e', 't', 'h', 'o', 'd', 'H', 'a')

/* ---- code with a frame of fixed size ---- */

struct frame {
	__u32 size; /* bytes; 0: it has none */
	int edge;   /* EDGE_*: how much of it is on the stack */
};

#define IS_DEOPTIMIZATION TEXT8('D', 'e', 'o', 'p', 't', 'i', 'm', 'i')
#define IS_UNCOMMON_TRAP TEXT8('U', 'n', 'c', 'o', 'm', 'm', 'o', 'n')
#define IS_SAFEPOINT TEXT8('S', 'a', 'f', 'e', 'p', 'o', 'i', 'n')
#define IS_EXCEPTION TEXT8('E', 'x', 'c', 'e', 'p', 't', 'i', 'o')

/* Is it code that is entered at several places, or with something on the stack? */
FUSEE_FN int has_entries(const struct fusee_unwind *u)
{
	__u64 name = u->scratch[NAME8];

	return name == IS_DEOPTIMIZATION || name == IS_UNCOMMON_TRAP || name == IS_SAFEPOINT ||
	       name == IS_EXCEPTION;
}

/* 0 or -1. */
FUSEE_FN int read_frame(struct fusee_unwind *u, struct frame *f)
{
	struct near *n = near(u);
	__u32 size, complete;
	__u64 code;

	if (!n || BLOB_AT(u, n, &size, word(u, HOTSPOT_BLOB_FRAME_SIZE)))
		return -1;
	f->size = size < MOST_FRAME / 8 ? size * 8 : 0;
	f->edge = EDGE_NONE;
	if (!is_exact(u))
		return 0;
	if (blob_complete(u, n, &complete) || blob_code(u, n, &code))
		return -1;
	if ((__s32)complete < 0 && !has_entries(u))
		f->edge = FUSEE_CALL(fusee_hotspot_stub_edge, u, 0);
	else
		f->edge = FUSEE_CALL(fusee_hotspot_edge, u, (__u32)(code + complete - u->pc));
	return f->edge < 0 ? -1 : 0;
}

/* Has an interrupted method pushed arguments of a stub? Then u->sp becomes that of the frame. Where
 * the return address would be without them there may be an old return address. */
FUSEE_FN void skip_arguments(struct fusee_unwind *u, const struct frame *f)
{
	struct near *n = near(u);
	__u32 pushed;
	__u64 at;

	if (!n || !is_exact(u) || f->edge != EDGE_NONE)
		return;
	pushed = forget(n, 0, arguments(u, n->code + CODE_BEFORE));
	if (pushed && !AT(u, &at, u->sp + pushed + f->size - 8) && is_java_code(u, at))
		u->sp += pushed;
}

/* Does the frame pointer lead to a return address, no farther than the frame is long? */
FUSEE_FN int is_linked(struct fusee_unwind *u, const struct frame *f)
{
	__u64 saved[2];

	return !(u->flags & FUSEE_FP_LOST || u->fp & 7) && u->fp - u->sp < f->size &&
	       !AT(u, &saved, u->fp) && is_behind_call(u, saved[1]);
}

/* Has the code put something below its frame? Then u->sp becomes that of the frame, and *pc its
 * return address. 0 or -1. */
FUSEE_FN int skip_put_below(struct fusee_unwind *u, const struct frame *f, __u64 *pc)
{
	int n = f->edge == EDGE_NONE ? FUSEE_CALL(fusee_hotspot_put_below, u, 0) : -1;
	__u64 at;

	for (__u32 part = 1; part < 3 && !n && is_exact(u); part++)
		n = FUSEE_CALL(fusee_hotspot_put_below, u, part);
	if (n <= 0 || n & 7 || n > (int)MOST_FRAME || AT(u, &at, u->sp + (__u32)n + f->size - 8) ||
	    !is_java_code(u, at))
		return -1;
	u->sp += (__u32)n;
	*pc = at;
	return 0;
}

/* Has the code pushed a number below its frame, or two references? C2 pushes a number where it
 * compares strings, or shortens characters: with jumps in all directions, and bytes of vector
 * instructions that look like jumps, so that the code does not show it. The number has 32 bits,
 * which no address in a frame that is made or taken down has. C1 pushes two references where it
 * copies arrays. u->sp and *pc as above. 0 or -1. */
FUSEE_FN int skip_words(struct fusee_unwind *u, const struct frame *f, __u64 *pc)
{
	__u64 number, at;
	int pushed;

	if (!is_exact(u) || f->edge != EDGE_NONE)
		return -1;
	pushed = FUSEE_CALL(fusee_hotspot_has_pushed_two, u, 0) == 1;
	if (!pushed || AT(u, &at, u->sp + f->size + 8) || !is_java_code(u, at)) {
		if (AT(u, &number, u->sp) || number >> 32 || AT(u, &at, u->sp + f->size) ||
		    !is_java_code(u, at))
			return -1;
		pushed = 0;
	}
	u->sp += pushed ? 16 : 8;
	*pc = at;
	return 0;
}

/* Steps from code with a frame of fixed size, or with none. has_called: the JVM's own functions,
 * which a barrier behind the method may have done. Then an old return address may be where that of
 * the method would be. */
static int leave_sized(struct fusee_unwind *u, __u32 has_called)
{
	struct frame f;
	__u64 pc;

	if (read_frame(u, &f))
		return fusee_stop(u, HOTSPOT_UNREADABLE);
	note_replacing(u);
	if (f.edge == EDGE_LINKED && is_linked(u, &f))
		return to_caller_of_frame(u, u->fp + 16);
	pc = u->regs[FUSEE_X86_RDX];
	if (f.edge == EDGE_POPPED && u->valid_regs >> FUSEE_X86_RDX & 1 && is_behind_call(u, pc))
		return to_caller(u, pc, u->sp);
	if (f.edge == EDGE_LINKED || f.edge == EDGE_POPPED)
		f.edge = EDGE_NONE;
	skip_arguments(u, &f);
	if (f.edge == EDGE_SAVED)
		f.size = 16;
	else if (f.edge == EDGE_RETURN || f.size < 16)
		f.size = 8;
	if (AT(u, &pc, u->sp + f.size - 8))
		return fusee_stop(u, HOTSPOT_UNREADABLE);
	if ((has_called || !is_java_code(u, pc)) && skip_put_below(u, &f, &pc) &&
	    skip_words(u, &f, &pc) && !is_java_code(u, pc))
		return without_frame(u, u->scratch[NAME8] == IS_NMETHOD ||
						u->scratch[NAME8] == IS_NATIVE);
	return f.size == 8 || f.edge == EDGE_KEPT ? to_caller(u, pc, u->sp + f.size)
						  : to_caller_of_frame(u, u->sp + f.size);
}
FUSEE_PART(fusee_hotspot_leave_sized, leave_sized)

/* Will the JVM replace this frame by interpreted frames when a callee returns to it? Then the pc is
 * the address of a handler, and ORIGINAL is set to the pc that the handler replaced. */
FUSEE_FN int is_deoptimized(struct fusee_unwind *u, const struct near *n)
{
	__u32 absolute = word(u, HOTSPOT_NMETHOD_DEOPT), at;
	__u32 offset = absolute ? 0 : word(u, HOTSPOT_NMETHOD_DEOPT_OFFSET);
	__u64 handler = 0;

	if (is_exact(u) || (absolute ? BLOB_AT(u, n, &handler, absolute)
				     : !offset || blob_number(u, n, offset, &handler)))
		return 0;
	if (u->pc != handler + (absolute ? 0 : u->scratch[BLOB]))
		return 0;
	offset = word(u, HOTSPOT_NMETHOD_ORIG_PC);
	return offset && !BLOB_AT(u, n, &at, offset) && at < MOST_FRAME &&
	       !AT(u, &u->scratch[ORIGINAL], u->sp + at);
}

/* Pushes the frame of a compiled method, and emits its inlined methods. 0 or -1. */
static int push_compiled(struct fusee_unwind *u, __u32 unused)
{
	__u64 code, key, place;
	struct near *n = near(u);
	__u32 id, offset;
	int deoptimized;

	(void)unused;
	if (!n || BLOB_AT(u, n, &id, word(u, HOTSPOT_NMETHOD_COMPILE_ID)) || blob_code(u, n, &code))
		return -1;
	deoptimized = is_deoptimized(u, n);
	offset = (__u32)((deoptimized ? u->scratch[ORIGINAL] : u->pc) - code);
	key = fusee_mix(fusee_mix(0x6e6d, u->scratch[BLOB]), id);
	place = fusee_mix(key, HOTSPOT_IS_PLACE | offset);
	fusee_push(u, key, HOTSPOT_IS_PLACE | offset);
	if (fusee_emitted(u, HOTSPOT_PLACE, place)) {
		if (!deoptimized)
			note_known(u, n, id, offset);
		return 0;
	}
	if (BLOB_AT(u, n, &u->scratch[METHOD], word(u, HOTSPOT_NMETHOD_METHOD)))
		return 0;
	u->scratch[KEY] = place;
	FUSEE_CALL(fusee_hotspot_emit_place, u, offset);
	return 0;
}
FUSEE_PART(fusee_hotspot_push_compiled, push_compiled)

/* ---- stubs ---- */

/* Does a return address follow the frame pointer, or what the barrier where methods begin pushes?
 */
FUSEE_FN int has_fp(struct fusee_unwind *u)
{
	__u64 saved[2];

	return !(u->flags & FUSEE_FP_LOST || u->fp & 7) && u->fp - u->sp <= FARTHEST &&
	       !AT(u, &saved, u->fp) && (is_java_code(u, saved[1]) || saved[1] == ~0ull);
}

/* A stub that copies the next frames of a virtual thread from the heap. The outermost of its frames
 * on the stack returns there, and nothing has called it. While it copies them it has no frame: the
 * frame pointer is that of what runs the thread, or of another stack. */
enum copies { COPIES_NONE, COPIES_UNKNOWN, COPIES_HERE, COPIES_NEXT };

FUSEE_FN int copies_of(struct fusee_unwind *u)
{
	if (is_exact(u))
		return COPIES_NONE;
	if (is_behind_call(u, u->pc)) {
		if (!(u->scratch[HI] & UNSURE))
			return COPIES_NONE;
		if (u->fp - u->sp < FARTHEST && FUSEE_CALL(fusee_hotspot_is_entry, u, 0) == 1)
			return COPIES_HERE;
		if (!has_fp(u) && word(u, HOTSPOT_CHUNK_STACK) &&
		    FUSEE_CALL(fusee_hotspot_find_entry, u, MOST_COPIED) == 1)
			return COPIES_HERE;
		return COPIES_NONE;
	}
	if (FUSEE_CALL(fusee_hotspot_find_entry, u, MOST_ARGUMENTS) != 1)
		return COPIES_UNKNOWN;
	if (!word(u, HOTSPOT_CHUNK_STACK))
		return COPIES_UNKNOWN;
	return FUSEE_CALL(fusee_hotspot_begin_chunk, u, 0) == 1 ? COPIES_NEXT : COPIES_HERE;
}

/* Steps from a stub. Stubs that have a frame keep a frame pointer, as the stub that calls Java
 * does. */
static int stub(struct fusee_unwind *u, __u32 unused)
{
	__u64 at = address(u, HOTSPOT_CALL_STUB), behind = 0;
	int e = EDGE_NONE, copies = COPIES_NONE;

	(void)unused;
	if (AT(u, &behind, at))
		return fusee_stop(u, HOTSPOT_UNREADABLE);
	if (u->pc == behind && word(u, HOTSPOT_THREAD_EETOP) && !(u->scratch[HI] & SAID)) {
		u->scratch[HI] |= SAID;
		if (FUSEE_CALL(fusee_hotspot_push_thread, u, 0) == 1)
			return FUSEE_AGAIN;
	}
	if (is_exact(u))
		e = FUSEE_CALL(fusee_hotspot_edge, u, 0);
	if (u->pc != behind)
		copies = copies_of(u);
	if (copies == COPIES_NEXT)
		return FUSEE_AGAIN;
	FUSEE_CALL(fusee_hotspot_push_stub, u,
		   u->pc == behind ? HOTSPOT_CALLS_JAVA
		   : copies        ? HOTSPOT_IN_HEAP
				   : HOTSPOT_NAMED);
	if (e == EDGE_SAVED)
		return to_caller_of_frame(u, u->sp + 16);
	if (e == EDGE_RETURN && !AT(u, &at, u->sp))
		return to_caller(u, at, u->sp + 8);
	if (is_exact(u) && u->fp != u->sp && FUSEE_CALL(fusee_hotspot_leave_bare, u, 0) == 1)
		return FUSEE_NEXT;
	if (u->flags & FUSEE_FP_LOST || u->fp & 7 || u->fp - u->sp > FARTHEST)
		return fusee_stop(u, HOTSPOT_NO_FRAME);
	if (leave_entry_barrier(u))
		return FUSEE_NEXT;
	if (u->pc != behind && copies != COPIES_HERE)
		u->flags |= FUSEE_GUESSED;
	return to_caller_of_frame(u, u->fp + 16);
}
FUSEE_PART(fusee_hotspot_stub, stub)

/* Is a compiled method's code interrupted that its calls of interpreted methods may go through?
 * Then the method's place is on top of the stack. A method has such instructions for other
 * purposes, too: then the word there is of anything. */
FUSEE_FN int is_going_out(struct fusee_unwind *u, __u64 *place)
{
	struct near *n = near(u);

	return n && !fusee_read(u, n->code, CODE_BYTES, u->pc - CODE_BEFORE) && is_way_out(n) &&
	       !AT(u, place, u->sp) && is_behind_call(u, *place);
}

/* Finds the blob of that place in the code of the same method. 1; 0: it is in other code, and all
 * is as before; -1: the blob is not found. */
static int back_to_method(struct fusee_unwind *u, __u64 place)
{
	__u64 method = u->scratch[BLOB], pc = u->pc;

	u->pc = place;
	if (!FUSEE_CALL(fusee_hotspot_find_blob, u, 0) && u->scratch[BLOB] == method) {
		u->sp += 8;
		u->flags &= ~(__u32)FUSEE_PC_EXACT;
		return 1;
	}
	u->pc = pc;
	return FUSEE_CALL(fusee_hotspot_find_blob, u, 0) ? -1 : 0;
}

/* Is code interrupted that is no method's own, and shows as the place that has called it? A method
 * calls through code of its own. An adapter to the interpreter pops the return address into rax; a
 * compiled method jumps to the stub that looks for a handler of an exception, with its place in
 * rdx. Then pc becomes the caller's, whose blob is found. 1; 0: it is not; -1: the blob is not
 * found. */
static int skip_popped(struct fusee_unwind *u, __u32 unused)
{
	__u64 pc = u->regs[FUSEE_X86_RAX], popped;
	__u8 first;

	(void)unused;
	if (u->scratch[NAME8] == IS_NMETHOD)
		return is_going_out(u, &pc) ? back_to_method(u, pc) : 0;
	if (u->scratch[NAME8] == IS_ADAPTER) {
		if (AT(u, &popped, u->sp - 8) || popped != pc || !is_before_note(u))
			return 0;
	} else if (u->scratch[NAME8] == IS_EXCEPTION) {
		pc = u->regs[FUSEE_X86_RDX];
		if (AT(u, &first, u->pc) || first != 0x52) /* push %rdx */
			return 0;
	} else {
		return 0;
	}
	if (!is_java_code(u, pc))
		return 0;
	u->pc = pc;
	u->flags &= ~(__u32)FUSEE_PC_EXACT;
	return FUSEE_CALL(fusee_hotspot_find_blob, u, 0) ? -1 : 1;
}
FUSEE_PART(fusee_hotspot_skip_popped, skip_popped)

/* ---- the step ---- */

FUSEE_FN int has_frame_size(struct fusee_unwind *u)
{
	__s32 size;

	return !AT(u, &size, u->scratch[BLOB] + word(u, HOTSPOT_BLOB_FRAME_SIZE)) && size > 0;
}

/* What a native method does with frames of a virtual thread. */
enum moves { MOVES_NONE, MOVES_YIELD, MOVES_WAIT };

FUSEE_FN int native_moves(struct fusee_unwind *u)
{
	__u64 at, pool, symbol, text;
	unsigned short index, length;

	if (AT(u, &at, u->scratch[BLOB] + word(u, HOTSPOT_NMETHOD_METHOD)) ||
	    AT(u, &at, at + word(u, HOTSPOT_METHOD_CONST)) ||
	    AT(u, &pool, at + word(u, HOTSPOT_CONST_POOL)) ||
	    AT(u, &index, at + word(u, HOTSPOT_CONST_NAME)) || symbol_at(u, pool, index, &symbol) ||
	    AT(u, &length, symbol + word(u, HOTSPOT_SYMBOL_LENGTH)) ||
	    AT(u, &text, symbol + word(u, HOTSPOT_SYMBOL_BODY)))
		return MOVES_WAIT;
	if (length == 7 && text << 8 == TEXT8(0, 'd', 'o', 'Y', 'i', 'e', 'l', 'd'))
		return MOVES_YIELD;
	if (length == 5 && text << 24 == TEXT8(0, 0, 0, 'w', 'a', 'i', 't', '0'))
		return MOVES_WAIT;
	return MOVES_NONE;
}

/* doYield() copies its callers' frames, the first of which is at its return address. An
 * interpreted method may come to wait for a monitor, and its own frame is the first. 0 or -1. */
FUSEE_FN int mark_first(struct fusee_unwind *u, int by_method)
{
	__u64 at = u->fp - 24, v;
	__u32 size;

	if (is_exact(u))
		return -1;
	if (!by_method) {
		if (AT(u, &size, u->scratch[BLOB] + word(u, HOTSPOT_BLOB_FRAME_SIZE)))
			return -1;
		at = u->sp + 8ull * size - 8;
	}
	if (AT(u, &v, at))
		return -1;
	u->scratch[HI] |= MARKED | (by_method ? BY_METHOD : 0) | mark_of(v);
	return 0;
}

/* Is it a stub in which a thread may wait for a monitor? Their names begin with "C1 Runtime " or
 * "C2 Runtime ". */
FUSEE_FN int takes_monitor(struct fusee_unwind *u)
{
	__u64 text;

	return !AT(u, &text, u->scratch[NAME] + 11) &&
	       (text == TEXT8('m', 'o', 'n', 'i', 't', 'o', 'r', 'e') ||
		text == TEXT8('c', 'o', 'm', 'p', 'l', 'e', 't', 'e'));
}

/* May the thread be moving frames of a virtual thread to the heap or back, and is it not known how
 * many it has moved? By the innermost code that the JVM has made: functions that compiled code
 * calls directly move none. */
static int may_yield(struct fusee_unwind *u, __u32 unused)
{
	int moves;

	(void)unused;
	if (u->scratch[NAME8] == IS_NMETHOD)
		return 0;
	if (u->scratch[NAME8] == IS_INTERPRETER)
		return !is_exact(u) && mark_first(u, 1);
	if (u->scratch[NAME8] == IS_STUBS) /* it copies frames back in functions of the JVM */
		return !is_exact(u);
	if (u->scratch[NAME8] != IS_NATIVE)
		return takes_monitor(u);
	moves = native_moves(u);
	return moves == MOVES_WAIT || (moves == MOVES_YIELD && mark_first(u, 0));
}
FUSEE_PART(fusee_hotspot_may_yield, may_yield)

/* Steps from a frame of a virtual thread in Java's heap. */
static int step_in_chunk(struct fusee_unwind *u)
{
	if (FUSEE_CALL(fusee_hotspot_resume_chunk, u, 0))
		return fusee_stop(u, HOTSPOT_UNREADABLE);
	if (!FUSEE_CALL(fusee_hotspot_find_blob, u, 0)) {
		if ((u->scratch[NAME8] == IS_NMETHOD || u->scratch[NAME8] == IS_NATIVE) &&
		    !FUSEE_CALL(fusee_hotspot_push_compiled, u, 0))
			return FUSEE_CALL(fusee_hotspot_leave_sized_in_chunk, u, 0);
		if (u->scratch[NAME8] == IS_INTERPRETER)
			return FUSEE_CALL(fusee_hotspot_interpreted_in_chunk, u, 0);
	}
	return fusee_stop(u, HOTSPOT_NO_FRAME);
}

/* Steps one frame. */
FUSEE_FN int step_frame(struct fusee_unwind *u)
{
	int first, has_called;

	u->error = 0;
	if (u->claim_arg) {
		fusee_push(u, u->claim_arg, HOTSPOT_IS_WORK);
		return FUSEE_NATIVE_TOO;
	}
	if (u->words != HOTSPOT_WORDS || !u->tls) /* over a stack copy nothing of it can be read */
		return FUSEE_PASS;
	if (is_in_chunk(u))
		return step_in_chunk(u);
	first = !u->scratch[NAME];
	if (FUSEE_CALL(fusee_hotspot_find_blob, u, 0))
		return fusee_stop(u, HOTSPOT_NO_CODE);
	if (first && FUSEE_CALL(fusee_hotspot_may_yield, u, 0))
		u->scratch[HI] |= UNSURE;
	has_called = first && !is_exact(u);
	if (first && is_exact(u) && FUSEE_CALL(fusee_hotspot_skip_popped, u, 0) < 0)
		return fusee_stop(u, HOTSPOT_NO_CODE);
	if (u->scratch[NAME8] == IS_NMETHOD || u->scratch[NAME8] == IS_NATIVE) {
		if (FUSEE_CALL(fusee_hotspot_push_compiled, u, 0))
			return fusee_stop(u, HOTSPOT_UNREADABLE);
		return FUSEE_CALL(fusee_hotspot_leave_sized, u, has_called);
	}
	if (u->scratch[NAME8] == IS_INTERPRETER || u->scratch[NAME8] == IS_HANDLES)
		return FUSEE_CALL(fusee_hotspot_interpreted, u, 0);
	if (u->scratch[NAME8] == IS_STUBS)
		return FUSEE_CALL(fusee_hotspot_stub, u, 0);
	if (!has_frame_size(u))
		return FUSEE_CALL(fusee_hotspot_bare, u, 0);
	FUSEE_CALL(fusee_hotspot_push_stub, u, 0);
	return FUSEE_CALL(fusee_hotspot_leave_sized, u, 0);
}
#define MORE_FRAMES 32u /* of one call */

static int hotspot_step(struct fusee_unwind *u)
{
	int r = step_frame(u);

	for (__u32 i = 0; i < MORE_FRAMES && r == FUSEE_NEXT; i++) {
		if (is_in_chunk(u) || !fusee_go_on(u, FUSEE_NEXT))
			return r;
		r = FUSEE_CALL(fusee_hotspot_known, u, 0);
	}
	return r < 0 ? FUSEE_AGAIN : r;
}
FUSEE_LANGUAGE_STEP(hotspot, hotspot_step);
