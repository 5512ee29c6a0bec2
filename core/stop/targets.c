/* SPDX-License-Identifier: Apache-2.0 */
#include "stop/internal/targets.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/procfs.h"

#define MOST_KEPT 256u        /* descriptors of clocks: many limits are 1,024 */
#define MOST_THREADS 16384u   /* of a process */
#define CHILDREN_NS 50000000u /* between two looks for what the processes started */

/* ---- processes ---- */

static void free_process(struct stop_targets *t, struct stop_process *p)
{
	for (uint32_t i = 0; i < p->n; i++) {
		t->kept -= p->threads[i].clock.fd >= 0;
		thread_clock_close(&p->threads[i].clock);
	}
	if (p->pidfd >= 0)
		close(p->pidfd);
	mapped_code_fini(&p->code);
	free(p->threads);
	free(p);
}

void stop_targets_fini(struct stop_targets *t)
{
	for (struct stop_process *p = t->first, *next; p; p = next) {
		next = p->next;
		free_process(t, p);
	}
	hashmap_fini(&t->pids);
	hashmap_fini(&t->others);
	*t = (struct stop_targets){0};
}

struct stop_process *stop_targets_find(const struct stop_targets *t, pid_t pid)
{
	return hashmap_get(&t->pids, (uint64_t)pid);
}

int stop_targets_add(struct stop_targets *t, pid_t pid, pid_t parent)
{
	struct stop_process *p;

	if (stop_targets_find(t, pid))
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct stop_process){.pid = pid,
				   .pidfd = (int)syscall(SYS_pidfd_open, pid, 0),
				   .parent = parent,
				   .code_due = true,
				   .next = t->first};
	if (p->pidfd < 0 && errno == ESRCH) {
		free(p);
		return -ESRCH;
	}
	if (hashmap_put(&t->pids, (uint64_t)pid, p)) {
		free_process(t, p);
		return -ENOMEM;
	}
	t->first = p;
	return 0;
}

static void settle(struct stop_targets *t, const struct stop_process *p, struct stop_thread *th)
{
	if (p->taken_ns)
		t->times.unfinished += th->cpu_ns - th->sampled_ns;
	th->sampled_ns = th->cpu_ns;
}

void stop_targets_settle(struct stop_targets *t)
{
	for (struct stop_process *p = t->first; p; p = p->next)
		for (uint32_t i = 0; i < p->n; i++)
			settle(t, p, &p->threads[i]);
}

static void end_thread(struct stop_targets *t, const struct stop_process *p, struct stop_thread *th)
{
	settle(t, p, th);
	t->kept -= th->clock.fd >= 0;
	thread_clock_close(&th->clock);
}

void stop_targets_remove(struct stop_targets *t, struct stop_process *p)
{
	struct stop_process **at = &t->first;

	while (*at && *at != p)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
	hashmap_del(&t->pids, (uint64_t)p->pid);
	for (uint32_t i = 0; i < p->n; i++)
		end_thread(t, p, &p->threads[i]);
	p->n = 0;
	free_process(t, p);
}

void stop_targets_take(struct stop_targets *t, struct stop_process *p, bool all)
{
	for (uint32_t i = 0; i < p->n; i++) {
		struct stop_thread *th = &p->threads[i];

		th->sampled_ns = all ? 0 : th->cpu_ns;
		th->due_ns = th->sampled_ns;
		t->times.cpu += th->cpu_ns - th->sampled_ns;
	}
}

int stop_targets_ran(struct stop_process *p)
{
	struct pollfd fd = {.fd = p->pidfd, .events = POLLIN};
	uint64_t ns;

	if (p->pidfd >= 0 && poll(&fd, 1, 0) > 0)
		return -ESRCH;
	if (process_clock_read(p->pid, &ns))
		return -ESRCH;
	return ns != p->clock_ns;
}

/* ---- threads ---- */

struct stop_thread *stop_targets_thread(struct stop_process *p, pid_t tid)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->threads[i].clock.tid == tid)
			return &p->threads[i];
	return NULL;
}

int stop_targets_read_thread(struct stop_targets *t, struct stop_process *p, struct stop_thread *th)
{
	uint64_t ns = 0, waited = th->wait_ns;
	int r = thread_clock_read(&th->clock, &ns, &waited, &th->runs);

	if (r)
		return r;
	if (p->taken_ns && waited > th->wait_ns)
		t->times.waited += waited - th->wait_ns;
	th->wait_ns = waited;
	if (ns <= th->cpu_ns) /* an estimate was ahead of it */
		return 0;
	if (p->taken_ns)
		t->times.cpu += ns - th->cpu_ns;
	th->cpu_ns = ns;
	return 0;
}

static struct stop_thread *add_thread(struct stop_targets *t, struct stop_process *p, pid_t tid)
{
	struct stop_thread *th;

	if (p->n == p->cap) {
		uint32_t cap = p->cap ? p->cap * 2 : 4;
		struct stop_thread *more = p->n < MOST_THREADS
						   ? realloc(p->threads, cap * sizeof(*more))
						   : NULL;

		if (!more)
			return NULL;
		p->threads = more;
		p->cap = cap;
	}
	th = &p->threads[p->n++];
	*th = (struct stop_thread){0};
	thread_clock_open(&th->clock, p->pid, tid, t->kept < MOST_KEPT);
	t->kept += th->clock.fd >= 0;
	return th;
}

