/* SPDX-License-Identifier: Apache-2.0 */
/* Where sp and rbp are, relative to the return address, before an instruction. */
#ifndef DWARF_CODE_STATE_H
#define DWARF_CODE_STATE_H

#include <stdint.h>

#include "insn.h"
#include "rows.h"

#define CODE_DEPTH_LOST 0x1fffu /* sp is not known: rbp must restore it */
#define CODE_SLOT_LOST 0x10u    /* the caller's rbp is not known */

/* In words of 8 bytes. A zeroed struct is the state at a function's first instruction. */
struct code_state {
	/* 13 bits: sp is so far below the return address */
	uint32_t depth;
	/* 4 bits, and one for CODE_SLOT_LOST. 0: rbp has the caller's value; k: that is saved k
	 * words below the return address */
	uint32_t slot;
	/* 1 bit, where slot is k: rbp has that value, too */
	uint32_t intact;
	/* 6 bits. 0: rbp is no frame pointer; b: rbp = CFA - 8 * b */
	uint32_t base;
};

static inline uint32_t code_state_pack(const struct code_state *s)
{
	return s->depth | (s->slot | s->intact << 4) << 13 | s->base << 18;
}

static inline struct code_state code_state_unpack(uint32_t v)
{
	uint32_t slot = v >> 13 & 0x1f;
	uint32_t intact = slot > CODE_SLOT_LOST;

	return (struct code_state){v & 0x1fff, intact ? slot & 15 : slot, intact, v >> 18 & 0x3f};
}

/* As at a function's first instruction. */
static inline int code_state_is_start(const struct code_state *s)
{
	return !s->depth && !s->slot && !s->base;
}

/* As a return must leave it. */
static inline int code_state_is_end(const struct code_state *s)
{
	return !s->depth && !s->base && (!s->slot || s->slot == CODE_SLOT_LOST || s->intact);
}

/* Changes the state as the instruction does. 0; -1: the state after it is not known. */
int code_state_apply(struct code_state *, const struct insn *);
/* As a callee may leave it: what is below sp is overwritten. */
void code_state_lose_red_zone(struct code_state *);
/* Keeps what both paths to one place agree on: where sp is not known, rbp must say it. 0; -1:
 * nothing says where the return address is. */
int code_state_join(struct code_state *, const struct code_state *other);
/* The rule of a table for a state, packed. */
uint32_t code_state_rule(struct table_build *, uint32_t packed);
#endif
