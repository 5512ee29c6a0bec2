/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler: worker, unwinders, BPF sampler, perf stream, pipeline and symbolizer, opened,
 * prepared, drained and closed as one object. `record`, `top` and the agent each own one profiler
 * and drive it from their event loop:
 *
 *	profiler_open(), profiler_prepare(), profiler_enable();
 *	when perf_stream_fd(stream) is readable, and at least once a second: profiler_drain();
 *	when worker_fd(worker) is readable: profiler_dispatch();
 *	at the end of a window: profiler_close_window(), symbolizer_request(), build_profile();
 *	profiler_stop(), profiler_close().
 *
 * The members are public, so that callers use what each of them offers. For one thread.
 */
#ifndef SAMPLING_PROFILER_H
#define SAMPLING_PROFILER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/sampler.h"
#include "events/kind.h"
#include "events/perf_stream.h"
#include "plugin/plugin.h"
#include "loss/loss.h"
#include "pipeline/collector.h"
#include "pipeline/pipeline.h"
#include "profiler/internal/process_tree.h"
#include "stop/sampler.h"
#include "symbolizer/symbolizer.h"
#include "worker/worker.h"

struct profiler_memory {
	uint64_t worker;  /* bytes of a worker; 0: the worker's default */
	uint64_t waiting; /* as waiting_bytes of struct pipeline_options */
};

/* Hits of probes beside CPU time; where there are none, of allocations. */
struct profiler_hits {
	const struct probe_points *probes; /* borrowed until profiler_close(); NULL: none */
	uint32_t period;
	bool in_use; /* what they have allocated is followed until it is freed */
	bool hooks;  /* those that bpf_hooks_attach_to() puts, too */
};

/* The samplers of plugins that choose samples, in the BPF sampler. */
struct profiler_choosers {
	const struct chooser_options *at; /* borrowed for profiler_open() */
	uint32_t n;
	bool beside;               /* CPU time is sampled, too */
	struct profiler_hits hits; /* .. and these, too */
};

/* A command that is held. NULL: not known. */
struct profiler_command {
	/* The programs of language unwinders whose name is in it are loaded before the command
	 * runs. NULL: of all, meanwhile. */
	const char *text;
	/* Paths of programs that it may run: strings, then "". Files of run times that lie where
	 * these load them from are read before the command runs. */
	const char *programs;
};

/* Borrowed for profiler_open(), except pids, which are borrowed until profiler_close(). */
struct profiler_options {
	const char *plugin_dir;
	const char *cache_dir;                   /* unwind tables on disk; NULL: none are kept */
	const struct unwinder_choice *unwinders; /* NULL: all, with default options */

	/* Targets: some processes with all their threads and children, all processes, or, dynamic,
	 * those that perf_stream_add() and perf_stream_add_cpus() add. */
	const pid_t *pids;
	uint32_t npids;
	bool all, dynamic;
	bool no_events; /* nothing is sampled: for stacks of stopped threads, see dump.h */
	bool held;      /* pids[0] waits to exec a command: sampling begins with the exec */
	struct profiler_command command; /* held: what is known of it */

	enum sampler_choice sampler;
	/* The event that is sampled, borrowed until profiler_close(); NULL: CPU time. The snapshot
	 * sampler samples other events; their periods and weights are numbers of events. */
	const struct event_kind *kind;
	struct profiler_choosers choosers;
	uint64_t period_ns;   /* of the events; dynamic: the shortest that rings are sized for */
	uint64_t ring_bytes;  /* of all rings; 0: the perf stream's default */
	uint32_t stack_bytes; /* of a stack copy; a multiple of 8, at most SAMPLE_MAX_STACK */
	uint64_t table_bytes; /* of unwind tables in the kernel; 0: the BPF sampler's default */
	struct profiler_memory memory;
	bool kernel; /* with kernel stacks, if the kernel allows them */
	struct pipeline_kept kept;
	bool inlines; /* inlined functions are symbolized */

	/* As in struct pipeline_options: route() routes samples; selected() tells whether a process
	 * is sampled, unless `pids` does. With a route, windows begin by profiler_open_window(). */
	bool (*route)(void *arg, const struct sample *, struct pipeline_route *);
	bool (*selected)(void *arg, pid_t pid);
	void *arg;

	const char *command_line; /* for the hint that is logged if the kernel refuses events */
};

/* The counts of ticks of all samplers. */
struct profiler_counts {
	struct perf_stream_counts events; /* zeros without a stream, except count_ns */
	struct stop_counts stop;          /* zeros: no thread is stopped */
};

