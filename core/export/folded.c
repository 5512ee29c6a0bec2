/* SPDX-License-Identifier: Apache-2.0 */
/* One line for each distinct stack: "root;caller;leaf value", the input of flamegraph.pl. In a
 * comparison "root;caller;leaf base value", as difffolded.pl writes it. */
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "report/model.h"

/* ';' separates frames and a newline ends a stack, so a name can have neither. */
static void put_name(struct buf *out, struct fusee_str name)
{
	for (uint64_t i = 0; i < name.len; i++) {
		char c = name.p[i];

		buf_add(out, c == ';' ? ":" : (unsigned char)c < ' ' ? " " : &c, 1);
	}
}

/* The values of a line. */
struct pair {
	int64_t value, base;
};

static int add_stack(const struct render_model *m, const struct render_stack *s, struct dict *lines,
		     struct buf *values, struct buf *scratch)
{
	struct pair *v;
	uint32_t id;

	buf_reset(scratch);
	for (uint32_t k = s->n; k-- > 0;) {
		put_name(scratch, m->functions[render_frame_at(m, s, k)->function].shown);
		buf_str(scratch, k ? ";" : "");
	}
	if (scratch->error)
		return scratch->error;
	id = dict_add(lines, scratch->p, scratch->len);
	if (id == DICT_NONE)
		return -ENOMEM;
	while (values->len / sizeof(*v) <= id) {
		v = buf_grow(values, sizeof(*v));
		if (!v)
			return -ENOMEM;
		*v = (struct pair){0};
	}
	v = (struct pair *)(void *)values->p + id;
	saturate_add(&v->value, s->value);
	saturate_add(&v->base, s->base);
	return 0;
}

static int compare(const void *a, const void *b, void *dict)
{
	const struct dict *d = dict;
	const struct dict_entry *x = &d->entries[*(const uint32_t *)a],
				*y = &d->entries[*(const uint32_t *)b];
	int order = memcmp(x->key, y->key, x->len < y->len ? x->len : y->len);

	return order ? order : (x->len > y->len) - (x->len < y->len);
}

static int put_lines(struct dict *lines, const struct pair *values, bool diff, struct buf *out)
{
	uint32_t *order = calloc(lines->n, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < lines->n; i++)
		order[i] = i;
	qsort_r(order, lines->n, sizeof(*order), compare, lines);
	for (uint32_t i = 0; i < lines->n; i++) {
		const struct dict_entry *e = &lines->entries[order[i]];

		const struct pair *v = &values[order[i]];

		if (!e->len || (!v->value && !v->base))
			continue;
		buf_add(out, e->key, e->len);
		if (diff)
			buf_printf(out, " %" PRId64, v->base);
		buf_printf(out, " %" PRId64 "\n", v->value);
	}
	free(order);
	return out->error;
}

int render_folded(const struct fusee_profile *p, const struct fusee_profile *base,
		  const struct render_options *o, struct buf *out)
{
	struct render_model m;
	struct dict lines;
	struct buf values = {0}, scratch = {0};
	int ret = render_model_make(&m, p, base, o, out);

	if (ret)
		return ret;
	ret = dict_init(&lines);
	for (uint32_t i = 0; !ret && i < m.nstacks; i++)
		ret = add_stack(&m, &m.stacks[i], &lines, &values, &scratch);
	if (!ret && m.nstacks)
		ret = put_lines(&lines, (const struct pair *)(const void *)values.p, base, out);
	dict_fini(&lines);
	buf_fini(&values);
	buf_fini(&scratch);
	render_model_free(&m);
	return ret;
}
