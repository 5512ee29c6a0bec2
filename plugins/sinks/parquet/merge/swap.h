/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces windows by their merged file. A second folder of an hour's samples is made, with the
 * merged file and all files that it does not replace, and the two folders are exchanged by one
 * system call: at no moment is a row in both files or in none, even after a crash. The merged
 * stacks are added before, and the windows' own stacks are removed later; stacks are a set, so
 * duplicates do no harm.
 *
 * The second folder is DIR/.unfinished/old-2026-11-22T08. Its content is garbage, before the
 * exchange as well as after it: swap_clean() removes the stacks of windows that `samples` no longer
 * has, and then the folder.
 */
#ifndef PARQUET_SWAP_H
#define PARQUET_SWAP_H

#include "merge.h"

/* Takes the folder's lock, which each process of the user holds while it adds files to partitions
 * or exchanges them. A descriptor, whose close releases it; -EAGAIN: another process has held it
 * for wait_ns; -errno. */
int swap_lock(int dir, mode_t dir_mode, uint64_t wait_ns);

struct swap {
	int dir;                   /* locked */
	const struct partition *p; /* the partition */
	const char *part, *name;   /* names of the merged files: while unfinished, and afterwards */
	const struct merge_window *windows; /* known windows; those `chosen` are replaced */
	uint32_t n, nchosen;
	mode_t dir_mode;
};

/* 0; -ESTALE: the partition has changed since the merge; -EEXIST: it has a foreign file;
 * -EOPNOTSUPP: the file system cannot exchange folders; -errno. */
int swap_in(const struct swap *);

/* Removes what remains of windows that were replaced at least min_ns ago. *stacks_bytes: adds the
 * sizes of the stacks that were removed. 0 or -errno. */
int swap_clean(int dir, mode_t dir_mode, uint64_t min_ns, uint64_t *stacks_bytes);

/* 1: a merged file has this window; 0; -errno. */
int swap_has(int dir, const char *name);
#endif
