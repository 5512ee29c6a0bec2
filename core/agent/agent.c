/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "agent/internal/state.h"
#include "agent/internal/memory.h"
#include "base/clock.h"
#include "base/log.h"
#include "lua/policy.h"
#include "net/notify.h"
#include "process/cgroup.h"
#include "process/cgroup_namespace.h"
#include "symbols/probe_points.h"

#define FINISH_NS 3000000000u /* the time for unwinding and symbols of the last samples */
#define ENDING_NS 20000000u
#define SWEEP_SECONDS 10
#define TRIM_SECONDS 30 /* windows and reloads leave up to 10 MB of freed memory in the heap */
#define RING_HZ 99.0    /* rings hold the samples of a quarter of a second at this rate */

/* ---- signals and timers ---- */

static void flush(void *arg)
{
	struct agent *a = arg;

	agent_sampling_drain(&a->sampling);
	instances_close_windows(&a->instances);
	worker_dispatch(a->sampling.profiler.worker);
}

static void reload(void *arg)
{
	struct agent *a = arg;

	reload_run(&a->reload);
}

/* After stop(), each ENDING_NS: waits until the samples are unwound and symbolized, then until the
 * sinks have delivered. */
static void on_ending(void *arg)
{
	struct agent *a = arg;
	uint64_t now = clock_now();

	if (!a->stopped &&
	    (!worker_pending(a->sampling.profiler.worker) || now > a->stop_ns + FINISH_NS)) {
		a->stopped = true;
		instances_stop(&a->instances, now + STOP_NS);
	}
	if (a->stopped &&
	    (instances_have_ended(&a->instances) || now > a->stop_ns + FINISH_NS + STOP_NS))
		loop_stop(a->loop);
}

static void stop(void *arg)
{
	struct agent *a = arg;
	struct loop_timer *timer;

	if (a->stop_ns) { /* the second signal: end now */
		instances_stop(&a->instances, 0);
		loop_stop(a->loop);
		return;
	}
	a->stop_ns = clock_now();
	notify_send("STOPPING=1");
	pulls_stop(a->pulls);
	agent_sampling_stop(&a->sampling);
	if (loop_every(a->loop, ENDING_NS, on_ending, a, &timer)) {
		log_warning("the last windows are lost: %s", strerror(ENOMEM));
		loop_stop(a->loop);
	}
}

static void on_watchdog(void *arg)
{
	(void)arg;
	notify_send("WATCHDOG=1");
}

static void each_second(void *arg, uint32_t seconds)
{
	struct agent *a = arg;

	instances_tidy(&a->instances);
	if (!a->stop_ns) {
		callbacks_run_due(&a->callbacks, clock_now());
		cpu_budget_run(&a->budget, &a->sampling, clock_now());
	}
	lua_policy_collect(a->instances.plan);
	instances_sweep(&a->instances, seconds % SWEEP_SECONDS != 0);
	if (seconds % TRIM_SECONDS == 0)
		memory_trim();
}

/* ---- start ---- */

static int open_loop(struct agent *a)
{
	struct loop_timer *timer;
	uint64_t watchdog = notify_watchdog_ns();
	int r = loop_new(&a->loop);

	signal(SIGPIPE, SIG_IGN);
	if (!r)
		r = loop_signal(a->loop, SIGTERM, stop, a);
	if (!r)
		r = loop_signal(a->loop, SIGINT, stop, a);
	if (!r)
		r = loop_signal(a->loop, SIGHUP, reload, a);
	if (!r)
		r = loop_signal(a->loop, SIGUSR2, flush, a);
	if (!r && watchdog)
		r = loop_every(a->loop, watchdog, on_watchdog, a, &timer);
	if (!r && a->o.duration_ns)
		r = loop_at(a->loop, clock_now() + a->o.duration_ns, stop, a, &timer);
	if (r)
		log_error("cannot start: %s", strerror(-r));
	return r ? EX_OSERR : 0;
}

static int open_folder(struct agent *a)
{
	int r = plugin_folder_open(a->o.plugin_dir, 0, &a->folder);

	if (r) {
		log_error("no plugins can be read from %s: %s%s", a->o.plugin_dir, strerror(-r),
			  r == -ENOENT ? " (is the installation complete?)" : "");
		return r == -ENOMEM ? EX_OSERR : EX_SOFTWARE;
	}
	for (uint32_t i = 0; i < a->folder.nrefused; i++)
		log_warning("%s", a->folder.refused[i]);
	return 0;
}

