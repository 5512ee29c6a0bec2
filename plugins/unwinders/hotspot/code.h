/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Where an interrupted function has not made its frame yet, or has taken it down, by the
 * instructions at pc. A part of the step: hotspot.bpf.c includes it.
 */
#ifndef HOTSPOT_CODE_H
#define HOTSPOT_CODE_H

#include "state.h"

/* What is on the stack at pc. */
enum edge {
	EDGE_NONE,   /* the frame, as far as the bytes tell */
	EDGE_RETURN, /* the return address, and nothing of this function */
	EDGE_SAVED,  /* the saved frame pointer, then the return address */
	EDGE_KEPT,   /* the frame, but the frame pointer is not saved yet */
	EDGE_POPPED, /* nothing: the return address is in rdx */
	EDGE_LINKED, /* a frame of which a part may be made; the frame pointer is at its end */
};

/* Byte i behind pc, or before it. */
FUSEE_FN __u32 byte(const struct near *n, __u32 i)
{
	return n->code[(i + CODE_BEFORE) & 127];
}

/* push %rbp; sub $..,%rsp or mov %rsp,%rbp: is the second of them at byte i? */
FUSEE_FN int makes_frame(const struct near *n, __u32 i)
{
	if (byte(n, i) != 0x48)
		return 0;
	return ((byte(n, i + 1) == 0x81 || byte(n, i + 1) == 0x83) && byte(n, i + 2) == 0xec) ||
	       (byte(n, i + 1) == 0x8b && byte(n, i + 2) == 0xec) ||
	       (byte(n, i + 1) == 0x89 && byte(n, i + 2) == 0xe5);
}

/* Bytes to the next instruction, of those that may be between the end of a frame and `ret`; 0: it
 * is none of them. They poll for safepoints, compare a field of the thread (r15) and jump, or are
 * vzeroupper. Where native methods poll je is taken. */
FUSEE_FN __u32 tail_length(const struct near *n, __u32 i)
{
	__u32 a = byte(n, i), b = byte(n, i + 1), c = byte(n, i + 2);

	if (a == 0x49 && b == 0x3b && c == 0xa7) /* cmp d32(%r15),%rsp */
		return 7;
	if (a == 0x49 && b == 0x3b && c == 0x67) /* cmp d8(%r15),%rsp */
		return 4;
	if (a == 0x4d && b == 0x8b && c == 0x97) /* mov d32(%r15),%r10 */
		return 7;
	if (a == 0x4d && b == 0x8b && c == 0x57)
		return 4;
	if (a == 0x41 && b == 0x85 && c == 0x02) /* test %eax,(%r10) */
		return 3;
	if (a == 0x85 && b == 0x05) /* test %eax,d32(%rip) */
		return 6;
	if (a == 0x49 && b == 0xba) /* mov $i64,%r10 */
		return 10;
	if (a == 0x49 && b == 0x83 && c == 0x7f) /* cmpq $i8,d8(%r15) */
		return 5;
	if (a == 0x49 && b == 0x83 && c == 0xbf)
		return 8;
	if (a == 0x49 && b == 0x81 && c == 0x7f)
		return 8;
	if (a == 0x41 && b == 0xf6 && c == 0x47) /* testb $i8,d8(%r15) */
		return 5;
	if (a == 0x74 && b < CODE_BYTES / 2) /* je */
		return 2 + b;
	if (a == 0x0f && (b == 0x85 || b == 0x87)) /* jne, ja */
		return 6;
	if (a == 0x75 || a == 0x77)
		return 2;
	return a == 0xc5 && b == 0xf8 && c == 0x77 ? 3 : 0;
}

/* Are there only such instructions up to `ret`? */
FUSEE_FN int is_tail(struct near *n)
{
	__u32 i = 0, size;

	for (int k = 0; k < 6; k++) {
		if (byte(n, i) == 0xc3 || byte(n, i) == 0xc2)
			return 1;
		size = tail_length(n, i);
		if (!size)
			return 0;
		i = forget(n, 0, i + size);
	}
	return 0;
}

/* mov $..,%rbx; jmp: code behind a compiled method that its calls of interpreted methods go
 * through.
 */
FUSEE_FN int is_way_out(const struct near *n)
{
	if (byte(n, 0) == 0x48 && byte(n, 1) == 0xbb)
		return byte(n, 10) == 0xe9;
	return byte(n, 0) == 0xe9 && byte(n, -10u) == 0x48 && byte(n, -9u) == 0xbb;
}

/* Code that is reached with the frame taken down. Behind a compiled method: lea ..(%rip),%r10;
 * mov %r10,d(%r15); jmp, where a return polls. At its end, with an exception that has no handler
 * there: add $..,%rsp; pop %rbp; jmp. */
