/* SPDX-License-Identifier: Apache-2.0 */
#include "code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "insn.h"

#define HINTS (TARGET | SURE | NORETURN)
#define MAX_PASSES 4
#define MAX_ENTRIES (1u << 20)

/* A byte of text. An instruction's first byte has its state in the low bits, as it is before it. */
enum {
	COVERED = 1u << 31,  /* has rows from elsewhere */
	STATE = 1u << 30,    /* an instruction begins here and has been followed */
	INSIDE = 1u << 29,   /* another byte of such a one */
	DOUBT = 1u << 28,    /* what led here did not add up */
	TARGET = 1u << 27,   /* something that looks like a call or a pointer leads here */
	SURE = 1u << 26,     /* a function begins here */
	NORETURN = 1u << 25, /* one that does not come back */
};

/* How far sp is below the return address, where the caller's rbp is, where rbp points; in words. */
#define DEPTH_LOST 0x1fffu /* unknown: rbp must help */
#define SLOT_LOST 0x3fu
struct state {
	uint32_t depth; /* 13 bits */
	uint32_t slot;  /* 6 bits; 0: rbp is the caller's; k: saved k words below the return address
			 */
	uint32_t base;  /* 6 bits; 0: rbp is no frame pointer, b: rbp = CFA - 8 * b */
};

static uint32_t pack(const struct state *s)
{
	return s->depth | s->slot << 13 | s->base << 19;
}

static struct state unpack(uint32_t v)
{
	return (struct state){v & 0x1fff, v >> 13 & 0x3f, v >> 19 & 0x3f};
}

struct place {
	size_t at;
	struct state state;
};

struct walk {
	const struct dwt_code *code;
	uint32_t *bytes;       /* one for each byte of text */
	struct place *pending; /* branches still to be followed */
	size_t n_pending, cap_pending;
	size_t *seen; /* instructions of this function */
	size_t n_seen, cap_seen;
	struct dwt_entries *sure, *maybe;
	unsigned int ends;  /* ways out of this function that add up */
	unsigned int tails; /* calls that nothing follows */
	unsigned int gone;  /* calls that don't return */
	int doubt;          /* something does not */
	int jumps;          /* to where nobody knows */
	int lost;           /* a path that could not be followed to its end */
	int found;          /* functions that don't return, new in this pass */
	int err;
};

int dwt_entries_add(struct dwt_entries *e, uint64_t vaddr)
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

void dwt_entries_fini(struct dwt_entries *e)
{
	free(e->p);
	memset(e, 0, sizeof(*e));
}

/* ---- what one instruction does to the state ---- */

/* 0; -1: it can't be followed from here. */
static int move_sp(struct state *s, int64_t bytes)
{
	int64_t depth = (int64_t)s->depth - bytes / 8;

	if (s->depth == DEPTH_LOST) /* stays lost, until rbp gives it back */
		return s->base ? 0 : -1;
	if (bytes % 8 || depth < 0 || depth >= (int64_t)DEPTH_LOST)
		return -1;
	s->depth = (uint32_t)depth;
	if (s->slot != SLOT_LOST && s->slot > s->depth)
		s->slot = 0;
	return 0;
}

static int save_fp(struct state *s, int64_t bytes_above_sp)
{
	int64_t slot = (int64_t)s->depth - bytes_above_sp / 8;

	if (s->slot || s->depth == DEPTH_LOST)
		return 0; /* a second copy, or of another value */
	if (bytes_above_sp % 8 || slot <= 0 || slot > (int64_t)DWARF_MAX_SLOT)
		return 0;
	s->slot = (uint32_t)slot;
	return 0;
}

static int push_fp(struct state *s)
{
	if (move_sp(s, -8))
		return -1;
	return s->depth == DEPTH_LOST ? 0 : save_fp(s, 0);
}

/* rbp comes back: from where it was saved, or it is another value. */
static int pop_fp(struct state *s)
{
	int saved = s->slot && s->slot == s->depth;

	if (s->depth == DEPTH_LOST || move_sp(s, 8))
		return -1;
	s->base = 0;
	if (!saved && !s->slot)
		s->slot = SLOT_LOST;
	else if (saved)
		s->slot = 0;
	return 0;
}

static int sp_from_fp(struct state *s, int64_t bytes)
{
	if (!s->base)
		return -1;
	s->depth = s->base - 1;
	return move_sp(s, bytes);
}

static int set_fp(struct state *s)
{
	if (!s->slot || s->depth == DEPTH_LOST || s->depth >= 0x3f)
		return -1;
	s->base = s->depth + 1;
	return 0;
}

static int write_fp(struct state *s)
{
	if (s->depth == DEPTH_LOST)
		return -1;
	s->base = 0;
	if (!s->slot)
		s->slot = SLOT_LOST; /* overwritten without being saved */
	return 0;
}

