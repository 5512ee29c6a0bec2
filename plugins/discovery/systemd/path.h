/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds systemd's units in the path of a control group, by the rules of systemd's
 * cg_path_get_unit() (src/basic/cgroup-util.c): slices nest; the first component after them with a
 * unit's name is the unit; below user@UID.service are units of the user's manager.
 */
#ifndef SYSTEMD_PATH_H
#define SYSTEMD_PATH_H

#include <stdbool.h>
#include <stddef.h>

#define UNIT_NAME 256u /* bytes of a unit's name with its NUL: systemd's UNIT_NAME_MAX */

/* Unknown texts are empty. */
struct unit_path {
	char unit[UNIT_NAME];      /* of the system's manager: "ssh.service", "user@1000.service" */
	char slice[UNIT_NAME];     /* the innermost slice above the unit */
	char user_unit[UNIT_NAME]; /* of a user's manager */
	char machine[UNIT_NAME];   /* of systemd-machined or systemd-nspawn */
	size_t len; /* of the part of the path that is the unit's own control group */
};

/* false: the path has no unit, or is not systemd's. */
bool unit_path_parse(const char *cgroup, struct unit_path *);
/* "service" of "ssh.service". NULL: not the name of a unit with a control group. */
const char *unit_type(const char *unit);
/* Finds the path in systemd's hierarchy in the text of /proc/PID/cgroup: that of name=systemd
 * unless it is the root, else that of v2. Writes size bytes at most. false: there is none. */
bool unit_path_of_process(const char *text, char *out, size_t size);
#endif
