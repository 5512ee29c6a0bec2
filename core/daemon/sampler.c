/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sampler.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/table.h"

#define IDLE_NS 1000000000u /* its last samples are still in the rings for a moment */

struct feed {
	uint32_t number; /* of the snapshot's group */
	uint32_t users;
	uint64_t period_ns;
	uint64_t since; /* when its events stood */
	uint64_t idle;  /* when its last user left; 0: it has some */
};

struct sampler {
	struct snapshot *snapshot;
	struct table processes; /* pid -> struct feed * */
	struct table feeds;     /* number -> struct feed * */
};

int sampler_new(struct sampler **ret, struct snapshot *snapshot)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->snapshot = snapshot;
	return 0;
}

static void free_feed(void *arg, uint64_t key, void *value)
{
	struct sampler *s = arg;

	(void)key;
	snapshot_remove(s->snapshot, ((struct feed *)value)->number);
	free(value);
}

void sampler_free(struct sampler *s)
{
	if (!s)
		return;
	table_each(&s->feeds, free_feed, s);
	table_fini(&s->feeds);
	table_fini(&s->processes);
	free(s);
}

static void leave(struct sampler *s, pid_t pid)
{
	struct feed *f = table_del(&s->processes, (uint64_t)pid);

	if (f && !--f->users)
		f->idle = clock_now();
}

/* 0 or -ENOMEM: then it is fed by nobody. */
static int join(struct sampler *s, pid_t pid, struct feed *f)
{
	int r;

	leave(s, pid);
	r = table_put(&s->processes, (uint64_t)pid, f);
	if (!r) {
		f->users++;
		f->idle = 0;
	}
	return r;
}

void sampler_forked(struct sampler *s, pid_t parent, pid_t child, uint64_t time_ns)
{
	struct feed *f = table_get(&s->processes, (uint64_t)parent);

	leave(s, child); /* of an older process of this number */
	if (f && time_ns > f->since)
		join(s, child, f);
}

int sampler_set(struct sampler *s, pid_t pid, uint64_t period_ns)
{
	struct feed *f = table_get(&s->processes, (uint64_t)pid);
	int r;

	if (!period_ns)
		leave(s, pid);
	if (!period_ns || (f && f->period_ns == period_ns))
		return 0;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->period_ns = period_ns;
	r = snapshot_add(s->snapshot, pid, period_ns, &f->number);
	if (r) {
		free(f);
		leave(s, pid);
		return r;
	}
	f->since = f->idle = clock_now();
	r = table_put(&s->feeds, f->number, f);
	if (r) {
		snapshot_remove(s->snapshot, f->number);
		free(f);
		return r;
	}
	return join(s, pid, f);
}

uint32_t sampler_group(const struct sampler *s, pid_t pid)
{
	const struct feed *f = table_get(&s->processes, (uint64_t)pid);

	return f ? f->number : 0;
}

uint64_t sampler_period(const struct sampler *s, pid_t pid)
{
	const struct feed *f = table_get(&s->processes, (uint64_t)pid);

	return f ? f->period_ns : 0;
}

struct idle {
	uint64_t before;
	struct feed *found;
};

static void find_idle(void *arg, uint64_t key, void *value)
{
	struct idle *i = arg;
	struct feed *f = value;

	(void)key;
	if (f->idle && f->idle < i->before)
		i->found = f;
}

void sampler_tidy(struct sampler *s, uint64_t now_ns)
{
	struct idle i = {.before = now_ns - IDLE_NS};

	for (;;) {
		i.found = NULL;
		table_each(&s->feeds, find_idle, &i);
		if (!i.found)
			break;
		table_del(&s->feeds, i.found->number);
		snapshot_remove(s->snapshot, i.found->number);
		free(i.found);
	}
}
