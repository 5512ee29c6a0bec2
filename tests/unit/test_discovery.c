/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/policy
/* core/policy/discovery: instances of discovery in the loop, and what they may do. */
#include "lib/pause.h"
#include "process/procfs.h"
#include "test.h"

#include <inttypes.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "policy/discoveries.h"
#include "plugin/plugin.h"

#define MS 1000000ull

/* What a test's plugin does and what was done to it. */
struct script {
	struct fusee_instance *in;
	int (*start)(struct script *);
	int (*ready)(struct script *, int fd, uint32_t events);
	int (*tick)(struct script *);
	int (*process)(struct script *, const struct fusee_process_event *);
	struct script *other;
	struct loop *loop;
	int ticks, readies, wakes, events[6], finis, fds[2];
	uint32_t first_event, last_event;
	bool saw_us;
	pthread_t thread;
};

static struct script *script_of(void *ctx)
{
	return *(struct script **)ctx;
}

static int p_start(void *ctx)
{
	struct script *s = script_of(ctx);

	return s->start ? s->start(s) : 0;
}

static int p_ready(void *ctx, int fd, uint32_t events)
{
	struct script *s = script_of(ctx);

	s->readies += fd >= 0;
	s->wakes += fd < 0;
	return s->ready ? s->ready(s, fd, events) : 0;
}

static int p_tick(void *ctx)
{
	struct script *s = script_of(ctx);

	s->ticks++;
	return s->tick ? s->tick(s) : 0;
}

static int p_process(void *ctx, const struct fusee_process_event *e)
{
	struct script *s = script_of(ctx);

	CHECK_INT(e->size, sizeof(*e));
	CHECK(e->kind >= FUSEE_PROCESS_RUNNING && e->kind <= FUSEE_PROCESS_SYNC);
	s->events[e->kind]++;
	s->first_event = s->first_event ? s->first_event : e->kind;
	s->last_event = e->kind;
	s->saw_us |= e->kind == FUSEE_PROCESS_RUNNING && e->pid == (uint32_t)getpid();
	return s->process ? s->process(s, e) : 0;
}

static void p_fini(void *ctx)
{
	struct script *s = script_of(ctx);

	s->finis++;
	if (s->in) /* as a thread may, until it has ended */
		metric_add("test_finis_total", "Of the test.",
			   METRIC_LABELS("instance", s->in->name), 1);
}

static const struct fusee_discovery_ops deaf_ops = {
	.size = sizeof(deaf_ops), .start = p_start, .ready = p_ready, .tick = p_tick};
static const struct fusee_discovery_ops ops = {.size = sizeof(ops),
					       .flags = FUSEE_DISCOVERY_PROCESSES,
					       .start = p_start,
					       .ready = p_ready,
					       .tick = p_tick,
					       .process = p_process};
static const struct fusee_plugin deaf_plugin = {.magic = FUSEE_MAGIC,
						.size = sizeof(deaf_plugin),
						.kind = FUSEE_DISCOVERY,
						.name = "deaf",
						.ctx_size = sizeof(struct script *),
						.fini = p_fini,
						.ops = &deaf_ops};
static const struct fusee_plugin plugin = {.magic = FUSEE_MAGIC,
					   .size = sizeof(plugin),
					   .kind = FUSEE_DISCOVERY,
					   .name = "test",
					   .ctx_size = sizeof(struct script *),
					   .fini = p_fini,
					   .ops = &ops};

struct world {
	struct loop *loop;
	struct targets *targets;
	struct discoveries *all;
};

static void world_new(struct world *w)
{
	metrics_reset();
	CHECK_INT(loop_new(&w->loop), 0);
	CHECK_INT(targets_new(&w->targets), 0);
	CHECK_INT(discoveries_new(&w->all, w->loop, w->targets), 0);
}

static void world_free(struct world *w)
{
	discoveries_free(w->all);
	targets_free(w->targets);
	loop_free(w->loop);
}

