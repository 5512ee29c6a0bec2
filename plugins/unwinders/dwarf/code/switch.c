/* SPDX-License-Identifier: Apache-2.0 */
#include "switch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/insn.h>
#include <fusee/insn_parts.h>

#define MAX_ENTRIES 4096

/* The path is walked backwards from the jump. */
struct search {
	uint8_t base;   /* register that has the table's address, NO_REGISTER: it is known */
	uint8_t index;  /* register whose bound is sought, NO_REGISTER: it is known */
	uint8_t narrow; /* the index is the lowest byte of that register */
	uint8_t above;  /* ja or jae was met: the next comparison is its */
	uint8_t equal;  /* it was jae */
	struct code_switch *ret;
};

enum { GO_ON, FOUND, FAILED };

/* An instruction that does nothing but write this register, and perhaps the flags. */
static int writes(const struct search *s, unsigned int reg, int flags)
{
	if (reg == s->base || reg == s->index || (flags && s->above))
		return FAILED;
	return GO_ON;
}

/* mov and movzx between registers. */
static int copies(struct search *s, unsigned int to, unsigned int from, int byte)
{
	if (to == s->base)
		return FAILED;
	if (to == s->index) {
		s->index = (uint8_t)from;
		s->narrow |= (uint8_t)byte;
	}
	return GO_ON;
}

static int compares(struct search *s, const struct insn_parts *d, unsigned int reg, int byte)
{
	uint32_t n = byte ? (uint8_t)d->imm : (uint32_t)d->imm;

	if (!s->above)
		return GO_ON;
	if (reg != s->index || (byte && (!s->narrow || (!d->rex && reg > 3))) || n >= MAX_ENTRIES ||
	    fusee_insn_operand_is_16(d))
		return FAILED;
	s->ret->entries = s->equal ? n : n + 1;
	s->index = NO_REGISTER;
	s->above = 0;
	return GO_ON;
}

static int branches(struct search *s, unsigned int condition)
{
	if (s->index != NO_REGISTER && !s->above && (condition == 7 || condition == 3)) {
		s->above = 1;
		s->equal = condition == 3;
	}
	return GO_ON;
}

static int step_0f(struct search *s, const struct insn_parts *d)
{
	uint8_t op = d->opcode;

	if (op >= 0x80 && op <= 0x8f)
		return branches(s, op & 15);
	if (op == 0x1f)
		return GO_ON;
	if (op == 0xb6 && d->mod == 3 && (d->rex || d->rm < 4) && !fusee_insn_operand_is_16(d))
		return copies(s, d->reg, d->rm, 1);
	if ((op >= 0xb6 && op <= 0xb7) || (op >= 0xbe && op <= 0xbf))
		return writes(s, d->reg, 0);
	return FAILED;
}

static int step_lea(struct search *s, const struct insn_parts *d, uint64_t end)
{
	if (d->reg != s->base || !d->rip || d->address32)
		return writes(s, d->reg, 0);
	s->ret->table = end + (uint64_t)(int64_t)d->disp;
	s->base = NO_REGISTER;
	return GO_ON;
}

static int step_move(struct search *s, const struct insn_parts *d)
{
	unsigned int load = d->opcode == 0x8b, to = load ? d->reg : d->rm;

	if (d->mod != 3)
		return load ? writes(s, d->reg, 0) : GO_ON;
	if (fusee_insn_operand_is_16(d))
		return writes(s, to, 0);
	return copies(s, to, load ? d->rm : d->reg, 0);
}

/* Comparisons, and arithmetic that writes flags. */
static int step_arithmetic(struct search *s, const struct insn_parts *d)
{
	uint8_t op = d->opcode;
	unsigned int what = op < 0x40 ? op >> 3 & 7 : d->reg & 7;

	if ((op == 0x81 || op == 0x83 || op == 0x80) && what == 7)
		return d->mod == 3 ? compares(s, d, d->rm, op == 0x80)
				   : (s->above ? FAILED : GO_ON);
	if (op == 0x3c || op == 0x3d)
		return compares(s, d, 0, op == 0x3c);
	if (what == 7)
		return s->above ? FAILED : GO_ON;
	if (op == 0x81 || op == 0x83 || op == 0x80 || (op & 7) < 2)
		return d->mod == 3 ? writes(s, d->rm, 1) : (s->above ? FAILED : GO_ON);
	return (op & 7) < 4 ? writes(s, d->reg, 1) : FAILED;
}

