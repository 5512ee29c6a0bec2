// SPDX-License-Identifier: Apache-2.0
/* The lists of entries: by key, by what they match, by source. */
#include <errno.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/assert.h"
#include "base/str.h"
#include "target/internal/internal.h"

/* The list of that hash, which is added if missing. NULL: no memory. */
static struct target_list *list_of(struct hashmap *in, uint64_t hash)
{
	struct target_list *l = hashmap_get(in, hash);

	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->in = in;
	l->hash = hash;
	if (hashmap_put(in, hash, l)) {
		free(l);
		return NULL;
	}
	return l;
}

static void list_free_if_empty(struct target_list *l)
{
	if (!l || l->first || !l->in)
		return;
	hashmap_del(l->in, l->hash);
	free(l);
}

static void list_add(struct target_list *l, struct target_entry *e, enum target_list_kind w)
{
	e->lists[w] = l;
	e->prev[w] = NULL;
	e->next[w] = l->first;
	if (l->first)
		l->first->prev[w] = e;
	l->first = e;
}

static void list_del(struct target_entry *e, enum target_list_kind w)
{
	struct target_list *l = e->lists[w];

	if (e->prev[w])
		e->prev[w]->next[w] = e->next[w];
	else
		l->first = e->next[w];
	if (e->next[w])
		e->next[w]->prev[w] = e->prev[w];
	list_free_if_empty(l);
}

static uint64_t hash_match(const struct fusee_target *t)
{
	uint64_t hash;

	if (t->match == FUSEE_MATCH_PID)
		return XXH3_64bits_withSeed(&t->pid, sizeof(t->pid), FUSEE_MATCH_PID);
	if (t->match == FUSEE_MATCH_CGROUP)
		return XXH3_64bits_withSeed(t->cgroup.p, t->cgroup.len, FUSEE_MATCH_CGROUP);
	hash = XXH3_64bits_withSeed(t->match_label.key.p, t->match_label.key.len,
				    FUSEE_MATCH_LABEL);
	return XXH3_64bits_withSeed(t->match_label.str.p, t->match_label.str.len, hash);
}

static uint64_t hash_key(const struct target_source *s, struct fusee_str key)
{
	return XXH3_64bits_withSeed(key.p, key.len, s->id);
}

struct target_entry *target_entry_find(const struct targets *ts, const struct target_source *s,
				       struct fusee_str key, bool staged)
{
	const struct target_list *l = hashmap_get(&ts->keys, hash_key(s, key));

	for (struct target_entry *e = l ? l->first : NULL; e; e = e->next[BY_KEY])
		if (e->source == s && e->staged == staged && str_equal(e->t.key, key))
			return e;
	return NULL;
}

const struct target_list *target_matches(const struct targets *ts, const struct fusee_target *like)
{
	return hashmap_get(&ts->matches, hash_match(like));
}

/* The entry became visible or stops being so. */
static void mark_changed(struct targets *ts, const struct target_entry *e)
{
	ts->generation++;
	/* one put takes the old entry away and adds the new one */
	if (e->t.match == FUSEE_MATCH_PID && ts->nchanged &&
	    ts->changed[ts->nchanged - 1] == (pid_t)e->t.pid)
		return;
	if (e->t.match != FUSEE_MATCH_PID || ts->nchanged == TARGET_MAX_CHANGED)
		ts->all_changed = true;
	else
		ts->changed[ts->nchanged++] = (pid_t)e->t.pid;
}

static void count_live(struct targets *ts, struct target_entry *e)
{
	ts->live++;
	e->source->live++;
	mark_changed(ts, e);
}

void target_entry_publish(struct targets *ts, struct target_entry *e)
{
	fusee_assert(e->staged && ts->staged);
	e->staged = false;
	ts->staged--;
	count_live(ts, e);
}

void target_entry_free(struct targets *ts, struct target_entry *e)
{
	if (e->staged) {
		fusee_assert(ts->staged);
		ts->staged--;
	} else {
		fusee_assert(ts->live && e->source->live);
		ts->live--;
		e->source->live--;
		mark_changed(ts, e);
	}
	for (enum target_list_kind w = 0; w < LISTS; w++)
		list_del(e, w);
	user_budget_add(&ts->texts, e->uid, -(int64_t)e->bytes);
	free(e);
}

int target_entry_insert(struct targets *ts, struct target_entry *e, struct target_entry *old)
{
	struct target_list *key = list_of(&ts->keys, hash_key(e->source, e->t.key));
	struct target_list *match = list_of(&ts->matches, hash_match(&e->t));

	if (!key || !match) {
		list_free_if_empty(key);
		list_free_if_empty(match);
		return -ENOMEM;
	}
	list_add(key, e, BY_KEY);
	list_add(match, e, BY_MATCH);
	list_add(&e->source->entries, e, BY_SOURCE);
	if (e->staged)
		ts->staged++;
	else
		count_live(ts, e);
	if (old)
		target_entry_free(ts, old);
	return 0;
}
