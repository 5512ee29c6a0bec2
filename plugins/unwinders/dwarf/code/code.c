/* SPDX-License-Identifier: Apache-2.0 */
#include "code.h"

#include <errno.h>
#include <fusee/bytes.h>
#include <stdlib.h>
#include <string.h>

#include "back.h"
#include "calls.h"
#include "state.h"
#include "text.h"
#include <fusee/insn.h>

#define MAX_PASSES 4
#define MAX_TABLES (1u << 20) /* entries of jump tables that are followed */
#define MAX_PATH 24           /* instructions before a jump that may say where it leads */
#define MAX_BEHIND 4096       /* instructions that are followed behind a call that may not return */

struct branch {
	size_t at;
	struct code_state state;
	int again;
};

struct branches {
	struct branch *p;
	size_t n;
	uint64_t cap;
};

/* What the paths of one function showed. */
struct outcome {
	unsigned int ends;     /* exits of this function that are consistent */
	unsigned int proved;   /* of these, returns, and jumps to where functions begin */
	unsigned int tails;    /* calls that nothing follows */
	unsigned int meetings; /* of paths behind a call with those before it */
	unsigned int aligned;  /* calls where sp is a multiple of 16, as the ABI requires */
	unsigned int unaligned;
	int doubt; /* a path contradicts itself */
	int jumps; /* jumps to unknown addresses */
	int lost;  /* a path that could not be followed to its end */
};

struct followed {
	size_t at;
	uint32_t before; /* the flags of its first byte */
	uint32_t len;
};

struct tracer {
	const struct code *code;
	uint32_t *bytes;         /* flags and state of each byte of text */
	struct branches pending; /* branches still to be followed */
	struct branches behind;  /* addresses behind calls that may not return */
	struct branches met;     /* where paths came to code followed from another function */
	struct followed *seen;   /* instructions of this function */
	size_t n_seen;
	uint64_t cap_seen;
	struct code_switches switches;
	struct code_states states;
	size_t table_budget; /* entries of jump tables that this pass may follow */
	size_t undone;       /* instructions that this pass followed on trial, and forgot */
	struct code_entries *sure, *maybe;
	struct outcome now; /* of this function */
	size_t limit;       /* of n_seen, for the path behind a call; SIZE_MAX: none */
	int trial;          /* what is followed is undone if it leads to doubt */
	int again;          /* the path repeats this function's code, with another state */
	int found;          /* functions that don't return, new in this pass */
	int err;
};

/* ---- following a function ---- */

static int in_text(const struct tracer *t, uint64_t vaddr, size_t *at)
{
	return code_text_has(t->code, vaddr, at);
}

static void later(struct tracer *t, struct branches *to, size_t at, const struct code_state *s)
{
	if (!fusee_grow(&to->p, &to->cap, to->n + 1, sizeof(*to->p))) {
		t->err = -ENOMEM;
		return;
	}
	to->p[to->n++] = (struct branch){at, *s, t->again};
}

static void remember(struct tracer *t, size_t at, unsigned int len, const struct code_state *s)
{
	if (!fusee_grow(&t->seen, &t->cap_seen, t->n_seen + 1, sizeof(*t->seen))) {
		t->err = -ENOMEM;
		return;
	}
	t->again = !!(t->bytes[at] & OWN);
	t->seen[t->n_seen++] = (struct followed){at, t->bytes[at], len};
	t->bytes[at] = (t->bytes[at] & HINTS) | STATE | code_state_pack(&t->states, s) |
		       (t->limit == SIZE_MAX ? OWN : 0);
	for (unsigned int i = 1; i < len; i++)
		t->bytes[at + i] |= INSIDE;
}

/* How many bytes of an instruction that is forgotten are not inside of a kept one: the same with
 * its lock prefix, or without it. */
static unsigned int own_bytes(const struct tracer *t, const struct followed *f)
{
	if (f->before & (STATE | INSIDE))
		return 1;
	return f->len > 1 && t->bytes[f->at + 1] & STATE ? 2 : f->len;
}

