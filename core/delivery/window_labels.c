// SPDX-License-Identifier: Apache-2.0
#include "delivery/internal/window_labels.h"

#include <stdlib.h>

#include "base/hashmap.h"

/* The labels that the rules made of one label set. */
struct named_set {
	const struct relabeled *relabeled; /* NULL: no memory */
	uint32_t group;
};

struct window_labels {
	const struct plan_instance *plan;
	struct relabeler *relabeler;
	const struct fusee_label *(*labels)(void *arg, uint32_t set, uint32_t *n);
	void *arg;
	struct hashmap sets;      /* struct named_set * of the window that is built */
	struct named_set no_room; /* of a set for which there was no memory */
};

struct window_labels *window_labels_new(const struct plan_instance *plan,
					const struct fusee_label *(*labels)(void *arg, uint32_t set,
									    uint32_t *n),
					void *arg)
{
	struct window_labels *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->labels = labels;
	w->arg = arg;
	w->relabeler = relabeler_new();
	if (w->relabeler) {
		window_labels_replan(w, plan);
		return w;
	}
	free(w);
	return NULL;
}

void window_labels_replan(struct window_labels *w, const struct plan_instance *plan)
{
	w->plan = plan;
	relabeler_set_rules(w->relabeler, plan->relabel_all, plan->relabel);
}

bool window_labels_has_rules(const struct window_labels *w)
{
	return w->plan->relabel || w->plan->relabel_all;
}

void window_labels_free(struct window_labels *w)
{
	if (!w)
		return;
	hashmap_fini_free(&w->sets);
	relabeler_free(w->relabeler);
	free(w);
}

void window_labels_begin(struct window_labels *w)
{
	hashmap_fini_free(&w->sets);
}

void window_labels_end(struct window_labels *w)
{
	hashmap_fini_free(&w->sets);
	relabeler_tidy(w->relabeler);
}

static const struct named_set *find(struct window_labels *w, uint32_t set)
{
	uint64_t key = (uint64_t)set + 1; /* + 1 because set 0 exists, but not key 0 */
	struct named_set *s = hashmap_get(&w->sets, key);
	const struct fusee_label *labels;
	uint32_t n = 0;

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s || hashmap_put(&w->sets, key, s)) {
		free(s);
		return &w->no_room;
	}
	labels = w->labels(w->arg, set, &n);
	s->relabeled = relabeler_get(w->relabeler, labels, labels ? n : 0, &s->group);
	if (!s->relabeled || s->relabeled->fate != RELABEL_KEPT)
		s->group = 0;
	return s;
}

const struct fusee_label *window_labels_of(void *arg, uint32_t set, uint32_t *n)
{
	const struct named_set *s = find(arg, set);

	*n = s->group ? s->relabeled->n : 0;
	return s->group ? s->relabeled->labels : NULL;
}

uint32_t window_labels_group(void *arg, uint32_t set)
{
	return find(arg, set)->group;
}

const char *window_labels_dropped(struct window_labels *w, uint32_t set)
{
	const struct named_set *s = find(w, set);

	return s->relabeled ? relabel_reason(s->relabeled) : "no memory";
}
