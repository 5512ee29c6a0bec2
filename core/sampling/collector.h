/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One window of one consumer: walked samples, equal ones added up. Holds no pointers to processes,
 * so that these may end; files are named by their ids. For one thread.
 */
#ifndef SAMPLING_COLLECTOR_H
#define SAMPLING_COLLECTOR_H

#include <stdint.h>

#include "base/dict.h"
#include "process/process.h"
#include "unwind/walk.h"

/* What makes two samples one: a dictionary key, no padding. */
struct sample_key {
	uint32_t process; /* id in processes */
	uint32_t tid;     /* 0 unless threads are kept apart */
	uint32_t comm;    /* id in comms */
	uint32_t stack;   /* id in stacks */
	uint32_t reason;  /* of the pipeline's loss_account; 0: complete */
	uint32_t pad;
};

struct sample_sum {
	uint64_t count, weight;
};

/* One life of a pid under one label set. */
struct collected_process {
	pid_t pid;
	uint32_t set;
	char name[64]; /* as it was last known */
};

struct collector {
	struct dict frames; /* struct walk_frame */
	struct dict stacks; /* uint32_t ids of frames, leaf first */
	struct dict comms;
	struct dict processes;               /* process id and label set */
	struct dict samples;                 /* struct sample_key; id 0 is none */
	struct sample_sum *sums;             /* by id in samples */
	struct collected_process *collected; /* by id in processes */
	uint32_t nsums, ncollected;
	uint64_t count, weight_ns;        /* of all samples */
	uint64_t start_wall_ns, start_ns; /* CLOCK_REALTIME and _MONOTONIC of its making */
};

int collector_new(struct collector **ret); /* 0 or -ENOMEM */
void collector_free(struct collector *);   /* NULL is fine */
/* Adds the walked sample; set: the target's label set; reason: as in sample_key. 0 or -ENOMEM. */
int collector_add(struct collector *, const struct process *, uint32_t set, uint32_t tid,
		  const char *comm, const struct walk *, uint32_t reason, uint64_t period);
#endif
