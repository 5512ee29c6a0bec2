/* SPDX-License-Identifier: Apache-2.0 */
/* How many files are open: of a process, of a user, and of all. Any user can map ever new files.
 * For one thread. */
#ifndef FILES_INTERNAL_FILE_QUOTA_H
#define FILES_INTERNAL_FILE_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hashmap.h"

struct file_quota {
	struct hashmap processes, users; /* number of files, as the pointer's value */
	uint32_t n;                      /* of all */
	uint32_t of_process, of_user, of_all;
	uint32_t kept; /* of a user, that stay open while they are not in use */
};

/* Sets the limits, by how many descriptors this process may have. */
void file_quota_init(struct file_quota *);
void file_quota_fini(struct file_quota *);
/* The process maps another file. 0: it is counted; -EDQUOT: the process, its user or all have
 * too many, which is counted as a metric; -ENOMEM. Root has no limit of a user. */
int file_quota_add(struct file_quota *, pid_t, uint32_t uid);
/* Has the user more files open than those that stay open? */
bool file_quota_is_many(const struct file_quota *, uint32_t uid);
/* A file that was counted for them is closed. */
void file_quota_remove(struct file_quota *, pid_t, uint32_t uid);
#endif
