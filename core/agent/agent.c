/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/log.h"
#include "agent/agent_state.h"
#include "net/notify.h"

#define FINISH_NS 3000000000u /* so long tables and names of the last samples may take */

/* ---- signals ---- */

static void flush(void *arg)
{
	struct agent *a = arg;

	agent_sampling_drain(a);
	for (uint32_t i = 0; i < a->plan->nsinks; i++)
		sink_window_close_window(a->windows[i]);
	worker_dispatch(a->profiler.worker);
}

static void reload(void *arg)
{
	char *error = NULL;

	notify_reloading();
	if (reload_run(arg, &error))
		log_error("reload failed, the running plan stays:\n%s",
			  error ? error : strerror(ENOMEM));
	else
		log_info("reloaded");
	free(error);
	notify_send("READY=1");
}

static bool all_quiet(const struct agent *a)
{
	for (uint32_t i = 0; i < a->plan->nsinks; i++)
		if (!sink_window_is_idle(a->windows[i]) ||
		    !delivery_ended(sink_window_delivery(a->windows[i])))
			return false;
	return true;
}

/* The end, a few times a second: first what was sampled is walked and named, then it goes out. */
static void on_ending(void *arg)
{
	struct agent *a = arg;
	uint64_t now = clock_now();

	if (!a->stopped && (!worker_pending(a->profiler.worker) || now > a->stop_ns + FINISH_NS)) {
		a->stopped = true;
		for (uint32_t i = 0; i < a->plan->nsinks; i++)
			sink_window_stop(a->windows[i], now + STOP_NS);
	}
	if (a->stopped && (all_quiet(a) || now > a->stop_ns + FINISH_NS + STOP_NS))
		loop_stop(a->loop);
}

static void stop(void *arg)
{
	struct agent *a = arg;
	struct loop_timer *timer;

	if (a->stop_ns) { /* the second time: now */
		for (uint32_t i = 0; i < a->plan->nsinks; i++)
			sink_window_stop(a->windows[i], 0);
		loop_stop(a->loop);
		return;
	}
	a->stop_ns = clock_now();
	notify_send("STOPPING=1");
	profiler_disable(&a->profiler);
	process_events_drain(a->lifecycle);
	profiler_stop(&a->profiler);
	if (loop_every(a->loop, 20000000, on_ending, a, &timer)) {
		log_warning("the last windows are lost: %s", strerror(ENOMEM));
		loop_stop(a->loop);
	}
}

static void alive(void *arg)
{
	(void)arg;
	notify_send("WATCHDOG=1");
}

/* ---- life ---- */

static int decide(void *arg, const struct fusee_label *labels, uint32_t n, struct policy_answer *d,
		  char **text)
{
	return lua_policy_ask(((struct agent *)arg)->plan, labels, n, d, text);
}

static uint64_t moves(void *arg)
{
	return cgroup_moves_count(((struct agent *)arg)->moves);
}

static int open_registries(struct agent *a)
{
	struct decisions_options o = {
		.decide = decide, .changed = agent_sampling_changed, .moves = moves, .arg = a};
	int r = targets_new(&a->targets);

	if (!r)
		r = discoveries_new(&a->discoveries, a->loop, a->targets);
	o.targets = a->targets;
	if (!r)
		r = decisions_new(&a->decisions, &o);
	return r;
}

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
		r = loop_every(a->loop, watchdog, alive, a, &timer);
	if (!r && a->o.duration_ns)
		r = loop_at(a->loop, clock_now() + a->o.duration_ns, stop, a, &timer);
	if (!r)
		r = open_registries(a);
	if (r)
		log_error("cannot start: %s", strerror(-r));
	return r ? EX_OSERR : 0;
}

