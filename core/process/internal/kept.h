/* SPDX-License-Identifier: Apache-2.0 */
/* What this thread has read of the process of procfs_keep(). */
#ifndef PROCESS_INTERNAL_KEPT_H
#define PROCESS_INTERNAL_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kept {
	pid_t pid;         /* 0: none */
	bool has_leader;   /* its first thread has memory */
	bool has_none;     /* no thread of it has memory: it ended, or is of the kernel */
	bool has_users;    /* real and effective are known */
	uint64_t identity; /* 0: not known */
	uint64_t cgroup;   /* with has_users; 0: not known */
	uid_t real, effective;
	char *exe; /* owned; NULL: not known */
	size_t exe_len;
};

/* NULL: nothing is to be kept of this process. */
struct kept *kept_of(pid_t pid);
/* Copies the path of its executable. */
void kept_take_exe(struct kept *, const char *exe, size_t len);
#endif
