/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a unit, pod or container as it was typed, and the labels and control groups that it
 * matches. */
#ifndef SELECTION_NAME_H
#define SELECTION_NAME_H

#include "selection/found.h"

#define NAME_MAX_NEAR 3u
#define NAME_TEXT 600u /* bytes of a name with its NUL */

struct name {
	enum name_kind kind;
	char text[NAME_TEXT]; /* of a unit: with its type, "nginx.service" */
	bool user;            /* of a unit: of a user's manager */
	/* Of a container: the pods of which it may be; npods 0: of any. Borrowed. */
	const struct name *pods;
	uint32_t npods;
};

/* "unit", "pod", "container" */
extern const char *const name_kinds[NAME_KINDS];

/* typed: "nginx", "getty@.service" (all instances), "session-3.scope", "user.slice"; "shop/web-1",
 * "web-1" or a pod's UID; "db". 0; -EINVAL: it is empty, or too long for any name. */
int name_init(struct name *, enum name_kind, const char *typed);

/* Whether these labels of a process, or the last component of its control group, match. */
bool name_matches(const struct name *, const char *cgroup, const struct fusee_label *, uint32_t n);
/* The control group that is the unit, pod or container, as the length of the part of a process's
 * path that names it: the shortest part whose labels match. 0: none does. */
size_t name_group(const struct name *, struct targets *, const char *cgroup);
/* The text that distinguishes it from others of the same name: "shop/web-1" of a pod, and of a
 * container in a pod; else its id, else its control group. */
void name_describe(const struct name *, const char *cgroup, const struct fusee_label *, uint32_t n,
		   char text[NAME_TEXT]);

/* Names that are near a name: start with {.name = name}, offer every candidate, then read near. */
struct name_near {
	const struct name *name;
	char near[NAME_MAX_NEAR][NAME_TEXT]; /* the nearest first */
	uint32_t scores[NAME_MAX_NEAR], n, offered;
	bool equal; /* a candidate is the name itself */
};
void name_offer(struct name_near *, const char *candidate);
#endif
