/* SPDX-License-Identifier: Apache-2.0 */
/* Merges profiles, or parts of them. */
#ifndef PROFILE_MERGE_H
#define PROFILE_MERGE_H

#include <stdbool.h>

#include "profile/builder.h"

/* Selects the samples of a profile that are added, and the labels that they keep; {0}: all. pid and
 * tid are labels too. */
struct merge_choice {
	/* NULL: all samples */
	bool (*keep)(void *arg, const struct fusee_profile *, const struct fusee_sample *);
	void *arg;
	bool only_labels; /* samples lose all labels but these; equal samples are added up */
	const struct fusee_str *labels;
	uint32_t nlabels;
	/* to_ns 0: all. Else only what has times from_ns <= t < to_ns: a sample with some of its
	 * times there has that part of its values. */
	uint64_t from_ns, to_ns;
};

/* An empty builder gets the types and the period of a profile. 0 or -ENOMEM. */
int merge_begin(struct builder *, const struct fusee_profile *);
/* Adds a profile that has the types of the first, by `choice` (NULL: all of it). Only what the
 * samples need of the tables is added. Durations are added up, the start is the earliest; a profile
 * of which no sample is kept adds nothing. *nkept, unless NULL: the samples that were kept. 0 or
 * -errno. */
int merge_add(struct builder *, const struct fusee_profile *, const struct merge_choice *choice,
	      uint32_t *nkept);
/* Adds n profiles, at least 1, to an empty builder. 0; -ENOMEM; -EINVAL: profile *odd has other
 * types. */
int merge_profiles(struct builder *b, const struct fusee_profile *const *profiles, uint32_t n,
		   uint32_t *odd);
#endif
