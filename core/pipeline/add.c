/* SPDX-License-Identifier: Apache-2.0 */
/* Adds samples to collectors, and accounts for them. */
#include <errno.h>

#include "pipeline/state.h"
#include "plugin/instance.h"
#include "unwind/thread_name.h"
#include "unwind/unwinders.h"

/* The reason for which a language unwinder stopped the walk in the kernel; the walk in user space
 * then lacks its frames. NULL: none stopped it. */
static const char *stop_reason(const struct pipeline *p, struct walk_stop stop)
{
	const struct plugin_set *set = p->walker.unwinders;

	if (!stop.unwinder || stop.unwinder > set->n)
		return NULL;
	switch (stop.reason) {
	case WALK_FAULT_ENDLESS:
		return loss_text(LOSS_ENDLESS);
	case WALK_FAULT_BACKWARDS:
		return loss_text(LOSS_BACKWARDS);
	default:
		return unwinder_reason(set->instances[stop.unwinder - 1]->descriptor->ops,
				       stop.reason);
	}
}

/* Of two frames at one address, neither is another function for being interrupted. */
static void forget_exact(struct walk *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->frames[i].kind == FRAME_ANONYMOUS)
			w->frames[i].extra[1] = 0;
}

/* The parts of a sample of a sampler. */
static void split(const struct chooser_set *set, const struct sample *s, uint64_t weight,
		  struct collected_parts *to)
{
	const struct fusee_sampler_ops *ops = set ? plugin_chooser_ops(set, s->chosen.sampler)
						  : NULL;
	const struct fusee_sampler_sample sample = {
		.size = sizeof(sample),
		.pid = (uint32_t)s->pid,
		.tid = (uint32_t)s->tid,
		.words = {s->chosen.words[0], s->chosen.words[1]},
		.weight = weight};

	to->n = ops && ops->parts ? ops->parts(set->at[s->chosen.sampler]->ctx, &sample, to->part)
				  : 0;
	if (to->n && to->n <= FUSEE_SAMPLER_PARTS)
		return;
	to->n = 1;
	to->part[0] = (struct fusee_sampler_part){weight, ops && ops->label ? sample.words[0] : 0,
						  1};
}

int pipeline_collect(const struct pipeline *p, struct collector *c, const struct process *proc,
		     const struct sample *s, const struct pipeline_route *route, const char *comm,
		     const struct walk *walk, uint32_t reason)
{
	uint64_t weight = route->weight_ns ? route->weight_ns : s->period;
	/* a stopped thread's CPU is that where it ran last, which is not read */
	const struct collected_at here = {s->time, s->memory ? UINT32_MAX : s->cpu},
				  *at = p->o.kept.times && walk ? &here : NULL;
	struct collected_parts parts = {.set = route->set,
					.tid = p->o.kept.threads ? (uint32_t)s->tid : 0};
	bool follows = !p->o.follower || c == p->slots[p->o.follower - 1];
	const struct collected_hit hit = {parts.set, parts.tid, s->hit.value,
					  follows ? s->hit.followed : 0, s->hit.hook};
	int r;

	if (s->chosen.is) {
		parts.sampler = s->chosen.sampler;
		split(p->o.choosers, s, weight, &parts);
		r = collector_add_parts(c, proc, &parts, comm, walk, reason, at);
	} else if (s->hit.value) {
		r = collector_add_hit(c, proc, &hit, comm, walk, reason, weight, at);
	} else {
		r = collector_add(c, proc, parts.set, parts.tid, comm, walk, reason, weight, at);
	}
	if (!r && (s->ids.span_id || s->ids.trace_id[0] || s->ids.trace_id[1] || s->ids.texts_len))
		collector_set_ids(c, &s->ids);
	return r;
}

void pipeline_add(struct pipeline *p, struct process *proc, const struct sample *s,
		  const struct pipeline_route *route, const char *comm)
{
	const char *text = p->walk.reason     ? p->walk.reason
			   : s->stop.unwinder ? stop_reason(p, s->stop)
			   : p->walk.passed   ? loss_text(LOSS_NO_LANGUAGE)
					      : NULL;
	uint32_t reason = text ? loss_account_reason(&p->account, text) : LOSS_NONE;
	uint32_t worst = reason; /* of all slots: a full slot does not affect other slots */
	uint64_t weight = route->weight_ns ? route->weight_ns : s->period;
	char name[THREAD_NAME_BYTES];

	if (thread_name_take(&p->walk, p->claims, name))
		comm = name;
	forget_exact(&p->walk);
	if (p->o.same_frames)
		same_frames_replace(&p->walker.same, p->claims, &p->walk);
	for (uint64_t slots = route->slots; slots; slots &= slots - 1) {
		struct collector *c = p->slots[__builtin_ctzll(slots)];
		int r = c ? pipeline_collect(p, c, proc, s, route, comm, &p->walk, reason) : 0;

		if (__builtin_ctzll(slots) + 1 == (int)p->o.follower) {
			p->stats.unheld += r != 0; /* windows have it */
			continue;
		}
		if (r == -E2BIG) {
			worst = LOSS_PROFILE_FULL;
			r = pipeline_collect(p, c, proc, s, route, "", NULL, worst);
		}
		if (c && route->share && (!c->share || route->share < c->share))
			c->share = route->share;
		worst = r ? LOSS_NO_MEMORY : worst;
	}
	if (!s->chosen.is)
		p->stats.weight_ns += weight;
	else if (s->chosen.sampler < PLUGIN_MAX_SAMPLERS)
		p->stats.chosen[s->chosen.sampler] += weight;
	loss_account_add(&p->account, worst, 1);
	p->stats.guessed += !worst && p->walk.guessed;
	p->stats.continued += !worst && p->walk.continued;
	p->stats.kernel_only += !worst && !s->abi;
}
