/* SPDX-License-Identifier: Apache-2.0 */
/* Access to the files of sink.parquet, in a folder (files_folder.h) or a bucket (files_bucket.h).
 * For one thread. */
#ifndef PARQUET_FILES_H
#define PARQUET_FILES_H

#include <fusee/parquet_read.h>

#include "parquet/internal/list.h"

enum files_table { FILES_SAMPLES, FILES_STACKS };

struct files;

struct files_ops {
	/* Adds the files of samples, at least those of windows that begin in the range. */
	int (*list)(struct files *, struct parquet_list *, uint64_t from_ns, uint64_t to_ns);
	/* Opens a file for reading: read, arg, size and far are set. -ENOENT: there is none;
	 * -EINVAL: *why. shut() closes it. */
	int (*open)(struct files *, enum files_table, const char *path,
		    struct fusee_parquet_input *, const char **why);
	void (*shut)(struct files *, struct fusee_parquet_input *);
	bool (*has)(struct files *, const char *path); /* samples */
	void (*close)(struct files *);
	const char *lacks; /* store_lacks() */
};

/* The first member of an implementation's own struct. */
struct files {
	const struct files_ops *ops;
	char *failure; /* owned; why nothing can be read any more, a sentence; or NULL */
	uint64_t fetched, requests; /* of a bucket: bytes; requests without repetitions */
	/* Called after each request, and while names are listed; NULL: not. */
	void (*progress)(void *arg);
	void *arg;
};
#endif
