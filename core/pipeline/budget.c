/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/budget.h"

#include "base/clock.h"

#define SECOND 1000000000ull

void budget_pause(struct pipeline *p, struct process *proc, uint64_t time)
{
	struct followed *f = followed_of(proc);

	if (f->paused)
		return;
	f->paused = time ? time : clock_now();
	p->stats.paused++;
	kernel_view_withdraw(&p->views, proc);
	process_forget_mappings(proc);
}

/* Begins the accounts of another second. */
static void begin_second(struct time_used *t, uint64_t now)
{
	if (now / SECOND != t->second)
		*t = (struct time_used){.second = now / SECOND};
}

bool budget_allows(struct pipeline *p, struct process *proc, uint64_t now)
{
	struct followed *f = followed_of(proc);
	uint64_t limit = BUDGET_PROCESS_NS;
	uint32_t few = BUDGET_RECORDS;

	if (f->paused)
		return false;
	begin_second(&f->mapping, now);
	begin_second(&p->mapping, now);
	if (p->mapping.ns > BUDGET_ALL_NS) {
		limit = BUDGET_REST_NS;
		few = 0;
	}
	if (f->mapping.ns <= limit || f->mapping.records < few)
		return true;
	budget_pause(p, proc, now);
	return false;
}

/* Counts this thread's CPU time, because a process must not pay for waits for a CPU. */
uint64_t budget_begin(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void add(struct time_used *t, uint64_t ns)
{
	t->ns += ns;
	t->records++;
}

void budget_add(struct pipeline *p, struct process *proc, uint64_t began)
{
	uint64_t ns = budget_begin() - began;

	add(&followed_of(proc)->mapping, ns);
	add(&p->mapping, ns);
}

void budget_check_mappings(struct pipeline *p, uint64_t time)
{
	struct process *largest;

	if (process_mappings(p->processes) <= BUDGET_MAPPINGS)
		return;
	largest = process_largest(p->processes);
	if (largest)
		budget_pause(p, largest, time);
}

/* A reading takes longer the more mappings the process has, so all readings together have a
 * budget. */
bool budget_may_read(struct pipeline *p, uint64_t now)
{
	begin_second(&p->reading, now);
	return p->reading.ns < BUDGET_READING_NS && p->reading.records < BUDGET_READINGS;
}

bool budget_end_pause(struct pipeline *p, struct process *proc, uint64_t time)
{
	struct followed *f = followed_of(proc);

	if (!f->paused || time < f->paused + BUDGET_PAUSE_NS || !budget_may_read(p, clock_now()))
		return false;
	f->paused = 0;
	return true;
}

void budget_add_reading(struct pipeline *p, uint64_t began)
{
	add(&p->reading, budget_begin() - began);
}
