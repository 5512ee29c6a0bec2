/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/internal/sampling.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sysexits.h>

#include "agent/internal/memory.h"
#include "agent/internal/relabeling.h"
#include "agent/internal/symbol_servers.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "bpf/rates.h"
#include "process/procfs.h"
#include "pipeline/collector.h"
#include "profiler/in_use_ledger.h"

#define TICK_NS 250000000u
#define SECOND_NS 1000000000u
#define TICKS (SECOND_NS / TICK_NS) /* a second */
#define CALM_TICKS (2 * TICKS)      /* after which there is a tick each second */
#define MAPPING_TICKS (2 * TICKS)   /* for so long after its begin a process maps its files */
#define FIND_NS 20000000u           /* the time of one search for processes */
#define FIND_PAUSE_NS 200000000u
#define STOP_EVENTS_NS 500000000u   /* wait for the last process events */
#define COLLECTED_BYTES (64u << 20) /* samples of all windows */
#define WAITING_BYTES (64u << 20)   /* stack copies that wait for tables */

/* ---- samples ---- */

uint64_t agent_sampling_slots(const struct agent_sampling *s, uint64_t sinks)
{
	uint64_t slots = 0;

	for (; sinks; sinks &= sinks - 1)
		slots |= s->slots[__builtin_ctzll(sinks)];
	return slots;
}

/* Whether a sample is kept. The BPF sampler has chosen its samples already; others are chosen here,
 * before the stack is unwound. */
static bool is_kept(struct agent_sampling *s)
{
	s->random ^= s->random << 13; /* xorshift32 */
	s->random ^= s->random >> 17;
	s->random ^= s->random << 5;
	return s->random >> 24 < s->share;
}

static void set_weight(struct agent_sampling *s, const struct sample *sample,
		       struct pipeline_route *r)
{
	uint8_t kept = s->profiler.bpf ? sample->share : s->share;

	r->weight_ns = sample->group ? rates_weight_ns(s->rates, sample->pid) : 0;
	if (!r->weight_ns)
		r->weight_ns = sample->period;
	if (kept)
		r->weight_ns = r->weight_ns * RATES_ALL / kept;
	r->share = s->share;
}

/* Whether the sample is from after the begin of a pause: the rings may still hold earlier
 * samples. */
static bool is_paused(const struct agent_sampling *s, const struct sample *sample)
{
	return s->paused_ns && sample->time >= s->paused_ns;
}

static bool route(void *arg, const struct sample *sample, struct pipeline_route *r)
{
	struct agent_sampling *s = arg;
	const struct decision *d = decisions_of(s->decisions, sample->pid);
	bool is_cpu = !sample->chosen.is && !sample->hit.value;

	if (is_paused(s, sample) || !rates_has_sample(s->rates, sample) || !d)
		return false;
	if (s->share && !s->profiler.bpf && !is_kept(s))
		return false;
	r->set = d->set;
	set_weight(s, sample, r);
	r->slots = agent_sampling_slots(s, d->sinks);
	if (s->more && d->profile && is_cpu)
		r->slots |= s->more->slots(s->more->arg, d, sample->time);
	if (r->slots && is_cpu)
		decisions_add_cpu(s->decisions, sample->pid, r->weight_ns);
	if (r->slots && sample->hit.followed)
		r->slots |= in_use_ledger_slots(allocators_in_use(s->allocators));
	return r->slots;
}

static bool selected(void *arg, pid_t pid)
{
	const struct agent_sampling *s = arg;
	const struct decision *d = decisions_of(s->decisions, pid);

	return d && d->profile;
}

/* ---- decisions ---- */

static int decide(void *arg, const struct fusee_label *labels, uint32_t n,
		  struct policy_answer *answer, char **text)
{
	const struct plan *plan = ((struct agent_sampling *)arg)->plan;
	int r = lua_policy_ask(plan, labels, n, answer, text);

	relabeling_decide(plan, labels, n, answer, true);
	return r;
}

