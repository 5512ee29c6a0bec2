/* SPDX-License-Identifier: Apache-2.0 */
#include "events/missed_ticks.h"

#include <stdlib.h>

/* One thread's event on one CPU; or one thread. */
struct thread_ticks {
	uint64_t base;  /* of the count: what is below was not ours */
	uint64_t value; /* the count at its last sample; UINT64_MAX: there was none */
	uint64_t samples;
	uint64_t skipped; /* ticks of that count that no sample came for */
	uint64_t cpus;    /* where it was seen, by number modulo 64 */
};

/* NULL: no memory. */
static struct thread_ticks *missed_ticks_of(struct missed_ticks *a, uint64_t key)
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
	t->value = UINT64_MAX;
	return t;
}

/* The account goes by the whole count, not from sample to sample: a timer that comes late by parts
 * of a period, over and over, skips ticks too. */
static void note(struct missed_ticks *a, struct thread_ticks *t, uint64_t value, uint64_t period)
{
	uint64_t ticks;

	t->value = value;
	t->samples++;
	/* Begun periods, since what follows the last sample is in no tick; but for a sample that is
	 * as late as timers always are. So the account stays within about a period of the count. */
	ticks = (value - t->base + period - period / 10) / period;
	a->skipped -= t->skipped;
	t->skipped = ticks > t->samples ? ticks - t->samples : 0;
	a->skipped += t->skipped;
}

void missed_ticks_count(struct missed_ticks *a, uint64_t key, uint64_t count_ns, uint64_t period_ns)
{
	struct thread_ticks *t = missed_ticks_of(a, key);

	if (!t)
		return;
	if (count_ns < t->value) /* the first one; or the thread's number is another's now */
		*t = (struct thread_ticks){0};
	note(a, t, count_ns, period_ns);
}

void missed_ticks_runtime(struct missed_ticks *a, uint64_t key, uint32_t cpu, uint64_t runtime_ns,
			  uint64_t period_ns)
{
	struct thread_ticks *t = missed_ticks_of(a, key);

	if (!t || !runtime_ns || !period_ns)
		return;
	if (!(t->cpus >> (cpu & 63) & 1))
		a->unfinished++;
	t->cpus |= 1ull << (cpu & 63);
	if (t->value == UINT64_MAX)
		t->base = runtime_ns > period_ns ? runtime_ns - period_ns : 0;
	else if (runtime_ns < t->value)
		*t = (struct thread_ticks){.cpus = t->cpus};
	note(a, t, runtime_ns, period_ns);
}

void missed_ticks_begin(struct missed_ticks *a, uint64_t key)
{
	struct thread_ticks *t;

	missed_ticks_end(a, key); /* an older one of this number */
	t = missed_ticks_of(a, key);
	if (t) {
		t->value = 0;
		a->unfinished++;
	}
}

void missed_ticks_end(struct missed_ticks *a, uint64_t key)
{
	free(hashmap_del(&a->each, key));
}

static void begin_anew(void *arg, uint64_t key, void *value)
{
	struct thread_ticks *t = value;

	(void)arg;
	(void)key;
	*t = (struct thread_ticks){.value = UINT64_MAX, .cpus = t->cpus};
}

void missed_ticks_anew(struct missed_ticks *a)
{
	hashmap_each(&a->each, begin_anew, NULL);
}

void missed_ticks_fini(struct missed_ticks *a)
{
	hashmap_fini_free(&a->each);
}
