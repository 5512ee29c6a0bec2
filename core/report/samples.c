/* SPDX-License-Identifier: Apache-2.0 */
/* From samples to stacks of functions: value type, filters, groups, inlined calls. */
#include "report/internal/samples.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "profile/omit.h"
#include "profile/str.h"
#include "report/change.h"

/* Of a function: the expressions that match it, and whether its language hides it. */
enum { MATCH_FOCUS = 1, MATCH_IGNORE = 2, MATCH_HIDE = 4, MATCH_HIDDEN = 8 };

#define UNSEEN UINT32_MAX

static const struct fusee_str no_name = {"<unknown>", 9};
static const struct fusee_str no_stack = {"[unknown]", 9};

/* Kinds of functions; of the last two the name is not the function's own. */
enum kind { KIND_NAMED, KIND_LABEL, KIND_NAMELESS, KIND_EMPTY };

/* The key of a function, followed by its name. */
struct function_key {
	uint32_t module, group, kind;
};

/* The function of the model that a function of the profile had last, and its module and group. */
struct seen {
	uint32_t module, group, id;
};

/* Samples of one stack and one group. */
struct entry {
	uint32_t stack, group;
	int64_t value;
	double noise;
};

/* Reads one of the two profiles into the model. */
struct reader {
	struct render_model *m;
	const struct fusee_profile *p;
	const struct render_labels *labels;
	const struct render_options *o;
	struct render_tables *t;
	bool is_base;
	uint32_t type;
	uint32_t used;           /* MATCH_* of the expressions that were given */
	uint8_t *function_match; /* MATCH_* by function of the profile */
	uint8_t *mapping_match;
	uint32_t *module_of; /* by mapping */
	struct seen *seen;   /* by function of the profile */
	struct dict entry_keys;
	struct buf entries;
	uint32_t group;        /* of functions: 0 but for RENDER_BY_ROW */
	struct buf key;        /* of a function */
	struct buf labels_key; /* of a group */
	int error;
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
	const struct {
		const char *name, *text;
		uint32_t bit;
	} filters[] = {{"focus", r->o->focus, MATCH_FOCUS},
		       {"ignore", r->o->ignore, MATCH_IGNORE},
		       {"hide", r->o->hide, MATCH_HIDE}};

