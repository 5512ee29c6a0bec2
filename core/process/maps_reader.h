/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads /proc/PID/maps in threads of its own. The kernel gives a mapping out under a lock of the
 * process's memory: a process that maps without a pause, or that is stopped in the middle of it,
 * keeps the reader waiting for as long as it likes, and 65,000 mappings take their time. So no
 * request waits; a user's processes occupy one thread at a time (root's: all but one). A thread
 * that has read for MAPS_READER_STUCK_NS is abandoned while others wait, and another takes its
 * place; its answer is taken if it comes after all. One of a user is abandoned at a time, and
 * until it answers no process of that user is read (of root: four, and root's processes are read as
 * long as a thread is free). All but the threads is for one thread.
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
#define MAPS_READER_ABANDONED 16u        /* threads that are abandoned */
#define MAPS_READER_ABANDONED_OF_ROOT 4u /* of them, threads that read processes of root */

struct maps_reader;

struct maps_thread {
	pid_t tid;
	char comm[16];
};

/* A request, and then its answer. */
struct maps_answer {
	struct maps_answer *next; /* of the reader, as user */
	pid_t pid;
	uint32_t user;
	uint64_t id;           /* as in the request */
	uint64_t requested_ns; /* CLOCK_MONOTONIC: what is mapped is of this time or later */
	uint64_t cpu_ns;       /* CPU time of the reading */
	int err; /* 0; -E2BIG: too many mappings or names; -ETIMEDOUT: another process of the user
		  * keeps its thread waiting; -ESRCH, -EACCES .. of procfs.h */
	char comm[16];   /* of the process; "": not known */
	const char *exe; /* path of its executable; "": not known */
	/* In order of address, executable unless `beside`; names of `text`. */
	struct procfs_mapping *mappings;
	struct maps_thread *threads;
	char *text;
	uint32_t n, nthreads, ntext;
};

/* most: executable mappings of a process. 0 or -errno. The threads start with the first request. */
int maps_reader_new(struct maps_reader **ret, uint32_t most);
/* Ends the threads; a thread that waits in the kernel ends when it may. NULL is fine. */
void maps_reader_free(struct maps_reader *);
/* Has the mappings of a process read. 0; -EBUSY: too many requests wait; -ETIMEDOUT: a process of
 * the user keeps its thread waiting; -errno. */
int maps_reader_request(struct maps_reader *, pid_t pid, uint64_t id);
/* Abandons threads that are stuck by that time (CLOCK_MONOTONIC), if requests wait. Returns
 * how many are abandoned now. */
uint32_t maps_reader_abandon_stuck(struct maps_reader *, uint64_t now);
/* The next answer, which the caller then owns; NULL: none is there. */
struct maps_answer *maps_reader_take(struct maps_reader *);
void maps_answer_free(struct maps_answer *); /* NULL is fine */
/* Readable until maps_reader_take() has returned NULL. */
int maps_reader_fd(const struct maps_reader *);
/* Requests without an answer. */
uint32_t maps_reader_pending(struct maps_reader *);
#endif
