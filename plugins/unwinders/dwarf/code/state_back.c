/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"
#include "../table.h"

static int is_known(const struct code_state *s)
{
	return s->depth != CODE_DEPTH_LOST || s->base ? 0 : -1;
}

static int unmove_sp(struct code_state *s, int64_t bytes)
{
	if (s->depth == CODE_DEPTH_LOST)
		return is_known(s);
	return code_state_set_depth(s, 8 * (int64_t)s->depth + s->odd + bytes);
}

/* What follows takes the caller's rbp from that word, `bytes` above sp; before, it is in rbp. */
static int unsave_fp(struct code_state *s, int64_t bytes)
{
	if (s->slot && s->slot != CODE_SLOT_LOST && s->depth != CODE_DEPTH_LOST &&
	    8 * (int64_t)s->slot == 8 * (int64_t)s->depth + s->odd - bytes)
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
	int64_t slot = 8 * (int64_t)s->depth + s->odd - bytes;

	if (s->base)
		return -1;
	if (!s->slot)
		s->slot = s->depth == CODE_DEPTH_LOST || slot % 8 || slot <= 0 ||
					  slot / 8 > (int64_t)DWARF_MAX_SLOT
				  ? CODE_SLOT_LOST
				  : (uint32_t)(slot / 8);
	s->intact = 0;
	return is_known(s);
}

static int unset_fp(struct code_state *s, int64_t bytes)
{
	int64_t depth = (int64_t)s->base - 1 + bytes / 8;

	if (s->base && (bytes % 8 || depth < 0 || depth >= (int64_t)CODE_DEPTH_LOST ||
			(s->depth != CODE_DEPTH_LOST && (s->depth != (uint32_t)depth || s->odd))))
		return -1;
	if (s->base) {
		s->depth = (uint32_t)depth;
		s->odd = 0;
	}
	unwrite_fp(s);
	return is_known(s);
}

static int unset_sp(struct code_state *s, int64_t bytes)
{
	int64_t base = (int64_t)s->depth + 1 + bytes / 8;

	if (s->depth == CODE_DEPTH_LOST || s->odd || bytes % 8 || base <= 0 ||
	    base > CODE_MAX_BASE || (s->base && s->base != (uint32_t)base))
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
	if (s->depth != CODE_DEPTH_LOST && (!(s->depth & 1) || s->odd))
		return -1;
	code_state_lose_red_zone(s);
	return is_known(s);
}

/* They are known on the way in alone. */
static void forget_copies(struct code_state *s)
{
	s->reg = s->copy = s->word_copy = s->by_fp = 0;
	s->word = s->fp_word = s->fp_at = 0;
}

int code_state_before(struct code_state *s, const struct insn *in)
{
	forget_copies(s);
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
		s->odd = 0;
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
	if (!s->word && !s->fp_word && !s->fp_at) {
		s->word = other->word;
		s->word_copy = other->word_copy;
		s->fp_word = other->fp_word;
		s->fp_at = other->fp_at;
		s->by_fp = other->by_fp;
	}
	if (s->depth == CODE_DEPTH_LOST) {
		s->depth = other->depth;
		s->odd = other->odd;
	} else if (other->depth != CODE_DEPTH_LOST &&
		   (other->depth != s->depth || other->odd != s->odd)) {
		return -1;
	}
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
