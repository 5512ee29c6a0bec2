/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/snapshot.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fusee/unwinder.bpf.h>

#include "../../bpf/sampler.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/table.h"
#include "sampling/bpf_sampler.h"
#include "sampling/cpus.h"
#include "sampling/event.h"
#include "sampling/ring.h"
#include "sampling/tally.h"

/* A record becomes visible a little after its time is taken (the virtual CPU may be stopped in
 * between): so long we wait for other CPUs' records, unless a ring fills up. */
#define SLACK_NS 20000000u
#define HURRY 0.5
#define LOOK_NS 1000000000u /* at which CPUs are online */
#define PAGE 4096u

struct cpu {
	struct ring ring; /* its first event's; the others write into it */
	int number, fd;
	int output;                        /* the event of the BPF sampler's records, -1: none */
	uint64_t output_id, old_output_id; /* old: that of before the CPU went and came back */
	bool gone;                         /* it is offline */
	struct {
		uint32_t tid, by;
	} cut; /* the last walk in the kernel that a language unwinder cut; its sample follows */
};

/* The events of one target, or of all that were there at the beginning. */
struct group {
	struct group *next;
	uint32_t number; /* 0: those of the beginning */
	bool cpus;       /* one event a CPU, which tells of all that runs there */
	uint64_t period_ns, samples;
	int *fds;
	uint32_t nfds, cap;
};

struct snapshot {
	struct snapshot_options o;
	struct event_form form;
	struct cpu *cpus;
	uint32_t ncpus;
	struct group base, *groups; /* dynamic ones, newest first */
	uint32_t numbers;
	uint64_t cpus_ns; /* with bpf: period of the CPUs' own events; 0: there are none */
	struct table ids; /* event -> struct group * */
	struct snapshot_counts gone; /* of removed groups */
	bool enabled;
	int epoll;
	struct tallies
		tallies; /* by event and thread; or, by what the BPF sampler tells, by thread */
	struct snapshot_counts counts; /* skipped: in tallies */
	uint64_t horizon;
	uint64_t looked;
	uint64_t ration;              /* of copies' bytes: each CPU's until the next look */
	struct sampler_record record; /* the one at hand: in the ring it is not aligned */
	struct sampler_copy copy;     /* likewise */
	unsigned char stack[(SAMPLER_COPY_PAGES + 1) * PAGE]; /* of it, each page in its place */
};

#define LEAST_RATION (16u << 20)
#define MOST_RATION (64u << 20)
#define LONG_LOOK_NS 50000000u

/* A quarter of a second of full records of one busy CPU. */
static uint64_t ring_size(const struct snapshot_options *o)
{
	uint64_t want = (uint64_t)o->stack_bytes * (250000000u / o->period_ns + 1), size = 1u << 20;

	while (size < want && size < 64u << 20)
		size *= 2;
	return size;
}

static int open_ring(struct snapshot *s, struct cpu *c, int fd)
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
static int open_own_ring(struct snapshot *s, struct cpu *c)
{
	int fd = event_open_ring(c->number), r = fd < 0 ? fd : keep_fd(&s->base, fd);

	return r ? r : open_ring(s, c, fd);
}

/* Adds the event of one thread on one CPU. The CPU's first event brings the ring. */
static int add_event(struct snapshot *s, struct group *g, struct cpu *c, pid_t tid)
{
	struct snapshot_options o = s->o;
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
			r = table_put(&s->ids, id, g);
	}
	return r;
}

struct adding {
	struct snapshot *s;
	struct group *g;
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
		r = add_event(a->s, a->g, &a->s->cpus[i], tid);
	if (r && r != -ESRCH)
		return r;
	if (!r)
		a->added++;
	return table_put(&a->seen, (uint64_t)tid, a);
}

/* All threads of a process, as they stand now: what they start inherits their events. */
static int add_process(struct snapshot *s, struct group *g, pid_t pid)
{
	struct adding a = {.s = s, .g = g};
	int r = procfs_each_thread(pid, add_thread, &a);

	if (!r && !a.added)
		r = -ESRCH;
	table_fini(&a.seen);
	return r;
}