static int decide_early(void *arg, const struct fusee_label *labels, uint32_t n,
			struct policy_answer *answer, struct policy_watch *watch)
{
	return lua_policy_ask_early(((struct agent_sampling *)arg)->plan, labels, n, answer, watch);
}

static void find_labels(void *arg, pid_t pid)
{
	discoveries_find_labels(((struct agent_sampling *)arg)->discoveries, pid);
}

static uint64_t count_moves(void *arg)
{
	return cgroup_moves_count(((struct agent_sampling *)arg)->moves);
}

static void log_refused(struct agent_sampling *s, pid_t pid, int r)
{
	metric_add("processes_refused_total",
		   "Total number of processes whose events could not be opened.", NULL, 1);
	if (r != s->refused)
		log_warning("process %d cannot be sampled: %s%s", (int)pid, strerror(-r),
			    r == -EACCES || r == -EPERM
				    ? " (fusee doctor says what it takes)"
				    : (r == -EMFILE ? " (raise the limit of open files)" : ""));
	s->refused = r;
}

static int on_decision(void *arg, pid_t pid, const struct decision *d, bool inherited)
{
	struct agent_sampling *s = arg;
	uint32_t before = rates_group(s->rates, pid), group;
	int r = 0;

	if (d)
		r = rates_set(s->rates, pid, d->profile ? profiler_period_ns(d->hz) : 0, inherited);
	else
		rates_exited(s->rates, pid);
	pipeline_selection_changed(s->profiler.pipeline, pid);
	group = rates_group(s->rates, pid);
	if (group && group != before) /* the new events report only later mappings */
		pipeline_scan(s->profiler.pipeline, pid);
	if (!r || r == -ESRCH)
		return 0;
	log_refused(s, pid, r);
	return r == -ENOMEM ? r : 0; /* other errors would not go away: the call is not repeated */
}

static bool describe_program(void *arg, pid_t pid, struct program *to)
{
	return profiler_program(&((struct agent_sampling *)arg)->profiler, pid, to->build_id,
				to->compiler);
}

/* ---- processes ---- */

static void report(struct agent_sampling *s, uint32_t kind, pid_t pid, pid_t parent)
{
	const struct fusee_process_event e = {
		.size = sizeof(e), .kind = kind, .pid = (uint32_t)pid, .parent = (uint32_t)parent};

	discoveries_process(s->discoveries, &e);
}

static void expect_mappings(struct agent_sampling *s, pid_t pid)
{
	if (selected(s, pid))
		s->ticks.to_drain = MAPPING_TICKS;
}

static void on_forked(void *arg, pid_t pid, pid_t parent, uint64_t time)
{
	struct agent_sampling *s = arg;

	report(s, FUSEE_PROCESS_FORK, pid, parent);
	rates_forked(s->rates, parent, pid, time);
	decisions_forked(s->decisions, parent, pid);
	expect_mappings(s, pid);
}

static void take_program(struct agent_sampling *s, pid_t pid, const char *comm, uint64_t time)
{
	procfs_keep(pid); /* discoveries and decisions read the same */
	report(s, FUSEE_PROCESS_EXEC, pid, 0);
	decisions_execed(s->decisions, pid, comm, time);
	procfs_keep(0);
}

static void on_execed(void *arg, pid_t pid, const char *comm, uint64_t time)
{
	take_program(arg, pid, comm, time);
	expect_mappings(arg, pid);
}

static void on_exited(void *arg, pid_t pid, uint64_t time)
{
	struct agent_sampling *s = arg;

	report(s, FUSEE_PROCESS_EXIT, pid, 0);
	decisions_exited(s->decisions, pid, time ? time : clock_now());
}

static void on_forgotten(void *arg, pid_t pid)
{
	report(arg, FUSEE_PROCESS_EXIT, pid, 0);
}

static int find_unknown(void *arg, pid_t pid)
{
	struct agent_sampling *s = arg;

	if (!decisions_of(s->decisions, pid))
		take_program(s, pid, NULL, 0);
	return clock_now() > s->find.until;
}

