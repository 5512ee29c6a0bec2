/* SPDX-License-Identifier: Apache-2.0 */
#include "dump/internal/threads.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "process/procfs.h"
#include "process/stopped_thread.h"
#include "stop/mapped_code.h"
#include "dump/internal/saved_registers.h"
#include "stop/thread_memory.h"
#include "unwind/walk.h"

#define MAX_STOPS 8 /* of one thread, to wait for tables and for mappings of new code */
#define STOP_NS 1000000000u
#define STOP_D_NS 20000000u    /* for a thread in uninterruptible sleep, which may end soon */
#define WORKER_NS 10000000000u /* for tables that a stack needs */
#define BEAT_NS 1000000000u    /* between two steps, at most */
#define FILES_NS 5000000000u   /* for the opener to open files of the process */
#define TEXTS_NS 2000000000u
#define AGAIN_MS 50

/* The taking of one process's stacks, in a thread of its own: when it ends, the kernel detaches all
 * threads that it traced. */
struct taking {
	struct dump *dump;
	struct profiler *profiler;
	const struct dump_options *o;
	struct thread_memory *memory;
	struct task_registers *source; /* NULL: not needed yet, or the kernel does not permit it */
	bool refused, probed;
	struct saved_registers *saved; /* NULL: threads are stopped */
	struct task_returns returns;   /* of the current sample */
	bool copy; /* no language unwinder: a thread continues as soon as its stack is copied */
	int r;
};

static void beat(const struct taking *k)
{
	atomic_fetch_add(k->o->beats, 1);
}

/* Waits for the tables that a stack needs from the worker. */
static void wait_for_worker(const struct taking *k)
{
	uint64_t until = clock_now() + WORKER_NS;
	int r = -ETIMEDOUT;

	for (uint64_t at = clock_now() + BEAT_NS; r == -ETIMEDOUT && at < until; at += BEAT_NS) {
		beat(k);
		r = worker_wait_until(k->profiler->worker, at);
	}
	beat(k);
}

static struct task_registers *source_of(struct taking *k)
{
	if (!k->source && !k->refused)
		k->refused = task_registers_open(&k->source, k->o->pid) != 0;
	return k->source;
}

/* ---- one thread ---- */

/* The thread is stopped: makes a sample of it. */
static struct sample sample_of(pid_t pid, const struct stopped_thread *t,
			       const struct sample_memory *memory)
{
	struct sample s = {
		.pid = pid,
		.tid = t->tid,
		.time = clock_now(),
		.period = 1,
		.abi = t->is_32_bit ? 1 : 2,
		.memory = memory,
		.tls = t->tls,
		.in_syscall = t->in_syscall,
	};

	memcpy(s.regs, t->regs, sizeof(s.regs));
	return s;
}

/* The thread does not run: adds what uretprobes have replaced in its stack. */
static void add_returns(struct taking *k, struct sample *s)
{
	if (k->probed && !task_registers_returns(k->source, s->tid, &k->returns))
		s->returns = (struct sample_returns){k->returns.page, k->returns.at, k->returns.n};
}

/* The state that was read before the stop is that of the stop, unless the thread ran in between. */
static void check_wait(struct thread_state *state, const struct stopped_thread *t)
{
	if (!state->waits || (state->sp == t->regs[7] && state->pc == t->regs[16]))
		return;
	*state->wchan = *state->stack = '\0';
	state->state = 'R';
}

static enum dump_miss miss_of(int err, const struct thread_state *state)
{
	if (err == -ESRCH)
		return DUMP_ENDED;
	if (err == -ETIMEDOUT)
		return DUMP_NO_STOP;
	return state->tracer ? DUMP_TRACED : DUMP_NO_RIGHT;
}

static void let_go(struct dumped_thread *d, struct stopped_thread *t)
{
	d->stopped_ns += stopped_thread_end(t);
	d->stops++;
	check_wait(&d->state, t);
}

/* The walk's steps so far are those of another stack. */
static void drop_steps(struct walk_steps **steps)
{
	walk_steps_release(*steps);
	*steps = NULL;
}

/* An attempt to take the stack of a thread. */
struct attempt {
	bool last; /* does not wait for tables */
	bool copy; /* the thread continues before its stack is unwound */
	struct sample s;
	struct walk_steps *steps;
};

/* Stops the thread, unwinds its stack and resumes it. 0: it was unwound; -EAGAIN: the worker is
 * making a table for it; -ENOENT: new code; -EFBIG: its stack is larger than the copy; or as
 * stopped_thread_begin(). */
