/* SPDX-License-Identifier: Apache-2.0 */
/* From the locations of a stack to its frames: functions, inlined calls, labels at the root. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/omit.h"
#include "profile/str.h"
#include "report/internal/reader.h"

#define UNSEEN UINT32_MAX

static const struct fusee_str no_name = {"<unknown>", 9};
static const struct fusee_str no_stack = {"[unknown]", 9};

/* Kinds of functions; of the last two the name is not the function's own. */
enum kind { KIND_NAMED, KIND_LABEL, KIND_NAMELESS, KIND_EMPTY };

/* The key of a function, followed by its name. */
struct function_key {
	uint32_t module, group, kind;
};

/* What a location is to a stack. */
enum way {
	WAY_UNKNOWN, /* it was not looked at */
	WAY_ONLY,    /* one frame, which no filter omits: that of its number */
	WAY_FRAMES,  /* other frames, or none */
};

/* ---- functions ---- */

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

/* ---- frames ---- */

static void new_frame(struct reader *r, uint32_t function, uint32_t flags, uint32_t line)
{
	struct render_frame f = {function, flags, line};

	if (buf_add(&r->t->frame_buf, &f, sizeof(f)))
		r->error = -ENOMEM;
	r->m->nframes++;
}

static void set_frame(struct reader *r, uint32_t i, struct render_frame f)
{
	((struct render_frame *)(void *)r->t->frame_buf.p)[i] = f;
}

/* Makes the frames of a location. hidden: MATCH_* of the functions that are omitted. */
static void new_frames(struct reader *r, const struct fusee_location *l, uint32_t hidden)
{
	uint32_t guessed = l->flags & FUSEE_LOCATION_GUESSED ? RENDER_GUESSED : 0;
	uint32_t before = r->m->nframes;

	if (!l->nlines)
		new_frame(r, nameless(r, l), guessed, 0);
	for (uint32_t k = 0; k < l->nlines && !r->error; k++) {
		const struct fusee_line *line = FUSEE_AT(struct fusee_line, r->p->lines,
							 l->first_line + k);

		if (!(r->function_match[line->function] & hidden))
			new_frame(r, named(r, line->function, l), guessed | RENDER_INLINED,
				  line->line);
	}
	/* the outermost frame that is kept is called, not inlined */
	if (r->m->nframes > before && !r->error)
		((struct render_frame *)(void *)r->t->frame_buf.p)[r->m->nframes - 1].flags =
			guessed;
}

/* The frame of a location that has one, without a filter, in the place of its number. */
static void only_frame(struct reader *r, uint32_t i, const struct fusee_location *l)
{
	uint32_t guessed = l->flags & FUSEE_LOCATION_GUESSED ? RENDER_GUESSED : 0;
	struct render_frame f = {.flags = guessed};

	if (!i) {
		f = (struct render_frame){.function = unknown(r)};
	} else if (!l->nlines) {
		f.function = nameless(r, l);
	} else {
		const struct fusee_line *line = FUSEE_AT(struct fusee_line, r->p->lines,
							 l->first_line);

		f.function = named(r, line->function, l);
		f.line = line->line;
	}
	if (!r->error)
		set_frame(r, i, f);
}

static void add_indices(struct reader *r, const struct located *at)
{
	uint32_t *to = buf_grow(&r->indices, at->n * sizeof(*to));

	if (!to)
		r->error = -ENOMEM;
	for (uint32_t i = 0; to && i < at->n; i++)
		to[i] = at->first + i;
}

/* all: also frames that are omitted without --native. */
static void add_location(struct reader *r, uint32_t i, bool all)
{
	const struct fusee_location *l = FUSEE_AT(struct fusee_location, r->p->locations, i);
	struct located *at = &r->located[i * 2ull + all];

	if (r->mapping_match[l->mapping] & MATCH_HIDE)
		return;
	if (at->group != r->group) {
		*at = (struct located){r->group, r->m->nframes, 0};
		if (i)
			new_frames(r, l, all ? MATCH_HIDE : MATCH_HIDE | MATCH_HIDDEN);
		else
			new_frame(r, unknown(r), 0, 0);
		at->n = r->m->nframes - at->first;
	}
	if (!r->error)
		add_indices(r, at);
}

/* The labels of a group as frames, the first label at the root. A group's key is the parts of its
 * text, each with a NUL. */
static void new_labels(struct reader *r, uint32_t group)
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
		new_frame(r, index, 0, 0);
	}
}