static struct fusee_instance *instance(struct world *w, struct script *s,
				       const struct fusee_plugin *p, const char *name)
{
	struct fusee_host host = plugin_host_base;
	char *text;

	host.discovery = &discovery_host;
	CHECK_INT(instance_new(&s->in, p, &host,
			       &(struct instance_options){.name = name, .where = "x.lua:3"}, &text),
		  0);
	*(struct script **)s->in->ctx = s;
	s->loop = w->loop;
	return s->in;
}

static struct discovery *add(struct world *w, struct script *s, const struct fusee_plugin *p,
			     const char *name)
{
	struct discovery *d = NULL;
	char *text;

	CHECK_INT(discoveries_add(w->all, instance(w, s, p, name), &d, &text), 0);
	CHECK(!text && d && discovery_instance(d) == s->in);
	return d;
}

static void stop(void *arg)
{
	loop_stop(arg);
}

static void run_for(struct world *w, uint64_t ns)
{
	CHECK_INT(loop_at(w->loop, clock_now() + ns, stop, w->loop, NULL), 0);
	CHECK_INT(loop_run(w->loop), 0);
}

/* However late this machine is. */
#define RUN_UNTIL(w, x) WAIT_FOR((run_for(w, MS), (x)))

static int put(struct script *s, const char *key, uint32_t pid)
{
	const struct fusee_target t = {
		.size = sizeof(t), .match = FUSEE_MATCH_PID, .key = {key, strlen(key)}, .pid = pid};

	return discovery_host.put(s->in, &t);
}

static bool known(struct world *w, pid_t pid)
{
	bool is;

	targets_labels(w->targets, &(struct target_process){.pid = pid, .cgroup = "", .name = ""},
		       &is);
	return is;
}

/* ---- */

static int begins(struct script *s)
{
	return discovery_host.begin(s->in);
}

static int commits_at_sync(struct script *s, const struct fusee_process_event *e)
{
	if (e->kind == FUSEE_PROCESS_RUNNING && e->pid == (uint32_t)getpid())
		return put(s, "us", e->pid);
	return e->kind == FUSEE_PROCESS_SYNC ? discovery_host.commit(s->in) : 0;
}

TEST_IN_WORLD(running_processes_then_sync_then_events)
{
	struct script s = {.start = begins, .process = commits_at_sync}, deaf = {0};
	struct discovery *d, *e;

	CHECK(discoveries_synced(w->all));
	d = add(w, &s, &plugin, "discover.test");
	CHECK(s.saw_us && s.events[FUSEE_PROCESS_RUNNING] > 1);
	CHECK_INT(s.events[FUSEE_PROCESS_SYNC], 1);
	CHECK_INT(s.first_event, FUSEE_PROCESS_RUNNING);
	CHECK_INT(s.last_event, FUSEE_PROCESS_SYNC);
	CHECK(known(w, getpid()) && discoveries_synced(w->all) && discovery_synced(d));
	CHECK_INT(discovery_targets(d), 1);
	e = add(w, &deaf, &deaf_plugin, "discover.deaf");
	CHECK(!discoveries_synced(w->all) && !discovery_synced(e));
	discoveries_process(
		w->all, &(struct fusee_process_event){.size = sizeof(struct fusee_process_event),
						      .kind = FUSEE_PROCESS_EXEC,
						      .pid = 1});
	CHECK_INT(s.events[FUSEE_PROCESS_EXEC], 1);
	CHECK_INT(deaf.first_event, 0);
	discoveries_metrics(w->all);
	CHECK(metric_get("discovery_callbacks_total", METRIC_LABELS("instance", "discover.test")) >
	      3);
	CHECK(metric_get("discovery_callback_seconds", METRIC_LABELS("instance", "discover.test")) >
	      0);
	discoveries_remove(w->all, d);
	CHECK_INT(s.finis, 1);
	CHECK(!known(w, getpid()));
	CHECK(metric_get("discovery_callbacks_total", METRIC_LABELS("instance", "discover.test")) ==
	      0);
	discoveries_remove(w->all, e);
	CHECK(discoveries_synced(w->all));
}

