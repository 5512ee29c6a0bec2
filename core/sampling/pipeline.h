/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a sampler's records to collectors: follows processes, walks stacks, and adds each to the
 * collectors that want it. A sample whose unwind table is still being made waits, with its stack
 * copy, in bounded memory. For one thread. Profiles: build_profile.h.
 */
#ifndef SAMPLING_PIPELINE_H
#define SAMPLING_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin/plugin.h"
#include "unwind/files.h"
#include "events/perf_stream.h"
#include "profile/loss.h"
#include "worker/worker.h"

struct pipeline;
struct collector;

#define PIPELINE_SLOTS 64u

/* Where a sample goes. */
struct pipeline_route {
	uint64_t slots;     /* bit i: the collector in slot i */
	uint32_t set;       /* its target's label set */
	uint64_t weight_ns; /* what it stands for; 0: its period */
};

struct pipeline_options {
	bool threads; /* keep threads apart by tid */
	/* Asked before any cost is paid; false: nobody wants it. NULL: all go to slot 0. */
	bool (*route)(void *arg, const struct sample *, struct pipeline_route *);
	/* Is this process sampled at all? Of others no file is opened. NULL: all are. */
	bool (*wants)(void *arg, pid_t pid);
	void *arg;
	uint64_t waiting_bytes;  /* stack copies that may wait for tables; 0: 128 MiB */
	struct bpf_sampler *bpf; /* is told of processes; borrowed. NULL: none */
};

struct pipeline_stats {
	/* Borrowed from the pipeline: samples that are complete or truncated, none that is lost. */
	const struct loss_account *account;
	uint64_t guessed; /* complete samples with a guessed frame */
	/* Complete samples that show an interpreter without the program that it runs. */
	uint64_t passed;
	uint64_t weight_ns;
	uint64_t kernel_only; /* complete samples of kernel threads */
	uint64_t walked;      /* in the kernel, by the BPF sampler */
	uint64_t helped;      /* steps that libunwind took */
	uint64_t lost_records;
	uint64_t lost_names;             /* emissions of language unwinders that nobody kept */
	uint64_t unwanted;               /* samples that no route wanted; in none of the others */
	uint64_t waiting, waiting_bytes; /* samples that are still to be walked; likewise */
	uint64_t lives;          /* processes that are followed, or were until a minute ago */
	uint32_t files, refused; /* mapped by targets; of them not readable */
};

int pipeline_new(struct pipeline **ret, const struct pipeline_options *, struct worker *,
		 const struct plugin_set *unwinders);
void pipeline_free(struct pipeline *); /* NULL is fine */
/* What a sampler calls. Lives as long as the pipeline. */
const struct perf_stream_handlers *pipeline_handlers(struct pipeline *);
/* Reads what a process that runs already has mapped. 0 or -errno. */
int pipeline_scan(struct pipeline *, pid_t pid);
/* After worker_dispatch(): walks what waited for the tables that came. */
void pipeline_retry(struct pipeline *);
/* Now and then, after records were drained: tells the kernel's sampler what has changed. as_of:
 * the sampler's horizon; 0: none was drained yet. */
void pipeline_tell(struct pipeline *, uint64_t as_of);
/* Is there something to tell, or will there be soon? Else it is enough to drain records, and to
 * call pipeline_tell(), once a second. */
bool pipeline_has_news(const struct pipeline *);
/* While nobody who was asked for runs: as of now, and waits for the programs that they need. */
void pipeline_tell_all(struct pipeline *);
/* What is decided about this process has changed. */
void pipeline_decided(struct pipeline *, pid_t pid);
/* Waits for the worker and walks all that still waits. No sample may come after it. */
void pipeline_finish(struct pipeline *);
void pipeline_threads(struct pipeline *, bool threads); /* from now on */
/* Puts a collector into a slot (NULL: none; what waits for the slot is forgotten); returns the one
 * that was there, which is the caller's. Slot 0 has one from the beginning where there is no route.
 */
struct collector *pipeline_collect(struct pipeline *, uint32_t slot, struct collector *);
struct collector *pipeline_collector(const struct pipeline *, uint32_t slot); /* borrowed */
struct files *pipeline_files(struct pipeline *);
/* Frees what nobody needs any more: processes that ended a minute ago, files that no process maps
 * and no collector names (keep: those of collectors that are being built; forget: told of each file
 * before it goes). Now and then. */
struct pipeline_sweep {
	const struct collector *const *keep;
	uint32_t n;
	void (*forget)(void *arg, uint32_t file);
	void *arg;
};
void pipeline_sweep(struct pipeline *, const struct pipeline_sweep *);
void pipeline_stats(struct pipeline *, struct pipeline_stats *);
#endif
