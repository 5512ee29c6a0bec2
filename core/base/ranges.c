// SPDX-License-Identifier: Apache-2.0
#include "base/ranges.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->hi != y->hi)
		return x->hi > y->hi ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

struct sweep {
	struct segment *out;
	size_t n;
	uint32_t *open; /* ranges that contain the current address, innermost last */
	size_t nopen;
};

static void put(struct sweep *s, uint64_t lo, uint32_t id)
{
	if (s->n && s->out[s->n - 1].lo == lo)
		s->n--;
	if (s->n && s->out[s->n - 1].id == id)
		return;
	s->out[s->n++] = (struct segment){.lo = lo, .id = id};
}

/* Closes the ranges that end at or before `to`; the range around each continues after it. */
static void end_until(struct sweep *s, const struct range *r, uint64_t to)
{
	while (s->nopen) {
		uint64_t end = r[s->open[s->nopen - 1]].hi;

		if (end > to)
			return;
		while (s->nopen && r[s->open[s->nopen - 1]].hi <= end)
			s->nopen--;
		put(s, end, s->nopen ? r[s->open[s->nopen - 1]].id : RANGES_NONE);
	}
}

int ranges_flatten(struct range *r, size_t n, struct segment **ret, size_t *nret)
{
	struct sweep s = {0};
	struct segment *shrunk;

	if (n)
		qsort(r, n, sizeof(*r), compare);
	s.out = malloc((2 * n + 1) * sizeof(*s.out));
	s.open = malloc((n + 1) * sizeof(*s.open));
	if (!s.out || !s.open) {
		free(s.out);
		free(s.open);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		if (r[i].hi <= r[i].lo)
			continue;
		end_until(&s, r, r[i].lo);
		put(&s, r[i].lo, r[i].id);
		s.open[s.nopen++] = (uint32_t)i;
	}
	end_until(&s, r, UINT64_MAX);
	free(s.open);
	shrunk = realloc(s.out, (s.n + 1) * sizeof(*s.out));
	*ret = shrunk ? shrunk : s.out;
	*nret = s.n;
	return 0;
}

const struct segment *segments_find(const struct segment *s, size_t n, uint64_t addr)
{
	size_t before = array_count_to(s, n, sizeof(*s), addr);

	return before ? &s[before - 1] : NULL;
}

void segments_narrow(const struct segment *s, size_t n, uint64_t addr, uint64_t *lo, uint64_t *hi)
{
	const struct segment *at = segments_find(s, n, addr);
	const struct segment *next = at ? at + 1 : s;

	if (at && at->lo > *lo)
		*lo = at->lo;
	if (next < s + n && next->lo < *hi)
		*hi = next->lo;
}
