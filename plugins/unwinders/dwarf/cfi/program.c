/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <errno.h>

/* DW_CFA_ codes of DWARF 5, 7.24, and those of GNU. */
enum {
	CFA_SET_LOC = 1,
	CFA_ADVANCE1,
	CFA_ADVANCE2,
	CFA_ADVANCE4,
	CFA_OFFSET_EXTENDED,
	CFA_RESTORE_EXTENDED,
	CFA_UNDEFINED,
	CFA_SAME_VALUE,
	CFA_REGISTER,
	CFA_REMEMBER,
	CFA_RESTORE_STATE,
	CFA_DEF_CFA,
	CFA_DEF_CFA_REGISTER,
	CFA_DEF_CFA_OFFSET,
	CFA_DEF_CFA_EXPRESSION,
	CFA_EXPRESSION,
	CFA_OFFSET_EXTENDED_SF,
	CFA_DEF_CFA_SF,
	CFA_DEF_CFA_OFFSET_SF,
	CFA_VAL_OFFSET,
	CFA_VAL_OFFSET_SF,
	CFA_VAL_EXPRESSION,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET = 0x2f,
};

/* Adds rows for the frame at loc, unless they equal the last rows. */
static void emit(struct cfi_program *p)
{
	const struct cfi_place fp = p->frame.fp;
	uint32_t rule, pattern = x86_64_saves(p->build, &p->frame);

	x86_64_popped(&p->frame, &p->saved_fp);
	rule = x86_64_rule(p->build, &p->frame);
	p->frame.fp = fp;
	if (rule != p->last_rule)
		p->err = rows_add(&p->to->rules, p->loc, rule);
	if (pattern != p->last_pattern && !p->err)
		p->err = rows_add(&p->to->saves, p->loc, pattern);
	p->last_rule = rule;
	p->last_pattern = pattern;
}

static void advance(struct cfi_program *p, uint64_t delta)
{
	uint64_t to;

	if (p->initial || __builtin_mul_overflow(delta, p->common->code_align, &delta) ||
	    __builtin_add_overflow(p->loc, delta, &to)) {
		p->c.bad = 1;
		return;
	}
	if (!delta)
		return;
	emit(p);
	p->loc = to;
}

static int64_t scaled(struct cfi_program *p, int64_t v)
{
	int64_t off = 0;

	if (__builtin_mul_overflow(v, p->common->data_align, &off))
		p->c.bad = 1;
	return off;
}

static void set(struct cfi_program *p, uint64_t reg, enum cfi_place_kind kind, int64_t off)
{
	struct cfi_place *place = x86_64_place(&p->frame, reg);

	if (place)
		*place = (struct cfi_place){.kind = (uint8_t)kind, .off = off};
}

static void restore(struct cfi_program *p, uint64_t reg)
{
	struct cfi_place *place = x86_64_place(&p->frame, reg);
	struct cfi_frame initial = p->common->frame;

	if (p->initial)
		p->c.bad = 1;
	else if (place)
		*place = *x86_64_place(&initial, reg);
}

static void expression(struct cfi_program *p, struct cfi_place *place, enum cfi_place_kind kind)
{
	uint64_t len = cursor_uleb(&p->c);
	const uint8_t *expr = p->c.p;

	cursor_skip(&p->c, len);
	if (!p->c.bad && place)
		*place = (struct cfi_place){
			.kind = (uint8_t)kind, .expr = expr, .len = (uint32_t)len};
}

static void define_cfa(struct cfi_program *p, uint64_t reg, int64_t off)
{
	if (reg > UINT16_MAX)
		p->c.bad = 1;
	p->frame.cfa = (struct cfi_place){.kind = CFI_OFFSET, .reg = (uint16_t)reg, .off = off};
}

/* Runs an instruction that sets the CFA. 0: the opcode is of another kind. */
static int run_cfa(struct cfi_program *p, uint8_t op)
{
	struct cfi_place *cfa = &p->frame.cfa;
	uint64_t reg;

	switch (op) {
	case CFA_DEF_CFA:
		reg = cursor_uleb(&p->c);
		define_cfa(p, reg, (int64_t)cursor_uleb(&p->c));
		return 1;
	case CFA_DEF_CFA_SF:
		reg = cursor_uleb(&p->c);
		define_cfa(p, reg, scaled(p, cursor_sleb(&p->c)));
		return 1;
	case CFA_DEF_CFA_REGISTER:
		p->c.bad |= cfa->kind != CFI_OFFSET;
		define_cfa(p, cursor_uleb(&p->c), cfa->off);
		return 1;
	case CFA_DEF_CFA_OFFSET:
		p->c.bad |= cfa->kind != CFI_OFFSET;
		cfa->off = (int64_t)cursor_uleb(&p->c);
		return 1;
	case CFA_DEF_CFA_OFFSET_SF:
		p->c.bad |= cfa->kind != CFI_OFFSET;
		cfa->off = scaled(p, cursor_sleb(&p->c));
		return 1;
	case CFA_DEF_CFA_EXPRESSION:
		expression(p, cfa, CFI_AT_EXPR);
		return 1;
	default:
		return 0;
	}
}

