/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "internal.h"

void labels_begin(struct labels *l)
{
	l->n = l->dropped = 0;
	fusee_bytes_reset(&l->text);
}

void labels_fini(struct labels *l)
{
	free(l->at);
	fusee_bytes_fini(&l->text);
	*l = (struct labels){0};
}

/* ---- names that backends index ---- */

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char indexed(char c)
{
	return is_letter(c) || is_digit(c) ? c : '_';
}

static void add_name(struct fusee_bytes *text, struct fusee_str name)
{
	if (is_digit(*name.p))
		fusee_bytes_byte(text, '_');
	for (uint64_t i = 0; i < name.len; i++)
		fusee_bytes_byte(text, (uint8_t)indexed(name.p[i]));
}

bool labels_is(struct fusee_str key, struct fusee_str name)
{
	uint64_t before = name.len && is_digit(*name.p);

	if (key.len != before + name.len || (before && *key.p != '_'))
		return false;
	for (uint64_t i = 0; i < name.len; i++)
		if (key.p[before + i] != indexed(name.p[i]))
			return false;
	return true;
}

/* ---- a set ---- */

static bool has(const struct labels *l, uint64_t at, uint64_t n)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->at[i].key.len == n &&
		    !memcmp(l->text.p + (uintptr_t)l->at[i].key.p, l->text.p + at, n))
			return true;
	return false;
}

/* Names and values are stored as offsets, because the text may move; labels_end() turns them into
 * addresses. */
void labels_add(struct labels *l, const struct fusee_series_options *o,
		const struct fusee_label *label)
{
	uint64_t name = l->text.len, value, nname, nvalue = label->str.len;

	if (o->max_value)
		nvalue = fusee_text_shortened(label->str, o->max_value).len;
	if (!label->key.len || !label->str.p || !nvalue || l->text.error)
		return;
	add_name(&l->text, label->key);
	value = l->text.len;
	nname = value - name;
	if (o->max_name && nname > o->max_name)
		nname = o->max_name;
	if (!l->text.error && has(l, name, nname)) {
		l->text.len = name;
		return;
	}
	fusee_bytes_add(&l->text, label->str.p, nvalue);
	if (!fusee_grow(&l->at, &l->cap, l->n + 1ull, sizeof(*l->at)))
		l->text.error = -ENOMEM;
	if (l->text.error)
		return;
	l->at[l->n++] = (struct fusee_label){.key = {(const char *)(uintptr_t)name, nname},
					     .str = {(const char *)(uintptr_t)value, nvalue}};
}

static int compare(const void *x, const void *y)
{
	const struct fusee_label *a = x, *b = y;
	uint64_t n = a->key.len < b->key.len ? a->key.len : b->key.len;
	int r = memcmp(a->key.p, b->key.p, n);

	return r ? r : (a->key.len > b->key.len) - (a->key.len < b->key.len);
}

static bool is_first(const struct fusee_series_options *o, struct fusee_str key)
{
	FUSEE_FOR_EACH (struct fusee_str, name, o->first) {
		if (labels_is(key, *name))
			return true;
	}
	return false;
}

/* From the end, until there are max_labels. */
static void drop(struct labels *l, const struct fusee_series_options *o)
{
	uint32_t before = l->n;

	for (uint32_t i = l->n; i-- && l->n > o->max_labels;)
		if (!is_first(o, l->at[i].key))
			memmove(&l->at[i], &l->at[i + 1], (--l->n - i) * sizeof(*l->at));
	if (l->n > o->max_labels)
		l->n = o->max_labels;
	l->dropped = before - l->n;
}

void labels_end(struct labels *l, const struct fusee_series_options *o)
{
	for (uint32_t i = 0; i < l->n; i++) {
		l->at[i].key.p = l->text.p + (uintptr_t)l->at[i].key.p;
		l->at[i].str.p = l->text.p + (uintptr_t)l->at[i].str.p;
	}
	if (l->n)
		qsort(l->at, l->n, sizeof(*l->at), compare);
	if (o->max_labels && l->n > o->max_labels)
		drop(l, o);
}
