/* SPDX-License-Identifier: Apache-2.0 */
#include "store/internal/label_sets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define MAX_LABELS 64

static char excluded, not_excluded; /* values of `known` */

void label_sets_init(struct label_sets *s, struct selector *selector)
{
	*s = (struct label_sets){.selector = selector};
}

void label_sets_fini(struct label_sets *s)
{
	hashmap_fini(&s->known);
}

/* The hash has 32 bits: the target's text tells most sets of equal hashes apart. */
static uint64_t key_of(const struct file_name *f)
{
	const struct fusee_label target = {.key = f->target};

	return (uint64_t)file_name_hash(&target, 1) << 32 | f->hash;
}

bool label_sets_excludes(const struct label_sets *s, const struct file_name *f)
{
	return hashmap_get(&s->known, key_of(f)) == &excluded;
}

static bool has(const struct fusee_profile *p, const struct fusee_sample *s,
		const struct fusee_label *l)
{
	for (uint32_t i = 0; i < s->nlabels; i++) {
		const struct fusee_label *own = FUSEE_AT(struct fusee_label, p->labels,
							 s->first_label + i);

		if (str_equal(own->key, l->key))
			return own->str.p && str_equal(own->str, l->str);
	}
	return false;
}

/* Writes the labels with texts that all samples have. Returns their number. */
static uint32_t common(const struct fusee_profile *p, struct fusee_label labels[MAX_LABELS])
{
	const struct fusee_sample *first = FUSEE_AT(struct fusee_sample, p->samples, 0);
	uint32_t n = 0;

	for (uint32_t i = 0; p->samples.n && i < first->nlabels && i < MAX_LABELS; i++) {
		labels[n] = *FUSEE_AT(struct fusee_label, p->labels, first->first_label + i);
		n += labels[n].str.p != NULL;
	}
	for (uint32_t i = 1; n && i < p->samples.n; i++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);
		uint32_t kept = 0;

		for (uint32_t k = 0; k < n; k++)
			if (has(p, s, &labels[k]))
				labels[kept++] = labels[k];
		n = kept;
	}
	return n;
}

static int by_key(const void *a, const void *b)
{
	const struct fusee_str *x = &((const struct fusee_label *)a)->key,
			       *y = &((const struct fusee_label *)b)->key;
	int order = memcmp(x->p, y->p, x->len < y->len ? x->len : y->len);

	return order ? order : (x->len > y->len) - (x->len < y->len);
}

static uint32_t without(const struct fusee_label *labels, uint32_t n, bool process, bool thread,
			struct fusee_label to[MAX_LABELS])
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if ((!process || !fusee_text_is(labels[i].key, "process")) &&
		    (!thread || !fusee_text_is(labels[i].key, "thread")))
			to[kept++] = labels[i];
	return kept;
}

int label_sets_learn(struct label_sets *s, const struct file_name *f, const struct fusee_profile *p)
{
	struct fusee_label labels[MAX_LABELS], set[MAX_LABELS];
	uint32_t n;
	int r;

	if (hashmap_get(&s->known, key_of(f)) || !p->samples.n)
		return 0;
	n = common(p, labels);
	qsort(labels, n, sizeof(*labels), by_key);
	/* The agent also adds "process" and "thread" to samples: all samples may have the same
	 * value by chance, and a sample's value may differ from the set's. */
	for (int tries = 0; tries < 4; tries++) {
		uint32_t size = without(labels, n, tries & 1, tries & 2, set);

		if (!size || file_name_hash(set, size) != f->hash)
			continue;
		size = without(set, size, true, true, set);
		r = selector_may_match(s->selector, set, size);
		if (r < 0)
			return r == -EAGAIN ? 0 : r; /* the filter reports it */
		return hashmap_put(&s->known, key_of(f), r ? &not_excluded : &excluded);
	}
	return 0;
}
