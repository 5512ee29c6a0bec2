/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The containers of all daemons as targets. A container is matched by its ID, which the cgroup
 * discovery finds in the paths of control groups, or by its control group if the ID does not have
 * the form of paths. On the control thread.
 */
#ifndef CONTAINER_NAMES_H
#define CONTAINER_NAMES_H

#include "facts.h"

#define NAMES_MAX 20000u /* containers of all daemons; more are ignored */
/* Ended containers keep their labels for this time, for samples that arrive late. */
#define NAMES_KEEP (30 * FUSEE_SECOND)

struct names;

/* All is borrowed until container_names_close(). NULL: no memory. */
struct names *container_names_open(const struct fusee_self *, struct chosen_list);
void container_names_close(struct names *); /* NULL is valid */

/* The origin of a container. */
struct names_source {
	uint32_t daemon;     /* its number */
	uint32_t list;       /* of names_begin_list() */
	const char *runtime; /* "docker" ..; "": not known */
};

/* Adds or updates a container. 0, -ENOMEM or what host->discovery->put() returned. */
int names_put(struct names *, const struct names_source *, const struct container *);
void names_end(struct names *, uint32_t daemon, const char *space, const char *id, uint64_t now_ns);
/* The daemon lists all containers: names_put() for each, then names_end_list(), which ends
 * containers of earlier lists that this list lacks. Returns the list's number. */
uint32_t names_begin_list(struct names *);
void names_end_list(struct names *, uint32_t daemon, uint32_t list, uint64_t now_ns);

/* An image's name that was found by its ID, for a container that has been put. -ENOMEM. */
int names_set_image(struct names *, uint32_t daemon, const char *space, const char *id,
		    const char *image);
/* NULL: names_set_image() was not called for it. */
const char *names_image(struct names *, uint32_t daemon, const char *space, const char *id);

/* Removes the targets of containers that ended NAMES_KEEP ago. Returns when to call it next
 * (CLOCK_MONOTONIC ns); UINT64_MAX: never. */
uint64_t names_sweep(struct names *, uint64_t now_ns);
uint32_t names_count(const struct names *);
#endif
