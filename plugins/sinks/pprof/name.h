/* SPDX-License-Identifier: Apache-2.0 */
/* What files are called: 2026-11-21T08-15-00Z-nginx-1a2b3c4d-0123456789abcdef.pb.gz: when the
 * window began, the target, a hash of its labels, the profile's id. A plain sort is one by time. */
#ifndef PPROF_NAME_H
#define PPROF_NAME_H

#include <stdbool.h>

#include <fusee/profile.h>

#define NAME_SIZE 160 /* of any of ours, with its NUL, also while it is written */
#define NAME_PREFIX "."
#define NAME_SUFFIX ".part"

void name_make(char name[NAME_SIZE], const struct fusee_profile *);
void name_unfinished(char part[NAME_SIZE], const char *name);
/* Is it one that name_make() may have made? *ns, unless NULL: CLOCK_REALTIME of its window. */
bool name_is_ours(const char *name, uint64_t *ns);
/* ... one that was being written? */
bool name_is_unfinished(const char *name);
#endif