FUSEE_FN int is_behind_method(const struct near *n)
{
	if (byte(n, 0) == 0xe9 && byte(n, -1u) == 0x5d)
		return (byte(n, -5u) == 0x48 && byte(n, -4u) == 0x83 && byte(n, -3u) == 0xc4) ||
		       (byte(n, -8u) == 0x48 && byte(n, -7u) == 0x81 && byte(n, -6u) == 0xc4);
	if (byte(n, 0) == 0x4c && byte(n, 1) == 0x8d && byte(n, 2) == 0x15)
		return byte(n, 7) == 0x4d && byte(n, 8) == 0x89;
	if (byte(n, 0) == 0x4d && byte(n, 1) == 0x89 && byte(n, 2) == 0x97)
		return byte(n, 7) == 0xe9;
	return byte(n, 0) == 0xe9 && byte(n, -7u) == 0x4d && byte(n, -6u) == 0x89 &&
	       byte(n, -5u) == 0x97;
}

/* jmp *%reg, at byte i */
FUSEE_FN int is_leap(const struct near *n, __u32 i)
{
	__u32 at = byte(n, i) == 0x41 ? i + 1 : i;

	return byte(n, at) == 0xff && (byte(n, at + 1) & 0xf8) == 0xe0;
}

/* Stubs that look for a handler of an exception jump to it, with its frame taken down: pop %rdx;
 * jmp *%reg. Or they leave the return address: pop %rbp; jmp *%reg. */
FUSEE_FN int edge_of_leap(const struct near *n)
{
	if (byte(n, 0) == 0x5a && is_leap(n, 1))
		return EDGE_RETURN;
	if (!is_leap(n, 0))
		return EDGE_NONE;
	if (byte(n, -1u) == 0x5a)
		return EDGE_POPPED;
	return byte(n, -1u) == 0x5d ? EDGE_RETURN : EDGE_NONE;
}

/* Of code whose frame is complete `complete` bytes from pc on, at most; 0 or less: the frame is, or
 * the code does not say. enum edge, or -1: the code cannot be read. */
static int edge(struct fusee_unwind *u, __u32 complete)
{
	struct near *n = near(u);

	if (!n || fusee_read(u, n->code, CODE_BYTES, u->pc - CODE_BEFORE))
		return -1;
	if (byte(n, 0) == 0xc3 || byte(n, 0) == 0xc2 || byte(n, 0) == 0x55)
		return EDGE_RETURN;
	if (byte(n, 0) == 0x5d)
		return EDGE_SAVED;
	if (makes_frame(n, 0))
		return byte(n, -1u) == 0x55 ? EDGE_SAVED : EDGE_RETURN;
	/* sub $..,%rsp came first: mov %rbp,d(%rsp) saves it */
	if (byte(n, 0) == 0x48 && byte(n, 1) == 0x89 &&
	    (byte(n, 2) == 0x6c || byte(n, 2) == 0xac) && byte(n, 3) == 0x24 && (__s32)complete > 0)
		return EDGE_KEPT;
	for (__u32 i = 1; i < CODE_BYTES - CODE_BEFORE - 2; i++) {
		if ((__s32)i >= (__s32)complete)
			break;
		if (makes_frame(n, i))
			return EDGE_RETURN;
	}
	return is_tail(n) || is_behind_method(n) ? EDGE_RETURN : edge_of_leap(n);
}
FUSEE_PART(fusee_hotspot_edge, edge)

/* push %rbp; mov %rsp,%rbp: is the second of them at byte i? */
FUSEE_FN int links_frame(const struct near *n, __u32 i)
{
	return byte(n, i - 1) == 0x55 && byte(n, i) == 0x48 &&
	       ((byte(n, i + 1) == 0x8b && byte(n, i + 2) == 0xec) ||
		(byte(n, i + 1) == 0x89 && byte(n, i + 2) == 0xe5));
}

/* leave, and what follows it in such a stub: ret; jmp; pop %rcx; add $8,%rsp */
FUSEE_FN int ends_frame(const struct near *n)
{
	return byte(n, -1u) == 0xc9 &&
	       (byte(n, 0) == 0xc3 || byte(n, 0) == 0xe9 || byte(n, 0) == 0x59 ||
		(byte(n, 0) == 0x48 && byte(n, 1) == 0x83 && byte(n, 2) == 0xc4));
}

/* Of a stub that does not say where its frame is complete, as those of C1: it may look whether it
 * needs one first, and has it in two parts, with a frame pointer. enum edge, or -1: the code cannot
 * be read. */
