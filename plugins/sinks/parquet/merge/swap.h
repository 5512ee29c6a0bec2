/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a merged file takes the place of its windows. The folder of an hour's samples is made a
 * second time, with the merged file and all that it does not replace, and the two are exchanged by
 * one system call: at no moment is a row in both, or in none, whatever ends meanwhile. The merged
 * stacks are there before, the windows' own stacks go later; both are a set, in which nothing is
 * counted.
 *
 * The second folder is DIR/.unfinished/old-2026-11-22T08. What is in it is garbage, before the
 * exchange as well as after it: swap_clean() removes the stacks of what `samples` no longer has,
 * and then the folder.
 */
#ifndef PARQUET_SWAP_H
#define PARQUET_SWAP_H

#include "merge.h"

/* Whoever adds files to partitions or exchanges them has the lock of the folder, which processes of
 * one user share. A descriptor, to be closed; -EAGAIN: another has had it for wait_ns; -errno. */
int swap_lock(int dir, mode_t dir_mode, uint64_t wait_ns);

struct swap {
	int dir;                   /* locked */
	const struct partition *p; /* of which */
	const char *part, *name;   /* of the merged files: while unfinished, and from then on */
	const struct merge_window *windows; /* all that it knows of; it replaces those `chosen` */
	uint32_t n, nchosen;
	mode_t dir_mode;
};

/* 0; -ESTALE: the partition is not any more what was merged; -EEXIST: it has something that is not
 * ours; -EOPNOTSUPP: the file system cannot exchange folders; -errno. */
int swap_in(const struct swap *);

/* Removes what remains of replaced windows, since min_ns ago or longer. *stacks_bytes: adds the
 * sizes of the stacks that were removed. 0 or -errno. */
int swap_clean(int dir, mode_t dir_mode, uint64_t min_ns, uint64_t *stacks_bytes);

/* 1: a merged file has this window; 0; -errno. */
int swap_has(int dir, const char *name);
#endif