static int list_cpu(struct snapshot *s, int number)
{
	struct cpu *cpus = realloc(s->cpus, (s->ncpus + 1) * sizeof(*cpus));

	if (!cpus)
		return -ENOMEM;
	s->cpus = cpus;
	cpus[s->ncpus++] = (struct cpu){.number = number, .fd = -1, .output = -1};
	return 0;
}

static int list_cpus(struct snapshot *s, const struct cpus *online)
{
	int r = 0;

	for (int i = 0; !r && i < cpus_end(online); i++)
		if (cpus_has(online, i))
			r = list_cpu(s, i);
	return r;
}

/* Of several processes some may have ended meanwhile, of one not. */
static int add_targets(struct snapshot *s)
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

static int add_cpus(struct snapshot *s, struct group *g)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < s->ncpus; i++) {
		r = add_event(s, g, &s->cpus[i], -1);
		if (r == -ENODEV) /* it went offline; it is looked at when it is back */
			r = 0;
	}
	return r;
}

static int open_output(struct snapshot *s, struct cpu *c)
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
	return r ? r : bpf_sampler_output(s->o.bpf, c->number, c->output);
}

static int reopen_event(struct snapshot *s, struct group *g, struct cpu *c)
{
	int r = g->cpus ? add_event(s, g, c, -1) : 0;

	if (!r && g->cpus && s->enabled && ioctl(g->fds[g->nfds - 1], PERF_EVENT_IOC_ENABLE, 0))
		r = -errno;
	return r;
}

/* Events of a CPU went with it, those of threads are still there; but none where it was offline
 * from the beginning. */
static int reopen_cpu(struct snapshot *s, struct cpu *c)
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

static void cpu_is_back(struct snapshot *s, struct cpu *c)
{
	int r = reopen_cpu(s, c);

	if (r == -ENODEV) /* gone once more */
		return;
	c->gone = false;
	if (r)
		log_warning("CPU %d is online, but what runs there is not sampled: %s", c->number,
			    r == -ENOTSUP ? "it was offline when this began" : strerror(-r));
	else
		log_info("CPU %d is online; what ran there until now may be missing", c->number);
}

/* Those that were never online since this began. */
static void find_new_cpus(struct snapshot *s, const struct cpus *online)
{
	struct cpus new = *online;

	for (uint32_t i = 0; i < s->ncpus; i++)
		cpus_remove(&new, s->cpus[i].number);
	for (int i = 0; i < cpus_end(&new); i++)
		if (cpus_has(&new, i) && !list_cpu(s, i))
			s->cpus[s->ncpus - 1].gone = true;
}

static void follow_cpus(struct snapshot *s)
{
	struct cpus online;

	s->looked = clock_now();
	cpus_online(&online);
	find_new_cpus(s, &online);
	for (uint32_t i = 0; i < s->ncpus; i++) {
		struct cpu *c = &s->cpus[i];
		bool gone = !cpus_has(&online, c->number);

		if (gone && !c->gone) {
			c->gone = true;
			log_info("CPU %d went offline", c->number);
		} else if (!gone && c->gone) {
			cpu_is_back(s, c);
		}
	}
}

/* What each CPU may copy until the next look: what is free, but for an eighth of the ring, which is
 * for other records; and less where this look took long: else news of what could be walked in the
 * kernel come ever later, and everything is copied. */
static void ration_copies(struct snapshot *s, uint64_t took_ns)
{
	uint64_t most = took_ns > LONG_LOOK_NS ? s->ration / 2 : s->ration * 2;

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
	bpf_sampler_read(s->o.bpf, most);
}

int snapshot_open(struct snapshot **ret, const struct snapshot_options *o)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	struct rlimit files;
	struct cpus online;
	int r;

	if (!s)
		return -ENOMEM;
	s->o = *o;
	s->base.period_ns = o->period_ns;
	s->base.cpus = o->all;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	cpus_online(&online);
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
		bpf_sampler_copy(o->bpf, o->stack_bytes);
	for (uint32_t i = 0; !r && o->bpf && i < s->ncpus; i++)
		r = open_output(s, &s->cpus[i]);
	s->counts.gaps = s->form.read || o->bpf;
	s->ration = MOST_RATION;
	if (!r && o->bpf)
		ration_copies(s, 0);
	if (r)
		snapshot_close(s);
	else
		*ret = s;
	return r;
}

