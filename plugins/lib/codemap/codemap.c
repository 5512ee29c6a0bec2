/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/bytes.h>
#include <fusee/codemap.h>

#define PAST 16384u /* replaced pieces that are kept */

/* Committed pieces are sorted and disjoint. */
struct piece {
	uint64_t lo;
	uint32_t len;
	uint32_t name;  /* offset in names: u16 length, then the bytes */
	uint32_t first; /* generation in which it was committed */
	uint32_t end;   /* generation in which it was replaced */
};

/* Not committed yet. */
struct entry {
	uint64_t lo, hi;
	uint32_t name, number; /* number: in order */
};

struct list {
	struct piece *at;
	uint32_t n;
	uint64_t cap;
};

struct fusee_codemap {
	uint64_t max;
	char *names;
	uint32_t names_len;
	uint64_t names_cap, past_cap, fed_cap;
	struct list live;
	struct list painted; /* the uncommitted entries, made disjoint */
	bool is_painted;
	struct piece *past; /* a ring */
	uint32_t npast;
	struct entry *fed;
	uint32_t nfed;
};

struct fusee_codemap *fusee_codemap_new(uint64_t max_bytes)
{
	struct fusee_codemap *m = calloc(1, sizeof(*m));

	if (m)
		fusee_codemap_limit(m, max_bytes);
	return m;
}

void fusee_codemap_limit(struct fusee_codemap *m, uint64_t max_bytes)
{
	/* offsets of names are 32 bits */
	m->max = max_bytes < UINT32_MAX / 2 ? max_bytes : UINT32_MAX / 2;
}

void fusee_codemap_free(struct fusee_codemap *m)
{
	if (!m)
		return;
	free(m->names);
	free(m->live.at);
	free(m->painted.at);
	free(m->past);
	free(m->fed);
	free(m);
}

uint64_t fusee_codemap_bytes(const struct fusee_codemap *m)
{
	return sizeof(*m) + m->names_cap + m->fed_cap * sizeof(*m->fed) +
	       (m->live.cap + m->painted.cap + m->past_cap) * sizeof(struct piece);
}

uint32_t fusee_codemap_entries(const struct fusee_codemap *m)
{
	return m->live.n;
}

uint32_t fusee_codemap_pending(const struct fusee_codemap *m)
{
	return m->nfed;
}

/* ---- what is added ---- */

/* A commit adds at most two pieces for each entry, in a second list. Arrays that grow by doubling
 * count twice. */
static bool fits(const struct fusee_codemap *m, uint32_t name_len)
{
	uint64_t pieces = m->live.n + 4ull * (m->nfed + 1);
	uint64_t names = m->names_len + name_len + 2ull;

	return names <= m->max / 2 && 3 * pieces * sizeof(struct piece) +
						      2ull * m->nfed * sizeof(struct entry) +
						      2 * names <=
					      m->max;
}

static bool keep_name(struct fusee_codemap *m, const char *name, uint32_t len, uint32_t *at)
{
	uint16_t stored = (uint16_t)len;

	if (!fusee_grow(&m->names, &m->names_cap, m->names_len + len + 2, 1))
		return false;
	*at = m->names_len;
	memcpy(m->names + *at, &stored, 2);
	memcpy(m->names + *at + 2, name, len);
	m->names_len += len + 2;
	return true;
}

int fusee_codemap_add(struct fusee_codemap *m, uint64_t lo, uint64_t size, struct fusee_str name)
{
	struct entry e = {.lo = lo, .hi = lo + size, .number = m->nfed};

	if (!size || size > FUSEE_CODEMAP_LARGEST || lo + size < lo ||
	    name.len > FUSEE_CODEMAP_NAME)
		return -EINVAL;
	if (!fits(m, (uint32_t)name.len) ||
	    !fusee_grow(&m->fed, &m->fed_cap, m->nfed + 1, sizeof(e)) ||
	    !keep_name(m, name.p, (uint32_t)name.len, &e.name))
		return -ENOSPC;
	m->fed[m->nfed++] = e;
	m->is_painted = false;
	return 0;
}

