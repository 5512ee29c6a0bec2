/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/rates.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hashmap.h"

#define IDLE_NS 1000000000u /* its last samples are still in the rings for a moment */

/* What feeds a process and those that it starts. */
struct event_source {
	struct event_source
		*whole;  /* of which only some ticks are taken; NULL: all of its events are */
	bool cpus;       /* its events, or the whole's, are the CPUs' */
	uint32_t number; /* of the snapshot's group */
	uint32_t users;
	uint64_t period_ns; /* what a sample stands for */
	uint64_t since;     /* when its events stood */
	uint64_t idle;      /* when its last user left; 0: it has some */
};

struct rates {
	struct perf_stream *snapshot;
	struct bpf_sampler *bpf;
	struct event_source *cpus; /* the CPUs' events; NULL: there are none */
	struct hashmap processes;  /* pid -> struct event_source * */
	struct hashmap feeds;      /* itself -> struct event_source * */
};

int rates_new(struct rates **ret, struct perf_stream *snapshot, struct bpf_sampler *bpf)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->snapshot = snapshot;
	(*ret)->bpf = bpf;
	return 0;
}

/* ---- feeds ---- */

static uint64_t key_of(const struct event_source *f)
{
	return (uint64_t)(uintptr_t)f;
}

static void end_feed(struct rates *s, struct event_source *f)
{
	if (!f->whole)
		perf_stream_remove(s->snapshot, f->number);
	else if (!--f->whole->users)
		f->whole->idle = clock_now();
	free(f);
}

/* One that has no events yet; it has a place, so that they are not opened in vain. NULL: no memory.
 */
static struct event_source *new_feed(struct rates *s, uint64_t period_ns)
{
	struct event_source *f = calloc(1, sizeof(*f));

	if (f && hashmap_put(&s->feeds, key_of(f), f)) {
		free(f);
		return NULL;
	}
	if (f)
		f->period_ns = period_ns;
	return f;
}

/* Its events were opened, with that. 0 or -errno: then it is gone. */
static int begin_feed(struct rates *s, struct event_source *f, int r)
{
	if (r) {
		hashmap_del(&s->feeds, key_of(f));
		free(f);
	} else {
		f->since = f->idle = clock_now();
	}
	return r;
}

/* Events of the process's own. */
static int feed_process(struct rates *s, pid_t pid, uint64_t period_ns, struct event_source **ret)
{
	struct event_source *f = *ret = new_feed(s, period_ns);

	if (!f)
		return -ENOMEM;
	return begin_feed(s, f, perf_stream_add(s->snapshot, pid, period_ns, &f->number));
}

/* Some of the CPUs' ticks. */
static int feed_some(struct rates *s, uint64_t period_ns, struct event_source **ret)
{
	struct event_source *f = *ret = new_feed(s, period_ns);

	if (!f)
		return -ENOMEM;
	f->cpus = true;
	f->whole = s->cpus;
	f->whole->users++;
	f->number = f->whole->number;
	return begin_feed(s, f, 0);
}

static int choose_feed(struct rates *s, pid_t pid, uint64_t period_ns, struct event_source **ret)
{
	if (!s->cpus || period_ns < s->cpus->period_ns)
		return feed_process(s, pid, period_ns, ret);
	if (period_ns > s->cpus->period_ns)
		return feed_some(s, period_ns, ret);
	*ret = s->cpus;
	return 0;
}

/* Would a process that it feeds be fed otherwise now? */
static bool is_outdated(const struct rates *s, const struct event_source *f)
{
	if (!s->cpus || f->period_ns < s->cpus->period_ns)
		return f->cpus;
	return f != s->cpus && f->whole != s->cpus;
}

/* ---- processes ---- */

static void leave(struct rates *s, pid_t pid)
{
	struct event_source *f = hashmap_del(&s->processes, (uint64_t)pid);

	if (f && !--f->users)
		f->idle = clock_now();
}

/* 0 or -ENOMEM: then it is fed by nobody. */
static int join(struct rates *s, pid_t pid, struct event_source *f)
{
	int r;

	f->users++; /* it may be the one that it leaves */
	leave(s, pid);
	r = hashmap_put(&s->processes, (uint64_t)pid, f);
	f->users -= !!r;
	f->idle = f->users ? 0 : clock_now();
	return r;
}

/* Where the kernel has no room for it, ticks of the process are taken as of those that nothing is
 * decided about, and those that are not wanted are dropped unread. */
