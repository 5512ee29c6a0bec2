/* SPDX-License-Identifier: Apache-2.0 */
/* Where sp and rbp are, relative to the return address, before an instruction. */
#ifndef DWARF_CODE_STATE_H
#define DWARF_CODE_STATE_H

#include <stdint.h>

#include <fusee/insn.h>
#include "../rows.h"

#define CODE_DEPTH_LOST 0x1fffu /* sp is not known: rbp or a copy must restore it */
#define CODE_SLOT_LOST 0x10u    /* the caller's rbp is not known */
#define CODE_MAX_BASE 0x3eu
#define CODE_BASE_COPIES 0x3fu /* packed: the other bits are a number in code_states */
#define CODE_MAX_COPY 32u
#define CODE_WORD_0 17u /* 16 words below sp are the red zone */
#define CODE_MAX_WORD 4096u

/* In words of 8 bytes, but odd. A zeroed struct is the state at a function's first instruction. */
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
	/* A copy of sp in another register, by the processor's number, plus 1; 0: there is none.
	 * That register = CFA - 8 * copy. */
	uint8_t reg, copy;
	/* Where depth is lost: the word at sp + 8 * (word - CODE_WORD_0) = CFA - 8 * word_copy. 0:
	 * none. */
	uint16_t word;
	uint8_t word_copy;
	/* 3 bits. Where depth is known: so many bytes more is sp below the return address. */
	uint8_t odd;
	/* Where depth is lost, as of `word`, 0: not known. The caller's rbp is saved in this word,
	 * and rbp has this word's address. */
	uint16_t fp_word, fp_at;
	/* 1: sp was lost once more, and `word` and `fp_word` count from rbp. */
	uint8_t by_fp;
};

/* States that are not plain, of one text. A zeroed struct is empty. */
struct code_states {
	struct code_state *p; /* owned */
	uint32_t n;
	size_t looked_at; /* instructions that were read of functions that are called */
};

void code_states_fini(struct code_states *);
uint32_t code_states_pack(struct code_states *, const struct code_state *);

static inline int code_state_has_copies(const struct code_state *s)
{
	return s->reg || s->word;
}

/* Do 24 bits say all of it? */
static inline int code_state_is_plain(const struct code_state *s)
{
	return !s->reg && !s->word && !s->odd && !s->fp_word && !s->fp_at;
}

/* 24 bits. Without memory, or beyond 32,768 states that are not plain, what is not plain is lost.
 */
static inline uint32_t code_state_pack(struct code_states *all, const struct code_state *s)
{
	if (!code_state_is_plain(s))
		return code_states_pack(all, s);
	return s->depth | (s->slot | s->intact << 4) << 13 | s->base << 18;
}

static inline struct code_state code_state_unpack(const struct code_states *all, uint32_t v)
{
	uint32_t slot = v >> 13 & 0x1f;
	uint32_t intact = slot > CODE_SLOT_LOST;

	if ((v >> 18 & 0x3f) == CODE_BASE_COPIES && all->p)
		return all->p[v & 0xffff];
	return (struct code_state){.depth = v & 0x1fff,
				   .slot = intact ? slot & 15 : slot,
				   .intact = intact,
				   .base = v >> 18 & 0x3f};
}

/* Whether rbp has the caller's value beside the word where it is saved depends on the path. */
static inline int code_state_is_same(struct code_states *all, const struct code_state *a,
				     const struct code_state *b)
{
	struct code_state x = *a, y = *b;

	x.intact = y.intact = 0;
	return code_state_pack(all, &x) == code_state_pack(all, &y);
}

/* As at a function's first instruction. */
static inline int code_state_is_start(const struct code_state *s)
{
	return !s->depth && !s->odd && !s->slot && !s->base;
}

/* As a return must leave it. */
static inline int code_state_is_end(const struct code_state *s)
{
	return !s->depth && !s->odd && !s->base &&
	       (!s->slot || s->slot == CODE_SLOT_LOST || s->intact);
}

/* Changes the state as the instruction does. 0; -1: the state after it is not known. */
int code_state_apply(struct code_state *, const struct insn *);
/* The reverse: from the state after the instruction, as the way on from there demands it, to the
 * state before. 0; -1: it is not known, or cannot be. */
int code_state_before(struct code_state *, const struct insn *);
/* Joins two states that both hold. 0; -1: they contradict each other. */
int code_state_both(struct code_state *, const struct code_state *other);
/* Sets depth and odd. 0; -1: sp cannot be there. */
int code_state_set_depth(struct code_state *, int64_t bytes);
/* Forgets the red zone: a callee may overwrite the stack below sp. */
void code_state_lose_red_zone(struct code_state *);
/* Keeps the facts that are equal on two paths to one place. If sp is not known, rbp must lead to
 * the return address. 0; -1: nothing leads to it. */
int code_state_join(struct code_state *, const struct code_state *other);
/* Whether sp, rbp or a copy leads to the return address. */
static inline int code_state_is_known(const struct code_state *s)
{
	return s->depth != CODE_DEPTH_LOST || s->base || code_state_has_copies(s);
}

/* The rule of a table for a state. */
uint32_t code_state_rule(struct table_build *, const struct code_state *);
#endif
