/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files have an allocator: each is searched once, by a child process, a few at the same time.
 * Nothing here waits for a file. For the thread of the profiler.
 */
#ifndef PROFILER_ALLOCATOR_SEARCH_H
#define PROFILER_ALLOCATOR_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "files/files.h"
#include "symbols/probe_points.h"

struct allocator_search;

/* The functions that are looked for; borrowed. 0 or -ENOMEM. */
int allocator_search_new(struct allocator_search **ret, const struct probe_function *, uint32_t n);
/* Ends the searches, for which it may wait a moment; NULL is fine. */
void allocator_search_free(struct allocator_search *);
/* 0: *points are those of the file's allocator, none if it has none; valid until the next call. Or
 * -EINPROGRESS: it is not known yet, ask again; or -errno: it will not be. */
int allocator_search_file(struct allocator_search *, struct file *, const struct probe_points **);
/* Takes the results of searches that have ended. true: there were some. */
bool allocator_search_poll(struct allocator_search *);
/* Searches that have not ended. */
uint32_t allocator_search_running(const struct allocator_search *);
/* Files that have an allocator, so far. */
uint32_t allocator_search_found(const struct allocator_search *);
/* Calls each() for files that were requested for a while ago, or could not be read, and of which it
 * is not known whether they have an allocator; a few of them. Returns how many there are. */
uint32_t allocator_search_unknown(const struct allocator_search *,
				  void (*each)(void *arg, const char *path, const char *why),
				  void *arg);
#endif