static void close_group(struct snapshot *s, struct group *g)
{
	uint64_t id;

	for (uint32_t i = 0; i < g->nfds; i++) {
		if (g->number && !event_id(g->fds[i], &id))
			table_del(&s->ids, id);
		close(g->fds[i]);
	}
	free(g->fds);
}

void snapshot_close(struct snapshot *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->ncpus; i++) {
		ring_close(&s->cpus[i].ring);
		if (s->cpus[i].output >= 0)
			close(s->cpus[i].output);
	}
	while (s->groups)
		snapshot_remove(s, s->groups->number);
	close_group(s, &s->base);
	table_fini(&s->ids);
	tally_fini(&s->tallies);
	if (s->epoll >= 0)
		close(s->epoll);
	free(s->cpus);
	free(s);
}

bool snapshot_kernel(const struct snapshot *s)
{
	return s->form.kernel || !s->form.settled;
}

uint32_t snapshot_events(const struct snapshot *s)
{
	uint32_t n = s->base.nfds;

	for (const struct group *g = s->groups; g; g = g->next)
		n += g->nfds;
	return n;
}

int snapshot_fd(const struct snapshot *s)
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

static int on_all(struct snapshot *s, unsigned long request)
{
	int r = on_group(&s->base, request);

	for (const struct group *g = s->groups; g; g = g->next)
		if (on_group(g, request))
			r = -errno;
	return r;
}

int snapshot_enable(struct snapshot *s)
{
	if (s->o.dynamic)
		tally_anew(&s->tallies);
	s->enabled = true;
	if (s->cpus_ns)
		bpf_sampler_base(s->o.bpf, s->cpus_ns);
	return on_all(s, PERF_EVENT_IOC_ENABLE);
}

int snapshot_disable(struct snapshot *s)
{
	s->enabled = false;
	return on_all(s, PERF_EVENT_IOC_DISABLE);
}

static void free_group(struct snapshot *s, struct group *g)
{
	close_group(s, g);
	free(g);
}

static int add_group(struct snapshot *s, pid_t pid, uint64_t period_ns, struct group **ret)
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

int snapshot_add(struct snapshot *s, pid_t pid, uint64_t period_ns, uint32_t *number)
{
	struct group *g;
	int r = add_group(s, pid, period_ns, &g);

	if (!r && s->enabled) {
		r = on_group(g, PERF_EVENT_IOC_ENABLE);
		if (r)
			snapshot_remove(s, g->number);
	}
	if (!r)
		*number = g->number;
	return r;
}

int snapshot_add_cpus(struct snapshot *s, uint64_t period_ns, uint32_t *number)
{
	uint64_t before = s->cpus_ns;
	int r;

	if (!s->o.bpf)
		return -ENOTSUP;
	s->cpus_ns = period_ns;
	bpf_sampler_base(s->o.bpf, period_ns);
	r = snapshot_add(s, -1, period_ns, number);
	if (r) {
		s->cpus_ns = before;
		bpf_sampler_base(s->o.bpf, before);
	}
	return r;
}

/* Adds what a group's events saw. */
static void count_group(struct snapshot *s, const struct group *g, struct snapshot_counts *c)
{
	uint64_t count_ns = 0, lost = 0, ticks;

	for (uint32_t i = 0; i < g->nfds; i++) {
		uint64_t count, n;

		if (!event_read(&s->form, g->fds[i], &count, &n)) {
			count_ns += count;
			lost += n;
		}
	}
	ticks = count_ns / g->period_ns;
	c->count_ns += g->cpus ? 0 : count_ns;
	c->ring_full += lost;
	if (!s->o.bpf) /* which tells it by thread */
		c->skipped += ticks > g->samples + lost ? ticks - g->samples - lost : 0;
}

void snapshot_remove(struct snapshot *s, uint32_t number)
{
	struct group **at = &s->groups, *g;

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	g = *at;
	if (!g)
		return;
	count_group(s, g, &s->gone);
	*at = g->next;
	free_group(s, g);
}

