/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows [--go | --code [--pcs LIST] [--stripped] | --forward] [--wrong] FILE..., rows [--go] --same
 * FILE FILE: is the dwarf unwinder's table right at every row? Looks up each row's address, the
 * bytes beside it and the row's middle in our table and asks libdw for the same pc. One line a
 * file, then a line for each kind of difference; exit 1 if one is not explained.
 *
 * --go: rows made from .gopclntab alone, against .debug_frame of the same file.
 * --code: rows made by following instructions alone, against the description hidden from them; one
 * of 2000 may differ, and 90 % of the instructions must have one.
 * --pcs LIST: of --code, at the pcs of a list alone, lines "vaddr weight": prints "none vaddr
 * weight" where there is no row, "differs vaddr weight", and the sums.
 * --stripped: without .symtab, too.
 * --forward: as --code, for rows made as for code without a file: forward from any instruction.
 * --wrong: one row is made wrong first, with --code one of 200. --wrong-save: one pattern of saved
 * registers. --same: do both files have the same table, symbols aside?
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include "../../plugins/unwinders/dwarf/code/forward.h"
#include "../../plugins/unwinders/dwarf/code/codefile.h"
#include <fusee/insn.h>
#include "../../plugins/unwinders/dwarf/rows.h"
#include "../../plugins/unwinders/dwarf/cfi/x86_64.h"
#include "host.h"
#include "rows_copy.h"
#include "rows_plant.h"

extern const struct fusee_plugin fusee_plugin;

/* ---- what both sides say, in one form ---- */

enum kind { NONE, END, SIGNAL, PLT, PLACE, SWITCH, OTHER };
static const char *const kind_name[] = {"nothing", "end",    "signal",    "plt",
					"place",   "switch", "expression"};

enum where { SAME, AT_CFA, IN_REG, AT_FP, UNKNOWN };

struct answer {
	enum kind kind;
	int deref, reg, other_stack;
	int rbx_undefined; /* libdw's */
	long cfa, add;
	enum where fp, ra, saved[DWARF_SAVED_REGS];
	long fp_at, ra_at, saved_at[DWARF_SAVED_REGS];
};

static const int saved_reg[DWARF_SAVED_REGS] = {3, 12, 13, 14, 15};

/* go: against Go's .debug_frame, which says nothing about rbp. */
static int same(const struct answer *a, const struct answer *b, int go)
{
	if (a->kind != b->kind)
		return 0;
	if (a->kind == PLT)
		return a->add == b->add;
	if (a->kind != PLACE)
		return 1;
	if (a->deref != b->deref || a->reg != b->reg || a->cfa != b->cfa || a->add != b->add ||
	    a->ra != b->ra || a->ra_at != b->ra_at)
		return 0;
	return go || (a->fp == b->fp && a->fp_at == b->fp_at);
}

static void print(FILE *out, const struct answer *a)
{
	fprintf(out, "%s", kind_name[a->kind]);
	if (a->kind == PLACE)
		fprintf(out, " %sr%d%+ld%s%+ld fp %d:%ld ra %d:%ld%s", a->deref ? "*(" : "", a->reg,
			a->cfa, a->deref ? ")" : "", a->add, a->fp, a->fp_at, a->ra, a->ra_at,
			a->other_stack ? " other stack" : "");
	if (a->kind == PLT)
		fprintf(out, " >= %ld", a->add);
	for (int i = 0; i < DWARF_SAVED_REGS; i++)
		if (a->saved[i] != SAME)
			fprintf(out, " r%d %d:%ld", saved_reg[i], a->saved[i], a->saved_at[i]);
}

/* ---- ours ---- */

static void from_special(const uint32_t *w, struct answer *a)
{
	uint32_t flags = w[0] >> 16;

	a->reg = w[0] >> 8 & 0xff;
	a->cfa = (int32_t)w[1];
	switch (w[0] & 0xff) {
	case DWARF_END:
		a->kind = END;
		return;
	case DWARF_SIGNAL:
		a->kind = SIGNAL;
		return;
	case DWARF_PLT:
		a->kind = PLT;
		a->add = (int32_t)w[3];
		return;
	case DWARF_SWITCH:
	case DWARF_GO_GROWS:
		a->kind = SWITCH;
		return;
	case DWARF_DEREF:
		a->deref = 1;
		a->add = (int32_t)w[3];
		break;
	case DWARF_REG:
		break;
	default:
		a->kind = OTHER;
		return;
	}
	a->kind = PLACE;
	a->other_stack = !!(flags & DWARF_OTHER_STACK);
	a->fp = flags & DWARF_FP_SAVED     ? AT_CFA
		: flags & DWARF_FP_IN_REG  ? IN_REG
		: flags & DWARF_FP_AT_FP   ? AT_FP
		: flags & DWARF_FP_UNKNOWN ? UNKNOWN
					   : SAME;
	a->fp_at = a->fp == SAME || a->fp == UNKNOWN ? 0 : (int32_t)w[2];
	a->ra = flags & DWARF_RA_IN_REG ? IN_REG : AT_CFA;
	a->ra_at = flags & (DWARF_RA_AT | DWARF_RA_IN_REG) ? (int32_t)w[3] : -8;
}

