/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/render_model.h"

#include <errno.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MATCH_FOCUS = 1, MATCH_IGNORE = 2, MATCH_HIDE = 4 };

#define UNSEEN UINT32_MAX

static const struct fusee_str no_name = {"<unknown>", 9};

/* Reads one of the two profiles into the model. */
struct reader {
	struct render_model *m;
	const struct fusee_profile *p;
	bool is_base;
	uint32_t type;
	uint32_t used;           /* MATCH_* of the expressions that were given */
	uint8_t *function_match; /* MATCH_* by function of the profile */
	uint8_t *mapping_match;
	uint32_t *function_of; /* by function of the profile: the model's function */
	uint32_t *nameless_of; /* by mapping: the model's function of unknown addresses */
	int64_t *values;       /* by stack */
	int error;
};

static bool add_overflow(int64_t *to, int64_t v)
{
	if (!__builtin_add_overflow(*to, v, to))
		return false;
	*to = v < 0 ? INT64_MIN : INT64_MAX;
	return true;
}

static struct fusee_str string(const struct fusee_profile *p, uint32_t i)
{
	return *FUSEE_AT(struct fusee_str, p->strings, i);
}

static bool same(struct fusee_str a, struct fusee_str b)
{
	return a.len == b.len && (!a.len || !memcmp(a.p, b.p, a.len));
}

const char *render_base_name(struct fusee_str path, uint32_t *len)
{
	uint64_t at = path.len;

	while (at && path.p[at - 1] != '/')
		at--;
	*len = (uint32_t)(path.len - at);
	return path.p + at;
}

/* ---- the value type ---- */

static struct fusee_value_type type_at(const struct fusee_profile *p, uint32_t i)
{
	return *FUSEE_AT(struct fusee_value_type, p->types, i);
}

/* unit NULL: any. */
static bool find_type(const struct fusee_profile *p, struct fusee_str want,
		      const struct fusee_str *unit, uint32_t *type)
{
	for (uint32_t i = 0; i < p->types.n; i++) {
		if (same(string(p, type_at(p, i).type), want) &&
		    (!unit || same(string(p, type_at(p, i).unit), *unit))) {
			*type = i;
			return true;
		}
	}
	return false;
}

static int choose_type(struct render_model *m, const struct render_options *o, uint32_t *type,
		       uint32_t *base_type, struct buf *error)
{
	const struct fusee_profile *p = m->profile;
	struct fusee_str want = {o->type, o->type ? strlen(o->type) : 0};

	*type = p->default_type;
	if (!p->types.n) {
		buf_str(error, "the profile has no values");
		return -EINVAL;
	}
	if (*type >= p->types.n)
		*type = p->types.n - 1;
	if (o->type && !find_type(p, want, NULL, type)) {
		buf_printf(error, "no values of type '%s' (there are:", o->type);
		for (uint32_t i = 0; i < p->types.n; i++) {
			buf_str(error, " ");
			render_plain(error, string(p, type_at(p, i).type));
		}
		buf_str(error, ")");
		return -EINVAL;
	}
	m->type = string(p, type_at(p, *type).type);
	m->unit = string(p, type_at(p, *type).unit);
	if (!m->base)
		return 0;
	if (find_type(m->base, m->type, &m->unit, base_type))
		return 0;
	buf_str(error, "the base has no values of type '");
	render_plain(error, m->type);
	buf_str(error, "' in ");
	render_plain(error, m->unit);
	return -EINVAL;
}

/* ---- filters ---- */

/* An expression matches a function, its source file or its library, as in pprof. */
static void match(struct reader *r, const regex_t *re, uint32_t bit)
{
	r->used |= bit;
	for (uint32_t i = 1; i < r->p->functions.n; i++) {
		const struct fusee_function *f = FUSEE_AT(struct fusee_function, r->p->functions,
							  i);

		if (render_matches(re, string(r->p, f->name)) ||
		    (f->file && render_matches(re, string(r->p, f->file))))
			r->function_match[i] |= bit;
	}
	for (uint32_t i = 1; i < r->p->mappings.n; i++) {
		const struct fusee_mapping *m = FUSEE_AT(struct fusee_mapping, r->p->mappings, i);

		if (render_matches(re, string(r->p, m->path)))
			r->mapping_match[i] |= bit;
	}
}

