/* SPDX-License-Identifier: Apache-2.0 */
/* What windows use: the rest is freed, and what is in use is added. */
#include <string.h>

#include "agent/internal/sampling.h"
#include "base/assert.h"
#include "pipeline/collector.h"
#include "profiler/in_use_ledger.h"

#define MAX_CLOSED (PLAN_MAX_SINKS * 5) /* windows that wait for symbols */
#define SYMBOL_BYTES (16u << 20)        /* symbols that are kept for the next window */

struct used {
	const struct collector *const *closed;
	uint32_t n;
	const struct pipeline *pipeline;
};

static bool has_set(const struct collector *c, uint32_t set)
{
	for (uint32_t p = 1; p < c->processes.n && p < c->ncollected; p++)
		if (c->collected[p].set == set)
			return true;
	return false;
}

static bool is_used(void *arg, uint32_t set)
{
	const struct used *u = arg;

	for (uint32_t i = 0; i < u->n; i++)
		if (has_set(u->closed[i], set))
			return true;
	for (uint32_t i = 0; i < PIPELINE_SLOTS; i++) {
		const struct collector *open = pipeline_collector(u->pipeline, i);

		if (open && has_set(open, set))
			return true;
	}
	return false;
}

void agent_sampling_sweep(struct agent_sampling *s, const struct collector *const *closed,
			  uint32_t n, bool names)
{
	const struct collector *all[MAX_CLOSED];
	struct used u = {all, n, s->profiler.pipeline};

	fusee_assert(n <= MAX_CLOSED);
	memcpy(all, closed, n * sizeof(closed[0]));
	if (s->more)
		u.n += s->more->pending(s->more->arg, all + n, MAX_CLOSED - n);
	if (names) {
		pipeline_forget_names(s->profiler.pipeline, all, u.n);
		return;
	}
	profiler_sweep(&s->profiler, all, u.n, SYMBOL_BYTES);
	decisions_sweep(s->decisions, is_used, &u);
}

struct chosen {
	const struct agent_sampling *sampling;
	uint32_t slot;
};

static bool is_chosen(void *arg, const struct collected_process *p, uint32_t *set)
{
	const struct chosen *c = arg;
	const struct decision *d = decisions_of(c->sampling->decisions, p->pid);

	if (!d || !d->profile || !(agent_sampling_slots(c->sampling, d->sinks) >> c->slot & 1))
		return false;
	*set = d->set;
	return true;
}

void agent_sampling_add_in_use(void *sampling, uint32_t slot, struct collector *c)
{
	const struct agent_sampling *s = sampling;
	struct chosen chosen = {s, slot};

	/* it logs and counts what is missing */
	(void)in_use_ledger_add(allocators_in_use(s->allocators), c,
				&(struct collector_carrying){.choose = is_chosen, .arg = &chosen});
}
