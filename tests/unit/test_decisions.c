/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/policy
/* core/policy/decisions: with real processes where /proc matters, with numbers that no process can
 * have (beyond the kernel's largest, 4194304) where it does not. */
#include "test.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "base/hashmap.h"
#include "policy/decisions.h"
#include "process/procfs.h"
#include "lib/str.h"

#define NOBODY 5000000 /* no process has this number */
#define SECOND 1000000000ull

struct world {
	struct targets *targets;
	struct decisions *d;
	int calls, changes, mine; /* changes of ours */
	pid_t last;
	const struct decision *now;
	double hz;         /* of the fake policy */
	int answer;        /* changed() answers */
	bool inherited;    /* as of the last changed() */
	int error;         /* it answers */
	uint64_t moves;    /* the kernel's count of them */
	int requested;     /* calls of program() */
	int forgotten;     /* calls of forgotten() for NOBODY */
	char build_id[64]; /* that it answers; "": it knows nothing yet */
	struct hashmap
		decided; /* pid -> struct decision *, as changed() said; of sampled processes */
};

static const char *label(const struct fusee_label *l, uint32_t n, const char *name)
{
	static char value[300];

	for (uint32_t i = 0; i < n; i++)
		if (l[i].key.len == strlen(name) && !memcmp(l[i].key.p, name, l[i].key.len)) {
			snprintf(value, sizeof(value), "%.*s", (int)l[i].str.len, l[i].str.p);
			return value;
		}
	return "(none)";
}

/* Everything but what has team=off; team=db faster, and with a label of its own. */
static int decide(void *arg, const struct fusee_label *labels, uint32_t n,
		  struct policy_answer *ret, char **text)
{
	struct world *w = arg;

	w->calls++;
	*ret = (struct policy_answer){.profile = true, .hz = w->hz, .sinks = 1};
	if (!strcmp(label(labels, n, "team"), "off"))
		ret->profile = false;
	if (!strcmp(label(labels, n, "team"), "db")) {
		ret->hz = 97;
		ret->labels[ret->nlabels++] = (struct fusee_label){.key = str("tier"),
								   .str = str("1")};
		ret->labels[ret->nlabels++] = (struct fusee_label){.key = str("team"),
								   .str = str("database")};
	}
	if (w->error)
		CHECK(asprintf(text, "x.lua:9: policy: wrong") > 0);
	return w->error;
}

static int changed(void *arg, pid_t pid, const struct decision *d, bool inherited)
{
	struct world *w = arg;

	w->inherited = inherited;
	if (w->answer)
		return w->answer;
	w->changes++;
	w->mine += pid == getpid();
	w->last = pid;
	w->now = d;
	if (d && d->profile)
		CHECK_INT(hashmap_put(&w->decided, (uint64_t)pid, (void *)d), 0);
	else
		hashmap_del(&w->decided, (uint64_t)pid);
	return 0;
}

static bool program(void *arg, pid_t pid, struct program *to)
{
	struct world *w = arg;

	w->requested++;
	if (!*w->build_id)
		return false;
	strcpy(to->build_id, w->build_id);
	return true;
}

static void forgotten(void *arg, pid_t pid)
{
	struct world *w = arg;

	w->forgotten += pid == NOBODY;
}

static uint64_t moves(void *arg)
{
	return ((struct world *)arg)->moves;
}

static void world_new(struct world *w, bool unknown_keep)
{
	struct decisions_options o = {.decide = decide,
				      .changed = changed,
				      .unknown_keep = unknown_keep,
				      .moves = moves,
				      .program = program,
				      .forgotten = forgotten,
				      .arg = w};

	*w = (struct world){.hz = 19};
	metrics_reset();
	CHECK_INT(targets_new(&w->targets), 0);
	o.targets = w->targets;
	CHECK_INT(decisions_new(&w->d, &o), 0);
}

static void world_free(struct world *w)
{
	decisions_free(w->d);
	targets_free(w->targets);
	hashmap_fini(&w->decided);
}

