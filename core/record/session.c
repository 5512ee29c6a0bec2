/* SPDX-License-Identifier: Apache-2.0 */
#include "record/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "record/internal/command_text.h"
#include "record/internal/account.h"
#include "record/internal/entry.h"
#include "record/internal/start.h"
#include "selection/found.h"
#include "process/procfs.h"
#include "probes/parse.h"

#define TABLE_BYTES (8u << 20) /* in the kernel */
/* How often rings are drained and tick() is called. The kernel wakes the loop earlier when a ring
 * fills. */
#define TICK_NS 50000000

enum source {
	SOURCE_SAMPLES,
	SOURCE_WORKER,
	SOURCE_MAPPINGS,
	SOURCE_SIGNALS,
	SOURCE_TIMER,
	SOURCE_STOP,
	SOURCE_PROCESS,
	SOURCE_KEYS
};

bool session_is_alloc(const struct session_options *o)
{
	return o->event.probes && (o->event.in_use || !strcmp(o->event.name, SESSION_ALLOC));
}

/* ---- opening ---- */

char *session_cache_dir(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *dir = NULL;
	int n = -1;

	if (!geteuid() && getenv("SUDO_UID")) /* root writes nothing into the user's home */
		n = asprintf(&dir, "/var/cache/fusee");
	else if (cache && *cache == '/')
		n = asprintf(&dir, "%s/fusee", cache);
	else if (home && *home == '/' && !access(home, W_OK | X_OK)) /* a user may have no home */
		n = asprintf(&dir, "%s/.cache/fusee", home);
	else if (!geteuid())
		n = asprintf(&dir, "/var/cache/fusee");
	return n < 0 ? NULL : dir;
}

static int watch(struct session *s, int fd, enum source source)
{
	struct epoll_event e = {.events = EPOLLIN,
				.data.u64 = (uint64_t)source << 32 | (uint32_t)fd};

	return fd < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

/* The signals that the loop reads. */
static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int open_loop(struct session *s)
{
	const struct itimerspec every = {{0, TICK_NS}, {0, TICK_NS}};

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->signals = open_signals();
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->epoll < 0 || s->signals < 0 || s->timer < 0 ||
	    timerfd_settime(s->timer, 0, &every, NULL) || watch(s, s->signals, SOURCE_SIGNALS) ||
	    watch(s, s->timer, SOURCE_TIMER) ||
	    (s->o.keys >= 0 && watch(s, s->o.keys, SOURCE_KEYS))) {
		log_error("cannot set up the event loop: %s", strerror(errno));
		return EX_OSERR;
	}
	return 0;
}

int session_sampler(const char *name, enum sampler_choice *ret)
{
	for (uint32_t i = 0; sampler_choices[i]; i++)
		if (!strcmp(name, sampler_choices[i])) {
			*ret = (enum sampler_choice)i;
			return 0;
		}
	if (!strcmp(name, "stop")) {
		*ret = SAMPLER_STOP;
		return 0;
	}
	return -EINVAL;
}

/* Processes that join the control groups later are sampled too. */
static void follow_groups(struct session *s)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < s->o.selection.ngroups; i++)
		r = profiler_follow_group(&s->profiler, s->o.selection.groups[i]);
	if (r)
		log_warning("processes that join the control group from now on are not sampled: %s",
			    r == -ENOTSUP ? "it needs the sampler 'bpf'" : strerror(-r));
}

/* Each sample goes to the same window, with the labels of its process. */
static bool route(void *arg, const struct sample *sample, struct pipeline_route *route)
{
	struct session *s = arg;

	route->set = process_labels_of(s->labels, sample->pid, clock_now());
	return true;
}

/* Targets that discovery plugins found for the names of the command line become labels. */
static int open_labels(struct session *s, struct profiler_options *o)
{
	const struct selection *from = &s->o.selection;

	if (!from->found)
		return 0;
	if (process_labels_new(&s->labels, found_targets(from->found), from->pids, from->npids)) {
		log_error("%s", strerror(ENOMEM));
		return EX_OSERR;
	}
	o->route = route;
	o->arg = s;
	return 0;
}

