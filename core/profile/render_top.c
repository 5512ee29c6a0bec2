/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions, in the columns and with the numbers of `go tool pprof -top`. */
#include "profile/render.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/render_graph.h"

enum { INLINED = 1, CALLED = 2 };

/* Whether the calls of a function by all shown callers are inlined: always, sometimes, never. */
static uint8_t *how_called(const struct render_graph *g)
{
	uint8_t *how = calloc(g->model->nfunctions + 1, 1);

	for (uint32_t i = 0; how && i < g->nedges; i++)
		how[g->edges[i].dst] |= g->edges[i].inlined ? INLINED : CALLED;
	return how;
}

static void put_row(const struct render_graph *g, const struct render_node *n, int64_t sum,
		    uint8_t how, uint32_t width, struct buf *out)
{
	char flat[RENDER_NUMBER], cum[RENDER_NUMBER], percent[3][RENDER_NUMBER];

	render_graph_value(g, flat, n->flat);
	render_graph_value(g, cum, n->cum);
	render_percent(percent[0], n->flat, g->total);
	render_percent(percent[1], sum, g->total);
	render_percent(percent[2], n->cum, g->total);
	buf_printf(out, "%10s %s %s %10s %s  ", flat, percent[0], percent[1], cum, percent[2]);
	render_name(out, g->model->functions[n->function].name,
		    width > 60 ? width - 44
		    : width    ? 16
			       : 0);
	buf_str(out, how == INLINED              ? " (inline)\n"
		     : how == (INLINED | CALLED) ? " (partial-inline)\n"
						 : "\n");
}

int render_top(const struct fusee_profile *p, const struct fusee_profile *base,
	       const struct render_options *o, struct buf *out)
{
	struct render_graph g = {0};
	struct render_model m;
	uint8_t *how = NULL;
	int64_t sum = 0;
	int ret = render_model_make(&m, p, base, o, out);

	if (ret)
		return ret;
	ret = render_graph_make(&g, &m, o, true);
	if (!ret) {
		how = how_called(&g);
		ret = how ? 0 : -ENOMEM;
	}
	if (ret)
		goto out;
	render_graph_header(&g, o, out);
	buf_printf(out, "%10s %5s%% %5s%% %10s %5s%%\n", "flat", "flat", "sum", "cum", "cum");
	for (uint32_t i = 0; i < g.nnodes; i++) {
		if (__builtin_add_overflow(sum, g.nodes[i].flat, &sum))
			sum = g.nodes[i].flat < 0 ? INT64_MIN : INT64_MAX;
		put_row(&g, &g.nodes[i], sum, how[g.nodes[i].function], o->width, out);
	}
	ret = out->error;
out:
	free(how);
	render_graph_free(&g);
	render_model_free(&m);
	return ret;
}
