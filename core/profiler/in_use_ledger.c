/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/in_use_ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "pipeline/collector.h"
#include "pipeline/state.h"
#include "profiler/profiler.h"

#define LEDGER_BYTES (64u << 20)
#define FEW_STACKS 1024u /* are not worth another collector */

struct in_use_ledger {
	struct profiler *profiler;
	struct in_use used; /* and the slot */
	uint32_t compact;   /* samples of the collector when it was made */
	uint64_t unheld;    /* .. and the pipeline's count */
	uint64_t failed, uncarried;
	int err; /* the last that was logged */
};

static struct collector *collector_of(const struct in_use_ledger *l)
{
	return pipeline_collector(l->profiler->pipeline, l->used.slot);
}

static uint64_t unheld(const struct in_use_ledger *l)
{
	return l->profiler->pipeline->stats.unheld;
}

int in_use_ledger_new(struct in_use_ledger **ret, struct profiler *p)
{
	struct in_use_ledger *l = *ret = calloc(1, sizeof(*l));
	int r = l ? profiler_open_window(p, &l->used.slot) : -ENOMEM;

	if (r) {
		free(l);
		*ret = NULL;
		return r;
	}
	l->profiler = p;
	collector_set_own_limit(collector_of(l), LEDGER_BYTES);
	pipeline_follow_in(p->pipeline, l->used.slot);
	return 0;
}

void in_use_ledger_free(struct in_use_ledger *l)
{
	if (!l)
		return;
	in_use_fini(&l->used);
	free(l); /* the collector is the pipeline's */
}

uint64_t in_use_ledger_slots(const struct in_use_ledger *l)
{
	return l ? 1ull << l->used.slot : 0;
}

/* A collector keeps the stacks of what has been freed, with their files and label sets: when they
 * may be the half, another one takes its place. Without memory for that it stays. */
static void compact(struct in_use_ledger *l)
{
	const struct collector_carrying all = {0};
	struct collector *from = collector_of(l), *to;

	if (from->samples.n < 2 * l->compact + FEW_STACKS && unheld(l) == l->unheld)
		return;
	l->unheld = unheld(l);
	if (collector_new(&to))
		return;
	collector_set_own_limit(to, LEDGER_BYTES);
	if (collector_carry(to, from, &all)) {
		collector_free(to);
		return;
	}
	l->compact = to->samples.n;
	collector_free(pipeline_set_collector(l->profiler->pipeline, l->used.slot, to));
}

void in_use_ledger_prune(struct in_use_ledger *l)
{
	if (l)
		(void)in_use_prune(&l->used, l->profiler);
}

int in_use_ledger_add(struct in_use_ledger *l, struct collector *c,
		      const struct collector_carrying *o)
{
	struct collector_carrying sums = *o;
	uint64_t before = c->followed.refused;
	int r = in_use_read(&l->used, l->profiler, true);

	sums.sums = true;
	if (!r)
		r = in_use_keep(&l->used, l->profiler, collector_of(l));
	if (!r)
		r = collector_carry(c, collector_of(l), &sums);
	l->failed += r != 0;
	l->uncarried += c->followed.refused - before;
	if (r && r != l->err)
		log_warning("a window lacks what is in use: %s", strerror(-r));
	l->err = r;
	compact(l);
	return r;
}

struct in_use_counts in_use_ledger_counts(const struct in_use_ledger *l)
{
	struct in_use_counts c = {.used = l->used.totals,
				  .unheld = unheld(l),
				  .failed = l->failed,
				  .uncarried = l->uncarried,
				  .bytes = collector_of(l)->bytes};

	c.used.lost = bpf_inuse_counts(l->profiler->bpf);
	return c;
}
