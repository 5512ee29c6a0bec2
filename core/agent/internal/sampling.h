/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's sampling: the profiler, the processes of the machine with their decisions, and the
 * way of each sample to the windows of its decision's sinks. The loop drives it from
 * agent_sampling_open() on. For the control thread.
 */
#ifndef AGENT_SAMPLING_H
#define AGENT_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

#include "programs/cgroup_moves.h"
#include "config/plan.h"
#include "events/process_events.h"
#include "events/process_watch.h"
#include "net/loop.h"
#include "policy/decisions.h"
#include "policy/discoveries.h"
#include "policy/rates.h"
#include "target/target.h"
#include "hooks/hooks.h"
#include "profiler/allocators.h"
#include "profiler/profiler.h"

/* Windows of pulls, in addition to those of the sinks. */
struct more_windows {
	/* The slots that a sample of a process with this decision goes to as well. time:
	 * CLOCK_MONOTONIC ns. */
	uint64_t (*slots)(void *arg, const struct decision *, uint64_t time);
	/* Writes collectors of closed windows that are still to be built to c, at most n. Returns
	 * their number.
	 */
	uint32_t (*pending)(void *arg, const struct collector **c, uint32_t n);
	void *arg;
};

/* When /proc is read: CLOCK_MONOTONIC ns. */
struct sampling_find {
	uint64_t until, again;
};

/* The timer that looks for reasons to drain. */
struct sampling_ticks {
	struct loop_timer *timer;
	uint64_t period_ns;
	uint64_t second;   /* of CLOCK_MONOTONIC, in which the last tick was */
	uint32_t seconds;  /* since the start */
	uint32_t to_drain; /* the next ticks drain without a check */
	uint32_t calm;     /* ticks without a reason to drain, up to the last */
};

struct agent_sampling {
	struct loop *loop; /* borrowed */
	/* Called once a second with the number of seconds since the start. */
	void (*each_second)(void *arg, uint32_t seconds);
	void *arg;

	struct profiler profiler;
	struct targets *targets;
	struct discoveries *discoveries;
	struct decisions *decisions;
	struct rates *rates;
	struct process_events *process_events;
	struct process_watch *process_watch; /* of process_events */
	struct cgroup_moves *moves;          /* NULL: moves are not counted */
	struct allocators *allocators;       /* NULL: allocations are not sampled */
	struct hooks *hooks;                 /* NULL: the first plan had no probes */
	const struct plan *plan;             /* borrowed; of the decisions */
	/* By the bits of decision->sinks: the bit of the pipeline's slot; 0: no window. */
	uint64_t slots[PLAN_MAX_SINKS];
	uint8_t share;                   /* kept samples of RATES_ALL samples due; 0: all */
	uint32_t random;                 /* state of is_kept() */
	const struct more_windows *more; /* NULL: none; set by their owner */
	int refused;                     /* the last error of a process's events that was logged */
	bool behind;                     /* another drain is due at once */
	bool lost;                       /* process events were lost: /proc must be read */
	uint64_t paused_ns;              /* since when sampling is paused; 0: it is not */
	struct sampling_find find;       /* of that reading */
	struct sampling_ticks ticks;
};

/* Opens targets, discoveries, decisions, profiler and process events. The fields loop, each_second
 * and arg are set. 0, or an exit code after an error was logged: agent_sampling_close() is still to
 * be called. No process is decided before agent_sampling_replan(). */
int agent_sampling_open(struct agent_sampling *, const struct profiler_options *);
void agent_sampling_close(struct agent_sampling *);
/* Decides the processes that run, and enables sampling. 0 or an exit code, as above. */
int agent_sampling_begin(struct agent_sampling *);
/* Changes to another plan: its rates and its policy apply, and samples go to the slots of its
 * sinks. The plan is borrowed until the next call. */
void agent_sampling_replan(struct agent_sampling *, const struct plan *,
			   const uint64_t slots[PLAN_MAX_SINKS]);
/* Handles the process events and then the records that are older than the last of them. */
void agent_sampling_drain(struct agent_sampling *);
/* Keeps `share` of RATES_ALL samples due by the targets' rates, chosen at random, with accordingly
 * more weight; 0: all. */
void agent_sampling_set_share(struct agent_sampling *, uint8_t share);
void agent_sampling_pause(struct agent_sampling *, bool pause);
/* Disables sampling for good and drains the remaining samples. */
void agent_sampling_stop(struct agent_sampling *);
/* The bits of the slots of these sinks, which are bits of decision->sinks. */
uint64_t agent_sampling_slots(const struct agent_sampling *, uint64_t sinks);
/* Adds what is in use by the processes whose samples go to this slot now, under their labels now.
 * sampling: struct agent_sampling. */
void agent_sampling_add_in_use(void *sampling, uint32_t slot, struct collector *);
/* Frees processes, files, symbols and label sets that nothing uses, or only names of
 * removed code; closed: n collectors of sinks' closed windows that are still to be built; those of
 * `more` are added. */
void agent_sampling_sweep(struct agent_sampling *, const struct collector *const *closed,
			  uint32_t n, bool names);
#endif
