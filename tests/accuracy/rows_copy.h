/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code by hand copies rsp to another register, and its description has the CFA by that register.
 * Where the copy was made, and what the instructions from there to a pc do to rsp, says the CFA by
 * rsp.
 */
#ifndef ACCURACY_ROWS_COPY_H
#define ACCURACY_ROWS_COPY_H

#include <stdint.h>
#include <string.h>

#include <fusee/insn.h>

struct copy_text {
	const uint8_t *p;
	uint64_t len, vaddr;
};

/* Is `len` bytes before vaddr the instruction mov %rsp,%reg or lea n(%rsp),%reg? reg: a number of
 * DWARF. *above: reg is so far above rsp. */
static int copy_made(const struct copy_text *t, uint64_t vaddr, int reg, long *above)
{
	static const uint8_t number[] = {0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};
	uint8_t n = reg >= 0 && reg < 16 ? number[reg] : 4;
	const uint8_t mov[] = {(uint8_t)(0x48 | n >> 3), 0x89, (uint8_t)(0xe0 | (n & 7))};
	const uint8_t lea[] = {(uint8_t)(0x48 | n >> 3 << 2), 0x8d, (uint8_t)(0x44 | (n & 7) << 3),
			       0x24};
	const uint8_t lea0[] = {lea[0], 0x8d, (uint8_t)(0x04 | (n & 7) << 3), 0x24};
	const uint8_t *p;

	if (n == 4 || vaddr < t->vaddr + 5 || vaddr - t->vaddr > t->len)
		return 0;
	p = t->p + (vaddr - t->vaddr);
	*above = (int8_t)p[-1];
	if (!memcmp(p - 5, lea, sizeof(lea)))
		return 1;
	if (vaddr >= t->vaddr + 8) {
		const uint8_t lea32[] = {lea[0], 0x8d, (uint8_t)(0x84 | (n & 7) << 3), 0x24};
		int32_t disp;

		memcpy(&disp, p - 4, sizeof(disp));
		*above = disp;
		if (!memcmp(p - 8, lea32, sizeof(lea32)))
			return 1;
	}
	*above = 0;
	return !memcmp(p - 3, mov, sizeof(mov)) || !memcmp(p - 4, lea0, sizeof(lea0));
}

/* What an instruction does to rsp: by how much it is lower then. 0; -1: not known. */
static int copy_effect(const struct insn *in, long *pushed)
{
	switch (in->effect) {
	case INSN_PUSH:
	case INSN_PUSH_FP:
		*pushed += 8;
		return 0;
	case INSN_POP:
	case INSN_POP_FP:
		*pushed -= 8;
		return 0;
	case INSN_ADD_SP:
		*pushed -= in->value;
		return 0;
	case INSN_NOTHING:
	case INSN_SAVE_FP:
	case INSN_SET_FP:
	case INSN_LOAD_FP:
	case INSN_WRITE_FP:
	case INSN_CALL:
	case INSN_BRANCH:
		return 0;
	case INSN_JUMP:
		return in->has_target ? 0 : -1;
	default:
		return -1;
	}
}

/* By how much rsp is lower before the instruction at `to`, or around it, than at `from`, on a path
 * that only leads forward. 0; -1: there is none, or it is not known. *steps limits the search. */
static int copy_pushed(const struct copy_text *t, uint64_t from, uint64_t to, long *pushed,
		       int *steps)
{
	while (from < to) {
		uint64_t at = from - t->vaddr, target;
		long then = *pushed;
		struct insn in;

		if (at >= t->len || fusee_insn_decode(t->p + at, t->len - at, &in) || --*steps < 0)
			return -1;
		if (from + in.len > to)
			return 0;
		if (copy_effect(&in, pushed))
			return -1;
		target = from + (uint64_t)in.target;
		from += in.len;
		if (in.effect == INSN_JUMP) {
			if (target < from || target > to)
				return -1;
			from = target;
		} else if (in.effect == INSN_BRANCH && in.has_target && target > from &&
			   target <= to) {
			if (!copy_pushed(t, target, to, &then, steps)) {
				*pushed = then;
				return 0;
			}
		}
	}
	return 0;
}

#define COPY_BEFORE 48 /* bytes before the description names the copy */

/* The address behind the instruction that makes the copy, before which nothing else changes rsp. 0:
 * none. */
static uint64_t copy_find(const struct copy_text *t, uint64_t vaddr, int reg, long *above)
{
	for (uint64_t at = vaddr; at + COPY_BEFORE > vaddr; at--) {
		int steps = COPY_BEFORE;
		long pushed = 0;

		if (copy_made(t, at, reg, above) && !copy_pushed(t, at, vaddr, &pushed, &steps) &&
		    !pushed)
			return at;
	}
	return 0;
}

#endif
