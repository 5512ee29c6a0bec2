/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of calls between the heaviest functions. */
#include <stdlib.h>

#include "base/json.h"
#include "base/saturate.h"
#include "report/change.h"
#include "report/graph.h"
#include "ui/internal/models.h"
#include "ui/internal/views.h"

#define MAX_NODES 60u  /* functions; a picture of more is not readable */
#define MAX_EDGES 240u /* calls; the heaviest are shown */

static void put_node(struct json *j, const struct render_graph *g, const struct render_node *n)
{
	const struct render_function *f = &g->model->functions[n->function];

	json_list(j, NULL);
	json_str(j, NULL, f->shown);
	json_str(j, NULL, f->library);
	json_uint(j, NULL, f->code);
	json_int(j, NULL, n->flat);
	json_int(j, NULL, n->cum);
	json_flag(j, NULL, g->model->base && render_is_noise(g->model, f));
	json_end(j);
}

static uint32_t place_of(const struct render_graph *g, uint32_t function)
{
	uint32_t i = 0;

	while (i < g->nnodes && g->nodes[i].function != function)
		i++;
	return i;
}

static void put_edge(struct json *j, const struct render_graph *g, const struct render_edge *e)
{
	json_list(j, NULL);
	json_uint(j, NULL, place_of(g, e->src));
	json_uint(j, NULL, place_of(g, e->dst));
	json_int(j, NULL, e->weight);
	json_flag(j, NULL, e->inlined);
	json_end(j);
}

static int by_weight(const void *a, const void *b)
{
	const struct render_edge *x = a, *y = b;
	int64_t v = saturate_abs(x->weight), w = saturate_abs(y->weight);

	if (v != w)
		return v > w ? -1 : 1;
	return x->src != y->src ? (x->src < y->src ? -1 : 1)
				: (x->dst > y->dst) - (x->dst < y->dst);
}

static void put_graph(struct json *j, const struct render_graph *g)
{
	json_open(j, NULL);
	json_str(j, "unit", g->model->unit);
	json_int(j, "total", g->total);
	json_flag(j, "compared", g->model->base);
	json_uint(j, "all", g->all);
	json_uint(j, "dropped", g->dropped);
	json_list(j, "nodes");
	for (uint32_t i = 0; i < g->nnodes; i++)
		put_node(j, g, &g->nodes[i]);
	json_end(j);
	json_list(j, "edges");
	for (uint32_t i = 0; i < g->nedges && i < MAX_EDGES; i++)
		put_edge(j, g, &g->edges[i]);
	json_end(j);
	json_end(j);
}

int ui_graph(const struct ui_view *v, struct buf *out)
{
	struct render_options o = v->o;
	struct json j = {.out = out};
	struct render_graph g;
	struct ui_model m;
	int r = ui_model_open(&m, v, &v->o, out);

	if (r)
		return r;
	o.rows = MAX_NODES;
	o.balanced = true;
	r = render_graph_make(&g, m.m, &o, true);
	if (!r) {
		if (g.nedges)
			qsort(g.edges, g.nedges, sizeof(*g.edges), by_weight);
		put_graph(&j, &g);
		render_graph_free(&g);
	}
	ui_model_close(&m);
	return r ? r : out->error;
}
