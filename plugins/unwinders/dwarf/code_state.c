/* SPDX-License-Identifier: Apache-2.0 */
#include "code_state.h"

#include "table.h"

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
	if (is_below_sp(s))
		lose_slot(s);
}

/* The functions return what code_state_apply() returns. */

static int move_sp(struct code_state *s, int64_t bytes)
{
	int64_t depth = (int64_t)s->depth - bytes / 8;

	if (s->depth == CODE_DEPTH_LOST) /* stays lost, until rbp gives it back */
		return s->base ? 0 : -1;
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
	if (s->depth == CODE_DEPTH_LOST)
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

	if (s->depth == CODE_DEPTH_LOST)
		return -1;
	if (saved) {
		s->slot = s->intact = s->base = 0;
		return move_sp(s, 8);
	}
	return write_fp(s) || move_sp(s, 8) ? -1 : 0;
}

/* The same without a pop. */
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
	if (!s->slot || s->depth == CODE_DEPTH_LOST || s->depth >= 0x3f)
		return -1;
	s->base = s->depth + 1;
	s->intact = 0;
	return 0;
}

int code_state_apply(struct code_state *s, const struct insn *in)
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
		return s->base ? 0 : -1;
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
	return s->depth == CODE_DEPTH_LOST && !s->base ? -1 : 0;
}

uint32_t code_state_rule(struct table_build *build, uint32_t v)
{
	struct code_state s = code_state_unpack(v);
	uint32_t flags = s.slot == CODE_SLOT_LOST ? DWARF_FP_UNKNOWN : s.slot ? DWARF_FP_SAVED : 0;
	int32_t fp = flags == DWARF_FP_SAVED ? -8 * ((int32_t)s.slot + 1) : 0;

	if (s.base && (s.base == s.slot + 1 || s.depth == CODE_DEPTH_LOST)) {
		if (flags != DWARF_FP_UNKNOWN)
			return DWARF_RULE_FP(s.base, s.slot);
		return table_special(build, DWARF_REG | 6 << 8 | flags << 16, 8 * (int32_t)s.base,
				     0, 0);
	}
	if (flags != DWARF_FP_UNKNOWN && s.depth < DWARF_SP_MAX_OFFSET)
		return DWARF_RULE_SP(s.depth + 1, s.slot);
	return table_special(build, DWARF_REG | 7 << 8 | flags << 16, 8 * (int32_t)(s.depth + 1),
			     fp, 0);
}
