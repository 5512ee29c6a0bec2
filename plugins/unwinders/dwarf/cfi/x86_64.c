/* SPDX-License-Identifier: Apache-2.0 */
/* Registers by the System V psABI, and the expressions that compilers, linkers and libc write. */
#include "x86_64.h"

#include <string.h>

#include "../cursor.h"

enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, R15 = 15, RIP = 16, MAX_REG = 16 };
enum { OP_DEREF = 0x06, OP_CONST1U = 0x08, OP_PLUS = 0x22, OP_PLUS_UCONST = 0x23 };
enum { OP_LIT0 = 0x30, OP_BREG0 = 0x70 };

struct cfi_place *x86_64_place(struct cfi_frame *f, uint64_t reg)
{
	switch (reg) {
	case RBP:
		return &f->fp;
	case RSP:
		return &f->sp;
	case RIP:
		return &f->ra;
	case RBX:
		return &f->saved[0];
	default:
		return reg >= R12 && reg <= R15 ? &f->saved[1 + reg - R12] : NULL;
	}
}

void x86_64_start(struct cfi_frame *f)
{
	memset(f, 0, sizeof(*f));
	f->fp.kind = CFI_SAME; /* by the psABI; descriptions rely on it */
	for (int i = 0; i < DWARF_SAVED_REGS; i++)
		f->saved[i].kind = CFI_SAME;
	f->ra.kind = CFI_UNSPECIFIED;
}

/* ---- expressions ---- */

struct deref { /* *(reg + off) + add; or, without deref, reg + off */
	unsigned int reg;
	int64_t off, add;
	int deref;
};

/* bregN off [deref [plus_uconst add | litN plus | const1u N plus]] */
static int read_expression(const struct cfi_place *place, struct deref *d)
{
	struct cursor c = {place->expr, place->expr + place->len, 0};
	uint8_t op = cursor_u8(&c);

	*d = (struct deref){.reg = op - OP_BREG0};
	if (c.bad || op < OP_BREG0 || d->reg > MAX_REG)
		return 0;
	d->off = cursor_sleb(&c);
	if (c.p == c.end)
		return !c.bad;
	if (cursor_u8(&c) != OP_DEREF)
		return 0;
	d->deref = 1;
	if (c.p == c.end)
		return !c.bad;
	op = cursor_u8(&c);
	if (op == OP_PLUS_UCONST) {
		uint64_t add = cursor_uleb(&c);

		d->add = add <= INT32_MAX ? (int64_t)add : INT64_MAX;
	} else {
		if (op >= OP_LIT0 && op < OP_LIT0 + 32)
			d->add = op - OP_LIT0;
		else if (op == OP_CONST1U)
			d->add = cursor_u8(&c);
		else
			return 0;
		if (cursor_u8(&c) != OP_PLUS)
			return 0;
	}
	return !c.bad && c.p == c.end;
}

/* What linkers write for .plt: rsp + 8 + ((rip & 15) >= N) * 8. Returns N, or -1. */
static int plt_threshold(const struct cfi_place *cfa)
{
	static const uint8_t head[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a};
	static const uint8_t tail[] = {0x2a, 0x33, 0x24, 0x22};
	const uint8_t *p = cfa->expr;

	if (cfa->len != sizeof(head) + 1 + sizeof(tail) || memcmp(p, head, sizeof(head)) ||
	    memcmp(p + sizeof(head) + 1, tail, sizeof(tail)))
		return -1;
	p += sizeof(head);
	return *p >= OP_LIT0 && *p <= OP_LIT0 + 16 ? *p - OP_LIT0 : -1;
}

void x86_64_popped(struct cfi_frame *f, int64_t *saved)
{
	int by_sp = f->cfa.kind == CFI_OFFSET && f->cfa.reg == RSP;
	struct deref d;

	if (f->fp.kind == CFI_OFFSET) {
		if (!by_sp || -f->fp.off <= f->cfa.off)
			*saved = f->fp.off;
		else if (*saved == f->fp.off)
			f->fp.kind = CFI_SAME;
	} else if (f->fp.kind == CFI_AT_EXPR && by_sp && read_expression(&f->fp, &d) && !d.deref &&
		   d.reg == RBP) {
		f->fp.kind = CFI_SAME; /* a place relative to rbp, which is the caller's by now */
	}
}

