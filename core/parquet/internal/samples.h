/* SPDX-License-Identifier: Apache-2.0 */
/* Reads windows of sink.parquet as profiles, with the samples that a selector may select. */
#ifndef PARQUET_SAMPLES_H
#define PARQUET_SAMPLES_H

#include "profile/builder.h"
#include "parquet/internal/files.h"
#include "parquet/internal/merged.h"
#include "query/store.h"

/* A file of samples, and that of their stacks. */
struct parquet_window {
	struct files *files;
	const char *path;                        /* of both tables */
	uint64_t bytes;                          /* that were read */
	const struct parquet_excluded *excluded; /* of those that were merged; NULL: none */
	bool in_range;                           /* of time */
	uint64_t nwindows, nsamples;             /* that were handed over */
	uint64_t nadded;    /* rows that were added to samples which had one already */
	int stopped;        /* what each() returned */
	const char *failed; /* "samples" or "stacks": the file that the error is about */
	const char *why;    /* a static sentence, or "" */
};

/* Calls each() for each window of the file that has samples; other than 0 ends it. 1; 0: nothing
 * can be selected. -ENOENT: a file is removed; -EINVAL, -EFBIG: see `why`; -errno; `stopped`. */
int parquet_samples_read(struct parquet_window *, const struct store_request *,
			 int (*each)(void *arg, const struct fusee_profile *), void *arg);
#endif
