/* SPDX-License-Identifier: Apache-2.0 */
#include "report/graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/saturate.h"
#include "loss/comment.h"
#include "profile/str.h"

#define NODE_FRACTION 0.005
#define EDGE_FRACTION 0.001
#define CUM_PART 8

static int64_t less(int64_t a, int64_t b)
{
	int64_t v;

	return __builtin_sub_overflow(a, b, &v) ? (b < 0 ? INT64_MAX : INT64_MIN) : v;
}

/* ---- nodes ---- */

int render_compare_names(const struct render_model *m, uint32_t a, uint32_t b)
{
	return str_order(m->functions[a].shown, m->functions[b].shown);
}

static int compare_nodes(const void *a, const void *b, void *arg, bool cumulative)
{
	const struct render_node *x = a, *y = b;
	int64_t x1 = saturate_abs(cumulative ? x->cum : x->flat),
		x2 = saturate_abs(cumulative ? x->flat : x->cum);
	int64_t y1 = saturate_abs(cumulative ? y->cum : y->flat),
		y2 = saturate_abs(cumulative ? y->flat : y->cum);
	int names;

	if (x1 != y1)
		return x1 > y1 ? -1 : 1;
	names = render_compare_names(arg, x->function, y->function);
	if (names)
		return names;
	if (x2 != y2)
		return x2 > y2 ? -1 : 1;
	return (x->function > y->function) - (x->function < y->function);
}

static int by_flat(const void *a, const void *b, void *model)
{
	return compare_nodes(a, b, model, false);
}

static int by_cum(const void *a, const void *b, void *model)
{
	return compare_nodes(a, b, model, true);
}

/* For a picture: functions with much of their own, or that lead to much. */
static int by_both(const void *a, const void *b, void *model)
{
	const struct render_node *x = a, *y = b;
	int64_t v = saturate_abs(x->flat), w = saturate_abs(y->flat);

	saturate_add(&v, saturate_abs(x->cum) / CUM_PART);
	saturate_add(&w, saturate_abs(y->cum) / CUM_PART);
	return v != w ? (v > w ? -1 : 1) : compare_nodes(a, b, model, false);
}

static int64_t share_of(int64_t total, double fraction)
{
	return saturate_abs((int64_t)((double)total * fraction));
}

static int take_nodes(struct render_graph *g, const struct render_options *o, bool trim)
{
	const struct render_model *m = g->model;
	int64_t sum = 0, cutoff;
	uint32_t n = 0;

	g->nodes = calloc(m->nfunctions + 1, sizeof(*g->nodes));
	if (!g->nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nfunctions; i++) {
		const struct render_function *f = &m->functions[i];
		struct render_node node = {i, less(f->self, f->base_self),
					   less(f->total, f->base_total)};

		if (node.flat || node.cum)
			g->nodes[n++] = node;
		saturate_add(&sum, node.flat);
	}
	cutoff = trim ? share_of(sum, NODE_FRACTION) : 0;
	for (uint32_t i = 0; i < n; i++)
		if (saturate_abs(g->nodes[i].cum) >= cutoff)
			g->nodes[g->all++] = g->nodes[i];
	g->dropped = n - g->all;
	qsort_r(g->nodes, g->all, sizeof(*g->nodes),
		o->balanced     ? by_both
		: o->cumulative ? by_cum
				: by_flat,
		(void *)(uintptr_t)m);
	g->nnodes = o->rows && o->rows < g->all ? o->rows : g->all;
	for (uint32_t i = 0; i < g->nnodes; i++)
		saturate_add(&g->shown, g->nodes[i].flat);
	return 0;
}

/* ---- edges ---- */

/* Sums up edges. By function: whether it is shown; by edge: the last stack with it. */
struct edges {
	struct render_graph *g;
	struct dict pairs;
	struct buf edges, seen;
	bool *kept;
};

static int add_edge(struct edges *e, uint32_t src, uint32_t dst, const struct render_stack *s,
		    uint32_t stack, bool inlined)
{
	const uint32_t key[2] = {src, dst};
	uint32_t id = dict_add(&e->pairs, key, sizeof(key)), *seen;
	struct render_edge *edge;

	if (id == DICT_NONE)
		return -ENOMEM;
	if (id - 1 == e->edges.len / sizeof(*edge)) {
		edge = buf_grow(&e->edges, sizeof(*edge));
		seen = buf_grow(&e->seen, sizeof(*seen));
		if (!edge || !seen)
			return -ENOMEM;
		*edge = (struct render_edge){.src = src, .dst = dst, .inlined = true};
		*seen = UINT32_MAX;
	}
	edge = (struct render_edge *)(void *)e->edges.p + id - 1;
	seen = (uint32_t *)(void *)e->seen.p + id - 1;
	if (*seen == stack)
		return 0;
	*seen = stack;
	saturate_add(&edge->weight, less(s->value, s->base));
	edge->inlined &= inlined;
	return 0;
}

