/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store holds the profiles of many windows and reads those of a range of time. An implementation
 * may leave unread what the request does not need; the caller selects the samples in any case. For
 * one thread. place.h opens stores.
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
	/* The caller reads no stacks, so all may be empty. With `functions`: samples without such a
	 * function may be omitted, and the others may have any stack with such a function. */
	bool no_stacks;
	struct functions *functions;
	/* The only labels that the caller needs besides those of the selector, "pid" and "tid"
	 * included: the store may drop others, add up samples that are then equal, and omit samples
	 * that do not meet the selector. NULL: all labels are needed. */
	const struct fusee_str *keys;
	uint32_t nkeys;
};

/* Called from store_read(). `name`: what holds the window, for messages. */
struct store_reader {
	/* A window, about in order of time; the profile is valid until it returns. Other than 0
	 * ends store_read(). */
	int (*window)(void *arg, const struct fusee_profile *, const char *name);
	/* Called for what cannot be read; `why` is a sentence. Reading continues. */
	void (*broken)(void *arg, const char *name, const char *why);
	/* Called often, with numbers of files. all 0: files are being listed, `done` so far. */
	void (*progress)(void *arg, uint64_t done, uint64_t all);
	void *arg;
};

struct store_counts {
	uint64_t files;    /* of the store */
	uint64_t skipped;  /* unread: no window in the range, or no sample that is selected */
	uint64_t excluded; /* of the skipped: because of their labels */
	uint64_t read, bytes;
	uint64_t added;   /* stacks that were added to equal stacks before window() got them */
	uint64_t broken;  /* broken() was called */
	uint64_t removed; /* by others, such as the agent, since they were listed */
	/* of a bucket: requests; bytes; days not listed because they are out of the range */
	uint64_t requests, fetched, omitted;
};

void store_close(struct store *); /* NULL is fine */
/* Why a store has no files: "no file ends with .pprof". */
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