static void report(struct world *w, uint32_t kind, uint32_t pid, uint32_t parent)
{
	discoveries_process(
		w->all, &(struct fusee_process_event){.size = sizeof(struct fusee_process_event),
						      .kind = kind,
						      .pid = pid,
						      .parent = parent});
}

TEST_IN_WORLD(forks_that_an_exec_or_exit_follows)
{
	const uint32_t own = (uint32_t)getpid(), nobody = 5000000; /* no process has this number */
	struct script s = {0};
	struct discovery *d = add(w, &s, &plugin, "discover.test");

	memset(s.events, 0, sizeof(s.events));
	report(w, FUSEE_PROCESS_FORK, own, 1);
	CHECK_INT(s.events[FUSEE_PROCESS_FORK], 0);
	discoveries_settle(w->all);
	discoveries_settle(w->all);
	CHECK_INT(s.events[FUSEE_PROCESS_FORK], 1);
	report(w, FUSEE_PROCESS_FORK, own, 1);
	report(w, FUSEE_PROCESS_EXEC, own, 0);
	report(w, FUSEE_PROCESS_FORK, nobody, 1);
	report(w, FUSEE_PROCESS_EXIT, nobody, 0);
	discoveries_settle(w->all);
	CHECK_INT(s.events[FUSEE_PROCESS_FORK], 1);
	CHECK_INT(s.events[FUSEE_PROCESS_EXEC], 1);
	CHECK_INT(s.events[FUSEE_PROCESS_EXIT], 1);
	/* the child has what its parent had before */
	report(w, FUSEE_PROCESS_FORK, nobody, own);
	report(w, FUSEE_PROCESS_EXEC, own, 0);
	CHECK_INT(s.events[FUSEE_PROCESS_FORK], 2);
	CHECK_INT(s.last_event, FUSEE_PROCESS_EXEC);
	/* the program of a process that has ended can't be read */
	report(w, FUSEE_PROCESS_EXEC, nobody, 0);
	CHECK_INT(s.events[FUSEE_PROCESS_EXEC], 2);
	CHECK_INT(s.events[FUSEE_PROCESS_EXIT], 2);
	for (uint32_t i = 0; i < 100; i++) /* more than wait */
		report(w, FUSEE_PROCESS_FORK, nobody + i, 1);
	discoveries_settle(w->all);
	CHECK_INT(s.events[FUSEE_PROCESS_FORK], 102);
	discoveries_remove(w->all, d);
}

static int reads_id(struct script *s, const struct fusee_process_event *e)
{
	uint64_t identity, got = 0;
	char text[64] = "";
	unsigned user = 0;
	uid_t real;

	if (e->pid != (uint32_t)getpid())
		return 0;
	CHECK_INT(discovery_host.process_text(s->in, e->pid, "id", 0, text, 31), -EINVAL);
	CHECK_INT(discovery_host.process_text(s->in, e->pid, "id", 1, text, 32), -EINVAL);
	if (procfs_identity_and_user(getpid(), &identity, &real)) { /* an older kernel */
		CHECK(discovery_host.process_text(s->in, e->pid, "id", 0, text, 32) < 0);
		return 0;
	}
	CHECK_INT(discovery_host.process_text(s->in, e->pid, "id", 0, text, 32), strlen(text));
	CHECK(sscanf(text, "%" SCNu64 " %u", &got, &user) == 2 && got == identity);
	CHECK_INT(user, getuid());
	CHECK(!procfs_identity(getpid(), &identity) && got == identity);
	s->ticks++;
	return 0;
}

TEST_IN_WORLD(the_id_of_a_process)
{
	struct script s = {.process = reads_id};
	struct discovery *d = add(w, &s, &plugin, "discover.test");

	CHECK(s.saw_us);
	discoveries_remove(w->all, d);
}

static int short_of_memory(struct script *s, const struct fusee_process_event *e)
{
	return s->ticks++ < 3 ? -ENOMEM : 0;
}

