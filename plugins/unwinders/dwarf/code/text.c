/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <fusee/insn.h>

#include "state.h"

#define MAX_NOPS 32 /* bytes of padding behind a call that are looked through */

int code_decode_slow(const struct code *code, size_t at, struct insn *in)
{
	if (fusee_insn_decode(code->bytes + at, code->len - at, in))
		return -1;
	if (code->plain && in->effect == INSN_NOTHING && in->copy == INSN_COPY_NONE && !in->nop &&
	    !in->address)
		code->plain[at] = in->len | (uint32_t)in->written << 8;
	return 0;
}

int code_text_rows(struct table_build *build, const struct code *code,
		   const struct code_states *states, const uint32_t *bytes, struct rows *ret)
{
	uint32_t last = DWARF_RULE_NONE;
	int err = 0;

	for (size_t i = 0; !err && i < code->len; i++) {
		uint32_t v = bytes[i], rule;

		if (v & INSIDE && !(v & (STATE | COVERED)))
			continue;
		rule = DWARF_RULE_NONE;
		if (v & STATE && !(v & (DOUBT | COVERED))) {
			struct code_state s = code_state_unpack(states, v);

			rule = code_state_rule(build, &s);
		}
		if (rule != last)
			err = rows_add(ret, code->vaddr + i, rule);
		last = rule;
	}
	if (!err && last != DWARF_RULE_NONE)
		err = rows_add(ret, code->vaddr + code->len, DWARF_RULE_NONE);
	return err;
}

enum code_behind code_text_behind(const struct code *code, const uint32_t *bytes, size_t at)
{
	size_t i = at;

	while (i < code->len && i - at < MAX_NOPS) {
		struct insn in;

		if (bytes[i] & (COVERED | TARGET))
			return NOTHING_FOLLOWS;
		if (code_decode(code, i, &in))
			return NOTHING_FOLLOWS;
		if (in.effect == INSN_HALT)
			return NOTHING_FOLLOWS;
		if (!in.nop)
			return CODE_FOLLOWS;
		i += in.len;
		if ((code->vaddr + i) % 16 == 0)
			break;
	}
	if (i >= code->len || bytes[i] & (COVERED | TARGET))
		return NOTHING_FOLLOWS;
	return PADDING_FOLLOWS;
}

int code_text_is_padding(const struct code *code, const uint32_t *bytes, size_t at)
{
	size_t i = at;
	struct insn in;

	while (i < code->len && i - at < MAX_NOPS && !(bytes[i] & (COVERED | TARGET)) &&
	       !code_decode(code, i, &in) && in.nop)
		i += in.len;
	return i > at && i < code->len && bytes[i] & TARGET;
}

int code_text_may_begin(const struct code *code, size_t at)
{
	const uint8_t *p = code->bytes + at;

	if (!at)
		return 1;
	if (p[-1] == 0xc3 || p[-1] == 0x90 || p[-1] == 0xcc || p[-1] == 0xf4 || !p[-1])
		return 1; /* ret, nop, int3, hlt; other padding ends with 0 */
	if (at >= 2 && (p[-2] == 0xeb || (p[-2] == 0x0f && p[-1] == 0x0b) ||
			(p[-2] == 0xff && (p[-1] & 0xf8) == 0xe0)))
		return 1;                              /* jmp, ud2, jmp *%rax */
	if (at >= 6 && p[-6] == 0xff && p[-5] == 0x25) /* jmp *n(%rip) */
		return 1;
	return at >= 5 && (p[-5] == 0xe9 || p[-5] == 0xe8); /* jmp; call of what does not return */
}

/* The row that governs an address, or the first behind it. */
static size_t find_row(const struct rows *rows, uint64_t vaddr)
{
	size_t a = 0, b = rows->n;

	while (a < b) {
		size_t i = a + (b - a) / 2;

		if (ROW_VADDR(rows->p[i]) <= vaddr)
			a = i + 1;
		else
			b = i;
	}
	return a ? a - 1 : 0;
}

int code_text_is_function(const struct code *code, uint64_t vaddr)
{
	const struct rows *rows = code->known;
	size_t i;

	if (vaddr < code->file_lo || vaddr >= code->file_hi ||
	    code_entries_has(code->functions, vaddr))
		return 1;
	i = find_row(rows, vaddr);
	return i < rows->n && ROW_VADDR(rows->p[i]) <= vaddr &&
	       ROW_RULE(rows->p[i]) == DWARF_RULE_SP(1, 0);
}

void code_text_cover(const struct code *code, uint32_t *bytes)
{
	const struct rows *rows = code->known;
	uint64_t end = code->vaddr + code->len;

	for (size_t i = find_row(rows, code->vaddr); i < rows->n && ROW_VADDR(rows->p[i]) < end;
	     i++) {
		uint64_t lo = ROW_VADDR(rows->p[i]);
		uint64_t hi = i + 1 < rows->n ? ROW_VADDR(rows->p[i + 1]) : lo;

		if (ROW_RULE(rows->p[i]) == DWARF_RULE_NONE)
			continue;
		if (lo < code->vaddr)
			lo = code->vaddr;
		for (; lo < hi && lo < end; lo++)
			bytes[lo - code->vaddr] = COVERED;
	}
}

void code_text_mark(const struct code *code, uint32_t *bytes, const struct code_entries *e,
		    uint32_t bits)
{
	size_t at;

	for (size_t i = 0; i < e->n; i++)
		if (code_text_has(code, e->p[i], &at))
			bytes[at] |= bits;
}

void code_text_mark_targets(const struct code *code, uint32_t *bytes)
{
	for (size_t at = 0; at < code->len;) {
		struct insn in;
		int64_t to = 0;
		size_t there;

		if (bytes[at] & COVERED || code_decode(code, at, &in)) {
			at++;
			continue;
		}
		if (in.effect == INSN_CALL && in.has_target)
			to = in.target;
		else if (in.address)
			to = in.address;
		if (to && to != in.len &&
		    code_text_has(code, code->vaddr + at + (uint64_t)to, &there))
			bytes[there] |= TARGET;
		at += in.len;
	}
}

#define MAX_CALLEE 64u /* instructions of a callee that are looked at */

int code_text_moves_return(const struct code *code, uint64_t vaddr)
{
	struct insn in;
	size_t at;

	if (!code_text_has(code, vaddr, &at))
		return 0;
	if (fusee_insn_writes_top(code->bytes + at, code->len - at))
		return 1;
	for (uint32_t i = 0; i < MAX_CALLEE && at < code->len; i++) {
		if (code_decode(code, at, &in))
			return 0;
		if (code_text_ends(&in) || in.effect == INSN_WRITE_SP)
			return in.effect == INSN_ODD_RETURN || in.effect == INSN_WRITE_SP;
		at += in.len;
	}
	return 0;
}
