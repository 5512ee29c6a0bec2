/* SPDX-License-Identifier: Apache-2.0 */
#include "code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "code_state.h"
#include "insn.h"

#define HINTS (TARGET | SURE | NORETURN)
#define MAX_PASSES 4
#define MAX_ENTRIES (1u << 20)

/* Flags of a byte of text. The first byte of an instruction has in its low bits the packed state
 * before the instruction. */
enum {
	COVERED = 1u << 31,  /* has rows of another source */
	STATE = 1u << 30,    /* an instruction begins here and has been followed */
	INSIDE = 1u << 29,   /* a later byte of such an instruction */
	DOUBT = 1u << 28,    /* a path to here contradicts itself */
	TARGET = 1u << 27,   /* what looks like a call or a pointer leads here */
	SURE = 1u << 26,     /* a function begins here */
	NORETURN = 1u << 25, /* a function begins here that does not return */
};

struct branch {
	size_t at;
	struct code_state state;
};

struct tracer {
	const struct code *code;
	uint32_t *bytes;        /* flags and state of each byte of text */
	struct branch *pending; /* branches still to be followed */
	size_t n_pending, cap_pending;
	size_t *seen; /* instructions of this function */
	size_t n_seen, cap_seen;
	struct code_entries *sure, *maybe;
	unsigned int ends;           /* exits of this function that are consistent */
	unsigned int tails;          /* calls that nothing follows */
	unsigned int noreturn_calls; /* calls of functions that do not return */
	int doubt;                   /* a path contradicts itself */
	int jumps;                   /* jumps to unknown addresses */
	int lost;                    /* a path that could not be followed to its end */
	int found;                   /* functions that don't return, new in this pass */
	int err;
};

