/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/followed.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

int followed_add(struct followed_hits *f, const struct followed_hit *hit)
{
	return buf_add(&f->all, hit, sizeof(*hit));
}

struct followed_hit *followed_at(const struct followed_hits *f, size_t *n)
{
	*n = f->all.len / sizeof(struct followed_hit);
	return (struct followed_hit *)(void *)f->all.p;
}

/* The place of the first that is not less; n: all are. */
static size_t place_of(const uint32_t *ids, size_t n, uint32_t id)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (ids[mid] < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int followed_keep(struct followed_hits *f, const uint32_t *ids, size_t n)
{
	size_t all, kept = 0;
	struct followed_hit *hits = followed_at(f, &all);
	uint8_t *taken = calloc(n + 1, 1); /* by place in ids */

	if (!taken)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++) {
		size_t at = place_of(ids, n, hits[i].id);

		while (at < n && ids[at] == hits[i].id && taken[at])
			at++;
		if (at == n || ids[at] != hits[i].id)
			continue;
		taken[at] = 1;
		hits[kept++] = hits[i];
	}
	f->all.len = kept * sizeof(*hits);
	free(taken);
	return 0;
}

struct followed_sum *followed_sums(const struct followed_hits *f, uint32_t nsamples, uint32_t nids)
{
	struct followed_sum *sums = calloc((size_t)nsamples + nids + 1, sizeof(*sums));
	size_t n;
	const struct followed_hit *hits = followed_at(f, &n);

	for (size_t i = 0; sums && i < n; i++) {
		size_t row = hits[i].ids ? (size_t)nsamples + hits[i].ids : hits[i].sample;

		sums[row].weight += hits[i].weight;
		sums[row].hits += hits[i].hits;
	}
	return sums;
}
