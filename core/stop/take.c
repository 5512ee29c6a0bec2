/* SPDX-License-Identifier: Apache-2.0 */
#include "stop/internal/take.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "process/procfs.h"
#include "stop/rights.h"
#include "unwind/walk.h"

#define FRESH_NS 1000000000u /* what is mapped is not read again because of a stack */
#define SPIN_NS 30000u       /* a thread that has its CPU stops within microseconds */
#define WAIT_NS 1000000u     /* a thread that waits for a CPU may stop later */
#define HELP_NS 1000000u     /* for the worker's steps of one stack, during which it is stopped */
#define MOST_TRIES 3u        /* stops in a row without a stack; then there is a reason for it */
#define RETRY_NS 1000000000u /* until a thread that can't be stopped is tried again */
#define LATELY 16            /* stops */
#define SHARE 100      /* one part of the time in which a thread runs, or could, may be stops */
#define FEW_WAITS 4u   /* stops that are not used, as the thread had waited for a CPU */
#define MOST_WAITS 12u /* and was in a system call */
#define MOST_REQUESTS 4096u

int stop_taker_init(struct stop_taker *k)
{
	k->memory = thread_memory_new();
	return k->memory ? 0 : -ENOMEM;
}

void stop_taker_fini(struct stop_taker *k)
{
	thread_memory_free(k->memory);
	free(k->requests);
}

/* ---- what is mapped ---- */

/* Does the process run another program than before, or than its parent? */
static bool has_execed(const struct stop_taker *k, const struct stop_process *p,
		       const struct mapped_code *now)
{
	const struct stop_process *parent = p->parent ? stop_targets_find(k->targets, p->parent)
						      : NULL;

	if (p->code.n)
		return !mapped_code_is_same_program(&p->code, now);
	return p->parent && !(parent && mapped_code_is_same_program(&parent->code, now));
}

/* Without records of the kernel the pipeline has what /proc shows. */
static void report_exec(const struct stop_taker *k, const struct stop_process *p, uint64_t now)
{
	const struct perf_stream_handlers *on = pipeline_handlers(k->o->pipeline);
	char comm[16] = "";

	procfs_comm(p->pid, p->pid, comm);
	on->comm(on->arg, p->pid, p->pid, now, comm, true);
}

static void read_code(struct stop_taker *k, struct stop_process *p, uint64_t now)
{
	struct mapped_code code = {0};

	if (mapped_code_read(&code, p->pid)) {
		mapped_code_fini(&code);
		return;
	}
	if (!k->o->beside_events && has_execed(k, p, &code))
		report_exec(k, p, now);
	mapped_code_fini(&p->code);
	p->code = code;
	p->code_due = p->offered = false;
	p->code_ns = now;
	pipeline_scan_anew(k->o->pipeline, p->pid);
}

void stop_prepare(struct stop_taker *k, struct stop_process *p, uint64_t now)
{
	if (p->code_due)
		read_code(k, p, now);
	if (!p->offered && !p->code_due) {
		p->offered = true;
		pipeline_offer(k->o->pipeline, p->pid);
	}
}

/* ---- what is due ---- */

/* This part of the thread's CPU time has no sample. */
static void lose(struct stop_thread *th, uint64_t *ns)
{
	*ns += th->cpu_ns - th->sampled_ns;
	th->sampled_ns = th->cpu_ns;
}

static void refuse(struct stop_taker *k, const struct stop_process *p, struct stop_thread *th)
{
	pid_t tracer = stop_tracer_of(p->pid, th->clock.tid);

	if (!k->counts->refused) {
		k->counts->refused = p->pid;
		k->counts->refused_tracer = tracer;
	}
	th->traced = tracer;
	th->retry_ns = clock_now() + RETRY_NS;
	lose(th, tracer ? &k->counts->traced_ns : &k->counts->refused_ns);
}

/* For how long it ran, or could. */
static uint64_t time_of(const struct stop_thread *th)
{
	return th->cpu_ns + th->wait_ns;
}

/* After a stop the thread goes on for SHARE times what its stops took lately. By an average, as one
 * long stop would else give much of its time to a single sample. */
static void note_stop(struct stop_thread *th, uint64_t ns)
{
	th->stop_ns += ((int64_t)ns - th->stop_ns) / LATELY;
	th->rest_ns = time_of(th) + (uint64_t)th->stop_ns * SHARE;
}