static void put(struct world *w, const char *key, struct fusee_target t, const char *team)
{
	struct fusee_label l = {.key = str("team"), .str = str(team)};
	const char *why;

	t.size = sizeof(t);
	t.key = str(key);
	t.labels = (struct fusee_table){&l, 1, sizeof(l)};
	CHECK_INT(targets_put(w->targets, 1, &t, &why), 0);
}

static void put_pid(struct world *w, pid_t pid, const char *team)
{
	char key[32];

	snprintf(key, sizeof(key), "%d", (int)pid);
	put(w, key, (struct fusee_target){.match = FUSEE_MATCH_PID, .pid = (uint32_t)pid}, team);
}

static double hz_of(struct world *w, pid_t pid)
{
	const struct decision *d = decisions_of(w->d, pid);

	CHECK((d && d->profile) == (hashmap_get(&w->decided, (uint64_t)pid) != NULL));
	return d && d->profile ? d->hz : 0;
}

static const char *label_of(struct world *w, pid_t pid, const char *name)
{
	const struct decision *d = decisions_of(w->d, pid);

	CHECK(d != NULL);
	return label(d->labels, d->nlabels, name);
}

/* The program has begun when this returns: its exec closes the pipe. */
static pid_t sleeper(const char *program)
{
	int begun[2];
	char byte;
	pid_t pid;

	CHECK(!pipe2(begun, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (program)
			execl(program, program, "60", (char *)NULL);
		pause();
		_exit(1);
	}
	CHECK(pid > 0);
	close(begun[1]);
	CHECK(!program || !read(begun[0], &byte, 1));
	close(begun[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- */

TEST(a_child_has_its_parents_then_its_own)
{
	struct world w;
	pid_t child;

	world_new(&w, true);
	decisions_execed(w.d, getpid(), NULL, 0);
	CHECK_INT(w.calls, 1);
	CHECK_INT(w.last, getpid());
	CHECK_STR(label_of(&w, getpid(), "process"), "test_decisions");
	CHECK(hz_of(&w, getpid()) == 19);
	child = sleeper(NULL);
	decisions_forked(w.d, getpid(), child);
	CHECK(w.inherited);
	CHECK(decisions_of(w.d, child) == decisions_of(w.d, getpid()));
	CHECK_INT(w.last, child);
	CHECK_INT(w.calls, 1);
	CHECK_INT(decisions_of(w.d, child)->processes, 2);
	end(child);

	child = sleeper("/bin/sleep");
	decisions_forked(w.d, getpid(), child);
	decisions_execed(w.d, child, NULL, 0);
	CHECK(strcmp(label_of(&w, child, "process"), "test_decisions"));
	CHECK_INT(w.calls, 2);
	decisions_execed(w.d, child, NULL, 0);
	CHECK_INT(w.calls, 2);
	CHECK_INT(w.changes, 4);
	/* the child of an unknown process */
	decisions_forked(w.d, NOBODY, getpid());
	CHECK(!w.inherited); /* the decision of the parent is unknown */
	CHECK(hz_of(&w, getpid()) == 19);
	end(child);
	world_free(&w);
	decisions_free(NULL);
}

static void sum_processes(void *arg, const struct decision *d)
{
	*(uint32_t *)arg += d->processes;
}

static uint32_t processes_of_sets(struct world *w)
{
	uint32_t n = 0;

	decisions_each_set(w->d, sum_processes, &n);
	return n;
}

static bool unused(void *arg, uint32_t set)
{
	return false;
}

TEST_IN_WORLD(those_that_ended_count_no_more, true)
{
	pid_t me = getpid();

	decisions_execed(w->d, me, NULL, 0);
	decisions_forked(w->d, me, NOBODY);
	decisions_forked(w->d, me, NOBODY + 1);
	CHECK_INT(processes_of_sets(w), 3);
	decisions_exited(w->d, NOBODY, SECOND);
	decisions_exited(w->d, NOBODY, 2 * SECOND);
	CHECK_INT(processes_of_sets(w), 2);
	CHECK(decisions_of(w->d, NOBODY) != NULL); /* its last samples come yet */
	put_pid(w, NOBODY, "db");
	decisions_replan(w->d, true); /* and have a place of their own then, which counts nobody */
	CHECK_STR(label_of(w, NOBODY, "tier"), "1");
	CHECK_INT(decisions_of(w->d, NOBODY)->processes, 0);
	decisions_sweep(w->d, unused, NULL); /* which it keeps */
	CHECK_STR(label_of(w, NOBODY, "tier"), "1");
	CHECK_INT(processes_of_sets(w), 2);
	decisions_forked(w->d, me, NOBODY); /* the number is used again */
	CHECK_INT(processes_of_sets(w), 3);
	decisions_exited(w->d, NOBODY, 3 * SECOND);
	decisions_exited(w->d, NOBODY + 1, 3 * SECOND);
	CHECK_INT(processes_of_sets(w), 1);
	decisions_tidy(w->d, 20 * SECOND);
	CHECK(!decisions_of(w->d, NOBODY));
	CHECK_INT(processes_of_sets(w), 1);
}

TEST_IN_WORLD(what_is_known_of_a_program_comes_later, true)
{
	static const struct target_labels selected = {.build_id = true, .executable = true};
	pid_t pid = sleeper("/bin/sleep"), child = sleeper(NULL);
	uint64_t after = clock_now() + 10000000000;

	targets_set_labels(w->targets, &selected);
	decisions_execed(w->d, pid, NULL, 0);
	CHECK(strstr(label_of(w, pid, "executable"), "/sleep"));
	CHECK_STR(label_of(w, pid, "build_id"), "(none)");
	decisions_find_programs(w->d, after);
	CHECK_INT(w->requested, 1);
	CHECK_STR(label_of(w, pid, "build_id"), "(none)");
	strcpy(w->build_id, "0a1b");
	decisions_find_programs(w->d, clock_now() - 10000000000); /* of what ran before, perhaps */
	CHECK_INT(w->requested, 1);
	decisions_find_programs(w->d, after);
	CHECK_STR(label_of(w, pid, "build_id"), "0a1b");
	decisions_find_programs(w->d, after);
	CHECK_INT(w->requested, 2);
	decisions_forked(w->d, pid, child);
	CHECK_STR(label_of(w, child, "build_id"), "0a1b");
	CHECK(strstr(label_of(w, child, "executable"), "/sleep"));
	put_pid(w, child, "db"); /* it is decided anew */
	decisions_refresh(w->d);
	CHECK_STR(label_of(w, child, "build_id"), "0a1b");
	decisions_execed(w->d, child, NULL, 0);
	CHECK_STR(label_of(w, child, "build_id"), "(none)");
	/* nobody looks for the program of a process that is not profiled */
	put_pid(w, child, "off");
	decisions_refresh(w->d);
	decisions_find_programs(w->d, after);
	CHECK_INT(w->requested, 2);
	end(pid);
	end(child);
}

TEST_IN_WORLD(changed_targets, true)
{
	pid_t me = getpid();
	int calls;

	decisions_execed(w->d, me, NULL, 0);
	decisions_forked(w->d, me, NOBODY);
	decisions_forked(w->d, me, NOBODY + 1);
	decisions_refresh(w->d);
	calls = w->calls;
	decisions_refresh(w->d);
	CHECK_INT(w->calls, calls);
	put_pid(w, NOBODY, "db");
	CHECK(hz_of(w, NOBODY) == 19);
	w->changes = 0;
	decisions_refresh(w->d);
	CHECK(hz_of(w, NOBODY) == 97 && hz_of(w, NOBODY + 1) == 19 && hz_of(w, me) == 19);
	CHECK_INT(w->changes, 1);
	CHECK_STR(label_of(w, NOBODY, "tier"), "1");
	CHECK_STR(label_of(w, NOBODY, "team"), "database"); /* the policy's word counts */
	CHECK_STR(label_of(w, me, "tier"), "(none)");
	put_pid(w, NOBODY, "off");
	decisions_refresh(w->d);
	CHECK(hz_of(w, NOBODY) == 0);
	CHECK_STR(label_of(w, NOBODY, "team"), "off");
	targets_forget(w->targets, 1);
	decisions_refresh(w->d);
	CHECK(hz_of(w, NOBODY) == 19);
	CHECK_INT(w->calls, calls + 2); /* once for each distinct set */
}

TEST_IN_WORLD(unknown_processes_are_dropped, false)
{
	pid_t me = getpid();

	decisions_execed(w->d, me, NULL, 0);
	decisions_forked(w->d, me, NOBODY);
	CHECK_INT(w->calls, 0);
	CHECK(hz_of(w, me) == 0);
	put_pid(w, NOBODY, "x");
	decisions_refresh(w->d);
	CHECK(hz_of(w, NOBODY) == 19 && hz_of(w, me) == 0);
	CHECK_INT(w->calls, 1);
	/* known without a label that says so: the set is the same, the decision is not */
	CHECK_INT(targets_put(w->targets, 2,
			      &(struct fusee_target){.size = sizeof(struct fusee_target),
						     .match = FUSEE_MATCH_PID,
						     .key = str("me"),
						     .pid = (uint32_t)me},
			      &(const char *){NULL}),
		  0);
	decisions_refresh(w->d);
	CHECK(hz_of(w, me) == 19);
	decisions_replan(w->d, true);
	CHECK(hz_of(w, me) == 19);
}

static void kernel_thread(void)
{
	struct world w;
	char exe[64];
	pid_t me = getpid();

	if (readlink("/proc/2/exe", exe, sizeof(exe)) >= 0 || access("/proc/2/stat", R_OK))
		SKIP("no kernel threads here: another pid namespace");
	world_new(&w, true);
	put_pid(&w, 2, "db");
	decisions_execed(w.d, me, NULL, 0);
	decisions_execed(w.d, 1, NULL, 0);
	decisions_execed(w.d, 2, NULL, 0);
	CHECK(!decisions_of(w.d, 2));
	decisions_forked(w.d, 2, NOBODY);
	CHECK(!decisions_of(w.d, NOBODY));
	CHECK(decisions_of(w.d, 1) && decisions_of(w.d, me));
	decisions_refresh(w.d);
	decisions_replan(w.d, true);
	CHECK(!hashmap_get(&w.decided, 2) && hashmap_get(&w.decided, (uint64_t)me));
	world_free(&w);
}

TEST(kernel_threads_never)
{
	kernel_thread();
}

TEST(kernel_threads_never_as_an_ordinary_user)
{
	if (!geteuid())
		CHECK(!setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534));
	kernel_thread();
}

TEST_IN_WORLD(forgotten_after_a_while, true)
{
	uint64_t now = 100 * SECOND;
	uint32_t profiled;
	pid_t child = sleeper(NULL);

	decisions_execed(w->d, getpid(), NULL, 0);
	decisions_forked(w->d, getpid(), child);
	CHECK_INT(decisions_processes(w->d, &profiled), 2);
	CHECK_INT(profiled, 2);
	decisions_exited(w->d, child, now);
	CHECK_INT(decisions_processes(w->d, &profiled), 1);
	CHECK(decisions_of(w->d, child) != NULL); /* its last samples are to come */
	/* its first thread only: it goes on */
	decisions_tidy(w->d, now + 6 * SECOND);
	CHECK_INT(decisions_processes(w->d, &profiled), 2);
	decisions_exited(w->d, child, now);
	end(child);
	decisions_tidy(w->d, now + 1 * SECOND);
	CHECK(decisions_of(w->d, child) != NULL);
	decisions_tidy(w->d, now + 6 * SECOND);
	CHECK(!decisions_of(w->d, child));
	CHECK(w->last == child && !w->now);
	CHECK_INT(decisions_of(w->d, getpid())->processes, 1);
	/* ended before its name was read */
	decisions_execed(w->d, NOBODY, NULL, 0);
	decisions_exited(w->d, NOBODY + 7, now);
	CHECK(!decisions_of(w->d, NOBODY));
	decisions_tidy(w->d, now + 12 * SECOND);
	/* likewise, but the kernel reported its name: its samples are still to come */
	decisions_forked(w->d, getpid(), NOBODY);
	decisions_execed(w->d, NOBODY, "brief", now + 13 * SECOND);
	CHECK_STR(label_of(w, NOBODY, "process"), "brief");
	decisions_tidy(w->d, now + 14 * SECOND);
	CHECK(decisions_of(w->d, NOBODY) != NULL);
	decisions_tidy(w->d, now + 16 * SECOND);
	CHECK(!decisions_of(w->d, NOBODY));
}

/* No record reports its end, which is noticed all the same. */
TEST_IN_WORLD(a_lost_end, true)
{
	uint64_t now = 100 * SECOND;
	uint32_t profiled;

	decisions_execed(w->d, getpid(), NULL, 0);
	decisions_forked(w->d, getpid(), NOBODY);
	CHECK_INT(decisions_processes(w->d, &profiled), 2);
	for (int i = 0; i < 22; i++)
		decisions_tidy(w->d, now += SECOND);
	CHECK_INT(decisions_processes(w->d, &profiled), 1);
	CHECK_INT(w->forgotten, 1); /* discoveries hear of it, too */
	CHECK(!decisions_of(w->d, NOBODY) && !hashmap_get(&w->decided, NOBODY));
	CHECK(hz_of(w, getpid()) == 19);
}

/* The sampler must hear of it, though the decision has the same words. */
TEST_IN_WORLD(a_number_used_again, true)
{
	int changes;

	decisions_execed(w->d, getpid(), NULL, 0);
	decisions_forked(w->d, getpid(), NOBODY);
	decisions_exited(w->d, NOBODY, 100 * SECOND);
	changes = w->changes;
	decisions_forked(w->d, getpid(), NOBODY);
	CHECK_INT(w->changes, changes + 1);
	CHECK(hz_of(w, NOBODY) == 19);
	CHECK_INT(decisions_of(w->d, NOBODY)->processes, 2);
	decisions_tidy(w->d, 200 * SECOND);
	CHECK(hz_of(w, NOBODY) == 19);
}

TEST_IN_WORLD(another_plan, true)
{
	const struct decision *before;
	pid_t me = getpid();

	put_pid(w, NOBODY, "db");
	decisions_execed(w->d, me, NULL, 0);
	decisions_forked(w->d, me, NOBODY);
	decisions_forked(w->d, me, NOBODY + 1);
	decisions_refresh(w->d);
	decisions_exited(w->d, NOBODY + 1, 100 * SECOND); /* its last samples are to come */
	CHECK(hz_of(w, me) == 19 && hz_of(w, NOBODY) == 97);
	before = decisions_of(w->d, me);
	w->hz = 49;
	w->calls = 0;
	decisions_replan(w->d, true);
	CHECK_INT(w->calls, 2);
	CHECK(hz_of(w, me) == 49 && hz_of(w, NOBODY) == 97 && hz_of(w, NOBODY + 1) == 49);
	CHECK(decisions_of(w->d, me) != before);
	CHECK_INT(decisions_of(w->d, me)->processes, 1); /* the other one ended */
	CHECK(decisions_of_set(w->d, decisions_of(w->d, me)->set) == decisions_of(w->d, me));
	decisions_tidy(w->d, 200 * SECOND);
	CHECK(!hashmap_get(&w->decided, NOBODY + 1));
}

TEST_IN_WORLD(what_there_was_no_memory_for_comes_later, true)
{
	w->answer = -ENOMEM;
	decisions_execed(w->d, getpid(), NULL, 0);
	decisions_tidy(w->d, SECOND);
	CHECK(!w->changes);
	w->answer = 0;
	decisions_tidy(w->d, 2 * SECOND);
	CHECK(w->mine == 1 && hz_of(w, getpid()) == 19);
	w->mine = 0;
	decisions_tidy(w->d, 3 * SECOND);
	CHECK_INT(w->mine, 0);
	w->error = -ENOMEM; /* the policy's */
	decisions_replan(w->d, true);
	CHECK(!decisions_of(w->d, getpid()));
	w->error = 0;
	w->hz = 29;
	decisions_tidy(w->d, 4 * SECOND);
	CHECK(hz_of(w, getpid()) == 29);
}

TEST_IN_WORLD(a_wrong_policy_is_said_once_and_counted, true)
{
	w->error = -EINVAL;
	decisions_execed(w->d, getpid(), NULL, 0);
	decisions_forked(w->d, getpid(), NOBODY);
	decisions_forked(w->d, getpid(), NOBODY + 1);
	decisions_refresh(w->d);
	CHECK_INT(metric_get("policy_errors_total", NULL), 1);
	CHECK(hz_of(w, NOBODY) == 19); /* the defaults */
	put_pid(w, NOBODY, "x");
	decisions_refresh(w->d);
	CHECK_INT(metric_get("policy_errors_total", NULL), 2);
}

/* ---- control groups ---- */

static bool write_file(const char *path, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static bool write_file(const char *path, const char *format, ...)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), n;
	va_list ap;

	va_start(ap, format);
	n = fd < 0 ? -1 : vdprintf(fd, format, ap);
	va_end(ap);
	if (fd >= 0)
		close(fd);
	return n > 0;
}

/* own: below the hierarchy of version 1 that goes before cgroup2. "": none can be made here */
static void make_cgroup(char dir[256], bool own)
{
	static const char *const all[][2] = {{"/sys/fs/cgroup/unified", "cgroup.controllers"},
					     {"/sys/fs/cgroup", "cgroup.controllers"},
					     {"/sys/fs/cgroup/systemd", "cgroup.sane_behavior"}};

	for (int i = own ? 2 : 0; i < (own ? 3 : 2); i++) {
		snprintf(dir, 256, "%s/%s", all[i][0], all[i][1]);
		if (access(dir, R_OK))
			continue;
		snprintf(dir, 256, "%s/fusee-test-%d", all[i][0], (int)getpid());
		if (!mkdir(dir, 0755))
			return;
	}
	*dir = '\0';
}

static void tidy(struct world *w, int rounds)
{
	for (int i = 0; i < rounds; i++)
		decisions_tidy(w->d, 100 * SECOND + (uint64_t)i);
}

/* A child that begins after some rounds and moves after others, in a world where the kernel counts
 * moves up from `from`, or, 0, not at all; counted: it counts this move. */
struct move {
	int begin, before, after;
	uint64_t from;
	bool counted;
};

/* The child's rate in the end; 0: no control group can be made. */
static double rate_after(const struct move *m)
{
	char dir[256], procs[300], path[64];
	struct world w;
	pid_t child;
	double hz;
	bool moved;

	make_cgroup(dir, false);
	if (!*dir)
		return 0;
	child = sleeper(NULL);
	snprintf(path, sizeof(path), "/fusee-test-%d", (int)getpid());
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", dir);
	world_new(&w, true);
	w.moves = m->from;
	put(&w, "c", (struct fusee_target){.match = FUSEE_MATCH_CGROUP, .cgroup = str(path)}, "db");
	decisions_execed(w.d, getpid(), NULL, 0);
	tidy(&w, m->begin);
	decisions_forked(w.d, getpid(), child);
	decisions_refresh(w.d);
	hz = hz_of(&w, child);
	tidy(&w, m->before);
	moved = write_file(procs, "%d", (int)child);
	w.moves += m->counted;
	tidy(&w, m->after);
	end(child);
	WAIT_FOR(!rmdir(dir));
	CHECK(moved && hz == 19);
	CHECK(hz_of(&w, getpid()) == 19);
	hz = hz_of(&w, child);
	world_free(&w);
	return hz;
}

TEST(moves_to_another_control_group)
{
	static const struct {
		struct move m;
		double hz;
	} all[] = {
		{{.after = 15}, 97},
		{{.before = 310, .after = 60}, 97},
		{{.before = 16, .after = 15, .from = 1, .counted = true}, 97},
		/* nothing is read where nobody moved, but once a minute */
		{{.before = 16, .after = 15, .from = 1}, 19},
		{{.before = 16, .after = 60, .from = 1}, 97},
		/* a new process may have been put into another group than its parent's */
		{{.begin = 16, .after = 15, .from = 1}, 97},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		double hz = rate_after(&all[i].m);

		if (!hz)
			SKIP("no control group can be made here (needs root and cgroup2)");
		CHECK_INT(hz, all[i].hz);
	}
}

/* A child that moves and then execs. own: in the hierarchy whose moves the number of a group does
 * not show. Its rate in the end; 0: no control group can be made. */
static double rate_after_exec(bool own, uint64_t counted, bool lost)
{
	char dir[256], procs[300], path[64];
	struct world w;
	pid_t child;
	double hz;
	bool moved;

	make_cgroup(dir, own);
	if (!*dir)
		return 0;
	child = sleeper(NULL);
	snprintf(path, sizeof(path), "/fusee-test-%d", (int)getpid());
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", dir);
	world_new(&w, true);
	w.moves = 1;
	put(&w, "c", (struct fusee_target){.match = FUSEE_MATCH_CGROUP, .cgroup = str(path)}, "db");
	decisions_execed(w.d, getpid(), NULL, 0);
	decisions_forked(w.d, getpid(), child);
	moved = write_file(procs, "%d", (int)child);
	w.moves += counted;
	if (lost)
		decisions_lost(w.d);
	decisions_execed(w.d, child, NULL, 0);
	end(child);
	WAIT_FOR(!rmdir(dir));
	CHECK(moved);
	hz = hz_of(&w, child);
	world_free(&w);
	return hz;
}

/* An exec is no reason to read again what a move would have changed. */
TEST(an_exec_in_another_control_group)
{
	double hz = rate_after_exec(false, 0, false);

	if (!hz)
		SKIP("no control group can be made here (needs root and cgroup2)");
	CHECK_INT(hz, 97); /* it was put there when it began: no move is counted */
	CHECK_INT(rate_after_exec(false, 1, false), 97);
	hz = rate_after_exec(true, 1, false);
	if (!hz)
		SKIP("no control group of version 1 can be made here");
	CHECK_INT(hz, 97);
	CHECK_INT(rate_after_exec(true, 0, true), 97); /* the pid may be another process's */
	if (procfs_cgroup_id(getpid()))
		CHECK_INT(rate_after_exec(true, 0, false), 19); /* it was not read */
}

/* ---- many ---- */

static void count_set(void *arg, const struct decision *d)
{
	CHECK(d->processes <= 1);
	++*(int *)arg;
}

static bool never(void *arg, uint32_t set)
{
	return false;
}

static void sweep(struct world *w, int rounds)
{
	for (int i = 0; i < rounds; i++)
		decisions_sweep(w->d, never, NULL);
}

TEST_IN_WORLD(five_thousand, true)
{
	uint32_t profiled, n;
	int sets = 0;
	char team[32];

	decisions_execed(w->d, getpid(), NULL, 0);
	for (int i = 0; i < 5000; i++) {
		snprintf(team, sizeof(team), "t%d", i);
		put_pid(w, NOBODY + i, team);
	}
	for (int i = 0; i < 5000; i++)
		decisions_forked(w->d, getpid(), NOBODY + i);
	put_pid(w, NOBODY, "db");
	decisions_refresh(w->d);
	for (int i = 0; i < 100; i++) {
		snprintf(team, sizeof(team), "u%d", i);
		put_pid(w, NOBODY + 1, team);
		decisions_refresh(w->d);
		CHECK_STR(label_of(w, NOBODY + 1, "team"), team);
	}
	put_pid(w, NOBODY + 1, "t1");
	decisions_refresh(w->d);
	w->calls -= 100;
	sweep(w, 1);
	CHECK_INT(decisions_processes(w->d, &profiled), 5001);
	CHECK_INT(profiled, 5001);
	CHECK_INT(w->calls, 5001);
	sets = 0;
	decisions_each_set(w->d, count_set, &sets);
	CHECK_INT(sets, 5001);
	for (int i = 0; i < 5000; i++)
		decisions_exited(w->d, NOBODY + i, 100 * SECOND);
	for (int i = 0; i < 20; i++)
		decisions_tidy(w->d, 106 * SECOND);
	CHECK_INT(decisions_processes(w->d, &profiled), 1);
	CHECK_INT((long long)w->decided.n, 1);
	sweep(w, 20);
	sets = 0;
	decisions_each_set(w->d, count_set, &sets);
	CHECK_INT(sets, 1);
	CHECK(targets_set(w->targets, decisions_of(w->d, getpid())->set, &n) && n == 3);
	CHECK(!targets_set(w->targets, 2, &n));
}
