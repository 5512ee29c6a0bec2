/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of profile files, such as 2026-11-21T08-15-00Z-nginx-1a2b3c4d-0123456789abcdef.pb.gz: the
 * start of the window in UTC, the target, a hash of its labels and the profile's id. Names in
 * alphabetical order are in order of time.
 */
#ifndef PPROF_NAME_H
#define PPROF_NAME_H

#include <fusee/folder.h>

#define NAME_SIZE 160 /* bytes of the longest name with its NUL, also of an unfinished file */
#define NAME_PREFIX "."
#define NAME_SUFFIX ".part"

/* The name of a profile's file. */
void name_make(char name[NAME_SIZE], const struct fusee_profile *);
/* The name that file has until it is complete. */
void name_make_unfinished(char part[NAME_SIZE], const char *name);
/* Has `name` the form of name_make()? *ns, unless NULL: the start of the window, CLOCK_REALTIME. */
bool name_is_ours(const char *name, uint64_t *ns);
/* Has `name` the form of name_make_unfinished()? */
bool name_is_unfinished(const char *name);
#endif
