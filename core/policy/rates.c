/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/rates.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/hashmap.h"
#include "bpf/rates.h"

#define IDLE_NS 1000000000u  /* for so long the rings may hold samples of an unused source */
#define MOST_LONGER_NS 4096u /* choose_period() adds at most this, with fewer sources */
#define MOST_RATES 8u        /* above the plan's that have events of their own on the CPUs */
#define MOST_FASTER 31u      /* .. and events of powers of two, whose ticks others share */
#define LEAST_KEPT 64u       /* of RATES_ALL ticks: below it the events tick less often */
#define RARE_NS 100000000u   /* the longest period of the plan's events */

/* The events that sample a process and its children. */
struct event_source {
	struct event_source *base; /* the CPUs' source that this is a part of; NULL: not a part */
	bool cpus;                 /* its events, or those of base, are the CPUs' */
	bool faster;               /* it is in rates.faster */
	uint32_t group;            /* of the perf stream */
	uint32_t users;            /* processes, parts of it, and struct rates */
	uint64_t period_ns;        /* that was set */
	uint32_t slower;           /* factor by which its ticks are rarer */
	uint64_t events_ns;        /* of its events; of a part: what a sample represents */
	uint64_t since;            /* when its events had been opened */
	uint64_t idle;             /* when its last user was removed; 0: it has users */
};

struct rates {
	struct perf_stream *stream;
	struct bpf_sampler *bpf;
	struct event_source *cpus;                /* the CPUs' events; NULL: not open */
	struct event_source *faster[MOST_FASTER]; /* the CPUs' events beside those */
	uint32_t nfaster;
	uint32_t share;    /* kept samples of RATES_ALL */
	uint32_t slower;   /* of sources that are opened now; a power of two */
	bool keep_unknown; /* of rates_set_base() */
	bool behind;       /* some sources could not be opened at the last change of slower */
	struct hashmap processes; /* pid -> struct event_source * */
	struct hashmap sources;   /* address -> struct event_source * */
	struct hashmap periods;   /* with BPF: of events that are open -> struct event_source * */
	uint64_t last_period, next_ns; /* the last period in use, the next to try */
};

int rates_new(struct rates **ret, struct perf_stream *stream, struct bpf_sampler *bpf)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->stream = stream;
	(*ret)->bpf = bpf;
	(*ret)->share = RATES_ALL;
	(*ret)->slower = 1;
	return 0;
}

/* ---- event sources ---- */

static uint64_t key_of(const struct event_source *e)
{
	return (uint64_t)(uintptr_t)e;
}

static void remove_user(struct event_source *e)
{
	fusee_assert(e->users);
	if (!--e->users)
		e->idle = clock_now();
}

static void source_free(struct rates *rates, struct event_source *e)
{
	if (hashmap_get(&rates->periods, e->events_ns) == e)
		hashmap_del(&rates->periods, e->events_ns);
	for (uint32_t i = 0; i < rates->nfaster; i++)
		if (rates->faster[i] == e)
			rates->faster[i--] = rates->faster[--rates->nfaster];
	free(e);
}

static void source_close(struct rates *rates, struct event_source *e)
{
	if (!e->base)
		perf_stream_remove(rates->stream, e->group);
	else
		remove_user(e->base);
	source_free(rates, e);
}

struct idle {
	uint64_t before;
	struct event_source *found;
};

static void find_idle(void *arg, uint64_t key, void *value)
{
	struct idle *i = arg;
	struct event_source *e = value;

	(void)key;
	if (e->idle && e->idle < i->before)
		i->found = e;
}

/* Closes the sources that have had no user since before then. */
static void close_idle(struct rates *rates, uint64_t before_ns)
{
	struct idle i = {.before = before_ns};

	for (;;) {
		i.found = NULL;
		hashmap_each(&rates->sources, find_idle, &i);
		if (!i.found)
			break;
		hashmap_del(&rates->sources, key_of(i.found));
		source_close(rates, i.found);
	}
}

/* With BPF the period of a tick identifies its event, so no two open events may have the same
 * period: makes the period some ns longer if it is in use. A thread may have events of its process,
 * inherited events, events of the CPUs, and earlier events that are not closed yet. 0 or
 * -ENOMEM. */