static int apply(const struct dwt_insn *in, struct state *s)
{
	switch (in->effect) {
	case DWT_PUSH:
		return move_sp(s, -8);
	case DWT_PUSH_FP:
		return push_fp(s);
	case DWT_POP:
		return move_sp(s, 8);
	case DWT_POP_FP:
		return pop_fp(s);
	case DWT_ADD_SP:
		return move_sp(s, in->value);
	case DWT_SAVE_FP:
		return save_fp(s, in->value);
	case DWT_SET_FP:
		return set_fp(s);
	case DWT_SP_FROM_FP:
		return sp_from_fp(s, in->value);
	case DWT_LEAVE:
		return sp_from_fp(s, 0) || pop_fp(s) ? -1 : 0;
	case DWT_LOSE_SP:
		s->depth = DEPTH_LOST;
		return s->base ? 0 : -1;
	case DWT_WRITE_SP:
		return -1;
	case DWT_WRITE_FP:
		return write_fp(s);
	default:
		return 0;
	}
}

/* ---- following a function ---- */

static int in_text(const struct walk *w, uint64_t vaddr, size_t *at)
{
	*at = vaddr - w->code->vaddr;
	return vaddr >= w->code->vaddr && *at < w->code->len;
}

static void later(struct walk *w, size_t at, const struct state *s)
{
	if (w->n_pending == w->cap_pending) {
		size_t cap = w->cap_pending ? 2 * w->cap_pending : 256;
		struct place *p = reallocarray(w->pending, cap, sizeof(*p));

		if (!p) {
			w->err = -ENOMEM;
			return;
		}
		w->pending = p;
		w->cap_pending = cap;
	}
	w->pending[w->n_pending++] = (struct place){at, *s};
}

static void remember(struct walk *w, size_t at, unsigned int len, const struct state *s)
{
	if (w->n_seen == w->cap_seen) {
		size_t cap = w->cap_seen ? 2 * w->cap_seen : 1024;
		size_t *p = reallocarray(w->seen, cap, sizeof(*p));

		if (!p) {
			w->err = -ENOMEM;
			return;
		}
		w->seen = p;
		w->cap_seen = cap;
	}
	w->seen[w->n_seen++] = at;
	w->bytes[at] = (w->bytes[at] & HINTS) | STATE | pack(s);
	for (unsigned int i = 1; i < len; i++)
		w->bytes[at + i] |= INSIDE;
}

static int is_start(const struct state *s)
{
	return !s->depth && !s->slot && !s->base;
}

/* Only padding up to the next function, or what looks like one: the call before it does not return.
 */
static int nothing_follows(const struct walk *w, size_t at)
{
	size_t i = at;

	while (i < w->code->len) {
		struct dwt_insn in;

		if (w->bytes[i] & (COVERED | TARGET))
			return 1;
		if (dwt_insn(w->code->bytes + i, w->code->len - i, &in))
			return 1;
		if (in.effect == DWT_HALT)
			return 1;
		if (!in.nop)
			break;
		i += in.len;
		if ((w->code->vaddr + i) % 16 == 0)
			return 1;
	}
	return i >= w->code->len;
}

/* The target of a call or lea: functions begin there, or maybe. */
static void note(struct walk *w, size_t from, int64_t to, struct dwt_entries *entries)
{
	uint64_t vaddr = w->code->vaddr + from + (uint64_t)to;
	size_t at;

	if (!in_text(w, vaddr, &at) || w->bytes[at] & (COVERED | STATE))
		return;
	if (entries == w->sure)
		w->bytes[at] |= SURE;
	if (dwt_entries_add(entries, vaddr))
		w->err = -ENOMEM;
}

static void jump(struct walk *w, size_t at, const struct dwt_insn *in, const struct state *s)
{
	size_t to;

	if (!in->has_target) {
		/* Through a pointer: the next function when nothing is pushed, else a switch. */
		w->ends += (unsigned int)is_start(s);
		w->jumps++;
		return;
	}
	if (!in_text(w, w->code->vaddr + at + (uint64_t)in->target, &to) ||
	    w->bytes[to] & COVERED) {
		w->ends++;
		w->doubt |= !is_start(s) && in->effect == DWT_JUMP;
		return;
	}
	if (w->bytes[to] & SURE && is_start(s))
		w->ends++; /* what was called last returns for us */
	else
		later(w, to, s);
}

/* 1: it comes back. */
static int call(struct walk *w, size_t at, const struct dwt_insn *in)
{
	size_t to;

	if (in->has_target && in->target == in->len) { /* call; pop: where am I? */
		w->lost = 1;
		return 0;
	}
	if (in->has_target) {
		note(w, at, in->target, w->sure);
		if (in_text(w, w->code->vaddr + at + (uint64_t)in->target, &to) &&
		    w->bytes[to] & NORETURN) {
			w->gone++;
			return 0;
		}
	}
	if (!nothing_follows(w, at + in->len))
		return 1;
	w->tails++;
	return 0;
}