TEST_IN_WORLD(an_event_that_there_was_no_memory_for)
{
	struct script s = {0};
	struct fusee_process_event e = {.size = sizeof(e), .pid = (uint32_t)getpid()};
	struct discovery *d = add(w, &s, &plugin, "discover.test");

	discoveries_retry(w->all);
	CHECK_INT(s.events[FUSEE_PROCESS_EXEC], 0);
	s.process = short_of_memory;
	e.kind = FUSEE_PROCESS_FORK;
	discoveries_process(w->all, &e);
	discoveries_settle(w->all);
	e.kind = FUSEE_PROCESS_EXIT;
	e.pid = 5000000; /* no process has this number */
	discoveries_process(w->all, &e);
	CHECK(*discovery_error(d));
	discoveries_retry(w->all); /* the first fails once more */
	CHECK_INT(s.events[FUSEE_PROCESS_EXEC], 1);
	CHECK_INT(s.events[FUSEE_PROCESS_EXIT], 2);
	discoveries_retry(w->all);
	CHECK_INT(s.events[FUSEE_PROCESS_EXEC], 2);
	CHECK_INT(s.events[FUSEE_PROCESS_EXIT], 2);
	CHECK_STR(discovery_error(d), "");
	discoveries_retry(w->all);
	CHECK_INT(s.events[FUSEE_PROCESS_EXEC], 2);
	/* more than are remembered: all are reported, and SYNC */
	s.ticks = -1000000;
	e.kind = FUSEE_PROCESS_EXEC;
	for (e.pid = 5000000; e.pid < 5000300; e.pid++)
		discoveries_process(w->all, &e);
	s.ticks = 3;
	memset(s.events, 0, sizeof(s.events));
	discoveries_retry(w->all);
	CHECK_INT(s.events[FUSEE_PROCESS_EXIT], 256);
	CHECK(s.events[FUSEE_PROCESS_RUNNING] > 1);
	CHECK_INT(s.events[FUSEE_PROCESS_SYNC], 1);
}

static int start_fails(struct script *s)
{
	CHECK_INT(discovery_host.timer(s->in, MS), 0);
	CHECK_INT(put(s, "a", 1), 0);
	return plugin_host_base.fail(s->in, -EACCES, "cannot read '/sys/fs/cgroup'");
}

TEST_IN_WORLD(a_failed_start)
{
	struct script s = {.start = start_fails};
	struct discovery *d;
	char *text;

	CHECK_INT(discoveries_add(w->all, instance(w, &s, &plugin, "discover.test"), &d, &text),
		  -EACCES);
	CHECK_STR(text, "x.lua:3: discover.test: cannot read '/sys/fs/cgroup'");
	free(text);
	CHECK(!known(w, 1) && !s.in->owner);
	CHECK_INT(s.first_event, 0);
	run_for(w, 5 * MS);
	CHECK_INT(s.ticks, 0);
	CHECK_INT(discovery_host.begin(s.in), -EPERM);
	CHECK_INT(discovery_host.wake(s.in), -EPERM);
	CHECK_INT(s.finis, 0);
	instance_free(s.in);
	CHECK_INT(s.finis, 1);
}

/* No series is there again that the instance's threads count as they end. */
TEST_IN_WORLD(metrics_of_a_removed_instance)
{
	struct script s = {0};

	discoveries_remove(w->all, add(w, &s, &plugin, "discover.test"));
	CHECK_INT(s.finis, 1);
	CHECK_INT(metric_get("test_finis_total", METRIC_LABELS("instance", "discover.test")), 0);
}

/* ---- descriptors and wakes ---- */

static int watches(struct script *s)
{
	CHECK(!pipe2(s->fds, O_CLOEXEC | O_NONBLOCK));
	CHECK_INT(discovery_host.watch_fd(s->in, s->fds[0], EPOLLIN), 0);
	CHECK_INT(discovery_host.watch_fd(s->in, s->fds[0], EPOLLIN), 0);
	CHECK_INT(discovery_host.watch_fd(s->in, s->fds[1], 0), -ENOENT);
	CHECK_INT(discovery_host.watch_fd(s->in, -1, EPOLLIN), -EBADF);
	CHECK_INT(discovery_host.watch_fd(s->in, 1000, EPOLLIN), -EBADF);
	return 0;
}

