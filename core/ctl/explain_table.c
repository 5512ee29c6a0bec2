/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/internal/explain_table.h"

#include "console/grid.h"
#include "ctl/answer.h"

/* "97 Hz to sink.pprof: why" */
static void put_decision(struct json_object *d, struct buf *b)
{
	struct json_object *sinks = json_object_object_get(d, "sinks");
	double share = answer_real(d, "share");

	if (json_object_get_boolean(json_object_object_get(d, "profile"))) {
		buf_printf(b, "%g Hz", answer_real(d, "hz"));
		if (share < 1)
			buf_printf(b, ", lowered to %.0f%% by the budget,", 100 * share);
		buf_str(b, " to");
		for (size_t i = 0; i < answer_length(sinks); i++)
			buf_printf(b, "%s %s", i ? "," : "",
				   json_object_get_string(json_object_array_get_idx(sinks, i)));
	} else {
		buf_str(b, "not profiled");
	}
	buf_printf(b, ": %s", answer_text(d, "why"));
}

static void put_labels(struct json_object *list, uint32_t width, struct buf *out)
{
	static const char *const members[] = {"name", "value", "from", "by"};
	struct grid g = {.columns = {{"LABEL", false, 0},
				     {"VALUE", false, 0},
				     {"FROM", false, 0},
				     {"BY", false, 1}},
			 .ncolumns = 4};

	for (size_t i = 0; i < answer_length(list); i++)
		for (size_t k = 0; k < 4; k++)
			grid_cell(&g, "%s",
				  answer_text(json_object_array_get_idx(list, i), members[k]));
	if (g.ncells) {
		buf_str(out, "\n");
		grid_print(&g, width, out);
	}
	grid_fini(&g);
}

/* A row for each rule that has an effect, or a single row if no rule of the sink has. */
static void put_sink(struct grid *g, struct json_object *sink)
{
	struct json_object *rules = json_object_object_get(sink, "rules");
	size_t n = answer_length(rules);

	for (size_t i = 0; i < n || !i; i++) {
		struct json_object *rule = i < n ? json_object_array_get_idx(rules, i) : NULL;

		grid_cell(g, "%s", answer_text(sink, "sink"));
		grid_cell(g, "%s", rule ? answer_text(rule, "rule") : "-");
		grid_cell(g, "%s", rule ? answer_text(rule, "does") : "nothing");
	}
}

static void put_relabel(struct json_object *list, uint32_t width, struct buf *out)
{
	struct grid g = {.columns = {{"SINK", false, 0}, {"RULE", false, 0}, {"DOES", false, 1}},
			 .ncolumns = 3};

	for (size_t i = 0; i < answer_length(list); i++)
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

	buf_printf(&b, "%.0f %s", answer_real(answer, "pid"), answer_text(answer, "process"));
	answer_line(out, width, "process", &b);
	buf_reset(&b);
	put_decision(json_object_object_get(answer, "decision"), &b);
	answer_line(out, width, "decision", &b);
	buf_fini(&b);
	put_labels(json_object_object_get(answer, "labels"), width, out);
	put_relabel(json_object_object_get(answer, "relabel"), width, out);
}