/* One instruction. 1: the next one follows. */
static int follow(struct walk *w, size_t at, struct state *s, size_t *next)
{
	struct dwt_insn in;

	if (dwt_insn(w->code->bytes + at, w->code->len - at, &in)) {
		w->lost = 1;
		return 0;
	}
	remember(w, at, in.len, s);
	*next = at + in.len;
	if (in.address)
		note(w, at, in.address, w->maybe);
	if (apply(&in, s)) {
		w->lost = 1;
		return 0;
	}
	switch (in.effect) {
	case DWT_RETURN:
		w->ends++;
		w->doubt |= s->depth != 0 || (s->slot && s->slot != SLOT_LOST);
		return 0;
	case DWT_JUMP:
		jump(w, at, &in, s);
		return 0;
	case DWT_BRANCH:
		jump(w, at, &in, s);
		return 1;
	case DWT_CALL:
		return call(w, at, &in);
	case DWT_HALT:
		return 0;
	default:
		return 1;
	}
}

/* Nothing that is reached from here is certain, whoever followed it. */
static void spread_doubt(struct walk *w, size_t at)
{
	struct state none = {0};
	size_t first = w->n_pending;

	later(w, at, &none);
	while (w->n_pending > first && !w->err) {
		struct dwt_insn in;
		size_t to;

		at = w->pending[--w->n_pending].at;
		while (at < w->code->len && (w->bytes[at] & (STATE | DOUBT)) == STATE &&
		       !dwt_insn(w->code->bytes + at, w->code->len - at, &in)) {
			w->bytes[at] |= DOUBT;
			if ((in.effect == DWT_JUMP || in.effect == DWT_BRANCH) && in.has_target &&
			    in_text(w, w->code->vaddr + at + (uint64_t)in.target, &to))
				later(w, to, &none);
			if (in.effect == DWT_JUMP || in.effect == DWT_RETURN ||
			    in.effect == DWT_HALT)
				break;
			at += in.len;
		}
	}
}

/* Been here before: with the same state, or one of them is wrong. rbp's place alone may differ. */
static int merge(struct walk *w, size_t at, const struct state *s)
{
	struct state old = unpack(w->bytes[at]);

	if (w->bytes[at] & DOUBT || old.depth != s->depth || old.base != s->base) {
		w->doubt = 1;
		spread_doubt(w, at);
		return 0;
	}
	if (old.slot == s->slot || old.slot == SLOT_LOST)
		return 0;
	return 1; /* once more, with rbp lost */
}

static void follow_path(struct walk *w, size_t at, struct state s)
{
	while (!w->err && at < w->code->len && !(w->bytes[at] & COVERED)) {
		if (w->bytes[at] & (INSIDE | DOUBT)) {
			w->doubt = 1; /* into the middle of an instruction */
			return;
		}
		if (w->bytes[at] & SURE && w->n_seen && !is_start(&s)) {
			w->doubt = 1; /* into another function, with something pushed */
			return;
		}
		if (w->bytes[at] & STATE) {
			if (!merge(w, at, &s))
				return;
			s.slot = SLOT_LOST;
		}
		if (!follow(w, at, &s, &at))
			return;
	}
}

static void follow_function(struct walk *w, uint64_t vaddr, int sure)
{
	struct state start = {0};
	size_t at;

	if (!in_text(w, vaddr, &at) || w->bytes[at] & (COVERED | STATE | INSIDE | DOUBT))
		return;
	w->n_seen = 0;
	w->ends = w->tails = w->gone = 0;
	w->doubt = w->jumps = w->lost = 0;
	later(w, at, &start);
	while (w->n_pending && !w->err) {
		struct place p = w->pending[--w->n_pending];

		follow_path(w, p.at, p.state);
	}
	if (sure && !w->doubt && !w->ends && !w->tails && !w->jumps && !w->lost &&
	    !(w->bytes[at] & NORETURN)) {
		w->bytes[at] |= NORETURN;
		w->found = 1;
	}
	if (!w->doubt && (sure || ((w->ends || w->tails || w->gone) && !w->jumps)))
		return;
	for (size_t i = 0; i < w->n_seen; i++)
		w->bytes[w->seen[i]] |= DOUBT;
}

/* ---- rows ---- */

