/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that wait for unwind tables or mappings, with their stack copies, in bounded memory. For
 * one thread. */
#ifndef PIPELINE_WAITING_H
#define PIPELINE_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "process/process.h"
#include "pipeline/pipeline.h"
#include "unwind/sample.h"
#include "unwind/walk.h"

/* An unwound stack whose code must be read again. */
struct waiting_walk {
	const struct walk_frame *frames; /* after struct waiting */
	uint32_t n, guessed;
	const char *reason;
	bool passed, continued;
	uint64_t over; /* id of the process over whose mappings it was unwound; 0: no such stack */
};

struct waiting {
	struct waiting *next;
	struct process *process; /* borrowed */
	struct pipeline_route route;
	char comm[16];            /* the thread's name, which is lost when the thread exits */
	struct walk_steps *steps; /* owned; NULL: none */
	uint32_t file;            /* id of the file whose table is missing; 0: none */
	bool unmapped;            /* waits for mappings of its process */
	struct waiting_walk walk;
	struct sample sample; /* its data follows this struct */
	uint64_t bytes;       /* of this struct and the data that follows it */
};

struct waiting_queue {
	struct waiting *first, **last;
	uint64_t bytes, limit; /* in use, and the limit */
	uint64_t share;        /* the limit of one process */
	uint64_t second_began; /* CLOCK_MONOTONIC ns */
	uint64_t second_bytes; /* added in this second */
};

void waiting_init(struct waiting_queue *, uint64_t limit, uint64_t share);
void waiting_fini(struct waiting_queue *);
/* Copies a sample to the end of the queue. process_bytes: those of its process, updated. The copy,
 * whose `steps` the caller may set; NULL: no room. walk NULL: its stack is not known. */
struct waiting *waiting_add(struct waiting_queue *, struct process *, uint64_t *process_bytes,
			    const struct sample *, const struct pipeline_route *, const char *comm,
			    const struct waiting_walk *);
/* Hands over all samples in order, and removes those for which done() returns true. */
void waiting_each(struct waiting_queue *, bool (*done)(void *arg, struct waiting *), void *arg);
uint64_t waiting_count(const struct waiting_queue *);
/* Removes the slot from all waiting samples. */
void waiting_drop_slot(struct waiting_queue *, uint32_t slot);
#endif
