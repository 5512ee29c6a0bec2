/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The dwarf unwinder's table of one file. inspect() makes it, and the step reads it.
 *
 * Words of 32 bits, host byte order. Positions are word indices from the table's start:
 *
 * header: DWARF_HEADER_WORDS words, enum dwarf_header.
 * index: one word for each 256 bytes of text from `lo` on: first_row << 8 | count: the rows whose
 *   address lies in this block. The row that governs a pc is the last row at or below it: in its
 *   block, or, if none is there, row first_row - 1.
 * rows: a word each, sorted by address: low 16 bits: address & 0xffff, high 16 bits: rule. At
 * each 64 KiB border the governing row is repeated: the row before a block is in its 64 KiB page.
 * specials: DWARF_SPECIAL_WORDS words each.
 *
 * 4 bytes a row, about 5 with the index. lo is a multiple of 64 KiB.
 *
 * saves: where functions save callee-saved registers, read only where u->flags has FUSEE_FOLLOW. A
 *   table of the same form at word DWARF_SAVES_AT, a multiple of DWARF_HEADER_WORDS, all positions
 *   from there. Its blocks have
 *   256 << DWARF_SAVES_SHIFT bytes, its rows have no gaps (where there is no rule, they mean
 * nothing) and a pattern's number from 1 in place of a rule, and patterns stand in place of
 * specials. patterns: DWARF_PATTERN_WORDS words each. A byte for each of rbx, r12, r13, r14, r15,
 * then the bits DWARF_BY_FP. Byte: 0: the register has the caller's value; 1: not known; k + 1:
 * saved at CFA - 8 * k, or if the bit is set at fp - 8 * k.
 */
#ifndef DWARF_TABLE_H
#define DWARF_TABLE_H

#define DWARF_TABLE_MAGIC 0x31747764u /* "dwt1" */
/* Raise it also when other rows are made for the same file: tables are kept on disk. */
#define DWARF_TABLE_VERSION 21

enum dwarf_header {
	DWARF_MAGIC,
	DWARF_LO, /* ELF virtual address of block 0 */
	DWARF_LO_HIGH,
	DWARF_BLOCKS, /* words of the index */
	DWARF_INDEX_AT,
	DWARF_ROWS_AT,
	DWARF_ROWS,
	DWARF_SHIFT, /* the blocks' size is 256 << this */
	DWARF_SPECIALS_AT,
	DWARF_SPECIALS,
	DWARF_MACHINE,  /* e_machine */
	DWARF_SAVES_AT, /* 0: there are none */
	DWARF_HEADER_WORDS = 16,
};

/*
 * * Rules of 16 bits. CFA: the value of sp before the call. The return address is at CFA - 8.
 * `slot` 0: the caller's fp is this frame's; k > 0: it was saved at CFA - 8 * (k + 1).
 *
 *	0                       no row: nothing is known here (a gap)
 *	0 ssss ooooooooooo      CFA = sp + 8 * o, slot s   (o > 0; the step has its own use of 0)
 *	1 0 ssss oooooooooo     CFA = fp + 8 * o, slot s
 *	1 1 iiiiiiiiiiiiii      special i
 */
#define DWARF_RULE_NONE 0u
#define DWARF_RULE_SP(o, s) ((__u32)(s) << 11 | (__u32)(o))
#define DWARF_RULE_FP(o, s) (0x8000u | (__u32)(s) << 10 | (__u32)(o))
#define DWARF_RULE_SPECIAL(i) (0xc000u | (__u32)(i))
#define DWARF_SP_MAX_OFFSET 2047u
#define DWARF_FP_MAX_OFFSET 1023u
#define DWARF_MAX_SLOT 15u
#define DWARF_MAX_SPECIALS 16384u

enum dwarf_special_kind {
	/* The return address is undefined: the stack ends here, complete. */
	DWARF_END = 1,
	/* Signal frame: sp points to a struct ucontext; all registers come from it. */
	DWARF_SIGNAL,
	/* CFA = sp + 8, and + 8 more where (pc & 15) >= add. */
	DWARF_PLT,
	/* CFA = *(reg + cfa) + add (DRAP). */
	DWARF_DEREF,
	/* CFA = reg + cfa: offsets too large for a plain rule, other registers. */
	DWARF_REG,
	/* An expression or a place that this table cannot express: the stack is truncated; natively
	 * libunwind takes the step. */
	DWARF_EXPRESSION,
	/* This frame runs on another stack than its caller, and no register leads to that stack
	 * (Go's systemstack): the stack is truncated. libunwind cannot step it either. */
	DWARF_SWITCH,
	/* The goroutine has called Go's morestack, and its place is in memory: g at the thread
	 * pointer + cfa, m at g + byte 0 of fp, the current g at m + fp >> 8, and pc, sp and bp of
	 * its place there, at bytes 0, 1 and 2 of ra. */
	DWARF_GO_GROWS,
};

/* The goroutine's pc is behind a call of morestack or morestack_noctxt, which lie together. */
#define DWARF_GO_NEAR 1024u

/* Of kinds DEREF and REG. No FP flag: the caller's fp is this frame's. */
enum dwarf_special_flags {
	DWARF_FP_SAVED = 1,   /* caller's fp at CFA + fp */
	DWARF_FP_IN_REG = 2,  /* caller's fp in register number fp */
	DWARF_FP_UNKNOWN = 4, /* undefined, or by a rule not expressible here */
	DWARF_RA_AT = 8,      /* return address at CFA + ra instead of CFA - 8 */
	DWARF_RA_IN_REG = 16, /* return address in register number ra */
	/* caller's fp at this frame's fp + fp, not at CFA + fp (DRAP); in kind REG only where that
	 * is inside this frame: else this frame's fp is the caller's already */
	DWARF_FP_AT_FP = 32,
	DWARF_OTHER_STACK = 64, /* the CFA may be on another stack than sp: not always above sp */
	DWARF_SP_MOVED = 128,   /* the caller's sp may be another than the CFA */
};

/*
 * word 0: kind | reg << 8 | flags << 16; word 1: cfa; word 2: fp; word 3: of DEREF and PLT add, of
 * REG ra. Signed: two's complement. Where a DEREF needs an ra of its own: kind EXPRESSION.
 *
 * Registers by DWARF number: 6 (fp) and 7 (sp) mean u->fp and u->sp, 16 means u->pc, others
 * u->regs[] where valid_regs says so.
 */
#define DWARF_SPECIAL_WORDS 4

#define DWARF_BLOCK_SHIFT 8
#define DWARF_SAVES_SHIFT 2
#define DWARF_PATTERN_WORDS 2
#define DWARF_SAVED_REGS 5
#define DWARF_MAX_SAVED_SLOT 254u
#define DWARF_BY_FP(i) (1u << (8 + (i))) /* of word 1 */
#define DWARF_PATTERN_UNKNOWN 1u         /* of each register; 0 is no pattern: a gap */
#endif
