/* SPDX-License-Identifier: Apache-2.0 */
/* Events and rings, of targets and CPUs as they come and go. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "bpf/sampler_events.h"
#include "events/cpus.h"
#include "events/perf_stream_state.h"

#define LEAST_RATION (16u << 20)
#define MOST_RATION (64u << 20)
#define LONG_LOOK_NS 50000000u

/* A quarter of a second of full records of one busy CPU. */
static uint64_t ring_size(const struct perf_stream_options *o)
{
	uint64_t want = (uint64_t)o->stack_bytes * (250000000u / o->period_ns + 1), size = 1u << 20;

	while (size < want && size < 64u << 20)
		size *= 2;
	return size;
}

static int open_ring(struct perf_stream *s, struct cpu *c, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};
	uint64_t size = ring_size(&s->o);
	int r = ring_open(&c->ring, fd, &size);

	c->fd = fd;
	if (!r && epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e))
		r = -errno;
	return r;
}

static int keep_fd(struct group *g, int fd)
{
	if (g->nfds == g->cap) {
		uint32_t cap = g->cap ? g->cap * 2 : 8;
		int *fds = realloc(g->fds, cap * sizeof(*fds));

		if (!fds) {
			close(fd);
			return -ENOMEM;
		}
		g->fds = fds;
		g->cap = cap;
	}
	g->fds[g->nfds++] = fd;
	return 0;
}

/* Of a CPU whose events come and go: it hangs on one that stays. */
static int open_own_ring(struct perf_stream *s, struct cpu *c)
{
	int fd = event_open_ring(c->number), r = fd < 0 ? fd : keep_fd(&s->base, fd);

	return r ? r : open_ring(s, c, fd);
}

/* Adds the event of one thread on one CPU. The CPU's first event brings the ring. */
static int add_event(struct perf_stream *s, struct group *g, struct cpu *c, pid_t tid)
{
	struct perf_stream_options o = s->o;
	uint64_t id;
	int fd, r;

	o.period_ns = g->period_ns;
	o.told = !g->cpus && s->cpus_ns;
	fd = event_open(&s->form, &o, tid, c->number);
	if (fd < 0)
		return fd;
	r = keep_fd(g, fd);
	if (!r && s->o.bpf)
		r = bpf_sampler_attach(s->o.bpf, fd);
	if (r)
		return r;
	if (c->fd < 0)
		r = open_ring(s, c, fd);
	else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, c->fd))
		r = -errno;
	if (!r && g->number) {
		r = event_id(fd, &id);
		if (!r)
			r = hashmap_put(&s->ids, id, g);
	}
	return r;
}

struct adding {
	struct perf_stream *s;
	struct group *g;
	struct hashmap seen;
	uint32_t added;
};

/* A thread on all CPUs. One that has ended meanwhile is no error. */
static int add_thread(void *arg, pid_t tid)
{
	struct adding *a = arg;
	int r = 0;

	if (hashmap_get(&a->seen, (uint64_t)tid))
		return 0;
	for (uint32_t i = 0; !r && i < a->s->ncpus; i++)
		r = add_event(a->s, a->g, &a->s->cpus[i], tid);
	if (r && r != -ESRCH)
		return r;
	if (!r)
		a->added++;
	return hashmap_put(&a->seen, (uint64_t)tid, a);
}

/* All threads of a process, as they stand now: what they start inherits their events. */
static int add_process(struct perf_stream *s, struct group *g, pid_t pid)
{
	struct adding a = {.s = s, .g = g};
	int r = procfs_each_thread(pid, add_thread, &a);

	if (!r && !a.added)
		r = -ESRCH;
	hashmap_fini(&a.seen);
	return r;
}

static int list_cpu(struct perf_stream *s, int number)
{
	struct cpu *cpus = realloc(s->cpus, (s->ncpus + 1) * sizeof(*cpus));

	if (!cpus)
		return -ENOMEM;
	s->cpus = cpus;
	cpus[s->ncpus++] = (struct cpu){.number = number, .fd = -1, .output = -1};
	return 0;
}

static int list_cpus(struct perf_stream *s, const struct cpus *online)
{
	int r = 0;

	for (int i = 0; !r && i < cpus_end(online); i++)
		if (cpus_has(online, i))
			r = list_cpu(s, i);
	return r;
}

/* Of several processes some may have ended meanwhile, of one not. */
static int add_targets(struct perf_stream *s)
{
	uint32_t added = 0;
	int r = 0;

	for (uint32_t i = 0; !r && i < s->o.npids; i++) {
		r = add_process(s, &s->base, s->o.pids[i]);
		added += !r;
		if (r == -ESRCH && s->o.npids > 1)
			r = 0;
	}
	return !r && s->o.npids && !added ? -ESRCH : r;
}

