/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of the samples that are selected. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/saturate.h"
#include "base/str.h"
#include "report/labels.h"
#include "report/model.h"
#include "ui/internal/views.h"

#define MAX_KEYS RENDER_MAX_KEYS
#define MAX_VALUES 60u /* values of a label; the largest are listed */

struct keys {
	struct fusee_str keys[MAX_KEYS];
	uint32_t n;
	uint32_t others; /* keys that do not fit, or that no condition can name */
};

/* A value of a label, which the model has as a function. */
struct value {
	uint32_t key;
	const struct render_function *f;
};

static bool can_select(struct fusee_str key)
{
	for (uint64_t i = 0; i < key.len; i++)
		if (!key.p[i] || strchr("=!,", key.p[i]))
			return false;
	return key.len;
}

static void add_key(struct keys *k, struct fusee_str key)
{
	for (uint32_t i = 0; i < k->n; i++)
		if (str_equal(k->keys[i], key))
			return;
	if (k->n == MAX_KEYS || !can_select(key))
		k->others++;
	else
		k->keys[k->n++] = key;
}

static bool has_several(const struct fusee_profile *p, bool tid)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < p->samples.n; i++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);
		uint32_t n = tid ? s->tid : s->pid;

		if (i && n != first)
			return true;
		first = n;
	}
	return false;
}

static void find_keys(struct keys *k, const struct fusee_profile *p)
{
	static const char *const first[] = {"process", "thread"};

	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
		for (uint32_t l = 0; l < p->labels.n; l++)
			if (fusee_text_is(FUSEE_AT(struct fusee_label, p->labels, l)->key,
					  first[i])) {
				add_key(k, fusee_text(first[i]));
				break;
			}
	for (uint32_t l = 0; l < p->labels.n; l++)
		add_key(k, FUSEE_AT(struct fusee_label, p->labels, l)->key);
	if (has_several(p, false))
		add_key(k, fusee_text("pid"));
	if (has_several(p, true))
		add_key(k, fusee_text("tid"));
}

/* Of both sides; each may be at the limit of its type. */
static int64_t size_of(const struct value *v)
{
	int64_t sum = v->f->total;

	saturate_add(&sum, v->f->base_total);
	return sum;
}

static int by_size(const void *a, const void *b)
{
	const struct value *x = a, *y = b;
	int64_t v = size_of(x), w = size_of(y);

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return v != w ? (v > w ? -1 : 1) : str_order(x->f->name, y->f->name);
}

/* Returns the index of the key whose value this function is, by its name, as "process: bb". */
static uint32_t key_of(const struct keys *k, const struct render_function *f)
{
	for (uint32_t i = 0; i < k->n; i++) {
		uint64_t n = k->keys[i].len;

		if (f->name.len >= n + 2 && !memcmp(f->name.p, k->keys[i].p, n) &&
		    !memcmp(f->name.p + n, ": ", 2))
			return i;
	}
	return UINT32_MAX;
}

static void put_value(struct json *j, const struct value *v, struct fusee_str key)
{
	uint64_t skip = key.len + 2;

	json_list(j, NULL);
	json_str(j, NULL, (struct fusee_str){v->f->name.p + skip, v->f->name.len - skip});
	json_int(j, NULL, v->f->total);
	json_int(j, NULL, v->f->base_total);
	json_end(j);
}

static void put_key(struct json *j, struct fusee_str key, const struct value *values, uint32_t n)
{
	json_open(j, NULL);
	json_str(j, "key", key);
	json_uint(j, "n", n);
	json_list(j, "values");
	for (uint32_t i = 0; i < n && i < MAX_VALUES; i++)
		put_value(j, &values[i], key);
	json_end(j);
	json_end(j);
}

static int put_labels(struct json *j, const struct keys *k, const struct render_model *m)
{
	struct value *values = calloc(m->nfunctions + (size_t)1, sizeof(*values));
	uint32_t n = 0;

	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nfunctions; i++) {
		const struct render_function *f = &m->functions[i];
		uint32_t key = f->code == RENDER_LABEL ? key_of(k, f) : UINT32_MAX;

		if (key != UINT32_MAX && (f->total || f->base_total))
			values[n++] = (struct value){key, f};
	}
	qsort(values, n, sizeof(*values), by_size);
	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && values[end].key == values[i].key;)
			end++;
		put_key(j, k->keys[values[i].key], &values[i], end - i);
	}
	free(values);
	return 0;
}

/* Whether reports may omit an interpreter's frames. */
static bool may_omit(const struct fusee_profile *p)
{
	bool may = false;

	for (uint32_t i = 0; p && !may && i < p->locations.n; i++)
		may = FUSEE_AT(struct fusee_location, p->locations, i)->flags &
		      FUSEE_LOCATION_INTERPRETER;
	return may;
}

int ui_labels(const struct ui_view *v, struct buf *out)
{
	struct render_options o = v->o;
	struct json j = {.out = out};
	struct buf by = {0};
	struct keys keys = {0};
	struct render_model m;
	int r;

	find_keys(&keys, v->p);
	if (v->base)
		find_keys(&keys, v->base);
	for (uint32_t i = 0; i < keys.n; i++) {
		buf_str(&by, i ? "," : "");
		buf_add(&by, keys.keys[i].p, keys.keys[i].len);
	}
	buf_add(&by, "", 1);
	o.by = keys.n ? by.p : NULL;
	/* without stacks, where nothing depends on them */
	o.only_labels = keys.n && !o.function && !may_omit(v->p) && !may_omit(v->base);
	r = by.error ? by.error : render_model_make(&m, v->p, v->base, &o, out);
	if (!r) {
		json_open(&j, NULL);
		json_str(&j, "type", m.type);
		json_str(&j, "unit", m.unit);
		json_int(&j, "total", m.total);
		if (m.base)
			json_int(&j, "base", m.base_total);
		json_flag(&j, "omits", m.omits);
		json_list(&j, "labels");
		r = put_labels(&j, &keys, &m);
		json_end(&j);
		json_uint(&j, "others", keys.others);
		json_end(&j);
		render_model_free(&m);
	}
	buf_fini(&by);
	return r ? r : out->error;
}
