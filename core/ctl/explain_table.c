/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/internal/explain_table.h"

#include "console/grid.h"
#include "ctl/members.h"

/* "decision   TEXT" */
static void line(struct buf *out, uint32_t width, const char *name, struct buf *text)
{
	buf_add(text, "", 1);
	buf_printf(out, "%-10s ", name);
	if (text->error)
		out->error = text->error;
	else
		grid_wrap(out, text->p, 11, 11, width);
	buf_fini(text);
}

/* "97 Hz to sink.pprof: why" */
static void put_decision(struct json_object *d, struct buf *b)
{
	struct json_object *sinks = list_of(d, "sinks");
	double share = real_of(d, "share");

	if (bool_of(d, "profile")) {
		buf_printf(b, "%g Hz", real_of(d, "hz"));
		if (share < 1)
			buf_printf(b, ", lowered to %.0f%% by the budget,", 100 * share);
		buf_str(b, " to");
		for (size_t i = 0; i < length_of(sinks); i++)
			buf_printf(b, "%s %s", i ? "," : "",
				   json_object_get_string(json_object_array_get_idx(sinks, i)));
	} else {
		buf_str(b, "not profiled");
	}
	buf_printf(b, ": %s", text_of(d, "why"));
}

static void put_labels(struct json_object *list, uint32_t width, struct buf *out)
{
	static const char *const members[] = {"name", "value", "from", "by"};
	struct grid g = {.columns = {{"LABEL", false, 0},
				     {"VALUE", false, 0},
				     {"FROM", false, 0},
				     {"BY", false, 1}},
			 .ncolumns = 4};

	for (size_t i = 0; i < length_of(list); i++)
		for (size_t k = 0; k < 4; k++)
			grid_cell(&g, "%s",
				  text_of(json_object_array_get_idx(list, i), members[k]));
	if (g.ncells) {
		buf_str(out, "\n");
		grid_print(&g, width, out);
	}
	grid_fini(&g);
}

/* A row for each rule that does something; one for a sink whose rules do nothing. */
static void put_sink(struct grid *g, struct json_object *sink)
{
	struct json_object *rules = list_of(sink, "rules");
	size_t n = length_of(rules);

	for (size_t i = 0; i < n || !i; i++) {
		struct json_object *rule = i < n ? json_object_array_get_idx(rules, i) : NULL;

		grid_cell(g, "%s", text_of(sink, "sink"));
		grid_cell(g, "%s", rule ? text_of(rule, "rule") : "-");
		grid_cell(g, "%s", rule ? text_of(rule, "does") : "nothing");
	}
}

static void put_relabel(struct json_object *list, uint32_t width, struct buf *out)
{
	struct grid g = {.columns = {{"SINK", false, 0}, {"RULE", false, 0}, {"DOES", false, 1}},
			 .ncolumns = 3};

	for (size_t i = 0; i < length_of(list); i++)
		put_sink(&g, json_object_array_get_idx(list, i));
	if (g.ncells) {
		buf_str(out, "\n");
		grid_print(&g, width, out);
	}
	grid_fini(&g);
}

void explain_table(struct json_object *answer, uint32_t width, struct buf *out)
{
	struct buf b = {0};

	buf_printf(&b, "%.0f %s", real_of(answer, "pid"), text_of(answer, "process"));
	line(out, width, "process", &b);
	put_decision(json_object_object_get(answer, "decision"), &b);
	line(out, width, "decision", &b);
	put_labels(list_of(answer, "labels"), width, out);
	put_relabel(list_of(answer, "relabel"), width, out);
}
