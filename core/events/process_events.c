/* SPDX-License-Identifier: Apache-2.0 */
/* Record layouts: perf_event_open(2), linux/perf_event.h. */
#include "events/process_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
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
#include "events/internal/cpu_watch.h"
#include "events/internal/cpus.h"
#include "events/internal/event.h"
#include "events/internal/ring.h"
#include "events/internal/ring_queue.h"

#define RING_BYTES (128u << 10) /* some 1,200 processes */
#define RING_LEAST (4u << 10)
#define RINGS_BYTES (4u << 20) /* of all CPUs */
#define SLACK_NS 2000000u      /* records are due when they are older than this */
#define SLICE_NS 20000000u     /* of a drain */
#define LATE_NS 100000000u
#define POLL_NS 1000000000u
#define FOLLOW_CPUS_NS 2000000000u

struct watched_cpu {
	struct ring ring;
	int fd; /* -1: none */
};

/* A process in /proc. */
struct known_process {
	uint64_t start_ticks;
	char exe[128]; /* the beginning of its path: enough to see that it has changed */
	bool found;    /* in this scan */
};

struct process_events {
	struct process_events_handlers on;
	struct watched_cpu *cpus; /* by number */
	int ncpus;
	int online_fd; /* of cpus_open() */
	struct cpu_watch watch;
	int epoll;
	bool polls;
	bool behind;          /* records remain that were due */
	uint64_t until;       /* what the last drain returned */
	uint64_t read_ns;     /* when /proc, or the list of CPUs, was read */
	struct hashmap known; /* pid -> struct known_process * */
	char how[256];
};

static int open_event(int cpu)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_DUMMY,
		/* the same trailer as that of samples, for event_time() */
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU,
		.task = 1,
		.comm = 1,
		.comm_exec = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.watermark = 1,
		.wakeup_watermark = 1, /* the caller sets the pace */
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int fd = (int)syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

uint64_t process_events_ring_size(uint32_t cpus)
{
	return ring_choose_size(RING_BYTES, RING_LEAST, cpus, RINGS_BYTES);
}

static int open_cpu(struct process_events *e, int cpu)
{
	struct epoll_event in = {.events = EPOLLIN};
	uint64_t size = process_events_ring_size((uint32_t)e->ncpus);
	struct watched_cpu *c = &e->cpus[cpu];
	int r;

	c->fd = open_event(cpu);
	if (c->fd < 0) {
		r = c->fd;
		c->fd = -1;
		return r;
	}
	r = ring_open(&c->ring, c->fd, &size);
	if (!r && epoll_ctl(e->epoll, EPOLL_CTL_ADD, c->fd, &in))
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

static void close_cpus(struct process_events *e)
{
	for (int i = 0; i < e->ncpus; i++)
		close_cpu(&e->cpus[i]);
}

/* Reads which CPUs are online and makes room for each. */
static int list_cpus(struct process_events *e, struct cpus *online)
{
	struct watched_cpu *cpus;
	int n;

	cpus_read(online, e->online_fd);
	cpu_watch_look(&e->watch, online);
	n = cpus_end(online);
	if (n <= e->ncpus)
		return 0;
	cpus = realloc(e->cpus, (size_t)n * sizeof(*cpus));
	if (!cpus)
		return -ENOMEM;
	for (int i = e->ncpus; i < n; i++)
		cpus[i] = (struct watched_cpu){.fd = -1};
	e->cpus = cpus;
	e->ncpus = n;
	return 0;
}

static int open_cpus(struct process_events *e)
{
	struct cpus online;
	int r = list_cpus(e, &online), opened = 0;

	for (int i = 0; !r && i < e->ncpus; i++) {
		if (!cpus_has(&online, i))
			continue;
		r = open_cpu(e, i);
		opened += !r;
		if (r == -ENODEV) /* offline meanwhile */
			r = 0;
	}
	return r ? r : opened ? 0 : -ENODEV;
}

/* The event of a CPU that goes offline ends, and must be opened again when the CPU is back. */
static void follow_cpus(struct process_events *e)
{
	bool missed = false;
	struct cpus online;

	e->read_ns = clock_now();
	if (list_cpus(e, &online))
		return;
	for (int i = 0; i < e->ncpus; i++) {
		struct watched_cpu *c = &e->cpus[i];

		if (!cpus_has(&online, i) && c->fd >= 0) {
			close_cpu(c); /* with its unread records */
			missed = true;
		} else if (cpus_has(&online, i) && c->fd < 0) {
			if (open_cpu(e, i))
				close_cpu(c); /* to be tried again */
			else
				missed = true; /* processes that began there meanwhile */
		}
	}
	if (missed)
		e->on.lost(e->on.arg);
}

/* ---- /proc ---- */

struct scan {
	struct process_events *events;
	bool first;
};

static void report_process(struct scan *k, pid_t pid, uint64_t ticks, const char *exe)
{
	struct process_events *e = k->events;
	struct known_process *s = hashmap_get(&e->known, (uint64_t)pid);
	bool is_new = !s || s->start_ticks != ticks;

	if (s && is_new && !k->first)
		e->on.exited(e->on.arg, pid, 0);
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s || hashmap_put(&e->known, (uint64_t)pid, s)) {
			free(s);
			return;
		}
	}
	if (!k->first && is_new)
		e->on.forked(e->on.arg, pid, 0, 0);
	if (!k->first && (is_new || strcmp(s->exe, exe)))
		e->on.execed(e->on.arg, pid, NULL, 0);
	s->start_ticks = ticks;
	s->found = true;
	strcpy(s->exe, exe);
}

