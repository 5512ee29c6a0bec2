/* SPDX-License-Identifier: Apache-2.0 */
/* https://www.speedscope.app/file-format-schema.json, a "sampled" profile. */
#include "profile/render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/render_model.h"

static struct fusee_str text(const char *s)
{
	return (struct fusee_str){s, strlen(s)};
}

static const char *unit_of(struct fusee_str unit)
{
	static const char *const known[] = {"nanoseconds", "microseconds", "milliseconds",
					    "seconds", "bytes"};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (unit.len == strlen(known[i]) && !memcmp(unit.p, known[i], unit.len))
			return known[i];
	return "none";
}

static void put_frames(const struct render_model *m, struct buf *out)
{
	for (uint32_t i = 0; i < m->nfunctions; i++) {
		const struct render_function *f = &m->functions[i];

		buf_str(out, i ? ",\n{\"name\":" : "{\"name\":");
		render_json_string(out, f->shown);
		if (f->file.len) {
			buf_str(out, ",\"file\":");
			render_json_string(out, f->file);
			if (f->start_line)
				buf_printf(out, ",\"line\":%u", f->start_line);
		}
		buf_str(out, "}");
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
		uint32_t f = m->frames[x->first + x->n - i].function,
			 g = m->frames[y->first + y->n - i].function;

		if (f != g)
			return f < g ? -1 : 1;
	}
	return (x->n > y->n) - (x->n < y->n);
}

/* Only what is more than nothing: a width. */
static const struct render_stack **sorted(struct render_model *m, uint32_t *n)
{
	const struct render_stack **list = calloc(m->nstacks + 1, sizeof(*list));

	*n = 0;
	for (uint32_t i = 0; list && i < m->nstacks; i++)
		if (m->stacks[i].value > 0)
			list[(*n)++] = &m->stacks[i];
	if (list)
		qsort_r(list, *n, sizeof(*list), compare, m);
	return list;
}

static void put_stacks(const struct render_model *m, const struct render_stack **list, uint32_t n,
		       struct buf *out)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		if (__builtin_add_overflow(sum, (uint64_t)list[i]->value, &sum))
			sum = UINT64_MAX;
	buf_printf(out, "\"startValue\":0,\"endValue\":%" PRIu64 ",\"samples\":[", sum);
	for (uint32_t i = 0; i < n; i++) {
		buf_str(out, i ? ",\n[" : "[");
		for (uint32_t k = list[i]->n; k-- > 0;)
			buf_printf(out, k ? "%u," : "%u]", m->frames[list[i]->first + k].function);
	}
	buf_str(out, "],\"weights\":[");
	for (uint32_t i = 0; i < n; i++)
		buf_printf(out, i ? ",%" PRId64 : "%" PRId64, list[i]->value);
	buf_str(out, "]");
}

int render_speedscope(const struct fusee_profile *p, const struct render_options *o,
		      struct buf *out)
{
	struct render_model m;
	const struct render_stack **list;
	uint32_t n;
	int ret = render_model_make(&m, p, NULL, o, out);

	if (ret)
		return ret;
	list = sorted(&m, &n);
	if (!list) {
		render_model_free(&m);
		return -ENOMEM;
	}
	buf_str(out, "{\"$schema\":\"https://www.speedscope.app/"
		     "file-format-schema.json\",\"exporter\":\"fusee " FUSEE_VERSION
		     "\",\"activeProfileIndex\":0,\"name\":");
	render_json_string(out, o->title ? text(o->title) : m.type);
	buf_str(out, ",\n\"shared\":{\"frames\":[");
	put_frames(&m, out);
	buf_str(out, "]},\n\"profiles\":[{\"type\":\"sampled\",\"name\":");
	render_json_string(out, m.type);
	buf_printf(out, ",\"unit\":\"%s\",", unit_of(m.unit));
	put_stacks(&m, list, n, out);
	buf_str(out, "}]}\n");
	free(list);
	render_model_free(&m);
	return out->error;
}