static void add_labels(struct reader *r, uint32_t group)
{
	struct located *at;

	while (!r->error && r->labels_at.len <= group * sizeof(*at)) {
		at = buf_grow(&r->labels_at, sizeof(*at));
		if (at)
			at->group = UINT32_MAX;
		else
			r->error = -ENOMEM;
	}
	if (r->error)
		return;
	at = (struct located *)(void *)r->labels_at.p + group;
	if (at->group != group) {
		*at = (struct located){group, r->m->nframes, 0};
		new_labels(r, group);
		at->n = r->m->nframes - at->first;
	}
	if (!r->error)
		add_indices(r, at);
}

/* ---- stacks ---- */

static const uint32_t *locations_of(const struct reader *r, const struct fusee_stack *s)
{
	return s->n ? FUSEE_AT(uint32_t, r->p->stack_locations, s->first) : NULL;
}

static void add_frames(struct reader *r, const struct fusee_stack *s, bool all)
{
	const uint32_t *locations = locations_of(r, s);
	struct omit omit = {0};

	if (!all)
		omit_init(&omit, r->p, s);
	for (uint32_t k = 0; k < s->n && !r->error; k++) {
		const struct fusee_location *l = FUSEE_AT(struct fusee_location, r->p->locations,
							  locations[k]);

		if (omit_location(&omit, l))
			r->m->omits = true;
		else
			add_location(r, locations[k], all);
	}
	if (!s->n)
		add_location(r, 0, all);
}

static enum way way_of(struct reader *r, uint32_t i)
{
	const struct fusee_location *l = FUSEE_AT(struct fusee_location, r->p->locations, i);

	if (l->nlines > 1 || l->flags & FUSEE_LOCATION_INTERPRETER || r->mapping_match[l->mapping])
		return WAY_FRAMES;
	if (l->nlines &&
	    r->function_match[FUSEE_AT(struct fusee_line, r->p->lines, l->first_line)->function])
		return WAY_FRAMES;
	only_frame(r, i, l);
	return WAY_ONLY;
}

/* Whether each of the stack's locations is the frame of its number, as in most profiles without
 * inlined calls: then the stack's locations are its frames. */
static bool is_alias(struct reader *r, const struct fusee_stack *s)
{
	const uint32_t *locations = locations_of(r, s);

	for (uint32_t k = 0; k < s->n && !r->error; k++) {
		uint8_t *way = &r->ways[locations[k]];

		if (*way == WAY_UNKNOWN)
			*way = (uint8_t)way_of(r, locations[k]);
		if (*way != WAY_ONLY)
			return false;
	}
	return s->n && !r->error;
}

void render_frames_put(struct reader *r, const struct fusee_stack *s, uint32_t group,
		       struct render_stack *to)
{
	bool labels = r->o->grouping == RENDER_BY_ROOT && group;
	uint32_t *copy;

	if (r->aliases && !r->group && !labels && is_alias(r, s)) {
		to->frames = locations_of(r, s);
		to->n = s->n;
		return;
	}
	buf_reset(&r->indices);
	if (!r->o->only_labels)
		add_frames(r, s, r->o->native);
	if (!r->indices.len && !r->o->native &&
	    !r->o->only_labels) /* the language hides all of it */
		add_frames(r, s, true);
	if (r->error || !(r->indices.len || r->o->only_labels))
		return;
	if (labels)
		add_labels(r, group);
	if (!r->indices.len)
		return;
	copy = r->error ? NULL : arena_add(&r->t->arena, r->indices.len);
	if (!copy) {
		r->error = -ENOMEM;
		return;
	}
	memcpy(copy, r->indices.p, r->indices.len);
	to->frames = copy;
	to->n = (uint32_t)(r->indices.len / sizeof(*copy));
}

int render_frames_init(struct reader *r)
{
	size_t n = r->p->locations.n;

	r->seen = malloc((r->p->functions.n + (size_t)1) * sizeof(*r->seen));
	r->located = malloc((n + 1) * 2 * sizeof(*r->located));
	r->ways = calloc(n + 1, 1);
	if (!r->seen || !r->located || !r->ways)
		return -ENOMEM;
	memset(r->seen, 0xff, r->p->functions.n * sizeof(*r->seen));
	memset(r->located, 0xff, n * 2 * sizeof(*r->located));
	r->aliases = !r->is_base && r->p->stack_locations.stride == sizeof(uint32_t);
	if (r->aliases && !buf_grow(&r->t->frame_buf, n * sizeof(struct render_frame)))
		return -ENOMEM;
	r->m->nframes = (uint32_t)(r->t->frame_buf.len / sizeof(struct render_frame));
	return 0;
}

void render_frames_fini(struct reader *r)
{
	free(r->seen);
	free(r->located);
	free(r->ways);
	buf_fini(&r->indices);
	buf_fini(&r->labels_at);
	buf_fini(&r->key);
}
