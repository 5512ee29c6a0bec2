/* SPDX-License-Identifier: Apache-2.0 */
#include "back.h"

#include <errno.h>
#include <fusee/bytes.h>
#include <stdlib.h>

#include "calls.h"
#include "labels.h"
#include "state.h"
#include <fusee/insn.h>

#define MAX_ROUNDS 16            /* each goes backwards through all, and forwards */
#define MAX_TABLES 2             /* times that tables are looked through */
#define MAX_PATH 24              /* instructions before a jump that may say which table it reads */
#define MAX_ENTRIES 64           /* of a table without a bound that are looked at */
#define MAX_DISTANCE (64u << 10) /* behind a jump, of what it leads to */
#define MAX_PLACES (1u << 24)    /* their number stands where a state has 24 bits */
#define SWEPT OWN                /* the byte's low bits are the number of a place */
#define FREE_MASK (COVERED | STATE | INSIDE | DOUBT)
#define INDEX 0xffffffu

enum { UNKNOWN, PROVED, REFUTED };

/* An instruction that was decoded in sequence. */
struct place {
	uint32_t at;
	uint32_t packed; /* its state, where PROVED */
	uint8_t what;
	uint8_t len;
	uint8_t plain; /* it changes neither sp nor rbp nor copies of sp, and execution goes on */
};

struct back {
	const struct code *code;
	struct code_states *states;
	uint32_t *bytes;
	struct place *places;
	size_t n;
	uint64_t cap;
	struct code_labels labels;
	struct code_entries suspects; /* functions that may never return */
	int changed;
};

/* ---- instructions in sequence ---- */

static int add_place(struct back *b, size_t at, const struct insn *in)
{
	if (!fusee_grow(&b->places, &b->cap, b->n + 1, sizeof(*b->places)))
		return -ENOMEM;
	b->bytes[at] |= SWEPT | (uint32_t)b->n;
	b->places[b->n++] = (struct place){
		.at = (uint32_t)at,
		.len = in->len,
		.plain = in->effect == INSN_NOTHING && in->copy == INSN_COPY_NONE,
	};
	return 0;
}

/* How many of the instruction's `len` bytes belong to no other instruction. Where nothing leads to
 * it, it may be data, and then any target among them is another's. */
static unsigned int is_free(const struct back *b, size_t at, unsigned int len, int reached)
{
	unsigned int i = 1;

	while (i < len && !(b->bytes[at + i] & (FREE_MASK | SURE)) &&
	       !(b->bytes[at + i] & TARGET && (!reached || code_text_may_begin(b->code, at + i))))
		i++;
	return i;
}

/* Does anything lead here? `before`: it does to the instruction before, which goes on here. */
static int is_reached(const struct back *b, size_t at, int before)
{
	return before || b->bytes[at] & (TARGET | SURE) || (b->code->vaddr + at) % 16 == 0;
}

/* Where decoding goes on behind bytes that are no instruction: at the next multiple of 16, where
 * functions begin, or the next target of a jump. */
static size_t resume(const struct back *b, size_t at)
{
	do
		at++;
	while (at < b->code->len && (b->code->vaddr + at) % 16 &&
	       !(b->bytes[at] & (TARGET | SURE)));
	return at;
}

static int sweep(struct back *b)
{
	const uint8_t *p = b->code->bytes;
	size_t at = 0, len = b->code->len;
	int err = 0, reached = 0;

	while (at < len && b->n < MAX_PLACES && !err) {
		struct insn in;

		if (b->bytes[at] & FREE_MASK) {
			reached = 1;
			at++;
			continue;
		}
		reached = is_reached(b, at, reached);
		if ((len - at > 1 && !p[at] && !p[at + 1]) || code_decode(b->code, at, &in) ||
		    is_free(b, at, in.len, reached) < in.len) {
			at = resume(b, at);
			reached = 0;
			continue;
		}
		err = add_place(b, at, &in);
		at += in.len;
		/* where an unknown jump leads may follow it */
		reached = in.effect == INSN_JUMP ? !in.has_target : reached && !code_text_ends(&in);
	}
	return err;
}

/* ---- what is known of a place ---- */

static int state_at(const struct back *b, size_t at, struct code_state *s)
{
	uint32_t v = at < b->code->len ? b->bytes[at] : 0;

	if (v & SWEPT) {
		const struct place *p = &b->places[v & INDEX];

		*s = code_state_unpack(b->states, p->packed);
		return p->what;
	}
	*s = code_state_unpack(b->states, v);
	return (v & (STATE | DOUBT)) == STATE ? PROVED : UNKNOWN;
}

