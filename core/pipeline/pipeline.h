/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the records of a perf stream to collectors: follows processes and their mappings, unwinds
 * stack copies, keeps the BPF sampler's view of processes current, and adds each sample to the
 * collectors of its route. A sample waits, with its stack copy, in bounded memory, while its unwind
 * table is being made or the mappings of its process are being read. build_profile.h makes profiles
 * of collectors. For one thread.
 */
#ifndef PIPELINE_PIPELINE_H
#define PIPELINE_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "events/perf_stream.h"
#include "plugin/plugin.h"
#include "loss/loss.h"
#include "files/files.h"
#include "unwind/made_code.h"
#include "worker/worker.h"

struct pipeline;
struct collector;
struct walk_steps;

#define PIPELINE_SLOTS 64u

/* The collectors of a sample, and its weight. */
struct pipeline_route {
	uint64_t slots;     /* bit i: the collector in slot i */
	uint32_t set;       /* number of its target's label set */
	uint64_t weight_ns; /* CPU time that it represents; 0: its period */
	uint8_t share;      /* how many of 256 such samples were kept; 0: all */
};

/* What samples carry besides their stack and their process. */
struct pipeline_kept {
	bool threads; /* thread ids */
	bool times;   /* times, and the CPU as a label */
};

struct pipeline_options {
	struct pipeline_kept kept;
	/* Routes a sample, before any work on it. false: it is dropped. NULL: all samples go to
	 * slot 0. */
	bool (*route)(void *arg, const struct sample *, struct pipeline_route *);
	/* Whether this process is sampled; files of other processes are not opened. NULL: all
	 * are. */
	bool (*selected)(void *arg, pid_t pid);
	/* Called when a process begins, before `selected` is called for it, and when records were
	 * lost. May be NULL. */
	void (*forked)(void *arg, pid_t parent, pid_t child);
	void (*lost)(void *arg);
	void *arg;
	uint64_t waiting_bytes;  /* limit of samples that wait for tables; 0: 128 MiB */
	struct bpf_sampler *bpf; /* borrowed; NULL: none */
	/* The samplers whose samples are chosen, borrowed; NULL: none. */
	const struct chooser_set *choosers;
	/* Threads read mappings from /proc, because a target can block their reader. */
	bool background;
	/* Pushed frames with the same names become one before they are kept, at the price of a
	 * look-up each: for collectors of more than a window. */
	bool same_frames;
	/* The slot, and 1, whose collector alone has followed hits; 0: all have. */
	uint32_t follower;
};

struct pipeline_stats {
	/* Borrowed from the pipeline: samples that are complete or truncated, none that is lost. */
	const struct loss_account *account;
	uint64_t guessed;   /* complete samples with a guessed frame */
	uint64_t weight_ns; /* of samples that no sampler's plugin has chosen */
	/* Of those that it has, in its unit, by the number of the sampler. */
	uint64_t chosen[PLUGIN_MAX_SAMPLERS];
	uint64_t kernel_only; /* complete samples of kernel threads */
	uint64_t walked;      /* samples that were unwound in the kernel */
	uint64_t helped;      /* steps that the worker took */
	uint64_t continued;   /* complete samples with a continuation of the kernel's */
	uint64_t new_code;    /* pipeline_new_code() */
	uint64_t lost_records;
	uint64_t lost_emissions; /* emissions of language unwinders that could not be kept */
	uint64_t unrouted;       /* samples without a route; in no other figure */
	uint64_t waiting;        /* samples that wait for tables; in no other figure yet */
	uint64_t waiting_bytes;  /* of them */
	uint64_t code_bytes;     /* of memory: claims_bytes() */
	struct made_counts made;
	uint64_t processes;  /* processes that are followed, or ended a few seconds ago */
	uint32_t files;      /* mapped by followed processes */
	uint32_t refused;    /* of them: not readable */
	uint32_t unreadable; /* of them: known by their path only */
	uint64_t mappings;   /* of followed processes */
	uint64_t paused;     /* how often a process had too many mappings */
	uint64_t unheld;     /* hits for which the collector that follows them had no room */
};

/* Worker and unwinders are borrowed. 0 or -ENOMEM. */
int pipeline_new(struct pipeline **ret, const struct pipeline_options *, struct worker *,
		 const struct plugin_set *unwinders);
void pipeline_free(struct pipeline *); /* before the BPF sampler is closed; NULL is fine */
/* The handlers for a perf stream; valid as long as the pipeline. */
const struct perf_stream_handlers *pipeline_handlers(struct pipeline *);

/* Reads the mappings of a running process from /proc; with `background`, requests that. 0 or
 * -errno. */
int pipeline_scan(struct pipeline *, pid_t pid);
/* Makes the mappings of each process be read again with its next sample. */
void pipeline_scan_again(struct pipeline *);
/* Processes whose mappings are being read or taken in the background. */
uint32_t pipeline_reading(struct pipeline *);
/* Takes mappings that were read in the background, for a few milliseconds. */
void pipeline_take_mappings(struct pipeline *);
/* Readable while pipeline_take_mappings() has work; -1: without `background`. */
int pipeline_mappings_fd(const struct pipeline *);
/* Unwinds the samples whose tables have been made. After worker_dispatch(). With `background` it
 * ends after a few milliseconds. */