static void our_saves(const struct host_file *file, uint64_t pc, struct answer *a)
{
	const uint32_t *w = table_saves(file->words, file->n, pc);

	for (int i = 0; i < DWARF_SAVED_REGS; i++) {
		uint32_t byte = w ? w[i / 4] >> 8 * (i % 4) & 0xff : 1;

		a->saved[i] = !byte ? SAME : byte == 1 ? UNKNOWN : AT_CFA;
		if (byte > 1 && w[1] & DWARF_BY_FP(i))
			a->saved[i] = AT_FP;
		a->saved_at[i] = byte > 1 ? -8 * (long)(byte - 1) : 0;
	}
}

static void ours(const struct host_file *file, uint64_t pc, struct answer *a)
{
	const uint32_t *special;
	uint32_t rule = table_lookup(file->words, file->n, pc, &special), slot;

	memset(a, 0, sizeof(*a));
	our_saves(file, pc, a);
	if (special) {
		from_special(special, a);
		return;
	}
	if (rule == DWARF_RULE_NONE)
		return;
	a->kind = PLACE;
	a->reg = rule & 0x8000 ? 6 : 7;
	a->cfa = 8 * (long)(rule & (rule & 0x8000 ? 0x3ff : 0x7ff));
	slot = rule >> (rule & 0x8000 ? 10 : 11) & 15;
	a->fp = slot ? AT_CFA : SAME;
	a->fp_at = slot ? -8 * ((long)slot + 1) : 0;
	a->ra = AT_CFA;
	a->ra_at = -8;
}

/* ---- libdw's ---- */

static int is_breg(const Dwarf_Op *op, int *reg, long *off)
{
	if (op->atom == DW_OP_bregx) {
		*reg = (int)op->number;
		*off = (long)op->number2;
		return 1;
	}
	if (op->atom < DW_OP_breg0 || op->atom > DW_OP_breg31)
		return 0;
	*reg = op->atom - DW_OP_breg0;
	*off = (long)op->number;
	return 1;
}

static int is_plt(const Dwarf_Op *op, size_t n, long *threshold)
{
	static const uint8_t atoms[] = {DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0,
					DW_OP_ge,    DW_OP_lit3,   DW_OP_shl,   DW_OP_plus};

	if (n != sizeof(atoms))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (i != 4 && op[i].atom != atoms[i])
			return 0;
	*threshold = op[4].atom - DW_OP_lit0;
	return op[0].number == 8 && op[1].number == 0 && *threshold >= 0 && *threshold <= 16;
}

static void libdw_cfa(const Dwarf_Op *op, size_t n, struct answer *a)
{
	a->kind = OTHER;
	if (is_plt(op, n, &a->add)) {
		a->kind = PLT;
		return;
	}
	if (!n || !is_breg(&op[0], &a->reg, &a->cfa) || n > 4 || a->reg > 16)
		return;
	if (n > 1) {
		if (op[1].atom != DW_OP_deref)
			return;
		a->deref = 1;
	}
	if (n == 3) {
		if (op[2].atom != DW_OP_plus_uconst)
			return;
		a->add = (long)op[2].number;
	}
	if (n == 4) {
		if (op[3].atom != DW_OP_plus)
			return;
		if (op[2].atom >= DW_OP_lit0 && op[2].atom <= DW_OP_lit31)
			a->add = op[2].atom - DW_OP_lit0;
		else if (op[2].atom == DW_OP_const1u)
			a->add = (long)op[2].number;
		else
			return;
	}
	a->kind = PLACE;
}

/* Where a register of the caller is, CFA-relative if it can be said so. */
static enum where libdw_place(const Dwarf_Op *op, size_t n, const Dwarf_Op *mem,
			      const struct answer *a, long *at)
{
	long off = 0;
	int reg;

	*at = 0;
	if (!n)
		return op == mem ? UNKNOWN : SAME;
	if (op[0].atom == DW_OP_call_frame_cfa) {
		if (n == 1)
			return AT_CFA;
		if (n == 2 && op[1].atom == DW_OP_plus_uconst) {
			*at = (long)op[1].number;
			return AT_CFA;
		}
		return UNKNOWN;
	}
	if (n == 1 && op[0].atom == DW_OP_regx) {
		*at = (long)op[0].number;
		return IN_REG;
	}
	if (n != 1 || !is_breg(&op[0], &reg, &off))
		return UNKNOWN;
	if (a->kind == PLACE && !a->deref && a->reg == reg) {
		*at = off - a->cfa;
		return AT_CFA;
	}
	*at = off;
	return reg == 6 ? AT_FP : UNKNOWN;
}

static int is_at_sp(const Dwarf_Op *op, size_t n, long off)
{
	return n && op[0].atom == DW_OP_breg7 && (long)op[0].number == off;
}

/* libdw puts the CFA on the stack before an expression of a register. */
static void drop_cfa(Dwarf_Op **op, size_t *n)
{
	if (*n >= 2 && (*op)[0].atom == DW_OP_call_frame_cfa &&
	    (*op)[1].atom != DW_OP_plus_uconst && (*op)[1].atom != DW_OP_stack_value) {
		(*op)++;
		(*n)--;
	}
}

