/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that can wait for a disk, in a thread of its own: the last close of a deleted file waits for
 * its file system, as writing a file does. Jobs run one after the other, in the order in which they
 * were given. The thread starts with the first of them.
 */
#ifndef BASE_BACKGROUND_H
#define BASE_BACKGROUND_H

#include <stdint.h>

struct background;

typedef void background_job(void *arg);

/* 0 or -ENOMEM. */
int background_new(struct background **ret);
/* Waits for the jobs, a second at most. The thread goes on with the others as long as this process
 * runs, and frees the object. NULL is fine. */
void background_free(struct background *);
/* Has a job run. Without memory or a thread for it, or with NULL as object, the caller runs it.
 * [any thread] */
void background_run(struct background *, background_job *, void *arg);
/* The same, but without memory the job is not run: for jobs that may not run beside another job.
 * 0 or -ENOMEM. [any thread] */
int background_try(struct background *, background_job *, void *arg);
/* Closes a descriptor. [any thread] */
void background_close(struct background *, int fd);
/* Jobs that are not done; NULL: 0. [any thread] */
uint32_t background_waiting(struct background *);
#endif
