/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's sampling: processes as they come and go, their decisions, and the way of a sample to
 * the windows that want it. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/dict.h"
#include "base/log.h"
#include "base/metrics.h"
#include "agent/agent_state.h"
#include "process/procfs.h"

/* Windows and reloads leave holes in the heap that the allocator keeps: 10 MB after some dozens. */
#define TICK_NS 250000000u
#define TICKS (1000000000u / TICK_NS) /* a second */
#define TRIM_TICKS (30 * TICKS)
#define STIRRED (2 * TICKS) /* so long a process that began maps its files */
/* What happens to a process is seen at once where nothing happened before, else each PACE_NS. */
#define SETTLE_NS                                                                           \
	3000000u /* so long process_events_drain() waits for other CPUs' records, and a bit \
		  */
#define PACE_NS 100000000u
#define SYMBOL_BYTES (16u << 20) /* symbols that are kept for the next window */
#define RING_HZ 99.0             /* rings hold a quarter of a second of this */

/* ---- samples ---- */

/* A bit of the plan's sinks is one of the pipeline's slots. */
static uint64_t slots_of(const struct agent *a, uint64_t sinks)
{
	uint64_t slots = 0;

	for (; sinks; sinks &= sinks - 1) {
		const struct sink_window *o = a->windows[__builtin_ctzll(sinks)];

		if (o)
			slots |= 1ull << sink_window_slot(o);
	}
	return slots;
}

static void tell(struct agent *a, uint32_t kind, pid_t pid, pid_t parent)
{
	const struct fusee_process_event e = {
		.size = sizeof(e), .kind = kind, .pid = (uint32_t)pid, .parent = (uint32_t)parent};

	discoveries_process(a->discoveries, &e);
}

static bool route(void *arg, const struct sample *s, struct pipeline_route *r)
{
	struct agent *a = arg;
	const struct decision *d = decisions_of(a->decisions, s->pid);

	if (a->paused || !rates_has_sample(a->sampler, s) || !d)
		return false;
	r->set = d->set;
	r->weight_ns = s->group ? rates_weight_ns(a->sampler, s->pid) : 0;
	r->slots = slots_of(a, d->sinks);
	return r->slots;
}

static bool wants(void *arg, pid_t pid)
{
	const struct agent *a = arg;
	const struct decision *d = decisions_of(a->decisions, pid);

	return d && d->profile;
}

static void say_refused(struct agent *a, pid_t pid, int r)
{
	metric_add("processes_refused_total", "Processes whose events could not be opened.", NULL,
		   1);
	if (r != a->sample_error)
		log_warning("process %d cannot be sampled: %s%s", (int)pid, strerror(-r),
			    r == -EACCES || r == -EPERM
				    ? " (fusee doctor says what it takes)"
				    : (r == -EMFILE ? " (raise the limit of open files)" : ""));
	a->sample_error = r;
}

int agent_sampling_changed(void *arg, pid_t pid, const struct decision *d, bool inherited)
{
	struct agent *a = arg;
	uint32_t before = rates_group(a->sampler, pid), now;
	int r = 0;

	if (d)
		r = rates_set(a->sampler, pid, d->profile ? profiler_period_ns(d->hz) : 0,
			      inherited);
	else
		rates_exited(a->sampler, pid);
	pipeline_decided(a->profiler.pipeline, pid);
	now = rates_group(a->sampler, pid);
	if (now && now != before)
		pipeline_scan(a->profiler.pipeline,
			      pid); /* what it mapped before its events stood */
	if (!r || r == -ESRCH)
		return 0;
	say_refused(a, pid, r);
	return r == -ENOMEM ? r : 0; /* all else will not be better a second later */
}

/* ---- processes ---- */

static void stir(struct agent *a, pid_t pid)
{
	if (wants(a, pid))
		a->stirred = STIRRED;
}

static void on_forked(void *arg, pid_t pid, pid_t parent, uint64_t time)
{
	struct agent *a = arg;

	tell(a, FUSEE_PROCESS_FORK, pid, parent);
	rates_forked(a->sampler, parent, pid, time);
	decisions_forked(a->decisions, parent, pid);
	stir(a, pid);
}