/* A thread began or ended. With the CPUs' own events one is counted once it ticks by its own. */
static void note_thread(struct snapshot *s, const struct perf_event_header *h)
{
	const uint32_t *ids = (const void *)(h + 1); /* pid, ppid, tid, ptid */

	if (h->size < sizeof(*h) + 16)
		return;
	if (h->type == PERF_RECORD_FORK && !s->cpus_ns)
		tally_begin(&s->tallies, ids[2]);
	else
		tally_end(&s->tallies, ids[2]);
}

static void note_group(struct snapshot *s, struct event_sample *e)
{
	struct group *g = s->ids.n ? table_get(&s->ids, e->id) : NULL;

	e->s.group = g ? g->number : 0;
	if (g)
		g->samples++;
}

/* Each page in its place, those that are not there zero; bytes up to the last one that is. */
static uint32_t place_pages(struct snapshot *s, const struct sampler_copy *copy)
{
	uint64_t sp = copy->regs[FUSEE_X86_RSP];
	uint32_t from = 0, to = 0, end = 0;

	for (uint32_t page = 0; page < SAMPLER_COPY_PAGES && from < copy->bytes; page++) {
		uint32_t n = PAGE - (uint32_t)((sp + to) % PAGE);

		if (copy->holes >> page & 1) {
			memset(s->stack + to, 0, n);
		} else {
			n = n < copy->bytes - from ? n : copy->bytes - from;
			memcpy(s->stack + to, copy->stack + from, n);
			from += n;
			end = to + n;
		}
		to += n;
	}
	return end;
}

/* The kernel's frames stand behind a marker of perf's where they came from a callchain. */
static void take_kernel(const struct sampler_copy *copy, struct snapshot_sample *to)
{
	bool marked = copy->nkernel && copy->kernel[0] >= (uint64_t)PERF_CONTEXT_MAX;

	to->kernel = (const uint64_t *)copy->kernel + marked;
	to->nkernel = copy->nkernel - marked;
}

/* A copy of a stack that the BPF sampler made. */
static void dispatch_copy(struct snapshot *s, const void *from, uint32_t len,
			  const struct snapshot_walked *w, const struct snapshot_handlers *on)
{
	const struct sampler_record *r = w->record;
	struct sampler_copy *copy = &s->copy;
	struct snapshot_sample sample = {.pid = (pid_t)r->pid,
					 .tid = (pid_t)r->tid,
					 .cpu = w->cpu,
					 .time = w->time,
					 .period = r->period,
					 .abi = 2,
					 .cut = r->version,
					 .stack = s->stack};

	if (len < SAMPLER_COPY_HEAD)
		return;
	memcpy(copy, from, len < sizeof(*copy) ? len : sizeof(*copy));
	if (copy->bytes > len - SAMPLER_COPY_HEAD || copy->bytes > SAMPLER_MAX_COPY ||
	    copy->nkernel > SAMPLER_MAX_KERNEL)
		return;
	memcpy(sample.regs, copy->regs, sizeof(sample.regs));
	sample.stack_len = place_pages(s, copy);
	sample.holes = copy->holes;
	sample.stack_full = copy->bytes == copy->limit;
	take_kernel(copy, &sample);
	if (!copy->bytes && sample.nkernel)
		sample.abi = 0; /* it ends, and its memory is gone: the kernel's frames are all */
	s->counts.samples++;
	on->sample(on->arg, &sample);
}

/* The program knows numbers of the first pid namespace, perf those of ours. */
static void take_ids(struct sampler_record *r, const uint32_t ids[2])
{
	if (ids[0] != UINT32_MAX)
		r->pid = ids[0];
	if (ids[1] != UINT32_MAX)
		r->tid = ids[1];
}