static void run_register(struct cfi_program *p)
{
	uint64_t reg = cursor_uleb(&p->c), from = cursor_uleb(&p->c);
	struct cfi_place *place = x86_64_place(&p->frame, reg);

	if (from > UINT16_MAX)
		p->c.bad = 1;
	else if (place)
		*place = (struct cfi_place){.kind = CFI_REGISTER, .reg = (uint16_t)from};
}

/* Runs an instruction that sets a register's place. 0: the opcode is of another kind. */
static int run_rule(struct cfi_program *p, uint8_t op)
{
	struct cursor *c = &p->c;
	uint64_t reg;

	reg = cursor_uleb(c);
	switch (op) {
	case CFA_OFFSET_EXTENDED:
		set(p, reg, CFI_OFFSET, scaled(p, (int64_t)cursor_uleb(c)));
		return 1;
	case CFA_OFFSET_EXTENDED_SF:
		set(p, reg, CFI_OFFSET, scaled(p, cursor_sleb(c)));
		return 1;
	case CFA_GNU_NEGATIVE_OFFSET:
		set(p, reg, CFI_OFFSET, -scaled(p, (int64_t)(cursor_uleb(c) & INT32_MAX)));
		return 1;
	case CFA_VAL_OFFSET:
		set(p, reg, CFI_VAL_OFFSET, scaled(p, (int64_t)cursor_uleb(c)));
		return 1;
	case CFA_VAL_OFFSET_SF:
		set(p, reg, CFI_VAL_OFFSET, scaled(p, cursor_sleb(c)));
		return 1;
	case CFA_RESTORE_EXTENDED:
		restore(p, reg);
		return 1;
	case CFA_UNDEFINED:
	case CFA_SAME_VALUE:
		set(p, reg, op == CFA_UNDEFINED ? CFI_UNDEFINED : CFI_SAME, 0);
		return 1;
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		expression(p, x86_64_place(&p->frame, reg),
			   op == CFA_EXPRESSION ? CFI_AT_EXPR : CFI_VAL_EXPR);
		return 1;
	default:
		return 0;
	}
}

/* Runs any other instruction. An unknown one ends the program, since its length is unknown. */
static void run_other(struct cfi_program *p, uint8_t op)
{
	switch (op) {
	case 0:
		break;
	case CFA_ADVANCE1:
		advance(p, cursor_u8(&p->c));
		break;
	case CFA_ADVANCE2:
		advance(p, cursor_fixed(&p->c, 2));
		break;
	case CFA_ADVANCE4:
		advance(p, cursor_fixed(&p->c, 4));
		break;
	case CFA_REMEMBER:
		if (p->depth == CFI_PROGRAM_REMEMBERED)
			p->c.bad = 1;
		else
			p->remembered[p->depth++] = p->frame;
		break;
	case CFA_RESTORE_STATE:
		if (!p->depth)
			p->c.bad = 1;
		else
			p->frame = p->remembered[--p->depth];
		break;
	case CFA_REGISTER:
		run_register(p);
		break;
	case CFA_GNU_ARGS_SIZE:
		cursor_uleb(&p->c);
		break;
	default:
		if (!run_cfa(p, op) && !run_rule(p, op))
			p->c.bad = 1;
	}
}

int cfi_program_run(struct cfi_program *p)
{
	while (p->c.p < p->c.end && p->loc < p->hi && !p->c.bad && !p->err) {
		uint8_t op = *p->c.p++;

		switch (op >> 6) {
		case 1:
			advance(p, op & 63);
			break;
		case 2:
			set(p, op & 63, CFI_OFFSET, scaled(p, (int64_t)cursor_uleb(&p->c)));
			break;
		case 3:
			restore(p, op & 63);
			break;
		default:
			run_other(p, op);
		}
	}
	if (p->c.bad)
		return -EBADMSG;
	if (!p->err && !p->initial && p->loc < p->hi)
		emit(p);
	return p->err;
}