static int make_plan(const struct agent *a, struct plan **plan)
{
	struct plan_errors errors = {0};
	int r = a->o.plan(a->o.arg, &a->folder, plan, &errors);

	for (uint32_t i = 0; i < errors.n; i++)
		log_error("%s", errors.texts[i]);
	if (r && !errors.n)
		log_error("cannot make the plan: %s", strerror(-r));
	plan_errors_fini(&errors);
	return !r ? 0 : r == -ENOMEM ? EX_OSERR : EX_CONFIG;
}

static int open_sampling(struct agent *a, const struct plan *plan)
{
	struct unwinder_options list[PLAN_MAX_UNWINDERS];
	struct unwinder_choice unwinders = plan_unwinders(plan, list);
	struct chooser_options choosers[PLAN_MAX_SAMPLERS];
	static const struct probe_points found; /* none are known before processes are */
	const uint64_t hit_bytes = plan_hit_bytes(plan);
	const struct profiler_options o = {
		.plugin_dir = a->o.plugin_dir,
		.cache_dir = a->o.cache_dir,
		.unwinders = &unwinders,
		.sampler = (enum sampler_choice)plan->sampler,
		.period_ns = profiler_period_ns(plan->hz > RING_HZ ? plan->hz : RING_HZ),
		.choosers = {.at = choosers,
			     .n = plan->samplers.n,
			     .beside = true,
			     .hits = {hit_bytes ? &found : NULL, (uint32_t)hit_bytes,
				      plan->samplers.inuse_bytes != 0, plan->samplers.nprobes > 0}},
		.stack_bytes = (uint32_t)plan->limits.stack_bytes,
		.ring_bytes = plan->limits.ring_bytes,
		.kernel = plan->kernel,
		.kept.threads = plan->threads,
		.inlines = plan->inlines,
		.command_line = "fusee run",
	};

	for (uint32_t i = 0; i < plan->samplers.n; i++) {
		const struct plan_instance *p = plan->samplers.list[i];

		choosers[i] = (struct chooser_options){p->descriptor, p->where, p->options,
						       p->noptions, p->period};
	}
	a->sampling.loop = a->loop;
	a->sampling.each_second = each_second;
	a->sampling.arg = a;
	return agent_sampling_open(&a->sampling, &o);
}

/* Takes the plan over. */
static int open_instances(struct agent *a, struct plan *plan)
{
	char *error = NULL;
	int r;

	a->instances.loop = a->loop;
	if (scrapes_new(&a->scrapes, a->loop, instances_deliver, &a->instances)) {
		plan_free(plan);
		log_error("cannot start: %s", strerror(ENOMEM));
		return EX_OSERR;
	}
	discoveries_set_profiles(a->sampling.discoveries, scrapes_take, a->scrapes);
	file_requests_set(&a->files, a->loop, &a->sampling.profiler);
	r = instances_set_plan(&a->instances, plan, &error);
	if (r)
		log_error("%s%s", error ? "" : "cannot start: ", error ? error : strerror(-r));
	free(error);
	return !r ? 0 : r == -ENOMEM ? EX_OSERR : EX_CONFIG;
}

/* Inode numbers of the initial namespaces (linux/proc_ns.h). */
#define FIRST_CGROUP_NS 0xeffffffbu
#define FIRST_PID_NS 0xeffffffcu

static bool is_namespace(const char *path, uint32_t first)
{
	struct stat st;

	return !stat(path, &st) && st.st_ino != first;
}

/* Warns in a container: many processes are invisible there although no call fails. */
static void warn_container(void)
{
	bool pids = is_namespace("/proc/self/ns/pid", FIRST_PID_NS);
	char base[CGROUP_MAX];
	size_t rank;
	bool cgroups = is_namespace("/proc/self/ns/cgroup", FIRST_CGROUP_NS) &&
		       cgroup_namespace_find("", getpid(), base, &rank);

	if (pids)
		log_warning("this is a container's pid namespace: processes outside of it are not "
			    "seen (let it share the host's: --pid=host, hostPID: true)");
	if (cgroups)
		log_warning("this is a container's cgroup namespace: control groups have paths as "
			    "seen from it, and those of other containers have no ids "
			    "(--cgroupns=host, or the host's /sys/fs/cgroup mounted in it)");
}

