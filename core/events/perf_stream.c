/* SPDX-License-Identifier: Apache-2.0 */
#include "events/perf_stream.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bpf/sampler_events.h"
#include "bpf/probes.h"
#include "bpf/waits.h"
#include "events/internal/perf_stream_state.h"
#include "events/internal/stream_cpus.h"

#define RECORDING_RINGS (256u << 20)
#define AGENT_RINGS (12u << 20)      /* stacks are unwound in the kernel */
#define AGENT_COPY_RINGS (32u << 20) /* they are copied */

/* ---- opening and closing ---- */

/* One of several processes may have ended meanwhile; a single one may not. */
static int add_pids(struct perf_stream *s)
{
	uint32_t added = 0;
	int r = 0;

	for (uint32_t i = 0; !r && i < s->o.npids; i++) {
		r = event_group_add_process(s, &s->base, s->o.pids[i]);
		added += !r;
		if (r == -ESRCH && s->o.npids > 1)
			r = 0;
	}
	return !r && s->o.npids && !added ? -ESRCH : r;
}

/* Sampling goes on without counts if there are no descriptors for them. -ESRCH: no process is
 * alive.
 */
static int count_pids(struct perf_stream *s)
{
	uint32_t ended = 0;
	int r = 0;

	for (uint32_t i = 0; !r && i < s->o.npids; i++) {
		r = event_group_add_count(s, &s->used, s->o.pids[i]);
		ended += r == -ESRCH;
		if (r == -ESRCH)
			r = 0;
	}
	if (r) {
		event_group_close(s, &s->used);
		s->used = (struct event_group){0};
	}
	return s->o.npids == ended ? -ESRCH : 0;
}

static int add_rings(struct perf_stream *s)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < s->ncpus; i++)
		r = event_group_add_ring(s, &s->base, &s->cpus[i]);
	return r;
}

static int add_targets(struct perf_stream *s)
{
	if (s->base.cpus) {
		int r = event_group_add_cpus(s, &s->base);

		s->cpu_period_ns = s->o.bpf ? s->base.period_ns : 0;
		if (!r && s->o.cpus &&
		    !perf_stream_is_silent(s)) /* an event of a thread slows its switches */
			r = count_pids(s);
		return r;
	}
	/* Dynamic targets come and go, so the rings belong to events of their own. */
	return s->o.dynamic ? add_rings(s) : add_pids(s);
}

static int open_outputs(struct perf_stream *s)
{
	struct epoll_event e = {.events = EPOLLIN};
	int r = 0;

	bpf_sampler_set_copy_bytes(s->o.bpf, s->o.stack_bytes);
	s->look.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->look.fd < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->look.fd, &e) ||
	    epoll_ctl(s->epoll, EPOLL_CTL_ADD, bpf_sampler_wake_fd(s->o.bpf), &e))
		r = -errno;
	for (uint32_t i = 0; !r && i < s->ncpus; i++)
		r = stream_cpu_open_output(&s->cpus[i], &s->form, s->o.bpf, s->epoll,
					   s->output_bytes);
	if (!r)
		stream_cpus_set_copy_budget(s, 0);
	return r;
}