bool stop_is_due(struct stop_taker *k, struct stop_process *p, struct stop_thread *th, uint64_t now)
{
	uint64_t used = th->cpu_ns - th->sampled_ns, period = k->o->period_ns;

	/* Ticks are up to a quarter early, on average they are not. */
	if (th->requested || used < period / 2 || th->cpu_ns + period / 4 < th->due_ns)
		return false;
	if (th->retry_ns > now) {
		lose(th, th->traced ? &k->counts->traced_ns : &k->counts->refused_ns);
		return false;
	}
	/* It is where it waits by now, and that used no CPU: the next time. */
	if (!thread_runs(p->pid, th->clock.tid))
		return false;
	if (time_of(th) >= th->rest_ns)
		return true;
	k->counts->held_back++;
	return false;
}

/* ---- one stop ---- */

/* The worker takes steps for which no table has room; few stacks have such. */
static void wait_for_step(const struct stop_taker *k, uint64_t until)
{
	struct pollfd fd = {.fd = worker_fd(k->o->worker), .events = POLLIN};
	uint64_t now = clock_now();

	if (now < until && poll(&fd, 1, (int)((until - now) / 1000000u) + 1) > 0)
		worker_dispatch(k->o->worker);
}

/* As pipeline_walk_stopped(), while the thread is stopped. */
static int walk(const struct stop_taker *k, const struct sample *s, bool wait)
{
	uint64_t until = clock_now() + HELP_NS;
	struct walk_steps *steps = NULL;
	int r;

	for (;;) {
		r = pipeline_walk_stopped(k->o->pipeline, s, wait, &steps);
		if (r != -EAGAIN || !steps || !steps->pending)
			break;
		wait = clock_now() < until;
		if (wait)
			wait_for_step(k, until);
	}
	walk_steps_release(steps);
	return r;
}

static void note_name(const struct stop_taker *k, const struct stop_process *p,
		      struct stop_thread *th, uint64_t time)
{
	const struct perf_stream_handlers *on = pipeline_handlers(k->o->pipeline);
	char comm[16] = "";

	if (k->o->beside_events || procfs_comm(p->pid, th->clock.tid, comm) ||
	    !strcmp(comm, th->comm))
		return;
	memcpy(th->comm, comm, sizeof(comm));
	on->comm(on->arg, p->pid, th->clock.tid, time, comm, false);
}

/* The thread goes on: adds its stack, unless that is to be tried again. r: of walk(). */
static void deliver(struct stop_taker *k, struct stop_process *p, struct stop_thread *th,
		    struct sample *s, int r)
{
	bool holds = mapped_code_holds(&p->code, p->pid), last = ++th->tries >= MOST_TRIES;

	if (r == -ENOENT && s->time < p->code_ns + FRESH_NS)
		r = 0; /* what was read anew does not have it either */
	p->code_due |= r == -ENOENT || !holds;
	if (r == -EAGAIN)
		p->offered = false;
	if ((r || !holds) && !last)
		return;
	s->period = th->cpu_ns - th->sampled_ns;
	th->sampled_ns = th->cpu_ns;
	if (th->due_ns + k->o->period_ns < th->cpu_ns)
		th->due_ns = th->cpu_ns - k->o->period_ns;
	th->due_ns += k->o->period_ns;
	th->tries = 0;
	k->counts->samples++;
	pipeline_deliver_stopped(k->o->pipeline, s, !holds);
}

/* waited_ns: for a CPU, between the request and the stop; it was not stopped then. */
static void let_go(struct stop_taker *k, struct stop_thread *th, struct stopped_thread *t,
		   uint64_t waited_ns)
{
	uint64_t ns = stopped_thread_end(t);

	ns -= waited_ns < ns ? waited_ns : ns;
	note_stop(th, ns);
	k->counts->stops++;
	k->counts->stopped_ns += ns;
	if (ns > k->counts->longest_ns)
		k->counts->longest_ns = ns;
}

/* A thread that waited for a CPU stops where it was taken off its CPU, which is at the end of a
 * system call more often than it spends time there. The next tick may find it running; on a machine
 * with one CPU none does. */