/* The state that a direct jump needs, by its target. */
static int state_behind_jump(const struct back *b, size_t at, const struct insn *in,
			     struct code_state *s)
{
	uint64_t vaddr = b->code->vaddr + at + (uint64_t)in->target;
	size_t to;

	if (!code_text_has(b->code, vaddr, &to)) { /* a tail call, of another file's function */
		*s = (struct code_state){0};
		return !code_entries_has(&b->code->noreturn, vaddr) &&
				       code_text_is_function(b->code, vaddr)
			       ? PROVED
			       : UNKNOWN;
	}
	if (b->bytes[to] & SURE && !(b->bytes[to] & (COVERED | STATE))) {
		*s = (struct code_state){0};
		return b->bytes[to] & NORETURN ? UNKNOWN : PROVED;
	}
	return code_text_is_padding(b->code, b->bytes, to) ? UNKNOWN : state_at(b, to, s);
}

/* Does the callee return, by what is known of it and by the bytes behind the call? */
static int comes_back(const struct back *b, size_t at, const struct insn *in)
{
	uint64_t callee = code_callee(b->code, at, in);
	size_t to;

	if ((in->has_target && !callee) || code_text_moves_return(b->code, callee))
		return 0;
	if (callee && (code_entries_has(&b->suspects, callee) ||
		       code_entries_has(&b->code->noreturn, callee) ||
		       (code_text_has(b->code, callee, &to) && b->bytes[to] & NORETURN)))
		return 0;
	return code_text_behind(b->code, b->bytes, at + in->len) == CODE_FOLLOWS;
}

/* ---- jumps by tables without a bound ---- */

/* The table that the jump reads, by the instructions in sequence before it. 0; -1: not known. */
static int find_table(const struct back *b, const struct place *jump, struct code_switch *table,
		      uint64_t *base)
{
	const struct code_bytes text = {b->code->bytes, b->code->len, b->code->vaddr};
	size_t path[MAX_PATH], n = 0;

	for (const struct place *p = jump; n < MAX_PATH && p >= b->places; p--) {
		if (n && p->at + p->len != path[MAX_PATH - n])
			break;
		path[MAX_PATH - ++n] = p->at;
	}
	return code_switch_find_unbounded(&text, path + MAX_PATH - n, n, table, base);
}

/* Where entry i leads: behind the jump, and to where an instruction was decoded. 0; -1: not there.
 */
static int find_entry(const struct back *b, const struct code_switch *table, uint64_t base,
		      uint32_t i, size_t behind, size_t *at)
{
	uint64_t to;

	if (code_switch_entry(table, &b->code->data, i, &to) ||
	    !code_text_has(b->code, to - table->table + base, at) || *at < behind ||
	    *at - behind > MAX_DISTANCE)
		return -1;
	return b->bytes[*at] & (SWEPT | STATE) && !(b->bytes[*at] & SURE) ? 0 : -1;
}

/* The state at a jump is that of the places where it leads. That the table is the jump's is proved
 * by an entry that leads right behind it, where nothing else does, and by equal states of all
 * entries that are known. */
static int state_by_table(const struct back *b, const struct place *jump, struct code_state *s)
{
	size_t behind = jump->at + jump->len, at;
	struct code_switch table;
	int near = 0, known = 0;
	uint64_t base;

	if (find_table(b, jump, &table, &base))
		return UNKNOWN;
	for (uint32_t i = 0; i < MAX_ENTRIES; i++) {
		struct code_state there;

		if (find_entry(b, &table, base, i, behind, &at))
			continue;
		near |= at == behind;
		if (state_at(b, at, &there) != PROVED)
			continue;
		if (!known++)
			*s = there;
		else if (code_state_both(s, &there))
			return UNKNOWN;
	}
	return near && known ? PROVED : UNKNOWN;
}

/* ---- backwards ---- */

/* The state at the next instruction; unknown if that begins another function. */
static int falls_to(const struct back *b, size_t next, struct code_state *s)
{
	return next < b->code->len && b->bytes[next] & SURE ? UNKNOWN : state_at(b, next, s);
}

/* Does the instruction before push a word? Then a return leads there, and is no way out. */
static int is_behind_push(const struct back *b, const struct place *p)
{
	struct insn in;

	return p > b->places && p[-1].at + p[-1].len == p->at &&
	       !code_decode(b->code, p[-1].at, &in) &&
	       (in.effect == INSN_PUSH || in.effect == INSN_PUSH_FP);
}

