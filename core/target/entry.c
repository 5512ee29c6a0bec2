// SPDX-License-Identifier: Apache-2.0
/* One target as a source states it: checked, and copied with its texts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/str.h"
#include "process/procfs.h"
#include "target/internal/internal.h"

#define RECENT_NS 100000000u

int target_check(const struct fusee_target *given, struct fusee_target *t, const char **why)
{
	const char *wrong = NULL;

	*t = (struct fusee_target){0};
	memcpy(t, given, given->size < sizeof(*t) ? given->size : sizeof(*t));
	while (t->cgroup.len > 1 && t->cgroup.p[t->cgroup.len - 1] == '/')
		t->cgroup.len--;
	if (!t->key.len || t->key.len > TARGET_MAX_KEY)
		wrong = "a target has no key, or a key of more than 4096 bytes";
	else if (t->match == FUSEE_MATCH_PID && !t->pid)
		wrong = "a target that matches by pid has none";
	else if (t->match == FUSEE_MATCH_CGROUP &&
		 (!t->cgroup.len || t->cgroup.len > TARGET_MAX_KEY || *t->cgroup.p != '/'))
		wrong = "a target that matches by control group has no path that begins with '/'";
	else if (t->match == FUSEE_MATCH_LABEL &&
		 (!labelset_name(t->match_label.key) || !t->match_label.str.len))
		wrong = "a target that matches by label has no label, or a label without a value";
	else if (t->match < FUSEE_MATCH_PID || t->match > FUSEE_MATCH_LABEL)
		wrong = "a target does not state what it matches by";
	else if (t->labels.n && t->labels.stride < sizeof(struct fusee_label))
		wrong = "a target's labels have no stride";
	else if (t->later.n &&
		 (t->later.stride < sizeof(struct fusee_str) || t->match != FUSEE_MATCH_PID))
		wrong = "a target's later labels have no stride, or it does not match by pid";
	for (uint32_t i = 0; !wrong && i < t->later.n; i++)
		if (!labelset_name(*FUSEE_AT(struct fusee_str, t->later, i)))
			wrong = "a later label's name is not of letters, digits and '_', or too "
				"long";
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

/* Sets the address of the next of the texts, which are in one buffer. */
static void point(struct fusee_str *s, const char **at)
{
	s->p = *at;
	*at += s->len;
}

/* Copies the labels to the draft, in their order. Omits labels without a value, `pid`, which only
 * the core sets, and second values of a name. Returns how many did not fit. */
static uint32_t pick_labels(const struct fusee_target *t, struct labelset_draft *d)
{
	uint32_t dropped = 0;

	d->n = 0;
	for (uint32_t i = 0; i < t->labels.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, t->labels, i);

		if (!l->str.len || str_equal(l->key, fusee_text("pid")) || labelset_find(d, l->key))
			continue;
		if (d->n == LABELSET_MAX)
			dropped++;
		else
			d->labels[d->n++] = (struct fusee_label){.key = l->key, .str = l->str};
	}
	return dropped;
}

void target_count_dropped_labels(uint32_t n)
{
	if (n)
		metric_add("target_labels_dropped_total",
			   "labels beyond the 32 that a target or a process can have", NULL, n);
}

uint32_t target_user(struct targets *ts, pid_t pid)
{
	uint64_t now = clock_now();
	uid_t uid;

	if (!pid)
		return 0;
	if (ts->recent.pid != pid || now >= ts->recent.until) {
		ts->recent.uid = procfs_user(pid, &uid) ? UINT32_MAX : uid;
		ts->recent.pid = pid;
		ts->recent.until = now + RECENT_NS;
	}
	return ts->recent.uid;
}

bool target_texts_have_room(const struct targets *ts, uint32_t uid, const char *what)
{
	if (user_budget_has_room(&ts->texts, uid))
		return true;
	metric_add("label_texts_refused_total",
		   "Total number of times that label texts were not kept, as those of a user, or "
		   "of all, took too much memory.",
		   METRIC_LABELS("what", what), 1);
	return false;
}

struct target_entry *target_entry_new(struct targets *ts, const struct fusee_target *t)
{
	struct labelset_draft d;
	struct fusee_target own = {.size = sizeof(own),
				   .match = t->match,
				   .pid = t->pid,
				   .pid_start_ticks = t->pid_start_ticks};
	struct buf *b = &ts->text;
	struct target_entry *e;
	const char *at;

	target_count_dropped_labels(pick_labels(t, &d));
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
	e->lacks = t->later.n;
	e->bytes = (uint32_t)(d.n * sizeof(e->labels[0]) + b->len);
	at = memcpy(&e->labels[d.n], b->p, b->len);
	point(&e->t.key, &at);
	point(&e->t.cgroup, &at);
	point(&e->t.match_label.key, &at);
	point(&e->t.match_label.str, &at);
	for (uint32_t i = 0; i < d.n; i++) {
		e->labels[i] = d.labels[i];
		point(&e->labels[i].key, &at);
		point(&e->labels[i].str, &at);
	}
	return e;
}

bool target_entry_equal(const struct target_entry *a, const struct target_entry *b)
{
	const struct fusee_target *x = &a->t, *y = &b->t;

	if (a->lacks != b->lacks || x->match != y->match || x->pid != y->pid ||
	    x->pid_start_ticks != y->pid_start_ticks || !str_equal(x->cgroup, y->cgroup) ||
	    !str_equal(x->match_label.key, y->match_label.key) ||
	    !str_equal(x->match_label.str, y->match_label.str) || x->labels.n != y->labels.n)
		return false;
	for (uint32_t i = 0; i < x->labels.n; i++)
		if (!str_equal(a->labels[i].key, b->labels[i].key) ||
		    !str_equal(a->labels[i].str, b->labels[i].str))
			return false;
	return true;
}
