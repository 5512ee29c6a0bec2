// SPDX-License-Identifier: Apache-2.0
#include "target/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "target/internal/internal.h"
#include <fusee/helpers.h>

/* The source of that id, which is added if missing. NULL: no memory. */
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

/* Replaces *e by an entry without labels if the user's texts take too much memory. 0; -EDQUOT: it
 * is replaced; -ENOMEM: *e is freed. */
static int bound_texts(struct targets *ts, const struct fusee_target *t, struct target_entry **e)
{
	struct fusee_target bare = *t;
	uint32_t uid = target_user(ts, t->match == FUSEE_MATCH_PID ? (pid_t)t->pid : 0);
	int r = 0;

	if (t->labels.n && !target_texts_have_room(ts, uid, "target")) {
		free(*e);
		bare.labels = (struct fusee_table){0};
		*e = target_entry_new(ts, &bare);
		r = *e ? -EDQUOT : -ENOMEM;
	}
	if (*e)
		(*e)->uid = uid;
	return r;
}

/* Adds the entry to the lists and to the budget. 0, -ENOSPC or -ENOMEM: nothing is changed. */
static int insert(struct targets *ts, struct target_entry *e, struct target_entry *old)
{
	int err;

	if (!old && ts->live + ts->staged >= TARGET_MAX)
		return -ENOSPC;
	err = user_budget_add(&ts->texts, e->uid, e->bytes);
	if (err)
		return err;
	err = target_entry_insert(ts, e, old);
	if (err)
		user_budget_add(&ts->texts, e->uid, -(int64_t)e->bytes);
	return err;
}

/* Puts the entry, which is freed if it is not needed. */
static int put_entry(struct targets *ts, const struct fusee_target *t, struct target_entry *e,
		     struct target_source *s)
{
	struct target_entry *live = target_entry_find(ts, s, e->t.key, false);
	struct target_entry *staged = target_entry_find(ts, s, e->t.key, true);
	int refused = 0, err;

	if (live && target_entry_equal(live, e)) {
		live->round = s->round;
		if (staged)
			target_entry_free(ts, staged);
		free(e);
		return 0;
	}
	if (live)
		live->round = 0; /* the commit removes it, whether the new entry fits or not */
	refused = bound_texts(ts, t, &e);
	if (refused == -ENOMEM)
		return refused;
	e->source = s;
	e->round = s->round;
	e->staged = s->open;
	err = insert(ts, e, e->staged ? staged : live);
	if (!err)
		return refused;
	free(e);
	return err;
}

int targets_put(struct targets *ts, uint32_t source, const struct fusee_target *given,
		const char **why)
{
	struct target_entry *e;
	struct target_source *s;
	struct fusee_target t;
	int err = target_check(given, &t, why);

	if (err)
		return err;
	s = target_note_later(ts, &t) ? NULL : source_of(ts, source);
	e = s ? target_entry_new(ts, &t) : NULL;
	return e ? put_entry(ts, &t, e, s) : -ENOMEM;
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

void targets_set_labels(struct targets *ts, const struct target_labels *selected)
{
	ts->selected = selected;
}

void targets_begin(struct targets *ts, uint32_t source)
{
	struct target_source *s = source_of(ts, source);

	if (!s)
		return; /* the following puts return -ENOMEM */
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

void targets_forget_change(struct targets *ts, pid_t pid)
{
	while (ts->nchanged && ts->changed[ts->nchanged - 1] == pid)
		ts->nchanged--;
}

const struct fusee_label *targets_set(const struct targets *ts, uint32_t id, uint32_t *n)
{
	return labelsets_get(&ts->sets, id, n);
}

void targets_sweep(struct targets *ts, bool (*used)(void *, uint32_t), void *arg)
{
	labelsets_sweep(&ts->sets, used, arg);
	/* Processes whose labels were refused may have them now. */
	if (ts->refused && ts->texts.bytes < TARGET_TEXTS / 8) {
		ts->refused = false;
		ts->all_changed = true;
		ts->generation++;
	}
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

uint64_t targets_text_bytes(const struct targets *ts)
{
	return ts->texts.bytes;
}

uint32_t targets_count_of(const struct targets *ts, uint32_t source)
{
	const struct target_source *s = hashmap_get(&ts->sources, source);

	return s ? s->live : 0;
}

/* value: LABELSET_VALUE_MAX bytes and a NUL. 0 or -ENOMEM. */
static int set_value(char *value, const char *text)
{
	struct buf b = {0};
	int err = labelset_value(&b, fusee_text(text));

	if (b.len)
		memcpy(value, b.p, b.len);
	buf_fini(&b);
	return err;
}

int targets_new(struct targets **ret)
{
	struct targets *ts = calloc(1, sizeof(*ts));
	struct utsname machine = {0};

	if (!ts)
		return -ENOMEM;
	uname(&machine);
	if (set_value(ts->host, machine.nodename) || set_value(ts->kernel, machine.release) ||
	    dict_init(&ts->later.names) || dict_init(&ts->later.keys)) {
		targets_free(ts);
		return -ENOMEM;
	}
	ts->generation = 1;
	ts->texts.most = TARGET_TEXTS;
	ts->sets.budget = &ts->texts;
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
	user_budget_fini(&ts->texts);
	dict_fini(&ts->later.names);
	dict_fini(&ts->later.keys);
	buf_fini(&ts->text);
	free(ts->found);
	free(ts);
}
