/* SPDX-License-Identifier: Apache-2.0 */
/* Record layouts: perf_event_open(2), linux/perf_event.h. */
#include "events/process_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "process/procfs.h"
#include "events/cpus.h"
#include "events/event.h"
#include "events/ring.h"

#define RING_BYTES (512u << 10) /* some 5,000 processes */
#define SLACK_NS 2000000u       /* so long we wait for other CPUs' records */
#define POLL_NS 1000000000u
#define CPUS_NS 2000000000u /* CPUs that came or went are looked for */

struct watched_cpu {
	struct ring ring;
	int fd; /* -1: none */
};

/* A process as /proc showed it. */
struct seen {
	uint64_t start_ticks;
	char exe[128]; /* enough of it to see that it has changed */
	bool here;     /* in this look */
};

struct process_events {
	struct process_events_handlers on;
	struct watched_cpu *cpus; /* by number */
	int ncpus;
	int online; /* of cpus_open() */
	int epoll;
	bool polls;
	uint64_t looked;     /* over /proc, or at the CPUs */
	struct hashmap seen; /* pid -> struct seen * */
	char how[256];
};

static int open_event(int cpu)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_DUMMY,
		/* the same trailer as of samples: event_time() reads it */
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU,
		.task = 1,
		.comm = 1,
		.comm_exec = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.watermark = 1,
		.wakeup_watermark = 1, /* whoever waits paces itself */
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int fd = (int)syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int open_cpu(struct process_events *l, int cpu)
{
	struct epoll_event e = {.events = EPOLLIN};
	uint64_t size = RING_BYTES;
	struct watched_cpu *c = &l->cpus[cpu];
	int r;

	c->fd = open_event(cpu);
	if (c->fd < 0) {
		r = c->fd;
		c->fd = -1;
		return r;
	}
	r = ring_open(&c->ring, c->fd, &size);
	if (!r && epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &e))
		r = -errno;
	return r;
}

static void close_cpu(struct watched_cpu *c)
{
	ring_close(&c->ring);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static void close_cpus(struct process_events *l)
{
	for (int i = 0; i < l->ncpus; i++)
		close_cpu(&l->cpus[i]);
}

/* Which CPUs are online; there is a place for each. */
static int list_cpus(struct process_events *l, struct cpus *online)
{
	struct watched_cpu *cpus;
	int n;

	cpus_read(online, l->online);
	n = cpus_end(online);
	if (n <= l->ncpus)
		return 0;
	cpus = realloc(l->cpus, (size_t)n * sizeof(*cpus));
	if (!cpus)
		return -ENOMEM;
	for (int i = l->ncpus; i < n; i++)
		cpus[i] = (struct watched_cpu){.fd = -1};
	l->cpus = cpus;
	l->ncpus = n;
	return 0;
}

static int open_cpus(struct process_events *l)
{
	struct cpus online;
	int r = list_cpus(l, &online), opened = 0;

	for (int i = 0; !r && i < l->ncpus; i++) {
		if (!cpus_has(&online, i))
			continue;
		r = open_cpu(l, i);
		opened += !r;
		if (r == -ENODEV) /* went offline meanwhile */
			r = 0;
	}
	return r ? r : opened ? 0 : -ENODEV;
}

/* An event goes with its CPU, and does not come back with it. */
static void follow_cpus(struct process_events *l)
{
	bool missed = false;
	struct cpus online;

	l->looked = clock_now();
	if (list_cpus(l, &online))
		return;
	for (int i = 0; i < l->ncpus; i++) {
		struct watched_cpu *c = &l->cpus[i];

		if (!cpus_has(&online, i) && c->fd >= 0) {
			close_cpu(c); /* and what it still held */
			missed = true;
		} else if (cpus_has(&online, i) && c->fd < 0) {
			if (open_cpu(l, i))
				close_cpu(c); /* the next time, maybe */
			else
				missed = true; /* what began there before */
		}
	}
	if (missed)
		l->on.lost(l->on.arg);
}

/* ---- /proc ---- */

struct look {
	struct process_events *l;
	bool first;
};

static void see(struct look *k, pid_t pid, uint64_t ticks, const char *exe)
{
	struct process_events *l = k->l;
	struct seen *s = hashmap_get(&l->seen, (uint64_t)pid);
	bool is_new = !s || s->start_ticks != ticks;

	if (s && is_new && !k->first)
		l->on.exited(l->on.arg, pid, 0);
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s || hashmap_put(&l->seen, (uint64_t)pid, s)) {
			free(s);
			return;
		}
	}
	if (!k->first && is_new)
		l->on.forked(l->on.arg, pid, 0, 0);
	if (!k->first && (is_new || strcmp(s->exe, exe)))
		l->on.execed(l->on.arg, pid, NULL, 0);
	s->start_ticks = ticks;
	s->here = true;
	strcpy(s->exe, exe);
}

static int look_at(void *arg, pid_t pid)
{
	struct look *k = arg;
	char path[64], exe[sizeof(((struct seen *)NULL)->exe)] = "";
	uint64_t ticks;
	ssize_t n;

	if (procfs_start_ticks(pid, &ticks))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	see(k, pid, ticks, exe);
	return 0;
}

struct gone {
	pid_t pids[256];
	uint32_t n;
};

