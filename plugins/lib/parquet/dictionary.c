/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "internal.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SLOTS 64 /* of an empty dictionary */

struct fusee_str pq_dictionary_text_at(const struct pq_dictionary *d, uint32_t code)
{
	return (struct fusee_str){(const char *)d->text.p + d->values[code], d->lens[code]};
}

uint64_t pq_dictionary_bytes(const struct pq_dictionary *d)
{
	return d->text.len + d->n * (sizeof(*d->values) + sizeof(*d->lens) + 4 * sizeof(*d->slots));
}

/* The seed differs in each process, so that profiled programs, which choose the names, cannot
 * choose colliding slots. */
static uint32_t hash_number(const struct pq_dictionary *d, uint64_t v)
{
	return (uint32_t)XXH3_64bits_withSeed(&v, sizeof(v), d->seed);
}

static uint32_t hash_text(const struct pq_dictionary *d, struct fusee_str s)
{
	return (uint32_t)XXH3_64bits_withSeed(s.p, s.len, d->seed);
}

static bool grow_slots(struct pq_dictionary *d)
{
	uint32_t n = d->nslots ? d->nslots * 2 : SLOTS;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return false;
	for (uint32_t i = 0; i < d->n; i++) {
		uint32_t k = d->is_text ? hash_text(d, pq_dictionary_text_at(d, i))
					: hash_number(d, d->values[i]);

		while (slots[k & (n - 1)])
			k++;
		slots[k & (n - 1)] = i + 1;
	}
	free(d->slots);
	d->slots = slots;
	d->nslots = n;
	return true;
}

/* Room for one value more. The number of values is bounded by the rows of a row group. */
static bool make_room(struct pq_dictionary *d)
{
	return fusee_grow(&d->values, &d->values_cap, d->n + 1ull, sizeof(*d->values)) &&
	       fusee_grow(&d->lens, &d->lens_cap, d->n + 1ull, sizeof(*d->lens)) &&
	       (d->n < d->nslots / 2 || grow_slots(d));
}

int64_t pq_dictionary_number(struct pq_dictionary *d, int64_t value)
{
	uint64_t v = (uint64_t)value;
	uint32_t k, *slot;

	if (!make_room(d))
		return -ENOMEM;
	for (k = hash_number(d, v); *(slot = &d->slots[k & (d->nslots - 1)]); k++)
		if (d->values[*slot - 1] == v)
			return *slot - 1;
	d->values[d->n] = v;
	*slot = ++d->n;
	return d->n - 1;
}

int64_t pq_dictionary_text(struct pq_dictionary *d, struct fusee_str s)
{
	uint32_t k, *slot;

	if (!d->text.len)
		fusee_bytes_byte(&d->text, 0); /* gives empty texts an address */
	if (!make_room(d))
		return -ENOMEM;
	for (k = hash_text(d, s); *(slot = &d->slots[k & (d->nslots - 1)]); k++)
		if (d->lens[*slot - 1] == s.len &&
		    !memcmp(d->text.p + d->values[*slot - 1], s.p, s.len))
			return *slot - 1;
	if (!pq_is_utf8(s))
		return -EILSEQ;
	d->values[d->n] = d->text.len;
	d->lens[d->n] = (uint32_t)s.len;
	fusee_bytes_add(&d->text, s.p, s.len);
	if (d->text.error)
		return d->text.error;
	*slot = ++d->n;
	return d->n - 1;
}

static int compare(const void *a, const void *b, void *dictionary)
{
	const struct pq_dictionary *d = dictionary;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int64_t v = (int64_t)d->values[x], w = (int64_t)d->values[y];
	struct fusee_str s, t;
	int r;

	if (!d->is_text)
		return (v > w) - (v < w);
	s = pq_dictionary_text_at(d, x);
	t = pq_dictionary_text_at(d, y);
	r = memcmp(s.p, t.p, s.len < t.len ? s.len : t.len);
	return r ? r : (s.len > t.len) - (s.len < t.len);
}

static void permute(struct pq_dictionary *d, const uint32_t *order, uint64_t *values,
		    uint32_t *lens)
{
	for (uint32_t i = 0; i < d->n; i++) {
		values[i] = d->values[order[i]];
		lens[i] = d->is_text ? d->lens[order[i]] : 0;
	}
	memcpy(d->values, values, d->n * sizeof(*values));
	memcpy(d->lens, lens, d->n * sizeof(*lens));
}

int pq_dictionary_sort(struct pq_dictionary *d, uint32_t *ranks)
{
	uint32_t *order = malloc((d->n + 1ull) * sizeof(*order)),
		 *lens = malloc((d->n + 1ull) * sizeof(*lens));
	uint64_t *values = malloc((d->n + 1ull) * sizeof(*values));
	int r = order && values && lens ? 0 : -ENOMEM;

	if (!r && d->n) {
		for (uint32_t i = 0; i < d->n; i++)
			order[i] = i;
		qsort_r(order, d->n, sizeof(*order), compare, d);
		for (uint32_t i = 0; i < d->n; i++)
			ranks[order[i]] = i;
		permute(d, order, values, lens);
	}
	free(order);
	free(lens);
	free(values);
	return r;
}

void pq_dictionary_empty(struct pq_dictionary *d)
{
	d->n = 0;
	d->text.len = 0;
	if (d->slots)
		memset(d->slots, 0, d->nslots * sizeof(*d->slots));
}

void pq_dictionary_fini(struct pq_dictionary *d)
{
	free(d->values);
	free(d->lens);
	free(d->slots);
	fusee_bytes_fini(&d->text);
	*d = (struct pq_dictionary){0};
}