static int add_cpus(struct perf_stream *s, struct group *g)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < s->ncpus; i++) {
		r = add_event(s, g, &s->cpus[i], -1);
		if (r == -ENODEV) /* it went offline; it is looked at when it is back */
			r = 0;
	}
	return r;
}

static int open_output(struct perf_stream *s, struct cpu *c)
{
	int r;

	if (c->fd < 0)
		return 0;
	c->output = event_open_output(&s->form, c->number);
	if (c->output < 0)
		return c->output;
	r = event_id(c->output, &c->output_id);
	if (!r && ioctl(c->output, PERF_EVENT_IOC_SET_OUTPUT, c->fd))
		r = -errno;
	return r ? r : bpf_sampler_set_output(s->o.bpf, c->number, c->output);
}

static int reopen_event(struct perf_stream *s, struct group *g, struct cpu *c)
{
	int r = g->cpus ? add_event(s, g, c, -1) : 0;

	if (!r && g->cpus && s->enabled && ioctl(g->fds[g->nfds - 1], PERF_EVENT_IOC_ENABLE, 0))
		r = -errno;
	return r;
}

/* Events of a CPU went with it, those of threads are still there; but none where it was offline
 * from the beginning. */
static int reopen_cpu(struct perf_stream *s, struct cpu *c)
{
	int r = s->o.dynamic && c->fd < 0 ? open_own_ring(s, c) : 0;

	if (!r)
		r = reopen_event(s, &s->base, c);
	for (struct group *g = s->groups; !r && g; g = g->next)
		r = reopen_event(s, g, c);
	if (!r && c->fd < 0)
		r = -ENOTSUP;
	if (r || !s->o.bpf)
		return r;
	if (c->output >= 0)
		close(c->output);
	c->old_output_id = c->output_id; /* its records may still lie in the ring */
	return open_output(s, c);
}

static void cpu_is_back(struct perf_stream *s, struct cpu *c)
{
	int r = reopen_cpu(s, c);

	if (r == -ENODEV) /* gone once more */
		return;
	c->gone = false;
	if (r)
		log_warning("CPU %d is online, but what runs there is not sampled: %s", c->number,
			    r == -ENOTSUP
				    ? "it was offline when this began, start again to sample it"
				    : strerror(-r));
	else
		log_info("CPU %d is online; what ran there until now may be missing", c->number);
}

/* Those that were never online since this began. */
static void find_new_cpus(struct perf_stream *s, const struct cpus *online)
{
	struct cpus new = *online;

	for (uint32_t i = 0; i < s->ncpus; i++)
		cpus_remove(&new, s->cpus[i].number);
	for (int i = 0; i < cpus_end(&new); i++)
		if (cpus_has(&new, i) && !list_cpu(s, i))
			s->cpus[s->ncpus - 1].gone = true;
}

bool perf_stream_follow_cpus(struct perf_stream *s)
{
	struct cpus online;
	bool missed = false;

	s->looked = clock_now();
	cpus_read(&online, s->online);
	find_new_cpus(s, &online);
	for (uint32_t i = 0; i < s->ncpus; i++) {
		struct cpu *c = &s->cpus[i];
		bool gone = !cpus_has(&online, c->number);

		if (gone && !c->gone) {
			c->gone = true;
			log_info("CPU %d went offline", c->number);
		} else if (!gone && c->gone) {
			cpu_is_back(s, c);
			missed = true;
		}
	}
	return missed;
}

/* What each CPU may copy until the next look: what is free, but for an eighth of the ring, which is
 * for other records; and less where this look took long: else news of what could be walked in the
 * kernel come ever later, and everything is copied. */
void perf_stream_ration(struct perf_stream *s, uint64_t took_ns)
{
	uint64_t most = !s->ration               ? MOST_RATION
			: took_ns > LONG_LOOK_NS ? s->ration / 2
						 : s->ration * 2;

	most = most < LEAST_RATION ? LEAST_RATION : most > MOST_RATION ? MOST_RATION : most;
	s->ration = most;
	for (uint32_t i = 0; i < s->ncpus; i++) {
		struct ring *r = &s->cpus[i].ring;
		double free;

		if (s->cpus[i].fd < 0)
			continue;
		ring_refresh(r);
		free = (0.875 - ring_full(r)) * (double)r->size;
		if (free < (double)most)
			most = free > 0 ? (uint64_t)free : 0;
	}
	bpf_sampler_begin_round(s->o.bpf, most);
}