static int scan_process(void *arg, pid_t pid)
{
	struct scan *k = arg;
	char exe[sizeof(((struct known_process *)NULL)->exe)];
	uint64_t ticks;

	if (procfs_start_ticks(pid, &ticks))
		return 0;
	procfs_exe(pid, exe, sizeof(exe));
	report_process(k, pid, ticks, exe);
	return 0;
}

struct ended {
	pid_t pids[256];
	uint32_t n;
};

static void find_ended(void *arg, uint64_t key, void *value)
{
	struct ended *g = arg;
	struct known_process *s = value;

	if (!s->found && g->n < sizeof(g->pids) / sizeof(g->pids[0]))
		g->pids[g->n++] = (pid_t)key;
}

static void clear_found(void *arg, uint64_t key, void *value)
{
	(void)arg;
	(void)key;
	((struct known_process *)value)->found = false;
}

static void scan_proc(struct process_events *e, bool first)
{
	struct scan k = {e, first};
	struct ended g;

	hashmap_each(&e->known, clear_found, NULL);
	procfs_each_process(scan_process, &k);
	do {
		g.n = 0;
		hashmap_each(&e->known, find_ended, &g);
		for (uint32_t i = 0; i < g.n; i++) {
			free(hashmap_del(&e->known, (uint64_t)g.pids[i]));
			e->on.exited(e->on.arg, g.pids[i], 0);
		}
	} while (g.n);
	e->read_ns = clock_now();
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

/* The name in a COMM record; NULL: the record is too short. */
static const char *comm_of(const struct perf_event_header *h)
{
	const char *comm = (const char *)(h + 1) + 8;

	return h->size > sizeof(*h) + 8 && memchr(comm, 0, h->size - sizeof(*h) - 8) ? comm : NULL;
}

/* Whether the process has ended with this thread. Its first thread may end before the others. */
static bool is_end(const struct task *t)
{
	pid_t pid = (pid_t)t->pid;

	procfs_keep(pid);     /* the handler reads the same */
	if (t->pid == t->tid) /* mostly it has ended by now */
		return (kill(pid, 0) && errno == ESRCH) || procfs_living_thread(pid) == pid;
	return procfs_is_leaderless(pid) && procfs_is_exiting(pid);
}

static void report_record(struct process_events *e, const struct perf_event_header *h)
{
	uint64_t time = event_time(h);
	struct task t = {0};

	if (h->type == PERF_RECORD_LOST) {
		e->on.lost(e->on.arg);
		return;
	}
	if (h->size < sizeof(*h) + 8)
		return;
	memcpy(&t, h + 1, h->size < sizeof(*h) + sizeof(t) ? 8 : sizeof(t));
	if (h->type == PERF_RECORD_FORK && is_pid(t.pid) && t.pid == t.tid && t.pid != t.ppid)
		e->on.forked(e->on.arg, (pid_t)t.pid, is_pid(t.ppid) ? (pid_t)t.ppid : 0, time);
	else if (h->type == PERF_RECORD_EXIT && is_pid(t.pid) && is_end(&t))
		e->on.exited(e->on.arg, (pid_t)t.pid, time);
	else if (h->type == PERF_RECORD_COMM && is_pid(t.pid) &&
		 h->misc & PERF_RECORD_MISC_COMM_EXEC)
		e->on.execed(e->on.arg, (pid_t)t.pid, comm_of(h), time);
	procfs_keep(0);
}

/* Refreshes and queues the rings of all CPUs. */
static struct ring_queue queue_rings(struct process_events *e)
{
	struct ring_queue q = {0};

	for (int i = 0; i < e->ncpus; i++)
		if (e->cpus[i].fd >= 0) {
			ring_refresh(&e->cpus[i].ring);
			ring_queue_add(&q, &e->cpus[i].ring);
		}
	return q;
}

uint64_t process_events_drain(struct process_events *e, bool now)
{
	uint64_t began = clock_now(), until = began - (now ? 0 : SLACK_NS);
	struct ring_queue q;
	struct ring *r;

	if (e->polls) {
		if (clock_now() - e->read_ns >= POLL_NS)
			scan_proc(e, false);
		return until;
	}
	if (clock_now() - e->read_ns >= FOLLOW_CPUS_NS)
		follow_cpus(e);
	e->behind = false;
	q = queue_rings(e);
	while ((r = ring_queue_oldest(&q, until))) {
		e->behind = clock_now() - began > SLICE_NS;
		if (e->behind) {
			if (began - r->queued.time < LATE_NS)
				until = r->queued.time - 1; /* the older were reported */
			break;
		}
		report_record(e, ring_peek(r));
		ring_queue_next(&q);
	}
	e->until = until > e->until ? until : e->until;
	return e->until;
}

bool process_events_are_waiting(struct process_events *e)
{
	struct epoll_event woken[64];
	bool waiting = false;

	epoll_wait(e->epoll, woken, sizeof(woken) / sizeof(*woken), 0);
	for (int i = 0; i < e->ncpus; i++)
		if (e->cpus[i].fd >= 0) {
			ring_refresh(&e->cpus[i].ring);
			waiting |= ring_peek(&e->cpus[i].ring) != NULL;
		}
	return waiting;
}

bool process_events_is_behind(const struct process_events *e)
{
	return e->behind;
}

/* ---- opening and closing ---- */

static void describe(struct process_events *e, int r)
{
	const char *why = strerror(-r);

	if (!r)
		why = "the kernel reports new processes at once (perf events)";
	else if (r == -EACCES || r == -EPERM)
		why = "the kernel reports them only to processes with CAP_PERFMON";
	snprintf(e->how, sizeof(e->how), "%s%s",
		 r ? "new processes are looked for in /proc once a second: " : "", why);
}

int process_events_open(struct process_events **ret, const struct process_events_handlers *on)
{
	struct process_events *e = calloc(1, sizeof(*e));
	int r = -ENOMEM;

	if (!e)
		return r;
	e->on = *on;
	e->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (e->epoll < 0) {
		r = -errno;
		free(e);
		return r;
	}
	e->read_ns = clock_now();
	e->online_fd = cpus_open();
	r = open_cpus(e);
	describe(e, r);
	if (r) { /* not allowed, or no room for rings */
		close_cpus(e);
		e->polls = true;
		scan_proc(e, true);
	}
	*ret = e;
	return 0;
}

void process_events_close(struct process_events *e)
{
	if (!e)
		return;
	close_cpus(e);
	hashmap_fini_free(&e->known);
	close(e->epoll);
	cpu_watch_close(&e->watch);
	if (e->online_fd >= 0)
		close(e->online_fd);
	free(e->cpus);
	free(e);
}

bool process_events_polls(const struct process_events *e)
{
	return e->polls;
}

int process_events_fd(const struct process_events *e)
{
	return e->epoll;
}

const char *process_events_how(const struct process_events *e)
{
	return e->how;
}
