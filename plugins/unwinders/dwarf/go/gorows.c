/* SPDX-License-Identifier: Apache-2.0 */
#include "gorows.h"

#include <errno.h>
#include <string.h>

#include "../cursor.h"
#include "gostack.h"

enum { RBP = 6 };

/* ---- what a function's name says ---- */

enum kind { PLAIN, END, SWITCH, MCALL, MORESTACK, NEWSTACK, SIGRETURN };

static enum kind kind_of(const struct fusee_go_func *f)
{
	static const struct {
		const char *name;
		enum kind kind;
	} known[] = {
		/* the outermost frames of goroutines, threads and programs */
		{"runtime.goexit", END},
		{"runtime.mstart", END},
		{"runtime.rt0_go", END},
		{"_rt0_amd64", END},
		{"_rt0_amd64_linux", END},
		/* the goroutine that called it waits: on the system stack runs the scheduler */
		{"runtime.mcall", MCALL},
		{"runtime.systemstack", SWITCH},
		{"runtime.morestack", MORESTACK},
		{"runtime.newstack", NEWSTACK},
		{"runtime.asmcgocall", SWITCH},
		{"runtime.gogo", SWITCH},
		/* where signal handlers return to */
		{"runtime.sigreturn", SIGRETURN},
		{"runtime.sigreturn__sigaction", SIGRETURN},
	};

	if (f->name[0] != 'r' && f->name[0] != '_')
		return f->spwrite ? SWITCH : PLAIN;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (f->name_len == strlen(known[i].name) &&
		    !memcmp(f->name, known[i].name, f->name_len))
			return known[i].kind;
	return f->spwrite ? SWITCH : PLAIN;
}

/* ---- how rbp is saved ---- */

struct saved {
	uint64_t depth; /* how far sp has moved when rbp is saved; 0: it is not saved */
	uint64_t slot;  /* as in rules, see table.h */
	uint64_t from;  /* the address from which on rbp is saved */
};

/* Is it mov %rbp,N(%rsp) or lea N(%rsp),%rbp, by its opcode? Returns its length, 0: it is not. */
static unsigned int rsp_disp(const uint8_t *p, uint8_t opcode, uint64_t *disp)
{
	if (!p || p[0] != 0x48 || p[1] != opcode || p[3] != 0x24)
		return 0;
	if (p[2] == 0x6c) {
		*disp = p[4] < 0x80 ? p[4] : UINT64_MAX;
		return 5;
	}
	if (p[2] != 0xac)
		return 0;
	*disp = p[4] | (uint64_t)p[5] << 8 | (uint64_t)p[6] << 16 | (uint64_t)p[7] << 24;
	return 8;
}

/*
 * At `pc` sp has just moved from depth `before` to `depth`: is this where rbp is saved? By push
 * %rbp (since Go 1.21), or by a store and lea behind the sub.
 */
static void see_save(const struct fusee_go_table *go, uint64_t pc, uint64_t before, uint64_t depth,
		     struct saved *s)
{
	const uint8_t *p = fusee_go_code(go, pc - 1, 1), *rex = fusee_go_code(go, pc - 2, 1);
	uint64_t disp, disp2;
	unsigned int n, n2;

	if (depth == before + 8 && p && *p == 0x55 && (!rex || *rex != 0x41)) {
		*s = (struct saved){depth, depth / 8, pc};
		return;
	}
	n = rsp_disp(fusee_go_code(go, pc, 8), 0x89, &disp);
	if (!n)
		return;
	n2 = rsp_disp(fusee_go_code(go, pc + n, 8), 0x8d, &disp2);
	if (n2 && disp == disp2 && disp < depth && (depth - disp) % 8 == 0)
		*s = (struct saved){depth, (depth - disp) / 8, pc + n + n2};
}

