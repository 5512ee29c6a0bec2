/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions, and callers and callees. */
#include "ui/internal/views.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/saturate.h"
#include "profile/str.h"
#include "report/change.h"
#include "report/model.h"
#include "ui/internal/models.h"

/* ---- about ---- */

static struct fusee_str type_of(const struct fusee_profile *p, uint32_t i)
{
	return str_at(p, FUSEE_AT(struct fusee_value_type, p->types, i)->type);
}

/* The types of the profile, then those that only other windows have. */
static void put_types(struct json *j, const struct ui_view *v)
{
	const struct fusee_profile *p = v->p;
	const char *other = v->types;

	json_list(j, "types");
	for (uint32_t i = 0; i < p->types.n; i++)
		json_str(j, NULL, type_of(p, i));
	for (uint32_t i = 0; i < v->ntypes; i++, other += strlen(other) + 1)
		if (!render_find_type(p, fusee_text(other), NULL, &(uint32_t){0}))
			json_text(j, NULL, other);
	json_end(j);
	if (p->default_type < p->types.n)
		json_str(j, "type", type_of(p, p->default_type));
}

static void put_losses(struct json *j, const struct fusee_profile *p)
{
	json_list(j, "losses");
	for (uint32_t i = 0; i < p->losses.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->losses, i);

		json_list(j, NULL);
		json_str(j, NULL, l->str);
		json_str(j, NULL, l->key);
		json_int(j, NULL, l->num);
		json_end(j);
	}
	json_end(j);
}

int ui_about(const struct ui_view *v, struct buf *out)
{
	struct json j = {.out = out};

	json_open(&j, NULL);
	put_types(&j, v);
	json_uint(&j, "start", v->p->start_ns);
	json_uint(&j, "duration", v->p->duration_ns);
	put_losses(&j, v->p);
	json_flag(&j, "times", v->p->times.n);
	json_uint(&j, "windows", v->windows);
	json_uint(&j, "broken", v->broken);
	json_uint(&j, "other_types", v->others);
	json_end(&j);
	return out->error;
}

/* ---- functions ---- */

static void put_row(struct json *j, const struct render_model *m, const struct render_function *f,
		    const char *name)
{
	json_list(j, name);
	json_str(j, NULL, f->shown);
	json_str(j, NULL, f->file);
	json_uint(j, NULL, f->start_line);
	json_str(j, NULL, f->library);
	json_uint(j, NULL, f->code);
	json_int(j, NULL, f->self);
	json_int(j, NULL, f->total);
	if (m->base) {
		json_int(j, NULL, f->base_self);
		json_int(j, NULL, f->base_total);
		json_printf(j, NULL, "%.3f", render_z_self(m, f));
		json_printf(j, NULL, "%.3f", render_z_total(m, f));
		json_flag(j, NULL, render_is_noise(m, f));
	}
	json_end(j);
}

static bool is_row(const struct render_function *f)
{
	return f->code != RENDER_LABEL && (f->self || f->total || f->base_self || f->base_total);
}

static void put_head(struct json *j, const struct render_model *m)
{
	json_open(j, NULL);
	json_str(j, "type", m->type);
	json_str(j, "unit", m->unit);
	json_int(j, "total", m->total);
	if (m->base)
		json_int(j, "base", m->base_total);
}

int ui_table(const struct ui_view *v, struct buf *out)
{
	struct json j = {.out = out};
	struct ui_model own;
	int r = ui_model_open(&own, v, &v->o, out);
	const struct render_model *m = own.m;

	if (r)
		return r;
	put_head(&j, m);
	json_list(&j, "functions");
	for (uint32_t i = 0; i < m->nfunctions; i++)
		if (is_row(&m->functions[i]))
			put_row(&j, m, &m->functions[i], NULL);
	json_end(&j);
	json_end(&j);
	ui_model_close(&own);
	return out->error;
}

/* ---- callers and callees ---- */

/* A caller, or a callee, of the function. */
struct call {
	int64_t value, base;
	uint32_t stack;  /* index of the last stack with this call, + 1 */
	bool is_inlined; /* all its calls are inlined */
};

struct calls {
	const struct render_model *m;
	uint32_t function;
	struct call *callers, *callees; /* by function of the model */
};

/* Adds the stack's value, once for each stack. */
static void add_call(struct call *c, const struct render_stack *s, uint32_t stack, uint32_t flags)
{
	if (!c->stack)
		c->is_inlined = true;
	c->is_inlined &= flags & RENDER_INLINED;
	if (c->stack == stack + 1)
		return;
	c->stack = stack + 1;
	saturate_add(&c->value, s->value);
	saturate_add(&c->base, s->base);
}

/* Adds a stack's calls to and from the function. Frames that are no row of the table are passed
 * over, as in report/graph.c. Recursive calls do not count. */
static void add_stack(struct calls *c, uint32_t i)
{
	const struct render_stack *s = &c->m->stacks[i];
	uint32_t caller = UINT32_MAX;

	for (uint32_t k = s->n; k-- > 0;) {
		const struct render_frame *f = render_frame_at(c->m, s, k);

		if (!is_row(&c->m->functions[f->function]))
			continue;
		if (caller != UINT32_MAX && caller != f->function) {
			if (f->function == c->function)
				add_call(&c->callers[caller], s, i, f->flags);
			if (caller == c->function)
				add_call(&c->callees[f->function], s, i, f->flags);
		}
		caller = f->function;
	}
}

static void put_calls(struct json *j, const struct render_model *m, const struct call *calls,
		      const char *name)
{
	json_list(j, name);
	for (uint32_t i = 0; i < m->nfunctions; i++) {
		if (!calls[i].value && !calls[i].base)
			continue;
		json_list(j, NULL);
		json_str(j, NULL, m->functions[i].shown);
		json_flag(j, NULL, calls[i].is_inlined);
		json_int(j, NULL, calls[i].value);
		if (m->base)
			json_int(j, NULL, calls[i].base);
		json_end(j);
	}
	json_end(j);
}

static uint32_t find(const struct render_model *m, const char *name)
{
	for (uint32_t i = 0; name && i < m->nfunctions; i++)
		if (is_row(&m->functions[i]) && fusee_text_is(m->functions[i].shown, name))
			return i;
	return UINT32_MAX;
}

static void put_callers(struct json *j, struct calls *c)
{
	const struct render_model *m = c->m;

	for (uint32_t i = 0; c->function != UINT32_MAX && i < m->nstacks; i++)
		add_stack(c, i);
	put_head(j, m);
	if (c->function == UINT32_MAX)
		json_text(j, "function", NULL);
	else
		put_row(j, m, &m->functions[c->function], "function");
	put_calls(j, m, c->callers, "callers");
	put_calls(j, m, c->callees, "callees");
	json_end(j);
}

int ui_callers(const struct ui_view *v, struct buf *out)
{
	struct json j = {.out = out};
	struct ui_model own;
	struct calls c = {0};
	int r = ui_model_open(&own, v, &v->o, out);

	if (r)
		return r;
	c.m = own.m;
	c.function = find(c.m, v->o.function);
	c.callers = calloc(c.m->nfunctions + (size_t)1, sizeof(*c.callers));
	c.callees = calloc(c.m->nfunctions + (size_t)1, sizeof(*c.callees));
	if (c.callers && c.callees)
		put_callers(&j, &c);
	else
		r = -ENOMEM;
	free(c.callers);
	free(c.callees);
	ui_model_close(&own);
	return r ? r : out->error;
}
