/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"
#include "../table.h"

/* CFA by a word on the stack, or by a register. */
static uint32_t rule_by_copy(struct table_build *build, const struct code_state *s, uint32_t flags,
			     int32_t fp)
{
	static const uint8_t number[] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
	int saved = s->slot == CODE_SLOT_LOST && s->fp_word;
	int by_fp = s->by_fp || (s->fp_at && saved);
	int32_t from = (int32_t)(s->fp_at && by_fp ? s->fp_at : CODE_WORD_0);

	if (saved && by_fp) {
		flags = DWARF_FP_AT_FP;
		fp = 8 * ((int32_t)s->fp_word - from);
	}
	if (s->word)
		return table_special(build, DWARF_DEREF | (by_fp ? 6 : 7) << 8 | flags << 16,
				     8 * ((int32_t)s->word - from), fp, 8 * (int32_t)s->word_copy);
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
	if (flags != DWARF_FP_UNKNOWN && s->depth < DWARF_SP_MAX_OFFSET && !s->odd)
		return DWARF_RULE_SP(s->depth + 1, s->slot);
	return table_special(build, DWARF_REG | 7 << 8 | flags << 16,
			     8 * (int32_t)(s->depth + 1) + s->odd, fp, 0);
}
