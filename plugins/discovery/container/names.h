/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The containers of all daemons as targets. A container is matched by its ID, which the cgroup
 * discovery finds in the paths of control groups, or by its control group where the ID is not in
 * the path's form. On the control thread.
 */
#ifndef CONTAINER_NAMES_H
#define CONTAINER_NAMES_H

#include "facts.h"

#define NAMES_MAX 20000u /* containers of all daemons; more are ignored */
/* What has ended keeps its labels for this time: its last samples are still to come. */
#define NAMES_KEEP (30 * FUSEE_SECOND)

struct names;

/* All is borrowed until names_close(). NULL: no memory. */
struct names *names_open(const struct fusee_self *, struct chosen_list);
void names_close(struct names *); /* NULL is valid */

/* Where a container is known from. */
struct names_source {
	uint32_t daemon;     /* its number */
	uint32_t list;       /* of names_begin_list() */
	const char *runtime; /* "docker" ..; "": not known */
};

/* The container exists, and is so now. 0, -ENOMEM or what host->discovery->put() returned. */
int names_put(struct names *, const struct names_source *, const struct container *);
void names_end(struct names *, uint32_t daemon, const char *space, const char *id, uint64_t now_ns);
/* The daemon lists all containers: names_put() for each, then names_end_list(), which ends those of
 * earlier lists that are in it no more. Returns the list's number. */
uint32_t names_begin_list(struct names *);
void names_end_list(struct names *, uint32_t daemon, uint32_t list, uint64_t now_ns);

/* An image's name that was found by its ID, for a container that has been put. -ENOMEM. */
int names_set_image(struct names *, uint32_t daemon, const char *space, const char *id,
		    const char *image);
/* NULL: names_set_image() was not called for it. */
const char *names_image(struct names *, uint32_t daemon, const char *space, const char *id);

/* Removes the targets of what has ended NAMES_KEEP ago. Returns when there is more to do
 * (CLOCK_MONOTONIC ns), UINT64_MAX: nothing. */
uint64_t names_sweep(struct names *, uint64_t now_ns);
uint32_t names_count(const struct names *);
#endif
