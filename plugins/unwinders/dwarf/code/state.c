/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include <stdlib.h>

#include "../table.h"

/* Is rbp saved in the red zone? */
static int is_below_sp(const struct code_state *s)
{
	return s->slot != CODE_SLOT_LOST && s->slot > s->depth;
}

/* What was saved is not there any more: the caller's rbp is in rbp, or not known. */
static void lose_slot(struct code_state *s)
{
	s->slot = s->intact ? 0 : CODE_SLOT_LOST;
	s->intact = 0;
}

void code_state_lose_red_zone(struct code_state *s)
{
	if (s->word < CODE_WORD_0)
		s->word = s->word_copy = 0;
	if (is_below_sp(s))
		lose_slot(s);
}

/* The functions return what code_state_apply() returns. */

/* sp moves: adjusts the distance of the word that has a copy. */
static int move_word(struct code_state *s, int64_t bytes)
{
	int64_t word = (int64_t)s->word - bytes / 8;

	if (s->word)
		s->word = bytes % 8 || word <= 0 || word > CODE_MAX_WORD ? 0 : (uint16_t)word;
	return code_state_is_known(s) ? 0 : -1;
}

static int move_sp(struct code_state *s, int64_t bytes)
{
	int64_t depth = (int64_t)s->depth - bytes / 8;

	if (s->depth == CODE_DEPTH_LOST) /* stays lost, until rbp or a copy gives it back */
		return move_word(s, bytes);
	if (bytes % 8 || depth < 0 || depth >= (int64_t)CODE_DEPTH_LOST)
		return -1;
	s->depth = (uint32_t)depth;
	if (bytes > 0 && is_below_sp(s))
		lose_slot(s);
	return 0;
}

static int push(struct code_state *s)
{
	int overwrites = is_below_sp(s) && s->slot == s->depth + 1;

	if (s->word == CODE_WORD_0 - 1)
		s->word = s->word_copy = 0;
	if (move_sp(s, -8))
		return -1;
	if (overwrites)
		lose_slot(s);
	return 0;
}

static int save_fp(struct code_state *s, int64_t bytes_above_sp)
{
	int64_t slot = (int64_t)s->depth - bytes_above_sp / 8;

	if (s->slot || s->depth == CODE_DEPTH_LOST)
		return 0; /* a second copy, or of another value */
	if (bytes_above_sp % 8 || slot <= 0 || slot > (int64_t)DWARF_MAX_SLOT)
		return 0;
	s->slot = (uint32_t)slot;
	s->intact = 1;
	return 0;
}

static int push_fp(struct code_state *s)
{
	if (push(s))
		return -1;
	return s->depth == CODE_DEPTH_LOST ? 0 : save_fp(s, 0);
}

static int write_fp(struct code_state *s)
{
	if (s->depth == CODE_DEPTH_LOST && !code_state_has_copies(s))
		return -1;
	s->base = s->intact = 0;
	if (!s->slot)
		s->slot = CODE_SLOT_LOST; /* overwritten without being saved */
	return 0;
}

/* rbp comes back: from where it was saved, or it is another value. */
static int pop_fp(struct code_state *s)
{
	int saved = s->slot && s->slot != CODE_SLOT_LOST && s->slot == s->depth;

	if (s->depth == CODE_DEPTH_LOST && !code_state_has_copies(s))
		return -1;
	if (saved) {
		s->slot = s->intact = s->base = 0;
		return move_sp(s, 8);
	}
	return write_fp(s) || move_sp(s, 8) ? -1 : 0;
}

/* rbp is read from the stack without a pop. */
static int load_fp(struct code_state *s, int64_t bytes_above_sp)
{
	int64_t slot = (int64_t)s->depth - bytes_above_sp / 8;

	if (write_fp(s))
		return -1;
	s->intact = s->slot != CODE_SLOT_LOST && bytes_above_sp % 8 == 0 && slot == s->slot;
	return 0;
}

static int sp_from_fp(struct code_state *s, int64_t bytes)
{
	if (!s->base)
		return -1;
	s->depth = s->base - 1;
	return move_sp(s, bytes);
}

