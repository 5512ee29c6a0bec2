/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* One step by the table that inspect() made from .eh_frame, .debug_frame or .gopclntab. x86-64. */
#include <fusee/unwinder.bpf.h>

#include "reasons.h"
#include "table.h"

#define SEARCH_STEPS 9 /* up to 256 rows in a block */

/* struct ucontext of x86-64 Linux (asm/ucontext.h, asm/sigcontext.h): the general registers from
 * byte 40 on, and their DWARF numbers; rip follows rsp. */
#define UCONTEXT_REGS 40
#define UCONTEXT_NREGS 17

struct special {
	__u32 kind, reg, flags;
	__s32 cfa, fp, extra;
};

FUSEE_FN int stop(struct fusee_unwind *u, __u32 reason)
{
	u->error = reason;
	return FUSEE_STOP;
}

FUSEE_FN __u64 add_signed(__u64 base, __s32 n)
{
	return base + (__u64)(__s64)n;
}

/* The rule that governs this frame's pc. 0; -1: the table is damaged. No row: DWARF_RULE_NONE. */
FUSEE_FN int find_rule(struct fusee_unwind *u, __u32 *rule)
{
	__u32 magic, lo, lo_high, blocks, index_at, rows_at, rows, word, row, first, low, high,
		pc_low;
	__u64 at = u->offset - (u->flags & FUSEE_PC_EXACT ? 0 : 1), block;

	*rule = DWARF_RULE_NONE;
	if (fusee_slab32(u, DWARF_MAGIC, &magic) || magic != DWARF_TABLE_MAGIC ||
	    fusee_slab32(u, DWARF_LO, &lo) || fusee_slab32(u, DWARF_LO_HIGH, &lo_high) ||
	    fusee_slab32(u, DWARF_BLOCKS, &blocks) || fusee_slab32(u, DWARF_INDEX_AT, &index_at) ||
	    fusee_slab32(u, DWARF_ROWS_AT, &rows_at) || fusee_slab32(u, DWARF_ROWS, &rows))
		return -1;
	block = (at - ((__u64)lo_high << 32 | lo)) >> 8;
	if (block >= blocks)
		return 0;
	if (fusee_slab32(u, index_at + block, &word))
		return -1;
	first = word >> 8;
	low = first;
	high = first + (word & 0xff);
	pc_low = (__u32)at & 0xffff;
	/* The number of rows of the block that begin at or below pc. */
	for (int i = 0; i < SEARCH_STEPS && low < high; i++) {
		__u32 middle = low + (high - low) / 2;

		if (middle >= rows || fusee_slab32(u, (__u64)rows_at + middle, &row))
			return -1;
		if ((row & 0xffff) <= pc_low)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low) /* nothing begins below: before the first row */
		return 0;
	if (low > rows || fusee_slab32(u, (__u64)rows_at + low - 1, &row))
		return -1;
	*rule = row >> 16;
	return 0;
}

FUSEE_FN int load_special(struct fusee_unwind *u, __u32 i, struct special *s)
{
	__u32 at, n, w0, w1, w2, w3;

	if (fusee_slab32(u, DWARF_SPECIALS_AT, &at) || fusee_slab32(u, DWARF_SPECIALS, &n) ||
	    i >= n || fusee_slab32(u, (__u64)at + i * DWARF_SPECIAL_WORDS, &w0) ||
	    fusee_slab32(u, (__u64)at + i * DWARF_SPECIAL_WORDS + 1, &w1) ||
	    fusee_slab32(u, (__u64)at + i * DWARF_SPECIAL_WORDS + 2, &w2) ||
	    fusee_slab32(u, (__u64)at + i * DWARF_SPECIAL_WORDS + 3, &w3))
		return -1;
	s->kind = w0 & 0xff;
	s->reg = w0 >> 8 & 0xff;
	s->flags = w0 >> 16;
	s->cfa = (__s32)w1;
	s->fp = (__s32)w2;
	s->extra = (__s32)w3;
	return 0;
}

