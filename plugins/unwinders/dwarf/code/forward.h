/* SPDX-License-Identifier: Apache-2.0 */
/*
 * * Rows for machine code that was made at run time. No symbol shows where its functions begin. But
 * the distance of sp from the return address depends on the pc alone, and a way out shows it: from
 * an instruction that was executed every path is followed until it returns. The effects of the
 * instructions on sp and rbp show where the return address and the caller's rbp are at each of
 * them. A path that does not return proves nothing; if two proofs contradict each other there is no
 * row.
 *
 * Where no path proves anything, as in interpreters, which jump from the code of an instruction to
 * that of the next, code shows that rbp is its frame pointer: it uses memory below rbp, or leaves.
 */
#ifndef DWARF_CODE_FORWARD_H
#define DWARF_CODE_FORWARD_H

#include <stddef.h>
#include <stdint.h>

#include "../rows.h"

#define FORWARD_MAX_INSNS (1u << 20) /* that are followed at once */
#define FORWARD_MAX_BYTES (1u << 28)

/* Where the CFA and the caller's rbp are before an instruction. */
struct forward_proof {
	uint8_t kind; /* enum forward_kind */
	/* 0: rbp has the caller's value; k: it was saved k words below the return address */
	uint8_t slot;
	uint8_t used; /* 1: by the use of rbp, not by the way out: the caller's sp is not known */
	int32_t cfa;  /* words from sp or rbp to the CFA */
};

enum forward_kind { FORWARD_NONE, FORWARD_BY_SP, FORWARD_BY_FP, FORWARD_CONTRADICTION };

#define FORWARD_SLOT_LOST 0xffu /* the caller's rbp is not known */

struct forward_code {
	const uint8_t *bytes; /* borrowed */
	size_t len;
	uint64_t vaddr;
};

/* An address in the code at which a stack was seen: an instruction begins there. */
struct forward_start {
	uint64_t vaddr;
	uint8_t returned; /* a call ends there; its own row is that of the instruction behind it */
};

struct forward;

/* Follows all paths from these instructions. 0, -ENOMEM; -E2BIG: more instructions than
 * FORWARD_MAX_INSNS, or the code is larger than FORWARD_MAX_BYTES. */
int forward_new(struct forward **ret, const struct forward_code *, const struct forward_start *,
		size_t n);
void forward_free(struct forward *); /* NULL is fine */
/* The proved row of the instruction at vaddr. */
struct forward_proof forward_at(const struct forward *, uint64_t vaddr);
/* Adds the rows of what is proved, and gaps behind them. 0, or as rows_add(). */
int forward_rows(const struct forward *, struct table_build *, struct rows *);
#endif