struct reading {
	struct stop_targets *targets;
	struct stop_process *process;
	uint32_t at; /* threads are listed in the order of the last reading, most often */
};

static int see_thread(void *arg, pid_t tid)
{
	struct reading *r = arg;
	struct stop_process *p = r->process;
	struct stop_thread *th;

	th = r->at < p->n && p->threads[r->at].clock.tid == tid ? &p->threads[r->at]
								: stop_targets_thread(p, tid);
	if (th && stop_targets_read_thread(r->targets, p, th) == -ESRCH) {
		/* Another thread has its id now. */
		end_thread(r->targets, p, th);
		*th = (struct stop_thread){0};
		thread_clock_open(&th->clock, p->pid, tid, r->targets->kept < MOST_KEPT);
		r->targets->kept += th->clock.fd >= 0;
		stop_targets_read_thread(r->targets, p, th);
	} else if (!th) {
		th = add_thread(r->targets, p, tid);
		if (!th)
			return -ENOMEM;
		stop_targets_read_thread(r->targets, p, th);
	}
	th->seen = true;
	r->at = (uint32_t)(th - p->threads) + 1;
	return 0;
}

/* A process's clock is of now, and its only thread's is not: the difference between both is the
 * time of threads that have ended. */
static void read_only_thread(struct stop_targets *t, struct stop_process *p, uint64_t ns)
{
	struct stop_thread *th = &p->threads[0];

	if (!p->alone || ns < th->cpu_ns) {
		p->alone = true;
		p->ended_ns = ns - th->cpu_ns;
	} else if (ns - p->ended_ns > th->cpu_ns) {
		if (p->taken_ns)
			t->times.cpu += ns - p->ended_ns - th->cpu_ns;
		th->cpu_ns = ns - p->ended_ns;
	}
}

void stop_targets_note_stop(struct stop_process *p, const struct stop_thread *th)
{
	uint64_t ns;

	if (p->alone && !process_clock_read(p->pid, &ns) && ns >= th->cpu_ns)
		p->ended_ns = ns - th->cpu_ns;
}

void stop_targets_read(struct stop_targets *t, struct stop_process *p)
{
	struct reading r = {.targets = t, .process = p};
	uint64_t ns = p->clock_ns;
	uint32_t n = 0;

	process_clock_read(p->pid, &ns);
	for (uint32_t i = 0; i < p->n; i++)
		p->threads[i].seen = false;
	procfs_each_thread(p->pid, see_thread, &r);
	for (uint32_t i = 0; i < p->n; i++) {
		if (!p->threads[i].seen)
			end_thread(t, p, &p->threads[i]);
		else
			p->threads[n++] = p->threads[i];
	}
	p->n = n;
	if (n == 1)
		read_only_thread(t, p, ns);
	else
		p->alone = false;
	p->clock_ns = ns;
}

/* ---- children ---- */

struct children {
	struct stop_targets *targets;
	void (*added)(void *arg, pid_t parent, pid_t child);
	void *arg;
};

/* Processes that are none are read once. */
static int see_process(void *arg, pid_t pid)
{
	struct children *c = arg;
	struct stop_targets *t = c->targets;
	pid_t parent;

	if (stop_targets_find(t, pid))
		return 0;
	if (hashmap_get(&t->others, (uint64_t)pid)) {
		hashmap_put(&t->others, (uint64_t)pid, &t->marks[t->reading & 1]);
		return 0;
	}
	if (procfs_parent(pid, &parent))
		return 0;
	if (stop_targets_find(t, parent)) {
		if (!stop_targets_add(t, pid, parent))
			c->added(c->arg, parent, pid);
	} else {
		hashmap_put(&t->others, (uint64_t)pid, &t->marks[t->reading & 1]);
	}
	return 0;
}

struct stale {
	const void *mark;
	pid_t pids[256];
	uint32_t n;
};

static void find_stale(void *arg, uint64_t key, void *value)
{
	struct stale *s = arg;

	if (value != s->mark && s->n < sizeof(s->pids) / sizeof(s->pids[0]))
		s->pids[s->n++] = (pid_t)key;
}

/* What has ended may come back as another process. */
static void forget_ended(struct stop_targets *t)
{
	struct stale s = {.mark = &t->marks[t->reading & 1]};

	hashmap_each(&t->others, find_stale, &s);
	for (uint32_t i = 0; i < s.n; i++)
		hashmap_del(&t->others, (uint64_t)s.pids[i]);
}

void stop_targets_find_children(struct stop_targets *t, uint64_t now,
				void (*added)(void *arg, pid_t parent, pid_t child), void *arg)
{
	struct children c = {t, added, arg};

	if (now < t->children_ns)
		return;
	t->children_ns = now + CHILDREN_NS;
	t->reading++;
	procfs_each_process(see_process, &c);
	forget_ended(t);
}
