// SPDX-License-Identifier: Apache-2.0
/* Files of a collector that have few symbols. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "profiler/build_profile.h"
#include "symbolizer/interpreter_code.h"
#include "pipeline/state.h"
#include "profiler/profiler.h"

static int by_self(const void *a, const void *b)
{
	uint64_t x = ((const struct poorly_symbolized_file *)a)->self_ns;
	uint64_t y = ((const struct poorly_symbolized_file *)b)->self_ns;

	return x > y ? -1 : x < y;
}

static uint32_t leaf_file(const struct collector *c, const struct dict_entry *stack)
{
	return frame_set_at(&c->frames, *(const uint32_t *)stack->key).file;
}

/* Own CPU time by file id. NULL: no memory. */
static uint64_t *self_times(const struct collector *c, uint32_t nfiles)
{
	uint64_t *self = calloc(nfiles, sizeof(*self));

	for (uint32_t i = 1; self && i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;
		const struct dict_entry *stack = &c->stacks.entries[k->stack];

		if (stack->len)
			self[leaf_file(c, stack)] += c->sums[i].weight;
	}
	return self;
}

uint32_t build_find_poorly_symbolized(const struct profiler *profiler, const struct collector *c,
				      struct poorly_symbolized_file *out, uint32_t n)
{
	const struct pipeline *p = profiler->pipeline;
	uint64_t *self = self_times(c, p->files->n);
	struct poorly_symbolized_file *all = calloc(p->files->n, sizeof(*all));
	uint32_t count = 0;

	for (uint32_t i = 1; self && all && i < p->files->n; i++) {
		const struct file *f = p->files->all[i];
		uint32_t source = symbolizer_symbol_source(profiler->symbolizer, i);

		if (!self[i] || !f || !f->inspection || !strcmp(f->path, "[vdso]") ||
		    source & (INSPECTION_SYMTAB | INSPECTION_DWARF | INSPECTION_GO))
			continue;
		all[count] = (struct poorly_symbolized_file){
			.path = f->path,
			.symbol_source = source,
			.self_ns = self[i],
			.is_interpreter = interpreter_code_at(p->claims, f, 0)};
		text_hex(all[count++].build_id, f->inspection->build_id,
			 f->inspection->build_id_len);
	}
	if (count)
		qsort(all, count, sizeof(*all), by_self);
	if (n > count)
		n = count;
	if (n)
		memcpy(out, all, n * sizeof(*all));
	free(all);
	free(self);
	return n;
}
