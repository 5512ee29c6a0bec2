/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of many windows as one profile. */
#ifndef QUERY_MERGED_H
#define QUERY_MERGED_H

#include "profile/merge.h"
#include "query/internal/filter.h"

#define MERGED_MAX_BYTES (512ull << 20) /* of the profile while it grows */

struct merged {
	struct builder *builder; /* NULL: no window yet */
	struct filter filter;
	struct merge_choice choice; /* keep and arg are set by merged_add() */
	uint64_t windows, stacks;   /* added; stacks with their labels, per window */
	int64_t samples;            /* of all of them, after merged_finish(): filter_samples() */
	uint64_t max_bytes;
};

/* Adds what the selection takes of a window. 0; -EINVAL, -EFBIG, -EAGAIN with a sentence in *error;
 * -ENOMEM. */
int merged_add(struct merged *, const struct fusee_profile *, const char *name, struct buf *error);
/* *ret is valid until merged_fini(); NULL: no sample was taken. 0 or -errno. */
int merged_finish(struct merged *, const struct fusee_profile **ret);
void merged_fini(struct merged *);
#endif
