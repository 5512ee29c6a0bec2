/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/table.h"
#include "sampling/event.h"
#include "sampling/ring.h"

/* A record becomes visible a little after its time is taken (the virtual CPU may be stopped in
 * between): so long we wait for other CPUs' records, unless a ring fills up. */
#define SLACK_NS 20000000u
#define HURRY 0.5

struct cpu {
	struct ring ring; /* its first event's; the others write into it */
	int number, fd;
};

struct snapshot {
	struct snapshot_options o;
	struct event_form form;
	struct cpu *cpus;
	uint32_t ncpus;
	int *fds; /* of all events */
	uint32_t nfds, cap;
	int epoll;
	struct table tallies; /* (event, thread) -> struct tally * */
	struct snapshot_counts counts;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A quarter of a second of full records of one busy CPU. */
static uint64_t ring_size(const struct snapshot_options *o)
{
	uint64_t want = (uint64_t)o->stack_bytes * (250000000u / o->period_ns + 1), size = 1u << 20;

	while (size < want && size < 64u << 20)
		size *= 2;
	return size;
}

/* Adds the event of one thread on one CPU. The CPU's first event brings the ring. */
static int add_event(struct snapshot *s, struct cpu *c, pid_t tid)
{
	int fd = event_open(&s->form, &s->o, tid, c->number), r = 0;

	if (fd < 0)
		return fd;
	if (s->nfds == s->cap) {
		uint32_t cap = s->cap ? s->cap * 2 : 64;
		int *fds = realloc(s->fds, cap * sizeof(*fds));

		if (!fds) {
			close(fd);
			return -ENOMEM;
		}
		s->fds = fds;
		s->cap = cap;
	}
	s->fds[s->nfds++] = fd;
	if (c->fd < 0) {
		struct epoll_event e = {.events = EPOLLIN};
		uint64_t size = ring_size(&s->o);

		r = ring_open(&c->ring, fd, &size);
		c->fd = fd;
		if (!r && epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e))
			r = -errno;
	} else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, c->fd)) {
		r = -errno;
	}
	return r;
}

struct adding {
	struct snapshot *s;
	struct table seen;
	uint32_t added;
};

/* A thread on all CPUs. One that has ended meanwhile is no error. */
static int add_thread(void *arg, pid_t tid)
{
	struct adding *a = arg;
	int r = 0;

	if (table_get(&a->seen, (uint64_t)tid))
		return 0;
	for (uint32_t i = 0; !r && i < a->s->ncpus; i++)
		r = add_event(a->s, &a->s->cpus[i], tid);
	if (r && r != -ESRCH)
		return r;
	if (!r)
		a->added++;
	return table_put(&a->seen, (uint64_t)tid, a);
}

/* All threads of a process, as they stand now: what they start inherits their events. */
static int add_process(struct snapshot *s, pid_t pid)
{
	struct adding a = {.s = s};
	int r = procfs_each_thread(pid, add_thread, &a);

	if (!r && !a.added)
		r = -ESRCH;
	table_fini(&a.seen);
	return r;
}

static int list_cpus(struct snapshot *s)
{
	char text[4096] = "", *p = text;
	FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	long n = sysconf(_SC_NPROCESSORS_CONF);

	if (!f || !fgets(text, sizeof(text), f))
		snprintf(text, sizeof(text), "0-%ld", n - 1);
	if (f)
		fclose(f);
	s->cpus = calloc((size_t)n, sizeof(*s->cpus));
	if (!s->cpus)
		return -ENOMEM;
	while (*p >= '0' && *p <= '9') {
		long lo = strtol(p, &p, 10), hi = lo;

		if (*p == '-')
			hi = strtol(p + 1, &p, 10);
		for (; lo <= hi && s->ncpus < n; lo++)
			s->cpus[s->ncpus++] = (struct cpu){.number = (int)lo, .fd = -1};
		p += *p == ',';
	}
	return 0;
}

int snapshot_open(struct snapshot **ret, const struct snapshot_options *o)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	struct rlimit files;
	int r;

	if (!s)
		return -ENOMEM;
	s->o = *o;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	r = s->epoll < 0 ? -errno : list_cpus(s);
	/* Threads x CPUs events: as many as the hard limit allows. */
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	for (uint32_t i = 0; !r && o->all && i < s->ncpus; i++)
		r = add_event(s, &s->cpus[i], -1);
	for (uint32_t i = 0; !r && !o->all && i < o->npids; i++)
		r = add_process(s, o->pids[i]);
	s->counts.gaps = s->form.read;
	if (r)
		snapshot_close(s);
	else
		*ret = s;
	return r;
}

void snapshot_close(struct snapshot *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->ncpus; i++)
		ring_close(&s->cpus[i].ring);
	for (uint32_t i = 0; i < s->nfds; i++)
		close(s->fds[i]);
	for (uint64_t i = 0; i < s->tallies.nslots; i++)
		free(s->tallies.slots[i].value);
	table_fini(&s->tallies);
	if (s->epoll >= 0)
		close(s->epoll);
	free(s->cpus);
	free(s->fds);
	free(s);
}