static int step_one(struct search *s, const struct insn_parts *d, uint64_t end)
{
	uint8_t op = d->opcode;

	if (op < 0x40 || op == 0x80 || op == 0x81 || op == 0x83)
		return step_arithmetic(s, d);
	if (op >= 0x70 && op <= 0x7f)
		return branches(s, op & 15);
	if (op == 0x8d)
		return step_lea(s, d, end);
	if (op == 0x89 || op == 0x8b)
		return step_move(s, d);
	if (op == 0x63)
		return writes(s, d->reg, 0);
	if (op >= 0xb8 && op <= 0xbf)
		return writes(s, (op & 7) | (d->rex & REX_B ? 8u : 0u), 0);
	if (op == 0x84 || op == 0x85) /* test */
		return s->above ? FAILED : GO_ON;
	if ((op == 0x88 || op == 0xc6 || op == 0xc7) && d->mod != 3)
		return GO_ON;
	return op == 0x90 ? GO_ON : FAILED;
}

static int step(struct search *s, const struct insn_parts *d, uint64_t end)
{
	int ret = FAILED;

	if (d->form == FORM_LEGACY && d->map == MAP_ONE)
		ret = step_one(s, d, end);
	else if (d->form == FORM_LEGACY && d->map == MAP_0F)
		ret = step_0f(s, d);
	if (ret == GO_ON && s->base == NO_REGISTER && s->index == NO_REGISTER)
		ret = FOUND;
	return ret;
}

/* movslq (base,index,4),to; add base,to or add to,base; jmp *sum */
static int begin_relative(struct search *s, const struct insn_parts *load,
			  const struct insn_parts *sum, unsigned int jumped)
{
	unsigned int to, from;

	if (sum->form != FORM_LEGACY || sum->map != MAP_ONE || !(sum->rex & REX_W) ||
	    (sum->opcode != 0x01 && sum->opcode != 0x03) || sum->mod != 3)
		return -1;
	to = sum->opcode == 0x01 ? sum->rm : sum->reg;
	from = sum->opcode == 0x01 ? sum->reg : sum->rm;
	if (load->form != FORM_LEGACY || load->map != MAP_ONE || load->opcode != 0x63 ||
	    !(load->rex & REX_W) || load->mod == 3 || load->scale != 4 || load->disp ||
	    load->address32 || load->segment || load->base == NO_REGISTER ||
	    load->index == NO_REGISTER || load->base == load->index)
		return -1;
	if (to != jumped || to == from ||
	    !((load->base == from && load->reg == to) || (load->base == to && load->reg == from)))
		return -1;
	s->base = load->base;
	s->index = load->index;
	s->ret->size = 4;
	return 0;
}

static int read_at(const struct code_bytes *text, size_t at, struct insn_parts *d)
{
	return fusee_insn_read(text->p + at, text->len - at, d);
}

/* How many instructions, the jump among them, read the table. 0: the jump reads none. */
static size_t begin(struct search *s, const struct code_bytes *text, const size_t *path, size_t n)
{
	struct insn_parts jump, sum, load;

	if (!n || read_at(text, path[n - 1], &jump) || jump.form != FORM_LEGACY ||
	    jump.map != MAP_ONE || jump.opcode != 0xff || (jump.reg & 7) != 4)
		return 0;
	if (jump.mod == 3)
		return n >= 3 && !read_at(text, path[n - 2], &sum) &&
				       !read_at(text, path[n - 3], &load) &&
				       !begin_relative(s, &load, &sum, jump.rm)
			       ? 3
			       : 0;
	if (jump.mod || jump.base != NO_REGISTER || jump.index == NO_REGISTER || jump.scale != 8 ||
	    jump.address32 || jump.segment)
		return 0;
	s->base = NO_REGISTER;
	s->index = jump.index;
	s->ret->table = (uint64_t)(int64_t)jump.disp;
	s->ret->size = 8;
	return 1;
}

int code_switch_find(const struct code_bytes *text, const size_t *path, size_t n,
		     struct code_switch *ret)
{
	struct search s = {.ret = ret};
	size_t first = begin(&s, text, path, n);

	if (!first)
		return -1;
	for (size_t i = n - first; i-- > 0;) {
		struct insn_parts d;
		int what;

		if (read_at(text, path[i], &d))
			return -1;
		what = step(&s, &d, text->vaddr + (uint64_t)(d.p - text->p));
		if (what != GO_ON)
			return what == FOUND ? 0 : -1;
	}
	return -1;
}

/* ---- without a bound ---- */

/* Registers whose values are traced back from the jump: sum = sum + other, one of which is loaded
 * from the table, then other alone: its address. */
struct trace {
	uint8_t sum, other;
	enum { SUM, LOAD, ADDRESS } step;
	struct code_switch *ret;
	uint64_t base;
};

/* add %other,%sum */
static int is_sum(const struct trace *t, const struct insn_parts *d)
{
	return d->form == FORM_LEGACY && d->map == MAP_ONE && d->rex & REX_W && d->mod == 3 &&
	       ((d->opcode == 0x01 && d->rm == t->sum) || (d->opcode == 0x03 && d->reg == t->sum));
}