/* ---- frames to rules ---- */

static int small(int64_t v)
{
	return v > INT32_MIN && v < INT32_MAX; /* Go has a frame of 1 GiB */
}

/* Is the place at a constant offset from the CFA? Expressions may use the CFA's register
 * instead. */
static int from_cfa(const struct cfi_frame *f, const struct cfi_place *place, int64_t *off)
{
	struct deref d;

	if (place->kind == CFI_OFFSET) {
		*off = place->off;
	} else {
		if (place->kind != CFI_AT_EXPR || f->cfa.kind != CFI_OFFSET ||
		    !read_expression(place, &d) || d.deref || d.reg != f->cfa.reg ||
		    !small(d.off) || !small(f->cfa.off))
			return 0;
		*off = d.off - f->cfa.off;
	}
	return small(*off);
}

/* Is this the frame of libc's return from a signal handler, with all registers in the ucontext at
 * sp? */
static int is_ucontext(const struct cfi_frame *f)
{
	enum {
		GREGS = 40,
		UC_RBP = GREGS + 10 * 8,
		UC_RSP = GREGS + 15 * 8,
		UC_RIP = GREGS + 16 * 8
	};
	struct deref cfa, fp, ra;

	return f->cfa.kind == CFI_AT_EXPR && f->fp.kind == CFI_AT_EXPR &&
	       f->ra.kind == CFI_AT_EXPR && read_expression(&f->cfa, &cfa) &&
	       read_expression(&f->fp, &fp) && read_expression(&f->ra, &ra) && cfa.deref &&
	       !cfa.add && cfa.reg == RSP && cfa.off == UC_RSP && !fp.deref && fp.reg == RSP &&
	       fp.off == UC_RBP && !ra.deref && ra.reg == RSP && ra.off == UC_RIP;
}

/* Returns flags that say where the caller's fp is, and sets *at to their operand. */
static uint32_t fp_flags(const struct cfi_frame *f, int32_t *at)
{
	struct deref d;
	int64_t off;

	*at = 0;
	if (f->fp.kind == CFI_SAME || f->fp.kind == CFI_UNSPECIFIED ||
	    (f->fp.kind == CFI_REGISTER && f->fp.reg == RBP))
		return 0;
	if (f->fp.kind == CFI_REGISTER && f->fp.reg <= MAX_REG) {
		*at = f->fp.reg;
		return DWARF_FP_IN_REG;
	}
	if (from_cfa(f, &f->fp, &off)) {
		*at = (int32_t)off;
		return DWARF_FP_SAVED;
	}
	if (f->fp.kind == CFI_AT_EXPR && read_expression(&f->fp, &d) && !d.deref && d.reg == RBP &&
	    small(d.off)) {
		*at = (int32_t)d.off;
		return DWARF_FP_AT_FP;
	}
	return DWARF_FP_UNKNOWN;
}

/* Sets flags and operand for the return address. 0: the table cannot express its place. */
static int ra_flags(const struct cfi_frame *f, uint32_t *flags, int32_t *at)
{
	int64_t off;

	*flags = 0;
	*at = 0;
	if (f->ra.kind == CFI_REGISTER && f->ra.reg < MAX_REG) {
		*flags = DWARF_RA_IN_REG;
		*at = f->ra.reg;
		return 1;
	}
	if (!from_cfa(f, &f->ra, &off))
		return 0;
	if (off != -8) {
		*flags = DWARF_RA_AT;
		*at = (int32_t)off;
	}
	return 1;
}

static uint32_t expression_rule(struct table_build *build, const struct cfi_frame *f,
				uint32_t flags, int32_t fp)
{
	int threshold = plt_threshold(&f->cfa);
	struct deref d;

	if (threshold >= 0)
		return flags ? DWARF_RULE_EXPRESSION
			     : table_special(build, DWARF_PLT, 0, 0, threshold);
	if (!read_expression(&f->cfa, &d) || !small(d.off) || !small(d.add))
		return DWARF_RULE_EXPRESSION;
	return table_special(build, (d.deref ? DWARF_DEREF : DWARF_REG) | d.reg << 8 | flags << 16,
			     (int32_t)d.off, fp, d.deref ? (int32_t)d.add : 0);
}