static void libdw_saves(Dwarf_Frame *frame, struct answer *a)
{
	Dwarf_Op mem[3], *op;
	size_t n;

	for (int i = 0; i < DWARF_SAVED_REGS; i++) {
		a->saved[i] = UNKNOWN;
		if (dwarf_frame_register(frame, saved_reg[i], mem, &op, &n))
			continue;
		drop_cfa(&op, &n);
		if (!i)
			a->rbx_undefined = !n && op == mem;
		a->saved[i] = libdw_place(op, n, mem, a, &a->saved_at[i]);
		if (a->saved[i] == UNKNOWN)
			a->saved_at[i] = 0;
	}
}

static void libdw_frame(Dwarf_Frame *frame, struct answer *a)
{
	Dwarf_Op mem[3], *op, *cfa;
	size_t n, cfa_n;
	bool signal;
	int ra_reg = dwarf_frame_info(frame, NULL, NULL, &signal);

	if (dwarf_frame_cfa(frame, &cfa, &cfa_n))
		cfa_n = 0;
	if (ra_reg != 16 || dwarf_frame_register(frame, 16, mem, &op, &n)) {
		a->kind = OTHER;
		return;
	}
	drop_cfa(&op, &n);
	if (!n && op == mem) {
		a->kind = END;
		return;
	}
	if (signal) {
		a->kind = is_at_sp(op, n, 168) && is_at_sp(cfa, cfa_n, 160) ? SIGNAL : OTHER;
		return;
	}
	libdw_cfa(cfa, cfa_n, a);
	libdw_saves(frame, a);
	a->ra = libdw_place(op, n, mem, a, &a->ra_at);
	if ((a->ra != AT_CFA && a->ra != IN_REG) || (a->deref && a->ra_at != -8))
		a->kind = OTHER;
	if (dwarf_frame_register(frame, 6, mem, &op, &n)) {
		a->kind = OTHER;
		return;
	}
	drop_cfa(&op, &n);
	a->fp = libdw_place(op, n, mem, a, &a->fp_at);
	if (a->fp == IN_REG && a->fp_at == 6)
		a->fp = SAME, a->fp_at = 0;
	if (a->fp == UNKNOWN)
		a->fp_at = 0;
	if (a->kind == PLT && (a->fp != SAME || a->ra != AT_CFA || a->ra_at != -8))
		a->kind = OTHER;
	/* An explicit rule for sp that is not the CFA. */
	if (dwarf_frame_register(frame, 7, mem, &op, &n) ||
	    !(n == 2 && op[0].atom == DW_OP_call_frame_cfa && op[1].atom == DW_OP_stack_value))
		a->kind = OTHER;
}

struct oracle {
	int fd;
	Elf *elf;
	Dwarf *dwarf;
	Dwarf_CFI *cfi[2]; /* .eh_frame, .debug_frame */
};

/* 0: by .eh_frame or not at all; 1: by .debug_frame. *first: where this row begins; may be NULL. */
static int libdw_row(const struct oracle *o, uint64_t pc, struct answer *a, Dwarf_Addr *first)
{
	memset(a, 0, sizeof(*a));
	if (first)
		*first = pc;
	for (int i = 0; i < 2; i++) {
		Dwarf_Frame *frame;

		if (!o->cfi[i] || dwarf_cfi_addrframe(o->cfi[i], pc, &frame))
			continue;
		libdw_frame(frame, a);
		if (first)
			dwarf_frame_info(frame, first, NULL, NULL);
		free(frame);
		return i;
	}
	return 0;
}

static int libdw(const struct oracle *o, uint64_t pc, struct answer *a)
{
	return libdw_row(o, pc, a, NULL);
}

/* The row at pc; the address behind it. */
static uint64_t libdw_end(const struct oracle *o, uint64_t pc, struct answer *a)
{
	Dwarf_Addr end = pc + 1;
	Dwarf_Frame *frame;

	for (int i = 0; i < 2; i++) {
		if (!o->cfi[i] || dwarf_cfi_addrframe(o->cfi[i], pc, &frame))
			continue;
		memset(a, 0, sizeof(*a));
		libdw_frame(frame, a);
		dwarf_frame_info(frame, NULL, &end, NULL);
		free(frame);
		return end;
	}
	a->kind = NONE;
	return end;
}

static int open_oracle(struct oracle *o, const char *path, int go)
{
	memset(o, 0, sizeof(*o));
	o->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (o->fd < 0)
		return -errno;
	elf_version(EV_CURRENT);
	o->elf = elf_begin(o->fd, ELF_C_READ, NULL);
	if (!o->elf)
		return -EBADMSG;
	if (!go)
		o->cfi[0] = dwarf_getcfi_elf(o->elf);
	o->dwarf = dwarf_begin_elf(o->elf, DWARF_C_READ, NULL);
	if (o->dwarf)
		o->cfi[1] = dwarf_getcfi(o->dwarf);
	return 0;
}

static void close_oracle(struct oracle *o)
{
	if (o->cfi[0])
		dwarf_cfi_end(o->cfi[0]);
	if (o->dwarf)
		dwarf_end(o->dwarf);
	if (o->elf)
		elf_end(o->elf);
	if (o->fd >= 0)
		close(o->fd);
}

/* ---- the comparison ---- */