static bool is_biased(struct stop_thread *th, const struct stopped_thread *t, uint64_t runs)
{
	if (th->runs == runs || th->waits >= (t->in_syscall ? MOST_WAITS : FEW_WAITS)) {
		th->waits = 0;
		return false;
	}
	th->waits++;
	return true;
}

static void visit(struct stop_taker *k, struct stop_process *p, struct stop_thread *th,
		  struct stopped_thread *t)
{
	struct sample s = {
		.pid = p->pid,
		.tid = t->tid,
		.time = clock_now(),
		.abi = t->is_32_bit ? 1 : 2,
		.memory = &k->memory->reader,
		.tls = t->tls,
		.in_syscall = t->in_syscall,
	};
	uint64_t before = th->wait_ns, runs = th->runs, until = s.time - t->from_ns, waited;
	int r;

	memcpy(s.regs, t->regs, sizeof(s.regs));
	thread_memory_begin(k->memory, t->tid, t->regs[7]);
	if (!stop_targets_read_thread(k->targets, p, th))
		stop_targets_note_stop(p, th);
	waited = th->wait_ns - before;
	if (is_biased(th, t, runs)) {
		let_go(k, th, t, waited < until ? waited : until);
		return;
	}
	r = walk(k, &s, th->tries + 1 < MOST_TRIES);
	note_name(k, p, th, s.time); /* now, as it may take another once it goes on */
	let_go(k, th, t, waited < until ? waited : until);
	deliver(k, p, th, &s, r);
}

/* ---- threads that stop late ---- */

static bool remember(struct stop_taker *k, const struct stop_process *p, struct stop_thread *th,
		     const struct stopped_thread *t)
{
	if (k->nrequests == k->cap) {
		uint32_t cap = k->cap ? k->cap * 2 : 16;
		struct stop_request *more = cap <= MOST_REQUESTS
						    ? realloc(k->requests, cap * sizeof(*more))
						    : NULL;

		if (!more)
			return false;
		k->requests = more;
		k->cap = cap;
	}
	k->requests[k->nrequests++] = (struct stop_request){*t, p->pid};
	th->requested = true;
	k->counts->late++;
	return true;
}

/* Waits until a thread has stopped, or something else happened to a child. The signal is blocked in
 * all threads. */
static void wait_for_child(uint64_t ns)
{
	const struct timespec most = {.tv_nsec = (long)ns};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigtimedwait(&set, NULL, &most);
}

/* As stopped_thread_poll(), after a moment. To give the CPU to others by turns would keep a thread
 * that has stopped waiting, on a busy machine for milliseconds. */
static int wait_for_stop(struct stopped_thread *t)
{
	int r;

	do
		r = stopped_thread_poll(t);
	while (r == -EAGAIN && clock_now() < t->from_ns + SPIN_NS);
	while (r == -EAGAIN && clock_now() < t->from_ns + WAIT_NS) {
		wait_for_child(WAIT_NS / 2);
		r = stopped_thread_poll(t);
	}
	return r;
}

void stop_take(struct stop_taker *k, struct stop_process *p, struct stop_thread *th)
{
	struct stopped_thread t;
	int r = stopped_thread_request(&t, th->clock.tid);

	if (r == -EPERM || r == -EACCES) {
		if (thread_runs(p->pid, th->clock.tid)) /* else it has ended */
			refuse(k, p, th);
		return;
	}
	if (!r)
		r = wait_for_stop(&t);
	if (r == -EAGAIN && !remember(k, p, th, &t))
		r = stopped_thread_wait(&t, UINT64_MAX);
	if (!r)
		visit(k, p, th, &t);
}

/* false: it has not stopped yet. */
static bool collect_one(struct stop_taker *k, struct stop_request *a)
{
	struct stop_process *p;
	struct stop_thread *th;
	int r = stopped_thread_poll(&a->stopped);

	if (r == -EAGAIN)
		return false;
	p = stop_targets_find(k->targets, a->pid);
	th = p ? stop_targets_thread(p, a->stopped.tid) : NULL;
	if (th)
		th->requested = false;
	a->stopped.from_ns = clock_now();
	if (!r && th)
		visit(k, p, th, &a->stopped);
	else if (!r)
		stopped_thread_end(&a->stopped);
	return true;
}

void stop_collect(struct stop_taker *k)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < k->nrequests; i++)
		if (!collect_one(k, &k->requests[i]))
			k->requests[n++] = k->requests[i];
	k->nrequests = n;
}