/* After lost process events, searches for unknown processes, for a limited time at once. */
static void find_lost(struct agent_sampling *s)
{
	uint64_t now = clock_now();
	int r;

	if (!s->lost || now < s->find.again)
		return;
	s->find.until = now + FIND_NS;
	r = procfs_each_process(find_unknown, s);
	s->lost = r > 0;
	s->find.again = clock_now() + FIND_PAUSE_NS;
	if (r < 0)
		decisions_rescan(s->decisions);
}

static void on_lost(void *arg)
{
	struct agent_sampling *s = arg;

	metric_add("process_events_lost_total",
		   "Total number of times that process events were lost and /proc was read.", NULL,
		   1);
	s->lost = true;
	decisions_lost(s->decisions);
}

static int decide_running(void *arg, pid_t pid)
{
	decisions_execed(((struct agent_sampling *)arg)->decisions, pid, NULL, 0);
	return 0;
}

/* ---- callbacks of the loop ---- */

static void on_behind(void *arg);
static void on_tick(void *arg);

/* Whether a tick drains. Otherwise the rings are drained once a second, or when their descriptor
 * reports that a ring is partly full: a drain of few records costs more by cache misses that it
 * causes than by its own work. */
static bool has_to_drain(const struct agent_sampling *s)
{
	return s->ticks.to_drain || s->lost || process_events_polls(s->process_events) ||
	       worker_pending(s->profiler.worker) || decisions_are_stale(s->decisions) ||
	       pipeline_is_pending(s->profiler.pipeline);
}

/* At multiples of the period, as other timers of seconds, so that one wake-up serves all. */
static int tick_each(struct agent_sampling *s, uint64_t period_ns)
{
	struct loop_timer *timer;
	int r = loop_every_from(s->loop, (clock_now() / period_ns + 1) * period_ns, period_ns,
				on_tick, s, &timer);

	if (r)
		return r;
	loop_timer_free(s->ticks.timer);
	s->ticks.timer = timer;
	s->ticks.period_ns = period_ns;
	return 0;
}

/* There is a reason to drain after a calm time: again four ticks a second. */
static void hasten(struct agent_sampling *s)
{
	s->ticks.calm = 0;
	tick_each(s, TICK_NS);
}

/* Continues the drain after other callbacks of the loop. */
static void go_on(void *arg)
{
	struct agent_sampling *s = arg;
	bool behind = perf_stream_is_behind(s->profiler.stream) ||
		      pipeline_is_behind(s->profiler.pipeline) ||
		      process_events_is_behind(s->process_events);

	if (behind && !s->behind)
		s->behind = !loop_at(s->loop, clock_now(), on_behind, s, NULL);
	if (s->ticks.period_ns == SECOND_NS && has_to_drain(s))
		hasten(s);
}

/* Records of a process without a decision are dropped, also of its mappings. So process events are
 * handled first, and records that are newer than these events wait. */
static void drain(struct agent_sampling *s, bool now)
{
	uint64_t until = process_events_drain(s->process_events, now);

	find_lost(s);
	discoveries_settle(s->discoveries);
	decisions_refresh(s->decisions);
	profiler_drain(&s->profiler, until);
	if (now && !process_events_is_behind(s->process_events)) /* else execs may not be decided */
		profiler_end_looks(&s->profiler);
	perf_stream_look_again(s->profiler.stream);
	if (s->plan && (s->plan->labels.build_id || s->plan->labels.compiler))
		decisions_find_programs(s->decisions, perf_stream_horizon(s->profiler.stream));
	go_on(s);
}

void agent_sampling_drain(struct agent_sampling *s)
{
	drain(s, false);
}

static void on_behind(void *arg)
{
	struct agent_sampling *s = arg;

	s->behind = false;
	agent_sampling_drain(s);
}

static void on_samples(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	drain(arg, true);
}

static void on_process_events(void *arg)
{
	agent_sampling_drain(arg);
}

static void on_worker(void *arg, int fd, uint32_t events)
{
	struct agent_sampling *s = arg;

	(void)fd;
	(void)events;
	profiler_dispatch(&s->profiler);
	go_on(s);
}