/* A call is between the nearest frames that are shown, and counts once for each stack; recursive
 * calls do not count. */
static int add_stack(struct edges *e, uint32_t i)
{
	const struct render_model *m = e->g->model;
	const struct render_stack *s = &m->stacks[i];
	uint32_t parent = UINT32_MAX;
	int ret = 0;

	for (uint32_t k = s->n; k-- > 0 && !ret;) {
		const struct render_frame *f = render_frame_at(m, s, k);

		if (!e->kept[f->function])
			continue;
		if (parent != UINT32_MAX && parent != f->function)
			ret = add_edge(e, parent, f->function, s, i, f->flags & RENDER_INLINED);
		parent = f->function;
	}
	return ret;
}

static int take_edges(struct render_graph *g, bool trim)
{
	struct edges e = {.g = g, .kept = calloc(g->model->nfunctions + 1, sizeof(*e.kept))};
	int64_t cutoff, sum = 0;
	int ret = dict_init(&e.pairs);

	if (!ret && !e.kept)
		ret = -ENOMEM;
	for (uint32_t i = 0; !ret && i < g->nnodes; i++)
		e.kept[g->nodes[i].function] = true;
	for (uint32_t i = 0; !ret && i < g->model->nstacks; i++)
		ret = add_stack(&e, i);
	for (uint32_t i = 0; i < g->model->nfunctions; i++)
		saturate_add(&sum,
			     less(g->model->functions[i].self, g->model->functions[i].base_self));
	cutoff = trim ? share_of(sum, EDGE_FRACTION) : 0;
	g->edges = (struct render_edge *)(void *)e.edges.p;
	for (uint32_t i = 0; !ret && i < e.edges.len / sizeof(*g->edges); i++)
		if (saturate_abs(g->edges[i].weight) >= cutoff)
			g->edges[g->nedges++] = g->edges[i];
	dict_fini(&e.pairs);
	buf_fini(&e.seen);
	free(e.kept);
	return ret;
}

static void choose_unit(struct render_graph *g)
{
	int64_t smallest = 0;

	for (uint32_t i = 0; i < g->nnodes; i++) {
		int64_t v = saturate_abs(g->nodes[i].flat ? g->nodes[i].flat : g->nodes[i].cum);

		if (v && (!smallest || v < smallest))
			smallest = v;
	}
	render_unit(g->unit, smallest, g->total, g->model->unit);
	if (!g->nnodes)
		snprintf(g->unit, sizeof(g->unit), "minimum");
}

int render_graph_make(struct render_graph *g, const struct render_model *m,
		      const struct render_options *o, bool trim)
{
	int ret;

	*g = (struct render_graph){.model = m, .total = render_percent_of(m)};
	ret = take_nodes(g, o, trim);
	if (!ret)
		ret = take_edges(g, trim);
	if (ret)
		render_graph_free(g);
	else
		choose_unit(g);
	return ret;
}

void render_graph_free(struct render_graph *g)
{
	free(g->nodes);
	free(g->edges);
	*g = (struct render_graph){0};
}

void render_graph_value(const struct render_graph *g, char out[RENDER_NUMBER], int64_t value)
{
	render_value(out, value, g->model->unit, g->unit);
}

void render_graph_values(const struct render_graph *g, const struct render_node *n, int64_t sum,
			 struct buf *out)
{
	char flat[RENDER_NUMBER], cum[RENDER_NUMBER], percent[3][RENDER_NUMBER];

	render_graph_value(g, flat, n->flat);
	render_graph_value(g, cum, n->cum);
	render_percent(percent[0], n->flat, g->total);
	render_percent(percent[1], sum, g->total);
	render_percent(percent[2], n->cum, g->total);
	buf_printf(out, "%10s %s %s %10s %s  ", flat, percent[0], percent[1], cum, percent[2]);
}

/* ---- header ---- */

static void put_line(struct buf *out, const char *what, struct fusee_str s)
{
	buf_str(out, what);
	render_plain(out, s);
	buf_str(out, "\n");
}

static void put_file(const struct fusee_profile *p, struct buf *out)
{
	struct fusee_str path, id;
	uint32_t main = 1;

	for (uint32_t i = p->mappings.n; i-- > 1;)
		if (FUSEE_AT(struct fusee_mapping, p->mappings, i)->flags & FUSEE_MAPPING_MAIN)
			main = i;
	if (main >= p->mappings.n)
		return;
	path = str_at(p, FUSEE_AT(struct fusee_mapping, p->mappings, main)->path);
	id = str_at(p, FUSEE_AT(struct fusee_mapping, p->mappings, main)->build_id);
	if (path.len)
		put_line(out, "File: ", str_base_name(path));
	if (id.len)
		put_line(out, "Build ID: ", id);
}

