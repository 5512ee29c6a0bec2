/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/entry.h"

#define TABLE_BYTES (32u << 20) /* in the kernel: clang's libraries alone have 12 MB */
#define TICK_NS \
	50000000 /* rings are looked at this often; the kernel wakes us earlier when one fills */

enum source {
	SOURCE_SAMPLES,
	SOURCE_WORKER,
	SOURCE_SIGNALS,
	SOURCE_TICK,
	SOURCE_TARGET,
	SOURCE_KEYS
};

/* ---- opening ---- */

char *session_cache_dir(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *dir = NULL;
	int n = -1;

	if (!geteuid() && getenv("SUDO_UID")) /* root's files have no place in the user's home */
		n = asprintf(&dir, "/var/cache/fusee");
	else if (cache && *cache == '/')
		n = asprintf(&dir, "%s/fusee", cache);
	else if (home && *home == '/' && !access(home, W_OK | X_OK)) /* nobody has none */
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

static int open_loop(struct session *s)
{
	struct itimerspec every = {{0, TICK_NS}, {0, TICK_NS}};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	s->ticks = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->epoll < 0 || s->signals < 0 || s->ticks < 0 ||
	    timerfd_settime(s->ticks, 0, &every, NULL) || watch(s, s->signals, SOURCE_SIGNALS) ||
	    watch(s, s->ticks, SOURCE_TICK) ||
	    (s->o.tick && s->o.keys >= 0 && watch(s, s->o.keys, SOURCE_KEYS))) {
		log_error("cannot set up the event loop: %s", strerror(errno));
		return EX_OSERR;
	}
	return 0;
}

/* A pidfd tells when the target ends (Linux 5.3). */
static void watch_target(struct session *s, pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0 && !watch(s, fd, SOURCE_TARGET))
		s->living++;
}

int session_sampler(const char *name, enum sampler_choice *ret)
{
	for (uint32_t i = 0; sampler_choices[i]; i++)
		if (!strcmp(name, sampler_choices[i])) {
			*ret = (enum sampler_choice)i;
			return 0;
		}
	return -EINVAL;
}

static int open_profiler(struct session *s)
{
	char *cache = s->o.cache ? session_cache_dir() : NULL, *plugins = plugin_default_dir();
	const struct profiler_options o = {
		.plugin_dir = plugins,
		.cache_dir = cache,
		.pids = s->o.pids,
		.npids = s->o.npids,
		.all = s->o.all,
		.held = s->o.command,
		.sampler = s->o.sampler,
		.period_ns = profiler_period_ns(s->o.hz),
		.stack_bytes = s->o.stack_bytes,
		.table_bytes = TABLE_BYTES,
		.kernel = s->o.kernel,
		.threads = s->o.threads,
		.inlines = s->o.inlines,
		.command_line = s->o.again,
	};
	int r = plugins ? profiler_open(&s->profiler, &o) : EX_OSERR;

	free(cache);
	free(plugins);
	if (r)
		return r;
	r = watch(s, worker_fd(s->profiler.worker), SOURCE_WORKER);
	if (!r)
		r = watch(s, perf_stream_fd(s->profiler.stream), SOURCE_SAMPLES);
	if (r)
		log_error("cannot set up the event loop: %s", strerror(-r));
	return r ? EX_OSERR : 0;
}

/* Targets of -p: their ends are watched, and the kernel CPU time that they have used is read. */
static void watch_targets(struct session *s)
{
	for (uint32_t i = 0; !s->o.command && i < s->o.npids; i++) {
		uint64_t user, system;

		watch_target(s, s->o.pids[i]);
		if (!procfs_cpu_ns(s->o.pids[i], &user, &system))
			s->system_before_ns += system;
	}
}

static int hold_command(struct session *s)
{
	int r = launch_hold(&s->child, s->o.command);

	if (r) {
		log_error("cannot start a process: %s", strerror(-r));
		return EX_OSERR;
	}
	s->o.pids[0] = s->child.pid;
	s->o.npids = 1;
	return 0;
}

int session_open(struct session *s)
{
	int r = open_loop(s);

	if (!r && s->o.command)
		r = hold_command(s);
	if (!r)
		r = open_profiler(s);
	if (r)
		return r;
	watch_targets(s);
	profiler_prepare(&s->profiler);
	return 0;
}

/* ---- running ---- */

static void prepare_held(void *arg)
{
	profiler_prepare_held(arg);
}