enum {
	D_ENTRY,
	D_HAND,
	D_GO,
	D_GO_END,
	D_GO_SWITCH,
	D_GO_SIGNAL,
	D_GO_REG,
	D_POPPED,
	D_COPY,
	D_BASE,
	D_RBX,
	D_NOT_KNOWN,
	D_SAVED,
	D_UNEXPLAINED,
	D_KINDS
};
static const char *const difference[] = {
	[D_ENTRY] = "end of stack at the ELF entry, which has no undefined return address",
	[D_HAND] = "code without a description, by its instructions",
	[D_GO] = "Go function without CFI, by .gopclntab",
	[D_GO_END] = "a first frame of Go, where .debug_frame goes on",
	[D_GO_SWITCH] = "a Go function that leaves its stack, where .debug_frame does not know it",
	[D_GO_SIGNAL] = "Go's return from a signal handler",
	[D_GO_REG] = "a Go function that pops its own return address, which .debug_frame places "
		     "below sp",
	[D_POPPED] = "rbp was popped, where the description still has it below sp",
	[D_BASE] = "the CFA by another register than the description's: not compared",
	[D_COPY] = "the same CFA, where the description has it by a copy of rsp",
	[D_RBX] = "rbx has no rule: libdw forgets that callees save it",
	[D_NOT_KNOWN] = "a callee-saved register is not known, where the description places it",
	[D_SAVED] = "A CALLEE-SAVED REGISTER IS AT ANOTHER PLACE",
	[D_UNEXPLAINED] = "UNEXPLAINED",
};

struct thread_ticks {
	uint64_t checked, different, inexpressible, kinds[D_KINDS];
	uint64_t saved; /* registers whose place was compared */
	uint64_t described,
		followed; /* --code: instructions that libdw has rows for; that we have */
	uint64_t shown;
};

/* The same but for rbp, which libdw reads below sp or, through itself, in the caller's frame. */
static int popped(const struct answer *a, const struct answer *b)
{
	struct answer as = *b;

	if (a->kind != PLACE || b->kind != PLACE || a->fp != SAME || b->deref ||
	    (b->reg != 7 && (b->reg == 6 || b->fp != AT_FP)))
		return 0;
	if (!(b->fp == AT_CFA && -b->fp_at > b->cfa) && b->fp != AT_FP)
		return 0;
	as.fp = SAME;
	as.fp_at = 0;
	return same(a, &as, 0);
}

static int explain(const struct answer *a, const struct answer *b, uint64_t pc, uint64_t entry,
		   int go, int go_file)
{
	if (a->kind == END && pc >= entry && pc < entry + 64)
		return D_ENTRY;
	if (go && a->kind == END)
		return D_GO_END;
	if (go && (a->kind == SWITCH || a->other_stack))
		return D_GO_SWITCH;
	if (go && a->kind == SIGNAL)
		return D_GO_SIGNAL;
	if (go && a->kind == OTHER && b->kind == PLACE && b->reg == 7 && b->cfa <= 0)
		return D_GO_REG;
	if (b->kind == NONE && !go_file)
		return D_HAND;
	if (go_file && b->kind == NONE)
		return D_GO;
	if (popped(a, b))
		return D_POPPED;
	return D_UNEXPLAINED;
}

struct check {
	const struct host_file *file;
	struct copy_text text; /* --code */
	const struct oracle *oracle;
	struct thread_ticks t;
	uint64_t entry;
	int go_file, code, forward;
};

/* Compilers don't say that rbp has been popped: where it was saved is below sp then, and still the
 * same. */
static int popped_already(const struct answer *a, const struct answer *b)
{
	return a->kind == PLACE && a->fp == SAME && b->kind == PLACE && b->fp == AT_CFA &&
	       b->reg == 7 && b->fp_at + b->cfa < 0;
}

/* Does rbp, which has come back by the description, still stand where the rows before had it? */
static int still_saved(const struct check *c, uint64_t pc, const struct answer *a,
		       const struct answer *b)
{
	struct answer row = *b;

	if (a->kind != PLACE || b->kind != PLACE || a->fp != AT_CFA || b->fp != SAME || a->deref ||
	    (a->reg == 7 && a->cfa + a->fp_at < 0))
		return 0;
	for (int i = 0; i < 32 && row.kind == PLACE && row.fp == SAME; i++) {
		Dwarf_Addr first;

		libdw_row(c->oracle, pc, &row, &first);
		pc = first - 1;
	}
	return row.kind == PLACE && row.fp == AT_CFA && row.fp_at == a->fp_at;
}

/* A stub of the PLT: the description's one expression for all of them, at this pc. */
static void at_stub(uint64_t pc, struct answer *b)
{
	if (b->kind != PLT)
		return;
	b->kind = PLACE;
	b->reg = 7;
	b->cfa = 8 + 8 * ((long)(pc & 15) >= b->add);
	b->add = 0;
}

/* clang says where rbp is saved behind the last push: does a later row, up to which rbp
 * is still the caller's, have it where we do? */
static int saved_soon(const struct check *c, uint64_t pc, const struct answer *a,
		      const struct answer *b)
{
	struct answer row = *b, as = *a;
	int i = 0;

	if (a->kind != PLACE || b->kind != PLACE || a->fp != AT_CFA || b->fp != SAME)
		return 0;
	while (i++ < 16 && row.kind == PLACE && row.fp == SAME)
		pc = libdw_end(c->oracle, pc, &row);
	as.fp = SAME;
	as.fp_at = 0;
	return row.kind == PLACE && row.fp == AT_CFA && row.fp_at == a->fp_at && same(&as, b, 0);
}

