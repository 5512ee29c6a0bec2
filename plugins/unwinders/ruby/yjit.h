/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Code that YJIT makes of 3.1 to 3.3. A part of the step: ruby.bpf.c includes it.
 *
 * rb_vm_exec() or vm_exec_core() calls it. It saves r13, r12 and rbx and has in them the control
 * frame that it runs, the execution context and the VM's stack pointer. Methods and blocks that it
 * calls have control frames and no C frame. Its one C frame takes all control frames up to FINISH,
 * those of the vm_exec_core() that has called it too. A frame whose method returns to C or to the
 * VM has the address of `pop %rbx; pop %r12; pop %r13; ret` as jit_return, its last word.
 */
#ifndef RUBY_YJIT_H
#define RUBY_YJIT_H

#define MOST_PUSHED 24 /* words between sp and the return address */

FUSEE_FN __u64 process_word(struct fusee_unwind *u, __u32 i)
{
	__u32 low, high;

	return fusee_process_word(u, i, &low) || fusee_process_word(u, i + 1, &high)
		       ? 0
		       : low | (__u64)high << 32;
}

/* Does an indirect call end at this address? */
FUSEE_FN int is_behind_call(struct fusee_unwind *u, __u64 at)
{
	__u8 c[6]; /* call *%reg; call *d8(%reg); call *d32(%reg) */

	if (AT(u, &c, at - sizeof(c)))
		return 0;
	return (c[4] == 0xff && (c[5] & 0xf8) == 0xd0) || (c[3] == 0xff && (c[4] & 0xf8) == 0x50) ||
	       (c[0] == 0xff && (c[1] & 0xf8) == 0x90);
}

/* Finds the return address of YJIT's C frame, the first word that is behind an indirect call in the
 * library. The words before it; -1: there is none near. */
static int find_return(struct fusee_unwind *u, __u32 unused)
{
	__u64 lo = process_word(u, RUBY_PROCESS_LO), hi = process_word(u, RUBY_PROCESS_HI), w;

	(void)unused;
	for (int i = 0; i < MOST_PUSHED; i++) {
		if (AT(u, &w, u->sp + 8ull * i))
			return -1;
		if (w > lo && w <= hi && is_behind_call(u, w))
			return i;
	}
	return -1;
}
FUSEE_PART(fusee_ruby_find_return, find_return)

/* Is this code, 8 bytes of it, what YJIT's C frame ends with, or the rest of it? */
FUSEE_FN int is_return(__u64 code)
{
	if ((code & 0xff) == 0x5b) /* pop %rbx */
		code >>= 8;
	if ((code & 0xffff) == 0x5c41) /* pop %r12 */
		code >>= 16;
	if ((code & 0xffff) == 0x5d41) /* pop %r13 */
		code >>= 16;
	return (code & 0xff) == 0xc3;
}

/* Is the control frame below `frame`, which was popped, the last that its C frame ran? */
FUSEE_FN int is_last(struct fusee_unwind *u, __u64 frame)
{
	__u64 flags = 0;

	return !flags_of(u, frame - word(u, RUBY_FRAME_SIZE), &flags) && flags & FRAME_FINISH;
}

#define AHEAD 8 /* words of code that are looked at */

struct ahead {
	__u64 word[AHEAD];
};

/* 4 bytes of the code from byte i on. */
FUSEE_FN __u32 bytes_at(const struct ahead *a, int i)
{
	__u64 w = a->word[i / 8] >> i % 8 * 8;

	if (i % 8 > 4 && i / 8 + 1 < AHEAD)
		w |= a->word[i / 8 + 1] << (64 - i % 8 * 8);
	return (__u32)w;
}

#define JUMP_TO_RETURN 0xf865ff41 /* jmp *-8(%r13) */
#define SET_EP 0x20458949         /* mov %rax,32(%r13), mov %rax,16(%r13): the frame's ep, iseq */
#define SET_ISEQ 0x10458949
#define ADD_R13 0xc58349 /* add, sub $..,%r13 */
#define SUB_R13 0xed8349
#define NEAR_JUMP 24 /* bytes from the place where a frame is popped to the jump */

/* Was the last control frame popped, and YJIT's C frame only returns? `frame`: in r13. */
FUSEE_FN int returns(struct fusee_unwind *u, const struct ahead *a, __u64 frame)
{
	__u64 to, code;
	__u32 bytes = 0;

	for (int i = 0; i < NEAR_JUMP && bytes != JUMP_TO_RETURN; i++) {
		bytes = bytes_at(a, i);
		if ((bytes & 0xffffff) == ADD_R13)
			return 0;
	}
	return bytes == JUMP_TO_RETURN && !AT(u, &to, frame - 8) && !AT(u, &code, to) &&
	       is_return(code) && is_last(u, frame);
}

