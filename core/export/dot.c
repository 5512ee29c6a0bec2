/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of calls in Graphviz's language: the nodes and edges of `go tool pprof -dot`. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "report/change.h"
#include "report/graph.h"

#define NODES 80u /* more cannot be read; pprof's limit too */
#define FONT_SMALLEST 8.0
#define FONT_RANGE                                                                     \
	42.0 /* in points; a function that has all the time itself is this much larger \
	      */
#define PEN_RANGE 5.0

/* Fill colours by enum render_code. */
static const char *const fills[] = {
	[RENDER_PROGRAM] = "#f6d9c3", [RENDER_LIBRARY] = "#dbe4f3",  [RENDER_KERNEL] = "#e3dbea",
	[RENDER_RUNTIME] = "#dcecd8", [RENDER_LANGUAGE] = "#f3ecb8", [RENDER_REASON] = "#e0e0dc",
	[RENDER_LABEL] = "#f4f4f2"};

/* In a comparison: what is more, what is less, and what is within its noise. */
#define FILL_MORE "#f3b9a5"
#define FILL_LESS "#b5cff0"
#define FILL_NOISE "#f4f4f2"

static double share(int64_t value, int64_t total)
{
	double s = total ? fabs((double)value / (double)total) : 0;

	return s > 1 ? 1 : s;
}

/* A text inside the quotes of a label. */
static void put_label(struct buf *out, struct fusee_str s)
{
	struct buf plain = {0};

	render_plain(&plain, s);
	for (size_t i = 0; i < plain.len; i++) {
		if (plain.p[i] == '"' || plain.p[i] == '\\')
			buf_str(out, "\\");
		buf_add(out, &plain.p[i], 1);
	}
	if (plain.error)
		out->error = plain.error;
	buf_fini(&plain);
}

/* "0.21s (3.1%)" */
static void put_value(const struct render_graph *g, int64_t value, struct buf *out)
{
	char number[RENDER_NUMBER], percent[RENDER_NUMBER];

	render_graph_value(g, number, value);
	render_percent(percent, value, g->total);
	buf_printf(out, "%s (%s)", number, percent + strspn(percent, " "));
}

static const char *fill_of(const struct render_graph *g, const struct render_node *n)
{
	const struct render_function *f = &g->model->functions[n->function];
	double own = render_z_self(g->model, f), all = render_z_total(g->model, f);

	if (!g->model->base)
		return fills[f->code];
	if (render_is_noise(g->model, f))
		return FILL_NOISE;
	return (fabs(own) >= g->model->z_limit ? own : all) > 0 ? FILL_MORE : FILL_LESS;
}

static void put_node(const struct render_graph *g, uint32_t i, struct buf *out)
{
	const struct render_node *n = &g->nodes[i];
	const struct render_function *f = &g->model->functions[n->function];
	char text[RENDER_PLACE];
	struct fusee_str place = str_base_name(f->library);

	buf_printf(out, "N%u [label=\"", n->function);
	put_label(out,
		  f->code == RENDER_LANGUAGE ? render_name_beside_place(g->model, f) : f->shown);
	if (f->code == RENDER_LANGUAGE)
		place = render_place(f, text);
	if (place.len && f->code != RENDER_REASON) {
		buf_str(out, "\\n");
		put_label(out, place);
	}
	buf_str(out, "\\n");
	if (n->flat)
		put_value(g, n->flat, out);
	if (n->cum != n->flat) {
		buf_str(out, n->flat ? "\\nof " : "0 of ");
		put_value(g, n->cum, out);
	}
	if (g->model->base)
		buf_printf(out, "\\nz %+.1f, %+.1f%s", render_z_self(g->model, f),
			   render_z_total(g->model, f), render_presence(g->model, f));
	buf_printf(out, "\" fontsize=%.0f fillcolor=\"%s\"%s]\n",
		   FONT_SMALLEST + FONT_RANGE * sqrt(share(n->flat, g->total)), fill_of(g, n),
		   render_is_noise(g->model, f) ? " fontcolor=\"#8c8f94\"" : "");
}

static void put_edge(const struct render_graph *g, const struct render_edge *e, struct buf *out)
{
	char number[RENDER_NUMBER];
	double s = share(e->weight, g->total);

	render_graph_value(g, number, e->weight);
	buf_printf(out, "N%u -> N%u [label=\" %s%s\" weight=%d penwidth=%.1f%s]\n", e->src, e->dst,
		   number, e->inlined ? "\\n(inline)" : "", 1 + (int)(s * 100), 1 + PEN_RANGE * s,
		   e->inlined ? " style=dashed" : "");
}

/* The lines above the table of --top, as a box without an edge. */
static void put_legend(const struct render_graph *g, const struct render_options *o,
		       struct buf *out)
{
	struct buf text = {0};
	size_t start = 0;

	render_graph_header(g, o, &text);
	buf_str(out, "legend [shape=box style=filled fillcolor=\"#f4f4f2\" fontsize=14 label=\"");
	for (size_t i = 0; i < text.len; i++) {
		if (text.p[i] != '\n')
			continue;
		put_label(out, (struct fusee_str){text.p + start, i - start});
		buf_str(out, "\\l");
		start = i + 1;
	}
	buf_str(out, "\"]\n");
	if (text.error)
		out->error = text.error;
	buf_fini(&text);
}

int render_dot(const struct fusee_profile *p, const struct fusee_profile *base,
	       const struct render_options *options, struct buf *out)
{
	struct render_options o = *options;
	struct render_model m;
	struct render_graph g;
	int r = render_model_make(&m, p, base, &o, out);

	if (r)
		return r;
	o.cumulative = true; /* of two functions the caller is shown rather than the callee */
	if (!o.rows)
		o.rows = NODES;
	r = render_graph_make(&g, &m, &o, true);
	if (!r) {
		buf_str(out,
			"digraph calls {\n"
			"node [shape=box style=filled fontname=\"sans-serif\" color=\"#5c6067\"]\n"
			"edge [fontname=\"sans-serif\" fontsize=10 color=\"#5c6067\"]\n");
		put_legend(&g, &o, out);
		for (uint32_t i = 0; i < g.nnodes; i++)
			put_node(&g, i, out);
		for (uint32_t i = 0; i < g.nedges; i++)
			put_edge(&g, &g.edges[i], out);
		buf_str(out, "}\n");
		r = out->error;
		render_graph_free(&g);
	}
	render_model_free(&m);
	return r;
}
