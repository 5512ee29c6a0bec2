/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a sampler's records to one profile: follows processes, walks stacks, adds equal ones up, and
 * at the end gives everything its name. A sample whose unwind table is still being made waits, with
 * its stack copy, in bounded memory. For one thread.
 */
#ifndef SAMPLING_PIPELINE_H
#define SAMPLING_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/builder.h"
#include "sampling/snapshot.h"
#include "plugin/plugin.h"
#include "worker/worker.h"

struct pipeline;

struct pipeline_options {
	uint64_t period_ns;
	bool threads;           /* keep threads apart by tid */
	bool inlines;           /* names of inlined frames too */
	uint64_t waiting_bytes; /* stack copies that may wait for tables; 0: 128 MiB */
};

struct pipeline_reason {
	const char *text;
	uint64_t n; /* samples */
};

struct pipeline_stats {
	uint64_t samples, whole, guessed; /* guessed: whole ones with a guessed frame among them */
	uint64_t weight_ns;
	uint64_t kernel_only; /* whole: kernel threads */
	uint64_t helped;      /* steps that libunwind took */
	uint64_t lost_records;
	const struct pipeline_reason *reasons; /* why stacks were cut */
	uint32_t nreasons;
	uint32_t files, refused; /* mapped by targets; of them not readable */
};

int pipeline_new(struct pipeline **ret, const struct pipeline_options *, struct worker *,
		 const struct plugin_set *unwinders);
void pipeline_free(struct pipeline *); /* NULL is fine */
/* What a sampler calls. Lives as long as the pipeline. */
const struct snapshot_handlers *pipeline_handlers(struct pipeline *);
/* Reads what a process that runs already has mapped. 0 or -errno. */
int pipeline_scan(struct pipeline *, pid_t pid);
/* After worker_dispatch(): walks what waited for the tables that came. */
void pipeline_retry(struct pipeline *);
/* Waits for the worker and walks all that still waits. No sample may come after it. */
void pipeline_finish(struct pipeline *);
void pipeline_stats(struct pipeline *,
		    struct pipeline_stats *); /* texts live as long as the pipeline */

/* Names everything (asks the worker and waits) and fills the builder; types samples/count and
 * cpu/nanoseconds. 0 or -errno. */
int pipeline_build(struct pipeline *, struct builder *);

/* Files whose names are poor, the hottest first: of `self_ns` own CPU time, what its names came
 * from. */
struct pipeline_poor {
	const char *path;
	const char *build_id; /* hex, "" none */
	uint32_t quality;     /* INSPECTION_SYMTAB .. */
	uint64_t self_ns;
};
/* At most n; valid after pipeline_build(). Returns how many. */
uint32_t pipeline_poor(struct pipeline *, struct pipeline_poor *, uint32_t n);
#endif