/* ---- later code replaces earlier code ---- */

static int by_start(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* A heap of entries, the latest on top. */
struct heap {
	const struct entry **at;
	uint32_t n;
};

static void heap_push(struct heap *h, const struct entry *e)
{
	uint32_t i = h->n++;

	for (; i && h->at[(i - 1) / 2]->number < e->number; i = (i - 1) / 2)
		h->at[i] = h->at[(i - 1) / 2];
	h->at[i] = e;
}

static void heap_pop(struct heap *h)
{
	const struct entry *e = h->at[--h->n];
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < h->n) {
		if (child + 1 < h->n && h->at[child + 1]->number > h->at[child]->number)
			child++;
		if (h->at[child]->number <= e->number)
			break;
		h->at[i] = h->at[child];
		i = child;
	}
	h->at[i] = e;
}

/* The caller has made room. */
static void append(struct list *l, uint64_t lo, uint64_t hi, const struct piece *like)
{
	struct piece *last = l->n ? &l->at[l->n - 1] : NULL;

	if (lo >= hi)
		return;
	if (last && last->lo + last->len == lo && last->name == like->name &&
	    last->first == like->first && last->len + (hi - lo) <= FUSEE_CODEMAP_LARGEST) {
		last->len += (uint32_t)(hi - lo);
		return;
	}
	l->at[l->n++] = (struct piece){
		.lo = lo, .len = (uint32_t)(hi - lo), .name = like->name, .first = like->first};
}

/* In order of address: at each place the latest of the entries that cover it. */
static void sweep(struct list *out, const struct entry *e, uint32_t n, struct heap *h)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < n || h->n;) {
		const struct entry *top;
		uint64_t stop;

		if (!h->n && e[i].lo > at)
			at = e[i].lo;
		while (i < n && e[i].lo <= at)
			heap_push(h, &e[i++]);
		while (h->n && h->at[0]->hi <= at)
			heap_pop(h);
		if (!h->n)
			continue;
		top = h->at[0];
		stop = i < n && e[i].lo < top->hi ? e[i].lo : top->hi;
		append(out, at, stop, &(struct piece){.name = top->name});
		at = stop;
	}
}

static bool paint(struct fusee_codemap *m)
{
	struct heap h = {0};

	if (m->is_painted)
		return true;
	m->painted.n = 0;
	h.at = malloc((m->nfed ? m->nfed : 1) * sizeof(void *));
	if (!h.at ||
	    !fusee_grow(&m->painted.at, &m->painted.cap, 2 * m->nfed + 1, sizeof(struct piece))) {
		free(h.at);
		return false;
	}
	qsort(m->fed, m->nfed, sizeof(*m->fed), by_start);
	sweep(&m->painted, m->fed, m->nfed, &h);
	free(h.at);
	m->is_painted = true;
	return true;
}

static uint64_t end_of(const struct piece *p)
{
	return p->lo + p->len;
}

static struct fusee_str name_of(const struct fusee_codemap *m, const struct piece *p)
{
	uint16_t len;

	memcpy(&len, m->names + p->name, 2);
	return (struct fusee_str){m->names + p->name + 2, len};
}

static bool same_name(const struct fusee_codemap *m, const struct piece *a, const struct piece *b)
{
	struct fusee_str x = name_of(m, a), y = name_of(m, b);

	return a->name == b->name || (x.len == y.len && !memcmp(x.p, y.p, x.len));
}

bool fusee_codemap_replaces(struct fusee_codemap *m)
{
	uint32_t j = 0;

	if (!m->nfed || !paint(m))
		return false;
	for (uint32_t i = 0; i < m->live.n; i++) {
		const struct piece *l = &m->live.at[i];

		while (j < m->painted.n && end_of(&m->painted.at[j]) <= l->lo)
			j++;
		for (uint32_t k = j; k < m->painted.n && m->painted.at[k].lo < end_of(l); k++)
			if (!same_name(m, l, &m->painted.at[k]))
				return true;
	}
	return false;
}

