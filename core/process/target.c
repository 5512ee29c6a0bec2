/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry is one target of one source. It stands in three lists: of its key (to find it again), of
 * what it matches by (to find what matches a process), and of its source. What is put between begin
 * and commit is STAGED: it stands in its lists already, so that commit needs no memory and can't
 * fail, but nobody sees it.
 */
#include "process/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/metrics.h"
#include "base/hashmap.h"
#include "process/labelset.h"

enum {
	MAX_TARGETS = 200000, /* staged ones too */
	MAX_KEY = 4096,       /* bytes of a key or a path */
	MAX_CHANGED = 1024,   /* pids that are remembered: more are all */
};

enum which { BY_KEY, BY_MATCH, BY_SOURCE, LISTS };

struct entry;

struct list {
	struct entry *first;
	struct hashmap *in; /* that it stands in by `hash`; NULL: in none */
	uint64_t hash;
};

struct entry {
	struct list *lists[LISTS];
	struct entry *next[LISTS], *prev[LISTS];
	struct source *of;
	uint32_t source; /* its id */
	bool staged;
	uint64_t round; /* of the source's begin, in which it was last put */
	struct fusee_target t;
	struct fusee_label labels[]; /* the texts stand behind them */
};

struct source {
	uint32_t id, live;
	bool open, synced;
	uint64_t round;
	struct list entries;
};

struct targets {
	struct hashmap keys, matches; /* struct list, by hash */
	struct hashmap sources;
	struct labelsets sets;
	uint64_t generation;
	pid_t changed[MAX_CHANGED]; /* by pid only, since targets_changes() */
	uint32_t nchanged;
	bool all_changed;
	uint32_t live, staged;
	char host[LABELSET_VALUE_MAX + 1];
	struct buf text; /* scratch of targets_put() and targets_labels() */
	struct entry **found;
	uint32_t nfound, cap;
};

static bool equal(struct fusee_str a, struct fusee_str b)
{
	return a.len == b.len && (!a.len || !memcmp(a.p, b.p, a.len));
}

static struct fusee_str str(const char *s)
{
	return (struct fusee_str){s, strlen(s)};
}

/* ---- lists ---- */

