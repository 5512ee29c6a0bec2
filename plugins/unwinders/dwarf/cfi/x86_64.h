/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CFI says of a frame, and what that is as a rule of the table. Registers and expressions are
 * those of x86-64.
 */
#ifndef DWARF_X86_64_H
#define DWARF_X86_64_H

#include "../rows.h"

#define X86_64_MACHINE 62 /* e_machine */

/* How CFI restores a register of the caller. */
enum cfi_place_kind {
	CFI_UNSPECIFIED,
	CFI_UNDEFINED,
	CFI_SAME,       /* the register has the caller's value */
	CFI_OFFSET,     /* saved at CFA + off. Of the CFA itself: reg + off */
	CFI_VAL_OFFSET, /* the value is CFA + off */
	CFI_REGISTER,   /* the value is in reg */
	CFI_AT_EXPR,    /* saved at the address that expr computes. Of the CFA itself: its value */
	CFI_VAL_EXPR,   /* the value is what expr computes */
};

struct cfi_place {
	uint8_t kind; /* enum cfi_place_kind */
	uint16_t reg;
	uint32_t len; /* of expr */
	int64_t off;
	const uint8_t *expr; /* borrowed from the section */
};

/* The registers that the table knows, at one address. */
struct cfi_frame {
	struct cfi_place cfa, fp, sp, ra;
	struct cfi_place saved[DWARF_SAVED_REGS]; /* rbx, r12, r13, r14, r15 */
	uint8_t signal;                           /* augmentation S: a signal frame */
};

/* What holds before the first instruction of a CIE. */
void x86_64_start(struct cfi_frame *);
/* The place of a DWARF register; NULL: the table has no use for that register. */
struct cfi_place *x86_64_place(struct cfi_frame *, uint64_t reg);
/*
 * Compilers do not describe that pop %rbp or leave restores the caller's fp: the CFI still places
 * it where it was saved, which is below sp by then and may be overwritten. This makes fp CFI_SAME
 * there. A save that was below sp from the start (the red zone) stays. *saved: the function's last
 * place above sp, 0 at its start.
 */
void x86_64_popped(struct cfi_frame *, int64_t *saved);
/* The 16 bits of table.h for a frame. Specials are added to the table as needed. */
uint32_t x86_64_rule(struct table_build *, const struct cfi_frame *);
/* The number of the pattern of table.h for the frame's callee-saved registers. */
uint32_t x86_64_saves(struct table_build *, const struct cfi_frame *);
#endif