static int watch_profiler(struct session *s)
{
	const struct profiler *p = &s->profiler;
	int r = watch(s, worker_fd(p->worker), SOURCE_WORKER);

	if (!r && p->all)
		r = watch(s, pipeline_mappings_fd(p->pipeline), SOURCE_MAPPINGS);
	if (!r && p->stream)
		r = watch(s, perf_stream_fd(p->stream), SOURCE_SAMPLES);
	if (!r && p->stop)
		r = watch(s, stop_sampler_fd(p->stop), SOURCE_STOP);
	return r;
}

static void set_held(struct session *s, struct profiler_options *o, struct command_text *t)
{
	o->held = true;
	command_text_read(t, s->command.argv);
	o->command.text = t->text.error ? NULL : t->text.p;
	o->command.programs = t->programs.error ? NULL : t->programs.p;
}

static void set_event(struct session *s, struct profiler_options *o)
{
	o->kind = *s->o.event.name ? &s->o.event : NULL;
	o->period_ns = session_period(s);
	o->choosers = (struct profiler_choosers){
		s->o.choosers.at, s->o.choosers.n, session_is_beside(&s->o), {0}};
}

static int open_profiler(struct session *s)
{
	char *cache = s->o.cache ? session_cache_dir() : NULL, *plugins = plugin_default_dir();
	struct unwinder_options list[PLAN_MAX_UNWINDERS];
	struct profiler_options o = s->o.profiler;
	struct unwinder_choice unwinders;
	struct command_text text = {0};
	struct plan *plan = NULL;
	uint32_t slot;
	int r = plugins ? unwind_flags_plan(&s->o.unwind, plugins, &plan) : EX_OSERR;

	o.plugin_dir = plugins;
	o.cache_dir = cache;
	o.pids = s->o.selection.pids;
	o.npids = s->o.selection.npids;
	o.all = s->o.selection.all;
	if (s->command.argv)
		set_held(s, &o, &text);
	set_event(s, &o);
	o.table_bytes = TABLE_BYTES;
	if (plan) {
		unwinders = plan_unwinders(plan, list);
		o.unwinders = &unwinders;
	}
	if (!r)
		r = open_labels(s, &o);
	if (!r)
		r = profiler_open(&s->profiler, &o);
	plan_free(plan);
	command_text_fini(&text);
	free(cache);
	free(plugins);
	if (r)
		return r;
	follow_groups(s);
	r = s->labels ? profiler_open_window(&s->profiler, &slot) : 0;
	if (!r)
		r = watch_profiler(s);
	if (r)
		log_error("cannot begin to sample: %s", strerror(-r));
	return r ? EX_OSERR : 0;
}

/* A pidfd becomes readable when the process ends (Linux 5.3). false: it has ended. */
static bool watch_process(struct session *s, pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return errno != ESRCH;
	if (!watch(s, fd, SOURCE_PROCESS))
		s->running++;
	return true;
}

/* The processes of -p. */
static void watch_processes(struct session *s)
{
	const struct selection *o = &s->o.selection;
	bool alive = o->command || !o->npids || o->ngroups;

	for (uint32_t i = 0; !o->command && i < o->npids; i++) {
		uint64_t user, system;

		alive |= watch_process(s, o->pids[i]);
		if (!procfs_cpu_ns(o->pids[i], &user, &system))
			s->system_before_ns += system;
	}
	s->stop |= !alive; /* they have ended since they were opened */
}

static int hold_command(struct session *s)
{
	int r;

	s->command.argv = s->o.selection.command;
	r = command_hold(&s->command);
	if (r) {
		log_error("cannot start a process: %s", strerror(-r));
		return EX_OSERR;
	}
	s->o.selection.pids[0] = s->command.pid;
	s->o.selection.npids = 1;
	return 0;
}

void session_init(struct session *s)
{
	*s = (struct session){
		.o = {.profiler = {.stack_bytes = SAMPLE_MAX_STACK,
				   .kernel = true,
				   .inlines = true},
		      .hz = DEFAULT_HZ,
		      .cache = true,
		      .keys = -1},
		.command = COMMAND_NONE,
		.epoll = -1,
		.signals = -1,
		.timer = -1,
	};
}

int session_open(struct session *s)
{
	int r = open_loop(s);

	if (!r && s->o.selection.command)
		r = hold_command(s);
	if (!r)
		r = open_profiler(s);
	if (r)
		return r;
	watch_processes(s);
	profiler_prepare(&s->profiler);
	if (!session_is_alloc(&s->o))
		return 0;
	if (allocators_new(&s->allocators, &s->profiler)) {
		log_error("%s", strerror(ENOMEM));
		return EX_OSERR;
	}
	allocators_prepare(s->allocators);
	return 0;
}