static int set_fp(struct code_state *s)
{
	if (!s->slot || s->depth == CODE_DEPTH_LOST || s->depth >= CODE_MAX_BASE)
		return -1;
	s->base = s->depth + 1;
	s->intact = 0;
	return 0;
}

/* ---- copies of sp ---- */

static void copy_sp(struct code_state *s, const struct insn *in)
{
	int64_t copy = (int64_t)s->depth + 1 - in->at / 8;

	if (s->depth == CODE_DEPTH_LOST || in->at % 8 || copy < 0 || copy > CODE_MAX_COPY)
		return;
	s->reg = (uint8_t)(in->reg + 1);
	s->copy = (uint8_t)copy;
}

static int sp_from_copy(struct code_state *s, uint32_t copy, int64_t bytes)
{
	s->depth = copy - 1;
	s->word = 0;
	if (!copy) {
		s->depth = 0;
		bytes += 8;
	}
	if (move_sp(s, bytes))
		return -1;
	if (is_below_sp(s))
		lose_slot(s);
	return 0;
}

/* Does the instruction access the word that has the copy? */
static int is_word(const struct code_state *s, const struct insn *in)
{
	return s->word && in->at == 8 * ((int32_t)s->word - (int32_t)CODE_WORD_0);
}

static void save_copy(struct code_state *s, const struct insn *in, uint32_t copy)
{
	int32_t word = in->at / 8 + (int32_t)CODE_WORD_0;

	if (copy && copy <= CODE_MAX_COPY && s->depth == CODE_DEPTH_LOST && in->at % 8 == 0 &&
	    word > 0 && word < (int32_t)CODE_MAX_WORD) {
		s->word = (uint16_t)word;
		s->word_copy = (uint8_t)copy;
	} else if (is_word(s, in)) {
		s->word = 0;
	}
}

/* The caller's rbp is read by a copy. */
static void load_fp_by_copy(struct code_state *s, const struct insn *in, uint32_t copy)
{
	int64_t slot = (int64_t)copy - 1 - in->at / 8;

	s->intact = s->slot && s->slot != CODE_SLOT_LOST && in->at % 8 == 0 && slot == s->slot;
}

/* What the instruction does with copies, after its other effects on `was`. 0; -1: not known. 1:
 * nothing of that kind. */
static int apply_copy(struct code_state *s, const struct code_state *was, const struct insn *in)
{
	int is_reg = was->reg == in->reg + 1;

	switch (in->copy) {
	case INSN_COPY_TO_SP:
		return is_reg ? sp_from_copy(s, was->copy, in->at) : 1;
	case INSN_COPY_LOAD_SP:
		return is_word(was, in) ? sp_from_copy(s, was->word_copy, 0) : 1;
	case INSN_COPY_LOAD_FP:
		if (!is_word(was, in) || was->word_copy > CODE_MAX_BASE)
			return 1;
		if (write_fp(s))
			return -1;
		s->base = was->word_copy;
		return 0;
	case INSN_COPY_SET_FP:
		if (!is_reg || !was->copy || !was->slot)
			return 1;
		if (write_fp(s))
			return -1;
		s->base = was->copy;
		return 0;
	case INSN_COPY_TO_FP:
		if (!is_reg)
			return 1;
		if (write_fp(s))
			return -1;
		load_fp_by_copy(s, in, was->copy);
		return 0;
	default:
		return 1;
	}
}

static void change_copies(struct code_state *s, const struct code_state *was, const struct insn *in)
{
	if (s->reg && in->written >> (s->reg - 1) & 1)
		s->reg = s->copy = 0;
	if (in->copy == INSN_COPY_SP)
		copy_sp(s, in);
	else if (in->copy == INSN_COPY_SAVE)
		save_copy(s, in, was->reg == in->reg + 1 ? was->copy : 0);
	else if (in->copy == INSN_COPY_SAVE_FP)
		save_copy(s, in, was->base);
	if (in->copy == INSN_COPY_PUSH && is_word(was, in) && s->depth == CODE_DEPTH_LOST) {
		s->word = CODE_WORD_0;
		s->word_copy = was->word_copy;
	}
	if (in->copy == INSN_COPY_LOAD && is_word(was, in)) {
		s->reg = (uint8_t)(in->reg + 1);
		s->copy = was->word_copy;
	}
	if (!s->word || s->depth != CODE_DEPTH_LOST)
		s->word = s->word_copy = 0;
}

