// SPDX-License-Identifier: Apache-2.0
/* The label set of one process: the labels of all targets that match it, joined. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "target/internal/internal.h"

/* Labels that fusee itself knows of a process; the first three are in every set. */
enum own {
	OWN_PROCESS,
	OWN_CGROUP,
	OWN_HOST,
	OWN_KERNEL,
	OWN_EXECUTABLE,
	OWN_BUILD_ID,
	OWN_COMPILER,
	OWNS
};
#define ALWAYS OWN_KERNEL

static const struct {
	const char *name;
	const char *by; /* its origin; "": the kernel */
} owns[OWNS] = {
	[OWN_PROCESS] = {"process", ""},
	[OWN_CGROUP] = {"cgroup", ""},
	[OWN_HOST] = {"host", ""},
	[OWN_KERNEL] = {"kernel", ""},
	[OWN_EXECUTABLE] = {"executable", ""},
	[OWN_BUILD_ID] = {"build_id", "its program's file"},
	[OWN_COMPILER] = {"compiler", "its program's file"},
};

struct lookup {
	struct targets *ts;
	uint64_t identity; /* of the process */
	struct labelset_draft d;
	const struct target_entry *from[LABELSET_MAX]; /* of d.labels; NULL: the process's own */
	struct fusee_str service;                      /* label whose value service_name has */
	uint32_t reserved; /* places kept for the labels that every set has */
	uint32_t dropped;  /* labels that did not fit */
	bool known, failed;
};

static bool matches(const struct target_entry *e, const struct fusee_target *like)
{
	const struct fusee_target *t = &e->t;

	if (e->staged || t->match != like->match)
		return false;
	if (t->match == FUSEE_MATCH_PID)
		return t->pid == like->pid;
	if (t->match == FUSEE_MATCH_CGROUP)
		return str_equal(t->cgroup, like->cgroup);
	return str_equal(t->match_label.key, like->match_label.key) &&
	       str_equal(t->match_label.str, like->match_label.str);
}

static int by_source(const void *a, const void *b)
{
	const struct target_entry *x = *(struct target_entry *const *)a,
				  *y = *(struct target_entry *const *)b;
	uint64_t n = x->t.key.len < y->t.key.len ? x->t.key.len : y->t.key.len;
	int c = (x->source->id > y->source->id) - (x->source->id < y->source->id);

	c = c ? c : memcmp(x->t.key.p, y->t.key.p, n);
	return c ? c : (x->t.key.len > y->t.key.len) - (x->t.key.len < y->t.key.len);
}

/* Appends to ts->found. false: no memory. */
static bool find_add(struct targets *ts, struct target_entry *e)
{
	struct target_entry **p = array_room(ts->found, ts->nfound, &ts->cap,
					     sizeof(struct target_entry *));

	if (!p)
		return false;
	ts->found = p;
	p[ts->nfound++] = e;
	return true;
}

/* from: the entry with the label; NULL: the process's own label. */
static void add_label(struct lookup *l, struct fusee_str name, struct fusee_str value,
		      const struct target_entry *from)
{
	if (labelset_find(&l->d, name))
		return;
	if (l->d.n + l->reserved >= LABELSET_MAX) {
		l->dropped++;
		return;
	}
	l->from[l->d.n] = from;
	l->d.labels[l->d.n++] = (struct fusee_label){.key = name, .str = value};
}

/* Every set has this label: its place is kept until a source states the label. */
static bool is_reserved(const struct lookup *l, struct fusee_str name)
{
	for (uint32_t i = 0; i < ALWAYS; i++)
		if (str_equal(name, fusee_text(owns[i].name)))
			return true;
	return l->ts->selected && str_equal(name, fusee_text("service_name"));
}

/* Whether the entry was put for this process. An entry with a start time is bound to the process
 * that has the pid at its first match: reading that process's start time could block on the
 * process. */
static bool is_same_process(const struct lookup *l, struct target_entry *e)
{
	if (e->t.match != FUSEE_MATCH_PID || !e->t.pid_start_ticks || !l->identity)
		return true;
	if (!e->process)
		e->process = l->identity;
	return e->process == l->identity;
}