/* ---- running ---- */

static void on_signals(struct session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			if (s->profiler.stop)
				stop_sampler_collect(s->profiler.stop);
			if (s->traced)
				s->traced = !entry_release(s->command.pid);
			s->stop |= command_reap(&s->command);
			continue;
		}
		/* The terminal sends Ctrl-C to the command too, and its end ends the recording. The
		 * second signal ends sampling at once. */
		s->interrupts++;
		if (s->command.running && info.ssi_signo != SIGINT)
			kill(s->command.pid, (int)info.ssi_signo);
		if (!s->command.running || s->interrupts > 1)
			s->stop = true;
	}
}

static void on_timer(struct session *s)
{
	uint64_t expired;

	if (read(s->timer, &expired, sizeof(expired)) <= 0)
		return;
	if (s->allocators)
		allocators_update(s->allocators);
	if (s->o.event.in_use)
		in_use_prune(&s->in_use, &s->profiler);
	if (s->o.tick)
		s->o.tick(s, false);
}

static int watch_member(void *arg, pid_t pid)
{
	if (!procfs_is_own(pid))
		watch_process(arg, pid);
	return 0;
}

/* Processes of control groups may have joined or ended since sampling began. */
static void on_process_end(struct session *s, int fd)
{
	const struct selection *o = &s->o.selection;

	epoll_ctl(s->epoll, EPOLL_CTL_DEL, fd, NULL);
	close(fd);
	if (--s->running)
		return;
	for (uint32_t i = 0; i < o->ngroups && s->profiler.tree; i++)
		cgroup_each_process(o->groups[i], watch_member, s);
	s->stop = !s->running;
}

static void on_event(struct session *s, uint64_t data)
{
	switch ((enum source)(data >> 32)) {
	case SOURCE_SAMPLES: /* drained after each round of events */
		break;
	case SOURCE_WORKER:
		profiler_dispatch(&s->profiler);
		break;
	case SOURCE_MAPPINGS:
		profiler_take_mappings(&s->profiler);
		break;
	case SOURCE_SIGNALS:
		on_signals(s);
		break;
	case SOURCE_STOP:
		stop_sampler_tick(s->profiler.stop);
		s->stop |= command_reap(&s->command); /* the tracer may have taken the signal */
		break;
	case SOURCE_TIMER:
		on_timer(s);
		break;
	case SOURCE_KEYS:
		s->o.tick(s, true);
		break;
	case SOURCE_PROCESS:
		on_process_end(s, (int)(uint32_t)data);
		break;
	}
}

/* What is in use at the end. */
static int read_in_use(struct session *s)
{
	int r = in_use_read(&s->in_use, &s->profiler, false);

	if (r)
		log_error("cannot read what memory is in use: %s", strerror(-r));
	return r ? EX_OSERR : 0;
}

int session_run(struct session *s)
{
	struct epoll_event events[16];
	struct collector *c;
	int r = session_start(s);

	while (!r && !s->stop) {
		/* Records that remain must not keep the worker's answers waiting: without tables
		 * each stack is copied, and there are ever more records. */
		const struct perf_stream *stream = s->profiler.stream;
		bool behind = (stream && perf_stream_is_behind(stream)) ||
			      pipeline_is_behind(s->profiler.pipeline);
		int n = epoll_wait(s->epoll, events, 16, behind ? 0 : -1);

		for (int i = 0; i < n; i++)
			on_event(s, events[i].data.u64);
		profiler_drain(&s->profiler, UINT64_MAX);
		if (s->profiler.stream)
			perf_stream_look_again(s->profiler.stream);
		if (s->o.duration_ns && clock_now() - s->start_ns >= s->o.duration_ns)
			s->stop = true;
	}
	s->end_ns = clock_now();
	if (!r && s->o.event.in_use)
		r = read_in_use(s);
	profiler_disable(&s->profiler);
	allocators_stop(s->allocators);
	if (r)
		return r;
	profiler_stop(&s->profiler);
	pipeline_finish(s->profiler.pipeline);
	c = pipeline_collector(s->profiler.pipeline, 0);
	if (s->o.event.in_use && c)
		in_use_keep(&s->in_use, &s->profiler, c);
	return 0;
}