/* The state before an instruction, by the way on from behind it. */
static int state_behind(const struct back *b, const struct place *p, const struct insn *in,
			struct code_state *s)
{
	size_t at = p->at, next = at + in->len;

	switch (in->effect) {
	case INSN_RETURN:
		*s = (struct code_state){0};
		return is_behind_push(b, p) ? UNKNOWN : PROVED;
	case INSN_JUMP:
		if (in->has_target)
			return state_behind_jump(b, at, in, s);
		*s = (struct code_state){0};
		return in->slot ? PROVED : state_by_table(b, p, s);
	case INSN_HALT:
	case INSN_ODD_RETURN:
		return UNKNOWN;
	case INSN_CALL:
		/* if it does not return, another function may follow */
		return comes_back(b, at, in) && state_at(b, next, s) == PROVED ? PROVED : UNKNOWN;
	default:
		return falls_to(b, next, s);
	}
}

static int before(const struct back *b, const struct place *p, struct code_state *s)
{
	struct code_state other;
	struct insn in;
	int what, there;

	if (p->plain)
		return falls_to(b, p->at + p->len, s);
	if (code_decode(b->code, p->at, &in))
		return UNKNOWN;
	what = state_behind(b, p, &in, s);
	if (what == PROVED)
		what = code_state_before(s, &in) ? UNKNOWN : PROVED;
	if (in.effect != INSN_BRANCH || !in.has_target)
		return what;
	there = state_behind_jump(b, p->at, &in, &other);
	if (what == REFUTED || there == REFUTED)
		return REFUTED;
	if (there == UNKNOWN)
		return what;
	if (what == UNKNOWN)
		*s = other;
	else if (code_state_both(s, &other))
		return REFUTED;
	return PROVED;
}

static void learn(struct back *b, struct place *p, int what, const struct code_state *s)
{
	struct code_state now = *s, old = code_state_unpack(b->states, p->packed);

	if (what == UNKNOWN || p->what == REFUTED)
		return;
	if (what == PROVED && p->what == PROVED && code_state_both(&now, &old))
		what = REFUTED;
	if (what == p->what && (what == REFUTED || code_state_pack(b->states, &now) == p->packed))
		return;
	p->what = (uint8_t)what;
	p->packed = what == PROVED ? code_state_pack(b->states, &now) : 0;
	b->changed = 1;
}

static void go_back(struct back *b)
{
	for (size_t i = b->n; i-- > 0;) {
		struct code_state s = {0};

		learn(b, &b->places[i], before(b, &b->places[i], &s), &s);
	}
}

/* ---- forwards, from what is proved ---- */

static void learn_at(struct back *b, size_t at, int what, const struct code_state *s)
{
	if (at < b->code->len && b->bytes[at] & SWEPT && !(b->bytes[at] & SURE))
		learn(b, &b->places[b->bytes[at] & INDEX], what, s);
}

/* Not if the code behind the call contradicts the state, or is at a multiple of 16: then it may be
 * another function. */
static void go_on_behind_call(struct back *b, const struct place *p, const struct insn *in,
			      const struct code_state *s)
{
	struct code_state there, both = *s;
	size_t next = p->at + p->len;

	if (p->what != PROVED || (b->code->vaddr + next) % 16 == 0 || !comes_back(b, p->at, in) ||
	    (state_at(b, next, &there) == PROVED && code_state_both(&both, &there)))
		return;
	learn_at(b, next, PROVED, s);
}

static void go_on_from(struct back *b, const struct place *p)
{
	struct code_state s = code_state_unpack(b->states, p->packed);
	static const struct code_state start;
	struct insn in;
	size_t to;

	if (p->plain && !code_state_has_copies(&s)) {
		learn_at(b, p->at + p->len, p->what, &s);
		return;
	}
	if (code_decode(b->code, p->at, &in))
		return;
	if (p->what == PROVED && code_apply(b->code, b->states, p->at, &in, &s))
		return;
	if (in.has_target &&
	    code_text_has(b->code, b->code->vaddr + p->at + (uint64_t)in.target, &to)) {
		if (in.effect == INSN_CALL && in.target != in.len && p->what == PROVED)
			learn_at(b, to, PROVED, &start);
		else if (in.effect != INSN_CALL && !code_text_is_padding(b->code, b->bytes, to))
			learn_at(b, to, p->what, &s);
	}
	if (in.effect == INSN_CALL)
		go_on_behind_call(b, p, &in, &s);
	else if (!code_text_ends(&in))
		learn_at(b, p->at + in.len, p->what, &s);
}

