/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/events
/* core/events/process_events: with real processes, by perf events and by /proc. */
#include "lib/leaderless.h"
#include "lib/pause.h"
#include "test.h"

#include "events/process_events.h"

enum { MAX_NOTES = 65536 };

enum what { FORKED = 1, EXECED, EXITED };

struct note {
	enum what what;
	pid_t pid, parent;
	uint64_t time;
};

static struct note notes[MAX_NOTES];
static int nnotes, nlost;

static void note(enum what what, pid_t pid, pid_t parent, uint64_t time)
{
	CHECK(pid > 0 && parent >= 0);
	CHECK(!nnotes || !time || time >= notes[nnotes - 1].time);
	if (nnotes < MAX_NOTES)
		notes[nnotes++] = (struct note){what, pid, parent, time};
}

static void on_forked(void *arg, pid_t pid, pid_t parent, uint64_t time)
{
	note(FORKED, pid, parent, time);
}

static void on_execed(void *arg, pid_t pid, const char *comm, uint64_t time)
{
	note(EXECED, pid, 0, time);
}

static void on_exited(void *arg, pid_t pid, uint64_t time)
{
	note(EXITED, pid, 0, time);
}

static void on_lost(void *arg)
{
	nlost++;
}

static const struct process_events_handlers on = {NULL, on_forked, on_execed, on_exited, on_lost};

static struct process_events *open_events(void)
{
	struct process_events *events;

	CHECK_INT(process_events_open(&events, &on), 0);
	if (process_events_polls(events)) {
		if (!geteuid()) {
			fprintf(stderr, "# %s\n", process_events_how(events));
			SKIP("root may not open perf events here");
		}
		SKIP("needs CAP_PERFMON");
	}
	CHECK(strstr(process_events_how(events), "perf events"));
	return events;
}

static int count(enum what what, pid_t pid)
{
	int n = 0;

	for (int i = 0; i < nnotes; i++)
		n += notes[i].what == what && notes[i].pid == pid;
	return n;
}

static const struct note *find(enum what what, pid_t pid)
{
	for (int i = 0; i < nnotes; i++)
		if (notes[i].what == what && notes[i].pid == pid)
			return &notes[i];
	fprintf(stderr, "# nothing was reported of %d: %d\n", (int)pid, (int)what);
	exit(1);
}

static pid_t spawn(bool exec)
{
	pid_t pid = fork();

	if (!pid) {
		if (exec)
			execl("/bin/true", "true", (char *)NULL);
		_exit(exec);
	}
	CHECK(pid > 0);
	return pid;
}

static void reap(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
}

#define DRAIN_UNTIL(events, x) WAIT_FOR((process_events_drain(events, false), (x)))

/* All that happened before this has been reported: so was this process, which came later. */
static void drain(struct process_events *events)
{
	pid_t last = spawn(false);

	reap(last);
	DRAIN_UNTIL(events, count(EXITED, last));
}

static void *nothing(void *arg)
{
	return arg;
}

/* Its end is that of its last thread. */
TEST(the_first_thread_ends_first)
{
	struct process_events *events = open_events();
	struct leaderless l = leaderless_start();

	drain(events);
	CHECK_INT(count(FORKED, l.pid), 1);
	CHECK_INT(count(EXITED, l.pid), 0);
	close(l.go);
	reap(l.pid);
	DRAIN_UNTIL(events, count(EXITED, l.pid));
	CHECK_INT(count(EXITED, l.pid), 1);
	process_events_close(events);
}

TEST(fork_exec_exit)
{
	struct process_events *events = open_events();
	uint64_t began = test_now_ns();
	pid_t plain, execs;
	pthread_t t;

	plain = spawn(false);
	execs = spawn(true);
	reap(plain);
	reap(execs);
	CHECK(!pthread_create(&t, NULL, nothing, NULL));
	pthread_join(t, NULL);
	drain(events);
	CHECK_INT(find(FORKED, plain)->parent, getpid());
	CHECK_INT(find(FORKED, execs)->parent, getpid());
	CHECK_INT(count(EXECED, plain), 0);
	CHECK(find(EXITED, plain) > find(FORKED, plain));
	CHECK(find(EXECED, execs) > find(FORKED, execs));
	CHECK(find(EXITED, execs) > find(EXECED, execs));
	CHECK(find(FORKED, plain)->time > began && find(EXITED, execs)->time < test_now_ns());
	CHECK_INT(count(FORKED, getpid()), 0); /* a thread is no process */
	CHECK_INT(count(EXITED, getpid()), 0);
	CHECK_INT(nlost, 0);
	process_events_close(events);
	process_events_close(NULL);
}

TEST(many_on_all_cpus)
{
	struct process_events *events = open_events();
	pid_t pids[400];

	for (int i = 0; i < 400; i++) {
		pids[i] = spawn(i % 2);
		if (i % 50 == 49)
			process_events_drain(events, false);
	}
	for (int i = 0; i < 400; i++)
		reap(pids[i]);
	drain(events);
	CHECK_INT(nlost, 0);
	for (int i = 0; i < 400; i++) {
		CHECK_INT(count(FORKED, pids[i]), 1);
		CHECK_INT(count(EXECED, pids[i]), i % 2);
		CHECK_INT(count(EXITED, pids[i]), 1);
	}
	process_events_close(events);
}