static int reads(struct script *s, int fd, uint32_t events)
{
	char c;

	if (fd < 0)
		return events ? -EINVAL : 0;
	CHECK_INT(fd, s->fds[0]);
	CHECK(events & EPOLLIN && read(fd, &c, 1) == 1);
	return c == 'q' ? discovery_host.watch_fd(s->in, fd, 0) : 0;
}

static void *wakes(void *arg)
{
	for (int i = 0; i < 100; i++)
		CHECK_INT(discovery_host.wake(((struct script *)arg)->in), 0);
	return NULL;
}

TEST(descriptors_and_wakes)
{
	struct script s = {.start = watches, .ready = reads};
	pthread_t t;
	struct world w;

	world_new(&w);
	add(&w, &s, &deaf_plugin, "discover.test");
	CHECK(write(s.fds[1], "ab", 2) == 2);
	CHECK(!pthread_create(&t, NULL, wakes, &s));
	pthread_join(t, NULL);
	RUN_UNTIL(&w, s.readies == 2 && s.wakes);
	CHECK(s.wakes <= 100);
	CHECK(write(s.fds[1], "qa", 2) == 2);
	RUN_UNTIL(&w, s.readies > 2);
	run_for(&w, 5 * MS);
	CHECK_INT(s.readies, 3);
	world_free(&w);
	CHECK_INT(s.finis, 1);
}

static int reopens(struct script *s)
{
	int fds[2];

	close(s->fds[0]); /* without a word to the host */
	CHECK(!pipe2(fds, O_CLOEXEC | O_NONBLOCK));
	CHECK_INT(fds[0], s->fds[0]);
	s->fds[1] = fds[1];
	CHECK_INT(discovery_host.timer(s->in, 0), 0);
	return discovery_host.watch_fd(s->in, fds[0], EPOLLIN);
}

static int watches_and_ticks(struct script *s)
{
	watches(s);
	return discovery_host.timer(s->in, MS);
}

TEST_IN_WORLD(a_number_used_again)
{
	struct script s = {.start = watches_and_ticks, .ready = reads, .tick = reopens};
	struct discovery *d = add(w, &s, &deaf_plugin, "discover.test");

	RUN_UNTIL(w, s.ticks);
	CHECK_STR(discovery_error(d), "");
	CHECK(write(s.fds[1], "a", 1) == 1);
	RUN_UNTIL(w, s.readies);
	CHECK(s.ticks == 1 && s.readies == 1);
}

static uint64_t failed_ns; /* the last time */

static int never_reads(struct script *s, int fd, uint32_t events)
{
	failed_ns = clock_now();
	return -EIO;
}

/* It would otherwise be called again and again. */
TEST_IN_WORLD(a_descriptor_that_always_fails_pauses)
{
	struct script s = {.start = watches, .ready = never_reads};
	struct discovery *d = add(w, &s, &deaf_plugin, "discover.test");

	CHECK(write(s.fds[1], "a", 1) == 1);
	RUN_UNTIL(w, s.readies == 3);
	CHECK_STR(discovery_error(d), "x.lua:3: discover.test: Input/output error");
	s.ready = reads;
	RUN_UNTIL(w, s.readies == 4);
	CHECK(clock_now() - failed_ns >= 500 * MS); /* the pause is of 1 s, less half of one */
	CHECK_STR(discovery_error(d), "");
}

/* ---- timers ---- */

static int ticks(struct script *s)
{
	return discovery_host.timer(s->in, 2 * MS);
}

static int five_times(struct script *s)
{
	return s->ticks == 5 ? discovery_host.timer(s->in, 0) : 0;
}

TEST_IN_WORLD(timer)
{
	struct script s = {.start = ticks, .tick = five_times};

	add(w, &s, &deaf_plugin, "discover.test");
	RUN_UNTIL(w, s.ticks == 5);
	run_for(w, 10 * MS);
	CHECK_INT(s.ticks, 5);
}

static int fails(struct script *s)
{
	failed_ns = clock_now();
	return plugin_host_base.fail(s->in, -EIO, s->ticks == 2 ? "two" : "not two");
}

