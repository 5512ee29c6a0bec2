/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of files, such as 2026-11-21T08-15-00Z-myhost-0123456789abcdef.parquet: the start of the
 * window in UTC, the host and the profile's id. The folder of a file follows from its name. Names
 * in alphabetical order are in order of time.
 *
 * A merged file is 2026-11-21T08-00-00Z-T08-59-50Z-0123456789abcdef.merged.parquet: the starts of
 * its first and its last window, both of one hour, and a hash of all their names.
 */
#ifndef PARQUET_NAME_H
#define PARQUET_NAME_H

#include <fusee/folder.h>

#define NAME_SIZE 128     /* bytes of the longest name with its NUL */
#define PARTITION_SIZE 16 /* of "date=2026-11-21" and of "hour=08" */

struct partition {
	char date[PARTITION_SIZE], hour[PARTITION_SIZE];
};

/* The name of a profile's files. */
void name_make(char name[NAME_SIZE], const struct fusee_profile *);
/* The name of a merged file of these windows, whose hash this is. */
void name_merged(char name[NAME_SIZE], const char *first, const char *last, uint64_t hash);
/* Has `name` the form of name_make() or name_merged()? *ns, unless NULL: the start of the window,
 * or of the last of several, CLOCK_REALTIME. */
bool name_is_ours(const char *name, uint64_t *ns);
/* Of a name that is_ours(): is it a merged file's? */
bool name_is_merged(const char *name);
/* The folders of a file whose name is_ours(). */
void name_partition(const char *name, struct partition *);
/* Are these names of such folders? */
bool name_is_date(const char *);
bool name_is_hour(const char *);
/* Converts a partition to one name, "2026-11-21T08", and back. False: not such a name. */
#define HOUR_SIZE 16
void name_hour(char hour[HOUR_SIZE], const struct partition *);
bool name_parse_hour(const char *hour, struct partition *);
/* When a partition begins, CLOCK_REALTIME. */
uint64_t name_begin(const struct partition *);
#endif
