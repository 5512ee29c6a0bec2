/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the memory of a stopped thread page by page, each page once, so that a stop is short. For
 * one thread. */
#ifndef STOP_THREAD_MEMORY_H
#define STOP_THREAD_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/sample.h"

struct thread_memory {
	struct sample_memory reader;
	pid_t tid;
	uint64_t sp;
	struct memory_page *pages; /* by page number */
	bool copied;               /* the thread goes on: no more of its stack is read */
	bool missed;               /* more of its stack was to be read then */
};

struct thread_memory *thread_memory_new(void); /* NULL: no memory */
void thread_memory_free(struct thread_memory *);
/* Another stop: forgets all pages. */
void thread_memory_begin(struct thread_memory *, pid_t tid, uint64_t sp);
/* Reads the top 128 KiB of its stack, so that the thread can go on. Of other memory only code may
 * be read after that. */
void thread_memory_copy(struct thread_memory *);
#endif
