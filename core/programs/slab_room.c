/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/slab_room.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int add_hole(struct slab_room *r, uint32_t i, struct slab_hole hole)
{
	if (r->n == r->cap) {
		uint32_t cap = r->cap ? r->cap * 2 : 16;
		struct slab_hole *holes = realloc(r->holes, cap * sizeof(*holes));

		if (!holes)
			return -ENOMEM;
		r->holes = holes;
		r->cap = cap;
	}
	memmove(&r->holes[i + 1], &r->holes[i], (r->n - i) * sizeof(hole));
	r->holes[i] = hole;
	r->n++;
	return 0;
}

static void remove_hole(struct slab_room *r, uint32_t i)
{
	memmove(&r->holes[i], &r->holes[i + 1], (r->n - i - 1) * sizeof(r->holes[0]));
	r->n--;
}

/* Where in the hole `words` fit without crossing more slabs than they must; UINT32_MAX: not. */
static uint32_t fit(const struct slab_room *r, const struct slab_hole *h, uint32_t words)
{
	uint32_t at = h->at, room = r->slab_words - at % r->slab_words;

	if (words > room && at % r->slab_words)
		at += room;
	return at - h->at + (uint64_t)words <= h->words ? at : UINT32_MAX;
}

int slab_room_take(struct slab_room *r, uint32_t words, uint32_t *ret)
{
	for (uint32_t i = 0; i < r->n; i++) {
		struct slab_hole h = r->holes[i], behind;
		uint32_t at = fit(r, &h, words);

		if (at == UINT32_MAX)
			continue;
		behind = (struct slab_hole){at + words, h.at + h.words - at - words};
		r->holes[i].words = at - h.at;
		if (behind.words && add_hole(r, i + 1, behind))
			r->used_words += behind.words; /* leaked: no memory for the hole */
		if (!r->holes[i].words)
			remove_hole(r, i);
		r->used_words += words;
		*ret = at;
		return 0;
	}
	return -ENOSPC;
}

void slab_room_give(struct slab_room *r, uint32_t at, uint32_t words)
{
	uint32_t i = 0;

	while (i < r->n && r->holes[i].at < at)
		i++;
	if (add_hole(r, i, (struct slab_hole){at, words}))
		return;
	r->used_words -= words;
	if (i + 1 < r->n && at + words == r->holes[i + 1].at) {
		r->holes[i].words += r->holes[i + 1].words;
		remove_hole(r, i + 1);
	}
	if (i && r->holes[i - 1].at + r->holes[i - 1].words == at) {
		r->holes[i - 1].words += r->holes[i].words;
		remove_hole(r, i);
	}
}

int slab_room_init(struct slab_room *r, uint32_t slab_words, uint32_t at, uint32_t words)
{
	*r = (struct slab_room){.slab_words = slab_words};
	return add_hole(r, 0, (struct slab_hole){at, words});
}

void slab_room_fini(struct slab_room *r)
{
	free(r->holes);
	r->holes = NULL;
}