/* The address behind the first mov N(reg),%rsp, or hi: from there on sp is another stack's. */
static uint64_t switch_at(const struct fusee_go_table *go, const struct fusee_go_func *f)
{
	for (uint64_t pc = f->lo; pc < f->hi; pc++) {
		const uint8_t *p = fusee_go_code(go, pc, 4);

		if (!p)
			break;
		/* mov disp8(reg),%rsp, and $imm8,%rsp, mov reg,%rsp */
		if ((p[0] & 0xfe) == 0x48 && p[1] == 0x8b && (p[2] & 0xf8) == 0x60)
			return pc + 4;
		if ((p[0] == 0x48 && p[1] == 0x83 && p[2] == 0xe4))
			return pc + 4;
		if ((p[0] & 0xfb) == 0x48 && p[1] == 0x89 && (p[2] & 0xc7) == 0xc4)
			return pc + 3;
	}
	return f->hi;
}

/* ---- rows ---- */

struct go_run {
	struct table_build *build;
	const struct fusee_go_table *go;
	struct rows *rows;
	struct fusee_go_func f;
	struct saved saved;
	uint64_t lost_at;   /* from here on sp is on another stack than pcsp says */
	uint32_t lost_rule; /* the rule from there on, unless rbp is saved; 0: sp is never lost */
	uint32_t last_rule;
	struct go_stack stack;
	size_t given; /* index of the next of stack.given; stack.n: none */
};

static uint64_t last_row(const struct rows *rows)
{
	return rows->n ? ROW_VADDR(rows->p[rows->n - 1]) : 0;
}

static int emit(struct go_run *r, uint64_t pc, uint32_t rule)
{
	if (rule == r->last_rule)
		return 0;
	r->last_rule = rule;
	return rows_add(r->rows, pc, rule);
}

static uint32_t depth_rule(struct go_run *r, uint64_t pc, uint64_t depth)
{
	const struct saved *s = &r->saved;
	uint64_t slot = s->depth && depth >= s->depth && pc >= s->from ? s->slot : 0;

	if (r->lost_rule && slot == 1 && r->lost_rule != DWARF_RULE_END)
		return table_special(
			r->build, DWARF_REG | RBP << 8 | (DWARF_FP_SAVED | DWARF_OTHER_STACK) << 16,
			16, -16, 0);
	if (r->lost_rule && pc >= r->lost_at)
		return r->lost_rule;
	if (depth % 8 || depth > UINT32_MAX / 2)
		return DWARF_RULE_EXPRESSION;
	if (slot <= DWARF_MAX_SLOT && depth / 8 < DWARF_SP_MAX_OFFSET)
		return DWARF_RULE_SP(depth / 8 + 1, slot);
	return table_special(r->build, DWARF_REG | 7 << 8 | (slot ? DWARF_FP_SAVED : 0) << 16,
			     (int32_t)depth + 8, slot ? -8 * (int32_t)(slot + 1) : 0, 0);
}

/* Do mov N(%rsp),%rbp; add $N,%rsp end here? Between them rbp is already the caller's, and sp is on
 * this function's stack again. */
static int restores_early(struct go_run *r, uint64_t end)
{
	const uint8_t *p = fusee_go_code(r->go, end - 9, 9);

	return r->lost_rule && p && !memcmp(p, "\x48\x8b\x6c\x24", 4) &&
	       !memcmp(p + 5, "\x48\x83\xc4", 3);
}

/* Adds END for the last byte of a call of the scheduler, which ends at `at`. Only return addresses
 * are looked up there. Then the rule for `depth`, up to `end`. */
static int emit_given(struct go_run *r, uint64_t at, uint64_t end, uint64_t depth)
{
	int err = at - 1 <= last_row(r->rows) ? -EBADMSG : emit(r, at - 1, DWARF_RULE_END);

	return err || at == end ? err : emit(r, at, depth_rule(r, at, depth));
}

/* Adds the rows of [pc, end), where sp has moved by depth. */
static int emit_depth(struct go_run *r, uint64_t pc, uint64_t end, uint64_t depth)
{
	uint64_t borders[2] = {r->saved.from, r->lost_rule ? r->lost_at : 0};
	int err = emit(r, pc, depth_rule(r, pc, depth));

	if (borders[0] > borders[1]) {
		borders[0] = borders[1];
		borders[1] = r->saved.from;
	}
	for (int i = 0; !err && i < 2; i++)
		if (borders[i] > pc && borders[i] < end)
			err = emit(r, borders[i], depth_rule(r, borders[i], depth));
	for (; !err && r->given < r->stack.n && r->stack.given[r->given] <= end; r->given++)
		err = emit_given(r, r->stack.given[r->given], end, depth);
	if (!err && end - pc > 9 && restores_early(r, end))
		err = emit(r, end - 4, DWARF_RULE_SP(depth / 8 % DWARF_SP_MAX_OFFSET + 1, 0));
	return err;
}