static void tell(struct rates *s, pid_t pid, const struct event_source *f)
{
	uint64_t period_ns = BPF_SAMPLER_NONE;

	if (!s->bpf)
		return;
	if (f)
		period_ns = f->whole ? f->whole->period_ns : f->period_ns;
	bpf_sampler_decide(s->bpf, pid, period_ns, f ? f->period_ns : 0);
}

void rates_forked(struct rates *s, pid_t parent, pid_t child, uint64_t time_ns)
{
	struct event_source *f = hashmap_get(&s->processes, (uint64_t)parent);

	leave(s, child); /* of an older process of this number */
	if (f && time_ns > f->since)
		join(s, child, f);
}

int rates_set(struct rates *s, pid_t pid, uint64_t period_ns, bool inherited)
{
	struct event_source *f = hashmap_get(&s->processes, (uint64_t)pid);
	int r = 0;

	if (!period_ns) {
		leave(s, pid);
		f = NULL;
	} else if (!f || f->period_ns != period_ns || is_outdated(s, f)) {
		r = choose_feed(s, pid, period_ns, &f);
		if (!r)
			r = join(s, pid, f);
		else
			leave(s, pid);
	}
	if (r)
		f = NULL;
	if (f || !inherited) /* it may have exec'ed since, which ends a refusal */
		tell(s, pid, f);
	return r;
}

void rates_exited(struct rates *s, pid_t pid)
{
	leave(s, pid);
	if (s->bpf)
		bpf_sampler_undecide(s->bpf, pid);
}

uint32_t rates_group(const struct rates *s, pid_t pid)
{
	const struct event_source *f = hashmap_get(&s->processes, (uint64_t)pid);

	return f ? f->number : 0;
}

/* A stack that BPF sent does not say whose event it was, but what it stands for; no two of a
 * process's stand for as much, but for those of CPUs before the kernel was told to keep a part. */
bool rates_feeds(const struct rates *s, const struct sample *sample)
{
	const struct event_source *f = hashmap_get(&s->processes, (uint64_t)sample->pid);

	if (!f)
		return false;
	if (sample->group)
		return sample->group == f->number;
	return s->bpf && (sample->period == f->period_ns ||
			  (f->whole && sample->period == f->whole->period_ns));
}

uint64_t rates_weight(const struct rates *s, pid_t pid)
{
	const struct event_source *f = hashmap_get(&s->processes, (uint64_t)pid);

	return f && f->whole ? f->period_ns : 0;
}

/* ---- the CPUs' events ---- */

/* 0 or -errno. What fed processes until now goes on until they are set anew. */
static int open_cpus(struct rates *s, uint64_t period_ns)
{
	struct event_source *f = new_feed(s, period_ns);
	int r;

	if (!f)
		return -ENOMEM;
	r = begin_feed(s, f, perf_stream_add_cpus(s->snapshot, period_ns, &f->number));
	if (r)
		return r;
	f->cpus = true;
	f->since = f->idle = 0; /* it feeds whatever begins */
	f->users = 1;           /* the sampler */
	if (s->cpus && !--s->cpus->users)
		s->cpus->idle = clock_now();
	s->cpus = f;
	return 0;
}

int rates_base(struct rates *s, uint64_t period_ns, bool keep)
{
	int r = 0;

	if (!s->bpf || !bpf_sampler_is_here(s->bpf))
		return 0;
	if (!s->cpus || s->cpus->period_ns != period_ns)
		r = open_cpus(s, period_ns);
	bpf_sampler_decide_unknown(s->bpf, keep && s->cpus ? s->cpus->period_ns : BPF_SAMPLER_NONE);
	return r;
}

struct idle {
	uint64_t before;
	struct event_source *found;
};

static void find_idle(void *arg, uint64_t key, void *value)
{
	struct idle *i = arg;
	struct event_source *f = value;

	(void)key;
	if (f->idle && f->idle < i->before)
		i->found = f;
}

void rates_tidy(struct rates *s, uint64_t now_ns)
{
	struct idle i = {.before = now_ns - IDLE_NS};

	for (;;) {
		i.found = NULL;
		hashmap_each(&s->feeds, find_idle, &i);
		if (!i.found)
			break;
		hashmap_del(&s->feeds, key_of(i.found));
		end_feed(s, i.found);
	}
}

void rates_free(struct rates *s)
{
	if (!s)
		return;
	hashmap_fini_free(&s->feeds); /* the snapshot closes their events */
	hashmap_fini(&s->processes);
	free(s);
}