/* Adds the labels of the entries that match `like`, in the order of their sources and keys. */
static void add_matching(struct lookup *l, const struct fusee_target *like)
{
	struct targets *ts = l->ts;
	const struct target_list *list = target_matches(ts, like);

	ts->nfound = 0;
	for (struct target_entry *e = list ? list->first : NULL; e; e = e->next[BY_MATCH])
		if (matches(e, like) && is_same_process(l, e) && !find_add(ts, e))
			l->failed = true;
	if (ts->nfound > 1)
		qsort(ts->found, ts->nfound, sizeof(struct target_entry *), by_source);
	for (uint32_t i = 0; i < ts->nfound; i++) {
		const struct target_entry *e = ts->found[i];

		l->known = true;
		for (uint32_t k = 0; k < e->t.labels.n; k++) {
			bool frees_place = l->reserved && is_reserved(l, e->labels[k].key) &&
					   !labelset_find(&l->d, e->labels[k].key);

			l->reserved -= frees_place;
			add_label(l, e->labels[k].key, e->labels[k].str, e);
		}
	}
}

/* Adds the labels of the control group and of each above it: "/a/b", "/a", "/". */
static void add_cgroups(struct lookup *l, const char *path)
{
	struct fusee_target like = {.match = FUSEE_MATCH_CGROUP, .cgroup = fusee_text(path)};
	struct fusee_str *s = &like.cgroup;

	while (s->len > 1 && path[s->len - 1] == '/')
		s->len--;
	while (s->len) {
		add_matching(l, &like);
		if (s->len == 1)
			break;
		while (s->len && path[s->len - 1] != '/')
			s->len--;
		while (s->len > 1 && path[s->len - 1] == '/')
			s->len--;
	}
}

/* Adds the labels of targets that match by a label found so far. A joined label can join others,
 * so the draft grows during the loop. */
static void add_joined(struct lookup *l)
{
	for (uint32_t i = 0; i < l->d.n; i++) {
		const struct fusee_target like = {.match = FUSEE_MATCH_LABEL,
						  .match_label = l->d.labels[i]};

		add_matching(l, &like);
	}
}

/* The value for service_name. */
static struct fusee_str choose_service(struct lookup *l)
{
	const struct fusee_table *names = &l->ts->selected->service_name;
	const struct fusee_label *found;

	for (uint32_t i = 0; i <= names->n; i++) {
		struct fusee_str name = i < names->n ? *FUSEE_AT(struct fusee_str, *names, i)
						     : fusee_text("process");

		found = labelset_find(&l->d, name);
		if (!found || !found->str.len)
			continue;
		l->service = name;
		return found->str;
	}
	return fusee_text("unknown_service");
}

static void add_service(struct lookup *l)
{
	struct fusee_str name = fusee_text("service_name"), value = choose_service(l);
	const struct fusee_label *said = labelset_find(&l->d, name);

	if (said)
		l->d.labels[said - l->d.labels].str = value;
	else
		add_label(l, name, value, NULL);
}

/* NULL: unknown, or not selected. */
static const char *own_text(const struct targets *ts, const struct target_process *p, enum own i)
{
	static const struct target_labels none;
	const struct target_labels *w = ts->selected ? ts->selected : &none;

	switch (i) {
	case OWN_PROCESS:
		return p->name;
	case OWN_CGROUP:
		return p->cgroup;
	case OWN_HOST:
		return ts->host;
	case OWN_KERNEL:
		return w->kernel ? ts->kernel : NULL;
	case OWN_EXECUTABLE:
		return w->executable ? p->executable : NULL;
	case OWN_BUILD_ID:
		return w->build_id ? p->build_id : NULL;
	case OWN_COMPILER:
		return w->compiler ? p->compiler : NULL;
	case OWNS:
		break;
	}
	return NULL;
}

/* Writes the process's own labels as label values to ts->text. -ENOMEM. */
static int own_values(struct targets *ts, const struct target_process *p,
		      struct fusee_str own[OWNS])
{
	size_t at[OWNS + 1] = {0};
	const char *text;

