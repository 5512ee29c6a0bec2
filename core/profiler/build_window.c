/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a window's profile besides the samples of its collector. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <fusee/helpers.h>

#include "profiler/build_profile.h"
#include "profiler/profiler.h"

bool build_omits(const struct build_options *o, struct fusee_str name)
{
	for (const char *const *omit = o->omit; omit && *omit; omit++)
		if (fusee_text_is(name, *omit))
			return true;
	return false;
}

void build_host(struct builder *b)
{
	char host[256] = "";

	if (!gethostname(host, sizeof(host) - 1) && *host)
		builder_resource(b, "host", host);
}

bool build_has_set(const struct build_options *o, uint32_t set)
{
	if (!o->group)
		return !o->one_set || set == o->set;
	set = o->group(o->arg, set);
	return set && (!o->one_set || set == o->group(o->arg, o->set));
}

static bool is_in_part(const struct build_options *o, const struct sample_key *k)
{
	if (o->part == BUILD_CHOSEN)
		return k->part && k->sampler == o->sampler;
	if (o->part == BUILD_HITS)
		return k->sampler == COLLECTED_HIT - o->hook;
	return o->part == BUILD_ALL || (!k->part && !collected_is_hit(k));
}

bool build_has(const struct build_options *o, const struct collector *c, const struct sample_key *k)
{
	if (!is_in_part(o, k))
		return false;
	return build_has_set(o, c->collected[k->process].set);
}

uint64_t build_samples(const struct collector *c, const struct build_options *o)
{
	uint64_t n = 0;

	for (uint32_t i = 1; i < c->samples.n; i++)
		if (build_has(o, c, c->samples.entries[i].key))
			n += c->sums[i].count;
	return n;
}

bool build_has_in_use(const struct collector *c, const struct build_options *o)
{
	size_t n, i = 0;
	const struct followed_hit *hits = followed_at(&c->followed, &n);

	while (i < n && !build_has(o, c, c->samples.entries[hits[i].sample].key))
		i++;
	return i < n;
}

void build_resource(struct builder *b, const struct build_options *o)
{
	uint32_t nset = 0;
	const struct fusee_label *set = o->labels && o->one_set ? o->labels(o->arg, o->set, &nset)
								: NULL;

	if (o->probe && !build_omits(o, fusee_text("probe")))
		builder_resource(b, "probe", o->probe);

	for (uint32_t i = 0; i < nset; i++) {
		char key[256], value[512];

		if (build_omits(o, set[i].key))
			continue;
		snprintf(key, sizeof(key), "%.*s", (int)set[i].key.len, set[i].key.p);
		snprintf(value, sizeof(value), "%.*s", (int)set[i].str.len, set[i].str.p);
		builder_resource(b, key, value);
	}
}

uint64_t *build_weigh_programs(const struct collector *c, const struct build_options *o,
			       uint32_t nfiles)
{
	uint64_t *weights = calloc(nfiles + 1, sizeof(*weights));

	for (uint32_t i = 1; weights && i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;
		const struct collected_process *proc = &c->collected[k->process];

		if (proc->program < nfiles && build_has(o, c, k))
			weights[proc->program] += c->sums[i].weight;
	}
	return weights;
}

/* The lost ticks of the part with this reason. */
static uint64_t lost_of_part(const struct loss_account *a, uint32_t reason,
			     const struct build_options *o)
{
	bool of_hits = reason == LOSS_HIT_DURING_ANOTHER || reason == LOSS_HIT_NOT_SENT;

	/* which hook's a hit was is not known here */
	if (a->counts[reason].stage != LOSS_TICK || reason == LOSS_HOOK_HIT || o->hook ||
	    (reason == LOSS_WAIT_LATE) != (o->part == BUILD_CHOSEN) ||
	    of_hits != (o->part == BUILD_HITS))
		return 0;
	return o->part == BUILD_CHOSEN ? a->late[o->sampler] : a->counts[reason].n;
}

bool build_window_has_lost(const struct profiler_window *w, const struct build_options *o)
{
	for (uint32_t i = 1; i < w->losses.n; i++)
		if (lost_of_part(&w->losses, i, o))
			return true;
	return false;
}

/* *a: the losses of the part. Returns the mean weight of its samples. */
static uint64_t account_part(const struct profiler_window *w, const struct build_options *o,
			     struct loss_account *a)
{
	const struct collector *c = w->collector;
	uint64_t count = 0, weight_ns = 0;

	*a = w->losses;
	loss_account_clear(a);
	for (uint32_t i = 1; i < w->losses.n; i++)
		loss_account_add(a, i, lost_of_part(&w->losses, i, o));
	for (uint32_t i = 1; i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;

		if (!is_in_part(o, k))
			continue;
		loss_account_add(a, k->reason, c->sums[i].count);
		count += c->sums[i].count;
		weight_ns += c->sums[i].weight;
	}
	return count ? weight_ns / count : o->period_ns;
}

void build_window_losses(struct builder *b, const struct profiler_window *w,
			 const struct build_options *o)
{
	const struct collector *c = w->collector;
	struct build_lost lost = {.weight = c->count ? c->weight_ns / c->count : o->period_ns};
	struct loss_account part;

	if (o->part == BUILD_ALL) {
		build_losses(b, &w->losses, &lost);
	} else {
		lost.weight = account_part(w, o, &part);
		if (o->part == BUILD_CHOSEN) {
			lost.first = 1;
			part.late_weight[0] = w->losses.late_weight[o->sampler];
		}
		build_losses(b, &part, &lost);
	}
}

int build_end(struct builder *b, const struct collector *c, const struct fusee_profile **ret)
{
	struct fusee_profile *p = builder_profile(b);

	if (c->share)
		builder_comment(b,
				"fusee: rates were lowered by the budget, to %.0f %% at the "
				"lowest; values are scaled",
				c->share / 2.56);
	if (c->unkept_ids)
		builder_comment(b,
				"fusee: %llu samples are without their trace and span IDs or "
				"labels: there were too many",
				(unsigned long long)c->unkept_ids);
	if (getrandom(p->id, sizeof(p->id), 0) != sizeof(p->id))
		return -EIO;
	return builder_finish(b, ret);
}
