/* SPDX-License-Identifier: Apache-2.0 */
#include "events/internal/group.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "bpf/sampler_events.h"
#include "events/internal/perf_stream_state.h"

#define LEAST_NEED (1u << 20)
#define MOST_NEED (64u << 20)
/* Bytes of the record of a deep stack, for an agent whose stacks are unwound in the kernel. Stack
 * copies of new processes and files have room in LEAST_NEED. */
#define STACK_BYTES (8u << 10)
#define LEAST_OF_STACKS (16u << 10) /* some stacks: for machines of several hundred CPUs */
#define EVENT_RECORDS 500u          /* records in a ring, for events whose rate is not known */

/* Of the events, where what the BPF programs send has a ring of its own: they are sideband, and
 * sometimes a stack copy of perf's. */
#define EVENTS_BYTES RING_MIN

/* A quarter of a second of records of one busy CPU, within the memory of all rings. A recording is
 * short, and its first stacks are copies: its rings have room for copies alone. */
static uint64_t one_ring_size(const struct perf_stream *s, uint64_t total)
{
	bool stacks = s->o.dynamic && s->o.bpf;
	uint64_t records = s->o.kind ? EVENT_RECORDS : 250000000u / s->o.period_ns;
	uint64_t need = (stacks ? STACK_BYTES : s->o.stack_bytes) * records;

	need = need < LEAST_NEED ? LEAST_NEED : need > MOST_NEED ? MOST_NEED : need;
	return ring_choose_size(need, stacks ? LEAST_OF_STACKS : RING_MIN, s->ncpus, total);
}

/* On machines of many CPUs, whose rings are small, there is one for both. */
uint64_t event_group_output_size(const struct perf_stream *s)
{
	uint64_t events = (uint64_t)EVENTS_BYTES * s->ncpus, size;

	if (!s->o.dynamic || !s->o.bpf || s->o.ring_bytes <= events)
		return 0;
	size = one_ring_size(s, s->o.ring_bytes - events);
	return size < 2 * OUTPUT_LEAST ? 0 : size;
}

uint64_t event_group_ring_size(const struct perf_stream *s)
{
	return s->output_bytes ? EVENTS_BYTES : one_ring_size(s, s->o.ring_bytes);
}

/* Takes the descriptor over. */
static int add_fd(struct event_group *g, int fd)
{
	if (!ARRAY_ROOM(g->fds, g->nfds, g->cap)) {
		close(fd);
		return -ENOMEM;
	}
	g->fds[g->nfds++] = fd;
	return 0;
}

int event_group_add_ring(struct perf_stream *s, struct event_group *g, struct stream_cpu *c)
{
	uint64_t size = event_group_ring_size(s);
	int fd = event_open_ring(c->number, ring_wake_bytes(size)), r = fd < 0 ? fd : add_fd(g, fd);

	return r ? r : stream_cpu_open_ring(c, s->epoll, fd, size);
}

/* Samples of the base group, number 0, are not counted by group. */
static int list_event(struct perf_stream *s, struct event_group *g, int fd)
{
	uint64_t id;
	int r;

	if (!g->number)
		return 0;
	r = event_id(fd, &id);
	return r ? r : hashmap_put(&s->group_by_event, id, g);
}

/* Adds the event of one thread on one CPU; tid -1: of the CPU. The CPU's first event brings the
 * ring. */
static int add_event(struct perf_stream *s, struct event_group *g, struct stream_cpu *c, pid_t tid)
{
	struct event_options o = {
		.kind = s->o.kind,
		.period_ns = g->period_ns,
		.stack_bytes = s->o.stack_bytes,
		.wake_bytes = ring_wake_bytes(event_group_ring_size(s)),
		.kernel = s->o.kernel,
		.read = !s->o.all && !s->o.dynamic && !s->o.bpf && !s->o.kind,
		.idle = tid < 0 && s->o.bpf, /* else the CPU's grid of ticks has gaps */
		.sideband = g->cpus ? !g->beside : !s->cpu_period_ns,
		.on_exec = s->o.on_exec && !g->own && !g->cpus,
		.silent = perf_stream_is_silent(s),
		.inherit = tid >= 0 && !g->own,
	};
	int fd = event_open(&s->form, &o, tid, c->number), r;

	if (fd < 0)
		return fd;
	r = add_fd(g, fd);
	if (!r && s->o.bpf && !perf_stream_is_silent(s))
		r = bpf_sampler_attach(s->o.bpf, fd);
	if (r)
		return r;
	if (c->ring_fd < 0)
		r = stream_cpu_open_ring(c, s->epoll, fd, event_group_ring_size(s));
	else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, c->ring_fd))
		r = -errno;
	return r ? r : list_event(s, g, fd);
}