/* Is our CFA, by rsp, that of the description, by a register to which rsp was copied? */
static int by_copy(const struct check *c, uint64_t pc, const struct answer *a,
		   const struct answer *b)
{
	struct answer row = *b, as = *b;
	uint64_t copied = pc + 1;
	long above, pushed = 0;
	int steps = 100000;

	if (!c->code || a->kind != PLACE || b->kind != PLACE || a->reg != 7 || b->reg == 7)
		return 0;
	while (row.kind == PLACE && row.reg == b->reg && row.cfa == b->cfa && !row.deref) {
		Dwarf_Addr first;

		libdw_row(c->oracle, copied - 1, &row, &first);
		if (row.kind == PLACE && row.reg == b->reg && row.cfa == b->cfa)
			copied = first;
	}
	if (row.kind != PLACE || row.reg != 7 || row.deref ||
	    !copy_find(&c->text, copied, b->reg, &above) || row.cfa != b->cfa + above ||
	    copy_pushed(&c->text, copied, pc, &pushed, &steps))
		return 0;
	as.reg = 7;
	as.cfa = row.cfa + pushed;
	return same(a, &as, 0);
}

/* What instructions in sequence from `at` on push, up to the first that leads away; calls are
 * passed over where they may be. *end: the effect of that. */
static long pushed_from(const struct copy_text *t, uint64_t at, int calls, int *end)
{
	long pushed = 0;
	struct insn in;

	*end = INSN_HALT;
	while (at >= t->vaddr && at - t->vaddr < t->len &&
	       !fusee_insn_decode(t->p + (at - t->vaddr), t->len - (at - t->vaddr), &in)) {
		*end = in.effect;
		if ((in.effect == INSN_CALL && !calls) || in.effect == INSN_JUMP ||
		    in.effect == INSN_BRANCH || copy_effect(&in, &pushed))
			break;
		at += in.len;
	}
	return pushed;
}

/* The description has the CFA by rbp, we have it by rsp: is that what the function has pushed in
 * its first instructions, or what it pops in its last? */
static int by_frame(const struct check *c, uint64_t pc, const struct answer *a,
		    const struct answer *b)
{
	struct answer row = *b;
	uint64_t at = pc;
	int end;

	if (!c->code || a->kind != PLACE || b->kind != PLACE || a->reg != 7 || a->deref ||
	    b->reg != 6 || b->deref || a->fp != b->fp || a->fp_at != b->fp_at)
		return 0;
	for (int i = 0; i < 64 && row.kind == PLACE && (row.reg != 7 || row.cfa != 8); i++) {
		Dwarf_Addr first;

		libdw_row(c->oracle, at, &row, &first);
		at = row.kind == PLACE && row.reg == 7 && row.cfa == 8 ? first : first - 1;
	}
	if (row.kind == PLACE && pushed_from(&c->text, at, 0, &end) + 8 == a->cfa)
		return 1;
	return 8 - pushed_from(&c->text, pc, 1, &end) == a->cfa && end == INSN_RETURN;
}

/* The instruction that ends at `end` and moves a copy of rsp. 0; -1: there is none. */
static int copy_before(const struct copy_text *t, uint64_t end, struct insn *in)
{
	for (unsigned int len = 2; len < 12 && end >= t->vaddr + len && end <= t->vaddr + t->len;
	     len++)
		if (!fusee_insn_decode(t->p + (end - len - t->vaddr), len, in) && in->len == len &&
		    (in->copy == INSN_COPY_LOAD || in->copy == INSN_COPY_LOAD_BY_FP ||
		     in->copy == INSN_COPY_POP_REG || in->copy == INSN_COPY_SAVE ||
		     in->copy == INSN_COPY_SAVE_FP))
			return 0;
	return -1;
}

/* One side has the CFA by a word on the stack, the other by the register that was stored there, or
 * loaded from there, where the description's row begins. */
static int by_word(const struct check *c, uint64_t pc, const struct answer *a,
		   const struct answer *b)
{
	static const uint8_t number[] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
	struct answer row = *b, was;
	Dwarf_Addr first = pc + 1;
	struct insn in;

	if (!c->code || a->kind != PLACE || b->kind != PLACE ||
	    ((a->fp != b->fp || a->fp_at != b->fp_at) && (a->fp != SAME || b->fp != AT_FP)))
		return 0;
	for (uint64_t at = pc;
	     row.kind == PLACE && row.reg == b->reg && row.cfa == b->cfa && row.deref == b->deref;
	     at = first - 1) {
		libdw_row(c->oracle, at, &row, &at);
		if (row.kind == PLACE && row.reg == b->reg && row.cfa == b->cfa &&
		    row.deref == b->deref)
			first = at;
		else
			break;
	}
	if (copy_before(&c->text, first, &in))
		return 0;
	ours(c->file, first - in.len, &was);
	if (in.copy == INSN_COPY_POP_REG)
		return !b->deref && b->reg == number[in.reg & 15] && was.kind == PLACE &&
		       was.deref && was.add == b->cfa &&
		       (was.reg == 6 || (was.reg == 7 && !was.cfa));
	if (in.copy == INSN_COPY_LOAD || in.copy == INSN_COPY_LOAD_BY_FP)
		return !b->deref && b->reg == number[in.reg & 15] && was.kind == PLACE &&
		       was.deref && was.reg == (in.copy == INSN_COPY_LOAD ? 7 : 6) &&
		       was.cfa == in.at && was.add == b->cfa;
	return b->deref && b->reg == 7 && b->cfa == in.at && was.kind == PLACE && !was.deref &&
	       was.reg == (in.copy == INSN_COPY_SAVE_FP ? 6 : number[in.reg & 15]) &&
	       was.cfa == b->add;
}

