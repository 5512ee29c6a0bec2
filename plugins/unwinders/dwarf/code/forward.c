/* SPDX-License-Identifier: Apache-2.0 */
#include "forward.h"

#include <errno.h>
#include <fusee/bytes.h>
#include <stdlib.h>

#include <fusee/insn.h>

/* An instruction that was followed. Proofs go from an instruction to those that lead to it. */
struct node {
	uint32_t at; /* in the code */
	uint8_t len, effect;
	uint8_t queued, returned, sure, by_fp;
	int32_t value;
	uint32_t leads;             /* first of the edges to here; 0: none */
	struct forward_proof proof; /* before the instruction */
	struct forward_proof after; /* what those behind it prove */
};

struct edge {
	uint32_t from, next;
};

struct forward {
	const struct forward_code *code;
	uint32_t *number; /* by byte: 1 + the node that begins here; 0: none */
	struct node *nodes;
	struct edge *edges; /* [0] is unused */
	uint32_t *queue;    /* nodes whose `after` has changed, or that are to be decoded */
	uint32_t n, n_edges, n_queue;
	uint64_t cap, edges_cap, queue_cap;
	int err;
};

/* ---- what an instruction does to a proof, backwards ---- */

static struct forward_proof none(void)
{
	return (struct forward_proof){.kind = FORWARD_NONE};
}

/* The slot of the word at sp + bytes, given where the CFA is; FORWARD_SLOT_LOST: no slot has it. */
static uint8_t slot_of(const struct forward_proof *p, int32_t bytes)
{
	int32_t slot = p->cfa - 1 - bytes / 8;

	return bytes % 8 || slot < 1 || slot > (int32_t)DWARF_MAX_SLOT ? FORWARD_SLOT_LOST
								       : (uint8_t)slot;
}

/* sp became higher by so many bytes. The return address must lie at sp or above. */
static struct forward_proof before_add(struct forward_proof p, int64_t bytes)
{
	if (p.kind != FORWARD_BY_SP)
		return p;
	if (bytes % 8 || p.cfa + bytes / 8 < 1 || p.cfa + bytes / 8 > INT16_MAX)
		return none();
	p.cfa += (int32_t)(bytes / 8);
	return p;
}

/* rbp was overwritten by what is not known. */
static struct forward_proof before_write_fp(struct forward_proof p)
{
	if (p.kind == FORWARD_BY_FP)
		return none();
	if (!p.slot)
		p.slot = FORWARD_SLOT_LOST;
	return p;
}

/* rbp was read from sp + bytes. */
static struct forward_proof before_load_fp(struct forward_proof p, int32_t bytes)
{
	if (p.kind == FORWARD_BY_FP)
		return none();
	if (!p.slot)
		p.slot = slot_of(&p, bytes);
	return p;
}

static struct forward_proof before_pop_fp(struct forward_proof p)
{
	p = before_add(p, 8);
	return p.kind ? before_load_fp(p, 0) : p;
}

/* sp was set to rbp + bytes. */
static struct forward_proof before_sp_from_fp(struct forward_proof p, int32_t bytes)
{
	if (p.kind != FORWARD_BY_SP)
		return p;
	if (!p.slot) /* rbp is no frame's of this function */
		return none();
	p = before_add(p, bytes);
	if (p.kind)
		p.kind = FORWARD_BY_FP;
	return p;
}

/* rbp was set to sp + bytes. */
static struct forward_proof before_set_fp(struct forward_proof p, int32_t bytes)
{
	if (!p.slot)
		p.slot = FORWARD_SLOT_LOST;
	if (p.kind != FORWARD_BY_FP)
		return p;
	p.kind = FORWARD_BY_SP;
	return before_add(p, bytes);
}

/* A word was pushed. */
static struct forward_proof before_push(struct forward_proof p, int is_fp)
{
	if (p.kind == FORWARD_BY_SP && p.slot && p.slot == slot_of(&p, 0))
		p.slot = is_fp ? 0 : FORWARD_SLOT_LOST;
	return before_add(p, -8);
}