static void find_gone(void *arg, uint64_t key, void *value)
{
	struct gone *g = arg;
	struct seen *s = value;

	if (!s->here && g->n < sizeof(g->pids) / sizeof(g->pids[0]))
		g->pids[g->n++] = (pid_t)key;
}

static void not_here(void *arg, uint64_t key, void *value)
{
	(void)arg;
	(void)key;
	((struct seen *)value)->here = false;
}

static void look_over(struct process_events *l, bool first)
{
	struct look k = {l, first};
	struct gone g;

	hashmap_each(&l->seen, not_here, NULL);
	procfs_each_process(look_at, &k);
	do {
		g.n = 0;
		hashmap_each(&l->seen, find_gone, &g);
		for (uint32_t i = 0; i < g.n; i++) {
			free(hashmap_del(&l->seen, (uint64_t)g.pids[i]));
			l->on.exited(l->on.arg, g.pids[i], 0);
		}
	} while (g.n);
	l->looked = clock_now();
}

/* ---- records ---- */

struct task {
	uint32_t pid, ppid, tid, ptid;
};

/* Processes of other pid namespaces have the numbers 0 and -1 in ours. */
static bool is_pid(uint32_t pid)
{
	return pid && pid <= INT32_MAX;
}

/* Of a COMM record: behind pid and tid. NULL: it has none. */
static const char *comm_of(const struct perf_event_header *h)
{
	const char *comm = (const char *)(h + 1) + 8;

	return h->size > sizeof(*h) + 8 && memchr(comm, 0, h->size - sizeof(*h) - 8) ? comm : NULL;
}

static void tell(struct process_events *l, const struct perf_event_header *h)
{
	uint64_t time = event_time(h);
	struct task t = {0};
	bool process;

	if (h->type == PERF_RECORD_LOST) {
		l->on.lost(l->on.arg);
		return;
	}
	if (h->size < sizeof(*h) + 8)
		return;
	memcpy(&t, h + 1, h->size < sizeof(*h) + sizeof(t) ? 8 : sizeof(t));
	process = is_pid(t.pid) && t.pid == t.tid;
	if (h->type == PERF_RECORD_FORK && process && t.pid != t.ppid)
		l->on.forked(l->on.arg, (pid_t)t.pid, is_pid(t.ppid) ? (pid_t)t.ppid : 0, time);
	else if (h->type == PERF_RECORD_EXIT && process)
		l->on.exited(l->on.arg, (pid_t)t.pid, time);
	else if (h->type == PERF_RECORD_COMM && is_pid(t.pid) &&
		 h->misc & PERF_RECORD_MISC_COMM_EXEC)
		l->on.execed(l->on.arg, (pid_t)t.pid, comm_of(h), time);
}

static struct ring *oldest(struct process_events *l, uint64_t until)
{
	struct ring *found = NULL;

	for (int i = 0; i < l->ncpus; i++) {
		const struct perf_event_header *h;

		if (l->cpus[i].fd < 0)
			continue;
		h = ring_peek(&l->cpus[i].ring);
		if (h && event_time(h) < until) {
			until = event_time(h);
			found = &l->cpus[i].ring;
		}
	}
	return found;
}

uint64_t process_events_drain(struct process_events *l)
{
	uint64_t until = clock_now() - SLACK_NS;
	struct ring *r;

	if (l->polls) {
		if (clock_now() - l->looked >= POLL_NS)
			look_over(l, false);
		return until;
	}
	if (clock_now() - l->looked >= CPUS_NS)
		follow_cpus(l);
	for (int i = 0; i < l->ncpus; i++)
		if (l->cpus[i].fd >= 0)
			ring_refresh(&l->cpus[i].ring);
	while ((r = oldest(l, until))) {
		tell(l, ring_peek(r));
		ring_next(r);
		ring_release(r);
	}
	return until;
}

/* ---- life ---- */

static void say_how(struct process_events *l, int r)
{
	const char *why = strerror(-r);

	if (!r)
		why = "new processes are told of by the kernel at once (perf events)";
	else if (r == -EACCES || r == -EPERM)
		why = "the kernel tells of all of them only with CAP_PERFMON";
	snprintf(l->how, sizeof(l->how), "%s%s",
		 r ? "new processes are looked for in /proc once a second: " : "", why);
}

int process_events_open(struct process_events **ret, const struct process_events_handlers *on)
{
	struct process_events *l = calloc(1, sizeof(*l));
	int r = -ENOMEM;

	if (!l)
		return r;
	l->on = *on;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0) {
		r = -errno;
		free(l);
		return r;
	}
	l->looked = clock_now();
	l->online = cpus_open();
	r = open_cpus(l);
	say_how(l, r);
	if (r) { /* not allowed, or no room for rings */
		close_cpus(l);
		l->polls = true;
		look_over(l, true);
	}
	*ret = l;
	return 0;
}

void process_events_close(struct process_events *l)
{
	if (!l)
		return;
	close_cpus(l);
	hashmap_fini_free(&l->seen);
	close(l->epoll);
	if (l->online >= 0)
		close(l->online);
	free(l->cpus);
	free(l);
}

bool process_events_polls(const struct process_events *l)
{
	return l->polls;
}

int process_events_fd(const struct process_events *l)
{
	return l->epoll;
}

const char *process_events_how(const struct process_events *l)
{
	return l->how;
}
