/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERIES_INTERNAL_H
#define SERIES_INTERNAL_H

#include <stdbool.h>

#include <fusee/bytes.h>
#include <fusee/series.h>

/* The labels of one series. Zeroed is empty; names and values are in `text`. */
struct labels {
	struct fusee_label *at; /* sorted by name */
	uint32_t n, dropped;
	uint64_t cap;
	struct fusee_bytes text; /* its error is that of the labels */
};

/* ---- labels.c ---- */

void labels_begin(struct labels *);
/* Adds a label unless it has no text or there is one of this name. */
void labels_add(struct labels *, const struct fusee_series_options *, const struct fusee_label *);
/* Sorts them and applies max_labels. */
void labels_end(struct labels *, const struct fusee_series_options *);
void labels_fini(struct labels *);
/* Whether the name becomes `key`. */
bool labels_is(struct fusee_str key, struct fusee_str name);

/* ---- sets.c ---- */

/* Distinct sets of labels, with numbers from 0. Zeroed is empty. */
struct sets {
	struct labels *at; /* owned */
	uint64_t *hashes;
	uint32_t n, cap;
	uint32_t *slots; /* number + 1 of a set; 0: empty */
	uint32_t nslots; /* a power of 2 */
};

/* The number of the set that equals `labels`, which is copied if it is new. -ENOMEM. */
int64_t sets_put(struct sets *, const struct labels *);
void sets_fini(struct sets *);
#endif