static void show(struct check *c, uint64_t pc, const struct answer *a, const struct answer *b)
{
	if (c->t.shown++ >= (getenv("VERBOSE") ? 100000 : 20))
		return;
	printf("#   %#lx: ", (unsigned long)pc);
	print(stdout, a);
	printf(" | libdw: ");
	print(stdout, b);
	printf("\n");
}

/* Callee-saved registers, where both sides have a rule. */
static void check_saved(struct check *c, uint64_t pc, const struct answer *a,
			const struct answer *b)
{
	for (int i = 0; i < DWARF_SAVED_REGS; i++) {
		c->t.saved++;
		if (a->saved[i] == UNKNOWN) {
			c->t.kinds[D_NOT_KNOWN] += b->saved[i] != UNKNOWN;
			continue;
		}
		if (a->saved[i] == b->saved[i] && a->saved_at[i] == b->saved_at[i])
			continue;
		if (!i && a->saved[i] == SAME && b->rbx_undefined) {
			c->t.kinds[D_RBX]++;
			continue;
		}
		c->t.kinds[D_SAVED]++;
		show(c, pc, a, b);
	}
}

static void check_pc(struct check *c, uint64_t pc)
{
	struct answer a, b;
	int why, go;

	ours(c->file, pc, &a);
	go = libdw(c->oracle, pc, &b) && c->go_file;
	if (c->code && (a.kind == NONE || b.kind == NONE))
		return;
	c->t.checked++;
	if (c->code)
		at_stub(pc, &b);
	if (c->code && (a.fp == UNKNOWN || popped_already(&a, &b) || still_saved(c, pc, &a, &b) ||
			saved_soon(c, pc, &a, &b))) {
		a.fp = b.fp;
		a.fp_at = b.fp_at;
	}
	if (a.kind == OTHER)
		c->t.inexpressible++;
	if ((a.kind == PLACE || a.kind == PLT) && b.kind == a.kind)
		check_saved(c, pc, &a, &b);
	if (same(&a, &b, go))
		return;
	why = explain(&a, &b, pc, c->entry, go, c->go_file);
	if (why == D_UNEXPLAINED &&
	    (by_copy(c, pc, &a, &b) || by_word(c, pc, &a, &b) || by_frame(c, pc, &a, &b)))
		why = D_COPY;
	if (why == D_UNEXPLAINED && c->forward && a.kind == PLACE && b.kind == PLACE &&
	    a.reg != b.reg)
		why = D_BASE;
	c->t.different++;
	c->t.kinds[why]++;
	if (why == D_UNEXPLAINED || getenv("VERBOSE"))
		show(c, pc, &a, &b);
}

static uint64_t row_address(const uint32_t *w, uint32_t block, uint32_t row)
{
	uint64_t lo = w[DWARF_LO] | (uint64_t)w[DWARF_LO_HIGH] << 32;

	return ((lo + (uint64_t)block * 256) & ~0xffffull) | (w[w[DWARF_ROWS_AT] + row] & 0xffff);
}

/* Every row: its address, the bytes on both sides of it, and the middle between it and the next
 * row. */
static void check_rows(struct check *c)
{
	const uint32_t *w = c->file->words;
	uint64_t before = 0;

	for (uint32_t block = 0; block < w[DWARF_BLOCKS]; block++) {
		uint32_t entry = w[w[DWARF_INDEX_AT] + block];

		for (uint32_t i = 0; i < (entry & 0xff); i++) {
			uint64_t at = row_address(w, block, (entry >> 8) + i);

			if (before && at - before > 2)
				check_pc(c, before + (at - before) / 2);
			if (at)
				check_pc(c, at - 1);
			check_pc(c, at);
			check_pc(c, at + 1);
			before = at;
		}
	}
}

/* Every row of saved registers: its address and the bytes on both sides of it. */
static void check_saves(struct check *c)
{
	const uint32_t *w = c->file->words + c->file->words[DWARF_SAVES_AT];
	uint64_t lo = w[DWARF_LO] | (uint64_t)w[DWARF_LO_HIGH] << 32;

	for (uint32_t block = 0; block < w[DWARF_BLOCKS]; block++) {
		uint64_t page = (lo + ((uint64_t)block << (8 + w[DWARF_SHIFT]))) & ~0xffffull;
		uint32_t entry = w[w[DWARF_INDEX_AT] + block];

		for (uint32_t i = entry >> 8; i < (entry >> 8) + (entry & 0xff); i++)
			for (uint64_t at = page | (w[w[DWARF_ROWS_AT] + i] & 0xffff), k = 0; k < 3;
			     k++)
				check_pc(c, at + k - 1);
	}
}