/* The list of that hash, made if it is not there. NULL: no memory. */
static struct list *list_of(struct hashmap *in, uint64_t hash)
{
	struct list *l = hashmap_get(in, hash);

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

static void list_drop(struct list *l)
{
	if (!l || l->first || !l->in)
		return;
	hashmap_del(l->in, l->hash);
	free(l);
}

static void list_add(struct list *l, struct entry *e, enum which w)
{
	e->lists[w] = l;
	e->prev[w] = NULL;
	e->next[w] = l->first;
	if (l->first)
		l->first->prev[w] = e;
	l->first = e;
}

static void list_del(struct entry *e, enum which w)
{
	struct list *l = e->lists[w];

	if (e->prev[w])
		e->prev[w]->next[w] = e->next[w];
	else
		l->first = e->next[w];
	if (e->next[w])
		e->next[w]->prev[w] = e->prev[w];
	list_drop(l);
}

static uint64_t hash_pid(uint32_t pid)
{
	return XXH3_64bits_withSeed(&pid, sizeof(pid), FUSEE_MATCH_PID);
}

static uint64_t hash_cgroup(struct fusee_str path)
{
	return XXH3_64bits_withSeed(path.p, path.len, FUSEE_MATCH_CGROUP);
}

static uint64_t hash_label(struct fusee_str name, struct fusee_str value)
{
	uint64_t hash = XXH3_64bits_withSeed(name.p, name.len, FUSEE_MATCH_LABEL);

	return XXH3_64bits_withSeed(value.p, value.len, hash);
}

static uint64_t hash_match(const struct fusee_target *t)
{
	if (t->match == FUSEE_MATCH_PID)
		return hash_pid(t->pid);
	if (t->match == FUSEE_MATCH_CGROUP)
		return hash_cgroup(t->cgroup);
	return hash_label(t->match_label.key, t->match_label.str);
}

static uint64_t hash_key(uint32_t source, struct fusee_str key)
{
	return XXH3_64bits_withSeed(key.p, key.len, source);
}

static struct entry *entry_find(const struct targets *ts, uint32_t source, struct fusee_str key,
				bool staged)
{
	const struct list *l = hashmap_get(&ts->keys, hash_key(source, key));

	for (struct entry *e = l ? l->first : NULL; e; e = e->next[BY_KEY])
		if (e->source == source && e->staged == staged && equal(e->t.key, key))
			return e;
	return NULL;
}

/* It is seen, or no longer seen. */
static void changed(struct targets *ts, const struct entry *e)
{
	ts->generation++;
	if (e->t.match != FUSEE_MATCH_PID || ts->nchanged == MAX_CHANGED)
		ts->all_changed = true;
	else
		ts->changed[ts->nchanged++] = (pid_t)e->t.pid;
}

static void entry_free(struct targets *ts, struct entry *e)
{
	if (e->staged) {
		ts->staged--;
	} else {
		ts->live--;
		e->of->live--;
		changed(ts, e);
	}
	for (enum which w = 0; w < LISTS; w++)
		list_del(e, w);
	free(e);
}

/* ---- what a source says ---- */

/* A plugin may know less of these structs than we do. */
static int check(const struct fusee_target *given, struct fusee_target *t, const char **why)
{
	const char *wrong = NULL;

	*t = (struct fusee_target){0};
	memcpy(t, given, given->size < sizeof(*t) ? given->size : sizeof(*t));
	while (t->cgroup.len > 1 && t->cgroup.p[t->cgroup.len - 1] == '/')
		t->cgroup.len--;
	if (!t->key.len || t->key.len > MAX_KEY)
		wrong = "a target has no key, or one of more than 4096 bytes";
	else if (t->match == FUSEE_MATCH_PID && !t->pid)
		wrong = "a target that matches by pid has none";
	else if (t->match == FUSEE_MATCH_CGROUP &&
		 (!t->cgroup.len || t->cgroup.len > MAX_KEY || *t->cgroup.p != '/'))
		wrong = "a target that matches by control group has no path that begins with '/'";
	else if (t->match == FUSEE_MATCH_LABEL &&
		 (!labelset_name(t->match_label.key) || !t->match_label.str.len))
		wrong = "a target that matches by label has none, or one without a value";
	else if (t->match < FUSEE_MATCH_PID || t->match > FUSEE_MATCH_LABEL)
		wrong = "a target says nothing of what it matches by";
	else if (t->labels.n && t->labels.stride < sizeof(struct fusee_label))
		wrong = "a target's labels have no stride";
	for (uint32_t i = 0; !wrong && i < t->labels.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, t->labels, i);

		if (!labelset_name(l->key))
			wrong = "a label's name is not of letters, digits and '_', or too long";
		else if (!l->str.p && l->num)
			wrong = "a target's label is a number, not a text";
	}
	*why = wrong;
	return wrong ? -EINVAL : 0;
}

static void add_text(struct buf *b, struct fusee_str *at, struct fusee_str s)
{
	size_t from = b->len;

	buf_add(b, s.p, s.len);
	at->len = b->len - from;
}

static void add_value(struct buf *b, struct fusee_str *at, struct fusee_str s)
{
	size_t from = b->len;

	if (labelset_value(b, s))
		b->error = -ENOMEM;
	at->len = b->len - from;
}

static void take(struct fusee_str *s, const char **at)
{
	s->p = *at;
	*at += s->len;
}

/* Labels that say something and may be said, in the order given; how many are too many. */
static uint32_t pick(const struct fusee_target *t, struct labelset_draft *d)
{
	uint32_t dropped = 0;

	d->n = 0;
	for (uint32_t i = 0; i < t->labels.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, t->labels, i);

		if (!l->str.len || equal(l->key, str("pid")) || labelset_find(d, l->key))
			continue;
		if (d->n == LABELSET_MAX)
			dropped++;
		else
			d->labels[d->n++] = (struct fusee_label){.key = l->key, .str = l->str};
	}
	return dropped;
}

static void count_dropped(uint32_t n)
{
	if (n)
		metric_add("target_labels_dropped_total",
			   "labels beyond the 32 that a target or a process can have", NULL, n);
}

/* A copy that owns its texts. NULL: no memory. */
static struct entry *entry_new(struct targets *ts, const struct fusee_target *t)
{
	struct labelset_draft d;
	struct fusee_target own = {.size = sizeof(own),
				   .match = t->match,
				   .pid = t->pid,
				   .pid_start_ticks = t->pid_start_ticks};
	struct buf *b = &ts->text;
	struct entry *e;
	const char *at;