	buf_reset(&ts->text);
	for (uint32_t i = 0; i < OWNS; i++) {
		text = own_text(ts, p, i);
		if (text && labelset_value(&ts->text, fusee_text(text))) {
			buf_fini(&ts->text);
			return -ENOMEM;
		}
		at[i + 1] = ts->text.len;
	}
	for (uint32_t i = 0; i < OWNS; i++)
		own[i] = (struct fusee_str){ts->text.p ? ts->text.p + at[i] : "",
					    at[i + 1] - at[i]};
	return 0;
}

static void add_own(struct lookup *l, const struct fusee_str own[OWNS])
{
	for (uint32_t i = 0; i < OWNS; i++)
		if (i < ALWAYS || own[i].len)
			add_label(l, fusee_text(owns[i].name), own[i], NULL);
}

/* The id of the set; if its texts take too much memory, of a set without the process's texts. */
static uint32_t intern(struct targets *ts, struct labelset_draft *d, pid_t pid)
{
	uint32_t id = labelsets_find(&ts->sets, d), uid;

	if (id)
		return id;
	uid = target_user(ts, pid);
	if (!target_texts_have_room(ts, uid, "process")) {
		ts->refused = true;
		uid = 0;
		d->n = 3;
		d->labels[0] = (struct fusee_label){.key = fusee_text("process"),
						    .str = fusee_text(TARGET_REFUSED)};
		d->labels[1] = (struct fusee_label){.key = fusee_text("cgroup")};
		d->labels[2] = (struct fusee_label){.key = fusee_text("host"),
						    .str = fusee_text(ts->host)};
		if (ts->selected)
			d->labels[d->n++] = (struct fusee_label){.key = fusee_text("service_name"),
								 .str = fusee_text(TARGET_REFUSED)};
	}
	return labelsets_intern(&ts->sets, d, uid);
}

/* 0 or -ENOMEM. */
static int look_up(struct lookup *l, const struct target_process *p)
{
	struct targets *ts = l->ts;
	const struct fusee_target pid = {.match = FUSEE_MATCH_PID, .pid = (uint32_t)p->pid};
	struct fusee_str own[OWNS];

	l->identity = p->identity;
	l->reserved = ALWAYS + !!ts->selected;
	if (own_values(ts, p, own))
		return -ENOMEM;
	add_matching(l, &pid);
	add_cgroups(l, p->cgroup);
	l->reserved = ts->selected && !labelset_find(&l->d, fusee_text("service_name"));
	add_own(l, own);
	add_joined(l);
	l->reserved = 0;
	if (ts->selected)
		add_service(l);
	return l->failed ? -ENOMEM : 0;
}

uint32_t targets_labels(struct targets *ts, const struct target_process *p, bool *known)
{
	struct lookup l = {.ts = ts};

	if (look_up(&l, p))
		return TARGET_NONE;
	if (known)
		*known = l.known;
	target_count_dropped_labels(l.dropped);
	return intern(ts, &l.d, p->pid);
}

/* Where fusee found a label of its own. */
static struct fusee_str own_origin(struct fusee_str name)
{
	for (uint32_t i = 0; i < OWNS; i++)
		if (str_equal(name, fusee_text(owns[i].name)))
			return fusee_text(owns[i].by);
	return fusee_text("");
}

int targets_explain(struct targets *ts, const struct target_process *p,
		    void (*each)(void *arg, const struct fusee_label *,
				 const struct target_origin *),
		    void *arg)
{
	struct lookup l = {.ts = ts};

	if (look_up(&l, p))
		return -ENOMEM;
	for (uint32_t i = 0; i < l.d.n; i++) {
		const struct target_entry *e = l.from[i];
		bool service = str_equal(l.d.labels[i].key, fusee_text("service_name"));
		struct target_origin o = {.source = e ? e->source->id : TARGET_OWN,
					  .by = own_origin(l.d.labels[i].key)};

		if (e) {
			o.match = e->t.match;
			o.by = e->t.match == FUSEE_MATCH_CGROUP  ? e->t.cgroup
			       : e->t.match == FUSEE_MATCH_LABEL ? e->t.match_label.key
								 : (struct fusee_str){"", 0};
		}
		if (service && !str_equal(l.service, l.d.labels[i].key))
			o.from = l.service;
		each(arg, &l.d.labels[i], &o);
	}
	return 0;
}