/* A record that the BPF sampler sent. */
static void dispatch_walked(struct snapshot *s, struct cpu *c, const struct perf_event_header *h,
			    const struct snapshot_handlers *on)
{
	struct snapshot_walked w = {.time = event_time(h), .record = &s->record};
	struct sampler_record *r = &s->record;
	uint32_t len, ids[2];
	const void *from = event_parse_output(h, &len, &w.cpu, ids);

	if (!from || len < SAMPLER_RECORD_HEAD)
		return;
	memcpy(r, from, SAMPLER_RECORD_HEAD);
	take_ids(r, ids);
	if (r->nuser == SAMPLER_COPIED) {
		if (!r->base)
			tally_runtime(&s->tallies, r->tid, w.cpu, r->runtime, r->period);
		dispatch_copy(s, from, len, &w, on);
		return;
	}
	memcpy(r->frames, (const char *)from + SAMPLER_RECORD_HEAD,
	       (len < sizeof(*r) ? len : sizeof(*r)) - SAMPLER_RECORD_HEAD);
	if (r->nkernel > SAMPLER_MAX_KERNEL || r->nuser > SAMPLER_MAX_WORDS - r->nkernel ||
	    SAMPLER_RECORD_HEAD + 8 * (r->nkernel + r->nuser) > len)
		return;
	if (r->left == SAMPLER_EMISSIONS) {
		on->emitted(on->arg, &w);
		return;
	}
	if (!r->base) /* which the program counts */
		tally_runtime(&s->tallies, r->tid, w.cpu, r->runtime, r->period);
	if (r->left && !(r->left & SAMPLER_NO_COPY)) {
		c->cut.tid = r->tid;
		c->cut.by = r->version;
		return;
	}
	w.period = r->period;
	s->counts.samples++;
	s->counts.walked += !r->left;
	on->walked(on->arg, &w);
}

static void dispatch_sample(struct snapshot *s, struct cpu *c, const struct perf_event_header *h,
			    const struct snapshot_handlers *on)
{
	struct event_sample e;

	if (!event_parse_sample(&s->form, h, &e))
		return;
	s->counts.samples++;
	if (s->form.read)
		tally_count(&s->tallies, e.id << 32 ^ (uint64_t)e.s.tid, e.value, s->o.period_ns);
	note_group(s, &e);
	if (c->cut.tid == (uint32_t)e.s.tid)
		e.s.cut = c->cut.by;
	c->cut.tid = 0;
	on->sample(on->arg, &e.s);
}

static void dispatch(struct snapshot *s, struct cpu *c, const struct perf_event_header *h,
		     const struct snapshot_handlers *on)
{
	const uint64_t *body = (const void *)(h + 1);

	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		if (c->output >= 0 &&
		    (event_sample_id(h) == c->output_id || event_sample_id(h) == c->old_output_id))
			dispatch_walked(s, c, h, on);
		else
			dispatch_sample(s, c, h, on);
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
		if (s->o.bpf && !s->o.all &&
		    (h->type == PERF_RECORD_FORK || h->type == PERF_RECORD_EXIT))
			note_thread(s, h);
		event_parse_sideband(h, on);
	}
}

/* limit: nothing newer is handed over. */
static void drain(struct snapshot *s, const struct snapshot_handlers *on, bool final,
		  uint64_t limit)
{
	uint64_t began = clock_now(), until = began - SLACK_NS, horizon = until;

	if (!final && s->enabled && until - s->looked > LOOK_NS)
		follow_cpus(s);
	for (uint32_t i = 0; i < s->ncpus; i++) {
		if (s->cpus[i].fd < 0)
			continue;
		ring_refresh(&s->cpus[i].ring);
		if (ring_full(&s->cpus[i].ring) > HURRY)
			until = UINT64_MAX;
	}
	if (final)
		until = UINT64_MAX;
	until = until < limit ? until : limit;
	for (;;) {
		struct cpu *oldest = NULL;
		uint64_t best = until;

		for (uint32_t i = 0; i < s->ncpus; i++) {
			const struct perf_event_header *h;

			if (s->cpus[i].fd < 0)
				continue;
			h = ring_peek(&s->cpus[i].ring);
			if (h && event_time(h) < best) {
				best = event_time(h);
				oldest = &s->cpus[i];
			}
		}
		if (!oldest)
			break;
		dispatch(s, oldest, ring_peek(&oldest->ring), on);
		ring_next(&oldest->ring);
		ring_release(&oldest->ring);
	}
	s->horizon = horizon < limit ? horizon : limit;
	if (s->o.bpf)
		ration_copies(s, clock_now() - began);
}