bool snapshot_kernel(const struct snapshot *s)
{
	return s->form.kernel;
}

uint32_t snapshot_events(const struct snapshot *s)
{
	return s->nfds;
}

int snapshot_fd(const struct snapshot *s)
{
	return s->epoll;
}

static int on_all(struct snapshot *s, unsigned long request)
{
	int r = 0;

	for (uint32_t i = 0; i < s->nfds; i++)
		if (ioctl(s->fds[i], request, 0))
			r = -errno;
	return r;
}

int snapshot_enable(struct snapshot *s)
{
	return on_all(s, PERF_EVENT_IOC_ENABLE);
}

int snapshot_disable(struct snapshot *s)
{
	return on_all(s, PERF_EVENT_IOC_DISABLE);
}

/* One thread's event on one CPU. */
struct tally {
	uint64_t value; /* the count at its last sample */
	uint64_t samples;
	uint64_t skipped; /* ticks of that count that no sample came for */
};

/* The account goes by the whole count, not from sample to sample: a timer that comes late by parts
 * of a period, over and over, skips ticks too. */
static void note_gap(struct snapshot *s, const struct event_sample *e)
{
	uint64_t key = e->id << 32 ^ (uint64_t)e->s.tid, ticks;
	struct tally *t = table_get(&s->tallies, key);

	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t || table_put(&s->tallies, key, t)) {
			free(t);
			s->counts.gaps = false;
			return;
		}
	}
	if (e->value < t->value) /* the tid is another thread's now */
		*t = (struct tally){0};
	t->value = e->value;
	t->samples++;
	/* Begun periods, since what follows the last sample is in no tick; but for a sample that is
	 * as late as timers always are. So the account stays within about a period of the count. */
	ticks = (e->value + s->o.period_ns - s->o.period_ns / 10) / s->o.period_ns;
	s->counts.skipped -= t->skipped;
	t->skipped = ticks > t->samples ? ticks - t->samples : 0;
	s->counts.skipped += t->skipped;
}

static void dispatch(struct snapshot *s, const struct perf_event_header *h,
		     const struct snapshot_handlers *on)
{
	const uint64_t *body = (const void *)(h + 1);
	struct event_sample e;

	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		if (!event_parse_sample(&s->form, h, &e))
			break;
		s->counts.samples++;
		if (s->form.read)
			note_gap(s, &e);
		on->sample(on->arg, &e.s);
		break;
	case PERF_RECORD_LOST: /* id, lost */
		on->lost(on->arg, body[1]);
		if (!s->form.lost)
			s->counts.ring_full += body[1];
		break;
	case PERF_RECORD_THROTTLE:
		s->counts.throttled++;
		break;
	default:
		event_parse_sideband(h, on);
	}
}

void snapshot_drain(struct snapshot *s, const struct snapshot_handlers *on, bool final)
{
	uint64_t until = now() - SLACK_NS;

	for (uint32_t i = 0; i < s->ncpus; i++) {
		if (s->cpus[i].fd < 0)
			continue;
		ring_refresh(&s->cpus[i].ring);
		if (ring_full(&s->cpus[i].ring) > HURRY)
			until = UINT64_MAX;
	}
	if (final)
		until = UINT64_MAX;
	for (;;) {
		struct ring *oldest = NULL;
		uint64_t best = until;

		for (uint32_t i = 0; i < s->ncpus; i++) {
			const struct perf_event_header *h;

			if (s->cpus[i].fd < 0)
				continue;
			h = ring_peek(&s->cpus[i].ring);
			if (h && event_time(h) < best) {
				best = event_time(h);
				oldest = &s->cpus[i].ring;
			}
		}
		if (!oldest)
			break;
		dispatch(s, ring_peek(oldest), on);
		ring_next(oldest);
		ring_release(oldest);
	}
}

void snapshot_counts(struct snapshot *s, struct snapshot_counts *c)
{
	uint64_t lost = 0;

	*c = s->counts;
	if (s->o.all)
		return;
	for (uint32_t i = 0; i < s->nfds; i++) {
		uint64_t count, n;

		if (!event_read(&s->form, s->fds[i], &count, &n)) {
			c->count_ns += count;
			lost += n;
		}
	}
	if (s->form.lost)
		c->ring_full = lost;
	if (c->gaps) {
		/* A sample that found no room is a gap too, and already counted. */
		c->skipped -= c->skipped < c->ring_full ? c->skipped : c->ring_full;
	} else {
		uint64_t ticks = c->count_ns / s->o.period_ns, seen = c->samples + c->ring_full;

		c->skipped = ticks > seen ? ticks - seen : 0;
	}
}
