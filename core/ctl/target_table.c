/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/target_table.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "console/grid.h"
#include "ctl/answer.h"

/* The rank of a label: names that people know come first, long labels last. */
static int rank(const char *label)
{
	static const char *const first[] = {"service_name", "namespace", "pod",
					    "container",    "unit",      "process"};
	static const char *const last[] = {"container_id", "pod_uid", "host", "slice", "cgroup"};

	for (int i = 0; i < 6; i++)
		if (!strcmp(label, first[i]))
			return i;
	for (int i = 0; i < 5; i++)
		if (!strcmp(label, last[i]))
			return 20 + i;
	return 10;
}

static void add_labels(struct json_object *target, struct buf *b)
{
	struct json_object *labels = json_object_object_get(target, "labels");

	if (!json_object_is_type(labels, json_type_object))
		return;
	for (int at = 0; at < 25; at++) {
		json_object_object_foreach(labels, key, v)
		{
			if (rank(key) == at)
				buf_printf(b, "%s%s=%s", b->len ? " " : "", key,
					   json_object_get_string(v));
		}
	}
}

static void add_target(struct grid *g, struct json_object *t)
{
	struct json_object *sinks = json_object_object_get(t, "sinks");
	bool profile = answer_bool(t, "profile");
	struct buf b = {0};

	grid_cell(g, "%" PRIu64, answer_number(t, "processes"));
	if (profile)
		grid_cell(g, "%g", answer_real(t, "hz"));
	else
		grid_cell(g, "-");
	for (size_t i = 0; i < answer_length(sinks); i++)
		buf_printf(&b, "%s%s", i ? "," : "",
			   json_object_get_string(json_object_array_get_idx(sinks, i)));
	grid_cell(g, "%.*s", profile ? (int)b.len : 1, profile ? b.p ? b.p : "" : "-");
	buf_reset(&b);
	add_labels(t, &b);
	grid_cell(g, "%.*s", (int)b.len, b.p ? b.p : "");
	if (b.error)
		g->text.error = b.error;
	buf_fini(&b);
}

static int by_processes(const void *a, const void *b)
{
	struct json_object *x = *(struct json_object *const *)a,
			   *y = *(struct json_object *const *)b;
	uint64_t n = answer_number(x, "processes"), m = answer_number(y, "processes");

	if (answer_bool(x, "profile") != answer_bool(y, "profile"))
		return answer_bool(x, "profile") ? -1 : 1;
	return (n < m) - (n > m);
}

void target_table(struct json_object *list, uint32_t width, size_t rows, struct buf *out)
{
	size_t all = answer_length(list), n = rows && rows < all ? rows : all;
	struct grid g = {.columns = {{"PROCESSES", true, 0},
				     {"HZ", true, 0},
				     {"SINKS", false, 1},
				     {"LABELS", false, 0}},
			 .ncolumns = 4};

	if (!all) {
		buf_str(out, "there are no targets\n");
		return;
	}
	json_object_array_sort(list, by_processes);
	for (size_t i = 0; i < n; i++)
		add_target(&g, json_object_array_get_idx(list, i));
	grid_print(&g, width, out);
	grid_fini(&g);
	if (n < all)
		buf_printf(out, "and %zu more label sets, which --json prints\n", all - n);
}