/* A rule for a frame that plain rules cannot express. */
static uint32_t special_rule(struct table_build *build, const struct cfi_frame *f)
{
	uint32_t flags, ra_flag;
	int32_t fp, ra;

	if (f->ra.kind == CFI_UNDEFINED)
		return DWARF_RULE_END;
	if (f->signal) {
		if (!is_ucontext(f))
			return DWARF_RULE_EXPRESSION;
		build->signals++;
		return table_special(build, DWARF_SIGNAL, 0, 0, 0);
	}
	/* the caller's sp is the CFA; code with another description switches stacks */
	if (f->sp.kind != CFI_UNSPECIFIED && (f->sp.kind != CFI_VAL_OFFSET || f->sp.off))
		return DWARF_RULE_EXPRESSION;
	flags = fp_flags(f, &fp);
	if (!ra_flags(f, &ra_flag, &ra))
		return DWARF_RULE_EXPRESSION;
	if (f->cfa.kind == CFI_AT_EXPR)
		return ra_flag ? DWARF_RULE_EXPRESSION : expression_rule(build, f, flags, fp);
	if (f->cfa.kind != CFI_OFFSET || f->cfa.reg > MAX_REG || !small(f->cfa.off))
		return DWARF_RULE_EXPRESSION;
	return table_special(build, DWARF_REG | (uint32_t)f->cfa.reg << 8 | (flags | ra_flag) << 16,
			     (int32_t)f->cfa.off, fp, ra);
}

uint32_t x86_64_rule(struct table_build *build, const struct cfi_frame *f)
{
	uint64_t off = (uint64_t)f->cfa.off, slot = 0;

	if (f->cfa.kind != CFI_OFFSET || f->ra.kind != CFI_OFFSET || f->ra.off != -8 || off % 8 ||
	    f->sp.kind != CFI_UNSPECIFIED || f->signal)
		return special_rule(build, f);
	if (f->fp.kind == CFI_OFFSET) {
		slot = (uint64_t)-f->fp.off;
		if (slot % 8 || slot < 16 || slot > 8 * (DWARF_MAX_SLOT + 1))
			return special_rule(build, f);
		slot = slot / 8 - 1;
	} else if (f->fp.kind != CFI_SAME) {
		return special_rule(build, f);
	}
	if (f->cfa.reg == RSP && off && off / 8 <= DWARF_SP_MAX_OFFSET)
		return DWARF_RULE_SP(off / 8, slot);
	if (f->cfa.reg == RBP && off / 8 <= DWARF_FP_MAX_OFFSET)
		return DWARF_RULE_FP(off / 8, slot);
	return special_rule(build, f);
}

/* ---- callee-saved registers ---- */

/* The byte of a pattern for register i. Sets *by_fp to 1 if its place is relative to fp. */
static uint32_t saved_at(const struct cfi_frame *f, int i, int *by_fp)
{
	const struct cfi_place *place = &f->saved[i];
	uint64_t reg = i ? (uint64_t)(R12 + i - 1) : RBX;
	struct deref d;
	int64_t off;

	*by_fp = 0;
	if (place->kind == CFI_SAME || place->kind == CFI_UNSPECIFIED ||
	    (place->kind == CFI_REGISTER && place->reg == reg))
		return 0;
	if (!from_cfa(f, place, &off)) {
		if (place->kind != CFI_AT_EXPR || !read_expression(place, &d) || d.deref ||
		    d.reg != RBP || !small(d.off))
			return 1;
		*by_fp = 1;
		off = d.off;
	}
	if (off >= 0 || off % 8 || -off / 8 > DWARF_MAX_SAVED_SLOT)
		return 1;
	return 1 + (uint32_t)(-off / 8);
}

uint32_t x86_64_saves(struct table_build *build, const struct cfi_frame *f)
{
	uint32_t words[DWARF_PATTERN_WORDS] = {0};

	for (int i = 0; i < DWARF_SAVED_REGS; i++) {
		int by_fp;
		uint32_t byte = saved_at(f, i, &by_fp);

		words[i / 4] |= byte << 8 * (i % 4);
		words[1] |= by_fp ? DWARF_BY_FP(i) : 0;
	}
	return table_pattern(build, words);
}