TEST_IN_WORLD(three_failures_and_it_backs_off)
{
	const struct metric_labels *labels = METRIC_LABELS("instance", "discover.test");
	struct script s = {.start = ticks, .tick = fails};
	char line[128];
	int fds[2], lines = 0;
	FILE *f;
	struct discovery *d = add(w, &s, &deaf_plugin, "discover.test");

	CHECK(!pipe(fds) && dup2(fds[1], 2) == 2);
	RUN_UNTIL(w, s.ticks == 3);
	CHECK_INT(metric_get("discovery_errors_total", labels), 3);
	CHECK_STR(discovery_error(d), "x.lua:3: discover.test: not two");
	s.tick = NULL;
	RUN_UNTIL(w, s.ticks > 3);
	CHECK(clock_now() - failed_ns >= 500 * MS); /* the pause is of 2 s, less half of one */
	RUN_UNTIL(w, s.ticks > 10);
	CHECK_STR(discovery_error(d), "");
	close(2);
	close(fds[1]);
	f = fdopen(fds[0], "r");
	while (fgets(line, sizeof(line), f))
		lines++;
	CHECK_INT(lines, 2); /* each text once */
	fclose(f);
}

static int slow(struct script *s)
{
	pause_us(60000, "a slow callback");
	return discovery_host.timer(s->in, 0);
}

TEST_IN_WORLD(slow_callbacks_are_counted)
{
	const struct metric_labels *labels = METRIC_LABELS("instance", "discover.test");
	struct script s = {.start = ticks, .tick = slow};

	add(w, &s, &deaf_plugin, "discover.test");
	RUN_UNTIL(w, s.ticks);
	CHECK(metric_get("discovery_slow_callbacks_total", labels) >= 1); /* others by chance */
	CHECK(metric_get("discovery_callback_seconds", labels) > 0.05);
}

/* ---- what is refused ---- */

static int meddles(struct script *s)
{
	struct fusee_instance *other = s->other->in;

	CHECK_INT(discovery_host.begin(other), -EPERM);
	CHECK_INT(put(s->other, "a", 1), -EPERM);
	CHECK_INT(discovery_host.del(other, (struct fusee_str){"a", 1}), -EPERM);
	CHECK_INT(discovery_host.commit(other), -EPERM);
	CHECK_INT(discovery_host.watch_fd(other, 0, EPOLLIN), -EPERM);
	CHECK_INT(discovery_host.timer(other, 1), -EPERM);
	return discovery_host.timer(s->in, 0);
}

static int puts_wrong(struct script *s)
{
	CHECK_INT(put(s, "", 1), -EINVAL);
	CHECK_INT(discovery_host.del(s->in, (struct fusee_str){"a", 1}), -ENOENT);
	return 0; /* what did not matter to it is no error */
}

static int passes_on(struct script *s)
{
	discovery_host.timer(s->in, 0);
	return put(s, "key", 0);
}

TEST(refused)
{
	struct script s = {.start = ticks, .tick = meddles}, o = {.start = puts_wrong},
		      p = {.start = ticks, .tick = passes_on};
	struct discovery *d, *e;
	struct world w;

	s.other = &o;
	world_new(&w);
	d = add(&w, &o, &deaf_plugin, "discover.other");
	add(&w, &s, &deaf_plugin, "discover.test");
	e = add(&w, &p, &deaf_plugin, "discover.third");
	RUN_UNTIL(&w, s.ticks && p.ticks);
	CHECK_INT(s.ticks, 1);
	CHECK_STR(discovery_error(d), "");
	CHECK_STR(discovery_error(e),
		  "x.lua:3: discover.third: a target that matches by pid has none");
	CHECK_INT(metric_get("discovery_targets_refused_total",
			     METRIC_LABELS("instance", "discover.third", "reason", "not valid")),
		  1);
	CHECK_INT(put(&o, "outside", 1), -EPERM); /* of any callback */
	world_free(&w);
	CHECK_INT(s.finis + o.finis + p.finis, 3);
}