static uint32_t rule_of(struct dwt *dwt, uint32_t v)
{
	struct state s = unpack(v);
	uint32_t flags = s.slot == SLOT_LOST ? DWARF_FP_UNKNOWN : s.slot ? DWARF_FP_SAVED : 0;
	int32_t fp = flags == DWARF_FP_SAVED ? -8 * ((int32_t)s.slot + 1) : 0;

	if (s.base && (s.base == s.slot + 1 || s.depth == DEPTH_LOST)) {
		if (flags != DWARF_FP_UNKNOWN)
			return DWARF_RULE_FP(s.base, s.slot);
		return dwt_special(dwt, DWARF_REG | 6 << 8 | flags << 16, 8 * (int32_t)s.base, 0,
				   0);
	}
	if (flags != DWARF_FP_UNKNOWN && s.depth < DWARF_SP_MAX_OFFSET)
		return DWARF_RULE_SP(s.depth + 1, s.slot);
	return dwt_special(dwt, DWARF_REG | 7 << 8 | flags << 16, 8 * (int32_t)(s.depth + 1), fp,
			   0);
}

static int emit_rows(struct dwt *dwt, const struct walk *w, struct dwt_rows *ret)
{
	uint32_t last = DWARF_RULE_NONE;
	int err = 0;

	for (size_t i = 0; !err && i < w->code->len; i++) {
		uint32_t v = w->bytes[i], rule;

		if (v & INSIDE && !(v & (STATE | COVERED)))
			continue;
		rule = v & STATE && !(v & (DOUBT | COVERED)) ? rule_of(dwt, v) : DWARF_RULE_NONE;
		if (rule != last)
			err = dwt_rows_add(ret, w->code->vaddr + i, rule);
		last = rule;
	}
	if (!err && last != DWARF_RULE_NONE)
		err = dwt_rows_add(ret, w->code->vaddr + w->code->len, DWARF_RULE_NONE);
	return err;
}

/* ---- what is there before ---- */

static void cover(struct walk *w)
{
	const struct dwt_rows *rows = w->code->known;

	for (size_t i = 0; i < rows->n; i++) {
		uint64_t lo = DWT_VADDR(rows->p[i]), end = w->code->vaddr + w->code->len;
		uint64_t hi = i + 1 < rows->n ? DWT_VADDR(rows->p[i + 1]) : lo;

		if (DWT_RULE(rows->p[i]) == DWARF_RULE_NONE)
			continue;
		if (lo < w->code->vaddr)
			lo = w->code->vaddr;
		for (; lo < hi && lo < end; lo++)
			w->bytes[lo - w->code->vaddr] = COVERED;
	}
}

static void mark(struct walk *w, const struct dwt_entries *e, uint32_t bits)
{
	size_t at;

	for (size_t i = 0; i < e->n; i++)
		if (in_text(w, e->p[i], &at))
			w->bytes[at] |= bits;
}

/* Where calls and pointers seem to lead, by reading straight on: a hint of where functions begin.
 */
static void mark_targets(struct walk *w)
{
	for (size_t at = 0; at < w->code->len;) {
		struct dwt_insn in;
		int64_t to = 0;
		size_t there;

		if (w->bytes[at] & COVERED ||
		    dwt_insn(w->code->bytes + at, w->code->len - at, &in)) {
			at++;
			continue;
		}
		if (in.effect == DWT_CALL && in.has_target)
			to = in.target;
		else if (in.address)
			to = in.address;
		if (to && to != in.len && in_text(w, w->code->vaddr + at + (uint64_t)to, &there))
			w->bytes[there] |= TARGET;
		at += in.len;
	}
}

/* What is called from what is known to be code comes before what may be code. */
static void follow_all(struct walk *w)
{
	size_t i = 0, k = 0;

	for (size_t n = 0; n < w->code->len; n++)
		w->bytes[n] &= COVERED | HINTS;
	w->found = 0;
	while (!w->err && (i < w->sure->n || k < w->maybe->n)) {
		if (i < w->sure->n)
			follow_function(w, w->sure->p[i++], 1);
		else
			follow_function(w, w->maybe->p[k++], 0);
	}
}

int dwt_code_read(struct dwt *dwt, const struct dwt_code *code, struct dwt_entries *sure,
		  struct dwt_entries *maybe, struct dwt_rows *ret)
{
	struct walk w = {.code = code, .sure = sure, .maybe = maybe, .found = 1};
	int err = -ENOMEM;

	w.bytes = calloc(code->len ? code->len : 1, sizeof(*w.bytes));
	if (!w.bytes)
		goto out;
	cover(&w);
	mark_targets(&w);
	mark(&w, sure, TARGET | SURE);
	mark(&w, maybe, TARGET);
	/* Each pass knows more functions that don't return, behind whose calls others begin. */
	for (int pass = 0; pass < MAX_PASSES && w.found && !w.err; pass++)
		follow_all(&w);
	err = w.err ? w.err : emit_rows(dwt, &w, ret);
out:
	free(w.bytes);
	free(w.pending);
	free(w.seen);
	return err;
}
