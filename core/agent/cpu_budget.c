/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/internal/cpu_budget.h"

#include "agent/internal/sampling.h"
#include "agent/internal/usage.h"
#include "base/log.h"
#include "base/metrics.h"
#include "bpf/sampler.h"
#include "policy/rates.h"

#define AIM 0.85    /* of the limit */
#define LOWER 0.85  /* the share falls only to below this part of itself */
#define RAISE 1.275 /* and rises only to above this: AIM / RAISE is two thirds of the limit */

/* ---- the law ---- */

void cpu_budget_begin(struct cpu_budget *b, double limit)
{
	*b = (struct cpu_budget){.limit = limit, .share = RATES_ALL};
}

static uint32_t kept(const struct cpu_budget *b)
{
	return b->n < CPU_BUDGET_STEPS ? b->n : CPU_BUDGET_STEPS;
}

double cpu_budget_used(const struct cpu_budget *b)
{
	double sum = 0;

	for (uint32_t i = 0; i < kept(b); i++)
		sum += b->steps[i].cpus;
	return b->n ? sum / kept(b) : 0;
}

double cpu_budget_share(const struct cpu_budget *b)
{
	return b->share ? (double)b->share / RATES_ALL : 1;
}

/* The CPUs that fusee would use with all samples. */
static double full_use(const struct cpu_budget *b)
{
	double sum = 0;

	for (uint32_t i = 0; i < kept(b); i++)
		sum += b->steps[i].cpus * RATES_ALL / b->steps[i].share;
	return sum / kept(b);
}

static uint32_t fitting(const struct cpu_budget *b)
{
	double full = full_use(b), share = full > 0 ? AIM * b->limit / full * RATES_ALL : 1e9;

	if (share > LOWER * b->share && share < RAISE * b->share)
		return b->share;
	if (share > 2.0 * b->share)
		share = 2.0 * b->share;
	return share < CPU_BUDGET_FLOOR ? CPU_BUDGET_FLOOR
	       : share > RATES_ALL      ? RATES_ALL
					: (uint32_t)share;
}

static bool is_in_step(const struct cpu_budget *b, uint64_t now_ns)
{
	return b->begin_ns && now_ns - b->begin_ns < CPU_BUDGET_STEP_NS;
}

bool cpu_budget_step(struct cpu_budget *b, uint64_t now_ns, double used_s)
{
	uint32_t before = b->share, i = b->n % CPU_BUDGET_STEPS;
	double seconds = (double)(now_ns - b->begin_ns) / 1e9;

	if (is_in_step(b, now_ns))
		return false;
	if (b->begin_ns) {
		/* a sum can fall: an ended process that is not reaped yet is in none */
		b->steps[i].cpus = used_s > b->begin_s ? (used_s - b->begin_s) / seconds : 0;
		b->steps[i].share = b->share;
		b->n++;
		b->share = fitting(b);
	}
	if (!b->begin_ns ||
	    used_s > b->begin_s) /* a sum that fell recovers, which is not new use */
		b->begin_s = used_s;
	b->begin_ns = now_ns;
	return b->share != before;
}

/* ---- the agent ---- */

static void log_change(const struct cpu_budget *b, uint32_t before)
{
	bool lowered = b->share < before;
	double used = 100 * b->steps[(b->n - 1) % CPU_BUDGET_STEPS].cpus, limit = 100 * b->limit;

	metric_add("budget_changes_total",
		   "Total number of times that the budget changed the rates.",
		   METRIC_LABELS("direction", lowered ? "down" : "up"), 1);
	if (b->share == RATES_ALL)
		log_info("budget: fusee used %.2f%% of a CPU, allowed are %g%%: rates are those of "
			 "the plan again",
			 used, limit);
	else
		log_info("budget: fusee used %.2f%% of a CPU, allowed are %g%%: rates are %s to "
			 "%.1f%% of the plan's%s",
			 used, limit, lowered ? "lowered" : "raised", 100 * cpu_budget_share(b),
			 b->share == CPU_BUDGET_FLOOR ? ", which is the least" : "");
}

/* Sets the limit of another plan. */
static void set_limit(struct cpu_budget *b, struct agent_sampling *s, double limit)
{
	cpu_budget_begin(b, limit);
	agent_sampling_set_share(s, 0);
	if (s->profiler.bpf)
		bpf_sampler_set_timed(s->profiler.bpf, limit > 0);
}

void cpu_budget_run(struct cpu_budget *b, struct agent_sampling *s, uint64_t now_ns)
{
	double limit = (double)s->plan->limits.budget_cpu / 1e6;
	uint32_t before;
	struct usage_cpu u;

	if (b->limit != limit)
		set_limit(b, s, limit);
	if (b->limit <= 0)
		return;
	if (s->paused_ns) { /* while paused, the use is not that of samples */
		b->begin_ns = 0;
		return;
	}
	if (is_in_step(b, now_ns)) /* reading the use has a cost too */
		return;
	usage_cpu(&s->profiler, &u);
	before = b->share;
	if (!cpu_budget_step(b, now_ns, u.agent + u.workers + u.bpf))
		return;
	agent_sampling_set_share(s, b->share == RATES_ALL ? 0 : (uint8_t)b->share);
	log_change(b, before);
}