/* Of how many instructions that are described do we have rows? */
static void count_followed(struct check *c)
{
	struct fusee_section text = {.size = sizeof(text)};
	uint64_t at = 0;

	if (elf_section(c->file->elf, ".text", &text))
		return;
	while (at < text.bytes.len) {
		const uint8_t *p = (const uint8_t *)text.bytes.p + at;
		struct answer a, b;
		struct insn in;

		libdw(c->oracle, text.vaddr + at, &b);
		if (b.kind == NONE || fusee_insn_decode(p, text.bytes.len - at, &in)) {
			at++;
			continue;
		}
		ours(c->file, text.vaddr + at, &a);
		c->t.described++;
		c->t.followed += a.kind != NONE;
		at += in.len;
	}
}

static int has_section(struct host_file *f, const char *name)
{
	struct fusee_section s = {.size = sizeof(s)};

	return !elf_section(f->elf, name, &s);
}

/* Rows by instructions: one of so many may differ, and so many percent of what is described must
 * have one. */
#define MAX_WRONG_OF 2000
#define MIN_FOLLOWED 90
/* The same of rows by ways out, which take it that each call returns. */
#define FORWARD_MAX_WRONG_OF 1000
#define FORWARD_MIN_FOLLOWED 90

static int report(const char *path, const struct check *c)
{
	const uint32_t *w = c->file->words;

	printf("# %s: rows %u, specials %u, bytes a row %.2f, checked %lu, different %lu, not "
	       "expressible %lu\n",
	       path, w[DWARF_ROWS], w[DWARF_SPECIALS], 4.0 * (double)c->file->n / w[DWARF_ROWS],
	       (unsigned long)c->t.checked, (unsigned long)c->t.different,
	       (unsigned long)c->t.inexpressible);
	if (w[DWARF_SAVES_AT])
		printf("#   saves: %u rows, %u patterns, %.1f %% of the table; %lu registers "
		       "compared\n",
		       w[w[DWARF_SAVES_AT] + DWARF_ROWS], w[w[DWARF_SAVES_AT] + DWARF_SPECIALS],
		       100.0 * (double)(c->file->n - w[DWARF_SAVES_AT]) / (double)c->file->n,
		       (unsigned long)c->t.saved);
	if (c->t.described)
		printf("#   %.1f %% of the instructions that are described have rows without it\n",
		       100.0 * (double)c->t.followed / (double)c->t.described);
	for (int i = 0; i < D_KINDS; i++)
		if (c->t.kinds[i])
			printf("#   %lu: %s\n", (unsigned long)c->t.kinds[i], difference[i]);
	if (c->forward)
		return c->t.kinds[D_UNEXPLAINED] * FORWARD_MAX_WRONG_OF > c->t.checked ||
		       c->t.followed * 100 < c->t.described * FORWARD_MIN_FOLLOWED;
	if (c->code)
		return c->t.kinds[D_UNEXPLAINED] * MAX_WRONG_OF > c->t.checked ||
		       c->t.followed * 100 < c->t.described * MIN_FOLLOWED;
	return c->t.kinds[D_UNEXPLAINED] || c->t.kinds[D_SAVED];
}

/* The pcs of a list, by their weight. Code that libdw has no row for is not counted. */
static int check_pcs(struct check *c, const char *list)
{
	unsigned long at, n, all = 0, none = 0, wrong = 0;
	FILE *in = fopen(list, "r");

	if (!in)
		return -errno;
	while (fscanf(in, "%lx %lu", &at, &n) == 2) {
		uint64_t before = c->t.kinds[D_UNEXPLAINED];
		struct answer a, b;

		ours(c->file, at, &a);
		libdw(c->oracle, at, &b);
		if (b.kind == NONE)
			continue;
		all += n;
		check_pc(c, at);
		if (a.kind == NONE) {
			none += n;
			printf("none %lx %lu\n", at, n);
		} else if (c->t.kinds[D_UNEXPLAINED] != before) {
			wrong += n;
			printf("differs %lx %lu\n", at, n);
		}
	}
	fclose(in);
	printf("weight %lu none %lu differs %lu\n", all, none, wrong);
	return 0;
}

/* Makes one row wrong, in the middle of the table: its CFA is 8 bytes off. */
static void plant(struct host_file *file)
{
	uint32_t *w = file->words, rows = w[DWARF_ROWS], at = w[DWARF_ROWS_AT];

	for (uint32_t i = rows / 2; i < rows; i++) {
		uint32_t rule = w[at + i] >> 16;

		if (rule == DWARF_RULE_NONE || rule & 0x8000)
			continue;
		w[at + i] += 1u << 16;
		return;
	}
}

/* The same of a pattern: rbx is said to be saved at another place. */
static void plant_save(struct host_file *file)
{
	uint32_t *w = file->words + file->words[DWARF_SAVES_AT];
	uint32_t row = w[w[DWARF_ROWS_AT] + w[DWARF_ROWS] / 2];

	w[w[DWARF_SPECIALS_AT] + DWARF_PATTERN_WORDS * ((row >> 16) - 1)] ^= 4;
}

struct options {
	int go, wrong, wrong_save, same, code, stripped, forward;
	const char *pcs;
};

/* Every instruction that is described, as if a sample had it; but not padding behind a jump or a
 * return, which is never executed. */