static void bury(struct fusee_codemap *m, uint64_t lo, uint64_t hi, const struct piece *p,
		 uint32_t end)
{
	uint32_t slot = m->npast % PAST;

	if (lo >= hi || !fusee_grow(&m->past, &m->past_cap, slot + 1, sizeof(*m->past)))
		return;
	m->past[slot] = (struct piece){lo, (uint32_t)(hi - lo), p->name, p->first, end};
	m->npast++;
}

/* Appends the parts of a live piece that painted pieces from *j on do not cover, and the painted
 * pieces that end before it. */
static void merge_one(struct fusee_codemap *m, struct list *out, const struct piece *l, uint32_t *j,
		      uint32_t generation)
{
	uint64_t lo = l->lo, hi = end_of(l);

	for (; *j < m->painted.n && end_of(&m->painted.at[*j]) <= lo; ++*j)
		append(out, m->painted.at[*j].lo, end_of(&m->painted.at[*j]), &m->painted.at[*j]);
	while (*j < m->painted.n && m->painted.at[*j].lo < hi) {
		const struct piece *p = &m->painted.at[*j];
		uint64_t from = p->lo > lo ? p->lo : lo;
		uint64_t to = end_of(p) < hi ? end_of(p) : hi;

		append(out, lo, from, l);
		if (!same_name(m, l, p))
			bury(m, from, to, l, generation);
		lo = to;
		if (end_of(p) >= hi)
			return;
		append(out, p->lo, end_of(p), p);
		++*j;
	}
	append(out, lo, hi, l);
}

uint32_t fusee_codemap_commit(struct fusee_codemap *m, uint32_t generation)
{
	struct list out = {0};
	uint32_t j = 0, lost = 0;

	if (!m->nfed)
		return 0;
	if (!paint(m) || !fusee_grow(&out.at, &out.cap, m->live.n + 2 * m->painted.n + 1,
				     sizeof(struct piece))) {
		lost = m->nfed;
		goto out;
	}
	for (uint32_t i = 0; i < m->painted.n; i++)
		m->painted.at[i].first = generation;
	for (uint32_t i = 0; i < m->live.n; i++)
		merge_one(m, &out, &m->live.at[i], &j, generation);
	for (; j < m->painted.n; j++)
		append(&out, m->painted.at[j].lo, end_of(&m->painted.at[j]), &m->painted.at[j]);
	free(m->live.at);
	m->live = out;
out:
	m->nfed = 0;
	m->is_painted = false;
	if (m->painted.cap > 4096) { /* the first batch is large, later batches are small */
		free(m->painted.at);
		free(m->fed);
		m->painted = (struct list){0};
		m->fed = NULL;
		m->fed_cap = 0;
	}
	return lost;
}

/* ---- looking up ---- */

/* Index of the first live piece that ends above addr. */
static uint32_t above(const struct fusee_codemap *m, uint64_t addr)
{
	uint32_t lo = 0, hi = m->live.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (end_of(&m->live.at[mid]) > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

bool fusee_codemap_lookup(const struct fusee_codemap *m, uint64_t addr, uint32_t generation,
			  struct fusee_str *name)
{
	uint32_t i = above(m, addr);
	const struct piece *p = i < m->live.n && m->live.at[i].lo <= addr ? &m->live.at[i] : NULL;

	for (uint32_t k = 0; (!p || p->first > generation) && k < m->npast && k < PAST; k++) {
		const struct piece *old = &m->past[(m->npast - 1 - k) % PAST];

		if (addr >= old->lo && addr < end_of(old) && old->first <= generation &&
		    generation < old->end) {
			p = old;
			break;
		}
	}
	if (!p)
		return false;
	*name = name_of(m, p);
	return true;
}

bool fusee_codemap_covers(const struct fusee_codemap *m, uint64_t lo, uint64_t hi, uint32_t most,
			  bool (*each)(void *arg, struct fusee_str name), void *arg)
{
	uint32_t i = above(m, lo);
	bool covers = i < m->live.n && m->live.at[i].lo < hi;

	for (; each && most-- && i < m->live.n && m->live.at[i].lo < hi; i++)
		if (!each(arg, name_of(m, &m->live.at[i])))
			break;
	return covers;
}
