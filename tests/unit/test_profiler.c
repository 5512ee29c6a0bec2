/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, measures, covers core/profiler core/events
/* The profiler as one object: opened, prepared, drained window by window, closed. */
#include "profiler/profiler.h"

#include <limits.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sysexits.h>

#include "bpf/rates.h"
#include "lib/cpu_time.h"
#include "worker_help.h"

#define PERIOD_NS 1000000u

static unsigned timers_set; /* system calls for relative times, as only the stream has them */

int timerfd_settime(int fd, int flags, const struct itimerspec *next, struct itimerspec *was)
{
	timers_set += !(flags & TFD_TIMER_ABSTIME);
	return (int)syscall(SYS_timerfd_settime, fd, flags, next, was);
}

/* "BUILD/plugins", of BUILD/tests/test_profiler. */
static const char *plugins(void)
{
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);

	CHECK(n > 0);
	path[n] = '\0';
	for (int i = 0; i < 2; i++)
		*strrchr(path, '/') = '\0';
	return strcat(path, "/plugins");
}

static pid_t burner(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	while (!pid)
		__asm__ volatile("");
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool to_no_slot(void *arg, const struct sample *s, struct pipeline_route *r)
{
	return false;
}

static void open_or_skip(struct profiler *p, const struct profiler_options *o)
{
	int r = profiler_open(p, o);

	if (r == EX_NOPERM)
		SKIP("perf events are refused");
	CHECK_INT(r, 0);
}

/* Samples as an event loop would, until the process has used so much CPU time. */
static void sample(struct profiler *p, pid_t pid, uint64_t ns)
{
	uint64_t until = cpu_ns(pid) + ns;

	WAIT_FOR((profiler_drain(p, UINT64_MAX), profiler_dispatch(p), cpu_ns(pid) >= until));
}

static void check_sum(const struct loss_account *a)
{
	CHECK_INT(a->due, a->complete + a->truncated + a->lost);
}

TEST(periods_of_rates)
{
	CHECK_INT(profiler_period_ns(99), 10101010);
	CHECK_INT(profiler_period_ns(20000), 50000);
	CHECK_INT(profiler_period_ns(0.1), 10000000000);
}

TEST(windows_follow_one_another)
{
	pid_t pid = burner();
	const struct profiler_options o = {.plugin_dir = plugins(),
					   .pids = &pid,
					   .npids = 1,
					   .sampler = SAMPLER_SNAPSHOT,
					   .period_ns = PERIOD_NS,
					   .stack_bytes = 1024};
	struct profiler_window first, second;
	struct loss_account all;
	struct profiler p;

	open_or_skip(&p, &o);
	CHECK(!p.bpf && !p.no_bpf);
	profiler_prepare(&p);
	CHECK_INT(profiler_enable(&p), 0);
	sample(&p, pid, 200000000);
	CHECK_INT(profiler_close_window(&p, 0, true, &first), 0);
	sample(&p, pid, 200000000);
	profiler_stop(&p);
	end(pid);
	pipeline_finish(p.pipeline);
	CHECK_INT(profiler_close_window(&p, 0, false, &second), 0);
	profiler_account(&p, &all);
	CHECK(first.collector->count > 10 && second.collector->count > 10);
	CHECK(first.end_ns > first.collector->start_ns && second.end_ns > first.end_ns);
	check_sum(&first.losses);
	check_sum(&second.losses);
	check_sum(&all);
	CHECK_INT(first.collector->count + second.collector->count, all.complete + all.truncated);
	CHECK_INT(first.losses.due + second.losses.due, all.due);
	CHECK_INT(first.collector->weight_ns, first.collector->count * PERIOD_NS);
	collector_free(first.collector);
	collector_free(second.collector);
	profiler_close(&p);
}

TEST(slots_are_found_and_given_back)
{
	const struct profiler_options o = {.plugin_dir = plugins(),
					   .dynamic = true,
					   .sampler = SAMPLER_SNAPSHOT,
					   .period_ns = PERIOD_NS,
					   .stack_bytes = 1024,
					   .route = to_no_slot,
					   .command_line = "fusee run"};
	struct profiler_window w;
	struct profiler p;
	uint32_t slot;

	open_or_skip(&p, &o);
	for (uint32_t i = 0; i < PIPELINE_SLOTS; i++) {
		CHECK_INT(profiler_open_window(&p, &slot), 0);
		CHECK_INT(slot, i);
	}
	CHECK_INT(profiler_open_window(&p, &slot), -ENOSPC);
	CHECK_INT(profiler_close_window(&p, 7, false, &w), 0);
	CHECK(w.collector && !w.collector->count);
	collector_free(w.collector);
	CHECK_INT(profiler_open_window(&p, &slot), 0);
	CHECK_INT(slot, 7);
	profiler_sweep(&p, NULL, 0, 0);
	profiler_close(&p);
}

static bool selected_if(void *arg, pid_t pid)
{
	return *(bool *)arg;
}

static void run_true(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
}

/* One reading, as after a wake. Returns whether it was one, and *again whether more follow. */
static bool read_after_wake(struct profiler *p, bool *again)
{
	bool wake;

	run_true();
	profiler_drain(p, UINT64_MAX);
	wake = perf_stream_looks_again(p->stream);
	profiler_end_looks(p);
	*again = perf_stream_looks_again(p->stream);
	perf_stream_look_again(p->stream);
	return wake;
}

/* The exec of each program wakes user space while nothing is known of it. */
TEST(the_rings_are_read_again_only_for_selected_programs)
{
	bool selects = false, again, none_again = true;
	const struct profiler_options o = {.plugin_dir = plugins(),
					   .dynamic = true,
					   .sampler = SAMPLER_AUTO,
					   .period_ns = 10 * PERIOD_NS,
					   .stack_bytes = 65528,
					   .route = to_no_slot,
					   .selected = selected_if,
					   .arg = &selects};
	struct pollfd stream;
	struct profiler p;
	uint32_t group;

	open_or_skip(&p, &o);
	if (!p.bpf || !bpf_rates_work(p.bpf)) {
		profiler_close(&p);
		SKIP("there is no BPF sampler");
	}
	CHECK_INT(perf_stream_add_cpus(p.stream, o.period_ns, &group), 0);
	bpf_rates_set_default(p.bpf, o.period_ns);
	CHECK_INT(profiler_enable(&p), 0);
	WAIT_FOR(read_after_wake(&p, &again));
	timers_set = 0;
	for (int wakes = 0; wakes < 5 && none_again;) {
		wakes += read_after_wake(&p, &again);
		none_again = !again;
	}
	CHECK(none_again);
	CHECK_INT(timers_set, 0);
	selects = true;
	WAIT_FOR((read_after_wake(&p, &again), again));
	CHECK_INT(timers_set, 1);
	stream = (struct pollfd){.fd = perf_stream_fd(p.stream), .events = POLLIN};
	profiler_disable(&p);
	WAIT_FOR(poll(&stream, 1, 1000) == 1);
	profiler_close(&p);
}

/* Before stacks that waited for a table are walked, the kernel has it: the pages that they read of
 * it are loaded. */
TEST(tables_are_published_when_the_worker_answers)
{
	pid_t pid = burner();
	const struct profiler_options o = {.plugin_dir = plugins(),
					   .pids = &pid,
					   .npids = 1,
					   .sampler = SAMPLER_AUTO,
					   .period_ns = PERIOD_NS,
					   .stack_bytes = 65528,
					   .route = to_no_slot};
	const struct files *files;
	struct profiler p;
	uint32_t before;

	open_or_skip(&p, &o);
	if (!p.bpf) {
		profiler_close(&p);
		end(pid);
		SKIP("there is no BPF sampler");
	}
	CHECK_INT(profiler_enable(&p), 0);
	files = pipeline_files(p.pipeline);
	before = files->answers;
	CHECK(worker_pending(p.worker));
	WAIT_FOR((profiler_dispatch(&p), files->answers != before));
	CHECK(!pipeline_has_unpublished(p.pipeline));
	profiler_close(&p);
	end(pid);
}

TEST(what_fails_to_open_can_be_closed)
{
	const struct profiler_options o = {.plugin_dir = "/nonesuch"};
	struct profiler p = {0};

	profiler_close(&p);
	CHECK_INT(profiler_open(&p, &o), EX_SOFTWARE);
	profiler_close(&p);
}