struct adding {
	struct perf_stream *s;
	struct event_group *g;
	int (*add)(struct perf_stream *, struct event_group *, pid_t tid);
	struct hashmap seen;
	uint32_t added;
};

static int add_on_all_cpus(struct perf_stream *s, struct event_group *g, pid_t tid)
{
	int r = 0;

	/* CPU time that the thread used under other events, or under none, is not due to these. */
	missed_ticks_end(&s->account.missed, (uint64_t)tid);
	for (uint32_t i = 0; !r && i < s->ncpus; i++)
		r = add_event(s, g, &s->cpus[i], tid);
	return r;
}

static int add_count(struct perf_stream *s, struct event_group *g, pid_t tid)
{
	int fd = event_open_count(&s->form, tid, s->o.on_exec);

	return fd < 0 ? fd : add_fd(g, fd);
}

/* A thread that has ended meanwhile is no error. */
static int add_thread(void *arg, pid_t tid)
{
	struct adding *a = arg;
	int r;

	if (hashmap_get(&a->seen, (uint64_t)tid))
		return 0;
	r = a->add(a->s, a->g, tid);
	if (r && r != -ESRCH)
		return r;
	if (!r)
		a->added++;
	return hashmap_put(&a->seen, (uint64_t)tid, a);
}

static int add_process(struct adding a, pid_t pid)
{
	int r = procfs_each_thread(pid, add_thread, &a);

	if (!r && !a.added)
		r = -ESRCH;
	hashmap_fini(&a.seen);
	return r;
}

int event_group_add_process(struct perf_stream *s, struct event_group *g, pid_t pid)
{
	return add_process((struct adding){.s = s, .g = g, .add = add_on_all_cpus}, pid);
}

int event_group_add_count(struct perf_stream *s, struct event_group *g, pid_t pid)
{
	return add_process((struct adding){.s = s, .g = g, .add = add_count}, pid);
}

int event_group_add_own(struct perf_stream *s, struct event_group *g, pid_t tid)
{
	return add_on_all_cpus(s, g, tid);
}

int event_group_add_cpus(struct perf_stream *s, struct event_group *g)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < s->ncpus; i++) {
		r = add_event(s, g, &s->cpus[i], -1);
		if (r == -ENODEV) /* offline: stream_cpus_follow() adds it when it is back */
			r = 0;
	}
	return r;
}

int event_group_reopen(struct perf_stream *s, struct event_group *g, struct stream_cpu *c)
{
	int r = g->cpus ? add_event(s, g, c, -1) : 0;

	if (!r && g->cpus && s->enabled && ioctl(g->fds[g->nfds - 1], PERF_EVENT_IOC_ENABLE, 0))
		r = -errno;
	return r;
}

int event_group_ioctl(const struct event_group *g, unsigned long request)
{
	int r = 0;

	for (uint32_t i = 0; i < g->nfds; i++)
		if (ioctl(g->fds[i], request, 0))
			r = -errno;
	return r;
}

void event_group_read(const struct perf_stream *s, struct event_group *g)
{
	g->count_ns = g->lost = 0;
	for (uint32_t i = 0; i < g->nfds; i++) {
		uint64_t count_ns, lost;

		if (!event_read(&s->form, g->fds[i], &count_ns, &lost)) {
			g->count_ns += count_ns;
			g->lost += lost;
		}
	}
}

void event_group_close(struct perf_stream *s, struct event_group *g)
{
	uint64_t id;

	for (uint32_t i = 0; i < g->nfds; i++) {
		if (g->number && !event_id(g->fds[i], &id))
			hashmap_del(&s->group_by_event, id);
		close(g->fds[i]);
	}
	free(g->fds);
}
