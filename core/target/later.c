// SPDX-License-Identifier: Apache-2.0
/* Labels that a source finds only when they are needed. */
#include <errno.h>

#include "base/str.h"
#include "target/internal/internal.h"

/* Labels that a name can differ by, in a set, if any label comes later. */
static bool follows(struct fusee_str name)
{
	return str_equal(name, fusee_text("service_name"));
}

static bool has(const struct dict *d, struct fusee_str s)
{
	return dict_find(d, s.p, s.len) != DICT_NONE;
}

/* Whether a target that matches by one of the labels can add any other. */
static bool joins(const struct target_later *l)
{
	for (uint32_t i = 1; i < l->keys.n; i++) {
		struct fusee_str key = {l->keys.entries[i].key, l->keys.entries[i].len};

		if (follows(key) || has(&l->names, key))
			return true;
	}
	return false;
}

int target_note_later(struct targets *ts, const struct fusee_target *t)
{
	struct target_later *l = &ts->later;
	uint32_t before = l->names.n + l->keys.n;

	if (t->match == FUSEE_MATCH_LABEL &&
	    dict_add(&l->keys, t->match_label.key.p, t->match_label.key.len) == DICT_NONE)
		return -ENOMEM;
	FUSEE_FOR_EACH (struct fusee_str, name, t->later)
		if (dict_add(&l->names, name->p, name->len) == DICT_NONE)
			return -ENOMEM;
	if (l->names.n + l->keys.n != before)
		l->joins = joins(l);
	return 0;
}

bool targets_lack_labels(const struct targets *ts, pid_t pid, uint32_t source)
{
	const struct fusee_target like = {.match = FUSEE_MATCH_PID, .pid = (uint32_t)pid};
	const struct target_list *list = target_matches(ts, &like);

	for (const struct target_entry *e = list ? list->first : NULL; e; e = e->next[BY_MATCH])
		if (e->lacks && !e->staged && e->t.match == like.match && e->t.pid == like.pid &&
		    (!source || e->source->id == source))
			return true;
	return false;
}

bool targets_may_change(const struct targets *ts, struct fusee_str name)
{
	return ts->later.joins || follows(name) || has(&ts->later.names, name);
}

uint32_t targets_later_names(const struct targets *ts)
{
	return ts->later.names.n + ts->later.joins;
}