	count_dropped(pick(t, &d));
	buf_reset(b);
	add_text(b, &own.key, t->key);
	if (t->match == FUSEE_MATCH_CGROUP)
		add_text(b, &own.cgroup, t->cgroup);
	if (t->match == FUSEE_MATCH_LABEL) {
		add_text(b, &own.match_label.key, t->match_label.key);
		add_value(b, &own.match_label.str, t->match_label.str);
	}
	for (uint32_t i = 0; i < d.n; i++) {
		add_text(b, &d.labels[i].key, d.labels[i].key);
		add_value(b, &d.labels[i].str, d.labels[i].str);
	}
	e = b->error ? NULL : calloc(1, sizeof(*e) + d.n * sizeof(e->labels[0]) + b->len);
	if (!e)
		return NULL;
	e->t = own;
	e->t.labels = (struct fusee_table){e->labels, d.n, sizeof(e->labels[0])};
	at = memcpy(&e->labels[d.n], b->p, b->len);
	take(&e->t.key, &at);
	take(&e->t.cgroup, &at);
	take(&e->t.match_label.key, &at);
	take(&e->t.match_label.str, &at);
	for (uint32_t i = 0; i < d.n; i++) {
		e->labels[i] = d.labels[i];
		take(&e->labels[i].key, &at);
		take(&e->labels[i].str, &at);
	}
	return e;
}

static bool says_the_same(const struct entry *a, const struct entry *b)
{
	const struct fusee_target *x = &a->t, *y = &b->t;

	if (x->match != y->match || x->pid != y->pid || x->pid_start_ticks != y->pid_start_ticks ||
	    !equal(x->cgroup, y->cgroup) || !equal(x->match_label.key, y->match_label.key) ||
	    !equal(x->match_label.str, y->match_label.str) || x->labels.n != y->labels.n)
		return false;
	for (uint32_t i = 0; i < x->labels.n; i++)
		if (!equal(a->labels[i].key, b->labels[i].key) ||
		    !equal(a->labels[i].str, b->labels[i].str))
			return false;
	return true;
}