#define FILES 512        /* descriptors that an agent with some sinks needs on a small machine */
#define MOST_FILES 16384 /* above the limit of open files of targets: unwind/file_quota.c */

static void warn_few_files(void)
{
	struct rlimit files;

	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_max < FILES)
		log_warning(
			"only %llu files may be open, which is too few to profile all processes: "
			"'ulimit -n 4096', or LimitNOFILE= of a unit, allows more",
			(unsigned long long)files.rlim_max);
}

/* Grows the table of descriptors while this process has one thread. Later the thread that makes it
 * grow would wait for an RCU grace period, up to a second on busy CPUs. */
static void reserve_files(void)
{
	struct rlimit files;
	int last;

	if (getrlimit(RLIMIT_NOFILE, &files) || !files.rlim_cur)
		return;
	if (files.rlim_cur > MOST_FILES)
		files.rlim_cur = MOST_FILES;
	last = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)files.rlim_cur - 1);
	if (last >= 0)
		close(last);
}

static void log_start(const struct agent *a)
{
	const struct profiler *p = &a->sampling.profiler;
	const struct plan *plan = a->instances.plan;
	uint32_t profiled, n = decisions_processes(a->sampling.decisions, &profiled);
	bool no_kernel = plan->kernel && !perf_stream_kernel(p->stream);

	log_info("%u of %u processes are profiled at %g Hz, unwinding in %s%s", profiled, n,
		 plan->hz, p->bpf ? "the kernel" : "user space",
		 no_kernel ? ", without the kernel's part of stacks" : "");
	if (!n)
		log_warning("no process of this machine could be read: is /proc mounted?");
	if (p->no_bpf)
		log_info("no BPF sampler: %s", p->no_bpf);
	warn_container();
	notify_send("READY=1\nSTATUS=%u of %u processes are profiled", profiled, n);
}

static void agent_close(struct agent *a)
{
	flushes_cancel(&a->flushes);
	http_free(a->http);
	pulls_free(a->pulls);
	control_free(a->control);
	callbacks_fini(&a->callbacks);
	file_requests_close(&a->files);
	instances_fini(&a->instances);
	file_requests_fini(&a->files);
	flushes_fini(&a->flushes);
	agent_sampling_close(&a->sampling); /* ends the discoveries' threads */
	scrapes_free(a->scrapes);
	loop_free(a->loop);
	plugin_folder_close(&a->folder);
	reload_fini(&a->reload);
}

static int agent_open(struct agent *a)
{
	struct plan *plan = NULL;
	int r = open_folder(a);

	warn_few_files();
	reserve_files();
	if (!r)
		r = make_plan(a, &plan);
	if (!r)
		r = open_loop(a);
	if (!r)
		r = open_sampling(a, plan);
	if (r) {
		plan_free(plan);
		return r;
	}
	r = open_instances(a, plan);
	if (!r)
		r = commands_open(a);
	if (!r)
		r = pages_open(a);
	if (!r)
		r = agent_sampling_begin(&a->sampling);
	return r;
}

int agent_run(const struct agent_options *o)
{
	struct agent a = {.o = *o, .host = plugin_host_base, .start_ns = clock_now()};
	int r;

	memory_prepare();
	a.host.size = sizeof(a.host);
	a.host.sink = &delivery_host;
	a.host.discovery = &discovery_host;
	a.instances.folder = &a.folder;
	a.instances.host = &a.host;
	a.instances.sampling = &a.sampling;
	a.reload.options = &a.o;
	a.reload.instances = &a.instances;
	a.flushes.instances = &a.instances;
	a.callbacks.instances = &a.instances;
	a.instances.built = callbacks_built;
	a.instances.arg = &a.callbacks;
	file_requests_init(&a.files);
	a.instances.files = (struct delivery_files){file_requests_open_file, &a.files};
	r = agent_open(&a);
	if (!r) {
		log_start(&a);
		r = loop_run(a.loop) ? EX_OSERR : 0;
	}
	agent_close(&a);
	return r;
}