static int choose_period(struct rates *rates, struct event_source *e)
{
	uint64_t p = e->events_ns;

	if (!rates->bpf)
		return 0;
	if (hashmap_get(&rates->periods, p)) {
		if (rates->last_period != p || rates->next_ns > p + MOST_LONGER_NS)
			rates->next_ns = p + 1;
		rates->last_period = p;
		for (p = rates->next_ns; hashmap_get(&rates->periods, p);)
			p++;
		rates->next_ns = p + 1;
	}
	e->events_ns = p;
	return hashmap_put(&rates->periods, p, e);
}

/* A source without events; events: it will get some. It is registered before they are opened, so
 * that memory cannot be missing afterwards. NULL: no memory. */
static struct event_source *source_new(struct rates *rates, uint64_t period_ns, bool events)
{
	struct event_source *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->period_ns = period_ns;
	e->slower = rates->slower;
	e->events_ns = period_ns * e->slower;
	if ((events && choose_period(rates, e)) || hashmap_put(&rates->sources, key_of(e), e)) {
		source_free(rates, e);
		return NULL;
	}
	return e;
}

/* Finishes the opening of a source's events; if r is an error, frees the source. Returns r. */
static int source_opened(struct rates *rates, struct event_source *e, int r)
{
	if (r) {
		hashmap_del(&rates->sources, key_of(e));
		source_free(rates, e);
	} else {
		e->since = e->idle = clock_now();
	}
	return r;
}

/* Opens events of the process itself. */
static int source_open_process(struct rates *rates, pid_t pid, uint64_t period_ns,
			       struct event_source **ret)
{
	struct event_source *e = *ret = source_new(rates, period_ns, true);

	if (!e)
		return -ENOMEM;
	return source_opened(rates, e,
			     perf_stream_add(rates->stream, pid, e->events_ns, &e->group));
}

/* Makes a source of a part of the ticks of a CPUs' source. */
static int source_open_part(struct rates *rates, struct event_source *base, uint64_t period_ns,
			    struct event_source **ret)
{
	struct event_source *e = *ret = source_new(rates, period_ns, false);

	if (!e)
		return -ENOMEM;
	e->cpus = true;
	e->base = base;
	base->users++;
	base->idle = 0;
	e->group = e->base->group;
	return source_opened(rates, e, 0);
}

static bool is_current(const struct rates *rates, const struct event_source *e)
{
	return e->slower == rates->slower;
}

static struct event_source *find_faster(const struct rates *rates, uint64_t period_ns)
{
	for (uint32_t i = 0; i < rates->nfaster; i++)
		if (rates->faster[i]->period_ns == period_ns && is_current(rates, rates->faster[i]))
			return rates->faster[i];
	return NULL;
}

/* Does not count sources with an earlier `slower`, which end soon. */
static uint32_t count_faster(const struct rates *rates)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < rates->nfaster; i++)
		n += is_current(rates, rates->faster[i]);
	return n;
}

/* The period of the events for a shorter period than the plan's. Each event interrupts whatever
 * runs, so only MOST_RATES rates have events of exactly their period. Other rates take a part of
 * the ticks of events whose rate is the plan's times a power of two. */
static uint64_t choose_faster(const struct rates *rates, uint64_t period_ns)
{
	uint64_t p = rates->cpus->period_ns;

	if (count_faster(rates) < MOST_RATES || find_faster(rates, period_ns))
		return period_ns;
	while (p > period_ns)
		p /= 2;
	return p;
}

static int open_faster(struct rates *rates, uint64_t period_ns, struct event_source **ret)
{
	struct event_source *e;
	int r;

	if (rates->nfaster == MOST_FASTER)
		close_idle(rates, UINT64_MAX);
	if (rates->nfaster == MOST_FASTER)
		return -ENOSPC;
	e = *ret = source_new(rates, period_ns, true);
	if (!e)
		return -ENOMEM;
	e->cpus = e->faster = true;
	r = perf_stream_add_cpus_beside(rates->stream, e->events_ns, &e->group);
	if (source_opened(rates, e, r))
		return r;
	e->since = 0; /* children inherit it whenever they began */
	rates->faster[rates->nfaster++] = e;
	return 0;
}

/* Uses events of all CPUs with a shorter period than the plan's, or a part of their ticks. Events
 * of the process itself would begin a new period in each child that inherits them, so children that
 * end before their first tick would have no samples. */
static int source_open_faster(struct rates *rates, uint64_t period_ns, struct event_source **ret)
{
	uint64_t events_ns = choose_faster(rates, period_ns);
	struct event_source *e = find_faster(rates, events_ns);
	int r = e ? 0 : open_faster(rates, events_ns, &e);

	if (!r && events_ns != period_ns)
		return source_open_part(rates, e, period_ns, ret);
	*ret = e;
	return r;
}

