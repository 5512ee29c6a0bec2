/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of files: by a mapping, and again by where the file was mapped. Part of files.c.
 */
#ifndef FILES_FILE_OPEN_H
#define FILES_FILE_OPEN_H

#include "files/files.h"
#include "opener/opener.h"

/* Two files with the same identity have the same content. */
struct file_identity {
	uint64_t dev, ino, size, mtime, mtime_ns;
};

struct file_identity file_identity_of(const struct opener_stat *);
/* Opens the file of a mapping. 0 or -errno. */
int file_open(struct files *, pid_t pid, const struct procfs_mapping *, struct opener_answer *);
/* Why a file can't be opened. */
const char *file_open_explain(int err);
/* Closes what file_open() opened and no file has. */
void file_answer_close(struct files *, const struct opener_answer *);
/* Closes the descriptor, if it is open. It has no uses. */
void file_close(struct file *);
#endif