static void on_mappings(void *arg, int fd, uint32_t events)
{
	struct agent_sampling *s = arg;

	(void)fd;
	(void)events;
	profiler_take_mappings(&s->profiler);
	go_on(s);
}

static void on_tick(void *arg)
{
	struct agent_sampling *s = arg;
	uint64_t now = clock_now();
	bool second = now / SECOND_NS != s->ticks.second, drains = has_to_drain(s);

	s->ticks.to_drain -= !!s->ticks.to_drain;
	s->ticks.calm = drains || s->allocators || s->hooks ? 0 : s->ticks.calm + 1;
	if (second || drains) {
		agent_sampling_drain(s);
		/* The descriptor reports only answers to requests that were sent already. */
		if (worker_pending(s->profiler.worker))
			worker_dispatch(s->profiler.worker);
	}
	if (s->allocators)
		allocators_update(s->allocators);
	hooks_update(s->hooks);
	if (s->ticks.calm >= CALM_TICKS && s->ticks.period_ns != SECOND_NS)
		tick_each(s, SECOND_NS);
	if (!second)
		return;
	s->ticks.second = now / SECOND_NS;
	s->ticks.seconds++;
	in_use_ledger_prune(allocators_in_use(s->allocators));
	discoveries_retry(s->discoveries);
	decisions_tidy(s->decisions, now);
	rates_tidy(s->rates, now);
	s->each_second(s->arg, s->ticks.seconds);
}

void agent_sampling_set_share(struct agent_sampling *s, uint8_t share)
{
	s->share = share;
	if (!s->random)
		s->random = (uint32_t)clock_now() | 1;
	rates_set_share(s->rates, share);
}

void agent_sampling_pause(struct agent_sampling *s, bool pause)
{
	if (pause)
		profiler_disable(&s->profiler);
	else
		profiler_enable(&s->profiler);
	if (!pause || !s->paused_ns)
		s->paused_ns = pause ? clock_now() : 0;
}

void agent_sampling_stop(struct agent_sampling *s)
{
	uint64_t end = clock_now() + STOP_EVENTS_NS;

	profiler_disable(&s->profiler);
	allocators_stop(s->allocators);
	hooks_stop(s->hooks);
	do
		process_events_drain(s->process_events, false);
	while (process_events_is_behind(s->process_events) && clock_now() < end);
	profiler_stop(&s->profiler);
}

/* ---- plans ---- */

void agent_sampling_replan(struct agent_sampling *s, const struct plan *plan,
			   const uint64_t slots[PLAN_MAX_SINKS])
{
	int r;

	s->plan = plan;
	memcpy(s->slots, slots, sizeof(s->slots));
	pipeline_set_threads(s->profiler.pipeline, plan->threads);
	targets_set_labels(s->targets, &plan->labels);
	symbol_servers_set(&s->profiler, plan);
	hooks_set(s->hooks, plan);
	r = rates_set_base(s->rates, profiler_period_ns(plan->hz), plan->unknown_keep);
	if (r)
		log_warning(
			"cannot open the events of CPUs: %s; each process gets events of its own, "
			"which costs more (fusee doctor says what it takes)",
			strerror(-r));
	decisions_replan(s->decisions, plan->unknown_keep);
}

/* ---- the object ---- */

static int open_decisions(struct agent_sampling *s)
{
	struct decisions_options o = {.decide = decide,
				      .decide_early = decide_early,
				      .find_labels = find_labels,
				      .changed = on_decision,
				      .moves = count_moves,
				      .program = describe_program,
				      .forgotten = on_forgotten,
				      .arg = s};
	int r = targets_new(&s->targets);

	if (!r)
		r = discoveries_new(&s->discoveries, s->loop, s->targets);
	o.targets = s->targets;
	if (!r)
		r = decisions_new(&s->decisions, &o);
	if (r)
		log_error("cannot start: %s", strerror(-r));
	return r ? EX_OSERR : 0;
}