static void on_execed(void *arg, pid_t pid, const char *comm, uint64_t time)
{
	struct agent *a = arg;

	tell(a, FUSEE_PROCESS_EXEC, pid, 0);
	decisions_execed(a->decisions, pid, comm, time);
	stir(a, pid);
}

static void on_exited(void *arg, pid_t pid, uint64_t time)
{
	struct agent *a = arg;

	tell(a, FUSEE_PROCESS_EXIT, pid, 0);
	decisions_exited(a->decisions, pid, time ? time : clock_now());
}

static int look_again(void *arg, pid_t pid)
{
	struct agent *a = arg;

	if (!decisions_of(a->decisions, pid)) {
		tell(a, FUSEE_PROCESS_EXEC, pid, 0);
		decisions_execed(a->decisions, pid, NULL, 0);
	}
	return 0;
}

static void on_lost(void *arg)
{
	metric_add("lifecycle_lost_total",
		   "Times that records of processes were lost and /proc was looked over.", NULL, 1);
	if (procfs_each_process(look_again, arg))
		decisions_rescan(((struct agent *)arg)->decisions);
}

static int decide_running(void *arg, pid_t pid)
{
	decisions_execed(((struct agent *)arg)->decisions, pid, NULL, 0);
	return 0;
}

/* ---- the loop's calls ---- */

/* Of a process that was not decided about yet nothing would be taken, its mappings neither: what
 * came while it was decided about others waits. */
void agent_sampling_drain(struct agent *a)
{
	uint64_t known = process_events_drain(a->lifecycle);

	decisions_refresh(a->decisions);
	profiler_drain(&a->profiler, known);
}

static void on_samples(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	agent_sampling_drain(arg);
}

static void listen_again(void *arg)
{
	loop_watch_events(((struct agent *)arg)->lives, EPOLLIN);
}

static void on_settled(void *arg)
{
	struct agent *a = arg;

	agent_sampling_drain(a);
	if (loop_at(a->loop, clock_now() + PACE_NS, listen_again, a, NULL))
		listen_again(a);
}

static void on_lives(void *arg, int fd, uint32_t events)
{
	struct agent *a = arg;

	(void)fd;
	(void)events;
	loop_watch_events(a->lives, 0);
	if (loop_at(a->loop, clock_now() + SETTLE_NS, on_settled, a, NULL))
		on_settled(a);
}

static void on_worker(void *arg, int fd, uint32_t events)
{
	struct agent *a = arg;

	(void)fd;
	(void)events;
	profiler_dispatch(&a->profiler);
}

/* Else what lies in the rings may wait for a second: each look at them costs more by what it
 * throws out of the caches, and brings back, than by what it finds. Where there is much the rings'
 * descriptor says so. */
static bool has_news(struct agent *a)
{
	if (a->stirred && a->stirred--)
		return true;
	return process_events_polls(a->lifecycle) || worker_pending(a->profiler.worker) ||
	       decisions_are_stale(a->decisions) || pipeline_has_news(a->profiler.pipeline);
}

static void on_tick(void *arg)
{
	struct agent *a = arg;
	uint64_t now = clock_now();

	if ((a->ticks + 1) % TICKS && !has_news(a)) {
		a->ticks++;
		return;
	}
	agent_sampling_drain(a);
	if (worker_pending(
		    a->profiler.worker)) /* asked of meanwhile; all else its descriptor tells */
		worker_dispatch(a->profiler.worker);
	if (++a->ticks % TICKS)
		return;
	discoveries_retry(a->discoveries);
	decisions_tidy(a->decisions, now);
	rates_tidy(a->sampler, now);
	reload_tidy(a, false);
	if (!(a->ticks % (10 * TICKS)))
		agent_sampling_sweep(a);
	if (!(a->ticks % TRIM_TICKS))
		malloc_trim(0);
}

void agent_sampling_pause(struct agent *a, bool pause)
{
	if (pause)
		profiler_disable(&a->profiler);
	else
		profiler_enable(&a->profiler);
	a->paused = pause;
}

/* ---- sweeping ---- */

#define MAX_PENDING (PLAN_MAX_SINKS * 4)

