/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/in_use.h"

#include "bpf/inuse.h"
#include "pipeline/collector.h"
#include "profiler/internal/in_use_ids.h"
#include "profiler/profiler.h"

#define LEAST_PRUNED 65536u /* fewer hits are not worth a reading */

void in_use_fini(struct in_use *u)
{
	buf_fini(&u->ids);
}

int in_use_read(struct in_use *u, const struct profiler *p, bool calls)
{
	buf_reset(&u->ids);
	return in_use_ids(p->bpf, calls, &u->ids);
}

static struct in_use_totals totals_of(const struct profiler *p, const struct collector *c)
{
	struct in_use_totals all = {.lost = bpf_inuse_counts(p->bpf)};
	size_t n;
	const struct followed_hit *hits = followed_at(&c->followed, &n);

	for (size_t i = 0; i < n; i++) {
		all.bytes += hits[i].weight;
		all.objects += hits[i].hits;
	}
	all.objects = (all.objects + HIT_PARTS / 2) / HIT_PARTS;
	return all;
}

int in_use_keep(struct in_use *u, const struct profiler *p, struct collector *c)
{
	int r = collector_keep(c, (const uint32_t *)(const void *)u->ids.p,
			       u->ids.len / sizeof(uint32_t));

	if (!r)
		u->totals = totals_of(p, c);
	return r;
}

int in_use_prune(struct in_use *u, const struct profiler *p)
{
	struct collector *c = pipeline_collector(p->pipeline, u->slot);
	size_t n;
	int r;

	if (!c)
		return 0;
	followed_at(&c->followed, &n);
	if (n < 2 * u->kept + LEAST_PRUNED)
		return 0;
	r = in_use_read(u, p, true);
	if (r)
		return r;
	r = in_use_keep(u, p, c);
	followed_at(&c->followed, &u->kept);
	return r;
}
