/* SPDX-License-Identifier: Apache-2.0 */
/* A window of sink.parquet as a profile: the samples that a selector may take. */
#ifndef QUERY_PARQUET_SAMPLES_H
#define QUERY_PARQUET_SAMPLES_H

#include "profile/builder.h"
#include "query/store.h"

/* A file of samples, and that of their stacks. */
struct parquet_window {
	int samples, stacks; /* folders */
	const char *path;    /* in both */
	uint64_t bytes;      /* that were read */
	bool in_range;       /* of time */
	const char *failed;  /* "samples" or "stacks": of which file an error is */
	const char *why;     /* a static sentence, or "" */
};

/* 1: *ret is the profile, to be freed with builder_free(*b). 0: nothing can be selected. -ENOENT: a
 * file is removed; -EINVAL, -EFBIG: see `why`; -errno. */
int parquet_samples_read(struct parquet_window *, const struct store_request *, struct builder **b,
			 const struct fusee_profile **ret);
#endif
