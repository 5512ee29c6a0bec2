/* SPDX-License-Identifier: Apache-2.0 */
/* Interned label sets. */
#include "target/labelset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/str.h"
#include "base/utf8.h"

struct labelset {
	struct labelset *next; /* of the same hash */
	uint64_t hash;
	uint32_t id, n, uid;
	uint32_t bytes;              /* of the user's budget */
	struct fusee_label labels[]; /* n; the texts follow */
};

bool labelset_name(struct fusee_str name)
{
	if (!name.len || name.len > LABELSET_NAME_MAX || !name.p)
		return false;
	for (uint64_t i = 0; i < name.len; i++) {
		char c = name.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
		      (i && c >= '0' && c <= '9')))
			return false;
	}
	return true;
}

int labelset_value(struct buf *out, struct fusee_str value)
{
	size_t from = out->len, len = value.len, end;

	/* utf8_clean() writes at least one byte for each byte, so the rest cannot fit. */
	if (len > LABELSET_VALUE_MAX + 4)
		len = LABELSET_VALUE_MAX + 4;
	if (len && utf8_clean(out, value.p, len))
		return -ENOMEM;
	if (out->len - from > LABELSET_VALUE_MAX) {
		for (end = from + LABELSET_VALUE_MAX; ((unsigned char)out->p[end] & 0xc0) == 0x80;)
			end--;
		out->len = end;
	}
	return out->error;
}

const struct fusee_label *labelset_find(const struct labelset_draft *d, struct fusee_str name)
{
	for (uint32_t i = 0; i < d->n; i++)
		if (str_equal(d->labels[i].key, name))
			return &d->labels[i];
	return NULL;
}

/* ---- arrays of labels ---- */

int label_by_name(const void *a, const void *b)
{
	const struct fusee_str *x = &((const struct fusee_label *)a)->key;
	const struct fusee_str *y = &((const struct fusee_label *)b)->key;
	int c = memcmp(x->p, y->p, x->len < y->len ? x->len : y->len);

	return c ? c : (x->len > y->len) - (x->len < y->len);
}

bool labels_equal(const struct fusee_label *a, uint32_t n, const struct fusee_label *b, uint32_t m)
{
	if (n != m)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!str_equal(a[i].key, b[i].key) || !str_equal(a[i].str, b[i].str))
			return false;
	return true;
}

uint64_t labels_hash(const struct fusee_label *labels, uint32_t n)
{
	uint64_t hash = n;

	for (uint32_t i = 0; i < n; i++) {
		hash = XXH3_64bits_withSeed(labels[i].key.p, labels[i].key.len, hash);
		hash = XXH3_64bits_withSeed(labels[i].str.p, labels[i].str.len, hash);
	}
	return hash;
}

size_t labels_size(const struct fusee_label *labels, uint32_t n)
{
	size_t size = n * sizeof(*labels);

	for (uint32_t i = 0; i < n; i++)
		size += labels[i].key.len + labels[i].str.len + 2;
	return size;
}

/* Copies a text, terminated, to *at and advances *at. */
static void copy_text(char **at, struct fusee_str *to, struct fusee_str from)
{
	*to = (struct fusee_str){*at, from.len};
	if (from.len)
		memcpy(*at, from.p, from.len);
	(*at)[from.len] = '\0';
	*at += from.len + 1;
}

void labels_copy(struct fusee_label *to, const struct fusee_label *labels, uint32_t n)
{
	char *at = (char *)&to[n];

	for (uint32_t i = 0; i < n; i++) {
		to[i] = (struct fusee_label){0};
		copy_text(&at, &to[i].key, labels[i].key);
		copy_text(&at, &to[i].str, labels[i].str);
	}
}

/* ---- sets ---- */

static struct labelset *copy(const struct labelset_draft *d)
{
	size_t size = sizeof(struct labelset) + labels_size(d->labels, d->n);
	struct labelset *s = calloc(1, size);

	if (!s)
		return NULL;
	s->n = d->n;
	s->bytes = (uint32_t)size;
	labels_copy(s->labels, d->labels, d->n);
	return s;
}