static int take_once(struct taking *k, struct dumped_thread *d, struct attempt *a)
{
	uint64_t limit = d->state.state == 'D' ? STOP_D_NS : STOP_NS;
	uint64_t sp = a->s.regs[7], pc = a->s.regs[16];
	struct stopped_thread t;
	int r;

	beat(k);
	r = stopped_thread_begin(&t, d->state.tid, clock_now() + limit);
	if (r)
		return r;
	thread_memory_begin(k->memory, t.tid, t.regs[7]);
	a->s = sample_of(k->o->pid, &t, &k->memory->reader);
	add_returns(k, &a->s);
	if (sp != t.regs[7] || pc != t.regs[16])
		drop_steps(&a->steps);
	if (a->copy) {
		thread_memory_copy(k->memory);
		let_go(d, &t);
	}
	r = pipeline_walk_stopped(k->profiler->pipeline, &a->s, !a->last, &a->steps);
	if (!a->copy)
		let_go(d, &t);
	return k->memory->missed ? -EFBIG : r;
}

/* Code that the process has moved to memory is compared, which the opener may not come to at once.
 */
static void wait_for_texts(const struct taking *k)
{
	uint64_t until = clock_now() + TEXTS_NS;

	while (pipeline_awaits_text(k->profiler->pipeline, k->o->pid) && clock_now() < until) {
		struct pollfd fd = {.fd = worker_fd(k->profiler->worker), .events = POLLIN};

		beat(k);
		poll(&fd, 1, AGAIN_MS);
		worker_dispatch(k->profiler->worker);
	}
}

static void prepare(struct taking *k)
{
	wait_for_worker(k);
	wait_for_texts(k);
	k->copy = !pipeline_offer(k->profiler->pipeline, k->o->pid);
	/* Opened before a thread is stopped, because the first reading takes long. */
	k->probed = pipeline_has_uprobes(k->profiler->pipeline, k->o->pid) && source_of(k) &&
		    !task_registers_returns(k->source, k->o->pid, &k->returns);
}

static bool may_try_again(struct taking *k, struct attempt *a, int r, bool *scanned)
{
	switch (r) {
	case -EAGAIN:
		wait_for_worker(k);
		return true;
	case -EFBIG:
		a->copy = false;
		return true;
	case -ENOENT:
		if (*scanned)
			return false;
		*scanned = true;
		pipeline_scan(k->profiler->pipeline, k->o->pid);
		prepare(k);
		return true;
	default:
		return false;
	}
}

static void take_stack(struct taking *k, struct dumped_thread *d)
{
	struct attempt a = {.copy = k->copy};
	bool scanned = false;
	int r, n = 0;

	do {
		a.last = ++n >= MAX_STOPS;
		r = take_once(k, d, &a);
	} while (n <= MAX_STOPS && may_try_again(k, &a, r, &scanned));
	d->miss = r && r != -ENOENT && r != -EFBIG ? miss_of(r, &d->state) : DUMP_TAKEN;
	if (d->miss == DUMP_TAKEN)
		pipeline_add_stopped(k->profiler->pipeline, &a.s);
	walk_steps_release(a.steps);
}

/* Unwinds the stack of a thread that does not run. false: it ran, or its stack is not known. */
static bool take_unstopped(struct taking *k, struct dumped_thread *d)
{
	const struct task_record *saved = k->saved ? saved_registers_of(k->saved, d->state.tid)
						   : NULL;
	struct walk_steps *steps = NULL;
	struct stopped_thread t;
	struct task_record before;
	struct sample s;
	bool taken = false;
	int r = -EAGAIN;

	if (!saved)
		return false;
	before = *saved;
	t = (struct stopped_thread){.tid = d->state.tid,
				    .tls = before.tls,
				    .in_syscall = before.syscall >= 0,
				    .is_32_bit = before.is_32_bit};
	memcpy(t.regs, before.regs, sizeof(t.regs));
	thread_memory_begin(k->memory, t.tid, t.regs[7]);
	s = sample_of(k->o->pid, &t, &k->memory->reader);
	add_returns(k, &s);
	for (int i = 1; i <= MAX_STOPS && r == -EAGAIN; i++) {
		r = pipeline_walk_stopped(k->profiler->pipeline, &s, i < MAX_STOPS, &steps);
		if (r == -EAGAIN)
			wait_for_worker(k);
	}
	if (!r && saved_registers_hold(k->saved, &before)) {
		pipeline_add_stopped(k->profiler->pipeline, &s);
		taken = true;
	}
	walk_steps_release(steps);
	return taken;
}

