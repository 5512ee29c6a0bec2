/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/internal/time_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/saturate.h"
#include "query/sums.h"
#include "report/labels.h"
#include "ui/internal/function.h"

#define MAX_GROUPS 12u
#define MS 1000000ull
#define SECOND 1000000000ull
#define HOUR 3600000000000ull

/* A chart that is being made while the store is read. */
struct chart {
	struct sums sums;
	struct selector *selector;
	struct render_labels labels; /* the conditions of the selection */
	struct ui_model model;       /* has the selected function */
	bool has_model;
	struct ui_function function;
	struct ui_function_marks marks;
	uint64_t others;     /* windows with other types, which are not added */
	uint64_t longest_ns; /* duration of the longest window */
	struct buf *error;
};

/* ---- what is added ---- */

static bool takes(void *arg, const struct fusee_profile *p, const struct fusee_sample *s)
{
	const struct chart *c = arg;

	return render_labels_keep(&c->labels, p, s) &&
	       (!c->has_model || ui_function_has(&c->marks, p, s->stack));
}

static int take(void *arg, const struct fusee_profile *p, const char *name)
{
	struct chart *c = arg;
	int r = c->has_model ? ui_function_begin(&c->marks, p) : 0;

	if (!r)
		r = sums_add(&c->sums, p, name, c->error);
	if (!r && p->duration_ns > c->longest_ns)
		c->longest_ns = p->duration_ns;
	if (r != -EINVAL)
		return r;
	buf_reset(c->error); /* its types differ from those of the first */
	c->others++;
	return 0;
}

/* Parses the conditions without a profile: a window need not have the labels that they name. */
static int parse_labels(struct chart *c, const struct ui_selection *s)
{
	static const struct fusee_profile none;
	const struct render_options o = {.where = {NULL}};
	struct render_options own = o;

	memcpy(own.where, s->o.where, sizeof(own.where));
	return render_labels_make(&c->labels, &none, NULL, &own, c->error);
}

/* Finds the selected function, by its name, in the profile that the other views show. */
static int find_function(struct chart *c, struct ui_profiles *u, const struct ui_selection *s)
{
	struct ui_view v = {.o = s->o};
	const struct ui_sum *sum;
	int r;

	if (!s->o.function)
		return 0;
	r = ui_profiles_get(u, &s->now, s->o.type, &v.p, &sum, c->error);
	if (!r)
		r = ui_function_find(&c->function, &v, &c->model, c->error);
	c->has_model = !r;
	c->marks.f = &c->function;
	return r;
}

/* Lists the labels that the store must read: those to group by, and those of conditions. */
static uint32_t list_keys(const struct chart *c, struct fusee_str *keys)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->sums.nkeys; i++)
		keys[n++] = c->sums.keys[i];
	for (uint32_t i = 0; i < c->labels.nconditions; i++)
		keys[n++] = c->labels.conditions[i].key;
	return n;
}

static int read_span(struct chart *c, struct ui_profiles *u, const struct ui_selection *s,
		     struct store_counts *counts)
{
	struct fusee_str keys[SUMS_MAX_KEYS + RENDER_MAX_WHERE];
	struct store_request request = {.from_ns = s->span.from_ns,
					.to_ns = s->span.to_ns,
					.selector = c->selector,
					.no_stacks = !c->has_model,
					.keys = keys};

	request.nkeys = list_keys(c, keys);
	return ui_profiles_read(u, &request, take, c, counts, c->error);
}

/* Appends the type that the other views show if the selection names none, with its NUL; nothing if
 * they show no profile. */
static void default_type(struct ui_profiles *u, const struct ui_selection *s, struct buf *type)
{
	const struct fusee_profile *p;
	const struct ui_sum *sum;
	struct buf ignored = {0};

	if (!ui_profiles_get(u, &s->now, NULL, &p, &sum, &ignored))
		ui_default_type(p, type);
	buf_fini(&ignored);
}

static int chart_make(struct chart *c, struct ui_profiles *u, const struct ui_selection *s,
		      struct store_counts *counts)
{
	struct buf type = {0};
	int r = sums_init(&c->sums, s->by, c->error);

	if (!r)
		r = parse_labels(c, s);
	if (!r)
		r = find_function(c, u, s);
	if (!r && !s->o.type)
		default_type(u, s, &type);
	if (!r)
		r = ui_type_selector(&c->selector, s->o.type ? s->o.type : type.p);
	buf_fini(&type);
	c->sums.filter = (struct filter){.selector = c->selector, .also = takes, .also_arg = c};
	if (!r)
		r = read_span(c, u, s, counts);
	return r;
}

static void chart_free(struct chart *c)
{
	sums_fini(&c->sums);
	selector_free(c->selector);
	render_labels_free(&c->labels);
	if (c->has_model)
		ui_model_close(&c->model);
	ui_function_end(&c->marks);
}

/* ---- JSON ---- */

static void put_point(struct json *j, uint64_t step, int64_t value)
{
	json_list(j, NULL);
	json_uint(j, NULL, step);
	json_int(j, NULL, value);
	json_end(j);
}

