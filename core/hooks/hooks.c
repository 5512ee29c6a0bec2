/* SPDX-License-Identifier: Apache-2.0 */
#include "hooks/hooks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "hooks/internal/state.h"

#define HOLD_NS 60000000000ull

int hooks_new(struct hooks **ret, struct profiler *p)
{
	struct hooks *h = *ret = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->profiler = p;
	for (uint32_t i = 0; i < TRACEPOINTS; i++)
		h->tracepoints[i].links = PROBE_LINKS_NONE;
	return background_new(&h->background);
}

static void free_hook(struct hook *h)
{
	if (!h)
		return;
	probe_text_fini(&h->parsed);
	free(h->text);
	free(h->name);
	free(h->where);
	free(h->resolved);
	free(h->state.error);
	free(h);
}

void hooks_free(struct hooks *h)
{
	if (!h)
		return;
	hooks_stop(h);
	background_free(h->background);
	hooks_forget_files(h, NULL);
	for (uint32_t i = 0; i <= MOST_HOOKS; i++)
		free_hook(h->at[i]);
	hashmap_fini(&h->hooked);
	free(h->polled);
	free(h->files);
	free(h);
}

/* ---- plans ---- */

static bool is_same(const struct hook *h, const struct plan_probe *p)
{
	return h && !h->retired_ns && !strcmp(h->text, p->text) && !strcmp(h->name, p->name) &&
	       h->period == p->period;
}

/* Samples of a hook that is in no plan any more may be in windows for a while. 0: none is free. */
static uint8_t free_number(struct hooks *h)
{
	for (uint32_t i = 0; i < MOST_HOOKS; i++) {
		uint8_t number = (uint8_t)((h->last + i) % MOST_HOOKS + 1);
		struct hook *at = h->at[number];

		if (at && (!at->retired_ns || h->now - at->retired_ns < h->hold_ns))
			continue;
		free_hook(at);
		h->at[number] = NULL;
		h->last = number;
		return number;
	}
	return 0;
}

/* The path by which processes map a file to which links of this root lead. */
static char *resolve(const struct hook *h)
{
	char *real = hook_is_of_file(h) ? realpath(h->parsed.path, NULL) : NULL;

	if (real && strcmp(real, h->parsed.path) != 0)
		return real;
	free(real);
	return NULL;
}

static int init_hook(struct hook *h, const struct plan_probe *p)
{
	char *why = NULL;
	int r = probe_text_parse(&h->parsed, probe_kind_of(p->text), p->text, &why);

	free(why);
	h->text = strdup(p->text);
	h->name = strdup(p->name);
	h->where = strdup(p->where);
	h->period = p->period;
	if (!r && (!h->text || !h->name || !h->where))
		r = -ENOMEM;
	if (!r)
		h->resolved = resolve(h);
	return r;
}

static void add(struct hooks *h, const struct plan_probe *p)
{
	uint8_t number = free_number(h);
	struct hook *hook = number ? calloc(1, sizeof(*hook)) : NULL;

	if (!hook || init_hook(hook, p)) {
		free_hook(hook);
		log_error("%s: %s is not probed: %s", p->where, p->name,
			  number ? strerror(ENOMEM)
				 : "too many other probes were declared a moment ago");
		return;
	}
	hook->number = number;
	bpf_hooks_counts(h->profiler->bpf, !hook_is_of_file(hook), number, hook->before);
	h->at[number] = hook;
}

static void retire(struct hooks *h, struct hook *hook)
{
	hooks_detach(h, hook);
	hooks_forget_files(h, hook);
	hook->retired_ns = h->now;
	metric_forget("probe", hook->name);
}

/* For so long windows may have samples of what another plan has: the longest is open, and others
 * of its sink wait for names. */
static uint64_t hold_of(const struct plan *plan)
{
	uint64_t longest = 0;

	for (uint32_t i = 0; i < plan->nsinks; i++)
		if (plan->sinks[i]->every_ns > longest)
			longest = plan->sinks[i]->every_ns;
	return 2 * longest + HOLD_NS;
}

void hooks_set(struct hooks *h, const struct plan *plan)
{
	bool stays[MOST_HOOKS + 1] = {false}, is_new[PLAN_MAX_PROBES];
	uint64_t hold_ns = hold_of(plan);

	if (!h)
		return;
	h->now = clock_now();
	h->hold_ns = hold_ns > h->hold_ns ? hold_ns : h->hold_ns;
	h->plan++;
	for (uint32_t i = 0; i < plan->samplers.nprobes; i++) {
		is_new[i] = true;
		for (uint32_t k = 1; k <= MOST_HOOKS; k++)
			if (is_same(h->at[k], &plan->samplers.probes[i])) {
				stays[k] = true;
				is_new[i] = false;
			}
	}
	for (uint32_t k = 1; k <= MOST_HOOKS; k++)
		if (h->at[k] && !h->at[k]->retired_ns && !stays[k])
			retire(h, h->at[k]);
	for (uint32_t i = 0; i < plan->samplers.nprobes; i++)
		if (is_new[i])
			add(h, &plan->samplers.probes[i]);
}

const struct hook *hooks_of(const struct hooks *h, uint8_t number)
{
	return h->at[number];
}

/* ---- probes ---- */

/* Numbers whose probes have been removed are free. */
static void free_places(struct hooks *h)
{
	if (hooks_are_leaving())
		return;
	for (uint32_t i = 1; i <= HOOK_PLACES; i++)
		if (h->places[i] == PLACE_RETIRED)
			h->places[i] = PLACE_FREE;
}

void hooks_update(struct hooks *h)
{
	if (!h || h->stopped)
		return;
	h->now = clock_now();
	hooks_drop_ended(h);
	free_places(h);
	hooks_poll_searches(h);
	hooks_attach(h);
}

void hooks_stop(struct hooks *h)
{
	for (uint32_t k = 1; h && k <= MOST_HOOKS; k++)
		if (h->at[k])
			hooks_detach(h, h->at[k]);
	if (h)
		h->stopped = true;
}
