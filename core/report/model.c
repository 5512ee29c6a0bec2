/* SPDX-License-Identifier: Apache-2.0 */
#include "report/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "profile/str.h"
#include "report/change.h"
#include "report/internal/samples.h"

/* ---- the value type ---- */

static struct fusee_value_type type_at(const struct fusee_profile *p, uint32_t i)
{
	return *FUSEE_AT(struct fusee_value_type, p->types, i);
}

bool render_find_type(const struct fusee_profile *p, struct fusee_str name,
		      const struct fusee_str *unit, uint32_t *type)
{
	for (uint32_t i = 0; i < p->types.n; i++) {
		if (str_equal(str_at(p, type_at(p, i).type), name) &&
		    (!unit || str_equal(str_at(p, type_at(p, i).unit), *unit))) {
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

	*type = p->default_type;
	if (!p->types.n) {
		buf_str(error, "the profile has no values");
		return -EINVAL;
	}
	if (*type >= p->types.n)
		*type = p->types.n - 1;
	if (o->type && !render_find_type(p, fusee_text(o->type), NULL, type)) {
		buf_printf(error, "no values of type '%s' (there are:", o->type);
		for (uint32_t i = 0; i < p->types.n; i++) {
			buf_str(error, " ");
			render_plain(error, str_at(p, type_at(p, i).type));
		}
		buf_str(error, ")");
		return -EINVAL;
	}
	m->type = str_at(p, type_at(p, *type).type);
	m->unit = str_at(p, type_at(p, *type).unit);
	if (!m->base)
		return 0;
	if (render_find_type(m->base, m->type, &m->unit, base_type))
		return 0;
	buf_str(error, "the base has no values of type '");
	render_plain(error, m->type);
	buf_str(error, "' in ");
	render_plain(error, m->unit);
	return -EINVAL;
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
			uint32_t at = render_frame_at(m, s, k)->function;
			struct render_function *f = &m->functions[at];

			if (!k) {
				saturate_add(&f->self, s->value);
				saturate_add(&f->base_self, s->base);
				*(s->base ? &f->noise.base_self : &f->noise.self) += s->noise;
			}
			if (seen[at] == i + 1)
				continue;
			seen[at] = i + 1;
			saturate_add(&f->total, s->value);
			saturate_add(&f->base_total, s->base);
			*(s->base ? &f->noise.base_total : &f->noise.total) += s->noise;
		}
	}
	free(seen);
	return 0;
}

/* Drops the stacks that do not have the function of this shown name, and the sums of all functions.
 * 0 or -ENOMEM. */
static int keep_function(struct render_model *m, const char *name)
{
	bool *is = calloc(m->nfunctions + 1, sizeof(*is));
	uint32_t n = 0;

	if (!is)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nfunctions; i++) {
		struct render_function *f = &m->functions[i];

		is[i] = f->code != RENDER_LABEL && fusee_text_is(f->shown, name);
		f->self = f->total = f->base_self = f->base_total = 0;
		f->noise = (struct render_noise){0};
	}
	for (uint32_t i = 0; i < m->nstacks; i++) {
		const struct render_stack *s = &m->stacks[i];
		bool has = false;

		for (uint32_t k = 0; k < s->n && !has; k++)
			has = is[render_frame_at(m, s, k)->function];
		if (has)
			m->stacks[n++] = *s;
	}
	m->nstacks = n;
	free(is);
	return 0;
}

/* Module 0 and group 0, which are in no dict. */
static int tables_init(struct render_model *m)
{
	struct render_tables *t = calloc(1, sizeof(*t));
	struct render_module *module;
	struct render_group *group;

	m->tables = t;
	if (!t || dict_init(&t->functions) || dict_init(&t->modules) || dict_init(&t->groups) ||
	    dict_init(&t->texts))
		return -ENOMEM;
	module = buf_grow(&t->module_buf, sizeof(*module));
	group = buf_grow(&t->group_buf, sizeof(*group));
	if (!module || !group)
		return -ENOMEM;
	*module = (struct render_module){0};
	*group = (struct render_group){0};
	m->nmodules = m->ngroups = 1;
	return 0;
}

static void tables_free(struct render_tables *t)
{
	if (!t)
		return;
	dict_fini(&t->functions);
	dict_fini(&t->modules);
	dict_fini(&t->groups);
	dict_fini(&t->texts);
	buf_fini(&t->function_buf);
	buf_fini(&t->module_buf);
	buf_fini(&t->group_buf);
	buf_fini(&t->frame_buf);
	arena_fini(&t->arena);
	buf_fini(&t->stack_buf);
	buf_fini(&t->scratch);
	free(t);
}

static int read_both(struct render_model *m, const struct render_options *o, uint32_t type,
		     uint32_t base_type, struct buf *error)
{
	struct render_labels labels;
	int ret = render_labels_make(&labels, m->profile, m->base, o, error);

	if (ret)
		return ret;
	ret = render_read(m, false, type, &labels, o, error);
	if (!ret && m->base)
		ret = render_read(m, true, base_type, &labels, o, error);
	render_labels_free(&labels);
	return ret;
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
		ret = tables_init(m);
	if (!ret)
		ret = read_both(m, o, type, base_type, error);
	if (!ret) {
		m->functions = (struct render_function *)(void *)m->tables->function_buf.p;
		m->frames = (struct render_frame *)(void *)m->tables->frame_buf.p;
		m->stacks = (struct render_stack *)(void *)m->tables->stack_buf.p;
		m->modules = (struct render_module *)(void *)m->tables->module_buf.p;
		m->groups = (struct render_group *)(void *)m->tables->group_buf.p;
		ret = count(m);
	}
	if (!ret)
		ret = render_show_names(m);
	if (!ret && o->function)
		ret = render_show_as(m, o->function);
	if (!ret && o->function)
		ret = keep_function(m, o->function);
	if (!ret && o->function)
		ret = count(m);
	if (ret)
		render_model_free(m);
	else if (base)
		m->z_limit = render_z_limit(m);
	return ret;
}

void render_model_free(struct render_model *m)
{
	tables_free(m->tables);
	*m = (struct render_model){0};
}

int64_t render_percent_of(const struct render_model *m)
{
	int64_t all = m->total;

	if (m->base && m->base_total)
		return m->base_total;
	saturate_add(&all, m->base_total);
	return all;
}