int perf_stream_open(struct perf_stream **ret, const struct perf_stream_options *o)
{
	struct perf_stream *s = calloc(1, sizeof(*s));
	struct rlimit files;
	struct cpus online;
	int r;

	if (!s)
		return -ENOMEM;
	s->o = *o;
	s->base.period_ns = o->period_ns;
	s->base.cpus = o->all;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->online = cpus_open();
	cpus_read(&online, s->online);
	r = s->epoll < 0 ? -errno : list_cpus(s, &online);
	/* Threads x CPUs events: as many as the hard limit allows. */
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (!r && o->all)
		r = add_cpus(s, &s->base);
	if (o->all && o->bpf)
		s->cpus_ns = o->period_ns;
	for (uint32_t i = 0; !r && o->dynamic && i < s->ncpus; i++)
		r = open_own_ring(s, &s->cpus[i]);
	r = r || o->all ? r : add_targets(s);
	if (!r && o->bpf)
		bpf_sampler_set_copy_bytes(o->bpf, o->stack_bytes);
	for (uint32_t i = 0; !r && o->bpf && i < s->ncpus; i++)
		r = open_output(s, &s->cpus[i]);
	s->counts.gaps = s->form.read || o->bpf;
	if (!r && o->bpf)
		perf_stream_ration(s, 0);
	if (r)
		perf_stream_close(s);
	else
		*ret = s;
	return r;
}

static void close_group(struct perf_stream *s, struct group *g)
{
	uint64_t id;

	for (uint32_t i = 0; i < g->nfds; i++) {
		if (g->number && !event_id(g->fds[i], &id))
			hashmap_del(&s->ids, id);
		close(g->fds[i]);
	}
	free(g->fds);
}

void perf_stream_close(struct perf_stream *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->ncpus; i++) {
		ring_close(&s->cpus[i].ring);
		if (s->cpus[i].output >= 0)
			close(s->cpus[i].output);
	}
	while (s->groups)
		perf_stream_remove(s, s->groups->number);
	close_group(s, &s->base);
	hashmap_fini(&s->ids);
	missed_ticks_fini(&s->tallies);
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->online >= 0)
		close(s->online);
	free(s->cpus);
	free(s);
}

bool perf_stream_kernel(const struct perf_stream *s)
{
	return s->form.kernel || !s->form.settled;
}

uint32_t perf_stream_events(const struct perf_stream *s)
{
	uint32_t n = s->base.nfds;

	for (const struct group *g = s->groups; g; g = g->next)
		n += g->nfds;
	return n;
}

int perf_stream_fd(const struct perf_stream *s)
{
	return s->epoll;
}

static int on_group(const struct group *g, unsigned long request)
{
	int r = 0;

	for (uint32_t i = 0; i < g->nfds; i++)
		if (ioctl(g->fds[i], request, 0))
			r = -errno;
	return r;
}

static int on_all(struct perf_stream *s, unsigned long request)
{
	int r = on_group(&s->base, request);

	for (const struct group *g = s->groups; g; g = g->next)
		if (on_group(g, request))
			r = -errno;
	return r;
}

int perf_stream_enable(struct perf_stream *s)
{
	if (s->o.dynamic)
		missed_ticks_anew(&s->tallies);
	s->enabled = true;
	if (s->cpus_ns)
		bpf_sampler_set_cpu_period(s->o.bpf, s->cpus_ns);
	return on_all(s, PERF_EVENT_IOC_ENABLE);
}

int perf_stream_disable(struct perf_stream *s)
{
	s->enabled = false;
	return on_all(s, PERF_EVENT_IOC_DISABLE);
}

static void free_group(struct perf_stream *s, struct group *g)
{
	close_group(s, g);
	free(g);
}

static int add_group(struct perf_stream *s, pid_t pid, uint64_t period_ns, struct group **ret)
{
	struct group *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	g->number = ++s->numbers;
	g->period_ns = period_ns;
	g->cpus = pid < 0;
	r = g->cpus ? add_cpus(s, g) : add_process(s, g, pid);
	if (r) {
		free_group(s, g);
		return r;
	}
	g->next = s->groups;
	s->groups = g;
	*ret = g;
	return 0;
}

int perf_stream_add(struct perf_stream *s, pid_t pid, uint64_t period_ns, uint32_t *number)
{
	struct group *g;
	int r = add_group(s, pid, period_ns, &g);

	if (!r && s->enabled) {
		r = on_group(g, PERF_EVENT_IOC_ENABLE);
		if (r)
			perf_stream_remove(s, g->number);
	}
	if (!r)
		*number = g->number;
	return r;
}

int perf_stream_add_cpus(struct perf_stream *s, uint64_t period_ns, uint32_t *number)
{
	uint64_t before = s->cpus_ns;
	int r;

	if (!s->o.bpf)
		return -ENOTSUP;
	s->cpus_ns = period_ns;
	bpf_sampler_set_cpu_period(s->o.bpf, period_ns);
	r = perf_stream_add(s, -1, period_ns, number);
	if (r) {
		s->cpus_ns = before;
		bpf_sampler_set_cpu_period(s->o.bpf, before);
	}
	return r;
}

void perf_stream_remove(struct perf_stream *s, uint32_t number)
{
	struct group **at = &s->groups, *g;

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	g = *at;
	if (!g)
		return;
	perf_stream_count_group(s, g, &s->gone);
	*at = g->next;
	free_group(s, g);
}