static int apply(struct code_state *s, const struct insn *in)
{
	switch (in->effect) {
	case INSN_PUSH:
		return push(s);
	case INSN_PUSH_FP:
		return push_fp(s);
	case INSN_POP:
		return move_sp(s, 8);
	case INSN_POP_FP:
		return pop_fp(s);
	case INSN_ADD_SP:
		return move_sp(s, in->value);
	case INSN_SAVE_FP:
		return save_fp(s, in->value);
	case INSN_SET_FP:
		return in->value ? write_fp(s) : set_fp(s);
	case INSN_SP_FROM_FP:
		return sp_from_fp(s, in->value);
	case INSN_LEAVE:
		return sp_from_fp(s, 0) || pop_fp(s) ? -1 : 0;
	case INSN_LOSE_SP:
		code_state_lose_red_zone(s);
		s->depth = CODE_DEPTH_LOST;
		s->word = 0;
		return code_state_is_known(s) ? 0 : -1;
	case INSN_WRITE_SP:
		return -1;
	case INSN_WRITE_FP:
		return write_fp(s);
	case INSN_LOAD_FP:
		return load_fp(s, in->value);
	default:
		return 0;
	}
}

int code_state_apply(struct code_state *s, const struct insn *in)
{
	struct code_state was = *s;
	int ret = in->copy ? apply_copy(s, &was, in) : 1;

	if (ret == 1)
		ret = apply(s, in);
	if (!ret)
		change_copies(s, &was, in);
	return ret || !code_state_is_known(s) ? -1 : 0;
}

/* Copies that only one path has are lost. */
static void join_copies(struct code_state *s, const struct code_state *other)
{
	if (s->reg != other->reg || s->copy != other->copy)
		s->reg = s->copy = 0;
	if (s->word != other->word || s->word_copy != other->word_copy ||
	    s->depth != CODE_DEPTH_LOST)
		s->word = s->word_copy = 0;
}

int code_state_join(struct code_state *s, const struct code_state *other)
{
	if (s->slot != other->slot) /* rbp may have the caller's value on both paths */
		s->slot = (!s->slot || s->intact) && (!other->slot || other->intact)
				  ? 0
				  : CODE_SLOT_LOST;
	s->intact &= s->slot == other->slot && other->intact;
	if (s->base != other->base)
		s->base = 0;
	if (s->depth != other->depth)
		s->depth = CODE_DEPTH_LOST;
	join_copies(s, other);
	return code_state_is_known(s) ? 0 : -1;
}

/* ---- backwards ---- */

static int is_known(const struct code_state *s)
{
	return s->depth != CODE_DEPTH_LOST || s->base ? 0 : -1;
}

static int unmove_sp(struct code_state *s, int64_t bytes)
{
	int64_t depth = (int64_t)s->depth + bytes / 8;

	if (s->depth == CODE_DEPTH_LOST)
		return is_known(s);
	if (bytes % 8 || depth < 0 || depth >= (int64_t)CODE_DEPTH_LOST)
		return -1;
	s->depth = (uint32_t)depth;
	return 0;
}

/* What follows takes the caller's rbp from that word, `bytes` above sp; before, it is in rbp. */
static int unsave_fp(struct code_state *s, int64_t bytes)
{
	if (s->slot && s->slot != CODE_SLOT_LOST && s->depth != CODE_DEPTH_LOST && bytes % 8 == 0 &&
	    (int64_t)s->slot == (int64_t)s->depth - bytes / 8)
		s->slot = s->intact = 0;
	return 0;
}

/* rbp has another value behind the instruction. */
static void unwrite_fp(struct code_state *s)
{
	s->base = s->intact = 0;
	if (!s->slot)
		s->slot = CODE_SLOT_LOST;
}

