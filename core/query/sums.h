/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of samples by the values of labels, and by time: a window counts where it begins. */
#ifndef QUERY_SUMS_H
#define QUERY_SUMS_H

#include <stdint.h>

#include "base/buf.h"
#include "query/internal/filter.h"
#include "query/internal/tally.h"

#define SUMS_MAX_KEYS 8
#define SUMS_MAX_BYTES (256ull << 20)

/* All samples with the same values of the keys. */
struct sums_group {
	int64_t total;
	struct fusee_str values; /* one text a key, each with its NUL; "": the label is absent */
};

/* A window's sum of a group; after sums_finish() that of a step. */
struct sums_point {
	uint32_t group, pad;
	uint64_t start_ns;
	int64_t value;
};

struct sums {
	struct fusee_str keys[SUMS_MAX_KEYS];
	uint32_t nkeys;
	uint64_t step_ns; /* set before sums_add(), points begin at its multiples; 0: at windows */
	struct filter filter;
	uint64_t windows, first_ns, last_ns; /* begins of windows */
	uint64_t stacks;                     /* taken; with their labels, per window */
	int64_t samples;                     /* of all of them: filter_samples() */
	int64_t total;
	char type[64], unit[64]; /* "cpu", "nanoseconds" */
	/* after sums_finish(): groups, the largest first, and their points by group and time */
	struct sums_group *groups;
	struct sums_point *points;
	uint32_t ngroups, npoints;
	/* private: groups and points while they grow */
	struct tally by_group, by_point;
	struct buf key;
};

/* by: the keys of the groups, "a,b", borrowed. NULL: none. 0; -EINVAL: a sentence is in *error;
 * -ENOMEM. */
int sums_init(struct sums *, const char *by, struct buf *error);
void sums_fini(struct sums *);
/* As merged_add(). */
int sums_add(struct sums *, const struct fusee_profile *, const char *name, struct buf *error);
/* Adds up the points of each step that begins at a multiple of step_ns. 0 or -ENOMEM. */
int sums_finish(struct sums *, uint64_t step_ns);
/* A step with which the windows become at most 60 points. */
uint64_t sums_step(const struct sums *);
#endif
