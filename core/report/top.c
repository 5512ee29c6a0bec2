/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions, in the columns and with the numbers of `go tool pprof -top`. */
#include "report/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/saturate.h"
#include "report/change.h"
#include "report/graph.h"

#define NUMBERS_WIDTH 44u
#define Z_WIDTH 17u
#define NAME_MIN 16u
#define DIM "\033[2m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

enum { INLINED = 1, CALLED = 2 };

/* Whether the calls of a function by all shown callers are inlined: always, sometimes, never. */
static uint8_t *how_called(const struct render_graph *g)
{
	uint8_t *how = calloc(g->model->nfunctions + 1, 1);

	for (uint32_t i = 0; how && i < g->nedges; i++)
		how[g->edges[i].dst] |= g->edges[i].inlined ? INLINED : CALLED;
	return how;
}

/* "~" marks what is within its noise. */
static void put_z(const struct render_model *m, double z, struct buf *out)
{
	char text[RENDER_NUMBER];

	snprintf(text, sizeof(text), "%s%+.1f", fabs(z) < m->z_limit ? "~" : "", z);
	buf_printf(out, "%7s ", text);
}

static uint32_t name_width(const struct render_options *o, bool diff)
{
	uint32_t numbers = diff ? NUMBERS_WIDTH + Z_WIDTH : NUMBERS_WIDTH;

	return !o->width ? 0 : o->width > numbers + NAME_MIN ? o->width - numbers : NAME_MIN;
}

/* The name; of a language's function with file and line, if they fit. */
static void put_name(const struct render_model *m, const struct render_function *f, uint32_t width,
		     struct buf *out)
{
	bool has_place = f->code == RENDER_LANGUAGE && f->start_line;
	struct fusee_str name = has_place ? render_name_beside_place(m, f) : f->shown, place;
	char text[RENDER_PLACE];

	render_name(out, name, width);
	if (!has_place)
		return;
	place = render_place(f, text);
	if (!width || render_columns(name) + 2 + render_columns(place) <= width) {
		buf_str(out, "  ");
		render_plain(out, place);
	}
}

static void put_row(const struct render_graph *g, const struct render_node *n, int64_t sum,
		    uint8_t how, const struct render_options *o, struct buf *out)
{
	const struct render_function *f = &g->model->functions[n->function];
	bool dim = o->color && render_is_noise(g->model, f);

	buf_str(out, dim ? DIM : "");
	render_graph_values(g, n, sum, out);
	if (g->model->base) {
		put_z(g->model, render_z_self(g->model, f), out);
		put_z(g->model, render_z_total(g->model, f), out);
		buf_str(out, " ");
	}
	put_name(g->model, f, name_width(o, g->model->base), out);
	buf_str(out, how == INLINED              ? " (inline)"
		     : how == (INLINED | CALLED) ? " (partial-inline)"
						 : "");
	buf_str(out, render_presence(g->model, f));
	buf_str(out, dim ? PLAIN "\n" : "\n");
}

/* The rows of one group. */
static void put_rows(const struct render_graph *g, uint32_t group, const uint8_t *how,
		     const struct render_options *o, struct buf *out)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < g->nnodes; i++) {
		if (g->model->functions[g->nodes[i].function].group != group)
			continue;
		saturate_add(&sum, g->nodes[i].flat);
		put_row(g, &g->nodes[i], sum, how[g->nodes[i].function], o, out);
	}
}

/* ---- groups ---- */

static int by_total(const void *a, const void *b, void *model)
{
	const struct render_model *m = model;
	const struct render_group *x = &m->groups[*(const uint32_t *)a],
				  *y = &m->groups[*(const uint32_t *)b];

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return (x->base < y->base) - (x->base > y->base);
}

static void put_group(const struct render_graph *g, const struct render_group *group,
		      const struct render_options *o, struct buf *out)
{
	char value[RENDER_NUMBER], percent[RENDER_NUMBER];
	int64_t v = group->total - (g->model->base ? group->base : 0);

	render_graph_value(g, value, v);
	render_percent(percent, v, g->total);
	buf_printf(out, "%s%10s %s  ", o->color ? BOLD : "", value, percent);
	render_plain(out, group->text);
	buf_str(out, o->color ? PLAIN "\n" : "\n");
}

/* A heading and rows for each group that has rows, the largest first. */
static int put_groups(const struct render_graph *g, const uint8_t *how,
		      const struct render_options *o, struct buf *out)
{
	const struct render_model *m = g->model;
	uint32_t *order = malloc(m->ngroups * sizeof(*order));
	bool *has_rows = calloc(m->ngroups, sizeof(*has_rows));
	int r = order && has_rows ? 0 : -ENOMEM;

	for (uint32_t i = 0; !r && i < g->nnodes; i++)
		has_rows[m->functions[g->nodes[i].function].group] = true;
	for (uint32_t i = 0; !r && i < m->ngroups; i++)
		order[i] = i;
	if (!r)
		qsort_r(order, m->ngroups, sizeof(*order), by_total, (void *)(uintptr_t)m);
	for (uint32_t i = 0; !r && i < m->ngroups; i++) {
		if (!has_rows[order[i]])
			continue;
		put_group(g, &m->groups[order[i]], o, out);
		put_rows(g, order[i], how, o, out);
	}
	free(order);
	free(has_rows);
	return r;
}

int render_top(const struct fusee_profile *p, const struct fusee_profile *base,
	       const struct render_options *options, struct buf *out)
{
	struct render_options o = *options;
	struct render_graph g = {0};
	struct render_model m;
	uint8_t *how = NULL;
	int ret;

	o.grouping = RENDER_BY_ROW;
	ret = render_model_make(&m, p, base, &o, out);
	if (ret)
		return ret;
	ret = render_graph_make(&g, &m, &o, true);
	if (!ret) {
		how = how_called(&g);
		ret = how ? 0 : -ENOMEM;
	}
	if (ret)
		goto out;
	render_graph_header(&g, &o, out);
	buf_printf(out, "%10s %5s%% %5s%% %10s %5s%%%s\n", "flat", "flat", "sum", "cum", "cum",
		   base ? "   z flat   z cum" : "");
	if (o.by)
		ret = put_groups(&g, how, &o, out);
	else
		put_rows(&g, 0, how, &o, out);
	if (!ret)
		ret = out->error;
out:
	free(how);
	render_graph_free(&g);
	render_model_free(&m);
	return ret;
}