static int stub_edge(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);

	(void)unused;
	if (!n || fusee_read(u, n->code, CODE_BYTES + CODE_BEFORE, u->pc - CODE_BEFORE))
		return -1;
	if (byte(n, 0) == 0xc3 || byte(n, 0) == 0x55 || ends_frame(n))
		return EDGE_RETURN;
	if (links_frame(n, 0))
		return EDGE_SAVED;
	for (__u32 i = 2; i < CODE_BYTES - 2; i++)
		if (links_frame(n, i))
			return EDGE_RETURN;
	return EDGE_LINKED;
}
FUSEE_PART(fusee_hotspot_stub_edge, stub_edge)

/* jmp, short or within 16 MiB: other bytes 0xe9 are parts of instructions */
FUSEE_FN int is_jump(const __u8 *c)
{
	return c[0] == 0xeb || (c[0] == 0xe9 && (c[4] == 0 || c[4] == 0xff));
}

/* pop, of another register than %rbp */
FUSEE_FN int is_pop(__u32 c)
{
	return c >= 0x58 && c <= 0x5f && c != 0x5d;
}

/* push, of another register than %rbp */
FUSEE_FN int is_push(__u32 c)
{
	return c >= 0x50 && c <= 0x57 && c != 0x55;
}

#define PUSHED_BEFORE 32 /* bytes of code before pc */

/* Has the code pushed two registers right before? 1 or 0. */
static int has_pushed_two(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);

	(void)unused;
	if (!n || fusee_read(u, n->code, PUSHED_BEFORE, u->pc - PUSHED_BEFORE))
		return 0;
	for (__u32 i = 0; i < PUSHED_BEFORE - 1; i++)
		if (is_push(n->code[i]) && is_push(n->code[i + 1]))
			return 1;
	return 0;
}
FUSEE_PART(fusee_hotspot_has_pushed_two, has_pushed_two)

/* Bytes of a pop of another register than %rbp; 0: it is none. */
FUSEE_FN __u32 pop_length(const __u8 *c)
{
	return c[0] == 0x41 && c[1] >= 0x58 && c[1] <= 0x5f ? 2 : (__u32)is_pop(c[0]);
}

/* Bytes that a pop here, or two, take from the stack; 0: there are none. */
FUSEE_FN int popped(const __u8 *c)
{
	if (!pop_length(c))
		return 0;
	return pop_length(c[0] == 0x41 ? c + 2 : c + 1) ? 16 : 8;
}

/* The same behind a call. */
FUSEE_FN int popped_behind_call(const __u8 *c)
{
	return c[0] == 0xe8 ? popped(c + 5) : 0;
}

/* Bytes of a stub's arguments that are on the stack at pc, where this code is: they are popped
 * next, or behind a call, before which another is pushed. 0: none are seen. */
FUSEE_FN __u32 arguments(const struct fusee_unwind *u, const __u8 *c)
{
	if (!is_exact(u) || popped(c))
		return (__u32)popped(c);
	if (popped_behind_call(c))
		return (__u32)popped_behind_call(c);
	if (c[0] == 0x41)
		return is_push(c[1]) && popped_behind_call(c + 2) == 16 ? 8 : 0;
	return is_push(c[0]) && popped_behind_call(c + 1) == 16 ? 8 : 0;
}

#define PART (sizeof(((struct near *)0)->code) - 12) /* bytes of code that are looked at */

/* Bytes that code has put below its frame around a call. C1 pushes arguments of stubs, and pops
 * them behind the call. Barriers behind a method, as ZGC has, take them down before they jump back,
 * by add $..,%rsp or pop %r15, after they have restored registers. C2 pushes a number in a loop
 * that shortens characters. 0: none are seen in this part of the code from pc on; -1: nor will they
 * be, behind another jump, a return, or sub $..,%rsp. */
static int put_below(struct fusee_unwind *u, __u32 part)
{
	struct near *n = near(u);
	__u32 pushed;

	if (!n || fusee_read(u, n->code, sizeof(n->code), u->pc + part * PART))
		return -1;
	pushed = forget(n, 0, part ? 0 : arguments(u, n->code));
	if (pushed)
		return (int)pushed;
	for (__u32 i = 0; i < PART; i++) {
		const __u8 *c = n->code + i;

		if ((c[0] == 0x41 && c[1] == 0x5f && is_jump(c + 2)) ||
		    (is_pop(c[0]) && is_jump(c + 1)))
			return 8;
		if (is_jump(c) || c[0] == 0xc3)
			return -1;
		if (c[0] != 0x48 || (c[1] != 0x81 && c[1] != 0x83))
			continue;
		if (c[2] == 0xec)
			return -1;
		if (c[2] == 0xc4 && c[1] == 0x83 && is_jump(c + 4))
			return c[3];
		if (c[2] == 0xc4 && c[1] == 0x81 && is_jump(c + 7))
			return c[3] | c[4] << 8 | c[5] << 16;
	}
	return 0;
}
FUSEE_PART(fusee_hotspot_put_below, put_below)

#endif
