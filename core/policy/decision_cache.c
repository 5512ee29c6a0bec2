/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/internal/decision_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "target/labelset.h"

enum { MAX_SWEPT = 256 };

static uint64_t key_of(uint32_t set, bool known, bool early)
{
	return (uint64_t)set * 4 + early * 2u + known + 4; /* avoids key 0 */
}

/* ---- labels ---- */

int decision_label_order(const struct fusee_label *a, const struct fusee_label *b)
{
	const struct fusee_str *x = &a->key, *y = &b->key;
	int r = memcmp(x->p, y->p, x->len < y->len ? x->len : y->len);

	return r ? r : (x->len > y->len) - (x->len < y->len);
}

static int by_name(const void *a, const void *b)
{
	return decision_label_order(a, b);
}

/* Copies a label of the policy to *texts; it replaces the label set's label of the same name. */
static void add_label(struct cached_decision *c, const struct fusee_label *l, char **texts)
{
	struct fusee_label copy = {.key = {*texts, l->key.len}};
	uint32_t i = 0;

	*texts = (char *)mempcpy(*texts, l->key.p, l->key.len);
	copy.str = (struct fusee_str){*texts, l->str.len};
	*texts = (char *)mempcpy(*texts, l->str.p, l->str.len);
	while (i < c->d.nlabels && decision_label_order(&c->labels[i], &copy))
		i++;
	if (i < c->label_cap) {
		c->labels[i] = copy;
		c->d.nlabels += i == c->d.nlabels;
	}
}

static int set_labels(struct cached_decision *c, const struct fusee_label *set, uint32_t n,
		      const struct policy_answer *answer)
{
	size_t bytes = 1;
	char *texts;

	for (uint32_t i = 0; i < answer->nlabels; i++)
		bytes += answer->labels[i].key.len + answer->labels[i].str.len;
	texts = c->texts = malloc(bytes);
	if (n > DECISION_LABELS)
		n = DECISION_LABELS;
	c->label_cap = n + answer->nlabels < DECISION_LABELS ? n + answer->nlabels
							     : DECISION_LABELS;
	c->labels = calloc(c->label_cap + !c->label_cap, sizeof(*c->labels));
	if (!texts || !c->labels)
		return -ENOMEM;
	if (n)
		memcpy(c->labels, set, n * sizeof(*set));
	c->d.nlabels = n;
	for (uint32_t i = 0; i < answer->nlabels; i++)
		add_label(c, &answer->labels[i], &texts);
	qsort(c->labels, c->d.nlabels, sizeof(c->labels[0]), by_name);
	c->d.labels = c->labels;
	return 0;
}

/* ---- decisions ---- */

static void free_decision(struct cached_decision *c)
{
	if (!c)
		return;
	while (c->added) {
		struct added_label *a = c->added;

		c->added = a->next;
		free(a);
	}
	free(c->labels);
	free(c->texts);
	free(c);
}

/* 0 or -ENOMEM: there is no decision. */
static int decide(const struct decision_cache *cache, struct cached_decision *c,
		  const struct fusee_label *labels, uint32_t n)
{
	struct policy_answer answer = {0};
	char *text = NULL;
	int r = 0;

	if (c->d.known || cache->unknown_keep) {
		r = cache->decide(cache->arg, labels, n, &answer, &text);
		if (r) {
			log_warning("%s", text ? text : strerror(ENOMEM));
			metric_add(
				"policy_errors_total",
				"Total number of calls of the policy that failed or whose answer "
				"was not valid.",
				NULL, 1);
		}
		free(text);
		if (r == -ENOMEM)
			return r;
	}
	r = set_labels(c, labels, n, &answer);
	c->profile = answer.profile && answer.hz > 0;
	c->hz = answer.hz;
	c->sinks = answer.sinks;
	c->pulled = answer.pulled;
	c->d.refused = !c->profile;
	c->d.profile = c->profile && (c->sinks || c->pulled);
	c->d.hz = c->d.profile ? c->hz : 0;
	c->d.sinks = c->d.profile ? c->sinks : 0;
	return r;
}

static bool may_change(void *arg, struct fusee_str name)
{
	return targets_may_change(arg, name);
}

/* The same for processes that lack labels. Only a refusal that none of them can change is used. */
static int decide_early(const struct decision_cache *cache, struct cached_decision *c,
			const struct fusee_label *labels, uint32_t n)
{
	struct policy_watch watch = {.may_change = may_change, .arg = cache->targets};
	struct policy_answer answer = {0};
	int r = 0;

	c->early = true;
	c->names_known = targets_later_names(cache->targets);
	/* more labels than fit would take the place of some */
	watch.requested = n + c->names_known > LABELSET_MAX;
	if ((c->d.known || cache->unknown_keep) && !watch.requested)
		r = cache->decide_early(cache->arg, labels, n, &answer, &watch);
	c->refuses = c->d.refused = !r && !watch.requested && !answer.profile;
	answer = (struct policy_answer){0};
	return r ? r : set_labels(c, labels, n, &answer);
}