/* A register of this frame. 0; -1: not known here. */
FUSEE_FN int reg_value(const struct fusee_unwind *u, __u32 reg, __u64 *value)
{
	if (reg == FUSEE_X86_RSP)
		*value = u->sp;
	else if (reg == FUSEE_X86_RIP)
		*value = u->pc;
	else if (reg == FUSEE_X86_RBP && !(u->flags & FUSEE_FP_LOST))
		*value = u->fp;
	else if (reg < 16 && reg != FUSEE_X86_RBP && u->valid_regs >> reg & 1)
		*value = u->regs[reg & 15];
	else
		return -1;
	return 0;
}

/* The frame's registers become the caller's; nothing but fp is known of the rest. */
FUSEE_FN int arrive(struct fusee_unwind *u, __u64 cfa, __u64 pc, __u64 fp, int fp_known)
{
	u->pc = pc;
	u->sp = cfa;
	u->fp = fp;
	u->valid_regs = 0;
	u->flags &= ~(__u32)(FUSEE_PC_EXACT | FUSEE_FP_LOST);
	if (!fp_known)
		u->flags |= FUSEE_FP_LOST;
	return FUSEE_NEXT;
}

/* CFA is known: return address at CFA - 8, fp by slot. */
FUSEE_FN int leave_plain(struct fusee_unwind *u, __u64 cfa, __u32 slot)
{
	__u64 pc, fp = u->fp;
	int known = !(u->flags & FUSEE_FP_LOST);

	if (cfa <= u->sp)
		return stop(u, DWARF_REASON_NO_PROGRESS);
	if (fusee_read(u, &pc, 8, cfa - 8))
		return stop(u, DWARF_REASON_STACK_UNREADABLE);
	if (slot) {
		if (fusee_read(u, &fp, 8, cfa - 8 * (slot + 1)))
			return stop(u, DWARF_REASON_STACK_UNREADABLE);
		known = 1;
	}
	return arrive(u, cfa, pc, fp, known);
}

/* Into *fp the caller's frame pointer, into *known whether it is. 0 or a reason. */
FUSEE_FN __u32 caller_fp(struct fusee_unwind *u, const struct special *s, __u64 cfa, __u64 *fp,
			 int *known)
{
	__u64 at = add_signed(cfa, s->fp);

	*fp = u->fp;
	*known = !(u->flags & FUSEE_FP_LOST);
	if (s->flags & DWARF_FP_UNKNOWN) {
		*known = 0;
	} else if (s->flags & DWARF_FP_IN_REG) {
		*known = !reg_value(u, (__u32)s->fp, fp);
	} else if (s->flags & (DWARF_FP_SAVED | DWARF_FP_AT_FP)) {
		if (s->flags & DWARF_FP_AT_FP) {
			if (u->flags & FUSEE_FP_LOST)
				return DWARF_REASON_REGISTER;
			at = add_signed(u->fp, s->fp);
			/* Between pop %rbp and the lea that ends an aligned frame gcc still says
			 * so, but fp is the caller's by then: in another frame, or no address. */
			if (s->kind == DWARF_REG && (at < u->sp || at > cfa - 16))
				return 0;
		}
		if (fusee_read(u, fp, 8, at))
			return DWARF_REASON_STACK_UNREADABLE;
		*known = 1;
	}
	return 0;
}