static uint32_t slow;

static void forked_slowly(void *arg, pid_t pid, pid_t parent, uint64_t time)
{
	slow++;
	pause_us(15000, "a slow handler");
}

static void ignore_exec(void *arg, pid_t pid, const char *comm, uint64_t time)
{
}

static void ignore_exit(void *arg, pid_t pid, uint64_t time)
{
}

static void ignore_loss(void *arg)
{
}

/* The caller has its turn after 20 ms, and learns until when everything was reported. */
TEST(a_drain_ends_after_a_while)
{
	const struct process_events_handlers handlers = {NULL, forked_slowly, ignore_exec,
							 ignore_exit, ignore_loss};
	struct process_events *events;
	uint64_t until = 0, next;

	CHECK_INT(process_events_open(&events, &handlers), 0);
	if (process_events_polls(events))
		SKIP("needs CAP_PERFMON");
	for (int i = 0; i < 8; i++)
		reap(spawn(false));
	slow = 0;
	while (slow < 8) { /* those of others are among them */
		uint32_t before = slow;

		next = process_events_drain(events, true); /* also what is just there */
		CHECK(slow - before <= 2);                 /* the third would begin after 30 ms */
		CHECK(next >= until && next < test_now_ns());
		CHECK(slow >= 8 || process_events_is_behind(events));
		until = next;
	}
	process_events_close(events);
}

/* Without draining the ring fills; that records were lost is reported when it has room again. */
TEST(lost_records)
{
	struct process_events *events = open_events();
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : cpu, &set);
	CHECK(!sched_setaffinity(0, sizeof(set), &set));
	for (int i = 0; i < 12000; i++) {
		pid_t pid = vfork();

		if (!pid)
			_exit(0);
		CHECK(pid > 0);
		waitpid(pid, NULL, 0);
	}
	process_events_drain(events, false);
	reap(spawn(false));
	DRAIN_UNTIL(events, nlost > 0);
	process_events_close(events);
}

/* What others do there has the numbers 0 and -1 for us: nothing that could be looked up. */
TEST(in_a_pid_namespace)
{
	int ready[2], done[2], status;
	pid_t child;
	char c;

	if (geteuid())
		SKIP("needs root");
	CHECK(!pipe(ready) && !pipe(done));
	child = fork();
	if (!child) {
		if (unshare(CLONE_NEWPID))
			_exit(77);
		child = fork();
		if (child) {
			waitpid(child, &status, 0);
			_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
		}
		struct process_events *events = open_events();

		CHECK(write(ready[1], "r", 1) == 1 && read(done[0], &c, 1) == 1);
		child = spawn(true);
		reap(child);
		DRAIN_UNTIL(events, count(EXITED, child));
		CHECK(child < 10);
		CHECK_INT(find(FORKED, child)->parent, 1);
		CHECK_INT(count(EXECED, child) + count(EXITED, child), 2);
		CHECK(nnotes < 20); /* note() looks at each pid */
		process_events_close(events);
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) == 1) {
		for (int i = 0; i < 20; i++)
			reap(spawn(i % 2));
		CHECK(write(done[1], "d", 1) == 1);
	}
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("no pid namespace, or no perf events in it");
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* ---- the way of those who may not ---- */

static struct process_events *open_polling(void)
{
	struct process_events *events;

	if (!geteuid()) {
		CHECK(!setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534));
		prctl(PR_SET_DUMPABLE, 1); /* or even our own /proc/PID/exe is not ours */
	}
	CHECK_INT(process_events_open(&events, &on), 0);
	if (!process_events_polls(events))
		SKIP("everybody may open perf events of all processes here");
	CHECK(strstr(process_events_how(events), "/proc"));
	return events;
}

TEST(without_rights_proc_is_looked_over)
{
	struct process_events *events = open_polling();
	uint64_t looked;
	int go[2];
	pid_t pid;
	char c;

	CHECK(!pipe(go));
	looked = test_now_ns();
	process_events_drain(events, false);
	CHECK_INT(nnotes, 0); /* processes that ran before are not reported */
	pid = fork();
	if (!pid) {
		close(go[1]);
		if (read(go[0], &c, 1) == 1)
			execl("/bin/sleep", "sleep", "60", (char *)NULL);
		_exit(1);
	}
	process_events_drain(events, false); /* it looks once a second */
	CHECK(!count(FORKED, pid) || test_now_ns() - looked >= 1000000000);
	DRAIN_UNTIL(events, count(EXECED, pid));
	CHECK(find(EXECED, pid) > find(FORKED, pid));
	CHECK_INT(count(EXECED, pid), 1);
	CHECK(write(go[1], "g", 1) == 1);
	DRAIN_UNTIL(events, count(EXECED, pid) == 2); /* another executable */
	CHECK_INT(count(FORKED, pid), 1);
	CHECK_INT(count(EXITED, pid), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	DRAIN_UNTIL(events, count(EXITED, pid));
	CHECK_INT(count(EXITED, pid), 1);
	CHECK_INT(nlost, 0);
	process_events_close(events);
}
