/* SPDX-License-Identifier: Apache-2.0 */
#include "labels.h"

#include <string.h>

#include "data.h"
#include <fusee/insn_parts.h>

#define MAX_TABLES 256 /* tables that one function points to */
#define MAX_LABELS 1024
#define MAX_LOOKED_AT (1u << 20) /* entries, of one text */

static int read_jump(struct code_labels *l, const struct code_state *s)
{
	if (!l->jumps) {
		l->state = *s;
		l->jumps = 1;
	} else if (l->state.depth != s->depth || l->state.odd != s->odd ||
		   l->state.base != s->base) {
		l->jumps = -1;
	} else if (code_state_join(&l->state, s)) {
		l->jumps = -1;
	}
	return 0;
}

int code_labels_read(struct code_labels *l, const struct code *code, size_t at,
		     const struct code_state *s)
{
	struct insn_parts d;
	struct insn in;
	uint64_t table = 0;

	if (code_decode(code, at, &in))
		return 0;
	if (s && in.effect == INSN_JUMP && !in.has_target && !in.slot)
		read_jump(l, s);
	if (in.address)
		table = code->vaddr + at + (uint64_t)in.address;
	else if ((in.written || in.effect == INSN_JUMP) &&
		 !fusee_insn_read(code->bytes + at, code->len - at, &d) && d.base == NO_REGISTER &&
		 d.index != NO_REGISTER && d.scale == 8 && !d.rip)
		table = (uint64_t)(int64_t)d.disp; /* *table(,%rax,8) */
	if (!table || l->tables.n == MAX_TABLES)
		return 0;
	return code_entries_add(&l->tables, table);
}

/* Entry i, of 8 bytes, or 4 relative to the table. 0; -1: there is none. */
static int entry(const struct code *code, uint64_t table, uint32_t size, uint32_t i, size_t *at)
{
	const struct code_switch s = {table, MAX_LABELS, size};
	uint64_t to;

	if (size == 8 && code->pointers ? code_data_word(code->pointers, table + 8ull * i, &to)
					: code_switch_entry(&s, &code->data, i, &to))
		return -1;
	return code_text_has(code, to, at) ? 0 : -1;
}

/* How many entries of a table lead into the function, `max` of them looked at. */
static uint32_t count(const struct code *code, uint64_t table, uint32_t size, uint64_t max,
		      size_t lo, size_t hi)
{
	uint32_t n = 0;
	size_t at;

	while (n < max && !entry(code, table, size, n, &at) && at > lo && at < hi)
		n++;
	return n;
}

void code_labels_find(struct code_labels *l, const struct code *code, size_t lo, size_t hi,
		      int (*is_place)(void *, size_t at), void (*learn)(void *, size_t at),
		      void *ctx)
{
	const struct code_entries *e = &l->tables;

	if (l->jumps != 1 || l->looked_at > MAX_LOOKED_AT)
		return;
	code_entries_sort(&l->tables);
	for (size_t i = 0; i < 2 * e->n; i++) {
		uint64_t table = e->p[i / 2], max = MAX_LABELS;
		uint32_t size = i % 2 ? 8 : 4, n, good = 0;
		int place = 1, known = code->symbols;
		size_t at;

		if (i / 2 + 1 < e->n && (e->p[i / 2 + 1] - table) / size < max)
			max = (e->p[i / 2 + 1] - table) / size; /* up to the next */
		n = count(code, table, size, max, lo, hi);
		l->looked_at += n + 1;
		while (good < n && place && !entry(code, table, size, good, &at)) {
			place = is_place(ctx, at);
			known |= place > 1;
			good += place > 0;
		}
		for (uint32_t k = 0; known && n > 1 && good == n && k < n; k++)
			if (!entry(code, table, size, k, &at))
				learn(ctx, at);
	}
}

void code_labels_reset(struct code_labels *l)
{
	l->jumps = 0;
	l->tables.n = 0;
}