static int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* Runs the pcsp program: pairs of a difference of the value, and for how many bytes it holds. */
static int run_pcsp(struct go_run *r)
{
	struct cursor c = {r->go->bytes, r->go->bytes + r->go->len, 0};
	uint64_t pc = r->f.lo, before = 0;
	int64_t value = -1;
	int err = 0;

	if (r->f.pcsp >= r->go->len)
		return -EBADMSG;
	c.p += r->f.pcsp;
	while (!err && pc < r->f.hi) {
		uint64_t zigzag = cursor_uleb(&c), delta;

		if (!zigzag && pc != r->f.lo)
			return emit(r, pc, DWARF_RULE_NONE); /* padding, mostly */
		delta = cursor_uleb(&c);
		c.bad |= __builtin_add_overflow(value, unzigzag(zigzag), &value);
		if (c.bad || !delta || delta > r->f.hi - pc || value > INT32_MAX - 8 || value < -64)
			return -EBADMSG;
		if (value < 0) { /* as in rawVforkSyscall: the return address is in a register */
			err = emit(r, pc, DWARF_RULE_EXPRESSION);
		} else {
			if ((uint64_t)value > before && !r->saved.depth)
				see_save(r->go, pc, before, (uint64_t)value, &r->saved);
			err = emit_depth(r, pc, pc + delta, (uint64_t)value);
			before = (uint64_t)value;
		}
		pc += delta;
	}
	return err;
}

static int read_rows(struct go_run *r, enum kind kind)
{
	r->saved = (struct saved){0};
	r->last_rule = UINT32_MAX;
	r->lost_rule = 0;
	r->given = r->stack.n;
	if (kind == NEWSTACK && r->stack.n && r->f.lo < r->stack.given[0] &&
	    r->stack.given[0] <= r->f.hi) /* and not its wrapper */
		r->given = 0;
	if (kind == END)
		return emit(r, r->f.lo, DWARF_RULE_END);
	if (kind == SIGRETURN) {
		r->build->signals++;
		return emit(r, r->f.lo, table_special(r->build, DWARF_SIGNAL, 0, 0, 0));
	}
	if (kind != PLAIN && kind != NEWSTACK) {
		r->lost_at = switch_at(r->go, &r->f);
		r->lost_rule = kind == MCALL ? DWARF_RULE_END
			       : kind == MORESTACK && r->stack.morestack
				       ? r->stack.morestack
				       : table_special(r->build, DWARF_SWITCH, 0, 0, 0);
	}
	return run_pcsp(r);
}

int go_read(struct table_build *build, const struct fusee_go_table *go, struct rows *ret)
{
	struct go_run r = {.build = build, .go = go, .rows = ret};
	uint64_t end = 0;
	int err = 0;

	gostack_find(build, go, &r.stack);
	for (uint64_t i = 0; !err && i < go->n; i++) {
		size_t first = ret->n;
		enum kind kind;

		if (fusee_go_function(go, i, &r.f) || r.f.lo < end) {
			build->damaged++;
			continue;
		}
		if (!table_in_text(build, r.f.lo, r.f.hi)) {
			build->outside++;
			continue;
		}
		kind = kind_of(&r.f);
		if (end && end != r.f.lo)
			err = rows_add(ret, end, DWARF_RULE_NONE);
		first = ret->n;
		/* handlers return to the first byte of sigreturn, and the byte before is
		 * looked up */
		if (kind == SIGRETURN && r.f.lo > last_row(ret) + 1)
			r.f.lo--;
		if (!err)
			err = read_rows(&r, kind);
		if (err == -EBADMSG) {
			build->damaged++;
			ret->n = first;
			err = rows_add(ret, r.f.lo, DWARF_RULE_EXPRESSION);
		}
		build->fdes++;
		end = r.f.hi;
	}
	if (!err && end)
		err = rows_add(ret, end, DWARF_RULE_NONE);
	return err;
}