/* There are threads x CPUs events: as many as the hard limit allows. */
static void raise_file_limit(void)
{
	struct rlimit files;

	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

uint64_t perf_stream_default_rings(const struct perf_stream_options *o)
{
	if (!o->dynamic)
		return RECORDING_RINGS;
	return o->bpf ? AGENT_RINGS : AGENT_COPY_RINGS;
}

uint32_t perf_stream_copy_bytes(const struct perf_stream *s)
{
	uint64_t ring = event_group_ring_size(s), half = (ring / 2 - RECORD_COPY_HEAD) & ~7ull;

	return ring < RING_MIN && half < s->o.stack_bytes ? (uint32_t)half : s->o.stack_bytes;
}

int perf_stream_open(struct perf_stream **ret, const struct perf_stream_options *o)
{
	struct perf_stream *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->o = *o;
	s->o.ring_bytes = o->ring_bytes ? o->ring_bytes : perf_stream_default_rings(o);
	s->base.cpus = o->all || o->cpus;
	/* The period shows whether a tick is of a thread's own event or of its CPU's. */
	s->base.period_ns = o->period_ns + o->cpus;
	s->online_fd = s->look.fd = -1;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	r = s->epoll < 0 ? -errno : stream_cpus_open(s);
	raise_file_limit();
	s->output_bytes = event_group_output_size(s);
	s->o.stack_bytes = perf_stream_copy_bytes(s);
	if (!r)
		r = add_targets(s);
	if (!r && o->bpf)
		r = open_outputs(s);
	stream_account_choose(s);
	if (r)
		perf_stream_close(s);
	else
		*ret = s;
	return r;
}

static void free_group(struct perf_stream *s, struct event_group *g)
{
	event_group_close(s, g);
	free(g);
}

void perf_stream_close(struct perf_stream *s)
{
	if (!s)
		return;
	stream_cpus_close(s);
	for (struct event_group *g = s->groups, *next; g; g = next) {
		next = g->next;
		free_group(s, g);
	}
	event_group_close(s, &s->base);
	event_group_close(s, &s->used);
	hashmap_fini(&s->group_by_event);
	missed_ticks_fini(&s->account.missed);
	if (s->look.fd >= 0)
		close(s->look.fd);
	if (s->epoll >= 0)
		close(s->epoll);
	free(s);
}

bool perf_stream_kernel(const struct perf_stream *s)
{
	return s->form.kernel || !s->form.settled;
}

uint32_t perf_stream_events(const struct perf_stream *s)
{
	uint32_t n = s->base.nfds;

	for (const struct event_group *g = s->groups; g; g = g->next)
		n += g->nfds;
	return n;
}

int perf_stream_fd(const struct perf_stream *s)
{
	return s->epoll;
}

/* ---- enabling ---- */

static int ioctl_all(struct perf_stream *s, unsigned long request)
{
	int r = event_group_ioctl(&s->base, request);

	event_group_ioctl(&s->used, request);
	for (const struct event_group *g = s->groups; g; g = g->next)
		if (event_group_ioctl(g, request))
			r = -errno;
	return r;
}

static void set_wait_periods(struct perf_stream *s, const struct wait_periods *periods)
{
	if (perf_stream_has_waits(s))
		bpf_waits_set_periods(s->o.bpf, periods ? periods->at : NULL);
}

static void set_hit_period(struct perf_stream *s, uint32_t period)
{
	if (s->o.hit_period)
		bpf_probes_set_period(s->o.bpf, period);
}

int perf_stream_enable(struct perf_stream *s)
{
	if (s->o.dynamic)
		missed_ticks_restart(&s->account.missed);
	s->enabled = true;
	if (s->cpu_period_ns)
		bpf_sampler_set_cpu_period(s->o.bpf, s->cpu_period_ns);
	set_hit_period(s, s->o.hit_period); /* the process that waits to exec is not selected yet */
	if (!s->o.on_exec)
		set_wait_periods(s, &s->o.wait_periods);
	return ioctl_all(s, PERF_EVENT_IOC_ENABLE);
}

void perf_stream_count_from_exec(struct perf_stream *s, const struct wait_periods *periods)
{
	set_wait_periods(s, periods);
}

void perf_stream_command_runs(struct perf_stream *s)
{
	set_wait_periods(s, &s->o.wait_periods);
}

int perf_stream_disable(struct perf_stream *s)
{
	s->enabled = false;
	set_wait_periods(s, NULL);
	set_hit_period(s, 0);
	return ioctl_all(s, PERF_EVENT_IOC_DISABLE);
}

/* ---- dynamic targets ---- */

/* pid -1: the CPUs. The new group is the first of the list. */
static int add_group(struct perf_stream *s, pid_t pid, const struct event_group *like,
		     uint32_t *number)
{
	struct event_group *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	*g = *like;
	g->number = ++s->last_number;
	g->cpus = pid < 0;
	r = g->cpus ? event_group_add_cpus(s, g) : event_group_add_process(s, g, pid);
	if (r) {
		free_group(s, g);
		return r;
	}
	g->next = s->groups;
	s->groups = g;
	r = s->enabled ? event_group_ioctl(g, PERF_EVENT_IOC_ENABLE) : 0;
	if (r)
		perf_stream_remove(s, g->number);
	else
		*number = g->number;
	return r;
}

int perf_stream_add(struct perf_stream *s, pid_t pid, uint64_t period_ns, uint32_t *number)
{
	return add_group(s, pid, &(struct event_group){.period_ns = period_ns}, number);
}

int perf_stream_add_cpus(struct perf_stream *s, uint64_t period_ns, uint32_t *number)
{
	uint64_t before = s->cpu_period_ns;
	int r;

	if (!s->o.bpf)
		return -ENOTSUP;
	s->cpu_period_ns = period_ns;
	bpf_sampler_set_cpu_period(s->o.bpf, period_ns);
	r = add_group(s, -1, &(struct event_group){.period_ns = period_ns}, number);
	if (r) {
		s->cpu_period_ns = before;
		bpf_sampler_set_cpu_period(s->o.bpf, before);
	}
	stream_account_choose(s);
	return r;
}

int perf_stream_add_cpus_beside(struct perf_stream *s, uint64_t period_ns, uint32_t *number)
{
	int r = s->o.bpf ? bpf_sampler_add_cpu_period(s->o.bpf, period_ns) : -ENOTSUP;

	if (r)
		return r;
	r = add_group(s, -1, &(struct event_group){.period_ns = period_ns, .beside = true}, number);
	if (r)
		bpf_sampler_remove_cpu_period(s->o.bpf, period_ns);
	return r;
}

/* ---- threads with events of their own ---- */

struct thread_list {
	const struct perf_stream *s;
	pid_t tids[MOST_OWN_THREADS];
	uint32_t n, most;
};

static int list_thread(void *arg, pid_t tid)
{
	struct thread_list *list = arg;

	for (uint32_t i = 0; i < list->s->nown; i++)
		if (list->s->own[i] == tid)
			return 0;
	if (list->n == list->most)
		return -E2BIG;
	list->tids[list->n++] = tid;
	return 0;
}

static int add_own_group(struct perf_stream *s, const struct thread_list *list)
{
	struct event_group *g = calloc(1, sizeof(*g));
	int r = 0;

	if (!g)
		return -ENOMEM;
	g->number = ++s->last_number;
	g->period_ns = s->o.period_ns;
	g->own = true;
	for (uint32_t i = 0; !r && i < list->n; i++)
		r = event_group_add_own(s, g, list->tids[i]);
	if (!r && s->enabled)
		r = event_group_ioctl(g, PERF_EVENT_IOC_ENABLE);
	if (r) {
		free_group(s, g);
		return r;
	}
	g->next = s->groups;
	s->groups = g;
	return 0;
}

void perf_stream_add_own(struct perf_stream *s, pid_t pid)
{
	struct thread_list list = {.s = s, .most = MOST_OWN_THREADS - s->nown};

	if (!s->o.cpus || perf_stream_is_silent(s) || procfs_each_thread(pid, list_thread, &list) ||
	    !list.n || add_own_group(s, &list))
		return;
	/* A thread that the kernel does not take has samples of the CPUs' events. */
	for (uint32_t i = 0; i < list.n; i++)
		if (!bpf_sampler_add_thread(s->o.bpf, list.tids[i]))
			s->own[s->nown++] = list.tids[i];
}

void perf_stream_remove(struct perf_stream *s, uint32_t number)
{
	struct event_group **at = &s->groups, *g;
	uint64_t period_ns;

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	g = *at;
	if (!g)
		return;
	stream_account_remove_group(s, g);
	*at = g->next;
	period_ns = g->beside ? g->period_ns : 0;
	free_group(s, g);
	if (period_ns) /* last: its ticks are those of CPUs */
		bpf_sampler_remove_cpu_period(s->o.bpf, period_ns);
}