static void take_thread(struct taking *k, struct dumped_thread *d)
{
	int r;

	beat(k);
	if (k->saved) /* read before the state, so that a check covers both */
		saved_registers_of(k->saved, d->state.tid);
	r = thread_state_read(k->o->pid, d->state.tid, &d->state);
	if (r == -ESRCH || d->state.state == 'Z' || d->state.state == 'X')
		d->miss = DUMP_ENDED;
	else if (d->state.kernel)
		d->miss = DUMP_KERNEL;
	else if (take_unstopped(k, d))
		d->miss = DUMP_TAKEN;
	else if (d->state.tracer)
		d->miss = DUMP_TRACED;
	else
		take_stack(k, d);
}

/* ---- all threads ---- */

static bool is_selected(const struct dump_options *o, pid_t tid)
{
	for (uint32_t i = 0; i < o->ntids; i++)
		if (o->tids[i] == tid)
			return true;
	return !o->ntids;
}

static int add_thread(void *arg, pid_t tid)
{
	struct taking *k = arg;
	struct dump *d = k->dump;
	struct dumped_thread *to;

	if (!is_selected(k->o, tid))
		return 0;
	for (uint32_t i = 0; i < d->n; i++)
		if (d->threads[i].state.tid == tid)
			return 0;
	if (d->n == DUMP_MAX_THREADS)
		return -EFBIG;
	to = ARRAY_ADD(d->threads, d->n, d->cap);
	if (!to)
		return -ENOMEM;
	*to = (struct dumped_thread){.state = {.tid = tid}};
	return 0;
}

/* Also takes threads that begin meanwhile, but a limited number of times. */
static void *take_all(void *arg)
{
	struct taking *k = arg;
	uint32_t done = k->dump->n;

	for (int round = 0; round < 3; round++) {
		k->r = procfs_each_thread(k->o->pid, add_thread, k);
		if (k->r || done == k->dump->n)
			break;
		for (; done < k->dump->n; done++)
			take_thread(k, &k->dump->threads[done]);
	}
	if (k->r == -ESRCH && k->dump->n) /* it has ended meanwhile; its taken stacks are valid */
		k->r = 0;
	return NULL;
}

/* Takes all threads, of a process whose code is known. */
static int take_process(struct taking *k, bool kernel)
{
	pthread_t thread;
	int r;

	k->memory = thread_memory_new();
	if (!k->memory)
		return -ENOMEM;
	if (!k->o->stop && !kernel && source_of(k))
		k->saved = saved_registers_new(k->source, k->o->pid);
	r = -pthread_create(&thread, NULL, take_all, k);
	if (!r)
		r = -pthread_join(thread, NULL);
	saved_registers_free(k->saved);
	task_registers_close(k->source);
	thread_memory_free(k->memory);
	return r ? r : k->r;
}

/* The process's mappings. On a busy machine the opener does not come to all files at once. */
static int read_mappings(const struct taking *k)
{
	struct pipeline *p = k->profiler->pipeline;
	uint64_t until = clock_now() + FILES_NS;
	int r = pipeline_scan_anew(p, k->o->pid);

	while (!r && pipeline_lacks_files(p, k->o->pid)) {
		struct pollfd fd = {.fd = worker_fd(k->profiler->worker), .events = POLLIN};

		if (clock_now() >= until) {
			log_warning(
				"process %d: names may be missing, and stacks may be truncated: "
				"not all of its files could be opened in time",
				(int)k->o->pid);
			break;
		}
		beat(k);
		poll(&fd, 1, AGAIN_MS);
		worker_dispatch(k->profiler->worker);
		r = pipeline_scan_anew(p, k->o->pid);
	}
	return r;
}

int dump_process(struct dump *d, struct profiler *p, const struct dump_options *o)
{
	struct taking k = {.dump = d, .profiler = p, .o = o};
	struct mapped_code code = {0};
	bool kernel = false;
	int r;

	beat(&k);
	r = procfs_is_kernel(o->pid, &kernel);

	if (!r && !kernel)
		r = mapped_code_read(&code, o->pid);
	if (!r && !kernel)
		r = read_mappings(&k);
	beat(&k);
	if (!r) {
		prepare(&k);
		r = take_process(&k, kernel);
	}
	if (!r && !mapped_code_holds(&code, o->pid) && code.n)
		r = procfs_is_exiting(o->pid) ? 0 : -EAGAIN;
	mapped_code_fini(&code);
	return r;
}

void dump_fini(struct dump *d)
{
	free(d->threads);
	*d = (struct dump){0};
}
