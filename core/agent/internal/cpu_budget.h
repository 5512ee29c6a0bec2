/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan's budget of CPU time: keeps what the agent uses (its threads, workers, openers, and its
 * BPF programs at ticks) below a limit, by keeping only a share of the samples that are due by the
 * targets' rates. For the control thread.
 *
 * Every CPU_BUDGET_STEP_NS the use since the last step is divided by the share of that time, which
 * gives the use with all samples. From its mean over the last minute follows the share that fits
 * into 85 % of the limit. The share falls when the use is expected above the limit, rises, by a
 * factor of 2 at most, when it is expected below two thirds of it, and is CPU_BUDGET_FLOOR at
 * least. Some of the use does not depend on samples: at the floor it may be above the limit.
 */
#ifndef AGENT_CPU_BUDGET_H
#define AGENT_CPU_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define CPU_BUDGET_STEP_NS 5000000000u
#define CPU_BUDGET_STEPS 12u /* a minute */
#define CPU_BUDGET_FLOOR 5u  /* a fiftieth */

struct agent_sampling;

struct cpu_budget {
	double limit;      /* CPUs; 0: there is no budget */
	uint32_t share;    /* of RATES_ALL samples, those that are kept; 0: none was set yet */
	uint64_t begin_ns; /* of the step; 0: none has begun */
	double begin_s;    /* CPU seconds used until then */
	struct {
		double cpus; /* that were used */
		uint32_t share;
	} steps[CPU_BUDGET_STEPS]; /* the oldest is overwritten */
	uint32_t n;                /* steps so far */
};

/* Once a second: measures, and lowers or raises the share by the plan's budget. Logs and counts
 * each change. */
void cpu_budget_run(struct cpu_budget *, struct agent_sampling *, uint64_t now_ns);
/* Sets another limit (0: none) and begins anew, with all samples. */
void cpu_budget_begin(struct cpu_budget *, double limit);
/* Adds a measurement: used_s CPU seconds in all until now_ns. Returns whether `share` has
 * changed. */
bool cpu_budget_step(struct cpu_budget *, uint64_t now_ns, double used_s);
/* CPUs used on average in the last minute. */
double cpu_budget_used(const struct cpu_budget *);
/* The share of the samples that is kept, 1: all. */
double cpu_budget_share(const struct cpu_budget *);
#endif
