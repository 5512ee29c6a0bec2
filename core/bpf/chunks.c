/* SPDX-License-Identifier: Apache-2.0 */
/* Which map chunks are free, and whose the others are. */
#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "bpf/internal/sampler_state.h"

int chunks_init(struct bpf_sampler *b)
{
	struct chunks *c = &b->chunks;

	c->free = calloc(c->n, sizeof(*c->free));
	c->owners = calloc(c->n, sizeof(struct published *));
	if (!c->free || !c->owners)
		return -ENOMEM;
	for (uint32_t i = c->n - 1; i; i--)
		c->free[c->nfree++] = i;
	return 0;
}

void chunks_fini(struct bpf_sampler *b)
{
	free(b->chunks.free);
	free(b->chunks.owners);
}

uint32_t chunks_alloc(struct bpf_sampler *b)
{
	return b->chunks.nfree ? b->chunks.free[--b->chunks.nfree] : 0;
}

void chunks_free(struct bpf_sampler *b, uint32_t chunk)
{
	for (uint32_t next; chunk; chunk = next) {
		struct map_chunk *c = &b->chunks.at[chunk];

		fusee_assert(b->chunks.nfree < b->chunks.n - 1);
		next = c->next;
		c->process = c->changed = c->blurred = c->as_of = 0;
		c->unmarked = (struct unmarked_ranges){0};
		c->n = c->next = 0;
		b->chunks.owners[chunk] = NULL;
		b->chunks.free[b->chunks.nfree++] = chunk;
	}
}
