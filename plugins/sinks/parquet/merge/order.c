/* SPDX-License-Identifier: Apache-2.0 */
#include "order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/bytes.h>

#define DISTINCT 56 /* bytes of a stack besides its text, in two dictionaries */
#define RATE 8      /* texts of one in RATE stacks are kept, of fewer if there are too many */
#define TEXT 4096   /* bytes of a text that is kept */
#define TEXTS (8ull << 20)

/* Mixes all bits, so that adjacent numbers differ in all bits. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
	return x ^ x >> 32;
}

/* ---- counting ---- */

uint32_t order_service(struct order *o, struct fusee_str name)
{
	struct order_service s = {.hash = numbers_of_text(NUMBERS_OF_NONE, name)};
	uint32_t i = o->nservices;
	int r;

	if (!fusee_grow(&o->services, &o->services_cap, i + 1ull, sizeof(s)))
		return UINT32_MAX;
	r = numbers_add(&o->by_hash, s.hash, &i);
	if (r <= 0)
		return r ? UINT32_MAX : i;
	memset(s.least, 0xff, sizeof(s.least));
	s.len = (uint32_t)(name.len < ORDER_TEXT ? name.len : ORDER_TEXT);
	if (s.len)
		memcpy(s.text, name.p, s.len);
	o->services[o->nservices++] = s;
	return i;
}

/* Drops half of the kept texts. */
static void thin(struct order *o)
{
	uint32_t n = 0;

	o->rate *= 2;
	o->texts_bytes = 0;
	for (uint32_t i = 0; i < o->ntexts; i++) {
		if (o->texts[i].mixed & (o->rate - 1)) {
			free(o->texts[i].p);
			continue;
		}
		o->texts_bytes += o->texts[i].len;
		o->texts[n++] = o->texts[i];
	}
	o->ntexts = n;
}

/* mixed: bits that are not used for anything else. */
static int keep_text(struct order *o, uint32_t service, uint64_t mixed, struct fusee_str text)
{
	struct order_text t = {.mixed = mixed, .service = service};

	o->rate = o->rate ? o->rate : RATE;
	if (mixed & (o->rate - 1))
		return 0;
	t.len = (uint32_t)(text.len < TEXT ? text.len : TEXT);
	t.p = malloc(t.len + 1ull);
	if (!t.p || !fusee_grow(&o->texts, &o->texts_cap, o->ntexts + 1ull, sizeof(t))) {
		free(t.p);
		return -ENOMEM;
	}
	if (t.len)
		memcpy(t.p, text.p, t.len);
	o->texts[o->ntexts++] = t;
	o->texts_bytes += t.len;
	if (o->texts_bytes > TEXTS)
		thin(o);
	return 0;
}

int order_row(struct order *o, uint32_t service, uint64_t bytes, int64_t stack,
	      struct fusee_str text)
{
	struct order_service *s = &o->services[service];
	uint64_t mixed = mix((uint64_t)stack), *least = &s->least[mixed % ORDER_LEAST];
	uint32_t none = 0;
	int r = numbers_add(&o->pairs, mixed ^ s->hash, &none);

	if (r < 0 || !fusee_grow(&o->stacks, &o->stacks_cap, o->nstacks + 1ull, sizeof(*o->stacks)))
		return -ENOMEM;
	if (r) {
		o->stacks[o->nstacks++] = (struct order_stack){stack, service, (uint32_t)text.len};
		r = keep_text(o, service, mixed >> 32, text);
	}
	*least = mixed < *least ? mixed : *least;
	s->rows++;
	s->bytes += bytes;
	return r;
}

/* ---- families ---- */

static int compare_texts(const struct order_service *x, const struct order_service *y)
{
	int r = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);

	if (r || x->len != y->len)
		return r ? r : x->len < y->len ? -1 : 1;
	return (x->hash > y->hash) - (x->hash < y->hash);
}

/* Sorts by the name of the family's first service, then by name. */
static int by_family(const void *a, const void *b, void *services)
{
	const struct order_service *all = services, *x = &all[*(const uint32_t *)a],
				   *y = &all[*(const uint32_t *)b];

	return x->family == y->family ? compare_texts(x, y)
				      : compare_texts(&all[x->family], &all[y->family]);
}

/* The key of the k-th of a service's least numbers. 0: none. */
static uint64_t least_of(const struct order_service *s, uint32_t k)
{
	return s->least[k] == UINT64_MAX ? 0 : s->least[k];
}

/* Services whose sets of stacks overlap much mostly share a least number (MinHash). */
static int find_families(struct order *o)
{
	struct numbers known = {0};
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < o->nservices; i++) {
		struct order_service *s = &o->services[i];
		uint32_t found = UINT32_MAX;

		for (uint32_t k = 0; k < ORDER_LEAST && found == UINT32_MAX; k++)
			found = numbers_get(&known, least_of(s, k));
		s->family = found == UINT32_MAX ? i : found;
		for (uint32_t k = 0; r >= 0 && k < ORDER_LEAST; k++) {
			found = s->family;
			if (least_of(s, k))
				r = numbers_add(&known, least_of(s, k), &found);
		}
	}
	numbers_fini(&known);
	return r < 0 ? r : 0;
}

static void sort_services(const struct order *o, uint32_t *sorted)
{
	for (uint32_t i = 0; i < o->nservices; i++)
		sorted[i] = i;
	qsort_r(sorted, o->nservices, sizeof(*sorted), by_family, o->services);
}

