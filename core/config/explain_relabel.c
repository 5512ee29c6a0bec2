// SPDX-License-Identifier: Apache-2.0
/* The rules are applied repeatedly, each time with one more rule: the difference is the effect of
 * that rule. */
#include "config/explain_relabel.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "target/labelset.h"
#include "relabel/relabel.h"

#define MOST_NS 20000000u /* of the control thread's time: regular expressions may be slow */

struct walk {
	const struct relabel_rules *lists[2]; /* of all sinks, of the sink; NULL: none */
	struct relabel_rules first[2];        /* their first rules so far; borrowed */
	const struct fusee_label *labels;
	uint32_t n;
	struct json *out;
	uint64_t until; /* ns of the thread's CPU time, which other threads do not use up */
	bool late;
};

/* NULL: no memory. */
static struct relabeled *apply(const struct walk *w)
{
	const struct relabel_rules *lists[] = {&w->first[0], &w->first[1]};
	struct relabeled *r;

	return relabel_apply(lists, 2, w->labels, w->n, &r) ? NULL : r;
}

static const struct fusee_label *find(const struct relabeled *r, struct fusee_str name)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (str_equal(r->labels[i].key, name))
			return &r->labels[i];
	return NULL;
}

static void put_part(struct buf *b, const char *format, const struct fusee_label *l)
{
	buf_str(b, b->len ? ", " : "");
	buf_printf(b, format, (int)l->key.len, l->key.p, (int)l->str.len, l->str.p);
}

/* "app = shop, without user"; "" if nothing differs. */
static void put_difference(struct buf *b, const struct relabeled *before,
			   const struct relabeled *after)
{
	if (after->fate != RELABEL_KEPT) {
		buf_printf(b, "drops it (%s)", relabel_reason(after));
		return;
	}
	for (uint32_t i = 0; i < after->n; i++) {
		const struct fusee_label *was = find(before, after->labels[i].key);

		if (!was || !str_equal(was->str, after->labels[i].str))
			put_part(b, "%.*s = %.*s", &after->labels[i]);
	}
	for (uint32_t i = 0; i < before->n; i++)
		if (!find(after, before->labels[i].key))
			put_part(b, "without %.*s", &before->labels[i]);
}

static void put_rule(struct walk *w, uint32_t list, const struct buf *does)
{
	struct buf rule = {0};

	buf_printf(&rule, "%s, rule %u", w->first[list].where, w->first[list].n);
	json_open(w->out, NULL);
	json_buf(w->out, "rule", &rule);
	json_buf(w->out, "does", does);
	json_end(w->out);
	buf_fini(&rule);
}

/* Adds the list's rules one by one. before: the result of the rules so far, owned. Returns the
 * result of all rules, or of those before the time was over; NULL: no memory. */
static struct relabeled *walk_list(struct walk *w, uint32_t list, struct relabeled *before)
{
	uint32_t n = w->lists[list] ? w->lists[list]->n : 0;

	while (before && before->fate == RELABEL_KEPT && w->first[list].n < n && !w->late) {
		struct relabeled *after;
		struct buf does = {0};

		w->first[list].n++;
		w->late = clock_ns(CLOCK_THREAD_CPUTIME_ID) > w->until;
		if (w->late) {
			buf_str(&does,
				"is not shown, nor are those behind it: that takes too long");
			put_rule(w, list, &does);
			buf_fini(&does);
			break;
		}
		after = apply(w);
		if (after)
			put_difference(&does, before, after);
		if (does.len)
			put_rule(w, list, &does);
		buf_fini(&does);
		free(before);
		before = after;
	}
	return before;
}

static void put_sink(const struct plan_instance *sink, const struct fusee_label *labels, uint32_t n,
		     uint64_t until, struct json *j)
{
	struct walk w = {.lists = {sink->relabel_all, sink->relabel},
			 .labels = labels,
			 .n = n,
			 .out = j,
			 .until = until};
	struct relabeled *r;

	for (uint32_t i = 0; i < 2; i++)
		if (w.lists[i])
			w.first[i] = (struct relabel_rules){w.lists[i]->where, w.lists[i]->rules,
							    0};
	json_open(j, NULL);
	json_text(j, "sink", sink->name);
	json_list(j, "rules");
	r = walk_list(&w, 0, apply(&w));
	r = walk_list(&w, 1, r);
	json_end(j);
	json_end(j);
	if (!r)
		j->out->error = -ENOMEM;
	free(r);
}

void explain_relabel(const struct plan *plan, const struct fusee_label *labels, uint32_t n,
		     struct json *j)
{
	uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + MOST_NS;
	bool any = false;

	for (uint32_t i = 0; i < plan->nsinks; i++)
		if (plan->sinks[i]->relabel || plan->sinks[i]->relabel_all) {
			if (!any)
				json_list(j, "relabel");
			put_sink(plan->sinks[i], labels, n, until, j);
			any = true;
		}
	if (any)
		json_end(j);
}
