/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "internal.h"

void labels_begin(struct labels *l)
{
	l->n = l->dropped = 0;
	l->ntext = 0;
}

void labels_fini(struct labels *l)
{
	free(l->at);
	free(l->text);
	*l = (struct labels){0};
}

/* Offsets, since the text may move: labels_end() makes addresses of them. */
static uint64_t add_text(struct labels *l, const char *text, uint64_t n)
{
	uint64_t at = l->ntext;

	if (l->ntext + n > l->text_cap) {
		size_t cap = 2 * (l->ntext + n) + 256;
		char *more = realloc(l->text, cap);

		if (!more) {
			l->error = -ENOMEM;
			return 0;
		}
		l->text = more;
		l->text_cap = cap;
	}
	memcpy(l->text + l->ntext, text, n);
	l->ntext += n;
	return at;
}

/* ---- what backends index ---- */

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

static uint64_t add_name(struct labels *l, struct fusee_str name, uint64_t *n)
{
	uint64_t at = l->ntext;

	if (is_digit(*name.p))
		add_text(l, "_", 1);
	for (uint64_t i = 0; i < name.len; i++) {
		char c = indexed(name.p[i]);

		add_text(l, &c, 1);
	}
	*n = l->ntext - at;
	return at;
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

/* A text of a profile is UTF-8: it is truncated before a character, not within. */
static uint64_t shorten(struct fusee_str s, uint64_t most)
{
	if (!most || s.len <= most)
		return s.len;
	while (most && ((uint8_t)s.p[most] & 0xc0) == 0x80)
		most--;
	return most;
}

/* ---- a set ---- */

static bool has(const struct labels *l, uint64_t at, uint64_t n)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->at[i].key.len == n &&
		    !memcmp(l->text + (uintptr_t)l->at[i].key.p, l->text + at, n))
			return true;
	return false;
}

static bool grow(struct labels *l)
{
	uint32_t cap = l->cap ? 2 * l->cap : 16;
	struct fusee_label *more;

	if (l->n < l->cap)
		return true;
	more = realloc(l->at, cap * sizeof(*more));
	if (!more) {
		l->error = -ENOMEM;
		return false;
	}
	l->at = more;
	l->cap = cap;
	return true;
}

void labels_add(struct labels *l, const struct fusee_series_options *o,
		const struct fusee_label *label)
{
	uint64_t name, value, nname, nvalue = shorten(label->str, o->max_value);

	if (!label->key.len || !label->str.p || !nvalue || l->error || !grow(l))
		return;
	name = add_name(l, label->key, &nname);
	if (o->max_name && nname > o->max_name)
		nname = o->max_name;
	if (l->error || has(l, name, nname)) {
		l->ntext = name;
		return;
	}
	value = add_text(l, label->str.p, nvalue);
	if (l->error)
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
		l->at[i].key.p = l->text + (uintptr_t)l->at[i].key.p;
		l->at[i].str.p = l->text + (uintptr_t)l->at[i].str.p;
	}
	if (l->n)
		qsort(l->at, l->n, sizeof(*l->at), compare);
	if (o->max_labels && l->n > o->max_labels)
		drop(l, o);
}