/* Adds the rows and bytes of a family to its first service. */
static int sum_families(struct order *o)
{
	int r = 0;

	numbers_fini(&o->pairs);
	for (uint32_t i = 0; r >= 0 && i < o->nstacks; i++) {
		const struct order_stack *s = &o->stacks[i];
		struct order_service *family = &o->services[o->services[s->service].family];
		uint32_t none = 0;

		r = numbers_add(&o->pairs, mix((uint64_t)s->number) ^ family->hash, &none);
		if (r > 0)
			family->bytes += s->len + DISTINCT;
	}
	for (uint32_t i = 0; i < o->nservices; i++) {
		const struct order_service *s = &o->services[i];

		if (s->family == i)
			continue;
		o->services[s->family].rows += s->rows;
		o->services[s->family].bytes += s->bytes;
	}
	numbers_fini(&o->pairs);
	return r < 0 ? r : 0;
}

/* ---- row groups ---- */

/* The number of row groups that a family needs. */
static uint32_t parts_of(const struct order_service *s, uint64_t bytes, uint64_t rows)
{
	uint64_t by_bytes = (s->bytes + bytes - 1) / bytes, by_rows = (s->rows + rows - 1) / rows;

	return (uint32_t)(by_bytes > by_rows ? by_bytes : by_rows);
}

/* All services of a family use the row groups of its first service, which need not be the first by
 * name. */
static void form_groups(struct order *o, const uint32_t *sorted, uint64_t bytes, uint64_t rows)
{
	uint64_t nbytes = bytes, nrows = rows; /* of the last row group */

	for (uint32_t i = 0; i < o->nservices; i++) {
		struct order_service *s = &o->services[sorted[i]];

		if (s->family != sorted[i])
			continue;
		s->n = parts_of(s, bytes, rows);
		if (s->n > 1 || nbytes + s->bytes > bytes || nrows + s->rows > rows) {
			nbytes = nrows = 0;
			o->ngroups += s->n;
		}
		s->first = o->ngroups - s->n;
		nbytes += s->bytes;
		nrows += s->rows;
	}
	for (uint32_t i = 0; i < o->nservices; i++) {
		struct order_service *s = &o->services[i];

		s->first = o->services[s->family].first;
		s->n = o->services[s->family].n;
	}
}

/* ---- dividing families ---- */

static int compare_bytes(const char *a, uint64_t a_len, const char *b, uint64_t b_len)
{
	uint64_t n = a_len < b_len ? a_len : b_len;
	int r = n ? memcmp(a, b, n) : 0;

	return r ? r : (a_len > b_len) - (a_len < b_len);
}

static int by_text(const void *a, const void *b, void *services)
{
	const struct order_text *x = a, *y = b;
	const struct order_service *all = services;
	uint32_t f = all[x->service].family, g = all[y->service].family;

	return f == g ? compare_bytes(x->p, x->len, y->p, y->len) : f < g ? -1 : 1;
}

/* Chooses the texts at which a family's row groups begin, of its n sorted texts, so that each row
 * group gets equally many bytes of text. */
static void split(struct order *o, struct order_service *family, const struct order_text *t,
		  uint32_t n)
{
	uint64_t all = 0, before = 0;
	uint32_t i = 0;

	for (uint32_t k = 0; k < n; k++)
		all += t[k].len + DISTINCT;
	family->splits = o->nsplits;
	family->has_splits = true;
	for (uint32_t k = 1; k < family->n; k++) {
		while (i + 1 < n && before < all * k / family->n)
			before += t[i++].len + DISTINCT;
		o->splits[o->nsplits++] = t[i];
	}
}

static int find_splits(struct order *o)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < o->nservices; i++)
		most += o->services[i].family == i ? o->services[i].n : 0;
	o->splits = calloc(most + 1, sizeof(*o->splits));
	if (!o->splits)
		return -ENOMEM;
	if (o->ntexts)
		qsort_r(o->texts, o->ntexts, sizeof(*o->texts), by_text, o->services);
	for (uint32_t i = 0, end; i < o->ntexts; i = end) {
		uint32_t family = o->services[o->texts[i].service].family;

		for (end = i + 1; end < o->ntexts; end++)
			if (o->services[o->texts[end].service].family != family)
				break;
		split(o, &o->services[family], o->texts + i, end - i);
	}
	for (uint32_t i = 0; i < o->nservices; i++) {
		o->services[i].splits = o->services[o->services[i].family].splits;
		o->services[i].has_splits = o->services[o->services[i].family].has_splits;
	}
	return 0;
}

int order_finish(struct order *o, uint64_t bytes, uint64_t rows)
{
	uint32_t *sorted = calloc(o->nservices + 1ull, sizeof(*sorted));
	int r;

	if (!sorted)
		return -ENOMEM;
	r = find_families(o);
	if (!r)
		r = sum_families(o);
	sort_services(o, sorted);
	if (!r)
		form_groups(o, sorted, bytes, rows);
	if (!r)
		r = find_splits(o);
	free(sorted);
	free(o->stacks);
	o->stacks = NULL;
	return r;
}

uint32_t order_find(const struct order *o, struct fusee_str name)
{
	return numbers_get(&o->by_hash, numbers_of_text(NUMBERS_OF_NONE, name));
}

uint32_t order_group(const struct order *o, uint32_t service, struct fusee_str text)
{
	const struct order_service *s = &o->services[service];
	uint32_t group = s->first;

	for (uint32_t k = 0; s->has_splits && k + 1 < s->n; k++) {
		const struct order_text *at = &o->splits[s->splits + k];

		if (compare_bytes(text.p, text.len, at->p, at->len) < 0)
			break;
		group++;
	}
	return group;
}

void order_fini(struct order *o)
{
	free(o->services);
	free(o->stacks);
	for (uint32_t i = 0; i < o->ntexts; i++)
		free(o->texts[i].p);
	free(o->texts);
	free(o->splits);
	numbers_fini(&o->by_hash);
	numbers_fini(&o->pairs);
	*o = (struct order){0};
}