/* Passes on what is known of each place; places that a refuted place leads to become doubtful. */
static void go_on(struct back *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->places[i].what != UNKNOWN)
			go_on_from(b, &b->places[i]);
}

/* ---- places that tables name ---- */

/* May a table's entry lead here? 0: no; 1: nothing contradicts; 2: the state here is proved and
 * fits. */
static int is_label(void *ctx, size_t at)
{
	const struct back *b = ctx;
	struct code_state s, known = b->labels.state;

	if (b->bytes[at] & SURE)
		return 0;
	if (b->bytes[at] & SWEPT && b->places[b->bytes[at] & INDEX].what == UNKNOWN)
		return 1;
	return state_at(b, at, &s) == PROVED && !code_state_both(&known, &s) ? 2 : 0;
}

static void learn_label(void *ctx, size_t at)
{
	struct back *b = ctx;

	learn_at(b, at, PROVED, &b->labels.state);
}

/* Without symbols also where nothing is pushed and the code before ends. */
static int begins_function(const struct back *b, size_t at)
{
	struct code_state s;

	return b->bytes[at] & SURE || (!b->code->symbols && state_at(b, at, &s) == PROVED &&
				       code_state_is_start(&s) && code_text_may_begin(b->code, at));
}

/* Searches tables function by function; a function ends where the next begins. */
static int go_by_tables(struct back *b)
{
	size_t lo = 0;
	int err = 0;

	code_labels_reset(&b->labels);
	for (size_t at = 0; at <= b->code->len && !err; at++) {
		struct code_state s;

		if (at == b->code->len || begins_function(b, at)) {
			code_labels_find(&b->labels, b->code, lo, at, is_label, learn_label, b);
			code_labels_reset(&b->labels);
			lo = at;
		}
		if (at == b->code->len || !(b->bytes[at] & (STATE | SWEPT)))
			continue;
		err = code_labels_read(&b->labels, b->code, at,
				       state_at(b, at, &s) == PROVED ? &s : NULL);
	}
	return err;
}

/* ---- what is found ---- */

static int note_call(const struct back *b, const struct place *p, const struct insn *in,
		     struct code_entries *calls)
{
	uint64_t vaddr = b->code->vaddr + p->at + (uint64_t)in->target;
	size_t to;

	if (in->effect != INSN_CALL || !in->has_target || in->target == in->len ||
	    !code_text_has(b->code, vaddr, &to) || b->bytes[to] & (COVERED | STATE | SURE))
		return 0;
	b->bytes[to] |= SURE | TARGET;
	return code_entries_add(calls, vaddr);
}

/* Padding between functions has no rows. */
static int mark(struct back *b, struct code_entries *calls)
{
	size_t end = 0; /* nops from here on are padding */
	int err = 0;

	for (size_t i = 0; i < b->n; i++)
		b->bytes[b->places[i].at] &= HINTS;
	for (size_t i = 0; i < b->n && !err; i++) {
		const struct place *p = &b->places[i];
		struct insn in;

		if (code_decode(b->code, p->at, &in))
			continue;
		if (in.nop &&
		    (p->at == end || !i || b->places[i - 1].at + b->places[i - 1].len != p->at)) {
			end = p->at + p->len;
			continue;
		}
		if (code_text_ends(&in))
			end = p->at + p->len;
		if (p->what != PROVED)
			continue;
		b->bytes[p->at] |= STATE | p->packed;
		for (unsigned int k = 1; k < p->len; k++)
			b->bytes[p->at + k] |= INSIDE;
		err = note_call(b, p, &in, calls);
	}
	return err;
}

int code_back(const struct code *code, struct code_states *states, uint32_t *bytes,
	      struct code_entries *calls)
{
	struct back b = {.code = code, .states = states, .bytes = bytes, .changed = 1};
	int err = sweep(&b), tables = 0;

	if (!err)
		err = code_suspects(code, bytes, &b.suspects);
	for (int i = 0; i < MAX_ROUNDS && b.changed && !err; i++) {
		b.changed = 0;
		go_back(&b);
		go_on(&b);
		if ((!b.changed || i == MAX_ROUNDS / 2) && tables++ < MAX_TABLES)
			err = go_by_tables(&b);
	}
	if (!err)
		err = mark(&b, calls);
	free(b.places);
	code_entries_fini(&b.suspects);
	code_entries_fini(&b.labels.tables);
	return err;
}
