/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a table of sink.parquet, of all its partitions. */
#ifndef PARQUET_LIST_H
#define PARQUET_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct parquet_entry {
	char *path; /* date=2026-11-22/hour=08/NAME; of a folder without NAME */
	/* its window begins at from_ns <= t < to_ns, by its name or its partition */
	uint64_t from_ns, to_ns;
	int error; /* -errno: the folder cannot be read */
	bool read; /* for the caller */
};

/* {0} is empty. */
struct parquet_list {
	struct parquet_entry *entries; /* in order of time, as their paths are */
	size_t n, cap;
	uint64_t omitted; /* days that were not listed, or not all of their hours */
};

/* 0 or -errno. Omits partitions that are removed meanwhile, links, and files whose name belongs to
 * another partition: so each file is listed once. */
int parquet_list_read(struct parquet_list *, int dir);
/* Adds one file by its path, date=2026-11-22/hour=08/NAME; other names are not added.
 * parquet_list_sort() follows the last. 0 or -ENOMEM. */
int parquet_list_take(struct parquet_list *, const char *path);
void parquet_list_sort(struct parquet_list *);
/* Whether the name is a day, date=2026-11-22. *ns: when that day begins. */
bool parquet_list_is_day(const char *name, uint64_t *ns);
/* Writes "BEFOREdate=2026-11-22/hour=08/" of the hour that begins at ns, or with `day`
 * "BEFOREdate=2026-11-22/". */
void parquet_list_partition(char *to, size_t size, const char *before, uint64_t ns, bool day);
/* Is this the name of a file that windows were merged into? */
bool parquet_list_is_merged(const char *path);
/* Takes e.path over; -ENOMEM also if it is NULL. */
int parquet_list_add(struct parquet_list *, struct parquet_entry e);
void parquet_list_fini(struct parquet_list *);
#endif
