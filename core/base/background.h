/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs jobs that may block on a disk, as a write or the last close of a deleted file does, in a
 * thread of its own. Jobs run one after the other, in the order in which they were given. The first
 * job starts the thread.
 */
#ifndef BASE_BACKGROUND_H
#define BASE_BACKGROUND_H

#include <stdint.h>

struct background;

typedef void background_job(void *arg);

/* 0 or -ENOMEM. */
int background_new(struct background **ret);
/* Waits for the jobs, at most a second. If jobs remain, the thread continues with them and frees
 * the object afterwards. NULL is fine. */
void background_free(struct background *);
/* Queues a job. If there is no memory, no thread or no object (NULL), the calling thread runs the
 * job before this returns. [any thread] */
void background_run(struct background *, background_job *, void *arg);
/* The same, but without memory the job does not run: for jobs that must not run at the same time as
 * another job. 0 or -ENOMEM. [any thread] */
int background_try(struct background *, background_job *, void *arg);
/* Closes a descriptor. [any thread] */
void background_close(struct background *, int fd);
/* Jobs that are not done; NULL: 0. [any thread] */
uint32_t background_waiting(struct background *);
#endif