/* The decision for a label set; calls the policy if there is none yet. NULL: no memory. */
static struct cached_decision *get(struct decision_cache *cache, uint32_t set, bool known,
				   bool early)
{
	struct cached_decision *c = hashmap_get(&cache->entries, key_of(set, known, early));
	const struct fusee_label *labels;
	uint32_t n;
	int r;

	if (c)
		return c;
	labels = targets_set(cache->targets, set, &n);
	c = labels ? calloc(1, sizeof(*c)) : NULL;
	if (!c)
		return NULL;
	c->d.set = set;
	c->d.known = known;
	r = early ? decide_early(cache, c, labels, n) : decide(cache, c, labels, n);
	if (r || hashmap_put(&cache->entries, key_of(set, known, early), c)) {
		free_decision(c);
		return NULL;
	}
	return c;
}

static uint32_t find_set(const struct decision_cache *cache, const struct target_process *p,
			 bool *known)
{
	uint32_t set = targets_labels(cache->targets, p, known);

	targets_forget_change(cache->targets, p->pid);
	return set;
}

struct cached_decision *decision_cache_get(struct decision_cache *cache,
					   const struct target_process *p, bool *known)
{
	bool early = cache->decide_early && targets_lack_labels(cache->targets, p->pid, 0);
	uint32_t set = find_set(cache, p, known);
	struct cached_decision *c = set == TARGET_NONE ? NULL : get(cache, set, *known, early);

	if (!early || !c || (c->refuses && c->names_known == targets_later_names(cache->targets)))
		return c;
	cache->find_labels(cache->arg, p->pid);
	set = find_set(cache, p, known);
	return set == TARGET_NONE ? NULL : get(cache, set, *known, false);
}

struct cached_decision *decision_cache_peek(const struct decision_cache *cache, uint32_t set,
					    bool known)
{
	return hashmap_get(&cache->entries, key_of(set, known, false));
}

const struct decision *decision_cache_find(const struct decision_cache *cache, uint32_t set)
{
	static const bool orders[][2] = {
		{true, false}, {false, false}, {true, true}, {false, true}};
	const struct cached_decision *c = NULL;

	for (uint32_t i = 0; !c && i < sizeof(orders) / sizeof(*orders); i++)
		c = hashmap_get(&cache->entries, key_of(set, orders[i][0], orders[i][1]));
	return c ? &c->d : NULL;
}

/* ---- all of them ---- */

struct each {
	void (*each)(void *arg, const struct decision *);
	void *arg;
};

static void each_entry(void *arg, uint64_t key, void *value)
{
	struct each *e = arg;

	(void)key;
	e->each(e->arg, &((struct cached_decision *)value)->d);
}

void decision_cache_each(const struct decision_cache *cache,
			 void (*each)(void *arg, const struct decision *), void *arg)
{
	struct each e = {each, arg};

	hashmap_each(&cache->entries, each_entry, &e);
}

struct sweep {
	bool (*used)(void *arg, uint32_t set);
	void *arg;
	struct cached_decision *unused[MAX_SWEPT];
	uint32_t n;
};

static void sweep_entry(void *arg, uint64_t key, void *value)
{
	struct sweep *w = arg;
	struct cached_decision *c = value;

	(void)key;
	if (!c->holders && w->n < MAX_SWEPT && !w->used(w->arg, c->d.set))
		w->unused[w->n++] = c;
}

static bool has_decision(void *arg, uint32_t set)
{
	return decision_cache_find(arg, set);
}

void decision_cache_sweep(struct decision_cache *cache, bool (*used)(void *arg, uint32_t set),
			  void *arg)
{
	struct sweep w = {.used = used, .arg = arg};

	hashmap_each(&cache->entries, sweep_entry, &w);
	for (uint32_t i = 0; i < w.n; i++) {
		cache->changed -= !!w.unused[i]->rate_until_ns + !!w.unused[i]->drop_until_ns +
				  !!w.unused[i]->more_until_ns;
		hashmap_del(&cache->entries,
			    key_of(w.unused[i]->d.set, w.unused[i]->d.known, w.unused[i]->early));
		free_decision(w.unused[i]);
	}
	targets_sweep(cache->targets, has_decision, cache);
}

static void free_entry(void *arg, uint64_t key, void *value)
{
	(void)arg;
	(void)key;
	free_decision(value);
}

void decision_cache_fini(struct decision_cache *cache)
{
	hashmap_each(&cache->entries, free_entry, NULL);
	hashmap_fini(&cache->entries);
}