int code_entries_add(struct code_entries *e, uint64_t vaddr)
{
	if (e->n == MAX_ENTRIES)
		return 0;
	if (e->n == e->cap) {
		size_t cap = e->cap ? 2 * e->cap : 256;
		uint64_t *p = reallocarray(e->p, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		e->p = p;
		e->cap = cap;
	}
	e->p[e->n++] = vaddr;
	return 0;
}

void code_entries_fini(struct code_entries *e)
{
	free(e->p);
	memset(e, 0, sizeof(*e));
}

/* ---- following a function ---- */

static int in_text(const struct tracer *t, uint64_t vaddr, size_t *at)
{
	*at = vaddr - t->code->vaddr;
	return vaddr >= t->code->vaddr && *at < t->code->len;
}

static void later(struct tracer *t, size_t at, const struct code_state *s)
{
	if (t->n_pending == t->cap_pending) {
		size_t cap = t->cap_pending ? 2 * t->cap_pending : 256;
		struct branch *p = reallocarray(t->pending, cap, sizeof(*p));

		if (!p) {
			t->err = -ENOMEM;
			return;
		}
		t->pending = p;
		t->cap_pending = cap;
	}
	t->pending[t->n_pending++] = (struct branch){at, *s};
}

static void remember(struct tracer *t, size_t at, unsigned int len, const struct code_state *s)
{
	if (t->n_seen == t->cap_seen) {
		size_t cap = t->cap_seen ? 2 * t->cap_seen : 1024;
		size_t *p = reallocarray(t->seen, cap, sizeof(*p));

		if (!p) {
			t->err = -ENOMEM;
			return;
		}
		t->seen = p;
		t->cap_seen = cap;
	}
	t->seen[t->n_seen++] = at;
	t->bytes[at] = (t->bytes[at] & HINTS) | STATE | code_state_pack(s);
	for (unsigned int i = 1; i < len; i++)
		t->bytes[at + i] |= INSIDE;
}

static int is_start(const struct code_state *s)
{
	return !s->depth && !s->slot && !s->base;
}

/* 1: only padding lies between here and what may be the next function, so the call before does not
 * return. */
static int nothing_follows(const struct tracer *t, size_t at)
{
	size_t i = at;

	while (i < t->code->len) {
		struct insn in;

		if (t->bytes[i] & (COVERED | TARGET))
			return 1;
		if (insn_decode(t->code->bytes + i, t->code->len - i, &in))
			return 1;
		if (in.effect == INSN_HALT)
			return 1;
		if (!in.nop)
			break;
		i += in.len;
		if ((t->code->vaddr + i) % 16 == 0)
			return 1;
	}
	return i >= t->code->len;
}

/* Adds the target of a call or lea to the list of functions that begin surely, or maybe. */
static void note(struct tracer *t, size_t from, int64_t to, struct code_entries *entries)
{
	uint64_t vaddr = t->code->vaddr + from + (uint64_t)to;
	size_t at;

	if (!in_text(t, vaddr, &at) || t->bytes[at] & (COVERED | STATE))
		return;
	if (entries == t->sure)
		t->bytes[at] |= SURE;
	if (code_entries_add(entries, vaddr))
		t->err = -ENOMEM;
}

static void jump(struct tracer *t, size_t at, const struct insn *in, const struct code_state *s)
{
	size_t to;

	if (!in->has_target) {
		/* through a pointer: a tail call if nothing is pushed, else a switch table */
		t->ends += (unsigned int)is_start(s);
		t->jumps++;
		return;
	}
	if (!in_text(t, t->code->vaddr + at + (uint64_t)in->target, &to) ||
	    t->bytes[to] & COVERED) {
		t->ends++;
		t->doubt |= !is_start(s) && in->effect == INSN_JUMP;
		return;
	}
	if (t->bytes[to] & SURE && is_start(s))
		t->ends++; /* a tail call */
	else
		later(t, to, s);
}

/* 1: the call returns. */
static int call(struct tracer *t, size_t at, const struct insn *in)
{
	size_t to;

	if (in->has_target && in->target == in->len) { /* call and pop, to read pc */
		t->lost = 1;
		return 0;
	}
	if (in->has_target) {
		note(t, at, in->target, t->sure);
		if (in_text(t, t->code->vaddr + at + (uint64_t)in->target, &to) &&
		    t->bytes[to] & NORETURN) {
			t->noreturn_calls++;
			return 0;
		}
	}
	if (!nothing_follows(t, at + in->len))
		return 1;
	t->tails++;
	return 0;
}

/* Follows one instruction. 1: execution continues at *next. */
static int follow(struct tracer *t, size_t at, struct code_state *s, size_t *next)
{
	struct insn in;

	if (insn_decode(t->code->bytes + at, t->code->len - at, &in)) {
		t->lost = 1;
		return 0;
	}
	remember(t, at, in.len, s);
	*next = at + in.len;
	if (in.address)
		note(t, at, in.address, t->maybe);
	if (code_state_apply(s, &in)) {
		t->lost = 1;
		return 0;
	}
	switch (in.effect) {
	case INSN_RETURN:
		t->ends++;
		t->doubt |= s->depth != 0 || (s->slot && s->slot != CODE_SLOT_LOST);
		return 0;
	case INSN_JUMP:
		jump(t, at, &in, s);
		return 0;
	case INSN_BRANCH:
		jump(t, at, &in, s);
		return 1;
	case INSN_CALL:
		return call(t, at, &in);
	case INSN_HALT:
		return 0;
	default:
		return 1;
	}
}

/* Marks everything that is reached from here with DOUBT. */
static void spread_doubt(struct tracer *t, size_t at)
{
	struct code_state none = {0};
	size_t first = t->n_pending;

	later(t, at, &none);
	while (t->n_pending > first && !t->err) {
		struct insn in;
		size_t to;

		at = t->pending[--t->n_pending].at;
		while (at < t->code->len && (t->bytes[at] & (STATE | DOUBT)) == STATE &&
		       !insn_decode(t->code->bytes + at, t->code->len - at, &in)) {
			t->bytes[at] |= DOUBT;
			if ((in.effect == INSN_JUMP || in.effect == INSN_BRANCH) && in.has_target &&
			    in_text(t, t->code->vaddr + at + (uint64_t)in.target, &to))
				later(t, to, &none);
			if (in.effect == INSN_JUMP || in.effect == INSN_RETURN ||
			    in.effect == INSN_HALT)
				break;
			at += in.len;
		}
	}
}

/* An address that was reached before: both states must agree, but for the place of rbp. 1: follow
 * the path again, with rbp lost. */
static int merge(struct tracer *t, size_t at, const struct code_state *s)
{
	struct code_state old = code_state_unpack(t->bytes[at]);

	if (t->bytes[at] & DOUBT || old.depth != s->depth || old.base != s->base) {
		t->doubt = 1;
		spread_doubt(t, at);
		return 0;
	}
	if (old.slot == s->slot || old.slot == CODE_SLOT_LOST)
		return 0;
	return 1;
}

static void follow_path(struct tracer *t, size_t at, struct code_state s)
{
	while (!t->err && at < t->code->len && !(t->bytes[at] & COVERED)) {
		if (t->bytes[at] & (INSIDE | DOUBT)) {
			t->doubt = 1; /* a jump into the middle of an instruction */
			return;
		}
		if (t->bytes[at] & SURE && t->n_seen && !is_start(&s)) {
			t->doubt = 1; /* a jump into another function, with words pushed */
			return;
		}
		if (t->bytes[at] & STATE) {
			if (!merge(t, at, &s))
				return;
			s.slot = CODE_SLOT_LOST;
		}
		if (!follow(t, at, &s, &at))
			return;
	}
}

static void follow_function(struct tracer *t, uint64_t vaddr, int sure)
{
	struct code_state start = {0};
	size_t at;

	if (!in_text(t, vaddr, &at) || t->bytes[at] & (COVERED | STATE | INSIDE | DOUBT))
		return;
	t->n_seen = 0;
	t->ends = t->tails = t->noreturn_calls = 0;
	t->doubt = t->jumps = t->lost = 0;
	later(t, at, &start);
	while (t->n_pending && !t->err) {
		struct branch p = t->pending[--t->n_pending];

		follow_path(t, p.at, p.state);
	}
	if (sure && !t->doubt && !t->ends && !t->tails && !t->jumps && !t->lost &&
	    !(t->bytes[at] & NORETURN)) {
		t->bytes[at] |= NORETURN;
		t->found = 1;
	}
	if (!t->doubt && (sure || ((t->ends || t->tails || t->noreturn_calls) && !t->jumps)))
		return;
	for (size_t i = 0; i < t->n_seen; i++)
		t->bytes[t->seen[i]] |= DOUBT;
}

/* ---- rows ---- */

static uint32_t rule_of(struct table_build *build, uint32_t v)
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

static int emit_rows(struct table_build *build, const struct tracer *t, struct rows *ret)
{
	uint32_t last = DWARF_RULE_NONE;
	int err = 0;

	for (size_t i = 0; !err && i < t->code->len; i++) {
		uint32_t v = t->bytes[i], rule;

		if (v & INSIDE && !(v & (STATE | COVERED)))
			continue;
		rule = v & STATE && !(v & (DOUBT | COVERED)) ? rule_of(build, v) : DWARF_RULE_NONE;
		if (rule != last)
			err = rows_add(ret, t->code->vaddr + i, rule);
		last = rule;
	}
	if (!err && last != DWARF_RULE_NONE)
		err = rows_add(ret, t->code->vaddr + t->code->len, DWARF_RULE_NONE);
	return err;
}

/* ---- preparation ---- */

static void cover(struct tracer *t)
{
	const struct rows *rows = t->code->known;

	for (size_t i = 0; i < rows->n; i++) {
		uint64_t lo = ROW_VADDR(rows->p[i]), end = t->code->vaddr + t->code->len;
		uint64_t hi = i + 1 < rows->n ? ROW_VADDR(rows->p[i + 1]) : lo;

		if (ROW_RULE(rows->p[i]) == DWARF_RULE_NONE)
			continue;
		if (lo < t->code->vaddr)
			lo = t->code->vaddr;
		for (; lo < hi && lo < end; lo++)
			t->bytes[lo - t->code->vaddr] = COVERED;
	}
}

static void mark(struct tracer *t, const struct code_entries *e, uint32_t bits)
{
	size_t at;

	for (size_t i = 0; i < e->n; i++)
		if (in_text(t, e->p[i], &at))
			t->bytes[at] |= bits;
}

/* Marks where calls and pointers seem to lead, by decoding the text in sequence: a hint of where
 * functions begin. */
static void mark_targets(struct tracer *t)
{
	for (size_t at = 0; at < t->code->len;) {
		struct insn in;
		int64_t to = 0;
		size_t there;

		if (t->bytes[at] & COVERED ||
		    insn_decode(t->code->bytes + at, t->code->len - at, &in)) {
			at++;
			continue;
		}
		if (in.effect == INSN_CALL && in.has_target)
			to = in.target;
		else if (in.address)
			to = in.address;
		if (to && to != in.len && in_text(t, t->code->vaddr + at + (uint64_t)to, &there))
			t->bytes[there] |= TARGET;
		at += in.len;
	}
}

/* Follows the sure functions first, then what may be functions. */
static void follow_all(struct tracer *t)
{
	size_t i = 0, k = 0;

	for (size_t n = 0; n < t->code->len; n++)
		t->bytes[n] &= COVERED | HINTS;
	t->found = 0;
	while (!t->err && (i < t->sure->n || k < t->maybe->n)) {
		if (i < t->sure->n)
			follow_function(t, t->sure->p[i++], 1);
		else
			follow_function(t, t->maybe->p[k++], 0);
	}
}

int code_read(struct table_build *build, const struct code *code, struct code_entries *sure,
	      struct code_entries *maybe, struct rows *ret)
{
	struct tracer w = {.code = code, .sure = sure, .maybe = maybe, .found = 1};
	int err = -ENOMEM;

	w.bytes = calloc(code->len ? code->len : 1, sizeof(*w.bytes));
	if (!w.bytes)
		goto out;
	cover(&w);
	mark_targets(&w);
	mark(&w, sure, TARGET | SURE);
	mark(&w, maybe, TARGET);
	/* Each pass knows more functions that do not return; behind calls of them other functions
	 * begin. */
	for (int pass = 0; pass < MAX_PASSES && w.found && !w.err; pass++)
		follow_all(&w);
	err = w.err ? w.err : emit_rows(build, &w, ret);
out:
	free(w.bytes);
	free(w.pending);
	free(w.seen);
	return err;
}
