// SPDX-License-Identifier: Apache-2.0
#include "relabel/relabeler.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/metrics.h"
#include "target/labelset.h"

#define ROUNDS 2u /* after which an entry without a request is removed */

/* A result of rules; equal results are stored once. */
struct result {
	struct relabeled *relabeled;
	uint64_t key; /* in the map */
	uint32_t id, refs;
};

/* Labels that rules were applied to, which are compared in full: they come from other users'
 * processes, which can choose equal hashes. */
struct entry {
	struct result *result;
	uint32_t round, n;
	struct fusee_label labels[]; /* n; their texts follow */
};

struct relabeler {
	const struct relabel_rules *lists[2];
	struct hashmap entries, results; /* by hash, or by the next number that is free */
	uint32_t last_id, round;
};

/* ---- results ---- */

static void unref(struct relabeler *r, struct result *o)
{
	if (--o->refs)
		return;
	hashmap_del(&r->results, o->key);
	free(o->relabeled);
	free(o);
}

/* Takes the result over, or frees it and returns an equal result. NULL: no memory. */
static struct result *intern(struct relabeler *r, struct relabeled *made)
{
	uint64_t key = labels_hash(made->labels, made->n);
	struct result *o;

	while ((o = hashmap_get(&r->results, key)) &&
	       !(o->relabeled->fate == made->fate && o->relabeled->list == made->list &&
		 o->relabeled->rule == made->rule &&
		 labels_equal(o->relabeled->labels, o->relabeled->n, made->labels, made->n)))
		key++;
	if (o) {
		free(made);
		o->refs++;
		return o;
	}
	o = calloc(1, sizeof(*o));
	if (o) {
		*o = (struct result){made, key, r->last_id + 1, 1};
		if (!hashmap_put(&r->results, key, o)) {
			r->last_id++;
			return o;
		}
	}
	free(o);
	free(made);
	return NULL;
}

/* ---- entries ---- */

static struct entry *entry_new(const struct fusee_label *labels, uint32_t n)
{
	struct entry *e = calloc(1, sizeof(*e) + labels_size(labels, n));

	if (!e)
		return NULL;
	e->n = n;
	labels_copy(e->labels, labels, n);
	return e;
}

/* Applies the rules. NULL: no memory. */
static struct entry *add(struct relabeler *r, uint64_t key, const struct fusee_label *labels,
			 uint32_t n)
{
	struct entry *e = entry_new(labels, n);
	struct relabeled *made;

	if (!e)
		return NULL;
	if (!relabel_apply(r->lists, 2, labels, n, &made)) {
		if (made->lost)
			metric_add("relabel_labels_dropped_total",
				   "Total number of labels beyond the 64 that rules of relabeling "
				   "can make of a label set.",
				   NULL, made->lost);
		e->result = intern(r, made);
	}
	if (e->result && !hashmap_put(&r->entries, key, e))
		return e;
	if (e->result)
		unref(r, e->result);
	free(e);
	return NULL;
}

const struct relabeled *relabeler_get(struct relabeler *r, const struct fusee_label *labels,
				      uint32_t n, uint32_t *id)
{
	uint64_t key = labels_hash(labels, n);
	struct entry *e;

	while ((e = hashmap_get(&r->entries, key)) && !labels_equal(e->labels, e->n, labels, n))
		key++;
	if (!e)
		e = add(r, key, labels, n);
	if (!e)
		return NULL;
	e->round = r->round;
	*id = e->result->id;
	return e->result->relabeled;
}

/* ---- all of them ---- */

struct relabeler *relabeler_new(void)
{
	return calloc(1, sizeof(struct relabeler));
}

struct sweep {
	struct relabeler *r;
	struct hashmap kept;
	bool all;
};

/* Moves the entry to the new map if it is in use, else frees it. Without memory for the map it is
 * freed too, and created again on request. */
static void sweep_entry(void *arg, uint64_t key, void *value)
{
	struct sweep *s = arg;
	struct entry *e = value;

	if (!s->all && s->r->round - e->round < ROUNDS && !hashmap_put(&s->kept, key, e))
		return;
	unref(s->r, e->result);
	free(e);
}

static void sweep(struct relabeler *r, bool all)
{
	struct sweep s = {.r = r, .all = all};

	hashmap_each(&r->entries, sweep_entry, &s);
	hashmap_fini(&r->entries);
	r->entries = s.kept;
}

void relabeler_set_rules(struct relabeler *r, const struct relabel_rules *first,
			 const struct relabel_rules *second)
{
	sweep(r, true);
	r->lists[0] = first;
	r->lists[1] = second;
}

void relabeler_tidy(struct relabeler *r)
{
	r->round++;
	sweep(r, false);
}

void relabeler_free(struct relabeler *r)
{
	if (!r)
		return;
	sweep(r, true);
	hashmap_fini(&r->entries);
	hashmap_fini(&r->results);
	free(r);
}