/* 3.1: is the innermost control frame, which r13 points to, being filled in? */
FUSEE_FN int is_filled_in(const struct ahead *a)
{
	for (int i = 0; i + 4 <= AHEAD * 8; i++) {
		__u32 bytes = bytes_at(a, i);

		if (bytes == SET_EP || bytes == SET_ISEQ)
			return 1;
		if ((bytes & 0xffffff) == SUB_R13)
			return 0;
	}
	return 0;
}

/* Code of YJIT was interrupted. FRAME becomes the innermost control frame that is complete and
 * runs; INSIDE: neither it nor the C frame that has called it has one any more. */
static int leaf_in_jit(struct fusee_unwind *u, __u32 unused)
{
	__u64 frame = u->regs[FUSEE_X86_R13], size = word(u, RUBY_FRAME_SIZE);
	struct ahead a;

	(void)unused;
	if (AT(u, &a, u->pc))
		return -1;
	if (is_return(a.word[0])) {
		set_inside(u, u->regs[FUSEE_X86_RAX] != word(u, RUBY_UNDEF) &&
				      is_last(u, u->scratch[FRAME]));
		return 0;
	}
	/* C has not been called yet or has returned, or a control frame is popped */
	if (frame == u->scratch[FRAME] + size)
		u->scratch[FRAME] = frame;
	if (frame != u->scratch[FRAME])
		return 0;
	set_inside(u, returns(u, &a, frame));
	if (!inside(u) && is_filled_in(&a))
		u->scratch[FRAME] += size;
	return 0;
}
FUSEE_PART(fusee_ruby_leaf_in_jit, leaf_in_jit)

/* The control frames when the walk comes to code of YJIT first. 0 or -1. */
FUSEE_FN int begin_in_jit(struct fusee_unwind *u)
{
	if (FUSEE_CALL(fusee_ruby_find_frames, u, 0))
		return -1;
	if (u->flags & FUSEE_FIRST)
		return FUSEE_CALL(fusee_ruby_leaf_in_jit, u, 0);
	if (FUSEE_CALL(fusee_ruby_is_pending, u, FUSEE_X86_R13) == 1)
		u->scratch[FRAME] += word(u, RUBY_FRAME_SIZE);
	return 0;
}

/* Sets pc and sp to the caller's. enum fusee_next. */
static int leave_jit(struct fusee_unwind *u, __u32 unused)
{
	__u64 slot, pc, fp;
	int n = FUSEE_CALL(fusee_ruby_find_return, u, 0);

	(void)unused;
	slot = u->sp + 8ull * (__u32)n;
	if (n < 0 || AT(u, &pc, slot))
		return fusee_stop(u, RUBY_UNREADABLE);
	/* with --yjit-perf it keeps frame pointers */
	if (!(u->flags & FUSEE_FP_LOST) && u->fp == slot - 8) {
		if (AT(u, &fp, u->fp))
			return fusee_stop(u, RUBY_UNREADABLE);
		u->fp = fp;
	}
	u->pc = pc;
	u->sp = slot + 8;
	u->valid_regs &= 1ull << FUSEE_X86_R14 | 1ull << FUSEE_X86_R15;
	set_inside(u, ALL_INSIDE);
	return FUSEE_NEXT;
}
FUSEE_PART(fusee_ruby_leave_jit, leave_jit)

/* FUSEE_AGAIN: control frames are to be pushed; else what the step returns. */
FUSEE_FN int enter_jit(struct fusee_unwind *u)
{
	u->scratch[SP] = u->sp;
	set_inside(u, 0);
	begin_near(u);
	if (FUSEE_CALL(fusee_ruby_find_return, u, 0) < 0) {
		u->scratch[SP] = 0;
		return FUSEE_PASS; /* it may be other code than YJIT's */
	}
	if (!u->tls) /* over a stack copy there are the machine's frames only */
		return FUSEE_CALL(fusee_ruby_leave_jit, u, 0);
	if (!u->scratch[CONTEXT] && begin_in_jit(u))
		return fusee_stop(u, RUBY_NO_CONTEXT);
	return inside(u) ? FUSEE_CALL(fusee_ruby_leave_jit, u, 0) : FUSEE_AGAIN;
}

FUSEE_FN int jit_step(struct fusee_unwind *u)
{
	int r;

	if (u->words < RUBY_PROCESS_WORDS)
		return FUSEE_PASS;
	u->bias = process_word(u, RUBY_PROCESS_BIAS);
	if (u->scratch[SP] != u->sp) {
		r = enter_jit(u);
		if (r != FUSEE_AGAIN)
			return r;
	}
	r = FUSEE_CALL(fusee_ruby_push, u, 0);
	if (u->npushed)
		emit(u);
	return r == FUSEE_NATIVE ? FUSEE_CALL(fusee_ruby_leave_jit, u, 0) : r;
}

#endif