static int open_profiler(struct agent_sampling *s, const struct profiler_options *options)
{
	struct profiler_options o = *options;
	int r;

	collector_set_limit(COLLECTED_BYTES);
	o.memory.waiting = WAITING_BYTES;
	o.memory.worker = memory_of_worker(memory_available());
	o.dynamic = true;
	o.route = route;
	o.selected = selected;
	o.arg = s;
	r = profiler_open(&s->profiler, &o);
	if (r)
		return r;
	pipeline_set_code_limit(s->profiler.pipeline, memory_of_code(memory_available()));
	r = rates_new(&s->rates, s->profiler.stream, s->profiler.bpf);
	if (r)
		log_error("cannot start sampling: %s", strerror(-r));
	return r ? EX_OSERR : 0;
}

static int open_hits(struct agent_sampling *s, bool in_use)
{
	int r = allocators_new(&s->allocators, &s->profiler);

	if (!r && in_use)
		r = allocators_follow(s->allocators);
	if (r)
		log_error("cannot start: %s", strerror(-r));
	return r ? EX_OSERR : 0;
}

static void open_moves(struct agent_sampling *s)
{
	int r = s->profiler.bpf ? cgroup_moves_open(&s->moves) : 0;

	if (r)
		log_debug("moves between control groups are not counted: %s", strerror(-r));
}

static int open_watches(struct agent_sampling *s)
{
	struct process_events_handlers on = {s, on_forked, on_execed, on_exited, on_lost};
	struct loop_watch *watch;
	int r = process_events_open(&s->process_events, &on);

	s->ticks.second = clock_now() / SECOND_NS;
	if (!r)
		r = loop_watch(s->loop, perf_stream_fd(s->profiler.stream), EPOLLIN, on_samples, s,
			       &watch);
	if (!r)
		r = process_watch_open(&s->process_watch, s->loop, s->process_events,
				       on_process_events, s);
	if (!r)
		r = loop_watch(s->loop, pipeline_mappings_fd(s->profiler.pipeline), EPOLLIN,
			       on_mappings, s, &watch);
	if (!r)
		r = loop_watch(s->loop, worker_fd(s->profiler.worker), EPOLLIN, on_worker, s,
			       &watch);
	if (!r)
		r = tick_each(s, TICK_NS);
	if (r)
		log_error("cannot set up the event loop: %s", strerror(-r));
	else if (process_events_polls(s->process_events))
		log_warning("%s", process_events_how(s->process_events));
	return r ? EX_OSERR : 0;
}

int agent_sampling_open(struct agent_sampling *s, const struct profiler_options *options)
{
	int r = open_decisions(s);

	if (!r)
		r = open_profiler(s, options);
	if (!r && options->choosers.hits.probes)
		r = open_hits(s, options->choosers.hits.in_use);
	if (!r && options->choosers.hits.hooks && hooks_new(&s->hooks, &s->profiler)) {
		log_error("cannot start: %s", strerror(ENOMEM));
		r = EX_OSERR;
	}
	if (!r) {
		discoveries_on_change(s->discoveries, go_on, s);
		discoveries_set_opener(s->discoveries, worker_opener(s->profiler.worker));
		open_moves(s);
		r = open_watches(s);
	}
	return r;
}

int agent_sampling_begin(struct agent_sampling *s)
{
	int r;

	if (procfs_each_process(decide_running, s))
		decisions_rescan(s->decisions);
	r = profiler_enable(&s->profiler);
	if (r)
		log_error("cannot enable sampling: %s", strerror(-r));
	return r ? EX_OSERR : 0;
}

void agent_sampling_close(struct agent_sampling *s)
{
	discoveries_free(s->discoveries);
	decisions_free(s->decisions);
	process_watch_close(s->process_watch);
	process_events_close(s->process_events);
	cgroup_moves_close(s->moves);
	rates_free(s->rates);
	allocators_free(s->allocators);
	hooks_free(s->hooks);
	profiler_close(&s->profiler);
	targets_free(s->targets);
}