/* Forgets what was followed since `first`. */
static void forget(struct tracer *t, size_t first)
{
	t->undone += t->n_seen - first;
	while (t->n_seen > first) {
		const struct followed *f = &t->seen[--t->n_seen];

		t->bytes[f->at] = f->before;
		for (unsigned int i = 1; i < own_bytes(t, f); i++)
			t->bytes[f->at + i] &= ~INSIDE;
	}
}

/* Limits what failed trials may cost, so that time grows with the text, not with its square. Code
 * that is not tried has no rows. */
static int spent(const struct tracer *t)
{
	return t->undone > 16 * t->code->len + (1u << 20);
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

/* Adds where the table leads to the branches that are pending. 0; -1: it leads out of the text. */
static int branch_by(struct tracer *t, const struct code_switch *table, const struct code_state *s)
{
	size_t first = t->pending.n, at;
	uint64_t to;

	for (uint32_t i = 0; i < table->entries; i++) {
		if (code_switch_entry(table, &t->code->data, i, &to) || !in_text(t, to, &at) ||
		    t->bytes[at] & COVERED) {
			t->pending.n = first;
			return -1;
		}
		if (!code_text_is_padding(t->code, t->bytes, at))
			later(t, &t->pending, at, s);
	}
	return 0;
}

/* A jump to where a table says. 1: all its targets are known. */
static int switches(struct tracer *t, size_t at, const struct code_state *s)
{
	const struct code_bytes text = {t->code->bytes, t->code->len, t->code->vaddr};
	struct code_switch table;
	size_t path[MAX_PATH], n = 0;

	for (size_t i = t->n_seen; n < MAX_PATH && i-- > 0;) {
		const struct followed *f = &t->seen[i];

		if (n && f->at + f->len != path[MAX_PATH - n])
			break;
		path[MAX_PATH - ++n] = f->at;
	}
	if (code_switch_find(&text, path + MAX_PATH - n, n, &table) ||
	    table.entries > t->table_budget || branch_by(t, &table, s))
		return 0;
	t->table_budget -= table.entries;
	if (code_switches_add(&t->switches, at, &table))
		t->err = -ENOMEM;
	return 1;
}

/* The path ends. What was followed before proves nothing about a trial that has come to it with
 * another state. */
static void end(struct tracer *t, int proves)
{
	t->now.ends++;
	t->now.proved += proves && !t->again;
}

/* Does the function never return, by its name or its instructions? */
static int is_noreturn(const struct tracer *t, uint64_t vaddr)
{
	size_t at;

	return in_text(t, vaddr, &at)
		       ? t->bytes[at] & NORETURN || code_text_moves_return(t->code, vaddr)
		       : code_entries_has(&t->code->noreturn, vaddr);
}

static void jump(struct tracer *t, size_t at, const struct insn *in, const struct code_state *s)
{
	uint64_t target = t->code->vaddr + at + (uint64_t)in->target;
	size_t to;

	if (!in->has_target && in->effect == INSN_JUMP && switches(t, at, s))
		return;
	if (!in->has_target) { /* through a pointer: a tail call if nothing is pushed */
		t->now.ends += (unsigned int)code_state_is_start(s);
		t->now.jumps++;
		return;
	}
	if (code_state_is_start(s) && is_noreturn(t, target))
		return;
	if (!in_text(t, target, &to) && !code_text_is_function(t->code, target)) {
		t->now.ends++;
		return;
	}
	if (!in_text(t, target, &to) || t->bytes[to] & COVERED) {
		end(t, code_state_is_start(s));
		t->now.doubt |= !code_state_is_start(s) && in->effect == INSN_JUMP;
		return;
	}
	if (t->bytes[to] & SURE && code_state_is_start(s)) /* a tail call */
		end(t, 1);
	else if (!code_text_is_padding(t->code, t->bytes, to))
		later(t, &t->pending, to, s);
}

/* At a function's start sp is 8 behind a multiple of 16; at each call it must be one. */
static void note_alignment(struct outcome *o, const struct code_state *s)
{
	if (s->depth == CODE_DEPTH_LOST)
		return;
	if (s->depth & 1 && !s->odd)
		o->aligned++;
	else
		o->unaligned++;
}

/* 1: the call returns. */
static int call(struct tracer *t, size_t at, const struct insn *in, const struct code_state *s)
{
	if (in->has_target && in->target == in->len) { /* call and pop, to read pc */
		t->now.lost = 1;
		return 0;
	}
	note_alignment(&t->now, s);
	if ((in->has_target && is_noreturn(t, t->code->vaddr + at + (uint64_t)in->target)) ||
	    (in->slot &&
	     code_entries_has(&t->code->noreturn, t->code->vaddr + at + (uint64_t)in->slot)))
		return 0;
	switch (code_text_behind(t->code, t->bytes, at + in->len)) {
	case CODE_FOLLOWS:
		return 1;
	case PADDING_FOLLOWS:
		later(t, &t->behind, at + in->len, s);
		return 0;
	default:
		t->now.tails++;
		return 0;
	}
}

static void spread_doubt(struct tracer *t, size_t at);

/* Was an instruction followed that begins inside these bytes, other than behind a lock prefix? */
static int overlaps(struct tracer *t, size_t at, unsigned int len)
{
	for (unsigned int i = t->code->bytes[at] == 0xf0 ? 2 : 1; i < len; i++) {
		if (!(t->bytes[at + i] & (STATE | SURE)))
			continue;
		if (t->bytes[at + i] & STATE && !t->trial)
			spread_doubt(t, at + i);
		return 1;
	}
	return 0;
}

/* Follows one instruction. 1: execution continues at *next. */
static int follow(struct tracer *t, size_t at, struct code_state *s, size_t *next)
{
	struct insn in;

	if (code_decode(t->code, at, &in)) {
		t->now.lost = 1;
		return 0;
	}
	if (overlaps(t, at, in.len)) {
		t->now.doubt = 1;
		return 0;
	}
	if (in.effect == INSN_CALL) /* the callee may overwrite it, and this row holds in it, too */
		code_state_lose_red_zone(s);
	remember(t, at, in.len, s);
	*next = at + in.len;
	if (code_apply(t->code, &t->states, at, &in, s)) {
		t->now.lost = 1;
		return 0;
	}
	switch (in.effect) {
	case INSN_RETURN:
		end(t, 1);
		t->now.doubt |= !code_state_is_end(s);
		return 0;
	case INSN_ODD_RETURN: /* to where, is not known */
		t->now.lost = 1;
		return 0;
	case INSN_JUMP:
		jump(t, at, &in, s);
		return 0;
	case INSN_BRANCH:
		jump(t, at, &in, s);
		return 1;
	case INSN_CALL:
		return call(t, at, &in, s);
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
	size_t first = t->pending.n;

	later(t, &t->pending, at, &none);
	while (t->pending.n > first && !t->err) {
		const struct code_switch *table;
		struct insn in;
		size_t to;

		at = t->pending.p[--t->pending.n].at;
		while (at < t->code->len && (t->bytes[at] & (STATE | DOUBT)) == STATE &&
		       !code_decode(t->code, at, &in)) {
			t->bytes[at] |= DOUBT;
			if ((in.effect == INSN_JUMP || in.effect == INSN_BRANCH) && in.has_target &&
			    in_text(t, t->code->vaddr + at + (uint64_t)in.target, &to))
				later(t, &t->pending, to, &none);
			table = in.effect == INSN_JUMP ? code_switches_at(&t->switches, at) : NULL;
			if (table)
				branch_by(t, table, &none);
			if (code_text_ends(&in))
				break;
			at += in.len;
		}
	}
}

/* An address that was reached before. 1: follow the path again, with what both states agree on. */
static int merge(struct tracer *t, size_t at, struct code_state *s)
{
	struct code_state old = code_state_unpack(&t->states, t->bytes[at]);
	int same = code_state_is_same(&t->states, s, &old);
	int copies = code_state_has_copies(s) || code_state_has_copies(&old);

	if (t->bytes[at] & DOUBT || code_state_join(s, &old)) {
		if (copies) /* no contradiction: they are lost */
			t->now.lost = 1;
		else
			t->now.doubt = 1;
		if (!t->trial)
			spread_doubt(t, at);
		return 0;
	}
	if (!(t->bytes[at] & OWN)) {
		later(t, &t->met, at, &old);
		/* that code's return proves as much as this function's own */
		t->now.proved += t->limit == SIZE_MAX && same && !t->again;
	} else {
		t->now.meetings += t->limit != SIZE_MAX && same && !t->again;
	}
	return code_state_pack(&t->states, s) != code_state_pack(&t->states, &old);
}

/* Has the trial failed, so that following it further is useless? */
static int failed(const struct tracer *t)
{
	return t->err || (t->trial && (t->now.doubt || t->n_seen > t->limit));
}

/* Is this an instruction that is followed at its lock prefix, too? The C library jumps over the
 * prefix in programs with one thread; there the same instruction begins one byte later. */
static int is_behind_lock(const struct tracer *t, size_t at)
{
	return at && t->code->bytes[at - 1] == 0xf0 && t->bytes[at - 1] & STATE;
}

static void follow_path(struct tracer *t, size_t at, struct code_state s)
{
	while (!failed(t) && at < t->code->len && !(t->bytes[at] & COVERED)) {
		if (t->bytes[at] & DOUBT || (t->bytes[at] & INSIDE && !is_behind_lock(t, at))) {
			t->now.doubt = 1; /* a jump into the middle of an instruction */
			return;
		}
		if (t->bytes[at] & SURE && t->n_seen && !code_state_is_start(&s)) {
			t->now.doubt = 1; /* a jump into another function, with words pushed */
			return;
		}
		if (t->bytes[at] & STATE && !merge(t, at, &s))
			return;
		if (!follow(t, at, &s, &at))
			return;
	}
	t->now.ends += !failed(t); /* into code of another source, or off the text */
}

static void follow_paths(struct tracer *t, const struct branch *from)
{
	later(t, &t->pending, from->at, &from->state);
	while (t->pending.n && !failed(t)) {
		struct branch p = t->pending.p[--t->pending.n];

		t->again = p.again;
		follow_path(t, p.at, p.state);
	}
	t->pending.n = 0;
}

/* Padding follows a call. That it returns is proved if the path behind it comes to a return with
 * nothing of this function's pushed, or to code of this function with the state that is known
 * there, and nowhere to a contradiction: in the next function, what this function has
 * pushed would be one. */
static void follow_behind(struct tracer *t, const struct branch *call)
{
	size_t seen = t->n_seen, behind = t->behind.n, met = t->met.n;
	struct outcome before = t->now;
	int trial = t->trial;

	if (spent(t)) {
		t->now.tails++;
		return;
	}
	t->trial = 1;
	t->limit = seen + MAX_BEHIND;
	follow_paths(t, call);
	t->trial = trial;
	if (!t->now.doubt && t->n_seen <= t->limit &&
	    (t->now.meetings > before.meetings ||
	     (t->now.proved > before.proved && !code_state_is_start(&call->state)))) {
		t->limit = SIZE_MAX;
		for (size_t i = seen; i < t->n_seen; i++)
			t->bytes[t->seen[i].at] |= OWN;
		return;
	}
	forget(t, seen);
	t->limit = SIZE_MAX;
	t->behind.n = behind;
	t->met.n = met;
	t->now = before;
	t->now.tails++;
}

/* Where only a pointer says that a function begins, a path to a return proves it: from the middle
 * of a function it would pop more than it has pushed. If it never returns, its calls do: from the
 * middle of a function that calls, sp would be 8 off a multiple of 16 at each. */
static int is_function(const struct outcome *o)
{
	return !o->doubt && !o->lost &&
	       (o->proved || (!o->ends && !o->jumps && o->aligned && !o->unaligned));
}

/* Notes what this function's instructions call, and what they point to, as functions. */
static void note_all(struct tracer *t)
{
	for (size_t i = 0; i < t->n_seen && !t->err; i++) {
		size_t at = t->seen[i].at;
		struct insn in;

		if (code_decode(t->code, at, &in))
			continue;
		if (in.address)
			note(t, at, in.address, t->maybe);
		if (in.effect == INSN_CALL && in.has_target && in.target != in.len)
			note(t, at, in.target, t->sure);
	}
}

/* Does no path leave this function? Paths that go on in another function's code may return
 * there. */
static int never_returns(const struct tracer *t)
{
	const struct outcome *o = &t->now;

	for (size_t i = 0; i < t->met.n; i++)
		if (!(t->bytes[t->met.p[i].at] & OWN))
			return 0;
	return !o->doubt && !o->ends && !o->tails && !o->jumps && !o->lost;
}

static void follow_function(struct tracer *t, uint64_t vaddr, int sure)
{
	struct branch start = {0};
	const struct outcome *o = &t->now;

	if (!in_text(t, vaddr, &start.at) ||
	    (!sure && (spent(t) || !code_text_may_begin(t->code, start.at))) ||
	    t->bytes[start.at] & (COVERED | STATE | INSIDE | DOUBT))
		return;
	t->n_seen = t->behind.n = t->met.n = 0;
	t->trial = !sure;
	memset(&t->now, 0, sizeof(t->now));
	follow_paths(t, &start);
	for (size_t i = 0; i < t->behind.n && !o->doubt && !t->err; i++) {
		struct branch call = t->behind.p[i];

		follow_behind(t, &call);
	}
	if (!sure && !is_function(o)) {
		forget(t, 0);
		return;
	}
	note_all(t);
	if (sure && never_returns(t) && !(t->bytes[start.at] & NORETURN)) {
		t->bytes[start.at] |= NORETURN;
		t->found = 1;
	}
	for (size_t i = 0; i < t->n_seen; i++) {
		t->bytes[t->seen[i].at] &= ~OWN;
		t->bytes[t->seen[i].at] |= o->doubt ? DOUBT : 0;
	}
}

/* Follows the sure functions first, then what may be functions. */
static void follow_all(struct tracer *t)
{
	size_t i = 0, k = 0;

	code_switches_fini(&t->switches);
	t->table_budget = MAX_TABLES;
	t->undone = 0;
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

/* Finds code that no path leads to, backwards from its exits; its callees are functions, too. */
static void find_others(struct tracer *t)
{
	for (int pass = 0; pass < MAX_PASSES && !t->err; pass++) {
		size_t i = t->sure->n, n = i;

		t->err = code_back(t->code, &t->states, t->bytes, t->sure);
		while (!t->err && i < t->sure->n)
			follow_function(t, t->sure->p[i++], 1);
		if (n == t->sure->n)
			break;
	}
}

int code_read(struct table_build *build, const struct code *text, struct code_entries *sure,
	      struct code_entries *maybe, struct rows *ret)
{
	struct code copy = *text, *code = &copy;
	struct tracer w = {
		.code = code, .sure = sure, .maybe = maybe, .limit = SIZE_MAX, .found = 1};
	int err = -ENOMEM;

	code->plain = calloc(code->len ? code->len : 1, sizeof(*code->plain));
	w.bytes = calloc(code->len ? code->len : 1, sizeof(*w.bytes));
	if (!w.bytes || !code->plain)
		goto out;
	code_text_cover(code, w.bytes);
	code_text_mark_targets(code, w.bytes);
	code_text_mark(code, w.bytes, sure, TARGET | SURE);
	code_text_mark(code, w.bytes, maybe, TARGET);
	code_text_mark(code, w.bytes, &code->parts, TARGET);
	code_text_mark(code, w.bytes, &code->noreturn, NORETURN);
	/* Each pass knows more functions that do not return; behind calls of them other functions
	 * begin. */
	for (int pass = 0; pass < MAX_PASSES && w.found && !w.err; pass++)
		follow_all(&w);
	if (!w.err && !code->paths_only)
		find_others(&w);
	err = w.err ? w.err : code_text_rows(build, code, &w.states, w.bytes, ret);
out:
	free(code->plain);
	free(w.bytes);
	free(w.pending.p);
	free(w.behind.p);
	free(w.met.p);
	free(w.seen);
	code_switches_fini(&w.switches);
	code_states_fini(&w.states);
	return err;
}