uint32_t labelsets_find(const struct labelsets *all, struct labelset_draft *d)
{
	const struct labelset *s;

	qsort(d->labels, d->n, sizeof(d->labels[0]), label_by_name);
	s = hashmap_get(&all->by_hash, labels_hash(d->labels, d->n));
	for (; s; s = s->next)
		if (labels_equal(s->labels, s->n, d->labels, d->n))
			return s->id;
	return 0;
}

static void free_set(struct labelsets *all, struct labelset *s)
{
	user_budget_add(all->budget, s->uid, -(int64_t)s->bytes);
	free(s);
}

/* Adds the set to the maps. false: no memory. */
static bool insert(struct labelsets *all, struct labelset *s)
{
	if (hashmap_put(&all->by_id, s->id, s))
		return false;
	if (!hashmap_put(&all->by_hash, s->hash, s))
		return true;
	hashmap_del(&all->by_id, s->id);
	return false;
}

uint32_t labelsets_intern(struct labelsets *all, struct labelset_draft *d, uint32_t uid)
{
	uint32_t id = labelsets_find(all, d);
	struct labelset *s;

	if (id || all->last == UINT32_MAX)
		return id;
	s = copy(d);
	if (!s)
		return 0;
	s->uid = uid;
	s->hash = labels_hash(d->labels, d->n);
	s->id = all->last + 1;
	s->next = hashmap_get(&all->by_hash, s->hash);
	if (user_budget_add(all->budget, uid, s->bytes)) {
		free(s);
		return 0;
	}
	if (!insert(all, s)) {
		free_set(all, s);
		return 0;
	}
	return all->last = s->id;
}

const struct fusee_label *labelsets_get(const struct labelsets *all, uint32_t id, uint32_t *n)
{
	const struct labelset *s = hashmap_get(&all->by_id, id);

	*n = s ? s->n : 0;
	return s ? s->labels : NULL;
}

struct sweep {
	bool (*used)(void *arg, uint32_t id);
	void *arg;
	struct labelsets *all;
	struct hashmap by_id, by_hash;
	bool failed;
};

static void keep_used(void *arg, uint64_t id, void *value)
{
	struct sweep *w = arg;
	struct labelset *s = value;

	if (w->failed || !w->used(w->arg, (uint32_t)id))
		return;
	w->failed = hashmap_put(&w->by_id, id, s) != 0;
}

static void chain_used(void *arg, uint64_t id, void *value)
{
	struct sweep *w = arg;
	struct labelset *s = value;

	(void)id;
	w->failed = w->failed || hashmap_put(&w->by_hash, s->hash, s);
}

static void free_unused(void *arg, uint64_t id, void *value)
{
	struct sweep *w = arg;

	if (!hashmap_get(&w->by_id, id))
		free_set(w->all, value);
}

static void relink(void *arg, uint64_t id, void *value)
{
	struct sweep *w = arg;
	struct labelset *s = value, *first = hashmap_get(&w->by_hash, s->hash);

	(void)id;
	if (first == s)
		return;
	s->next = first->next;
	first->next = s;
}

static void unlink_all(void *arg, uint64_t id, void *value)
{
	(void)arg;
	(void)id;
	((struct labelset *)value)->next = NULL;
}

/* Builds new maps of the sets in use. Without memory for them, nothing is freed. */
void labelsets_sweep(struct labelsets *all, bool (*used)(void *, uint32_t), void *arg)
{
	struct sweep w = {.used = used, .arg = arg, .all = all};

	hashmap_each(&all->by_id, keep_used, &w);
	hashmap_each(&w.by_id, chain_used, &w);
	if (w.failed) {
		hashmap_fini(&w.by_id);
		hashmap_fini(&w.by_hash);
		return;
	}
	hashmap_each(&all->by_id, free_unused, &w);
	hashmap_each(&w.by_id, unlink_all, NULL);
	hashmap_each(&w.by_id, relink, &w);
	hashmap_fini(&all->by_id);
	hashmap_fini(&all->by_hash);
	all->by_id = w.by_id;
	all->by_hash = w.by_hash;
}

void labelsets_fini(struct labelsets *all)
{
	hashmap_fini_free(&all->by_id);
	hashmap_fini(&all->by_hash);
	*all = (struct labelsets){0};
}