static struct source *source_of(struct targets *ts, uint32_t id)
{
	struct source *s = hashmap_get(&ts->sources, id);

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

/* Into its lists, in the place of `old` (or NULL). */
static int entry_add(struct targets *ts, struct source *s, struct entry *e, struct entry *old)
{
	struct list *key = list_of(&ts->keys, hash_key(s->id, e->t.key));
	struct list *match = list_of(&ts->matches, hash_match(&e->t));

	if (!key || !match) {
		list_drop(key);
		list_drop(match);
		return -ENOMEM;
	}
	list_add(key, e, BY_KEY);
	list_add(match, e, BY_MATCH);
	list_add(&s->entries, e, BY_SOURCE);
	if (e->staged) {
		ts->staged++;
	} else {
		ts->live++;
		s->live++;
		changed(ts, e);
	}
	if (old)
		entry_free(ts, old);
	return 0;
}

int targets_put(struct targets *ts, uint32_t source, const struct fusee_target *given,
		const char **why)
{
	struct entry *e = NULL, *live, *staged;
	struct fusee_target t;
	struct source *s;
	int r;

	r = check(given, &t, why);
	if (r)
		return r;
	r = -ENOMEM;
	s = source_of(ts, source);
	e = s ? entry_new(ts, &t) : NULL;
	if (!e)
		goto out;
	e->of = s;
	e->source = source;
	e->round = s->round;
	e->staged = s->open;
	live = entry_find(ts, source, e->t.key, false);
	staged = entry_find(ts, source, e->t.key, true);
	r = 0;
	if (live && says_the_same(live, e)) {
		live->round = s->round;
		if (staged)
			entry_free(ts, staged);
		goto out;
	}
	if (live)
		live->round = 0; /* of this begin: what was said before it changed is over */
	r = -ENOSPC;
	if (!(e->staged ? staged : live) && ts->live + ts->staged >= MAX_TARGETS)
		goto out;
	r = entry_add(ts, s, e, e->staged ? staged : live);
	if (!r)
		e = NULL;
out:
	free(e);
	return r;
}

int targets_del(struct targets *ts, uint32_t source, struct fusee_str key)
{
	const struct source *s = hashmap_get(&ts->sources, source);
	struct entry *live = entry_find(ts, source, key, false);
	struct entry *staged = entry_find(ts, source, key, true);

	if (!live && !staged)
		return -ENOENT;
	if (staged)
		entry_free(ts, staged);
	if (live && s->open)
		live->round = 0;
	else if (live)
		entry_free(ts, live);
	return 0;
}

/* Frees those of a source that it does not want. */
static void drop(struct targets *ts, struct source *s,
		 bool (*wanted)(const struct source *, const struct entry *))
{
	for (struct entry *e = s->entries.first, *next; e; e = next) {
		next = e->next[BY_SOURCE];
		if (!wanted(s, e))
			entry_free(ts, e);
	}
}

static bool not_staged(const struct source *s, const struct entry *e)
{
	(void)s;
	return !e->staged;
}

static bool of_this_round(const struct source *s, const struct entry *e)
{
	return e->round == s->round;
}

static bool none(const struct source *s, const struct entry *e)
{
	(void)s;
	(void)e;
	return false;
}

void targets_begin(struct targets *ts, uint32_t source)
{
	struct source *s = source_of(ts, source);

	if (!s)
		return; /* the puts that follow say so */
	drop(ts, s, not_staged);
	s->open = true;
	s->round++;
}

void targets_commit(struct targets *ts, uint32_t source)
{
	struct source *s = source_of(ts, source);

	if (!s)
		return;
	s->synced = true;
	if (!s->open)
		return;
	s->open = false;
	drop(ts, s, of_this_round);
	for (struct entry *e = s->entries.first; e; e = e->next[BY_SOURCE]) {
		if (!e->staged)
			continue;
		e->staged = false;
		ts->staged--;
		ts->live++;
		s->live++;
		changed(ts, e);
	}
}

void targets_forget(struct targets *ts, uint32_t source)
{
	struct source *s = hashmap_get(&ts->sources, source);

	if (!s)
		return;
	drop(ts, s, none);
	hashmap_del(&ts->sources, source);
	free(s);
}

bool targets_synced(const struct targets *ts, uint32_t source)
{
	const struct source *s = hashmap_get(&ts->sources, source);

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

/* ---- a process's labels ---- */

struct lookup {
	struct targets *ts;
	struct labelset_draft d;
	uint32_t reserved; /* places kept for what every set has */
	uint32_t dropped;
	bool known, failed;
};

/* Which of a list is about this: hashes may be the same by chance. */
struct wanted {
	uint32_t match, pid;
	uint64_t start_ticks;
	struct fusee_str cgroup, name, value;
};

static bool is_wanted(const struct entry *e, const struct wanted *w)
{
	if (e->staged || e->t.match != w->match)
		return false;
	if (w->match == FUSEE_MATCH_PID)
		return e->t.pid == w->pid && (!e->t.pid_start_ticks || !w->start_ticks ||
					      e->t.pid_start_ticks == w->start_ticks);
	if (w->match == FUSEE_MATCH_CGROUP)
		return equal(e->t.cgroup, w->cgroup);
	return equal(e->t.match_label.key, w->name) && equal(e->t.match_label.str, w->value);
}

static int by_source(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
	uint64_t n = x->t.key.len < y->t.key.len ? x->t.key.len : y->t.key.len;
	int c = (x->source > y->source) - (x->source < y->source);

	c = c ? c : memcmp(x->t.key.p, y->t.key.p, n);
	return c ? c : (x->t.key.len > y->t.key.len) - (x->t.key.len < y->t.key.len);
}

static bool find_add(struct targets *ts, struct entry *e)
{
	if (ts->nfound == ts->cap) {
		uint32_t cap = ts->cap ? ts->cap * 2 : 16;
		struct entry **found = realloc(ts->found, cap * sizeof(struct entry *));

		if (!found)
			return false;
		ts->found = found;
		ts->cap = cap;
	}
	ts->found[ts->nfound++] = e;
	return true;
}

static void add_label(struct lookup *l, struct fusee_str name, struct fusee_str value)
{
	if (labelset_find(&l->d, name))
		return;
	if (l->d.n + l->reserved >= LABELSET_MAX)
		l->dropped++;
	else
		l->d.labels[l->d.n++] = (struct fusee_label){.key = name, .str = value};
}

/* Every set has this one: its place is kept, and given up when a source has said it. */
static bool is_reserved(struct fusee_str name)
{
	return equal(name, str("process")) || equal(name, str("cgroup")) ||
	       equal(name, str("host"));
}

/* Adds what the targets of one list say, in the order of their sources and keys. */
static void add_from(struct lookup *l, uint64_t hash, const struct wanted *w)
{
	struct targets *ts = l->ts;
	const struct list *list = hashmap_get(&ts->matches, hash);

	ts->nfound = 0;
	for (struct entry *e = list ? list->first : NULL; e; e = e->next[BY_MATCH])
		if (is_wanted(e, w) && !find_add(ts, e))
			l->failed = true;
	if (ts->nfound > 1)
		qsort(ts->found, ts->nfound, sizeof(struct entry *), by_source);
	for (uint32_t i = 0; i < ts->nfound; i++) {
		const struct entry *e = ts->found[i];

		l->known = true;
		for (uint32_t k = 0; k < e->t.labels.n; k++) {
			bool ours = l->reserved && is_reserved(e->labels[k].key) &&
				    !labelset_find(&l->d, e->labels[k].key);

			l->reserved -= ours;
			add_label(l, e->labels[k].key, e->labels[k].str);
		}
	}
}

/* "/a/b", "/a", "/". */
static void add_cgroups(struct lookup *l, const char *path)
{
	struct wanted w = {.match = FUSEE_MATCH_CGROUP, .cgroup = str(path)};

	while (w.cgroup.len > 1 && path[w.cgroup.len - 1] == '/')
		w.cgroup.len--;
	while (w.cgroup.len) {
		add_from(l, hash_cgroup(w.cgroup), &w);
		if (w.cgroup.len == 1)
			break;
		while (w.cgroup.len && path[w.cgroup.len - 1] != '/')
			w.cgroup.len--;
		while (w.cgroup.len > 1 && path[w.cgroup.len - 1] == '/')
			w.cgroup.len--;
	}
}

static void add_joined(struct lookup *l)
{
	for (uint32_t i = 0; i < l->d.n; i++) { /* it grows: what is joined can join more */
		struct wanted w = {.match = FUSEE_MATCH_LABEL,
				   .name = l->d.labels[i].key,
				   .value = l->d.labels[i].str};

		add_from(l, hash_label(w.name, w.value), &w);
	}
}

uint32_t targets_labels(struct targets *ts, const struct target_process *p, bool *known)
{
	struct lookup l = {.ts = ts, .reserved = 3};
	struct wanted pid = {
		.match = FUSEE_MATCH_PID, .pid = (uint32_t)p->pid, .start_ticks = p->start_ticks};
	struct fusee_str own[2] = {{0}};
	uint32_t id;

	buf_reset(&ts->text);
	if (labelset_value(&ts->text, str(p->name)))
		goto fail;
	own[0].len = ts->text.len;
	if (labelset_value(&ts->text, str(p->cgroup)))
		goto fail;
	own[1].len = ts->text.len - own[0].len;
	own[0].p = ts->text.p ? ts->text.p : "";
	own[1].p = own[0].p + own[0].len;
	add_from(&l, hash_pid(pid.pid), &pid);
	add_cgroups(&l, p->cgroup);
	l.reserved = 0;
	add_label(&l, str("process"), own[0]);
	add_label(&l, str("cgroup"), own[1]);
	add_label(&l, str("host"), str(ts->host));
	add_joined(&l);
	if (known)
		*known = l.known;
	count_dropped(l.dropped);
	id = l.failed ? TARGET_NONE : labelsets_intern(&ts->sets, &l.d);
	return id;
fail:
	buf_fini(&ts->text);
	return TARGET_NONE;
}

const struct fusee_label *targets_set(const struct targets *ts, uint32_t id, uint32_t *n)
{
	return labelsets_get(&ts->sets, id, n);
}

void targets_sweep(struct targets *ts, bool (*used)(void *, uint32_t), void *arg)
{
	labelsets_sweep(&ts->sets, used, arg);
}

/* ---- the whole ---- */

struct each {
	void (*each)(void *arg, uint32_t source, const struct fusee_target *);
	void *arg;
};

static void each_of(void *arg, uint64_t id, void *value)
{
	const struct source *s = value;
	const struct each *c = arg;

	for (const struct entry *e = s->entries.first; e; e = e->next[BY_SOURCE])
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
	const struct source *s = hashmap_get(&ts->sources, source);

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
	if (labelset_value(&b, str(name))) {
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
	struct source *s = value;

	(void)id;
	drop(arg, s, none);
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