struct used {
	const struct collector *c[MAX_PENDING + PIPELINE_SLOTS];
	uint32_t n;
};

static bool is_used(void *arg, uint32_t set)
{
	const struct used *u = arg;

	for (uint32_t i = 0; i < u->n; i++)
		for (uint32_t p = 1; p < u->c[i]->processes.n; p++)
			if (p < u->c[i]->ncollected && u->c[i]->collected[p].set == set)
				return true;
	return false;
}

void agent_sampling_sweep(struct agent *a)
{
	struct used u = {0};

	for (uint32_t i = 0; i < a->plan->nsinks; i++)
		u.n += sink_window_pending(a->windows[i], u.c + u.n, MAX_PENDING - u.n);
	for (const struct leaving *l = a->leaving; l; l = l->next)
		if (l->window)
			u.n += sink_window_pending(l->window, u.c + u.n, MAX_PENDING - u.n);
	profiler_sweep(&a->profiler, u.c, u.n, SYMBOL_BYTES);
	for (uint32_t i = 0; i < PIPELINE_SLOTS; i++)
		if (pipeline_collector(a->profiler.pipeline, i))
			u.c[u.n++] = pipeline_collector(a->profiler.pipeline, i);
	decisions_sweep(a->decisions, is_used, &u);
}

/* ---- life ---- */

static int open_profiler(struct agent *a)
{
	const struct profiler_options o = {
		.plugin_dir = a->o.plugin_dir,
		.cache_dir = a->o.cache_dir,
		.without = (const char *const *)a->plan->without,
		.dynamic = true,
		.sampler = (enum sampler_choice)a->plan->sampler,
		.period_ns = profiler_period_ns(a->plan->hz > RING_HZ ? a->plan->hz : RING_HZ),
		.stack_bytes = (uint32_t)a->plan->stack_bytes,
		.kernel = a->plan->kernel,
		.threads = a->plan->threads,
		.inlines = a->plan->inlines,
		.route = route,
		.selected = wants,
		.arg = a,
		.command_line = "fusee run",
	};
	int r = profiler_open(&a->profiler, &o);

	if (r)
		return r;
	r = rates_new(&a->sampler, a->profiler.stream, a->profiler.bpf);
	if (r)
		log_error("cannot start sampling: %s", strerror(-r));
	return r ? EX_OSERR : 0;
}

static int open_loop(struct agent *a)
{
	struct process_events_handlers on = {a, on_forked, on_execed, on_exited, on_lost};
	struct loop_timer *timer;
	struct loop_watch *watch;
	int r = process_events_open(&a->lifecycle, &on),
	    moves = a->profiler.bpf ? cgroup_moves_open(&a->moves) : 0;

	if (moves)
		log_debug("moves between control groups are looked for: %s", strerror(-moves));
	if (!r)
		r = loop_watch(a->loop, perf_stream_fd(a->profiler.stream), EPOLLIN, on_samples, a,
			       &watch);
	if (!r)
		r = loop_watch(a->loop, process_events_fd(a->lifecycle), EPOLLIN, on_lives, a,
			       &a->lives);
	if (!r)
		r = loop_watch(a->loop, worker_fd(a->profiler.worker), EPOLLIN, on_worker, a,
			       &watch);
	if (!r)
		r = loop_every(a->loop, TICK_NS, on_tick, a, &timer);
	if (r)
		log_error("cannot set up the event loop: %s", strerror(-r));
	else if (process_events_polls(a->lifecycle))
		log_warning("%s", process_events_how(a->lifecycle));
	return r ? EX_OSERR : 0;
}

int agent_sampling_open(struct agent *a)
{
	int r = open_profiler(a);

	return r ? r : open_loop(a);
}

int agent_sampling_begin(struct agent *a)
{
	int r;

	if (procfs_each_process(decide_running, a))
		decisions_rescan(a->decisions);
	r = profiler_enable(&a->profiler);
	if (r)
		log_error("cannot switch sampling on: %s", strerror(-r));
	return r ? EX_OSERR : 0;
}

void agent_sampling_close(struct agent *a)
{
	process_events_close(a->lifecycle);
	cgroup_moves_close(a->moves);
	rates_free(a->sampler);
	profiler_close(&a->profiler);
}