/* The other profile has this comment too. */
static bool has_comment(const struct fusee_profile *p, struct fusee_str s)
{
	for (uint32_t i = 0; p && i < p->comments.n; i++)
		if (str_equal(s, *FUSEE_AT(struct fusee_str, p->comments, i)))
			return true;
	return false;
}

static bool has_loss(const struct fusee_profile *p, const struct fusee_label *l)
{
	for (uint32_t i = 0; p && i < p->losses.n; i++) {
		const struct fusee_label *k = FUSEE_AT(struct fusee_label, p->losses, i);

		if (k->num == l->num && str_equal(k->key, l->key))
			return true;
	}
	return false;
}

static void put_comments(const struct fusee_profile *p, const struct fusee_profile *said,
			 struct buf *out)
{
	struct buf line = {0};

	for (uint32_t i = 0; p && i < p->comments.n; i++) {
		struct fusee_str s = *FUSEE_AT(struct fusee_str, p->comments, i);

		if (s.len && *s.p != '#' && !has_comment(said, s))
			put_line(out, "", s);
	}
	for (uint32_t i = 0; p && i < p->losses.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->losses, i);

		if (has_loss(said, l))
			continue;
		loss_comment_write(&line, l);
		put_line(out, "", (struct fusee_str){line.p, line.len});
		buf_reset(&line);
	}
	out->error = out->error ? out->error : line.error;
	buf_fini(&line);
}

/* When the first profile began, and the duration of both. */
static void put_time(const struct render_graph *g, struct buf *out)
{
	const struct fusee_profile *p = g->model->profile, *base = g->model->base;
	uint64_t start = p->start_ns, duration = p->duration_ns + (base ? base->duration_ns : 0);
	char value[RENDER_NUMBER], number[RENDER_NUMBER], text[64];
	struct tm tm;
	time_t t;

	if (base && base->start_ns && (!start || base->start_ns < start))
		start = base->start_ns;
	t = (time_t)(start / 1000000000);
	if (start && localtime_r(&t, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &tm))
		buf_printf(out, "Time: %s\n", text);
	if (!duration)
		return;
	render_value(value, (int64_t)duration, fusee_text("nanoseconds"), "auto");
	render_graph_value(g, number, g->total);
	buf_printf(out, "Duration: %s, Total samples = %s ", value, number);
	render_value(number, g->total, g->model->unit, "nanoseconds");
	if (g->total && strlen(number) > 2 && !strcmp(number + strlen(number) - 2, "ns")) {
		render_percent(number, (int64_t)strtod(number, NULL), (int64_t)duration);
		buf_printf(out, "(%s)", number);
	}
	buf_str(out, "\n");
}

static void put_filters(const struct render_options *o, struct buf *out)
{
	const char *filters[] = {"focus", o->focus, "ignore", o->ignore, "hide", o->hide};
	bool any = false;

	for (size_t i = 0; i < 6; i += 2) {
		if (!filters[i + 1] || !*filters[i + 1])
			continue;
		buf_printf(out, "%s   %s=%s\n", any ? "" : "Active filters:\n", filters[i],
			   filters[i + 1]);
		any = true;
	}
	for (uint32_t i = 0; o->where[i]; i++) {
		buf_printf(out, "%s   where ", any ? "" : "Active filters:\n");
		render_plain(out, (struct fusee_str){o->where[i], strlen(o->where[i])});
		buf_str(out, "\n");
		any = true;
	}
}

void render_graph_header(const struct render_graph *g, const struct render_options *o,
			 struct buf *out)
{
	char shown[RENDER_NUMBER], percent[RENDER_NUMBER], total[RENDER_NUMBER];
	const struct render_model *m = g->model;

	put_file(m->profile, out);
	put_comments(m->profile, NULL, out);
	put_comments(m->base, m->profile, out);
	put_line(out, "Type: ", m->type);
	put_time(g, out);
	put_filters(o, out);
	if (m->omits)
		buf_str(out, "Frames of the interpreter or allocator itself are omitted: --native "
			     "shows them\n");
	render_graph_value(g, shown, g->shown);
	render_graph_value(g, total, g->total);
	render_percent(percent, g->shown, g->total);
	buf_printf(out, "Showing nodes accounting for %s, %s of %s total\n", shown,
		   percent + strspn(percent, " "), total);
	if (!g->total)
		return;
	if (g->dropped) {
		render_graph_value(g, shown, share_of(g->total, NODE_FRACTION));
		buf_printf(out, "Dropped %u node%s (cum <= %s)\n", g->dropped,
			   g->dropped > 1 ? "s" : "", shown);
	}
	if (g->nnodes && g->nnodes < g->all)
		buf_printf(out, "Showing top %u nodes out of %u\n", g->nnodes, g->all);
}