struct profiler {
	struct plugin_set unwinders;
	struct worker *worker;
	struct chooser_set choosers;      /* of the options */
	struct wait_periods wait_periods; /* .. and their periods */
	struct bpf_sampler *bpf;          /* NULL: stacks are unwound in user space */
	char *no_bpf;               /* why bpf is NULL; NULL if the snapshot sampler was chosen */
	struct perf_stream *stream; /* NULL: no_events, or threads are stopped instead */
	struct stop_sampler *stop;  /* NULL: no thread is stopped */
	char *no_stream;            /* why there is only `stop`; NULL: it was chosen */
	struct pipeline *pipeline;
	struct symbolizer *symbolizer;
	const pid_t *pids; /* these five, and route, as in the options */
	uint32_t npids;
	bool all, dynamic, held;
	uint64_t new_code;         /* pipeline_new_code() before the reading that a wake began */
	struct process_tree *tree; /* with the CPUs' events: pids and their children; else NULL */
	bool (*route)(void *arg, const struct sample *, struct pipeline_route *);
	void *route_arg;
	uint64_t period_ns;
	struct profiler_counts window_start[PIPELINE_SLOTS]; /* when each slot's window began */
	struct profiler_counts window_end[PIPELINE_SLOTS];   /* and ended, if it has */
	uint64_t window_end_ns[PIPELINE_SLOTS];              /* CLOCK_MONOTONIC; 0: it has not */
};

/* A closed window. */
struct profiler_window {
	struct collector *collector; /* owned by the caller */
	uint64_t end_ns;             /* CLOCK_MONOTONIC */
	struct loss_account losses;  /* of its samples; nothing if `more` and no samples */
};

/* The CPU time between two ticks at this rate, in ns. */
uint64_t profiler_period_ns(double hz);

/* 0, or an exit code of sysexits.h after one error was logged; then profiler_close() is still to
 * be called. Nothing is sampled yet. */
int profiler_open(struct profiler *, const struct profiler_options *);
/* Closes what is open. *p may be zeros. */
void profiler_close(struct profiler *);

/* Makes processes that later join the control group with this folder targets too. dir: borrowed
 * until profiler_close(). Before profiler_enable(). 0; -ENOTSUP: without the BPF sampler;
 * -errno. */
int profiler_follow_group(struct profiler *, const char *dir);

/* Reads the mappings of running targets and waits until their unwind tables are made and published,
 * so that the first sample can be complete; of all processes for a limited time. Does nothing for a
 * held command. */
void profiler_prepare(struct profiler *);
/* The same for a held command, once it has exec'ed and is stopped. */
void profiler_prepare_held(struct profiler *);

/* Begins or resumes sampling. Not needed for a held command, whose exec enables the events. 0 or
 * -errno. */
int profiler_enable(struct profiler *);
/* A held command is about to run its own code. */
void profiler_command_goes_on(struct profiler *);
/* To be called when a held command has begun. 0 or -errno. */
int profiler_command_runs(struct profiler *);
/* Takes mappings that were read in the background: when pipeline_mappings_fd() is readable. */
void profiler_take_mappings(struct profiler *);
/* Stops taking samples until profiler_enable(). */
int profiler_disable(struct profiler *);
/* Passes all records that are due and older than until_ns (CLOCK_MONOTONIC; UINT64_MAX: all that
 * are due) to the pipeline, and publishes changed mappings to the BPF sampler. */
void profiler_drain(struct profiler *, uint64_t until_ns);
/* To be called after a drain that had all records up to now: ends the further readings that follow
 * a wake by the BPF programs, if no selected process has code that they may not know. */
void profiler_end_looks(struct profiler *);
/* Writes what is known of the file that the process runs: the digits of its build ID, and its
 * compiler; "" stays where the file does not say it. false: nothing is known yet. */
bool profiler_program(const struct profiler *, pid_t, char build_id[129], char compiler[256]);
/* Takes the worker's answers and unwinds the samples that wait for them. */
void profiler_dispatch(struct profiler *);
/* Disables sampling and drains the remaining records. Samples may still wait for the worker:
 * pipeline_finish() waits for it. */
void profiler_stop(struct profiler *);

/* Finds a free slot of the pipeline and begins its first window. Without a route slot 0 has one
 * from the beginning. 0, -ENOSPC or -ENOMEM. */
int profiler_open_window(struct profiler *, uint32_t *slot);
/* Ends the slot's window now: later losses do not count for it. Its waiting samples
 * (pipeline_awaits()) are still added until it is closed. The caller must not route further samples
 * to it. */
void profiler_end_window(struct profiler *, uint32_t slot);
/* Closes the slot's window, which ends now unless it has ended; more: the next window begins. 0, or
 * -ENOMEM: the window continues. */
int profiler_close_window(struct profiler *, uint32_t slot, bool more, struct profiler_window *);

/* Whether the kernel's part of stacks is sampled. */
bool profiler_kernel(const struct profiler *);
void profiler_counts(const struct profiler *, struct profiler_counts *);
/* The account of all samples since profiler_open(). No figure decreases from one call to the
 * next. */
void profiler_account(const struct profiler *, struct loss_account *);

/* Frees processes and files that no mapping and no collector needs, and symbols beyond
 * symbol_bytes. keep: n closed collectors that are still to be built. To be called now and then. */
void profiler_sweep(struct profiler *, const struct collector *const *keep, uint32_t n,
		    uint64_t symbol_bytes);
#endif
