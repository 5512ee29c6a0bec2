/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads /proc/PID/maps in threads of its own. The kernel prints a mapping under a lock of the
 * process's memory: a process that maps without a pause, or is stopped in the middle of it, can
 * keep the reader waiting without end, and a process can have 65,000 mappings. So no request waits,
 * and the processes of one user occupy one thread at a time (root's: all but one).
 *
 * A thread that has read one process for MAPS_READER_STUCK_NS while requests wait is abandoned, and
 * another thread takes its place; its answer is used if it comes later. Until then no process of
 * the same user is read. (Of root's, four threads may be abandoned, and its other processes are
 * read.)
 *
 * The functions are for one thread.
 */
#ifndef PROCESS_MAPS_READER_H
#define PROCESS_MAPS_READER_H

#include <stdint.h>

#include "process/procfs.h"

#define MAPS_READER_THREADS 4u
#define MAPS_READER_WAITING 16384u           /* requests */
#define MAPS_READER_TEXT (2u << 20)          /* bytes of names of a process */
#define MAPS_READER_NAMED 32768u             /* threads of a process whose names are read */
#define MAPS_READER_UNREAD_BYTES (32u << 20) /* of answers, before others are read */
#define MAPS_READER_STUCK_NS 5000000000u
#define MAPS_READER_ABANDONED 16u        /* abandoned threads */
#define MAPS_READER_ABANDONED_OF_ROOT 4u /* of them, threads that read processes of root */

struct maps_reader;

struct maps_thread {
	pid_t tid;
	char comm[16];
};

/* A request, and then its answer. */
struct maps_answer {
	struct maps_answer *next; /* for the reader */
	pid_t pid;
	uint32_t user;         /* of the process */
	uint64_t id;           /* as in the request */
	uint64_t requested_ns; /* CLOCK_MONOTONIC: the mappings are of this time or later */
	uint64_t cpu_ns;       /* CPU time of the reading */
	int err; /* 0; -E2BIG: too many mappings or names; -ETIMEDOUT: another process of the user
		  * keeps its thread waiting; -ESRCH, -EACCES .. of procfs.h */
	char comm[16];   /* of the process; "": not known */
	const char *exe; /* path of its executable; "": not known */
	/* In order of address; executable, except those with `beside`. Their names are in `text`.
	 */
	struct procfs_mapping *mappings;
	struct maps_thread *threads;
	char *text;
	uint32_t n, nthreads, ntext;
};

/* most: executable mappings of a process. 0 or -errno. The threads start with the first request. */
int maps_reader_new(struct maps_reader **ret, uint32_t most);
/* Ends the threads; a stuck thread ends later. NULL is fine. */
void maps_reader_free(struct maps_reader *);
/* Has the mappings of a process read. 0; -EBUSY: too many requests wait; -ETIMEDOUT: a process of
 * the user keeps its thread waiting; -errno. */
int maps_reader_request(struct maps_reader *, pid_t pid, uint64_t id);
/* Abandons threads that are stuck by that time (CLOCK_MONOTONIC), if requests wait. Returns
 * how many are abandoned now. */
uint32_t maps_reader_abandon_stuck(struct maps_reader *, uint64_t now);
/* The next answer, which the caller then owns; NULL: none yet. */
struct maps_answer *maps_reader_take(struct maps_reader *);
void maps_answer_free(struct maps_answer *); /* NULL is fine */
/* Readable until maps_reader_take() has returned NULL. */
int maps_reader_fd(const struct maps_reader *);
/* Requests without an answer. */
uint32_t maps_reader_pending(struct maps_reader *);
#endif