static int open_plan(struct agent *a)
{
	struct plan_errors errors = {0};
	int r = plugin_folder_open(a->o.plugin_dir, &a->folder);

	if (r) {
		log_error("no plugins can be read from %s: %s%s", a->o.plugin_dir, strerror(-r),
			  r == -ENOENT ? " (is fusee installed whole?)" : "");
		return r == -ENOMEM ? EX_OSERR : EX_SOFTWARE;
	}
	for (uint32_t i = 0; i < a->folder.nrefused; i++)
		log_warning("%s", a->folder.refused[i]);
	r = a->o.plan(a->o.arg, &a->folder, &a->plan, &errors);
	for (uint32_t i = 0; i < errors.n; i++)
		log_error("%s", errors.texts[i]);
	if (r && !errors.n)
		log_error("cannot make the plan: %s", strerror(-r));
	plan_errors_fini(&errors);
	return !r ? 0 : r == -ENOMEM ? EX_OSERR : EX_CONFIG;
}

static int open_instances(struct agent *a)
{
	char *error = NULL;
	int r = reload_plan(a, a->plan, &error);

	if (r)
		log_error("%s%s", error ? "" : "cannot start: ", error ? error : strerror(-r));
	free(error);
	return !r ? 0 : r == -ENOMEM ? EX_OSERR : EX_CONFIG;
}

/* Numbers of the kernel's first namespaces (linux/proc_ns.h). */
#define FIRST_CGROUP_NS 0xeffffffbu
#define FIRST_PID_NS 0xeffffffcu

static bool is_namespace(const char *path, uint32_t first)
{
	struct stat st;

	return !stat(path, &st) && st.st_ino != first;
}

/* In a container much is out of sight, and nothing fails. */
static void say_unseen(void)
{
	bool pids = is_namespace("/proc/self/ns/pid", FIRST_PID_NS);
	bool cgroups = is_namespace("/proc/self/ns/cgroup", FIRST_CGROUP_NS);

	if (pids)
		log_warning("this is a container's pid namespace: processes outside of it are not "
			    "seen (let it share the host's: --pid=host, hostPID: true)");
	if (cgroups)
		log_warning("this is a container's cgroup namespace: control groups have paths as "
			    "seen from it, and those of other containers have no ids "
			    "(--cgroupns=host)");
}

static void greet(const struct agent *a)
{
	uint32_t profiled, n = decisions_processes(a->decisions, &profiled);

	log_info("%u of %u processes are profiled at %g Hz, unwinding in %s%s", profiled, n,
		 a->plan->hz, a->profiler.bpf ? "the kernel" : "user space",
		 perf_stream_kernel(a->profiler.stream) || !a->plan->kernel
			 ? ""
			 : ", without the kernel's part of stacks");
	if (a->profiler.no_bpf)
		log_info("no BPF sampler: %s", a->profiler.no_bpf);
	say_unseen();
	notify_send("READY=1\nSTATUS=%u of %u processes are profiled", profiled, n);
}

static void agent_close(struct agent *a)
{
	status_close(a);
	reload_close(a);
	status_free(a);
	discoveries_free(a->discoveries);
	decisions_free(a->decisions);
	agent_sampling_close(a);
	targets_free(a->targets);
	loop_free(a->loop);
	plan_free(a->plan);
	plugin_folder_close(&a->folder);
	free(a->reload_error);
}

int agent_run(const struct agent_options *o)
{
	struct agent a = {.o = *o, .host = plugin_host_base, .start_ns = clock_now()};
	int r;

	a.host.size = sizeof(a.host);
	a.host.sink = &delivery_host;
	a.host.discovery = &discovery_host;
	r = open_plan(&a);
	if (!r)
		r = open_loop(&a);
	if (!r)
		r = agent_sampling_open(&a);
	if (!r)
		r = open_instances(&a);
	if (!r)
		r = status_open(&a);
	if (!r)
		r = agent_sampling_begin(&a);
	if (!r) {
		greet(&a);
		r = loop_run(a.loop) ? EX_OSERR : 0;
	}
	agent_close(&a);
	return r;
}