static int source_open(struct rates *rates, pid_t pid, uint64_t period_ns,
		       struct event_source **ret)
{
	if (!rates->cpus)
		return source_open_process(rates, pid, period_ns, ret);
	if (period_ns < rates->cpus->period_ns)
		return source_open_faster(rates, period_ns, ret);
	if (period_ns > rates->cpus->period_ns)
		return source_open_part(rates, rates->cpus, period_ns, ret);
	*ret = rates->cpus;
	return 0;
}

/* Whether source_open() would now choose another source for its period. */
static bool is_outdated(const struct rates *rates, const struct event_source *e)
{
	if (!rates->cpus)
		return e->cpus;
	if (!is_current(rates, e))
		return true;
	if (e->period_ns < rates->cpus->period_ns)
		return e->base ? !e->base->faster : !e->faster;
	return e != rates->cpus && e->base != rates->cpus;
}

/* ---- processes ---- */

static void remove_process(struct rates *rates, pid_t pid)
{
	struct event_source *e = hashmap_del(&rates->processes, (uint64_t)pid);

	if (e)
		remove_user(e);
}

/* 0 or -ENOMEM: the process then has no event source. */
static int add_process(struct rates *rates, pid_t pid, struct event_source *e)
{
	int r;

	e->users++; /* before the removal: it may be the process's current source */
	remove_process(rates, pid);
	r = hashmap_put(&rates->processes, (uint64_t)pid, e);
	e->users -= !!r;
	e->idle = e->users ? 0 : clock_now();
	return r;
}

/* If the BPF map is full, the kernel takes ticks of the process as of unknown processes, with the
 * weight of the latter's rate. */
static void update_kernel(struct rates *rates, pid_t pid, const struct event_source *e)
{
	uint64_t period_ns = BPF_RATE_NONE;

	if (!rates->bpf)
		return;
	if (e)
		period_ns = e->base ? e->base->events_ns : e->events_ns;
	bpf_rates_set(rates->bpf, pid, period_ns, e ? e->events_ns : 0);
}

void rates_forked(struct rates *rates, pid_t parent, pid_t child, uint64_t time_ns)
{
	struct event_source *e = hashmap_get(&rates->processes, (uint64_t)parent);

	remove_process(rates, child); /* an earlier process in this pid */
	if (e && time_ns > e->since)
		add_process(rates, child, e);
}

int rates_set(struct rates *rates, pid_t pid, uint64_t period_ns, bool inherited)
{
	struct event_source *e = hashmap_get(&rates->processes, (uint64_t)pid);
	int r = 0;

	if (!period_ns) {
		remove_process(rates, pid);
		e = NULL;
	} else if (!e || e->period_ns != period_ns || is_outdated(rates, e)) {
		r = source_open(rates, pid, period_ns, &e);
		if (!r)
			r = add_process(rates, pid, e);
		else
			remove_process(rates, pid);
	}
	if (r)
		e = NULL;
	/* An inherited "not sampled" is not written: the kernel has it since the fork, and an exec
	 * that is not handled yet has removed it. */
	if (e || !inherited)
		update_kernel(rates, pid, e);
	return r;
}

void rates_exited(struct rates *rates, pid_t pid)
{
	remove_process(rates, pid);
	if (rates->bpf)
		bpf_rates_remove(rates->bpf, pid);
}

uint32_t rates_group(const struct rates *rates, pid_t pid)
{
	const struct event_source *e = hashmap_get(&rates->processes, (uint64_t)pid);

	return e ? e->group : 0;
}

/* A sample that the BPF sampler sent, or deferred to its event, has no group. The kernel takes
 * ticks of a process from one source only, that of its rate at this moment, so the sample counts
 * even if the source has changed since. In another pid namespace the kernel has no rates, and the
 * period identifies the source (choose_period()). */
bool rates_has_sample(const struct rates *rates, const struct sample *sample)
{
	const struct event_source *e = hashmap_get(&rates->processes, (uint64_t)sample->pid);

	if (!e)
		return false;
	if (sample->group)
		return sample->group == e->group;
	return rates->bpf && (bpf_rates_work(rates->bpf) || sample->period == e->events_ns);
}

uint64_t rates_weight_ns(const struct rates *rates, pid_t pid)
{
	const struct event_source *e = hashmap_get(&rates->processes, (uint64_t)pid);

	return e && e->base ? e->events_ns : 0;
}