/* The value that it gets is the caller's, if that is what follows needs. */
static int unload_fp(struct code_state *s, int64_t bytes)
{
	int64_t slot = (int64_t)s->depth - bytes / 8;

	if (s->base)
		return -1;
	if (!s->slot)
		s->slot = s->depth == CODE_DEPTH_LOST || bytes % 8 || slot <= 0 ||
					  slot > (int64_t)DWARF_MAX_SLOT
				  ? CODE_SLOT_LOST
				  : (uint32_t)slot;
	s->intact = 0;
	return is_known(s);
}

static int unset_fp(struct code_state *s, int64_t bytes)
{
	int64_t depth = (int64_t)s->base - 1 + bytes / 8;

	if (s->base && (bytes % 8 || depth < 0 || depth >= (int64_t)CODE_DEPTH_LOST ||
			(s->depth != CODE_DEPTH_LOST && s->depth != (uint32_t)depth)))
		return -1;
	if (s->base)
		s->depth = (uint32_t)depth;
	unwrite_fp(s);
	return is_known(s);
}

static int unset_sp(struct code_state *s, int64_t bytes)
{
	int64_t base = (int64_t)s->depth + 1 + bytes / 8;

	if (s->depth == CODE_DEPTH_LOST || bytes % 8 || base <= 0 || base > CODE_MAX_BASE ||
	    (s->base && s->base != (uint32_t)base))
		return -1;
	s->base = (uint32_t)base;
	s->depth = CODE_DEPTH_LOST;
	return 0;
}

static int unpop_fp(struct code_state *s)
{
	return unmove_sp(s, 8) || unload_fp(s, 0) ? -1 : 0;
}

static int unpush_fp(struct code_state *s)
{
	unsave_fp(s, 0);
	return unmove_sp(s, -8);
}

/* Calls are made with sp at a multiple of 16: where that is not so, the call does not return, and
 * another function stands behind it. */
static int uncall(struct code_state *s)
{
	if (s->depth != CODE_DEPTH_LOST && !(s->depth & 1))
		return -1;
	code_state_lose_red_zone(s);
	return is_known(s);
}

int code_state_before(struct code_state *s, const struct insn *in)
{
	s->reg = s->copy = s->word = s->word_copy = 0; /* they are known on the way in alone */
	if (is_known(s))
		return -1;
	switch (in->effect) {
	case INSN_PUSH:
		return unmove_sp(s, -8);
	case INSN_PUSH_FP:
		return unpush_fp(s);
	case INSN_POP:
		return unmove_sp(s, 8);
	case INSN_POP_FP:
		return unpop_fp(s);
	case INSN_ADD_SP:
		return unmove_sp(s, in->value);
	case INSN_SAVE_FP:
		return unsave_fp(s, in->value);
	case INSN_SET_FP:
		return unset_fp(s, in->value);
	case INSN_SP_FROM_FP:
		return unset_sp(s, in->value);
	case INSN_LEAVE:
		return unpop_fp(s) || unset_sp(s, 0) ? -1 : 0;
	case INSN_LOSE_SP:
		s->depth = CODE_DEPTH_LOST;
		return is_known(s);
	case INSN_WRITE_SP:
		return -1;
	case INSN_WRITE_FP:
		if (s->base)
			return -1;
		unwrite_fp(s);
		return is_known(s);
	case INSN_LOAD_FP:
		return unload_fp(s, in->value);
	case INSN_CALL:
		return uncall(s);
	default:
		return 0;
	}
}

int code_state_both(struct code_state *s, const struct code_state *other)
{
	if (!s->reg) {
		s->reg = other->reg;
		s->copy = other->copy;
	}
	if (!s->word) {
		s->word = other->word;
		s->word_copy = other->word_copy;
	}
	if (s->depth == CODE_DEPTH_LOST)
		s->depth = other->depth;
	else if (other->depth != CODE_DEPTH_LOST && other->depth != s->depth)
		return -1;
	if (!s->base)
		s->base = other->base;
	else if (other->base && other->base != s->base)
		return -1;
	if (s->slot == CODE_SLOT_LOST) {
		s->slot = other->slot;
		s->intact = other->intact;
	} else if (other->slot != CODE_SLOT_LOST && other->slot != s->slot) {
		if (s->slot && other->slot)
			return -1;
		s->slot = s->intact = 0; /* saved, and still in rbp */
	}
	return 0;
}