static struct forward_start *all_starts(const struct oracle *o, const struct fusee_section *text,
					size_t *n)
{
	struct forward_start *starts = calloc(text->bytes.len + 1, sizeof(*starts));
	int ended = 0;
	struct answer a;
	struct insn in;

	*n = 0;
	for (uint64_t at = 0; starts && at < text->bytes.len; at += in.len) {
		if (fusee_insn_decode((const uint8_t *)text->bytes.p + at, text->bytes.len - at,
				      &in)) {
			in.len = 1;
			continue;
		}
		ended = in.nop ? ended
			       : in.effect == INSN_JUMP || in.effect == INSN_RETURN ||
					 in.effect == INSN_HALT;
		libdw(o, text->vaddr + at, &a);
		if (a.kind != NONE && !(in.nop && ended))
			starts[(*n)++].vaddr = text->vaddr + at;
	}
	return starts;
}

static int make_forward(const struct oracle *o, struct host_file *file)
{
	struct fusee_section text = {.size = sizeof(text)};
	struct forward_start *starts;
	struct table_build build;
	struct forward_code code;
	struct forward *f = NULL;
	struct sheet sheet = {0};
	struct rows rows = {0};
	size_t n;
	int err = table_build_init(&build) | elf_section(file->elf, ".text", &text);

	starts = err ? NULL : all_starts(o, &text, &n);
	if (!starts)
		return 1;
	code = (struct forward_code){
		.bytes = (const uint8_t *)text.bytes.p, .len = text.bytes.len, .vaddr = text.vaddr};
	err = forward_new(&f, &code, starts, n) || forward_rows(f, &build, &rows) ||
	      sheet_add_rules(&sheet, &rows) ||
	      table_pack(&build, &sheet, X86_64_MACHINE, &file->words, &file->n);
	forward_free(f);
	free(starts);
	sheet_fini(&sheet);
	table_build_fini(&build);
	return err;
}

static int make_table(const char *path, const struct options *o, struct host_file *file)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	memset(file, 0, sizeof(*file));
	if (o->go || o->code) {
		file->hide[0] = ".debug_frame";
		file->hide[1] = ".eh_frame";
	}
	if (o->same || o->stripped)
		file->hide[2] = ".symtab"; /* says where functions without a description begin */
	err = fd < 0 ? -errno : elf_open(&file->elf, fd);
	file->fd = fd;
	if (!err)
		err = o->forward ? 1 : host_inspect(&fusee_plugin, file);
	if (err == 1)
		return 0;
	printf("# %s: no table: %s\n", path, err < 0 ? strerror(-err) : "nothing to be found");
	return 1;
}

static void close_file(struct host_file *file)
{
	if (file->elf)
		elf_close(file->elf);
	free(file->words);
	if (file->fd >= 0)
		close(file->fd);
}

static int check_file(const char *path, const struct options *o)
{
	struct fusee_file_info info = {.size = sizeof(info)};
	struct fusee_section text = {.size = sizeof(text)};
	struct oracle oracle = {.fd = -1};
	struct host_file file;
	struct check c = {.file = &file, .oracle = &oracle};
	int err = make_table(path, o, &file);

	if (!err && (open_oracle(&oracle, path, o->go) || elf_info(file.elf, &info))) {
		printf("# %s: libdw can't open it\n", path);
		err = 1;
	}
	if (!err && o->forward)
		err = make_forward(&oracle, &file);
	if (!err) {
		if (o->wrong && o->code)
			plant_many(file.words, 200);
		else if (o->wrong)
			plant(&file);
		if (o->wrong_save)
			plant_save(&file);
		c.entry = info.entry;
		c.code = o->code;
		c.forward = o->forward;
		if (!elf_section(file.elf, ".text", &text))
			c.text = (struct copy_text){(const uint8_t *)text.bytes.p, text.bytes.len,
						    text.vaddr};
		c.go_file = has_section(&file, ".go.buildinfo");
		if (o->pcs)
			err = check_pcs(&c, o->pcs);
		else
			check_rows(&c);
		if (o->code && !o->pcs)
			count_followed(&c);
		if (!o->code && file.words[DWARF_SAVES_AT])
			check_saves(&c);
		if (!o->pcs)
			err = report(path, &c);
	}
	close_oracle(&oracle);
	close_file(&file);
	return err;
}

/* Two files with the same code must have the same table. */
static int check_same(const char *a, const char *b, const struct options *o)
{
	struct host_file fa, fb;
	int err = make_table(a, o, &fa) | make_table(b, o, &fb);

	if (!err && (fa.n != fb.n || memcmp(fa.words, fb.words, fa.n * 4))) {
		printf("# %s and %s have different tables\n", a, b);
		err = 1;
	}
	close_file(&fa);
	close_file(&fb);
	return err;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	int i = 1, err = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	codefile_cpu_ns = UINT64_MAX;
	for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
		o.go |= !strcmp(argv[i], "--go");
		o.wrong |= !strcmp(argv[i], "--wrong");
		o.wrong_save |= !strcmp(argv[i], "--wrong-save");
		o.code |= !strcmp(argv[i], "--code");
		o.same |= !strcmp(argv[i], "--same");
		o.stripped |= !strcmp(argv[i], "--stripped");
		o.code |= o.forward |= !strcmp(argv[i], "--forward");
		if (!strcmp(argv[i], "--pcs") && i + 1 < argc)
			o.pcs = argv[++i];
	}
	if (i == argc || (o.same && argc - i != 2))
		return 64;
	if (o.same)
		return check_same(argv[i], argv[i + 1], &o);
	for (; i < argc; i++)
		err |= check_file(argv[i], &o);
	return err;
}
