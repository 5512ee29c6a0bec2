/* SPDX-License-Identifier: Apache-2.0 */
/* The windows whose samples a file of sink.parquet has: one, or those that were merged into it, as
 * its metadata lists them. Windows with the same time, length, kind and period count as one. */
#ifndef PARQUET_MERGED_H
#define PARQUET_MERGED_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/parquet_read.h>

#define PARQUET_NO_WINDOW UINT32_MAX

struct parquet_part {
	int64_t ts, duration, period; /* ts: microseconds */
	struct fusee_str kind;
	bool selected;
	uint32_t nfiles, nexcluded; /* files that were merged into it, excluded files */
};

/* A loss of a part: a pair of the metadata whose key has "lost.ring full" from `at` on. */
struct parquet_part_loss {
	uint32_t part, pair, at;
};

struct parquet_merged {
	struct parquet_part *parts;       /* about in order of time */
	uint32_t n, last;                 /* last: the part that was found last */
	struct parquet_part_loss *losses; /* in order of their parts */
	uint32_t nlosses;
	size_t cap, losses_cap;
};

/* Tells by their names which files are excluded. */
struct parquet_excluded {
	bool (*has)(void *arg, struct fusee_str name);
	void *arg;
};

/* 1: the file is a merged one; 0: it has one window, which is not in its metadata; -EINVAL: *why.
 * Texts are borrowed from the file. excluded: NULL: none. */
int parquet_merged_read(struct parquet_merged *, const struct fusee_parquet_file *,
			const struct parquet_excluded *, const char **why);
/* Adds a part. -ENOMEM. */
int parquet_merged_add(struct parquet_merged *, const struct parquet_part *);
/* The part that a sample is of, or PARQUET_NO_WINDOW. */
uint32_t parquet_merged_find(struct parquet_merged *, const struct parquet_part *);
/* Sets `selected` of parts that begin in the range (ns) and are not excluded. 1: some are selected;
 * 0: none; -EINVAL: only some of a part's files are excluded. */
int parquet_merged_choose(struct parquet_merged *, uint64_t from_ns, uint64_t to_ns, bool *in_range,
			  const char **why);
/* Whether a selected part begins within these microseconds. */
bool parquet_merged_selects(const struct parquet_merged *, int64_t min, int64_t max);
void parquet_merged_fini(struct parquet_merged *);
#endif
