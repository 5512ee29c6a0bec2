/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a table of sink.parquet, of all its partitions. */
#ifndef QUERY_PARQUET_LIST_H
#define QUERY_PARQUET_LIST_H

#include <stdbool.h>
#include <stdint.h>

struct parquet_entry {
	char *path; /* date=2026-11-22/hour=08/NAME; of a folder without NAME */
	/* when its window begins, by its name or its partition: from_ns <= begin < to_ns */
	uint64_t from_ns, to_ns;
	int error; /* -errno: the folder cannot be read */
	bool read; /* for the caller */
};

/* {0} is empty. */
struct parquet_list {
	struct parquet_entry *entries; /* in order of time, as their paths are */
	uint64_t n, cap;
};

/* 0 or -errno. Partitions that are removed meanwhile are not in it, and nothing that is a link or
 * that is in another partition than that of its name: each file is there once. */
int parquet_list_read(struct parquet_list *, int dir);
/* Is this the name of a file that windows were merged into? */
bool parquet_list_is_merged(const char *path);
/* Takes e.path; NULL: there was no memory for it, -ENOMEM. */
int parquet_list_add(struct parquet_list *, struct parquet_entry e);
void parquet_list_fini(struct parquet_list *);
#endif