void snapshot_drain(struct snapshot *s, const struct snapshot_handlers *on, bool final)
{
	drain(s, on, final, UINT64_MAX);
}

void snapshot_drain_until(struct snapshot *s, const struct snapshot_handlers *on, uint64_t until)
{
	drain(s, on, false, until);
}

uint64_t snapshot_horizon(const struct snapshot *s)
{
	return s->horizon;
}

/* Ticks that found no room. The events count everything that is lost, news of mappings too. Where a
 * program looks at each tick first, it is known better: what it meant to send, or that the events
 * send, and that did not come. */
static uint64_t lost_ticks(struct snapshot *s, uint64_t of_events)
{
	struct bpf_sampler_stats b;
	uint64_t meant = 0, missing, lost;

	if (!s->o.bpf)
		return of_events;
	bpf_sampler_stats(s->o.bpf, &b);
	for (uint32_t i = SAMPLER_WALKED; i <= SAMPLER_CHANGED; i++)
		meant += b.counts[i];
	missing = meant > s->counts.samples ? meant - s->counts.samples : 0;
	lost = of_events + b.counts[SAMPLER_NOT_SENT];
	return lost < missing ? lost : missing;
}

/* Removed groups, and those that are there. What a group's last samples are short of, while they
 * still lie in the ring, looks like skipped for a moment. */
static void count_groups(struct snapshot *s, struct snapshot_counts *c)
{
	c->count_ns = s->gone.count_ns;
	c->skipped = s->o.bpf ? s->tallies.skipped : s->gone.skipped;
	c->ring_full = s->gone.ring_full;
	for (const struct group *g = s->groups; g; g = g->next)
		count_group(s, g, c);
	c->ring_full = lost_ticks(s, c->ring_full);
}

/* The scheduler's clock is not quite the events': it counts switches too, and comes late. The
 * events are exact, but for the period that each thread began on each CPU and did not end. Where
 * these say more, they are believed. */
static uint64_t bounded(const struct snapshot *s, const struct snapshot_counts *c)
{
	uint64_t ticks = c->count_ns / s->o.period_ns, seen = c->samples + c->ring_full;
	uint64_t most = ticks > seen ? ticks - seen : 0;
	uint64_t begun = s->tallies.unfinished ? s->tallies.unfinished - 1 : 0;
	uint64_t least = most > begun ? most - begun : 0;
	uint64_t told = c->skipped > c->ring_full ? c->skipped - c->ring_full : 0;

	return told < least ? least : told > most ? most : told;
}

/* The events of the beginning. */
static void count_base(struct snapshot *s, struct snapshot_counts *c)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < s->base.nfds; i++) {
		uint64_t count, n;

		if (event_read(&s->form, s->base.fds[i], &count, &n))
			continue;
		lost += n;
		if (!s->o.all)
			c->count_ns += count;
	}
	if (s->form.lost)
		c->ring_full = lost_ticks(s, lost);
}

void snapshot_counts(struct snapshot *s, struct snapshot_counts *c)
{
	*c = s->counts;
	c->gaps &= !s->tallies.broken;
	c->skipped = s->tallies.skipped;
	if (s->o.dynamic)
		count_groups(s, c);
	else
		count_base(s, c);
	if (s->o.dynamic && !s->o.bpf)
		return;
	if (s->cpus_ns && s->o.all) {
		c->skipped = bpf_sampler_unseen(s->o.bpf);
	} else if (s->o.bpf && !s->o.dynamic) {
		c->skipped = bounded(s, c);
	} else if (c->gaps || s->o.all || s->o.dynamic) {
		/* A sample that found no room is a gap too, and already counted. */
		c->skipped -= c->skipped < c->ring_full ? c->skipped : c->ring_full;
		if (s->cpus_ns && s->form.kernel) /* else ticks in the kernel are not due */
			c->skipped += bpf_sampler_unseen(s->o.bpf);
	} else {
		uint64_t ticks = c->count_ns / s->o.period_ns, seen = c->samples + c->ring_full;

		c->skipped = ticks > seen ? ticks - seen : 0;
	}
}