/* ---- the CPUs' events ---- */

/* 0 or -errno. Processes keep the earlier source until they are set again. */
static int open_cpus(struct rates *rates, uint64_t period_ns)
{
	struct event_source *e = source_new(rates, period_ns, true);
	int r;

	if (!e)
		return -ENOMEM;
	r = source_opened(rates, e, perf_stream_add_cpus(rates->stream, e->events_ns, &e->group));
	if (r)
		return r;
	e->cpus = true;
	e->since = e->idle = 0; /* children inherit it whenever they began */
	e->users = 1;           /* struct rates */
	if (rates->cpus)
		remove_user(rates->cpus);
	rates->cpus = e;
	return 0;
}

/* A dropped tick costs a run of the BPF programs, so the events tick less often instead of dropping
 * most ticks. Events are reopened only if too few of their ticks are kept. */
static uint32_t choose_slower(const struct rates *rates, uint64_t period_ns)
{
	uint32_t kept = rates->share * rates->slower, slower = 1;

	if (kept >= LEAST_KEPT && kept <= RATES_ALL && period_ns * rates->slower <= RARE_NS)
		return rates->slower;
	while (rates->share * slower * 2 <= RATES_ALL && period_ns * slower * 2 <= RARE_NS)
		slower *= 2;
	return slower;
}

/* Sets the share of ticks that the BPF programs keep. */
static void set_kept(const struct rates *rates)
{
	uint32_t kept = rates->share * rates->slower;

	bpf_rates_set_share(rates->bpf, kept < RATES_ALL ? (uint8_t)kept : 0);
}

int rates_set_base(struct rates *rates, uint64_t period_ns, bool keep_unknown)
{
	uint32_t before = rates->slower;
	int r = 0;

	if (!rates->bpf || !bpf_rates_work(rates->bpf))
		return 0;
	rates->keep_unknown = keep_unknown;
	rates->slower = choose_slower(rates, period_ns);
	if (!rates->cpus || rates->cpus->period_ns != period_ns || !is_current(rates, rates->cpus))
		r = open_cpus(rates, period_ns);
	if (r)
		rates->slower = before;
	bpf_rates_set_default(rates->bpf,
			      keep_unknown && rates->cpus ? rates->cpus->events_ns : BPF_RATE_NONE);
	set_kept(rates);
	return r;
}

/* Gives the process a source with the current frequency of ticks. false: it keeps its source, whose
 * ticks have another weight. */
static bool change_source(struct rates *rates, pid_t pid)
{
	struct event_source *e = hashmap_get(&rates->processes, (uint64_t)pid), *next;

	if (!is_outdated(rates, e))
		return true;
	if (source_open(rates, pid, e->period_ns, &next))
		return false;
	if (add_process(rates, pid, next))
		next = NULL;
	update_kernel(rates, pid, next);
	return true;
}

struct pids {
	pid_t *at;
	uint64_t n;
};

static void list_pid(void *arg, uint64_t key, void *value)
{
	struct pids *p = arg;

	(void)value;
	p->at[p->n++] = (pid_t)key;
}

static void change_sources(struct rates *rates)
{
	struct pids p = {.at = calloc(rates->processes.n + 1, sizeof(*p.at))};

	rates->behind |= !p.at;
	if (p.at)
		hashmap_each(&rates->processes, list_pid, &p);
	for (uint64_t i = 0; i < p.n; i++)
		rates->behind |= !change_source(rates, p.at[i]);
	free(p.at);
}

static void follow_share(struct rates *rates)
{
	uint32_t before = rates->slower;
	bool again = rates->behind;

	rates->behind = rates_set_base(rates, rates->cpus->period_ns, rates->keep_unknown) != 0;
	if (again || rates->slower != before)
		change_sources(rates);
}

void rates_set_share(struct rates *rates, uint8_t share)
{
	rates->share = share ? share : RATES_ALL;
	if (rates->cpus)
		follow_share(rates);
	else if (rates->bpf)
		set_kept(rates);
}

void rates_tidy(struct rates *rates, uint64_t now_ns)
{
	if (rates->behind)
		follow_share(rates);
	close_idle(rates, now_ns - IDLE_NS);
}

void rates_free(struct rates *rates)
{
	if (!rates)
		return;
	hashmap_fini(&rates->periods);
	hashmap_fini_free(&rates->sources); /* the perf stream closes their events */
	hashmap_fini(&rates->processes);
	free(rates);
}