static uint64_t timeval_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_usec * 1000u;
}

static bool command_has_ended(const struct session *s)
{
	return s->command.argv && !s->command.running;
}

/* Kernel CPU time of the processes since sampling began, in ns. */
static uint64_t system_ns(const struct session *s)
{
	uint64_t sum = 0, user, system;

	if (command_has_ended(s))
		return timeval_ns(&s->command.usage.ru_stime);
	for (uint32_t i = 0; i < s->o.selection.npids; i++)
		if (!procfs_cpu_ns(s->o.selection.pids[i], &user, &system))
			sum += system;
	return sum > s->system_before_ns ? sum - s->system_before_ns : 0;
}

/* Events of threads end where a thread's exit begins, and on Linux 6.16 its memory is given back
 * only then. wait4(2) has the CPU time of all that the command waited for. The clocks differ by
 * some parts of a thousand. */
static void add_exits(const struct session *s, struct session_account *a)
{
	const struct rusage *u = &s->command.usage;
	uint64_t used = timeval_ns(&u->ru_utime) + timeval_ns(&u->ru_stime);

	if (!command_has_ended(s) || s->profiler.tree ||
	    used < a->counts.count_ns + a->counts.count_ns / 100)
		return;
	loss_account_add(&a->losses, LOSS_UNFINISHED, (used - a->counts.count_ns) / a->period_ns);
	a->counts.count_ns = used;
}

bool session_is_beside(const struct session_options *o)
{
	return o->choosers.n && (o->wall || o->choosers.cpu);
}

uint64_t session_period(const struct session *s)
{
	if (!*s->o.event.name)
		return profiler_period_ns(s->o.hz);
	if (s->o.event.chosen)
		return s->o.choosers.at[0].period;
	return s->o.event_period ? s->o.event_period : s->o.event.period;
}

void session_account(struct session *s, struct session_account *a)
{
	struct profiler_counts counts;

	*a = (struct session_account){.period_ns = session_period(s)};
	profiler_counts(&s->profiler, &counts);
	a->counts = counts.events;
	a->stop = counts.stop;
	pipeline_stats(s->profiler.pipeline, &a->stats);
	profiler_account(&s->profiler, &a->losses);
	if (*s->o.event.name) { /* no timer: the kernel stopped an event that came too often */
		loss_account_move(&a->losses, LOSS_TIMER_SKIPPED, LOSS_THROTTLED, UINT64_MAX);
		return;
	}
	add_exits(s, a);
	if (s->profiler.stream && !profiler_kernel(&s->profiler))
		loss_account_move(&a->losses, LOSS_TIMER_SKIPPED, LOSS_KERNEL_NOT_ALLOWED,
				  system_ns(s) / a->period_ns);
}

static const struct fusee_label *labels_of(void *arg, uint32_t set, uint32_t *n)
{
	return process_labels_set(((struct session *)arg)->labels, set, n);
}

const struct probe_kind *session_probes(const struct session_options *o)
{
	return o->event.probes ? probe_kind_named(o->event.name) : NULL;
}

bool session_is_timed(const struct session_options *o)
{
	const struct probe_kind *k = session_probes(o);

	return k && k->timed;
}

/* The type of values in profiles; NULL: that of CPU time. */
static const char *type_of(const struct session_options *o)
{
	if (session_is_alloc(o))
		return "alloc_space";
	return *o->event.name ? o->event.name : NULL;
}

struct build_options session_build_options(struct session *s)
{
	return (struct build_options){.period_ns = session_period(s),
				      .event = type_of(&s->o),
				      .hits = session_is_alloc(&s->o),
				      .in_use = s->o.event.in_use,
				      .timed = session_is_timed(&s->o),
				      .chosen = s->o.event.chosen,
				      .beside = session_is_beside(&s->o),
				      .labels = s->labels ? labels_of : NULL,
				      .arg = s,
				      .server_names = s->o.server_names};
}

void session_close(struct session *s)
{
	command_close(&s->command);
	allocators_free(s->allocators);
	profiler_close(&s->profiler);
	process_labels_free(s->labels);
	in_use_fini(&s->in_use);
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->signals >= 0)
		close(s->signals);
	if (s->timer >= 0)
		close(s->timer);
}