static int match_all(struct reader *r, const struct render_options *o, struct buf *error)
{
	const struct {
		const char *name, *text;
		uint32_t bit;
	} filters[] = {{"focus", o->focus, MATCH_FOCUS},
		       {"ignore", o->ignore, MATCH_IGNORE},
		       {"hide", o->hide, MATCH_HIDE}};

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

	for (uint32_t i = 0; i < s->n; i++) {
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
	struct fusee_str type = string(p, l->frame_type);

	if (l->flags & FUSEE_LOCATION_REASON)
		return RENDER_REASON;
	if (flags & FUSEE_MAPPING_KERNEL || same(type, (struct fusee_str){"kernel", 6}))
		return RENDER_KERNEL;
	if (flags & FUSEE_MAPPING_MAIN)
		return RENDER_PROGRAM;
	if (flags & FUSEE_MAPPING_JIT || !l->mapping)
		return RENDER_RUNTIME;
	return RENDER_LIBRARY;
}

/* The function with this key; a new function is empty except for its name. */
static struct render_function *function(struct reader *r, const void *key, size_t len,
					struct fusee_str name, uint32_t *index)
{
	struct render_model *m = r->m;
	struct render_function *f;
	uint32_t id = dict_add(&m->names, key, len);

	if (id == DICT_NONE) {
		r->error = -ENOMEM;
		return NULL;
	}
	*index = id - 1; /* the dict's 0 is the empty key */
	if (*index < m->nfunctions)
		return (struct render_function *)(void *)m->function_buf.p + *index;
	f = buf_grow(&m->function_buf, sizeof(*f));
	if (!f) {
		r->error = -ENOMEM;
		return NULL;
	}
	*f = (struct render_function){.name = name, .code = UNSEEN};
	m->nfunctions++;
	return f;
}

static void first_seen(struct render_function *f, const struct fusee_profile *p,
		       const struct fusee_location *l)
{
	if (!f || f->code != UNSEEN)
		return;
	f->code = code_of(p, l);
	f->library = string(p, FUSEE_AT(struct fusee_mapping, p->mappings, l->mapping)->path);
}

static uint32_t named(struct reader *r, uint32_t i, const struct fusee_location *l)
{
	const struct fusee_function *from = FUSEE_AT(struct fusee_function, r->p->functions, i);
	struct fusee_str name = string(r->p, from->name);
	struct render_function *f;

	if (r->function_of[i] != UNSEEN)
		return r->function_of[i];
	if (name.len)
		f = function(r, name.p, name.len, name, &r->function_of[i]);
	else
		f = function(r, "", 1, no_name, &r->function_of[i]);
	if (f && f->code == UNSEEN) {
		f->file = string(r->p, from->file);
		f->start_line = from->start_line;
	}
	first_seen(f, r->p, l);
	return r->function_of[i];
}

/* Memory that render_model_free() frees. */
static char *keep(struct render_model *m, size_t len)
{
	char **more = realloc(m->kept, (m->nkept + 1) * sizeof(*more));

	if (!more)
		return NULL;
	m->kept = more;
	more[m->nkept] = malloc(len);
	return more[m->nkept] ? more[m->nkept++] : NULL;
}

/* The function of addresses without a function: one for each file, "[libc.so.6]". Its key is no
 * function's name. */
static uint32_t nameless(struct reader *r, const struct fusee_location *l)
{
	struct fusee_str path = string(
		r->p, FUSEE_AT(struct fusee_mapping, r->p->mappings, l->mapping)->path);
	uint32_t len, *at = &r->nameless_of[l->mapping];
	const char *base = render_base_name(path, &len);
	char *text;

	if (*at != UNSEEN)
		return *at;
	text = keep(r->m, path.len + 3);
	if (!text) {
		r->error = -ENOMEM;
		return 0;
	}
	text[0] = '\0';
	memcpy(text + 1, path.p, path.len);
	if (!path.len) {
		first_seen(function(r, "", 1, no_name, at), r->p, l);
		return *at;
	}
	function(r, text, path.len + 1, (struct fusee_str){text, len + 2}, at);
	if (r->error)
		return 0;
	text[0] = '[';
	memmove(text + 1, base, len);
	text[len + 1] = ']';
	first_seen((struct render_function *)(void *)r->m->function_buf.p + *at, r->p, l);
	return *at;
}

/* A sample without a stack has this frame. */
static uint32_t unknown(struct reader *r)
{
	const struct fusee_str name = {"[unknown]", 9};
	struct render_function *f;
	uint32_t index = 0;

	f = function(r, name.p, name.len, name, &index);
	if (f)
		f->code = RENDER_REASON;
	return index;
}

static void add_frame(struct reader *r, uint32_t function, uint32_t flags, uint32_t line)
{
	struct render_frame f = {function, flags, line};

	if (buf_add(&r->m->frame_buf, &f, sizeof(f)))
		r->error = -ENOMEM;
	r->m->nframes++;
}

static void add_location(struct reader *r, uint32_t i)
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

		if (!(r->function_match[line->function] & MATCH_HIDE))
			add_frame(r, named(r, line->function, l), guessed | RENDER_INLINED,
				  line->line);
	}
	/* the outermost frame that is kept is called, not inlined */
	if (r->m->nframes > before && !r->error)
		((struct render_frame *)(void *)r->m->frame_buf.p)[r->m->nframes - 1].flags =
			guessed;
}

