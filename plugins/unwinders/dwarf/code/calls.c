/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

#include "data.h"

#define MAX_LEAF 1024    /* instructions of a leaf function that are read */
#define MAX_LOOKED_AT 64 /* instructions of a function that are read to find its return */

uint64_t code_callee(const struct code *code, size_t at, const struct insn *in)
{
	if (in->effect != INSN_CALL || (in->has_target && in->target == in->len))
		return 0;
	if (in->has_target)
		return code->vaddr + at + (uint64_t)in->target;
	return in->slot ? code->vaddr + at + (uint64_t)in->slot : 0;
}

/* Limits what a hostile file can make us read in vain, so that time grows with the text only. */
static int spent(const struct code *code, size_t looked_at)
{
	return looked_at > 4 * code->len + (1u << 16);
}

/* The instructions from `at` on must be all that the function executes: until behind the furthest
 * target of a jump. 0; -1: it is no such function. */
static int read_leaf(const struct code *code, struct code_states *all, size_t at, uint16_t *written)
{
	size_t start = at, furthest = at;

	for (int i = 0; i < MAX_LEAF && at < code->len && !spent(code, ++all->looked_at); i++) {
		uint64_t to;
		struct insn in;
		size_t there;

		if (code_decode(code, at, &in))
			return -1;
		*written |= in.written;
		to = code->vaddr + at + (uint64_t)in.target;
		if (in.effect == INSN_CALL || in.effect == INSN_ODD_RETURN ||
		    in.effect == INSN_HALT)
			return -1;
		if (in.effect == INSN_JUMP || in.effect == INSN_BRANCH) {
			if (!in.has_target || !code_text_has(code, to, &there) || there < start)
				return -1;
			furthest = there > furthest ? there : furthest;
		}
		at += in.len;
		if (code_text_ends(&in) && at > furthest)
			return 0;
	}
	return -1;
}

int code_apply(const struct code *code, struct code_states *all, size_t at, const struct insn *in,
	       struct code_state *s)
{
	struct insn call = *in;
	uint16_t written = 0;
	size_t to;

	if (in->effect == INSN_CALL && s->reg && in->has_target && in->target != in->len &&
	    code_text_has(code, code->vaddr + at + (uint64_t)in->target, &to) &&
	    !read_leaf(code, all, to, &written))
		call.written = written;
	return code_state_apply(s, &call);
}

/* A tail call returns, unless its function is known not to. */
static int tail_returns(const struct code *code, size_t at, const struct insn *in)
{
	uint64_t to = code->vaddr + at + (uint64_t)(in->has_target ? in->target : in->slot);

	return (in->has_target || in->slot) && !code_entries_has(&code->noreturn, to);
}

/* Is a return reached from here, jumps followed and calls passed over? */
static int has_return(const struct code *code, const uint32_t *bytes, size_t at, size_t *looked_at)
{
	for (int i = 0; i < MAX_LOOKED_AT && at < code->len && !spent(code, ++*looked_at); i++) {
		uint64_t to;
		struct insn in;
		size_t there;

		if (bytes[at] & NORETURN || code_decode(code, at, &in))
			return 0;
		to = code->vaddr + at + (uint64_t)in.target;
		if (in.effect == INSN_RETURN)
			return 1;
		if (in.effect == INSN_CALL &&
		    code_text_behind(code, bytes, at + in.len) != CODE_FOLLOWS)
			return 0;
		if (in.effect != INSN_JUMP && code_text_ends(&in))
			return 0;
		if (in.effect != INSN_JUMP)
			at += in.len;
		else if (!in.has_target || !code_text_has(code, to, &there))
			return tail_returns(code, at, &in);
		else
			at = there;
	}
	return 0;
}

/* The function's place in this text, by its address or the word with it. */
static int function_at(const struct code *code, uint64_t callee, size_t *at)
{
	uint64_t to = callee;

	return code_text_has(code, callee, at) ||
	       (code->pointers && !code_data_word(code->pointers, callee, &to) &&
		code_text_has(code, to, at));
}

int code_suspects(const struct code *code, const uint32_t *bytes, struct code_entries *suspects)
{
	uint64_t last = 0;
	size_t looked_at = 0;
	int err = 0;

	for (size_t at = 0; at < code->len && !err; at++) {
		uint64_t callee;
		struct insn in;
		size_t to;

		if (bytes[at] & COVERED || !(bytes[at] & (STATE | OWN)) ||
		    code_decode(code, at, &in))
			continue;
		callee = code_callee(code, at, &in);
		if (!callee || callee == last ||
		    code_text_behind(code, bytes, at + in.len) != NOTHING_FOLLOWS ||
		    (function_at(code, callee, &to) && has_return(code, bytes, to, &looked_at)))
			continue;
		err = code_entries_add(suspects, callee);
		last = callee;
	}
	code_entries_sort(suspects);
	return err;
}
