/* SPDX-License-Identifier: Apache-2.0 */
/* The labels that the samples of many windows have, and their values. */
#ifndef QUERY_LABEL_LIST_H
#define QUERY_LABEL_LIST_H

#include "query/internal/filter.h"
#include "query/internal/tally.h"

#define LABEL_LIST_MAX_BYTES (256ull << 20)

struct label_list {
	struct filter filter;
	struct tally keys;   /* the value of the samples that have the label */
	struct tally values; /* the same by key, a NUL and the value */
	struct buf text;
	uint64_t stacks; /* taken; with their labels, per window */
	int64_t samples; /* of all of them: filter_samples() */
	int64_t total;
};

int label_list_init(struct label_list *); /* 0 or -ENOMEM */
void label_list_fini(struct label_list *);
/* As merged_add(). */
int label_list_add(struct label_list *, const struct fusee_profile *, const char *name,
		   struct buf *error);

#define LABEL_LIST_NEAR 64u
/* The label that is nearest to a word, by base/guess.h, or with `key` its nearest value. 1; 0: none
 * is near; -EEXIST: the word is such a label or value itself. */
int label_list_nearest(const struct label_list *, const char *key, const char *word,
		       char near[LABEL_LIST_NEAR]);
#endif
