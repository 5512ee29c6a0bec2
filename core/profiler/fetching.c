// SPDX-License-Identifier: Apache-2.0
#include "profiler/fetching.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/state.h"
#include "fetcher/fetcher.h"

#define NAMED (INSPECTION_SYMTAB | INSPECTION_DWARF | INSPECTION_GO | INSPECTION_DEBUGDATA)

struct share {
	uint32_t file, last; /* last: the sample that was added last */
	uint64_t weight;     /* of the samples with a frame in it */
};

static void arrived(void *arg, const uint8_t *build_id, uint32_t len)
{
	symbolizer_debug_arrived(((struct profiler *)arg)->symbolizer, build_id, len);
}

int fetching_set_servers(struct profiler *p, const char *servers, uint32_t file_ms)
{
	return worker_set_servers(p->worker, servers, file_ms, arrived, p);
}

static int by_weight(const void *a, const void *b)
{
	uint64_t x = ((const struct share *)a)->weight, y = ((const struct share *)b)->weight;

	return x > y ? -1 : x < y;
}

static void add_stack(struct share *all, const struct collector *c, uint32_t sample)
{
	const struct sample_key *k = c->samples.entries[sample].key;
	const struct dict_entry *stack = &c->stacks.entries[k->stack];
	const uint32_t *frames = stack->key;

	for (uint32_t i = 0; i < stack->len / sizeof(*frames); i++) {
		uint32_t file = frame_set_at(&c->frames, frames[i]).file;

		if (all[file].last == sample)
			continue;
		all[file].last = sample;
		all[file].weight += c->sums[sample].weight;
	}
}

/* The weight of the samples with frames in each file, by file. NULL: no memory. */
static struct share *shares(const struct collector *c, uint32_t nfiles)
{
	struct share *all = calloc(nfiles, sizeof(*all));

	for (uint32_t i = 0; all && i < nfiles; i++)
		all[i].file = i;
	for (uint32_t i = 1; all && i < c->samples.n; i++)
		add_stack(all, c, i);
	return all;
}

static void request(struct profiler *p, struct fetcher *fetcher, uint32_t id)
{
	const struct file *f = p->pipeline->files->all[id];
	const uint8_t *alt;
	uint32_t len;

	if (!f || !f->inspection || f->state != FILE_READY || f->path[0] == '[') /* [vdso] */
		return;
	/* for a late window the symbol source is not known yet */
	if (!((symbolizer_symbol_source(p->symbolizer, id) | f->inspection->flags) & NAMED) &&
	    !symbolizer_awaits_debug(p->symbolizer, id))
		fetcher_request(fetcher, f->inspection->build_id, f->inspection->build_id_len,
				f->path);
	len = symbolizer_missing_alt(p->symbolizer, id, &alt);
	if (len)
		fetcher_request(fetcher, alt, len, f->path);
}

uint32_t fetching_request(struct profiler *p, const struct collector *c)
{
	struct fetcher *fetcher = worker_fetcher(p->worker);
	uint32_t n = p->pipeline->files->n;
	struct share *all = fetcher_is_on(fetcher) ? shares(c, n) : NULL;

	if (!all)
		return fetcher_pending(fetcher);
	qsort(all, n, sizeof(*all), by_weight);
	for (uint32_t i = 0;
	     i < n && all[i].weight && all[i].weight * FETCHING_LEAST >= c->weight_ns; i++)
		if (all[i].file)
			request(p, fetcher, all[i].file);
	free(all);
	return fetcher_pending(fetcher);
}