static int begin(struct session *s)
{
	int r;

	s->start_wall_ns = clock_ns(CLOCK_REALTIME);
	s->start_ns = clock_now();
	if (s->o.command) {
		bool seized = s->profiler.bpf && entry_seize(s->child.pid);

		r = launch_go(&s->child);
		if (!r && seized)
			entry_pass(s->child.pid, prepare_held, &s->profiler);
		if (r) {
			log_error("cannot run '%s': %s", s->o.command[0], strerror(-r));
			return r == -ENOENT ? 127 : 126;
		}
		s->child_runs = true;
		return 0;
	}
	r = profiler_enable(&s->profiler);
	if (r)
		log_error("cannot switch sampling on: %s", strerror(-r));
	return r ? EX_OSERR : 0;
}

static void on_signal(struct session *s)
{
	struct signalfd_siginfo info;
	int status;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			if (s->child_runs && wait4(s->child.pid, &status, WNOHANG,
						   &s->child_usage) == s->child.pid) {
				s->child_status = status;
				s->child_runs = false;
				s->stop = true;
			}
			continue;
		}
		/* Ctrl-C reaches the command too: its end is ours. The second one ends sampling at
		 * once. */
		s->interrupts++;
		if (s->child_runs && info.ssi_signo != SIGINT)
			kill(s->child.pid, (int)info.ssi_signo);
		if (!s->child_runs || s->interrupts > 1)
			s->stop = true;
	}
}

static void on_event(struct session *s, uint64_t data)
{
	uint64_t expired;
	int fd = (int)(uint32_t)data;

	switch ((enum source)(data >> 32)) {
	case SOURCE_SAMPLES:
		break;
	case SOURCE_WORKER:
		profiler_dispatch(&s->profiler);
		break;
	case SOURCE_SIGNALS:
		on_signal(s);
		break;
	case SOURCE_TICK:
		if (read(s->ticks, &expired, sizeof(expired)) < 0)
			break;
		if (s->o.tick)
			s->o.tick(s, false);
		else
			progress_update(s);
		break;
	case SOURCE_KEYS:
		s->o.tick(s, true);
		break;
	case SOURCE_TARGET:
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, fd, NULL);
		close(fd);
		if (!--s->living)
			s->stop = true;
		break;
	}
}

int session_run(struct session *s)
{
	struct epoll_event events[16];
	int r = begin(s);

	while (!r && !s->stop) {
		int n = epoll_wait(s->epoll, events, 16, -1);

		for (int i = 0; i < n; i++)
			on_event(s, events[i].data.u64);
		profiler_drain(&s->profiler, UINT64_MAX);
		if (s->o.duration_ns && clock_now() - s->start_ns >= s->o.duration_ns)
			s->stop = true;
	}
	s->end_ns = clock_now();
	profiler_disable(&s->profiler);
	progress_clear();
	if (r)
		return r;
	profiler_stop(&s->profiler);
	pipeline_finish(s->profiler.pipeline);
	return 0;
}

/* Kernel CPU time of the targets while they were sampled. */
static uint64_t system_ns(const struct session *s)
{
	const struct timeval *of_child = &s->child_usage.ru_stime;
	uint64_t sum = 0, user, system;

	if (s->o.command && !s->child_runs)
		return (uint64_t)of_child->tv_sec * 1000000000u +
		       (uint64_t)of_child->tv_usec * 1000u;
	for (uint32_t i = 0; i < s->o.npids; i++)
		if (!procfs_cpu_ns(s->o.pids[i], &user, &system))
			sum += system;
	return sum > s->system_before_ns ? sum - s->system_before_ns : 0;
}

void session_account(struct session *s, struct session_account *a)
{
	*a = (struct session_account){.period_ns = profiler_period_ns(s->o.hz)};
	perf_stream_counts(s->profiler.stream, &a->counts);
	pipeline_stats(s->profiler.pipeline, &a->stats);
	losses_read(&a->losses, s->profiler.pipeline, s->profiler.stream);
	if (!perf_stream_kernel(s->profiler.stream))
		loss_account_move(&a->losses, LOSS_TIMER_SKIPPED, LOSS_KERNEL_NOT_ALLOWED,
				  system_ns(s) / a->period_ns);
}

void session_close(struct session *s)
{
	if (s->child_runs) {
		int status;

		log_info("'%s' still runs: waiting for its end", s->o.command[0]);
		if (waitpid(s->child.pid, &status, 0) == s->child.pid)
			s->child_status = status;
	} else if (s->o.command && s->child.go >= 0) {
		launch_drop(&s->child);
	}
	profiler_close(&s->profiler);
	if (s->epoll > 0)
		close(s->epoll);
	if (s->signals > 0)
		close(s->signals);
	if (s->ticks > 0)
		close(s->ticks);
}
