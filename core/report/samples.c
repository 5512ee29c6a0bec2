/* SPDX-License-Identifier: Apache-2.0 */
/* From samples to stacks of functions: value type, filters, groups, inlined calls. */
#include "report/internal/samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "profile/omit.h"
#include "profile/str.h"
#include "report/change.h"
#include "report/internal/reader.h"

/* Samples of one stack and one group. */
struct entry {
	uint32_t stack, group;
	int64_t value;
	double noise;
};

/* ---- filters ---- */

/* An expression matches a function, its source file or its library, as in pprof. */
static void match(struct reader *r, const regex_t *re, uint32_t bit)
{
	r->used |= bit;
	for (uint32_t i = 1; i < r->p->functions.n; i++) {
		const struct fusee_function *f = FUSEE_AT(struct fusee_function, r->p->functions,
							  i);

		if (render_matches(re, str_at(r->p, f->name)) ||
		    (f->file && render_matches(re, str_at(r->p, f->file))))
			r->function_match[i] |= bit;
	}
	for (uint32_t i = 1; i < r->p->mappings.n; i++) {
		const struct fusee_mapping *m = FUSEE_AT(struct fusee_mapping, r->p->mappings, i);

		if (render_matches(re, str_at(r->p, m->path)))
			r->mapping_match[i] |= bit;
	}
}

static int match_all(struct reader *r, struct buf *error)
{
	bool memory = !r->o->native && omit_allocators(r->m->type);
	const struct {
		const char *prefix, *text;
		uint32_t bit;
	} filters[] = {{"--focus: ", r->o->focus, MATCH_FOCUS},
		       {"--ignore: ", r->o->ignore, MATCH_IGNORE},
		       {"--hide: ", r->o->hide, MATCH_HIDE},
		       {"", memory ? "^(" OMIT_ALLOCATORS ")$" : NULL, MATCH_HIDDEN}};

	r->m->omits |= memory;
	for (size_t i = 0; i < sizeof(filters) / sizeof(*filters); i++) {
		regex_t re;

		if (!filters[i].text || !*filters[i].text)
			continue;
		if (render_compile(&re, filters[i].prefix, filters[i].text, error))
			return -EINVAL;
		match(r, &re, filters[i].bit);
		regfree(&re);
	}
	return 0;
}

static uint32_t location_match(const struct reader *r, const struct fusee_location *l)
{
	uint32_t bits = r->mapping_match[l->mapping];

	for (uint32_t i = 0; i < l->nlines; i++)
		bits |= r->function_match[FUSEE_AT(struct fusee_line, r->p->lines,
						   l->first_line + i)
						  ->function];
	return bits;
}

static bool stack_stays(const struct reader *r, const struct fusee_stack *s)
{
	bool focused = !(r->used & MATCH_FOCUS);

	for (uint32_t i = 0; r->used && i < s->n; i++) {
		uint32_t at = *FUSEE_AT(uint32_t, r->p->stack_locations, s->first + i);
		uint32_t bits = location_match(
			r, FUSEE_AT(struct fusee_location, r->p->locations, at));

		if (bits & MATCH_IGNORE)
			return false;
		focused |= bits & MATCH_FOCUS;
	}
	return focused;
}

static void add_entry(struct reader *r, const struct entry *e)
{
	const struct fusee_stack *s = FUSEE_AT(struct fusee_stack, r->p->stacks, e->stack);
	struct render_stack to = {.group = e->group, .noise = e->noise};

	if (!stack_stays(r, s))
		return;
	r->group = r->o->grouping == RENDER_BY_ROW ? e->group : 0;
	render_frames_put(r, s, e->group, &to);
	if (!to.n)
		return;
	*(r->is_base ? &to.base : &to.value) = e->value;
	if (buf_add(&r->t->stack_buf, &to, sizeof(to)))
		r->error = -ENOMEM;
	r->m->nstacks++;
}

/* ---- groups ---- */

static void put_group_key(struct reader *r, const struct fusee_sample *s)
{
	struct buf *b = &r->labels_key;

	buf_reset(b);
	if (r->o->grouping == RENDER_BY_SET) {
		render_labels_json(r->p, s, b);
		return;
	}
	for (uint32_t i = 0; i < r->labels->nkeys; i++) {
		buf_add(b, r->labels->keys[i].p, r->labels->keys[i].len);
		buf_str(b, ": ");
		if (!render_label(r->p, s, r->labels->keys[i], b))
			buf_str(b, "(none)");
		buf_add(b, "", 1);
	}
}

/* A group's text: its key with commas between the parts. */
static int add_group(struct reader *r, const char *key, uint32_t len)
{
	struct render_group *g = buf_grow(&r->t->group_buf, sizeof(*g));
	struct buf *b = &r->t->scratch;
	uint32_t id;

	if (!g)
		return -ENOMEM;
	buf_reset(b);
	for (uint32_t i = 0; i < len; i++) {
		if (key[i])
			buf_add(b, &key[i], 1);
		else if (i + 1 < len)
			buf_str(b, ", ");
	}
	id = b->error ? DICT_NONE : dict_add(&r->t->texts, b->p, b->len);
	if (id == DICT_NONE)
		return -ENOMEM;
	*g = (struct render_group){.text = {r->t->texts.entries[id].key, b->len}};
	r->m->ngroups++;
	return 0;
}