static struct forward_proof before_save_fp(struct forward_proof p, int32_t bytes)
{
	if (p.kind == FORWARD_BY_SP && p.slot && p.slot == slot_of(&p, bytes))
		p.slot = 0;
	return p;
}

/* A callee overwrites what is below sp. */
static struct forward_proof before_call(struct forward_proof p)
{
	if (p.kind == FORWARD_BY_SP && p.slot != FORWARD_SLOT_LOST && p.slot >= p.cfa)
		p.slot = FORWARD_SLOT_LOST;
	return p;
}

static struct forward_proof before(const struct node *n)
{
	struct forward_proof p = n->after;

	if (p.kind == FORWARD_NONE || p.kind == FORWARD_CONTRADICTION)
		return p;
	switch (n->effect) {
	case INSN_PUSH:
	case INSN_PUSH_FP:
		return before_push(p, n->effect == INSN_PUSH_FP);
	case INSN_POP:
		return before_add(p, 8);
	case INSN_POP_FP:
		return before_pop_fp(p);
	case INSN_ADD_SP:
		return before_add(p, n->value);
	case INSN_SAVE_FP:
		return before_save_fp(p, n->value);
	case INSN_SET_FP:
		return before_set_fp(p, n->value);
	case INSN_SP_FROM_FP:
		return before_sp_from_fp(p, n->value);
	case INSN_LEAVE:
		p = before_pop_fp(p);
		return p.kind ? before_sp_from_fp(p, 0) : p;
	case INSN_LOSE_SP:
		return p.kind == FORWARD_BY_SP ? none() : p;
	case INSN_WRITE_SP:
		return none();
	case INSN_WRITE_FP:
		return before_write_fp(p);
	case INSN_LOAD_FP:
		return before_load_fp(p, n->value);
	case INSN_CALL:
		return before_call(p);
	default:
		return p;
	}
}

/* What two paths prove together. */
static struct forward_proof join(struct forward_proof a, struct forward_proof b)
{
	if (a.kind == FORWARD_NONE || b.kind == FORWARD_NONE)
		return a.kind == FORWARD_NONE ? b : a;
	if (a.kind != b.kind || a.cfa != b.cfa)
		a.kind = FORWARD_CONTRADICTION;
	if (a.slot != b.slot)
		a.slot = FORWARD_SLOT_LOST;
	a.used |= b.used;
	return a;
}

/* What the use of rbp says: below a frame pointer are a function's own words, at it are the
 * caller's rbp and the return address, which code does not touch. */
static struct forward_proof by_use(const struct node *n)
{
	if (n->by_fp == INSN_AT_FP)
		return (struct forward_proof){.kind = FORWARD_CONTRADICTION};
	if (n->by_fp == INSN_BELOW_FP || n->effect == INSN_LEAVE)
		return (struct forward_proof){FORWARD_BY_FP, .slot = 1, .used = 1, .cfa = 2};
	return none();
}

/* ---- the paths ---- */

/* Room for one more of an array whose elements have this size. */
static bool grow(struct forward *f, void *array, uint32_t n, uint64_t *cap, size_t size)
{
	if (fusee_grow(array, cap, n + 1ull, size))
		return true;
	f->err = -ENOMEM;
	return false;
}

static void enqueue(struct forward *f, uint32_t node)
{
	if (!grow(f, &f->queue, f->n_queue, &f->queue_cap, sizeof(*f->queue)))
		return;
	if (!f->nodes[node].queued)
		f->queue[f->n_queue++] = node;
	f->nodes[node].queued = 1;
}

/* Adds a proof to what is known behind the instruction. 1: more is known than before. */
static int learn(struct forward *f, uint32_t node, struct forward_proof p)
{
	struct node *n = &f->nodes[node];
	struct forward_proof both = join(n->after, p);
	int same = both.kind == n->after.kind && both.slot == n->after.slot &&
		   both.cfa == n->after.cfa && both.used == n->after.used;

	n->after = both;
	return !same;
}

/* Two paths read the same bytes as different instructions: one of them is not executed. */
static void contradict(struct forward *f, uint32_t node)
{
	f->nodes[node].after.kind = FORWARD_CONTRADICTION;
}

