/* SPDX-License-Identifier: Apache-2.0 */
#include "events/internal/missed_ticks.h"

#include <stdlib.h>

/* One thread, or one event of a thread on one CPU. */
struct thread_ticks {
	uint64_t base_ns;  /* CPU time that is not counted */
	uint64_t total_ns; /* CPU time at the last sample; UINT64_MAX: there was none */
	uint64_t samples;
	uint64_t skipped;   /* missed ticks between base_ns and total_ns */
	uint64_t cpus;      /* bits: CPUs that it was sampled on, by number modulo 64 */
	uint64_t period_ns; /* by run time: of the last sample; 0: there was none */
};

/* NULL: no memory. */
static struct thread_ticks *thread_of(struct missed_ticks *a, uint64_t key)
{
	struct thread_ticks *t = hashmap_get(&a->each, key);

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t || hashmap_put(&a->each, key, t)) {
		free(t);
		a->broken = true;
		return NULL;
	}
	t->total_ns = UINT64_MAX;
	return t;
}

/* Compares the total, not the distance of two samples: a timer that is late by a part of a period
 * again and again skips ticks too. */
static void add_sample(struct missed_ticks *a, struct thread_ticks *t, uint64_t total_ns,
		       uint64_t period)
{
	uint64_t ticks;

	t->total_ns = total_ns;
	t->samples++;
	/* Counts periods that have begun, because no tick has the time after the last sample.
	 * Timers are always late by up to a tenth of a period, which begins none. So samples and
	 * missed ticks differ from the CPU time by about one period at most. */
	ticks = (total_ns - t->base_ns + period - period / 10) / period;
	a->skipped -= t->skipped;
	t->skipped = ticks > t->samples ? ticks - t->samples : 0;
	a->skipped += t->skipped;
}

void missed_ticks_count(struct missed_ticks *a, uint64_t key, uint64_t count_ns, uint64_t period_ns)
{
	struct thread_ticks *t = thread_of(a, key);

	if (!t)
		return;
	if (count_ns < t->total_ns) /* the first sample, or another thread has the number now */
		*t = (struct thread_ticks){0};
	add_sample(a, t, count_ns, period_ns);
}

void missed_ticks_runtime(struct missed_ticks *a, uint64_t key, uint32_t cpu, uint64_t runtime_ns,
			  uint64_t period_ns)
{
	struct thread_ticks *t = thread_of(a, key);

	if (!t || !runtime_ns || !period_ns)
		return;
	if (!(t->cpus >> (cpu & 63) & 1))
		a->unfinished++;
	t->cpus |= 1ull << (cpu & 63);
	/* Ticks of other events were due at another rate. */
	if (t->period_ns && t->period_ns != period_ns)
		*t = (struct thread_ticks){.total_ns = UINT64_MAX, .cpus = t->cpus};
	t->period_ns = period_ns;
	if (t->total_ns == UINT64_MAX)
		t->base_ns = runtime_ns > period_ns ? runtime_ns - period_ns : 0;
	else if (runtime_ns < t->total_ns)
		*t = (struct thread_ticks){.cpus = t->cpus, .period_ns = period_ns};
	add_sample(a, t, runtime_ns, period_ns);
}

void missed_ticks_begin(struct missed_ticks *a, uint64_t key)
{
	struct thread_ticks *t;

	missed_ticks_end(a, key); /* an earlier thread of this number */
	t = thread_of(a, key);
	if (t) {
		t->total_ns = 0;
		a->unfinished++;
	}
}

void missed_ticks_end(struct missed_ticks *a, uint64_t key)
{
	free(hashmap_del(&a->each, key));
}

static void restart(void *arg, uint64_t key, void *value)
{
	struct thread_ticks *t = value;

	(void)arg;
	(void)key;
	*t = (struct thread_ticks){.total_ns = UINT64_MAX, .cpus = t->cpus};
}

void missed_ticks_restart(struct missed_ticks *a)
{
	hashmap_each(&a->each, restart, NULL);
}

void missed_ticks_fini(struct missed_ticks *a)
{
	hashmap_fini_free(&a->each);
}