/* ---- as a rule, and packed ---- */

/* CFA by a word on the stack, or by a register. */
static uint32_t rule_by_copy(struct table_build *build, const struct code_state *s, uint32_t flags,
			     int32_t fp)
{
	static const uint8_t number[] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

	if (s->word)
		return table_special(build, DWARF_DEREF | 7 << 8 | flags << 16,
				     8 * ((int32_t)s->word - (int32_t)CODE_WORD_0), fp,
				     8 * (int32_t)s->word_copy);
	return table_special(build,
			     DWARF_REG | (uint32_t)number[(s->reg - 1) & 15] << 8 | flags << 16,
			     8 * (int32_t)s->copy, fp, 0);
}

uint32_t code_state_rule(struct table_build *build, const struct code_state *s)
{
	uint32_t flags = s->slot == CODE_SLOT_LOST ? DWARF_FP_UNKNOWN
			 : s->slot                 ? DWARF_FP_SAVED
						   : 0;
	int32_t fp = flags == DWARF_FP_SAVED ? -8 * ((int32_t)s->slot + 1) : 0;

	if (s->base && (s->base == s->slot + 1 || s->depth == CODE_DEPTH_LOST)) {
		if (flags != DWARF_FP_UNKNOWN)
			return DWARF_RULE_FP(s->base, s->slot);
		return table_special(build, DWARF_REG | 6 << 8 | flags << 16, 8 * (int32_t)s->base,
				     0, 0);
	}
	if (s->depth == CODE_DEPTH_LOST)
		return code_state_has_copies(s) ? rule_by_copy(build, s, flags, fp)
						: DWARF_RULE_NONE;
	if (flags != DWARF_FP_UNKNOWN && s->depth < DWARF_SP_MAX_OFFSET)
		return DWARF_RULE_SP(s->depth + 1, s->slot);
	return table_special(build, DWARF_REG | 7 << 8 | flags << 16, 8 * (int32_t)(s->depth + 1),
			     fp, 0);
}

#define MAX_STATES (1u << 16)

static uint32_t hash(const struct code_state *s)
{
	uint64_t v = s->depth | (uint64_t)s->slot << 13 | (uint64_t)s->base << 18 |
		     (uint64_t)s->reg << 24 | (uint64_t)s->copy << 29 | (uint64_t)s->word << 37 |
		     (uint64_t)s->word_copy << 50 | (uint64_t)s->intact << 58;

	return (uint32_t)(v * 0x9e3779b97f4a7c15ull >> 48);
}

static int equal(const struct code_state *a, const struct code_state *b)
{
	return a->depth == b->depth && a->slot == b->slot && a->intact == b->intact &&
	       a->base == b->base && a->reg == b->reg && a->copy == b->copy && a->word == b->word &&
	       a->word_copy == b->word_copy;
}

uint32_t code_states_pack(struct code_states *all, const struct code_state *s)
{
	struct code_state plain = *s;
	uint32_t i = hash(s);

	if (!all->p)
		all->p = calloc(MAX_STATES, sizeof(*all->p));
	for (; all->p; i = (i + 1) % MAX_STATES) {
		if (equal(&all->p[i], s))
			return CODE_BASE_COPIES << 18 | i;
		if (code_state_has_copies(&all->p[i]))
			continue;
		if (all->n >= MAX_STATES / 2)
			break;
		all->n++;
		all->p[i] = *s;
		return CODE_BASE_COPIES << 18 | i;
	}
	plain.reg = plain.copy = plain.word_copy = 0;
	plain.word = 0;
	return code_state_pack(all, &plain);
}

void code_states_fini(struct code_states *all)
{
	free(all->p);
	all->p = NULL;
	all->n = 0;
}
