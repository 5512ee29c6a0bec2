// SPDX-License-Identifier: Apache-2.0
#include "process/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/target_internal.h"

/* The source of that id; made if missing. NULL: no memory. */
static struct target_source *source_of(struct targets *ts, uint32_t id)
{
	struct target_source *s = hashmap_get(&ts->sources, id);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->id = id;
	if (hashmap_put(&ts->sources, id, s)) {
		free(s);
		return NULL;
	}
	return s;
}

/* Frees the entries that keep() refuses (NULL: all). */
static void source_filter(struct targets *ts, struct target_source *s,
			  bool (*keep)(const struct target_entry *))
{
	for (struct target_entry *e = s->entries.first, *next; e; e = next) {
		next = e->next[BY_SOURCE];
		if (!keep || !keep(e))
			target_entry_free(ts, e);
	}
}

static bool is_not_staged(const struct target_entry *e)
{
	return !e->staged;
}

static bool is_of_this_round(const struct target_entry *e)
{
	return e->round == e->source->round;
}

int targets_put(struct targets *ts, uint32_t source, const struct fusee_target *given,
		const char **why)
{
	struct target_entry *e, *live, *staged, *old;
	struct target_source *s;
	struct fusee_target t;
	int err = target_check(given, &t, why);

	if (err)
		return err;
	s = source_of(ts, source);
	e = s ? target_entry_new(ts, &t) : NULL;
	if (!e)
		return -ENOMEM;
	e->source = s;
	e->round = s->round;
	e->staged = s->open;
	live = target_entry_find(ts, s, e->t.key, false);
	staged = target_entry_find(ts, s, e->t.key, true);
	if (live && target_entry_equal(live, e)) {
		live->round = s->round;
		if (staged)
			target_entry_free(ts, staged);
		goto free_copy;
	}
	if (live)
		live->round = 0; /* the commit ends it, whether the new entry fits or not */
	old = e->staged ? staged : live;
	err = !old && ts->live + ts->staged >= TARGET_MAX ? -ENOSPC
							  : target_entry_insert(ts, e, old);
	if (!err)
		return 0;
free_copy:
	free(e);
	return err;
}

int targets_del(struct targets *ts, uint32_t source, struct fusee_str key)
{
	const struct target_source *s = hashmap_get(&ts->sources, source);
	struct target_entry *live = s ? target_entry_find(ts, s, key, false) : NULL;
	struct target_entry *staged = s ? target_entry_find(ts, s, key, true) : NULL;

	if (!live && !staged)
		return -ENOENT;
	if (staged)
		target_entry_free(ts, staged);
	if (live && s->open)
		live->round = 0;
	else if (live)
		target_entry_free(ts, live);
	return 0;
}

void targets_begin(struct targets *ts, uint32_t source)
{
	struct target_source *s = source_of(ts, source);

	if (!s)
		return; /* the puts that follow return -ENOMEM */
	source_filter(ts, s, is_not_staged);
	s->open = true;
	s->round++;
}

void targets_commit(struct targets *ts, uint32_t source)
{
	struct target_source *s = source_of(ts, source);

	if (!s)
		return;
	s->synced = true;
	if (!s->open)
		return;
	s->open = false;
	source_filter(ts, s, is_of_this_round);
	for (struct target_entry *e = s->entries.first; e; e = e->next[BY_SOURCE])
		if (e->staged)
			target_entry_publish(ts, e);
}

void targets_forget(struct targets *ts, uint32_t source)
{
	struct target_source *s = hashmap_get(&ts->sources, source);

	if (!s)
		return;
	source_filter(ts, s, NULL);
	hashmap_del(&ts->sources, source);
	free(s);
}

bool targets_synced(const struct targets *ts, uint32_t source)
{
	const struct target_source *s = hashmap_get(&ts->sources, source);

	return s && s->synced;
}

uint64_t targets_generation(const struct targets *ts)
{
	return ts->generation;
}

bool targets_changes(struct targets *ts, void (*each)(void *, pid_t), void *arg)
{
	uint32_t n = ts->nchanged;
	bool all = ts->all_changed;

	ts->nchanged = 0;
	ts->all_changed = false;
	for (uint32_t i = 0; !all && each && i < n; i++)
		each(arg, ts->changed[i]);
	return all;
}

const struct fusee_label *targets_set(const struct targets *ts, uint32_t id, uint32_t *n)
{
	return labelsets_get(&ts->sets, id, n);
}

void targets_sweep(struct targets *ts, bool (*used)(void *, uint32_t), void *arg)
{
	labelsets_sweep(&ts->sets, used, arg);
}

struct each {
	void (*each)(void *arg, uint32_t source, const struct fusee_target *);
	void *arg;
};

static void each_of(void *arg, uint64_t id, void *value)
{
	const struct target_source *s = value;
	const struct each *c = arg;

	for (const struct target_entry *e = s->entries.first; e; e = e->next[BY_SOURCE])
		if (!e->staged)
			c->each(c->arg, (uint32_t)id, &e->t);
}

void targets_each(const struct targets *ts,
		  void (*each)(void *arg, uint32_t source, const struct fusee_target *), void *arg)
{
	hashmap_each(&ts->sources, each_of, &(struct each){each, arg});
}

uint32_t targets_count(const struct targets *ts)
{
	return ts->live;
}

uint32_t targets_count_of(const struct targets *ts, uint32_t source)
{
	const struct target_source *s = hashmap_get(&ts->sources, source);

	return s ? s->live : 0;
}

int targets_new(struct targets **ret)
{
	struct targets *ts = calloc(1, sizeof(*ts));
	char name[256] = "";
	struct buf b = {0};

	if (!ts)
		return -ENOMEM;
	if (gethostname(name, sizeof(name) - 1))
		*name = '\0';
	if (labelset_value(&b, label_str(name))) {
		buf_fini(&b);
		free(ts);
		return -ENOMEM;
	}
	if (b.len)
		memcpy(ts->host, b.p, b.len);
	buf_fini(&b);
	ts->generation = 1;
	*ret = ts;
	return 0;
}

static void free_source(void *arg, uint64_t id, void *value)
{
	struct target_source *s = value;

	(void)id;
	source_filter(arg, s, NULL);
	free(s);
}

void targets_free(struct targets *ts)
{
	if (!ts)
		return;
	hashmap_each(&ts->sources, free_source, ts);
	hashmap_fini(&ts->sources);
	hashmap_fini(&ts->keys);
	hashmap_fini(&ts->matches);
	labelsets_fini(&ts->sets);
	buf_fini(&ts->text);
	free(ts->found);
	free(ts);
}