/* The node of the instruction here, which is made if there is none. UINT32_MAX: bytes that are no
 * instruction, or the code ends. */
static uint32_t node_at(struct forward *f, size_t at)
{
	struct insn in;

	if (f->number[at])
		return f->number[at] - 1;
	if (f->n == FORWARD_MAX_INSNS)
		f->err = -E2BIG;
	if (f->err || fusee_insn_decode(f->code->bytes + at, f->code->len - at, &in))
		return UINT32_MAX;
	if (!grow(f, &f->nodes, f->n, &f->cap, sizeof(*f->nodes)))
		return UINT32_MAX;
	f->nodes[f->n] = (struct node){.at = (uint32_t)at,
				       .len = in.len,
				       .effect = in.effect,
				       .value = in.value,
				       .by_fp = in.by_fp};
	f->number[at] = ++f->n;
	enqueue(f, f->n - 1);
	return f->n - 1;
}

/* Adds a path from the node to this place. */
static void lead_to(struct forward *f, uint32_t from, int64_t to)
{
	uint32_t node;

	if (to < 0 || (uint64_t)to >= f->code->len)
		return;
	node = node_at(f, (size_t)to);
	if (node == UINT32_MAX)
		return;
	if (!grow(f, &f->edges, f->n_edges, &f->edges_cap, sizeof(*f->edges)))
		return;
	f->edges[f->n_edges] = (struct edge){from, f->nodes[node].leads};
	f->nodes[node].leads = f->n_edges++;
}

#define MAX_LENGTH 15u /* of an instruction */
#define MAX_CALLEE 64u /* instructions of a callee that are looked at */

/* Looks for nodes that share bytes with the node. */
static void find_overlaps(struct forward *f, uint32_t node)
{
	const struct node *n = &f->nodes[node];
	uint32_t first = n->at < MAX_LENGTH ? 0 : n->at - MAX_LENGTH;

	for (uint32_t i = first; i < n->at + n->len; i++) {
		uint32_t other = f->number[i];

		if (!other || i == n->at || i + f->nodes[other - 1].len <= n->at)
			continue;
		contradict(f, other - 1);
		contradict(f, node);
	}
}

/* Does the function that is called here pop arguments, by its first return in sequence, leave its
 * stack, or change its return address? */
static bool returns_otherwise(const struct forward *f, int64_t to)
{
	struct insn in;

	if (to >= 0 && (uint64_t)to < f->code->len &&
	    fusee_insn_writes_top(f->code->bytes + to, f->code->len - (uint64_t)to))
		return true;
	for (uint32_t i = 0; i < MAX_CALLEE && to >= 0 && (uint64_t)to < f->code->len; i++) {
		if (fusee_insn_decode(f->code->bytes + to, f->code->len - (uint64_t)to, &in) ||
		    in.effect == INSN_RETURN || in.effect == INSN_JUMP || in.effect == INSN_HALT)
			return false;
		if (in.effect == INSN_ODD_RETURN || in.effect == INSN_WRITE_SP)
			return true;
		to += in.len;
	}
	return false;
}

/* A return leads to what was pushed right before it: it is no way out. */
static void follow_push(struct forward *f, const struct node *n)
{
	size_t next = n->at + n->len;

	if (next < f->code->len && f->number[next] &&
	    f->nodes[f->number[next] - 1].effect == INSN_RETURN)
		contradict(f, f->number[next] - 1);
}

/* Follows the paths out of a node that was just made. */
static void follow(struct forward *f, uint32_t node)
{
	struct node n = f->nodes[node];
	struct insn in;

	find_overlaps(f, node);
	fusee_insn_decode(f->code->bytes + n.at, f->code->len - n.at, &in);
	switch (n.effect) {
	case INSN_RETURN:
		learn(f, node, (struct forward_proof){.kind = FORWARD_BY_SP, .cfa = 1});
		return;
	case INSN_ODD_RETURN:
	case INSN_HALT:
		return;
	case INSN_JUMP:
	case INSN_BRANCH:
		if (in.has_target)
			lead_to(f, node, (int64_t)n.at + in.target);
		if (n.effect == INSN_JUMP)
			return;
		break;
	case INSN_CALL:
		if (in.has_target && returns_otherwise(f, (int64_t)n.at + in.target))
			return;
		break;
	default:
		break;
	}
	lead_to(f, node, (int64_t)n.at + n.len);
	if (n.effect == INSN_PUSH || n.effect == INSN_PUSH_FP)
		follow_push(f, &n);
}