/* Kinds REG and DEREF. */
FUSEE_FN int leave_special(struct fusee_unwind *u, const struct special *s)
{
	__u64 base, cfa, pc, fp;
	__u32 reason;
	int known;

	if (reg_value(u, s->reg, &base)) {
		u->flags |= FUSEE_INEXPRESSIBLE; /* with all registers followed it would be known */
		return stop(u, DWARF_REASON_REGISTER);
	}
	cfa = add_signed(base, s->cfa);
	if (s->kind == DWARF_DEREF) {
		if (fusee_read(u, &cfa, 8, cfa))
			return stop(u, DWARF_REASON_STACK_UNREADABLE);
		cfa = add_signed(cfa, s->extra);
	}
	if (s->kind == DWARF_REG && s->flags & DWARF_RA_IN_REG) {
		if (reg_value(u, (__u32)s->extra, &pc))
			return stop(u, DWARF_REASON_REGISTER);
	} else if (fusee_read(u, &pc, 8,
			      s->kind == DWARF_REG && s->flags & DWARF_RA_AT
				      ? add_signed(cfa, s->extra)
				      : cfa - 8)) {
		return stop(u, DWARF_REASON_STACK_UNREADABLE);
	}
	reason = caller_fp(u, s, cfa, &fp, &known);
	if (reason)
		return stop(u, reason);
	/* A return address in a register may have been popped already: then sp stands still, and pc
	 * must not. */
	if (!(s->flags & DWARF_OTHER_STACK) && (cfa < u->sp || (cfa == u->sp && pc == u->pc)))
		return stop(u, DWARF_REASON_NO_PROGRESS);
	return arrive(u, cfa, pc, fp, known);
}

/* The kernel put all registers of the interrupted code on the stack. */
FUSEE_FN int leave_signal(struct fusee_unwind *u)
{
	/* r8 .. r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip */
	static const __u8 dwarf_number[UCONTEXT_NREGS] = {8, 9, 10, 11, 12, 13, 14, 15, 5,
							  4, 6, 3,  1,  0,  2,  7,  16};
	__u64 regs[UCONTEXT_NREGS];

	if (fusee_read(u, regs, sizeof(regs), u->sp + UCONTEXT_REGS))
		return stop(u, DWARF_REASON_STACK_UNREADABLE);
	for (int i = 0; i < UCONTEXT_NREGS - 1; i++)
		u->regs[dwarf_number[i] & 15] = regs[i];
	/* A handler may run on a stack of its own: the interrupted sp can be anywhere. */
	u->fp = regs[10];
	u->sp = regs[15];
	u->pc = regs[16];
	u->valid_regs = 0xffff & ~(1u << FUSEE_X86_RBP | 1u << FUSEE_X86_RSP);
	u->flags &= ~(__u32)FUSEE_FP_LOST;
	u->flags |= FUSEE_PC_EXACT | FUSEE_SIGNAL;
	return FUSEE_NEXT;
}

FUSEE_FN int step_special(struct fusee_unwind *u, __u32 i)
{
	struct special s;

	if (load_special(u, i, &s))
		return stop(u, DWARF_REASON_TABLE);
	switch (s.kind) {
	case DWARF_END:
		return stop(u, 0);
	case DWARF_SIGNAL:
		return leave_signal(u);
	case DWARF_PLT:
		return leave_plain(u, u->sp + ((u->pc & 15) >= (__u32)s.extra ? 16 : 8), 0);
	case DWARF_DEREF:
	case DWARF_REG:
		return leave_special(u, &s);
	case DWARF_SWITCH:
		return stop(u, DWARF_REASON_SWITCH);
	case DWARF_EXPRESSION:
		u->flags |= FUSEE_INEXPRESSIBLE;
		return stop(u, DWARF_REASON_EXPRESSION);
	default:
		return stop(u, DWARF_REASON_TABLE);
	}
}

static int dwarf_step(struct fusee_unwind *u)
{
	__u32 rule;

	u->error = 0;
	if (!u->slab_words)
		return FUSEE_PASS;
	if (find_rule(u, &rule))
		return stop(u, DWARF_REASON_TABLE);
	if (rule == DWARF_RULE_NONE)
		return FUSEE_PASS;
	if (rule < 0x8000)
		return leave_plain(u, u->sp + 8 * (rule & DWARF_SP_MAX_OFFSET), rule >> 11);
	if (rule >= 0xc000)
		return step_special(u, rule & 0x3fff);
	if (u->flags & FUSEE_FP_LOST)
		return stop(u, DWARF_REASON_REGISTER);
	return leave_plain(u, u->fp + 8 * (rule & DWARF_FP_MAX_OFFSET), rule >> 10 & 15);
}

FUSEE_NATIVE_STEP(dwarf, dwarf_step);
