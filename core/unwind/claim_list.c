/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/internal/claim_list.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CLAIMS 65536u

uint32_t claim_list_above(const struct claim_list *l, uint64_t addr)
{
	uint32_t lo = 0, hi = l->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (l->at[mid].hi > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

const struct claim *claim_list_find(const struct claim_list *l, uint64_t addr)
{
	uint32_t i = claim_list_above(l, addr);

	return i < l->n && l->at[i].lo <= addr ? &l->at[i] : NULL;
}

/* Makes room for two claims: one in the middle of another splits it. false: no memory. */
static bool reserve(struct claim_list *l)
{
	uint32_t cap = l->cap ? l->cap * 2 : 16;
	struct claim *grown;

	if (l->n + 2 <= l->cap)
		return true;
	grown = realloc(l->at, cap * sizeof(*grown));
	if (!grown)
		return false;
	l->at = grown;
	l->cap = cap;
	return true;
}

/* There is room for another claim. */
static void subtract(struct claim_list *l, uint64_t lo, uint64_t hi, uint32_t unwinder)
{
	for (uint32_t i = claim_list_above(l, lo); i < l->n && l->at[i].lo < hi;) {
		struct claim *c = &l->at[i];

		if (c->unwinder != unwinder) {
			i++;
		} else if (c->lo < lo && c->hi > hi) {
			memmove(c + 1, c, (l->n++ - i) * sizeof(*c));
			c[0].hi = lo;
			c[1].lo = hi;
			return;
		} else if (c->lo < lo) {
			c->hi = lo;
			i++;
		} else if (c->hi > hi) {
			c->lo = hi;
			return;
		} else {
			memmove(c, c + 1, (--l->n - i) * sizeof(*c));
		}
	}
}

/* Inserts the claim where nothing is claimed. false: no memory. */
static bool fill(struct claim_list *l, struct claim c)
{
	uint32_t i = claim_list_above(l, c.lo);

	while (c.lo < c.hi) {
		const struct claim *next = i < l->n ? &l->at[i] : NULL;
		uint64_t end = next && next->lo < c.hi ? next->lo : c.hi;

		if (end > c.lo) {
			if (!reserve(l))
				return false;
			memmove(l->at + i + 1, l->at + i, (l->n++ - i) * sizeof(*l->at));
			l->at[i] = c;
			l->at[i++].hi = end;
		}
		if (i == l->n || l->at[i].lo >= c.hi)
			break;
		c.lo = l->at[i++].hi;
	}
	return true;
}

/* Joins neighbours that differ in their addresses only. */
static void join(struct claim_list *l)
{
	uint32_t last = 0;

	for (uint32_t i = 1; i < l->n; i++) {
		struct claim *a = &l->at[last], *b = &l->at[i];

		if (a->hi == b->lo && a->unwinder == b->unwinder && a->flags == b->flags &&
		    a->arg == b->arg)
			a->hi = b->hi;
		else
			l->at[++last] = *b;
	}
	l->n = l->n ? last + 1 : 0;
}

int claim_list_add(struct claim_list *l, const struct claim *c)
{
	if (l->n + 2 > MAX_CLAIMS)
		return -ENOSPC;
	if (!reserve(l))
		return -ENOMEM;
	subtract(l, c->lo, c->hi, c->unwinder);
	if (!fill(l, *c))
		return -ENOMEM;
	join(l);
	return 0;
}

void claim_list_remove(struct claim_list *l, uint64_t lo, uint64_t hi, uint32_t unwinder)
{
	if (reserve(l))
		subtract(l, lo, hi, unwinder);
}

void claim_list_fini(struct claim_list *l)
{
	free(l->at);
}