static uint32_t dequeue(struct forward *f)
{
	uint32_t node = f->queue[--f->n_queue];

	f->nodes[node].queued = 0;
	return node;
}

/* Does execution go on behind a call, if this proof holds there? The ABI has sp at a multiple of 16
 * at each call. Behind a call that never returns the next function begins, whose return address
 * would be 8 off; or its padding. */
static int may_return(const struct forward *f, const struct node *behind)
{
	struct insn in;

	if (behind->proof.kind == FORWARD_BY_SP && behind->proof.cfa & 1)
		return 0;
	return fusee_insn_decode(f->code->bytes + behind->at, f->code->len - behind->at, &in) ||
	       !in.nop || (f->code->vaddr + behind->at + behind->len) % 16;
}

enum way {
	WAY_SURE,  /* needs no call to return */
	WAY_CALLS, /* needs calls to return */
	WAY_USE,   /* no way out, but uses of rbp */
};

/* Hands the proof of a node to a node that leads to it. */
static void hand_on(struct forward *f, const struct node *n, uint32_t to, enum way way)
{
	const struct node *from = &f->nodes[to];

	if (from->sure || (from->effect == INSN_CALL && (way == WAY_SURE || !may_return(f, n))))
		return;
	if (learn(f, to, n->proof))
		enqueue(f, to);
}

static void prove_node(struct node *n, enum way way)
{
	if (n->sure)
		return;
	n->proof = before(n);
	if (way == WAY_USE)
		n->proof = join(n->proof, by_use(n));
}

/* Hands what is proved to the instructions that lead there. Each node's proof changes at most four
 * times. A node that an earlier way has proved keeps its proof. */
static void prove(struct forward *f, enum way way)
{
	for (uint32_t i = 0; i < f->n && !f->err; i++)
		if (f->nodes[i].after.kind || (way == WAY_USE && by_use(&f->nodes[i]).kind))
			enqueue(f, i);
	while (f->n_queue && !f->err) {
		struct node *n = &f->nodes[dequeue(f)];

		prove_node(n, way);
		for (uint32_t e = n->leads; e; e = f->edges[e].next)
			hand_on(f, n, f->edges[e].from, way);
	}
	for (uint32_t i = 0; i < f->n; i++)
		f->nodes[i].sure = f->nodes[i].proof.kind != FORWARD_NONE;
}

int forward_new(struct forward **ret, const struct forward_code *code,
		const struct forward_start *starts, size_t n)
{
	struct forward *f;
	size_t at;
	int err;

	if (code->len > FORWARD_MAX_BYTES)
		return -E2BIG;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->code = code;
	f->n_edges = 1;
	f->number = calloc(code->len + 1, sizeof(*f->number));
	if (!f->number)
		f->err = -ENOMEM;
	for (size_t i = 0; i < n && !f->err; i++) {
		uint32_t node;

		at = starts[i].vaddr - code->vaddr;
		if (starts[i].vaddr < code->vaddr || at >= code->len)
			continue;
		node = node_at(f, at);
		if (node != UINT32_MAX && starts[i].returned)
			f->nodes[node].returned = 1;
		while (f->n_queue && !f->err)
			follow(f, dequeue(f));
	}
	/* A proof that needs a call to return counts where there is no other. */
	prove(f, WAY_SURE);
	prove(f, WAY_CALLS);
	prove(f, WAY_USE);
	err = f->err;
	*ret = f;
	if (err) {
		forward_free(f);
		*ret = NULL;
	}
	return err;
}

