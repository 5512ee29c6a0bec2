/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the samples of a window that a query takes, and one of their values. */
#ifndef QUERY_FILTER_H
#define QUERY_FILTER_H

#include <stdbool.h>

#include "base/buf.h"
#include "query/functions.h"
#include "query/selector.h"

struct filter {
	struct selector *selector;
	struct functions *functions; /* only samples with such a function; NULL: all */
	/* a further condition, for callers that have other filters; NULL: none */
	bool (*also)(void *arg, const struct fusee_profile *, const struct fusee_sample *);
	void *also_arg;
	uint32_t type;    /* index of the value type, in all windows */
	uint32_t count;   /* of the type samples/count, if `counts` */
	bool counts;      /* the windows have that type */
	uint32_t ntypes;  /* of all windows */
	struct buf types; /* of all windows, "samples/count, cpu/nanoseconds" */
	char *first;      /* the window that has set types */
	int error;        /* of a sample: see selector_matches() */
};

/* Looks at the types of a window. 1: it has the selected one; 0: it lacks the type that the
 * selector names, or has no sample that is taken; -EINVAL: its types differ from those of earlier
 * windows; -EAGAIN: see selector_matches(), both with a sentence in *error; -ENOMEM. */
int filter_begin(struct filter *, const struct fusee_profile *, const char *name,
		 struct buf *error);
/* Whether a sample of that window is taken. After an error: false, and `error` is set. As `keep` of
 * struct merge_choice. */
bool filter_takes(void *filter, const struct fusee_profile *, const struct fusee_sample *);
/* How many of the sampler's samples the window's i-th sample represents; 1 if the window has no
 * type samples/count. */
int64_t filter_samples(const struct filter *, const struct fusee_profile *, uint32_t i);
/* The sentence about filter.error. */
const char *filter_error(const struct filter *);
void filter_fini(struct filter *); /* except borrowed objects */
#endif