void pipeline_retry(struct pipeline *);
/* Whether pipeline_retry() must be called again, after other work. */
bool pipeline_is_behind(const struct pipeline *);
/* Publishes changed mappings to the BPF sampler. After records were drained. as_of: the perf
 * stream's horizon; 0: no records were read yet. */
void pipeline_update(struct pipeline *, uint64_t as_of);
/* The same as of now, and waits for the BPF programs of languages that targets await. Only while
 * nothing is sampled. */
void pipeline_update_all(struct pipeline *);
/* The same, until the time `until` (CLOCK_MONOTONIC ns). false: targets still await programs. */
bool pipeline_update_until(struct pipeline *, uint64_t until);
/* Whether the process may start other programs, judging by its executable; true if unknown. */
bool pipeline_may_start(struct pipeline *, pid_t pid);
/* The file that the process runs as its program. NULL: not known, or not yet. */
const struct file *pipeline_program(const struct pipeline *, pid_t pid);
/* Whether pipeline_update() will publish processes. */
bool pipeline_has_unpublished(const struct pipeline *);
/* Whether pipeline_update() will have work now or soon. If not, one drain and update a second are
 * enough. */
bool pipeline_is_pending(const struct pipeline *);
/* Grows with each record that says that a selected process has code which the kernel may not know:
 * an exec, a mapping, a stack that was not unwound in the kernel. */
uint64_t pipeline_new_code(const struct pipeline *);
/* Whether this process is sampled, by options.selected. */
bool pipeline_selects(const struct pipeline *, pid_t pid);
/* The result of options.selected for this process has changed. */
void pipeline_selection_changed(struct pipeline *, pid_t pid);
/* Waits for the worker and unwinds all samples that wait. No sample may follow. */
void pipeline_finish(struct pipeline *);
void pipeline_set_threads(struct pipeline *, bool threads); /* from now on */
void pipeline_follow_in(struct pipeline *, uint32_t slot);  /* likewise: options.follower */

/* Puts a collector into a slot and returns the collector that was there, which the caller then
 * owns. NULL: none; samples that wait for the slot are dropped from it. Without options.route slot
 * 0 has a collector from the beginning. */
struct collector *pipeline_set_collector(struct pipeline *, uint32_t slot, struct collector *);
struct collector *pipeline_collector(const struct pipeline *, uint32_t slot); /* borrowed */
bool pipeline_awaits(const struct pipeline *, uint32_t slot); /* a sample of the slot waits */
/* Adds waiting samples to the slot's collector without a stack, with what is missing as the reason;
 * they still wait for other slots. */
void pipeline_give_up(struct pipeline *, uint32_t slot);
struct files *pipeline_files(struct pipeline *); /* borrowed */

struct pipeline_sweep {
	const struct collector *const
		*keep; /* collectors of which profiles are still to be built */
	uint32_t n;
	void (*forget)(void *arg, uint32_t file); /* called before a file is freed */
	void *arg;
};
/* pipeline_scan() that also removes mappings that no longer exist. */
int pipeline_scan_anew(struct pipeline *, pid_t pid);
/* Whether a file of the process could not be opened in time during the scan. A later scan may open
 * it. */
bool pipeline_lacks_files(const struct pipeline *, pid_t pid);
/* Whether the process has memory that may have code of a file, which is soon to be known. */
bool pipeline_awaits_text(struct pipeline *, pid_t pid);
/* Whether the process has a page for uprobes, so that return addresses may be replaced. */
bool pipeline_has_uprobes(const struct pipeline *, pid_t pid);
/* Offers the unwinders all libraries and all executable memory without a file of a scanned process,
 * so that no walk waits for them. true: language unwinders step some of its code. */
bool pipeline_offer(struct pipeline *, pid_t pid);
/* Unwinds the stack of a stopped thread of a process that was scanned (sample.memory), frames of
 * languages included. 0; -EAGAIN: the worker is making a table or step for it; then the walk is
 * repeated with *steps, at once or when the thread is stopped again; -ENOENT: as 0, but code was
 * not mapped when the process was scanned; -ESRCH: it was not. wait false: 0 instead of -EAGAIN.
 * *steps: NULL at first; walk_steps_release(). */
int pipeline_walk_stopped(struct pipeline *, const struct sample *, bool wait,
			  struct walk_steps **steps);
/* Adds the stack that was unwound last to slot 0. */
void pipeline_add_stopped(struct pipeline *, const struct sample *);
/* Delivers that stack as a sample of the perf stream: by its route, and over code made at run time
 * once that was read again. changed: the process's code has changed since the scan, which is the
 * reason for a missing stack. */
void pipeline_deliver_stopped(struct pipeline *, const struct sample *, bool changed);
/* Whether language unwinders are known to step code of the process. */
bool pipeline_has_language(const struct pipeline *, pid_t pid);

/* Frees processes that ended some seconds ago, and files that no process has mapped for a minute
 * and no collector refers to. To be called now and then. */
void pipeline_sweep(struct pipeline *, const struct pipeline_sweep *);
/* Frees names of code made at run time that was removed, if no frame of a collector needs them:
 * those of the slots, and n others (unwind/forgetting.h). It works once a second. */
void pipeline_forget_names(struct pipeline *, const struct collector *const *keep, uint32_t n);
void pipeline_stats(struct pipeline *, struct pipeline_stats *);
/* Limits the memory for data about code without files: claims_set_limit(). */
void pipeline_set_code_limit(struct pipeline *, uint64_t bytes);
#endif