void forward_free(struct forward *f)
{
	if (!f)
		return;
	free(f->number);
	free(f->nodes);
	free(f->edges);
	free(f->queue);
	free(f);
}

struct forward_proof forward_at(const struct forward *f, uint64_t vaddr)
{
	size_t at = vaddr - f->code->vaddr;

	if (vaddr < f->code->vaddr || at >= f->code->len || !f->number[at])
		return none();
	return f->nodes[f->number[at] - 1].proof;
}

/* ---- rows ---- */

/* Makes a special rule, for what plain rules cannot express. */
static uint32_t special_of(struct table_build *build, const struct forward_proof *p)
{
	uint32_t reg = p->kind == FORWARD_BY_FP ? 6 : 7, flags = DWARF_FP_UNKNOWN;
	int32_t fp = 0;

	if (p->slot != FORWARD_SLOT_LOST) {
		flags = p->slot ? DWARF_FP_SAVED : 0;
		fp = p->slot ? -8 * (p->slot + 1) : 0;
	}
	if (p->used)
		flags |= DWARF_SP_MOVED;
	return table_special(build, DWARF_REG | reg << 8 | flags << 16, 8 * p->cfa, fp, 0);
}

static uint32_t rule_of(struct table_build *build, struct forward_proof p)
{
	uint32_t cfa = (uint32_t)p.cfa;

	if (p.kind != FORWARD_BY_SP && p.kind != FORWARD_BY_FP)
		return DWARF_RULE_NONE;
	if (p.slot == FORWARD_SLOT_LOST || p.used || p.cfa < 1 || cfa > DWARF_FP_MAX_OFFSET)
		return special_of(build, &p);
	return p.kind == FORWARD_BY_FP ? DWARF_RULE_FP(cfa, p.slot) : DWARF_RULE_SP(cfa, p.slot);
}

/* Was a return address seen here? */
static int is_returned(const struct forward *f, size_t at)
{
	return at < f->code->len && f->number[at] && f->nodes[f->number[at] - 1].returned;
}

/* The last byte before a return address that was seen: of a call; or of anything, where code pushes
 * return addresses itself. */
static uint32_t rule_of_call(const struct forward *f, struct table_build *build, size_t at)
{
	const struct node *behind;

	if (!is_returned(f, at + 1))
		return DWARF_RULE_NONE;
	behind = &f->nodes[f->number[at + 1] - 1];
	return may_return(f, behind) ? rule_of(build, before_call(behind->proof)) : DWARF_RULE_NONE;
}

/* The last byte of an instruction, which may be its only one. A caller is looked up there. */
static uint32_t rule_of_last(const struct forward *f, struct table_build *build,
			     const struct node *n)
{
	uint32_t rule = rule_of(build, n->proof), returned;
	size_t end = n->at + n->len;

	if (n->effect == INSN_CALL || !is_returned(f, end))
		return rule;
	returned = rule_of_call(f, build, end - 1);
	return n->len > 1 || returned == rule ? returned : DWARF_RULE_NONE;
}

/* The rule of the byte. n: the instruction that it is part of; NULL: it was not followed. */
static uint32_t rule_at(const struct forward *f, struct table_build *build, const struct node *n,
			size_t at)
{
	if (!n)
		return rule_of_call(f, build, at);
	return at + 1 == n->at + n->len ? rule_of_last(f, build, n) : rule_of(build, n->proof);
}

int forward_rows(const struct forward *f, struct table_build *build, struct rows *rows)
{
	uint32_t last = DWARF_RULE_NONE;
	const struct node *n = NULL;
	int err = 0;

	for (size_t at = 0; !err && at < f->code->len; at++) {
		uint32_t rule;

		if (f->number[at])
			n = &f->nodes[f->number[at] - 1];
		else if (n && at >= n->at + n->len)
			n = NULL;
		rule = rule_at(f, build, n, at);
		if (rule != last)
			err = rows_add(rows, f->code->vaddr + at, rule);
		last = rule;
	}
	if (!err && last != DWARF_RULE_NONE)
		err = rows_add(rows, f->code->vaddr + f->code->len, DWARF_RULE_NONE);
	return err;
}
