/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files by identity and by id. An id is used again when its file was dropped a while ago: the
 * stacks that the kernel wrote about it have been read by then. Part of files.c.
 */
#ifndef FILES_INTERNAL_FILE_INDEX_H
#define FILES_INTERNAL_FILE_INDEX_H

#include "files/files.h"

#define FILE_ID_GRACE_NS 30000000000ull /* an id is not used for so long */

/* The file with this key, or NULL. */
struct file *file_index_find(const struct files *, const void *key, size_t len);
/* Makes a file with this key, which is not in the index. Copies key and path; takes fd, but not on
 * failure. now: CLOCK_MONOTONIC ns. NULL: no memory. */
struct file *file_index_add(struct files *, const void *key, size_t len, const char *path,
			    uint64_t now);
/* Removes the file and frees it with its key and path. */
void file_index_remove(struct files *, struct file *, uint64_t now);
/* Gives memory back after files were removed. */
void file_index_trim(struct files *, uint64_t now);
void file_index_fini(struct files *); /* all files were removed */
#endif
