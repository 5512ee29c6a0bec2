/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder: DIR/samples/date=2026-11-21/hour=08/NAME, DIR/stacks/.. with the same name, and
 * DIR/.unfinished/ for files that are being written, each locked by the process that writes it.
 * Other users may be able to write into DIR: below it, no link is followed.
 */
#ifndef PARQUET_FOLDER_H
#define PARQUET_FOLDER_H

#include <dirent.h>
#include <sys/types.h>

#include <fusee/folder.h>

#include "name.h"

enum { SAMPLES, STACKS, TABLES };
extern const char *const folder_tables[TABLES]; /* "samples", "stacks" */

/* Opens a directory in another, and creates it if it is missing and mode is not 0. A descriptor or
 * -errno. */
int folder_open(int dir, const char *name, mode_t mode);

/* Opens the folder of a table's files of an hour, created if mode is not 0. A descriptor or
 * -errno. */
int folder_partition(int dir, const struct partition *, int table, mode_t mode);
/* Removes folders of a table that are empty: the hour's, and then the date's. */
void folder_remove_empty(int dir, const struct partition *, int table);

/* Creates and locks the unfinished file of a table. A descriptor or -errno. */
int folder_create(int dir, const char *name, int table, mode_t dir_mode, mode_t file_mode);
/* Removes it. */
void folder_discard(int dir, const char *name, int table);
/* Renames it to the table's file of that name, and syncs. 0 or -errno. */
int folder_commit(int dir, const char *name, int table, mode_t dir_mode);
/* Renames it into an open folder, and syncs. 0 or -errno. */
int folder_rename(int dir, const char *name, int table, int to, const char *as);
#define FOLDER_UNFINISHED ".unfinished"
/* Removes unfinished files that no process writes any more. Their number, or -errno. */
int64_t folder_clean(int dir);

/* Calls fusee_folder_found() for all files with names of this sink in partitions. 0 or -errno. */
int folder_each(int dir, struct fusee_folder_scan *);
/* Removes a file and the folders that are empty then. 0 or -errno. */
int folder_remove(int dir, const char *name, uint32_t table);
#endif