static void add_stack(struct reader *r, uint32_t i)
{
	const struct fusee_stack *s = FUSEE_AT(struct fusee_stack, r->p->stacks, i);
	struct render_stack to = {.first = r->m->nframes};

	if (!stack_stays(r, s))
		return;
	for (uint32_t k = 0; k < s->n && !r->error; k++)
		add_location(r, *FUSEE_AT(uint32_t, r->p->stack_locations, s->first + k));
	if (!s->n)
		add_frame(r, unknown(r), 0, 0);
	to.n = r->m->nframes - to.first;
	if (!to.n)
		return;
	*(r->is_base ? &to.base : &to.value) = r->values[i];
	if (buf_add(&r->m->stack_buf, &to, sizeof(to)))
		r->error = -ENOMEM;
	r->m->nstacks++;
}

/* ---- from samples to stacks ---- */

static void sum_samples(struct reader *r)
{
	int64_t *total = r->is_base ? &r->m->base_total : &r->m->total;

	for (uint32_t i = 0; i < r->p->samples.n; i++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, r->p->samples, i);
		int64_t v = *FUSEE_AT(int64_t, r->p->values, (uint64_t)i * r->p->types.n + r->type);

		add_overflow(&r->values[s->stack], v);
		add_overflow(total, v == INT64_MIN ? INT64_MAX : v < 0 ? -v : v);
	}
}

static int reader_init(struct reader *r)
{
	r->function_match = calloc(r->p->functions.n, 1);
	r->mapping_match = calloc(r->p->mappings.n, 1);
	r->function_of = malloc(r->p->functions.n * sizeof(*r->function_of));
	r->nameless_of = malloc(r->p->mappings.n * sizeof(*r->nameless_of));
	r->values = calloc(r->p->stacks.n, sizeof(*r->values));
	if (!r->function_match || !r->mapping_match || !r->function_of || !r->nameless_of ||
	    !r->values)
		return -ENOMEM;
	memset(r->function_of, 0xff, r->p->functions.n * sizeof(*r->function_of));
	memset(r->nameless_of, 0xff, r->p->mappings.n * sizeof(*r->nameless_of));
	return 0;
}

static int read_profile(struct reader r, const struct render_options *o, struct buf *error)
{
	const struct fusee_profile *p = r.p;

	r.error = reader_init(&r);
	if (!r.error)
		r.error = match_all(&r, o, error);
	if (!r.error)
		sum_samples(&r);
	for (uint32_t i = 0; !r.error && i < p->stacks.n; i++)
		if (r.values[i])
			add_stack(&r, i);
	free(r.function_match);
	free(r.mapping_match);
	free(r.function_of);
	free(r.nameless_of);
	free(r.values);
	return r.error;
}

/* Sums up self and total of every function; `seen`: a recursive function counts once for each
 * stack. */
static int count(struct render_model *m)
{
	uint32_t *seen = calloc(m->nfunctions + 1, sizeof(*seen));

	if (!seen)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nstacks; i++) {
		const struct render_stack *s = &m->stacks[i];

		for (uint32_t k = 0; k < s->n; k++) {
			uint32_t at = m->frames[s->first + k].function;
			struct render_function *f = &m->functions[at];

			if (!k) {
				add_overflow(&f->self, s->value);
				add_overflow(&f->base_self, s->base);
			}
			if (seen[at] == i + 1)
				continue;
			seen[at] = i + 1;
			add_overflow(&f->total, s->value);
			add_overflow(&f->base_total, s->base);
		}
	}
	free(seen);
	return 0;
}

int render_model_make(struct render_model *m, const struct fusee_profile *p,
		      const struct fusee_profile *base, const struct render_options *o,
		      struct buf *error)
{
	uint32_t type = 0, base_type = 0;
	int ret;

	*m = (struct render_model){.profile = p, .base = base};
	ret = choose_type(m, o, &type, &base_type, error);
	if (!ret)
		ret = dict_init(&m->names);
	if (!ret)
		ret = read_profile((struct reader){.m = m, .p = p, .type = type}, o, error);
	if (!ret && base)
		ret = read_profile(
			(struct reader){.m = m, .p = base, .is_base = true, .type = base_type}, o,
			error);
	m->functions = (struct render_function *)(void *)m->function_buf.p;
	m->frames = (struct render_frame *)(void *)m->frame_buf.p;
	m->stacks = (struct render_stack *)(void *)m->stack_buf.p;
	if (!ret)
		ret = count(m);
	if (ret)
		render_model_free(m);
	return ret;
}

void render_model_free(struct render_model *m)
{
	for (uint32_t i = 0; i < m->nkept; i++)
		free(m->kept[i]);
	free(m->kept);
	buf_fini(&m->function_buf);
	buf_fini(&m->frame_buf);
	buf_fini(&m->stack_buf);
	dict_fini(&m->names);
	*m = (struct render_model){0};
}

int64_t render_percent_of(const struct render_model *m)
{
	int64_t all = m->total;

	if (m->base && m->base_total)
		return m->base_total;
	add_overflow(&all, m->base_total);
	return all;
}
