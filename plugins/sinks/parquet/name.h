/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of files, such as 2026-11-21T08-15-00Z-myhost-0123456789abcdef.parquet: the start of the
 * window in UTC, the host and the profile's id. The folder of a file follows from its name. Names
 * in alphabetical order are in order of time.
 */
#ifndef PARQUET_NAME_H
#define PARQUET_NAME_H

#include <stdbool.h>

#include <fusee/helpers.h>

#define NAME_SIZE 128     /* bytes of the longest name with its NUL */
#define PARTITION_SIZE 16 /* of "date=2026-11-21" and of "hour=08" */

struct partition {
	char date[PARTITION_SIZE], hour[PARTITION_SIZE];
};

/* The name of a profile's files. */
void name_make(char name[NAME_SIZE], const struct fusee_profile *);
/* Has `name` the form of name_make()? *ns, unless NULL: the start of the window, CLOCK_REALTIME. */
bool name_is_ours(const char *name, uint64_t *ns);
/* The folders of a file whose name is_ours(). */
void name_partition(const char *name, struct partition *);
/* Are these names of such folders? */
bool name_is_date(const char *);
bool name_is_hour(const char *);
#endif
