/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds profiles of many windows, and hands over those of a range of time. What a store can
 * leave unread is its implementation's matter: the caller selects the samples in any case. For one
 * thread. place.h opens stores.
 */
#ifndef QUERY_STORE_H
#define QUERY_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/profile.h>

#include "query/functions.h"
#include "query/selector.h"

struct store;

/* Windows that begin at from_ns <= t < to_ns, CLOCK_REALTIME. */
struct store_request {
	uint64_t from_ns, to_ns;
	struct selector *selector; /* windows without a sample that meets it may be omitted */
	/* Samples may have the empty stack: nothing looks at theirs. With `functions`: samples
	 * whose stacks have none of these may be omitted, and the others may have any stack that
	 * has one of them. */
	bool no_stacks;
	struct functions *functions;
	/* Samples may have no labels but these and those of the selector (also of "pid" and "tid"),
	 * and those that are then equal may be one; those that do not meet the selector may be
	 * omitted. NULL: all labels are needed. */
	const struct fusee_str *keys;
	uint32_t nkeys;
};

/* Called from store_read(). `name`: what holds the window, for messages. */
struct store_reader {
	/* A window, about in order of time; the profile is valid until it returns. Other than 0
	 * ends store_read(). */
	int (*window)(void *arg, const struct fusee_profile *, const char *name);
	/* What cannot be read, and why, in a sentence. Reading goes on. */
	void (*broken)(void *arg, const char *name, const char *why);
	/* Of files; often. all: 0: they are being listed, `done` so far. */
	void (*progress)(void *arg, uint64_t done, uint64_t all);
	void *arg;
};

struct store_counts {
	uint64_t files;    /* that there are */
	uint64_t skipped;  /* unread: no window in the range, or no sample that is selected */
	uint64_t excluded; /* of those skipped, by their labels */
	uint64_t read, bytes;
	uint64_t added;   /* stacks that were added to equal stacks before window() got them */
	uint64_t broken;  /* broken() was called */
	uint64_t removed; /* since they were listed, as by the agent */
	/* of a bucket: requests and bytes; days that were not listed, out of the range */
	uint64_t requests, fetched, omitted;
};

void store_close(struct store *); /* NULL is fine */
/* What is not in a store without files: "no file ends with .pprof". */
const char *store_lacks(const struct store *);
/* Why the store cannot be read any more, in a sentence; NULL: it can. */
const char *store_failure(const struct store *);
/* Adds to *counts. 0, what window() returned, or -errno. */
int store_read(struct store *, const struct store_request *, const struct store_reader *,
	       struct store_counts *);

/* ---- for implementations ---- */

struct store_ops {
	int (*read)(struct store *, const struct store_request *, const struct store_reader *,
		    struct store_counts *);
	void (*close)(struct store *);
	const char *(*failure)(const struct store *); /* NULL: it has none */
	const char *lacks;
};

/* The first member of an implementation's own struct. */
struct store {
	const struct store_ops *ops;
};
#endif
