/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions, and callers and callees. */
#include "ui/internal/views.h"

#include <string.h>

#include "base/json.h"
#include "profile/str.h"
#include "report/change.h"
#include "report/graph.h"

/* ---- about ---- */

static void put_types(struct json *j, const struct fusee_profile *p)
{
	json_list(j, "types");
	for (uint32_t i = 0; i < p->types.n; i++) {
		const struct fusee_value_type *t = FUSEE_AT(struct fusee_value_type, p->types, i);

		json_list(j, NULL);
		json_str(j, NULL, str_at(p, t->type));
		json_str(j, NULL, str_at(p, t->unit));
		json_end(j);
	}
	json_end(j);
	if (p->default_type < p->types.n)
		json_str(
			j, "type",
			str_at(p,
			       FUSEE_AT(struct fusee_value_type, p->types, p->default_type)->type));
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
	put_types(&j, v->p);
	json_uint(&j, "start", v->p->start_ns);
	json_uint(&j, "duration", v->p->duration_ns);
	put_losses(&j, v->p);
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
	struct render_model m;
	int r = render_model_make(&m, v->p, v->base, &v->o, out);

	if (r)
		return r;
	put_head(&j, &m);
	json_list(&j, "functions");
	for (uint32_t i = 0; i < m.nfunctions; i++)
		if (is_row(&m.functions[i]))
			put_row(&j, &m, &m.functions[i], NULL);
	json_end(&j);
	json_end(&j);
	render_model_free(&m);
	return out->error;
}

/* ---- callers and callees ---- */

static void put_calls(struct json *j, const struct render_graph *g, uint32_t function, bool callers)
{
	json_list(j, callers ? "callers" : "callees");
	for (uint32_t i = 0; i < g->nedges; i++) {
		const struct render_edge *e = &g->edges[i];

		if ((callers ? e->dst : e->src) != function)
			continue;
		json_list(j, NULL);
		json_str(j, NULL, g->model->functions[callers ? e->src : e->dst].shown);
		json_int(j, NULL, e->weight);
		json_flag(j, NULL, e->inlined);
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

int ui_callers(const struct ui_view *v, struct buf *out)
{
	struct json j = {.out = out};
	struct render_graph g = {0};
	struct render_model m;
	uint32_t at;
	int r = render_model_make(&m, v->p, v->base, &v->o, out);

	if (r)
		return r;
	at = find(&m, v->o.function);
	r = render_graph_make(&g, &m, &v->o, false);
	if (!r) {
		put_head(&j, &m);
		if (at == UINT32_MAX)
			json_text(&j, "function", NULL);
		else
			put_row(&j, &m, &m.functions[at], "function");
		put_calls(&j, &g, at, true);
		put_calls(&j, &g, at, false);
		json_end(&j);
		render_graph_free(&g);
	}
	render_model_free(&m);
	return r ? r : out->error;
}