static uint32_t new_group_of(struct reader *r, const struct fusee_sample *s)
{
	uint32_t id;

	put_group_key(r, s);
	id = r->labels_key.error ? DICT_NONE
				 : dict_add(&r->t->groups, r->labels_key.p, r->labels_key.len);
	if (id == DICT_NONE || (id == r->m->ngroups && add_group(r, r->t->groups.entries[id].key,
								 r->t->groups.entries[id].len))) {
		r->error = -ENOMEM;
		return 0;
	}
	return id;
}

/* Samples behind each other often have the same labels. */
static uint32_t group_of(struct reader *r, const struct fusee_sample *s)
{
	const struct fusee_sample *before = r->before;

	if (!r->labels->nkeys && r->o->grouping != RENDER_BY_SET)
		return 0;
	if (!before || before->first_label != s->first_label || before->nlabels != s->nlabels ||
	    before->pid != s->pid || before->tid != s->tid)
		r->before_group = new_group_of(r, s);
	r->before = s;
	return r->before_group;
}

/* ---- from samples to entries ---- */

static struct entry *entry_of(struct reader *r, uint32_t stack, uint32_t group)
{
	const uint32_t key[2] = {stack, group};
	struct entry *e;
	uint32_t id;

	if (!r->labels->nkeys && r->o->grouping != RENDER_BY_SET)
		return (struct entry *)(void *)r->entries.p + stack;
	id = dict_add(&r->entry_keys, key, sizeof(key));
	if (id == DICT_NONE) {
		r->error = -ENOMEM;
		return NULL;
	}
	if (id - 1 < r->entries.len / sizeof(*e))
		return (struct entry *)(void *)r->entries.p + id - 1;
	e = buf_grow(&r->entries, sizeof(*e));
	if (e)
		*e = (struct entry){stack, group, 0, 0};
	else
		r->error = -ENOMEM;
	return e;
}

static void sum_sample(struct reader *r, uint32_t i, const struct render_count *count)
{
	const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, r->p->samples, i);
	const int64_t *values = FUSEE_AT(int64_t, r->p->values, (uint64_t)i * r->p->types.n);
	int64_t v = values[r->type], absolute = saturate_abs(v);
	double noise = render_noise_of(count, values);
	uint32_t group;
	struct entry *e;

	saturate_add(r->is_base ? &r->m->base_total : &r->m->total, absolute);
	*(r->is_base ? &r->m->base_noise : &r->m->noise) += noise;
	if (!render_labels_keep(r->labels, r->p, s))
		return;
	group = group_of(r, s);
	e = r->error ? NULL : entry_of(r, r->o->only_labels ? 0 : s->stack, group);
	if (!e)
		return;
	saturate_add(&e->value, v);
	e->noise += noise;
	if (group) {
		struct render_group *g = (struct render_group *)(void *)r->t->group_buf.p + group;

		saturate_add(r->is_base ? &g->base : &g->total, absolute);
	}
}

static void sum_samples(struct reader *r)
{
	struct render_count count;

	render_count_find(&count, r->p, r->type);
	for (uint32_t i = 0; !r->error && i < r->p->samples.n; i++)
		sum_sample(r, i, &count);
}

/* ---- a profile ---- */

/* Without groups the entry of a stack has the stack's number. */
static int make_entries(struct reader *r)
{
	struct entry *e;

	if (r->labels->nkeys || r->o->grouping == RENDER_BY_SET)
		return dict_init(&r->entry_keys);
	e = buf_grow(&r->entries, r->p->stacks.n * sizeof(*e));
	for (uint32_t i = 0; e && i < r->p->stacks.n; i++)
		e[i] = (struct entry){i, 0, 0, 0};
	return e ? 0 : -ENOMEM;
}

static int reader_init(struct reader *r)
{
	r->function_match = calloc(r->p->functions.n, 1);
	r->mapping_match = calloc(r->p->mappings.n, 1);
	r->module_of = calloc(r->p->mappings.n, sizeof(*r->module_of));
	if (!r->function_match || !r->mapping_match || !r->module_of)
		return -ENOMEM;
	for (uint32_t i = 1; i < r->p->functions.n; i++)
		if (FUSEE_AT(struct fusee_function, r->p->functions, i)->flags & FUSEE_FRAME_HIDDEN)
			r->function_match[i] = MATCH_HIDDEN;
	if (make_entries(r) || render_frames_init(r))
		return -ENOMEM;
	return render_modules(r->m, r->is_base, r->module_of);
}

static void reader_fini(struct reader *r)
{
	free(r->function_match);
	free(r->mapping_match);
	free(r->module_of);
	dict_fini(&r->entry_keys);
	buf_fini(&r->entries);
	buf_fini(&r->labels_key);
}

int render_read(struct render_model *m, bool is_base, uint32_t type,
		const struct render_labels *labels, const struct render_options *o,
		struct buf *error)
{
	struct reader r = {.m = m,
			   .p = is_base ? m->base : m->profile,
			   .labels = labels,
			   .o = o,
			   .t = m->tables,
			   .is_base = is_base,
			   .type = type};

	r.error = reader_init(&r);
	if (!r.error)
		r.error = match_all(&r, error);
	if (!r.error)
		sum_samples(&r);
	for (uint32_t i = 0; !r.error && i < r.entries.len / sizeof(struct entry); i++) {
		const struct entry e = ((const struct entry *)(const void *)r.entries.p)[i];

		if (e.value)
			add_entry(&r, &e);
	}
	render_frames_fini(&r);
	reader_fini(&r);
	return r.error;
}
