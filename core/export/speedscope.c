/* SPDX-License-Identifier: Apache-2.0 */
/* https://www.speedscope.app/file-format-schema.json, a "sampled" profile. */
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/saturate.h"
#include "base/str.h"
#include "report/model.h"

static const char *unit_of(struct fusee_str unit)
{
	static const char *const known[] = {"nanoseconds", "microseconds", "milliseconds",
					    "seconds", "bytes"};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (fusee_text_is(unit, known[i]))
			return known[i];
	return "none";
}

static void put_frames(const struct render_model *m, struct json *j)
{
	for (uint32_t i = 0; i < m->nfunctions; i++) {
		const struct render_function *f = &m->functions[i];

		if (i)
			json_line(j, 0);
		json_open(j, NULL);
		json_str(j, "name", f->shown);
		if (f->file.len)
			json_str(j, "file", f->file);
		if (f->file.len && f->start_line)
			json_uint(j, "line", f->start_line);
		json_end(j);
	}
}

/* The profile has no order in time. Similar stacks are sorted beside each other, so that speedscope
 * shows its sorted view at once. */
static int compare(const void *a, const void *b, void *model)
{
	const struct render_model *m = model;
	const struct render_stack *x = *(struct render_stack *const *)a,
				  *y = *(struct render_stack *const *)b;

	for (uint32_t i = 1; i <= x->n && i <= y->n; i++) {
		uint32_t f = render_frame_at(m, x, x->n - i)->function,
			 g = render_frame_at(m, y, y->n - i)->function;

		if (f != g)
			return f < g ? -1 : 1;
	}
	return (x->n > y->n) - (x->n < y->n);
}

/* All stacks of the model, in the order of compare(). */
static const struct render_stack **sorted(struct render_model *m)
{
	const struct render_stack **list = calloc(m->nstacks + 1, sizeof(*list));

	for (uint32_t i = 0; list && i < m->nstacks; i++)
		list[i] = &m->stacks[i];
	if (list)
		qsort_r(list, m->nstacks, sizeof(*list), compare, m);
	return list;
}

/* A stack of distinct functions, with the sums of both profiles. */
struct entry {
	const struct render_stack *stack;
	int64_t value, base;
};

/* Joins what differs in its side or its lines only. NULL: no memory. */
static struct entry *join(struct render_model *m, uint32_t *n)
{
	const struct render_stack **list = sorted(m);
	struct entry *all = list ? calloc(m->nstacks + 1, sizeof(*all)) : NULL;

	*n = 0;
	for (uint32_t i = 0; all && i < m->nstacks; i++) {
		if (!i || compare(&list[i - 1], &list[i], m))
			all[(*n)++].stack = list[i];
		saturate_add(&all[*n - 1].value, list[i]->value);
		saturate_add(&all[*n - 1].base, list[i]->base);
	}
	free(list);
	return all;
}

/* The profiles of a comparison; without a base the first is all. */
enum side { NOW, BASE, MORE, LESS, SIDES };

static int64_t width_of(const struct entry *e, enum side side)
{
	int64_t v = side == BASE || side == LESS ? e->base : e->value;

	if (side == MORE)
		saturate_add(&v, e->base == INT64_MIN ? INT64_MAX : -e->base);
	if (side == LESS)
		saturate_add(&v, e->value == INT64_MIN ? INT64_MAX : -e->value);
	return v;
}

/* Only what is more than nothing: a width. */
static void put_stacks(const struct render_model *m, const struct entry *all, uint32_t n,
		       enum side side, struct json *j)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		if (width_of(&all[i], side) > 0)
			saturate_add(&sum, width_of(&all[i], side));
	json_int(j, "startValue", 0);
	json_int(j, "endValue", sum);
	json_list(j, "samples");
	for (uint32_t i = 0; i < n; i++) {
		if (width_of(&all[i], side) <= 0)
			continue;
		if (j->more)
			json_line(j, 0);
		json_list(j, NULL);
		for (uint32_t k = all[i].stack->n; k-- > 0;)
			json_uint(j, NULL, render_frame_at(m, all[i].stack, k)->function);
		json_end(j);
	}
	json_end(j);
	json_list(j, "weights");
	for (uint32_t i = 0; i < n; i++)
		if (width_of(&all[i], side) > 0)
			json_int(j, NULL, width_of(&all[i], side));
	json_end(j);
}

static void put_profile(const struct render_model *m, const struct entry *all, uint32_t n,
			enum side side, struct json *j)
{
	static const char *const names[SIDES] = {"", ", base", ", more than base",
						 ", less than base"};
	struct buf name = {0};

	buf_add(&name, m->type.p, m->type.len);
	buf_str(&name, names[side]);
	json_open(j, NULL);
	json_text(j, "type", "sampled");
	json_buf(j, "name", &name);
	json_text(j, "unit", unit_of(m->unit));
	put_stacks(m, all, n, side, j);
	json_end(j);
	buf_fini(&name);
}

int render_speedscope(const struct fusee_profile *p, const struct fusee_profile *base,
		      const struct render_options *o, struct buf *out)
{
	struct json j = {.out = out};
	struct render_model m;
	struct entry *all;
	uint32_t n;
	int ret = render_model_make(&m, p, base, o, out);

	if (ret)
		return ret;
	all = join(&m, &n);
	if (!all) {
		render_model_free(&m);
		return -ENOMEM;
	}
	json_open(&j, NULL);
	json_text(&j, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_text(&j, "exporter", "fusee " FUSEE_VERSION);
	json_int(&j, "activeProfileIndex", 0);
	json_str(&j, "name", o->title ? fusee_text(o->title) : m.type);
	json_open(json_line(&j, 0), "shared");
	json_list(&j, "frames");
	put_frames(&m, &j);
	json_end(&j);
	json_end(&j);
	json_list(json_line(&j, 0), "profiles");
	for (enum side side = NOW; side < (base ? SIDES : BASE); side++) {
		if (side)
			json_line(&j, 0);
		put_profile(&m, all, n, side, &j);
	}
	json_end(&j);
	json_end(&j);
	buf_str(out, "\n");
	free(all);
	render_model_free(&m);
	return out->error;
}