/* movslq n(%address,%rcx,4),%sum, or the same the other way round */
static int is_load(const struct trace *t, const struct insn_parts *d)
{
	return d->form == FORM_LEGACY && d->map == MAP_ONE && d->opcode == 0x63 && d->rex & REX_W &&
	       d->mod != 3 && d->scale == 4 && !d->address32 && !d->segment &&
	       d->index != NO_REGISTER &&
	       ((d->reg == t->sum && d->base == t->other) ||
		(d->reg == t->other && d->base == t->sum));
}

static int may_write(const struct insn *in, unsigned int reg)
{
	if (reg != RBP)
		return reg == RSP || in->written >> reg & 1;
	return in->effect == INSN_WRITE_FP || in->effect == INSN_POP_FP ||
	       in->effect == INSN_LOAD_FP || in->effect == INSN_SET_FP ||
	       in->effect == INSN_LEAVE || in->effect == INSN_WRITE_SP;
}

static int trace_back(struct trace *t, const struct code_bytes *text, size_t at)
{
	struct insn_parts d;
	struct insn in;

	if (read_at(text, at, &d) || fusee_insn_decode(text->p + at, text->len - at, &in))
		return FAILED;
	if (t->step == SUM && is_sum(t, &d)) {
		t->other = d.opcode == 0x01 ? d.reg : d.rm;
		t->step = LOAD;
		return t->other == t->sum ? FAILED : GO_ON;
	}
	if (t->step == LOAD && is_load(t, &d)) {
		t->other = d.base;
		t->ret->table = (uint64_t)(int64_t)d.disp;
		t->step = ADDRESS;
		return d.reg == d.base ? FAILED : GO_ON;
	}
	if (t->step == ADDRESS && in.address && d.reg == t->other && d.rex & REX_W) {
		t->base = text->vaddr + at + (uint64_t)in.address;
		t->ret->table += t->base;
		return FOUND;
	}
	return (t->step < ADDRESS && may_write(&in, t->sum)) ||
			       (t->step > SUM && may_write(&in, t->other))
		       ? FAILED
		       : GO_ON;
}

int code_switch_find_unbounded(const struct code_bytes *text, const size_t *path, size_t n,
			       struct code_switch *ret, uint64_t *base)
{
	struct trace t = {.step = SUM, .ret = ret};
	struct insn_parts jump;
	int what = GO_ON;

	if (!n || read_at(text, path[n - 1], &jump) || jump.form != FORM_LEGACY ||
	    jump.map != MAP_ONE || jump.opcode != 0xff || (jump.reg & 7) != 4 || jump.mod != 3)
		return -1;
	t.sum = jump.rm;
	for (size_t i = n - 1; what == GO_ON && i-- > 0;)
		what = trace_back(&t, text, path[i]);
	if (what != FOUND)
		return -1;
	ret->entries = 0;
	ret->size = 4;
	*base = t.base;
	return 0;
}

int code_switch_entry(const struct code_switch *s, const struct code_bytes *data, uint32_t i,
		      uint64_t *target)
{
	uint64_t at = s->table - data->vaddr + (uint64_t)i * s->size;
	int32_t relative;

	if (s->table < data->vaddr || at > data->len || data->len - at < s->size)
		return -1;
	if (s->size == 8) {
		memcpy(target, data->p + at, 8);
		return 0;
	}
	memcpy(&relative, data->p + at, 4);
	*target = s->table + (uint64_t)(int64_t)relative;
	return 0;
}

/* ---- the tables that were found ---- */

/* The slot of this jump, or an empty one. There is always an empty one. */
static struct code_switches_slot *slot_of(const struct code_switches *s, size_t at)
{
	size_t i = (at * 0x9e3779b97f4a7c15ull >> 20) & (s->cap - 1);

	while (s->p[i].at && s->p[i].at != at + 1)
		i = (i + 1) & (s->cap - 1);
	return &s->p[i];
}

static int grow(struct code_switches *s)
{
	struct code_switches larger = {.cap = s->cap ? 2 * s->cap : 64};

	larger.p = calloc(larger.cap, sizeof(*larger.p));
	if (!larger.p)
		return -ENOMEM;
	larger.n = s->n;
	for (size_t i = 0; i < s->cap; i++)
		if (s->p[i].at)
			*slot_of(&larger, s->p[i].at - 1) = s->p[i];
	free(s->p);
	*s = larger;
	return 0;
}

int code_switches_add(struct code_switches *s, size_t at, const struct code_switch *table)
{
	struct code_switches_slot *slot;

	if (2 * s->n >= s->cap && grow(s))
		return -ENOMEM;
	slot = slot_of(s, at);
	s->n += !slot->at;
	*slot = (struct code_switches_slot){at + 1, *table};
	return 0;
}

const struct code_switch *code_switches_at(const struct code_switches *s, size_t at)
{
	const struct code_switches_slot *slot = s->cap ? slot_of(s, at) : NULL;

	return slot && slot->at ? &slot->table : NULL;
}

void code_switches_fini(struct code_switches *s)
{
	free(s->p);
	memset(s, 0, sizeof(*s));
}
