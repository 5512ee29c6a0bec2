/* SPDX-License-Identifier: Apache-2.0 */
/* A function with its callers above and its callees below, as `go tool pprof -peek` prints it. */
#include "report/report.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>

#include "base/saturate.h"
#include "report/change.h"
#include "report/graph.h"

#define SEPARATOR "----------------------------------------------------------+-------------\n"

static int compare(const void *a, const void *b, void *model)
{
	const struct render_edge *x = *(struct render_edge *const *)a,
				 *y = *(struct render_edge *const *)b;
	int64_t v = saturate_abs(x->weight), w = saturate_abs(y->weight);
	int order;

	if (v != w)
		return v > w ? -1 : 1;
	order = render_compare_names(model, x->src, y->src);
	return order ? order : render_compare_names(model, x->dst, y->dst);
}

/* The calls of, or by, one function, the heaviest first. */
static void put_edges(const struct render_graph *g, const struct render_node *n, bool callers,
		      const struct render_edge **list, struct buf *out)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < g->nedges; i++)
		if ((callers ? g->edges[i].dst : g->edges[i].src) == n->function)
			list[count++] = &g->edges[i];
	qsort_r(list, count, sizeof(*list), compare, (void *)(uintptr_t)g->model);
	for (uint32_t i = 0; i < count; i++) {
		char value[RENDER_NUMBER], percent[RENDER_NUMBER];
		struct fusee_str name =
			g->model->functions[callers ? list[i]->src : list[i]->dst].shown;

		render_graph_value(g, value, list[i]->weight);
		render_percent(percent, list[i]->weight, n->cum);
		buf_printf(out, "%50s %s |   ", value, percent);
		render_name(out, name, 0);
		buf_str(out, list[i]->inlined ? " (inline)\n" : "\n");
	}
}

static void put_node(const struct render_graph *g, const struct render_node *n, int64_t sum,
		     const struct render_edge **list, struct buf *out)
{
	const struct render_function *f = &g->model->functions[n->function];

	buf_str(out, SEPARATOR);
	put_edges(g, n, true, list, out);
	render_graph_values(g, n, sum, out);
	buf_str(out, "              | ");
	render_name(out, f->shown, 0);
	if (g->model->base)
		buf_printf(out, "  z %+.1f, %+.1f%s%s", render_z_self(g->model, f),
			   render_z_total(g->model, f),
			   render_is_noise(g->model, f) ? ": noise" : "",
			   render_presence(g->model, f));
	buf_str(out, "\n");
	put_edges(g, n, false, list, out);
}

static int put_nodes(const struct render_graph *g, const regex_t *re, struct buf *out)
{
	const struct render_edge **list = calloc(g->nedges + 1, sizeof(*list));
	int64_t sum = 0;
	uint32_t matched = 0;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->nnodes; i++) {
		const struct render_function *f = &g->model->functions[g->nodes[i].function];

		if (!render_matches(re, f->name) && !render_matches(re, f->shown))
			continue;
		matched++;
		saturate_add(&sum, g->nodes[i].flat);
		put_node(g, &g->nodes[i], sum, list, out);
	}
	if (matched)
		buf_str(out, SEPARATOR);
	free(list);
	return matched ? 0 : -EINVAL;
}

static int peek(const struct render_model *m, const regex_t *re, const char *regex,
		const struct render_options *o, struct buf *out)
{
	struct render_graph g;
	size_t start = out->len;
	int ret = render_graph_make(&g, m, o, false);

	if (ret)
		return ret;
	render_graph_header(&g, o, out);
	buf_str(out, SEPARATOR "      flat  flat%   sum%        cum   cum%   calls calls% + "
			       "context 	 	 \n");
	ret = put_nodes(&g, re, out);
	if (ret == -EINVAL) {
		out->len = start;
		buf_printf(out, "no function matches '%s'", regex);
	}
	render_graph_free(&g);
	return ret ? ret : out->error;
}

int render_peek(const struct fusee_profile *p, const struct fusee_profile *base, const char *regex,
		const struct render_options *o, struct buf *out)
{
	struct render_model m;
	regex_t re;
	int ret = render_compile(&re, "", regex, out);

	if (ret)
		return ret;
	ret = render_model_make(&m, p, base, o, out);
	if (!ret) {
		ret = peek(&m, &re, regex, o, out);
		render_model_free(&m);
	}
	regfree(&re);
	return ret;
}