/* Writes a group and its points, which begin at *i. Times are steps from start_ns on. */
static void put_group(struct json *j, const struct sums *s, uint32_t group, uint32_t *i,
		      uint64_t start_ns, uint64_t step_ns)
{
	struct fusee_str text = s->groups[group].values;

	json_list(j, NULL);
	json_str(j, NULL, (struct fusee_str){text.p, text.len ? text.len - 1 : 0});
	json_int(j, NULL, s->groups[group].total);
	json_list(j, NULL);
	for (; *i < s->npoints && s->points[*i].group == group; ++*i)
		put_point(j, (s->points[*i].start_ns - start_ns) / step_ns, s->points[*i].value);
	json_end(j);
	json_end(j);
}

/* Writes the groups whose points begin at `first` as one group. */
static int put_others(struct json *j, const struct sums *s, uint32_t first, uint64_t start_ns,
		      uint64_t step_ns)
{
	uint64_t steps = (s->last_ns - start_ns) / step_ns + 1;
	int64_t *values = calloc(steps, sizeof(*values)), total = 0;

	if (!values)
		return -ENOMEM;
	for (uint32_t i = first; i < s->npoints; i++) {
		saturate_add(&values[(s->points[i].start_ns - start_ns) / step_ns],
			     s->points[i].value);
		saturate_add(&total, s->points[i].value);
	}
	json_list(j, NULL);
	json_text(j, NULL, NULL);
	json_int(j, NULL, total);
	json_list(j, NULL);
	for (uint64_t i = 0; i < steps; i++)
		if (values[i])
			put_point(j, i, values[i]);
	json_end(j);
	json_end(j);
	free(values);
	return 0;
}

/* How long a bar is: so long that there are at most 60, and not shorter than a window, as there
 * would be gaps between bars. */
static uint64_t step_of(const struct chart *c)
{
	static const uint32_t seconds[] = {1,   2,   5,   10,   15,   30,   60,    120,
					   300, 600, 900, 1800, 3600, 7200, 21600, 43200};
	uint64_t step = sums_step(&c->sums);

	for (size_t i = 0; i < sizeof(seconds) / sizeof(*seconds); i++) {
		uint64_t ns = seconds[i] * SECOND;

		/* windows are a little longer than planned, as closing takes time */
		if (ns >= step && ns + ns / 4 >= c->longest_ns)
			return ns;
	}
	return step;
}

static int put_chart(struct json *j, struct chart *c, const struct store_counts *counts)
{
	struct sums *s = &c->sums;
	uint64_t step_ns = step_of(c), start_ns = s->first_ns - s->first_ns % step_ns;
	uint32_t at = 0, n;
	int r = sums_finish(s, step_ns);

	if (r)
		return r;
	n = s->ngroups <= MAX_GROUPS ? s->ngroups : MAX_GROUPS - 1;
	json_open(j, NULL);
	json_text(j, "type", s->type);
	json_text(j, "unit", s->unit);
	json_int(j, "total", s->total);
	json_uint(j, "start", start_ns / MS);
	json_uint(j, "step", step_ns / MS);
	json_uint(j, "steps", s->windows ? (s->last_ns - start_ns) / step_ns + 1 : 0);
	json_uint(j, "windows", s->windows);
	json_uint(j, "broken", counts->broken);
	json_uint(j, "other_types", c->others);
	json_list(j, "groups");
	for (uint32_t i = 0; i < n; i++)
		put_group(j, s, i, &at, start_ns, step_ns);
	if (n < s->ngroups)
		r = put_others(j, s, at, start_ns, step_ns);
	json_end(j);
	json_uint(j, "others", s->ngroups - n);
	json_end(j);
	return r;
}

int ui_time(struct ui_profiles *u, const struct ui_selection *s, struct buf *out)
{
	struct chart c = {.error = out};
	struct store_counts counts = {0};
	struct json j = {.out = out};
	int r = chart_make(&c, u, s, &counts);

	if (!r)
		r = put_chart(&j, &c, &counts);
	chart_free(&c);
	return r ? r : out->error;
}

/* ---- the first range ---- */

static int found(void *arg, const struct fusee_profile *p, const char *name)
{
	(void)name;
	*(bool *)arg |= p->samples.n != 0;
	return p->samples.n != 0;
}

int ui_first_range(struct ui_profiles *u, uint64_t now_ns, struct buf *out)
{
	static const uint64_t hours[] = {1, 24, 720};
	struct store_counts counts = {0};
	struct store_request request = {.to_ns = now_ns, .no_stacks = true};
	struct json j = {.out = out};
	bool has = false;
	int r = ui_type_selector(&request.selector, NULL);

	for (size_t i = 0; !r && !has && i < sizeof(hours) / sizeof(*hours); i++) {
		request.from_ns = now_ns - hours[i] * HOUR;
		r = ui_profiles_read(u, &request, found, &has, &counts, out);
	}
	selector_free(request.selector);
	if (r)
		return r;
	json_open(&j, NULL);
	if (has) {
		json_uint(&j, "from", request.from_ns / MS);
		json_uint(&j, "to", now_ns / MS);
	}
	json_end(&j);
	return out->error;
}
