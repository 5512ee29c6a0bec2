/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/internal/merged.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define WINDOW "fusee.window." /* 12 = NAME TS DURATION PERIOD PROFILE */
#define MAX_WINDOWS 4096

static bool is_same(const struct parquet_part *a, const struct parquet_part *b)
{
	return a->ts == b->ts && a->duration == b->duration && a->period == b->period &&
	       a->kind.len == b->kind.len &&
	       (!a->kind.len || !memcmp(a->kind.p, b->kind.p, a->kind.len));
}

uint32_t parquet_merged_find(struct parquet_merged *m, const struct parquet_part *p)
{
	/* begins at the last match: rows of a window follow each other, then those of the next */
	for (uint32_t i = 0; i < m->n; i++) {
		uint32_t at = (m->last + i) % m->n;

		if (is_same(&m->parts[at], p)) {
			m->last = at;
			return at;
		}
	}
	return PARQUET_NO_WINDOW;
}

int parquet_merged_add(struct parquet_merged *m, const struct parquet_part *p)
{
	struct parquet_part *to = ARRAY_ADD(m->parts, m->n, m->cap);

	if (!to)
		return -ENOMEM;
	*to = *p;
	return 0;
}

/* ---- metadata ---- */

/* "fusee.window.12.lost.ring full": 12, and *at where "lost.ring full" begins, 0: nowhere. */
static bool parse_key(struct fusee_str key, uint32_t *number, uint32_t *at)
{
	uint64_t i = strlen(WINDOW);

	*number = *at = 0;
	if (key.len <= i || memcmp(key.p, WINDOW, i))
		return false;
	for (; i < key.len && key.p[i] >= '0' && key.p[i] <= '9'; i++) {
		*number = 10 * *number + (uint32_t)(key.p[i] - '0');
		if (*number >= MAX_WINDOWS)
			return false;
	}
	if (i < key.len && key.p[i] == '.')
		*at = (uint32_t)i + 1;
	return i == key.len || *at;
}

/* Removes the next word from a text. */
static struct fusee_str word(struct fusee_str *s)
{
	struct fusee_str w = {s->p, 0};

	while (w.len < s->len && w.p[w.len] != ' ')
		w.len++;
	s->p += w.len + (w.len < s->len);
	s->len -= w.len + (w.len < s->len);
	return w;
}

static bool number(struct fusee_str *s, int64_t *n)
{
	struct fusee_str w = word(s);
	char text[32], *end;

	if (!w.len || w.len >= sizeof(text))
		return false;
	memcpy(text, w.p, w.len);
	text[w.len] = '\0';
	errno = 0;
	*n = strtoll(text, &end, 10);
	return !errno && !*end;
}

static int add_window(struct parquet_merged *m, struct fusee_str text,
		      const struct parquet_excluded *excluded, uint32_t *part)
{
	struct parquet_part p = {0};
	struct fusee_str name = word(&text);

	*part = PARQUET_NO_WINDOW;
	if (!number(&text, &p.ts) || !number(&text, &p.duration) || !number(&text, &p.period) ||
	    p.ts < -1 || p.ts > INT64_MAX / 1000 || p.duration < 0)
		return -EINVAL;
	if (p.ts < 0) /* it had no sample */
		return 0;
	p.kind = text;
	*part = parquet_merged_find(m, &p);
	if (*part == PARQUET_NO_WINDOW) {
		int r = parquet_merged_add(m, &p);

		if (r)
			return r;
		*part = m->last = m->n - 1;
	}
	m->parts[*part].nfiles++;
	m->parts[*part].nexcluded += excluded && excluded->has(excluded->arg, name);
	return 0;
}

static int add_losses(struct parquet_merged *m, const struct fusee_parquet_file *file,
		      const uint32_t *parts)
{
	const struct fusee_str *pair;
	uint32_t n, at;

	for (uint32_t i = 0; (pair = fusee_parquet_pair_at(file, i)); i++) {
		struct parquet_part_loss *to;

		if (!parse_key(pair[0], &n, &at) || !at || parts[n] == PARQUET_NO_WINDOW)
			continue;
		to = ARRAY_ADD(m->losses, m->nlosses, m->losses_cap);
		if (!to)
			return -ENOMEM;
		*to = (struct parquet_part_loss){parts[n], i, at};
	}
	return 0;
}

static int by_part(const void *a, const void *b)
{
	const struct parquet_part_loss *x = a, *y = b;

	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return (x->pair > y->pair) - (x->pair < y->pair);
}

int parquet_merged_read(struct parquet_merged *m, const struct fusee_parquet_file *file,
			const struct parquet_excluded *excluded, const char **why)
{
	const struct fusee_str *pair;
	uint32_t *parts, n, at;
	int r = 0;

	if (!fusee_parquet_pair(file, fusee_text("fusee.windows")))
		return 0;
	parts = malloc(MAX_WINDOWS * sizeof(*parts));
	if (!parts)
		return -ENOMEM;
	memset(parts, 0xff, MAX_WINDOWS * sizeof(*parts));
	for (uint32_t i = 0; !r && (pair = fusee_parquet_pair_at(file, i)); i++)
		if (parse_key(pair[0], &n, &at) && !at)
			r = add_window(m, pair[1], excluded, &parts[n]);
	if (!r)
		r = add_losses(m, file, parts);
	free(parts);
	if (m->nlosses)
		qsort(m->losses, m->nlosses, sizeof(*m->losses), by_part);
	if (r == -EINVAL)
		*why = "what it says of its windows is damaged";
	return r ? r : 1;
}

/* ---- the choice ---- */

int parquet_merged_choose(struct parquet_merged *m, uint64_t from_ns, uint64_t to_ns,
			  bool *in_range, const char **why)
{
	int any = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		struct parquet_part *p = &m->parts[i];
		uint64_t start = (uint64_t)p->ts * 1000;

		p->selected = start >= from_ns && start < to_ns;
		*in_range |= p->selected;
		if (!p->selected || !p->nexcluded)
			continue;
		if (p->nexcluded < p->nfiles) {
			*why = "its windows were merged while they were read: ask again";
			return -EINVAL;
		}
		p->selected = false;
	}
	for (uint32_t i = 0; i < m->n; i++)
		any |= m->parts[i].selected;
	return any;
}

bool parquet_merged_selects(const struct parquet_merged *m, int64_t min, int64_t max)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->parts[i].selected && m->parts[i].ts >= min && m->parts[i].ts <= max)
			return true;
	return false;
}

void parquet_merged_fini(struct parquet_merged *m)
{
	free(m->parts);
	free(m->losses);
	*m = (struct parquet_merged){0};
}