	for (size_t i = 0; i < sizeof(filters) / sizeof(*filters); i++) {
		char prefix[32];
		regex_t re;
		int ret;

		if (!filters[i].text || !*filters[i].text)
			continue;
		snprintf(prefix, sizeof(prefix), "--%s: ", filters[i].name);
		ret = render_compile(&re, prefix, filters[i].text, error);
		if (ret)
			return ret;
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

/* ---- functions and frames ---- */

static uint32_t code_of(const struct fusee_profile *p, const struct fusee_location *l)
{
	uint32_t flags = FUSEE_AT(struct fusee_mapping, p->mappings, l->mapping)->flags;
	struct fusee_str type = str_at(p, l->frame_type);

	if (l->flags & FUSEE_LOCATION_REASON)
		return RENDER_REASON;
	if (flags & FUSEE_MAPPING_KERNEL || fusee_text_is(type, "kernel"))
		return RENDER_KERNEL;
	if (flags & FUSEE_MAPPING_MAIN)
		return RENDER_PROGRAM;
	if (!l->mapping)
		return RENDER_LANGUAGE;
	return flags & FUSEE_MAPPING_JIT ? RENDER_RUNTIME : RENDER_LIBRARY;
}

/* The function with this key. A new function has module, group and name; its code is UNSEEN. */
static struct render_function *function(struct reader *r, uint32_t module, enum kind kind,
					struct fusee_str name, uint32_t *index)
{
	struct function_key key = {module, r->group, kind};
	struct render_model *m = r->m;
	struct render_function *f;
	uint32_t id;

	buf_reset(&r->key);
	buf_add(&r->key, &key, sizeof(key));
	buf_add(&r->key, name.p, name.len);
	id = r->key.error ? DICT_NONE : dict_add(&r->t->functions, r->key.p, r->key.len);
	if (id == DICT_NONE) {
		r->error = -ENOMEM;
		return NULL;
	}
	*index = id - 1; /* the dict's 0 is the empty key */
	if (*index < m->nfunctions)
		return (struct render_function *)(void *)r->t->function_buf.p + *index;
	f = buf_grow(&r->t->function_buf, sizeof(*f));
	if (!f) {
		r->error = -ENOMEM;
		return NULL;
	}
	*f = (struct render_function){
		.name = name, .module = module, .group = r->group, .code = UNSEEN};
	m->nfunctions++;
	return f;
}

static void first_seen(struct render_function *f, const struct fusee_profile *p,
		       const struct fusee_location *l)
{
	const struct fusee_mapping *map = FUSEE_AT(struct fusee_mapping, p->mappings, l->mapping);

	f->code = code_of(p, l);
	f->library = str_at(p, map->path);
	f->build_id = str_at(p, map->build_id);
}

/* The module of a frame: of its mapping, or of its source file where there is no file of code. */
static uint32_t frame_module(struct reader *r, const struct fusee_location *l, uint32_t file)
{
	uint32_t module = r->module_of[l->mapping];

	if (!module && file && !(l->flags & FUSEE_LOCATION_REASON))
		module = render_source_module(r->m, str_at(r->p, file));
	if (module == UINT32_MAX)
		r->error = -ENOMEM;
	return module;
}

static uint32_t named(struct reader *r, uint32_t i, const struct fusee_location *l)
{
	const struct fusee_function *from = FUSEE_AT(struct fusee_function, r->p->functions, i);
	uint32_t module = r->module_of[l->mapping];
	struct fusee_str name = str_at(r->p, from->name);
	struct seen *seen = &r->seen[i];
	struct render_function *f;

	if (seen->id != UNSEEN && seen->module == module && seen->group == r->group)
		return seen->id;
	*seen = (struct seen){module, r->group, UNSEEN};
	module = frame_module(r, l, from->file);
	if (r->error)
		return 0;
	f = function(r, module, name.len ? KIND_NAMED : KIND_EMPTY, name, &seen->id);
	if (f && f->code == UNSEEN) {
		f->name = name.len ? name : no_name;
		f->file = str_at(r->p, from->file);
		f->start_line = from->start_line;
		first_seen(f, r->p, l);
	}
	return seen->id;
}

/* "[libc.so.6]" */
static struct fusee_str in_brackets(struct reader *r, struct fusee_str path)
{
	struct buf *b = &r->t->scratch;
	struct fusee_str base = str_base_name(path);
	uint32_t id;

	buf_reset(b);
	buf_str(b, "[");
	buf_add(b, base.p, base.len);
	id = buf_str(b, "]") ? DICT_NONE : dict_add(&r->t->texts, b->p, b->len);
	if (id != DICT_NONE)
		return (struct fusee_str){r->t->texts.entries[id].key, b->len};
	r->error = -ENOMEM;
	return no_name;
}

/* The function of addresses without a function: one for each mapping. */
static uint32_t nameless(struct reader *r, const struct fusee_location *l)
{
	struct fusee_str path = str_at(
		r->p, FUSEE_AT(struct fusee_mapping, r->p->mappings, l->mapping)->path);
	struct render_function *f;
	uint32_t index = 0;

	if (!path.len)
		f = function(r, r->module_of[l->mapping], KIND_EMPTY, path, &index);
	else
		f = function(r, r->module_of[l->mapping], KIND_NAMELESS, path, &index);
	if (!f || f->code != UNSEEN)
		return index;
	f->name = path.len ? in_brackets(r, path) : no_name;
	f->is_nameless = path.len;
	first_seen(f, r->p, l);
	return index;
}

/* A sample without a stack has this frame. */
static uint32_t unknown(struct reader *r)
{
	struct render_function *f;
	uint32_t index = 0;

	f = function(r, 0, KIND_NAMED, no_stack, &index);
	if (f)
		f->code = RENDER_REASON;
	return index;
}

static void add_frame(struct reader *r, uint32_t function, uint32_t flags, uint32_t line)
{
	struct render_frame f = {function, flags, line};

	if (buf_add(&r->t->frame_buf, &f, sizeof(f)))
		r->error = -ENOMEM;
	r->m->nframes++;
}

/* hidden: MATCH_* of the functions that are omitted. */
static void add_location(struct reader *r, uint32_t i, uint32_t hidden)
{
	const struct fusee_location *l = FUSEE_AT(struct fusee_location, r->p->locations, i);
	uint32_t guessed = l->flags & FUSEE_LOCATION_GUESSED ? RENDER_GUESSED : 0;
	uint32_t before = r->m->nframes;

	if (!i) {
		add_frame(r, unknown(r), 0, 0);
		return;
	}
	if (r->mapping_match[l->mapping] & MATCH_HIDE)
		return;
	if (!l->nlines)
		add_frame(r, nameless(r, l), guessed, 0);
	for (uint32_t k = 0; k < l->nlines && !r->error; k++) {
		const struct fusee_line *line = FUSEE_AT(struct fusee_line, r->p->lines,
							 l->first_line + k);

		if (!(r->function_match[line->function] & hidden))
			add_frame(r, named(r, line->function, l), guessed | RENDER_INLINED,
				  line->line);
	}
	/* the outermost frame that is kept is called, not inlined */
	if (r->m->nframes > before && !r->error)
		((struct render_frame *)(void *)r->t->frame_buf.p)[r->m->nframes - 1].flags =
			guessed;
}

/* The labels of a group as frames, the first label at the root. A group's key is the parts of its
 * text, each with a NUL. */
static void add_labels(struct reader *r, uint32_t group)
{
	const struct dict_entry *e = &r->t->groups.entries[group];
	const char *key = e->key;
	uint32_t first[RENDER_MAX_KEYS], n = 0;

	for (uint32_t at = 0; at < e->len && n < RENDER_MAX_KEYS; at += strlen(key + at) + 1)
		first[n++] = at;
	while (n-- > 0 && !r->error) {
		struct fusee_str name = {key + first[n], strlen(key + first[n])};
		uint32_t index = 0;
		struct render_function *f = function(r, 0, KIND_LABEL, name, &index);

		if (f)
			f->code = RENDER_LABEL;
		add_frame(r, index, 0, 0);
	}
}

static const struct fusee_location *location_of(const struct reader *r, const struct fusee_stack *s,
						uint32_t i)
{
	return FUSEE_AT(struct fusee_location, r->p->locations,
			*FUSEE_AT(uint32_t, r->p->stack_locations, s->first + i));
}

/* all: also frames that are omitted without --native. */
static void add_frames(struct reader *r, const struct fusee_stack *s, bool all)
{
	uint32_t hidden = all ? MATCH_HIDE : MATCH_HIDE | MATCH_HIDDEN;
	struct omit omit = {0};

	if (!all)
		omit_init(&omit, r->p, s);
	for (uint32_t k = 0; k < s->n && !r->error; k++) {
		uint32_t i = *FUSEE_AT(uint32_t, r->p->stack_locations, s->first + k);

		if (omit_location(&omit, location_of(r, s, k)))
			r->m->omits = true;
		else
			add_location(r, i, hidden);
	}
	if (!s->n)
		add_frame(r, unknown(r), 0, 0);
}

static void add_entry(struct reader *r, const struct entry *e)
{
	const struct fusee_stack *s = FUSEE_AT(struct fusee_stack, r->p->stacks, e->stack);
	struct render_stack to = {.first = r->m->nframes, .group = e->group, .noise = e->noise};

	if (!stack_stays(r, s))
		return;
	r->group = r->o->grouping == RENDER_BY_ROW ? e->group : 0;
	add_frames(r, s, r->o->native);
	if (r->m->nframes == to.first && !r->o->native) /* the language hides all of it */
		add_frames(r, s, true);
	if (r->m->nframes == to.first)
		return;
	if (r->o->grouping == RENDER_BY_ROOT && e->group)
		add_labels(r, e->group);
	to.n = r->m->nframes - to.first;
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

static uint32_t group_of(struct reader *r, const struct fusee_sample *s)
{
	uint32_t id;

	if (!r->labels->nkeys && r->o->grouping != RENDER_BY_SET)
		return 0;
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
	e = r->error ? NULL : entry_of(r, s->stack, group);
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
	r->seen = malloc(r->p->functions.n * sizeof(*r->seen));
	r->module_of = calloc(r->p->mappings.n, sizeof(*r->module_of));
	if (!r->function_match || !r->mapping_match || !r->seen || !r->module_of)
		return -ENOMEM;
	memset(r->seen, 0xff, r->p->functions.n * sizeof(*r->seen));
	for (uint32_t i = 1; i < r->p->functions.n; i++)
		if (FUSEE_AT(struct fusee_function, r->p->functions, i)->flags & FUSEE_FRAME_HIDDEN)
			r->function_match[i] = MATCH_HIDDEN;
	if (make_entries(r))
		return -ENOMEM;
	return render_modules(r->m, r->is_base, r->module_of);
}

static void reader_fini(struct reader *r)
{
	free(r->function_match);
	free(r->mapping_match);
	free(r->seen);
	free(r->module_of);
	dict_fini(&r->entry_keys);
	buf_fini(&r->entries);
	buf_fini(&r->key);
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
	reader_fini(&r);
	return r.error;
}
