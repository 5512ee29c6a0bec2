/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/internal/decision_changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int decision_set_rate(struct decision_cache *cache, uint32_t set, bool known, double hz,
		      uint64_t until_ns)
{
	struct cached_decision *c = decision_cache_peek(cache, set, known);

	if (!c)
		return -ENOENT;
	if (!c->profile)
		return -EACCES;
	cache->changed += !c->rate_until_ns;
	c->rate_hz = hz;
	c->rate_until_ns = until_ns;
	return 0;
}

int decision_drop(struct decision_cache *cache, uint32_t set, bool known, uint64_t until_ns)
{
	struct cached_decision *c = decision_cache_peek(cache, set, known);

	if (!c)
		return -ENOENT;
	cache->changed += !c->drop_until_ns;
	c->drop_until_ns = until_ns;
	return 0;
}

int decision_add_sinks(struct decision_cache *cache, uint32_t set, bool known, uint64_t sinks,
		       uint64_t until_ns)
{
	struct cached_decision *c = decision_cache_peek(cache, set, known);

	if (!c)
		return -ENOENT;
	if (!c->profile)
		return -EACCES;
	cache->changed += !c->more_until_ns;
	c->more_sinks = sinks;
	c->more_until_ns = until_ns;
	return 0;
}

/* ---- labels ---- */

/* Frees the texts of a label that is replaced, if it was added here. */
static void free_texts(struct cached_decision *c, const struct fusee_label *l)
{
	for (struct added_label **at = &c->added, *a; (a = *at); at = &a->next)
		if (a->texts == l->key.p) {
			*at = a->next;
			free(a);
			return;
		}
}

static int add_room(struct cached_decision *c)
{
	uint32_t cap = c->label_cap + 8 < DECISION_LABELS ? c->label_cap + 8 : DECISION_LABELS;
	struct fusee_label *more = realloc(c->labels, cap * sizeof(*more));

	if (!more)
		return -ENOMEM;
	c->d.labels = c->labels = more;
	c->label_cap = cap;
	return 0;
}

int decision_add_label(struct decision_cache *cache, uint32_t set, bool known,
		       const struct fusee_label *l)
{
	struct cached_decision *c = decision_cache_peek(cache, set, known);
	struct added_label *a;
	uint32_t i = 0;
	int order = 1;

	if (!c)
		return -ENOENT;
	while (i < c->d.nlabels && (order = decision_label_order(l, &c->labels[i])) > 0)
		i++;
	if (order && c->d.nlabels == DECISION_LABELS)
		return -ENOSPC;
	if (order && c->d.nlabels == c->label_cap && add_room(c))
		return -ENOMEM;
	a = malloc(sizeof(*a) + l->key.len + l->str.len + 1);
	if (!a)
		return -ENOMEM;
	memcpy(mempcpy(a->texts, l->key.p, l->key.len), l->str.p, l->str.len);
	if (order) {
		memmove(&c->labels[i + 1], &c->labels[i], (c->d.nlabels - i) * sizeof(*l));
		c->d.nlabels++;
	} else {
		free_texts(c, &c->labels[i]);
	}
	c->labels[i] = (struct fusee_label){.key = {a->texts, l->key.len},
					    .str = {a->texts + l->key.len, l->str.len}};
	a->next = c->added;
	c->added = a;
	return 0;
}

/* ---- refreshing ---- */

struct refresh {
	struct decision_cache *cache;
	uint64_t now_ns;
	bool any;
};

static void expire(struct refresh *r, uint64_t *until_ns)
{
	if (*until_ns && *until_ns <= r->now_ns) {
		*until_ns = 0;
		r->cache->changed--;
	}
}

static void refresh(void *arg, uint64_t key, void *value)
{
	struct cached_decision *c = value;
	struct refresh *r = arg;
	uint64_t sinks;
	bool profile;
	double hz;

	(void)key;
	expire(r, &c->rate_until_ns);
	expire(r, &c->drop_until_ns);
	expire(r, &c->more_until_ns);
	sinks = c->sinks | (c->more_until_ns ? c->more_sinks : 0);
	profile = c->profile && (sinks || c->pulled) && !c->drop_until_ns;
	c->d.sinks = profile ? sinks : 0;
	hz = !profile ? 0 : c->rate_until_ns ? c->rate_hz : c->hz;
	if (profile == c->d.profile && hz == c->d.hz)
		return;
	c->d.profile = profile;
	c->d.hz = hz;
	r->any = c->changed = true;
}

bool decision_changes_refresh(struct decision_cache *cache, uint64_t now_ns)
{
	struct refresh r = {.cache = cache, .now_ns = now_ns};

	if (cache->changed)
		hashmap_each(&cache->entries, refresh, &r);
	return r.any;
}
